//! Every order of the queue's steps, tried by loom; and the answer to whether `put` needs the lock.
//!
//! `cargo test -p controller-events --features model --lib model`

use super::*;
use crate::put::ClearScope;
use crate::wake::Wake;
use loom::sync::Mutex;
use loom::thread;
use std::collections::VecDeque;

type Q = Arc<Queue<u32>>;

fn queue() -> Q {
    Arc::new(Queue::new(Limits::default(), 16, Arc::default()))
}

fn event(event: u32) -> Queued<u32> {
    Queued { event, ticket: None, waiting_since: Tick::ZERO }
}

fn put(queue: &Queue<u32>, n: u32) -> bool {
    queue.put(event(n), Lane::Normal).is_ok()
}

fn take(queue: &Queue<u32>, armed: bool) -> Option<u32> {
    let taken = queue.take_plain().or_else(|| match queue.take(Tick::ZERO, armed) {
        Taken::Event(Selected::Run(queued)) => Some(queued),
        _ => None,
    });
    queue.landed();
    taken.map(|queued| queued.event)
}

fn clear(queue: &Queue<u32>, barrier: u32) -> Vec<u32> {
    let cleared = queue.begin_clear(event(barrier), ClearScope::Fifo).map_err(drop).unwrap();
    queue.end_clear();
    cleared.into_iter().map(|(queued, _)| queued.event).collect()
}

fn drain(queue: &Queue<u32>) -> Vec<u32> {
    std::iter::from_fn(|| take(queue, true)).collect()
}

/// Tries every order with at most so many switches away from a thread that could go on.
fn model(switches: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.check(body);
}

#[test]
fn a_put_is_before_a_barrier_or_behind_it() {
    model(3, || {
        let queue = queue();
        let producers: Vec<_> = [1, 2]
            .map(|n| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || assert!(put(&queue, n)))
            })
            .into();
        let looping = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || (take(&queue, false), take(&queue, false)))
        };
        let cleared = clear(&queue, 9);
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        let (first, second) = looping.join().unwrap();
        let ran: Vec<u32> = [first, second].into_iter().flatten().chain(drain(&queue)).collect();
        let mut all = [cleared.clone(), ran.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, [1, 2, 9], "every event once: ran {ran:?}, cleared {cleared:?}");
    });
}

#[test]
fn what_runs_behind_a_put_that_returned_before_the_barrier_is_the_barrier() {
    model(3, || {
        let queue = queue();
        assert!(put(&queue, 1));
        let looping = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || take(&queue, false))
        };
        let late = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || assert!(put(&queue, 2)))
        };
        let cleared = clear(&queue, 9);
        // The barrier has returned: what is put from now on is behind it.
        assert!(put(&queue, 3));
        late.join().unwrap();
        let ran: Vec<u32> = looping.join().unwrap().into_iter().chain(drain(&queue)).collect();
        assert!(!(ran.contains(&1) && cleared.contains(&1)));
        let at = |n| ran.iter().position(|ran| *ran == n);
        assert!(at(9) < at(3), "{ran:?}");
        assert!(at(1).is_none_or(|one| Some(one) < at(9)), "{ran:?}");
    });
}

#[test]
fn of_two_barriers_one_clears_the_other_unless_it_has_started() {
    model(3, || {
        let queue = queue();
        let other = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || clear(&queue, 8))
        };
        let mut cleared = clear(&queue, 9);
        cleared.extend(other.join().unwrap());
        let ran = drain(&queue);
        assert_eq!((ran.len(), cleared.len()), (1, 1), "ran {ran:?}, cleared {cleared:?}");
    });
}

#[test]
fn a_put_is_refused_by_a_close_or_told_by_it() {
    model(3, || {
        let queue = queue();
        let producer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || put(&queue, 1))
        };
        let looping = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || take(&queue, false).is_some())
        };
        let told = queue.close().rejected.len();
        queue.end_clear();
        let (accepted, ran) = (producer.join().unwrap(), looping.join().unwrap());
        assert_eq!(usize::from(accepted), told + usize::from(ran));
        assert_eq!(take(&queue, true), None);
    });
}

#[test]
fn a_drain_runs_what_was_accepted() {
    model(3, || {
        let queue = queue();
        let producer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || put(&queue, 1))
        };
        assert!(queue.begin_drain(Tick::ZERO, false).is_empty());
        queue.end_clear();
        let mut ran = drain(&queue);
        let accepted = producer.join().unwrap();
        ran.extend(drain(&queue));
        assert_eq!(ran.len(), usize::from(accepted));
    });
}

#[test]
fn a_loop_that_goes_to_sleep_has_seen_the_event_or_is_called() {
    model(4, || {
        let (queue, wake) = (queue(), Arc::new(Wake::default()));
        let producer = {
            let (queue, wake) = (Arc::clone(&queue), Arc::clone(&wake));
            thread::spawn(move || {
                assert!(put(&queue, 1));
                wake.call();
            })
        };
        wake.arm(None);
        let seen = take(&queue, true).is_some();
        producer.join().unwrap();
        assert!(seen || wake.was_called());
    });
}

/// A queue that is safe by itself, as Kafka's is, with the barrier in two steps and no lock around put and barrier.
#[derive(Default)]
struct Unlocked(Mutex<VecDeque<u32>>);

impl Unlocked {
    fn append(&self, n: u32) {
        self.0.lock().unwrap().push_back(n);
    }

    /// Kafka 2.5 and 2.6: tell each, then clear.
    fn iterate_then_clear(&self, barrier: u32) -> Vec<u32> {
        let told: Vec<u32> = self.0.lock().unwrap().iter().copied().collect();
        self.0.lock().unwrap().clear();
        self.append(barrier);
        told
    }

    /// Kafka 2.7 and later: take out, tell each, then append.
    fn drain_then_append(&self, barrier: u32) -> Vec<u32> {
        let told: Vec<u32> = std::mem::take(&mut *self.0.lock().unwrap()).into();
        self.append(barrier);
        told
    }
}

/// One put beside one barrier: what the barrier told, and what is left in line.
fn without_a_lock(barrier: fn(&Unlocked, u32) -> Vec<u32>, holds: fn(&[u32], &[u32])) {
    model(3, move || {
        let queue = Arc::new(Unlocked(Mutex::new(VecDeque::new())));
        let producer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.append(1))
        };
        let told = barrier(&queue, 9);
        producer.join().unwrap();
        let left: Vec<u32> = queue.0.lock().unwrap().iter().copied().collect();
        holds(&told, &left);
    });
}

fn nothing_is_lost(told: &[u32], left: &[u32]) {
    assert!(told.contains(&1) || left.contains(&1), "lost: nobody told event 1 and nobody will run it");
}

fn nothing_overtakes(_told: &[u32], left: &[u32]) {
    assert_ne!(left, [1, 9], "overtaken: event 1 will run before the barrier");
}

#[test]
#[should_panic(expected = "lost")]
fn without_the_lock_in_put_an_event_is_lost() {
    without_a_lock(Unlocked::iterate_then_clear, nothing_is_lost);
}

#[test]
fn taking_out_before_telling_loses_nothing() {
    without_a_lock(Unlocked::drain_then_append, nothing_is_lost);
}

#[test]
#[should_panic(expected = "overtaken")]
fn without_the_lock_in_put_an_event_overtakes_the_barrier() {
    without_a_lock(Unlocked::drain_then_append, nothing_overtakes);
}
