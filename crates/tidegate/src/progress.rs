//! The progress line of a job that is waited for.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use runtime_core::Tick;

use crate::client::JobResult;
use crate::text::grouped;

/// The time over which a rate is taken: shorter, and it jumps with every batch; longer, and it lags behind.
const RATE_WINDOW: Duration = Duration::from_secs(2);

/// A line on stderr, there only where stderr is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    rate: Rate,
}

impl Progress {
    /// A line where somebody can see it.
    pub(crate) fn on_terminal() -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            // The template is a constant; were it wrong, the default style says as much.
            match ProgressStyle::with_template("{spinner} {wide_msg}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        Self { bar, rate: Rate::default() }
    }

    /// No line.
    pub(crate) fn hidden() -> Self {
        Self { bar: None, rate: Rate::default() }
    }

    /// Whether there is anybody to show something to, so that it is worth asking for.
    pub(crate) const fn is_shown(&self) -> bool {
        self.bar.is_some()
    }

    /// Shows how far the job is.
    pub(crate) fn show(&mut self, result: &JobResult, now: Tick) {
        if let Some(bar) = &self.bar {
            bar.set_message(line(result, self.rate.at(now, result.records_in)));
            bar.tick();
        }
    }

    /// Shows a text in place of the figures.
    pub(crate) fn say(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(text.to_owned());
            bar.tick();
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(result: &JobResult, per_second: u64) -> String {
    let JobResult { state, records_in, records_out, calls, retries, restarts, .. } = result;
    format!(
        "{state}  in {}  out {}  {}/s  calls {}  retries {}  restarts {restarts}",
        grouped(*records_in),
        grouped(*records_out),
        grouped(per_second),
        grouped(*calls),
        grouped(*retries)
    )
}

/// Records per second, over the last moments.
#[derive(Debug, Default)]
struct Rate {
    from: Option<(Tick, u64)>,
    /// What follows `from` once the window is full.
    next: Option<(Tick, u64)>,
    last: u64,
}

impl Rate {
    fn at(&mut self, now: Tick, count: u64) -> u64 {
        // A restart from the beginning counts anew.
        if self.from.is_none() || count < self.last {
            *self = Self { from: Some((now, count)), next: None, last: count };
        }
        self.last = count;
        let next = *self.next.get_or_insert((now, count));
        if now.since(next.0) >= RATE_WINDOW {
            self.from = Some(next);
            self.next = Some((now, count));
        }
        let (since, from) = self.from.unwrap_or((now, count));
        let seconds = now.since(since).as_secs_f64();
        if seconds > 0.0 { (count.saturating_sub(from) as f64 / seconds).round() as u64 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Tick {
        Tick::from_millis(millis)
    }

    #[test]
    fn the_rate_is_that_of_the_last_moments() {
        let mut rate = Rate::default();
        assert_eq!(rate.at(at(0), 0), 0);
        for second in 1..=4 {
            assert_eq!(rate.at(at(second * 1000), second * 100), 100);
        }
        let last = (5..=20).map(|second| rate.at(at(second * 1000), 400)).last();
        assert_eq!(last, Some(0), "nothing has come for longer than the window");
    }

    #[test]
    fn a_restart_from_the_beginning_makes_no_negative_rate() {
        let mut rate = Rate::default();
        rate.at(at(0), 0);
        rate.at(at(1000), 5000);
        rate.at(at(3000), 9000);
        assert_eq!(rate.at(at(4000), 10), 0);
        assert_eq!(rate.at(at(5000), 110), 100);
    }

    #[test]
    fn the_line_names_every_figure() {
        let result = JobResult {
            job_id: String::new(),
            name: "x".into(),
            state: "RUNNING".into(),
            records_in: 12_345,
            records_out: 12_000,
            filtered: 0,
            dropped: 0,
            dead_letters: 0,
            empty: 0,
            calls: 13_000,
            retries: 45,
            timeouts: 0,
            restarts: 1,
            checkpoints: 0,
            duration_ms: 1,
            failure: None,
        };
        assert_eq!(
            line(&result, 4_500),
            "RUNNING  in 12,345  out 12,000  4,500/s  calls 13,000  retries 45  restarts 1"
        );
    }
}
