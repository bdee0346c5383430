//! How long a container took until it served, by the engine's own clock.

use super::compose::Compose;

/// From the start of a service's container to its ready line, in seconds; none where it has not said it yet.
///
/// # Errors
/// The engine's.
pub(super) fn until_ready(compose: &Compose, service: &str) -> anyhow::Result<Option<f64>> {
    let started = compose.inspect(service, "{{.State.StartedAt}}")?;
    let log = compose.engine.logs(&compose.container(service)?, &started)?;
    Ok(ready_line(&log).and_then(|line| Some(between(second_of_day(&started)?, second_of_day(line)?))))
}

/// The last line that says so.
fn ready_line(log: &str) -> Option<&str> {
    log.lines().rfind(|line| line.contains("{\"ready\":true"))
}

/// The time of day in a text that begins as RFC 3339 in UTC.
fn second_of_day(text: &str) -> Option<f64> {
    let time = text.split_once('T')?.1;
    let time = time.get(..time.find('Z')?)?;
    let mut parts = time.split(':').map(str::parse::<f64>);
    let (hours, minutes, seconds) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    Some(hours * 3600.0 + minutes * 60.0 + seconds)
}

/// The later may be of the next day.
fn between(earlier: f64, later: f64) -> f64 {
    (later - earlier).rem_euclid(86_400.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_between_two_stamps_is_theirs_over_midnight_too() {
        let log = "2026-01-02T00:00:00.250000001Z {\"ready\":true,\"role\":\"jobmaster\"}\n2026-01-02T00:00:01Z more";
        let line = ready_line(log).unwrap();
        let took = between(second_of_day("2026-01-01T23:59:59.75Z").unwrap(), second_of_day(line).unwrap());
        assert!((took - 0.5).abs() < 1e-6, "{took}");
        assert_eq!(second_of_day("yesterday"), None);
    }
}
