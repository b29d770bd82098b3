//! Checks values against fields. Messages never repeat a value.

use std::{cmp::Ordering, collections::HashSet};

use serde_json::{Map, Number, Value};

use super::{
    BooleanField, Choice, Field, FieldKind, FormSchema, Format, MultiSelectField, NumberField, SelectField,
    StringField,
};
use crate::{Rule, Violation, format, number, path::Path};

impl FormSchema {
    /// All violations of a filled-in form, in the order of the fields, then of further members.
    ///
    /// Does not fill in defaults, see [`FormRequest::check`](crate::FormRequest::check).
    #[must_use]
    pub fn violations(&self, content: &Map<String, Value>) -> Vec<Violation> {
        let root = Path::ROOT;
        let mut violations = Vec::new();
        for field in &self.fields {
            let path = root.name(&field.name);
            match content.get(&field.name) {
                Some(value) => field.check(value, &path, &mut violations),
                None => violations.extend(field.missing()),
            }
        }
        let known: HashSet<&str> = self.fields.iter().map(Field::name).collect();
        for (name, value) in content.iter().filter(|(name, _)| !known.contains(name.as_str())) {
            let path = root.name(name);
            if self.closed {
                let message = "the form has no such field";
                violations.push(Violation::new(path.pointer(), Rule::AdditionalProperties, message));
            } else if !is_content_value(value) {
                let message = "must be a string, a number, a boolean or a list of strings";
                violations.push(Violation::new(path.pointer(), Rule::Type, message));
            }
        }
        violations
    }
}

/// Whether an answer may hold the value at all.
fn is_content_value(value: &Value) -> bool {
    match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
        Value::Array(items) => items.iter().all(Value::is_string),
        Value::Null | Value::Object(_) => false,
    }
}

impl Field {
    /// All violations of one value of this field; pointers start with the field's name.
    #[must_use]
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        let mut violations = Vec::new();
        self.check(value, &Path::ROOT.name(&self.name), &mut violations);
        violations
    }

    /// What is wrong if the field has no value.
    pub(crate) fn missing(&self) -> Option<Violation> {
        let pointer = || Path::ROOT.name(&self.name).pointer();
        self.required.then(|| Violation::new(pointer(), Rule::Required, "a value is required"))
    }

    fn check(&self, value: &Value, path: &Path<'_>, violations: &mut Vec<Violation>) {
        let mut sink = Sink { path: *path, violations };
        match (&self.kind, value) {
            (FieldKind::String(field), Value::String(text)) => field.check(text, &mut sink),
            (FieldKind::Number(field), Value::Number(number)) => field.check(number, &mut sink),
            (FieldKind::Boolean(BooleanField { .. }), Value::Bool(_)) => {}
            (FieldKind::Select(field), Value::String(text)) => field.check(text, &mut sink),
            (FieldKind::MultiSelect(field), Value::Array(items)) => field.check(items, &mut sink),
            (kind, _) => {
                let expected = match kind {
                    FieldKind::String(_) | FieldKind::Select(_) => "must be a string",
                    FieldKind::Number(field) if field.integer => "must be an integer",
                    FieldKind::Number(_) => "must be a number",
                    FieldKind::Boolean(_) => "must be a boolean",
                    FieldKind::MultiSelect(_) => "must be a list of strings",
                };
                sink.push(Rule::Type, expected);
            }
        }
    }
}

struct Sink<'a> {
    path: Path<'a>,
    violations: &'a mut Vec<Violation>,
}

impl Sink<'_> {
    fn push(&mut self, rule: Rule, message: impl Into<String>) {
        self.violations.push(Violation::new(self.path.pointer(), rule, message));
    }

    /// A length or count, or a number, beyond what the field allows.
    fn push_beyond(&mut self, rule: Rule, limit: impl Into<Number>, actual: Option<u64>, message: String) {
        let violation = Violation::new(self.path.pointer(), rule, message);
        self.violations.push(violation.with_numbers(limit.into(), actual));
    }

    fn push_at(&mut self, index: usize, rule: Rule, message: &str) {
        self.violations.push(Violation::new(self.path.index(index).pointer(), rule, message));
    }
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

impl StringField {
    fn check(&self, text: &str, sink: &mut Sink<'_>) {
        let chars = length(text.chars().count());
        if let Some(min) = self.min_length.filter(|min| chars < *min) {
            let message = format!("a length of {chars} is below the minimum of {min} characters");
            sink.push_beyond(Rule::MinLength, min, Some(chars), message);
        }
        if let Some(max) = self.max_length.filter(|max| chars > *max) {
            let message = format!("{chars} characters exceed the maximum of {max}");
            sink.push_beyond(Rule::MaxLength, max, Some(chars), message);
        }
        let broken = match &self.format {
            Some(Format::Email) if !format::is_email(text) => Some("must be an e-mail address"),
            Some(Format::Uri) if !format::is_uri(text) => Some("must be an absolute URI"),
            Some(Format::Date) if !format::is_date(text) => Some("must be a date such as 2025-11-25"),
            Some(Format::DateTime) if !format::is_date_time(text) => {
                Some("must be a date and time with offset such as 2025-11-25T12:00:00Z")
            }
            _ => None,
        };
        if let Some(message) = broken {
            sink.push(Rule::Format, message);
        }
        if self.pattern.as_ref().is_some_and(|pattern| !pattern.matches(text)) {
            sink.push(Rule::Pattern, "does not match the pattern");
        }
    }
}

impl NumberField {
    fn check(&self, value: &Number, sink: &mut Sink<'_>) {
        if self.integer && !number::is_integer(value) {
            sink.push(Rule::Type, "must be an integer");
        }
        let is = |bound: &Option<Number>, broken: &[Ordering]| {
            bound.clone().filter(|bound| broken.contains(&number::compare(value, bound)))
        };
        if let Some(bound) = is(&self.minimum, &[Ordering::Less]) {
            let message = format!("must be at least {bound}");
            sink.push_beyond(Rule::Minimum, bound, None, message);
        }
        if let Some(bound) = is(&self.maximum, &[Ordering::Greater]) {
            let message = format!("must be at most {bound}");
            sink.push_beyond(Rule::Maximum, bound, None, message);
        }
        if let Some(bound) = is(&self.exclusive_minimum, &[Ordering::Less, Ordering::Equal]) {
            let message = format!("must be greater than {bound}");
            sink.push_beyond(Rule::ExclusiveMinimum, bound, None, message);
        }
        if let Some(bound) = is(&self.exclusive_maximum, &[Ordering::Greater, Ordering::Equal]) {
            let message = format!("must be less than {bound}");
            sink.push_beyond(Rule::ExclusiveMaximum, bound, None, message);
        }
    }
}

impl SelectField {
    fn check(&self, text: &str, sink: &mut Sink<'_>) {
        if !self.choices.iter().any(|choice| choice.value == text) {
            sink.push(Rule::Enum, format!("must be one of the {} options", self.choices.len()));
        }
    }
}

impl MultiSelectField {
    fn check(&self, items: &[Value], sink: &mut Sink<'_>) {
        let count = length(items.len());
        if let Some(min) = self.min_items.filter(|min| count < *min) {
            let message = format!("a choice of {count} is below the minimum of {min} items");
            sink.push_beyond(Rule::MinItems, min, Some(count), message);
        }
        if let Some(max) = self.max_items.filter(|max| count > *max) {
            let message = format!("{count} items exceed the maximum of {max}");
            sink.push_beyond(Rule::MaxItems, max, Some(count), message);
        }
        let options: HashSet<&str> = self.choices.iter().map(Choice::value).collect();
        let mut seen = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let Some(text) = item.as_str() else {
                sink.push_at(index, Rule::Type, "must be a string");
                continue;
            };
            if !options.contains(text) {
                sink.push_at(index, Rule::Enum, "must be one of the options");
            }
            if !seen.insert(text) && self.unique_items {
                sink.push_at(index, Rule::UniqueItems, "must not be chosen twice");
            }
        }
    }
}
