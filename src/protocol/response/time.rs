//! Times as ISO 8601 text in UTC, the only place of the protocol where a calendar is needed.

/// Seconds of a day.
const DAY: i64 = 86_400;
/// Days of 400 years, after which the calendar repeats.
const ERA: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH: i64 = 719_468;

/// `2023-11-14T22:13:20Z`, with 3, 6 or 9 digits of a fraction where there is one.
pub(super) fn format(seconds: i64, nanoseconds: u32) -> String {
    let (year, month, day) = date_of(seconds.div_euclid(DAY));
    let second = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = match nanoseconds {
        0 => String::new(),
        n if n % 1_000_000 == 0 => format!(".{:03}", n / 1_000_000),
        n if n % 1_000 == 0 => format!(".{:06}", n / 1_000),
        n => format!(".{n:09}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Seconds since 1970 and nanoseconds of a text that [`format()`] could have made, with any number of fraction digits
/// (those past the ninth are dropped).
pub(super) fn parse(text: &str) -> Option<(i64, u32)> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let in_range = year <= 9999 && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !in_range || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days_of(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    Some((seconds, nanoseconds(fraction)?))
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let mut parts = text.split(separator).map(|part| digits(part)?.parse().ok());
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

fn digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

fn nanoseconds(fraction: &str) -> Option<u32> {
    let fraction = digits(fraction)?;
    fraction
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(9)
        .try_fold(0, |n: u32, byte| n.checked_mul(10)?.checked_add(u32::from(byte - b'0')))
}

/// The date of a day counted from 1970. Years are counted from March, so that the leap day is the last of a year.
fn date_of(day: i64) -> (i64, i64, i64) {
    let day = day + EPOCH;
    let era = day.div_euclid(ERA);
    let day_of_era = day.rem_euclid(ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted_month + 2) / 5 + 1)
}

/// The day, counted from 1970, of a date.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year.div_euclid(400) * ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - EPOCH
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_times() {
        for (seconds, nanoseconds, text) in [
            (0, 0, "1970-01-01T00:00:00Z"),
            (-1, 0, "1969-12-31T23:59:59Z"),
            (951_782_400, 0, "2000-02-29T00:00:00Z"),
            (1_700_000_000, 123_456_000, "2023-11-14T22:13:20.123456Z"),
            (4_107_542_399, 1, "2100-02-28T23:59:59.000000001Z"),
        ] {
            assert_eq!(format(seconds, nanoseconds), text);
            assert_eq!(parse(text), Some((seconds, nanoseconds)));
        }
    }

    #[test]
    fn texts_that_are_no_times() {
        for text in [
            "",
            "Z",
            "2023-11-14",
            "2023-11-14T22:13:20",
            "2023-13-14T22:13:20Z",
            "2023-11-14T22:13:20.Z",
            "+1-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn times_survive_text(seconds in -62_135_596_800i64..253_402_300_799, nanoseconds in 0u32..1_000_000_000) {
            prop_assert_eq!(parse(&format(seconds, nanoseconds)), Some((seconds, nanoseconds)));
        }

        #[test]
        fn no_time_panics(seconds: i64, nanoseconds: u32, text: String) {
            format(seconds, nanoseconds);
            parse(&text);
        }
    }
}
