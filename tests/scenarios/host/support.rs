//! Servers that a test plays itself, as often as the host connects to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_client::host::{Connector, Generation, Host, HostEvent, HostEvents, ReconnectPolicy, ServerState};
use mcp_client::{Client, Error};
use serde_json::{Value, json};
use tokio::sync::mpsc;

pub(crate) use crate::client::peer::SECOND;
use crate::client::peer::{Peer, builder, empty_form, pipe};
use crate::elicitation::support::ask;

/// The far ends of the connections to one server.
pub(crate) struct Plug(mpsc::UnboundedReceiver<Peer>);

impl Plug {
    /// The far end of the next connection.
    pub(crate) async fn peer(&mut self) -> Peer {
        self.0.recv().await.unwrap()
    }

    /// Whether nobody connected since.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.0.try_recv().is_err()
    }

    /// The next connection, after its handshake.
    pub(crate) async fn ready(&mut self) -> Peer {
        let mut peer = self.peer().await;
        peer.handshake(everything()).await;
        peer
    }
}

/// What the scripted servers declare.
pub(crate) fn everything() -> Value {
    json!({ "tools": {}, "prompts": {}, "logging": {}, "resources": { "subscribe": true } })
}

/// A server that is a pipe.
pub(crate) fn plug() -> (Connector, Plug) {
    let (plugged, peers) = mpsc::unbounded_channel();
    let connector = Connector::new(move || {
        let (connection, peer) = pipe(1 << 20);
        let taken = plugged.send(peer).is_ok();
        std::future::ready(if taken { Ok(connection) } else { Err("nobody plays this server".into()) })
    });
    (connector, Plug(peers))
}

pub(crate) fn host() -> Host {
    Host::new(builder())
}

/// A host that connects again by itself.
pub(crate) fn host_with(policy: ReconnectPolicy) -> Host {
    Host::builder(builder()).reconnect(policy).build()
}

/// Connects a server of this name and plays its handshake.
pub(crate) async fn connected(host: &Host, name: &str) -> (Client, Plug, Peer) {
    let (connector, mut plug) = plug();
    let (client, peer) = tokio::join!(host.connect(name, connector), plug.ready());
    (client.unwrap(), plug, peer)
}

/// Connects it anew and plays its handshake.
pub(crate) async fn reconnected(host: &Host, name: &str, plug: &mut Plug) -> (Client, Peer) {
    let (client, peer) = tokio::join!(host.reconnect(name), plug.ready());
    (client.unwrap(), peer)
}

/// What happened so far, in short form.
pub(crate) async fn happened(events: &mut HostEvents) -> Vec<String> {
    let mut happened = Vec::new();
    while let Ok(Some(event)) = tokio::time::timeout(Duration::ZERO, events.next()).await {
        happened.push(match event {
            HostEvent::Client { server, generation, event } => {
                let event = format!("{event:?}");
                let kind = event.split([' ', '(', '{']).next().unwrap();
                format!("{server} {generation} {kind}")
            }
            HostEvent::Missed { events } => format!("missed {events}"),
            HostEvent::NotRestored { server, generation, desired, error } => {
                format!("{server} {generation} without {desired:?}: {}", kind(&error))
            }
            HostEvent::State { server, generation, state, next_attempt, .. } => {
                let next = next_attempt.map_or("", |_| ", to be tried again");
                format!("{server} {generation} {state}{next}")
            }
            HostEvent::SubscriptionEnded { server, generation, error } => {
                let how = error.as_ref().map_or("on purpose", kind);
                format!("{server} {generation} subscription ended: {how}")
            }
            other => panic!("{other:?}"),
        });
    }
    happened
}

pub(crate) fn kind(error: &Error) -> &'static str {
    error.kind().as_str()
}

/// The kind of the error.
pub(crate) fn failed<T: std::fmt::Debug>(outcome: Result<T, Error>) -> &'static str {
    kind(&outcome.unwrap_err())
}

/// The state of a server, and the kind of its last error.
pub(crate) fn state(host: &Host, name: &str) -> (&'static str, Option<&'static str>) {
    let status = host.server(name).unwrap();
    (status.state.as_str(), status.last_error.as_ref().map(kind))
}

pub(crate) fn notice(method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": method })
}

pub(crate) fn question(id: u64) -> Value {
    ask(id, empty_form())
}

/// Checks that what is told of each server follows the picture of a connection's life, in the module's documentation.
#[derive(Default)]
pub(crate) struct Life(BTreeMap<Arc<str>, (Generation, ServerState)>);

impl Life {
    pub(crate) fn goes_on(&mut self, event: &HostEvent) {
        match event {
            HostEvent::State { server, generation, state, error, next_attempt, given_up, .. } => {
                let was = self.0.insert(Arc::clone(server), (*generation, *state));
                assert!(follows(was, (*generation, *state)), "{server} {was:?} {generation} {state}");
                assert!(error.is_some() || *state != ServerState::Failed);
                let told =
                    [next_attempt.is_some(), given_up.is_some()].into_iter().filter(|told| *told).count();
                assert_eq!(told, usize::from(*state == ServerState::Failed), "{next_attempt:?} {given_up:?}");
            }
            HostEvent::Client { server, generation, .. } => {
                let (newest, state) = self.0[server];
                assert_eq!(newest, *generation, "{event:?}");
                assert!(!matches!(state, ServerState::Disconnected | ServerState::Failed), "{event:?}");
            }
            _ => {}
        }
    }
}

fn follows(was: Option<(Generation, ServerState)>, (generation, state): (Generation, ServerState)) -> bool {
    use ServerState as S;
    let Some((before, was)) = was else { return state == S::Connecting };
    if state == S::Connecting {
        return generation > before && matches!(was, S::Disconnected | S::Failed);
    }
    let is_next = match was {
        S::Connecting => matches!(state, S::Connected | S::Failed | S::Disconnected | S::Closing),
        S::Connected => matches!(state, S::Failed | S::Closing | S::Disconnected),
        S::Closing | S::Failed => state == S::Disconnected,
        _ => false,
    };
    is_next && generation == before
}
