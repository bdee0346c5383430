//! Deadlines, hooks and timers that must not outlive what they are for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use asyncio::{
    AsyncFunction, AsyncWaitExt, AsyncWaitOperator, CallContext, CallError, Effect, FailurePolicy,
    FailureReason, FunctionCalls, FunctionContext, OnTimeout, Options, Retry, RetryErrors,
};
use futures::{StreamExt, stream};
use runtime_core::Tick;
use tokio::time::{Instant, sleep};

use crate::{ORDERS, built, ms, record};

#[tokio::test(start_paused = true)]
async fn defect02_no_attempt_is_made_after_the_deadline() {
    for order in ORDERS {
        let begun = Instant::now();
        let starts = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&starts);
        let retry = Retry::FixedDelay { max_retries: 1000, delay: ms(10) };
        let options =
            built(Options::with_order(order).timeout(ms(95)).retry(retry).on_failure(FailurePolicy::Keep));
        let source = stream::iter([1, 2]).chain(stream::pending());
        let key = |n: &u32| Some(*n);
        let mut results = source.async_wait_with(options, key, RetryErrors, move |_: &u32| {
            log.lock().unwrap().push(begun.elapsed());
            async {
                sleep(ms(1)).await;
                Err::<(), _>("down")
            }
        });
        for _ in 0..2 {
            assert_eq!(results.next().await.unwrap().unwrap_err().reason, FailureReason::Timeout);
        }
        assert!(tokio::time::timeout(ms(10_000), results.next()).await.is_err());
        let starts = starts.lock().unwrap();
        assert!(starts.len() >= 16, "{order:?}: there were retries: {starts:?}");
        assert!(starts.iter().all(|&at| at < ms(95)), "{order:?}: {starts:?}");
    }
}

#[test]
fn defect05_close_and_the_end_of_input_leave_no_timer() {
    for order in ORDERS {
        for closes in [true, false] {
            let retry = Retry::FixedDelay { max_retries: 5, delay: ms(100) };
            let options = Options::with_order(order)
                .timeout(ms(1000))
                .attempt_timeout(ms(50))
                .retry(retry)
                .on_failure(FailurePolicy::Keep);
            let key = |n: &u32| Some(*n);
            let mut operator =
                AsyncWaitOperator::<u32, u32, &str, _, _>::with(built(options), key, RetryErrors);
            for n in 0..4 {
                operator.push(record(n), Tick::ZERO).unwrap();
            }
            let mut started = Vec::new();
            while let Some(effect) = operator.next_effect() {
                let Effect::Start { entry, attempt } = effect else { panic!("{effect:?}") };
                started.push((entry, attempt));
            }
            for &(entry, attempt) in &started[..2] {
                operator.complete(entry, attempt, Err(CallError::Error("E")), Tick::ZERO);
            }
            assert!(operator.next_wakeup().is_some());
            if closes {
                operator.close();
            } else {
                operator.end_of_input(Tick::from_millis(1));
                for (entry, attempt) in [(started[0].0, 2), (started[1].0, 2), started[2], started[3]] {
                    assert!(operator.complete(entry, attempt, Ok(0), Tick::from_millis(1)));
                }
                while operator.next_output().is_some() {}
            }
            assert_eq!(operator.next_wakeup(), None, "{order:?}, closes: {closes}");
            assert!(operator.is_drained());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn defect05_a_dropped_stream_leaves_no_task_behind() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let retry = Retry::FixedDelay { max_retries: 5, delay: ms(100) };
    let options = built(Options::unordered().timeout(ms(1000)).retry(retry));
    let mut results = stream::iter(0..10_u32).chain(stream::pending()).async_wait(options, |n| {
        let n = *n;
        async move {
            sleep(ms(u64::from(n) * 100)).await;
            Err::<(), _>("down")
        }
    });
    assert!(tokio::time::timeout(ms(150), results.next()).await.is_err());
    assert!(tasks() > before);
    drop(results);
    tokio::task::yield_now().await;
    assert_eq!(tasks(), before);
}

struct Silent;

impl AsyncFunction<u32> for Silent {
    type Output = u32;
    type Error = &'static str;

    async fn call(&self, n: &u32, _: &CallContext) -> Result<u32, &'static str> {
        if n.is_multiple_of(2) { Ok(*n) } else { std::future::pending().await }
    }

    fn timeout(&self, n: &u32, _: &CallContext) -> OnTimeout<u32, &'static str> {
        // Each of the three ways to answer ends the record; a fourth, "nothing", would not compile. The match tells when
        // there is one more.
        let ways = [OnTimeout::Complete(1000 + n), OnTimeout::Error("too late"), OnTimeout::Fail];
        match &ways[*n as usize / 2 % 3] {
            OnTimeout::Complete(answer) => OnTimeout::Complete(*answer),
            OnTimeout::Error(error) => OnTimeout::Error(*error),
            OnTimeout::Fail => OnTimeout::Fail,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn defect06_a_timeout_always_ends_its_record_and_lets_the_next_ones_go() {
    let options = built(Options::ordered().timeout(ms(10)).on_failure(FailurePolicy::Keep));
    let calls = FunctionCalls::open(Silent, &FunctionContext::of(&options)).unwrap();
    let results = stream::iter(1..=6).async_wait_on(AsyncWaitOperator::new(options), calls);
    let results: Vec<_> = results.map(|result| result.map_err(|failed| failed.reason)).collect().await;
    let late = FailureReason::Error("too late");
    assert_eq!(results, [Ok(1001), Ok(2), Err(late), Ok(4), Err(FailureReason::Timeout), Ok(6)]);
}

#[tokio::test(start_paused = true)]
async fn defect07_a_clients_own_timeout_frees_the_place() {
    for order in ORDERS {
        let running = Arc::new(AtomicUsize::new(0));
        let options = Options::with_order(order).capacity(2).on_failure(FailurePolicy::Keep);
        let begun = Instant::now();
        let key = |n: &u32| Some(*n);
        let mut results = stream::iter(0..10_u32).async_wait_with(built(options), key, RetryErrors, |n| {
            let (n, running) = (*n, Arc::clone(&running));
            async move {
                running.fetch_add(1, Ordering::Relaxed);
                // A client with a time limit of its own; the service never answers.
                let answer = tokio::time::timeout(ms(5), std::future::pending::<u32>()).await;
                running.fetch_sub(1, Ordering::Relaxed);
                answer.map_err(|_| n)
            }
        });
        let mut failed = Vec::new();
        while let Some(result) = results.next().await {
            failed.push(result.unwrap_err().input);
        }
        failed.sort_unstable();
        assert_eq!(failed, (0..10).collect::<Vec<_>>());
        assert_eq!(begun.elapsed(), ms(25), "{order:?}: five rounds of two");
        assert_eq!(running.load(Ordering::Relaxed), 0);
        assert_eq!(results.operator().len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn defect07_our_timeout_drops_the_call_and_frees_the_place() {
    struct Connection(Arc<AtomicUsize>);
    impl Drop for Connection {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
    for limit in [Options::ordered().timeout(ms(5)), Options::ordered().attempt_timeout(ms(5))] {
        let open = Arc::new(AtomicUsize::new(0));
        let most = AtomicUsize::new(0);
        let options = built(limit.capacity(1).on_failure(FailurePolicy::Keep));
        let results = stream::iter(0..10_u32).async_wait(options, |_| {
            most.fetch_max(1 + open.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
            let connection = Connection(Arc::clone(&open));
            async move {
                std::future::pending::<()>().await;
                drop(connection);
                Ok::<_, ()>(())
            }
        });
        assert_eq!(results.count().await, 10);
        tokio::task::yield_now().await;
        assert_eq!(open.load(Ordering::Relaxed), 0);
        assert!(most.load(Ordering::Relaxed) <= 2, "a call given up may end a moment after the next began");
    }
}
