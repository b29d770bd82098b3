//! Randomness for delays: enough that clients of a restarted server do not come back all at once.

use std::hash::{BuildHasher, RandomState};

/// A number from 0.0 to 0.5. Each `RandomState` has keys of its own, so each call differs.
pub(crate) fn jitter() -> f64 {
    let bits = u32::try_from(RandomState::new().hash_one(0_u8) >> 32).unwrap_or_default();
    f64::from(bits) / f64::from(u32::MAX) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_differs_and_stays_in_range() {
        let all: Vec<f64> = (0..100).map(|_| jitter()).collect();
        assert!(all.iter().all(|jitter| (0.0..=0.5).contains(jitter)));
        assert!(all.windows(2).any(|pair| pair[0] != pair[1]));
    }
}
