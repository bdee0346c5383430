//! Text for people: tables, numbers, times.

mod number;
mod table;
mod time;

pub(crate) use number::{grouped, size};
pub(crate) use table::{Align, Table, pairs};
pub(crate) use time::{date_time, duration};
