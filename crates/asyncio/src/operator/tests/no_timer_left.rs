//! Flink: FLINK-5652. However a record ends, no timer of it is left when the operator is empty.

use super::driver::*;
use crate::*;

/// Brings the one record of the driver to its end.
type Way = (&'static str, fn(Driver) -> Driver);

fn timed(order: Order) -> Driver {
    let options = Options::with_order(order).timeout(ms(100)).attempt_timeout(ms(30)).retry(fixed(2, 10));
    Driver::new(options.on_failure(FailurePolicy::Keep))
}

const WAYS: [Way; 10] = [
    ("answered", |mut driver| {
        driver.ok(1, &[10]);
        driver
    }),
    ("answered by the second attempt", |mut driver| {
        driver.err(1, "E");
        driver.tick(10);
        driver.ok(1, &[10]);
        driver
    }),
    ("retries used up", |mut driver| {
        for at in [10, 20, 30] {
            driver.err(1, "E");
            driver.tick(at);
        }
        driver
    }),
    ("every attempt exceeds its time", |mut driver| {
        driver.tick_through(300);
        driver
    }),
    ("budget over in a call", |mut driver| {
        driver.tick(100);
        driver
    }),
    ("budget over in a pause", |mut driver| {
        driver.set(95);
        driver.err(1, "E");
        driver.tick(100);
        driver
    }),
    ("handle lost three times", |mut driver| {
        for at in [10, 20, 30] {
            driver.lose(1);
            driver.tick(at);
        }
        driver
    }),
    ("end of input in a call", |mut driver| {
        driver.end();
        driver.err(1, "E");
        driver
    }),
    ("end of input in a pause", |mut driver| {
        driver.err(1, "E");
        driver.end();
        driver.ok(1, &[10]);
        driver
    }),
    ("closed", |mut driver| {
        driver.operator.close();
        driver.run();
        driver
    }),
];

#[test]
fn d03_no_timer_is_left_however_a_record_ends() {
    for order in [Order::Ordered, Order::Unordered, Order::Keyed] {
        for (name, end) in WAYS {
            let mut driver = timed(order);
            driver.record(1);
            assert!(driver.operator.next_wakeup().is_some(), "{order:?}, {name}: it is timed");
            let mut driver = end(driver);
            assert!(driver.operator.is_empty(), "{order:?}, {name}: it has left");
            assert_eq!(driver.operator.next_wakeup(), None, "{order:?}, {name}");
            let timeouts = driver.operator.figures(driver.now).timeouts;
            driver.tick(10_000);
            let figures = driver.operator.figures(driver.now);
            assert_eq!(figures.timeouts, timeouts, "{order:?}, {name}: nothing fires later");
            let started = if name == "closed" { 0 } else { 1 };
            assert_eq!((figures.records_in, figures.records_out), (1, started), "{order:?}, {name}");
        }
    }
}

#[test]
fn d03_no_timer_is_left_when_a_handler_has_answered_or_a_silent_ones_call_has() {
    for answer in [Some(Ok(vec![9])), Some(Err("handler")), None] {
        let handler = answer.clone();
        let mut driver = timed(Order::Ordered).on_timeout(move |_| handler.clone());
        driver.record(1);
        driver.tick(100);
        assert_eq!(driver.operator.next_wakeup(), None, "the budget has ended once and for all");
        if answer.is_none() {
            driver.ok(1, &[10]);
        }
        assert!(driver.operator.is_empty());
        assert_eq!(driver.operator.next_wakeup(), None);
    }
}
