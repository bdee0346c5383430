//! The pool driven by hand, under an advancing clock.

use super::*;

const OPTIONS: PoolOptions = PoolOptions {
    slots: 2,
    max: 8,
    max_slots: None,
    redundant: 0,
    idle_timeout: Duration::from_secs(30),
    registration_timeout: Duration::from_secs(300),
    recovery_timeout: Duration::from_secs(30),
    max_start_failure_rate: 10,
    start_retry_interval: Duration::from_secs(3),
};

/// A pool, its clock, and what it has asked for.
struct Bench {
    pool: WorkerPool,
    now: Tick,
    starts: Vec<ResourceId>,
    stops: Vec<(ResourceId, StopReason)>,
    full: Vec<String>,
}

impl Bench {
    fn new(options: PoolOptions) -> Self {
        let pool = WorkerPool::new(options, "w");
        Self { pool, now: Tick::ZERO, starts: Vec::new(), stops: Vec::new(), full: Vec::new() }
    }

    /// Jobs lack `missing` slots, and have none.
    fn lack(&mut self, missing: u32) -> &mut Self {
        self.observe(Demand { missing, ..Demand::default() })
    }

    fn observe(&mut self, demand: Demand) -> &mut Self {
        self.pool.observe(demand, self.now);
        self.pass(Duration::from_millis(50))
    }

    /// Lets time pass, as a shell does: from one wake-up to the next.
    fn pass(&mut self, time: Duration) -> &mut Self {
        let end = self.now + time;
        loop {
            let next = self.pool.next_wakeup().map_or(end, |at| at.max(self.now)).min(end);
            let before = (self.now, self.pool.next_wakeup());
            self.now = next;
            self.pool.advance(self.now);
            for effect in self.pool.take_effects() {
                match effect {
                    PoolEffect::Start(id) => self.starts.push(id),
                    PoolEffect::Stop(id, why) => self.stops.push((id, why)),
                    PoolEffect::Full(text) => self.full.push(text),
                }
            }
            if self.now >= end && self.pool.next_wakeup().is_none_or(|at| at > end) {
                return self;
            }
            assert_ne!((self.now, self.pool.next_wakeup()), before, "a wake-up that changes nothing");
        }
    }

    /// The driver has started all that it was asked for; yields their names.
    fn started(&mut self) -> Vec<ResourceId> {
        let started = std::mem::take(&mut self.starts);
        for id in &started {
            self.pool.started(id, self.now);
        }
        started
    }

    fn fail_all(&mut self) -> usize {
        let failed = std::mem::take(&mut self.starts);
        for id in &failed {
            assert_eq!(self.pool.ended(id, "exit status: 1", self.now), End::Failed);
        }
        failed.len()
    }

    fn registered(&mut self, ids: &[ResourceId]) {
        for id in ids {
            assert!(self.pool.accepts(id));
            self.pool.registered(id, self.now);
        }
    }

    fn idle(&mut self, ids: &[ResourceId]) {
        ids.iter().for_each(|id| self.pool.set_idle(id, true, self.now));
    }
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn c130_for_three_slots_two_workers_of_two_are_started_and_an_idle_one_goes_after_its_time() {
    let mut bench = Bench::new(OPTIONS);
    bench.lack(3);
    let ids = bench.started();
    assert_eq!(ids.len(), 2);
    assert_eq!((bench.pool.pending(), bench.pool.running()), (2, 0));
    bench.registered(&ids);
    bench.observe(Demand { missing: 0, free: 1, total: 4, in_use: true });
    assert_eq!((bench.pool.pending(), bench.pool.running()), (0, 2));
    // The job needs one slot less than it did: the second worker has no job.
    bench.idle(&ids[1..]);
    bench.observe(Demand { missing: 0, free: 2, total: 4, in_use: true });
    bench.pass(seconds(29));
    assert!(bench.stops.is_empty(), "too early: {:?}", bench.stops);
    bench.pass(seconds(1));
    assert_eq!(bench.stops, [(ids[1].clone(), StopReason::Idle(seconds(30)))]);
    assert!(!bench.pool.accepts(&ids[1]), "it is not to come back");
    assert_eq!(bench.pool.ended(&ids[1], "exit status: 0", bench.now), End::Expected);
    bench.pass(seconds(600));
    assert_eq!((bench.starts.len(), bench.stops.len()), (0, 1), "the other has a job");
}

#[test]
fn a_worker_that_gets_a_job_in_time_is_not_idle() {
    let mut bench = Bench::new(OPTIONS);
    let ids = bench.lack(1).started();
    bench.registered(&ids);
    bench.idle(&ids);
    bench.lack(0).pass(seconds(20));
    bench.pool.set_idle(&ids[0], false, bench.now);
    bench.pass(seconds(1));
    bench.idle(&ids);
    bench.pass(seconds(29));
    assert!(bench.stops.is_empty());
    bench.pass(seconds(1));
    assert_eq!(bench.stops.len(), 1);
}

#[test]
fn c131_a_worker_that_never_registers_is_stopped_five_minutes_after_its_allocation_and_replaced() {
    let mut bench = Bench::new(OPTIONS);
    bench.lack(2);
    // The driver is slow: that time does not count.
    bench.pass(seconds(100));
    let first = bench.started();
    bench.pass(seconds(299));
    assert!(bench.stops.is_empty(), "{:?}", bench.stops);
    bench.pass(seconds(1));
    assert_eq!(bench.stops, [(first[0].clone(), StopReason::NotRegistered(seconds(300)))]);
    assert!(!bench.pool.accepts(&first[0]), "too late is never");
    bench.pass(seconds(1));
    assert_eq!(bench.starts.len(), 1, "another is requested");
    assert_ne!(bench.starts[0], first[0]);
}

#[test]
fn c132_workers_that_crash_at_their_start_are_started_every_three_seconds_after_the_tenth() {
    let mut bench = Bench::new(OPTIONS);
    bench.lack(2);
    for n in 0..11 {
        assert_eq!(bench.fail_all(), 1, "try {n} is made at once");
        bench.pass(Duration::from_millis(50));
    }
    let mut tries = 0;
    let begun = bench.now;
    while bench.now.since(begun) < seconds(30) {
        assert!(bench.starts.is_empty(), "no try within the pause");
        bench.pass(seconds(3));
        tries += bench.fail_all();
    }
    assert_eq!(tries, 10, "one in three seconds");
    assert!(bench.pool.failures_per_second(bench.now) > 0.3);
    let trouble = bench.pool.trouble().unwrap();
    assert!(trouble.contains("exit status: 1"), "{trouble}");
    // Nothing is lost: the first that lives ends it.
    bench.pass(seconds(3));
    let ids = bench.started();
    bench.registered(&ids);
    bench.observe(Demand { missing: 0, free: 0, total: 2, in_use: true });
    assert_eq!((ids.len(), bench.pool.trouble()), (1, None));
}

#[test]
fn a_worker_that_crashes_right_after_its_registration_counts_as_one_that_did_not_start() {
    let mut bench = Bench::new(OPTIONS);
    let ids = bench.lack(1).started();
    bench.registered(&ids);
    assert_eq!(bench.pool.ended(&ids[0], "signal: 11", bench.now), End::Failed);
    let ids = bench.pass(seconds(1)).started();
    bench.registered(&ids);
    bench.pass(seconds(11));
    assert_eq!(bench.pool.ended(&ids[0], "signal: 9", bench.now), End::Lost);
    assert_eq!(bench.pass(Duration::from_millis(50)).starts.len(), 1, "both are replaced at once");
}

#[test]
fn c134_recovered_workers_are_waited_for_before_others_are_started() {
    let mut bench = Bench::new(OPTIONS);
    let old: Vec<ResourceId> = (1..=3).map(|n| format!("old-{n}").parse().unwrap()).collect();
    bench.pool.recover(old.clone(), bench.now);
    // Of a job with more slots than they have, it is not known yet what it holds.
    bench.lack(7).pass(seconds(20));
    assert!(bench.starts.is_empty() && bench.stops.is_empty());
    assert_eq!(bench.pool.pending(), 3);
    bench.registered(&old);
    bench.observe(Demand { missing: 0, free: 0, total: 6, in_use: true }).pass(seconds(600));
    assert!(bench.starts.is_empty() && bench.stops.is_empty(), "they are enough");
}

#[test]
fn a_recovered_worker_that_does_not_come_back_is_replaced_after_the_recovery_timeout_and_may_still_come() {
    let mut bench = Bench::new(OPTIONS);
    let old: ResourceId = "old-1".parse().unwrap();
    bench.pool.recover([old.clone()], bench.now);
    bench.lack(2).pass(seconds(29));
    assert!(bench.starts.is_empty());
    bench.pass(seconds(1));
    assert_eq!(bench.starts.len(), 1);
    assert!(bench.pool.accepts(&old) && bench.stops.is_empty(), "it may run tasks");
    bench.pass(seconds(270));
    assert_eq!(bench.stops, [(old, StopReason::NotRegistered(seconds(300)))]);
}

#[test]
fn recovered_workers_are_not_stopped_for_being_too_many_before_anybody_said_what_is_needed() {
    let mut bench = Bench::new(OPTIONS);
    let old: ResourceId = "old-1".parse().unwrap();
    bench.pool.recover([old.clone()], bench.now);
    bench.lack(1).lack(0).pass(seconds(60));
    assert!(bench.stops.is_empty());
    // Then nobody wants it.
    bench.registered(std::slice::from_ref(&old));
    bench.idle(std::slice::from_ref(&old));
    bench.pass(seconds(30));
    assert_eq!(bench.stops, [(old, StopReason::Idle(seconds(30)))]);
}

#[test]
fn c136_when_the_need_is_gone_requests_are_cancelled_first_and_then_the_unregistered() {
    let mut bench = Bench::new(OPTIONS);
    let first = bench.lack(2).started();
    bench.lack(4);
    let second = bench.starts.clone();
    assert_eq!((first.len(), second.len()), (1, 1));
    bench.lack(2);
    assert_eq!(bench.stops, [(second[0].clone(), StopReason::NotNeeded)], "the one that is not allocated");
    // The driver had begun all the same: it is stopped when it is there, and is no failure.
    bench.pool.started(&second[0], bench.now);
    assert!(!bench.pool.accepts(&second[0]));
    assert_eq!(bench.pool.ended(&second[0], "it is no longer needed", bench.now), End::Expected);
    bench.lack(0);
    assert_eq!(bench.stops[1..], [(first[0].clone(), StopReason::NotNeeded)]);
    assert!(bench.pool.failures_per_second(bench.now).abs() < f64::EPSILON);
}

#[test]
fn registered_workers_are_not_stopped_because_a_need_is_gone() {
    let mut bench = Bench::new(OPTIONS);
    let ids = bench.lack(4).started();
    bench.registered(&ids);
    bench.lack(0).pass(seconds(600));
    assert!(bench.stops.is_empty(), "only idleness stops them, and nobody said that they are idle");
}

#[test]
fn a_dip_within_a_moment_changes_nothing() {
    let mut bench = Bench::new(OPTIONS);
    bench.lack(4);
    assert_eq!(bench.started().len(), 2);
    bench.pool.observe(Demand::default(), bench.now);
    bench.pass(Duration::from_millis(10));
    bench.lack(4);
    assert!(bench.stops.is_empty() && bench.starts.is_empty());
}

#[test]
fn c053_a_worker_that_is_gone_is_replaced_within_a_second() {
    let mut bench = Bench::new(OPTIONS);
    let ids = bench.lack(2).started();
    bench.registered(&ids);
    bench.observe(Demand { missing: 0, free: 0, total: 2, in_use: true }).pass(seconds(60));
    assert_eq!(bench.pool.ended(&ids[0], "signal: 9 (SIGKILL)", bench.now), End::Lost);
    bench.lack(2);
    assert_eq!(bench.starts.len(), 1);
}

#[test]
fn one_that_says_good_bye_is_replaced_at_once_and_may_come_back() {
    let mut bench = Bench::new(OPTIONS);
    let ids = bench.lack(2).started();
    bench.registered(&ids);
    bench.observe(Demand { missing: 0, free: 0, total: 2, in_use: true });
    bench.pool.left(&ids[0], bench.now);
    bench.lack(2);
    assert_eq!(bench.starts.len(), 1, "it may be ending");
    assert!(bench.stops.is_empty() && bench.pool.accepts(&ids[0]), "or it has only lost its connection");
    bench.registered(&ids);
    bench.observe(Demand { missing: 0, free: 0, total: 2, in_use: true });
    assert_eq!(bench.stops.len(), 1, "then the other is not needed");
}

#[test]
fn one_that_is_given_up_is_stopped_and_replaced() {
    let mut bench = Bench::new(OPTIONS);
    let ids = bench.lack(2).started();
    bench.registered(&ids);
    bench.pool.left(&ids[0], bench.now);
    bench.pool.give_up(&ids[0], bench.now);
    bench.lack(1);
    assert_eq!(bench.stops, [(ids[0].clone(), StopReason::Lost)]);
    assert_eq!(bench.starts.len(), 1);
}

#[test]
fn no_more_workers_run_than_may_and_that_is_said_once_with_the_way_out() {
    let mut bench = Bench::new(PoolOptions { max: 2, ..OPTIONS });
    bench.lack(9).pass(seconds(10));
    assert_eq!(bench.starts.len(), 2);
    assert!(matches!(&bench.full[..], [text] if text.contains("worker.max (2)") && text.contains("9 slots")));
    assert_eq!(bench.pool.trouble(), Some(bench.full[0].as_str()));
    bench.lack(4);
    assert_eq!((bench.pool.trouble(), bench.full.len()), (None, 1));
}

#[test]
fn no_more_slots_are_started_than_may_be() {
    let mut bench = Bench::new(PoolOptions { max_slots: Some(7), ..OPTIONS });
    bench.lack(9);
    assert_eq!(bench.starts.len(), 3, "a fourth would bring the eighth slot");
    assert!(bench.full[0].contains("slots.max (7)"), "{:?}", bench.full);
}

#[test]
fn a_reserve_is_kept_while_jobs_run_and_no_longer() {
    let mut bench = Bench::new(PoolOptions { redundant: 1, ..OPTIONS });
    let ids = bench.lack(2).started();
    assert_eq!(ids.len(), 2, "one for the job, one in reserve");
    bench.registered(&ids);
    bench.idle(&ids[1..]);
    bench.observe(Demand { missing: 0, free: 2, total: 4, in_use: true }).pass(seconds(600));
    assert!(bench.stops.is_empty() && bench.starts.is_empty());
    bench.idle(&ids[..1]);
    bench.observe(Demand { missing: 0, free: 4, total: 4, in_use: false }).pass(seconds(30));
    assert_eq!(bench.stops.len(), 2);
}
