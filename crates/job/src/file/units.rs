//! Durations and sizes as people write them.

use std::time::Duration;

/// `250ms`, `10s`, `5m`, `1h`, `1.5s`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let nanos_per_unit = match unit {
        "us" => 1_000.0,
        "ms" => 1_000_000.0,
        "s" => 1_000_000_000.0,
        "m" | "min" => 60_000_000_000.0,
        "h" => 3_600_000_000_000.0,
        "d" => 86_400_000_000_000.0,
        _ => return None,
    };
    let nanos = (number * nanos_per_unit).round();
    (nanos < u64::MAX as f64).then_some(Duration::from_nanos(nanos as u64))
}

/// `64KiB`, `10MB`, `512B`; bytes.
pub(super) fn size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let bytes_per_unit = match unit.to_ascii_lowercase().as_str() {
        "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = (number * bytes_per_unit).round();
    (bytes < u64::MAX as f64).then_some(bytes as u64)
}

/// A duration as it is written in a job file: in the largest unit that is exact.
pub(crate) fn show_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let units = [("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000)];
    match units.into_iter().find(|(_, unit)| nanos >= *unit && nanos.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", nanos / unit),
        None if nanos == 0 => "0ms".to_owned(),
        None => format!("{}us", nanos as f64 / 1000.0),
    }
}

/// A size as it is written in a job file: in the largest unit that is exact.
pub(crate) fn show_size(bytes: u64) -> String {
    let units =
        [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("GB", 1_000_000_000), ("MB", 1_000_000)];
    match units.into_iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}B"),
    }
}

/// A number that is not negative, and what follows it.
fn split(text: &str) -> Option<(f64, &str)> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit);
    let number = number.trim_end();
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    Some((number.parse().ok()?, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_shown() {
        for (text, millis, shown) in [
            ("250ms", 250, "250ms"),
            ("10s", 10_000, "10s"),
            ("5m", 300_000, "5m"),
            ("90 min", 5_400_000, "90m"),
            ("2h", 7_200_000, "2h"),
            ("1.5s", 1500, "1500ms"),
            ("0s", 0, "0ms"),
            ("1d", 86_400_000, "24h"),
        ] {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
            assert_eq!(show_duration(Duration::from_millis(millis)), shown);
        }
        assert_eq!(show_duration(Duration::from_nanos(1500)), "1.5us");
        for text in ["", "s", "5", "5 parsecs", "-1s", "1s2", "1e9999s", "99999999999999h", "NaNs", "infs"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_read_and_shown() {
        for (text, bytes, shown) in [
            ("64KiB", 65_536, "64KiB"),
            ("10MB", 10_000_000, "10MB"),
            ("1 gib", 1 << 30, "1GiB"),
            ("12B", 12, "12B"),
        ] {
            assert_eq!(size(text), Some(bytes), "{text}");
            assert_eq!(show_size(bytes), shown);
        }
        for text in ["", "KiB", "5", "5 bits", "-1MB", "99999999999GiB"] {
            assert_eq!(size(text), None, "{text}");
        }
    }
}
