//! auth:G-13: public futures dropped at every point, on every way that the client has to a server.
//!
//! Each flow is run again and again, and given up after the first poll, after the second, and so on until it comes to its end:
//! right then, or when it is woken the next time, so that what it was woken for is there and nobody takes it. Whatever the point,
//! nothing of it may be left: no entry, no task, no process; and the connection serves the next call.

mod connecting;
mod exchanges;
mod line;
mod over;
mod server;
mod web;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// When a future is given up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum At {
    /// Right after its last poll.
    Poll,
    /// When it is woken after that.
    Wake,
}

/// A future that is polled so many times at most and then dropped. Its output is `None` where it did not come to its end.
pub(super) struct PollLimit<F> {
    future: Option<Pin<Box<F>>>,
    left: usize,
    at: At,
}

impl<F: Future> PollLimit<F> {
    pub(super) fn new(future: F, polls: usize, at: At) -> Self {
        Self { future: Some(Box::pin(future)), left: polls, at }
    }
}

impl<F: Future> Future for PollLimit<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            if let Poll::Ready(output) = self.future.as_mut().unwrap().as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            if left > 0 || self.at == At::Wake {
                return Poll::Pending;
            }
        }
        self.future = None;
        Poll::Ready(None)
    }
}

/// So many polls no flow here takes: one that does spins.
const MANY: usize = 500;

#[test]
fn a_future_is_polled_as_often_as_it_may() {
    let mut context = Context::from_waker(std::task::Waker::noop());
    for (polls, at, needed, expected) in [
        (0, At::Poll, 1, [Some(false), None]),
        (1, At::Poll, 2, [Some(false), None]),
        (1, At::Wake, 2, [None, Some(false)]),
        (2, At::Poll, 2, [None, Some(true)]),
    ] {
        let mut polled = 0;
        let future = std::future::poll_fn(|_| {
            polled += 1;
            if polled == needed { Poll::Ready(()) } else { Poll::Pending }
        });
        let mut limited = std::pin::pin!(PollLimit::new(future, polls, at));
        for expected in expected {
            let done = match limited.as_mut().poll(&mut context) {
                Poll::Ready(output) => Some(output.is_some()),
                Poll::Pending => None,
            };
            assert_eq!(done, expected, "{polls} {at:?}");
            if done.is_some() {
                break;
            }
        }
    }
}
