//! The slot manager driven by hand.

use std::time::Duration;

use rand::SeedableRng;

use super::*;

const JOB: JobId = JobId::from_u128(1);
const INSTANCE: InstanceId = InstanceId::from_u128(10);

fn te(name: &str) -> ResourceId {
    name.parse().unwrap()
}

fn master(epoch: u64) -> JobMasterAddress {
    JobMasterAddress { address: "http://jm".into(), epoch: Epoch(epoch) }
}

fn free(slots: u32) -> Vec<ReportedSlot> {
    (0..slots).map(|index| ReportedSlot { index, state: ReportedState::Free }).collect()
}

fn cluster(workers: &[(&str, u32)]) -> SlotManager {
    let mut slots = SlotManager::new(SmallRng::seed_from_u64(1));
    for (name, count) in workers {
        slots.add_worker(te(name), INSTANCE, &free(*count), Tick::ZERO);
    }
    slots
}

fn requests(slots: &mut SlotManager) -> Vec<(ResourceId, u32, AllocationId)> {
    slots
        .take_effects()
        .into_iter()
        .filter_map(|e| match e {
            Effect::RequestSlot { task_executor, index, allocation, .. } => {
                Some((task_executor, index, allocation))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn c030_a_job_that_needs_two_slots_is_promised_two_on_different_task_executors() {
    let mut slots = cluster(&[("a", 2), ("b", 2)]);
    slots.declare(JOB, master(1), 1, 2, Tick::ZERO);
    let asked = requests(&mut slots);
    assert_eq!(asked.len(), 2);
    assert_ne!(asked[0].0, asked[1].0, "taken evenly");
    for (_, _, allocation) in asked {
        slots.slot_requested(allocation, true, Tick::ZERO);
    }
    slots.declare(JOB, master(1), 2, 2, Tick::ZERO);
    assert!(requests(&mut slots).is_empty(), "nothing is missing");
}

#[test]
fn a_refused_slot_is_free_again_and_the_job_gets_another() {
    let mut slots = cluster(&[("a", 1)]);
    slots.declare(JOB, master(1), 1, 1, Tick::ZERO);
    let first = requests(&mut slots)[0].2;
    slots.slot_requested(first, false, Tick::ZERO);
    let second = requests(&mut slots)[0].2;
    assert_ne!(first, second);
}

#[test]
fn c045_a_late_answer_to_a_request_that_no_longer_counts_is_ignored() {
    let mut slots = cluster(&[("a", 1)]);
    slots.declare(JOB, master(1), 1, 1, Tick::ZERO);
    let allocation = requests(&mut slots)[0].2;
    slots.slot_available(&te("a"), INSTANCE, 0, allocation, Tick::ZERO);
    let next = requests(&mut slots)[0].2;
    slots.slot_requested(allocation, true, Tick::ZERO);
    let held: Vec<_> = slots.workers().flat_map(|(_, w)| w.slots.clone()).collect();
    assert_eq!(held, vec![SlotState::Pending { allocation: next, job: JOB }]);
}

#[test]
fn c046_a_report_frees_what_was_allocated_and_leaves_what_is_pending() {
    let mut slots = cluster(&[("a", 2)]);
    slots.declare(JOB, master(1), 1, 2, Tick::ZERO);
    let asked = requests(&mut slots);
    slots.slot_requested(asked[0].2, true, Tick::ZERO);
    assert!(slots.report(&te("a"), INSTANCE, &free(2), Tick::ZERO));
    assert_eq!(
        requests(&mut slots).len(),
        1,
        "the allocated one is promised anew, the pending one is on its way"
    );
}

#[test]
fn a_held_slot_in_the_first_report_is_adopted() {
    let mut slots = SlotManager::new(SmallRng::seed_from_u64(1));
    slots.declare(JOB, master(1), 1, 1, Tick::ZERO);
    let allocation = AllocationId::from_u128(5);
    let report = [ReportedSlot { index: 0, state: ReportedState::Held { allocation, job: JOB } }];
    slots.add_worker(te("a"), INSTANCE, &report, Tick::ZERO);
    assert!(requests(&mut slots).is_empty(), "the job has its slot already");
}

#[test]
fn a_lost_task_executor_leaves_its_jobs_in_need() {
    let mut slots = cluster(&[("a", 1), ("b", 1)]);
    slots.declare(JOB, master(1), 1, 1, Tick::ZERO);
    let (task_executor, _, allocation) = requests(&mut slots)[0].clone();
    slots.slot_requested(allocation, true, Tick::ZERO);
    assert!(
        !slots.remove_worker(&task_executor, InstanceId::from_u128(99), Tick::ZERO),
        "another registration"
    );
    assert!(slots.remove_worker(&task_executor, INSTANCE, Tick::ZERO));
    assert_ne!(requests(&mut slots)[0].0, task_executor);
}

#[test]
fn c005_a_new_registration_drops_the_slots_of_the_old_one() {
    let mut slots = cluster(&[("a", 1)]);
    slots.declare(JOB, master(1), 1, 1, Tick::ZERO);
    let allocation = requests(&mut slots)[0].2;
    slots.slot_requested(allocation, true, Tick::ZERO);
    slots.add_worker(te("a"), InstanceId::from_u128(11), &free(1), Tick::ZERO);
    assert_eq!(requests(&mut slots).len(), 1, "the job is matched anew");
    assert!(
        !slots.report(&te("a"), INSTANCE, &free(1), Tick::ZERO),
        "the old registration says nothing any more"
    );
}

#[test]
fn an_older_declaration_that_arrives_late_does_not_win() {
    let mut slots = cluster(&[("a", 4)]);
    slots.declare(JOB, master(1), 2, 1, Tick::ZERO);
    slots.declare(JOB, master(1), 1, 4, Tick::ZERO);
    assert_eq!(requests(&mut slots).len(), 1);
    slots.declare(JOB, master(2), 1, 2, Tick::ZERO);
    assert_eq!(requests(&mut slots).len(), 1, "a new term starts its own count");
    slots.declare(JOB, master(1), 9, 4, Tick::ZERO);
    assert!(requests(&mut slots).is_empty(), "the old term is over");
}

#[test]
fn c043_when_requirements_are_cleared_unused_slots_are_called_back() {
    let mut slots = cluster(&[("a", 2)]);
    slots.declare(JOB, master(1), 1, 1, Tick::ZERO);
    slots.take_effects();
    slots.declare(JOB, master(1), 2, 0, Tick::ZERO);
    assert_eq!(slots.take_effects(), vec![Effect::FreeInactiveSlots { task_executor: te("a"), job: JOB }]);
}

#[test]
fn a_job_without_a_master_is_promised_nothing_until_one_declares_again() {
    let mut slots = cluster(&[("a", 1)]);
    slots.declare(JOB, master(1), 1, 1, Tick::ZERO);
    let allocation = requests(&mut slots)[0].2;
    slots.slot_requested(allocation, true, Tick::ZERO);
    slots.job_master_gone(JOB);
    slots.slot_available(&te("a"), INSTANCE, 0, allocation, Tick::ZERO);
    assert!(requests(&mut slots).is_empty(), "nobody would take it");
    assert_eq!(slots.next_overdue(Duration::ZERO), None, "nobody would be told");
    // The same master was unreachable for a while and says again what it has said; a later one says it anew.
    slots.declare(JOB, master(1), 1, 1, Tick::ZERO);
    assert_eq!(requests(&mut slots).len(), 1);
    let mut slots = cluster(&[("a", 1)]);
    slots.declare(JOB, master(1), 7, 2, Tick::ZERO);
    requests(&mut slots);
    slots.job_master_gone(JOB);
    slots.declare(JOB, master(2), 1, 2, Tick::ZERO);
    slots.add_worker(te("b"), INSTANCE, &free(1), Tick::ZERO);
    assert_eq!(requests(&mut slots).len(), 1);
}

#[test]
fn a_suspect_gets_nothing_new() {
    let mut slots = cluster(&[("a", 2)]);
    slots.set_suspect(&te("a"), true, Tick::ZERO);
    slots.declare(JOB, master(1), 1, 1, Tick::ZERO);
    assert!(requests(&mut slots).is_empty());
    slots.set_suspect(&te("a"), false, Tick::ZERO);
    assert_eq!(requests(&mut slots).len(), 1);
}

#[test]
fn c050_a_job_that_cannot_be_served_is_told_once_and_only_after_the_grace() {
    let mut slots = cluster(&[]);
    let grace = Duration::from_secs(300);
    slots.declare(JOB, master(1), 1, 2, Tick::ZERO);
    slots.tell_overdue(Tick::from_millis(299_999), grace);
    assert!(slots.take_effects().is_empty());
    assert_eq!(slots.next_overdue(grace), Some(Tick::from_millis(300_000)));
    slots.tell_overdue(Tick::from_millis(300_000), grace);
    slots.tell_overdue(Tick::from_millis(300_001), grace);
    let told = vec![Effect::NotEnoughResources { job: JOB, required: 2, acquired: 0 }];
    assert_eq!(slots.take_effects(), told);
    assert_eq!(slots.next_overdue(grace), None);
}

#[test]
fn a_job_that_stays_without_a_master_is_over_and_one_that_has_another_is_not() {
    let mut slots = cluster(&[("a", 1)]);
    slots.declare(JOB, master(1), 1, 1, Tick::ZERO);
    let allocation = requests(&mut slots)[0].2;
    slots.slot_requested(allocation, true, Tick::ZERO);
    slots.job_master_gone(JOB);
    slots.declare(JOB, master(2), 1, 1, Tick::ZERO);
    assert!(!slots.job_timed_out(JOB, Tick::ZERO), "its next master has come in time");
    slots.job_master_gone(JOB);
    assert!(slots.job_timed_out(JOB, Tick::ZERO));
    assert_eq!(slots.take_effects(), vec![Effect::FreeInactiveSlots { task_executor: te("a"), job: JOB }]);
    assert!(!slots.job_timed_out(JOB, Tick::ZERO), "it is over once");
}
