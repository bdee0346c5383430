//! Which subtask of the next chain a record goes to.

use job::graph::Partitioning;
use job::key::{Key, key_group, subtask_of};
use job::record::JsonRecord;

/// Chooses among the channels of one edge (Flink: `StreamPartitioner`). Control elements go to all of them and never
/// come here.
#[derive(Debug)]
pub struct Partitioner {
    field: Option<String>,
    max_parallelism: u32,
    targets: u32,
    next: u32,
}

impl Partitioner {
    /// A partitioner over `targets` subtasks. Producers begin their turns at different targets, by `subtask`.
    #[must_use]
    pub fn new(partitioning: &Partitioning, max_parallelism: u32, targets: u32, subtask: u32) -> Self {
        let field = match partitioning {
            Partitioning::RoundRobin => None,
            Partitioning::KeyGroups { field } => Some(field.clone()),
        };
        let targets = targets.max(1);
        Self { field, max_parallelism, targets, next: subtask % targets }
    }

    /// The target of this record, below the number of targets.
    pub fn target(&mut self, record: &JsonRecord) -> usize {
        let key = self.field.as_deref().and_then(|field| record.path(field)).and_then(Key::of);
        let target = match key {
            Some(key) => {
                let group = key_group(&key, self.max_parallelism);
                subtask_of(group, self.max_parallelism, self.targets).min(self.targets - 1)
            }
            None => return self.in_turn(),
        };
        target as usize
    }

    /// The next target in turn: where what has no key goes.
    pub fn in_turn(&mut self) -> usize {
        let target = self.next;
        self.next = (target + 1) % self.targets;
        target as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use job::record::Origin;

    fn record(line: &str) -> JsonRecord {
        let origin = Origin { file: "f".into(), line: 1, offset: 0, split_start: 0 };
        JsonRecord::parse(Bytes::copy_from_slice(line.as_bytes()), origin).unwrap()
    }

    #[test]
    fn round_robin_takes_each_target_in_turn_from_the_producers_own_place() {
        let mut partitioner = Partitioner::new(&Partitioning::RoundRobin, 128, 3, 4);
        let targets: Vec<_> = (0..5).map(|_| partitioner.target(&record("{}"))).collect();
        assert_eq!(targets, [1, 2, 0, 1, 2]);
    }

    #[test]
    fn records_of_one_key_go_to_the_subtask_that_owns_its_key_group() {
        let by_key = Partitioning::KeyGroups { field: "k".to_owned() };
        let mut partitioner = Partitioner::new(&by_key, 128, 4, 0);
        let mut seen = [false; 4];
        for n in 0..64 {
            let line = record(&format!(r#"{{"k":{n}}}"#));
            let key = Key::of(line.field("k").unwrap()).unwrap();
            let owner = subtask_of(key_group(&key, 128), 128, 4) as usize;
            assert_eq!(partitioner.target(&line), owner);
            assert_eq!(partitioner.target(&line), owner);
            seen[owner] = true;
        }
        assert_eq!(seen, [true; 4], "64 keys reach all four subtasks");
    }

    #[test]
    fn records_without_a_key_are_spread_in_turn() {
        let by_key = Partitioning::KeyGroups { field: "k".to_owned() };
        let mut partitioner = Partitioner::new(&by_key, 128, 2, 0);
        let targets: Vec<_> =
            [r#"{"k":null}"#, "{}", r#"{"k":null}"#].iter().map(|l| partitioner.target(&record(l))).collect();
        assert_eq!(targets, [0, 1, 0]);
    }
}
