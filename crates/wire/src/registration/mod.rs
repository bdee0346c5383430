//! Registration with retry (Flink: `RetryingRegistration`).
//!
//! A role that registers at another tries until it is accepted or rejected, or until it is no longer wanted. When to
//! try again is the core's decision ([`core`]); the [`shell`] makes the attempts and waits. Losing a race to a newer
//! registration is no case of its own: whoever starts a new one drops the old one, and a dropped one is silent.

pub mod core;
pub mod options;
pub mod reply;
pub mod shell;
#[cfg(test)]
mod tests;

pub use self::core::{Effect, Event, Notice, RetryingRegistration};
pub use options::{Backoff, RegistrationOptions};
pub use reply::{Registered, Reply};
pub use shell::{Rejected, register};
