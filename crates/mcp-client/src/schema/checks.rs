//! The schemas of the tools that were listed, and checking results with them.

use std::collections::{HashMap, HashSet};
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

/// What a client remembers of the tools it listed.
#[derive(Debug)]
pub(crate) struct OutputChecks {
    limits: SchemaLimits,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    by_tool: HashMap<String, Arc<Declared>>,
    bytes: usize,
    /// The limit that kept a tool from being remembered.
    full: Option<SchemaError>,
    /// Tools that were listed and declare no schema.
    plain: Names,
    /// Tools of which nothing was known when they had been called, and of which that was said.
    unlisted: Names,
}

/// Names of tools, up to the limits of those whose schemas are remembered.
#[derive(Debug, Default)]
struct Names {
    names: HashSet<String>,
    bytes: usize,
    /// Whether one was left out.
    is_full: bool,
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
        Self { limits, known: Mutex::default() }
    }

    /// Remembers what these tools declare now, in place of what they declared before.
    pub(crate) fn learn(&self, tools: &[Tool]) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for tool in tools {
            known.learn(tool, &self.limits);
        }
    }

    /// Checks the result of a call. Gives back what is to be said where it was not checked because nothing is known of the tool, once a
    /// tool.
    pub(crate) fn check(&self, tool: &str, result: &RawJson) -> Result<Option<Diagnostic>, Error> {
        let declared = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            match (known.by_tool.get(tool), &known.full) {
                (Some(declared), _) => Ok(Arc::clone(declared)),
                // It may be one of those that there was no room for.
                (None, Some(full)) => Err(full.clone()),
                (None, None) => return Ok(known.unlisted(tool, &self.limits)),
            }
        };
        let checked = declared.and_then(|declared| declared.check(result, &self.limits));
        checked.map(|()| None).map_err(failed(tool, result))
    }
}

fn failed<'a>(tool: &'a str, result: &'a RawJson) -> impl FnOnce(SchemaError) -> Error + 'a {
    |error| Error::output(OutputError { tool: tool.to_owned(), error, result: result.clone() })
}

impl Known {
    fn learn(&mut self, tool: &Tool, limits: &SchemaLimits) {
        // A `null` declares nothing.
        let text = tool.output_schema.as_ref().map(|schema| schema.get()).filter(|text| *text != "null");
        match text {
            Some(_) => self.plain.remove(&tool.name),
            None => self.plain.insert(&tool.name, limits),
        }
        let old = self.by_tool.get(&tool.name).map(|declared| &*declared.text);
        if old == text {
            return;
        }
        if let Some(old) = self.by_tool.remove(&tool.name) {
            self.bytes = self.bytes.saturating_sub(tool.name.len() + old.text.len());
        }
        let Some(text) = text else { return };
        let bytes = self.bytes.saturating_add(tool.name.len()).saturating_add(text.len());
        if self.by_tool.len() >= limits.max_tools {
            self.full = Some(SchemaError::limit("max_tools", as_u64(limits.max_tools)));
        } else if bytes > limits.max_tools_bytes {
            self.full = Some(SchemaError::limit("max_tools_bytes", as_u64(limits.max_tools_bytes)));
        } else {
            self.bytes = bytes;
            self.by_tool.insert(tool.name.clone(), Arc::new(Declared::new(text)));
        }
    }

    /// A tool was called that has no schema here.
    fn unlisted(&mut self, tool: &str, limits: &SchemaLimits) -> Option<Diagnostic> {
        // Whether it was listed is not known any more.
        let may_be_listed = self.plain.is_full || self.plain.names.contains(tool);
        if may_be_listed || self.unlisted.names.contains(tool) {
            return None;
        }
        self.unlisted.insert(tool, limits);
        (!self.unlisted.is_full).then(|| {
            let tool = Untrusted::new(tool, MAX_SHOWN_NAME);
            let message = format!(
                "the output of the tool \"{tool}\" was not checked: this client has not listed it; list the tools first, or give the \
                 tool to Call::check_output"
            );
            Diagnostic::new(DiagnosticKind::OutputUnchecked, message)
        })
    }
}

impl Names {
    fn insert(&mut self, name: &str, limits: &SchemaLimits) {
        if self.names.contains(name) {
            return;
        }
        let bytes = self.bytes.saturating_add(name.len());
        if self.names.len() >= limits.max_tools || bytes > limits.max_tools_bytes {
            self.is_full = true;
            return;
        }
        self.bytes = bytes;
        self.names.insert(name.to_owned());
    }

    fn remove(&mut self, name: &str) {
        if self.names.remove(name) {
            self.bytes -= name.len();
        }
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
    /// ([`OutputUnchecked`](DiagnosticKind::OutputUnchecked)): list the tools first, or use [`Call::check_output`].
    pub fn check_output(mut self, limits: SchemaLimits) -> Self {
        self.defaults.output = Some(Arc::new(OutputChecks::new(limits)));
        self
    }
}

impl Call<CallToolResult> {
    /// Validates the structured output of this call against the schema that `tool` declares, whatever the client remembers. A
    /// tool without one is not validated.
    pub fn check_output(self, tool: &Tool, limits: SchemaLimits) -> Self {
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
