//! How messages show a time that an application may have computed.

use std::time::Duration;

/// In whole milliseconds, rounded up: the `Debug` form of what is left until a deadline may have nine decimals
/// (`59.999999999s`), and half a millisecond shown as nothing would be wrong.
#[doc(hidden)]
pub fn shown_time(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_as_people_write_it() {
        for (time, text) in [
            (Duration::from_nanos(59_999_999_999), "60s"),
            (Duration::from_secs(2), "2s"),
            (Duration::from_millis(1500), "1.5s"),
            (Duration::from_millis(250), "250ms"),
            (Duration::from_nanos(1), "1ms"),
            (Duration::from_secs(3600), "3600s"),
            (Duration::MAX, "18446744073709551.615s"),
        ] {
            assert_eq!(format!("{:?}", shown_time(time)), text);
        }
    }
}
