//! The cache scope of a result (2026-07-28 and later).

use crate::open_enum::open_enum;

open_enum! {
    /// Who may get a cached copy of a result (`cacheScope`). Treat an absent or unknown scope as [`CacheScope::Private`].
    CacheScope {
        /// Only the authorization context that made the request.
        Private = "private",
        /// Everyone.
        Public = "public",
    }
}

impl CacheScope {
    /// Whether the scope is [`CacheScope::Public`]; absent and unknown scopes are not.
    ///
    /// ```
    /// use mcp_model::CacheScope;
    ///
    /// assert!(CacheScope::is_shared(Some(&CacheScope::Public)));
    /// assert!(!CacheScope::is_shared(Some(&CacheScope::Other("shared".into()))));
    /// assert!(!CacheScope::is_shared(None));
    /// ```
    #[must_use]
    pub fn is_shared(scope: Option<&Self>) -> bool {
        matches!(scope, Some(Self::Public))
    }
}
