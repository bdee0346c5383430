//! Tests of the core. Names that begin with a letter and a number are cases of the semantic specification.

mod basics;
mod driver;
mod figures;
mod keyed;
mod model;
mod queueing;
mod retries;
mod timeouts;
