//! A full operator, a downstream that is not ready, and what must get through all the same.

use super::driver::*;
use crate::*;
use runtime_core::{Barrier, EpochMillis, JobId, StreamElement, WatermarkStatus};

fn barrier(checkpoint: u64) -> StreamElement<u32> {
    StreamElement::Barrier(Barrier { job: JobId::from_u128(1), checkpoint, begun_at: EpochMillis(0) })
}

const ACTIVE: StreamElement<u32> = StreamElement::Status(WatermarkStatus::Active);

#[test]
fn g04_a_barrier_gets_through_a_full_operator_before_any_place_is_free() {
    for order in BOTH {
        let mut driver = Driver::new(Options::with_order(order).capacity(2));
        driver.record(1);
        driver.record(2);
        assert!(!driver.operator.is_available());
        let snapshot = driver.snap();
        driver.send(barrier(7));
        assert_eq!(driver.out(), ["B(7)"]);
        assert_eq!(stored(&snapshot), ["R(1@1)", "R(2@2)"]);
        assert!(!driver.operator.is_available(), "still full");
    }
}

#[test]
fn g04_records_before_a_barrier_that_found_no_place_are_parked_and_come_first_afterwards() {
    for order in BOTH {
        let mut driver = Driver::new(Options::with_order(order).capacity(1));
        driver.record(1);
        driver.park(record(2, 2));
        driver.park(watermark(2));
        driver.send(barrier(7));
        assert_eq!(driver.out(), ["B(7)"]);
        assert_eq!((driver.operator.len(), driver.operator.parked()), (1, 2));
        driver.record(3);
        assert_eq!(driver.start_order, [1], "what is parked has not started");
        driver.ok(1, &[10]);
        driver.ok(2, &[20]);
        driver.ok(3, &[30]);
        assert_eq!(driver.out(), ["10@1", "20@2", "W(2)", "30@3"]);
        assert_eq!(driver.start_order, [1, 2, 3]);
    }
}

#[test]
fn g03_while_nothing_is_taken_a_watermark_waits_like_a_record() {
    let mut driver = Driver::new(Options::ordered().capacity(2));
    driver.emits = false;
    driver.send(watermark(1));
    driver.record(2);
    assert!(driver.operator.push(record(3, 3), driver.now).is_err(), "the watermark holds a place");
    driver.emits = true;
    driver.run();
    assert_eq!(driver.out(), ["W(1)"]);
    assert!(driver.operator.is_available());
}

#[test]
fn g10_while_downstream_takes_nothing_completions_are_counted_once_and_the_rest_goes_on() {
    for order in BOTH {
        let mut driver = Driver::new(Options::with_order(order).capacity(3).timeout(ms(10)));
        driver.emits = false;
        (1..=3).for_each(|value| driver.record(value));
        driver.ok(1, &[10]);
        driver.ok(2, &[20]);
        driver.tick(10);
        driver.send(barrier(1));
        assert!(driver.out().is_empty());
        assert!(!driver.operator.is_available(), "results that nobody takes hold their places");
        driver.emits = true;
        driver.run();
        let mut out = driver.out();
        out.sort_unstable();
        assert_eq!(out, ["10@1", "20@2", "B(1)", "FAIL 3: the async call timed out"]);
        assert!(driver.operator.is_empty());
    }
}

#[test]
fn a08_a_place_that_comes_free_makes_the_operator_available_again() {
    for order in BOTH {
        let mut driver = Driver::new(Options::with_order(order).capacity(2));
        driver.emits = false;
        driver.record(1);
        driver.send(watermark(1));
        driver.ok(1, &[10]);
        assert!(!driver.operator.is_available(), "a completed record still has its place");
        assert!(driver.emit_one());
        assert!(driver.operator.is_available());
        assert!(driver.emit_one());
        assert_eq!(driver.out(), ["10@1", "W(1)"]);
    }
}

#[test]
fn f03_statuses_and_watermarks_keep_their_order_among_each_other_and_around_records() {
    for order in BOTH {
        let mut driver = Driver::of(order);
        driver.record(1);
        driver.send(watermark(1));
        driver.send(IDLE);
        driver.record(2);
        driver.send(ACTIVE);
        driver.send(watermark(5));
        driver.ok(2, &[20]);
        assert!(driver.out().is_empty());
        driver.ok(1, &[10]);
        assert_eq!(driver.out(), ["10@1", "W(1)", "IDLE", "20@2", "ACTIVE", "W(5)"]);
    }
}

#[test]
fn f06_before_the_last_watermark_its_active_leaves_when_both_waited() {
    for order in BOTH {
        let mut driver = Driver::of(order);
        driver.send(IDLE);
        driver.record(1);
        driver.send(ACTIVE);
        driver.send(StreamElement::Watermark(runtime_core::Watermark::MAX));
        driver.end();
        assert_eq!(driver.out(), ["IDLE"]);
        driver.ok(1, &[10]);
        assert_eq!(driver.out(), ["10@1".into(), "ACTIVE".into(), format!("W({})", i64::MAX)]);
        assert!(driver.operator.is_drained());
    }
}

#[test]
fn b09_no_watermark_passes_a_record_that_is_held_in_any_state() {
    for order in [Order::Ordered, Order::Unordered, Order::Keyed] {
        let options = Options::with_order(order).capacity(10).timeout(ms(1000)).retry(fixed(3, 10));
        let mut driver = Driver::with(options, |_| Some(0), on_error);
        driver.record(1);
        driver.record(2);
        driver.send(watermark(2));
        driver.err(1, "E");
        assert_eq!(driver.out(), Vec::<String>::new(), "one pauses, the other runs or waits for its key");
        driver.tick(10);
        driver.ok(1, &[10]);
        assert_eq!(driver.out(), ["10@1"]);
        driver.ok(2, &[20]);
        assert_eq!(driver.out(), ["20@2", "W(2)"]);
    }
}

/// The operator calls nobody downstream: who takes an output answers for it. So an error of whoever took it meets an
/// operator that has let go of the record and gives it to nobody a second time.
#[test]
fn c10_h08_an_output_whose_taker_fails_is_not_given_out_again_and_the_end_comes() {
    for order in BOTH {
        let mut driver = Driver::of(order);
        driver.emits = false;
        driver.record(1);
        driver.record(2);
        driver.ok(1, &[10]);
        let taken: Result<(), &str> = driver.operator.next_output().map_or(Ok(()), |_| Err("downstream"));
        assert_eq!(taken, Err("downstream"));
        assert!(driver.operator.next_output().is_none());
        assert_eq!(stored(&driver.snap()), ["R(2@2)"]);
        driver.end();
        driver.ok(2, &[20]);
        driver.emits = true;
        driver.run();
        assert_eq!(driver.out(), ["20@2"]);
        assert!(driver.operator.is_drained());

        let mut closed = Driver::of(order);
        closed.record(1);
        closed.operator.close();
        assert!(closed.operator.is_drained(), "and so it does without an end of input");
    }
}
