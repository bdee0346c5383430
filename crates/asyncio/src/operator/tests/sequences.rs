//! Orders of completion in the unordered and the keyed queue, and races for one record.

use super::driver::*;
use crate::*;

#[test]
fn a06_without_order_completions_leave_in_their_order_within_their_segment() {
    let mut driver = Driver::new(Options::unordered().capacity(8));
    for element in [record(1, 0), record(2, 1), watermark(2), record(3, 3), record(4, 4), watermark(5)] {
        driver.send(element);
    }
    driver.send(record(5, 6));
    driver.ok(3, &[30]);
    driver.ok(2, &[20]);
    assert_eq!(driver.out(), ["20@1"]);
    driver.ok(5, &[50]);
    assert!(driver.out().is_empty());
    driver.ok(1, &[10]);
    assert_eq!(driver.out(), ["10@0", "W(2)", "30@3"]);
    driver.ok(4, &[40]);
    assert_eq!(driver.out(), ["40@4", "W(5)", "50@6"]);
    assert!(driver.operator.is_empty());
}

#[test]
fn a11_completions_of_later_segments_are_remembered_in_their_order() {
    let mut driver = Driver::new(Options::unordered().capacity(10));
    driver.record(1);
    driver.send(watermark(1));
    driver.send(watermark(2));
    (3..=5).for_each(|value| driver.record(value));
    for value in [5, 3, 4] {
        driver.ok(value, &[value]);
    }
    assert!(driver.out().is_empty());
    driver.ok(1, &[1]);
    assert_eq!(driver.out(), ["1@1", "W(1)", "W(2)", "5@5", "3@3", "4@4"]);
}

#[test]
fn b18_a_record_without_results_leaves_nothing_and_its_place_is_free() {
    for order in BOTH {
        let mut driver = Driver::new(Options::with_order(order).capacity(1));
        driver.record(1);
        assert!(!driver.operator.is_available());
        driver.ok(1, &[]);
        assert!(driver.out().is_empty());
        assert!(driver.operator.is_available());
        assert_eq!(driver.operator.figures(driver.now).records_out, 1);
    }
}

#[test]
fn b02_with_two_places_nothing_passes_the_watermark_either() {
    let mut driver = Driver::new(Options::unordered().capacity(2).timeout(ms(1000))).calling(double);
    for element in [record(1, 1), record(2, 2), watermark(2), record(3, 3)] {
        driver.send(element);
    }
    driver.end();
    let mut out = driver.out();
    assert_eq!(out[2..], ["W(2)", "6@3"]);
    out[..2].sort_unstable();
    assert_eq!(out[..2], ["2@1", "4@2"]);
}

#[test]
fn c02_an_error_that_came_first_is_told_once_and_the_answer_after_it_never() {
    for order in BOTH {
        let mut driver = Driver::of(order);
        driver.record(1);
        driver.err(1, "E");
        driver.ok(1, &[10]);
        driver.end();
        assert_eq!(driver.out(), ["FAIL 1: E"]);
    }
}

#[test]
fn c06_a_retry_repeats_the_whole_call_with_the_same_input_in_the_same_place() {
    for order in BOTH {
        let options = Options::with_order(order).timeout(ms(1000)).retry(fixed(3, 10));
        let mut driver = Driver::new(options);
        driver.send(record(7, 70));
        for millis in [10, 20, 30] {
            driver.err(7, "E");
            driver.tick(millis);
        }
        driver.ok(7, &[14]);
        assert_eq!(driver.start_order, [7, 7, 7, 7]);
        assert_eq!(driver.out(), ["14@70"]);
        let keys = driver.contexts.iter().map(CallContext::idempotency_key);
        assert_eq!(keys.collect::<std::collections::BTreeSet<_>>().len(), 1);
        let attempts: Vec<u32> = driver.contexts.iter().map(CallContext::attempt).collect();
        assert_eq!(attempts, [1, 2, 3, 4]);
    }
}

#[test]
fn c11_in_order_a_failed_head_is_told_at_once_and_the_next_one_goes() {
    let mut driver = Driver::new(Options::ordered().capacity(2));
    driver.record(1);
    driver.record(2);
    driver.err(1, "E");
    assert_eq!(driver.out(), ["FAIL 1: E"]);
    driver.ok(2, &[20]);
    assert_eq!(driver.out(), ["20@2"]);
    driver.record(3);
    assert_eq!(driver.calls(3), 1, "the places of both are free");
}

#[test]
fn d12_a_timeout_behind_a_pending_head_is_told_at_once_under_the_policy_fail() {
    let mut driver = Driver::new(Options::ordered().capacity(3).timeout(ms(10)));
    driver.set(0);
    driver.record(1);
    driver.ok(1, &[10]);
    driver.record(2);
    driver.tick(5);
    driver.record(3);
    driver.tick(10);
    assert_eq!(driver.out(), ["10@1", "FAIL 2: the async call timed out"]);
    driver.operator.close();
    assert!(driver.operator.is_drained());
}

#[test]
fn k03_keys_fail_time_out_and_retry_each_on_its_own() {
    let options =
        Options::keyed().capacity(10).timeout(ms(100)).retry(fixed(1, 10)).on_failure(FailurePolicy::Keep);
    let mut driver = Driver::with(options, |value| Some(value % 3), on_error);
    (0..6).for_each(|value| driver.record(value));
    assert_eq!(driver.start_order, [0, 1, 2]);
    driver.err(0, "E");
    driver.ok(1, &[1]);
    assert_eq!(driver.out(), ["1@1"]);
    assert_eq!(driver.start_order, [0, 1, 2, 4], "only the key that is done goes on");
    driver.tick(10);
    driver.err(0, "F");
    assert_eq!(driver.out(), ["FAIL 0: F"]);
    assert_eq!(driver.start_order, [0, 1, 2, 4, 0, 3]);
    driver.tick(100);
    driver.ok(5, &[5]);
    assert_eq!(driver.out(), ["FAIL 2: the async call timed out", "FAIL 4: the async call timed out", "5@5"]);
    driver.ok(3, &[3]);
    assert_eq!(driver.out(), ["3@3"]);
    assert!(driver.operator.is_empty());
}

#[test]
fn k01_the_upstream_scenario_has_eight_outputs_and_never_more_than_two_calls() {
    let mut driver = Driver::with(Options::keyed().capacity(2), |value| Some(value % 2), on_error);
    let script = [record(1, 2), record(2, 1), watermark(2), record(3, 4), record(4, 3), watermark(4)];
    script.into_iter().for_each(|element| driver.send(element));
    driver.send(record(5, 5));
    driver.send(watermark(5));
    let mut out = Vec::new();
    for value in [1, 2, 3, 4, 5] {
        assert!(driver.operator.in_flight() <= 2);
        driver.ok(value, &[value]);
        out.extend(driver.out());
    }
    assert_eq!(out, ["1@2", "2@1", "W(2)", "3@4", "4@3", "W(4)", "5@5", "W(5)"]);
    let odd: Vec<u32> = driver.start_order.iter().copied().filter(|value| value % 2 == 1).collect();
    assert_eq!(odd, [1, 3, 5]);
}
