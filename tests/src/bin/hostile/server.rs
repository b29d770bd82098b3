//! What both peers share: what a message of the client is, what its right answer is, and which rule it meets.

use serde_json::{Value, json};

use crate::behaviour::{Act, On, Rule, Speaks};

/// The name of the tool that the behaviour is aimed at, and of the one that is called at the same time.
pub(crate) const AIMED: &str = "aimed";
pub(crate) const OTHER: &str = "other";

/// What a modern server says on a subscription: that it stands, and what it is for.
pub(crate) const GRANT: &str = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:b"]},"_meta":{"io.modelcontextprotocol/subscriptionId":$ID}}}"#;
pub(crate) const CHANGE: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$ID}}}"#;

/// A message of the client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) on: Option<On>,
    /// The id as JSON text; empty for a notification.
    pub(crate) id: String,
    /// The progress token as JSON text.
    pub(crate) token: String,
    /// The call that runs beside the aimed one: its answer is held back until the fault has happened.
    pub(crate) is_other: bool,
    /// It answers a question of the server.
    pub(crate) is_response: bool,
    result: String,
}

/// The ids of the calls under way, as JSON text; empty where there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    pub(crate) aimed: String,
    pub(crate) other: String,
}

impl Asked {
    pub(crate) fn read(speaks: Speaks, text: &[u8]) -> Self {
        let Ok(message) = serde_json::from_slice::<Value>(text) else { return Self::default() };
        let text = |value: Option<&Value>| value.map(Value::to_string).unwrap_or_default();
        let params = message.get("params");
        let method = message.get("method").and_then(Value::as_str);
        let tool = params.and_then(|params| params.get("name")).and_then(Value::as_str);
        let (on, result) = match (method, tool) {
            (None, _) => (Some(On::Answer), Value::Null),
            (Some("server/discover"), _) if speaks == Speaks::Modern => {
                (Some(On::Discover), discover_result())
            }
            (Some("server/discover"), _) => (Some(On::Discover), json!({})),
            (Some("subscriptions/listen"), _) => (Some(On::Listen), Value::Null),
            (Some("initialize"), _) => (Some(On::Initialize), initialize_result()),
            (Some("notifications/initialized"), _) => (Some(On::Initialized), Value::Null),
            (Some("notifications/cancelled"), _) => (Some(On::Cancelled), Value::Null),
            (Some("tools/list"), _) => (Some(On::List), list_result()),
            (Some("tools/call"), Some(AIMED)) if is_retry(params) => (Some(On::Retry), call_result()),
            (Some("tools/call"), Some(AIMED)) => (Some(On::Call), call_result()),
            (Some("tools/call"), _) => (None, call_result()),
            (Some(_), _) => (None, json!({})),
        };
        let result = match (speaks, result) {
            (Speaks::Modern, Value::Object(mut members)) => {
                members.entry("resultType").or_insert_with(|| "complete".into());
                Value::Object(members)
            }
            (_, result) => result,
        };
        Self {
            on,
            id: text(message.get("id")),
            token: text(params.and_then(|params| params.pointer("/_meta/progressToken"))),
            is_other: tool == Some(OTHER),
            is_response: method.is_none(),
            result: result.to_string(),
        }
    }

    /// A request without a message in it.
    pub(crate) fn bare(on: On) -> Self {
        Self { on: Some(on), ..Self::default() }
    }

    /// The right answer; empty where none is due.
    pub(crate) fn answer(&self) -> String {
        if self.id.is_empty() || self.is_response || self.on == Some(On::Listen) {
            return String::new();
        }
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{}}}"#, self.id, self.result)
    }

    /// A template with what is known in it: `$ID` and `$TOKEN` of this message as they came, `$RESULT` for the right result,
    /// `$CALL` and `$OTHER` for the ids of the two calls.
    pub(crate) fn fill(&self, template: &[u8], calls: &Calls) -> Vec<u8> {
        let names: [(&[u8], &str); 5] = [
            (b"$ID", &self.id),
            (b"$TOKEN", &self.token),
            (b"$RESULT", &self.result),
            (b"$CALL", &calls.aimed),
            (b"$OTHER", &calls.other),
        ];
        let mut filled = Vec::with_capacity(template.len());
        let mut rest = template;
        while let Some(at) = rest.iter().position(|byte| *byte == b'$') {
            let (before, name) = rest.split_at(at);
            filled.extend_from_slice(before);
            let known = names.iter().find_map(|(known, value)| Some((name.strip_prefix(*known)?, *value)));
            let (behind, value) = known.unwrap_or((name.get(1..).unwrap_or_default(), "$"));
            filled.extend_from_slice(if value.is_empty() { "null" } else { value }.as_bytes());
            rest = behind;
        }
        filled.extend_from_slice(rest);
        filled
    }
}

fn is_retry(params: Option<&Value>) -> bool {
    let has = |name| params.is_some_and(|params| params.get(name).is_some());
    has("requestState") || has("inputResponses")
}

fn discover_result() -> Value {
    json!({
        "supportedVersions": ["2026-07-28"],
        "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true }, "logging": {} },
        "ttlMs": 0,
        "cacheScope": "private",
    })
}

fn initialize_result() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "tools": {}, "logging": {} },
        "serverInfo": { "name": "hostile", "version": "1" },
    })
}

fn list_result() -> Value {
    json!({ "tools": [{ "name": AIMED, "inputSchema": { "type": "object" } }] })
}

fn call_result() -> Value {
    json!({ "content": [{ "type": "text", "text": "done" }] })
}

/// Whether the answer to the other call is held back until the fault has happened.
pub(crate) fn holds(rules: &[Rule]) -> bool {
    rules.iter().any(|rule| is_aimed(rule.on))
}

/// Whether the other call waits for what happens to this message.
pub(crate) const fn is_aimed(on: On) -> bool {
    matches!(on, On::Call | On::List | On::Listen)
}

/// The acts of the first rule for this message that still counts, and which one that is.
pub(crate) fn meet(rules: &mut [Rule], on: Option<On>) -> Option<(usize, Vec<Act>)> {
    let on = on?;
    let at = rules.iter().position(|rule| rule.on == on && rule.times > 0)?;
    let rule = rules.get_mut(at)?;
    rule.times = rule.times.saturating_sub(1);
    Some((at, rule.acts.clone()))
}
