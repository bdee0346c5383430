//! Where records go.

pub mod file;
