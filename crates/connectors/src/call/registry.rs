//! Calls written in Rust, by name.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::FutureExt;

use super::answer::AnswerRules;
use super::{Answer, BuildError, Call, CallFailure, CallOutcome, CallRequest, Called};

/// The calls that a program brings with it. Cloning shares them.
///
/// ```
/// use connectors::call::{Answer, CallRequest, RustCalls};
///
/// let mut calls = RustCalls::default();
/// calls.register("shout", |request: CallRequest| async move {
///     let Some(name) = request.record.field("name") else { return Ok(Answer::Empty) };
///     Ok(Answer::Value(name.text().to_uppercase().into()))
/// });
/// assert_eq!(calls.names(), ["shout"]);
/// ```
#[derive(Clone, Default)]
pub struct RustCalls {
    by_name: BTreeMap<String, Arc<dyn Call>>,
}

impl RustCalls {
    /// Registers an `async fn` or a closure that returns a future; of equal names the last counts.
    ///
    /// The future runs on the I/O runtime beside heartbeats: it must not block. A panic is a terminal failure of the
    /// record.
    pub fn register<F, Fut>(&mut self, name: impl Into<String>, call: F) -> &mut Self
    where
        F: Fn(CallRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = CallOutcome> + Send + 'static,
    {
        self.register_call(name, Arc::new(AsyncFn(call)))
    }

    /// Registers a [`Call`], which may answer at once; of equal names the last counts.
    pub fn register_call(&mut self, name: impl Into<String>, call: Arc<dyn Call>) -> &mut Self {
        self.by_name.insert(name.into(), call);
        self
    }

    /// The registered names, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.by_name.keys().cloned().collect()
    }

    pub(super) fn build(&self, name: &str, rules: AnswerRules) -> Result<Arc<dyn Call>, BuildError> {
        match self.by_name.get(name) {
            Some(call) => Ok(Arc::new(Checked { call: Arc::clone(call), rules })),
            None => Err(BuildError::UnknownRustCall { name: name.to_owned(), known: self.names() }),
        }
    }
}

impl fmt::Debug for RustCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

struct AsyncFn<F>(F);

impl<F, Fut> Call for AsyncFn<F>
where
    F: Fn(CallRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = CallOutcome> + Send + 'static,
{
    fn call(&self, request: &CallRequest) -> Called {
        Called::Pending((self.0)(request.clone()).boxed())
    }
}

/// Keeps what a user's code may do wrong to the record that it did it with.
struct Checked {
    call: Arc<dyn Call>,
    rules: AnswerRules,
}

impl Call for Checked {
    fn call(&self, request: &CallRequest) -> Called {
        let rules = self.rules;
        match catch_unwind(AssertUnwindSafe(|| self.call.call(request))) {
            Ok(Called::Ready(outcome)) => Called::Ready(checked(rules, outcome)),
            Ok(Called::NotMade(outcome)) => Called::NotMade(checked(rules, outcome)),
            Ok(Called::Pending(future)) => {
                let caught = AssertUnwindSafe(future).catch_unwind();
                let outcome =
                    caught.map(move |r| r.map_or_else(|panic| Err(panicked(&*panic)), |o| checked(rules, o)));
                Called::Pending(outcome.boxed())
            }
            Err(panic) => Called::Ready(Err(panicked(&*panic))),
        }
    }
}

fn checked(rules: AnswerRules, outcome: CallOutcome) -> CallOutcome {
    match outcome? {
        Answer::Value(raw) => rules.check(&raw),
        Answer::Empty => Ok(Answer::Empty),
    }
}

fn panicked(panic: &(dyn Any + Send)) -> CallFailure {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    CallFailure::terminal(format!("the call panicked: {}", text.unwrap_or("without a message")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::testing::request;

    const RULES: AnswerRules = AnswerRules { max: 100, object: false };

    fn outcome_of(called: Called) -> CallOutcome {
        match called {
            Called::Ready(outcome) | Called::NotMade(outcome) => outcome,
            Called::Pending(future) => futures::executor::block_on(future),
        }
    }

    fn calls() -> RustCalls {
        let mut calls = RustCalls::default();
        calls
            .register("spaced", |_| async { Ok(Answer::Value("{ \"a\" : 1 }".into())) })
            .register("broken", |_| async { Ok(Answer::Value("oops".into())) })
            .register("panics", |_| async { panic!("no such thing") })
            .register("key", |r: CallRequest| async move {
                Ok(Answer::Value(format!("\"{}\"", r.idempotency_key).into()))
            });
        calls
    }

    fn ask(name: &str) -> CallOutcome {
        outcome_of(calls().build(name, RULES).unwrap().call(&request("{}")))
    }

    #[test]
    fn an_answer_is_compacted_and_checked() {
        assert_eq!(ask("spaced"), Ok(Answer::Value(r#"{"a":1}"#.into())));
        assert!(ask("broken").unwrap_err().message.contains("no JSON"));
    }

    #[test]
    fn a_panic_is_a_terminal_failure_of_the_record() {
        let failure = ask("panics").unwrap_err();
        assert_eq!(failure, CallFailure::terminal("the call panicked: no such thing"));
    }

    #[test]
    fn a_call_is_given_the_idempotency_key() {
        let expected = format!("\"{}\"", request("{}").idempotency_key);
        assert_eq!(ask("key"), Ok(Answer::Value(expected.into())));
    }

    #[test]
    fn a_name_that_nobody_registered_is_refused_with_those_that_are_there() {
        let Err(error) = calls().build("other", RULES) else { panic!("built") };
        assert!(error.to_string().contains("broken, key, panics, spaced"), "{error}");
    }
}
