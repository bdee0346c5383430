//! The lock of the calls that are futures.
//!
//! In tests with the feature `model` it is loom's, whose tests try every order of the steps of several threads.

#[cfg(all(test, feature = "model"))]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(all(test, feature = "model")))]
pub(crate) use std::sync::{Mutex, MutexGuard};
