//! The keyed order.

use super::driver::*;
use crate::*;

const BUDGET: &str = "the async call timed out";

/// Even and odd inputs; from 100 on an input has no key.
fn parity(value: &u32) -> Option<u32> {
    (*value < 100).then_some(value % 2)
}

fn keyed(options: OptionsBuilder) -> Driver {
    Driver::with(options, parity, on_error)
}

#[test]
fn k01_calls_of_a_key_are_serial_and_watermarks_wait_for_all_records_before_them() {
    let mut driver = keyed(Options::keyed().capacity(10));
    driver.send(record(1, 2));
    driver.send(record(2, 1));
    driver.send(record(3, 4));
    assert_eq!(driver.start_order, [1, 2]);
    driver.ok(1, &[10]);
    assert_eq!(driver.out(), ["10@2"]);
    driver.send(watermark(2));
    assert_eq!(driver.start_order, [1, 2, 3]);
    driver.send(record(4, 5));
    driver.send(record(5, 6));
    driver.send(watermark(6));
    driver.ok(3, &[30]);
    assert_eq!(driver.out(), ["30@4"]);
    driver.ok(5, &[50]);
    assert!(driver.out().is_empty(), "a watermark is before it");
    driver.ok(2, &[20]);
    assert_eq!(driver.out(), ["20@1", "W(2)", "50@6"]);
    driver.ok(4, &[40]);
    assert_eq!(driver.out(), ["40@5", "W(6)"]);
    assert_eq!(driver.start_order, [1, 2, 3, 5, 4]);
}

#[test]
fn k02_a_record_is_not_called_before_its_predecessor_of_the_key_is_done() {
    let mut driver = keyed(Options::keyed().capacity(10));
    [1, 3, 2].into_iter().for_each(|value| driver.record(value));
    driver.ok(2, &[20]);
    assert_eq!(driver.out(), ["20@2"]);
    assert_eq!(driver.calls(3), 0);
    driver.ok(1, &[10]);
    assert_eq!(driver.calls(3), 1);
}

#[test]
fn several_calls_of_a_key_overlap_up_to_the_limit_and_still_leave_in_order() {
    let mut driver = keyed(Options::keyed().capacity(10).max_in_flight_per_key(2));
    [1, 3, 5, 7].into_iter().for_each(|value| driver.record(value));
    assert_eq!(driver.start_order, [1, 3]);
    driver.ok(3, &[30]);
    assert!(driver.out().is_empty());
    assert_eq!(driver.start_order, [1, 3, 5]);
    driver.ok(5, &[50]);
    driver.ok(1, &[10]);
    assert_eq!(driver.out(), ["10@1", "30@3", "50@5"]);
    driver.ok(7, &[70]);
    assert_eq!(driver.out(), ["70@7"]);
}

#[test]
fn records_without_key_have_no_order_and_no_limit() {
    let mut driver = keyed(Options::keyed().capacity(10));
    [101, 103, 105].into_iter().for_each(|value| driver.record(value));
    assert_eq!(driver.start_order, [101, 103, 105]);
    driver.ok(105, &[5]);
    driver.ok(101, &[1]);
    assert_eq!(driver.out(), ["5@105", "1@101"]);
}

#[test]
fn waiting_for_its_key_does_not_count_into_a_records_budget() {
    let mut driver = keyed(Options::keyed().capacity(10).timeout(ms(10)));
    driver.record(1);
    driver.record(3);
    driver.tick(10);
    assert_eq!(driver.out(), [format!("FAIL 1: {BUDGET}")]);
    driver.tick(19);
    assert!(driver.out().is_empty());
    driver.tick(20);
    assert_eq!(driver.out(), [format!("FAIL 3: {BUDGET}")]);
}

#[test]
fn a_pause_before_a_retry_holds_the_key() {
    let mut driver = keyed(Options::keyed().capacity(10).timeout(ms(1000)).retry(fixed(1, 10)));
    driver.record(1);
    driver.record(3);
    driver.err(1, "E");
    assert_eq!(driver.calls(3), 0);
    driver.tick(10);
    driver.ok(1, &[10]);
    driver.ok(3, &[30]);
    assert_eq!(driver.start_order, [1, 1, 3]);
    assert_eq!(driver.out(), ["10@1", "30@3"]);
}

#[test]
fn records_that_wait_for_their_key_are_called_after_the_end_of_input() {
    let mut driver = keyed(Options::keyed().capacity(10)).calling(|value, _| match value {
        1 => Reply::Later,
        _ => Reply::Ready(Ok(vec![value])),
    });
    [1, 3, 5].into_iter().for_each(|value| driver.record(value));
    driver.end();
    driver.ok(1, &[1]);
    assert_eq!(driver.out(), ["1@1", "3@3", "5@5"]);
    assert!(driver.operator.is_drained());
}
