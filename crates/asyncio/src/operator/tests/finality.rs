//! What is final: errors that nothing retries, outcomes after the end, and snapshots after a failure.

use super::driver::*;
use crate::*;

const BUDGET: &str = "the async call timed out";
const LONG: u64 = 1_000_000;

fn retrying(order: Order, budget: u64, retry: Retry) -> Driver {
    Driver::new(Options::with_order(order).capacity(10).timeout(ms(budget)).retry(retry))
}

/// The function's own error on the spot; the thrown error of the original fails the task there and then. Here it is the
/// record's final error, which under the policy `Fail` leaves at once.
#[test]
fn c05_a_call_that_cannot_begin_is_final_at_once() {
    for order in BOTH {
        let mut driver = retrying(order, LONG, fixed(3, 10));
        driver.record(1);
        driver.record(2);
        driver.fail(2, CallError::NotBegun("E"));
        assert_eq!(driver.out(), ["FAIL 2: the call could not begin: E"]);
        assert_eq!(driver.calls(2), 1);
        let figures = driver.operator.figures(driver.now);
        assert_eq!((figures.failures, figures.retries), (1, 0), "told once");
        assert!(driver.operator.has_failed());
    }
}

#[test]
fn e28_a_second_attempt_that_cannot_begin_is_final() {
    for order in BOTH {
        let mut driver = retrying(order, LONG, fixed(3, 10));
        driver.record(1);
        driver.err(1, "E");
        driver.tick(10);
        driver.fail(1, CallError::NotBegun("second"));
        assert_eq!(driver.out(), ["FAIL 1: the call could not begin: second"]);
        assert_eq!(driver.calls(1), 2);
        assert_eq!(driver.operator.next_wakeup(), None);
    }
}

#[test]
fn a_call_that_panics_or_a_batch_that_does_not_fit_is_not_retried() {
    let final_errors = [
        (CallError::Panicked("boom".into()), "FAIL 1: the call panicked: boom"),
        (
            CallError::BatchMismatch { asked: 2, answered: 1 },
            "FAIL 1: a batch of 2 inputs was answered by 1 results",
        ),
        (CallError::Timeout, "FAIL 1: the async call timed out"),
    ];
    for (error, told) in final_errors {
        let mut driver = retrying(Order::Ordered, LONG, fixed(3, 10));
        driver.record(1);
        driver.fail(1, error);
        assert_eq!(driver.out(), [told]);
        assert_eq!(driver.calls(1), 1);
    }
}

#[test]
fn c09_a_lost_handle_may_be_retried_like_an_error() {
    for order in BOTH {
        let mut driver = retrying(order, LONG, fixed(1, 10));
        driver.record(1);
        driver.lose(1);
        driver.tick(10);
        driver.ok(1, &[10]);
        assert_eq!(driver.out(), ["10@1"]);
    }
}

#[test]
fn e20_a_predicate_that_panics_fails_the_record_at_once_with_its_text() {
    for order in BOTH {
        let options = Options::with_order(order).timeout(ms(LONG)).retry(fixed(3, 10));
        let mut driver = Driver::with(options, |_| None, |_| panic!("no opinion"));
        driver.record(1);
        driver.err(1, "E");
        assert_eq!(driver.out(), ["FAIL 1: the retry predicate panicked: no opinion"]);
        assert_eq!(driver.calls(1), 1);
        assert_eq!(driver.operator.next_wakeup(), None, "nothing waits for the timeout");
    }
}

#[test]
fn e29_a_call_that_never_ends_is_told_when_its_budget_does_and_close_returns() {
    for order in BOTH {
        let options = Options::with_order(order).timeout(ms(10)).retry(fixed(2, 10));
        let mut driver = Driver::with(options, |_| None, on_empty);
        driver.record(1);
        driver.tick(10);
        assert_eq!(driver.out(), [format!("FAIL 1: {BUDGET}")]);
        driver.operator.close();
        assert!(driver.operator.is_drained());
    }
}

#[test]
fn e05_a_handlers_error_is_no_reason_for_a_retry() {
    for order in BOTH {
        let mut driver = retrying(order, 10, fixed(5, 1)).on_timeout(|_| Some(Err("T")));
        driver.record(1);
        driver.record(2);
        driver.tick_through(1000);
        assert_eq!(driver.out(), ["FAIL 1: T", "FAIL 2: T"]);
        assert_eq!((driver.calls(1), driver.calls(2)), (1, 1));
    }
}

#[test]
fn e04_slow_failures_end_with_the_handlers_answer() {
    for order in BOTH {
        let mut driver = retrying(order, 1000, fixed(5, 100)).on_timeout(|value| Some(Ok(vec![100 + value])));
        driver.record(1);
        driver.record(2);
        driver.tick_through(501);
        driver.err(1, "E");
        driver.err(2, "E");
        driver.tick_through(601);
        assert_eq!((driver.calls(1), driver.calls(2)), (2, 2));
        driver.tick_through(1000);
        assert_eq!(driver.out(), ["101@1", "102@2"]);
        driver.err(1, "E");
        driver.tick_through(LONG);
        assert_eq!((driver.calls(1), driver.calls(2)), (2, 2));
    }
}

#[test]
fn e18_a_handlers_answer_ends_a_record_that_pauses() {
    for order in BOTH {
        let mut driver = retrying(order, 15, fixed(5, 10)).on_timeout(|_| Some(Ok(vec![0])));
        driver.record(1);
        driver.tick(8);
        driver.err(1, "E");
        driver.tick(15);
        assert_eq!(driver.out(), ["0@1"]);
        driver.tick(18);
        assert_eq!(driver.calls(1), 1);
        assert_eq!(driver.operator.next_wakeup(), None);
        assert!(driver.operator.is_empty());
    }
}

#[test]
fn e17_a_handlers_result_is_no_completion_of_a_retry_under_way_and_is_never_lost() {
    for order in BOTH {
        for attempts_before in [0_usize, 1, 2] {
            let mut driver = retrying(order, 25, fixed(5, 10)).on_timeout(|_| Some(Ok(vec![0])));
            driver.record(1);
            for attempt in 0..attempts_before {
                driver.tick_through(10 * attempt as u64);
                driver.err(1, "E");
            }
            driver.tick_through(25);
            assert_eq!(driver.out(), ["0@1"], "after {attempts_before} failures");
            assert!(driver.operator.is_empty());
        }
    }
}

#[test]
fn e17_after_the_budget_the_first_completion_counts_and_no_predicate_is_asked() {
    for order in BOTH {
        let options = Options::with_order(order).timeout(ms(10)).retry(fixed(5, 1));
        let mut driver = Driver::with(options, |_| None, on_empty).on_timeout(|_| None);
        driver.record(1);
        driver.tick(10);
        driver.ok(1, &[]);
        assert!(driver.operator.is_empty(), "an empty answer is accepted now");
        assert_eq!(driver.calls(1), 1);
    }
}

#[test]
fn e19_e24_at_the_end_only_who_pauses_is_asked_once_more() {
    for order in BOTH {
        let mut driver = retrying(order, 100, fixed(5, 10)).on_timeout(|_| None);
        driver.record(1);
        driver.err(1, "E");
        driver.tick(100);
        assert_eq!(driver.handled, [1]);
        let timed_out = driver.calls(1);
        driver.record(2);
        driver.err(2, "E");
        driver.tick(110);
        assert_eq!(driver.calls(2), 2, "its second attempt runs");
        driver.record(3);
        driver.err(3, "E");
        driver.end();
        let calls = [1, 2, 3].map(|value| driver.calls(value));
        assert_eq!(calls, [timed_out, 2, 2], "1 has timed out, 2 runs, 3 paused");
    }
}

#[test]
fn e10_pauses_of_one_record_do_not_lengthen_those_of_another() {
    let retry = Retry::ExponentialDelay {
        max_retries: 9,
        initial: ms(10),
        max: ms(1000),
        multiplier: 2.0,
        jitter: 0.0,
        seed: 0,
    };
    for order in BOTH {
        let mut driver = retrying(order, LONG, retry);
        driver.record(1);
        for millis in [0, 10, 30, 70] {
            driver.tick_through(millis);
            driver.err(1, "E");
        }
        assert_eq!(driver.calls(1), 4);
        driver.record(2);
        driver.err(2, "E");
        driver.tick_through(79);
        assert_eq!(driver.calls(2), 1);
        driver.tick_through(80);
        assert_eq!(driver.calls(2), 2, "10 ms as for every first pause");
    }
}

#[test]
fn e16_a_thousand_pauses_are_timers_of_the_operator_and_nothing_else() {
    let mut driver = Driver::new(Options::unordered().capacity(1000).timeout(ms(LONG)).retry(fixed(1, 50)));
    (0..1000).for_each(|value| driver.record(value));
    (0..1000).for_each(|value| driver.err(value, "E"));
    assert_eq!(driver.operator.next_wakeup().map(runtime_core::Tick::as_millis), Some(50));
    driver.tick(50);
    assert_eq!(driver.start_order.len(), 2000);
    assert_eq!(driver.start_order[1000..], (0..1000).collect::<Vec<_>>(), "in their order");
}

#[test]
fn c12_after_a_failure_no_snapshot_is_taken_that_would_lose_the_record() {
    for order in BOTH {
        let mut driver = Driver::new(Options::with_order(order).name("prices"));
        driver.record(1);
        driver.record(2);
        driver.err(1, "E");
        let refused = driver.operator.snapshot().unwrap_err();
        assert_eq!(refused, SnapshotRefused { operator: "prices".into() });
        assert!(refused.to_string().contains("`prices` takes no snapshot after a failed record"));
        driver.ok(2, &[20]);
        assert!(driver.operator.snapshot().is_err(), "not later either");
    }
    for policy in [FailurePolicy::Drop, FailurePolicy::Keep, FailurePolicy::DeadLetter] {
        let mut driver = Driver::new(Options::ordered().on_failure(policy));
        driver.record(1);
        driver.err(1, "E");
        assert!(driver.operator.snapshot().is_ok(), "a failure that is an output loses nothing");
    }
}

#[test]
fn c12_a_failure_that_has_not_left_yet_refuses_snapshots_already() {
    let mut driver = Driver::of(Order::Ordered);
    driver.emits = false;
    driver.record(1);
    driver.err(1, "E");
    assert!(driver.operator.snapshot().is_err());
}

#[test]
fn h03_completions_while_the_operator_is_given_up_are_ignored_with_and_without_retries() {
    for order in BOTH {
        for retry in [Retry::None, fixed(3, 10)] {
            let mut driver = retrying(order, LONG, retry);
            driver.emits = false;
            (1..=4).for_each(|value| driver.record(value));
            driver.ok(2, &[2]);
            driver.err(3, "E");
            driver.operator.close();
            driver.emits = true;
            driver.ok(1, &[1]);
            driver.err(4, "E");
            driver.tick_through(LONG);
            assert!(driver.out().is_empty());
            assert_eq!(driver.start_order.len(), 4);
            assert_eq!(driver.operator.next_wakeup(), None);
        }
    }
}

#[test]
fn d17_the_end_comes_when_the_handler_has_answered() {
    for order in BOTH {
        let mut driver =
            Driver::new(Options::with_order(order).timeout(ms(10))).on_timeout(|_| Some(Ok(vec![0])));
        driver.record(1);
        driver.end();
        driver.tick(9);
        assert!(!driver.operator.is_drained());
        driver.tick(10);
        assert_eq!(driver.out(), ["0@1"]);
        assert!(driver.operator.is_drained());
    }
}

#[test]
fn d11_a_timeout_below_a_millisecond_is_a_timeout() {
    let options = Options::ordered().timeout(std::time::Duration::from_micros(500));
    let mut driver = Driver::new(options);
    driver.record(1);
    driver.tick(1);
    assert_eq!(driver.out(), [format!("FAIL 1: {BUDGET}")]);
}

#[test]
fn j04_what_was_retried_recovered_and_given_up_is_counted() {
    for order in BOTH {
        let mut driver = retrying(order, LONG, fixed(1, 10));
        for value in [1, 2, 3] {
            driver.record(value);
            driver.err(value, "E");
        }
        driver.tick(10);
        driver.ok(1, &[1]);
        driver.err(2, "E");
        driver.ok(3, &[3]);
        driver.ok_attempt(3, 1, &[99]);
        let figures = driver.operator.figures(driver.now);
        assert_eq!((figures.calls, figures.retries, figures.failures), (6, 3, 1));
        assert_eq!((figures.records_in, figures.records_out, figures.ignored_completions), (3, 3, 1));
    }
}
