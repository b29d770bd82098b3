//! One property of a form, by kind.

use serde_json::{Number, Value, value::RawValue};

use crate::pattern::Pattern;

/// One property of a form.
///
/// Texts for people (titles, descriptions) are safe to show: control and bidirectional characters in them are
/// escaped. Names and option values are exact, because they travel back to the server.
#[derive(Clone, Debug)]
pub struct Field {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) required: bool,
    pub(super) kind: FieldKind,
    pub(super) raw: Box<RawValue>,
}

impl Field {
    /// The property's name, exactly as the server wrote it. Show [`label`](Self::label) instead.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The `title`, one line that is safe to show; `None` where it is empty.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// What to call the field on a screen: its title, or else its name. One line, with control characters escaped.
    #[must_use]
    pub fn label(&self) -> String {
        self.title.clone().unwrap_or_else(|| crate::text::sanitized_line(self.name.clone()))
    }

    /// The `description`, safe to show.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Whether an answer must have the field.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.required
    }

    /// What the field holds.
    #[must_use]
    pub fn kind(&self) -> &FieldKind {
        &self.kind
    }

    /// The `default` as an answer would hold it; `None` also for one that breaks the field's own rules. Such a default
    /// would make an answer wrong that leaves the field out; [`kind`](Self::kind) still has it.
    #[must_use]
    pub fn default_value(&self) -> Option<Value> {
        self.written_default().filter(|value| self.violations(value).is_empty())
    }

    fn written_default(&self) -> Option<Value> {
        match &self.kind {
            FieldKind::String(field) => field.default.clone().map(Value::String),
            FieldKind::Number(field) => field.default.clone().map(Value::Number),
            FieldKind::Boolean(field) => field.default.map(Value::Bool),
            FieldKind::Select(field) => field.default.clone().map(Value::String),
            FieldKind::MultiSelect(field) => {
                field.default.as_ref().map(|values| values.iter().cloned().map(Value::String).collect())
            }
        }
    }

    /// The property's schema as the server wrote it, unknown keywords included.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }
}

/// What a field holds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FieldKind {
    /// Text.
    String(StringField),
    /// A number, or an integer.
    Number(NumberField),
    /// Yes or no.
    Boolean(BooleanField),
    /// One of several values.
    Select(SelectField),
    /// Any of several values.
    MultiSelect(MultiSelectField),
}

/// A `format` of a text field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// `email`: an address by RFC 5321.
    Email,
    /// `uri`: an absolute URI by RFC 3986.
    Uri,
    /// `date`: a full date by RFC 3339.
    Date,
    /// `date-time`: a date and time by RFC 3339.
    DateTime,
    /// Any other: an annotation that is not checked.
    Other(String),
}

impl Format {
    /// The format's name in the schema.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Email => "email",
            Self::Uri => "uri",
            Self::Date => "date",
            Self::DateTime => "date-time",
            Self::Other(name) => name,
        }
    }
}

/// A text field.
#[derive(Clone, Debug, Default)]
pub struct StringField {
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) format: Option<Format>,
    pub(super) pattern: Option<Pattern>,
    pub(super) default: Option<String>,
}

impl StringField {
    /// The least number of characters (Unicode code points).
    #[must_use]
    pub fn min_length(&self) -> Option<u64> {
        self.min_length
    }

    /// The greatest number of characters (Unicode code points).
    #[must_use]
    pub fn max_length(&self) -> Option<u64> {
        self.max_length
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> Option<&Format> {
        self.format.as_ref()
    }

    /// The `pattern`, an ECMA-262 regular expression that an answer has to contain a match of. It appears in
    /// an example of 2025-11-25 and in no schema of the protocol; servers send it all the same.
    #[must_use]
    pub fn pattern(&self) -> Option<&str> {
        self.pattern.as_ref().map(Pattern::source)
    }

    /// Whether answers are checked against the pattern. False for a pattern with look-around, back-references
    /// or other syntax that cannot be matched in linear time, or one too big when compiled: the server checks
    /// it again in any case, and a form must not fail over it.
    #[must_use]
    pub fn pattern_is_checked(&self) -> bool {
        self.pattern.as_ref().is_some_and(Pattern::is_checked)
    }

    /// The default.
    #[must_use]
    pub fn default_value(&self) -> Option<&str> {
        self.default.as_deref()
    }
}

/// A number field.
#[derive(Clone, Debug, Default)]
pub struct NumberField {
    pub(super) integer: bool,
    pub(super) minimum: Option<Number>,
    pub(super) maximum: Option<Number>,
    pub(super) exclusive_minimum: Option<Number>,
    pub(super) exclusive_maximum: Option<Number>,
    pub(super) default: Option<Number>,
}

impl NumberField {
    /// Whether only integers are right (`type: "integer"`). 5.0 is an integer.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        self.integer
    }

    /// The least value; it may have a fraction even for integers.
    #[must_use]
    pub fn minimum(&self) -> Option<&Number> {
        self.minimum.as_ref()
    }

    /// The greatest value; it may have a fraction even for integers.
    #[must_use]
    pub fn maximum(&self) -> Option<&Number> {
        self.maximum.as_ref()
    }

    /// The value that answers must exceed. Not in the protocol's subset, but common schema generators write it.
    #[must_use]
    pub fn exclusive_minimum(&self) -> Option<&Number> {
        self.exclusive_minimum.as_ref()
    }

    /// The value that answers must stay below. Not in the protocol's subset, see
    /// [`exclusive_minimum`](Self::exclusive_minimum).
    #[must_use]
    pub fn exclusive_maximum(&self) -> Option<&Number> {
        self.exclusive_maximum.as_ref()
    }

    /// The default.
    #[must_use]
    pub fn default_value(&self) -> Option<&Number> {
        self.default.as_ref()
    }
}

/// A yes-or-no field.
#[derive(Clone, Debug, Default)]
pub struct BooleanField {
    pub(super) default: Option<bool>,
}

impl BooleanField {
    /// The default.
    #[must_use]
    pub fn default_value(&self) -> Option<bool> {
        self.default
    }
}

/// One option of a select field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub(super) value: String,
    pub(super) title: Option<String>,
}

impl Choice {
    /// The value that an answer holds.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What to call it on a screen: its title, or else its value. One line, with control characters escaped. A title
    /// is never part of an answer.
    #[must_use]
    pub fn label(&self) -> String {
        self.title.clone().unwrap_or_else(|| crate::text::sanitized_line(self.value.clone()))
    }

    /// The title (`title` beside a `const`, or the entry of `enumNames`), one line that is safe to show; `None` where it
    /// is empty.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }
}

/// A field with one of several values.
#[derive(Clone, Debug, Default)]
pub struct SelectField {
    pub(super) choices: Vec<Choice>,
    pub(super) default: Option<String>,
}

impl SelectField {
    /// The options in the server's order; never empty.
    #[must_use]
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }

    /// The default, always one of the options.
    #[must_use]
    pub fn default_value(&self) -> Option<&str> {
        self.default.as_deref()
    }
}

/// A field with any of several values.
#[derive(Clone, Debug, Default)]
pub struct MultiSelectField {
    pub(super) choices: Vec<Choice>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) unique_items: bool,
    pub(super) default: Option<Vec<String>>,
}

impl MultiSelectField {
    /// The options in the server's order; never empty.
    #[must_use]
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }

    /// The least number of chosen options.
    #[must_use]
    pub fn min_items(&self) -> Option<u64> {
        self.min_items
    }

    /// The greatest number of chosen options.
    #[must_use]
    pub fn max_items(&self) -> Option<u64> {
        self.max_items
    }

    /// Whether no option may be chosen twice. The protocol's subset does not have the keyword, so without
    /// `uniqueItems: true` repetition is right, as JSON Schema says.
    #[must_use]
    pub fn unique_items(&self) -> bool {
        self.unique_items
    }

    /// The default; each item is one of the options.
    #[must_use]
    pub fn default_value(&self) -> Option<&[String]> {
        self.default.as_deref()
    }
}
