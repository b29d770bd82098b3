//! A form being filled in: what a terminal, web or graphical front end sits on.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::{AnswerError, ElicitResult, Field, FormRequest, Violation};

/// A form with the values that it has so far. It starts with the defaults of the schema.
///
/// A front end goes through [`fields`](Self::fields), shows each with its [`value`](Self::value), stores what a
/// person enters with [`set`](Self::set), shows what [`errors`](Self::errors) says about it, and at the end
/// calls [`submit`](Self::submit). Before that the person can review and change everything.
///
/// ```
/// use mcp_elicitation::{ElicitRequest, Form, Revision};
///
/// let params = r#"{"message": "Who are you?", "requestedSchema": {"type": "object", "required": ["name"],
///     "properties": {"name": {"type": "string", "minLength": 2}, "age": {"type": "integer", "default": 30}}}}"#;
/// let request = ElicitRequest::parse(params, Revision::V2025_11_25)?;
/// let ElicitRequest::Form(request) = &request else { unreachable!("no mode is a form") };
///
/// let mut form = Form::new(request);
/// form.set("name", "A".into())?;
/// assert_eq!(form.errors("name")[0].message, "a length of 1 is below the minimum of 2 characters");
/// form.set("name", "Ada".into())?;
/// let answer = form.submit()?;
/// assert_eq!(serde_json::to_string(&answer)?, r#"{"action":"accept","content":{"age":30,"name":"Ada"}}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// # Where it lives
///
/// It borrows its request, or owns it: [`into_owned`](Self::into_owned) makes a form for a state that lives as long as a window does.
#[derive(Clone)]
pub struct Form<'r> {
    request: Cow<'r, FormRequest>,
    values: Map<String, Value>,
}

/// The form has no field of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownField(());

impl std::fmt::Display for UnknownField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the form has no such field")
    }
}

impl std::error::Error for UnknownField {}

impl<'r> Form<'r> {
    /// A form with the defaults filled in.
    #[must_use]
    pub fn new(request: &'r FormRequest) -> Self {
        Self { request: Cow::Borrowed(request), values: request.defaults() }
    }

    /// The same form with a copy of the request, unless it has one already.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use mcp_elicitation::{ElicitRequest, Form, Revision};
    ///
    /// struct Window {
    ///     form: Form<'static>,
    /// }
    ///
    /// fn window(question: &Arc<ElicitRequest>) -> Option<Window> {
    ///     match &**question {
    ///         ElicitRequest::Form(request) => Some(Window { form: Form::new(request).into_owned() }),
    ///         _ => None,
    ///     }
    /// }
    /// # let params = r#"{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#;
    /// # let question = Arc::new(ElicitRequest::parse(params, Revision::V2025_11_25)?);
    /// # assert_eq!(window(&question).unwrap().form.message(), "m");
    /// # Ok::<(), mcp_elicitation::RequestError>(())
    /// ```
    #[must_use]
    pub fn into_owned(self) -> Form<'static> {
        Form { request: Cow::Owned(self.request.into_owned()), values: self.values }
    }

    /// What the server says to the person, safe to show.
    #[must_use]
    pub fn message(&self) -> &str {
        self.request.message()
    }

    /// The fields in the server's order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        self.request.schema().fields()
    }

    /// The value that a field has so far.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// Stores a value, right or not; [`errors`](Self::errors) says what is wrong with it.
    ///
    /// # Errors
    /// The form has no such field.
    pub fn set(&mut self, name: &str, value: Value) -> Result<(), UnknownField> {
        let field = self.request.schema().field(name).ok_or(UnknownField(()))?;
        self.values.insert(field.name().to_owned(), value);
        Ok(())
    }

    /// Reads what a person typed into the value that the field's type asks for, and stores it: text as it is,
    /// numbers and booleans by their JSON form (and `yes`, `no`, `y`, `n`), options by their value or else their
    /// label, several options divided by commas, of which an option's own are none. Empty input [clears](Self::clear) the field; an empty text is
    /// stored with [`set`](Self::set).
    ///
    /// What cannot be read is stored as text, so that [`errors`](Self::errors) tells of it.
    ///
    /// # Errors
    /// The form has no such field.
    pub fn set_text(&mut self, name: &str, text: &str) -> Result<(), UnknownField> {
        let field = self.request.schema().field(name).ok_or(UnknownField(()))?;
        match input::value_of(field.kind(), text) {
            Some(value) => self.set(name, value),
            None => self.clear(name),
        }
    }

    /// Takes a field's value away. The answer then has the default, if the field has one: the protocol fills
    /// omitted fields with their defaults.
    ///
    /// # Errors
    /// The form has no such field.
    pub fn clear(&mut self, name: &str) -> Result<(), UnknownField> {
        let field = self.request.schema().field(name).ok_or(UnknownField(()))?;
        self.values.remove(field.name());
        Ok(())
    }

    /// Puts a field back to its default, or to nothing.
    ///
    /// # Errors
    /// The form has no such field.
    pub fn reset(&mut self, name: &str) -> Result<(), UnknownField> {
        let field = self.request.schema().field(name).ok_or(UnknownField(()))?;
        match field.default_value() {
            Some(value) => self.values.insert(field.name().to_owned(), value),
            None => self.values.remove(field.name()),
        };
        Ok(())
    }

    /// What is wrong with one field now; empty for a field that does not exist.
    #[must_use]
    pub fn errors(&self, name: &str) -> Vec<Violation> {
        let Some(field) = self.request.schema().field(name) else {
            return Vec::new();
        };
        match self.values.get(name) {
            Some(value) => field.violations(value),
            None if field.default_value().is_some() => Vec::new(),
            None => field.missing().into_iter().collect(),
        }
    }

    /// What is wrong with the whole form now.
    #[must_use]
    pub fn all_errors(&self) -> Vec<Violation> {
        self.fields().iter().flat_map(|field| self.errors(field.name())).collect()
    }

    /// Whether [`submit`](Self::submit) would succeed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.all_errors().is_empty()
    }

    /// The answer with the values of the form. The form stays as it is, for another try.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn submit(&self) -> Result<ElicitResult, AnswerError> {
        self.request.check(ElicitResult::accept(self.values.clone()))
    }

    /// The answer of a person who says no.
    #[must_use]
    pub const fn decline(&self) -> ElicitResult {
        ElicitResult::decline()
    }

    /// The answer of a person who leaves.
    #[must_use]
    pub const fn cancel(&self) -> ElicitResult {
        ElicitResult::cancel()
    }
}

impl std::fmt::Debug for Form<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Form").field("request", &*self.request).field("values", &self.values.len()).finish()
    }
}

mod input {
    //! From typed text to values.

    use std::borrow::Cow;

    use serde_json::{Number, Value};

    use crate::{Choice, FieldKind};

    /// The value that a text stands for in a field; `None` for no value.
    pub(super) fn value_of(kind: &FieldKind, text: &str) -> Option<Value> {
        let trimmed = text.trim();
        let unread = || Value::String(text.to_owned());
        if trimmed.is_empty() && !matches!(kind, FieldKind::String(_)) {
            return None;
        }
        Some(match kind {
            FieldKind::String(_) if text.is_empty() => return None,
            FieldKind::String(_) => unread(),
            FieldKind::Number(_) => match trimmed.parse::<Number>() {
                Ok(number) => Value::Number(number),
                Err(_) => unread(),
            },
            FieldKind::Boolean(_) => match trimmed.to_lowercase().as_str() {
                "true" | "yes" | "y" => Value::Bool(true),
                "false" | "no" | "n" => Value::Bool(false),
                _ => unread(),
            },
            FieldKind::Select(field) => choice(field.choices(), text).unwrap_or_else(unread),
            FieldKind::MultiSelect(field) => Value::Array(several(field.choices(), trimmed)),
        })
    }

    /// Options divided by commas, and what is none up to the next comma.
    fn several(choices: &[Choice], text: &str) -> Vec<Value> {
        let mut values = Vec::new();
        let mut rest = text;
        loop {
            rest = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
            if rest.is_empty() {
                return values;
            }
            let (value, behind) = leading(choices, rest).unwrap_or_else(|| {
                let (part, behind) = rest.split_once(',').unwrap_or((rest, ""));
                (part.trim_end(), behind)
            });
            values.push(Value::String(value.to_owned()));
            rest = behind;
        }
    }

    /// The option that a text begins with, the longest one there is, and what follows the comma behind it.
    fn leading<'t>(choices: &'t [Choice], text: &'t str) -> Option<(&'t str, &'t str)> {
        let behind = |option: &str| {
            let behind = text.strip_prefix(option.trim()).filter(|_| !option.trim().is_empty())?.trim_start();
            if behind.is_empty() { Some(behind) } else { behind.strip_prefix(',') }
        };
        let longest = |name: fn(&Choice) -> Cow<'_, str>| {
            let fitting = choices.iter().filter_map(|choice| Some((choice.value(), behind(&name(choice))?)));
            fitting.min_by_key(|(_, behind)| behind.len())
        };
        longest(|choice| choice.value().into()).or_else(|| longest(|choice| choice.label().into()))
    }

    /// Values before labels, so that a label cannot take the place of another option's value.
    fn choice(choices: &[Choice], text: &str) -> Option<Value> {
        let text = text.trim();
        let by_value = choices.iter().find(|choice| choice.value() == text);
        let by_label = || choices.iter().find(|choice| choice.label() == text);
        by_value.or_else(by_label).map(|choice| Value::String(choice.value().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ElicitRequest, Revision, Rule};

    fn request() -> ElicitRequest {
        let params = json!({"message": "m", "requestedSchema": {"type": "object", "required": ["name", "size", "age"], "properties": {
            "name": {"type": "string", "minLength": 2},
            "age": {"type": "integer", "minimum": 18, "default": 30},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 1},
            "news": {"type": "boolean"},
        }}});
        ElicitRequest::parse(&params.to_string(), Revision::V2025_11_25).unwrap()
    }

    fn form(request: &ElicitRequest) -> Form<'_> {
        match request {
            ElicitRequest::Form(form) => Form::new(form),
            ElicitRequest::Url(_) => panic!("a form"),
        }
    }

    #[test]
    fn fields_come_in_the_servers_order_and_defaults_are_prefilled() {
        let request = request();
        let form = form(&request);
        let names: Vec<_> = form.fields().iter().map(Field::name).collect();
        // `json!` sorts, so this is the order of the text that the server wrote.
        assert_eq!(names, ["age", "name", "news", "size", "tags"]);
        assert_eq!(form.value("age"), Some(&json!(30)));
        assert_eq!(form.value("name"), None);
        assert_eq!(form.message(), "m");
    }

    #[test]
    fn typed_text_becomes_the_value_that_the_field_asks_for() {
        let request = request();
        let cases = [
            ("name", " Ada ", Some(json!(" Ada "))),
            ("name", "", None),
            ("age", " 42 ", Some(json!(42))),
            ("age", "9007199254740993", Some(json!(9_007_199_254_740_993_i64))),
            ("age", "forty", Some(json!("forty"))),
            ("age", " ", None),
            ("size", "s", Some(json!("s"))),
            ("size", "Large", Some(json!("l"))),
            ("size", "huge", Some(json!("huge"))),
            ("tags", "a, b,", Some(json!(["a", "b"]))),
            ("tags", "", None),
            ("news", "Yes", Some(json!(true))),
            ("news", "false", Some(json!(false))),
            ("news", "maybe", Some(json!("maybe"))),
        ];
        for (name, text, expected) in cases {
            let mut form = form(&request);
            form.set_text(name, text).unwrap();
            assert_eq!(form.value(name), expected.as_ref(), "{name} {text:?}");
        }
    }

    #[test]
    fn an_option_with_commas_can_be_typed() {
        let options = json!([
            {"const": "Paris, France", "title": "P"}, {"const": "Paris", "title": "Texas, USA"}, {"const": "b"},
            {"const": "x", "title": "Rome, Italy"}, {"const": "USA"}, {"const": "a,,b"},
        ]);
        let properties = json!({"cities": {"type": "array", "items": {"anyOf": options}}});
        let params = json!({"message": "m", "requestedSchema": {"type": "object", "properties": properties}});
        let params = params.to_string().replace(r#"{"const":"b"}"#, r#"{"const":"b","title":"b"}"#);
        let params = params.replace(r#"{"const":"USA"}"#, r#"{"const":"USA","title":"U"}"#);
        let params = params.replace(r#"{"const":"a,,b"}"#, r#"{"const":"a,,b","title":"c"}"#);
        let request = ElicitRequest::parse(&params, Revision::V2025_11_25).unwrap();
        for (text, expected) in [
            ("Paris, France", json!(["Paris, France"])),
            ("Paris , France", json!(["Paris", "France"])),
            (" Paris, France , b,Paris", json!(["Paris, France", "b", "Paris"])),
            ("Paris", json!(["Paris"])),
            ("Paris, b", json!(["Paris", "b"])),
            ("Paris, Frances", json!(["Paris", "Frances"])),
            ("Parisian, b", json!(["Parisian", "b"])),
            ("P, Rome, Italy, Texas, USA", json!(["Paris, France", "x", "Paris"])),
            ("USA,USA", json!(["USA", "USA"])),
            ("a,,b,,b", json!(["a,,b", "b"])),
            (",, b ,", json!(["b"])),
            ("  nothing of it , b", json!(["nothing of it", "b"])),
        ] {
            let mut form = form(&request);
            form.set_text("cities", text).unwrap();
            assert_eq!(form.value("cities"), Some(&expected), "{text:?}");
        }
    }

    #[test]
    fn a_form_can_outlive_its_request() {
        let mut owned = {
            let request = request();
            let mut form = form(&request);
            form.set("name", json!("Ada")).unwrap();
            form.into_owned()
        };
        assert_eq!((owned.value("name"), owned.fields().len()), (Some(&json!("Ada")), 5));
        owned.set_text("size", "Large").unwrap();
        assert!(owned.submit().is_ok());
        let kept: Box<dyn std::any::Any + Send> = Box::new(owned);
        assert!(kept.downcast_ref::<Form<'static>>().is_some_and(Form::is_complete));
    }

    #[test]
    fn each_field_has_its_own_errors_and_submit_has_them_all() {
        let request = request();
        let mut form = form(&request);
        form.set_text("name", "A").unwrap();
        form.set_text("age", "17").unwrap();
        form.set_text("tags", "a,c").unwrap();
        let rules = |name: &str| form.errors(name).into_iter().map(|v| v.rule).collect::<Vec<_>>();
        assert_eq!(rules("name"), [Rule::MinLength]);
        assert_eq!(rules("age"), [Rule::Minimum]);
        assert_eq!(rules("size"), [Rule::Required]);
        assert_eq!(rules("tags"), [Rule::MaxItems, Rule::Enum]);
        assert_eq!(rules("news"), []);
        assert_eq!(rules("nobody"), []);
        assert!(!form.is_complete());
        assert_eq!(form.submit().unwrap_err().violations(), form.all_errors());

        form.set("name", json!("Ada")).unwrap();
        form.clear("age").unwrap();
        assert_eq!(form.errors("age"), []);
        form.set("size", json!("s")).unwrap();
        form.reset("tags").unwrap();
        assert!(form.is_complete());
        let content = form.submit().unwrap().content.unwrap();
        assert_eq!(Value::Object(content), json!({"name": "Ada", "age": 30, "size": "s"}));
        form.set("age", json!(50)).unwrap();
        form.reset("age").unwrap();
        assert_eq!(form.value("age"), Some(&json!(30)));
    }

    #[test]
    fn a_form_has_no_other_fields() {
        let request = request();
        let mut form = form(&request);
        assert!(form.set("x", json!(1)).is_err());
        assert!(form.set_text("x", "1").is_err());
        assert!(form.clear("x").is_err());
        assert_eq!(form.reset("x").unwrap_err().to_string(), "the form has no such field");
        assert_eq!(form.decline(), ElicitResult::decline());
        assert_eq!(form.cancel(), ElicitResult::cancel());
    }

    #[test]
    fn a_default_that_breaks_the_rules_of_its_field_is_none() {
        for property in [
            json!({"type": "string", "format": "email", "default": ""}),
            json!({"type": "string", "minLength": 3, "default": ""}),
            json!({"type": "integer", "minimum": 1, "default": 0}),
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "default": []}),
        ] {
            for required in [json!([]), json!(["x"])] {
                let is_required = required == json!(["x"]);
                let schema = json!({"type": "object", "properties": {"x": property}, "required": required});
                let params = json!({"message": "m", "requestedSchema": schema});
                let request = ElicitRequest::parse(&params.to_string(), Revision::V2025_11_25).unwrap();
                let form = form(&request);
                assert_eq!(form.value("x"), None, "{property}");
                assert_eq!(form.is_complete(), !is_required, "{property}");
                let rules = form
                    .submit()
                    .map_err(|error| error.violations().iter().map(|v| v.rule).collect::<Vec<_>>());
                match rules {
                    Ok(answer) => {
                        assert_eq!((is_required, answer.content), (false, Some(Map::new())), "{property}")
                    }
                    Err(rules) => {
                        assert_eq!((is_required, rules), (true, vec![Rule::Required]), "{property}")
                    }
                }
            }
        }
    }

    #[test]
    fn debug_shows_no_value() {
        let request = request();
        let mut form = form(&request);
        form.set("name", json!("secret")).unwrap();
        let shown = format!("{form:?}");
        assert!(!shown.contains("secret") && shown.ends_with("values: 2 }"), "{shown}");
    }
}
