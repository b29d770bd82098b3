//! Exact comparison of JSON numbers.
//!
//! Integers in the range of `i64` and `u64` are exact. An integer literal beyond that range and every literal
//! with a fraction or exponent is the nearest `f64`, as `serde_json` reads it; such a number is compared by the
//! exact value of that `f64`.

use std::cmp::Ordering;

use serde_json::Number;

/// The largest integer up to which every integer is an `f64`.
const MAX_SAFE: f64 = 9_007_199_254_740_992.0;

/// An integer, or a finite float that is not known to be one of the exact integers.
#[derive(Clone, Copy)]
enum Exact {
    Integer(i128),
    Float(f64),
}

fn exact(number: &Number) -> Exact {
    if let Some(integer) = number.as_i64() {
        Exact::Integer(integer.into())
    } else if let Some(integer) = number.as_u64() {
        Exact::Integer(integer.into())
    } else {
        // A `Number` always has a float; infinities appear only where another crate of the build turned on
        // arbitrary precision, and they compare as one would expect.
        Exact::Float(number.as_f64().unwrap_or(f64::INFINITY))
    }
}

/// Compares two numbers by value: 1 equals 1.0, and 2^53 + 1 is greater than 2^53.
pub(crate) fn compare(a: &Number, b: &Number) -> Ordering {
    match (exact(a), exact(b)) {
        (Exact::Integer(a), Exact::Integer(b)) => a.cmp(&b),
        (Exact::Integer(a), Exact::Float(b)) => compare_mixed(a, b),
        (Exact::Float(a), Exact::Integer(b)) => compare_mixed(b, a).reverse(),
        (Exact::Float(a), Exact::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
    }
}

fn compare_mixed(integer: i128, float: f64) -> Ordering {
    // The cast saturates, and saturated values are far outside of the 65 bits that `integer` has.
    let floor = float.floor();
    #[expect(clippy::cast_possible_truncation, reason = "saturation keeps the order")]
    let floor_integer = floor as i128;
    match integer.cmp(&floor_integer) {
        Ordering::Equal if float > floor => Ordering::Less,
        other => other,
    }
}

/// Whether the value is an integer in the sense of JSON Schema: 1.0 and 1e3 are.
pub(crate) fn is_integer(number: &Number) -> bool {
    match exact(number) {
        Exact::Integer(_) => true,
        Exact::Float(float) => float.is_finite() && float.fract() == 0.0,
    }
}

/// The same value written as an integer where that is exact; peers that decode into integer types refuse `5.0`.
pub(crate) fn as_integer_literal(number: &Number) -> Option<Number> {
    match exact(number) {
        Exact::Float(float) if float.fract() == 0.0 && float.abs() <= MAX_SAFE => {
            #[expect(clippy::cast_possible_truncation, reason = "within 2^53, checked above")]
            let integer = float as i64;
            Some(integer.into())
        }
        _ => None,
    }
}

/// A count such as `minLength`: a non-negative integer, `5.0` included. Nothing is so long that it tells a count beyond
/// `u64` from the greatest one.
pub(crate) fn as_count(number: &Number) -> Option<u64> {
    match exact(number) {
        Exact::Integer(integer) => integer.try_into().ok(),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates, and is not negative"
        )]
        Exact::Float(float) if float >= 0.0 && float.fract() == 0.0 => Some(float as u64),
        Exact::Float(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn integers_beyond_two_to_the_53_are_told_apart() {
        let cases = [
            ("9007199254740993", "9007199254740992", Ordering::Greater),
            ("9007199254740993", "9007199254740992.0", Ordering::Greater),
            ("18446744073709551615", "18446744073709551614", Ordering::Greater),
            ("-9223372036854775808", "-9223372036854775807", Ordering::Less),
            ("18446744073709551615", "18446744073709551616", Ordering::Less),
            ("1", "1.0", Ordering::Equal),
            ("0", "-0.0", Ordering::Equal),
            ("1", "1.5", Ordering::Less),
            ("2", "1.5", Ordering::Greater),
            ("-1", "-1.5", Ordering::Greater),
            ("-2", "-1.5", Ordering::Less),
            ("1e300", "18446744073709551615", Ordering::Greater),
            ("-1e300", "-9223372036854775808", Ordering::Less),
            ("0.1", "0.2", Ordering::Less),
        ];
        for (a, b, expected) in cases {
            assert_eq!(compare(&number(a), &number(b)), expected, "{a} {b}");
            assert_eq!(compare(&number(b), &number(a)), expected.reverse(), "{b} {a}");
        }
    }

    #[test]
    fn decimals_are_the_nearest_floats() {
        for text in [
            "0.057333298639193876",
            "-9396790.349370461",
            "9007199254740993.0",
            "-3.5233447033367523e-07",
            "1.3090738838615935e+19",
        ] {
            assert_eq!(number(text).as_f64(), Some(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn floats_without_fraction_are_integers() {
        for text in ["1", "1.0", "1e3", "-0.0", "18446744073709551616", "1e300"] {
            assert!(is_integer(&number(text)), "{text}");
        }
        for text in ["1.5", "-0.1", "1e-3"] {
            assert!(!is_integer(&number(text)), "{text}");
        }
        assert_eq!(as_integer_literal(&number("5.0")), Some(5.into()));
        assert_eq!(as_integer_literal(&number("1e16")), None);
        assert_eq!(as_count(&number("3.0")), Some(3));
        assert_eq!(as_count(&number("-3")), None);
        assert_eq!(as_count(&number("3.5")), None);
        assert_eq!(as_count(&number("-0.0")), Some(0));
        assert_eq!(as_count(&number("1e16")), Some(10_000_000_000_000_000));
        assert_eq!(as_count(&number("1e20")), Some(u64::MAX));
    }
}
