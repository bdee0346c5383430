//! `Retry-After`: seconds, or a date (RFC 9110, section 10.2.3).

use std::time::{Duration, UNIX_EPOCH};

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use runtime_core::{Clock, time::TokioClock};

/// How long the server wants to be left alone; absent where it does not say so, or in no way that can be read.
///
/// A date is compared with the one that the response carries, so that neither clock need be right, and with the wall
/// clock only where there is none.
pub(super) fn read(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = since_1970(value)?;
    let now = headers.get(DATE).and_then(|date| date.to_str().ok()).and_then(since_1970);
    Some(until.saturating_sub(now.unwrap_or_else(wall_clock)))
}

fn since_1970(date: &str) -> Option<Duration> {
    httpdate::parse_http_date(date).ok()?.duration_since(UNIX_EPOCH).ok()
}

fn wall_clock() -> Duration {
    Duration::from_millis(u64::try_from(TokioClock::start().wall().0).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(retry_after: &str, date: Option<&str>) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, retry_after.parse().unwrap());
        if let Some(date) = date {
            headers.insert(DATE, date.parse().unwrap());
        }
        read(&headers)
    }

    #[test]
    fn seconds_are_seconds() {
        assert_eq!(of("120", None), Some(Duration::from_secs(120)));
        assert_eq!(of(" 0 ", None), Some(Duration::ZERO));
    }

    #[test]
    fn a_date_counts_from_the_date_of_the_response() {
        let date = Some("Wed, 21 Oct 2015 07:28:00 GMT");
        assert_eq!(of("Wed, 21 Oct 2015 07:28:30 GMT", date), Some(Duration::from_secs(30)));
        assert_eq!(of("Wed, 21 Oct 2015 07:27:30 GMT", date), Some(Duration::ZERO));
    }

    #[test]
    fn a_date_that_is_over_by_the_wall_clock_asks_for_no_pause() {
        assert_eq!(of("Wed, 21 Oct 2015 07:28:30 GMT", None), Some(Duration::ZERO));
    }

    #[test]
    fn what_cannot_be_read_says_nothing() {
        for value in ["-1", "soon", "", "1.5"] {
            assert_eq!(of(value, None), None, "{value}");
        }
    }
}
