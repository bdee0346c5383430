//! When a registration is tried again: the pure core.

use super::options::RegistrationOptions;
use super::reply::Reply;
use crate::error::{RpcError, RpcErrorKind};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use runtime_core::Tick;
use std::time::Duration;

/// What happens to a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<S> {
    /// It begins.
    Start,
    /// Time has passed: a deadline or the end of a pause may be reached.
    TimePassed,
    /// An attempt was answered.
    Answered {
        /// Which attempt, as [`Effect::Attempt`] numbered it.
        attempt: u64,
        /// With what.
        reply: Reply<S>,
    },
    /// An attempt failed.
    Failed {
        /// Which attempt.
        attempt: u64,
        /// How.
        error: RpcError,
    },
    /// It is no longer wanted.
    Cancel,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect<S> {
    /// Make this attempt, give the one before up, and come back at the deadline.
    Attempt {
        /// Counts from 1.
        number: u64,
        /// When it is given up.
        deadline: Tick,
    },
    /// Come back at this time.
    WakeAt(Tick),
    /// Write a line for the operator.
    Tell(Notice),
    /// Registered: the end.
    Registered(S),
    /// Rejected for this reason: the end.
    Rejected(String),
}

/// What an operator is told: once when waiting begins and once when it ends, however many attempts lie between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The first attempt did not succeed.
    WaitingBegins {
        /// Why.
        cause: String,
    },
    /// It has succeeded at last, or was rejected.
    WaitingEnds {
        /// After how long.
        waited: Duration,
        /// After how many attempts.
        attempts: u64,
    },
}

enum State {
    Idle,
    Attempting { deadline: Tick },
    Pausing { until: Tick },
    Ended,
}

/// One registration, from its start to its end (Flink: `RetryingRegistration`).
///
/// An attempt that hits its deadline is followed at once by one with twice the time. An error, or the answer "not
/// now", is followed by a pause and starts over with the initial deadline. Late answers are ignored.
pub struct RetryingRegistration {
    options: RegistrationOptions,
    rng: SmallRng,
    state: State,
    attempt: u64,
    timeout: Duration,
    error_pause: Duration,
    refused_pause: Duration,
    waiting_since: Option<Tick>,
}

impl RetryingRegistration {
    /// A registration that has not begun. Its jitter is drawn from `seed`.
    #[must_use]
    pub fn new(options: RegistrationOptions, seed: u64) -> Self {
        Self {
            rng: SmallRng::seed_from_u64(seed),
            state: State::Idle,
            attempt: 0,
            timeout: options.initial_timeout,
            error_pause: options.error_pause.initial,
            refused_pause: options.refused_pause.initial,
            waiting_since: None,
            options,
        }
    }

    /// Whether it has come to its end.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Takes an event and says what is to be done.
    pub fn on<S>(&mut self, event: Event<S>, now: Tick) -> Vec<Effect<S>> {
        match (event, &self.state) {
            (Event::Cancel, _) => {
                self.state = State::Ended;
                Vec::new()
            }
            (Event::Start, State::Idle) => vec![self.attempt(now)],
            (Event::TimePassed, State::Attempting { deadline }) if now >= *deadline => {
                let cause = format!("no answer within {:?}", self.timeout);
                let mut effects = self.begin_waiting(cause, now);
                self.timeout = self.timeout.saturating_mul(2).min(self.options.max_timeout);
                effects.push(self.attempt(now));
                effects
            }
            (Event::TimePassed, State::Attempting { deadline: at } | State::Pausing { until: at })
                if now < *at =>
            {
                vec![Effect::WakeAt(*at)]
            }
            (Event::TimePassed, State::Pausing { .. }) => vec![self.attempt(now)],
            (Event::Answered { attempt, reply }, State::Attempting { .. }) if attempt == self.attempt => {
                self.answered(reply, now)
            }
            (Event::Failed { attempt, error }, State::Attempting { .. }) if attempt == self.attempt => {
                self.failed(&error, now)
            }
            _ => Vec::new(),
        }
    }

    fn answered<S>(&mut self, reply: Reply<S>, now: Tick) -> Vec<Effect<S>> {
        match reply {
            Reply::Success(success) => self.end(Effect::Registered(success), now),
            Reply::Rejection(reason) => self.end(Effect::Rejected(reason), now),
            Reply::Failure(reason) => {
                // The peer is there: should it vanish, waiting for it starts with short pauses again.
                self.error_pause = self.options.error_pause.initial;
                self.refused(format!("not accepted: {reason}"), now)
            }
        }
    }

    fn failed<S>(&mut self, error: &RpcError, now: Tick) -> Vec<Effect<S>> {
        match error.kind {
            // A deadline of the transport's own, before ours.
            RpcErrorKind::Deadline => {
                let mut effects = self.begin_waiting(error.to_string(), now);
                self.timeout = self.timeout.saturating_mul(2).min(self.options.max_timeout);
                effects.push(self.attempt(now));
                effects
            }
            // Nothing changes before somebody installs another version.
            RpcErrorKind::Version => self.refused(error.to_string(), now),
            _ => {
                let pause = self.error_pause;
                self.error_pause = self.options.error_pause.after(pause);
                self.pause(error.to_string(), pause, now)
            }
        }
    }

    fn refused<S>(&mut self, cause: String, now: Tick) -> Vec<Effect<S>> {
        let pause = self.refused_pause;
        self.refused_pause = self.options.refused_pause.after(pause);
        self.pause(cause, pause, now)
    }

    fn pause<S>(&mut self, cause: String, pause: Duration, now: Tick) -> Vec<Effect<S>> {
        let mut effects = self.begin_waiting(cause, now);
        let until = now + self.jittered(pause);
        self.timeout = self.options.initial_timeout;
        self.state = State::Pausing { until };
        effects.push(Effect::WakeAt(until));
        effects
    }

    fn attempt<S>(&mut self, now: Tick) -> Effect<S> {
        self.attempt += 1;
        let deadline = now + self.timeout;
        self.state = State::Attempting { deadline };
        Effect::Attempt { number: self.attempt, deadline }
    }

    fn end<S>(&mut self, last: Effect<S>, now: Tick) -> Vec<Effect<S>> {
        self.state = State::Ended;
        let told = self.waiting_since.map(|since| {
            Effect::Tell(Notice::WaitingEnds { waited: now.since(since), attempts: self.attempt })
        });
        told.into_iter().chain([last]).collect()
    }

    fn begin_waiting<S>(&mut self, cause: String, now: Tick) -> Vec<Effect<S>> {
        if self.waiting_since.is_some() {
            return Vec::new();
        }
        self.waiting_since = Some(now);
        vec![Effect::Tell(Notice::WaitingBegins { cause })]
    }

    fn jittered(&mut self, pause: Duration) -> Duration {
        let jitter = self.options.jitter.clamp(0.0, 1.0);
        let factor = 1.0 + jitter * (2.0 * self.rng.random::<f64>() - 1.0);
        pause.mul_f64(factor)
    }
}
