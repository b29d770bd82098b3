//! What a peer may make the decoder do.

/// Limits of [`decode`](crate::decode). Every one of them has a default that is safe against a hostile peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeLimits {
    /// Longest text of one message or batch, in bytes. Default 16 MiB: the largest tool results seen in the field
    /// (images, file contents) fit, and a message costs a small multiple of its text. A longer text is refused unread.
    pub max_bytes: usize,
    /// Greatest nesting of objects and arrays, the envelope counted as one. Default and greatest value 127: what the
    /// typed decoder behind [`RawRef::parse`](crate::RawRef::parse) can follow. A deeper message is refused; its id is
    /// still recovered.
    pub max_depth: usize,
    /// Most messages in one batch. Default 1024: an item of two bytes becomes a result of over a hundred, so that a
    /// batch of 16 MiB could otherwise claim gigabytes. The items before the limit are delivered, followed by one
    /// error.
    pub max_batch_items: usize,
    /// Longest string id, in bytes after unescaping. Default 1024: ids are kept as long as their request lives, and
    /// real ones are no longer than a UUID with a prefix. The message is refused without a recovered id.
    pub max_id_bytes: usize,
}

impl DecodeLimits {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self { max_bytes: 16 * 1024 * 1024, max_depth: MAX_DEPTH, max_batch_items: 1024, max_id_bytes: 1024 }
    }

    /// With another [`max_bytes`](Self::max_bytes).
    #[must_use]
    pub const fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// With another [`max_depth`](Self::max_depth); above 127 it stays 127.
    #[must_use]
    pub const fn with_max_depth(mut self, depth: usize) -> Self {
        self.max_depth = depth;
        self
    }

    /// With another [`max_batch_items`](Self::max_batch_items).
    #[must_use]
    pub const fn with_max_batch_items(mut self, items: usize) -> Self {
        self.max_batch_items = items;
        self
    }

    /// With another [`max_id_bytes`](Self::max_id_bytes).
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
