//! Who runs what: everything of the user's but the completion itself, on the thread that polls.

use std::sync::{Arc, Mutex};
use std::thread::{ThreadId, current};

use futures::{StreamExt, stream};

use super::{built, ms};
use crate::*;

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(&'static str, ThreadId)>>>);

impl Seen {
    fn here(&self, what: &'static str) {
        self.0.lock().unwrap().push((what, current().id()));
    }
}

struct Function(Seen);

impl CallbackFunction<u32> for Function {
    type Output = u32;
    type Error = &'static str;

    fn open(&mut self, _: &FunctionContext) -> Result<(), &'static str> {
        self.0.here("open");
        Ok(())
    }

    fn invoke(
        &mut self,
        n: &u32,
        _: &CallContext,
        result: ResultFuture<u32, &'static str>,
    ) -> Result<(), &'static str> {
        self.0.here("invoke");
        let (n, seen) = (*n, self.0.clone());
        if n > 0 {
            std::thread::spawn(move || {
                result.complete_by(move || {
                    seen.here("supplier");
                    Err("again")
                });
            });
        } else {
            // Nobody ever completes it.
            std::mem::forget(result);
        }
        Ok(())
    }

    fn timeout(
        &mut self,
        _: &u32,
        _: &CallContext,
        result: ResultFuture<u32, &'static str>,
    ) -> Result<(), &'static str> {
        self.0.here("timeout");
        result.complete(0);
        Ok(())
    }

    fn close(&mut self) {
        self.0.here("close");
    }
}

#[test]
fn c13_all_user_code_but_the_completion_runs_on_the_thread_that_polls() {
    for order in [Order::Ordered, Order::Unordered, Order::Keyed] {
        let seen = Seen::default();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (told, judging) = (seen.clone(), seen.clone());
        // `block_on` polls on this thread, whatever threads the runtime has beside.
        runtime.block_on(async move {
            let retry = Retry::FixedDelay { max_retries: 1_000_000, delay: ms(1) };
            let options = built(Options::with_order(order).timeout(ms(20)).retry(retry));
            let calls = CallbackCalls::open(Function(told), &FunctionContext::of(&options)).unwrap();
            let keys = seen.clone();
            let selector = move |n: &u32| {
                keys.here("key");
                Some(*n)
            };
            let predicate = move |_: &Result<u32, CallError<&str>>| {
                judging.here("predicate");
                Verdict::Retry
            };
            let operator = AsyncWaitOperator::with(options, selector, predicate);
            let source = stream::iter([0, 1, 2]).chain(stream::once(std::future::pending()));
            let mut results = source.async_wait_on(operator, calls);
            for _ in 0..3 {
                assert_eq!(results.next().await, Some(Ok(0)));
            }
            seen.here("emission");
            drop(results);
            let seen = seen.0.lock().unwrap();
            let here = current().id();
            assert!(seen.iter().all(|&(_, thread)| thread == here), "{seen:?}");
            for what in ["open", "invoke", "supplier", "predicate", "timeout", "close"] {
                assert!(seen.iter().any(|&(done, _)| done == what), "{what} was not seen: {seen:?}");
            }
            assert_eq!(seen.iter().any(|&(done, _)| done == "key"), order == Order::Keyed);
        });
    }
}
