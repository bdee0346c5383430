//! Where checkpoints are kept, and what they look like there.
//!
//! A *store* is a flat space of named objects behind a URL; a job's objects lie below its id. Each task writes the state
//! of its steps as an object of its own, unless it is small, and the job master writes one more, the *metadata*, once all
//! tasks have acknowledged: a checkpoint is complete when its metadata is there. `docs/checkpoint-format.md` shows the
//! bytes.
//!
//! Everything here blocks, and is called where blocking is allowed. Nothing here decides when a checkpoint is taken, kept
//! or restored: that is the job master's.

mod envelope;
mod file;
pub mod layout;
mod memory;
pub mod metadata;
mod name;
pub mod operators;
#[cfg(feature = "remote")]
mod remote;
pub mod savepoint;
mod state;
mod store;
mod stores;
mod words;

pub use envelope::{FormatError, ReadError};
pub use memory::{MemoryStore, MemoryStores};
pub use state::{INLINE_LIMIT, read_state, write_state};
pub use store::{CheckpointStore, StoreError, Stores};
pub use stores::UrlStores;
