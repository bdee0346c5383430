//! The face of batches.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::channel::mpsc;
use futures::future::BoxFuture;
use futures::{FutureExt, SinkExt, StreamExt, stream};
use tokio::time::{Instant, sleep};

use super::{Alive, built, ms};
use crate::*;

type Answers = Vec<Result<u32, &'static str>>;
type Reasons = Vec<Result<u32, FailureReason<&'static str>>>;

#[derive(Clone, Default)]
struct Batches(Arc<Mutex<Vec<Vec<u32>>>>);

impl Batches {
    fn taken(&self) -> Vec<Vec<u32>> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn of(size: usize, linger: impl Into<Option<u64>>) -> BatchOptions {
    BatchOptions::new(size, linger.into().map(ms)).unwrap()
}

/// Answers each batch, after a millisecond, with what `answer` makes of it.
fn batched<A>(
    options: BatchOptions,
    seen: &Batches,
    answer: A,
) -> BatchCalls<u32, impl FnMut(Vec<u32>) -> BoxFuture<'static, Answers> + use<A>>
where
    A: Fn(Vec<u32>) -> Answers + Send + Clone + 'static,
{
    let seen = seen.clone();
    BatchCalls::new(options, move |inputs: Vec<u32>| {
        seen.0.lock().unwrap().push(inputs.clone());
        let answer = answer.clone();
        async move {
            sleep(ms(1)).await;
            answer(inputs)
        }
        .boxed()
    })
}

fn doubled(inputs: Vec<u32>) -> Answers {
    inputs.into_iter().map(|n| Ok(2 * n)).collect()
}

async fn run(
    batch: BatchOptions,
    options: OptionsBuilder,
    inputs: impl IntoIterator<Item = u32>,
    answer: impl Fn(Vec<u32>) -> Answers + Send + Clone + 'static,
) -> (Reasons, Vec<Vec<u32>>) {
    let seen = Batches::default();
    let operator = AsyncWaitOperator::new(built(options));
    let source = stream::iter(inputs.into_iter().collect::<Vec<_>>());
    let results = source.async_wait_on(operator, batched(batch, &seen, answer));
    let results = results.map(|result| result.map_err(|failed| failed.reason)).collect();
    (tokio::time::timeout(ms(1_000_000), results).await.expect("the stream ends"), seen.taken())
}

#[tokio::test(start_paused = true)]
async fn k05_batches_have_their_size_and_the_last_one_the_rest() {
    for options in [Options::ordered(), Options::unordered()] {
        let (results, seen) = run(of(3, None), options.clone(), 1..=5, doubled).await;
        assert_eq!(results, [Ok(2), Ok(4), Ok(6), Ok(8), Ok(10)]);
        assert_eq!(seen, [vec![1, 2, 3], vec![4, 5]]);
        let (results, seen) = run(of(3, None), options, [], doubled).await;
        assert!(results.is_empty() && seen.is_empty(), "no call about nothing");
    }
}

#[tokio::test(start_paused = true)]
async fn k06_a_batch_goes_when_its_first_record_has_waited_for_the_linger() {
    let (seen, begun) = (Batches::default(), Instant::now());
    let (mut source, inputs) = mpsc::channel(9);
    let operator = AsyncWaitOperator::new(built(Options::ordered()));
    let mut results = inputs.async_wait_on(operator, batched(of(10, 50), &seen, doubled));
    source.send(1).await.unwrap();
    assert_eq!(results.next().await, Some(Ok(2)));
    assert_eq!(begun.elapsed(), ms(51), "50 in the batch, 1 in the call");
    assert_eq!(seen.taken(), [vec![1]]);

    let operator = AsyncWaitOperator::new(built(Options::ordered()));
    let patient = stream::iter([1]).chain(stream::pending());
    let mut results = patient.async_wait_on(operator, batched(of(10, None), &seen, doubled));
    assert!(tokio::time::timeout(ms(100_000), results.next()).await.is_err(), "only the end sends it off");
    assert!(seen.taken().is_empty());
}

#[tokio::test(start_paused = true)]
async fn k10_the_linger_of_a_batch_that_went_full_does_not_send_the_next_one_off() {
    let seen = Batches::default();
    let (mut source, inputs) = mpsc::channel(9);
    let operator = AsyncWaitOperator::new(built(Options::ordered()));
    let results = inputs.async_wait_on(operator, batched(of(2, 50), &seen, doubled));
    let consumer = tokio::spawn(results.count());
    source.send(1).await.unwrap();
    sleep(ms(10)).await;
    source.send(2).await.unwrap();
    sleep(ms(30)).await;
    source.send(3).await.unwrap();
    sleep(ms(49)).await;
    assert_eq!(seen.taken(), [vec![1, 2]], "the second batch began at 40 and lingers until 90");
    sleep(ms(2)).await;
    assert_eq!(seen.taken(), [vec![3]]);
    drop(source);
    assert_eq!(consumer.await.unwrap(), 3);
}

#[test]
fn k10_a_batch_that_has_gone_asks_for_no_wake_up() {
    let mut operator = AsyncWaitOperator::<u32, u32, ()>::new(built(Options::ordered()));
    let mut batcher = Batcher::new(of(2, 50));
    let now = runtime_core::Tick::ZERO;
    for n in 0..2 {
        let record = runtime_core::Record::new(n);
        operator.push(runtime_core::StreamElement::Record(record), now).unwrap();
        let Some(Effect::Start { entry, attempt }) = operator.next_effect() else { panic!("it starts") };
        assert_eq!(batcher.next_wakeup().is_some(), n == 1, "only while something is gathered");
        batcher.add(BatchItem { entry, attempt, input: n }, now);
    }
    assert_eq!(batcher.next_wakeup(), None);
    assert_eq!(batcher.advance(runtime_core::Tick::from_millis(50)), None);
}

#[tokio::test(start_paused = true)]
async fn k07_batches_in_flight_are_bounded_by_the_operators_places() {
    let running = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&running);
    let calls = BatchCalls::new(of(2, None), move |inputs: Vec<u32>| {
        counted.fetch_add(inputs.len(), Ordering::Relaxed);
        std::future::pending::<Answers>()
    });
    let operator = AsyncWaitOperator::new(built(Options::unordered().capacity(5)));
    let mut results = stream::iter(0..1000).async_wait_on(operator, calls);
    assert!(tokio::time::timeout(ms(100), results.next()).await.is_err());
    assert_eq!(running.load(Ordering::Relaxed), 5, "the last place's batch went, though it was not full");
    assert_eq!(results.operator().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_batch_larger_than_the_operator_does_not_hang() {
    for options in [Options::ordered().capacity(2), Options::unordered().capacity(1)] {
        let capacity = built(options.clone()).capacity();
        let (results, seen) = run(of(10, None), options, 1..=5, doubled).await;
        assert_eq!(results.len(), 5);
        assert!(results.iter().all(Result::is_ok));
        assert!(seen.iter().all(|batch| batch.len() <= capacity), "{seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn k08_what_was_gathered_is_gathered_again_after_a_restore() {
    let seen = Batches::default();
    let operator = AsyncWaitOperator::new(built(Options::ordered()));
    let waiting = stream::iter([1, 2]).chain(stream::pending());
    let mut results = waiting.async_wait_on(operator, batched(of(3, None), &seen, doubled));
    assert!(futures::poll!(results.next()).is_pending());
    let snapshot = results.operator().snapshot().unwrap().cloned();
    drop(results);
    assert!(seen.taken().is_empty());
    let mut operator = AsyncWaitOperator::new(built(Options::ordered()));
    operator.restore(snapshot, runtime_core::Tick::ZERO).unwrap();
    let results = stream::iter([3, 4]).async_wait_on(operator, batched(of(3, None), &seen, doubled));
    assert_eq!(results.collect::<Vec<_>>().await, [Ok(2), Ok(4), Ok(6), Ok(8)]);
    assert_eq!(seen.taken(), [vec![1, 2, 3], vec![4]]);
}

/// The original's batch function answers with any number of outputs for the whole batch. Here each input has an answer of
/// its own, which may be of any number of outputs: the sum of a batch is the answer of its first input.
#[tokio::test(start_paused = true)]
async fn k11_a_batch_may_give_fewer_outputs_than_inputs() {
    let calls = BatchCalls::new(of(3, None), |inputs: Vec<u32>| async move {
        let sum: u32 = inputs.iter().sum();
        (0..inputs.len()).map(|at| Ok::<_, ()>(if at == 0 { vec![sum] } else { vec![] })).collect()
    });
    let operator = AsyncWaitOperator::new(built(Options::ordered()));
    let results = stream::iter(1..=5).async_wait_on(operator, calls);
    let sums: Vec<u32> = results.map(Result::unwrap).concat().await;
    assert_eq!(sums, [6, 9]);
}

#[tokio::test(start_paused = true)]
async fn k11_answers_that_are_not_as_many_as_the_inputs_fail_each_of_them_without_a_retry() {
    for (cut, answered) in [(true, 2), (false, 4)] {
        let answer = move |inputs: Vec<u32>| {
            let mut answers = doubled(inputs);
            if cut {
                answers.pop();
            } else {
                answers.push(Ok(0));
            }
            answers
        };
        let retry = Retry::FixedDelay { max_retries: 3, delay: ms(1) };
        let options = Options::ordered().timeout(ms(1000)).retry(retry).on_failure(FailurePolicy::Keep);
        let (results, seen) = run(of(3, None), options, 1..=3, answer).await;
        let mismatch = FailureReason::BatchMismatch { asked: 3, answered };
        assert_eq!(results, vec![Err(mismatch); 3]);
        assert_eq!(seen.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn k09_who_gathers_a_record_has_a_copy_and_the_operator_keeps_its_own() {
    let calls = BatchCalls::new(of(2, None), |mut inputs: Vec<Vec<u32>>| async move {
        inputs.iter_mut().for_each(|input| input.push(99));
        inputs.iter().map(|_| Err::<(), _>("no")).collect()
    });
    let options = built(Options::ordered().on_failure(FailurePolicy::Keep));
    let results = stream::iter([vec![1], vec![2]]).async_wait_on(AsyncWaitOperator::new(options), calls);
    let inputs: Vec<_> = results.map(|result| result.unwrap_err().input).collect().await;
    assert_eq!(inputs, [vec![1], vec![2]]);
}

#[tokio::test(start_paused = true)]
async fn only_the_items_that_failed_are_asked_again() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let answer = move |inputs: Vec<u32>| -> Answers {
        let first = attempts.fetch_add(1, Ordering::Relaxed) == 0;
        inputs.into_iter().map(|n| if first && n % 2 == 0 { Err("again") } else { Ok(n) }).collect()
    };
    let seen = Batches::default();
    let retry = Retry::FixedDelay { max_retries: 3, delay: ms(10) };
    let operator = AsyncWaitOperator::new(built(Options::ordered().timeout(ms(1000)).retry(retry)));
    let source = stream::iter(1..=4).chain(stream::pending());
    let mut results = source.async_wait_on(operator, batched(of(4, 5), &seen, answer));
    for n in 1..=4 {
        assert_eq!(results.next().await, Some(Ok(n)));
    }
    assert_eq!(seen.taken(), [vec![1, 2, 3, 4], vec![2, 4]]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_panics_fails_its_records_and_no_others() {
    for at_once in [true, false] {
        let calls = BatchCalls::new(of(2, None), move |inputs: Vec<u32>| {
            assert!(!at_once || inputs != [3, 4], "meant to panic");
            async move {
                sleep(ms(1)).await;
                assert_ne!(inputs, [3, 4], "meant to panic");
                inputs.into_iter().map(Ok::<_, ()>).collect()
            }
        });
        let operator = AsyncWaitOperator::new(built(Options::ordered().on_failure(FailurePolicy::Keep)));
        let results: Vec<_> = stream::iter(1..=5).async_wait_on(operator, calls).collect().await;
        let told: Vec<_> = results
            .iter()
            .map(|result| match result {
                Ok(n) => n.to_string(),
                Err(failed) => {
                    let FailureReason::Panicked(text) = &failed.reason else { panic!("{failed:?}") };
                    assert!(text.contains("meant to panic"));
                    format!("panic {}", failed.input)
                }
            })
            .collect();
        assert_eq!(told, ["1", "2", "panic 3", "panic 4", "5"], "at once: {at_once}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_nobody_waits_for_is_dropped() {
    let alive = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&alive);
    let calls = BatchCalls::new(of(2, None), move |_: Vec<u32>| {
        let guard = Alive::new(&counted);
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            Vec::<Result<u32, ()>>::new()
        }
    });
    let options = built(Options::ordered().timeout(ms(10)).on_failure(FailurePolicy::Keep));
    let source = stream::iter([1, 2]).chain(stream::pending());
    let mut results = source.async_wait_on(AsyncWaitOperator::new(options), calls);
    assert_eq!(results.next().await.unwrap().unwrap_err().reason, FailureReason::Timeout);
    assert_eq!(results.next().await.unwrap().unwrap_err().reason, FailureReason::Timeout);
    tokio::task::yield_now().await;
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_stream_drops_its_batches() {
    let alive = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&alive);
    let calls = BatchCalls::new(of(1, None), move |_: Vec<u32>| {
        let guard = Alive::new(&counted);
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            Vec::<Result<u32, ()>>::new()
        }
    });
    let operator = AsyncWaitOperator::new(built(Options::ordered()));
    let mut results = stream::iter(0..4).async_wait_on(operator, calls);
    assert!(futures::poll!(results.next()).is_pending());
    assert_eq!(alive.load(Ordering::Relaxed), 4);
    drop(results);
    tokio::task::yield_now().await;
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}
