//! The limit that an error is about.

/// A limit that was hit: the name of its configuration field, with the unit, and its value. The field belongs to
/// [`Limits`](crate::Limits) or to any other configuration of the client, that of the transport included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// The configuration field.
    pub name: &'static str,
    /// Its value at the time.
    pub value: u64,
}

/// A count, for [`Limit::value`].
pub(crate) fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
