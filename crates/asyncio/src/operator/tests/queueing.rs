//! Places and availability: what is taken in, what is held, what is free.

use super::driver::*;
use crate::*;
use runtime_core::{Record, StreamElement, Tick};

fn with_capacity(order: Order, capacity: usize) -> Driver {
    Driver::new(Options::with_order(order).capacity(capacity))
}

fn held(driver: &Driver) -> Vec<StreamElement<u32>> {
    let own = |element: StreamElement<&u32>| match element {
        StreamElement::Record(Record { value, timestamp }) => {
            StreamElement::Record(Record { value: *value, timestamp })
        }
        StreamElement::Watermark(watermark) => StreamElement::Watermark(watermark),
        StreamElement::Status(status) => StreamElement::Status(status),
        StreamElement::LatencyMarker(_) | StreamElement::Barrier(_) => panic!("takes no place"),
    };
    driver.operator.snapshot().unwrap().cloned().elements().map(own).collect()
}

#[test]
fn a01_every_element_takes_a_place_and_none_is_taken_beyond_the_capacity() {
    for order in BOTH {
        let mut driver = with_capacity(order, 2);
        driver.emits = false;
        driver.send(watermark(0));
        driver.send(record(42, 1));
        let refused = driver.operator.push(watermark(2), driver.now).unwrap_err();
        assert_eq!(refused, Refused { element: watermark(2), reason: RefusedReason::Full });
        assert_eq!(driver.operator.len(), 2);
        assert_eq!(held(&driver), [watermark(0), record(42, 1)]);
    }
}

#[test]
fn a02_a_watermark_leaves_before_the_record_behind_it() {
    for order in BOTH {
        let mut driver = with_capacity(order, 2);
        driver.send(watermark(0));
        driver.send(record(42, 1));
        assert_eq!(driver.out(), ["W(0)"]);
        assert_eq!(driver.operator.len(), 1);
        driver.ok(42, &[43]);
        assert_eq!(driver.out(), ["43@1"]);
        assert!(driver.operator.is_empty());
    }
}

#[test]
fn a03_a_place_is_free_when_its_record_has_left() {
    for order in BOTH {
        let mut driver = with_capacity(order, 1);
        driver.send(record(42, 0));
        assert!(!driver.operator.is_available());
        assert!(driver.operator.push(record(43, 1), driver.now).is_err());
        driver.ok(42, &[1764]);
        assert_eq!(driver.out(), ["1764@0"]);
        assert!(driver.operator.push(record(43, 1), driver.now).is_ok());
    }
}

#[test]
fn a04_watermarks_alone_leave_in_order() {
    for order in BOTH {
        let mut driver = with_capacity(order, 2);
        driver.emits = false;
        driver.send(watermark(2));
        driver.send(watermark(5));
        driver.emits = true;
        driver.run();
        assert_eq!(driver.out(), ["W(2)", "W(5)"]);
        assert!(!driver.emit_one());
        assert!(driver.operator.is_empty());
    }
}

#[test]
fn a05_in_order_a_pending_head_holds_all_others_and_their_places() {
    let mut driver = with_capacity(Order::Ordered, 4);
    for element in [record(1, 0), record(2, 1), watermark(2), record(3, 3)] {
        driver.send(element);
    }
    driver.ok(2, &[11]);
    driver.ok(3, &[13]);
    assert!(driver.out().is_empty());
    assert_eq!(driver.operator.len(), 4);
    driver.ok(1, &[10]);
    assert_eq!(driver.out(), ["10@0", "11@1", "W(2)", "13@3"]);
    assert!(driver.operator.is_empty());
}

#[test]
fn a07_g01_available_while_a_place_is_free() {
    for order in BOTH {
        let mut driver = with_capacity(order, 2);
        assert!(driver.operator.is_available());
        driver.send(record(1, 0));
        assert!(driver.operator.is_available());
        driver.send(record(2, 1));
        assert!(!driver.operator.is_available());
        driver.ok(1, &[10]);
        assert!(driver.operator.is_available());
        driver.ok(2, &[20]);
        assert_eq!(driver.out(), ["10@0", "20@1"]);
    }
}

#[test]
fn a10_an_emptied_segment_is_used_again() {
    let mut driver = with_capacity(Order::Unordered, 8);
    driver.record(1);
    driver.ok(1, &[10]);
    assert_eq!(driver.out(), ["10@1"]);
    driver.send(watermark(1));
    driver.record(2);
    driver.ok(2, &[20]);
    assert_eq!(driver.out(), ["W(1)", "20@2"]);
    assert!(driver.operator.is_empty());
}

#[test]
fn a12_a_record_leaves_with_all_its_results_and_takes_one_place() {
    for order in BOTH {
        let mut driver = with_capacity(order, 2);
        driver.emits = false;
        driver.send(record(1, 5));
        driver.ok(1, &[7, 8, 9]);
        assert_eq!(driver.operator.len(), 1);
        assert!(driver.emit_one());
        assert_eq!(driver.out(), ["7@5", "8@5", "9@5"]);
        assert!(driver.operator.is_empty());
    }
}

#[test]
fn a13_b18_a_record_without_results_frees_its_place() {
    for order in BOTH {
        let mut driver = with_capacity(order, 3);
        driver.record(1);
        driver.send(watermark(1));
        driver.ok(1, &[]);
        assert_eq!(driver.out(), ["W(1)"]);
        assert!(driver.operator.is_empty());
    }
}

#[test]
fn a14_results_of_a_record_without_timestamp_have_none() {
    for order in BOTH {
        let mut driver = with_capacity(order, 2);
        driver.send(StreamElement::Record(Record::new(1)));
        driver.ok(1, &[7]);
        assert_eq!(driver.out(), ["7"]);
    }
}

#[test]
fn a16_i05_what_is_held_is_inputs_in_the_order_of_admission_even_when_completed() {
    for order in BOTH {
        let mut driver = with_capacity(order, 5);
        driver.emits = false;
        for element in [record(1, 1), record(2, 2), watermark(3), record(4, 4)] {
            driver.send(element);
        }
        driver.ok(2, &[99]);
        assert_eq!(held(&driver), [record(1, 1), record(2, 2), watermark(3), record(4, 4)]);
    }
}

#[test]
fn i06_what_has_left_is_not_held() {
    let mut driver = with_capacity(Order::Unordered, 5);
    driver.record(1);
    driver.record(2);
    driver.ok(2, &[20]);
    assert_eq!(held(&driver), [record(1, 1)]);
}

#[test]
fn f01_latency_markers_and_barriers_overtake_even_a_full_operator() {
    for order in BOTH {
        let mut driver = with_capacity(order, 1);
        driver.record(1);
        driver.send(MARKER);
        assert_eq!(driver.out(), ["L"]);
        let job = runtime_core::JobId::from_u128(1);
        let barrier = runtime_core::Barrier { job, checkpoint: 3, begun_at: runtime_core::EpochMillis(0) };
        driver.send(StreamElement::Barrier(barrier));
        assert_eq!(driver.out(), ["B(3)"]);
        assert_eq!(held(&driver), [record(1, 1)]);
    }
}

#[test]
fn f02_a_status_waits_for_the_records_before_it() {
    for order in BOTH {
        let mut driver = with_capacity(order, 10);
        driver.record(1);
        driver.send(IDLE);
        assert!(driver.out().is_empty());
        driver.ok(1, &[10]);
        assert_eq!(driver.out(), ["10@1", "IDLE"]);
    }
}

#[test]
fn f05_records_flow_while_the_stream_is_idle() {
    for order in BOTH {
        let mut driver = with_capacity(order, 10);
        driver.send(IDLE);
        assert_eq!(driver.out(), ["IDLE"]);
        driver.record(1);
        driver.ok(1, &[10]);
        assert_eq!(driver.out(), ["10@1"]);
    }
}

#[test]
fn f07_a_status_waits_for_a_place() {
    for order in BOTH {
        let mut driver = with_capacity(order, 1);
        driver.record(1);
        let refused = driver.operator.push(IDLE, driver.now).unwrap_err();
        assert_eq!(refused.reason, RefusedReason::Full);
        driver.send(IDLE);
        driver.ok(1, &[10]);
        assert_eq!(driver.out(), ["10@1", "IDLE"]);
    }
}

#[test]
fn after_the_end_of_input_nothing_is_taken_in() {
    let mut driver = with_capacity(Order::Ordered, 2);
    driver.end();
    assert!(!driver.operator.is_available());
    let refused = driver.operator.push(MARKER, Tick::ZERO).unwrap_err();
    assert_eq!(refused.reason, RefusedReason::Ended);
    assert_eq!(refused.to_string(), "the element was not taken in: the input has ended");
    assert!(driver.operator.is_drained());
}
