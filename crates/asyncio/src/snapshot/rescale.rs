//! Snapshots under another parallelism.
//!
//! Each old subtask's elements stay one unit, in order. A subtask that receives several units plays them as one stream in
//! which a watermark stands only where *every* unit has passed it: otherwise a record of another unit, older than the
//! watermark, would come behind it and be late. (Flink deals the elements out one by one and loses that order.)

use runtime_core::Watermark;

use super::encoding::LAST_NUMBER;
use super::{Snapshot, Stored, Unit};

impl<I> Snapshot<I> {
    /// The units of all these together, for one operator that takes over from several. Their watermarks are brought
    /// together when it is [restored](crate::AsyncWaitOperator::restore).
    ///
    /// ```
    /// # use asyncio::{AsyncWaitOperator, Options, Snapshot};
    /// # use runtime_core::{Record, StreamElement, Tick};
    /// # let stored = |n: u32| {
    /// #     let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build().unwrap());
    /// #     operator.push(StreamElement::Record(Record::new(n)), Tick::ZERO).unwrap();
    /// #     operator.snapshot().unwrap().cloned()
    /// # };
    /// let (first, second) = (stored(1), stored(2));
    /// let both = Snapshot::combined([first, second]);
    /// assert_eq!(both.len(), 2);
    /// ```
    #[must_use]
    pub fn combined(snapshots: impl IntoIterator<Item = Self>) -> Self {
        let mut combined = Self { operator: String::new(), units: Vec::new() };
        for Self { operator, units } in snapshots {
            combined.operator = operator;
            combined.units.extend(units);
        }
        combined
    }

    /// Cut into as many snapshots as there are `parts`, each record in the part that `part_of` names, from 0; for keyed
    /// state, the subtask that has the record's key group. Watermarks and statuses stand in every part, so that each keeps
    /// its order around them.
    ///
    /// A `part_of` beyond the last part counts as the last; no parts count as one.
    ///
    /// ```
    /// # use asyncio::{AsyncWaitOperator, Options};
    /// # use runtime_core::{Record, StreamElement, Tick};
    /// # let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build()?);
    /// # for n in 0..5 { operator.push(StreamElement::Record(Record::new(n)), Tick::ZERO).unwrap(); }
    /// # let snapshot = operator.snapshot().unwrap().cloned();
    /// let parts = snapshot.split(2, |n| (n % 2) as usize);
    /// assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [3, 2]);
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    #[must_use]
    pub fn split(self, parts: usize, mut part_of: impl FnMut(&I) -> usize) -> Vec<Self> {
        let parts = parts.max(1);
        let empty = || Self { operator: self.operator.clone(), units: Vec::new() };
        let mut split: Vec<Self> = std::iter::repeat_with(empty).take(parts).collect();
        for Unit { next_sequence, elements } in self.units {
            for part in &mut split {
                part.units.push(Unit { next_sequence, elements: Vec::new() });
            }
            for stored in elements {
                match stored {
                    Stored::Record { record, attempts, identity } => {
                        let part = part_of(&record.value).min(parts - 1);
                        append(split.get_mut(part), Stored::Record { record, attempts, identity });
                    }
                    Stored::Watermark(watermark) => {
                        split.iter_mut().for_each(|part| append(Some(part), Stored::Watermark(watermark)));
                    }
                    Stored::Status(status) => {
                        split.iter_mut().for_each(|part| append(Some(part), Stored::Status(status)));
                    }
                }
            }
        }
        split
    }

    /// The units as one stream. A single one stays as it is; of several, watermarks beyond what every unit has passed are
    /// left out, and so are statuses: what comes before the operator tells both anew after a restore.
    pub(crate) fn merged(mut self) -> Unit<I> {
        if self.units.len() <= 1 {
            return self.units.pop().unwrap_or(Unit { next_sequence: 0, elements: Vec::new() });
        }
        let watermarks = passed_by_all(&self.units);
        // Above every number that was given out in any unit.
        let numbers = self.units.iter().map(|unit| unit.next_sequence);
        let next_sequence = numbers.fold(0, u64::saturating_add).min(LAST_NUMBER);
        let mut rest: Vec<_> = self.units.into_iter().map(|unit| (None, unit.elements.into_iter())).collect();
        let mut elements = Vec::new();
        for watermark in watermarks {
            for (passed, unit) in &mut rest {
                // A unit's watermarks are fewer than all units': it may have passed this one with a later one of its own.
                while *passed < Some(watermark)
                    && let Some(stored) = unit.next()
                {
                    match stored {
                        Stored::Watermark(own) => *passed = (*passed).max(Some(own)),
                        Stored::Status(_) => {}
                        record @ Stored::Record { .. } => elements.push(record),
                    }
                }
            }
            elements.push(Stored::Watermark(watermark));
        }
        for (_, unit) in rest {
            elements.extend(unit.filter(|stored| matches!(stored, Stored::Record { .. })));
        }
        Unit { next_sequence, elements }
    }
}

/// The watermarks that every unit has passed, in order, each once.
fn passed_by_all<I>(units: &[Unit<I>]) -> Vec<Watermark> {
    let of = |unit: &Unit<I>| -> Vec<Watermark> {
        let watermarks = unit.elements.iter().filter_map(|stored| match stored {
            Stored::Watermark(watermark) => Some(*watermark),
            _ => None,
        });
        watermarks.collect()
    };
    let Some(bound) = units.iter().map(|unit| of(unit).into_iter().max()).min().flatten() else {
        return Vec::new();
    };
    let mut watermarks: Vec<Watermark> =
        units.iter().flat_map(of).filter(|&watermark| watermark <= bound).collect();
    watermarks.sort_unstable();
    watermarks.dedup();
    watermarks
}

fn append<I>(part: Option<&mut Snapshot<I>>, stored: Stored<I>) {
    if let Some(unit) = part.and_then(|part| part.units.last_mut()) {
        unit.elements.push(stored);
    }
}
