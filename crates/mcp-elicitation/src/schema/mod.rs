//! The flat subset of JSON Schema that a form is described with.
//!
//! Not a JSON Schema implementation: one object, whose properties are strings, numbers, booleans and the five
//! enum shapes. Everything else that would change which answers are right (references, composition, nested
//! objects, free arrays) is refused when the request is read; keywords that the subset does not know stay in
//! [`Field::raw`] and change nothing, and so do unknown `format`s.

#[cfg(test)]
mod answer_tests;
mod check;
mod field;
mod nullable;
mod parse;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, value::RawValue};

pub use self::field::{
    BooleanField, Choice, Field, FieldKind, Format, MultiSelectField, NumberField, SelectField, StringField,
};

/// The `requestedSchema` of a form: its fields, in the order in which the server wrote them.
#[derive(Clone, Debug)]
pub struct FormSchema {
    fields: Vec<Field>,
    closed: bool,
    raw: Box<RawValue>,
}

impl FormSchema {
    /// The fields in the server's order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name() == name)
    }

    /// Whether the schema says `additionalProperties: false`, so that answers may hold no other members.
    ///
    /// Without it, further members of an answer are sent as they are, if they have one of the types that
    /// answers may have at all: that is what JSON Schema says, and some hosts add members by agreement.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The schema as the server wrote it, unknown keywords included.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// The defaults of all fields that have one.
    #[must_use]
    pub fn defaults(&self) -> Map<String, Value> {
        let mut defaults = Map::new();
        for field in &self.fields {
            if let Some(value) = field.default_value() {
                defaults.insert(field.name().to_owned(), value);
            }
        }
        defaults
    }
}
