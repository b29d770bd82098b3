//! Credentials that change while a connection lives: asked for before each request, told when they are refused.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Mutex;

/// What a [`Credentials`] method returns.
pub type CredentialsFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, Box<dyn StdError + Send + Sync>>> + Send + 'a>>;

/// Supplies the `Authorization` header of every request to one server: POST, GET and DELETE.
///
/// The two methods make one round: a request goes out with [`authorization`](Self::authorization); if it is refused,
/// [`refused`](Self::refused) is told, and the request is sent once more if that says so. The body of the refusal is not
/// read. A second refusal is the caller's, as an error of kind `Unauthorized` with its challenges.
///
/// An error of either method fails the request with kind `Unauthorized` and that error as its source. The request's
/// deadlines do not run meanwhile.
pub trait Credentials: Send + Sync {
    /// The whole value of the header, scheme included; `None` for a request without it.
    fn authorization(&self) -> CredentialsFuture<'_, Option<String>>;

    /// A request was refused by 401, or by 403 with a challenge. `true` asks for it to be sent once more.
    ///
    /// Many requests may be refused at once; compare [`Refused::authorization`] with the current value to refresh only
    /// once.
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
    fetch: F,
    /// The header value in use. Held while a token is fetched, so that requests refused at once fetch one together.
    current: Mutex<Option<String>>,
}

impl<F> TokenCallback<F> {
    pub(crate) fn new(fetch: F) -> Self {
        Self { fetch, current: Mutex::new(None) }
    }
}

impl<F, R> Credentials for TokenCallback<F>
where
    F: Fn() -> R + Send + Sync,
    R: Future<Output = Result<String, Box<dyn StdError + Send + Sync>>> + Send,
{
    fn authorization(&self) -> CredentialsFuture<'_, Option<String>> {
        Box::pin(async {
            let mut current = self.current.lock().await;
            if current.is_none() {
                *current = Some(bearer(&(self.fetch)().await?));
            }
            Ok(current.clone())
        })
    }

    fn refused<'a>(&'a self, refused: Refused<'a>) -> CredentialsFuture<'a, bool> {
        Box::pin(async move {
            // A 403 says that the token is known and does not suffice: another one of the same kind would not either.
            if refused.status != 401 {
                return Ok(false);
            }
            let mut current = self.current.lock().await;
            if current.as_deref() == refused.authorization {
                *current = None;
                *current = Some(bearer(&(self.fetch)().await?));
            }
            Ok(true)
        })
    }
}

/// The header value of a token, whether or not the scheme was put before it already.
fn bearer(token: &str) -> String {
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

    #[test]
    fn a_refusal_shows_no_credential() {
        let refused = Refused { status: 401, challenges: &[], authorization: Some("Bearer canary") };
        assert!(!format!("{refused:?}").contains("canary"));
    }
}
