//! Retries within the budget, and at the end of input.

use super::driver::*;
use crate::*;

const BUDGET: &str = "the async call timed out";
const LONG: u64 = 1_000_000;

fn retrying(order: Order, budget: u64, retry: Retry) -> Driver {
    Driver::new(Options::with_order(order).capacity(10).timeout(ms(budget)).retry(retry))
}

fn odd_is_empty(value: u32, _: u32) -> Reply {
    Reply::Posted(Ok(if value % 2 == 1 { vec![] } else { vec![2 * value] }))
}

#[test]
fn e01_e02_empty_answers_are_asked_again_where_the_predicate_says_so() {
    for order in BOTH {
        let options = Options::with_order(order).capacity(6).timeout(ms(1000)).retry(fixed(2, 10));
        let mut driver = Driver::with(options, |_| None, on_empty).calling(odd_is_empty);
        (1..=6).for_each(|value| driver.record(value));
        driver.tick_through(100);
        let mut out = driver.out();
        out.sort_by_key(String::len);
        assert_eq!(out, ["4@2", "8@4", "12@6"]);
        for value in 1..=6 {
            assert_eq!(driver.calls(value), if value % 2 == 1 { 3 } else { 1 });
        }
    }
}

#[test]
fn e03_a_client_that_completes_ten_times_is_asked_no_more_often() {
    for order in BOTH {
        let options = Options::with_order(order).timeout(ms(1000)).retry(fixed(2, 10));
        let mut driver = Driver::with(options, |_| None, on_empty);
        driver.record(1);
        for millis in [0, 10, 20] {
            driver.tick(millis);
            for _ in 0..10 {
                driver.posted(1, Ok(vec![]));
            }
            driver.run();
        }
        assert_eq!(driver.calls(1), 3);
        assert!(driver.operator.is_empty());
    }
}

#[test]
fn e04_slow_failures_end_with_the_budget() {
    for order in BOTH {
        let mut driver = retrying(order, 1000, fixed(5, 100));
        driver.record(1);
        driver.record(2);
        driver.tick_through(501);
        driver.err(1, "E");
        driver.err(2, "E");
        driver.tick_through(999);
        assert!(driver.out().is_empty());
        driver.tick_through(1000);
        assert_eq!(driver.out(), [format!("FAIL 1: {BUDGET}"), format!("FAIL 2: {BUDGET}")]);
        assert_eq!((driver.calls(1), driver.calls(2)), (2, 2));
    }
}

#[test]
fn e05_e29_a_timeout_is_never_retried() {
    for order in BOTH {
        let mut driver = retrying(order, 10, fixed(2, 10));
        driver.record(1);
        driver.record(2);
        driver.tick_through(1000);
        assert_eq!(driver.out(), [format!("FAIL 1: {BUDGET}"), format!("FAIL 2: {BUDGET}")]);
        assert_eq!((driver.calls(1), driver.calls(2)), (1, 1));
    }
}

#[test]
fn e06_the_budget_counts_from_the_first_attempt() {
    let mut driver = retrying(Order::Ordered, 25, fixed(9, 10));
    driver.record(1);
    driver.tick_through(1);
    driver.err(1, "E");
    driver.tick_through(10);
    assert_eq!(driver.calls(1), 1);
    driver.tick_through(12);
    assert_eq!(driver.calls(1), 2);
    driver.err(1, "E");
    driver.tick_through(22);
    assert_eq!(driver.calls(1), 3);
    driver.tick_through(24);
    assert!(driver.out().is_empty());
    driver.tick_through(25);
    assert_eq!(driver.out(), [format!("FAIL 1: {BUDGET}")]);
}

#[test]
fn e07_exhausted_retries_let_the_last_error_through() {
    for order in BOTH {
        let mut driver = retrying(order, LONG, fixed(2, 10));
        driver.record(1);
        for (millis, error) in [(0, "first"), (10, "second"), (20, "third")] {
            driver.tick(millis);
            driver.err(1, error);
        }
        assert_eq!(driver.out(), ["FAIL 1: third"]);
        assert_eq!(driver.calls(1), 3);
    }
}

#[test]
fn e11_e13_only_what_the_predicate_names_is_retried() {
    for predicate in [on_empty as fn(&_) -> _, |_: &_| Verdict::Final] {
        let options = Options::ordered().timeout(ms(10)).retry(fixed(3, 1));
        let mut driver = Driver::with(options, |_| None, predicate);
        driver.record(1);
        driver.err(1, "E");
        assert_eq!(driver.out(), ["FAIL 1: E"]);
        assert_eq!(driver.calls(1), 1);
    }
}

#[test]
fn e15_a_record_that_pauses_keeps_its_place() {
    let mut driver = Driver::new(Options::ordered().capacity(2).timeout(ms(LONG)).retry(fixed(1, 10)));
    driver.record(1);
    driver.record(2);
    driver.err(1, "E");
    driver.ok(2, &[20]);
    driver.record(3);
    assert!(driver.out().is_empty());
    assert_eq!(driver.calls(3), 0);
    driver.tick(10);
    driver.ok(1, &[10]);
    assert_eq!(driver.out(), ["10@1", "20@2"]);
    assert_eq!(driver.calls(3), 1);
}

#[test]
fn e18_a_budget_that_ends_in_a_pause_ends_the_record() {
    for order in BOTH {
        let mut driver = retrying(order, 15, fixed(5, 10));
        driver.record(1);
        driver.tick(8);
        driver.err(1, "E");
        assert_eq!(driver.operator.next_wakeup().map(runtime_core::Tick::as_millis), Some(15));
        driver.tick(15);
        assert_eq!(driver.out(), [format!("FAIL 1: {BUDGET}")]);
        driver.tick(18);
        assert_eq!((driver.calls(1), driver.abandoned), (1, 0));
        assert_eq!(driver.operator.next_wakeup(), None);
    }
}

#[test]
fn e21_at_the_end_of_input_a_pausing_record_is_called_once_more_at_once() {
    for order in BOTH {
        let mut driver = retrying(order, LONG, fixed(3, 1000));
        driver.record(1);
        driver.err(1, "E");
        driver.tick(1);
        driver.end();
        assert_eq!(driver.calls(1), 2);
        driver.ok(1, &[10]);
        assert_eq!(driver.out(), ["10@1"]);
        assert!(driver.operator.is_drained());
        assert_eq!(driver.operator.next_wakeup(), None);
    }
}

#[test]
fn e22_the_attempt_at_the_end_of_input_is_final_and_so_are_those_that_run() {
    for order in BOTH {
        let mut driver = retrying(order, LONG, fixed(3, 1000));
        driver.record(1);
        driver.record(2);
        driver.err(1, "E");
        driver.end();
        driver.err(1, "F");
        driver.err(2, "G");
        assert_eq!(driver.out(), ["FAIL 1: F", "FAIL 2: G"]);
        assert_eq!((driver.calls(1), driver.calls(2)), (2, 1));
        assert!(driver.operator.is_drained());
    }
}

#[test]
fn late_completions_of_an_earlier_attempt_are_ignored_in_pause_and_retry() {
    for order in BOTH {
        let mut driver = retrying(order, LONG, fixed(3, 10));
        driver.record(1);
        driver.err(1, "E");
        driver.ok_attempt(1, 1, &[98]);
        driver.tick(10);
        driver.ok_attempt(1, 1, &[99]);
        assert!(driver.out().is_empty());
        driver.ok(1, &[10]);
        assert_eq!(driver.out(), ["10@1"]);
        assert_eq!(driver.operator.figures(driver.now).ignored_completions, 2);
    }
}

#[test]
fn a_retryable_outcome_after_the_budget_leaves_the_decision_to_the_timeout() {
    for order in BOTH {
        let mut driver = retrying(order, 10, fixed(3, 1));
        driver.record(1);
        driver.set(12);
        driver.err(1, "E");
        assert!(driver.out().is_empty());
        driver.tick(12);
        assert_eq!(driver.out(), [format!("FAIL 1: {BUDGET}")]);
        assert_eq!(driver.calls(1), 1);
    }
}

#[test]
fn a_retry_after_hint_lengthens_the_pause_within_the_budget() {
    let hint = |_: &_| Verdict::RetryAfter(ms(50));
    let options = Options::ordered().timeout(ms(100)).retry(fixed(9, 10));
    let mut driver = Driver::with(options, |_| None, hint);
    driver.record(1);
    driver.err(1, "E");
    driver.tick_through(49);
    assert_eq!(driver.calls(1), 1);
    driver.tick_through(50);
    assert_eq!(driver.calls(1), 2);
    driver.err(1, "E");
    driver.tick_through(100);
    assert_eq!((driver.calls(1), driver.out()), (2, vec![format!("FAIL 1: {BUDGET}")]));
}

#[test]
fn a_call_that_fails_at_once_is_retried_within_the_budget() {
    let mut driver = retrying(Order::Ordered, 25, fixed(9, 10)).calling(|_, _| Reply::Ready(Err("E")));
    driver.record(1);
    driver.tick_through(100);
    assert_eq!(driver.out(), [format!("FAIL 1: {BUDGET}")]);
    assert_eq!(driver.calls(1), 3);
}

#[test]
fn retries_go_on_after_the_end_of_input_where_the_options_say_so() {
    for order in BOTH {
        let options = Options::with_order(order).timeout(ms(100)).retry(fixed(2, 10)).retry_after_end(true);
        let mut driver = Driver::new(options);
        driver.record(1);
        driver.err(1, "E");
        driver.end();
        assert_eq!(driver.calls(1), 1, "it pauses");
        driver.tick(10);
        driver.err(1, "E");
        driver.tick(20);
        driver.ok(1, &[10]);
        assert_eq!((driver.calls(1), driver.out()), (3, vec!["10@1".to_owned()]));
        assert!(driver.operator.is_drained());
    }
}
