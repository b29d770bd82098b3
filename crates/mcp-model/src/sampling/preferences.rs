//! The model preferences of a server.

use serde::{Deserialize, Serialize};

use crate::{List, lenient, number};

/// The model preferences of a server. They are advisory: the client chooses.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelPreferences {
    /// Hints at models, most preferred first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<List<ModelHint>>,
    /// The importance of cost, from 0 to 1; not checked on reading.
    #[serde(default, deserialize_with = "lenient::hint")]
    #[serde(serialize_with = "number::write_some", skip_serializing_if = "Option::is_none")]
    pub cost_priority: Option<f64>,
    /// The importance of speed, from 0 to 1; not checked on reading.
    #[serde(default, deserialize_with = "lenient::hint")]
    #[serde(serialize_with = "number::write_some", skip_serializing_if = "Option::is_none")]
    pub speed_priority: Option<f64>,
    /// The importance of capability, from 0 to 1; not checked on reading.
    #[serde(default, deserialize_with = "lenient::hint")]
    #[serde(serialize_with = "number::write_some", skip_serializing_if = "Option::is_none")]
    pub intelligence_priority: Option<f64>,
}

impl ModelPreferences {
    /// The first of `models` that matches the first hint that matches any of them. A hint matches a name that contains it; hints
    /// take precedence over the numeric priorities.
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
