//! What both servers say, and when they break off.

use serde_json::{Value, json};

/// Every so manieth tool call goes wrong.
const ONE_IN: u64 = 100;

/// A small generator: the same sequence in each run of one server, and no two alike.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound.max(1)
    }

    /// Whether this tool call goes wrong.
    pub(crate) fn fault(&mut self) -> bool {
        self.below(ONE_IN) == 0
    }
}

/// A message of the client, as far as the servers look at it.
#[derive(Debug)]
pub(crate) struct Asked {
    /// `None` for notifications.
    pub(crate) id: Option<Value>,
    /// `None` for answers.
    pub(crate) method: Option<String>,
    params: Value,
}

impl Asked {
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let mut message: Value = serde_json::from_slice(text).ok()?;
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        let id = message.get("id").cloned();
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        Some(Self { id, method, params })
    }

    pub(crate) fn is_tool_call(&self) -> bool {
        self.method.as_deref() == Some("tools/call")
    }

    fn argument(&self, name: &str) -> Option<u64> {
        self.params.get("arguments")?.get(name)?.as_u64()
    }

    /// The text of the right answer; `None` where there is nothing to answer.
    pub(crate) fn answer(&self) -> Option<String> {
        let id = self.id.as_ref()?;
        let result = match self.method.as_deref()? {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": { "listChanged": true }, "logging": {} },
                "serverInfo": { "name": "soak", "version": "1" },
            }),
            "tools/list" => {
                let tool =
                    |at: u32| json!({ "name": format!("tool-{at}"), "inputSchema": { "type": "object" } });
                json!({ "tools": (0..20).map(tool).collect::<Vec<_>>() })
            }
            "tools/call" => {
                let bytes = usize::try_from(self.argument("size").unwrap_or(0)).unwrap_or(0);
                json!({ "content": [{ "type": "text", "text": "x".repeat(bytes) }] })
            }
            _ => json!({}),
        };
        Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string())
    }

    /// An answer with an error object.
    pub(crate) fn refusal(&self) -> String {
        json!({ "jsonrpc": "2.0", "id": self.id, "error": { "code": -32603, "message": "out of order" } })
            .to_string()
    }

    /// An answer to somebody else.
    pub(crate) fn misdirected(&self) -> String {
        json!({ "jsonrpc": "2.0", "id": "nobody's", "result": { "content": [] } }).to_string()
    }

    /// Progress of this call, if it asked for any.
    pub(crate) fn progress(&self, at: u64) -> Option<String> {
        let token = self.params.get("_meta")?.get("progressToken")?;
        let params = json!({ "progressToken": token, "progress": at, "message": "on it" });
        Some(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }).to_string())
    }
}

/// A question of the server.
pub(crate) fn question(number: u64) -> String {
    let schema =
        json!({ "type": "object", "properties": { "name": { "type": "string", "default": "nobody" } } });
    let params = json!({ "message": "Who are you?", "requestedSchema": schema });
    let id = format!("question-{number}");
    json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params }).to_string()
}

pub(crate) const LIST_CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_one_call_in_a_hundred_goes_wrong() {
        let mut dice = Dice::new(7);
        let faults = (0..100_000).filter(|_| dice.fault()).count();
        assert!((700..1300).contains(&faults), "{faults}");
    }

    #[test]
    fn answers_have_the_id_of_their_request() {
        let asked = Asked::read(
            br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"size":3}}}"#,
        )
        .unwrap();
        assert!(asked.answer().unwrap().contains("xxx"));
        assert!(asked.answer().unwrap().contains("\"id\":7"));
        assert!(asked.progress(1).is_none());
        assert!(
            Asked::read(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
                .unwrap()
                .answer()
                .is_none()
        );
    }
}
