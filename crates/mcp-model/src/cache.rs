//! Who may be served from a cache (2026-07-28 and later).

use crate::open_enum::open_enum;

open_enum! {
    /// Who may be served from a cache of a result. Treat an absent or unknown scope as [`CacheScope::Private`].
    CacheScope {
        /// Only the authorization context that asked.
        Private = "private",
        /// Everybody.
        Public = "public",
    }
}

impl CacheScope {
    /// Whether the scope clearly allows sharing; absent and unknown scopes do not.
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
