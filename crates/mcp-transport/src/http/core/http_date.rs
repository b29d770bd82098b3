//! Dates in header fields: the form that may be sent today, and the two that have to be read all the same (RFC 9110 section 5.6.7).

use std::time::{Duration, SystemTime};

const DAY_SECONDS: u64 = 86_400;
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
const WEEKDAYS: [&[u8]; 7] =
    [b"Thursday", b"Friday", b"Saturday", b"Sunday", b"Monday", b"Tuesday", b"Wednesday"];

/// 365.2425 days, as a year has on average.
const YEAR_SECONDS: u64 = 31_556_952;
const FIFTY_YEARS: Duration = Duration::from_secs(50 * YEAR_SECONDS);

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`. `None` for another form, for
/// a day that does not exist, for one whose name is wrong, and for years before 1970.
///
/// A year of two digits is the latest one of which the day has that name, no more than fifty years after `now`.
pub(crate) fn parse(text: &str, now: SystemTime) -> Option<SystemTime> {
    let Some((weekday, rest)) = text.split_once(", ") else { return asctime(text.as_bytes()) };
    let weekday = weekday.as_bytes();
    match rest.strip_suffix(" GMT")?.as_bytes() {
        [d1, d2, b' ', m1, m2, m3, b' ', y1, y2, y3, y4, b' ', time @ ..] => {
            let year = number(&[*y1, *y2, *y3, *y4])?;
            let (time, name) = moment(year, &[*m1, *m2, *m3], &[*d1, *d2], time)?;
            is_short_for(weekday, name).then_some(time)
        }
        [d1, d2, b'-', m1, m2, m3, b'-', y1, y2, b' ', time @ ..] => {
            let latest = now.checked_add(FIFTY_YEARS)?;
            let since_1970 = latest.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
            let year = (1970 + since_1970 / YEAR_SECONDS) / 100 * 100 + number(&[*y1, *y2])?;
            let moments = [Some(year), year.checked_sub(100)].into_iter().flatten();
            let mut moments = moments.filter_map(|year| moment(year, &[*m1, *m2, *m3], &[*d1, *d2], time));
            moments.find(|(time, name)| *time <= latest && *name == weekday).map(|(time, _)| time)
        }
        _ => None,
    }
}

/// `Sun Nov  6 08:49:37 1994`
fn asctime(text: &[u8]) -> Option<SystemTime> {
    let [w1, w2, w3, b' ', m1, m2, m3, b' ', d1, d2, b' ', time @ .., b' ', y1, y2, y3, y4] = text else {
        return None;
    };
    let tens = if *d1 == b' ' { b'0' } else { *d1 };
    let year = number(&[*y1, *y2, *y3, *y4])?;
    let (time, name) = moment(year, &[*m1, *m2, *m3], &[tens, *d2], time)?;
    is_short_for(&[*w1, *w2, *w3], name).then_some(time)
}

fn is_short_for(short: &[u8], name: &[u8]) -> bool {
    name.get(..3) == Some(short)
}

/// The moment and the name of its day.
fn moment(year: u64, month: &[u8], day: &[u8], time: &[u8]) -> Option<(SystemTime, &'static [u8])> {
    let [h1, h2, b':', min1, min2, b':', s1, s2] = time else { return None };
    let two = |high: &u8, low: &u8| number(&[*high, *low]);
    let month = MONTHS.iter().position(|name| name.as_slice() == month)?;
    let day = number(day)?;
    let (hour, minute, second) = (two(h1, h2)?, two(min1, min2)?, two(s1, s2)?);
    // A leap second counts as the second after it, as clocks without leap seconds have it.
    if year < 1970 || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let days = days_before_year(year)? + days_before_month(month, year)? + day.checked_sub(1)?;
    if day > month_days(month, year) {
        return None;
    }
    let seconds = days * DAY_SECONDS + hour * 3600 + minute * 60 + second;
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
    let name = usize::try_from(days % 7).ok().and_then(|at| WEEKDAYS.get(at))?;
    Some((time, name))
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |sum, digit| match digit {
        b'0'..=b'9' => Some(sum * 10 + u64::from(digit - b'0')),
        _ => None,
    })
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// Days from 1970 to the first of January.
fn days_before_year(year: u64) -> Option<u64> {
    let leap_days = |years: u64| years / 4 - years / 100 + years / 400;
    let last = year.checked_sub(1)?;
    Some((year - 1970) * 365 + leap_days(last) - leap_days(1969))
}

fn days_before_month(month: usize, year: u64) -> Option<u64> {
    (0..month).map(|month| month_days(month, year)).try_fold(0_u64, u64::checked_add)
}

/// `month` is counted from 0.
fn month_days(month: usize, year: u64) -> u64 {
    match month {
        1 if is_leap(year) => 29,
        1 => 28,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// In November 2026.
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000)
    }

    fn seconds(text: &str) -> Option<u64> {
        parse(text, now()).map(|time| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs())
    }

    #[test]
    fn known_dates_are_read() {
        for (text, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Tue, 29 Feb 2000 23:59:59 GMT", 951_868_799),
            ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
            ("Wed, 21 Oct 2015 07:28:00 GMT", 1_445_412_480),
            ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
            // The two forms that nobody may send any more (RFC 9110 section 5.6.7).
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Wednesday, 21-Oct-15 07:28:00 GMT", 1_445_412_480),
            ("Wed Oct 21 07:28:00 2015", 1_445_412_480),
            ("Saturday, 01-Jan-00 00:00:00 GMT", 946_684_800),
            // No more than fifty years ahead, which end on 17 November 2076.
            ("Sunday, 01-Nov-76 00:00:00 GMT", 3_371_414_400),
            ("Wednesday, 01-Dec-76 00:00:00 GMT", 218_246_400),
            ("Thursday, 01-Jan-70 00:00:00 GMT", 0),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_dates() {
        for text in [
            "",
            "7",
            "Sun, 06-Nov-94 08:49:37 GMT",
            "Sunday, 06 Nov 1994 08:49:37 GMT",
            "Monday, 06-Nov-94 08:49:37 GMT",
            "Sunday, 6-Nov-94 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37",
            "Tuesday, 01-Dec-76 00:00:00 GMT",
            "Wednesday, 31-Dec-69 23:59:59 GMT",
            "Sun Nov 6 08:49:37 1994",
            "Sun Nov 006 08:49:37 1994",
            "Mon Nov  6 08:49:37 1994",
            "Sun Nov  6 08:49:37 1994 GMT",
            "Sun Nov  6 08:49:37 94",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:00 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sat, 30 Feb 1994 08:49:37 GMT",
            "Mon, 29 Feb 2100 00:00:00 GMT",
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT ",
            "Sun, 06 Nov +994 08:49:37 GMT",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    /// The slow twin: every day counted one by one.
    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let mut expected = 0;
        for year in 1970..2370_u64 {
            for (month, name) in MONTHS.iter().enumerate() {
                for day in 1..=month_days(month, year) {
                    let weekday = std::str::from_utf8(WEEKDAYS[expected as usize % 7]).unwrap();
                    let (short, name) = (&weekday[..3], std::str::from_utf8(*name).unwrap());
                    let mut forms = vec![
                        format!("{short}, {day:02} {name} {year} 00:00:00 GMT"),
                        format!("{short} {name} {day:2} 00:00:00 {year}"),
                    ];
                    if (1977..2076).contains(&year) {
                        forms.push(format!("{weekday}, {day:02}-{name}-{:02} 00:00:00 GMT", year % 100));
                    }
                    for text in forms {
                        assert_eq!(seconds(&text), Some(expected * DAY_SECONDS), "{text}");
                    }
                    expected += 1;
                }
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}") {
            let _ = parse(&text, now());
        }

        #[test]
        fn no_date_like_text_makes_it_panic(
            text in "(Sun|Thu|Sunday), [0-9]{2}[ -](Feb|Nov)[ -]([0-9]{2}|[0-9]{4}) [0-9]{2}:[0-9]{2}:[0-9]{2} GMT"
        ) {
            let _ = parse(&text, now());
        }
    }
}
