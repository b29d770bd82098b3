//! JSON Pointers that cost nothing until one is needed.

use std::fmt::Write as _;

/// A place in a document, linked to its parent on the stack.
#[derive(Clone, Copy)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Self>,
    segment: Segment<'a>,
}

#[derive(Clone, Copy)]
enum Segment<'a> {
    Root,
    Name(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    pub(crate) const ROOT: Path<'static> = Path { parent: None, segment: Segment::Root };

    pub(crate) fn name(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), segment: Segment::Name(name) }
    }

    pub(crate) fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), segment: Segment::Index(index) }
    }

    /// The pointer's text, escaped by RFC 6901.
    pub(crate) fn pointer(&self) -> String {
        let mut text = self.parent.map(Self::pointer).unwrap_or_default();
        match self.segment {
            Segment::Root => {}
            Segment::Name(name) => {
                text.push('/');
                for c in name.chars() {
                    match c {
                        '~' => text.push_str("~0"),
                        '/' => text.push_str("~1"),
                        other => text.push(other),
                    }
                }
            }
            Segment::Index(index) => {
                // Writing to a string cannot fail.
                let _ = write!(text, "/{index}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn names_are_escaped_and_indexes_are_digits() {
        let root = Path::ROOT;
        let a = root.name("a/b~c");
        assert_eq!(root.pointer(), "");
        assert_eq!(a.index(7).name("").pointer(), "/a~1b~0c/7/");
    }
}
