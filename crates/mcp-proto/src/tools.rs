//! The tools of a modern server over exchanges: which are usable, and which of their arguments go into headers.
//!
//! Spec: "Custom Headers from Tool Parameters" of Streamable HTTP (2026-07-28).

use std::collections::HashMap;
use std::time::Instant;

use mcp_jsonrpc::{RawJson, RawRef};
use mcp_model::{ListToolsRequestParams, ResultType, ToJson, inspect_result_type, methods};

use crate::call::{CallId, CallKind, CallState};
use crate::connection::Connection;
use crate::diagnostic::{DiagnosticKind, excerpt};
use crate::error::CallError;
use crate::limits::Limits;
use crate::sending::{Next, NextTime};
use crate::tool_headers::{ToolHeaders, ToolHeadersError};

/// What the newest listing of each tool says about headers. Tools without any are not in it.
#[derive(Debug)]
pub(crate) struct ToolTable {
    headers: HashMap<String, ToolHeaders>,
    limits: Limits,
}

impl ToolTable {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { headers: HashMap::new(), limits: *limits }
    }

    /// Suffixes and values of the headers of a call. A tool that was never listed has none.
    pub(crate) fn params(
        &self,
        tool: &str,
        arguments: &str,
    ) -> Result<Vec<(String, String)>, ToolHeadersError> {
        self.headers.get(tool).map_or(Ok(Vec::new()), |headers| headers.params(arguments))
    }

    fn learn(&mut self, tool: &str, headers: ToolHeaders) {
        if headers.is_empty() || tool.len() > self.limits.max_name_bytes {
            self.headers.remove(tool);
        } else if self.headers.len() < self.limits.max_tools_with_headers || self.headers.contains_key(tool) {
            self.headers.insert(tool.to_owned(), headers);
        }
    }
}

/// A page of `tools/list`: its tools, and where the next one begins.
fn listed(page: RawRef<'_>) -> Option<(Vec<RawRef<'_>>, Option<String>)> {
    let [tools, cursor] = page.members(["tools", "nextCursor"]).ok()?;
    Some((tools?.items().ok()?, cursor.map(RawRef::string).transpose().ok()?))
}

/// The name and the input schema of a tool.
fn listed_tool(tool: RawRef<'_>) -> Option<(String, RawRef<'_>)> {
    let [name, input_schema] = tool.members(["name", "inputSchema"]).ok()?;
    Some((name?.string().ok()?, input_schema?))
}

impl Connection {
    /// Remembers what a page of the list says about headers, and leaves out of it the tools that say it wrongly.
    pub(crate) fn list_tools(&mut self, result: RawRef<'_>) -> RawJson {
        // Most servers have no such thing, and then there is nothing to forget either.
        if self.tools.headers.is_empty() && !result.as_str().contains("x-mcp-header") {
            return result.to_owned();
        }
        // What cannot be read is for the application to stumble over, with a better message.
        let Some((tools, _)) = listed(result) else { return result.to_owned() };
        let mut kept = Vec::with_capacity(tools.len());
        for raw in &tools {
            let Some((name, input_schema)) = listed_tool(*raw) else {
                kept.push(*raw);
                continue;
            };
            match ToolHeaders::from_schema_within(input_schema.as_str(), &self.config.limits) {
                Ok(headers) => {
                    self.tools.learn(&name, headers);
                    kept.push(*raw);
                }
                Err(error) => {
                    self.tools.headers.remove(&name);
                    let name = excerpt(&name, self.config.limits.max_excerpt_bytes);
                    self.diagnose(DiagnosticKind::ToolDropped, format!("tool {name}: {error}"));
                }
            }
        }
        if kept.len() == tools.len() {
            return result.to_owned();
        }
        without_dropped(result, &kept).unwrap_or_else(|| result.to_owned())
    }

    /// Lists the tools in the middle of a call whose headers the server refused.
    pub(crate) fn relist(
        &mut self,
        now: Instant,
        call: CallId,
        mut state: CallState,
        cursor: Option<String>,
    ) {
        let params = cursor.and_then(|cursor| ListToolsRequestParams::after(cursor).to_json().ok());
        let params = params.map(RawJson::from);
        let (kind, method) = (CallKind::Relist, Some(methods::TOOLS_LIST));
        if let Some(relisting) = state.asked.as_mut().and_then(|asked| asked.relisting.as_mut()) {
            relisting.pages += 1;
        }
        // What the client asks by itself in the middle of a call takes of the time of that call.
        self.send_again(now, call, state, Next { kind, method, params, time: NextTime::Left });
    }

    /// A page of that list arrived. With the last of them the call is made again.
    pub(crate) fn handle_relisted(
        &mut self,
        now: Instant,
        call: CallId,
        mut state: CallState,
        result: RawRef<'_>,
    ) {
        let complete = inspect_result_type(result.as_str()).is_ok_and(|kind| kind == ResultType::Complete);
        let page = complete.then(|| listed(result)).flatten();
        let Some((_, next_cursor)) = page else {
            let relisting = state.asked.as_mut().and_then(|asked| asked.relisting.take());
            let error = relisting.map_or_else(not_listed, |relisting| CallError::Rpc(relisting.mismatch));
            return self.end_call(now, call, &state, Err(error));
        };
        drop(self.list_tools(result));
        let relisting = state.asked.as_ref().and_then(|asked| asked.relisting.as_ref());
        let pages = relisting.map_or(0, |relisting| relisting.pages);
        match next_cursor {
            Some(cursor) if pages < self.config.limits.max_relisted_pages => {
                self.relist(now, call, state, Some(cursor));
            }
            _ => self.resend(now, call, state),
        }
    }
}

fn not_listed() -> CallError {
    CallError::InvalidResult { reason: "the tools could not be listed".to_owned() }
}

/// The page with these tools alone.
fn without_dropped(result: RawRef<'_>, kept: &[RawRef<'_>]) -> Option<RawJson> {
    let kept = RawJson::from_serialize(kept).ok()?;
    result.with_members(&[("tools", Some(&kept))]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPEATED: &str = r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}"#;

    /// auth:LIM-14: below, at and above the limits of names and of tools.
    #[test]
    fn a_bounded_number_of_tools_with_names_of_bounded_length_is_remembered() {
        let headers = || ToolHeaders::from_schema(REPEATED).unwrap();
        let has = |table: &ToolTable, tool: &str| !table.params(tool, r#"{"a":"x"}"#).unwrap().is_empty();
        for (bytes, remembered) in [(7, true), (8, true), (9, false)] {
            let mut table = ToolTable::new(&Limits { max_name_bytes: 8, ..Limits::default() });
            let name = "n".repeat(bytes);
            table.learn(&name, headers());
            assert_eq!(has(&table, &name), remembered, "{bytes}");
        }
        let mut table = ToolTable::new(&Limits { max_tools_with_headers: 2, ..Limits::default() });
        ["a", "b", "c"].into_iter().for_each(|tool| table.learn(tool, headers()));
        assert_eq!(["a", "b", "c"].map(|tool| has(&table, tool)), [true, true, false]);
        // One that is known may change, and one that has no headers any more makes room.
        table.learn("a", ToolHeaders::default());
        table.learn("b", headers());
        table.learn("c", headers());
        assert_eq!(["a", "b", "c"].map(|tool| has(&table, tool)), [false, true, true]);
    }
}
