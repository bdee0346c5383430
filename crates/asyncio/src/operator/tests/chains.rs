//! Two operators in a row, driven by hand as a task drives a chain: from the tail to the head, each giving out only what
//! the next has room for. A chain of a task executor shows no event times in its files and restores nothing by itself, so
//! what concerns these is shown here.

use std::collections::VecDeque;

use super::driver::*;
use crate::*;
use runtime_core::{Record, StreamElement, Tick};

type Operator = AsyncWaitOperator<u32, u32, &'static str>;

const NOW: Tick = Tick::ZERO;

/// A first operator, a map, and a second operator. Both calls double; each turn completes one of each, the newest first.
struct Chain {
    first: Operator,
    second: Operator,
    /// What the map adds; absent until it is opened.
    adds: Option<u32>,
    running: [Vec<(EntryId, u32, u32)>; 2],
    out: Vec<String>,
}

impl Chain {
    fn new(first: OptionsBuilder, second: OptionsBuilder) -> Self {
        let operator = |options: OptionsBuilder| Operator::new(options.build().unwrap());
        Self {
            first: operator(first),
            second: operator(second),
            adds: None,
            running: [Vec::new(), Vec::new()],
            out: Vec::new(),
        }
    }

    /// From the tail to the head. The head is open only when all behind it is.
    fn open(&mut self) {
        self.adds = Some(1);
    }

    fn start(operator: &mut Operator, running: &mut Vec<(EntryId, u32, u32)>) {
        while let Some(effect) = operator.next_effect() {
            let Effect::Start { entry, attempt } = effect else { panic!("{effect:?}") };
            running.push((entry, attempt, 2 * operator.input(entry).unwrap().value));
        }
    }

    /// One turn. Says whether anything moved.
    fn turn(&mut self, input: &mut VecDeque<StreamElement<u32>>) -> bool {
        let mut moved = false;
        while let Some(output) = self.second.next_output() {
            moved = true;
            self.out.push(match output {
                Output::Record { input, outcome: Outcome::Completed(value), .. } => {
                    format!("{value}@{}", input.timestamp.unwrap().0)
                }
                Output::Watermark(watermark) => format!("W({})", watermark.0.0),
                other => panic!("{other:?}"),
            });
        }
        while self.second.is_available()
            && let Some(output) = self.first.next_output()
        {
            moved = true;
            let element = match output {
                Output::Record { input, outcome: Outcome::Completed(value), .. } => {
                    let adds = self.adds.expect("a result reached a map that is not open");
                    StreamElement::Record(Record { value: value + adds, timestamp: input.timestamp })
                }
                Output::Watermark(watermark) => StreamElement::Watermark(watermark),
                other => panic!("{other:?}"),
            };
            self.second.push(element, NOW).unwrap();
        }
        while self.first.is_available()
            && let Some(element) = input.pop_front()
        {
            moved = true;
            self.first.push(element, NOW).unwrap();
        }
        for (operator, running) in [&mut self.first, &mut self.second].into_iter().zip(&mut self.running) {
            operator.advance(NOW);
            Self::start(operator, running);
            if let Some((entry, attempt, answer)) = running.pop() {
                moved = true;
                assert!(operator.complete(entry, attempt, Ok(answer), NOW));
            }
        }
        moved
    }

    /// Drives the chain and ends it, head first. Gives what was still in the second operator when the first was closed.
    fn run(&mut self, input: impl IntoIterator<Item = StreamElement<u32>>) -> usize {
        let mut input: VecDeque<_> = input.into_iter().collect();
        while !input.is_empty() {
            assert!(self.turn(&mut input), "they block each other: {:?}", self.out);
        }
        self.first.end_of_input(NOW);
        while !self.first.is_drained() {
            assert!(self.turn(&mut input), "the first cannot end: {:?}", self.out);
        }
        self.first.close();
        let left = self.second.len();
        self.second.end_of_input(NOW);
        while !self.second.is_drained() {
            assert!(self.turn(&mut input), "the second cannot end: {:?}", self.out);
        }
        left
    }
}

#[test]
fn g06_two_operators_with_a_map_between_them_keep_timestamps_and_lose_nothing() {
    let mut chain = Chain::new(Options::ordered().capacity(6), Options::unordered().capacity(3));
    chain.open();
    chain.run((5..10).map(|value| record(value, i64::from(value) - 5)));
    let mut out = chain.out;
    out.sort_unstable();
    assert_eq!(out, ["22@0", "26@1", "30@2", "34@3", "38@4"]);
}

#[test]
fn g05_g07_with_one_place_each_two_operators_do_not_block_each_other() {
    for first in [Options::ordered(), Options::unordered()] {
        for capacities in [(1, 1), (3, 1), (1, 3)] {
            let mut chain =
                Chain::new(first.clone().capacity(capacities.0), Options::ordered().capacity(capacities.1));
            chain.open();
            chain.run((0..20).map(|value| record(value, value.into())));
            assert_eq!(chain.out.len(), 20);
        }
    }
}

#[test]
fn g08_the_first_is_drained_and_closed_before_the_second_hears_of_the_end() {
    let mut chain = Chain::new(Options::ordered().capacity(6), Options::unordered().capacity(3));
    chain.open();
    let elements = (0..9).flat_map(|value| [record(value, value.into()), watermark(value.into())]);
    let left = chain.run(elements);
    assert!(left > 0, "the second still held what the first gave it last");
    let expected: Vec<String> =
        (0..9).flat_map(|n| [format!("{}@{n}", 2 * (2 * n + 1)), format!("W({n})")]).collect();
    assert_eq!(chain.out, expected);
    assert_eq!(chain.first.figures(NOW).records_out, 9);
}

#[test]
fn i19_restored_results_of_the_first_reach_the_second_only_once_it_is_open() {
    for options in [Options::ordered(), Options::unordered()] {
        let mut stopped = Driver::new(options.clone());
        (1..=3).for_each(|value| stopped.record(value));
        let mut chain = Chain::new(options.clone(), options);
        chain.first.restore(stopped.snap(), NOW).unwrap();
        // Results are ready before anything behind is open, and stay where they are: the restore emits nothing itself.
        Chain::start(&mut chain.first, &mut chain.running[0]);
        for (entry, attempt, answer) in std::mem::take(&mut chain.running[0]) {
            assert!(chain.first.complete(entry, attempt, Ok(answer), NOW));
        }
        assert_eq!(chain.first.figures(NOW).completed_waiting, 3);
        assert!(chain.second.is_empty());
        chain.open();
        chain.run([]);
        assert_eq!(chain.out.len(), 3);
    }
}
