//! Snapshot and restore: what comes back, in which order, and with which past.

use super::driver::*;
use crate::*;
use runtime_core::{EpochMillis, Record, StreamElement, Tick};

fn with_capacity(order: Order, capacity: usize) -> Driver {
    Driver::new(Options::with_order(order).capacity(capacity))
}

/// A snapshot of these records, all pending.
fn pending(order: Order, values: std::ops::RangeInclusive<u32>) -> Snapshot<u32> {
    let mut driver = with_capacity(order, values.clone().count());
    values.clone().for_each(|value| driver.record(value));
    assert_eq!(driver.start_order.len(), values.count(), "all of them run");
    driver.snap()
}

fn ready(value: u32, _: u32) -> Reply {
    Reply::Ready(Ok(vec![value]))
}

#[test]
fn i01_what_was_pending_is_asked_again_before_new_input_and_in_its_order() {
    let snapshot = pending(Order::Ordered, 1..=4);
    let mut driver = with_capacity(Order::Ordered, 6).calling(double);
    driver.emits = false;
    driver.restore(snapshot);
    (5..=7).for_each(|value| driver.record(value));
    let midway = driver.snap();
    assert_eq!(stored(&midway), ["R(1@1)", "R(2@2)", "R(3@3)", "R(4@4)", "R(5@5)", "R(6@6)"]);
    driver.emits = true;
    driver.record(8);
    driver.end();
    assert_eq!(driver.out(), ["2@1", "4@2", "6@3", "8@4", "10@5", "12@6", "14@7", "16@8"]);
    assert_eq!(driver.start_order, [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn i02_i03_a_full_operator_is_restored_and_drains() {
    for order in BOTH {
        let snapshot = pending(order, 0..=9);
        assert_eq!(snapshot.len(), 10);
        let mut driver = with_capacity(order, 10).calling(ready);
        driver.restore(snapshot);
        driver.end();
        assert_eq!(driver.out(), (0..10).map(|n| format!("{n}@{n}")).collect::<Vec<_>>());
        assert!(driver.operator.is_drained());
    }
}

#[test]
fn i04_more_elements_than_places_are_restored_without_a_deadlock() {
    for order in BOTH {
        for capacity in [1, 2, 3] {
            let snapshot = pending(order, 1..=4);
            let mut driver = with_capacity(order, capacity);
            driver.restore(snapshot);
            assert_eq!(driver.start_order.len(), capacity);
            assert_eq!(driver.operator.parked(), 4 - capacity);
            driver.record(5);
            for value in 1..=5 {
                driver.ok(value, &[value]);
            }
            driver.end();
            assert_eq!(driver.out(), ["1@1", "2@2", "3@3", "4@4", "5@5"]);
            assert_eq!(driver.start_order, [1, 2, 3, 4, 5], "new input comes after what was stored");
        }
    }
}

#[test]
fn i05_a_record_that_was_done_and_had_not_left_is_asked_again_after_a_restore() {
    let mut stopped = with_capacity(Order::Ordered, 10);
    (1..=3).for_each(|value| stopped.record(value));
    stopped.ok(2, &[20]);
    let snapshot = stopped.snap();
    assert_eq!(stored(&snapshot), ["R(1@1)", "R(2@2)", "R(3@3)"]);
    let mut driver = with_capacity(Order::Ordered, 10);
    driver.restore(snapshot);
    assert_eq!(driver.calls(2), 1);
    driver.ok(1, &[1]);
    assert_eq!(driver.out(), ["1@1"], "the result of before is not kept");
}

#[test]
fn a15_i08_what_was_stored_without_order_restores_in_the_order_of_admission() {
    let mut stopped = with_capacity(Order::Unordered, 10);
    stopped.emits = false;
    for element in [record(3, 3), record(1, 1), watermark(3), record(2, 2), record(9, 9)] {
        stopped.send(element);
    }
    for value in [2, 1, 9] {
        stopped.ok(value, &[value]);
    }
    let snapshot = stopped.snap();
    assert_eq!(stored(&snapshot), ["R(3@3)", "R(1@1)", "W(3)", "R(2@2)", "R(9@9)"]);
    let mut driver = with_capacity(Order::Ordered, 10).calling(double);
    driver.restore(snapshot);
    assert_eq!(driver.start_order, [3, 1, 2, 9]);
    assert_eq!(driver.out(), ["6@3", "2@1", "W(3)", "4@2", "18@9"]);
}

/// Flink copies a record on admission where objects are reused. Here a record is moved into the operator, so that nobody
/// can write to it afterwards; who goes on using the object has to give a copy away, which the compiler insists on.
#[test]
fn i09_an_object_used_again_for_the_next_record_changes_no_record_that_is_held() {
    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Row(Vec<u32>);
    for order in BOTH {
        let options = Options::with_order(order).build().unwrap();
        let mut operator = AsyncWaitOperator::<Row, u32, ()>::new(options);
        let mut reused = Row(vec![0]);
        for value in 1..=4 {
            reused.0[0] = value;
            operator
                .push(
                    StreamElement::Record(Record::at(reused.clone(), EpochMillis(value.into()))),
                    Tick::ZERO,
                )
                .unwrap();
        }
        reused.0[0] = 99;
        let held: Vec<u32> = operator
            .snapshot()
            .unwrap()
            .elements()
            .filter_map(|element| Some(element.into_record()?.value.0[0]))
            .collect();
        assert_eq!(held, [1, 2, 3, 4]);
        while let Some(effect) = operator.next_effect() {
            let Effect::Start { entry, attempt } = effect else { panic!("{effect:?}") };
            let answer = 2 * operator.input(entry).unwrap().value.0[0];
            operator.complete(entry, attempt, Ok(answer), Tick::ZERO);
        }
        let mut out = Vec::new();
        while let Some(Output::Record { input, outcome: Outcome::Completed(answer), .. }) =
            operator.next_output()
        {
            out.push((answer, input.timestamp));
        }
        let at = |millis| Some(EpochMillis(millis));
        assert_eq!(out, [(2, at(1)), (4, at(2)), (6, at(3)), (8, at(4))]);
    }
}

#[test]
fn i10_a_snapshot_replaces_the_one_before_it() {
    for order in BOTH {
        let mut driver = with_capacity(order, 10);
        driver.record(1);
        driver.record(2);
        assert_eq!(stored(&driver.snap()), ["R(1@1)", "R(2@2)"]);
        driver.ok(1, &[1]);
        driver.ok(2, &[2]);
        let second = driver.snap();
        assert!(second.is_empty());
        let mut restored = with_capacity(order, 10);
        restored.restore(second);
        assert!(restored.start_order.is_empty());
    }
}

#[test]
fn k04_a_keyed_snapshot_holds_nothing_of_keys_that_are_done() {
    let keyed = || Driver::with(Options::keyed().capacity(10), |value| Some(value % 2), on_error);
    let mut driver = keyed();
    (1..=4).for_each(|value| driver.record(value));
    assert_eq!(stored(&driver.snap()), ["R(1@1)", "R(2@2)", "R(3@3)", "R(4@4)"], "waiting ones, too");
    for value in [1, 3, 2] {
        driver.ok(value, &[value]);
    }
    let snapshot = driver.snap();
    assert_eq!(stored(&snapshot), ["R(4@4)"]);
    let mut restored = keyed();
    restored.restore(snapshot);
    let mut again = keyed();
    again.restore(restored.snap());
    assert_eq!(again.start_order, [4], "once, after a second recovery, too");
}

#[test]
fn i12_the_options_of_the_new_operator_apply_to_what_is_restored() {
    for order in BOTH {
        let mut stopped = with_capacity(order, 10);
        stopped.record(1);
        let mut driver =
            Driver::new(Options::with_order(order).capacity(10).timeout(ms(25)).retry(fixed(9, 10)));
        driver.set(100);
        driver.restore(stopped.snap());
        driver.err(1, "E");
        driver.tick_through(110);
        assert_eq!(driver.calls(1), 2, "there are retries now");
        driver.tick_through(124);
        assert!(driver.out().is_empty());
        driver.tick_through(125);
        assert_eq!(driver.out(), ["FAIL 1: the async call timed out"], "and a budget from the restore on");

        let mut stopped = Driver::new(Options::with_order(order).timeout(ms(25)).retry(fixed(9, 10)));
        stopped.record(1);
        stopped.err(1, "E");
        let mut driver = with_capacity(order, 10);
        driver.restore(stopped.snap());
        assert_eq!(driver.operator.next_wakeup(), None);
        driver.err(1, "E");
        assert_eq!(driver.out(), ["FAIL 1: E"], "and now there are none");
    }
}

#[test]
fn i16_split_in_two_every_pending_record_is_asked_again_exactly_once() {
    for order in BOTH {
        let parts = pending(order, 1..=5).split(2, |value| (value % 2) as usize);
        let mut asked = Vec::new();
        for part in parts {
            let mut driver = with_capacity(order, 10);
            driver.restore(part);
            asked.push(driver.start_order);
        }
        assert_eq!(asked, [vec![2, 4], vec![1, 3, 5]]);
    }
}

#[test]
fn i17_of_several_units_a_watermark_comes_back_only_once_all_have_passed_it() {
    let unit = |elements: Vec<StreamElement<u32>>| {
        let mut driver = with_capacity(Order::Ordered, 10);
        driver.emits = false;
        elements.into_iter().for_each(|element| driver.send(element));
        driver.snap()
    };
    let first = unit(vec![record(1, 1), watermark(5), record(6, 6), watermark(9)]);
    let second = unit(vec![record(3, 3), watermark(7), record(8, 8)]);
    let mut driver = with_capacity(Order::Ordered, 10).calling(ready);
    driver.restore(Snapshot::combined([first.clone(), second.clone()]));
    assert_eq!(driver.out(), ["1@1", "3@3", "W(5)", "6@6", "W(7)", "8@8"]);

    let third = unit(vec![record(2, 2)]);
    let mut driver = with_capacity(Order::Ordered, 10).calling(ready);
    driver.restore(Snapshot::combined([first, second, third]));
    let out = driver.out();
    assert!(out.iter().all(|text| !text.starts_with('W')), "the third has passed none: {out:?}");
    assert_eq!(out.len(), 5);
}

#[test]
fn i18_a_record_that_waits_for_a_place_is_in_the_snapshot_or_in_the_input_never_in_both() {
    for order in BOTH {
        let mut driver = with_capacity(order, 2);
        driver.record(1);
        driver.record(2);
        let refused = driver.operator.push(record(3, 3), driver.now).unwrap_err();
        assert_eq!(refused.element, record(3, 3), "not taken in, it is still the input's");
        assert_eq!(stored(&driver.snap()), ["R(1@1)", "R(2@2)"]);

        driver.park(refused.element);
        let snapshot = driver.snap();
        assert_eq!(stored(&snapshot), ["R(1@1)", "R(2@2)", "R(3@3)"], "taken in, it is in the snapshot");
        assert_eq!(driver.calls(3), 0);
        let mut restored = with_capacity(order, 2);
        restored.restore(snapshot);
        for value in 1..=3 {
            restored.ok(value, &[value]);
            // A place has come free: what is parked takes it in the next turn.
            restored.tick(0);
        }
        assert_eq!(restored.out(), ["1@1", "2@2", "3@3"]);
        assert_eq!(restored.start_order, [1, 2, 3]);
    }
}

#[test]
fn h05_stopped_with_a_snapshot_nothing_of_an_end_happens_and_all_is_asked_again() {
    for order in BOTH {
        let options = || Options::with_order(order).timeout(ms(1000)).retry(fixed(3, 100));
        let mut stopped = Driver::new(options());
        stopped.record(1);
        stopped.record(2);
        stopped.err(2, "E");
        let snapshot = stopped.snap();
        stopped.operator.close();
        stopped.run();
        assert_eq!((stopped.calls(1), stopped.calls(2)), (1, 1), "no last attempt for who pauses");
        assert_eq!(stopped.abandoned, 1);
        assert!(stopped.out().is_empty());
        let mut driver = Driver::new(options());
        driver.restore(snapshot);
        assert_eq!(driver.start_order, [1, 2]);
        driver.ok(1, &[1]);
        driver.ok(2, &[2]);
        driver.end();
        assert_eq!(driver.out(), ["1@1", "2@2"]);
    }
}

#[test]
fn e25_after_a_restore_attempts_count_on_and_budget_and_retries_start_anew() {
    for order in BOTH {
        let options = || Options::with_order(order).timeout(ms(1000)).retry(fixed(3, 100));
        let mut stopped = Driver::new(options());
        stopped.record(1);
        stopped.err(1, "E");
        let snapshot = stopped.snap();
        assert_eq!(stored(&snapshot), ["R(1@1)"]);
        assert_eq!(snapshot.attempts().collect::<Vec<_>>(), [1]);
        let mut driver = Driver::new(options());
        driver.set(5000);
        driver.restore(snapshot);
        for millis in [5000, 5100, 5200, 5300] {
            driver.tick_through(millis);
            driver.err(1, "E");
        }
        assert_eq!(driver.out(), ["FAIL 1: E"]);
        assert_eq!(driver.calls(1), 4, "one and three retries");
        let told: Vec<u32> = driver.contexts.iter().map(CallContext::attempt).collect();
        assert_eq!(told, [2, 3, 4, 5]);
        let deadline = driver.contexts[0].deadline().map(Tick::as_millis);
        assert_eq!(deadline, Some(6000));
        let keys = [&stopped, &driver].map(|driver| driver.contexts[0].idempotency_key());
        assert_eq!(keys[0], keys[1]);
    }
}

#[test]
fn restored_statuses_and_records_without_timestamp_keep_their_place() {
    let mut stopped = with_capacity(Order::Unordered, 10);
    stopped.record(1);
    stopped.send(IDLE);
    stopped.send(StreamElement::Record(Record::new(2)));
    let mut driver = with_capacity(Order::Unordered, 10);
    driver.restore(stopped.snap());
    driver.ok(2, &[20]);
    assert!(driver.out().is_empty());
    driver.ok(1, &[10]);
    assert_eq!(driver.out(), ["10@1", "IDLE", "20"]);
}

#[test]
fn a_restore_into_an_operator_in_use_is_refused_and_changes_nothing() {
    let snapshot = pending(Order::Ordered, 1..=2);
    let mut driver = Driver::new(Options::ordered().name("prices"));
    driver.record(7);
    let error = driver.operator.restore(snapshot, driver.now).unwrap_err();
    assert_eq!(error, RestoreError::NotFresh { operator: "prices".into() });
    assert_eq!(stored(&driver.snap()), ["R(7@7)"]);
    driver.run();
    assert_eq!(driver.start_order, [7]);
}
