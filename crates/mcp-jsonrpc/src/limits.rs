//! Limits of the decoder.

/// Limits of [`decode`](crate::decode). The defaults are safe for a hostile peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeLimits {
    /// Maximum length of a message or batch, in bytes. Default 16 MiB: enough for the largest known tool results (images,
    /// file contents), and a message takes a small multiple of its length in memory. A longer text is refused unread.
    pub max_bytes: usize,
    /// Maximum nesting depth of objects and arrays, including the envelope. Default and maximum: 127, the limit of the decoder
    /// behind [`RawRef::parse`](crate::RawRef::parse). A deeper message is refused, with its id.
    pub max_depth: usize,
    /// Maximum number of messages in a batch. Default 1024: an item of two bytes takes over a hundred bytes of memory, so that a
    /// batch of 16 MiB could otherwise take gigabytes. The items within the limit are delivered, followed by one error.
    pub max_batch_items: usize,
    /// Maximum length of a string id, in bytes after unescaping. Default 1024: ids are kept until the request has ended, and
    /// usual ones are no longer than a UUID with a prefix. The message is refused, without an id.
    pub max_id_bytes: usize,
}

impl DecodeLimits {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self { max_bytes: 16 * 1024 * 1024, max_depth: MAX_DEPTH, max_batch_items: 1024, max_id_bytes: 1024 }
    }

    /// Sets [`max_bytes`](Self::max_bytes).
    #[must_use]
    pub const fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets [`max_depth`](Self::max_depth); values above 127 count as 127.
    #[must_use]
    pub const fn with_max_depth(mut self, depth: usize) -> Self {
        self.max_depth = depth;
        self
    }

    /// Sets [`max_batch_items`](Self::max_batch_items).
    #[must_use]
    pub const fn with_max_batch_items(mut self, items: usize) -> Self {
        self.max_batch_items = items;
        self
    }

    /// Sets [`max_id_bytes`](Self::max_id_bytes).
    #[must_use]
    pub const fn with_max_id_bytes(mut self, bytes: usize) -> Self {
        self.max_id_bytes = bytes;
        self
    }

    /// The depth in force.
    pub(crate) fn depth(&self) -> usize {
        self.max_depth.min(MAX_DEPTH)
    }
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self::new()
    }
}

/// serde_json follows 127 levels; the scanner keeps one bit a level in a `u128`.
pub(crate) const MAX_DEPTH: usize = 127;
