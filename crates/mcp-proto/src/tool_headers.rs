//! `x-mcp-header`: which arguments of a tool are mirrored into `Mcp-Param-*` headers (2026-07-28).
//!
//! An annotation counts on a property of type `string`, `integer` or `boolean` that is reached from the root of the input
//! schema through `properties` alone. One anywhere else, or one that is not well formed, makes the tool invalid: the
//! client drops that tool from its list and says why.

use std::error::Error;
use std::fmt;

use serde_json::{Map, Value};

use crate::diagnostic::excerpt;
use crate::limits::Limits;

const ANNOTATION: &str = "x-mcp-header";

/// The largest integer that every JSON reader keeps exactly: 2^53 - 1.
const MAX_SAFE_INTEGER: i64 = 9_007_199_254_740_991;

/// The mirrored parameters of one tool.
///
/// ```
/// use mcp_proto::ToolHeaders;
///
/// let schema = r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#;
/// let headers = ToolHeaders::from_schema(schema)?;
/// let params = headers.params(r#"{"region":"us-west1"}"#)?;
/// assert_eq!(params, [("Region".to_owned(), "us-west1".to_owned())]);
/// # Ok::<(), mcp_proto::ToolHeadersError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolHeaders {
    headers: Vec<ToolHeader>,
    /// Bytes of names in them.
    bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ToolHeader {
    /// The suffix as declared.
    suffix: String,
    path: Vec<String>,
}

impl ToolHeaders {
    /// Reads the annotations of an input schema, given as JSON text, within the default [`Limits`].
    ///
    /// # Errors
    ///
    /// The first fault found; the tool must not be used then.
    pub fn from_schema(input_schema: &str) -> Result<Self, ToolHeadersError> {
        Self::from_schema_within(input_schema, &Limits::default())
    }

    /// As [`from_schema`](Self::from_schema), with [`max_tool_headers`](Limits::max_tool_headers) and
    /// [`max_tool_header_bytes`](Limits::max_tool_header_bytes) of one's own.
    ///
    /// # Errors
    ///
    /// Those of [`from_schema`](Self::from_schema).
    pub fn from_schema_within(input_schema: &str, limits: &Limits) -> Result<Self, ToolHeadersError> {
        let schema: Value = input_schema.parse().map_err(|_| ToolHeadersError::NotJson)?;
        let mut headers = Self::default();
        headers.scan(&schema, Some(&mut Vec::new()), limits)?;
        Ok(headers)
    }

    /// Whether nothing is mirrored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    /// Suffix and plain text of each header for these arguments, given as JSON text: what
    /// [`Routing::params`](crate::Routing::params) takes. An argument that is absent, null, or no string, number or
    /// boolean has no header.
    ///
    /// # Errors
    ///
    /// [`ToolHeadersError::NotSafeInteger`] for a number that is no integer within ±(2^53 - 1): the server could not compare
    /// it. [`ToolHeadersError::NotJson`].
    pub fn params(&self, arguments: &str) -> Result<Vec<(String, String)>, ToolHeadersError> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let arguments: Value = arguments.parse().map_err(|_| ToolHeadersError::NotJson)?;
        let mut params = Vec::new();
        for ToolHeader { suffix, path } in &self.headers {
            let value = path.iter().try_fold(&arguments, |value, name| value.as_object()?.get(name));
            let text = match value {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Bool(value)) => value.to_string(),
                Some(Value::Number(number)) => {
                    let integer = safe_integer(number);
                    integer
                        .ok_or_else(|| ToolHeadersError::NotSafeInteger { header: suffix.clone() })?
                        .to_string()
                }
                None | Some(Value::Null | Value::Array(_) | Value::Object(_)) => continue,
            };
            params.push((suffix.clone(), text));
        }
        Ok(params)
    }

    /// Walks a schema. `path` is the way from the root through `properties` alone, `None` where that is broken.
    fn scan(
        &mut self,
        schema: &Value,
        mut path: Option<&mut Vec<String>>,
        limits: &Limits,
    ) -> Result<(), ToolHeadersError> {
        let object = match schema {
            Value::Object(object) => object,
            Value::Array(items) => return items.iter().try_for_each(|item| self.scan(item, None, limits)),
            _ => return Ok(()),
        };
        if let Some(annotation) = object.get(ANNOTATION) {
            let path = path.as_deref().filter(|path| !path.is_empty());
            self.add(annotation, object, path.ok_or(ToolHeadersError::Misplaced)?, limits)?;
        }
        for (keyword, inner) in object {
            match keyword.as_str() {
                // Data, not schemas: what stands in there annotates nothing.
                "const" | "default" | "enum" | "examples" | ANNOTATION => {}
                "properties" => {
                    for (name, schema) in inner.as_object().into_iter().flatten() {
                        match path.as_deref_mut() {
                            None => self.scan(schema, None, limits)?,
                            Some(path) => {
                                path.push(name.clone());
                                self.scan(schema, Some(path), limits)?;
                                path.pop();
                            }
                        }
                    }
                }
                // Maps from names to schemas, where a name may look like a keyword.
                "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties" => {
                    for schema in inner.as_object().into_iter().flat_map(Map::values) {
                        self.scan(schema, None, limits)?;
                    }
                }
                _ => self.scan(inner, None, limits)?,
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        annotation: &Value,
        schema: &Map<String, Value>,
        path: &[String],
        limits: &Limits,
    ) -> Result<(), ToolHeadersError> {
        let property = || path.join(".");
        let suffix = annotation
            .as_str()
            .filter(|suffix| is_token(suffix))
            .ok_or_else(|| ToolHeadersError::BadName { property: property() })?;
        if !matches!(schema.get("type").and_then(Value::as_str), Some("boolean" | "integer" | "string")) {
            return Err(ToolHeadersError::BadType { property: property() });
        }
        if self.headers.iter().any(|known| known.suffix.eq_ignore_ascii_case(suffix)) {
            return Err(ToolHeadersError::Duplicate { header: suffix.to_owned() });
        }
        if self.headers.len() >= limits.max_tool_headers {
            return Err(ToolHeadersError::TooMany { limit: limits.max_tool_headers });
        }
        self.bytes += suffix.len() + path.iter().map(String::len).sum::<usize>();
        if self.bytes > limits.max_tool_header_bytes {
            return Err(ToolHeadersError::TooLong { limit: limits.max_tool_header_bytes });
        }
        self.headers.push(ToolHeader { suffix: suffix.to_owned(), path: path.to_vec() });
        Ok(())
    }
}

/// Whether this is a `token` of HTTP, of which header names are made.
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// The integer a JSON number stands for, however it is written, if it is within the bounds.
fn safe_integer(number: &serde_json::Number) -> Option<i64> {
    let integer = match number.as_i64() {
        Some(integer) => integer,
        None => {
            let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
            // The bound is exactly representable, so that the comparison below is exact as well.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a cast saturates, and the bound is checked next"
            )]
            let integer = float as i64;
            integer
        }
    };
    (-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER).contains(&integer).then_some(integer)
}

/// Why a tool cannot be used over HTTP, or not with these arguments. Names come from the server: untrusted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolHeadersError {
    /// The annotation is no string that can end a header name.
    #[non_exhaustive]
    BadName {
        /// The path of the annotated property.
        property: String,
    },
    /// The annotated property is not of the one type `string`, `integer` or `boolean`.
    #[non_exhaustive]
    BadType {
        /// The path of the annotated property.
        property: String,
    },
    /// Two properties name the same header, apart from case.
    #[non_exhaustive]
    Duplicate {
        /// The suffix that came again.
        header: String,
    },
    /// An annotation stands where no property is reached through `properties` alone.
    Misplaced,
    /// The text is no JSON.
    NotJson,
    /// The argument for this header is a number but no integer within ±(2^53 - 1).
    #[non_exhaustive]
    NotSafeInteger {
        /// The header's suffix.
        header: String,
    },
    /// More bytes in the names of headers and properties than are supported.
    #[non_exhaustive]
    TooLong {
        /// How many are.
        limit: usize,
    },
    /// More annotations than are supported.
    #[non_exhaustive]
    TooMany {
        /// How many are.
        limit: usize,
    },
}

impl fmt::Display for ToolHeadersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |text: &str| excerpt(text, 128);
        match self {
            Self::BadName { property } => {
                write!(f, "x-mcp-header of {} is no header name", show(property))
            }
            Self::BadType { property } => {
                write!(f, "x-mcp-header of {} is on no string, integer or boolean", show(property))
            }
            Self::Duplicate { header } => write!(f, "x-mcp-header {} comes twice", show(header)),
            Self::Misplaced => f.write_str("x-mcp-header on something that is no plain property"),
            Self::NotJson => f.write_str("not JSON"),
            Self::NotSafeInteger { header } => {
                write!(
                    f,
                    "the argument for the header {} is no integer that every peer can read",
                    show(header)
                )
            }
            Self::TooLong { limit } => {
                write!(f, "more than {limit} bytes of names around x-mcp-header annotations")
            }
            Self::TooMany { limit } => write!(f, "more than {limit} x-mcp-header annotations"),
        }
    }
}

impl Error for ToolHeadersError {}

#[cfg(test)]
#[path = "tool_headers_tests.rs"]
mod tests;
