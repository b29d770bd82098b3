//! Subscriptions to changes.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mcp_model::{SubscriptionFilter, methods};
use mcp_proto::ListKind;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::client::Client;
use crate::driver::Interruptions;
use crate::error::Error;
use crate::event::ClientEvent;
use crate::event_queue::Listener;

/// A subscription to changes of the server's lists and resources.
///
/// It uses `subscriptions/listen`, or `resources/subscribe` and the change notifications of a legacy server. It keeps the
/// connection open. If its stream is lost, it is requested again, followed by [`Change::Restored`]. The same holds for the GET
/// stream on which a legacy server over HTTP reports changes; if that does not come back, the subscription ends with the error
/// of the stream. Dropping a subscription ends it at the server too.
pub struct Subscription {
    client: Client,
    events: Listener,
    wanted: SubscriptionFilter,
    granted: SubscriptionFilter,
    ended: Option<oneshot::Receiver<Result<(), Error>>>,
    interruption: Interruption,
    task: AbortHandle,
}

/// What a [`Subscription`] reports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The stream on which the server reports changes was lost and will be opened again: no changes are reported until
    /// [`Restored`](Self::Restored) or the end of the subscription. This takes up to about four minutes (the default of
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
    /// list and resource subscribed to may have changed, so read again what matters. Also reported after an interruption too short
    /// for [`Interrupted`](Self::Interrupted), and when another subscription of the client is active again.
    Restored,
}

impl Client {
    /// Subscribes to changes, and waits until the server has granted the subscription. Dropping the future ends it.
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
        let driver = std::sync::Arc::clone(self.driver());
        let standing = driver.subscribe(wanted.clone(), self.request_options()).await?;
        Ok(Subscription {
            client: self.clone(),
            events,
            wanted,
            granted: standing.granted,
            ended: Some(standing.ended),
            interruption: next_of(standing.interruptions),
            task: standing.task,
        })
    }
}

impl Subscription {
    /// What the server granted at first: possibly less than requested, and nothing if a legacy server over HTTP has no stream
    /// to report changes on.
    pub fn granted(&self) -> &SubscriptionFilter {
        &self.granted
    }

    /// The next change; `None` once the server has ended the subscription regularly, or a legacy server over HTTP lost the session
    /// and offers no stream for changes in the new one. Cancel safe.
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
        loop {
            let event = match self.events.poll_next(context) {
                Poll::Ready(Some(event)) => event,
                // The events of a connection end with it, and then so has the subscription.
                Poll::Ready(None) => break,
                Poll::Pending => match self.interruption.as_mut().poll(context) {
                    Poll::Ready(interruptions) => {
                        self.interruption = next_of(interruptions);
                        return Poll::Ready(Ok(Some(Change::Interrupted)));
                    }
                    Poll::Pending => break,
                },
            };
            if let Some(change) = self.change(event) {
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

    fn change(&self, event: ClientEvent) -> Option<Change> {
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
            ClientEvent::Missed { events } => Some(Change::Missed { events }),
            ClientEvent::SessionRenewed | ClientEvent::SubscriptionRestored => Some(Change::Restored),
            _ => None,
        }
    }
}

/// Whether this is one of the resources, or begins like one as its parts do. A notice too many costs less than one too few.
fn is_part_of_any(uri: &str, filter: &SubscriptionFilter) -> bool {
    filter.resource_subscriptions.iter().flatten().any(|subscribed| uri.starts_with(subscribed.as_str()))
}

/// The wait for the next interruption, which gives back what to wait on for the one after it.
type Interruption = Pin<Box<dyn Future<Output = Interruptions> + Send + Sync>>;

fn next_of(mut interruptions: Interruptions) -> Interruption {
    Box::pin(async move {
        interruptions.next().await;
        interruptions
    })
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
