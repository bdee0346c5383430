//! What the operator tells about itself.

use super::driver::*;
use crate::*;

#[test]
fn j03_figures_follow_records_through_the_operator() {
    for order in BOTH {
        let mut driver = Driver::of(order);
        driver.record(1);
        driver.tick(3);
        driver.record(2);
        driver.send(watermark(1));
        let figures = driver.operator.figures(runtime_core::Tick::from_millis(5));
        assert_eq!((figures.in_flight, figures.completed_waiting, figures.occupied), (2, 0, 3));
        assert_eq!(figures.oldest_in_flight, Some(ms(5)));
        driver.ok(2, &[20]);
        let figures = driver.operator.figures(driver.now);
        let held = usize::from(order == Order::Ordered);
        assert_eq!((figures.in_flight, figures.completed_waiting, figures.occupied), (1, held, 2 + held));
        assert_eq!((figures.records_in, figures.records_out), (2, 1 - held as u64));
        assert_eq!((figures.calls, figures.capacity), (2, 10));
        driver.ok(1, &[10]);
        let figures = driver.operator.figures(driver.now);
        assert_eq!((figures.records_out, figures.in_flight, figures.oldest_in_flight), (2, 0, None));
    }
}

#[test]
fn j05_time_in_which_the_operator_is_full_is_counted() {
    let mut driver = Driver::new(Options::ordered().capacity(1));
    driver.record(1);
    driver.tick(30);
    assert_eq!(driver.operator.figures(driver.now).blocked, ms(30));
    driver.tick(50);
    driver.ok(1, &[10]);
    driver.tick(100);
    assert_eq!(driver.operator.figures(driver.now).blocked, ms(50));
}

#[test]
fn failures_retries_and_attempts_are_told() {
    let options = Options::ordered().timeout(ms(100)).retry(fixed(1, 10));
    let mut driver = Driver::new(options);
    driver.emits = false;
    driver.set(2);
    driver.record(1);
    driver.err(1, "E");
    driver.tick(12);
    driver.err(1, "F");
    let figures = driver.operator.figures(driver.now);
    assert_eq!((figures.calls, figures.retries, figures.failures, figures.timeouts), (2, 1, 1, 0));
    let Some(Output::Record { outcome, attempts, .. }) = driver.operator.next_output() else {
        panic!("the record has its outcome");
    };
    assert_eq!(outcome, Outcome::Failed { reason: FailureReason::Error("F"), policy: FailurePolicy::Fail });
    let at = runtime_core::Tick::from_millis;
    assert_eq!(attempts, Attempts { count: 2, first_at: at(2), last_at: at(12) });
}

#[test]
fn the_wait_for_a_key_is_told_apart_from_the_time_that_calls_take() {
    let mut driver = Driver::with(Options::keyed().capacity(10), |value| Some(value % 2), on_error);
    (1..=3).for_each(|value| driver.record(value));
    driver.tick(40);
    driver.ok(1, &[1]);
    driver.tick(50);
    driver.ok(2, &[2]);
    driver.ok(3, &[3]);
    let report = driver.operator.report(driver.now);
    let told = |h: &runtime_core::metrics::HistogramSnapshot| (h.count(), h.max() / 1_000_000);
    assert_eq!(told(&report.queue_wait), (3, 40), "3 has waited for 1, 1 and 2 for nobody");
    assert_eq!(told(&report.latency), (3, 50));
    assert_eq!(report.latency.sum(), (40 + 50 + 10) * 1_000_000);
}
