//! One case: who, in which order, with which work, how many at a time.
//!
//! | peer | is |
//! |---|---|
//! | `tidegate` | ours, timeout armed; calls completed from outside have a callback |
//! | `tidegate-closures` | ours, timeout armed; calls completed from outside are futures on a oneshot channel |
//! | `futures` | `buffered`, `buffer_unordered`: no timeout, calls make progress only while the stream is polled |
//! | `futures-spawned` | the same with each call a task, which makes progress by itself as ours do |
//! | `futures-timeout` | the same as `futures` with `tokio::time::timeout` around each call |
//! | `map` | no call at all, for scale |

use std::str::FromStr;
use std::sync::Arc;

use crate::meter::{Meter, Stamps};
use crate::work::Work;
use crate::{Failure, allocations, machine, ours, peers};

/// Whom to measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Peer {
    Ours,
    OursAsClosures,
    Futures,
    FuturesSpawned,
    FuturesWithTimeout,
    Map,
}

impl FromStr for Peer {
    type Err = Failure;

    fn from_str(name: &str) -> Result<Self, Failure> {
        Ok(match name {
            "tidegate" => Self::Ours,
            "tidegate-closures" => Self::OursAsClosures,
            "futures" => Self::Futures,
            "futures-spawned" => Self::FuturesSpawned,
            "futures-timeout" => Self::FuturesWithTimeout,
            "map" => Self::Map,
            _ => return Err(format!("`{name}` is no peer").into()),
        })
    }
}

/// In which order results leave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Order {
    Ordered,
    Unordered,
    Keyed,
}

impl FromStr for Order {
    type Err = Failure;

    fn from_str(name: &str) -> Result<Self, Failure> {
        Ok(match name {
            "ordered" => Self::Ordered,
            "unordered" => Self::Unordered,
            "keyed" => Self::Keyed,
            _ => return Err(format!("`{name}` is no order").into()),
        })
    }
}

/// A measurement.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// As it was asked for.
    names: String,
    pub(crate) peer: Peer,
    pub(crate) order: Order,
    pub(crate) work: Work,
    pub(crate) capacity: usize,
    pub(crate) records: u64,
    counts: bool,
}

impl Case {
    /// `PEER ORDER WORK CAPACITY RECORDS [--count]`.
    pub(crate) fn parse(args: &[&str]) -> Result<Self, Failure> {
        let (args, counts) = match args {
            [args @ .., "--count"] => (args, true),
            args => (args, false),
        };
        let &[peer, order, work, capacity, records] = args else {
            return Err("PEER ORDER WORK CAPACITY RECORDS [--count]".into());
        };
        Ok(Self {
            names: format!(
                "\"peer\":\"{peer}\",\"mode\":\"{order}\",\"fn\":\"{work}\",\"capacity\":{capacity}"
            ),
            peer: peer.parse()?,
            order: order.parse()?,
            work: work.parse()?,
            capacity: capacity.parse()?,
            records: records.parse()?,
            counts,
        })
    }

    /// Runs it and gives a line of JSON.
    pub(crate) fn measure(self) -> Result<String, Failure> {
        let stamps = Stamps::new(self.work.is_timed());
        let mut meter = Meter::new(self.records, self.marks()?, Arc::clone(&stamps));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        if self.counts {
            allocations::count();
        }
        runtime.block_on(async {
            match self.peer {
                Peer::Ours | Peer::OursAsClosures => ours::run(&self, stamps, &mut meter).await,
                _ => peers::run(&self, stamps, &mut meter).await,
            }
        })?;
        let memory = if self.counts {
            format!(",\"peak_bytes_in_use\":{}", allocations::peak_bytes())
        } else {
            String::new()
        };
        Ok(format!(
            "{{\"bench\":\"async\",{},{}{memory},\"peak_rss_mib\":{:.1}}}",
            self.names,
            meter.figures()?,
            machine::peak_rss()
        ))
    }

    /// From when everything is in flight and warm until the last record; with spread delays until the last call is made,
    /// since the rest is a thinning tail.
    fn marks(&self) -> Result<(u64, u64), Failure> {
        let capacity = self.capacity as u64;
        let begin = (self.records / 4).max(capacity);
        let end = if self.work.is_spread() { self.records.saturating_sub(capacity) } else { self.records };
        if begin >= end {
            return Err(format!("{} records are too few for this capacity", self.records).into());
        }
        Ok((begin, end))
    }
}
