//! Naming the task that a message belongs to (2025-11-25, "Associating Task-Related Messages").

use std::fmt;

use mcp_jsonrpc::{RawJson, RawRef};
use mcp_model::meta;

use crate::connection::Connection;

/// What a request of the server said about the task that it belongs to.
pub(crate) struct RelatedTask(RawJson);

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
        let result = result.as_raw_ref();
        let [meta] = result.members(["_meta"]).ok()?;
        let meta = meta.map_or_else(|| RawJson::from_text("{}".to_owned()), |meta| Ok(meta.to_owned()));
        let meta = meta.ok()?.as_raw_ref().with_members(&[(meta::RELATED_TASK, Some(&self.0))]).ok()?;
        result.with_members(&[("_meta", Some(&meta))]).ok()
    }
}

impl Connection {
    /// The task that a request of a legacy server with these params says it belongs to.
    pub(crate) fn related_task(&self, params: RawRef<'_>) -> Option<RelatedTask> {
        self.config.tasks.as_ref()?;
        let [meta] = params.members(["_meta"]).ok()?;
        let [related] = meta?.members([meta::RELATED_TASK]).ok()?;
        let related =
            related.filter(|related| related.as_str().len() <= self.config.limits.max_related_task_bytes);
        related.map(|related| RelatedTask(related.to_owned()))
    }
}
