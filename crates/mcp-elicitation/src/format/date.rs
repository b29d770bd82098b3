//! `date` and `date-time`: `full-date` and `date-time` of RFC 3339, section 5.6.

/// `full-date`: four, two and two digits, and a day that exists.
pub(crate) fn is_date(text: &str) -> bool {
    matches!(full_date(text), Some((_, "")))
}

/// `date-time`: `T` and `Z` in either case, no space in place of `T` (the grammar has none), fractions of any
/// length, offsets up to 23:59, and second 60 only in the last minute of a month in UTC.
pub(crate) fn is_date_time(text: &str) -> bool {
    date_time(text).is_some()
}

struct Date {
    year: u32,
    month: u32,
    day: u32,
}

impl Date {
    fn is_last_of_month(&self) -> bool {
        self.day == days(self.year, self.month)
    }
}

const fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => 0,
    }
}

/// Exactly `count` ASCII digits.
fn digits(text: &str, count: usize) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(count)?;
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((digits.parse().ok()?, rest))
}

fn full_date(text: &str) -> Option<(Date, &str)> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let exists = (1..=days(year, month)).contains(&day);
    exists.then_some((Date { year, month, day }, rest))
}

fn date_time(text: &str) -> Option<()> {
    let (date, rest) = full_date(text)?;
    let (hour, rest) = digits(rest.strip_prefix(['T', 't'])?, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?, 2)?;
    let (second, rest) = digits(rest.strip_prefix(':')?, 2)?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => {
            let end = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
            if end == 0 {
                return None;
            }
            fraction.get(end..)?
        }
        None => rest,
    };
    let offset_minutes = if rest.eq_ignore_ascii_case("z") {
        0
    } else {
        let (sign, rest) = match (rest.strip_prefix('+'), rest.strip_prefix('-')) {
            (Some(rest), _) => (1, rest),
            (_, Some(rest)) => (-1, rest),
            _ => return None,
        };
        let (hours, rest) = digits(rest, 2)?;
        let (minutes, rest) = digits(rest.strip_prefix(':')?, 2)?;
        if hours > 23 || minutes > 59 || !rest.is_empty() {
            return None;
        }
        sign * (i64::from(hours) * 60 + i64::from(minutes))
    };
    if second == 60 && !is_last_minute_of_a_utc_month(&date, hour, minute, offset_minutes) {
        return None;
    }
    Some(())
}

/// Leap seconds are inserted in UTC after the last second of a month. Local time = UTC + offset.
fn is_last_minute_of_a_utc_month(date: &Date, hour: u32, minute: u32, offset_minutes: i64) -> bool {
    const DAY: i64 = 24 * 60;
    let utc = i64::from(hour) * 60 + i64::from(minute) - offset_minutes;
    if utc.rem_euclid(DAY) != DAY - 1 {
        return false;
    }
    match utc.div_euclid(DAY) {
        // The UTC date is the local date.
        0 => date.is_last_of_month(),
        // The UTC date is the day before: it ends a month if the local date begins one.
        -1 => date.day == 1,
        // An offset below 24 hours cannot carry the last minute of a UTC day to the day after.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_by_rfc_3339() {
        for text in
            ["2025-11-25", "2024-02-29", "2000-02-29", "2023-02-28", "0000-01-01", "9999-12-31", "1963-06-19"]
        {
            assert!(is_date(text), "{text}");
        }
        for text in [
            "",
            "2023-02-29",
            "1900-02-29",
            "2025-04-31",
            "2025-13-01",
            "2025-00-10",
            "2025-01-00",
            "2025-1-01",
            "25-01-01",
            "2025/01/01",
            "20250101",
            "2025-01-01 ",
            " 2025-01-01",
            "2025-01-01T00:00:00Z",
            "+2025-01-01",
            "-2025-01-01",
            "১৯৬৩-০৬-১৯",
            "2025-01-1৪",
            "2025-W01-1",
            "2025-001",
            "02025-01-01",
        ] {
            assert!(!is_date(text), "{text}");
        }
    }

    #[test]
    fn date_times_by_rfc_3339() {
        for text in [
            "1985-04-12T23:20:50.52Z",
            "1996-12-19T16:39:57-08:00",
            "1990-12-31T23:59:60Z",
            "1990-12-31T15:59:60-08:00",
            "1937-01-01T12:00:27.87+00:20",
            "2025-01-01t00:00:00z",
            "2025-01-01T00:00:00-00:00",
            "1998-12-31T23:59:60.999Z",
            "1999-01-01T08:59:60+09:00",
            "2016-06-30T23:59:60+00:00",
            "2025-01-01T00:00:00.123456789012345Z",
            "2025-01-01T00:00:00+23:59",
        ] {
            assert!(is_date_time(text), "{text}");
        }
        for text in [
            "",
            "2025-01-01",
            "2025-01-01 00:00:00Z",
            "2025-01-01T00:00:00",
            "2025-01-01T24:00:00Z",
            "2025-01-01T00:60:00Z",
            "2025-01-01T00:00:61Z",
            "2025-01-01T00:00:00.Z",
            "2025-01-01T00:00:00,5Z",
            "2025-01-01T00:00:00+24:00",
            "2025-01-01T00:00:00+00:60",
            "2025-01-01T00:00:00+0000",
            "2025-01-01T00:00:00+00",
            "2025-01-01T00:00:00ZZ",
            "1998-12-31T23:58:60Z",
            "1998-12-31T22:59:60Z",
            "1998-12-30T23:59:60Z",
            "1998-12-31T23:59:60+01:00",
            "2025-02-29T00:00:00Z",
            "1985-04-12T23:20:50.52Z\n",
            "2025-01-01T0:00:00Z",
            "2025-01-01T00:00Z",
        ] {
            assert!(!is_date_time(text), "{text}");
        }
    }

    #[test]
    fn a_leap_second_is_dated_in_utc() {
        // 23:59:60 UTC on 31 December is still the 31st at -08:00 and already the 1st at +09:00.
        assert!(is_date_time("2016-12-31T15:59:60-08:00"));
        assert!(is_date_time("2017-01-01T08:59:60+09:00"));
        assert!(!is_date_time("2017-01-02T08:59:60+09:00"));
        // At -23:59 local 00:00:60 on the 30th is 23:59:60 UTC on the 30th, not the 31st.
        assert!(!is_date_time("2016-12-30T00:00:60-23:59"));
        assert!(is_date_time("2016-12-31T00:00:60-23:59"));
        // A local date before the UTC date: 00:58:60 at -23:01 is 23:59:60 of the same day in UTC.
        assert!(is_date_time("2016-12-31T00:58:60-23:01"));
        assert!(!is_date_time("2016-12-31T01:58:60-23:01"));
    }
}
