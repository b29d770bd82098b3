//! The registrable domain of a host name.

/// The shortest part of the name that somebody could register, by the Public Suffix List.
#[cfg(feature = "public-suffix")]
pub(super) fn registrable(domain: &str) -> Option<&str> {
    psl::domain_str(domain)
}

/// Without the list there is no honest answer.
#[cfg(not(feature = "public-suffix"))]
pub(super) const fn registrable(_domain: &str) -> Option<&str> {
    None
}
