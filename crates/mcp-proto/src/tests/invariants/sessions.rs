//! Subscriptions, and sessions that the server loses.

use mcp_model::SubscriptionFilter;
use serde_json::{Value, json};

use super::{CAPABILITIES, Model};
use crate::call::CallKind;
use crate::{CallOptions, Origin};

const WANTED: [&[&str]; 4] = [&[], &["a:1"], &["a:1", "a:2"], &["a:2"]];

impl Model {
    pub(super) fn listen(&mut self, kind: usize) {
        let mut wanted = SubscriptionFilter::new();
        wanted.tools_list_changed = Some(true);
        let uris = WANTED[kind % WANTED.len()].iter().map(|uri| (*uri).to_owned()).collect();
        wanted.resource_subscriptions = Some(uris);
        if let Ok(call) = self.core.listen(self.now, &wanted, &CallOptions::default()) {
            self.ledger.made(call);
        }
    }

    /// Something outside of any call wants to know whether there is a session.
    pub(super) fn seek(&mut self) {
        if let Ok(call) = self.core.seek_session(self.now) {
            self.ledger.made(call);
        }
    }

    /// The handshake for a new session comes to its end.
    pub(super) fn renew(&mut self) {
        let handshake = self.core.calls.values().find(|state| state.kind == CallKind::Renew);
        if let Some(id) = handshake.and_then(|state| state.request()).map(|request| request.id.clone()) {
            let capabilities: Value = serde_json::from_str(CAPABILITIES).unwrap();
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities});
            self.peer(Origin::Channel, &json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
        }
        self.deliver();
    }

    /// What nobody listens to is not subscribed to, in whatever session.
    pub(super) fn check_subscribed(&self, message: &Value) {
        if message["method"] == "resources/subscribe" && !self.late {
            let listening = self.core.calls.values().filter_map(|state| state.listening());
            let uri = message["params"]["uri"].as_str().unwrap();
            assert!(listening.into_iter().any(|listening| listening.wants(uri)), "{uri} that nobody wants");
        }
    }
}
