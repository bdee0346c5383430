//! The scheduler driven by hand, without checkpoints: a chain of two subtasks and a single-file sink behind it.

mod checkpoints;
mod random;

use std::time::Duration;

use runtime_core::Clock as _;

use super::*;
use crate::status::ExecutionState;

const SLOT_TIMEOUT: Duration = Duration::from_secs(300);

fn now(millis: u64) -> Now {
    Now { tick: Tick::from_millis(millis), wall: EpochMillis(i64::try_from(millis).unwrap()), jitter: 0.0 }
}

fn te(name: &str) -> ResourceId {
    name.parse().unwrap()
}

fn graph(restart: &str) -> Arc<JobGraph> {
    let text = format!(
        "name: j\nparallelism: 2\n{restart}source: {{file: {{path: /in/a.jsonl}}}}\n\
         steps: [{{filter: 'a > 1'}}]\nsink: {{file: {{path: /out/b.jsonl}}}}\n"
    );
    let file = job::file::JobFile::parse(&text, "j.yaml").unwrap();
    Arc::new(job::plan::plan(&file).unwrap())
}

const SWEEP_ALL: Effect = Effect::Sweep { commit: Vec::new(), attempts: None };

const FIXED: &str = "restart: {strategy: fixed-delay, attempts: 1, delay: 1s}\n";

struct Driver {
    scheduler: Scheduler,
}

impl Driver {
    fn new(restart: &str) -> Self {
        let graph = graph(restart);
        Self { scheduler: Scheduler::new(JobId::from_u128(1), Epoch(7), graph, SLOT_TIMEOUT, now(0)) }
    }

    /// Prepared, with one slot on each of two task executors, and deployed.
    fn running(restart: &str) -> (Self, Vec<AttemptId>) {
        let mut driver = Self::new(restart);
        assert_eq!(driver.effects(), vec![Effect::Prepare]);
        driver.scheduler.prepared(Ok(vec![v1::FileSplit::default()]), now(1));
        assert!(driver.effects().contains(&Effect::Declare(2)));
        driver.offer_both(2);
        let attempts = driver.submits();
        for attempt in &attempts {
            driver.scheduler.submitted(attempt, Ok(()), now(3));
            driver.report(*attempt, ExecutionState::Running, 4);
        }
        (driver, attempts)
    }

    fn offer_both(&mut self, at: u64) {
        for (n, name) in [(1, "te-1"), (2, "te-2")] {
            let allocation = AllocationId::from_u128(n);
            assert_eq!(self.scheduler.offer(&te(name), &[(allocation, 0)], now(at)), vec![allocation]);
        }
    }

    fn effects(&mut self) -> Vec<Effect> {
        self.scheduler.take_effects()
    }

    fn submits(&mut self) -> Vec<AttemptId> {
        self.effects()
            .into_iter()
            .filter_map(|e| if let Effect::Submit(d) = e { Some(d.attempt) } else { None })
            .collect()
    }

    fn report(&mut self, attempt: AttemptId, state: ExecutionState, at: u64) {
        self.report_full(attempt, state, "boom", false, v1::Figures::default(), at);
    }

    fn report_full(
        &mut self,
        attempt: AttemptId,
        state: ExecutionState,
        error: &str,
        unrecoverable: bool,
        figures: v1::Figures,
        at: u64,
    ) {
        let staged = if attempt.vertex.0 == 1 {
            vec![v1::StagedFile { staged_path: "s".into(), final_path: "f".into(), length: 1, offset: None }]
        } else {
            Vec::new()
        };
        let last = v1::TaskSnapshot { staged, ..v1::TaskSnapshot::default() };
        let last = (state == ExecutionState::Finished).then(|| Box::new(last));
        let update =
            TaskUpdate { attempt, state, error: error.into(), unrecoverable, figures: Some(figures), last };
        self.scheduler.task_state(&te("te-1"), update, now(at));
    }
}

#[test]
fn a_job_goes_from_slots_over_tasks_to_its_committed_output() {
    let (mut driver, attempts) = Driver::running("");
    assert_eq!(attempts.len(), 3, "two of the chain and one of the sink");
    assert_eq!(attempts[0].vertex.0, 1, "the consumer goes first");
    assert_eq!(driver.scheduler.status(), JobStatus::Running);
    for attempt in attempts {
        driver.report(attempt, ExecutionState::Finished, 10);
    }
    let effects = driver.effects();
    assert!(matches!(effects.as_slice(), [Effect::Commit(staged)] if staged.len() == 1), "{effects:?}");
    assert_eq!(driver.scheduler.status(), JobStatus::Running, "not finished before the output is visible");
    driver.scheduler.committed(Ok(()), now(11));
    assert_eq!(driver.scheduler.status(), JobStatus::Finished);
    let effects = driver.effects();
    assert_eq!(effects.iter().filter(|e| matches!(e, Effect::FreeSlot(..))).count(), 2);
    assert_eq!(effects.last(), Some(&Effect::Ended));
}

#[test]
fn consumers_know_their_producers_and_producers_where_their_consumers_run() {
    let mut driver = Driver::new("");
    driver.effects();
    driver.scheduler.prepared(Ok(Vec::new()), now(1));
    driver.effects();
    driver.offer_both(2);
    let deployments: Vec<Deployment> = driver
        .effects()
        .into_iter()
        .filter_map(|e| if let Effect::Submit(d) = e { Some(*d) } else { None })
        .collect();
    let sink = deployments.iter().find(|d| d.attempt.vertex.0 == 1).unwrap();
    assert_eq!(sink.inputs.len(), 1);
    assert_eq!(sink.inputs[0].1.len(), 2, "one channel from each subtask upstream");
    for producer in deployments.iter().filter(|d| d.attempt.vertex.0 == 0) {
        assert_eq!(producer.outputs[0].1, vec![(sink.attempt, sink.task_executor.clone())]);
    }
}

#[test]
fn c081_without_a_strategy_a_failed_task_fails_the_job_and_the_cause_is_named() {
    let (mut driver, attempts) = Driver::running("");
    driver.report(attempts[0], ExecutionState::Failed, 10);
    assert_eq!(driver.scheduler.status(), JobStatus::Failing);
    let cancels = driver.effects().into_iter().filter(|e| matches!(e, Effect::CancelTask { .. })).count();
    assert_eq!(cancels, 2);
    driver.report(attempts[1], ExecutionState::Canceled, 11);
    driver.report(attempts[2], ExecutionState::Canceled, 11);
    assert_eq!(driver.effects(), vec![SWEEP_ALL]);
    driver.scheduler.swept(Ok(()), now(12));
    assert_eq!(driver.scheduler.status(), JobStatus::Failed);
    let failure = driver.scheduler.failure().unwrap();
    assert!(failure.contains("boom") && failure.contains("(1/1)") && failure.contains("none"), "{failure}");
}

#[test]
fn a_failed_task_restarts_the_whole_job_once_everything_has_stopped_and_the_pause_is_over() {
    let (mut driver, attempts) = Driver::running(FIXED);
    driver.report(attempts[0], ExecutionState::Failed, 10);
    assert_eq!(driver.scheduler.status(), JobStatus::Restarting);
    driver.effects();
    driver.report(attempts[1], ExecutionState::Failed, 11);
    driver.report(attempts[2], ExecutionState::Canceled, 12);
    let effects = driver.effects();
    let [Effect::WakeAt(timer, at)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(*at, Tick::from_millis(1010));
    driver.scheduler.wake(*timer, now(1010));
    assert_eq!(driver.effects(), vec![SWEEP_ALL], "nothing is deployed beside files of the life before");
    driver.scheduler.swept(Ok(()), now(1011));
    let again = driver.submits();
    assert_eq!(again.len(), 3);
    assert!(again.iter().all(|a| a.attempt == 1), "{again:?}");
    assert_eq!(driver.scheduler.restarts(), 1);
    assert_eq!(driver.scheduler.status(), JobStatus::Running);
}

#[test]
fn a_restart_sets_records_back_and_keeps_what_was_asked_of_others() {
    let (mut driver, attempts) =
        Driver::running("restart: {strategy: fixed-delay, attempts: 1, delay: 0s}\n");
    let figures = v1::Figures { records_in: 5, calls: 4, retries: 2, ..v1::Figures::default() };
    driver.report_full(attempts[1], ExecutionState::Failed, "boom", false, figures, 10);
    for attempt in attempts {
        driver.report(attempt, ExecutionState::Canceled, 11);
    }
    driver.scheduler.swept(Ok(()), now(12));
    let counts = driver.scheduler.counts();
    assert_eq!((counts.records_in, counts.calls, counts.retries), (0, 4, 2));
}

#[test]
fn c078_what_would_happen_again_consults_no_strategy() {
    let (mut driver, attempts) = Driver::running(FIXED);
    driver.report_full(
        attempts[0],
        ExecutionState::Failed,
        "line 3 is no JSON",
        true,
        v1::Figures::default(),
        10,
    );
    assert_eq!(driver.scheduler.status(), JobStatus::Failing);
}

#[test]
fn the_loss_of_a_task_executor_is_one_failure_and_the_job_waits_for_another_slot() {
    let (mut driver, attempts) =
        Driver::running("restart: {strategy: fixed-delay, attempts: 1, delay: 0s}\n");
    driver.scheduler.task_executor_lost(&te("te-1"), "no longer reachable", now(10));
    let stopped: Vec<AttemptId> = driver
        .effects()
        .into_iter()
        .filter_map(|e| if let Effect::CancelTask { attempt, .. } = e { Some(attempt) } else { None })
        .collect();
    assert!(!stopped.is_empty() && stopped.len() < attempts.len(), "only the survivors are told to stop");
    for attempt in stopped {
        driver.report(attempt, ExecutionState::Canceled, 11);
    }
    driver.scheduler.swept(Ok(()), now(12));
    assert!(driver.submits().is_empty(), "a slot is missing");
    let allocation = AllocationId::from_u128(3);
    assert_eq!(driver.scheduler.offer(&te("te-3"), &[(allocation, 0)], now(13)), vec![allocation]);
    assert_eq!(driver.submits().len(), 3);
    assert_eq!(driver.scheduler.restarts(), 1);
    let entry = driver.scheduler.failures().next().unwrap();
    assert!(entry.text.contains("te-1") && entry.text.contains("no longer reachable"), "{}", entry.text);
}

#[test]
fn c064_a_task_that_the_task_executor_no_longer_runs_has_failed() {
    let (mut driver, attempts) = Driver::running(FIXED);
    let kept: Vec<AttemptId> = attempts[1..].to_vec();
    for name in ["te-1", "te-2"] {
        driver.scheduler.reconcile(&te(name), &kept, now(19).tick, now(20));
    }
    assert_eq!(driver.scheduler.status(), JobStatus::Restarting);
    assert!(driver.scheduler.failures().next().unwrap().text.contains("no longer runs it"));
}

#[test]
fn c065_a_task_that_nobody_waits_for_is_cancelled() {
    let (mut driver, attempts) = Driver::running("");
    let stranger = AttemptId { attempt: 9, ..attempts[0] };
    let mut reported = attempts.clone();
    reported.push(stranger);
    driver.scheduler.reconcile(&te("te-1"), &reported, now(19).tick, now(20));
    let expected = Effect::CancelTask { task_executor: te("te-1"), attempt: stranger };
    assert_eq!(driver.effects(), vec![expected]);
}

#[test]
fn c066_a_task_on_its_way_is_neither_cancelled_nor_failed() {
    let mut driver = Driver::new("");
    driver.effects();
    driver.scheduler.prepared(Ok(Vec::new()), now(1));
    driver.effects();
    driver.offer_both(2);
    let attempts = driver.submits();
    driver.scheduler.reconcile(&te("te-1"), &[], now(2).tick, now(3));
    driver.scheduler.reconcile(&te("te-2"), &attempts, now(2).tick, now(3));
    assert!(driver.effects().is_empty());
    assert_eq!(driver.scheduler.status(), JobStatus::Running);
}

#[test]
fn c066_an_answer_made_before_a_task_came_says_nothing_of_it_however_late_it_is() {
    let mut driver = Driver::new("");
    driver.effects();
    driver.scheduler.prepared(Ok(Vec::new()), now(1));
    driver.effects();
    driver.offer_both(2);
    for attempt in driver.submits() {
        driver.scheduler.submitted(&attempt, Ok(()), now(5));
    }
    for (asked, at) in [(4, 6), (5, 7)] {
        driver.scheduler.reconcile(&te("te-1"), &[], now(asked).tick, now(at));
        assert!(driver.effects().is_empty(), "asked at {asked}");
    }
    assert_eq!(driver.scheduler.status(), JobStatus::Running);
    driver.scheduler.reconcile(&te("te-1"), &[], now(8).tick, now(9));
    assert!(driver.scheduler.failures().next().unwrap().text.contains("no longer runs it"));
}

#[test]
fn a_late_report_of_an_earlier_attempt_changes_nothing() {
    let (mut driver, attempts) =
        Driver::running("restart: {strategy: fixed-delay, attempts: 1, delay: 0s}\n");
    for attempt in &attempts {
        driver.report(*attempt, ExecutionState::Failed, 10);
    }
    driver.scheduler.swept(Ok(()), now(12));
    driver.submits();
    driver.report(attempts[0], ExecutionState::Finished, 13);
    driver.report(attempts[0], ExecutionState::Failed, 13);
    assert!(driver.effects().is_empty());
    assert_eq!(driver.scheduler.status(), JobStatus::Running);
}

#[test]
fn c030_the_job_declares_what_it_needs_and_begins_when_both_offers_are_taken() {
    let mut driver = Driver::new("");
    driver.effects();
    driver.scheduler.prepared(Ok(Vec::new()), now(1));
    assert!(driver.effects().contains(&Effect::Declare(2)));
    let first = AllocationId::from_u128(1);
    assert_eq!(driver.scheduler.offer(&te("te-1"), &[(first, 0)], now(2)), vec![first]);
    assert!(driver.submits().is_empty(), "one slot is missing");
    let second = AllocationId::from_u128(2);
    assert_eq!(driver.scheduler.offer(&te("te-1"), &[(second, 1)], now(3)), vec![second]);
    assert_eq!(driver.submits().len(), 3);
}

#[test]
fn c035_an_offer_to_a_job_that_is_over_is_not_taken() {
    let (mut driver, attempts) = Driver::running("");
    for attempt in attempts {
        driver.report(attempt, ExecutionState::Finished, 10);
    }
    driver.scheduler.committed(Ok(()), now(11));
    let late = AllocationId::from_u128(9);
    assert_eq!(driver.scheduler.offer(&te("te-1"), &[(late, 0)], now(12)), Vec::new());
}

#[test]
fn c061_a_task_that_a_task_executor_refuses_has_failed_and_the_job_restarts() {
    let mut driver = Driver::new(FIXED);
    driver.effects();
    driver.scheduler.prepared(Ok(Vec::new()), now(1));
    driver.effects();
    driver.offer_both(2);
    let attempts = driver.submits();
    let failure = SubmitFailure { cause: "no slot is allocated".into(), unrecoverable: false };
    driver.scheduler.submitted(&attempts[0], Err(failure), now(3));
    assert_eq!(driver.scheduler.status(), JobStatus::Restarting);
    let entry = driver.scheduler.failures().next().unwrap();
    assert!(entry.text.contains("no slot is allocated"), "{}", entry.text);
}

#[test]
fn c084_twenty_thousand_subtasks_that_wait_for_slots_are_cancelled_at_once() {
    let text = "name: j\nparallelism: 10000\nmax_parallelism: 10000\nsource: {file: {path: /in/a.jsonl}}\n\
                steps: [{filter: 'a > 1'}]\nsink: {file: {path: /out/}, parallelism: 9999}\n";
    let file = job::file::JobFile::parse(text, "j.yaml").unwrap();
    let graph = Arc::new(job::plan::plan(&file).unwrap());
    let mut scheduler = Scheduler::new(JobId::from_u128(1), Epoch(7), graph, SLOT_TIMEOUT, now(0));
    scheduler.prepared(Ok(Vec::new()), now(1));
    assert_eq!(scheduler.executions().iter().count(), 19_999);
    let clock = runtime_core::time::TokioClock::start();
    assert!(scheduler.cancel(now(2)));
    scheduler.swept(Ok(()), now(3));
    assert_eq!(scheduler.status(), JobStatus::Canceled);
    let took = clock.now().since(Tick::ZERO);
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn cancelling_stops_every_task_and_a_second_time_changes_nothing() {
    let (mut driver, attempts) = Driver::running(FIXED);
    assert!(driver.scheduler.cancel(now(10)));
    assert!(driver.scheduler.cancel(now(10)));
    assert_eq!(driver.effects().len(), 3);
    driver.report(attempts[0], ExecutionState::Failed, 11);
    driver.report(attempts[1], ExecutionState::Canceled, 11);
    driver.scheduler.cancel_gave_up(&attempts[2], now(12));
    driver.scheduler.swept(Ok(()), now(13));
    assert_eq!(driver.scheduler.status(), JobStatus::Canceled);
    assert!(driver.scheduler.cancel(now(14)), "a cancelled job has been cancelled");
}

#[test]
fn slots_that_do_not_come_in_time_fail_the_job_with_the_numbers() {
    let mut driver = Driver::new("");
    driver.effects();
    driver.scheduler.prepared(Ok(Vec::new()), now(1));
    let timer = driver
        .effects()
        .into_iter()
        .find_map(|e| if let Effect::WakeAt(timer, _) = e { Some(timer) } else { None })
        .unwrap();
    driver.scheduler.wake(timer, now(300_001));
    driver.scheduler.swept(Ok(()), now(300_002));
    assert_eq!(driver.scheduler.status(), JobStatus::Failed);
    assert!(driver.scheduler.failure().unwrap().contains("needs 2 and got 0"));
}

#[test]
fn an_output_that_cannot_be_prepared_fails_the_job_at_once() {
    let mut driver = Driver::new(FIXED);
    driver.effects();
    driver.scheduler.prepared(Err("/out/b.jsonl exists".into()), now(1));
    driver.scheduler.swept(Ok(()), now(2));
    assert_eq!(driver.scheduler.status(), JobStatus::Failed);
    assert!(driver.scheduler.failure().unwrap().contains("/out/b.jsonl exists"));
}
