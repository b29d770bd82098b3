//! The server as a client meets it, over an in-memory pipe and over loopback.

mod http;
mod modern;
mod stdio;

use serde_json::{Value, json};

fn initialize(id: u64, capabilities: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "test", "version": "1"},
    }})
}

fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

fn request(id: u64, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method})
}

fn call(id: u64, name: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": name, "arguments": arguments, "_meta": {"progressToken": format!("token-{id}")},
    }})
}

fn answer(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn text_of(message: &Value) -> &str {
    message.pointer("/result/content/0/text").and_then(Value::as_str).unwrap_or("no text")
}
