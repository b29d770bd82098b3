//! Credentials that may change during a connection.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::joint::{Joint, WeakJoint};

/// What a [`Credentials`] method returns.
pub type CredentialsFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, Box<dyn StdError + Send + Sync>>> + Send + 'a>>;

/// Supplies the `Authorization` header of every request to one server: POST, GET and DELETE.
///
/// Each request is sent with [`authorization`](Self::authorization); if it is refused, [`refused`](Self::refused) is called,
/// and the request is repeated once if that returns `true`. The body of the refusal is not read. A second refusal is an error
/// of kind `Unauthorized` with its challenges.
///
/// An error of either method fails the request with kind `Unauthorized` and that error as its source. The
/// deadlines of the request are paused meanwhile.
pub trait Credentials: Send + Sync {
    /// The whole value of the header, scheme included; `None` for a request without it.
    fn authorization(&self) -> CredentialsFuture<'_, Option<String>>;

    /// A request was refused with 401, or with 403 and a challenge. `true` repeats it once.
    ///
    /// Many requests may be refused at once; compare [`Refused::authorization`] with the current value to refresh only once.
    fn refused<'a>(&'a self, refused: Refused<'a>) -> CredentialsFuture<'a, bool>;
}

/// A refusal.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Refused<'a> {
    /// 401 or 403.
    pub status: u16,
    /// The `WWW-Authenticate` values as received, within
    /// [`HttpLimits::max_challenge_bytes`](super::HttpLimits::max_challenge_bytes). Untrusted.
    pub challenges: &'a [String],
    /// The header value that was refused.
    pub authorization: Option<&'a str>,
}

/// Shows no credential.
impl fmt::Debug for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("status", &self.status).field("challenges", &self.challenges).finish()
    }
}

/// The provider of a server, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Provider(pub(crate) Option<Arc<dyn Credentials>>);

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Provider").field(&self.0.is_some()).finish()
    }
}

/// A bearer token from a callback, fetched before the first request and again when the current one is refused by 401.
pub(crate) struct TokenCallback<F> {
    fetch: Arc<F>,
    held: Arc<Mutex<Held>>,
}

#[derive(Default)]
struct Held {
    /// The header value in use.
    current: Option<String>,
    /// The fetch under way, so that requests that need a token at once fetch one together.
    fetching: WeakJoint<Fetched>,
}

type BoxError = Box<dyn StdError + Send + Sync>;

/// The header value or the error, for each who waited for it.
type Fetched = Result<String, SharedError>;

/// One error for many. It is taken out again (`fault::no_credentials`) before an application sees it.
#[derive(Clone, Debug)]
pub(crate) struct SharedError(pub(crate) Arc<dyn StdError + Send + Sync>);

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for SharedError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

impl<F> TokenCallback<F> {
    pub(crate) fn new(fetch: F) -> Self {
        Self { fetch: Arc::new(fetch), held: Arc::default() }
    }
}

impl<F, R> TokenCallback<F>
where
    F: Fn() -> R + Send + Sync + 'static,
    R: Future<Output = Result<String, BoxError>> + Send + 'static,
{
    /// The header value in use, unless it is `refused`; then a new one. Whoever of those who wait for it is polled fetches it.
    async fn value(&self, refused: Option<&str>) -> Result<String, BoxError> {
        let joint = {
            let mut held = lock(&self.held);
            if held.current.is_some() && held.current.as_deref() == refused {
                held.current = None;
            }
            match (&held.current, held.fetching.get()) {
                (Some(current), _) => return Ok(current.clone()),
                (None, Some(joint)) => joint,
                (None, None) => {
                    let joint = Joint::new(fetch(Arc::clone(&self.fetch), Arc::clone(&self.held)));
                    held.fetching = joint.downgrade();
                    joint
                }
            }
        };
        // What failed for one would take as long to fail for each of those who wait.
        let fetched = joint.wait().await.ok_or("the token callback panicked")?;
        Ok(fetched?)
    }
}

async fn fetch<F, R>(fetch: Arc<F>, held: Arc<Mutex<Held>>) -> Fetched
where
    F: Fn() -> R + Send + Sync,
    R: Future<Output = Result<String, BoxError>> + Send,
{
    let fetched = fetch().await.map(|token| bearer(&token)).map_err(|error| SharedError(error.into()));
    let mut held = lock(&held);
    held.fetching = WeakJoint::default();
    held.current = fetched.as_ref().ok().cloned();
    drop(held);
    fetched
}

fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<F, R> Credentials for TokenCallback<F>
where
    F: Fn() -> R + Send + Sync + 'static,
    R: Future<Output = Result<String, BoxError>> + Send + 'static,
{
    fn authorization(&self) -> CredentialsFuture<'_, Option<String>> {
        Box::pin(async { self.value(None).await.map(Some) })
    }

    fn refused<'a>(&'a self, refused: Refused<'a>) -> CredentialsFuture<'a, bool> {
        Box::pin(async move {
            // A 403 says that the token is known and does not suffice: another one of the same kind would not either.
            if refused.status != 401 {
                return Ok(false);
            }
            self.value(refused.authorization).await.map(|_| true)
        })
    }
}

/// The header value of a token, whether or not the scheme was put before it already.
pub(crate) fn bearer(token: &str) -> String {
    let token = token.trim();
    let bare = match token.split_once(' ') {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("bearer") => rest.trim_start(),
        _ => token,
    };
    format!("Bearer {bare}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// field:FR-064
    #[test]
    fn the_scheme_is_written_once() {
        for token in ["abc", " abc\n", "Bearer abc", "bearer  abc", "BEARER abc"] {
            assert_eq!(bearer(token), "Bearer abc", "{token}");
        }
        assert_eq!(bearer("bearerabc"), "Bearer bearerabc");
    }

    /// Two requests need a token at once; the one that began to fetch it is kept and not polled any more.
    #[tokio::test]
    async fn a_fetch_that_its_first_request_does_not_go_on_with_is_done_by_the_others() {
        let (tell, told) = tokio::sync::watch::channel(false);
        let fetches = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = Arc::clone(&fetches);
        let callback = TokenCallback::new(move || {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let mut told = told.clone();
            async move {
                told.wait_for(|told| *told).await?;
                Ok("token".to_owned())
            }
        });
        let mut kept = callback.authorization();
        let polled = kept.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        assert!(polled.is_pending());
        let mut other = callback.authorization();
        let polled = other.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        assert!(polled.is_pending());
        tell.send_replace(true);
        assert_eq!(other.await.unwrap().as_deref(), Some("Bearer token"));
        assert_eq!(callback.authorization().await.unwrap().as_deref(), Some("Bearer token"));
        assert_eq!(kept.await.unwrap().as_deref(), Some("Bearer token"));
        assert_eq!(fetches.load(std::sync::atomic::Ordering::Relaxed), 1);
    }

    /// Three requests wait for a token, and the callback panics under the first. None of the others may turn in circles: there the
    /// thread would be lost.
    #[test]
    fn a_callback_that_panics_fails_all_who_wait_and_is_asked_again_by_the_next() {
        let (tell, told) = tokio::sync::watch::channel(false);
        let callback = Arc::new(TokenCallback::new(move || {
            let mut told = told.clone();
            async move {
                told.wait_for(|told| *told).await?;
                panic!("on purpose")
            }
        }));
        let ask = || -> CredentialsFuture<'static, Option<String>> {
            let callback = Arc::clone(&callback);
            Box::pin(async move { callback.authorization().await })
        };
        let poll = |asked: &mut CredentialsFuture<'_, Option<String>>| {
            let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
            asked.as_mut().poll(context).map_err(|error| error.to_string())
        };
        let mut asked = [ask(), ask(), ask()];
        assert!(asked.iter_mut().all(|asked| poll(asked).is_pending()));
        tell.send_replace(true);
        let [mut first, others @ ..] = asked;
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| poll(&mut first)));
        assert!(panicked.is_err());
        let (done, watchdog) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(others.map(|mut other| poll(&mut other))));
        let others = watchdog.recv_timeout(std::time::Duration::from_secs(60));
        let failed = std::task::Poll::Ready(Err("the token callback panicked".to_owned()));
        assert_eq!(others, Ok([failed.clone(), failed]), "or they turn in circles");
        // The first is still kept.
        let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| poll(&mut ask())));
        assert!(again.is_err(), "the next asks the callback anew");
        drop(first);
    }

    /// field:FR-064. A token server that answers after a second of failing would make the last of many wait for the sum of all.
    #[tokio::test(start_paused = true)]
    async fn a_fetch_that_fails_fails_all_who_wait_for_it_at_once() {
        use std::time::Duration;

        use tokio::time::{Instant, sleep};

        use crate::http::{HttpServer, Post, RequestHead};

        let fetches = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = Arc::clone(&fetches);
        let server = HttpServer::new("http://127.0.0.1:9/mcp").unwrap().token(move || {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            async {
                sleep(Duration::from_secs(1)).await;
                Err::<String, BoxError>(Box::new(std::io::Error::other("the keychain is locked")))
            }
        });
        let connection = server.connect();
        let began = Instant::now();
        let posts: Vec<_> = (0..8)
            .map(|_| {
                let connection = connection.clone();
                let post = Post::notification(bytes::Bytes::new(), RequestHead::default());
                tokio::spawn(async move { (connection.post(post).await.unwrap_err(), began.elapsed()) })
            })
            .collect();
        for post in posts {
            let (error, after) = post.await.unwrap();
            assert_eq!(after, Duration::from_secs(1));
            assert_eq!(error.kind(), crate::ErrorKind::Unauthorized);
            let source = error.source().unwrap();
            assert!(source.is::<std::io::Error>(), "the callback's own error, not one around it: {source:?}");
        }
        assert_eq!(fetches.load(std::sync::atomic::Ordering::Relaxed), 1);
    }

    #[test]
    fn a_refusal_shows_no_credential() {
        let refused = Refused { status: 401, challenges: &[], authorization: Some("Bearer canary") };
        assert!(!format!("{refused:?}").contains("canary"));
    }
}
