//! What the peer answers, right and wrong, by number.

use serde_json::{Value, json};

/// How many kinds there are.
pub(super) const KINDS: u8 = 26;

/// The one that says how long it stays fresh; those behind it are about tasks.
pub(super) const FRESH: u8 = 18;

/// An answer of this kind to the request with this id.
pub(super) fn answer(id: &Value, kind: u8) -> Value {
    let version = ["2025-11-25", "2025-03-26", "1999-01-01"][usize::from(kind) % 3];
    match kind {
        0..=2 => json!({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": version}}),
        3 => json!({"jsonrpc": "2.0", "id": id, "error": {"code": 7, "message": "no"}}),
        4 => json!({
            "jsonrpc": "2.0", "id": id,
            "error": {"code": -32602, "message": "no", "data": {"supported": ["2025-03-26"]}},
        }),
        6..=8 => {
            let versions = [json!(["2026-07-28"]), json!(["2025-11-25"]), json!([])];
            let data = json!({"supported": versions[usize::from(kind) - 6]});
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32022, "message": "no", "data": data}})
        }
        9 => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32020, "message": "no"}}),
        10 => json!({"jsonrpc": "2.0", "id": id, "result": {"supportedVersions": ["2026-07-28"]}}),
        11 => json!({"jsonrpc": "2.0", "id": id, "result": {"tools": [], "nextCursor": "x"}}),
        12..=15 => {
            let form = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
            let entries = [
                json!({}),
                json!({"a": {"method": "elicitation/create", "params": form}}),
                json!({
                    "a": {"method": "elicitation/create", "params": form},
                    "b": {"method": "sampling/createMessage", "params": {"messages": []}},
                    "c": {"method": "roots/list"},
                }),
                json!({"a": {"method": "roots/list"}}),
            ];
            let mut result = json!({"resultType": "input_required"});
            result["inputRequests"] = entries[usize::from(kind) - 12].clone();
            result["requestState"] = json!(format!("{id}"));
            json!({"jsonrpc": "2.0", "id": id, "result": result})
        }
        16 | 17 => {
            let entry =
                json!({"mode": "url", "message": "m", "elicitationId": "e", "url": "https://example.com/"});
            let second = if kind == 16 { entry.clone() } else { json!({"mode": "url", "message": "m"}) };
            let mut entries = vec![entry, second];
            entries.truncate(if kind == 16 { 1 } else { 2 });
            let error = json!({"code": -32042, "message": "first this", "data": {"elicitations": entries}});
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
        FRESH => {
            let result =
                json!({"resultType": "complete", "tools": [], "ttlMs": 30_000, "cacheScope": "private"});
            json!({"jsonrpc": "2.0", "id": id, "result": result})
        }
        19..KINDS => json!({"jsonrpc": "2.0", "id": id, "result": about_task(kind - 19)}),
        _ => json!({"jsonrpc": "2.0", "error": {"code": 7, "message": "no"}}),
    }
}

/// A task as one of the two eras writes it, or as both do; there is only one, whoever asks.
fn about_task(kind: u8) -> Value {
    let task = |status: &str| {
        json!({
            "taskId": "t", "status": status, "createdAt": "", "lastUpdatedAt": "", "ttl": 40_000, "ttlMs": 40_000,
            "pollInterval": 2000, "pollIntervalMs": 2000,
        })
    };
    let with = |status: &str, key: &str, value: Value| {
        let mut task = task(status);
        task["resultType"] = json!("complete");
        task[key] = value;
        task
    };
    let form = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    let form = json!({"method": "elicitation/create", "params": form});
    match kind {
        0 => {
            let mut created = with("working", "task", task("working"));
            created["resultType"] = json!("task");
            created
        }
        1 => with("working", "statusMessage", json!("half way")),
        2 => with("input_required", "inputRequests", json!({"a": form, "r": {"method": "roots/list"}})),
        3 => with("input_required", "inputRequests", json!({"a": form, "b": form, "c": form})),
        4 => with("completed", "result", json!({"content": []})),
        5 => with("failed", "error", json!({"code": 1, "message": "no"})),
        _ => with("cancelled", "statusMessage", json!("enough")),
    }
}

/// A notice about the task, of the later era and of the earlier one.
pub(super) fn task_notice(method: &str) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": about_task(4)}).to_string()
}
