//! One-way messages between two roles that have registered: in order, none lost while both live, none applied twice.
//!
//! gRPC keeps the order of one stream, but a stream breaks and what was under way on it is gone. So messages are
//! numbered from 1, kept until the receiver has acknowledged them ([`Outbox`]), sent again on the next stream, and
//! dropped by the receiver where it has had them ([`Inbox`]). Both belong to one pair of incarnations: whoever sees
//! another life of its peer starts with new ones. [`Duplex`] is both together with the stream of the moment.

mod duplex;
mod envelope;
mod inbox;
mod outbox;
#[cfg(test)]
mod tests;
mod tie;

pub use duplex::{Duplex, listen};
pub use envelope::Envelope;
pub use inbox::Inbox;
pub use outbox::Outbox;
pub use tie::{Tie, tied};
