//! Times as people read them.

const MILLIS_PER_DAY: i64 = 86_400_000;

/// Milliseconds in at most two units: `250 ms`, `4.7 s`, `2m 05s`, `3h 20m`, `4d 11h`.
pub(crate) fn duration(millis: u64) -> String {
    let seconds = millis / 1000;
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, 0) => format!("{millis} ms"),
        (0, 0, 0, _) => format!("{seconds}.{} s", millis % 1000 / 100),
        (0, 0, minutes, seconds) => format!("{minutes}m {seconds:02}s"),
        (0, hours, minutes, _) => format!("{hours}h {minutes:02}m"),
        (days, hours, _, _) => format!("{days}d {hours:02}h"),
    }
}

/// Milliseconds since 1970 as `2026-11-30 16:06:11 UTC`; a dash for what has not happened.
pub(crate) fn date_time(millis: i64) -> String {
    if millis < 0 {
        return "-".to_owned();
    }
    let (year, month, day) = civil(millis / MILLIS_PER_DAY);
    let second = millis % MILLIS_PER_DAY / 1000;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Year, month and day of the day so many days after 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    // Years are counted from March, so that the leap day is the last one; 400 years have 146,097 days.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (0, month + 3) } else { (1, month - 9) };
    (year_of_era + era * 400 + year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units_at_most() {
        for (millis, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (4_711, "4.7 s"),
            (59_999, "59.9 s"),
            (125_000, "2m 05s"),
            (12_000_000, "3h 20m"),
            (385_200_000, "4d 11h"),
        ] {
            assert_eq!(duration(millis), text);
        }
    }

    #[test]
    fn dates_follow_the_calendar() {
        for (millis, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399_999, "2000-02-28 23:59:59 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00 UTC"),
            (1_709_251_200_000, "2024-03-01 00:00:00 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00:00 UTC"),
            (-1, "-"),
        ] {
            assert_eq!(date_time(millis), text);
        }
    }
}
