//! What a heartbeat costs, beside tokio-util's `DelayQueue` and tokio's `Sleep`, in one process and in turn.
//!
//! `cargo bench -p heartbeat` prints a table of medians and ratios; `-- --json` prints a JSON object a line instead,
//! `-- --quick` measures once, `-- receive-id/targets=1000$` measures what has that in its
//! name, here at its end. The peers know a target by its index and are given no name to look up, so that the row
//! `receive-handle` is the one that compares like with like; `receive-id` finds the target by its name first.
// As in tests: what cannot happen ends the run.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)]

mod alloc;
mod peers;
mod report;
mod work;

use report::Report;
use work::Ours;

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

fn main() {
    let is_given = |flag: &str| std::env::args().any(|arg| arg == flag);
    // `cargo test` runs benches to see that they work.
    let quick = is_given("--quick") || is_given("--test") || !is_given("--bench");
    let sizes = if is_given("--bench") { &SIZES[..] } else { &SIZES[..1] };
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let report = Report::new(is_given("--json"), if quick { 1 } else { 5 }, only);
    for &targets in sizes {
        let names = work::names(targets);
        let order = work::shuffled(targets);
        report.measure(&format!("heartbeat/receive-id/targets={targets}"), "ns", |who| match who {
            None => work::receive_by_id(&names, &order),
            Some(peer) => peers::reset(peer, &order),
        });
        report.measure(&format!("heartbeat/receive-handle/targets={targets}"), "ns", |who| match who {
            None => work::receive_by_handle(&names, &order),
            Some(peer) => peers::reset(peer, &order),
        });
        report.measure(&format!("heartbeat/bytes/targets={targets}"), "bytes", |who| match who {
            None => alloc::grown(|| Ours::watching(names.clone()), |ours| ours.watch_all()) / targets as f64,
            Some(peer) => peers::bytes(peer, targets),
        });
        // The peers' timers neither ask nor judge, so that their share would be of other work.
        report.measure_alone(&format!("heartbeat/cpu/targets={targets}"), "% of a core", || {
            work::cpu_share(&names)
        });
        report.measure(&format!("heartbeat/lateness-p99/targets={targets}"), "ms", |who| match who {
            None => work::lateness(&names, &order),
            Some(peer) => peers::lateness(peer, &order),
        });
    }
}
