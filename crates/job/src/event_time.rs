//! Event times: from a field's value, and back to text.
//!
//! RFC 3339, read here rather than by a date library: the one format, strictly, without time zones and locales.

use runtime_core::EpochMillis;

use crate::record::{JsonText, Kind};

const MILLIS_PER_DAY: i64 = 86_400_000;

/// Reads an event time: a string in RFC 3339 (a fraction below milliseconds is cut off), or a number of milliseconds
/// since 1970-01-01T00:00:00Z. Absent where the value is neither.
#[must_use]
pub fn parse(value: JsonText<'_>) -> Option<EpochMillis> {
    match value.kind() {
        Kind::Number => number(value).map(EpochMillis),
        Kind::String => rfc3339(&value.string().ok()?).map(EpochMillis),
        _ => None,
    }
}

/// The time in RFC 3339 with milliseconds, in UTC: `2013-01-01T10:00:00.000Z`.
#[must_use]
pub fn format(time: EpochMillis) -> String {
    let (days, millis) = (time.0.div_euclid(MILLIS_PER_DAY), time.0.rem_euclid(MILLIS_PER_DAY));
    let (year, month, day) = date_of(days);
    let seconds = millis / 1000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", millis % 1000)
}

fn number(value: JsonText<'_>) -> Option<i64> {
    if let Some(millis) = value.as_i64() {
        return Some(millis);
    }
    let millis = value.as_f64()?.floor();
    // Beyond this doubles skip integers, so it would be a guess.
    (millis.abs() < 9_007_199_254_740_992.0).then_some(millis as i64)
}

fn rfc3339(text: &str) -> Option<i64> {
    let mut rest = Cursor(text.as_bytes());
    let year = rest.digits(4)?;
    rest.one_of(b"-")?;
    let month = rest.digits(2).filter(|m| (1..=12).contains(m))?;
    rest.one_of(b"-")?;
    let day = rest.digits(2).filter(|d| (1..=days_in(year, month)).contains(d))?;
    rest.one_of(b"Tt ")?;
    let hour = rest.digits(2).filter(|h| *h < 24)?;
    rest.one_of(b":")?;
    let minute = rest.digits(2).filter(|m| *m < 60)?;
    rest.one_of(b":")?;
    // A leap second is the first moment of the next minute, as in Unix time.
    let second = rest.digits(2).filter(|s| *s <= 60)?;
    let millis = if rest.one_of(b".").is_some() { rest.fraction()? } else { 0 };
    let offset = match rest.one_of(b"Zz+-")? {
        b'+' => rest.offset()?,
        b'-' => -rest.offset()?,
        _ => 0,
    };
    if !rest.0.is_empty() {
        return None;
    }
    let seconds = (hour * 60 + minute - offset) * 60 + second;
    Some(days_to(year, month, day) * MILLIS_PER_DAY + seconds * 1000 + millis)
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn one_of(&mut self, allowed: &[u8]) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        if !allowed.contains(&first) {
            return None;
        }
        self.0 = rest;
        Some(first)
    }

    fn digit(&mut self) -> Option<i64> {
        self.one_of(b"0123456789").map(|d| i64::from(d - b'0'))
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        (0..count).try_fold(0, |n, _| Some(n * 10 + self.digit()?))
    }

    /// At least one digit; milliseconds.
    fn fraction(&mut self) -> Option<i64> {
        let mut millis = self.digit()? * 100;
        let mut worth = 10;
        while let Some(digit) = self.digit() {
            millis += digit * worth;
            worth /= 10;
        }
        Some(millis)
    }

    /// Minutes.
    fn offset(&mut self) -> Option<i64> {
        let hours = self.digits(2).filter(|h| *h < 24)?;
        self.one_of(b":")?;
        let minutes = self.digits(2).filter(|m| *m < 60)?;
        Some(hours * 60 + minutes)
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the proleptic Gregorian calendar. Years are taken to begin in March, so that the
/// leap day is the last of its year and months follow a fixed pattern of 153 days in five.
fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

/// The reverse of [`days_to`], over eras of 400 years.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(json: &str) -> Option<i64> {
        parse(JsonText::new(json)).map(|t| t.0)
    }

    #[test]
    fn rfc_3339_and_milliseconds_are_read() {
        for (json, expected) in [
            (r#""1970-01-01T00:00:00Z""#, 0),
            (r#""2013-01-01T10:00:00Z""#, 1_357_034_400_000),
            (r#""2013-01-01t05:00:00.5-05:00""#, 1_357_034_400_500),
            (r#""2013-01-01 15:30:00.123987+05:30""#, 1_357_034_400_123),
            (r#""2016-12-31T23:59:60Z""#, 1_483_228_800_000),
            (r#""2000-02-29T00:00:00Z""#, 951_782_400_000),
            (r#""1969-12-31T23:59:59.999Z""#, -1),
            (r#""0000-01-01T00:00:00Z""#, -62_167_219_200_000),
            (r#""2013-01-01T10:00:00\u005a""#, 1_357_034_400_000),
            ("1357034400000", 1_357_034_400_000),
            ("-5", -5),
            ("12.7", 12),
            ("1.3570344e12", 1_357_034_400_000),
        ] {
            assert_eq!(millis(json), Some(expected), "{json}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for json in [
            "null",
            "true",
            "{}",
            "1e300",
            r#""""#,
            r#""1357034400000""#,
            r#""2013-01-01""#,
            r#""2013-01-01T10:00:00""#,
            r#""2013-01-01T10:00Z""#,
            r#""2013-13-01T10:00:00Z""#,
            r#""2013-02-29T10:00:00Z""#,
            r#""1900-02-29T10:00:00Z""#,
            r#""2013-01-00T10:00:00Z""#,
            r#""2013-01-01T24:00:00Z""#,
            r#""2013-01-01T10:60:00Z""#,
            r#""2013-01-01T10:00:61Z""#,
            r#""2013-01-01T10:00:00.Z""#,
            r#""2013-01-01T10:00:00+0100""#,
            r#""2013-01-01T10:00:00Z ""#,
            r#""+013-01-01T10:00:00Z""#,
            r#""\ud800""#,
        ] {
            assert_eq!(millis(json), None, "{json}");
        }
    }

    #[test]
    fn days_of_eight_centuries_survive_the_round_trip() {
        for day in (-146_097..146_097).step_by(3) {
            let time = EpochMillis(day * MILLIS_PER_DAY + 3_723_004);
            let text = format(time);
            assert!(text.ends_with("T01:02:03.004Z"), "{text}");
            assert_eq!(millis(&format!("\"{text}\"")), Some(time.0), "{text}");
        }
    }
}
