//! Defaults, and what is refused.

use super::*;

const MS: Duration = Duration::from_millis(1);

fn exponential(initial: Duration, max: Duration, multiplier: f64, jitter: f64) -> Retry {
    Retry::ExponentialDelay { max_retries: 3, initial, max, multiplier, jitter, seed: 0 }
}

#[test]
fn j01_capacity_is_100_unless_said_otherwise() {
    assert_eq!(Options::ordered().build().unwrap().capacity(), 100);
}

#[test]
fn a09_j02_capacity_0_is_refused_by_name() {
    let error = Options::ordered().capacity(0).build().unwrap_err();
    assert_eq!(error, OptionsError::Capacity(0));
    assert!(error.to_string().contains("capacity is 0"), "{error}");
}

#[test]
fn e12_retry_without_timeout_is_refused() {
    let retry = Retry::FixedDelay { max_retries: 1, delay: MS };
    assert_eq!(Options::ordered().retry(retry).build(), Err(OptionsError::RetryWithoutTimeout));
}

#[test]
fn e26_and_its_like_are_refused_each_by_its_own_error() {
    let timed = || Options::unordered().timeout(MS);
    let fixed = |max_retries, delay| Retry::FixedDelay { max_retries, delay };
    let nan = timed().retry(exponential(MS, MS, f64::NAN, 0.0)).build();
    assert!(matches!(nan, Err(OptionsError::Multiplier(_))));
    let cases = [
        (Options::ordered().timeout(Duration::ZERO), OptionsError::ZeroTimeout),
        (Options::ordered().attempt_timeout(Duration::ZERO), OptionsError::ZeroAttemptTimeout),
        (Options::keyed().max_in_flight_per_key(0), OptionsError::ZeroInFlightPerKey),
        (
            Options::ordered().timeout(Duration::MAX),
            OptionsError::TooLong { option: "timeout", duration: Duration::MAX },
        ),
        (
            Options::ordered().attempt_timeout(Duration::MAX),
            OptionsError::TooLong { option: "attempt_timeout", duration: Duration::MAX },
        ),
        (
            timed().retry(fixed(1, Duration::MAX)),
            OptionsError::TooLong { option: "retry.delay", duration: Duration::MAX },
        ),
        (
            timed().retry(exponential(MS, Duration::MAX, 2.0, 0.0)),
            OptionsError::TooLong { option: "retry.max", duration: Duration::MAX },
        ),
        (
            timed().retry_budget(RetryBudget { per_record: 0.1, reserve: 1 }),
            OptionsError::RetryBudgetWithoutRetry,
        ),
        (
            timed().retry(fixed(1, MS)).retry_budget(RetryBudget { per_record: -0.1, reserve: 1 }),
            OptionsError::RetryBudget(-0.1),
        ),
        (timed().retry(fixed(0, MS)), OptionsError::ZeroRetries),
        (timed().retry(fixed(1, Duration::ZERO)), OptionsError::ZeroDelay("delay")),
        (timed().retry(exponential(Duration::ZERO, MS, 2.0, 0.0)), OptionsError::ZeroDelay("initial")),
        (
            timed().retry(exponential(2 * MS, MS, 2.0, 0.0)),
            OptionsError::MaxBelowInitial { initial: 2 * MS, max: MS },
        ),
        (timed().retry(exponential(MS, MS, 0.5, 0.0)), OptionsError::Multiplier(0.5)),
        (timed().retry(exponential(MS, MS, f64::INFINITY, 0.0)), OptionsError::Multiplier(f64::INFINITY)),
        (timed().retry(exponential(MS, MS, 1.0, 1.5)), OptionsError::Jitter(1.5)),
        (timed().retry(exponential(MS, MS, 1.0, -0.1)), OptionsError::Jitter(-0.1)),
    ];
    for (builder, error) in cases {
        assert_eq!(builder.build(), Err(error));
    }
}
