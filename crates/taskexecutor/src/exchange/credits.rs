//! The credits of one channel, on both sides.
//!
//! What was granted and not yet sent, and what lies in the consumer's buffer, is together always as much as the buffer
//! holds. So a batch without credit is one that finds the buffer full, and needs no count of its own.

/// The sender's side: how many batches may still be sent.
#[derive(Debug, Default)]
pub struct CreditWindow {
    left: u64,
}

impl CreditWindow {
    /// The consumer allows `batches` more.
    pub fn grant(&mut self, batches: u32) {
        self.left = self.left.saturating_add(u64::from(batches));
    }

    /// Whether a batch may be sent.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.left > 0
    }

    /// Spends the credit for one batch; false: there is none.
    #[must_use]
    pub fn spend(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        true
    }
}

/// The consumer's side: how many batches were granted.
#[derive(Debug)]
pub struct Grants {
    buffer: u64,
    granted: u64,
}

impl Grants {
    /// The grants of a consumer whose buffer holds so many batches.
    #[must_use]
    pub fn new(buffer: u32) -> Self {
        Self { buffer: u64::from(buffer), granted: 0 }
    }

    /// How many batches to grant now that so many were taken out of the buffer in all.
    pub fn due(&mut self, taken: u64) -> Option<u32> {
        let wanted = taken.saturating_add(self.buffer);
        let due = u32::try_from(wanted.saturating_sub(self.granted)).unwrap_or(u32::MAX);
        self.granted += u64::from(due);
        (due > 0).then_some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_sends_exactly_what_it_was_granted() {
        let mut window = CreditWindow::default();
        assert!(!window.spend());
        window.grant(2);
        assert_eq!([window.spend(), window.spend(), window.spend()], [true, true, false]);
        assert!(!window.is_open());
        window.grant(1);
        assert!(window.is_open());
    }

    #[test]
    fn the_consumer_grants_what_it_has_taken_and_each_batch_once() {
        let mut grants = Grants::new(4);
        assert_eq!(grants.due(0), Some(4));
        assert_eq!(grants.due(0), None);
        assert_eq!(grants.due(3), Some(3));
        assert_eq!(grants.due(3), None);
        assert_eq!(grants.due(4), Some(1));
    }
}
