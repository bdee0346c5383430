//! The slot table driven by hand.

use runtime_core::{Epoch, VertexId};

use super::*;

const JOB: JobId = JobId::from_u128(1);
const OTHER: JobId = JobId::from_u128(2);

const fn id(n: u128) -> AllocationId {
    AllocationId::from_u128(n)
}

fn attempt(job: JobId, subtask: u32) -> AttemptId {
    AttemptId { job, term: Epoch(1), vertex: VertexId(0), subtask, attempt: 0 }
}

fn table(slots: u32) -> SlotTable {
    SlotTable::new(slots, Duration::from_secs(10))
}

fn at(secs: u64) -> Tick {
    Tick::from_millis(secs * 1000)
}

#[test]
fn c032_a_repeated_request_gets_the_same_slot_and_another_job_or_slot_an_error() {
    let mut table = table(2);
    assert_eq!(table.allocate(JOB, id(1), Some(1), at(0)), Ok(1));
    assert_eq!(table.allocate(JOB, id(1), Some(1), at(1)), Ok(1));
    assert_eq!(table.allocate(JOB, id(1), None, at(1)), Ok(1));
    assert!(matches!(table.allocate(JOB, id(1), Some(0), at(1)), Err(SlotError::Conflict { .. })));
    assert!(matches!(table.allocate(OTHER, id(1), Some(1), at(1)), Err(SlotError::Conflict { .. })));
    assert_eq!(table.views().filter(|s| s.owner.is_some()).count(), 1, "nothing leaked");
}

#[test]
fn a_slot_that_is_taken_absent_or_beyond_the_last_is_refused() {
    let mut table = table(1);
    assert!(matches!(
        table.allocate(JOB, id(1), Some(5), at(0)),
        Err(SlotError::Unknown { index: 5, slots: 1 })
    ));
    table.allocate(JOB, id(1), None, at(0)).unwrap();
    assert!(matches!(table.allocate(OTHER, id(2), Some(0), at(0)), Err(SlotError::Occupied { .. })));
    assert!(matches!(table.allocate(OTHER, id(2), None, at(0)), Err(SlotError::NoneFree { slots: 1 })));
}

#[test]
fn c033_a_task_that_comes_before_the_answer_to_the_offer_makes_the_slot_active() {
    let mut table = table(1);
    table.allocate(JOB, id(1), None, at(0)).unwrap();
    table.add_task(id(1), attempt(JOB, 0)).unwrap();
    table.activate(JOB, id(1)).unwrap();
    assert!(table.expire(at(60)).is_empty());
}

#[test]
fn c061_a_task_for_a_free_slot_is_refused() {
    let mut table = table(1);
    assert!(matches!(table.add_task(id(1), attempt(JOB, 0)), Err(SlotError::NotAllocated { .. })));
    table.allocate(OTHER, id(1), None, at(0)).unwrap();
    assert!(matches!(table.add_task(id(1), attempt(JOB, 0)), Err(SlotError::NotAllocated { .. })));
}

#[test]
fn c038_an_allocated_slot_that_nobody_takes_is_free_after_its_timeout() {
    let mut table = table(1);
    table.allocate(JOB, id(1), None, at(0)).unwrap();
    assert_eq!(table.next_deadline(), Some(at(10)));
    assert!(table.expire(Tick::from_millis(9_999)).is_empty());
    assert_eq!(table.expire(at(10)), vec![Freed { index: 0, allocation: id(1), job: JOB }]);
    assert_eq!(table.next_deadline(), None);
}

#[test]
fn a_slot_with_tasks_is_free_when_the_last_one_has_stopped() {
    let mut table = table(1);
    table.allocate(JOB, id(1), None, at(0)).unwrap();
    table.add_task(id(1), attempt(JOB, 0)).unwrap();
    table.add_task(id(1), attempt(JOB, 1)).unwrap();
    let (freed, stopping) = table.free(id(1));
    assert_eq!((freed, stopping.len()), (None, 2));
    assert!(table.add_task(id(1), attempt(JOB, 2)).is_err(), "nothing new begins in it");
    assert_eq!(table.remove_task(&attempt(JOB, 0)), None);
    assert_eq!(table.remove_task(&attempt(JOB, 1)).map(|f| f.allocation), Some(id(1)));
}

#[test]
fn c092_when_a_job_master_is_lost_its_slots_wait_for_the_next_and_another_job_goes_on() {
    let mut table = table(2);
    table.allocate(JOB, id(1), None, at(0)).unwrap();
    table.allocate(OTHER, id(2), None, at(0)).unwrap();
    table.add_task(id(1), attempt(JOB, 0)).unwrap();
    table.add_task(id(2), attempt(OTHER, 0)).unwrap();
    assert_eq!(table.job_master_lost(JOB, at(5)), vec![attempt(JOB, 0)]);
    assert_eq!(table.next_deadline(), None, "not before its task has stopped");
    table.remove_task(&attempt(JOB, 0));
    assert_eq!(table.to_offer(JOB), vec![(id(1), 0)]);
    assert_eq!(table.expire(at(15)).len(), 1);
    assert!(table.holds(OTHER) && !table.holds(JOB));
}

#[test]
fn c040_c041_two_views_of_the_slots_are_reconciled_both_ways() {
    let mut table = table(3);
    table.allocate(JOB, id(1), None, at(0)).unwrap();
    table.activate(JOB, id(1)).unwrap();
    table.allocate(JOB, id(2), None, at(0)).unwrap();
    let differences = table.reconcile(JOB, &[id(9)]);
    assert_eq!(differences.fail_there, vec![id(9)], "it believes in a slot that is not here");
    assert_eq!(
        differences.free_here,
        vec![id(1)],
        "it has forgotten an active one; the allocated one is on its way"
    );
}

#[test]
fn inactive_slots_of_an_ended_job_are_freed_and_active_ones_are_not() {
    let mut table = table(2);
    table.allocate(JOB, id(1), None, at(0)).unwrap();
    table.allocate(JOB, id(2), None, at(0)).unwrap();
    table.activate(JOB, id(2)).unwrap();
    assert_eq!(table.free_inactive(JOB).iter().map(|f| f.allocation).collect::<Vec<_>>(), vec![id(1)]);
}
