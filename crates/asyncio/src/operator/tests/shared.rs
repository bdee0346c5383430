//! Shared calls in the core, and what a failure does to the key of its record.

use super::driver::*;
use crate::*;

/// Equal in their tens.
fn sharing(mut driver: Driver) -> Driver {
    driver.operator = driver.operator.coalescing_by(|value: &u32| Some(value / 10));
    driver
}

#[test]
fn d07_a_follower_whose_handler_does_nothing_is_left_to_the_call_it_follows() {
    for order in BOTH {
        let options = Options::with_order(order).capacity(10).timeout(ms(10));
        let mut driver = sharing(Driver::new(options)).on_timeout(|_| None);
        driver.record(11);
        driver.tick(5);
        driver.record(12);
        assert_eq!(driver.start_order, [11]);
        driver.tick(10);
        assert_eq!(driver.handled, [11]);
        assert_eq!(driver.start_order, [11, 12], "the follower asks for itself");
        driver.ok(12, &[120]);
        driver.ok(11, &[110]);
        let mut out = driver.out();
        out.sort_unstable();
        assert_eq!(out, ["110@11", "120@12"]);
    }
}

#[test]
fn d07_while_no_handler_answers_each_follower_leads_on_in_its_turn() {
    for order in BOTH {
        let options = Options::with_order(order).capacity(10).timeout(ms(10));
        let mut driver = sharing(Driver::new(options)).on_timeout(|_| None);
        driver.record(11);
        driver.tick(4);
        driver.record(12);
        driver.tick(8);
        driver.record(13);
        driver.tick(10);
        assert_eq!(driver.start_order, [11, 12], "12 leads, 13 follows it");
        driver.tick(14);
        assert_eq!(driver.start_order, [11, 12, 13]);
        driver.tick(18);
        assert_eq!(driver.handled, [11, 12, 13]);
        for value in [11, 12, 13] {
            driver.ok(value, &[value]);
        }
        assert_eq!(driver.out(), ["11@11", "12@12", "13@13"]);
        assert!(driver.operator.is_empty());
    }
}

#[test]
fn in_keyed_order_a_failure_under_fail_leaves_at_once_and_its_key_goes_on() {
    let mut driver = Driver::with(Options::keyed().capacity(10), |value| Some(value % 2), on_error);
    (1..=5).for_each(|value| driver.record(value));
    assert_eq!(driver.start_order, [1, 2]);
    driver.err(1, "E");
    assert_eq!(driver.out(), ["FAIL 1: E"]);
    assert_eq!(driver.start_order, [1, 2, 3]);
    driver.ok(3, &[30]);
    driver.ok(2, &[20]);
    driver.ok(4, &[40]);
    driver.ok(5, &[50]);
    assert_eq!(driver.out(), ["30@3", "20@2", "40@4", "50@5"]);
    driver.end();
    assert!(driver.operator.is_drained());
}

#[test]
fn in_keyed_order_with_several_calls_a_failure_behind_the_head_leaves_before_it() {
    let options = Options::keyed().capacity(10).max_in_flight_per_key(3);
    let mut driver = Driver::with(options, |_| Some(0), on_error);
    (1..=4).for_each(|value| driver.record(value));
    driver.err(2, "E");
    assert_eq!(driver.out(), ["FAIL 2: E"]);
    driver.ok(3, &[30]);
    driver.ok(1, &[10]);
    assert_eq!(driver.out(), ["10@1", "30@3"]);
    driver.ok(4, &[40]);
    assert_eq!(driver.out(), ["40@4"]);
    assert!(driver.operator.is_empty());
}

#[test]
fn followers_hold_places_and_order_of_their_own_and_are_in_the_snapshot() {
    let mut driver = sharing(Driver::new(Options::ordered().capacity(4)));
    for value in [11, 21, 12] {
        driver.record(value);
    }
    driver.send(watermark(5));
    assert!(!driver.operator.is_available());
    assert_eq!(driver.start_order, [11, 21]);
    let snapshot = driver.snap();
    assert_eq!(stored(&snapshot), ["R(11@11)", "R(21@21)", "R(12@12)", "W(5)"]);
    assert_eq!(snapshot.attempts().collect::<Vec<_>>(), [1, 1, 0]);
    driver.ok(11, &[1]);
    assert_eq!(driver.out(), ["1@11"], "21 is before the follower");
    driver.ok(21, &[2]);
    assert_eq!(driver.out(), ["2@21", "1@12", "W(5)"]);
    let mut restored = sharing(Driver::new(Options::ordered().capacity(4)));
    restored.restore(snapshot);
    assert_eq!(restored.start_order, [11, 21], "it follows again");
}

#[test]
fn a_pausing_leader_keeps_its_followers_and_the_end_of_input_serves_them_all() {
    let options = Options::ordered().capacity(10).timeout(ms(1000)).retry(fixed(3, 100));
    let mut driver = sharing(Driver::new(options));
    driver.record(11);
    driver.err(11, "E");
    driver.record(12);
    driver.record(13);
    assert_eq!(driver.start_order, [11]);
    driver.end();
    assert_eq!(driver.start_order, [11, 11]);
    driver.ok(11, &[1]);
    assert_eq!(driver.out(), ["1@11", "1@12", "1@13"]);
    assert!(driver.operator.is_drained());
    assert_eq!(driver.operator.next_wakeup(), None);
}

#[test]
fn closing_forgets_leaders_and_followers() {
    let mut driver = sharing(Driver::new(Options::unordered().capacity(10).timeout(ms(10))));
    for value in [11, 12, 21] {
        driver.record(value);
    }
    driver.operator.close();
    driver.run();
    assert_eq!(driver.abandoned, 2, "the follower has no call");
    driver.ok(11, &[1]);
    assert!(driver.out().is_empty());
    assert!(driver.operator.is_drained());
}

#[test]
fn equal_records_whose_budgets_end_together_are_not_asked_about_when_they_do() {
    for order in BOTH {
        for asks in [false, true] {
            let options =
                Options::with_order(order).capacity(10).timeout(ms(10)).on_failure(FailurePolicy::Keep);
            let mut driver = sharing(Driver::new(options));
            if asks {
                driver = driver.on_timeout(|value| Some(Ok(vec![100 + value])));
            }
            for value in [11, 12, 13] {
                driver.record(value);
            }
            driver.tick(4);
            driver.record(14);
            driver.tick(10);
            assert_eq!(driver.start_order, [11, 14], "only who still has time leads on");
            assert_eq!(driver.abandoned, 1, "and only the call that was made is given up");
            assert_eq!(driver.operator.figures(driver.now).calls, 2);
            assert_eq!(driver.out().len(), 3);
            driver.ok(14, &[7]);
            assert_eq!(driver.out(), ["7@14"]);
            assert!(driver.operator.is_empty());
        }
    }
}
