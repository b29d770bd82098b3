//! The requests of the specification as short methods.

use std::sync::Arc;

use mcp_jsonrpc::RawJson;
use mcp_model::{
    CallToolRequestParams, CallToolResult, CompleteRequestParams, CompleteResult, EmptyResult,
    GetPromptRequestParams, GetPromptResult, ListPromptsRequestParams, ListResourceTemplatesRequestParams,
    ListResourcesRequestParams, ListToolsRequestParams, LoggingLevel, PingRequestParams,
    ReadResourceRequestParams, ReadResourceResult, SetLevelRequestParams, SubscribeRequestParams,
    UnsubscribeRequestParams,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Call, List, Reading};
use crate::client::Client;
use crate::error::Error;

impl<T> Call<T> {
    #[cfg(feature = "schema")]
    pub(crate) fn inspected(
        mut self,
        inspect: impl FnOnce(&RawJson) -> Result<(), Error> + Send + 'static,
    ) -> Self {
        self.untyped.inspect = Some(Box::new(inspect));
        self
    }

    /// It fails with this when it is awaited, and nothing is sent; unless it fails already.
    #[cfg(feature = "schema")]
    pub(crate) fn refused(mut self, error: Error) -> Self {
        self.untyped.params = self.untyped.params.and(Err(error));
        self
    }

    /// Returns the result as raw JSON, with every member that the server sent. It is valid JSON; nothing else is checked.
    pub fn raw(self) -> Call<RawJson> {
        Call { untyped: self.untyped, reading: Reading::RAW }
    }
}

impl Client {
    /// `tools/list`
    pub fn list_tools(&self) -> List<ListToolsRequestParams> {
        List::new(self, ListToolsRequestParams::new())
    }

    /// `tools/call`. `arguments` must serialise to a JSON object; `()` sends none.
    ///
    /// A tool that fails says so in its result (`CallToolResult::is_error`), so that a model can read it; an `Err` means that
    /// there is no result. The client repeats the call only where the server has certainly not processed it
    /// ([`ClientBuilder::retry`](crate::ClientBuilder::retry)). Before you repeat it, check
    /// [`Error::outcome_unknown`].
    pub fn call_tool(&self, name: impl Into<String>, arguments: impl Serialize) -> Call<CallToolResult> {
        self.call_tool_raw(name.into(), serde_json::value::to_raw_value(&arguments))
    }

    /// Not generic, so that reading results is not compiled again in each crate that calls a tool.
    fn call_tool_raw(
        &self,
        name: String,
        arguments: serde_json::Result<Box<RawValue>>,
    ) -> Call<CallToolResult> {
        let mut params = CallToolRequestParams::new(name);
        #[cfg(feature = "schema")]
        let checks = self.output_checks().map(|checks| (Arc::clone(checks), params.name.clone()));
        let mut misuse = None;
        match arguments {
            Ok(raw) if raw.get() == "null" => {}
            Ok(raw) if raw.get().starts_with('{') => params.arguments = Some(raw),
            Ok(_) => misuse = Some(Error::misuse_because("tool arguments must be a JSON object")),
            Err(_) => misuse = Some(Error::misuse(mcp_proto::Misuse::Unserializable)),
        }
        let mut call = self.request_of(&mut params);
        if let Some(error) = misuse {
            call.untyped.params = Err(error);
        }
        call.untyped.called.tool = Some(Arc::from(params.name));
        #[cfg(feature = "schema")]
        if let Some((checks, tool)) = checks {
            let driver = Arc::clone(self.driver());
            return call.inspected(move |result| {
                if let Some(unchecked) = checks.check(&tool, result)? {
                    driver.with(|core, _| core.report(unchecked));
                }
                Ok(())
            });
        }
        call
    }

    /// `resources/list`
    pub fn list_resources(&self) -> List<ListResourcesRequestParams> {
        List::new(self, ListResourcesRequestParams::new())
    }

    /// `resources/templates/list`
    pub fn list_resource_templates(&self) -> List<ListResourceTemplatesRequestParams> {
        List::new(self, ListResourceTemplatesRequestParams::new())
    }

    /// `resources/read`
    ///
    /// # Errors
    ///
    /// Those of a call, and [`Misuse`](crate::ErrorKind::Misuse) if the server did not declare resources.
    pub fn read_resource(&self, uri: impl Into<String>) -> Call<ReadResourceResult> {
        self.read_resource_with(ReadResourceRequestParams::new(uri))
    }

    /// Not generic, as [`call_tool_raw`](Self::call_tool_raw).
    fn read_resource_with(&self, params: ReadResourceRequestParams) -> Call<ReadResourceResult> {
        self.request(params)
    }

    /// `resources/subscribe`, a request of the legacy era: each change is then reported as
    /// [`ClientEvent::ResourceUpdated`](crate::ClientEvent::ResourceUpdated). It is restored in a new session.
    ///
    /// [`Client::subscription`] works in both eras, restores itself and ends when dropped. When such a subscription to the
    /// same URI ends, the server is told to unsubscribe the URI, and this subscription ends too: use only one of the two for a
    /// URI.
    ///
    /// # Errors
    ///
    /// Those of a call, and [`Misuse`](crate::ErrorKind::Misuse) under 2026-07-28, which has no such request, or if the server
    /// did not declare resource subscriptions.
    pub fn subscribe(&self, uri: impl Into<String>) -> Call<EmptyResult> {
        self.request(SubscribeRequestParams::new(uri))
    }

    /// `resources/unsubscribe`, a request of the legacy era: ends what [`subscribe`](Self::subscribe) began.
    ///
    /// # Errors
    ///
    /// As [`subscribe`](Self::subscribe).
    pub fn unsubscribe(&self, uri: impl Into<String>) -> Call<EmptyResult> {
        self.request(UnsubscribeRequestParams::new(uri))
    }

    /// `prompts/list`
    pub fn list_prompts(&self) -> List<ListPromptsRequestParams> {
        List::new(self, ListPromptsRequestParams::new())
    }

    /// `prompts/get` with the prompt's arguments.
    ///
    /// # Errors
    ///
    /// Those of a call, and [`Misuse`](crate::ErrorKind::Misuse) if the server did not declare prompts.
    pub fn get_prompt<K: Into<String>, V: Into<String>>(
        &self,
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = (K, V)>,
    ) -> Call<GetPromptResult> {
        let mut params = GetPromptRequestParams::new(name);
        params.arguments =
            Some(arguments.into_iter().map(|(key, value)| (key.into(), value.into())).collect());
        self.get_prompt_with(params)
    }

    /// Not generic, as [`call_tool_raw`](Self::call_tool_raw).
    fn get_prompt_with(&self, params: GetPromptRequestParams) -> Call<GetPromptResult> {
        self.request(params)
    }

    /// `completion/complete`
    ///
    /// # Errors
    ///
    /// Those of a call, and [`Misuse`](crate::ErrorKind::Misuse) if the server did not declare completions.
    pub fn complete(&self, params: CompleteRequestParams) -> Call<CompleteResult> {
        self.request(params)
    }

    /// `logging/setLevel`: the server then sends log messages of this level and above, reported as
    /// [`ClientEvent::Log`](crate::ClientEvent::Log). Under 2026-07-28, which has no such request, the level is sent with each
    /// later request, and this call ends at once.
    ///
    /// # Errors
    ///
    /// Those of a call, and [`Misuse`](crate::ErrorKind::Misuse) if the server did not declare logging.
    pub fn set_logging_level(&self, level: LoggingLevel) -> Call<EmptyResult> {
        self.request(SetLevelRequestParams::new(level))
    }

    /// `ping`, a request of the legacy era: completes when the server has answered.
    ///
    /// # Errors
    ///
    /// Those of a call, and [`Misuse`](crate::ErrorKind::Misuse) under 2026-07-28, which has no such request.
    pub fn ping(&self) -> Call<EmptyResult> {
        self.request(PingRequestParams::new())
    }
}
