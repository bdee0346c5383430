//! Durations and sizes as people write them.

use std::time::Duration;

/// Units of time, in microseconds, largest first.
const TIME: &[(&str, u64)] = &[
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// Units of size, largest first; the binary ones are printed, all are read.
const SIZE: &[(&str, u64)] = &[
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

/// Reads `250ms`, `10s`, `5m`, `1h`, `1d`, or a bare number of milliseconds; a blank before the unit is allowed.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let micros = if unit.is_empty() { 1_000 } else { TIME.iter().find(|(name, _)| *name == unit)?.1 };
    number.checked_mul(micros).map(Duration::from_micros)
}

/// The shortest text that [`parse_duration`] reads as this duration, cut to microseconds.
#[must_use]
pub fn print_duration(duration: Duration) -> String {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    if micros == 0 {
        return "0s".to_owned();
    }
    print(micros, TIME)
}

/// Reads `64KiB`, `10MB`, `1GiB` (any case), or a bare number of bytes; a blank before the unit is allowed.
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let bytes =
        if unit.is_empty() { 1 } else { SIZE.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?.1 };
    number.checked_mul(bytes)
}

/// The shortest text in binary units that [`parse_size`] reads as this size.
#[must_use]
pub fn print_size(bytes: u64) -> String {
    let binary: Vec<_> = SIZE.iter().copied().filter(|(_, factor)| factor.is_power_of_two()).collect();
    if bytes == 0 { "0B".to_owned() } else { print(bytes, &binary) }
}

fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    Some((number.parse().ok()?, unit.trim_start()))
}

fn print(value: u64, units: &[(&str, u64)]) -> String {
    let unit = units.iter().find(|(_, factor)| value.is_multiple_of(*factor));
    unit.map_or_else(|| value.to_string(), |(name, factor)| format!("{}{name}", value / factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_written() {
        let cases = [
            ("250ms", Some(250_000)),
            ("10s", Some(10_000_000)),
            ("10 s", Some(10_000_000)),
            ("5m", Some(300_000_000)),
            ("1h", Some(3_600_000_000)),
            ("1d", Some(86_400_000_000)),
            ("1500", Some(1_500_000)),
            ("0", Some(0)),
            ("", None),
            ("s", None),
            ("-1s", None),
            ("1.5s", None),
            ("10S", None),
            ("5 parsecs", None),
            ("18446744073709551615d", None),
            ("99999999999999999999", None),
        ];
        for (text, micros) in cases {
            assert_eq!(parse_duration(text), micros.map(Duration::from_micros), "{text:?}");
        }
    }

    #[test]
    fn sizes_are_read_as_written() {
        let cases = [
            ("64KiB", Some(65_536)),
            ("64kib", Some(65_536)),
            ("10MB", Some(10_000_000)),
            ("1 GiB", Some(1 << 30)),
            ("123", Some(123)),
            ("5B", Some(5)),
            ("5X", None),
            ("KiB", None),
            ("-5", None),
            ("18446744073709551615KiB", None),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text), bytes, "{text:?}");
        }
    }

    #[test]
    fn what_is_printed_reads_back_equal() {
        for micros in [0, 1, 999, 1_000, 250_000, 10_000_000, 90_000_000, 300_000_000, 86_400_000_000] {
            let duration = Duration::from_micros(micros);
            assert_eq!(parse_duration(&print_duration(duration)), Some(duration));
        }
        for bytes in [0, 1, 1_000, 1_024, 65_536, 10_000_000, 1 << 30] {
            assert_eq!(parse_size(&print_size(bytes)), Some(bytes));
        }
        assert_eq!(print_duration(Duration::from_secs(50)), "50s");
        assert_eq!(print_size(65_536), "64KiB");
    }
}
