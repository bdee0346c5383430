//! The slots that a job holds.
//!
//! Flink: `DeclarativeSlotPool`. A slot comes by an offer, is taken by a *sharing group* (subtask `i` of every chain
//! shares slot `i`), and leaves with its task executor, by a failure, or when it is in excess. A pure core.

use std::collections::{BTreeMap, BTreeSet};

use runtime_core::{AllocationId, ResourceId, Tick};

/// A slot as the job sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PooledSlot {
    /// The promise it comes with.
    pub allocation: AllocationId,
    /// Whose slot.
    pub task_executor: ResourceId,
    /// Which of its slots.
    pub index: u32,
    /// The sharing group in it.
    pub group: Option<u32>,
    /// The group that was in it before; it is given the same slot again where it can.
    pub previous: Option<u32>,
    /// Since when nothing has been in it.
    pub idle_since: Tick,
}

/// All slots of one job.
#[derive(Debug, Default)]
pub struct SlotPool {
    slots: BTreeMap<AllocationId, PooledSlot>,
    required: usize,
    /// Task executors to which nothing new is deployed.
    suspects: BTreeSet<ResourceId>,
}

impl SlotPool {
    /// How many slots the job needs from now on.
    pub fn require(&mut self, slots: u32) {
        self.required = slots as usize;
    }

    /// Deals with an offer: a known slot is taken again, another one as long as slots are missing.
    /// Returns whether it was taken.
    pub fn offer(
        &mut self,
        allocation: AllocationId,
        task_executor: &ResourceId,
        index: u32,
        now: Tick,
    ) -> bool {
        if let Some(known) = self.slots.get(&allocation) {
            return known.task_executor == *task_executor;
        }
        if self.slots.len() >= self.required {
            return false;
        }
        self.slots.insert(
            allocation,
            PooledSlot {
                allocation,
                task_executor: task_executor.clone(),
                index,
                group: None,
                previous: None,
                idle_since: now,
            },
        );
        true
    }

    /// Whether nothing new is to be deployed to this task executor. Its slots are kept, and what runs in them runs on.
    pub fn suspect(&mut self, task_executor: &ResourceId, suspect: bool) {
        if suspect {
            self.suspects.insert(task_executor.clone());
        } else {
            self.suspects.remove(task_executor);
        }
    }

    fn is_open(&self, slot: &PooledSlot) -> bool {
        slot.group.is_none() && !self.suspects.contains(&slot.task_executor)
    }

    /// Puts these sharing groups into slots, or nothing if there are too few that are not a suspect's. A group gets the slot
    /// that it had before where that is still here; the others are spread over the task executors by the order of their
    /// slots.
    pub fn assign(&mut self, groups: &BTreeSet<u32>) -> Option<BTreeMap<u32, PooledSlot>> {
        let mut taken: BTreeMap<u32, AllocationId> = BTreeMap::new();
        for slot in self.slots.values() {
            // One that has its slot already shares it.
            if let Some(group) = slot.group.filter(|group| groups.contains(group)) {
                taken.insert(group, slot.allocation);
            }
        }
        let free = self.slots.values().filter(|slot| self.is_open(slot)).count();
        if free + taken.len() < groups.len() {
            return None;
        }
        for slot in self.slots.values_mut() {
            let open = slot.group.is_none() && !self.suspects.contains(&slot.task_executor);
            let before = slot.previous.filter(|g| open && groups.contains(g) && !taken.contains_key(g));
            if let Some(group) = before {
                slot.group = Some(group);
                taken.insert(group, slot.allocation);
            }
        }
        // Round by round over the task executors, so that neighbouring groups lie apart.
        let mut rounds: BTreeMap<&ResourceId, usize> = BTreeMap::new();
        let mut open: Vec<(usize, AllocationId)> = Vec::new();
        for slot in self.slots.values() {
            let round = rounds.entry(&slot.task_executor).or_default();
            if self.is_open(slot) {
                open.push((*round, slot.allocation));
            }
            *round += 1;
        }
        open.sort();
        let mut open = open.into_iter();
        for group in groups {
            if taken.contains_key(group) {
                continue;
            }
            let (_, allocation) = open.next()?;
            if let Some(slot) = self.slots.get_mut(&allocation) {
                slot.group = Some(*group);
                taken.insert(*group, allocation);
            }
        }
        Some(
            taken.into_iter().filter_map(|(group, id)| Some((group, self.slots.get(&id)?.clone()))).collect(),
        )
    }

    /// Takes these groups out of their slots; the slots stay.
    pub fn vacate(&mut self, groups: &BTreeSet<u32>, now: Tick) {
        for slot in self.slots.values_mut() {
            if let Some(group) = slot.group.take_if(|group| groups.contains(group)) {
                slot.previous = Some(group);
                slot.idle_since = now;
            }
        }
    }

    /// Forgets the slots of a task executor. Returns how many there were.
    pub fn release_task_executor(&mut self, task_executor: &ResourceId) -> usize {
        self.suspects.remove(task_executor);
        let before = self.slots.len();
        self.slots.retain(|_, slot| slot.task_executor != *task_executor);
        before - self.slots.len()
    }

    /// Forgets one slot.
    pub fn release(&mut self, allocation: AllocationId) -> Option<PooledSlot> {
        self.slots.remove(&allocation)
    }

    /// Takes out the slots that have been idle since before `idle_since` and are not needed.
    pub fn take_excess(&mut self, idle_since: Tick) -> Vec<PooledSlot> {
        let mut excess = Vec::new();
        while self.slots.len() > self.required {
            let idle = self.slots.values().find(|s| s.group.is_none() && s.idle_since <= idle_since);
            let Some(allocation) = idle.map(|s| s.allocation) else { break };
            excess.extend(self.slots.remove(&allocation));
        }
        excess
    }

    /// Takes out all slots: the job is over.
    pub fn drain(&mut self) -> Vec<PooledSlot> {
        std::mem::take(&mut self.slots).into_values().collect()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &PooledSlot> {
        self.slots.values()
    }

    /// The slots on one task executor, as its heartbeats carry them.
    pub fn on<'a>(&'a self, task_executor: &'a ResourceId) -> impl Iterator<Item = &'a PooledSlot> {
        self.slots.values().filter(move |slot| slot.task_executor == *task_executor)
    }

    /// How many slots there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many slots the job needs.
    #[must_use]
    pub fn required(&self) -> usize {
        self.required
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn te(name: &str) -> ResourceId {
        name.parse().unwrap()
    }

    const fn id(n: u128) -> AllocationId {
        AllocationId::from_u128(n)
    }

    fn groups(count: u32) -> BTreeSet<u32> {
        (0..count).collect()
    }

    #[test]
    fn a_group_that_comes_later_gets_a_slot_of_its_own() {
        let mut pool = pool(2);
        pool.offer(id(1), &te("a"), 0, Tick::ZERO);
        pool.offer(id(2), &te("b"), 0, Tick::ZERO);
        let first = pool.assign(&BTreeSet::from([0])).unwrap();
        let second = pool.assign(&BTreeSet::from([1])).unwrap();
        assert_ne!(first[&0].allocation, second[&1].allocation);
        pool.vacate(&BTreeSet::from([1]), Tick::ZERO);
        assert_eq!(pool.assign(&groups(2)).unwrap()[&0].allocation, first[&0].allocation);
    }

    fn pool(required: u32) -> SlotPool {
        let mut pool = SlotPool::default();
        pool.require(required);
        pool
    }

    #[test]
    fn c036_offers_beyond_what_is_required_are_refused() {
        let mut pool = pool(1);
        assert!(pool.offer(id(1), &te("a"), 0, Tick::ZERO));
        assert!(!pool.offer(id(2), &te("a"), 1, Tick::ZERO));
        assert_eq!(pool.len(), 1);
    }

    #[test]
    fn c037_a_known_allocation_is_accepted_again() {
        let mut pool = pool(1);
        assert!(pool.offer(id(1), &te("a"), 0, Tick::ZERO));
        assert!(pool.offer(id(1), &te("a"), 0, Tick::ZERO));
        assert!(!pool.offer(id(1), &te("b"), 0, Tick::ZERO), "the same promise from somebody else");
    }

    #[test]
    fn groups_are_spread_over_the_task_executors() {
        let mut pool = pool(4);
        for (n, name, index) in [(1, "a", 0), (2, "a", 1), (3, "b", 0), (4, "b", 1)] {
            assert!(pool.offer(id(n), &te(name), index, Tick::ZERO));
        }
        let assigned = pool.assign(&groups(2)).unwrap();
        assert_ne!(assigned[&0].task_executor, assigned[&1].task_executor);
    }

    #[test]
    fn a_group_gets_its_previous_slot_again() {
        let mut pool = pool(2);
        pool.offer(id(1), &te("a"), 0, Tick::ZERO);
        pool.offer(id(2), &te("b"), 0, Tick::ZERO);
        let first = pool.assign(&groups(2)).unwrap();
        pool.vacate(&groups(2), Tick::ZERO);
        let again = pool.assign(&groups(2)).unwrap();
        for group in 0..2 {
            assert_eq!(first[&group].allocation, again[&group].allocation);
        }
    }

    #[test]
    fn nothing_is_deployed_to_a_suspect() {
        let mut pool = pool(2);
        pool.offer(id(1), &te("a"), 0, Tick::ZERO);
        pool.offer(id(2), &te("b"), 0, Tick::ZERO);
        assert!(pool.assign(&groups(2)).is_some());
        pool.vacate(&groups(2), Tick::ZERO);
        pool.suspect(&te("a"), true);
        assert_eq!(pool.assign(&groups(2)), None, "also the slot that a group had before");
        assert_eq!(pool.assign(&groups(1)).unwrap()[&0].task_executor, te("b"));
        pool.vacate(&groups(2), Tick::ZERO);
        pool.suspect(&te("a"), false);
        assert!(pool.assign(&groups(2)).is_some());
    }

    #[test]
    fn nothing_is_assigned_while_a_slot_is_missing() {
        let mut pool = pool(2);
        pool.offer(id(1), &te("a"), 0, Tick::ZERO);
        assert_eq!(pool.assign(&groups(2)), None);
        assert_eq!(pool.release_task_executor(&te("a")), 1);
        assert!(pool.is_empty());
    }

    #[test]
    fn c049_an_idle_slot_goes_back_only_when_it_is_in_excess() {
        let mut pool = pool(2);
        pool.offer(id(1), &te("a"), 0, Tick::ZERO);
        pool.offer(id(2), &te("a"), 1, Tick::ZERO);
        assert!(pool.take_excess(Tick::MAX).is_empty(), "both are needed");
        pool.require(1);
        assert_eq!(pool.take_excess(Tick::MAX).len(), 1);
        assert_eq!(pool.len(), 1);
    }
}
