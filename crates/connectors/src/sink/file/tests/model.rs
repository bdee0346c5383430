//! Jobs that write, stage, complete, commit, die and begin again in any order, against a plain model: a list of lines for
//! each subtask, as long as the latest completed checkpoint says.
//!
//! Lines differ from attempt to attempt, as answers may, so that a line of one attempt in the place of another's shows.

use super::checkpoints::restored;
use super::*;
use crate::random::Random;
use disk::{dies_after, lives};

/// One attempt, and the lines of its subtask since the job began: those it was restored with, and its own.
struct Attempt {
    id: AttemptId,
    writer: FileWriter,
    lines: Vec<String>,
    /// Its last snapshot, once it has finished.
    ended: Option<Snapshot>,
}

#[derive(Clone, Default)]
struct Snapshot {
    staged: Vec<StagedFile>,
    lines: Vec<String>,
    committed_length: u64,
}

struct Job {
    folder: TempDir,
    options: FileSinkOptions,
    random: Random,
    subtasks: u32,
    next_attempt: u32,
    next_checkpoint: u64,
    running: Vec<Attempt>,
    /// Given up, but not all of them know.
    zombies: Vec<Attempt>,
    /// What completed, by subtask; the last one counts. The first stands for the beginning.
    completed: Vec<(u64, Vec<Snapshot>)>,
    /// Whether the last one is known to be visible.
    visible: bool,
    /// Copies of the staged files that a commit removes.
    removed: Vec<(std::path::PathBuf, Vec<u8>)>,
}

impl Job {
    fn begin(seed: u64, parts_in_folder: bool) -> Self {
        let folder = folder();
        let options = if parts_in_folder { parts(&folder) } else { file(&folder) };
        prepare(&options).unwrap();
        let subtasks = if parts_in_folder { 2 } else { 1 };
        let mut job = Self {
            folder,
            options,
            random: Random(seed),
            subtasks,
            next_attempt: 0,
            next_checkpoint: 1,
            running: Vec::new(),
            zombies: Vec::new(),
            completed: vec![(0, vec![Snapshot::default(); subtasks as usize])],
            visible: true,
            removed: Vec::new(),
        };
        job.deploy();
        job
    }

    fn deploy(&mut self) {
        let (checkpoint, snapshots) = self.completed.last().unwrap().clone();
        for (subtask, snapshot) in (0..self.subtasks).zip(snapshots) {
            let id = AttemptId { attempt: self.next_attempt, ..attempt(JOB, subtask) };
            let since = Restored { checkpoint, committed_length: snapshot.committed_length };
            let writer = restored(&self.options, id, since);
            self.running.push(Attempt { id, writer, lines: snapshot.lines, ended: None });
        }
        self.next_attempt += 1;
    }

    /// What the job master does after a failure, be it its own.
    fn restart(&mut self) {
        commit(&self.staged()).unwrap();
        self.visible = true;
        let stopped: Vec<_> = self.running.iter().map(|attempt| attempt.id).collect();
        let stopped_all = self.random.below(2) == 0;
        let running: Vec<_> = self.running.drain(..).collect();
        for attempt in running {
            if stopped_all {
                std::mem::forget(attempt.writer);
            } else {
                self.zombies.push(attempt);
            }
        }
        sweep_attempts(&self.options, &stopped).unwrap();
        self.check();
        self.deploy();
    }

    fn staged(&self) -> Vec<StagedFile> {
        let (_, snapshots) = self.completed.last().unwrap();
        snapshots.iter().flat_map(|snapshot| snapshot.staged.clone()).collect()
    }

    fn write(attempt: &mut Attempt, lines: u64) {
        for _ in 0..lines {
            let line = format!("{}-{} by {}", attempt.id.subtask, attempt.lines.len(), attempt.id.attempt);
            // A zombie's file may have been swept.
            if attempt.ended.is_none() && attempt.writer.write_line(line.as_bytes()).is_ok() {
                attempt.lines.push(line);
            }
        }
    }

    fn snapshot(attempt: &mut Attempt, checkpoint: u64) -> Result<Snapshot, SinkError> {
        if let Some(ended) = &attempt.ended {
            return Ok(ended.clone());
        }
        let staged = attempt.writer.stage(checkpoint)?;
        let committed_length = attempt.writer.committed_length();
        Ok(Snapshot { staged, lines: attempt.lines.clone(), committed_length })
    }

    fn finish(attempt: &mut Attempt) -> Result<(), SinkError> {
        if attempt.ended.is_none() {
            let staged = attempt.writer.finish()?;
            let committed_length = attempt.writer.committed_length();
            attempt.ended = Some(Snapshot { staged, lines: attempt.lines.clone(), committed_length });
        }
        Ok(())
    }

    fn checkpoint(&mut self) {
        let checkpoint = self.next_checkpoint;
        self.next_checkpoint += 1 + self.random.below(2);
        let mut snapshots = Vec::new();
        for attempt in &mut self.running {
            if self.random.below(8) == 0 {
                return;
            }
            if let Ok(snapshot) = Self::snapshot(attempt, checkpoint) {
                snapshots.push(snapshot);
            }
        }
        if snapshots.len() < self.running.len() || self.random.below(6) == 0 {
            return;
        }
        self.completed.push((checkpoint, snapshots));
        self.visible = false;
        self.commit();
    }

    fn commit(&mut self) {
        let staged = self.staged();
        for file in &staged {
            if let (Some(_), Ok(bytes)) = (file.offset, fs::read(&file.staged_path)) {
                self.removed.push((file.staged_path.clone(), bytes));
            }
        }
        if self.random.below(3) == 0 {
            dies_after(self.random.below(8) as u32);
        }
        let committed = commit(&staged);
        lives();
        if committed.is_err() {
            self.lose_power(&staged);
            return self.restart();
        }
        self.visible = true;
        self.check();
        let checkpoint = self.completed.last().unwrap().0;
        for attempt in &mut self.running {
            if attempt.ended.is_none() && self.random.below(3) > 0 {
                attempt.writer.confirmed(checkpoint);
            }
        }
    }

    /// What was not synced may be gone: the end of the piece that was being appended, and the removal of staged files.
    fn lose_power(&mut self, staged: &[StagedFile]) {
        let piece = staged.iter().find(|file| file.offset.is_some() && file.staged_path.exists());
        if let Some(StagedFile { final_path, length, offset: Some(offset), .. }) = piece
            && let Ok(mut bytes) = fs::read(final_path)
            && (*offset..=offset + length).contains(&(bytes.len() as u64))
        {
            let written = bytes.len() as u64 - offset;
            bytes.truncate((offset + self.random.below(written + 1)) as usize);
            if self.random.below(2) == 0 {
                bytes[*offset as usize..].fill(0);
            }
            fs::write(final_path, bytes).unwrap();
        }
        for (path, bytes) in &self.removed {
            if self.random.below(2) == 0 {
                fs::write(path, bytes).unwrap();
            }
        }
    }

    fn step(&mut self) {
        let of_running = self.random.below(u64::from(self.subtasks)) as usize;
        match self.random.below(20) {
            0..8 => Self::write(&mut self.running[of_running], 1 + self.random.below(4)),
            8..13 => self.checkpoint(),
            13 => {
                if Self::finish(&mut self.running[of_running]).is_err() {
                    self.restart();
                }
            }
            14 => {
                dies_after(self.random.below(4) as u32);
                drop(Self::snapshot(&mut self.running[of_running], self.next_checkpoint));
                lives();
                self.next_checkpoint += 1;
                if self.random.below(2) == 0 {
                    self.restart();
                }
            }
            15 => self.restart(),
            16 => {
                // A commit of long ago, or one that another job master repeats.
                let which = self.random.below(self.completed.len() as u64) as usize;
                let old: Vec<_> = self.completed[which].1.iter().flat_map(|s| s.staged.clone()).collect();
                commit(&old).unwrap();
            }
            _ => {
                let Some(zombie) = self.zombies.last_mut() else { return };
                Self::write(zombie, 1);
                let checkpoint = self.next_checkpoint;
                match self.random.below(4) {
                    0 => drop(Self::snapshot(zombie, checkpoint)),
                    1 => drop(Self::finish(zombie)),
                    2 => drop(self.zombies.pop()),
                    _ => {}
                }
            }
        }
    }

    fn end(&mut self) {
        while !self.running.iter_mut().all(|attempt| Self::finish(attempt).is_ok()) {
            self.restart();
        }
        let last = self.running.iter().map(|attempt| attempt.ended.clone().unwrap()).collect();
        self.completed.push((self.next_checkpoint, last));
        commit(&self.staged()).unwrap();
        self.check();
        self.zombies.clear();
        sweep(&self.options, JOB).unwrap();
        let left = names(&self.folder.path().join("out"));
        assert!(!left.is_empty(), "somebody waits for output");
        assert!(left.iter().all(|name| !name.starts_with('.')), "{left:?}");
    }

    /// What is visible is what the latest completed checkpoint says, if that is known to be committed.
    fn check(&self) {
        if !self.visible {
            return;
        }
        let (checkpoint, snapshots) = self.completed.last().unwrap();
        for (subtask, snapshot) in snapshots.iter().enumerate() {
            let found = if self.options.parts { self.parts_of(subtask) } else { self.whole() };
            let found: Vec<_> = found.lines().collect();
            assert_eq!(found, snapshot.lines, "subtask {subtask} at checkpoint {checkpoint}");
        }
    }

    fn whole(&self) -> String {
        fs::read_to_string(&self.options.path).unwrap_or_default()
    }

    fn parts_of(&self, subtask: usize) -> String {
        let mut parts: Vec<(u64, String)> = names(&self.options.path)
            .into_iter()
            .filter_map(|name| {
                let number = name.strip_prefix(&format!("part-{subtask}-"))?.strip_suffix(".jsonl")?.parse();
                Some((number.unwrap(), fs::read_to_string(self.options.path.join(&name)).unwrap()))
            })
            .collect();
        parts.sort();
        parts.into_iter().map(|(_, lines)| lines).collect()
    }
}

#[test]
fn the_output_is_exactly_what_the_latest_completed_checkpoint_says() {
    let (mut checkpoints, mut restarts) = (0, 0);
    for seed in 0..300 {
        let mut job = Job::begin(seed, seed % 2 == 1);
        for _ in 0..60 {
            job.step();
            job.check();
        }
        job.end();
        checkpoints += job.completed.len();
        restarts += job.next_attempt;
    }
    assert!(checkpoints > 1000 && restarts > 500, "the jobs are too tame: {checkpoints}, {restarts}");
}
