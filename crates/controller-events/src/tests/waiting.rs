//! Tickets: waiting for an event's start and for its end.

use super::*;

#[test]
fn d01_started_is_not_finished() {
    let mut bench = Bench::new();
    let (send, receive) = std::sync::mpsc::channel::<Ticket>();
    let gate = bench.gate(move |_| {
        let ticket = receive.recv().unwrap();
        assert_eq!(ticket.wait_started(), Ok(()));
        assert_eq!(ticket.outcome(), None);
        assert_eq!(ticket.wait_finished_timeout(Duration::ZERO), Err(WaitError::TimedOut));
    });
    send.send(gate.clone()).unwrap();
    bench.run();
    assert_eq!(gate.wait_finished(), Ok(Outcome::Done));
}

#[test]
fn d02_a_waiter_on_a_preempted_event_is_told() {
    let mut bench = Bench::new();
    let (send, receive) = std::sync::mpsc::channel::<Ticket>();
    let e = bench.ev("E");
    bench.gate(move |handle| {
        let x = receive.recv().unwrap();
        let waiting = std::thread::spawn(move || x.wait_started());
        handle.clear_and_put(e, ClearScope::Fifo).unwrap();
        assert_eq!(waiting.join().unwrap(), Err(WaitError::NotRun(NotRun::Preempted)));
    });
    send.send(bench.put("x")).unwrap();
    bench.run();
}

#[test]
fn d03_a_waiter_is_told_by_a_close_while_the_handler_is_still_busy() {
    let mut bench = Bench::new();
    let (send, receive) = std::sync::mpsc::channel::<Ticket>();
    bench.gate(move |handle| {
        let x = receive.recv().unwrap();
        let waiting = std::thread::spawn(move || x.wait_started());
        assert_eq!(handle.close(), CloseOutcome::Begun);
        assert_eq!(waiting.join().unwrap(), Err(WaitError::NotRun(NotRun::Preempted)));
    });
    send.send(bench.put("x")).unwrap();
    bench.run();
}

#[test]
fn d04_a_failed_event_has_started() {
    let mut bench = Bench::new();
    let x = bench.handle.put(bench.ev("x").runs(|_| Err(Fault::new("on purpose")))).unwrap();
    bench.run();
    assert_eq!((x.wait_started(), x.wait_finished()), (Ok(()), Ok(Outcome::Failed)));
}

#[test]
fn d05_any_number_of_waiters_hear_before_and_after_as_often_as_they_ask() {
    let mut bench = Bench::new();
    let x = bench.put("x");
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let x = x.clone();
            std::thread::spawn(move || [x.wait_started(), x.wait_started()])
        })
        .collect();
    bench.run();
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap(), [Ok(()), Ok(())]);
    }
    assert_eq!([x.wait_started(), x.wait_started()], [Ok(()), Ok(())]);
}

#[test]
fn d06_nothing_of_an_old_session_runs_after_its_expiry() {
    let (clock, log) = (MockClock::new(), Log::default());
    let recorder = Recorder { log: log.clone(), ..Recorder::default() };
    let running = EventLoop::new(recorder, LoopOptions::mocked(&clock)).start().unwrap();
    let handle = running.handle();
    let event = |name| Ev { name, state: Doing::Change, log: log.clone(), on_run: None, on_not_run: None };
    let (release, released) = std::sync::mpsc::channel::<()>();
    let gate = event("gate").runs(move |_| Ok(released.recv()?));
    handle.put(gate).unwrap().wait_started().unwrap();
    handle.put(event("A")).unwrap();
    handle.put(event("B")).unwrap();
    let expiry = {
        let (handle, expire, register) = (handle.clone(), event("expire"), event("register"));
        std::thread::spawn(move || {
            let expired = handle.clear_and_put(expire, ClearScope::Fifo).unwrap();
            expired.ticket.wait_started().unwrap();
            handle.put(register).unwrap().wait_finished().unwrap()
        })
    };
    while log.lines().len() < 3 {
        std::thread::yield_now();
    }
    release.send(()).unwrap();
    assert_eq!(expiry.join().unwrap(), Outcome::Done);
    log.is(&["run gate", "not_run A Preempted", "not_run B Preempted", "run expire", "run register"]);
}

#[test]
fn s9_16_waiting_inside_the_loop_is_refused() {
    let mut bench = Bench::new();
    let x = bench.ev("x");
    let a = bench.ev("a").runs(move |cx| {
        let ticket = cx.handle().put(x).unwrap();
        assert_eq!(ticket.wait_started(), Err(WaitError::WouldDeadlock));
        Ok(())
    });
    let a = bench.handle.put(a).unwrap();
    bench.run();
    assert_eq!(a.outcome(), Some(Outcome::Done));
    bench.log.is(&["run a", "run x"]);
}

#[tokio::test]
async fn a_task_can_wait_for_the_start_and_the_end() {
    let mut bench = Bench::new();
    let x = bench.put("x");
    let waiting = tokio::spawn({
        let x = x.clone();
        async move { (x.started().await, x.finished().await) }
    });
    tokio::task::yield_now().await;
    bench.run();
    assert_eq!(waiting.await.unwrap(), (Ok(()), Outcome::Done));
}
