//! Writes numbers the way people and JavaScript write them.

use serde::Serializer;

/// Writes whole numbers without a fraction (`50`, not `50.0`), which every reader of "number" understands, and refuses
/// what JSON cannot say (infinity, not-a-number).
pub(crate) fn write<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    /// Up to here every whole number has an exact `f64`.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !number.is_finite() {
        return Err(serde::ser::Error::custom("a number that JSON cannot express"));
    }
    if number.fract() == 0.0 && number.abs() <= EXACT {
        return serializer.serialize_i64(*number as i64);
    }
    serializer.serialize_f64(*number)
}

/// [`write`] for an optional member, which must be skipped when it is `None`.
pub(crate) fn write_some<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => write(number, serializer),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_no_fraction() {
        let check = |number: f64, expected: &str| {
            let mut text = Vec::new();
            write(&number, &mut serde_json::Serializer::new(&mut text)).unwrap();
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        };
        check(50.0, "50");
        check(-0.0, "0");
        check(0.1, "0.1");
        check(-2.5, "-2.5");
        check(9_007_199_254_740_992.0, "9007199254740992");
        check(1e300, "1e+300");
    }

    #[test]
    fn what_json_cannot_say_is_an_error() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(write(&number, &mut serde_json::Serializer::new(Vec::new())).is_err());
        }
    }
}
