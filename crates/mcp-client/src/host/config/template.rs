//! Texts with `${VAR}` and `${VAR:-default}` in them.

/// What a text consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Literal(&'a str),
    Reference { name: &'a str, default: Option<&'a str> },
}

/// Why a text cannot be read or filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Invalid,
    TooLong,
    Unset(String),
}

/// Whether anything is to be filled in.
pub(super) fn has_reference(text: &str) -> bool {
    text.contains("${")
}

/// The pieces of a text.
///
/// A name is all up to `:-` or `}`, so that a lookup may serve other forms too (`env:HOME`, `input:token`,
/// `workspaceFolder`). A default ends at the first `}` and holds no reference, because hosts disagree about what that means.
pub(super) fn pieces(mut text: &str) -> Result<Vec<Piece<'_>>, Fault> {
    let mut pieces = Vec::new();
    while let Some((literal, rest)) = text.split_once("${") {
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        let (inside, rest) = rest.split_once('}').ok_or(Fault::Invalid)?;
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '$' | '{');
        if name.is_empty() || name.contains(odd) || has_reference(inside) {
            return Err(Fault::Invalid);
        }
        pieces.push(Piece::Reference { name, default });
        text = rest;
    }
    if !text.is_empty() {
        pieces.push(Piece::Literal(text));
    }
    Ok(pieces)
}

/// Fills in the references of a text. What is filled in is not looked at again.
pub(super) fn expand(
    text: &str,
    lookup: &mut impl FnMut(&str) -> Option<String>,
    limit: usize,
) -> Result<String, Fault> {
    let mut expanded = String::new();
    for piece in pieces(text)? {
        match piece {
            Piece::Literal(literal) => push(&mut expanded, literal, limit)?,
            Piece::Reference { name, default } => match (lookup(name), default) {
                (Some(value), _) => push(&mut expanded, &value, limit)?,
                (None, Some(default)) => push(&mut expanded, default, limit)?,
                (None, None) => return Err(Fault::Unset(name.to_owned())),
            },
        }
    }
    Ok(expanded)
}

fn push(expanded: &mut String, more: &str, limit: usize) -> Result<(), Fault> {
    if expanded.len().saturating_add(more.len()) > limit {
        return Err(Fault::TooLong);
    }
    expanded.push_str(more);
    Ok(())
}
