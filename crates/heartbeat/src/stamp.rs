//! When each target was last heard: what a heartbeat writes.
//!
//! Stamps lie apart from the rest of what is known of a target, 32 bytes each, and may be written from any thread: the one
//! that reads from the network stamps a target itself, and the owner finds the stamp when it next looks. So heartbeats
//! that come in while the owner is busy are not lost behind it, and it never judges a target that was heard.
//!
//! Nothing is ordered by a stamp and each is read alone, so all accesses are relaxed: on the machines we know, plain loads
//! and stores. Two threads that stamp one target at one moment may lose one of two counts, never a sign of life.

use crate::frame::LivenessFrame;
use crate::watch::Received;
use runtime_core::Tick;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Enough that a handle's share of the reference count's line is small, and a small owner holds 2 kB.
const CHUNK: usize = 64;
/// The loop's age while no frame has told it.
const UNKNOWN: u32 = u32::MAX;
/// More than an hour fits, and no timeout is that long.
const GAP_SHIFT: u32 = 10;
/// The bit of `life` beside the generation.
const CLOSELY: u32 = 1;

/// One target's stamp. Aligned so that none lies across two cache lines.
#[derive(Debug)]
#[repr(align(32))]
pub(crate) struct Stamp {
    /// Nanoseconds of the owner's clock; before the first heartbeat, when monitoring began.
    last_seen: AtomicU64,
    /// The lower half of the newest frame's number; 0 before the first.
    sequence: AtomicU32,
    /// The longest between two heartbeats since the owner looked last, in units of 1,024 ns: a shift instead of a division. The
    /// longest, because an answer may be two signs of life, one right behind the other.
    gap: AtomicU32,
    /// Heartbeats so far; 0 also means that none has come. Saturates.
    beats: AtomicU32,
    /// Which of the targets that had this place it is, and below it a bit: what [`Self::is_watched_closely`] says.
    life: AtomicU32,
    /// How old the turn of the peer's loop was, by the last frame; in milliseconds.
    loop_age: AtomicU32,
    /// Heartbeats that the owner has taken note of. Only the owner's.
    counted: AtomicU32,
}

impl Stamp {
    const fn new() -> Self {
        Self {
            last_seen: AtomicU64::new(0),
            sequence: AtomicU32::new(0),
            gap: AtomicU32::new(0),
            beats: AtomicU32::new(0),
            life: AtomicU32::new(0),
            loop_age: AtomicU32::new(UNKNOWN),
            counted: AtomicU32::new(0),
        }
    }

    /// Gives the place to another target, or to none: whatever has a handle of the old one stamps no more.
    pub(crate) fn renew(&self, now: Tick) {
        self.life.store((self.life.load(Relaxed) | CLOSELY).wrapping_add(1), Relaxed);
        self.last_seen.store(now.as_nanos(), Relaxed);
        self.sequence.store(0, Relaxed);
        self.beats.store(0, Relaxed);
        self.counted.store(0, Relaxed);
        self.gap.store(0, Relaxed);
        self.loop_age.store(UNKNOWN, Relaxed);
    }

    /// Whether a heartbeat of this target is more than a stamp to its owner: it is a suspect, or was judged. It stands here
    /// because a heartbeat reads this line anyway, and not the one where it is known which of the two.
    #[inline]
    pub(crate) fn is_watched_closely(&self) -> bool {
        self.life.load(Relaxed) & CLOSELY != 0
    }

    /// Only the owner's.
    pub(crate) fn watch_closely(&self, closely: bool) {
        let life = self.life.load(Relaxed);
        self.life.store(if closely { life | CLOSELY } else { life & !CLOSELY }, Relaxed);
    }

    #[inline]
    pub(crate) fn heard(&self, now: Tick) {
        // What waited in a queue may come with an older time than what overtook it.
        let (now, before) = (now.as_nanos(), self.last_seen.load(Relaxed));
        let beats = self.beats.load(Relaxed);
        if now > before {
            self.last_seen.store(now, Relaxed);
            // What lies before the first is no gap between two.
            if beats > 0 {
                let gap = ((now - before) >> GAP_SHIFT) as u32;
                self.gap.store(self.gap.load(Relaxed).max(gap), Relaxed);
            }
        }
        self.beats.store(beats.saturating_add(1), Relaxed);
    }

    /// Whether the frame was newer than those before it.
    pub(crate) fn heard_frame(&self, sequence: u64, main_loop_age: Duration, now: Tick) -> bool {
        let sequence = sequence as u32;
        // Counted round: newer is what is ahead by less than half of all numbers.
        if sequence.wrapping_sub(self.sequence.load(Relaxed)).cast_signed() <= 0 {
            return false;
        }
        self.sequence.store(sequence, Relaxed);
        let age = u32::try_from(main_loop_age.as_millis()).unwrap_or(UNKNOWN - 1).min(UNKNOWN - 1);
        self.loop_age.store(age, Relaxed);
        self.heard(now);
        true
    }

    /// When the target was last heard, or monitoring began.
    pub(crate) fn last_seen(&self) -> Tick {
        Tick::from_nanos(self.last_seen.load(Relaxed))
    }

    pub(crate) fn is_heard(&self) -> bool {
        self.beats.load(Relaxed) > 0
    }

    pub(crate) fn generation(&self) -> u32 {
        self.life.load(Relaxed) >> 1
    }

    /// How long the peer's loop had not turned when it last said so.
    pub(crate) fn main_loop_age(&self) -> Option<Duration> {
        let age = self.loop_age.load(Relaxed);
        (age != UNKNOWN).then(|| Duration::from_millis(u64::from(age)))
    }

    /// Heartbeats since this was asked last, and the longest gap before one of them.
    pub(crate) fn take_beats(&self) -> (u32, Option<Duration>) {
        let (beats, counted) = (self.beats.load(Relaxed), self.counted.load(Relaxed));
        self.counted.store(beats, Relaxed);
        let gap = self.gap.load(Relaxed);
        if gap > 0 {
            self.gap.store(0, Relaxed);
        }
        let gap = (gap > 0).then(|| Duration::from_nanos(u64::from(gap) << GAP_SHIFT));
        (beats.saturating_sub(counted), gap)
    }
}

type Chunk = [Stamp; CHUNK];

/// The stamps of all targets, by place. They never move: a chunk lives as long as a handle of it.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    chunks: Vec<Arc<Chunk>>,
}

impl Stamps {
    /// Makes room for the place.
    pub(crate) fn reach(&mut self, place: usize) {
        while self.chunks.len() * CHUNK <= place {
            self.chunks.push(Arc::new([const { Stamp::new() }; CHUNK]));
        }
    }

    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<&Stamp> {
        self.chunks.get(place / CHUNK)?.get(place % CHUNK)
    }

    pub(crate) fn handle(&self, place: usize) -> Option<HeartbeatHandle> {
        let chunk = Arc::clone(self.chunks.get(place / CHUNK)?);
        let generation = chunk.get(place % CHUNK)?.generation();
        // Below 64.
        Some(HeartbeatHandle { chunk, place: (place % CHUNK) as u32, generation })
    }
}

/// Stamps one life of one target, from any thread, without its manager: one store, whatever the number of targets.
///
/// Once the target is no longer monitored, or another life of it is, the handle stamps nothing.
///
/// ```
/// use heartbeat::{Effect, HeartbeatServices, Received};
/// use runtime_core::Tick;
///
/// let services = HeartbeatServices::new(Default::default())?; // 10 s, 50 s
/// let mut workers = services.create_heartbeat_manager("worker");
/// workers.monitor_target("worker-1", 1, Tick::ZERO);
/// let handle = workers.handle(&"worker-1").ok_or("not monitored")?;
///
/// std::thread::spawn(move || handle.receive_heartbeat(Tick::from_millis(30_000))).join().unwrap();
/// assert_eq!(workers.advance(Tick::from_millis(50_000)), [], "heard 20 s ago");
/// assert!(matches!(workers.advance(Tick::from_millis(80_000))[..], [Effect::Verdict(_)]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct HeartbeatHandle {
    chunk: Arc<Chunk>,
    place: u32,
    generation: u32,
}

impl HeartbeatHandle {
    /// Notes a sign of life at `now`.
    #[inline]
    pub fn receive_heartbeat(&self, now: Tick) -> Received {
        let Some(stamp) = self.stamp() else { return Received::UnknownTarget };
        stamp.heard(now);
        Received::Applied
    }

    /// Notes a liveness frame that came in at `now`. That it is of this life of the target is the caller's to check; one
    /// that is not newer than those before it is dropped.
    pub fn receive_frame<N>(&self, frame: &LivenessFrame<N>, now: Tick) -> Received {
        let Some(stamp) = self.stamp() else { return Received::UnknownTarget };
        if stamp.heard_frame(frame.sequence, frame.main_loop_age, now) {
            Received::Applied
        } else {
            Received::OldSequence
        }
    }

    /// The stamp, while it is this life's. The place may change hands just after this was asked; what is written then is a
    /// moment at which the new target has just begun to be monitored, which is no later than its timeout runs from.
    #[inline]
    fn stamp(&self) -> Option<&Stamp> {
        let stamp = self.chunk.get(self.place as usize)?;
        (stamp.generation() == self.generation).then_some(stamp)
    }
}

impl fmt::Debug for HeartbeatHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeartbeatHandle")
            .field("last_seen", &self.stamp().map(Stamp::last_seen))
            .finish_non_exhaustive()
    }
}
