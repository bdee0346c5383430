//! Payloads apart from signs of life: what changed, with a version, within a budget.
//!
//! In the original everything a peer has to report travels in every answer, without a bound, so that one large report can cost
//! a heartbeat. Here a report is made of *parts* with keys (a slot, an attempt, an accumulator). A frame carries the parts
//! that changed since the frame before, and its receiver applies it only to the version that it was made from; after a
//! gap, or for another life of either side, everything is sent anew. A frame never exceeds the budget: what does not fit waits
//! for the next, where those that have waited longest go first; optional parts give way to required ones, and have a turn
//! of their own every few frames. A part that could not be made is left out and nothing else is.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// A megabyte: a tenth of the largest message that transports of this kind take.
const BUDGET: usize = 1 << 20;
/// Optional parts that do not fit go every so many frames.
const EVERY: NonZeroU32 = NonZeroU32::new(5).unwrap();

/// One part of a report, as it stands now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<P, V> {
    /// What it is about.
    pub key: P,
    /// What there is to say. `None`: it could not be made; what was said last still stands.
    pub value: Option<V>,
    /// How many bytes it takes.
    pub size: usize,
    /// Whether it may wait when the frame is full, like an accumulator.
    pub optional: bool,
}

/// What travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadFrame<P, V> {
    /// The version that it was made from; 0: it is a full report.
    pub base: u64,
    /// The version that it makes.
    pub version: u64,
    /// The parts that changed, and with `None` those that are gone.
    pub parts: Vec<(P, Option<V>)>,
}

/// The sending side: knows what the receiver has been told.
///
/// ```
/// use heartbeat::{Part, PayloadInbox, PayloadOutbox, PayloadReceived};
///
/// let part = |key, value| Part { key, value: Some(value), size: 8, optional: false };
/// let (mut outbox, mut inbox) = (PayloadOutbox::new(), PayloadInbox::new());
/// let full = outbox.frame([part("slot 0", "free"), part("slot 1", "free")]);
/// assert_eq!(inbox.receive(&7, full), PayloadReceived::Applied);
///
/// let delta = outbox.frame([part("slot 0", "free"), part("slot 1", "allocated")]);
/// assert_eq!(delta.parts, [("slot 1", Some("allocated"))]);
/// assert_eq!(inbox.receive(&7, delta), PayloadReceived::Applied);
/// assert_eq!(inbox.parts()["slot 1"], "allocated");
/// ```
#[derive(Debug)]
pub struct PayloadOutbox<P, V> {
    budget: usize,
    every: NonZeroU32,
    version: u64,
    full: bool,
    frames: u32,
    told: BTreeMap<P, V>,
    /// For how many frames a changed part has waited.
    waiting: BTreeMap<P, u32>,
    too_large: u64,
}

impl<P: Ord + Clone, V: Clone + PartialEq> Default for PayloadOutbox<P, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Ord + Clone, V: Clone + PartialEq> PayloadOutbox<P, V> {
    /// An outbox with a budget of 1 MiB a frame, whose optional parts go every fifth frame if they do not fit.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_budget(BUDGET, EVERY)
    }

    /// An outbox of this many bytes a frame.
    #[must_use]
    pub const fn with_budget(budget: usize, every: NonZeroU32) -> Self {
        Self {
            budget,
            every,
            version: 0,
            full: true,
            frames: 0,
            told: BTreeMap::new(),
            waiting: BTreeMap::new(),
            too_large: 0,
        }
    }

    /// The next frame is a full report: the receiver asked for one, or is another life of itself.
    pub fn resync(&mut self) {
        self.full = true;
    }

    /// Parts that were left out because one alone is larger than the budget.
    #[must_use]
    pub const fn too_large(&self) -> u64 {
        self.too_large
    }

    /// The next frame, from the report as it stands now.
    pub fn frame(&mut self, report: impl IntoIterator<Item = Part<P, V>>) -> PayloadFrame<P, V> {
        let base = if std::mem::take(&mut self.full) {
            self.told.clear();
            self.waiting.clear();
            0
        } else {
            self.version
        };
        self.version += 1;
        self.frames = self.frames.wrapping_add(1);
        let mut gone = std::mem::take(&mut self.told);
        let mut changed = Vec::new();
        for part in report {
            let before = gone.remove(&part.key);
            match (part.value, before) {
                (Some(value), before) if before.as_ref() != Some(&value) => {
                    if let Some(before) = before {
                        self.told.insert(part.key.clone(), before);
                    }
                    let waited = self.waiting.get(&part.key).copied().unwrap_or(0);
                    changed.push(Changed {
                        key: part.key,
                        value,
                        size: part.size,
                        optional: part.optional,
                        waited,
                    });
                }
                (_, Some(before)) => drop(self.told.insert(part.key, before)),
                (_, None) => {}
            }
        }
        let mut parts: Vec<(P, Option<V>)> = gone.into_keys().map(|key| (key, None)).collect();
        self.fill(changed, &mut parts);
        PayloadFrame { base, version: self.version, parts }
    }

    fn fill(&mut self, changed: Vec<Changed<P, V>>, parts: &mut Vec<(P, Option<V>)>) {
        let optional: usize = changed.iter().filter(|part| part.optional).map(|part| part.size).sum();
        let required: usize = changed.iter().filter(|part| !part.optional).map(|part| part.size).sum();
        let fits = required.saturating_add(optional) <= self.budget;
        let their_turn = fits || self.frames.is_multiple_of(self.every.get());
        let mut order = changed;
        // In their turn the optional parts go first, or they would never go beside a full frame of required ones.
        order.sort_by_key(|part| (part.optional != (their_turn && !fits), u32::MAX - part.waited));
        let mut left = self.budget;
        self.waiting.clear();
        for part in order {
            if part.size > self.budget {
                self.too_large += 1;
            } else if part.size <= left && (!part.optional || their_turn) {
                left -= part.size;
                self.told.insert(part.key.clone(), part.value.clone());
                parts.push((part.key, Some(part.value)));
            } else {
                self.waiting.insert(part.key, part.waited + 1);
            }
        }
    }
}

struct Changed<P, V> {
    key: P,
    value: V,
    size: usize,
    optional: bool,
    waited: u32,
}

/// What became of a payload frame. Whatever it is, the sign of life that came with it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadReceived {
    /// The report is up to date.
    Applied,
    /// A frame before it is missing, or it is of another life: nothing was changed, and a full report is to be asked for.
    NeedsFullSync,
    /// It was applied before, or is older: nothing was changed.
    Old,
}

/// The receiving side: the report of one peer, as far as it was told.
#[derive(Debug)]
pub struct PayloadInbox<P, V, N> {
    life: Option<N>,
    version: u64,
    parts: BTreeMap<P, V>,
}

impl<P: Ord, V, N: Clone + Eq> Default for PayloadInbox<P, V, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Ord, V, N: Clone + Eq> PayloadInbox<P, V, N> {
    /// An inbox that knows nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { life: None, version: 0, parts: BTreeMap::new() }
    }

    /// Takes in a frame of this life of the peer.
    pub fn receive(&mut self, life: &N, frame: PayloadFrame<P, V>) -> PayloadReceived {
        let same_life = self.life.as_ref() == Some(life);
        if same_life && frame.version <= self.version {
            return PayloadReceived::Old;
        }
        if frame.base == 0 {
            self.parts.clear();
            self.life = Some(life.clone());
        } else if !same_life || frame.base != self.version {
            return PayloadReceived::NeedsFullSync;
        }
        self.version = frame.version;
        for (key, value) in frame.parts {
            match value {
                Some(value) => drop(self.parts.insert(key, value)),
                None => drop(self.parts.remove(&key)),
            }
        }
        PayloadReceived::Applied
    }

    /// The report.
    #[must_use]
    pub const fn parts(&self) -> &BTreeMap<P, V> {
        &self.parts
    }
}
