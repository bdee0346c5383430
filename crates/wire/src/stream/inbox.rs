//! The receiver's side of a numbered stream.

/// The number of the last message that was taken.
///
/// A number that leaves some out is taken: a sender leaves out only what an earlier life of the receiver has
/// acknowledged.
#[derive(Debug, Clone, Copy, Default)]
pub struct Inbox {
    last: u64,
}

impl Inbox {
    /// Whether the message of this number is to be taken: it is new, or has no number. An old one was taken before.
    #[must_use = "an old message must be dropped"]
    pub fn take(&mut self, number: u64) -> bool {
        if number == 0 {
            return true;
        }
        let new = number > self.last;
        self.last = self.last.max(number);
        new
    }

    /// The number to acknowledge: everything up to it was taken.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.last
    }
}
