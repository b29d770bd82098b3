//! Sampling: what a server may ask of the application's model, and what may go back.
//!
//! Both directions are looked at before they are passed on. Whether the model kept to `maxTokens` only its own tokenizer
//! could say; what no tokenizer could have made of so few tokens is held back here.

use mcp_jsonrpc::{ErrorCode, ErrorObject, RawJson, RawRef};
use mcp_model::{
    CreateMessageRequestParams, CreateMessageResult, FromJson, ProtocolVersion, SamplingMessageContentBlock,
    ToJson,
};

use crate::connection::Connection;
use crate::diagnostic::DiagnosticKind;
use crate::whole_number::whole_number;

/// The longest token of any tokenizer in use has half as many bytes (a run of blanks).
const MAX_TOKEN_BYTES: u64 = 256;

/// What an answer to a sampling request is held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SamplingAsked {
    max_tokens: Option<u64>,
    tools: bool,
}

/// The members of a request that this client goes by.
struct Read<'a> {
    max_tokens: Option<RawRef<'a>>,
    tools: Option<RawRef<'a>>,
    tool_choice: Option<RawRef<'a>>,
}

impl<'a> Read<'a> {
    fn of(params: RawRef<'a>) -> Option<Self> {
        let [max_tokens, tools, tool_choice] = params.members(["maxTokens", "tools", "toolChoice"]).ok()?;
        Some(Self { max_tokens, tools, tool_choice })
    }

    const fn uses_tools(&self) -> bool {
        self.tools.is_some() || self.tool_choice.is_some()
    }
}

impl SamplingAsked {
    /// What a request that was read before asks for.
    pub(crate) fn of(params: &RawJson) -> Self {
        let read = Read::of(params.as_raw_ref());
        Self {
            max_tokens: read
                .as_ref()
                .and_then(|read| read.max_tokens)
                .and_then(|count| whole_number(count.as_str())),
            tools: read.is_some_and(|read| read.tools.is_some()),
        }
    }
}

/// The most tokens that a sampling request asks for, `maxTokens` of its params; `None` where it says none that can be read.
pub fn max_tokens(params: &RawJson) -> Option<u64> {
    SamplingAsked::of(params).max_tokens
}

impl Connection {
    /// Checks a sampling request; the error is what goes on the wire.
    pub(crate) fn read_sampling(&self, params: Option<RawRef<'_>>) -> Result<RawJson, ErrorObject> {
        let (version, params) = self.read_params(params)?;
        let invalid = |message: &str| ErrorObject::new(ErrorCode::INVALID_PARAMS, message);
        if !params.as_str().starts_with('{') {
            return Err(invalid("params are no object"));
        }
        let read = Read::of(params).ok_or_else(|| invalid("params are not readable"))?;
        if read.max_tokens.is_some_and(|count| whole_number(count.as_str()).is_none()) {
            return Err(invalid("maxTokens is no whole number"));
        }
        // An earlier revision does not know these members.
        if version < ProtocolVersion::V2025_11_25 {
            return Ok(params.to_owned());
        }
        // Sampling with tools is a capability of its own.
        if read.uses_tools() && !self.config.sampling_tools {
            return Err(invalid("this client did not declare sampling with tools"));
        }
        match params.parse_with(CreateMessageRequestParams::from_json) {
            Ok(request) => {
                request.check_tool_messages().map_err(|fault| invalid(&fault.to_string()))?;
            }
            Err(_) if read.uses_tools() => return Err(invalid("params are not readable")),
            // What the application can make of it is for the application to say.
            Err(_) => {}
        }
        Ok(params.to_owned())
    }

    /// An answer to a sampling request, as it may leave.
    pub(crate) fn checked_sample(
        &mut self,
        asked: SamplingAsked,
        result: RawJson,
    ) -> Result<RawJson, ErrorObject> {
        let version = self.server().map_or(ProtocolVersion::LATEST_LEGACY, |server| server.protocol_version);
        // One that cannot be read is the application's own extension of the protocol, or its own mistake.
        let Ok(sampled) = CreateMessageResult::from_json(result.as_str()) else { return Ok(result) };
        let refuse = |connection: &mut Self, why: String| {
            connection.diagnose(DiagnosticKind::ServerRequestAnswerInvalid, why.clone());
            Err(ErrorObject::new(ErrorCode::INTERNAL_ERROR, why))
        };
        let blocks = sampled.content.blocks();
        let is_call =
            |block: &SamplingMessageContentBlock| matches!(block, SamplingMessageContentBlock::ToolUse(_));
        if !asked.tools && blocks.iter().any(is_call) {
            return refuse(self, "the answer uses tools that the request does not offer".to_owned());
        }
        let bytes: u64 = blocks.iter().map(text_bytes).fold(0, u64::saturating_add);
        if let Some(most) = asked.max_tokens
            && bytes > most.saturating_mul(MAX_TOKEN_BYTES)
        {
            return refuse(self, format!("the answer has {bytes} bytes of text, and maxTokens is {most}"));
        }
        if version >= ProtocolVersion::V2025_11_25 {
            return Ok(result);
        }
        match sampled.for_version(version).map(|said| said.to_json()) {
            Ok(Ok(said)) => Ok(said.into()),
            Ok(Err(_)) => Ok(result),
            Err(not) => refuse(self, not.to_string()),
        }
    }
}

fn text_bytes(block: &SamplingMessageContentBlock) -> u64 {
    match block {
        SamplingMessageContentBlock::Text(text) => u64::try_from(text.text.len()).unwrap_or(u64::MAX),
        _ => 0,
    }
}
