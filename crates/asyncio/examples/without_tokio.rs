//! The operator without an async runtime: `cargo run -p asyncio --no-default-features --example without_tokio`.
//!
//! One thread owns the operator and drives it; four others make the calls. The owner sleeps until a completion wakes it or
//! the next deadline comes. Prints the outcomes in order; of the call that nobody answers, that its time was over.

use std::error::Error;
use std::fmt::Write;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use asyncio::{
    AsyncWaitOperator, CompletionInbox, Effect, FailurePolicy, FailureReason, Options, Outcome, Output,
    ResultFuture,
};
use runtime_core::{Record, StreamElement, Tick};

const RECORDS: u32 = 20;
const LOST: u32 = 7;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

struct Job {
    input: u32,
    result: ResultFuture<u32, String>,
}

/// Makes calls until there are no more; gives back what it was never to answer.
fn work(jobs: &Mutex<Receiver<Job>>) -> Vec<Job> {
    let mut lost = Vec::new();
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) if job.input == LOST => lost.push(job),
            Ok(Job { input, result }) => result.complete(input * input),
            Err(_) => return lost,
        }
    }
}

/// What is printed; an error if a record has no outcome, or a wrong one.
// A program is where clocks are read.
#[allow(clippy::disallowed_methods)]
pub(crate) fn run() -> Result<String, Box<dyn Error>> {
    let start = Instant::now();
    let now = || Tick::ZERO + start.elapsed();

    let (jobs, work_to_do) = channel();
    let work_to_do = Arc::new(Mutex::new(work_to_do));
    let workers: Vec<_> = (0..4)
        .map(|_| Arc::clone(&work_to_do))
        .map(|work_to_do| thread::spawn(move || work(&work_to_do)))
        .collect();

    let options = Options::ordered().capacity(5).timeout(Duration::from_millis(200));
    let mut operator = AsyncWaitOperator::new(options.on_failure(FailurePolicy::Keep).build()?);
    let mut inbox = CompletionInbox::new();
    // It is empty: nothing has been called yet.
    let _ = inbox.register(&Waker::from(Arc::new(Unpark(thread::current()))));

    let (mut inputs, mut text, mut next) = ((1..=RECORDS).peekable(), String::new(), 1);
    while !operator.is_drained() {
        // Completions before timers: an answer that came in time is not late.
        inbox.deliver_to(&mut operator, now());
        operator.advance(now());
        while let Some(input) = inputs.next_if(|_| operator.is_available()) {
            operator.push(StreamElement::Record(Record::new(input)), now())?;
        }
        if inputs.peek().is_none() {
            operator.end_of_input(now());
        }
        while let Some(effect) = operator.next_effect() {
            // A thread cannot be stopped: what comes from an abandoned call is ignored.
            if let Effect::Start { entry, attempt } = effect
                && let Some(record) = operator.input(entry)
            {
                jobs.send(Job { input: record.value, result: inbox.handle(entry, attempt) })?;
            }
        }
        let mut left = false;
        while let Some(output) = operator.next_output() {
            let Output::Record { input, outcome, .. } = output else { continue };
            let said = match outcome {
                Outcome::Completed(square) if square == next * next => square.to_string(),
                Outcome::Failed { reason: FailureReason::Timeout, .. } => "timed out".to_owned(),
                other => return Err(format!("{next} ended in {other:?}").into()),
            };
            if input.value != next {
                return Err(format!("{} came where {next} should", input.value).into());
            }
            writeln!(text, "{next}: {said}")?;
            (left, next) = (true, next + 1);
        }
        if left || operator.is_drained() {
            // There is room again.
            continue;
        }
        match operator.next_wakeup() {
            Some(at) => thread::park_timeout(at.since(now())),
            None => thread::park(),
        }
    }
    drop(jobs);
    let lost: usize =
        workers.into_iter().filter_map(|worker| worker.join().ok()).map(|jobs| jobs.len()).sum();
    writeln!(text, "{} records, {lost} call(s) never answered", next - 1)?;
    if next - 1 == RECORDS { Ok(text) } else { Err("a record has no outcome".into()) }
}

fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", run()?);
    Ok(())
}
