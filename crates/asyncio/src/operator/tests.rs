//! Tests of the core. Names that begin with a letter and a number are cases of the semantic specification.

mod backpressure;
mod basics;
mod chains;
mod driver;
mod ended_budgets;
mod exploration;
mod figures;
mod finality;
mod keyed;
mod model;
mod no_timer_left;
mod queueing;
mod restoring;
mod retries;
mod sequences;
mod shared;
mod timeouts;
