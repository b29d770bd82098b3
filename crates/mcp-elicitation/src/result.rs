//! What a person answered.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeStruct};
use serde_json::{Map, Value, value::RawValue};

use crate::{AnswerError, Rule, Violation};

/// What a person did with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ElicitAction {
    /// Submitted the form, or consented to open the URL (which says nothing about what happens there).
    Accept,
    /// Said no.
    Decline,
    /// Dismissed the question without a choice.
    Cancel,
}

impl ElicitAction {
    /// `accept`, `decline` or `cancel`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }

    /// Reads an action from a loosely typed front end: letter case does not matter, and whatever is no action
    /// is a decline, because nobody agreed to anything.
    #[must_use]
    pub fn from_loose(text: &str) -> Self {
        [Self::Accept, Self::Cancel]
            .into_iter()
            .find(|action| text.eq_ignore_ascii_case(action.as_str()))
            .unwrap_or(Self::Decline)
    }
}

impl fmt::Display for ElicitAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An answer as it travels to the server.
///
/// `content` is written only where there is one, never as `null`. `Debug` shows how many members the content
/// has and none of them.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ElicitResult {
    /// What the person did.
    pub action: ElicitAction,
    /// The submitted form; present only for an accepted form.
    pub content: Option<Map<String, Value>>,
}

impl ElicitResult {
    /// An accepted form.
    #[must_use]
    pub const fn accept(content: Map<String, Value>) -> Self {
        Self { action: ElicitAction::Accept, content: Some(content) }
    }

    /// A yes without content. To a URL it is consent to open it. To a form it is an answer too, and may be accepted: every field
    /// that has a default takes that, and only a required field without one makes it invalid. So look at what was asked
    /// before you say this; for a form, [`accept`](Self::accept) says what is meant.
    #[must_use]
    pub const fn accept_url() -> Self {
        Self { action: ElicitAction::Accept, content: None }
    }

    /// A no.
    #[must_use]
    pub const fn decline() -> Self {
        Self { action: ElicitAction::Decline, content: None }
    }

    /// A dismissed question.
    #[must_use]
    pub const fn cancel() -> Self {
        Self { action: ElicitAction::Cancel, content: None }
    }

    /// Reads an answer from JSON, for instance from another process. A `content` of `null` counts as absent.
    ///
    /// # Errors
    /// Not an object, no known `action`, or a `content` that is no object.
    pub fn from_value(value: Value) -> Result<Self, AnswerError> {
        let refuse = |rule, message: &str| AnswerError::new(vec![Violation::new("", rule, message)]);
        let Value::Object(mut members) = value else {
            return Err(refuse(Rule::Type, "the answer must be an object"));
        };
        let action = match members.get("action").and_then(Value::as_str) {
            Some("accept") => ElicitAction::Accept,
            Some("decline") => ElicitAction::Decline,
            Some("cancel") => ElicitAction::Cancel,
            _ => {
                return Err(refuse(Rule::Action, "the action must be \"accept\", \"decline\" or \"cancel\""));
            }
        };
        match (action, members.remove("content")) {
            (_, None | Some(Value::Null)) => Ok(Self { action, content: None }),
            (_, Some(Value::Object(content))) => Ok(Self { action, content: Some(content) }),
            // Nobody reads the content of these.
            (ElicitAction::Decline | ElicitAction::Cancel, _) => Ok(Self { action, content: None }),
            (ElicitAction::Accept, Some(_)) => Err(refuse(Rule::Type, "the content must be an object")),
        }
    }

    /// Reads one from its JSON text, as `serde_json::from_str` does, by code that is compiled here.
    ///
    /// # Errors
    /// When the text is not JSON, or for the reasons of [`from_value`](Self::from_value).
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        Self::from_value(text.parse()?).map_err(serde::de::Error::custom)
    }

    /// Writes its JSON text, as `serde_json::value::to_raw_value` does, by code that is compiled here.
    ///
    /// # Errors
    /// None; the signature is that of `serde_json`.
    pub fn to_json(&self) -> serde_json::Result<Box<RawValue>> {
        serde_json::value::to_raw_value(self)
    }
}

impl Serialize for ElicitResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut result =
            serializer.serialize_struct("ElicitResult", 1 + usize::from(self.content.is_some()))?;
        result.serialize_field("action", &self.action)?;
        match &self.content {
            Some(content) => result.serialize_field("content", content)?,
            None => result.skip_field("content")?,
        }
        result.end()
    }
}

impl<'de> Deserialize<'de> for ElicitResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl fmt::Debug for ElicitResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElicitResult")
            .field("action", &self.action)
            .field("content_members", &self.content.as_ref().map(Map::len))
            .finish()
    }
}
