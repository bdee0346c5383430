//! Defects that other systems have had, each a test against the public face of this crate. The numbers are those of a
//! catalogue of such defects; those that are missing in it concern other parts.
#![cfg(feature = "tokio")]
// Everything here is a test; what the tests share stands in functions that the lints do not know as such.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod batches;
mod delivery;
mod interleavings;
mod latency;
mod places;
mod replay;
mod timeouts;

use std::time::Duration;

use asyncio::{Options, OptionsBuilder, Order};
use runtime_core::{Record, StreamElement};

const ORDERS: [Order; 3] = [Order::Ordered, Order::Unordered, Order::Keyed];

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn built(options: OptionsBuilder) -> Options {
    options.build().unwrap()
}

fn record<T>(value: T) -> StreamElement<T> {
    StreamElement::Record(Record::new(value))
}
