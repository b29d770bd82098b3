//! The schemas of the tools that were listed, and checking results with them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mcp_jsonrpc::RawJson;
use mcp_model::{CallToolResult, Tool};
use mcp_proto::{Diagnostic, DiagnosticKind};
use mcp_transport::Untrusted;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::{OutputError, SchemaError};
use super::{OutputSchema, SchemaLimits};
use crate::builder::ClientBuilder;
use crate::error::{Error, as_u64};
use crate::requests::Call;

/// How much of a tool's name a diagnostic shows, in bytes.
const MAX_SHOWN_NAME: usize = 100;

/// What one client remembers of the tools of its server. It belongs to one connection: another server may give its tools the same names.
#[derive(Debug)]
pub(crate) struct OutputChecks {
    limits: SchemaLimits,
    tools: Mutex<Tools>,
}

/// A table of tools by name. The limits hold for each kind of entry by itself, so that none takes the room of another.
#[derive(Debug, Default)]
struct Tools {
    by_name: HashMap<String, Known>,
    with_schema: Share,
    without_schema: Share,
    unlisted: Share,
}

/// What is known of a tool.
#[derive(Debug)]
enum Known {
    /// It was listed with this schema.
    Schema(Arc<Declared>),
    /// It was listed and declares no schema.
    NoSchema,
    /// It was called before it was listed, and that was reported.
    Unlisted,
}

/// What the entries of one kind take.
#[derive(Debug, Default)]
struct Share {
    tools: usize,
    bytes: usize,
    /// The limit that kept a tool out, if one did.
    full: Option<SchemaError>,
}

/// A schema as it was declared; it is compiled when it is needed first.
#[derive(Debug)]
struct Declared {
    text: Box<str>,
    compiled: OnceLock<Result<OutputSchema, SchemaError>>,
}

/// The members of a result that matter here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Output<'a> {
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(borrow, default, deserialize_with = "present")]
    structured_content: Option<&'a RawValue>,
}

/// `null` is content; only what is not there is missing.
fn present<'de: 'a, 'a, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl OutputChecks {
    pub(crate) fn new(limits: SchemaLimits) -> Self {
        Self { limits, tools: Mutex::default() }
    }

    /// Remembers what these tools declare now, in place of what they declared before.
    pub(crate) fn learn(&self, listed: &[Tool]) {
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        for tool in listed {
            tools.learn(tool, &self.limits);
        }
    }

    /// Checks the result of a call. Returns the diagnostic to report if it was not checked because the tool was never listed, once for
    /// each tool.
    pub(crate) fn check(&self, tool: &str, result: &RawJson) -> Result<Option<Diagnostic>, Error> {
        let declared = {
            let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
            match (tools.by_name.get(tool), &tools.with_schema.full) {
                (Some(Known::Schema(declared)), _) => Ok(Arc::clone(declared)),
                (Some(Known::NoSchema), _) => return Ok(None),
                // It may be one of those that there was no room for.
                (Some(Known::Unlisted) | None, Some(full)) => Err(full.clone()),
                (Some(Known::Unlisted), None) => return Ok(None),
                (None, None) => return Ok(tools.called_unlisted(tool, &self.limits)),
            }
        };
        let checked = declared.and_then(|declared| declared.check(result, &self.limits));
        checked.map(|()| None).map_err(failed(tool, result))
    }
}

fn failed<'a>(tool: &'a str, result: &'a RawJson) -> impl FnOnce(SchemaError) -> Error + 'a {
    |error| Error::output(OutputError { tool: tool.to_owned(), error, result: result.clone() })
}

impl Tools {
    fn learn(&mut self, tool: &Tool, limits: &SchemaLimits) {
        // A `null` declares nothing.
        let text = tool.output_schema.as_ref().map(|schema| schema.get()).filter(|text| *text != "null");
        match (self.by_name.get(&tool.name), text) {
            // Unchanged: keep it, as it may be compiled already.
            (Some(Known::Schema(declared)), Some(text)) if &*declared.text == text => return,
            (Some(Known::NoSchema), None) => return,
            _ => {}
        }
        let known = text.map_or(Known::NoSchema, |text| Known::Schema(Arc::new(Declared::new(text))));
        self.put(&tool.name, known, limits);
    }

    /// Replaces what is known of a tool. Whether there was room; if not, nothing is known of it any more.
    fn put(&mut self, name: &str, known: Known, limits: &SchemaLimits) -> bool {
        if let Some(old) = self.by_name.remove(name) {
            let bytes = old.bytes(name);
            self.share(&old).give_back(bytes);
        }
        let bytes = known.bytes(name);
        let has_room = self.share(&known).take(bytes, limits);
        if has_room {
            self.by_name.insert(name.to_owned(), known);
        }
        has_room
    }

    const fn share(&mut self, known: &Known) -> &mut Share {
        match known {
            Known::Schema(_) => &mut self.with_schema,
            Known::NoSchema => &mut self.without_schema,
            Known::Unlisted => &mut self.unlisted,
        }
    }

    /// A tool was called of which nothing is known.
    fn called_unlisted(&mut self, tool: &str, limits: &SchemaLimits) -> Option<Diagnostic> {
        // It may be one that was listed and forgotten; and what is not remembered as reported would be reported with each call.
        if self.without_schema.full.is_some() || !self.put(tool, Known::Unlisted, limits) {
            return None;
        }
        let tool = Untrusted::new(tool, MAX_SHOWN_NAME).quoted();
        let message = format!(
            "the output of the tool {tool} was not checked: this client has not listed it; list the tools first, or give the tool \
             to Call::check_output"
        );
        Some(Diagnostic::new(DiagnosticKind::OutputUnchecked, message))
    }
}

impl Known {
    fn bytes(&self, name: &str) -> usize {
        let schema = if let Self::Schema(declared) = self { declared.text.len() } else { 0 };
        name.len().saturating_add(schema)
    }
}

impl Share {
    fn take(&mut self, bytes: usize, limits: &SchemaLimits) -> bool {
        let bytes = self.bytes.saturating_add(bytes);
        let (name, limit) = if self.tools >= limits.max_tools {
            ("max_tools", limits.max_tools)
        } else if bytes > limits.max_tools_bytes {
            ("max_tools_bytes", limits.max_tools_bytes)
        } else {
            (self.tools, self.bytes) = (self.tools + 1, bytes);
            return true;
        };
        self.full = Some(SchemaError::limit(name, as_u64(limit)));
        false
    }

    const fn give_back(&mut self, bytes: usize) {
        self.tools -= 1;
        self.bytes -= bytes;
    }
}

impl Declared {
    fn new(text: &str) -> Self {
        Self { text: text.into(), compiled: OnceLock::new() }
    }

    fn check(&self, result: &RawJson, limits: &SchemaLimits) -> Result<(), SchemaError> {
        // What is no result of a tool at all is for the reader of results to say.
        let Ok(output) = serde_json::from_str::<Output<'_>>(result.as_str()) else { return Ok(()) };
        if output.is_error == Some(true) {
            return Ok(());
        }
        let content = output.structured_content.ok_or(SchemaError::Missing)?;
        if content.get().len() > limits.max_value_bytes {
            return Err(SchemaError::limit("max_value_bytes", as_u64(limits.max_value_bytes)));
        }
        let schema = self.compiled.get_or_init(|| OutputSchema::new(&self.text, limits)).as_ref();
        let schema = schema.map_err(SchemaError::clone)?;
        let value: Value = serde_json::from_str(content.get())
            .map_err(|_| SchemaError::unusable("the value cannot be read"))?;
        schema.check(&value)
    }
}

impl ClientBuilder {
    /// Validates the structured output of every tool that was listed, against its declared schema. Default: no validation. A tool that is
    /// called before this client has listed it is not validated, which a diagnostic reports once
    /// ([`OutputUnchecked`](DiagnosticKind::OutputUnchecked)): list the tools first, or use [`Call::check_output`]. Each client remembers
    /// the tools of its own connection; after connecting again, list them again.
    pub fn check_output(mut self, limits: SchemaLimits) -> Self {
        self.defaults.output = Some(limits);
        self
    }
}

impl Call<CallToolResult> {
    /// Validates the structured output of this call against the schema that `tool` declares, whatever the client remembers. A
    /// tool without one is not validated.
    ///
    /// # Errors
    ///
    /// When awaited: [`Misuse`](crate::ErrorKind::Misuse) if the call is of another tool; then nothing was sent.
    pub fn check_output(self, tool: &Tool, limits: SchemaLimits) -> Self {
        if let Some(called) = self.untyped.tool_name().filter(|called| **called != *tool.name) {
            let [called, other] =
                [&*called, &*tool.name].map(|name| Untrusted::new(name, MAX_SHOWN_NAME).quoted());
            let message = format!(
                "the call is of the tool {called}, but its output is to be checked as that of {other}"
            );
            return self.refused(Error::misuse_because(message));
        }
        let checks = OutputChecks::new(limits);
        checks.learn(std::slice::from_ref(tool));
        let name = tool.name.clone();
        self.inspected(move |result| checks.check(&name, result).map(drop))
    }

    /// Does not validate the output of this call, whatever the client does with others.
    pub fn unchecked_output(mut self) -> Self {
        self.untyped.inspect = None;
        self
    }
}
