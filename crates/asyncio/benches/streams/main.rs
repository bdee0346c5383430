//! What waiting costs: ours beside `futures::buffered` and `buffer_unordered`, one measurement a process.
//!
//! A source of numbers, one call for each, a sink that adds them up, all on one thread. A process measures one case and
//! prints one JSON object, so that a runner can take the cases in turn and a slow minute of the machine hits every peer.
//! A record that gets lost fails the run. `cargo xtask bench asyncio` is that runner; by hand:
//!
//! ```text
//! streams stream PEER ORDER WORK CAPACITY RECORDS [--count]
//! streams queue ORDER PATTERN IN_FLIGHT ELEMENTS
//! ```
//!
//! `PEER`: `tidegate` | `tidegate-closures` | `futures` | `futures-spawned` | `futures-timeout` | `map`; see [`case`].
//! `ORDER`: `ordered` | `unordered` | `keyed`. `WORK`: see [`work`]. `PATTERN`: see [`queue`]. With `--count`
//! allocations are counted, which costs time.

mod allocations;
mod case;
mod machine;
mod meter;
mod ours;
mod outside;
mod peers;
mod queue;
mod work;

use std::error::Error;
use std::process::ExitCode;

/// Why a case was not measured.
type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let line = match args.split_first() {
        Some((&"stream", rest)) => case::Case::parse(rest).and_then(|case| case.measure()),
        Some((&"queue", rest)) => queue::measure(rest),
        // As `cargo bench` starts it.
        None => Ok("`cargo xtask bench asyncio` runs the cases of this program".to_owned()),
        Some((other, _)) => Err(format!("`{other}` is neither `stream` nor `queue`").into()),
    };
    match line {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
