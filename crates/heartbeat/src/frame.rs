//! The liveness frame: what the part of a process that reads from the network says, also while its main loop is busy.
//!
//! A heartbeat that waits for the main loop cannot tell a dead process from a busy one. A frame is answered beside the
//! loop and carries the loop's age, so that the watcher can: no frames means *dead*, frames whose loop age grows beyond
//! `stuck_timeout` mean *stuck*. Payloads travel apart; a frame is a few dozen bytes whatever the peer has to report.

use runtime_core::{Incarnation, Tick};
use std::time::Duration;

/// What a process says of itself, beside its payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivenessFrame<N> {
    /// Which life of the sender says it.
    pub incarnation: N,
    /// Grows by at least one with each frame of this life, from 1. What is not newer is dropped.
    pub sequence: u64,
    /// When it was sent, on the sender's monotonic clock; the receiver gives it back as `echo`.
    pub sent_at: Tick,
    /// How long ago the sender's main loop last turned.
    pub main_loop_age: Duration,
    /// How long the sender noticed that it stood still, since its last frame to anybody.
    pub stall: Duration,
    /// The `sent_at` of the last frame that the sender had from the receiver: what a lease is reckoned from
    /// ([`SelfFence`](crate::SelfFence)).
    pub echo: Option<Tick>,
}

impl<N> LivenessFrame<N> {
    /// The same frame for a watcher that tells lives apart by something else, such as the registration that they made.
    #[must_use]
    pub fn with_incarnation<M>(self, incarnation: M) -> LivenessFrame<M> {
        let Self { sequence, sent_at, main_loop_age, stall, echo, .. } = self;
        LivenessFrame { incarnation, sequence, sent_at, main_loop_age, stall, echo }
    }
}

/// A frame as it was received is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// It has another length.
    #[error("a liveness frame has {LENGTH} bytes, not {0}: its sender speaks another version")]
    Length(usize),
    /// It is of another version.
    #[error("a liveness frame of version {0}, but this side knows version {VERSION}")]
    Version(u8),
}

const VERSION: u8 = 1;
const LENGTH: usize = 1 + 16 + 8 + 8 + 4 + 4 + 8;
/// The end of time stands for "no echo": no frame was sent then.
const NO_ECHO: u64 = u64::MAX;

impl LivenessFrame<Incarnation> {
    /// The frame as it may travel in a datagram: 49 bytes.
    ///
    /// ```
    /// use heartbeat::LivenessFrame;
    /// use runtime_core::{Incarnation, Tick};
    /// use std::time::Duration;
    ///
    /// let frame = LivenessFrame {
    ///     incarnation: Incarnation::from_u128(7),
    ///     sequence: 3,
    ///     sent_at: Tick::from_millis(1_000),
    ///     main_loop_age: Duration::from_millis(4),
    ///     stall: Duration::ZERO,
    ///     echo: None,
    /// };
    /// assert_eq!(LivenessFrame::decode(&frame.encode()), Ok(frame));
    /// assert!(frame.encode().len() <= 64);
    /// ```
    #[must_use]
    pub fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let millis = |duration: Duration| u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
        let parts: [&[u8]; 7] = [
            &[VERSION],
            &self.incarnation.to_bytes(),
            &self.sequence.to_be_bytes(),
            &self.sent_at.as_nanos().to_be_bytes(),
            &millis(self.main_loop_age).to_be_bytes(),
            &millis(self.stall).to_be_bytes(),
            &self.echo.map_or(NO_ECHO, Tick::as_nanos).to_be_bytes(),
        ];
        let all = parts.into_iter().flatten();
        bytes.iter_mut().zip(all).for_each(|(to, from)| *to = *from);
        bytes
    }

    /// Reads a frame. Durations come back in whole milliseconds.
    ///
    /// # Errors
    /// The bytes are no frame of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let bytes = <&[u8; LENGTH]>::try_from(bytes).map_err(|_| FrameError::Length(bytes.len()))?;
        let mut rest = bytes.as_slice();
        let [version] = take(&mut rest);
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        let incarnation = Incarnation::from_u128(u128::from_be_bytes(take(&mut rest)));
        let sequence = u64::from_be_bytes(take(&mut rest));
        let sent_at = Tick::from_nanos(u64::from_be_bytes(take(&mut rest)));
        let mut millis = || Duration::from_millis(u64::from(u32::from_be_bytes(take(&mut rest))));
        let (main_loop_age, stall) = (millis(), millis());
        let echo = u64::from_be_bytes(take(&mut rest));
        let echo = (echo != NO_ECHO).then(|| Tick::from_nanos(echo));
        Ok(Self { incarnation, sequence, sent_at, main_loop_age, stall, echo })
    }
}

/// The next bytes; zeros beyond the end, which the length rules out.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (first, behind) = rest.split_first_chunk::<N>().unwrap_or((&[0; N], &[]));
    *rest = behind;
    *first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_frame_is_refused() {
        assert_eq!(LivenessFrame::decode(b"hello"), Err(FrameError::Length(5)));
        assert_eq!(LivenessFrame::decode(&[9; LENGTH]), Err(FrameError::Version(9)));
    }
}
