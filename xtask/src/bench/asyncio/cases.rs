//! What can be run, and how long.

/// Who is measured with what. The order in which cases are run is theirs: peers of one work follow each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Case {
    pub(super) kind: Kind,
    /// The work of a stream, the pattern of a queue.
    pub(super) what: &'static str,
    /// The capacity of a stream, how many a queue holds.
    pub(super) size: u64,
    pub(super) order: &'static str,
    pub(super) peer: &'static str,
}

/// Which of the bench's measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Stream,
    /// A stream whose allocations are counted.
    Counted,
    /// The element queue alone.
    Queue,
}

pub(super) const FLINK: &str = "flink";

impl Case {
    pub(super) fn is_flinks(&self) -> bool {
        self.peer == FLINK
    }

    /// What the bench `streams` is told.
    pub(super) fn args(&self) -> Vec<String> {
        let (kind, count) = match self.kind {
            Kind::Stream | Kind::Counted => ("stream", self.records()),
            Kind::Queue => ("queue", self.elements()),
        };
        let size = self.size.to_string();
        let mut args = vec![kind];
        if self.kind != Kind::Queue {
            args.push(self.peer);
        }
        args.extend([self.order, self.what, &size]);
        let mut args: Vec<String> = args.into_iter().map(str::to_owned).collect();
        args.push(count.to_string());
        if self.kind == Kind::Counted {
            args.push("--count".to_owned());
        }
        args
    }

    /// Enough for about a third of a second, and for the window to fill four times.
    fn records(&self) -> u64 {
        let records = match (self.what, self.peer) {
            ("ready", "map") => 20_000_000,
            ("ready", "futures-spawned" | "futures-timeout") => 1_000_000,
            ("ready", _) => 4_000_000,
            ("external", "tidegate") => 2_000_000,
            // Futures' streams slow down with the number in flight.
            ("external", _) if self.size > 1000 => 150_000,
            ("external", _) => 600_000,
            // The rate is the same however many are in flight: the delay grows with them.
            (what, _) if what.starts_with("spread") => return 3 * self.size + 30_000,
            (what, _) => (self.limit(what) * 0.35) as u64,
        };
        records.max(4 * self.size + 100)
    }

    /// Records a second at most, as delay and capacity allow, and no more than the peer manages.
    fn limit(&self, what: &str) -> f64 {
        let tick_ms = 1.0;
        let delay_ms = if what.ends_with("-1ms") { 1.0 } else { 5.0 };
        let mean_ms = match what.starts_with("exp") {
            // Everybody waits for the slowest of a window.
            true if self.order == "ordered" => delay_ms * (self.size as f64).ln(),
            true => delay_ms + tick_ms / 2.0,
            false => delay_ms + tick_ms,
        };
        let managed = if self.peer.starts_with("futures") { 4e5 } else { 1.5e6 };
        (self.size as f64 / mean_ms * 1e3).min(managed)
    }

    /// Fillings for about a tenth of a second.
    fn elements(&self) -> u64 {
        (5 * self.size).max(2_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(kind: Kind, what: &'static str, order: &'static str) -> Case {
        Case { kind, what, size: 1000, order, peer: "tidegate" }
    }

    #[test]
    fn a_case_is_told_to_the_bench_in_its_words() {
        assert_eq!(
            case(Kind::Stream, "ready", "ordered").args(),
            ["stream", "tidegate", "ordered", "ready", "1000", "4000000"]
        );
        assert_eq!(
            case(Kind::Counted, "spread-10ms", "unordered").args(),
            ["stream", "tidegate", "unordered", "spread-10ms", "1000", "33000", "--count"]
        );
        assert_eq!(
            case(Kind::Queue, "shuffled", "unordered").args(),
            ["queue", "unordered", "shuffled", "1000", "2000000"]
        );
    }

    #[test]
    fn in_order_the_slowest_of_a_window_sets_the_rate() {
        let limit = |what, order| case(Kind::Stream, what, order).limit(what).round();
        assert_eq!(limit("timer-5ms", "ordered"), 166_667.0);
        assert_eq!(limit("sleep-1ms", "unordered"), 500_000.0);
        assert_eq!(limit("exp-5ms", "unordered"), 181_818.0);
        assert_eq!(limit("exp-5ms", "ordered"), 28_953.0);
    }
}
