//! Where checkpoints are kept, and what they look like there.
//!
//! A *store* is a flat space of named objects behind a URL; a job's objects lie below its id. Each task writes the state
//! of its steps as an object of its own, unless it is small, and the job master writes one more, the *metadata*, once all
//! tasks have acknowledged: a checkpoint is complete when its metadata is there.
//!
//! Everything here blocks, and is called where blocking is allowed.

mod store;

pub use store::{CheckpointStore, StoreError, Stores};
