//! Budgets and attempt timeouts.

use super::driver::*;
use crate::*;
use runtime_core::Tick;
use std::time::Duration;

const BUDGET: &str = "the async call timed out";

fn timed(order: Order, budget: u64) -> Driver {
    Driver::new(Options::with_order(order).capacity(10).timeout(ms(budget)))
}

#[test]
fn d01_a_record_that_times_out_lets_the_next_one_go() {
    let mut driver = timed(Order::Ordered, 10);
    driver.send(record(1, 0));
    driver.tick(5);
    driver.send(record(2, 5));
    driver.tick(11);
    assert_eq!(driver.out(), [format!("FAIL 1: {BUDGET}")]);
    assert_eq!(driver.abandoned, 1);
    driver.ok(2, &[2]);
    driver.end();
    assert_eq!(driver.out(), ["2@5"]);
}

#[test]
fn d03_no_timer_is_left_when_the_operator_is_empty() {
    for order in BOTH {
        let mut driver = timed(order, 1000).calling(double);
        driver.send(record(42, 1));
        assert_eq!(driver.operator.next_wakeup(), None);
        driver.end();
        assert_eq!(driver.out(), ["84@1"]);
    }
}

#[test]
fn d04_a_completion_that_came_in_time_is_not_late_because_it_was_read_late() {
    for order in BOTH {
        let mut driver = timed(order, 10);
        driver.record(1);
        driver.set(5);
        driver.posted(1, Ok(vec![10]));
        driver.tick(10);
        assert_eq!(driver.out(), ["10@1"]);
        assert_eq!(driver.operator.figures(driver.now).timeouts, 0);
    }
}

#[test]
fn d05_without_a_timeout_there_is_no_timer() {
    for order in BOTH {
        let mut driver = Driver::of(order);
        driver.record(1);
        assert_eq!(driver.operator.next_wakeup(), None);
        driver.tick(1_000_000_000);
        assert!(driver.out().is_empty());
        assert_eq!(driver.operator.in_flight(), 1);
    }
}

#[test]
fn d10_d12_the_budget_ends_at_its_time_and_not_before() {
    for order in BOTH {
        let mut driver = timed(order, 10);
        driver.record(1);
        assert_eq!(driver.operator.next_wakeup(), Some(Tick::from_millis(10)));
        driver.tick(9);
        assert!(driver.out().is_empty());
        driver.tick(10);
        assert_eq!(driver.out(), [format!("FAIL 1: {BUDGET}")]);
        driver.ok(1, &[10]);
        assert!(driver.out().is_empty(), "a late answer is ignored");
    }
}

#[test]
fn d02_a_handlers_answer_takes_the_place_of_the_timeout() {
    let options = Options::ordered().capacity(2).timeout(ms(10));
    let mut driver = Driver::new(options).on_timeout(|value| Some(Ok(vec![3 * value])));
    driver.send(record(1, 0));
    driver.tick(5);
    driver.send(record(2, 5));
    driver.tick(11);
    driver.ok(2, &[2]);
    driver.end();
    assert_eq!(driver.out(), ["3@0", "2@5"]);
    assert_eq!(driver.handled, [1]);
    assert!(driver.operator.is_drained());
}

#[test]
fn d07_a_handler_that_does_nothing_is_asked_once_and_leaves_the_record_to_its_call() {
    for order in BOTH {
        let mut driver = timed(order, 10).on_timeout(|_| None);
        driver.record(1);
        driver.tick(10);
        driver.tick(1000);
        assert_eq!(driver.handled, [1]);
        assert!(driver.out().is_empty());
        assert_eq!((driver.operator.in_flight(), driver.operator.next_wakeup()), (1, None));
        driver.ok(1, &[10]);
        assert_eq!(driver.out(), ["10@1"]);
    }
}

#[test]
fn d08_a_handlers_error_is_the_records_and_is_not_retried() {
    for order in BOTH {
        let options = Options::with_order(order).timeout(ms(10)).retry(fixed(3, 1));
        let mut driver = Driver::new(options).on_timeout(|_| Some(Err("handler")));
        driver.record(1);
        driver.tick(10);
        assert_eq!(driver.out(), ["FAIL 1: handler"]);
        assert_eq!(driver.calls(1), 1);
    }
}

#[test]
fn d14_a_fallback_behind_a_watermark_waits_its_turn() {
    let options = Options::unordered().capacity(10).timeout(ms(10));
    let mut driver = Driver::new(options).on_timeout(|value| (value != 1).then(|| Ok(vec![0])));
    driver.record(1);
    driver.send(watermark(1));
    driver.record(2);
    driver.tick(10);
    assert!(driver.out().is_empty(), "2 has its fallback and waits behind the watermark");
    driver.ok(1, &[10]);
    assert_eq!(driver.out(), ["10@1", "W(1)", "0@2"]);
}

#[test]
fn d16_the_longest_timeout_neither_overflows_nor_fires() {
    let longest = Duration::from_nanos(u64::MAX);
    let mut driver = Driver::new(Options::ordered().timeout(longest).attempt_timeout(longest));
    driver.set(1000);
    driver.record(1);
    driver.tick(1_000_000_000_000);
    assert!(driver.out().is_empty());
}

#[test]
fn d17_timers_fire_after_the_end_of_input() {
    for order in BOTH {
        let mut driver = timed(order, 10);
        driver.record(1);
        driver.end();
        assert!(!driver.operator.is_drained());
        driver.tick(10);
        assert_eq!(driver.out().len(), 1);
        assert!(driver.operator.is_drained());
    }
}

#[test]
fn waiting_for_a_place_does_not_count() {
    let mut driver = Driver::new(Options::ordered().capacity(1).timeout(ms(10)));
    driver.record(1);
    driver.record(2);
    driver.tick(9);
    driver.ok(1, &[10]);
    driver.tick(18);
    assert_eq!(driver.out(), ["10@1"]);
    driver.tick(19);
    assert_eq!(driver.out(), [format!("FAIL 2: {BUDGET}")]);
}

#[test]
fn an_attempt_timeout_without_retry_is_the_outcome() {
    for order in BOTH {
        let mut driver = Driver::new(Options::with_order(order).timeout(ms(100)).attempt_timeout(ms(10)));
        driver.record(1);
        driver.tick(10);
        assert_eq!(driver.out(), ["FAIL 1: the attempt timed out"]);
        assert_eq!(driver.abandoned, 1);
        assert_eq!(driver.operator.next_wakeup(), None);
    }
}

#[test]
fn an_attempt_that_exceeds_its_time_is_retried_within_the_budget() {
    let options = Options::ordered().timeout(ms(32)).attempt_timeout(ms(10)).retry(fixed(5, 5));
    let mut driver = Driver::new(options);
    driver.record(1);
    driver.tick_through(20);
    assert_eq!((driver.calls(1), driver.abandoned), (2, 1));
    driver.ok_attempt(1, 1, &[99]);
    driver.tick_through(32);
    assert_eq!(driver.out(), [format!("FAIL 1: {BUDGET}")]);
    assert_eq!((driver.calls(1), driver.abandoned), (3, 3));
    let figures = driver.operator.figures(driver.now);
    assert_eq!((figures.attempt_timeouts, figures.timeouts, figures.ignored_completions), (2, 1, 1));
}

#[test]
fn a_deadline_tells_the_nearer_of_budget_and_attempt() {
    let options = Options::ordered().timeout(ms(25)).attempt_timeout(ms(10)).retry(fixed(9, 1));
    let mut operator = AsyncWaitOperator::<u32, u32, ()>::new(options.build().unwrap());
    operator.push(record(1, 1), Tick::ZERO).unwrap();
    let mut deadlines = Vec::new();
    for now in [0, 10, 11, 21, 22] {
        operator.advance(Tick::from_millis(now));
        while let Some(effect) = operator.next_effect() {
            if let Effect::Start { entry, .. } = effect {
                let context = operator.context(entry).unwrap();
                deadlines.push(context.deadline().map(Tick::as_millis));
            }
        }
    }
    assert_eq!(deadlines, [Some(10), Some(21), Some(25)]);
}

#[test]
fn time_that_runs_backwards_is_the_latest_time_seen() {
    let mut driver = timed(Order::Unordered, 10);
    driver.set(100);
    driver.record(1);
    driver.set(50);
    driver.record(2);
    driver.tick(109);
    assert!(driver.out().is_empty());
    driver.tick(110);
    assert_eq!(driver.out().len(), 2);
}
