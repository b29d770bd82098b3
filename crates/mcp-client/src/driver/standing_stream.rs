//! The standing stream of a session, on which a legacy server says what belongs to no call.
//!
//! ```text
//!              ┌── refused as of a lost session: ask, which renews it ──┐
//!              ▼                                                        │
//!   Opening ──────> Reading ──lost──> Waiting ──────────────────────────┴──> Opening
//!      │ none                            │ too often in a row
//!      └────────────> Deaf <─────────────┘         Deaf, or any other: a new session ──> Opening
//!                      └──where it was lost, a minute later: the server answers a call ──> Opening
//! ```
//!
//! A broken stream is opened again by the transport, with what it needs to miss nothing. What comes here is a stream that is lost
//! all the same: whoever listens hears that, it is opened anew, and whoever listens hears that something may have been missed. While
//! nothing can be heard subscriptions that stood end, and later ones are granted nothing.

use std::future::pending;
use std::sync::{Arc, Weak};
use std::time::Duration;

use mcp_proto::{CallId, Diagnostic, DiagnosticKind, Origin};
use mcp_transport::http::HttpConnection;
use mcp_transport::{ErrorKind, Received};
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;

use super::hearing::Heard;
use super::http::HttpLink;
use super::seeking::Sought;
use super::slot::Slot;
use super::subscribing::{AbortOnDrop, Schedule};
use super::{Driver, Link, Writes, now};
use crate::error::Error;
use crate::event::ClientEvent;
use crate::spawning::spawn;

/// How long a new connection waits for its standing stream. A server may say something right after the handshake, and
/// one that has no stream to say it on may lose it. A server that answers the GET only with its first message costs
/// each connection this wait.
const STREAM_WAIT: Duration = Duration::from_millis(250);

/// How long a stream that was given up is left alone before an answer of the server is a reason to try once more.
const REST: Duration = Duration::from_secs(60);

/// Starts the task that reads the standing stream, if the server has one, and gives it a moment to be there.
pub(crate) async fn spawn_stream_reader(driver: &Arc<Driver>, link: &HttpLink) -> AbortHandle {
    let (opened, is_open) = oneshot::channel();
    let reader = Reader {
        driver: Arc::downgrade(driver),
        connection: link.connection.clone(),
        opened: Some(opened),
        schedule: Schedule::new(driver.limits().max_resubscriptions),
        lost: None,
        is_interrupted: false,
        has_stood: false,
        has_asked: false,
    };
    let reader = spawn(&driver.runtime, reader.run(Arc::clone(&driver.renewals)));
    // Until it is in the caller's hands: whoever connects may be dropped meanwhile.
    let mut unless_opened = AbortOnDrop(Some(reader.clone()));
    let _ = tokio::time::timeout(STREAM_WAIT, is_open).await;
    unless_opened.0 = None;
    reader
}

struct Reader {
    driver: Weak<Driver>,
    connection: HttpConnection,
    /// Told when it is known whether there is a stream.
    opened: Option<oneshot::Sender<()>>,
    /// Holds over sessions: a server that loses each of them is not asked for a stream for ever.
    schedule: Schedule,
    /// Why the newest stream of the session was lost: something may have been said that nobody heard.
    lost: Option<mcp_transport::Error>,
    /// Whoever listens was told that there is no stream at the moment.
    is_interrupted: bool,
    /// There was a stream, be it in an earlier session.
    has_stood: bool,
    /// It has asked for a new session since there was a stream.
    has_asked: bool,
}

/// How the reading of a stream ended.
enum Ended {
    /// The connection is gone.
    Over,
    /// The server has no such stream.
    Absent,
    Lost(mcp_transport::Error),
}

impl Reader {
    async fn run(mut self, renewals: Arc<Notify>) {
        loop {
            // A new session has a stream of its own, whether or not the server has ended that of the old one. Boxed, as most of
            // what it needs is of no use to a server that has no such stream.
            let ended = tokio::select! {
                biased;
                () = renewals.notified() => {
                    self.begin_anew();
                    continue;
                }
                ended = Box::pin(self.read()) => ended,
            };
            // Whoever waits for it waits in vain.
            drop(self.opened.take());
            let (error, is_session) = match ended {
                Ended::Over => return,
                // There was one before, so that it may be the session that there is none of.
                Ended::Absent => (self.lost.take(), true),
                Ended::Lost(error) => {
                    let is_session = error.kind() == ErrorKind::SessionLost;
                    (Some(error), is_session)
                }
            };
            self.lost = error;
            self.tell_interruption();
            tokio::select! {
                biased;
                () = renewals.notified() => self.begin_anew(),
                goes_on = self.prepare(is_session) => if !goes_on {
                    let Some(driver) = self.driver.upgrade() else { return };
                    driver.fall_deaf(self.lost.take(), self.has_stood);
                    drop(driver);
                    tokio::select! {
                        biased;
                        // A new session may have one.
                        () = renewals.notified() => self.begin_anew(),
                        () = self.rest() => {}
                    }
                },
            }
        }
    }

    /// There is a new session, which is told by itself.
    fn begin_anew(&mut self) {
        (self.lost, self.is_interrupted, self.has_asked) = (None, false, false);
        if let Some(driver) = self.driver.upgrade()
            && driver.hearing.current() == Heard::Interrupted
        {
            driver.hearing.set(Heard::Yes);
        }
    }

    /// Tells once that the stream was lost, if it was.
    fn tell_interruption(&mut self) {
        if self.lost.is_none() || std::mem::replace(&mut self.is_interrupted, true) {
            return;
        }
        if let Some(driver) = self.driver.upgrade() {
            driver.hearing.set(Heard::Interrupted);
            driver.emit(ClientEvent::SubscriptionInterrupted);
        }
    }

    /// Waits until a server that had a stream may have one again. One that answers calls as ever and opens no stream is asked for it
    /// once a minute.
    async fn rest(&self) {
        if !self.is_interrupted {
            return pending().await;
        }
        tokio::time::sleep(REST).await;
        let Some(driver) = self.driver.upgrade() else { return };
        let hearing = Arc::clone(&driver.hearing);
        // What waits here must not keep the connection.
        drop(driver);
        hearing.sign().await;
    }

    /// Waits until it is worth while to open a stream in place of the lost one. `false`: it is not.
    async fn prepare(&mut self, is_session: bool) -> bool {
        let Some(error) = &self.lost else { return false };
        // Calls that are refused for these reasons say so themselves.
        if matches!(error.kind(), ErrorKind::Misuse | ErrorKind::Tls(_) | ErrorKind::Unauthorized) {
            return false;
        }
        let Some(wait) = self.next_wait(is_session) else { return false };
        tokio::time::sleep(wait).await;
        if !is_session {
            return true;
        }
        if self.has_asked {
            // It knows the session, and has no stream for it.
            return false;
        }
        self.has_asked = true;
        let mut has_waited = false;
        let is_sought = loop {
            let Some(driver) = self.driver.upgrade() else { return false };
            let Link::Http(link) = driver.link() else { return false };
            // Others that ask again and again, and in vain, hold it up once.
            let begun = link.seeking.begin(now());
            let Some(wait) = begun.err().filter(|_| !std::mem::replace(&mut has_waited, true)) else {
                // By a task of its own: its call goes on in the new session, which ends the waiting here.
                let seeking = Arc::clone(&driver);
                let (sought, is_sought) = oneshot::channel();
                spawn(&driver.runtime, async move {
                    // Nobody waits any more where there is a new session.
                    let _ = sought.send(seeking.seek_session().await);
                });
                break is_sought;
            };
            drop(driver);
            // Somebody else is at it, and what that brings ends the waiting here; or it was done a moment ago.
            tokio::time::sleep(wait).await;
        };
        let sought = is_sought.await.unwrap_or(Sought::None);
        // Where there was no room the stream is tried once more, and that asks again.
        self.has_asked = sought != Sought::NoRoom;
        sought != Sought::None
    }

    /// How long to wait before it is opened again; `None`: it is not. After a stream that stood there is no reason to wait for the
    /// new session.
    fn next_wait(&mut self, is_session: bool) -> Option<Duration> {
        let is_first = self.schedule.is_fresh();
        let wait = self.schedule.next_wait()?;
        Some(if is_session && is_first { Duration::ZERO } else { wait })
    }

    /// Reads the standing stream of one session to its end.
    async fn read(&mut self) -> Ended {
        let Some(head) = self.driver.upgrade().map(|driver| driver.head()) else { return Ended::Over };
        let mut stream = match self.connection.open_stream(head).await {
            Ok(Some(stream)) => stream,
            Ok(None) => return Ended::Absent,
            Err(error) => return Ended::Lost(error),
        };
        let begun = now();
        if let Some(driver) = self.driver.upgrade() {
            driver.hearing.set(Heard::Yes);
            (self.lost, self.has_asked, self.has_stood) = (None, false, true);
            if std::mem::take(&mut self.is_interrupted) {
                driver.emit(ClientEvent::SubscriptionRestored);
            }
        }
        if let Some(opened) = self.opened.take() {
            // Nobody waits any more if that took too long.
            let _ = opened.send(());
        }
        let error = loop {
            let received = stream.next().await;
            let Some(driver) = self.driver.upgrade() else { return Ended::Over };
            match received {
                Ok(Some(Received::Gap)) => driver.emit(ClientEvent::SubscriptionRestored),
                Ok(Some(received)) => driver.handle(Origin::Channel, received),
                Ok(None) => return Ended::Absent,
                Err(error) => break error,
            }
            driver.background_room().await;
        };
        self.schedule.stood(now().saturating_duration_since(begun));
        Ended::Lost(error)
    }
}

impl Driver {
    /// Nothing that belongs to no call is heard any more: what stands on that ends. Where the stream was lost, by that error; where a
    /// new session has none, as by the server. What began when that was so already was granted nothing, and goes on; what waits to be
    /// granted anything will be, too.
    fn fall_deaf(self: &Arc<Self>, error: Option<mcp_transport::Error>, has_stood: bool) {
        let before = self.hearing.set(Heard::No);
        if before == Heard::No || error.is_none() && !has_stood {
            return;
        }
        self.change(Writes::Later, |state, outbox, now| {
            let has_stood = |call: &CallId| state.slots.get(call).is_none_or(Slot::has_stood);
            let standing: Vec<CallId> = state.core.subscriptions().filter(has_stood).collect();
            for call in standing {
                if let Some(slot) = state.slots.get_mut(&call) {
                    outbox.wake(match &error {
                        Some(error) => slot.fail(Error::transport_failed(error.clone())),
                        None => slot.finish(),
                    });
                }
                state.core.cancel(now, call, None);
            }
            let why = error.map_or_else(|| "the new session has none".to_owned(), |error| error.to_string());
            let lost = format!("the stream for messages outside of calls is lost: {why}");
            state.core.report(Diagnostic::new(DiagnosticKind::StreamLost, lost));
        });
    }
}
