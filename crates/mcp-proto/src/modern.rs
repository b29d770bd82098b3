//! What the modern era (2026-07-28) puts on each message: everything that a server needs to know, because it remembers
//! nothing.

use std::time::Instant;

use mcp_jsonrpc::{ErrorCode, ErrorObject, RawJson, RawRef};
use mcp_model::{
    LoggingLevel, MetaObject, ProtocolVersion, ResultType, ServerFeature, ToJson, inspect_result_type, meta,
    methods,
};

use crate::call::{CallId, CallKind, CallOptions, CallState, Relisting};
use crate::connection::Connection;
use crate::deprecated::DeprecatedFeature;
use crate::envelope::string_member;
use crate::era::Wire;
use crate::error::{CallError, Misuse};
use crate::event::Event;
use crate::lifecycle::versions_offered;
use crate::mrtr::takes_input;
use crate::phase::Phase;
use crate::tool_headers::ToolHeadersError;
use crate::transmit::{Head, Routing};

impl Connection {
    /// Whether this client declares the extension.
    pub fn declares_extension(&self, id: &str) -> bool {
        self.config.extensions.contains_key(id)
    }

    /// Makes the members of `_meta` that every request under this revision carries, once for all of them.
    pub(crate) fn prepare_meta(&mut self, version: ProtocolVersion) -> Result<(), Misuse> {
        if self.meta.as_ref().is_none_or(|(made_for, _)| *made_for != version) {
            let client_info = self.config.send_client_info.then_some(&self.config.client_info);
            let mut members = MetaObject::for_request(version, &self.config.capabilities(), client_info)
                .map_err(|_| Misuse::Unserializable)?;
            let level = self.meta.as_ref().and_then(|(_, members)| members.get(meta::LOG_LEVEL));
            if let Some(level) = level {
                members.insert_raw(meta::LOG_LEVEL, level.to_owned());
            }
            self.meta = Some((version, members));
        }
        Ok(())
    }

    /// The members of a request that declares no tasks, where that is any different from every other one.
    pub(crate) fn meta_without_tasks(
        &self,
        version: ProtocolVersion,
        options: &CallOptions,
    ) -> Result<Option<MetaObject>, Misuse> {
        let declared =
            self.config.tasks.is_some() || self.config.extensions.contains_key(meta::TASKS_EXTENSION);
        let meta = self.meta.as_ref().filter(|_| options.task.declined && declared);
        let Some((_, members)) = meta else { return Ok(None) };
        let mut members = members.clone();
        let capabilities = self
            .config
            .capabilities_with(false)
            .for_version(version)
            .to_json()
            .map_err(|_| Misuse::Unserializable)?;
        members.insert_raw(meta::CLIENT_CAPABILITIES, capabilities);
        Ok(Some(members))
    }

    /// Puts the log level into every later request. The call that asks for it ends at once.
    pub(crate) fn set_log_level(&mut self, params: Option<&RawJson>) -> Result<CallId, Misuse> {
        let Phase::Ready { server } = &self.phase else { return Err(Misuse::NotReady) };
        let (version, feature) = (server.protocol_version, ServerFeature::Logging);
        if !server.capabilities.declares(feature) {
            return Err(Misuse::NotDeclaredByServer {
                method: methods::LOGGING_SET_LEVEL.to_owned(),
                feature,
            });
        }
        let level = params.and_then(|params| string_member(params.as_raw_ref(), "level"));
        let level = LoggingLevel::from(level.ok_or(Misuse::ParamsNotAnObject)?.as_str());
        let nothing = RawJson::from_text("{}".to_owned()).map_err(|_| Misuse::Unserializable)?;
        self.prepare_meta(version)?;
        if let Some((_, members)) = &mut self.meta {
            members.insert(meta::LOG_LEVEL, &level).map_err(|_| Misuse::Unserializable)?;
        }
        self.note_deprecated(DeprecatedFeature::Logging);
        let call = self.next_call_id();
        self.push_event(Event::CallEnded { call, outcome: Ok(nothing) });
        Ok(call)
    }

    /// What a transport repeats of a message under this revision.
    pub(crate) fn modern_head(
        &self,
        version: ProtocolVersion,
        method: &str,
        params: Option<&RawJson>,
    ) -> Result<Head, Misuse> {
        let mut head = Head { protocol_version: Some(version), routing: None };
        if self.config.wire == Wire::Exchanges {
            let (name, params) = self.routed(method, params)?;
            let method = method.to_owned();
            head.routing = Some(Box::new(Routing { method, name, params }));
        }
        Ok(head)
    }

    /// What is repeated of the params: the name, and arguments of a tool.
    fn routed(&self, method: &str, params: Option<&RawJson>) -> Result<Routed, Misuse> {
        let key = match method {
            methods::TOOLS_CALL | methods::PROMPTS_GET => "name",
            methods::RESOURCES_READ => "uri",
            methods::TASKS_GET | methods::TASKS_UPDATE | methods::TASKS_CANCEL => "taskId",
            _ => return Ok((None, Vec::new())),
        };
        let members = params.and_then(|params| params.as_raw_ref().members([key, "arguments"]).ok());
        let [name, arguments] = members.unwrap_or_default();
        let name = name.and_then(|name| name.string().ok());
        if method != methods::TOOLS_CALL {
            return Ok((name, Vec::new()));
        }
        let arguments = arguments.map_or("{}", RawRef::as_str);
        let params = self.tools.params(name.as_deref().unwrap_or_default(), arguments);
        let unsendable = |error: ToolHeadersError| Misuse::UnsendableArgument { reason: error.to_string() };
        Ok((name, params.map_err(unsendable)?))
    }

    /// A result arrived for a call of the application. What kind of result it is is looked at before anything else: read
    /// as a type, a request for input would pass as an empty success.
    pub(crate) fn handle_modern_result(
        &mut self,
        now: Instant,
        call: CallId,
        state: CallState,
        result: RawRef<'_>,
    ) {
        let method = state.asked.as_ref().map_or("", |asked| asked.method.as_str());
        let invalid = |reason: &str| Err(CallError::InvalidResult { reason: reason.to_owned() });
        let outcome = match inspect_result_type(result.as_str()) {
            Ok(ResultType::Complete) => {
                let result = self.completed(method, result);
                if let (Some(asked), Some(version)) = (&state.asked, self.phase.modern()) {
                    self.cache.keep(now, version, asked, &result);
                }
                Ok(result)
            }
            Ok(ResultType::InputRequired) if takes_input(method) => {
                return self.pause(now, call, state, result);
            }
            Ok(ResultType::InputRequired) => invalid("input was required by a method that does not allow it"),
            Ok(ResultType::Task) if state.asked.as_ref().is_some_and(|asked| self.takes_task(asked)) => {
                return self.start_task(now, call, state, result);
            }
            Ok(_) => invalid("the resultType is unknown or was not declared by this client"),
            Err(_) => invalid("the result is not a readable object"),
        };
        self.end_call(now, call, &state, outcome);
    }

    /// A complete result, as the application gets it.
    fn completed(&mut self, method: &str, result: RawRef<'_>) -> RawJson {
        if method == methods::TOOLS_LIST && self.config.wire == Wire::Exchanges {
            self.list_tools(result)
        } else {
            result.to_owned()
        }
    }

    /// An error arrived for a call of the application. Two of them say how to do it right, once.
    pub(crate) fn handle_modern_error(
        &mut self,
        now: Instant,
        call: CallId,
        mut state: CallState,
        error: ErrorObject,
    ) {
        let Some(asked) = state.asked.as_mut() else {
            return self.end_call(now, call, &state, Err(CallError::Rpc(error)));
        };
        if state.kind == CallKind::Relist {
            // Why the tools could not be listed matters less than why they had to be.
            let error = asked.relisting.take().map_or(error, |relisting| relisting.mismatch);
            return self.end_call(now, call, &state, Err(CallError::Rpc(error)));
        }
        if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
            && !asked.revised
            && let Some(version) = modern_version_offered(&error)
            && let Phase::Ready { server } = &mut self.phase
        {
            asked.revised = true;
            server.protocol_version = version;
            self.cache.clear();
            return self.resend(now, call, state);
        }
        self.cache.handle_refused(&asked.method, asked.params.as_ref(), error.code);
        if error.code == ErrorCode::HEADER_MISMATCH
            && asked.relisting.is_none()
            && asked.method == methods::TOOLS_CALL
            && self.config.wire == Wire::Exchanges
        {
            asked.relisting = Some(Relisting { mismatch: error, pages: 0 });
            return self.relist(now, call, state, None);
        }
        let refused = self.refused(error);
        self.end_call(now, call, &state, Err(refused));
    }
}

/// `Mcp-Name`, and suffixes and values of `Mcp-Param-*`.
type Routed = (Option<String>, Vec<(String, String)>);

fn modern_version_offered(error: &ErrorObject) -> Option<ProtocolVersion> {
    versions_offered(error)?.into_iter().filter(|version| version.is_modern()).max()
}
