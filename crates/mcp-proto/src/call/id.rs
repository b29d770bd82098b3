//! The names of calls, and tables by them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Names one call of the application for the life of the connection. It is not the JSON-RPC id: one call may take
/// several requests on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub(crate) u64);

impl CallId {
    /// Its number, for logs. The calls of one connection count up.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// A table by call. The ids are ours and count up, so nobody can aim at a bucket and no keyed hash is needed.
pub type CallMap<T> = HashMap<CallId, T, BuildHasherDefault<CallIdHasher>>;

/// The hash of a [`CallId`]: its number, spread over all bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallIdHasher(u64);

impl Hasher for CallIdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only reached for keys that are no `CallId`.
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // Fibonacci hashing: neighbours land far apart, in the high bits too, which the table looks at first.
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
