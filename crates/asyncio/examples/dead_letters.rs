//! Retries that listen to the service, and dead letters: `cargo run -p asyncio --example dead_letters`.
//!
//! Forty orders are billed. The service is busy now and then and says when to come again; some orders it can never bill,
//! some it has had already, and one call hangs. Prints where the orders have gone, each to exactly one place: answered,
//! kept without an answer, or the dead letters.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write;
use std::time::Duration;

use asyncio::{
    AsyncWaitExt, AsyncWaitOperator, CallContext, CallError, FailurePolicy, FailureReason, FutureCalls,
    NoKey, Options, Retry, RetryPredicate, Verdict,
};
use futures::{StreamExt, stream};

const ORDERS: u32 = 40;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum BillingError {
    #[error("busy, come again in {retry_after:?}")]
    Busy { retry_after: Duration },
    #[error("no such customer")]
    UnknownCustomer,
    #[error("billed before")]
    Duplicate,
}

/// Stands for a service. What it says depends on the order and on how often it was asked.
async fn bill(order: u32, attempt: u32) -> Result<u32, BillingError> {
    tokio::time::sleep(Duration::from_millis(1)).await;
    match order {
        // The deadline ends this call.
        13 => std::future::pending().await,
        _ if order % 10 == 4 => Err(BillingError::UnknownCustomer),
        _ if order % 10 == 7 => Err(BillingError::Duplicate),
        // Busy once, or for longer than anybody asks.
        _ if order.is_multiple_of(5) && attempt == 1 || order == 20 => {
            Err(BillingError::Busy { retry_after: Duration::from_millis(20) })
        }
        _ => Ok(order * 100),
    }
}

/// What is worth another attempt, and what becomes of the orders that fail for good.
struct Judge;

impl RetryPredicate<u32, BillingError> for Judge {
    fn judge(&self, outcome: &Result<u32, CallError<BillingError>>) -> Verdict {
        match outcome {
            // At least this long, and no less than the strategy's own pause.
            Err(CallError::Error(BillingError::Busy { retry_after })) => Verdict::RetryAfter(*retry_after),
            _ => Verdict::Final,
        }
    }

    fn policy(&self, reason: &FailureReason<BillingError>, options: FailurePolicy) -> FailurePolicy {
        match reason {
            FailureReason::Error(BillingError::Duplicate) => FailurePolicy::Keep,
            _ => options,
        }
    }
}

/// What is printed; an error if an order is in no place, or in two.
pub(crate) async fn run() -> Result<String, Box<dyn Error>> {
    let options = Options::unordered()
        .timeout(Duration::from_millis(500))
        .retry(Retry::FixedDelay { max_retries: 2, delay: Duration::from_millis(5) })
        .retry_after_end(true)
        .on_failure(FailurePolicy::DeadLetter)
        .build()?;
    let calls =
        FutureCalls::with_context(|order: &u32, context: CallContext| bill(*order, context.attempt()));
    let operator = AsyncWaitOperator::with(options, NoKey, Judge);
    let mut results = stream::iter(1..=ORDERS).async_wait_on(operator, calls);

    let (mut billed, mut kept, mut dead) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
    while let Some(result) = results.next().await {
        let first_time = match result {
            Ok(amount) => billed.insert(amount / 100),
            Err(failed) if failed.policy == FailurePolicy::Keep => kept.insert(failed.input),
            Err(failed) => dead.insert(failed.input, failed).is_none(),
        };
        if !first_time {
            return Err("an order has come twice".into());
        }
    }
    let places = |n| [billed.contains(&n), kept.contains(&n), dead.contains_key(&n)];
    if (1..=ORDERS).any(|n| places(n).into_iter().filter(|&there| there).count() != 1) {
        return Err("an order is in no place, or in two".into());
    }
    let figures = results.operator().figures(results.now());
    let mut text = format!("{} billed, {} kept, {} dead letters", billed.len(), kept.len(), dead.len());
    write!(text, "; {} calls, {} of them retries", figures.calls, figures.retries)?;
    for failed in dead.values() {
        let (input, reason, attempts) = (failed.input, &failed.reason, failed.attempts.count);
        write!(text, "\n  order {input}: {reason} ({attempts} attempts)")?;
    }
    Ok(text)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run().await?);
    Ok(())
}
