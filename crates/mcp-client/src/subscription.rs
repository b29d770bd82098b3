//! Subscriptions to changes.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mcp_model::{SubscriptionFilter, methods};
use mcp_proto::ListKind;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::client::Client;
use crate::driver::OwnStream;
use crate::error::Error;
use crate::event::{ClientEvent, Happened};
use crate::event_queue::Listener;

/// A subscription to changes of the server's lists and resources.
///
/// It uses `subscriptions/listen`, or `resources/subscribe` and the change notifications of a legacy server. It keeps the
/// connection open. If its stream is lost, it is requested again, followed by [`Change::Restored`]. The same holds for the GET
/// stream on which a legacy server over HTTP reports changes; if that does not come back, the subscription ends with the error
/// of the stream. Dropping a subscription ends it at the server too.
pub struct Subscription {
    client: Client,
    events: Listener<Happened>,
    wanted: SubscriptionFilter,
    granted: SubscriptionFilter,
    ended: Option<oneshot::Receiver<Result<(), Error>>>,
    stream: Arc<OwnStream>,
    /// What was told last of whether it is interrupted.
    is_interrupted: bool,
    /// Whether that is out of date is not known from the events: it has just begun, or missed some.
    is_unsure: bool,
    task: AbortHandle,
}

/// What a [`Subscription`] reports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The stream on which the server reports changes was lost and will be opened again: no changes are reported until
    /// [`Restored`](Self::Restored) or the end of the subscription. Also the first change of a subscription that begins while
    /// this is so. This takes up to about four minutes (the default of
    /// [`Limits::max_resubscriptions`](crate::Limits::max_resubscriptions)), and the time that each attempt takes, if the server is down
    /// or loses one session after another. Interruptions that the transport repairs by itself are not reported.
    Interrupted,
    /// This list changed.
    List(ListKind),
    /// This listener was too slow and missed some events; read again what matters.
    Missed {
        /// How many events of the connection it missed.
        events: u64,
    },
    /// A subscribed resource, or a part of one, changed.
    Resource {
        /// Its URI, as the server wrote it.
        uri: String,
    },
    /// The subscription was interrupted and is active again. Changes in between were not reported, and it is not known which: every
    /// list and resource subscribed to may have changed, so read again what matters. It follows each
    /// [`Interrupted`](Self::Interrupted) that the end of the subscription did not end before, and comes alone with a new session and
    /// after an interruption that the transport repaired by itself where the server cannot say what was missed.
    Restored,
}

impl Client {
    /// Subscribes to changes, and waits until the server has granted the subscription. Dropping the future ends it.
    ///
    /// While a legacy server over HTTP has not said whether its session has a stream to report changes on, this waits for that too, up
    /// to 250 ms from the beginning of the session. After that the subscription counts as granted, and ends if there is none.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::ErrorKind::Misuse) if a legacy server has no resource subscriptions,
    /// [`LimitExceeded`](crate::ErrorKind::LimitExceeded) if too many calls are in flight, [`Rpc`](crate::ErrorKind::Rpc) if
    /// the server refuses, [`Timeout`](crate::ErrorKind::Timeout) if it does not answer within the client's `request_timeout`,
    /// [`PeerMisbehaved`](crate::ErrorKind::PeerMisbehaved) if it ends the subscription before granting it,
    /// [`Transport`](crate::ErrorKind::Transport), [`Tls`](crate::ErrorKind::Tls) and
    /// [`Unauthorized`](crate::ErrorKind::Unauthorized) if the request fails on its way, [`Closed`](crate::ErrorKind::Closed)
    /// if the connection has ended, and [`Cancelled`](crate::ErrorKind::Cancelled) if the runtime shuts down meanwhile.
    pub async fn subscription(&self, wanted: SubscriptionFilter) -> Result<Subscription, Error> {
        // Before the request: a change may follow the grant at once.
        let events = self.driver().listen();
        let driver = Arc::clone(self.driver());
        let standing = driver.subscribe(wanted.clone(), self.request_options()).await?;
        Ok(Subscription {
            client: self.clone(),
            events,
            wanted,
            granted: standing.granted,
            ended: Some(standing.ended),
            stream: standing.stream,
            is_interrupted: false,
            is_unsure: true,
            task: standing.task,
        })
    }
}

impl Subscription {
    /// What the server granted at first: possibly less than requested, and nothing if it declares no such changes, or if a legacy
    /// server over HTTP has no stream to report them on. A subscription that was granted nothing may never yield a change: check
    /// this before you wait for one.
    pub fn granted(&self) -> &SubscriptionFilter {
        &self.granted
    }

    /// The next change; `None` once the server has ended the subscription regularly, or a legacy server over HTTP offers no stream
    /// for changes, be it in a new session or by an answer that took more than 250 ms. Changes come in the order in which they
    /// happened. Cancel safe.
    ///
    /// If several subscriptions of a client want the same change, each of them gets it, as often as the server reports it.
    ///
    /// # Errors
    ///
    /// Why the subscription ended, once; after that `None`.
    pub async fn next(&mut self) -> Result<Option<Change>, Error> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`next`](Self::next), to implement a [`Stream`](crate::Events#as-a-stream).
    ///
    /// # Errors
    ///
    /// Those of [`next`](Self::next).
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Change>, Error>> {
        // What happens after its end concerns others.
        while self.ended.is_some() {
            let happened = match self.events.poll_next(context) {
                Poll::Ready(Some(happened)) => happened,
                // The events of a connection end with it, and then so has the subscription.
                Poll::Ready(None) => break,
                Poll::Pending if self.is_unsure => {
                    match self.client.driver().is_interrupted(&self.stream, &self.events) {
                        None => continue,
                        Some(is_interrupted) => {
                            self.is_unsure = false;
                            if is_interrupted != self.is_interrupted {
                                return Poll::Ready(Ok(Some(self.interrupted(is_interrupted))));
                            }
                            break;
                        }
                    }
                }
                Poll::Pending => break,
            };
            if let Some(change) = self.change(happened) {
                return Poll::Ready(Ok(Some(change)));
            }
        }
        self.poll_ended(context).map_ok(|()| None)
    }

    /// How it ended; `Ok` where that was told before.
    fn poll_ended(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Some(end) = &mut self.ended else { return Poll::Ready(Ok(())) };
        let outcome = ready!(Pin::new(end).poll(context));
        self.ended = None;
        Poll::Ready(outcome.unwrap_or(Ok(())))
    }

    /// What to tell where it is interrupted from now on, or not any more.
    const fn interrupted(&mut self, is_interrupted: bool) -> Change {
        self.is_interrupted = is_interrupted;
        if is_interrupted { Change::Interrupted } else { Change::Restored }
    }

    fn change(&mut self, Happened { event, stream }: Happened) -> Option<Change> {
        if stream.is_some_and(|stream| !Arc::ptr_eq(&stream, &self.stream)) {
            return None;
        }
        let wants = |method: &str| self.wanted.selects(method);
        match event {
            ClientEvent::ListChanged(list) => {
                let method = match list {
                    ListKind::Prompts => methods::NOTIFICATIONS_PROMPTS_LIST_CHANGED,
                    ListKind::Resources => methods::NOTIFICATIONS_RESOURCES_LIST_CHANGED,
                    _ => methods::NOTIFICATIONS_TOOLS_LIST_CHANGED,
                };
                wants(method).then_some(Change::List(list))
            }
            ClientEvent::ResourceUpdated { uri } => {
                // The server may have granted them in a spelling of its own.
                let wanted = is_part_of_any(&uri, &self.wanted) || is_part_of_any(&uri, &self.granted);
                wanted.then_some(Change::Resource { uri })
            }
            ClientEvent::Missed { events } => {
                self.is_unsure = true;
                Some(Change::Missed { events })
            }
            ClientEvent::SessionRenewed | ClientEvent::SubscriptionRestored => Some(self.interrupted(false)),
            ClientEvent::SubscriptionInterrupted => Some(self.interrupted(true)),
            _ => None,
        }
    }
}

/// Whether this is one of the resources, or begins like one as its parts do. A notice too many costs less than one too few.
fn is_part_of_any(uri: &str, filter: &SubscriptionFilter) -> bool {
    filter.resource_subscriptions.iter().flatten().any(|subscribed| uri.starts_with(subscribed.as_str()))
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("client", &self.client)
            .field("granted", &self.granted)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// protocol:S-01: a notice may name a part of what was subscribed to, and no other resource.
    #[test]
    fn a_subscription_is_told_of_its_own_resources_and_their_parts() {
        let mut filter = SubscriptionFilter::new();
        assert!(!is_part_of_any("file:///a", &filter));
        filter.resource_subscriptions = Some(vec!["file:///a".to_owned(), "note:1".to_owned()]);
        for (uri, expected) in [
            ("file:///a", true),
            ("file:///a/b", true),
            ("file:///a#b", true),
            ("note:1", true),
            ("file:///b", false),
            ("file:///", false),
            ("note:2", false),
        ] {
            assert_eq!(is_part_of_any(uri, &filter), expected, "{uri}");
        }
    }
}
