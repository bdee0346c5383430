//! The scheduler with checkpoints: regions, restores, ends.

use super::*;
use crate::checkpoint::coordinator::{CheckpointEffect, WriteFailure};
use crate::checkpoint::{CheckpointPointer, CompletedCheckpoint};

/// Two subtasks that nothing connects: source, filter and a folder of parts in one chain.
fn graph_of_regions(extra: &str) -> Arc<JobGraph> {
    let text = format!(
        "name: j\nparallelism: 2\ncheckpoints: {{interval: 1s, dir: /c}}\n{extra}\
         source: {{file: {{path: /in/a.jsonl}}}}\nsteps: [{{filter: 'a > 1'}}]\nsink: {{file: {{path: /out/}}}}\n"
    );
    let file = job::file::JobFile::parse(&text, "j.yaml").unwrap();
    Arc::new(job::plan::plan(&file).unwrap())
}

const NO_PAUSE: &str = "restart: {strategy: fixed-delay, attempts: 9, delay: 0s}\n";

fn splits(count: u32) -> Vec<v1::FileSplit> {
    (0..count).map(|id| v1::FileSplit { id, ..v1::FileSplit::default() }).collect()
}

struct Job {
    scheduler: Scheduler,
    attempts: Vec<AttemptId>,
    /// When tasks report.
    at: u64,
}

impl Job {
    fn running(extra: &str) -> Self {
        let graph = graph_of_regions(extra);
        let scheduler = Scheduler::new(JobId::from_u128(1), Epoch(7), graph, SLOT_TIMEOUT, now(0));
        let mut job = Self { scheduler, attempts: Vec::new(), at: 100 };
        job.scheduler.prepared(Ok(splits(4)), now(1));
        job.take_slots();
        job.run();
        job
    }

    fn take_slots(&mut self) {
        for (n, name) in [(1, "te-1"), (2, "te-2")] {
            self.scheduler.offer(&te(name), &[(AllocationId::from_u128(n), 0)], now(2));
        }
    }

    /// Lets what was submitted run, and says what that was.
    fn run(&mut self) -> Vec<Deployment> {
        let submitted: Vec<Deployment> = self
            .scheduler
            .take_effects()
            .into_iter()
            .filter_map(|e| if let Effect::Submit(d) = e { Some(*d) } else { None })
            .collect();
        for deployment in &submitted {
            self.scheduler.submitted(&deployment.attempt, Ok(()), now(3));
            self.report(deployment.attempt, ExecutionState::Running, 0);
        }
        self.attempts = self.scheduler.executions().iter().map(|e| e.id).collect();
        submitted
    }

    fn report(&mut self, attempt: AttemptId, state: ExecutionState, records: u64) {
        let figures = v1::Figures {
            records_in: records,
            records_out: records,
            calls: records,
            ..v1::Figures::default()
        };
        let last = snapshot(&attempt, records);
        let last = (state == ExecutionState::Finished).then(|| Box::new(last));
        let update = TaskUpdate {
            attempt,
            state,
            error: "boom".into(),
            unrecoverable: false,
            figures: Some(figures),
            last,
        };
        self.scheduler.task_state(&te("te-1"), update, now(self.at));
    }

    fn effects(&mut self) -> Vec<Effect> {
        self.scheduler.take_effects()
    }

    /// A whole checkpoint, with so many records of each task. Says its number.
    fn checkpoint(&mut self, at: u64, records: u64) -> u64 {
        let id = self.begin(at);
        for attempt in self.attempts.clone() {
            self.scheduler.acknowledged(&attempt, id, snapshot(&attempt, records), now(at + 1));
        }
        self.finalize(id, at + 2);
        id
    }

    fn begin(&mut self, at: u64) -> u64 {
        self.effects();
        self.at = at + 1;
        self.scheduler.wake(Timer::Checkpoint(0), now(at));
        let mut effects = self.effects();
        if let [Effect::Checkpoint(CheckpointEffect::Reserve(up_to))] = effects.as_slice() {
            self.scheduler.checkpoints_reserved(*up_to, Ok(()), now(at));
            effects = self.effects();
        }
        let begun = effects.iter().find_map(|effect| match effect {
            Effect::Checkpoint(CheckpointEffect::Trigger { checkpoint, .. }) => Some(*checkpoint),
            _ => None,
        });
        begun.unwrap_or_else(|| panic!("none was begun: {effects:?}"))
    }

    fn finalize(&mut self, id: u64, at: u64) {
        self.scheduler.checkpoint_written(id, Ok(()), now(at));
        self.scheduler.checkpoint_committed(id, Ok(()), now(at));
    }
}

fn snapshot(attempt: &AttemptId, records: u64) -> v1::TaskSnapshot {
    let staged = v1::StagedFile { staged_path: format!("{attempt}"), ..v1::StagedFile::default() };
    let figures = v1::Figures { records_in: records, records_out: records, ..v1::Figures::default() };
    v1::TaskSnapshot {
        staged: vec![staged],
        committed_length: records,
        figures: Some(figures),
        source: Some(v1::SourceProgress::default()),
        ..v1::TaskSnapshot::default()
    }
}

fn cancelled(effects: &[Effect]) -> Vec<AttemptId> {
    let of = |e: &Effect| if let Effect::CancelTask { attempt, .. } = e { Some(*attempt) } else { None };
    effects.iter().filter_map(of).collect()
}

#[test]
fn c079_a_failure_restarts_its_own_region_and_the_other_one_goes_on() {
    let mut job = Job::running(NO_PAUSE);
    let (first, second) = (job.attempts[0], job.attempts[1]);
    let id = job.checkpoint(2000, 5);
    job.report(second, ExecutionState::Running, 8);
    job.effects();
    job.report(first, ExecutionState::Failed, 9);
    assert_eq!(job.scheduler.status(), JobStatus::Restarting);
    let effects = job.effects();
    assert_eq!(cancelled(&effects), []);
    let sweep = effects.iter().find_map(|effect| match effect {
        Effect::Sweep { commit, attempts } => Some((commit.len(), attempts.clone())),
        _ => None,
    });
    assert_eq!(
        sweep,
        Some((2, Some(vec![first]))),
        "committed again, and only the stopped attempt's files go"
    );
    job.scheduler.swept(Ok(()), now(3000));
    let deployed = job.run();
    assert_eq!(deployed.len(), 1);
    assert_eq!(deployed[0].attempt, AttemptId { attempt: 1, ..first });
    let restore = deployed[0].restore.clone().unwrap();
    assert_eq!((restore.checkpoint, restore.subtasks[0].committed_length), (id, 5));
    assert_eq!(job.scheduler.status(), JobStatus::Running);
    assert_eq!(job.scheduler.restarts(), 1);
    let counts = job.scheduler.counts();
    assert_eq!((counts.records_in, counts.calls), (5 + 8, 9 + 8), "as at the checkpoint, and of the other");
}

#[test]
fn counts_of_records_go_on_from_the_checkpoint_and_calls_go_on_from_everything() {
    let mut job = Job::running(NO_PAUSE);
    job.checkpoint(2000, 5);
    let (first, second) = (job.attempts[0], job.attempts[1]);
    job.report(first, ExecutionState::Failed, 9);
    job.scheduler.swept(Ok(()), now(3000));
    job.run();
    assert_eq!(job.scheduler.counts().records_in, 5, "those of the first at the checkpoint");
    job.checkpoint(4000, 1);
    let again = job.attempts[0];
    job.report(again, ExecutionState::Failed, 3);
    job.scheduler.swept(Ok(()), now(5000));
    job.run();
    let last = job.attempts[0];
    job.report(last, ExecutionState::Finished, 4);
    job.report(second, ExecutionState::Finished, 10);
    let counts = job.scheduler.counts();
    assert_eq!((counts.records_in, counts.calls), (5 + 1 + 4 + 10, 9 + 3 + 4 + 10));
}

#[test]
fn the_loss_of_both_task_executors_regions_is_one_failure_and_one_restart() {
    let mut job = Job::running("restart: {strategy: fixed-delay, attempts: 1, delay: 1s}\n");
    let gone: Vec<AttemptId> = job.attempts.clone();
    job.scheduler.attempts_failed(&gone, "lost", false, now(10));
    job.scheduler.settle(now(10));
    let wakes: Vec<(Timer, Tick)> = job
        .effects()
        .into_iter()
        .filter_map(|e| {
            if let Effect::WakeAt(timer @ Timer::Restart(_), at) = e { Some((timer, at)) } else { None }
        })
        .collect();
    for (timer, _) in wakes {
        job.scheduler.wake(timer, now(1010));
        job.scheduler.swept(Ok(()), now(1011));
    }
    assert_eq!(job.run().len(), 2);
    assert_eq!((job.scheduler.restarts(), job.scheduler.status()), (1, JobStatus::Running));
}

#[test]
fn failures_while_others_pause_are_merged_under_exponential_delay() {
    let mut job = Job::running("restart: {strategy: exponential-delay, attempts: 1, jitter: 0}\n");
    let (first, second) = (job.attempts[0], job.attempts[1]);
    job.report(first, ExecutionState::Failed, 0);
    job.report(second, ExecutionState::Failed, 0);
    assert_eq!(job.scheduler.status(), JobStatus::Restarting, "the second one is not counted");
    let timers: Vec<Timer> = job
        .effects()
        .into_iter()
        .filter_map(|e| if let Effect::WakeAt(timer @ Timer::Restart(_), _) = e { Some(timer) } else { None })
        .collect();
    for timer in timers {
        job.scheduler.wake(timer, now(1100));
        job.scheduler.swept(Ok(()), now(1100));
    }
    assert_eq!(job.run().len(), 2);
    assert_eq!(job.scheduler.restarts(), 1);
}

#[test]
fn without_a_completed_checkpoint_a_region_begins_from_what_it_had_taken() {
    let mut job = Job::running(NO_PAUSE);
    let (first, second) = (job.attempts[0], job.attempts[1]);
    assert_eq!(job.scheduler.next_split(first, 1).map(|s| s.id), Some(0));
    assert_eq!(job.scheduler.next_split(second, 1).map(|s| s.id), Some(1));
    job.report(first, ExecutionState::Failed, 9);
    assert_eq!(job.scheduler.next_split(first, 2), None, "a failed attempt is given nothing");
    job.scheduler.swept(Ok(()), now(200));
    assert_eq!(job.run()[0].restore, None);
    let again = job.attempts[0];
    assert_eq!(job.scheduler.next_split(again, 1).map(|s| s.id), Some(0));
    assert_eq!(job.scheduler.next_split(second, 2).map(|s| s.id), Some(2));
    assert_eq!(job.scheduler.counts().records_in, 0);
}

#[test]
fn a_failure_gives_the_pending_checkpoint_up_and_lets_one_that_is_being_written_come_to_its_end() {
    let mut job = Job::running(NO_PAUSE);
    let (first, second) = (job.attempts[0], job.attempts[1]);
    let pending = job.begin(2000);
    job.report(first, ExecutionState::Failed, 0);
    let abort = CheckpointEffect::Abort { checkpoint: pending, latest_completed: 0 };
    assert!(job.effects().contains(&Effect::Checkpoint(abort)));
    job.scheduler.swept(Ok(()), now(2001));
    job.run();
    let (again, id) = (job.attempts[0], job.begin(4000));
    for attempt in [again, second] {
        job.scheduler.acknowledged(&attempt, id, snapshot(&attempt, 1), now(4001));
    }
    job.effects();
    job.report(again, ExecutionState::Failed, 0);
    assert!(!job.effects().iter().any(|e| matches!(e, Effect::Sweep { .. })), "it waits for the checkpoint");
    job.finalize(id, 4010);
    assert!(job.effects().iter().any(|e| matches!(e, Effect::Sweep { .. })));
    job.scheduler.swept(Ok(()), now(4011));
    assert_eq!(job.run()[0].restore.as_ref().unwrap().checkpoint, id);
}

#[test]
fn c111_a_declined_checkpoint_restarts_the_job_from_the_last_one() {
    let mut job = Job::running(NO_PAUSE);
    let kept = job.checkpoint(2000, 5);
    let id = job.begin(4000);
    let first = job.attempts[0];
    job.scheduler.declined(&first, id, "disk full", now(4001));
    assert_eq!(job.scheduler.status(), JobStatus::Restarting);
    for attempt in cancelled(&job.effects()) {
        job.report(attempt, ExecutionState::Canceled, 5);
    }
    // The region that had stopped first has begun first.
    job.scheduler.swept(Ok(()), now(4002));
    let mut deployed = job.run();
    job.scheduler.swept(Ok(()), now(4003));
    deployed.extend(job.run());
    assert_eq!(deployed.len(), 2);
    assert!(deployed.iter().all(|d| d.restore.as_ref().is_some_and(|r| r.checkpoint == kept)));
    let entry = job.scheduler.failures().next().unwrap();
    assert!(entry.text.contains("disk full"), "{}", entry.text);
}

#[test]
fn checkpoints_are_begun_only_while_every_task_runs_or_has_finished() {
    let mut job = Job::running(NO_PAUSE);
    let first = job.attempts[0];
    job.report(first, ExecutionState::Failed, 0);
    job.effects();
    job.scheduler.wake(Timer::Checkpoint(0), now(2000));
    let triggered = |effects: &[Effect]| {
        effects.iter().any(|e| {
            matches!(e, Effect::Checkpoint(CheckpointEffect::Trigger { .. } | CheckpointEffect::Reserve(_)))
        })
    };
    assert!(!triggered(&job.effects()));
    job.scheduler.swept(Ok(()), now(2001));
    job.run();
    let again = job.attempts[0];
    job.report(again, ExecutionState::Finished, 0);
    job.begin(4000);
}

#[test]
fn when_all_have_finished_a_last_checkpoint_of_their_ends_ends_the_job() {
    let mut job = Job::running(NO_PAUSE);
    job.effects();
    for attempt in job.attempts.clone() {
        job.report(attempt, ExecutionState::Finished, 4);
    }
    assert_eq!(job.scheduler.status(), JobStatus::Running);
    let effects = job.effects();
    let [Effect::Checkpoint(CheckpointEffect::Reserve(up_to))] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    job.scheduler.checkpoints_reserved(*up_to, Ok(()), now(101));
    let effects = job.effects();
    let [Effect::Checkpoint(CheckpointEffect::Write { metadata, .. })] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    let id = metadata.checkpoint;
    assert_eq!(metadata.figures.as_ref().unwrap().records_out, 8);
    job.scheduler.checkpoint_written(id, Ok(()), now(102));
    assert!(!job.scheduler.cancel(now(103)), "there is nothing left to stop");
    let effects = job.effects();
    assert!(
        matches!(effects.as_slice(), [Effect::Checkpoint(CheckpointEffect::Commit { staged, .. })] if staged.len() == 2)
    );
    job.scheduler.checkpoint_committed(id, Ok(()), now(104));
    assert_eq!(job.scheduler.status(), JobStatus::Finished);
    assert_eq!(job.effects().last(), Some(&Effect::Ended));
    assert_eq!(job.scheduler.checkpoint_stats().unwrap().completed, 1);
}

#[test]
fn a_commit_that_fails_restarts_the_job_and_commits_again() {
    let mut job = Job::running(NO_PAUSE);
    for attempt in job.attempts.clone() {
        job.report(attempt, ExecutionState::Finished, 4);
    }
    job.scheduler.checkpoints_reserved(64, Ok(()), now(101));
    job.scheduler.checkpoint_written(1, Ok(()), now(102));
    job.effects();
    job.scheduler.checkpoint_committed(1, Err("disk full".into()), now(103));
    assert_eq!(job.scheduler.status(), JobStatus::Restarting);
    let commits = |effects: &[Effect]| {
        effects.iter().any(|e| matches!(e, Effect::Sweep { commit, attempts: None } if commit.len() == 2))
    };
    assert!(commits(&job.effects()));
    job.scheduler.swept(Err("disk full".into()), now(104));
    assert!(commits(&job.effects()), "and again");
    job.scheduler.swept(Ok(()), now(105));
    assert_eq!(job.scheduler.status(), JobStatus::Finished);
    assert!(job.run().is_empty(), "nothing is deployed");
    assert_eq!(job.scheduler.counts().records_out, 8);
}

fn pointer(id: u64) -> CheckpointPointer {
    CheckpointPointer { id, metadata: format!("1/chk-{id}/metadata"), completed_at: 0, store: None }
}

fn left(completed: Vec<CheckpointPointer>) -> Recovered {
    Recovered {
        splits: Some(splits(4)),
        reserved: 64,
        completed,
        restarts: 2,
        checkpoints: 7,
        counts: Counts { records_in: 99, calls: 30, ..Counts::default() },
        ..Recovered::default()
    }
}

fn recover(left: Recovered) -> Job {
    let graph = graph_of_regions(NO_PAUSE);
    let scheduler = Scheduler::recover(JobId::from_u128(1), Epoch(8), graph, SLOT_TIMEOUT, left, now(0));
    Job { scheduler, attempts: Vec::new(), at: 100 }
}

fn completed(id: u64, finished: bool) -> CompletedCheckpoint {
    let subtasks = (0..2).map(|subtask| v1::SubtaskSnapshot {
        subtask,
        finished,
        snapshot: Some(v1::TaskSnapshot {
            staged: vec![v1::StagedFile::default()],
            figures: Some(v1::Figures { records_in: 5, ..v1::Figures::default() }),
            source: Some(v1::SourceProgress {
                finished: vec![],
                reading: (subtask == 1 && !finished).then_some(v1::SplitPosition {
                    split: 1,
                    position: Some(v1::ReadPosition { offset: 9, line: 1 }),
                }),
            }),
            ..v1::TaskSnapshot::default()
        }),
    });
    let metadata = v1::CheckpointMetadata {
        checkpoint: id,
        vertices: vec![v1::VertexSnapshot {
            subtasks: subtasks.collect(),
            parallelism: 2,
            ..v1::VertexSnapshot::default()
        }],
        finished_splits: vec![0],
        figures: Some(v1::Figures { records_in: 10, calls: 40, ..v1::Figures::default() }),
        ..v1::CheckpointMetadata::default()
    };
    CompletedCheckpoint::own(pointer(id), metadata)
}

#[test]
fn c116_a_new_term_goes_on_from_the_checkpoint_with_larger_ids() {
    let mut job = recover(left(vec![pointer(9)]));
    assert_eq!(job.effects(), vec![Effect::Declare(2), Effect::ReadCheckpoint(vec![pointer(9)])]);
    job.take_slots();
    assert!(job.run().is_empty(), "slots are taken, and wait");
    job.scheduler.checkpoint_read(Ok((completed(9, false), Vec::new())), now(3));
    assert!(
        matches!(job.effects().as_slice(), [Effect::Sweep { commit, attempts: None }] if commit.len() == 2)
    );
    job.scheduler.swept(Ok(()), now(4));
    let deployed = job.run();
    assert_eq!(deployed.len(), 2);
    assert!(deployed.iter().all(|d| d.restore.as_ref().is_some_and(|r| r.checkpoint == 9)));
    let (first, second) = (job.attempts[0], job.attempts[1]);
    assert_eq!(job.scheduler.next_split(first, 1).map(|s| s.id), Some(2), "0 is finished, 1 is the other's");
    let resumed = job.scheduler.next_split(second, 1).unwrap();
    assert_eq!((resumed.id, resumed.resume.unwrap().offset), (1, 9));
    assert_eq!(job.scheduler.restarts(), 3);
    let counts = job.scheduler.counts();
    assert_eq!((counts.records_in, counts.calls), (10, 40));
    assert!(job.begin(4000) > 64);
    assert_eq!(job.scheduler.checkpoint_stats().unwrap().completed, 7);
}

#[test]
fn a_store_that_cannot_be_reached_is_asked_again_with_growing_pauses_and_the_job_says_why() {
    let mut job = recover(left(vec![pointer(9)]));
    job.effects();
    let mut at = 0;
    for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
        job.scheduler.checkpoint_read(Err(ReadFailure::Unreachable("no route".into())), now(at));
        assert!(job.scheduler.failure().unwrap().contains("no route"));
        let effects = job.effects();
        let [Effect::WakeAt(timer, wake)] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!(*wake, Tick::from_millis(at + pause * 1000));
        at += pause * 1000;
        job.scheduler.wake(*timer, now(at));
        assert_eq!(job.effects(), vec![Effect::ReadCheckpoint(vec![pointer(9)])]);
    }
    job.scheduler.checkpoint_read(Ok((completed(9, false), Vec::new())), now(at));
    assert_eq!(job.scheduler.failure(), None);
}

#[test]
fn a_job_whose_checkpoints_are_all_damaged_fails_with_the_sentence() {
    let mut job = recover(left(vec![pointer(9)]));
    job.scheduler.checkpoint_read(Err(ReadFailure::Damaged("its checksum is wrong".into())), now(1));
    job.scheduler.swept(Ok(()), now(2));
    assert_eq!(job.scheduler.status(), JobStatus::Failed);
    assert!(job.scheduler.failure().unwrap().contains("its checksum is wrong"));
}

#[test]
fn a_new_term_that_finds_all_tasks_finished_commits_again_and_deploys_nothing() {
    let mut job = recover(left(vec![pointer(9)]));
    job.scheduler.checkpoint_read(Ok((completed(9, true), Vec::new())), now(1));
    job.scheduler.swept(Ok(()), now(2));
    assert_eq!(job.scheduler.status(), JobStatus::Finished);
    assert!(job.run().is_empty());
    assert_eq!(job.scheduler.counts().records_in, 10);
}

#[test]
fn a_new_term_without_a_checkpoint_begins_from_the_beginning() {
    let mut job = recover(left(Vec::new()));
    job.take_slots();
    job.scheduler.swept(Ok(()), now(2));
    assert!(job.run().iter().all(|d| d.restore.is_none()));
    assert_eq!(job.scheduler.next_split(job.attempts[0], 1).map(|s| s.id), Some(0));
}

#[test]
fn a_connected_job_is_one_region() {
    let text = "name: j\nparallelism: 2\ncheckpoints: {interval: 1s, dir: /c}\n\
                source: {file: {path: /in/a.jsonl}}\nsteps: [{filter: 'a > 1'}]\nsink: {file: {path: /out/b.jsonl}}\n";
    let file = job::file::JobFile::parse(text, "j.yaml").unwrap();
    let graph = job::plan::plan(&file).unwrap();
    assert_eq!(regions::Regions::of(&graph).0.len(), 1);
    assert_eq!(regions::Regions::of(&graph_of_regions("")).0.len(), 2);
}

mod savepoints {
    use super::*;
    use crate::checkpoint::coordinator::{Request, Stop, Wanted};

    const SAVED: &str = "file:///s/1";

    fn ask(job: &mut Job, stop: Option<Stop>, at: u64) {
        let wanted = Wanted::Savepoint { url: SAVED.into(), stop };
        job.scheduler.request_checkpoint(Request { number: 1, wanted }, now(at));
        job.scheduler.checkpoints_reserved(64, Ok(()), now(at));
    }

    fn answers(effects: &[Effect]) -> Vec<Result<String, String>> {
        let of = |effect: &Effect| match effect {
            Effect::Checkpoint(CheckpointEffect::Answer(1, result)) => {
                Some(result.clone().map(|done| done.location))
            }
            _ => None,
        };
        effects.iter().filter_map(of).collect()
    }

    fn acknowledge(job: &mut Job, id: u64, records: u64, at: u64) {
        for attempt in job.attempts.clone() {
            job.scheduler.acknowledged(&attempt, id, snapshot(&attempt, records), now(at));
        }
    }

    #[test]
    fn c118_a_stop_makes_the_output_visible_lets_tasks_end_and_then_answers() {
        let mut job = Job::running(NO_PAUSE);
        ask(&mut job, Some(Stop::Suspend), 10);
        acknowledge(&mut job, 1, 5, 11);
        // Reported behind the barrier: it is not in the savepoint.
        for attempt in job.attempts.clone() {
            job.report(attempt, ExecutionState::Running, 9);
        }
        job.effects();
        job.scheduler.checkpoint_written(1, Ok(()), now(12));
        let effects = job.effects();
        assert!(
            effects.iter().any(|e| matches!(e, Effect::Commit(staged) if staged.len() == 2)),
            "{effects:?}"
        );
        assert_eq!(job.scheduler.counts().records_out, 10, "counts are those of the savepoint");
        assert!(!job.scheduler.cancel(now(13)), "it is decided");
        job.report(job.attempts[0], ExecutionState::Failed, 9);
        assert_eq!(job.scheduler.status(), JobStatus::Running, "what becomes of tasks matters no more");
        job.scheduler.committed(Ok(()), now(14));
        let effects = job.effects();
        assert!(effects.contains(&Effect::Checkpoint(CheckpointEffect::Confirm(1))), "{effects:?}");
        assert_eq!(answers(&effects), []);
        job.report(job.attempts[1], ExecutionState::Finished, 9);
        job.scheduler.swept(Ok(()), now(15));
        assert_eq!(job.scheduler.status(), JobStatus::Finished);
        assert_eq!(answers(&job.effects()), [Ok(SAVED.to_owned())]);
        assert_eq!(job.scheduler.counts().records_out, 10);
    }

    #[test]
    fn a_savepoint_waits_for_tasks_that_are_on_their_way_and_for_none_that_lack_slots() {
        let mut job = Job::running(NO_PAUSE);
        let first = job.attempts[0];
        job.report(first, ExecutionState::Failed, 0);
        ask(&mut job, None, 110);
        assert!(matches!(&answers(&job.effects())[..], [Err(_)]), "its region is not even deployed");
        job.scheduler.swept(Ok(()), now(200));
        let deployed =
            job.effects().into_iter().find_map(|e| if let Effect::Submit(d) = e { Some(d) } else { None });
        ask(&mut job, None, 210);
        assert_eq!(job.effects(), [], "it waits");
        job.scheduler.submitted(&deployed.as_ref().unwrap().attempt, Ok(()), now(220));
        job.report(deployed.unwrap().attempt, ExecutionState::Running, 0);
        job.scheduler.checkpoints_reserved(64, Ok(()), now(230));
        let began = |e: &Effect| {
            matches!(e, Effect::Checkpoint(CheckpointEffect::Trigger { savepoint: Some(_), .. }))
        };
        assert!(job.effects().iter().any(began));
    }

    #[test]
    fn tasks_that_do_not_hear_of_the_end_are_stopped_after_a_while() {
        let mut job = Job::running(NO_PAUSE);
        ask(&mut job, Some(Stop::Suspend), 10);
        acknowledge(&mut job, 1, 5, 11);
        job.scheduler.checkpoint_written(1, Ok(()), now(12));
        job.scheduler.committed(Ok(()), now(14));
        let wake = job.effects().into_iter().find_map(|effect| match effect {
            Effect::WakeAt(timer @ Timer::TasksEnd(_), at) => Some((timer, at)),
            _ => None,
        });
        let (timer, at) = wake.unwrap();
        assert_eq!(at, Tick::from_millis(2014));
        job.scheduler.wake(timer, now(2014));
        for attempt in cancelled(&job.effects()) {
            job.report(attempt, ExecutionState::Canceled, 5);
        }
        job.scheduler.swept(Ok(()), now(2020));
        assert_eq!(answers(&job.effects()), [Ok(SAVED.to_owned())]);
        assert_eq!(job.scheduler.status(), JobStatus::Finished);
    }

    #[test]
    fn c119_a_stop_that_cannot_be_written_leaves_the_job_running_with_its_checkpoints() {
        let mut job = Job::running(NO_PAUSE);
        ask(&mut job, Some(Stop::Suspend), 10);
        acknowledge(&mut job, 1, 5, 11);
        job.effects();
        let failure = WriteFailure { cause: "disk full".into(), may_be_there: false };
        job.scheduler.checkpoint_written(1, Err(failure), now(12));
        assert!(matches!(&answers(&job.effects())[..], [Err(why)] if why.contains("disk full")));
        assert_eq!((job.scheduler.status(), job.scheduler.restarts()), (JobStatus::Running, 0));
        job.checkpoint(4000, 8);
        assert_eq!(job.scheduler.checkpoint_stats().unwrap().completed, 1);
    }

    #[test]
    fn output_that_cannot_be_made_visible_fails_the_job_and_the_answer_names_the_savepoint() {
        let mut job = Job::running(NO_PAUSE);
        ask(&mut job, Some(Stop::Suspend), 10);
        acknowledge(&mut job, 1, 5, 11);
        job.scheduler.checkpoint_written(1, Ok(()), now(12));
        job.effects();
        job.scheduler.committed(Err("disk full".into()), now(14));
        let effects = job.effects();
        assert!(
            matches!(&answers(&effects)[..], [Err(why)] if why.contains(SAVED) && why.contains("disk full"))
        );
        assert_eq!(job.scheduler.status(), JobStatus::Failing);
    }

    #[test]
    fn a_job_master_that_died_behind_the_savepoint_runs_nothing_and_finishes_the_job() {
        let left = Recovered {
            splits: Some(splits(4)),
            reserved: 64,
            output: Some((Vec::new(), Counts { records_in: 7, ..Counts::default() })),
            ..Recovered::default()
        };
        let graph = graph_of_regions(NO_PAUSE);
        let mut scheduler =
            Scheduler::recover(JobId::from_u128(1), Epoch(8), graph, SLOT_TIMEOUT, left, now(0));
        assert!(scheduler.take_effects().iter().any(|e| matches!(e, Effect::Commit(_))));
        scheduler.committed(Ok(()), now(1));
        let sweeps = |e: &Effect| matches!(e, Effect::Sweep { attempts: None, .. });
        assert!(scheduler.take_effects().iter().any(sweeps));
        scheduler.swept(Ok(()), now(2));
        assert_eq!((scheduler.status(), scheduler.counts().records_in), (JobStatus::Finished, 7));
    }

    #[test]
    fn a_task_that_fails_while_the_job_is_drained_lets_every_region_begin_again() {
        let mut job = Job::running(NO_PAUSE);
        ask(&mut job, Some(Stop::Drain), 10);
        assert!(job.effects().contains(&Effect::Checkpoint(CheckpointEffect::DrainSources)));
        let (first, second) = (job.attempts[0], job.attempts[1]);
        job.report(first, ExecutionState::Finished, 3);
        job.report(second, ExecutionState::Failed, 3);
        assert!(matches!(&answers(&job.effects())[..], [Err(why)] if why.contains("drained")));
        job.scheduler.swept(Ok(()), now(200));
        let deployed: Vec<AttemptId> = job.run().iter().map(|d| d.attempt).collect();
        assert_eq!(deployed.len(), 2, "the first had ended only because it was told to");
        assert_eq!(job.scheduler.restarts(), 1);
    }

    #[test]
    fn a_drained_job_whose_savepoint_fails_begins_again_and_asks_no_restart_strategy() {
        let mut job = Job::running("restart: none\n");
        let kept = job.checkpoint(2000, 5);
        let wanted = Wanted::Savepoint { url: SAVED.into(), stop: Some(Stop::Drain) };
        job.scheduler.request_checkpoint(Request { number: 1, wanted }, now(2100));
        for attempt in job.attempts.clone() {
            job.report(attempt, ExecutionState::Finished, 7);
        }
        let failure = WriteFailure { cause: "disk full".into(), may_be_there: false };
        job.effects();
        job.scheduler.checkpoint_written(kept + 1, Err(failure), now(2200));
        assert!(matches!(&answers(&job.effects())[..], [Err(_)]));
        job.scheduler.swept(Ok(()), now(2300));
        let deployed = job.run();
        assert!(deployed.iter().all(|d| d.restore.as_ref().is_some_and(|r| r.checkpoint == kept)));
        assert_eq!((deployed.len(), job.scheduler.status()), (2, JobStatus::Running));
    }
}
