//! Order, completion, failure and the end, without timers.

use super::driver::*;
use crate::*;

#[test]
fn b01_in_order_results_and_watermarks_leave_as_their_inputs_came() {
    let options = Options::ordered().capacity(2).timeout(ms(1000));
    let mut driver = Driver::new(options).calling(double);
    for element in [record(1, 1), record(2, 2), watermark(2), record(3, 3)] {
        driver.send(element);
    }
    driver.end();
    assert_eq!(driver.out(), ["2@1", "4@2", "W(2)", "6@3"]);
    assert!(driver.operator.is_drained());
}

#[test]
fn b02_without_order_nothing_passes_a_watermark() {
    let mut driver = Driver::new(Options::unordered().capacity(4).timeout(ms(1000)));
    for element in [record(1, 1), record(2, 2), watermark(2), record(3, 3)] {
        driver.send(element);
    }
    driver.ok(3, &[6]);
    driver.ok(2, &[4]);
    assert_eq!(driver.out(), ["4@2"]);
    driver.ok(1, &[2]);
    assert_eq!(driver.out(), ["2@1", "W(2)", "6@3"]);
}

#[test]
fn b03_b04_more_records_than_places_all_get_through() {
    for order in BOTH {
        let mut driver = Driver::new(Options::with_order(order).capacity(6)).calling(double);
        (1..=8).for_each(|value| driver.record(value));
        driver.end();
        let mut out = driver.out();
        if order == Order::Unordered {
            out.sort_by_key(|text| text.len() * 100 + usize::from(text.as_bytes()[0]));
        }
        assert_eq!(out, ["2@1", "4@2", "6@3", "8@4", "10@5", "12@6", "14@7", "16@8"]);
    }
}

#[test]
fn b05_in_order_late_completions_release_the_earlier_ones() {
    let mut driver = Driver::of(Order::Ordered);
    (1..=3).for_each(|value| driver.record(value));
    driver.ok(3, &[30]);
    driver.ok(2, &[20]);
    assert!(driver.out().is_empty());
    driver.ok(1, &[10]);
    assert_eq!(driver.out(), ["10@1", "20@2", "30@3"]);
}

#[test]
fn b06_without_order_each_result_leaves_at_once() {
    let mut driver = Driver::of(Order::Unordered);
    (1..=3).for_each(|value| driver.record(value));
    for value in [3, 1, 2] {
        driver.ok(value, &[value * 10]);
        assert_eq!(driver.out(), [format!("{}@{value}", value * 10)]);
    }
}

#[test]
fn b07_a_result_behind_a_watermark_waits_for_the_records_before_it() {
    let mut driver = Driver::of(Order::Unordered);
    driver.record(1);
    driver.send(watermark(1));
    driver.record(2);
    driver.ok(2, &[20]);
    assert!(driver.out().is_empty());
    driver.ok(1, &[10]);
    assert_eq!(driver.out(), ["10@1", "W(1)", "20@2"]);
}

#[test]
fn b08_a_watermark_on_an_empty_operator_may_leave_at_once() {
    for order in BOTH {
        let mut driver = Driver::of(order);
        driver.operator.push(watermark(7), driver.now).unwrap();
        assert!(driver.emit_one());
        assert_eq!(driver.out(), ["W(7)"]);
    }
}

#[test]
fn b11_in_order_a_completed_record_behind_the_head_keeps_its_place() {
    let mut driver = Driver::new(Options::ordered().capacity(2));
    driver.record(1);
    driver.record(2);
    driver.ok(2, &[20]);
    driver.record(3);
    assert_eq!(driver.calls(3), 0);
    driver.ok(1, &[10]);
    assert_eq!(driver.out(), ["10@1", "20@2"]);
    assert_eq!(driver.calls(3), 1);
}

#[test]
fn b12_without_order_a_completed_record_frees_its_place() {
    let mut driver = Driver::new(Options::unordered().capacity(2));
    driver.record(1);
    driver.record(2);
    driver.ok(2, &[20]);
    driver.record(3);
    assert_eq!(driver.out(), ["20@2"]);
    assert_eq!(driver.calls(3), 1);
}

#[test]
fn b13_with_one_place_calls_are_serial() {
    for order in BOTH {
        let mut driver = Driver::new(Options::with_order(order).capacity(1));
        driver.record(1);
        driver.record(2);
        assert_eq!((driver.calls(1), driver.calls(2)), (1, 0));
        driver.ok(1, &[10]);
        assert_eq!(driver.calls(2), 1);
        driver.ok(2, &[20]);
        assert_eq!(driver.out(), ["10@1", "20@2"]);
    }
}

#[test]
fn b14_a_call_that_is_ready_at_once_emits_nothing_by_itself() {
    for order in BOTH {
        let mut driver = Driver::of(order).calling(|value, _| Reply::Ready(Ok(vec![value])));
        driver.emits = false;
        driver.record(1);
        assert!(driver.out().is_empty());
        driver.emits = true;
        driver.run();
        assert_eq!(driver.out(), ["1@1"]);
    }
}

#[test]
fn b16_each_look_at_the_output_takes_one_element() {
    let mut driver = Driver::of(Order::Ordered);
    driver.emits = false;
    (1..=3).for_each(|value| driver.record(value));
    (1..=3).rev().for_each(|value| driver.ok(value, &[value * 10]));
    for value in 1..=3 {
        assert!(driver.emit_one());
        assert_eq!(driver.out(), [format!("{}@{value}", value * 10)]);
    }
    assert!(!driver.emit_one());
}

#[test]
fn b19_nothing_comes_between_the_results_of_one_record() {
    for order in BOTH {
        let mut driver = Driver::of(order);
        driver.send(record(1, 3));
        driver.send(watermark(9));
        driver.ok(1, &[7, 8]);
        assert_eq!(driver.out(), ["7@3", "8@3", "W(9)"]);
    }
}

#[test]
fn c01_c02_only_the_first_completion_counts() {
    for order in BOTH {
        let mut driver = Driver::of(order);
        driver.record(1);
        driver.posted(1, Ok(vec![7]));
        driver.posted(1, Ok(vec![8]));
        driver.run();
        driver.ok(1, &[9]);
        assert_eq!(driver.out(), ["7@1"]);
        driver.record(2);
        driver.posted(2, Err("E"));
        driver.posted(2, Ok(vec![7]));
        driver.run();
        assert_eq!(driver.out(), ["FAIL 2: E"]);
        assert_eq!(driver.operator.figures(driver.now).ignored_completions, 3);
    }
}

#[test]
fn a_completion_for_a_record_that_has_left_does_not_reach_its_successor_in_the_place() {
    for order in BOTH {
        let mut driver = Driver::new(Options::with_order(order).capacity(1));
        driver.record(1);
        driver.ok(1, &[10]);
        driver.record(2);
        driver.ok_attempt(1, 1, &[99]);
        assert_eq!(driver.out(), ["10@1"]);
        driver.ok(2, &[20]);
        assert_eq!(driver.out(), ["20@2"]);
    }
}

#[test]
fn c04_c11_h06_a_failed_record_holds_nobody_up() {
    for order in BOTH {
        let mut driver = Driver::new(Options::with_order(order).capacity(2).timeout(ms(1000)));
        driver.record(1);
        driver.record(2);
        driver.err(1, "E");
        driver.ok(2, &[20]);
        driver.end();
        assert_eq!(driver.out(), ["FAIL 1: E", "20@2"]);
        assert!(driver.operator.is_drained());
        assert_eq!(driver.operator.next_wakeup(), None);
    }
}

#[test]
fn c09_a_lost_handle_is_a_failure_not_a_hang() {
    for order in BOTH {
        let mut driver = Driver::of(order);
        driver.record(1);
        driver.lose(1);
        assert_eq!(driver.out(), ["FAIL 1: the handle was dropped without a result"]);
        driver.lose(1);
        assert_eq!(driver.operator.figures(driver.now).ignored_completions, 0, "nothing was completed");
    }
}

#[test]
fn g02_what_is_not_taken_stays_and_leaves_once() {
    let mut driver =
        Driver::new(Options::ordered().capacity(2)).calling(|value, _| Reply::Ready(Ok(vec![value])));
    driver.emits = false;
    driver.send(record(7, 0));
    assert!(driver.out().is_empty());
    driver.emits = true;
    driver.run();
    driver.run();
    assert_eq!(driver.out(), ["7@0"]);
}

#[test]
fn h01_the_operator_is_drained_when_the_last_element_has_left() {
    for order in BOTH {
        let mut driver = Driver::of(order);
        driver.record(1);
        driver.send(watermark(1));
        driver.end();
        assert!(!driver.operator.is_drained());
        driver.ok(1, &[2]);
        assert_eq!(driver.out(), ["2@1", "W(1)"]);
        assert!(driver.operator.is_drained());
    }
}

#[test]
fn h02_c14_close_gives_up_what_is_held_and_ignores_what_completes_later() {
    for order in [Order::Ordered, Order::Unordered, Order::Keyed] {
        let mut driver = Driver::with(
            Options::with_order(order).capacity(4).timeout(ms(10)),
            |value| Some(value % 2),
            on_error,
        );
        (1..=4).for_each(|value| driver.record(value));
        let started = driver.start_order.len();
        driver.operator.close();
        driver.run();
        assert_eq!(driver.abandoned, started);
        driver.ok(1, &[10]);
        driver.tick(100);
        assert!(driver.out().is_empty());
        assert!(driver.operator.is_drained());
        assert_eq!(driver.operator.next_wakeup(), None);
    }
}

#[test]
fn the_operator_can_be_given_to_another_thread() {
    fn send<T: Send>(_: &T) {}
    send(&AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build().unwrap()));
}
