//! The YAML at the top of a `SKILL.md`, read to be compared with what the entry says of it.
//!
//! Scalars are read by the core schema of YAML 1.2. A plain scalar also equals a JSON string of the same characters, because
//! there are readers to whom every scalar is a string; a person who approves `"1.0"` has seen what the file says. What can make
//! a small file large or mean two things is refused: aliases, tags other than `!!str`, keys that occur twice or are no scalars,
//! more than one document.

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Value};

use super::SkillLimits;
use super::error::{SkillError, SkillErrorKind, shown};
use crate::error::as_u64;

/// A value of the YAML.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Scalar { text: String, plain: bool },
    Sequence(Vec<Self>),
    Mapping(Vec<(String, Self)>),
}

/// The frontmatter of a file, and where the text behind it begins.
#[derive(Debug)]
pub(crate) struct Frontmatter {
    pub(crate) members: Vec<(String, Node)>,
    pub(crate) body_at: usize,
}

impl Frontmatter {
    /// Reads the top of a file.
    pub(crate) fn read(uri: &str, text: &str, limits: &SkillLimits) -> Result<Self, SkillError> {
        let invalid = |what: &str| SkillError::new(SkillErrorKind::InvalidFrontmatter, uri, what);
        let (yaml, body_at) =
            split(text).ok_or_else(|| invalid("the file does not begin with frontmatter"))?;
        if yaml.len() > limits.max_frontmatter_bytes {
            let limit = limits.max_frontmatter_bytes;
            let what = format!("frontmatter of {} bytes exceeds the limit of {limit} bytes", yaml.len());
            return Err(SkillError::limit_exceeded(uri, "max_frontmatter_bytes", as_u64(limit), what));
        }
        match (Builder { uri, limits, open: Vec::new(), root: None, nodes: 0 }).build(yaml)? {
            Some(Node::Mapping(members)) => Ok(Self { members, body_at }),
            _ => Err(invalid("the frontmatter is no mapping")),
        }
    }

    /// The first member, by name, in which this differs from the frontmatter of an entry.
    pub(crate) fn difference(&self, entry: &Map<String, Value>) -> Option<String> {
        let odd = self
            .members
            .iter()
            .find(|(name, node)| !entry.get(name).is_some_and(|value| equal(node, value)))
            .map(|(name, _)| name);
        let missing = || entry.keys().find(|key| !self.members.iter().any(|(name, _)| name == *key));
        odd.or_else(missing).cloned()
    }
}

/// The YAML between the two lines of three hyphens, and where the text behind the second begins.
fn split(text: &str) -> Option<(&str, usize)> {
    let is_fence = |line: &str| line.trim_end() == "---" && line.starts_with("---");
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut lines = text.get(start..)?.split_inclusive('\n');
    let first = lines.next().filter(|line| is_fence(line))?;
    let begin = start + first.len();
    let mut end = begin;
    for line in lines {
        if is_fence(line) {
            return Some((text.get(begin..end)?, end + line.len()));
        }
        end += line.len();
    }
    None
}

/// Whether a value of the YAML and one of the entry are the same.
fn equal(node: &Node, value: &Value) -> bool {
    match (node, value) {
        (Node::Sequence(items), Value::Array(values)) => {
            items.len() == values.len() && items.iter().zip(values).all(|(item, value)| equal(item, value))
        }
        (Node::Mapping(members), Value::Object(values)) => {
            members.len() == values.len()
                && members.iter().all(|(name, node)| values.get(name).is_some_and(|value| equal(node, value)))
        }
        (Node::Scalar { text, .. }, Value::String(value)) => text == value,
        (Node::Scalar { text, plain: true }, Value::Null) => {
            matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL")
        }
        (Node::Scalar { text, plain: true }, Value::Bool(value)) => match text.as_str() {
            "true" | "True" | "TRUE" => *value,
            "false" | "False" | "FALSE" => !*value,
            _ => false,
        },
        (Node::Scalar { text, plain: true }, Value::Number(value)) => equal_numbers(text, value),
        _ => false,
    }
}

fn equal_numbers(text: &str, value: &serde_json::Number) -> bool {
    if let Some(number) = integer(text)
        && let Some(other) = value.as_i128()
    {
        return number == other;
    }
    // Never integers that a float cannot tell apart: `integer` has read those.
    is_decimal(text) && text.parse::<f64>().ok().is_some_and(|number| Some(number) == value.as_f64())
}

/// An integer of the core schema that fits.
fn integer(text: &str) -> Option<i128> {
    let in_base = |digits: &str, base| {
        digits
            .starts_with(|first: char| first.is_digit(base))
            .then(|| i128::from_str_radix(digits, base).ok())
    };
    if let Some(digits) = text.strip_prefix("0x") {
        return in_base(digits, 16).flatten();
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return in_base(digits, 8).flatten();
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

/// Whether the text is a float of the core schema: Rust's own reader would also take `infinity` and the like.
fn is_decimal(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'))
}

/// Puts the events of the parser together, without recursion.
struct Builder<'a> {
    uri: &'a str,
    limits: &'a SkillLimits,
    open: Vec<Open>,
    root: Option<Node>,
    nodes: usize,
}

/// A collection that is not at its end.
enum Open {
    Sequence(Vec<Node>),
    Mapping { members: Vec<(String, Node)>, key: Option<String> },
}

impl Builder<'_> {
    fn build(mut self, yaml: &str) -> Result<Option<Node>, SkillError> {
        let mut documents = 0;
        for event in Parser::new_from_str(yaml) {
            // The error quotes the file; where it is must do.
            let (event, _) = event.map_err(|error| {
                self.invalid(&format!("the frontmatter is no YAML (line {})", error.marker().line()))
            })?;
            match event {
                Event::DocumentStart(_) => {
                    documents += 1;
                    if documents > 1 {
                        return Err(self.invalid("the frontmatter has more than one document"));
                    }
                }
                Event::Alias(_) => return Err(self.invalid("the frontmatter has an alias")),
                Event::Scalar(text, style, _, tag) => {
                    let plain = style == ScalarStyle::Plain && self.untagged(tag.as_deref())?;
                    self.put(Node::Scalar { text: text.into_owned(), plain })?;
                }
                Event::SequenceStart(_, tag) => self.open(Open::Sequence(Vec::new()), tag.as_deref())?,
                Event::MappingStart(_, tag) => {
                    self.open(Open::Mapping { members: Vec::new(), key: None }, tag.as_deref())?;
                }
                Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                    Some(Open::Sequence(items)) => self.put(Node::Sequence(items))?,
                    Some(Open::Mapping { members, .. }) => self.put(Node::Mapping(members))?,
                    None => return Err(self.invalid("the frontmatter is no YAML")),
                },
                _ => {}
            }
        }
        Ok(self.root)
    }

    fn open(&mut self, collection: Open, tag: Option<&Tag>) -> Result<(), SkillError> {
        if tag.is_some() {
            return Err(self.invalid("the frontmatter has a tag"));
        }
        let limit = self.limits.max_frontmatter_depth;
        if self.open.len() >= limit {
            return Err(depth_exceeded(self.uri, limit));
        }
        self.open.push(collection);
        Ok(())
    }

    /// Whether a scalar has no tag; `!!str` makes it a string, any other is refused.
    fn untagged(&self, tag: Option<&Tag>) -> Result<bool, SkillError> {
        match tag {
            None => Ok(true),
            Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => Ok(false),
            Some(_) => Err(self.invalid("the frontmatter has a tag")),
        }
    }

    fn put(&mut self, node: Node) -> Result<(), SkillError> {
        self.nodes += 1;
        let limit = self.limits.max_frontmatter_nodes;
        if self.nodes > limit {
            let what = format!("the frontmatter has more than {limit} values");
            return Err(SkillError::limit_exceeded(self.uri, "max_frontmatter_nodes", as_u64(limit), what));
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::Sequence(items)) => items.push(node),
            Some(Open::Mapping { members, key }) => match (key.take(), node) {
                (Some(key), node) => members.push((key, node)),
                (None, Node::Scalar { text, .. }) => {
                    if members.iter().any(|(name, _)| *name == text) {
                        return Err(
                            self.invalid(&format!("the frontmatter has the key {} twice", shown(&text)))
                        );
                    }
                    *key = Some(text);
                }
                (None, _) => return Err(self.invalid("the frontmatter has a key that is no scalar")),
            },
        }
        Ok(())
    }

    fn invalid(&self, what: &str) -> SkillError {
        SkillError::new(SkillErrorKind::InvalidFrontmatter, self.uri, what)
    }
}

pub(crate) fn depth_exceeded(uri: &str, limit: usize) -> SkillError {
    let what = format!("the frontmatter nests deeper than {limit}");
    SkillError::limit_exceeded(uri, "max_frontmatter_depth", as_u64(limit), what)
}

#[cfg(test)]
#[path = "frontmatter_tests.rs"]
mod tests;
