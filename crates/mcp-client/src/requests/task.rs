//! Taking a call apart, to make a task of it.

use std::borrow::Cow;

use mcp_jsonrpc::RawJson;
use mcp_model::{CallToolRequestParams, CallToolResult};
use mcp_proto::CallOptions;

use super::suspend::Resumed;
use super::{Call, Untyped, decode};
use crate::client::Client;
use crate::driver::{ProgressFn, TaskOrigin};
use crate::error::{Called, Error};

/// Makes a value of a raw result, for the method.
pub(crate) type Decode<T> = fn(&str, RawJson) -> Result<T, Error>;

/// What a call is made of, beside what it sends.
pub(crate) struct Parts<T> {
    pub(crate) client: Client,
    pub(crate) called: Called,
    pub(crate) options: CallOptions,
    pub(crate) on_progress: Option<ProgressFn>,
    pub(crate) decode: Decode<T>,
}

impl<T> Call<T> {
    /// Asks the server to answer this call with its result and not with a task, where tasks are enabled
    /// ([`ClientBuilder::tasks`](crate::ClientBuilder::tasks)). A tool that only runs as a task refuses this.
    pub fn without_task(mut self) -> Self {
        self.untyped.options.task.declined = true;
        self
    }

    pub(crate) fn into_parts(self) -> (Parts<T>, Result<TaskOrigin, Error>) {
        let Self { untyped, reading } = self;
        let Untyped { client, called, params, options, on_progress, resumed, .. } = untyped;
        let origin = params.map(|params| match resumed {
            Some(resumed) => {
                let Resumed { call, answers } = *resumed;
                TaskOrigin::Suspended { call, answers }
            }
            None => TaskOrigin::Call { method: called.method.clone().into_owned(), params },
        });
        (Parts { client, called, options, on_progress, decode: reading.owned }, origin)
    }
}

impl Client {
    /// The parts of a call of this method that was made before.
    pub(crate) fn parts_of_task(&self, method: String) -> Parts<CallToolResult> {
        Parts {
            client: self.clone(),
            called: Called { method: Cow::Owned(method), tool: None },
            options: self.request_options(),
            on_progress: None,
            decode: decode::<CallToolRequestParams>,
        }
    }
}
