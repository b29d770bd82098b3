//! What both servers say in both eras, and when they break off.

use serde_json::{Value, json};

/// Every so manieth tool call goes wrong.
const ONE_IN: u64 = 100;

/// Every so manieth tool call asks something first, in the modern era.
const ASKS_ONE_IN: u64 = 20;

const MODERN: &str = "2026-07-28";

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

    pub(crate) fn is(&self, method: &str) -> bool {
        self.method.as_deref() == Some(method)
    }

    pub(crate) fn is_tool_call(&self) -> bool {
        self.is("tools/call")
    }

    /// Whether it has taken back the request with this id.
    pub(crate) fn cancels(&self, id: &Value) -> bool {
        self.is("notifications/cancelled") && self.params.get("requestId") == Some(id)
    }

    fn is_modern(&self) -> bool {
        let version = || self.params.get("_meta")?.get("io.modelcontextprotocol/protocolVersion")?.as_str();
        version() == Some(MODERN)
    }

    fn argument(&self, name: &str) -> Option<u64> {
        self.params.get("arguments")?.get(name)?.as_u64()
    }

    /// The text of the right answer; `None` where there is nothing to answer, or the answer is a stream.
    pub(crate) fn answer(&self, dice: &mut Dice) -> Option<String> {
        let id = self.id.as_ref()?;
        let capabilities = json!({ "tools": { "listChanged": true }, "logging": {} });
        let mut result = match self.method.as_deref()? {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "serverInfo": { "name": "soak", "version": "1" },
            }),
            "server/discover" => json!({
                "supportedVersions": [MODERN], "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private",
            }),
            "subscriptions/listen" => return None,
            "tools/list" => {
                let tool =
                    |at: u32| json!({ "name": format!("tool-{at}"), "inputSchema": { "type": "object" } });
                json!({ "tools": (0..20).map(tool).collect::<Vec<_>>() })
            }
            "tools/call" => match self.round(dice) {
                Ok(result) => result,
                Err(why) => return Some(self.error(-32602, why)),
            },
            _ => json!({}),
        };
        if let Some(members) = result.as_object_mut().filter(|_| self.is_modern()) {
            members.entry("resultType").or_insert_with(|| json!("complete"));
        }
        Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string())
    }

    /// What a tool call comes to: its content, or a question where it is the first request of a modern one; why it is refused where
    /// what it brings is not the answer to that question.
    fn round(&self, dice: &mut Dice) -> Result<Value, &'static str> {
        let bytes = usize::try_from(self.argument("size").unwrap_or(0)).unwrap_or(0);
        let content = json!([{ "type": "text", "text": "x".repeat(bytes) }]);
        let state = format!("{bytes} bytes");
        match (self.params.get("inputResponses"), self.params.get("requestState")) {
            (None, None) if self.is_modern() && dice.below(ASKS_ONE_IN) == 0 => {
                let asked = json!({ "who": { "method": "elicitation/create", "params": who() } });
                Ok(json!({ "resultType": "input_required", "inputRequests": asked, "requestState": state }))
            }
            (None, None) => Ok(json!({ "content": content })),
            (Some(responses), Some(echoed)) => {
                if *echoed != json!(state) {
                    return Err("another state than the one of this call");
                }
                if *responses != json!({ "who": { "action": "accept", "content": { "name": "nobody" } } }) {
                    return Err("no answer to the question");
                }
                // What tells the client's side that the call was asked.
                Ok(json!({ "content": content, "structuredContent": { "asked": true } }))
            }
            _ => Err("a response or a state alone"),
        }
    }

    fn error(&self, code: i64, message: &str) -> String {
        json!({ "jsonrpc": "2.0", "id": self.id, "error": { "code": code, "message": message } }).to_string()
    }

    /// An answer with an error object.
    pub(crate) fn refusal(&self) -> String {
        self.error(-32603, "out of order")
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

    /// What is said in the middle of a call now and then: something that changed, or, in the legacy era, a question.
    pub(crate) fn aside(&self, dice: &mut Dice, number: u64) -> Option<String> {
        match dice.below(50) {
            _ if self.is_modern() => None,
            0 => Some(question(number)),
            1 => Some(list_changed(None)),
            _ => None,
        }
    }

    /// The first word of a subscription: what is granted, which is what was asked for.
    pub(crate) fn granted(&self) -> String {
        let wanted = self.params.get("notifications");
        let params = json!({ "notifications": wanted, "_meta": { SUBSCRIPTION: self.id } });
        let method = "notifications/subscriptions/acknowledged";
        json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
    }

    /// The last word of a subscription that the server ends.
    pub(crate) fn ended(&self) -> String {
        json!({ "jsonrpc": "2.0", "id": self.id, "result": { "resultType": "complete" } }).to_string()
    }
}

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A form that an answer with all defaults fits.
fn who() -> Value {
    let schema =
        json!({ "type": "object", "properties": { "name": { "type": "string", "default": "nobody" } } });
    json!({ "message": "Who are you?", "requestedSchema": schema })
}

/// A question of the server, as the legacy era puts it.
fn question(number: u64) -> String {
    let id = format!("question-{number}");
    json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": who() }).to_string()
}

/// The notice that the tools changed; in the modern era for the subscription with this id.
pub(crate) fn list_changed(subscription: Option<&Value>) -> String {
    let method = "notifications/tools/list_changed";
    match subscription {
        Some(id) => {
            json!({ "jsonrpc": "2.0", "method": method, "params": { "_meta": { SUBSCRIPTION: id } } })
                .to_string()
        }
        None => json!({ "jsonrpc": "2.0", "method": method }).to_string(),
    }
}

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
        let mut dice = Dice::new(7);
        let asked = Asked::read(
            br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"size":3}}}"#,
        )
        .unwrap();
        assert!(asked.answer(&mut dice).unwrap().contains("xxx"));
        assert!(asked.answer(&mut dice).unwrap().contains("\"id\":7"));
        assert!(asked.progress(1).is_none());
        let notice = Asked::read(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).unwrap();
        assert!(notice.answer(&mut dice).is_none());
    }

    /// A modern call with these members beside what each has.
    fn called(more: Value) -> Asked {
        let mut params = json!({
            "arguments": { "size": 3 }, "_meta": { "io.modelcontextprotocol/protocolVersion": MODERN },
        });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
        Asked::read(call.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn some_modern_calls_ask_and_all_are_answered_in_the_next_round() {
        let mut dice = Dice::new(7);
        let answer = |dice: &mut Dice, more: &Value| -> Value {
            serde_json::from_str(&called(more.clone()).answer(dice).unwrap()).unwrap()
        };
        let first: Vec<Value> = (0..1000).map(|_| answer(&mut dice, &json!({}))).collect();
        let asks = |answer: &&Value| answer["result"]["resultType"] == "input_required";
        let asked = first.iter().filter(asks).count();
        assert!((20..100).contains(&asked), "{asked}");
        let state = first.iter().find(asks).unwrap()["result"]["requestState"].clone();

        let accepted = json!({ "who": { "action": "accept", "content": { "name": "nobody" } } });
        let right = json!({ "inputResponses": accepted, "requestState": state });
        assert_eq!(answer(&mut dice, &right)["result"]["structuredContent"]["asked"], true);
        for wrong in [
            json!({ "inputResponses": accepted }),
            json!({ "requestState": state }),
            json!({ "inputResponses": accepted, "requestState": "4 bytes" }),
            json!({ "inputResponses": { "who": { "action": "cancel" } }, "requestState": state }),
        ] {
            assert_eq!(answer(&mut dice, &wrong)["error"]["code"], -32602, "{wrong}");
        }
    }
}
