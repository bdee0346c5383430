//! The rows of the report: which figure of ours stands beside whose, and what it has to reach.
//!
//! Targets are for capacity 1,000. Ours always has its timeout armed and the peers have none, unless a row says so. Rows
//! whose rate is set by delays and capacity say whether that rate is reached, and are compared by `/cpu`.

use super::cases::{Case, FLINK, Kind};
use super::flink;
use crate::bench::report::{Better, Target};

const ORDERS: [&str; 3] = ["ordered", "unordered", "keyed"];
const CAPACITIES: [u64; 3] = [100, 1_000, 10_000];
/// The capacity of the targets.
const USUAL: u64 = 1_000;
const TIMED: [&str; 6] = ["timer-1ms", "timer-5ms", "exp-5ms", "sleep-1ms", "sleep-5ms", "exp-sleep-5ms"];
const PATTERNS: [&str; 3] = ["oldest-first", "newest-first", "shuffled"];

/// How many are in flight and the delays that give each the same rate, 100,000 records a second.
const IN_FLIGHT: [(u64, &str, &str); 4] = [
    (100, "spread-1ms", "spread-sleep-1ms"),
    (1_000, "spread-10ms", "spread-sleep-10ms"),
    (10_000, "spread-100ms", "spread-sleep-100ms"),
    (100_000, "spread-1000ms", "spread-sleep-1000ms"),
];

/// A figure that a case gives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Metric {
    /// Its name in the case's JSON.
    pub(super) member: &'static str,
    pub(super) unit: &'static str,
    pub(super) better: Better,
    /// Whether it is divided by the number in flight.
    pub(super) per_place: bool,
}

impl Metric {
    const fn cost(member: &'static str, unit: &'static str) -> Self {
        Self { member, unit, better: Better::Lower, per_place: false }
    }
}

const RATE: Metric =
    Metric { member: "records_per_s", unit: "records/s", better: Better::Higher, per_place: false };
const CPU: Metric = Metric::cost("cpu_us_per_record", "us");
const ELEMENT: Metric = Metric::cost("ns_per_element", "ns");
const ALLOCATIONS: Metric = Metric::cost("allocations_per_record", "/record");
const BYTES: Metric = Metric { per_place: true, ..Metric::cost("peak_bytes_in_use", "B") };
const P50: Metric = Metric::cost("complete_to_sink_us_p50", "us");
const P99: Metric = Metric::cost("complete_to_sink_us_p99", "us");

/// A row.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) metric: Metric,
    pub(super) ours: Case,
    pub(super) peer: Option<(String, Case)>,
    pub(super) target: Option<Target>,
}

impl Row {
    /// What has to be run for it.
    pub(super) fn cases(&self) -> impl Iterator<Item = &Case> {
        std::iter::once(&self.ours).chain(self.peer.iter().map(|(_, case)| case))
    }
}

/// All rows; the same name stands once for each peer.
pub(super) fn all(quick: bool, flink: bool) -> Vec<Row> {
    let capacities = CAPACITIES.into_iter().filter(|capacity| !quick || *capacity == USUAL);
    let mut rows = Rows { rows: Vec::new(), flink };
    for capacity in capacities {
        for order in ORDERS {
            rows.busy("ready", order, capacity);
            rows.busy("external", order, capacity);
        }
        for what in TIMED {
            for order in ORDERS {
                rows.timed(what, order, capacity);
            }
        }
    }
    rows.asides();
    rows.in_flight(if quick { 10_000 } else { u64::MAX });
    rows.queue();
    rows.rows
}

fn stream(peer: &'static str, order: &'static str, what: &'static str, size: u64) -> Case {
    Case { kind: Kind::Stream, what, size, order, peer }
}

/// What futures calls this order; there is no keyed one.
fn futures_name(order: &str) -> &'static str {
    if order == "unordered" { "futures::buffer_unordered" } else { "futures::buffered" }
}

/// The order of a peer that has no keyed one.
fn peers_order(order: &'static str) -> &'static str {
    if order == "keyed" { "ordered" } else { order }
}

struct Rows {
    rows: Vec<Row>,
    flink: bool,
}

impl Rows {
    fn row(
        &mut self,
        name: String,
        metric: Metric,
        ours: Case,
        peer: Option<(&str, Case)>,
        target: Option<Target>,
    ) {
        let peer = peer.map(|(name, case)| (name.to_owned(), case));
        self.rows.push(Row { name, metric, ours, peer, target });
    }

    /// A row beside each of `peers`, and beside Flink; each may have a target.
    fn beside(
        &mut self,
        name: &str,
        metric: Metric,
        ours: &Case,
        peers: &[(&'static str, &str, Option<Target>)],
        flinks: Option<Target>,
    ) {
        for (peer, called, target) in peers {
            let theirs = Case { peer, order: peers_order(ours.order), ..ours.clone() };
            self.row(name.to_owned(), metric, ours.clone(), Some((called, theirs)), *target);
        }
        if self.flink && flink::works(ours.what) && ours.order != "keyed" {
            let theirs = Case { peer: FLINK, ..ours.clone() };
            self.row(name.to_owned(), metric, ours.clone(), Some(("Flink", theirs)), flinks);
        }
    }

    /// Calls that nobody waits for: the CPU sets the rate.
    fn busy(&mut self, what: &'static str, order: &'static str, capacity: u64) {
        let name = format!("asyncio/{order}/{what}/capacity={capacity}");
        let ours = stream("tidegate", order, what, capacity);
        let (least, of_flink) = match (what, order) {
            ("ready", "keyed") => (Some(1.5), None),
            ("ready", _) => (Some(2.5), None),
            ("external", "keyed") => (None, None),
            _ => (Some(4.0), Some(2.0)),
        };
        let usual = |least: Option<f64>| least.filter(|_| capacity == USUAL).map(Target::Ratio);
        let spawned = format!("{} of tasks", futures_name(order));
        let peers =
            [("futures", futures_name(order), usual(least)), ("futures-spawned", spawned.as_str(), None)];
        self.beside(&name, RATE, &ours, &peers, usual(of_flink));
        if what == "external" && capacity == USUAL {
            let peers = [("futures", futures_name(order), Some(Target::AtMost(20.0)))];
            self.beside(&format!("{name}/completed-to-sink-p50"), P50, &ours, &peers, None);
            let peers = [("futures", futures_name(order), Some(Target::AtMost(100.0)))];
            self.beside(&format!("{name}/completed-to-sink-p99"), P99, &ours, &peers, None);
        }
    }

    /// Calls that wait: delay and capacity set the rate.
    fn timed(&mut self, what: &'static str, order: &'static str, capacity: u64) {
        let name = format!("asyncio/{order}/{what}/capacity={capacity}");
        let ours = stream("tidegate", order, what, capacity);
        let usual = |least| (capacity == USUAL).then_some(Target::Ratio(least));
        if order == "keyed" {
            // Ours alone has keys: what they cost shows beside the order that has none.
            let unordered = || Some(("unordered", stream("tidegate", "unordered", what, capacity)));
            let target = usual(0.9).filter(|_| what.starts_with("exp"));
            self.row(name.clone(), RATE, ours.clone(), unordered(), target);
            self.row(format!("{name}/cpu"), CPU, ours, unordered(), None);
            return;
        }
        let futures = futures_name(order);
        self.beside(&name, RATE, &ours, &[("futures", futures, usual(0.97))], None);
        let mut peers = vec![("futures", futures, usual(1.0 / 0.6).filter(|_| what.ends_with("5ms")))];
        let spawned = format!("{futures} of tasks");
        if capacity == USUAL {
            peers.push(("futures-spawned", &spawned, None));
        }
        self.beside(&format!("{name}/cpu"), CPU, &ours, &peers, None);
    }

    /// For the reader who asks what else it could be: calls without waiting, peers with a timeout, ours with futures
    /// where a callback would do, and what a ready record allocates.
    fn asides(&mut self) {
        for order in ORDERS {
            let name = |what: &str, of: &str| format!("asyncio/{order}/{what}/capacity={USUAL}/{of}");
            let ours = |what| stream("tidegate", order, what, USUAL);
            let map = || Some(("map", stream("map", "ordered", "ready", USUAL)));
            self.row(name("ready", "map"), RATE, ours("ready"), map(), None);
            let counted = Case { kind: Kind::Counted, ..ours("ready") };
            let none = Some(Target::AtMost(0.0));
            self.row(name("ready", "allocations"), ALLOCATIONS, counted, None, none);
            let timeouts = format!("{} of tokio::time::timeout", futures_name(order));
            if order != "keyed" {
                for (what, metric) in [("ready", RATE), ("timer-5ms", CPU), ("sleep-5ms", CPU)] {
                    let theirs = Some((timeouts.as_str(), stream("futures-timeout", order, what, USUAL)));
                    self.row(name(what, "timeouts"), metric, ours(what), theirs, None);
                }
            }
            for (what, metric) in [("external", RATE), ("timer-5ms", CPU)] {
                let closures = stream("tidegate-closures", order, what, USUAL);
                let theirs = Case { peer: "futures", order: peers_order(order), ..closures.clone() };
                let peer = Some((futures_name(order), theirs));
                self.row(name(what, "closures"), metric, closures, peer, None);
            }
        }
    }

    /// CPU for each record and memory for each in flight, beside those at the usual number: they are flat. `external`
    /// is completed by another thread, `sleep` a task of the runtime.
    fn in_flight(&mut self, most: u64) {
        let sizes = IN_FLIGHT.into_iter().filter(|(size, ..)| *size <= most);
        for (size, wheel, sleep) in sizes {
            for (how, what) in [("external", wheel), ("sleep", sleep)] {
                let usual = if how == "sleep" { "spread-sleep-10ms" } else { "spread-10ms" };
                let flat = (size > USUAL).then_some(Target::Ratio(0.8));
                for (figure, metric, kind) in [("cpu", CPU, Kind::Stream), ("bytes", BYTES, Kind::Counted)] {
                    let case = |peer, size, what| Case { kind, ..stream(peer, "unordered", what, size) };
                    let name = format!("asyncio/in-flight/{how}/in-flight={size}/{figure}");
                    let at_usual = Some(("in-flight=1000", case("tidegate", USUAL, usual)));
                    self.row(name.clone(), metric, case("tidegate", size, what), at_usual, flat);
                    let theirs = Some((futures_name("unordered"), case("futures", size, what)));
                    self.row(name, metric, case("tidegate", size, what), theirs, None);
                }
            }
        }
    }

    /// The element queue alone.
    fn queue(&mut self) {
        for (order, most) in [("ordered", 15.0), ("unordered", 20.0)] {
            for what in PATTERNS {
                for size in [1, 100, 1_000, 10_000, 100_000] {
                    if size == 1 && what != "oldest-first" {
                        continue;
                    }
                    let case = |peer| Case { kind: Kind::Queue, what, size, order, peer };
                    // Its program measures no more, and the newest first only without order.
                    let known = size <= 10_000 && (order, what) != ("ordered", "newest-first");
                    let flinks = (self.flink && known).then(|| ("Flink", case(FLINK)));
                    let name = format!("asyncio/{order}/queue/{what}/in-flight={size}");
                    self.row(name, ELEMENT, case("tidegate"), flinks, Some(Target::AtMost(most)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_row_stands_twice_beside_one_peer() {
        for (quick, flink) in [(false, true), (true, false)] {
            let rows = all(quick, flink);
            let seen: BTreeSet<_> =
                rows.iter().map(|row| (&row.name, row.peer.as_ref().map(|(name, _)| name))).collect();
            assert_eq!(seen.len(), rows.len());
        }
    }

    #[test]
    fn only_with_flink_are_its_cases_run() {
        let runs_flink = |rows: Vec<Row>| rows.iter().flat_map(Row::cases).any(Case::is_flinks);
        assert!(runs_flink(all(true, true)));
        assert!(!runs_flink(all(false, false)));
    }

    #[test]
    fn a_quick_run_has_the_targets_of_the_usual_capacity() {
        let targets = |quick| {
            let rows = all(quick, true).into_iter();
            let judged = rows.filter(|row| row.target.is_some() && !row.name.contains("in-flight=100000"));
            judged.map(|row| row.name).collect::<BTreeSet<_>>()
        };
        assert_eq!(targets(true), targets(false));
    }

    #[test]
    fn nobody_else_is_asked_for_keys() {
        let rows = all(false, true);
        let cases = rows.iter().flat_map(Row::cases);
        let keyed: Vec<&Case> = cases.filter(|case| case.order == "keyed").collect();
        assert!(!keyed.is_empty());
        assert!(keyed.iter().all(|case| case.peer.starts_with("tidegate")));
    }
}
