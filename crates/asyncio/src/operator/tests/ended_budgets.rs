//! What is not done any more for a record whose budget has ended, however late anybody looks.

use runtime_core::{Record, StreamElement, Tick};

use super::driver::*;
use crate::*;

type Sharing = AsyncWaitOperator<u32, u32, &'static str>;

/// Two equal records whose budgets end at 10, and the call that they share.
fn sharing(asking: bool) -> (Sharing, EntryId) {
    let options = Options::ordered().timeout(ms(10)).on_failure(FailurePolicy::Keep).build().unwrap();
    let mut operator = Sharing::new(options).coalescing_by(|_: &u32| Some(()));
    if asking {
        operator = operator.asking_on_timeout();
    }
    operator.push(StreamElement::Record(Record::new(1)), Tick::ZERO).unwrap();
    let [Effect::Start { entry, attempt: 1 }] = effects(&mut operator)[..] else { panic!("it starts") };
    operator.push(StreamElement::Record(Record::new(2)), Tick::ZERO).unwrap();
    assert_eq!(effects(&mut operator), [], "it shares the call");
    (operator, entry)
}

fn effects(operator: &mut Sharing) -> Vec<Effect> {
    std::iter::from_fn(|| operator.next_effect()).collect()
}

#[test]
fn a_record_whose_budget_has_ended_in_its_pause_is_not_called_at_the_end_of_input() {
    for order in BOTH {
        let mut driver = Driver::new(Options::with_order(order).timeout(ms(10)).retry(fixed(2, 5)));
        driver.record(1);
        driver.set(8);
        driver.err(1, "E");
        driver.set(10);
        driver.end();
        assert_eq!(driver.calls(1), 1);
        driver.tick(10);
        assert_eq!(driver.out(), ["FAIL 1: the async call timed out"]);
    }
}

#[test]
fn a_record_whose_budget_ends_with_that_of_the_call_it_shares_makes_none() {
    let (mut operator, entry) = sharing(false);
    operator.advance(Tick::from_millis(10));
    assert_eq!(effects(&mut operator), [Effect::Abandon { entry, attempt: 1 }]);
    let figures = operator.figures(Tick::from_millis(10));
    assert_eq!((figures.calls, figures.timeouts, figures.failures), (1, 2, 2));
}

#[test]
fn an_answer_for_a_record_that_never_had_a_call_abandons_none() {
    for closes in [false, true] {
        let (mut operator, first) = sharing(true);
        let now = Tick::from_millis(10);
        operator.advance(now);
        let asked = effects(&mut operator);
        let [Effect::TimedOut { attempt: 1, .. }, Effect::TimedOut { entry, attempt: 0 }] = asked[..] else {
            panic!("both are asked about: {asked:?}")
        };
        if closes {
            operator.close();
            assert_eq!(effects(&mut operator), [Effect::Abandon { entry: first, attempt: 1 }]);
        } else {
            assert!(operator.complete(entry, 0, Ok(7), now));
            assert_eq!(effects(&mut operator), []);
        }
    }
}

#[test]
fn a_closed_operator_gives_the_numbers_of_what_was_parked_to_nobody_else() {
    let options = || Options::ordered().capacity(1).build().unwrap();
    let record = |value| StreamElement::Record(Record::new(value));
    let mut operator = Sharing::new(options());
    for value in 0..3 {
        operator.park(record(value), Tick::ZERO).unwrap();
    }
    operator.close();
    let mut restored = Sharing::new(options());
    restored.restore(operator.snapshot().unwrap().cloned(), Tick::ZERO).unwrap();
    restored.push(record(9), Tick::ZERO).unwrap();
    let [Effect::Start { entry, .. }] = effects(&mut restored)[..] else { panic!("it starts") };
    assert_eq!(entry.sequence(), 3);
}
