//! Reads a request's members one by one, and notes everything that is wrong instead of stopping at the first.

use serde_json::{Number, value::RawValue};

use crate::{
    RequestRules, Rule, Violation,
    json::{self, Kind, Members},
    number,
    path::Path,
    pattern::Pattern,
    text,
};

/// Violations kept of one request; the rest would only repeat the picture.
const MAX_VIOLATIONS: usize = 32;

pub(crate) struct Reader<'r> {
    pub(crate) rules: &'r RequestRules,
    violations: Vec<Violation>,
    /// Characters of patterns that have been read so far.
    pattern_chars: usize,
}

impl<'r> Reader<'r> {
    pub(crate) fn new(rules: &'r RequestRules) -> Self {
        Self { rules, violations: Vec::new(), pattern_chars: 0 }
    }

    pub(crate) fn violate(&mut self, path: &Path<'_>, rule: Rule, message: impl Into<String>) {
        if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(Violation::new(path.pointer(), rule, message));
        }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    pub(crate) fn into_violations(self) -> Vec<Violation> {
        self.violations
    }

    pub(crate) fn object<'a>(&mut self, raw: &'a RawValue, path: &Path<'_>) -> Option<Members<'a>> {
        if !self.is_kind(raw, Kind::Object, path) {
            return None;
        }
        let Ok(members) = serde_json::from_str::<Members<'a>>(raw.get()) else {
            self.violate(path, Rule::Json, "an object with a name that is no Unicode text");
            return None;
        };
        if let Some(name) = &members.duplicate {
            self.violate(&path.name(name), Rule::DuplicateMember, "this member appears twice");
            return None;
        }
        Some(members)
    }

    pub(crate) fn array<'a>(&mut self, raw: &'a RawValue, path: &Path<'_>) -> Option<Vec<&'a RawValue>> {
        if !self.is_kind(raw, Kind::Array, path) {
            return None;
        }
        serde_json::from_str(raw.get()).ok()
    }

    /// A string of at most `max_chars` code points.
    pub(crate) fn string(&mut self, raw: &RawValue, path: &Path<'_>, max_chars: usize) -> Option<String> {
        if !self.is_kind(raw, Kind::String, path) {
            return None;
        }
        let Ok(string) = serde_json::from_str::<String>(raw.get()) else {
            self.violate(path, Rule::Json, "a string with half of a surrogate pair");
            return None;
        };
        let chars = string.chars().count();
        if chars > max_chars {
            let message = format!("text of {chars} characters exceeds the limit of {max_chars}");
            self.violate(path, Rule::Limit, message);
            return None;
        }
        Some(string)
    }

    /// A text that only people read: safe to show, at most `max_text_chars` long.
    pub(crate) fn shown_text(
        &mut self,
        members: &Members<'_>,
        name: &str,
        path: &Path<'_>,
    ) -> Option<String> {
        let raw = members.get(name)?;
        let max_chars = self.rules.limits.max_text_chars;
        self.string(raw, &path.name(name), max_chars).map(text::sanitized)
    }

    pub(crate) fn number(&mut self, members: &Members<'_>, name: &str, path: &Path<'_>) -> Option<Number> {
        let raw = members.get(name)?;
        let path = path.name(name);
        if !self.is_kind(raw, Kind::Number, &path) {
            return None;
        }
        let number = raw.get().parse().ok();
        if number.is_none() {
            self.violate(&path, Rule::Value, "a number outside of the range of 64-bit floats");
        }
        number
    }

    /// A non-negative integer.
    pub(crate) fn count(&mut self, members: &Members<'_>, name: &str, path: &Path<'_>) -> Option<u64> {
        let number = self.number(members, name, path)?;
        let count = number::as_count(&number);
        if count.is_none() {
            self.violate(&path.name(name), Rule::Value, "must be a non-negative integer");
        }
        count
    }

    /// A regular expression; not checked once the form has used up the characters that it may have checked.
    pub(crate) fn pattern(&mut self, members: &Members<'_>, path: &Path<'_>) -> Option<Pattern> {
        let limits = &self.rules.limits;
        let source = self.string(members.get("pattern")?, &path.name("pattern"), limits.max_pattern_chars)?;
        self.pattern_chars = self.pattern_chars.saturating_add(source.chars().count());
        let is_affordable = self.pattern_chars <= limits.max_checked_pattern_chars;
        Some(Pattern::new(source, if is_affordable { limits.max_pattern_program_bytes } else { 0 }))
    }

    pub(crate) fn boolean(&mut self, members: &Members<'_>, name: &str, path: &Path<'_>) -> Option<bool> {
        let raw = members.get(name)?;
        self.is_kind(raw, Kind::Boolean, &path.name(name)).then(|| raw.get() == "true")
    }

    pub(crate) fn is_kind(&mut self, raw: &RawValue, expected: Kind, path: &Path<'_>) -> bool {
        let kind = json::kind(raw);
        if kind != expected {
            let message = format!("must be {}, not {}", expected.as_str(), kind.as_str());
            self.violate(path, Rule::Type, message);
        }
        kind == expected
    }
}
