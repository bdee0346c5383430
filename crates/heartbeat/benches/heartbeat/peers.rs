//! The same work with a timer per target, which every heartbeat moves.
// As in `work`.
#![allow(clippy::disallowed_methods)]

use crate::alloc;
use crate::work::{BEATS, SILENCE, p99_millis, per_beat};
use std::future::poll_fn;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};
use tokio::time::{self, Sleep};
use tokio_util::time::{DelayQueue, delay_queue::Key};

#[derive(Clone, Copy)]
pub(crate) enum Peer {
    DelayQueue,
    Sleep,
}

impl Peer {
    pub(crate) const ALL: [Self; 2] = [Self::DelayQueue, Self::Sleep];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::DelayQueue => "tokio_util::DelayQueue",
            Self::Sleep => "tokio::time::Sleep",
        }
    }
}

enum Timers {
    Queue(DelayQueue<usize>, Vec<Key>),
    Sleeps(Vec<Pin<Box<Sleep>>>),
}

impl Timers {
    fn new(peer: Peer) -> Self {
        match peer {
            Peer::DelayQueue => Self::Queue(DelayQueue::new(), Vec::new()),
            Peer::Sleep => Self::Sleeps(Vec::new()),
        }
    }

    fn arm(&mut self, targets: usize, timeout: Duration) {
        let mut cx = Context::from_waker(Waker::noop());
        match self {
            Self::Queue(queue, keys) => keys.extend((0..targets).map(|i| queue.insert(i, timeout))),
            Self::Sleeps(sleeps) => {
                sleeps.extend((0..targets).map(|_| Box::pin(time::sleep(timeout))));
                for sleep in sleeps {
                    // A sleep is in the driver's wheel once it was polled.
                    let _ = sleep.as_mut().poll(&mut cx);
                }
            }
        }
    }

    fn reset(&mut self, i: usize, timeout: Duration) {
        match self {
            Self::Queue(queue, keys) => queue.reset(&keys[i], timeout),
            Self::Sleeps(sleeps) => sleeps[i].as_mut().reset(time::Instant::now() + timeout),
        }
    }
}

fn block_on<R>(work: impl Future<Output = R>) -> R {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}

pub(crate) fn bytes(peer: Peer, targets: usize) -> f64 {
    block_on(async {
        alloc::grown(|| Timers::new(peer), |timers| timers.arm(targets, Duration::from_secs(50)))
            / targets as f64
    })
}

/// Nanoseconds per heartbeat. The peers read the clock themselves.
pub(crate) fn reset(peer: Peer, order: &[usize]) -> f64 {
    block_on(async {
        let timeout = Duration::from_secs(50);
        let mut timers = Timers::new(peer);
        timers.arm(order.len(), timeout);
        let rounds = (BEATS / order.len()).max(1) as u64;
        let begin = Instant::now();
        for _ in 0..rounds {
            for &i in order {
                timers.reset(black_box(i), timeout);
            }
        }
        per_beat(begin, rounds, order.len())
    })
}

pub(crate) fn lateness(peer: Peer, order: &[usize]) -> f64 {
    block_on(async {
        let start = Instant::now();
        let mut timers = Timers::new(peer);
        timers.arm(order.len(), SILENCE * 2);
        let mut last = vec![Duration::ZERO; order.len()];
        let begin = start.elapsed();
        for (k, &i) in order.iter().enumerate() {
            let due = begin + Duration::from_secs(1).mul_f64(k as f64 / order.len() as f64);
            while start.elapsed() < due {
                std::hint::spin_loop();
            }
            last[i] = start.elapsed();
            timers.reset(i, SILENCE);
        }
        let late = |i: usize, last: &[Duration]| start.elapsed().saturating_sub(last[i] + SILENCE);
        let mut lateness = Vec::with_capacity(order.len());
        match timers {
            Timers::Queue(mut queue, _) => {
                while let Some(expired) = poll_fn(|cx| queue.poll_expired(cx)).await {
                    lateness.push(late(expired.into_inner(), &last));
                }
            }
            Timers::Sleeps(sleeps) => {
                let mut tasks = tokio::task::JoinSet::new();
                for (sleep, last) in sleeps.into_iter().zip(last) {
                    tasks.spawn(async move {
                        sleep.await;
                        start.elapsed().saturating_sub(last + SILENCE)
                    });
                }
                while let Some(late) = tasks.join_next().await {
                    lateness.extend(late);
                }
            }
        }
        p99_millis(lateness)
    })
}
