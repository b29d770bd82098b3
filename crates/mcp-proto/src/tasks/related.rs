//! Naming the task that a message belongs to (2025-11-25, "Associating Task-Related Messages").

use std::collections::BTreeMap;
use std::fmt;

use mcp_jsonrpc::{RawJson, RawRef};
use mcp_model::meta;
use serde_json::value::RawValue;

use crate::connection::Connection;

/// What a request of the server said about the task that it belongs to.
pub(crate) struct RelatedTask(Box<RawValue>);

impl fmt::Debug for RelatedTask {
    /// Without the id: whoever knows it may be able to use the task.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RelatedTask").finish_non_exhaustive()
    }
}

impl RelatedTask {
    /// The result with the task named in its `_meta`; as it is, where it is no object.
    pub(crate) fn named_in(&self, result: &RawJson) -> RawJson {
        self.try_named_in(result).unwrap_or_else(|| result.clone())
    }

    fn try_named_in(&self, result: &RawJson) -> Option<RawJson> {
        let mut members: BTreeMap<String, Box<RawValue>> = result.parse().ok()?;
        let mut meta: BTreeMap<String, Box<RawValue>> = match members.get("_meta") {
            Some(meta) => serde_json::from_str(meta.get()).ok()?,
            None => BTreeMap::new(),
        };
        meta.insert(meta::RELATED_TASK.to_owned(), self.0.clone());
        members.insert("_meta".to_owned(), serde_json::value::to_raw_value(&meta).ok()?);
        RawJson::from_serialize(&members).ok()
    }
}

impl Connection {
    /// The task that a request of a legacy server with these params says it belongs to.
    pub(crate) fn related_task(&self, params: RawRef<'_>) -> Option<RelatedTask> {
        self.config.tasks.as_ref()?;
        let [meta] = params.members(["_meta"]).ok()?;
        let meta = meta?.parse::<&RawValue>().ok();
        let related: Box<RawValue> = meta::read(meta, meta::RELATED_TASK)?;
        (related.get().len() <= self.config.limits.max_related_task_bytes).then_some(RelatedTask(related))
    }
}
