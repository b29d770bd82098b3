//! One broken rule, and where it was broken.

use std::fmt;

use serde::Serialize;
use serde_json::Number;

use crate::text::Untrusted;

/// Which rule was broken. Rules that are keywords of JSON Schema carry the keyword's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// The answer's `action` is not `accept`, `decline` or `cancel`.
    Action,
    /// The schema forbids further members and the answer has one.
    AdditionalProperties,
    /// Control characters where none may be.
    ControlCharacter,
    /// A `default` of the wrong type, or one that is no option.
    Default,
    /// The same member name twice in one object.
    DuplicateMember,
    /// The same `elicitationId` twice in one batch.
    DuplicateId,
    /// Not one of the options, or options that cannot be chosen from.
    Enum,
    /// Greater than or equal to `exclusiveMaximum`.
    ExclusiveMaximum,
    /// Less than or equal to `exclusiveMinimum`.
    ExclusiveMinimum,
    /// Not of the named `format`.
    Format,
    /// Not JSON.
    Json,
    /// A count or length above a limit of this client.
    Limit,
    /// More items than `maxItems`.
    MaxItems,
    /// More characters than `maxLength`.
    MaxLength,
    /// Greater than `maximum`.
    Maximum,
    /// Fewer items than `minItems`.
    MinItems,
    /// Fewer characters than `minLength`.
    MinLength,
    /// Less than `minimum`.
    Minimum,
    /// A mode that is unknown, not in the revision, or not declared by the client.
    Mode,
    /// No match for `pattern`.
    Pattern,
    /// A required member is missing, or a required name is no property.
    Required,
    /// The same item twice where `uniqueItems` is true.
    UniqueItems,
    /// A schema outside the flat subset: nested, referring, composed, or of a foreign type.
    Subset,
    /// A value of the wrong JSON type.
    Type,
    /// A URL that is not acceptable.
    Url,
    /// A keyword whose value makes no sense, such as a negative length.
    Value,
}

impl Rule {
    /// The rule's name: the JSON Schema keyword where there is one, else a word in snake case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::AdditionalProperties => "additionalProperties",
            Self::ControlCharacter => "control_character",
            Self::Default => "default",
            Self::DuplicateMember => "duplicate_member",
            Self::DuplicateId => "duplicate_id",
            Self::Enum => "enum",
            Self::ExclusiveMaximum => "exclusiveMaximum",
            Self::ExclusiveMinimum => "exclusiveMinimum",
            Self::Format => "format",
            Self::Json => "json",
            Self::Limit => "limit",
            Self::MaxItems => "maxItems",
            Self::MaxLength => "maxLength",
            Self::Maximum => "maximum",
            Self::MinItems => "minItems",
            Self::MinLength => "minLength",
            Self::Minimum => "minimum",
            Self::Mode => "mode",
            Self::Pattern => "pattern",
            Self::Required => "required",
            Self::UniqueItems => "uniqueItems",
            Self::Subset => "subset",
            Self::Type => "type",
            Self::Url => "url",
            Self::Value => "value",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Rule {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One broken rule. The message never repeats a value from an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Violation {
    /// JSON Pointer (RFC 6901) into the request's `params` or into the answer's `content`. It points at a
    /// missing member by the name the member would have.
    pub pointer: String,
    /// The broken rule.
    pub rule: Rule,
    /// What is wrong, in English, lowercase, with numbers.
    pub message: String,
    #[serde(skip)]
    limit: Option<Number>,
    #[serde(skip)]
    actual: Option<u64>,
}

impl Violation {
    /// A violation of `rule` at `pointer`.
    #[must_use]
    pub fn new(pointer: impl Into<String>, rule: Rule, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), rule, message: message.into(), limit: None, actual: None }
    }

    pub(crate) fn with_numbers(mut self, limit: Number, actual: Option<u64>) -> Self {
        self.limit = Some(limit);
        self.actual = actual;
        self
    }

    /// The number that a value of an answer is above or below: that of the keyword that [`rule`](Self::rule) names (`minLength`,
    /// `maximum`, `maxItems`, ...). To say in another language what [`message`](Self::message) says.
    #[must_use]
    pub const fn limit(&self) -> Option<&Number> {
        self.limit.as_ref()
    }

    /// How many characters or items the value has, where that is what is wrong. A number that somebody entered is not repeated.
    #[must_use]
    pub const fn actual(&self) -> Option<u64> {
        self.actual
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            // Pointers hold names that a peer chose.
            write!(f, "{}: ", Untrusted::new(&self.pointer).single_line().max_chars(128))?;
        }
        f.write_str(&self.message)
    }
}

/// Writes a list of violations as one line: the first, and how many more there are.
pub(crate) fn summarize(violations: &[Violation], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match violations {
        [] => f.write_str("no violation"),
        [only] => write!(f, "{only}"),
        [first, rest @ ..] => write!(f, "{first} (and {} more)", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names are what `validate` prints and what programs match on.
    #[test]
    fn each_rule_has_the_name_of_its_keyword_or_a_word_of_its_own() {
        let names = [
            (Rule::Action, "action"),
            (Rule::AdditionalProperties, "additionalProperties"),
            (Rule::ControlCharacter, "control_character"),
            (Rule::Default, "default"),
            (Rule::DuplicateId, "duplicate_id"),
            (Rule::DuplicateMember, "duplicate_member"),
            (Rule::Enum, "enum"),
            (Rule::ExclusiveMaximum, "exclusiveMaximum"),
            (Rule::ExclusiveMinimum, "exclusiveMinimum"),
            (Rule::Format, "format"),
            (Rule::Json, "json"),
            (Rule::Limit, "limit"),
            (Rule::MaxItems, "maxItems"),
            (Rule::MaxLength, "maxLength"),
            (Rule::Maximum, "maximum"),
            (Rule::MinItems, "minItems"),
            (Rule::MinLength, "minLength"),
            (Rule::Minimum, "minimum"),
            (Rule::Mode, "mode"),
            (Rule::Pattern, "pattern"),
            (Rule::Required, "required"),
            (Rule::Subset, "subset"),
            (Rule::Type, "type"),
            (Rule::UniqueItems, "uniqueItems"),
            (Rule::Url, "url"),
            (Rule::Value, "value"),
        ];
        for (rule, name) in names {
            assert_eq!((rule.as_str(), rule.to_string().as_str()), (name, name));
            assert_eq!(serde_json::to_value(rule).unwrap(), name);
        }
    }

    #[test]
    fn a_list_is_summed_up_in_one_line_and_pointers_are_escaped() {
        struct Summary<'a>(&'a [Violation]);
        impl fmt::Display for Summary<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                summarize(self.0, f)
            }
        }
        let one = Violation::new("/a\u{1b}", Rule::Type, "not a string");
        let two = Violation::new("", Rule::Required, "missing");
        assert_eq!(Summary(&[]).to_string(), "no violation");
        assert_eq!(Summary(std::slice::from_ref(&two)).to_string(), "missing");
        let shown = Summary(&[one, two]).to_string();
        assert!(shown.ends_with(": not a string (and 1 more)") && !shown.contains('\u{1b}'), "{shown}");
    }
}
