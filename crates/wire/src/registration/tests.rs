//! Tests of registration: the core on a table of times, the shell on a paused clock.

use super::{
    Effect, Event, Notice, Registered, RegistrationOptions, Rejected, Reply, RetryingRegistration, register,
};
use crate::error::{RpcError, RpcErrorKind};
use crate::v1;
use runtime_core::time::TokioClock;
use runtime_core::{Epoch, Incarnation, InstanceId, Tick};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Without jitter, so that times are exact.
fn exact() -> RegistrationOptions {
    RegistrationOptions { jitter: 0.0, ..RegistrationOptions::default() }
}

/// A core with its clock.
struct Course {
    core: RetryingRegistration,
    now: Tick,
    attempt: u64,
    /// The next time at which the core wants to be asked.
    wake: Tick,
    told: Vec<Notice>,
    end: Option<Result<&'static str, String>>,
}

impl Course {
    fn start(options: RegistrationOptions) -> Self {
        let mut course = Self {
            core: RetryingRegistration::new(options, 1),
            now: Tick::from_millis(1_000),
            attempt: 0,
            wake: Tick::MAX,
            told: Vec::new(),
            end: None,
        };
        course.on(Event::Start);
        course
    }

    /// Yields whether a new attempt was begun.
    fn on(&mut self, event: Event<&'static str>) -> bool {
        let before = self.attempt;
        for effect in self.core.on(event, self.now) {
            match effect {
                Effect::Attempt { number, deadline } => (self.attempt, self.wake) = (number, deadline),
                Effect::WakeAt(at) => self.wake = at,
                Effect::Tell(notice) => self.told.push(notice),
                Effect::Registered(success) => self.end = Some(Ok(success)),
                Effect::Rejected(reason) => self.end = Some(Err(reason)),
            }
        }
        self.attempt > before
    }

    fn answer(&mut self, reply: Reply<&'static str>) -> bool {
        self.on(Event::Answered { attempt: self.attempt, reply })
    }

    fn fail(&mut self, kind: RpcErrorKind) -> bool {
        self.on(Event::Failed { attempt: self.attempt, error: RpcError { kind, message: "x".to_owned() } })
    }

    /// How long until the core wants to be asked, in milliseconds; then it is asked.
    fn pass(&mut self) -> u64 {
        let waited = self.wake.since(self.now);
        self.now = self.wake;
        assert!(self.on(Event::TimePassed), "waking begins an attempt");
        u64::try_from(waited.as_millis()).unwrap()
    }
}

#[test]
fn c008_deadlines_double_to_their_limit_without_a_pause_between() {
    let mut course = Course::start(exact());
    let deadlines: Vec<u64> = (0..11).map(|_| course.pass()).collect();
    assert_eq!(deadlines, [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
}

#[test]
fn c009_a_failure_is_followed_by_the_refused_pause_and_the_initial_deadline() {
    let mut course = Course::start(exact());
    course.pass();
    course.pass();
    let mut pauses = Vec::new();
    for _ in 0..6 {
        assert!(!course.answer(Reply::Failure("not now".to_owned())));
        pauses.push(course.pass());
        assert_eq!(course.wake.since(course.now), Duration::from_millis(100));
    }
    assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 10_000]);
}

#[test]
fn c010_two_connect_errors_are_two_pauses_and_then_success() {
    let mut course = Course::start(exact());
    assert!(!course.fail(RpcErrorKind::Unreachable));
    assert_eq!(course.pass(), 50);
    assert!(!course.fail(RpcErrorKind::Unreachable));
    assert_eq!(course.pass(), 100);
    course.answer(Reply::Success("here"));
    assert_eq!(course.end, Some(Ok("here")));
    assert_eq!(course.attempt, 3);
}

#[test]
fn c011_after_a_cancel_a_late_success_is_ignored_and_nothing_is_tried() {
    let mut course = Course::start(exact());
    course.on(Event::Cancel);
    assert!(course.core.has_ended());
    assert!(!course.answer(Reply::Success("late")));
    course.now = course.now + Duration::from_secs(100);
    assert!(!course.on(Event::TimePassed));
    assert_eq!(course.end, None);
}

#[test]
fn c023_another_protocol_version_is_retried_slowly() {
    let mut course = Course::start(exact());
    let pauses: Vec<u64> = (0..6)
        .map(|_| {
            course.fail(RpcErrorKind::Version);
            course.pass()
        })
        .collect();
    assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 10_000]);
}

#[test]
fn errors_of_every_other_kind_pause_from_50_ms_doubling_to_a_second() {
    use RpcErrorKind::{Application, Fencing, NotStarted, Overloaded, TooLarge, Unreachable};
    let mut course = Course::start(exact());
    let pauses: Vec<u64> = [Fencing, Unreachable, NotStarted, Application, Overloaded, TooLarge, Unreachable]
        .into_iter()
        .map(|kind| {
            course.fail(kind);
            course.pass()
        })
        .collect();
    assert_eq!(pauses, [50, 100, 200, 400, 800, 1_000, 1_000]);
}

#[test]
fn after_the_peer_has_answered_errors_start_with_the_short_pause_again() {
    let mut course = Course::start(exact());
    for _ in 0..5 {
        course.fail(RpcErrorKind::Unreachable);
        course.pass();
    }
    course.answer(Reply::Failure("starting".to_owned()));
    course.pass();
    course.fail(RpcErrorKind::Unreachable);
    assert_eq!(course.pass(), 50);
}

#[test]
fn a_deadline_of_the_transport_counts_as_one_of_ours() {
    let mut course = Course::start(exact());
    assert!(course.fail(RpcErrorKind::Deadline), "the next attempt begins at once");
    assert_eq!(course.pass(), 200);
}

#[test]
fn a_rejection_ends_it_for_good() {
    let mut course = Course::start(exact());
    course.answer(Reply::Rejection("unknown worker".to_owned()));
    assert_eq!(course.end, Some(Err("unknown worker".to_owned())));
    assert!(course.core.has_ended());
    assert!(!course.on(Event::TimePassed) && !course.on(Event::Start));
}

#[test]
fn the_answer_to_an_attempt_that_was_given_up_is_ignored() {
    let mut course = Course::start(exact());
    course.pass();
    course.on(Event::Answered { attempt: 1, reply: Reply::Success("late") });
    course.on(Event::Failed { attempt: 1, error: RpcError::unreachable("late") });
    assert_eq!(course.end, None);
    course.on(Event::Answered { attempt: 2, reply: Reply::Success("in time") });
    assert_eq!(course.end, Some(Ok("in time")));
}

#[test]
fn asked_too_early_it_only_says_when() {
    let mut course = Course::start(exact());
    let deadline = course.wake;
    course.now = course.now + Duration::from_millis(99);
    course.wake = Tick::MAX;
    assert!(!course.on(Event::TimePassed));
    assert_eq!(course.wake, deadline);
    course.fail(RpcErrorKind::Unreachable);
    let end = course.wake;
    course.wake = Tick::MAX;
    assert!(!course.on(Event::TimePassed));
    assert_eq!(course.wake, end);
}

#[test]
fn waiting_is_told_once_when_it_begins_and_once_when_it_ends() {
    let mut course = Course::start(exact());
    course.pass();
    course.fail(RpcErrorKind::Unreachable);
    course.pass();
    course.answer(Reply::Failure("not now".to_owned()));
    course.pass();
    course.answer(Reply::Success("here"));
    let began = Notice::WaitingBegins { cause: "no answer within 100ms".to_owned() };
    let ended = Notice::WaitingEnds { waited: Duration::from_millis(50 + 500), attempts: 4 };
    assert_eq!(course.told, [began, ended]);

    let mut course = Course::start(exact());
    course.answer(Reply::Success("at once"));
    assert_eq!(course.told, []);
}

#[test]
fn pauses_differ_between_seeds_by_a_fifth_at_most() {
    let pauses: Vec<Duration> = (0..200)
        .map(|seed| {
            let mut core = RetryingRegistration::new(RegistrationOptions::default(), seed);
            let now = Tick::ZERO;
            core.on::<()>(Event::Start, now);
            let error = RpcError::unreachable("x");
            let effects = core.on::<()>(Event::Failed { attempt: 1, error }, now);
            match effects.last() {
                Some(Effect::WakeAt(at)) => at.since(now),
                other => panic!("unexpected {other:?}"),
            }
        })
        .collect();
    let (least, most) = (Duration::from_millis(40), Duration::from_millis(60));
    assert!(pauses.iter().all(|pause| (least..=most).contains(pause)));
    assert!(pauses.iter().any(|pause| *pause < least + Duration::from_millis(3)));
    assert!(pauses.iter().any(|pause| *pause > most - Duration::from_millis(3)));
}

#[test]
fn a_reply_comes_back_from_the_wire() {
    let registered = Registered {
        epoch: Epoch(3),
        resource_id: "rm".parse().unwrap(),
        incarnation: Incarnation::from_u128(1),
        instance_id: Some(InstanceId::from_u128(2)),
        resumed: true,
    };
    let without = Registered { instance_id: None, ..registered.clone() };
    for reply in [
        Reply::Success(registered),
        Reply::Success(without),
        Reply::Failure("f".to_owned()),
        Reply::Rejection("r".to_owned()),
    ] {
        assert_eq!(Reply::try_from(v1::RegistrationReply::from(reply.clone())), Ok(reply));
    }
    assert!(Reply::<Registered>::try_from(v1::RegistrationReply::default()).is_err());
}

#[tokio::test(start_paused = true)]
async fn c008_the_shell_gives_an_attempt_up_at_its_deadline_and_begins_the_next_at_once() {
    let clock = TokioClock::start();
    let begun = Mutex::new(Vec::new());
    let start = tokio::time::Instant::now();
    let outcome = register(&"rm", exact(), 1, &clock, |attempt| {
        begun.lock().unwrap().push(start.elapsed().as_millis());
        async move { if attempt < 4 { std::future::pending().await } else { Ok(Reply::Success(attempt)) } }
    })
    .await;
    assert_eq!(outcome, Ok(4));
    assert_eq!(*begun.lock().unwrap(), [0, 100, 300, 700]);
}

#[tokio::test(start_paused = true)]
async fn c009_c010_the_shell_waits_between_attempts() {
    let clock = TokioClock::start();
    let start = tokio::time::Instant::now();
    let outcome = register(&"rm", exact(), 1, &clock, |attempt| async move {
        match attempt {
            1 | 2 => Err(RpcError::unreachable("refused")),
            3 => Ok(Reply::Failure("not now".to_owned())),
            _ => Ok(Reply::Success(())),
        }
    })
    .await;
    assert_eq!(outcome, Ok(()));
    assert_eq!(start.elapsed(), Duration::from_millis(50 + 100 + 500));
}

#[tokio::test(start_paused = true)]
async fn c011_a_dropped_registration_makes_no_further_attempt() {
    struct Ends(Arc<AtomicBool>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let ended = Arc::new(AtomicBool::new(false));
    let attempts = Arc::new(AtomicU64::new(0));
    let (ends, counts) = (Arc::clone(&ended), Arc::clone(&attempts));
    let task = tokio::spawn(async move {
        let clock = TokioClock::start();
        register::<(), _, _>(&"rm", exact(), 1, &clock, move |_| {
            counts.fetch_add(1, Ordering::SeqCst);
            let held = Ends(Arc::clone(&ends));
            async move {
                std::future::pending::<()>().await;
                drop(held);
                Ok(Reply::Success(()))
            }
        })
        .await
    });
    tokio::time::sleep(Duration::from_millis(250)).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    let made = attempts.load(Ordering::SeqCst);
    assert_eq!(made, 2);
    assert!(ended.load(Ordering::SeqCst), "the running attempt was dropped");
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(attempts.load(Ordering::SeqCst), made);
}

#[tokio::test(start_paused = true)]
async fn a_rejection_reaches_the_caller_with_peer_and_reason() {
    let clock = TokioClock::start();
    let outcome = register::<(), _, _>(&"rm at http://rm:1", exact(), 1, &clock, |_| async {
        Ok(Reply::Rejection("unknown worker".to_owned()))
    })
    .await;
    let expected = Rejected { peer: "rm at http://rm:1".to_owned(), reason: "unknown worker".to_owned() };
    assert_eq!(outcome, Err(expected));
}
