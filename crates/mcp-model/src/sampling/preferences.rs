//! Which model a server would like.

use serde::{Deserialize, Serialize};

use crate::{List, lenient, number};

/// Which model a server would like. Advice: the choice is the client's.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelPreferences {
    /// Names of models, most wanted first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<List<ModelHint>>,
    /// How much cost matters, from 0 to 1; not checked on reading.
    #[serde(default, deserialize_with = "lenient::hint")]
    #[serde(serialize_with = "number::write_some", skip_serializing_if = "Option::is_none")]
    pub cost_priority: Option<f64>,
    /// How much speed matters, from 0 to 1; not checked on reading.
    #[serde(default, deserialize_with = "lenient::hint")]
    #[serde(serialize_with = "number::write_some", skip_serializing_if = "Option::is_none")]
    pub speed_priority: Option<f64>,
    /// How much ability matters, from 0 to 1; not checked on reading.
    #[serde(default, deserialize_with = "lenient::hint")]
    #[serde(serialize_with = "number::write_some", skip_serializing_if = "Option::is_none")]
    pub intelligence_priority: Option<f64>,
}

impl ModelPreferences {
    /// The first of `models` whose name contains the first hint that any of them contains: hints go in order, and
    /// come before the numeric priorities.
    pub fn hinted<'a>(&self, models: &[&'a str]) -> Option<&'a str> {
        let names = self.hints.iter().flatten().filter_map(|hint| hint.name.as_deref());
        names
            // An empty name would match every model and mean nothing.
            .filter(|name| !name.is_empty())
            .find_map(|name| models.iter().copied().find(|model| model.contains(name)))
    }
}

/// A hint at a model.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelHint {
    /// A part of the model's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
