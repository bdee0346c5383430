//! The face of an `AsyncFunction`: its life, its context, and its word on timeouts.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use tokio::time::sleep;

use super::{built, ms};
use crate::*;

type Answer = Result<u32, &'static str>;
type Call = Box<dyn Fn(u32, CallContext) -> BoxFuture<'static, Answer> + Send + Sync>;
type Hook = Box<dyn Fn(u32, &CallContext) -> OnTimeout<u32, &'static str> + Send + Sync>;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn say(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Says when it is dropped.
struct Guard(Log, &'static str);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.say(self.1);
    }
}

struct Scripted {
    log: Log,
    opens: bool,
    call: Call,
    hook: Hook,
}

impl AsyncFunction<u32> for Scripted {
    type Output = u32;
    type Error = &'static str;

    fn open(&mut self, context: &FunctionContext) -> Result<(), &'static str> {
        self.log.say(format!("open {context}"));
        if self.opens { Ok(()) } else { Err("cannot open") }
    }

    async fn call(&self, input: &u32, context: &CallContext) -> Answer {
        (self.call)(*input, *context).await
    }

    fn timeout(&self, input: &u32, context: &CallContext) -> OnTimeout<u32, &'static str> {
        (self.hook)(*input, context)
    }

    fn close(&self) {
        self.log.say("close");
    }
}

fn scripted<Fut>(log: &Log, call: impl Fn(u32, CallContext) -> Fut + Send + Sync + 'static) -> Scripted
where
    Fut: Future<Output = Answer> + Send + 'static,
{
    let call: Call = Box::new(move |input, context| call(input, context).boxed());
    Scripted { log: log.clone(), opens: true, call, hook: Box::new(|_, _| OnTimeout::Fail) }
}

async fn never(_: u32, _: CallContext) -> Answer {
    std::future::pending().await
}

async fn doubled(input: u32, _: CallContext) -> Answer {
    sleep(ms(1)).await;
    Ok(2 * input)
}

async fn refused(_: u32, _: CallContext) -> Answer {
    sleep(ms(1)).await;
    Err("no")
}

fn opened(function: Scripted, options: &Options) -> FunctionCalls<u32, Scripted> {
    FunctionCalls::open(function, &FunctionContext::of(options)).unwrap()
}

/// Runs the function over these inputs: results, or the reasons of failures.
async fn run(
    function: Scripted,
    options: Options,
    inputs: Vec<u32>,
) -> Vec<Result<u32, FailureReason<&'static str>>> {
    let calls = opened(function, &options);
    let results = stream::iter(inputs).async_wait_on(AsyncWaitOperator::new(options), calls);
    results.map(|result| result.map_err(|failed| failed.reason)).collect().await
}

#[tokio::test(start_paused = true)]
async fn h04_a_function_is_opened_once_before_and_closed_once_after_its_calls() {
    let log = Log::default();
    let options = built(Options::ordered().name("prices"));
    assert_eq!(run(scripted(&log, doubled), options, vec![1, 2]).await, [Ok(2), Ok(4)]);
    assert_eq!(log.taken(), ["open prices (1/1)", "close"]);
}

#[tokio::test(start_paused = true)]
async fn h04_a_function_is_closed_once_when_its_stream_fails() {
    let log = Log::default();
    let options = built(Options::ordered());
    let results = run(scripted(&log, refused), options, vec![1, 2, 3]).await;
    assert_eq!(results, [Err(FailureReason::Error("no"))]);
    assert_eq!(log.taken()[1..], ["close"]);
}

#[tokio::test(start_paused = true)]
async fn h02_h04_a_function_is_closed_once_when_its_stream_is_dropped_polled_or_not() {
    for polled in [false, true] {
        let log = Log::default();
        let options = built(Options::ordered());
        let calls = opened(scripted(&log, never), &options);
        let mut results = stream::iter([1, 2]).async_wait_on(AsyncWaitOperator::new(options), calls);
        if polled {
            assert!(futures::poll!(results.next()).is_pending());
        }
        drop(results);
        tokio::task::yield_now().await;
        assert_eq!(log.taken()[1..], ["close"], "polled: {polled}");
    }
}

#[tokio::test(start_paused = true)]
async fn h04_a_function_that_cannot_be_opened_is_closed_once_and_says_why() {
    let log = Log::default();
    let function = Scripted { opens: false, ..scripted(&log, doubled) };
    let context = FunctionContext::of(&built(Options::ordered().name("prices"))).subtask(2, 4);
    let error = FunctionCalls::<u32, _>::open(function, &context).map(drop).unwrap_err();
    assert_eq!(error, "cannot open");
    assert_eq!(log.taken(), ["open prices (3/4)", "close"]);
}

#[tokio::test(start_paused = true)]
async fn h04_calls_that_run_are_dropped_before_the_function_is_closed() {
    let log = Log::default();
    let said = log.clone();
    let function = scripted(&log, move |input, _| {
        let guard = Guard(said.clone(), "dropped");
        async move {
            sleep(ms(if input == 1 { 1 } else { 1_000_000 })).await;
            drop(guard);
            Err("no")
        }
    });
    let results = run(function, built(Options::ordered()), vec![1, 2]).await;
    assert_eq!(results.len(), 1);
    assert_eq!(
        log.taken()[1..],
        ["dropped", "dropped", "close"],
        "the call that failed, the one that runs, the end"
    );
}

/// State access, accumulators, broadcast variables and the distributed cache, which the original's context refuses at run
/// time, are no methods of this one: asking for them does not compile.
#[tokio::test(start_paused = true)]
async fn c16_the_context_tells_names_and_numbers_and_has_no_state_to_ask_for() {
    let context = FunctionContext::of(&built(Options::ordered().name("prices"))).subtask(2, 4);
    assert_eq!((context.operator(), context.subtask_index(), context.parallelism()), ("prices", 2, 4));
    assert_eq!(context.to_string(), "prices (3/4)");
    // Its metrics are its own fields, which it may use from wherever its calls run.
    let log = Log::default();
    let counted = log.clone();
    let function = scripted(&log, move |input, _| {
        counted.say(format!("asked about {input}"));
        async move { Ok(input) }
    });
    run(function, built(Options::ordered()), vec![7]).await;
    assert!(log.taken().contains(&"asked about 7".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn d02_d08_the_hook_says_what_follows_a_timeout() {
    let cases: [(Hook, Result<u32, FailureReason<&str>>); 4] = [
        (Box::new(|input, _| OnTimeout::Complete(input * 3)), Ok(21)),
        (Box::new(|_, _| OnTimeout::Error("too slow")), Err(FailureReason::Error("too slow"))),
        (Box::new(|_, _| OnTimeout::Fail), Err(FailureReason::Timeout)),
        (Box::new(|_, _| panic!("no idea")), Err(FailureReason::Panicked("no idea".into()))),
    ];
    for (hook, expected) in cases {
        let retry = Retry::FixedDelay { max_retries: 3, delay: ms(1) };
        let options = built(Options::ordered().timeout(ms(10)).retry(retry));
        let begun = tokio::time::Instant::now();
        let log = Log::default();
        let function = Scripted { hook, ..scripted(&log, never) };
        assert_eq!(run(function, options, vec![7]).await, [expected]);
        assert_eq!(begun.elapsed(), ms(10));
    }
}

#[tokio::test(start_paused = true)]
async fn d02_the_hook_is_told_the_input_and_the_last_attempt_and_is_asked_once() {
    let log = Log::default();
    let said = log.clone();
    let hook: Hook = Box::new(move |input, context| {
        said.say(format!("timeout of {input} at attempt {}", context.attempt()));
        OnTimeout::Complete(0)
    });
    let retry = Retry::FixedDelay { max_retries: 9, delay: ms(10) };
    let options = built(Options::ordered().timeout(ms(25)).retry(retry));
    let function = Scripted { hook, ..scripted(&log, |_, _| async { Err("no") }) };
    let calls = opened(function, &options);
    let source = stream::iter([7]).chain(stream::pending());
    let mut results = source.async_wait_on(AsyncWaitOperator::new(options), calls);
    assert_eq!(results.next().await, Some(Ok(0)));
    assert_eq!(log.taken()[1..], ["timeout of 7 at attempt 3"]);
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_told_its_number_its_deadline_and_the_same_key() {
    let contexts = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&contexts);
    let function = scripted(&Log::default(), move |input, context| {
        seen.lock().unwrap().push((input, context));
        async move { if context.attempt() < 3 { Err("no") } else { Ok(input) } }
    });
    let retry = Retry::FixedDelay { max_retries: 9, delay: ms(10) };
    let options = built(Options::ordered().timeout(ms(30)).attempt_timeout(ms(15)).retry(retry));
    let calls = opened(function, &options);
    let source = stream::iter([7, 8]).chain(stream::pending());
    let mut results = source.async_wait_on(AsyncWaitOperator::new(options), calls);
    assert_eq!(results.next().await, Some(Ok(7)));
    assert_eq!(results.next().await, Some(Ok(8)));
    let contexts = contexts.lock().unwrap();
    let of = |input| contexts.iter().filter(move |told| told.0 == input).map(|told| told.1);
    for input in [7, 8] {
        assert_eq!(of(input).map(|told| told.attempt()).collect::<Vec<_>>(), [1, 2, 3]);
        let deadlines: Vec<_> = of(input).map(|told| told.deadline().unwrap().as_millis()).collect();
        assert_eq!(deadlines, [15, 25, 30], "the attempt's, then the record's");
        let remaining: Vec<_> = of(input).map(|told| told.remaining().unwrap()).collect();
        assert_eq!(remaining, [ms(15), ms(15), ms(10)]);
        assert_eq!(
            of(input).map(|told| told.idempotency_key()).min(),
            of(input).map(|told| told.idempotency_key()).max()
        );
    }
    assert_ne!(contexts[0].1.idempotency_key(), of(8).next().unwrap().idempotency_key());
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_function_that_panics_fails_its_record_alone() {
    let function = scripted(&Log::default(), |input, _| async move {
        assert_ne!(input, 2, "meant to panic");
        Ok(input)
    });
    let results =
        run(function, built(Options::ordered().on_failure(FailurePolicy::Keep)), vec![1, 2, 3]).await;
    let [Ok(1), Err(FailureReason::Panicked(text)), Ok(3)] = &results[..] else { panic!("{results:?}") };
    assert!(text.contains("meant to panic"));
}
