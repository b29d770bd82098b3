//! What every request of a client starts from.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_model::TraceContext;
use mcp_proto::CallOptions;
use serde_json::{Map, Value};

use crate::builder::ClientBuilder;
use crate::requests::Call;

type TraceFn = Arc<dyn Fn() -> Option<TraceContext> + Send + Sync>;

#[derive(Clone, Default)]
pub(crate) struct Defaults {
    pub(crate) options: CallOptions,
    /// The hard end of calls that say none.
    pub(crate) max_total: Option<Duration>,
    pub(crate) trace: Option<TraceFn>,
    #[cfg(feature = "schema")]
    pub(crate) output: Option<crate::schema::SchemaLimits>,
}

impl Defaults {
    /// The options of a request that is made now.
    pub(crate) fn options(&self) -> CallOptions {
        let mut options = self.options.clone();
        if let Some(trace) = self.trace.as_ref().and_then(|trace| trace()) {
            options.meta.get_or_insert_default().extend(members(&trace));
        }
        options
    }
}

impl fmt::Debug for Defaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Defaults")
            .field("options", &self.options)
            .field("max_total", &self.max_total)
            .field("trace", &self.trace.is_some())
            .finish_non_exhaustive()
    }
}

pub(crate) fn members(trace: &TraceContext) -> Map<String, Value> {
    let mut members = Map::new();
    for (key, value) in trace.members() {
        members.insert(key.to_owned(), Value::from(value));
    }
    members
}

impl ClientBuilder {
    /// Calls `current` for the trace context of each request when it is made, and sends it in `_meta` (`traceparent`,
    /// `tracestate`, `baggage`). `None` sends none. Default: none is sent. [`Call::trace`] takes precedence.
    ///
    /// The server can read the baggage.
    pub fn trace(mut self, current: impl Fn() -> Option<TraceContext> + Send + Sync + 'static) -> Self {
        self.defaults.trace = Some(Arc::new(current));
        self
    }
}

impl<T> Call<T> {
    /// Sends this trace context in `_meta`, in place of that of [`ClientBuilder::trace`].
    pub fn trace(mut self, trace: &TraceContext) -> Self {
        let meta = self.untyped.options.meta.get_or_insert_default();
        for key in [mcp_model::meta::TRACEPARENT, mcp_model::meta::TRACESTATE, mcp_model::meta::BAGGAGE] {
            meta.remove(key);
        }
        meta.extend(members(trace));
        self
    }
}
