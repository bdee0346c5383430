//! The built program: what it prints, what it asks and with which status it ends.

// What the tests share stands in functions that the lints do not take for tests.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod look_and_end;
mod offline;
mod run;
mod support;
