//! The assigner by hand, and against a plain model of readers that fail.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use runtime_core::{AttemptId, Epoch, JobId, VertexId};
use wire::v1;

use super::{SplitAssigner, reading_of};

fn attempt(subtask: u32, attempt: u32) -> AttemptId {
    AttemptId { job: JobId::from_u128(1), term: Epoch(1), vertex: VertexId(0), subtask, attempt }
}

fn splits(count: u32) -> Vec<v1::FileSplit> {
    (0..count).map(|id| v1::FileSplit { id, ..v1::FileSplit::default() }).collect()
}

fn id(split: Option<v1::FileSplit>) -> Option<u32> {
    split.map(|split| split.id)
}

fn set(items: &[u32]) -> BTreeSet<u32> {
    items.iter().copied().collect()
}

#[test]
fn each_split_is_given_once_and_a_repeated_request_gets_the_same() {
    let mut assigner = SplitAssigner::new(splits(2), 2);
    assert_eq!(id(assigner.next(attempt(0, 0), 1)), Some(0));
    assert_eq!(id(assigner.next(attempt(0, 0), 1)), Some(0));
    assert_eq!(id(assigner.next(attempt(1, 0), 1)), Some(1));
    assert_eq!(assigner.next(attempt(1, 0), 2), None);
    assert_eq!(assigner.next(attempt(1, 0), 2), None);
}

#[test]
fn a_restart_from_the_beginning_opens_what_its_subtasks_had() {
    let mut assigner = SplitAssigner::new(splits(2), 2);
    assigner.next(attempt(0, 0), 1);
    assigner.next(attempt(1, 0), 1);
    assigner.restore(&set(&[0]), &set(&[]), &BTreeMap::new());
    assert_eq!(id(assigner.next(attempt(0, 1), 1)), Some(0));
    assert_eq!(assigner.next(attempt(0, 1), 2), None, "what others have taken is theirs");
}

#[test]
fn the_split_being_read_comes_first_to_the_same_subtask_and_finished_ones_never() {
    let mut assigner = SplitAssigner::new(splits(4), 2);
    for request in 1..=3 {
        assigner.next(attempt(0, 0), request);
    }
    let position = v1::ReadPosition { offset: 7, line: 2 };
    let reading = BTreeMap::from([(0, v1::SplitPosition { split: 1, position: Some(position) })]);
    assigner.restore(&set(&[0]), &set(&[0]), &reading);
    assert_eq!(id(assigner.next(attempt(1, 0), 1)), Some(2), "taken since: open again");
    let resumed = assigner.next(attempt(0, 1), 1).unwrap();
    assert_eq!((resumed.id, resumed.resume), (1, Some(position)));
    assert_eq!(id(assigner.next(attempt(0, 1), 2)), Some(3));
    assert_eq!(assigner.next(attempt(0, 1), 3), None);
    assert_eq!(assigner.finished(), &set(&[0]));
}

#[test]
fn the_rate_is_shared_by_those_that_have_or_will_have_a_split() {
    let mut assigner = SplitAssigner::new(splits(3), 2);
    assigner.next(attempt(0, 0), 1);
    assert_eq!(assigner.share(100.0), 50.0, "the second subtask will get one");
    assigner.next(attempt(1, 0), 1);
    assigner.next(attempt(0, 0), 2);
    assigner.next(attempt(0, 0), 3);
    assert_eq!(assigner.share(100.0), 100.0, "the first has ended");
    let mut one = SplitAssigner::new(splits(1), 4);
    one.next(attempt(0, 0), 1);
    assert_eq!(one.share(100.0), 100.0, "a single split has a single reader");
}

/// A subtask that reads line by line, as it stands.
#[derive(Debug, Clone, Default)]
struct Reader {
    attempt: u32,
    request: u64,
    finished: BTreeSet<u32>,
    reading: Option<(u32, u64)>,
    /// The lines that are in its output.
    lines: Vec<(u32, u64)>,
}

/// Everything as it was at a checkpoint.
#[derive(Debug, Clone, Default)]
struct Checkpoint {
    readers: Vec<Reader>,
    finished: BTreeSet<u32>,
}

#[derive(Debug, Clone)]
enum Step {
    Read(usize),
    Repeat(usize),
    Checkpoint,
    Fail(Vec<usize>),
    NewTerm,
}

const READERS: usize = 3;
const LINES: u64 = 3;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..READERS).prop_map(Step::Read),
        1 => (0..READERS).prop_map(Step::Repeat),
        2 => Just(Step::Checkpoint),
        1 => prop::collection::vec(0..READERS, 1..READERS).prop_map(Step::Fail),
        1 => Just(Step::NewTerm),
    ]
}

fn at(split: u32, line: u64) -> v1::SplitPosition {
    v1::SplitPosition { split, position: Some(v1::ReadPosition { offset: line, line }) }
}

struct Model {
    assigner: SplitAssigner<v1::FileSplit>,
    count: u32,
    readers: Vec<Reader>,
    checkpoint: Checkpoint,
}

impl Model {
    fn new(count: u32) -> Self {
        let readers = vec![Reader::default(); READERS];
        let checkpoint = Checkpoint { readers: readers.clone(), finished: BTreeSet::new() };
        Self { assigner: SplitAssigner::new(splits(count), READERS as u32), count, readers, checkpoint }
    }

    /// One line, or a split; says whether there was something.
    fn read(&mut self, index: usize) -> bool {
        let reader = &mut self.readers[index];
        match reader.reading {
            Some((split, LINES)) => {
                reader.finished.insert(split);
                reader.reading = None;
                true
            }
            Some((split, line)) => {
                reader.lines.push((split, line));
                reader.reading = Some((split, line + 1));
                true
            }
            None => {
                reader.request += 1;
                let given = self.assigner.next(attempt(index as u32, reader.attempt), reader.request);
                let given = given.map(|s| (s.id, s.resume.map_or(0, |r| r.line)));
                reader.reading = given;
                given.is_some()
            }
        }
    }

    fn restart(&mut self, failed: &BTreeSet<usize>) {
        let reading = self.checkpoint.readers.iter().enumerate().filter_map(|(index, reader)| {
            let (split, line) = reader.reading?;
            Some((index as u32, at(split, line)))
        });
        let reading = reading.collect();
        let subtasks = failed.iter().map(|index| *index as u32).collect();
        self.assigner.restore(&subtasks, &self.checkpoint.finished, &reading);
        for index in failed {
            let attempt = self.readers[*index].attempt + 1;
            let lines = self.checkpoint.readers[*index].lines.clone();
            self.readers[*index] = Reader { attempt, lines, ..Reader::default() };
        }
    }

    fn play(&mut self, step: Step) {
        match step {
            Step::Read(index) => {
                self.read(index);
            }
            Step::Repeat(index) => {
                let reader = &self.readers[index];
                if let (Some((split, _)), true) = (reader.reading, reader.request > 0) {
                    let again = self.assigner.next(attempt(index as u32, reader.attempt), reader.request);
                    assert_eq!(again.map(|s| s.id), Some(split));
                }
            }
            Step::Checkpoint => {
                let mut finished = self.assigner.finished().clone();
                finished.extend(self.readers.iter().flat_map(|reader| &reader.finished));
                let mut readers = self.readers.clone();
                for (index, reader) in readers.iter_mut().enumerate() {
                    let said = v1::SourceProgress {
                        finished: reader.finished.iter().copied().collect(),
                        reading: reader.reading.map(|(split, line)| at(split, line)),
                    };
                    let reading = reading_of(Some(&said), self.assigner.restored(index as u32));
                    reader.reading = reading.map(|at| (at.split, at.position.map_or(0, |p| p.line)));
                }
                self.checkpoint = Checkpoint { readers, finished };
            }
            Step::Fail(failed) => self.restart(&failed.into_iter().collect()),
            Step::NewTerm => {
                self.assigner = SplitAssigner::new(splits(self.count), READERS as u32);
                self.assigner.adopt(&self.checkpoint.finished.clone());
                self.restart(&(0..READERS).collect());
            }
        }
    }
}

proptest! {
    #[test]
    fn each_line_is_read_exactly_once_whatever_fails(
        count in 1_u32..8,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut model = Model::new(count);
        for step in steps {
            model.play(step);
        }
        while (0..READERS).any(|index| model.read(index)) {}
        let mut lines: Vec<(u32, u64)> = model.readers.iter().flat_map(|r| r.lines.clone()).collect();
        lines.sort_unstable();
        let expected: Vec<(u32, u64)> = (0..count).flat_map(|s| (0..LINES).map(move |l| (s, l))).collect();
        prop_assert_eq!(lines, expected);
    }
}

#[test]
fn a_split_with_a_reader_waits_for_it_and_goes_to_nobody_else() {
    let mut splits = splits(3);
    splits[0].subtask = Some(1);
    let mut assigner = SplitAssigner::new(splits, 2);
    let attempt = |subtask| AttemptId {
        job: runtime_core::JobId::from_u128(1),
        term: runtime_core::Epoch(1),
        vertex: runtime_core::VertexId(0),
        subtask,
        attempt: 0,
    };
    assert_eq!(assigner.next(attempt(0), 1).unwrap().id, 1);
    assert_eq!(assigner.next(attempt(0), 2).unwrap().id, 2);
    assert_eq!(assigner.next(attempt(0), 3), None);
    assert_eq!(assigner.next(attempt(1), 1).unwrap().id, 0);
}
