//! The loop as a future, on a runtime with one thread and a paused clock.

use super::*;
use runtime_core::EpochMillis;
use runtime_core::time::TokioClock;

struct Driven {
    clock: TokioClock,
    log: Log,
    handle: Handle<Ev>,
    running: tokio::task::JoinHandle<Recorder>,
}

fn drive() -> Driven {
    let clock = TokioClock::start_at(EpochMillis(0));
    let log = Log::default();
    let recorder = Recorder { log: log.clone(), ..Recorder::default() };
    let event_loop = EventLoop::new(recorder, LoopOptions::new(Arc::new(clock.clone())));
    let handle = event_loop.handle();
    let sleeper = clock.clone();
    let running = tokio::spawn(event_loop.run(move |at| {
        let sleeper = sleeper.clone();
        async move { sleeper.sleep_until(at).await }
    }));
    Driven { clock, log, handle, running }
}

impl Driven {
    fn ev(&self, name: &'static str) -> Ev {
        Ev { name, state: Doing::Change, log: self.log.clone(), on_run: None, on_not_run: None }
    }

    fn schedule(&self, millis: u64, name: &'static str) -> Ticket {
        self.handle.schedule(Some(name.into()), When::At(ms(millis)), self.ev(name)).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_put_wakes_the_loop() {
    let driven = drive();
    tokio::task::yield_now().await;
    let first = driven.handle.put(driven.ev("first")).unwrap();
    assert_eq!(first.finished().await, Outcome::Done);
    let second = driven.handle.put(driven.ev("second")).unwrap();
    assert_eq!(second.started().await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn timers_run_at_their_time_and_an_earlier_one_is_noticed() {
    let driven = drive();
    let far = driven.schedule(3_600_000, "far");
    tokio::task::yield_now().await;
    let near = driven.schedule(10, "near");
    near.finished().await;
    assert_eq!(driven.clock.now(), ms(10));
    far.finished().await;
    assert_eq!(driven.clock.now(), ms(3_600_000));
    driven.log.is(&["run near", "run far"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_timer_does_not_run_and_the_next_one_does() {
    let driven = drive();
    let soon = driven.schedule(10, "soon");
    let later = driven.schedule(20, "later");
    tokio::task::yield_now().await;
    assert!(driven.handle.cancel(&"soon".into()));
    assert_eq!(soon.finished().await, Outcome::NotRun(NotRun::Cancelled));
    assert_eq!(later.finished().await, Outcome::Done);
    assert_eq!(driven.clock.now(), ms(20));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_closes_ends_the_future_which_gives_the_processor_back() {
    let driven = drive();
    let closes = driven.ev("closes").runs(|cx| {
        cx.stop();
        Ok(())
    });
    driven.handle.put(closes).unwrap();
    driven.handle.ended().await;
    assert_eq!(driven.running.await.unwrap().log.lines(), ["run closes", "stop Closed"]);
}

#[tokio::test(start_paused = true)]
async fn closing_from_a_task_on_the_same_thread_does_not_block() {
    let driven = drive();
    let timer = driven.schedule(10, "timer");
    tokio::task::yield_now().await;
    assert_eq!(driven.handle.close(), CloseOutcome::Begun);
    driven.handle.ended().await;
    assert_eq!(timer.outcome(), Some(Outcome::NotRun(NotRun::ShuttingDown)));
    driven.running.await.unwrap();
    driven.log.is(&["not_run timer ShuttingDown", "stop Closed"]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_future_tells_what_waits() {
    let driven = drive();
    let timer = driven.schedule(10, "timer");
    tokio::task::yield_now().await;
    driven.running.abort();
    assert!(driven.running.await.is_err_and(|error| error.is_cancelled()));
    assert_eq!(timer.finished().await, Outcome::NotRun(NotRun::ShuttingDown));
    driven.log.is(&["not_run timer ShuttingDown"]);
}

#[tokio::test(start_paused = true)]
async fn a_backlog_lets_other_tasks_run_in_between() {
    let driven = drive();
    for _ in 0..1_000 {
        driven.handle.post(driven.ev("x")).unwrap();
    }
    let handle = driven.handle.clone();
    let after_one_poll = tokio::spawn(async move { handle.len() }).await.unwrap();
    assert!(after_one_poll > 0 && after_one_poll < 1_000, "{after_one_poll}");
    driven.handle.begin_drain();
    driven.handle.ended().await;
    assert_eq!(driven.handle.stats().done, 1_000);
}

#[test]
fn equal_runs_have_equal_logs() {
    let run = || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let driven = drive();
            let producers: Vec<_> = ["a", "b", "c"]
                .into_iter()
                .enumerate()
                .map(|(n, name)| {
                    let (handle, clock) = (driven.handle.clone(), driven.clock.clone());
                    let events: Vec<_> = (0..20).map(|_| driven.ev(name)).collect();
                    tokio::spawn(async move {
                        for (i, event) in (1..).zip(events) {
                            clock.sleep_until(ms(i * (n as u64 + 2))).await;
                            handle.put(event).unwrap();
                        }
                    })
                })
                .collect();
            for producer in producers {
                producer.await.unwrap();
            }
            driven.handle.begin_drain();
            driven.handle.ended().await;
            driven.log.lines()
        })
    };
    let first = run();
    assert_eq!(first.len(), 61);
    assert_eq!(first, run());
}
