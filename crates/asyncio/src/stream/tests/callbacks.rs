//! The face of a `CallbackFunction`: handles that are completed, shared, lost and late.

use std::sync::{Arc, Mutex};

use futures::{StreamExt, stream};

use super::{built, ms};
use crate::*;

type Handle = ResultFuture<u32, &'static str>;
type Reasons = Vec<Result<u32, FailureReason<&'static str>>>;

/// Keeps handles for the test to complete.
#[derive(Clone, Default)]
struct Desk(Arc<Mutex<Vec<(u32, Handle)>>>);

impl Desk {
    fn take(&self, input: u32) -> Handle {
        let mut handles = self.0.lock().unwrap();
        let at = handles.iter().position(|(of, _)| *of == input).expect("a call was made");
        handles.remove(at).1
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// A function of closures.
struct Scripted<C, T> {
    call: C,
    hook: T,
    closed: Arc<Mutex<u32>>,
}

impl<C, T> CallbackFunction<u32> for Scripted<C, T>
where
    C: FnMut(u32, u32, Handle) -> Result<(), &'static str>,
    T: FnMut(u32, Handle) -> Result<(), &'static str>,
{
    type Output = u32;
    type Error = &'static str;

    fn invoke(&mut self, n: &u32, context: &CallContext, result: Handle) -> Result<(), &'static str> {
        (self.call)(*n, context.attempt(), result)
    }

    fn timeout(&mut self, n: &u32, _: &CallContext, result: Handle) -> Result<(), &'static str> {
        (self.hook)(*n, result)
    }

    fn close(&mut self) {
        *self.closed.lock().unwrap() += 1;
    }
}

fn calls_of<C, T>(call: C, hook: T) -> CallbackCalls<u32, Scripted<C, T>>
where
    C: FnMut(u32, u32, Handle) -> Result<(), &'static str>,
    T: FnMut(u32, Handle) -> Result<(), &'static str>,
{
    let context = FunctionContext::of(&built(Options::ordered()));
    CallbackCalls::open(Scripted { call, hook, closed: Arc::default() }, &context).unwrap()
}

fn time_out(_: u32, result: Handle) -> Result<(), &'static str> {
    result.time_out();
    Ok(())
}

fn kept_by(desk: &Desk) -> impl FnMut(u32, u32, Handle) -> Result<(), &'static str> + use<> {
    let desk = desk.clone();
    move |n, _, result| {
        desk.0.lock().unwrap().push((n, result));
        Ok(())
    }
}

fn reasons<I>(result: AsyncWaitResult<I, u32, &'static str>) -> Result<u32, FailureReason<&'static str>> {
    result.map_err(|failed| failed.reason)
}

async fn run(
    call: impl FnMut(u32, u32, Handle) -> Result<(), &'static str>,
    options: OptionsBuilder,
    inputs: impl IntoIterator<Item = u32>,
) -> Reasons {
    let operator = AsyncWaitOperator::new(built(options));
    let source = stream::iter(inputs.into_iter().collect::<Vec<_>>());
    source.async_wait_on(operator, calls_of(call, time_out)).map(reasons).collect().await
}

fn retrying(max_retries: u32) -> OptionsBuilder {
    Options::ordered()
        .timeout(ms(1000))
        .retry(Retry::FixedDelay { max_retries, delay: ms(1) })
        .on_failure(FailurePolicy::Keep)
}

#[tokio::test(start_paused = true)]
async fn c01_of_several_completions_the_first_one_counts() {
    let call = |n: u32, _: u32, result: Handle| {
        result.complete(n);
        result.complete(n + 1);
        result.complete_exceptionally("late");
        Ok(())
    };
    assert_eq!(run(call, Options::ordered(), [1, 2]).await, [Ok(1), Ok(2)]);
    let call = |_: u32, _: u32, result: Handle| {
        result.complete_exceptionally("first");
        result.complete(1);
        Ok(())
    };
    assert_eq!(run(call, Options::ordered(), [1]).await, [Err(FailureReason::Error("first"))]);
}

#[tokio::test]
async fn c03_a_handle_shared_by_threads_that_all_complete_it_gives_one_result() {
    let call = |n: u32, _: u32, result: Handle| {
        let result = Arc::new(result);
        for thread in 0..4 {
            let result = Arc::clone(&result);
            std::thread::spawn(move || result.complete(10 * n + thread));
        }
        Ok(())
    };
    let operator = AsyncWaitOperator::new(built(Options::ordered().capacity(8)));
    let mut results = stream::iter(0..200_u32).async_wait_on(operator, calls_of(call, time_out));
    let mut of = Vec::new();
    while let Some(result) = results.next().await {
        of.push(result.unwrap() / 10);
    }
    assert_eq!(of, (0..200).collect::<Vec<_>>(), "each input once, in order");
}

#[tokio::test]
async fn c07_a_supplier_is_run_by_the_thread_that_polls() {
    let here = std::thread::current().id();
    let call = move |n: u32, _: u32, result: Handle| {
        std::thread::spawn(move || {
            result.complete_by(move || {
                assert_eq!(std::thread::current().id(), here);
                Ok(2 * n)
            });
        });
        Ok(())
    };
    assert_eq!(run(call, Options::ordered().capacity(3), 1..=3).await, [Ok(2), Ok(4), Ok(6)]);
    let mut unordered = run(call, Options::unordered().capacity(3), 1..=3).await;
    unordered.sort_by_key(|result| result.clone().unwrap_or(0));
    assert_eq!(unordered, [Ok(2), Ok(4), Ok(6)]);
}

#[tokio::test(start_paused = true)]
async fn c08_a_suppliers_error_is_the_calls_and_its_panic_is_final() {
    for (retries, asked) in [(0, 1), (1, 2)] {
        let options = if retries == 0 { Options::ordered() } else { retrying(retries) };
        let mut attempts = 0;
        let call = |_: u32, _: u32, result: Handle| {
            attempts += 1;
            result.complete_by(|| Err("supplier"));
            Ok(())
        };
        let operator = AsyncWaitOperator::new(built(options));
        let source = stream::iter([1]).chain(stream::pending());
        let mut results = source.async_wait_on(operator, calls_of(call, time_out));
        let failed = results.next().await.unwrap().unwrap_err();
        assert_eq!(failed.reason, FailureReason::Error("supplier"));
        assert_eq!(failed.attempts.count, asked);
        drop(results);
        assert_eq!(attempts, asked);
    }
    let mut attempts = 0;
    let call = |_: u32, _: u32, result: Handle| {
        attempts += 1;
        result.complete_by(|| panic!("boom"));
        Ok(())
    };
    assert_eq!(run(call, retrying(3), [1]).await, [Err(FailureReason::Panicked("boom".into()))]);
    assert_eq!(attempts, 1);
}

#[tokio::test(start_paused = true)]
async fn c09_a_handle_that_is_dropped_fails_its_record_and_does_not_hang() {
    let call = |_: u32, _: u32, result: Handle| {
        drop(result);
        Ok(())
    };
    for options in [Options::ordered(), Options::unordered()] {
        assert_eq!(run(call, options, [1, 2]).await, [Err(FailureReason::HandleDropped)]);
    }
}

#[tokio::test(start_paused = true)]
async fn c05_an_error_instead_of_a_beginning_is_final_and_told_once() {
    let mut attempts = 0;
    let call = |n: u32, _: u32, result: Handle| {
        attempts += 1;
        if n == 2 {
            return Err("cannot begin");
        }
        result.complete(n);
        Ok(())
    };
    let results = run(call, retrying(5), 1..=3).await;
    assert_eq!(results, [Ok(1), Err(FailureReason::NotBegun("cannot begin")), Ok(3)]);
    assert_eq!(attempts, 3);
    let ended = run(|_: u32, _: u32, _: Handle| Err("cannot begin"), Options::ordered(), 1..=3).await;
    assert_eq!(ended, [Err(FailureReason::NotBegun("cannot begin"))], "under `Fail` it ends the work");
}

#[tokio::test(start_paused = true)]
async fn e28_a_later_attempt_that_cannot_begin_is_final() {
    for options in [Options::ordered(), Options::unordered()] {
        let call = |_: u32, attempt: u32, result: Handle| {
            if attempt == 2 {
                return Err("cannot begin");
            }
            result.complete_exceptionally("first");
            Ok(())
        };
        let options = options.timeout(ms(1000)).retry(Retry::FixedDelay { max_retries: 5, delay: ms(10) });
        let source = stream::iter([1]).chain(stream::pending());
        let operator = AsyncWaitOperator::new(built(options));
        let mut results = source.async_wait_on(operator, calls_of(call, time_out));
        let failed = results.next().await.unwrap().unwrap_err();
        assert_eq!((failed.reason, failed.attempts.count), (FailureReason::NotBegun("cannot begin"), 2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_function_that_panics_instead_of_calling_fails_its_record_alone() {
    let mut attempts = 0;
    let call = |n: u32, _: u32, result: Handle| {
        attempts += 1;
        assert_ne!(n, 2, "meant to panic");
        result.complete(n);
        Ok(())
    };
    let results = run(call, retrying(5), 1..=3).await;
    let [Ok(1), Err(FailureReason::Panicked(text)), Ok(3)] = &results[..] else { panic!("{results:?}") };
    assert!(text.contains("meant to panic"));
    assert_eq!(attempts, 3, "it is not asked again");
}

#[tokio::test(start_paused = true)]
async fn d07_a_hook_that_completes_nothing_leaves_the_record_to_its_call() {
    let desk = Desk::default();
    let mut asked = 0;
    let hook = |_: u32, result: Handle| {
        asked += 1;
        drop(result);
        Ok(())
    };
    let operator = AsyncWaitOperator::new(built(Options::ordered().timeout(ms(10))));
    let mut results = stream::iter([1]).async_wait_on(operator, calls_of(kept_by(&desk), hook));
    let waited = tokio::time::timeout(ms(1000), results.next()).await;
    assert!(waited.is_err(), "it waits on");
    assert_eq!(results.operator().in_flight(), 1);
    desk.take(1).complete(10);
    assert_eq!(results.next().await, Some(Ok(10)));
    drop(results);
    assert_eq!(asked, 1);
}

#[tokio::test(start_paused = true)]
async fn d02_d08_a_hook_answers_fails_or_panics_for_its_record() {
    type Hook = fn(u32, Handle) -> Result<(), &'static str>;
    let answers: Hook = |n, result| {
        result.complete(3 * n);
        Ok(())
    };
    let completes_with_error: Hook = |_, result| {
        result.complete_exceptionally("T");
        Ok(())
    };
    let panics: Hook = |_, _| panic!("no idea");
    let cases: [(Hook, _); 5] = [
        (answers, Ok(3)),
        (completes_with_error, Err(FailureReason::Error("T"))),
        (|_, _| Err("hook"), Err(FailureReason::Error("hook"))),
        (panics, Err(FailureReason::Panicked("no idea".into()))),
        (time_out, Err(FailureReason::Timeout)),
    ];
    for (hook, expected) in cases {
        let desk = Desk::default();
        let retry = Retry::FixedDelay { max_retries: 3, delay: ms(1) };
        let operator = AsyncWaitOperator::new(built(Options::ordered().timeout(ms(10)).retry(retry)));
        let results = stream::iter([1]).async_wait_on(operator, calls_of(kept_by(&desk), hook));
        assert_eq!(results.map(reasons).collect::<Vec<_>>().await, [expected]);
        assert_eq!(desk.len(), 1, "one call, and nothing was retried");
    }
}

#[tokio::test(start_paused = true)]
async fn d13_a_completion_while_the_hook_runs_does_not_interrupt_it() {
    let desk = Desk::default();
    let (of, mut finished) = (desk.clone(), false);
    let hook = |n: u32, result: Handle| {
        let handle = of.take(n);
        std::thread::spawn(move || handle.complete(7)).join().unwrap();
        result.complete(8);
        finished = true;
        Ok(())
    };
    let operator = AsyncWaitOperator::new(built(Options::ordered().timeout(ms(10))));
    let results = stream::iter([1]).async_wait_on(operator, calls_of(kept_by(&desk), hook));
    assert_eq!(results.map(reasons).collect::<Vec<_>>().await, [Ok(7)], "the first completion counts");
    assert!(finished);
}

#[tokio::test(start_paused = true)]
async fn c14_h03_completions_after_the_stream_is_gone_do_nothing() {
    for policy in [FailurePolicy::Fail, FailurePolicy::Keep] {
        let desk = Desk::default();
        let operator = AsyncWaitOperator::new(built(Options::unordered().on_failure(policy)));
        let mut results = stream::iter(1..=3).async_wait_on(operator, calls_of(kept_by(&desk), time_out));
        assert!(futures::poll!(results.next()).is_pending());
        desk.take(1).complete_exceptionally("E");
        assert!(results.next().await.unwrap().is_err());
        if policy == FailurePolicy::Fail {
            assert_eq!(results.next().await, None, "the failure was the last item");
        }
        let early = desk.take(2);
        std::thread::spawn(move || early.complete(2)).join().unwrap();
        drop(results);
        let late = desk.take(3);
        std::thread::spawn(move || late.complete(3)).join().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn h04_a_callback_function_is_closed_once_whatever_ends_its_stream() {
    for (inputs, policy, polls) in
        [(0, FailurePolicy::Keep, 1), (2, FailurePolicy::Fail, 9), (2, FailurePolicy::Keep, 1)]
    {
        let closed = Arc::new(Mutex::new(0));
        let call = |_: u32, _: u32, result: Handle| {
            result.complete_exceptionally("E");
            Ok(())
        };
        let function = Scripted { call, hook: time_out, closed: Arc::clone(&closed) };
        let context = FunctionContext::of(&built(Options::ordered()));
        let calls = CallbackCalls::open(function, &context).unwrap();
        let operator = AsyncWaitOperator::new(built(Options::ordered().on_failure(policy)));
        let mut results = stream::iter(0..inputs).async_wait_on(operator, calls);
        for _ in 0..polls {
            results.next().await;
        }
        drop(results);
        assert_eq!(*closed.lock().unwrap(), 1);
    }
}
