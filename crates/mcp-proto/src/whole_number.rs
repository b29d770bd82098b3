//! Whole numbers as JSON may write them.

use serde_json::Number;

/// A whole number that is not negative, saturated; JSON may write one with a fraction or an exponent.
pub(crate) fn whole_number(text: &str) -> Option<u64> {
    if let Ok(number) = text.parse::<u64>() {
        return Some(number);
    }
    let number = text.parse::<Number>().ok()?.as_f64()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, as wanted"
    )]
    (number >= 0.0 && number.fract() == 0.0).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("1000", Some(1000)),
            ("1000.0", Some(1000)),
            ("1e3", Some(1000)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", Some(u64::MAX)),
            ("1e300", Some(u64::MAX)),
            ("1.5", None),
            ("-1", None),
            ("\"5\"", None),
            ("true", None),
            ("", None),
        ] {
            assert_eq!(whole_number(text), expected, "{text}");
        }
    }
}
