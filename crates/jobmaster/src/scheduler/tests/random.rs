//! Scheduler and coordinator against a world that fails at random: tasks, task executors, stores, disks and the job
//! master itself. Tasks read lines of splits, so that what was read once, twice or never can be told at the end.
//!
//! Now and then somebody asks for a savepoint. A job that ends with one is followed by another, of another parallelism, that
//! begins with it.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::checkpoint::coordinator::{CheckpointEffect, Request, Stop, Wanted, WriteFailure};
use crate::checkpoint::{CheckpointPointer, CompletedCheckpoint, Mapping, mapping};
use crate::counts::Counts;

const SPLITS: u32 = 6;
const LINES: u64 = 4;
const TASK_EXECUTORS: u64 = 3;

/// What the world still has to answer.
#[derive(Debug, Clone)]
enum Op {
    Prepared,
    Submitted(AttemptId),
    Canceled(AttemptId),
    Swept,
    Reserved(u64),
    Written(Box<v1::CheckpointMetadata>, Vec<CheckpointPointer>),
    Committed(u64),
    SavepointWritten(Box<v1::CheckpointMetadata>),
    /// The output up to a savepoint, with what the job had counted.
    SavedVisible(Counts),
    Barrier(AttemptId, u64, bool),
    Read(Vec<CheckpointPointer>),
    Timer(Timer, Tick),
}

#[derive(Debug, Clone)]
struct Task {
    place: ResourceId,
    request: u64,
    finished: Vec<u32>,
    reading: Option<(u32, u64)>,
    records: u64,
    /// Behind the savepoint of this number it stands still.
    still: Option<u64>,
    drained: bool,
}

struct World {
    random: SmallRng,
    scheduler: Scheduler,
    job: u128,
    graph: Arc<JobGraph>,
    /// Those of the current job.
    splits: Vec<v1::FileSplit>,
    /// What the current job began with.
    savepoint: Option<CompletedCheckpoint>,
    /// The last one that was written.
    written: Option<v1::CheckpointMetadata>,
    /// What is to end the current job.
    ending: Option<v1::CheckpointMetadata>,
    /// Requests that were not answered.
    asked: BTreeSet<u64>,
    requests: u64,
    /// How jobs were followed by others.
    followed: u32,
    term: u64,
    millis: u64,
    ops: Vec<Op>,
    tasks: BTreeMap<AttemptId, Task>,
    // What survives the job master.
    prepared: bool,
    reserved: u64,
    kept: Vec<CheckpointPointer>,
    store: BTreeMap<u64, v1::CheckpointMetadata>,
    completed: BTreeSet<u64>,
    begun: u64,
    aborted: u64,
    allocation: u128,
    canceled: bool,
}

fn graph(connected: bool, parallelism: u32) -> Arc<JobGraph> {
    let sink = if connected { "/out/b.jsonl" } else { "/out/" };
    let text = format!(
        "name: j\nparallelism: {parallelism}\ncheckpoints: {{interval: 100ms, dir: /c, tolerable_failures: 1}}\n\
         restart: {{strategy: fixed-delay, attempts: 100000, delay: 10ms}}\n\
         source: {{file: {{path: /in/a.jsonl}}}}\nsteps: [{{filter: 'a > 1'}}]\nsink: {{file: {{path: {sink}}}}}\n"
    );
    let file = job::file::JobFile::parse(&text, "j.yaml").unwrap();
    Arc::new(job::plan::plan(&file).unwrap())
}

fn splits() -> Vec<v1::FileSplit> {
    (0..SPLITS).map(|id| v1::FileSplit { id, ..v1::FileSplit::default() }).collect()
}

impl World {
    fn new(seed: u64) -> Self {
        let graph = graph(seed.is_multiple_of(2), 2);
        let scheduler =
            Scheduler::new(JobId::from_u128(1), Epoch(1), Arc::clone(&graph), SLOT_TIMEOUT, now(0));
        Self {
            random: SmallRng::seed_from_u64(seed),
            scheduler,
            job: 1,
            graph,
            splits: splits(),
            savepoint: None,
            written: None,
            ending: None,
            asked: BTreeSet::new(),
            requests: 0,
            followed: 0,
            term: 1,
            millis: 0,
            ops: Vec::new(),
            tasks: BTreeMap::new(),
            prepared: false,
            reserved: 0,
            kept: Vec::new(),
            store: BTreeMap::new(),
            completed: BTreeSet::new(),
            begun: 0,
            aborted: 0,
            allocation: 0,
            canceled: false,
        }
    }

    fn chance(&mut self, of: u32) -> bool {
        self.random.random_range(0..of) == 0
    }

    fn now(&self) -> Now {
        now(self.millis)
    }

    /// Takes in what the scheduler wants.
    fn collect(&mut self) {
        let over = self.scheduler.status().is_terminal();
        for effect in self.scheduler.take_effects() {
            match effect {
                Effect::Prepare => self.ops.push(Op::Prepared),
                Effect::Submit(deployment) => {
                    assert!(!over, "a job that is over deploys nothing");
                    let attempt = deployment.attempt;
                    let same = |other: &AttemptId| {
                        (other.vertex, other.subtask) == (attempt.vertex, attempt.subtask)
                    };
                    assert!(!self.tasks.keys().any(same), "two attempts of one subtask: {attempt}");
                    let task = Task {
                        place: deployment.task_executor.clone(),
                        request: 0,
                        finished: Vec::new(),
                        reading: None,
                        records: 0,
                        still: None,
                        drained: false,
                    };
                    self.tasks.insert(attempt, task);
                    self.ops.push(Op::Submitted(attempt));
                }
                Effect::CancelTask { attempt, .. } => self.ops.push(Op::Canceled(attempt)),
                Effect::Sweep { .. } => self.ops.push(Op::Swept),
                Effect::Commit(_) => {
                    self.ending = self.ending.take().or_else(|| self.written.take());
                    assert!(self.ending.is_some(), "only a savepoint has a commit of its own");
                    self.ops.push(Op::SavedVisible(self.scheduler.counts()));
                }
                Effect::ReadCheckpoint(pointers) => self.ops.push(Op::Read(pointers)),
                Effect::WakeAt(timer, at) => self.ops.push(Op::Timer(timer, at)),
                Effect::Checkpoint(effect) => self.collect_for_checkpoint(effect),
                Effect::Declare(_) | Effect::FreeSlot(..) | Effect::Ended => {}
            }
        }
    }

    fn collect_for_checkpoint(&mut self, effect: CheckpointEffect) {
        match effect {
            CheckpointEffect::Reserve(up_to) => self.ops.push(Op::Reserved(up_to)),
            CheckpointEffect::Trigger { checkpoint, attempts, savepoint, .. } => {
                self.begin(checkpoint);
                let stop = savepoint.is_some_and(|(_, stop)| stop);
                let attempts = attempts.into_values().flatten();
                self.ops.extend(attempts.map(|attempt| Op::Barrier(attempt, checkpoint, stop)));
            }
            CheckpointEffect::WriteSavepoint { metadata, .. } => {
                assert!(metadata.savepoint);
                self.ops.push(Op::SavepointWritten(metadata));
            }
            CheckpointEffect::DrainSources => {
                let sources = self.tasks.iter_mut().filter(|(attempt, _)| attempt.vertex.0 == 0);
                sources.for_each(|(_, task)| task.drained = true);
            }
            CheckpointEffect::Answer(number, _) => {
                assert!(self.asked.remove(&number), "request {number} is answered once");
            }
            CheckpointEffect::Write { metadata, kept } => self.ops.push(Op::Written(metadata, kept)),
            CheckpointEffect::Commit { checkpoint, .. } => self.ops.push(Op::Committed(checkpoint)),
            CheckpointEffect::Confirm(checkpoint) => {
                let ends = self.ending.as_ref().is_some_and(|m| m.checkpoint == checkpoint);
                assert!(ends || self.kept.iter().any(|p| p.id == checkpoint));
                let still = self.tasks.iter().filter(|(_, task)| task.still == Some(checkpoint));
                let over: Vec<AttemptId> = still.map(|(attempt, _)| *attempt).collect();
                over.into_iter().for_each(|attempt| self.report(attempt, ExecutionState::Finished));
            }
            CheckpointEffect::Remove(ids) => {
                assert!(
                    ids.iter().all(|id| self.kept.iter().all(|p| p.id != *id)),
                    "removed while remembered"
                );
                self.store.retain(|id, _| !ids.contains(id));
            }
            CheckpointEffect::Abort { checkpoint, .. } => {
                assert!(!self.completed.contains(&checkpoint));
                self.aborted = self.aborted.max(checkpoint);
                let still = self.tasks.values_mut().filter(|task| task.still == Some(checkpoint));
                still.for_each(|task| task.still = None);
            }
            _ => {}
        }
    }

    /// Numbers only grow, over all terms, and are reserved before.
    fn begin(&mut self, checkpoint: u64) {
        assert!(checkpoint > self.begun && checkpoint <= self.reserved, "{checkpoint}");
        self.begun = checkpoint;
    }

    /// Does one thing; `calm`: nothing fails any more. Says whether there was something.
    fn step(&mut self, calm: bool) -> bool {
        self.collect();
        if self.scheduler.status().is_terminal() {
            return false;
        }
        if !calm && self.chance(25) {
            self.disaster();
            return true;
        }
        if !calm && self.chance(60) {
            self.ask();
            return true;
        }
        if self.chance(3) || self.ops.is_empty() {
            self.offer();
            self.work(calm);
        }
        let ready: Vec<usize> = (0..self.ops.len())
            .filter(|index| !matches!(self.ops[*index], Op::Timer(_, at) if at > self.now().tick))
            .collect();
        if ready.is_empty() {
            self.millis += self.random.random_range(1..20);
            return true;
        }
        let op = self.ops.swap_remove(ready[self.random.random_range(0..ready.len())]);
        self.answer(op, calm);
        true
    }

    fn answer(&mut self, op: Op, calm: bool) {
        let fails = !calm && self.chance(12);
        let result = || if fails { Err("bad luck".to_owned()) } else { Ok(()) };
        let now = self.now();
        match op {
            Op::Prepared => {
                self.prepared = true;
                self.scheduler.prepared_from(Ok((self.splits.clone(), self.savepoint.clone())), now);
            }
            Op::Submitted(attempt) if fails => {
                self.tasks.remove(&attempt);
                let failure = SubmitFailure { cause: "bad luck".into(), unrecoverable: false };
                self.scheduler.submitted(&attempt, Err(failure), now);
            }
            Op::Submitted(attempt) => {
                self.scheduler.submitted(&attempt, Ok(()), now);
                if self.tasks.contains_key(&attempt) {
                    self.report(attempt, ExecutionState::Running);
                }
            }
            Op::Canceled(attempt) => {
                if self.tasks.contains_key(&attempt) {
                    self.report(attempt, ExecutionState::Canceled);
                } else {
                    self.scheduler.cancel_gave_up(&attempt, now);
                }
            }
            Op::Swept => self.scheduler.swept(result(), now),
            Op::Reserved(up_to) => {
                if !fails {
                    self.reserved = self.reserved.max(up_to);
                }
                self.scheduler.checkpoints_reserved(up_to, result(), now);
            }
            Op::Written(metadata, kept) => {
                let id = metadata.checkpoint;
                if !fails {
                    self.remember(*metadata, kept);
                }
                let failure = |cause| WriteFailure { cause, may_be_there: false };
                self.scheduler.checkpoint_written(id, result().map_err(failure), now);
            }
            Op::Committed(id) => self.scheduler.checkpoint_committed(id, result(), now),
            Op::SavepointWritten(metadata) => {
                let id = metadata.checkpoint;
                if !fails {
                    self.written = Some(*metadata);
                }
                let failure = |cause| WriteFailure { cause, may_be_there: false };
                self.scheduler.checkpoint_written(id, result().map_err(failure), now);
            }
            Op::SavedVisible(_) => self.scheduler.committed(Ok(()), now),
            Op::Barrier(attempt, id, stop) => self.barrier(attempt, id, stop, fails),
            Op::Read(pointers) => {
                let read = if fails {
                    Err(ReadFailure::Unreachable("bad luck".into()))
                } else {
                    let (pointer, older) = pointers.split_last().unwrap();
                    let read = if pointer.store.is_some() {
                        self.savepoint.clone().unwrap()
                    } else {
                        CompletedCheckpoint::own(pointer.clone(), self.store[&pointer.id].clone())
                    };
                    Ok((read, older.to_vec()))
                };
                self.scheduler.checkpoint_read(read, now);
            }
            Op::Timer(timer, _) => self.scheduler.wake(timer, now),
        }
    }

    fn remember(&mut self, metadata: v1::CheckpointMetadata, kept: Vec<CheckpointPointer>) {
        assert!(
            self.completed.insert(metadata.checkpoint),
            "a number of a completed checkpoint was used again"
        );
        self.store.insert(metadata.checkpoint, metadata);
        self.kept = kept;
    }

    fn barrier(&mut self, attempt: AttemptId, id: u64, stop: bool, fails: bool) {
        let Some(task) = self.tasks.get_mut(&attempt) else { return };
        // The word of its end may be faster than that of its beginning.
        if stop && !fails && id > self.aborted {
            task.still = Some(id);
        }
        let snapshot = snapshot(task);
        let now = self.now();
        if fails {
            self.scheduler.declined(&attempt, id, "bad luck", now);
        } else {
            self.scheduler.acknowledged(&attempt, id, snapshot, now);
        }
    }

    fn report(&mut self, attempt: AttemptId, state: ExecutionState) {
        let Some(task) = self.tasks.get(&attempt).cloned() else { return };
        if state.is_terminal() {
            self.tasks.remove(&attempt);
        }
        let last = (state == ExecutionState::Finished).then(|| Box::new(snapshot(&task)));
        let figures = Some(figures(&task));
        let update = TaskUpdate { attempt, state, error: "boom".into(), unrecoverable: false, figures, last };
        self.scheduler.task_state(&task.place, update, now(self.millis));
    }

    /// Some task reads a line, asks for a split, or ends.
    fn work(&mut self, calm: bool) {
        for _ in 0..if calm { 3 } else { 1 } {
            let running: Vec<AttemptId> = self
                .scheduler
                .executions()
                .iter()
                .filter(|e| e.state == ExecutionState::Running)
                .filter(|e| self.tasks.get(&e.id).is_some_and(|task| task.still.is_none()))
                .map(|e| e.id)
                .collect();
            if running.is_empty() {
                return;
            }
            let attempt = running[self.random.random_range(0..running.len())];
            if attempt.vertex.0 > 0 {
                let sources = self.scheduler.executions().of_vertex(runtime_core::VertexId(0));
                if sources.iter().all(|e| e.state == ExecutionState::Finished) {
                    self.report(attempt, ExecutionState::Finished);
                }
                continue;
            }
            let Some(task) = self.tasks.get_mut(&attempt) else { continue };
            if task.drained {
                self.report(attempt, ExecutionState::Finished);
                continue;
            }
            match task.reading {
                Some((split, LINES)) => {
                    task.finished.push(split);
                    task.reading = None;
                }
                Some((split, line)) => {
                    task.records += 1;
                    task.reading = Some((split, line + 1));
                }
                None => {
                    task.request += 1;
                    match self.scheduler.next_split(attempt, task.request) {
                        Some(split) => task.reading = Some((split.id, split.resume.map_or(0, |r| r.line))),
                        None => self.report(attempt, ExecutionState::Finished),
                    }
                }
            }
        }
    }

    /// Somebody wants a savepoint, and may want the job to end with it.
    fn ask(&mut self) {
        self.requests += 1;
        let stop = [None, Some(Stop::Suspend), Some(Stop::Drain)][self.random.random_range(0..3)];
        let wanted = match self.random.random_range(0..4) {
            0 => Wanted::Checkpoint,
            _ => Wanted::Savepoint { url: format!("file:///s/{}", self.requests), stop },
        };
        self.asked.insert(self.requests);
        let now = self.now();
        self.scheduler.request_checkpoint(Request { number: self.requests, wanted }, now);
    }

    /// Whether another job follows one that has ended.
    fn go_on(&mut self) -> bool {
        self.collect();
        let ended = self.scheduler.status() == JobStatus::Finished;
        let saved = if ended { self.ending.take() } else { None };
        if let Some(metadata) = &saved {
            self.follow(metadata);
        }
        saved.is_some()
    }

    /// Another job begins where a savepoint has ended this one.
    fn follow(&mut self, metadata: &v1::CheckpointMetadata) {
        let parallelism = self.random.random_range(1..=3);
        let next = graph(self.chance(2), parallelism);
        let url = "file:///s/0";
        let pointer = CheckpointPointer {
            id: metadata.checkpoint,
            metadata: "metadata".into(),
            completed_at: 0,
            store: Some(url.into()),
        };
        let mapped = Mapping::of(metadata, url, &self.graph, &next);
        self.splits = mapping::splits(metadata, &next);
        self.kept = vec![pointer.clone()];
        self.savepoint = Some(CompletedCheckpoint {
            pointer,
            metadata: metadata.clone(),
            mapping: Some(Box::new(mapped)),
        });
        self.job += 1;
        self.graph = next;
        (self.written, self.prepared) = (None, false);
        self.ops.clear();
        self.tasks.clear();
        self.store.clear();
        (self.begun, self.reserved) = (metadata.checkpoint, 0);
        self.followed += 1;
        let (job, graph) = (JobId::from_u128(self.job), Arc::clone(&self.graph));
        self.scheduler = Scheduler::new(job, Epoch(self.term), graph, SLOT_TIMEOUT, now(self.millis));
    }

    fn offer(&mut self) {
        let place = format!("te-{}", self.random.random_range(0..TASK_EXECUTORS));
        self.allocation += 1;
        let allocation = AllocationId::from_u128(self.allocation);
        let now = self.now();
        self.scheduler.offer(&te(&place), &[(allocation, 0)], now);
    }

    fn disaster(&mut self) {
        let now = self.now();
        match self.random.random_range(0..10) {
            0..=3 => {
                let place = te(&format!("te-{}", self.random.random_range(0..TASK_EXECUTORS)));
                self.tasks.retain(|_, task| task.place != place);
                self.scheduler.task_executor_lost(&place, "bad luck", now);
            }
            4..=7 => {
                let attempts: Vec<AttemptId> = self.tasks.keys().copied().collect();
                if !attempts.is_empty() {
                    let attempt = attempts[self.random.random_range(0..attempts.len())];
                    self.report(attempt, ExecutionState::Failed);
                }
            }
            8 if self.prepared => self.new_term(),
            _ => {
                if self.chance(20) {
                    self.canceled |= self.scheduler.cancel(now);
                }
            }
        }
    }

    /// The job master dies; what it was writing is there or not.
    fn new_term(&mut self) {
        let mut output = None;
        for op in std::mem::take(&mut self.ops) {
            match op {
                Op::Written(metadata, kept) if self.chance(2) => self.remember(*metadata, kept),
                Op::SavepointWritten(metadata) if self.chance(2) => self.written = Some(*metadata),
                Op::SavedVisible(counts) if self.chance(2) => output = Some((Vec::new(), counts)),
                Op::Reserved(up_to) if self.chance(2) => self.reserved = self.reserved.max(up_to),
                _ => {}
            }
        }
        if output.is_none() {
            self.ending = None;
        }
        self.asked.clear();
        self.tasks.clear();
        self.term += 1;
        self.canceled = false;
        let left = Recovered {
            splits: Some(self.splits.clone()),
            output,
            reserved: self.reserved,
            completed: self.kept.clone(),
            restarts: self.scheduler.restarts(),
            ..Recovered::default()
        };
        let graph = Arc::clone(&self.graph);
        let now = self.now();
        self.scheduler =
            Scheduler::recover(JobId::from_u128(self.job), Epoch(self.term), graph, SLOT_TIMEOUT, left, now);
    }
}

fn figures(task: &Task) -> v1::Figures {
    v1::Figures { records_in: task.records, records_out: task.records, ..v1::Figures::default() }
}

fn snapshot(task: &Task) -> v1::TaskSnapshot {
    let position = |line| Some(v1::ReadPosition { offset: line, line });
    v1::TaskSnapshot {
        figures: Some(figures(task)),
        source: Some(v1::SourceProgress {
            finished: task.finished.clone(),
            reading: task.reading.map(|(split, line)| v1::SplitPosition { split, position: position(line) }),
        }),
        ..v1::TaskSnapshot::default()
    }
}

#[test]
fn whatever_fails_a_job_comes_to_its_end_and_each_line_is_read_once() {
    let mut ends: BTreeMap<&str, u32> = BTreeMap::new();
    let mut followed = 0;
    for seed in 0..200 {
        println!("seed {seed}");
        let mut world = World::new(seed);
        for _ in 0..600 {
            if !world.step(false) && !world.go_on() {
                break;
            }
        }
        let mut left = 40_000;
        while world.step(true) || world.go_on() {
            left -= 1;
            assert!(left > 0, "seed {seed}: no end in {:?}", world.scheduler.status());
        }
        assert_eq!(world.asked, BTreeSet::new(), "seed {seed}: nobody waits for ever");
        followed += world.followed;
        let status = world.scheduler.status();
        *ends.entry(status.as_str()).or_default() += 1;
        match status {
            JobStatus::Finished => {
                let counts = world.scheduler.counts();
                assert_eq!(counts.records_in, u64::from(SPLITS) * LINES, "seed {seed}");
            }
            JobStatus::Canceled => assert!(world.canceled, "seed {seed}"),
            other => panic!("seed {seed}: {other:?}"),
        }
        // What comes late changes nothing.
        for op in std::mem::take(&mut world.ops) {
            world.answer(op, true);
            world.collect();
            assert_eq!(world.scheduler.status(), status, "seed {seed}: a terminal job stays so");
        }
    }
    assert!(ends.contains_key("FINISHED") && ends.contains_key("CANCELED"), "{ends:?}");
    assert!(followed > 50, "{followed} jobs began with a savepoint");
}
