//! Two hundred task executors of which a hundred die at once: a small version of what `cargo xtask bench heartbeat --fleet`
//! measures.

// What sets a test up may fail like the test itself.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use testkit::fleet::{Counts, Group};
use testkit::patience::{Look, Patience};
use testkit::processes::{ProcessCluster, Role};

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(120);
const HALF: u32 = 100;

/// How many task executors the resource manager has given up.
fn given_up(cluster: &mut ProcessCluster) -> anyhow::Result<usize> {
    let log = cluster.process(Role::ResourceManager)?.log();
    Ok(log.lines().filter(|line| line.contains("a task executor is gone")).count())
}

#[test]
fn of_two_hundred_task_executors_the_hundred_that_die_are_given_up_and_nobody_else() {
    let (interval, timeout) = (Duration::from_secs(2), Duration::from_secs(20));
    let mut cluster = ProcessCluster::builder().heartbeat(interval, timeout).prepare().unwrap();
    cluster.start(Role::ResourceManager).unwrap();
    let address = format!("http://{}", cluster.address(Role::ResourceManager, "rpc").unwrap());
    let address = address.parse().unwrap();
    let counts = Arc::<Counts>::default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let start = |from: u32| Group::start(&address, from..from + HALF, 4, &counts);
    let living = runtime.block_on(start(0)).unwrap();
    let dying = runtime.block_on(start(HALF)).unwrap();
    let await_count = |what: &str, count: &dyn Fn() -> u64, wanted: u64| {
        let look = || Ok(Look::of((count() >= wanted).then_some(()), || format!("{} of {wanted}", count())));
        Patience::of(LONG).until(what, look).unwrap();
    };
    await_count("all are registered", &|| counts.registered(), u64::from(2 * HALF));
    let asked = counts.answered() + u64::from(2 * HALF) * 2;
    await_count("all have answered", &|| counts.answered(), asked);
    assert_eq!((given_up(&mut cluster).unwrap(), counts.lost()), (0, 0), "nobody was silent");

    let killed = Patience::of(LONG);
    drop(dying);
    let all = killed.until("the dead are given up", || {
        let count = given_up(&mut cluster)?;
        Ok(Look::of((count >= HALF as usize).then_some(count), || format!("{count} are")))
    });
    let took = killed.elapsed();
    assert_eq!(all.unwrap(), HALF as usize);
    // At once, and not by the timeout; on a machine that is busy with other tests.
    assert!(took < timeout - interval, "{took:?}");
    let asked = counts.answered() + u64::from(HALF) * 2;
    await_count("the others answer", &|| counts.answered(), asked);
    assert_eq!(given_up(&mut cluster).unwrap(), HALF as usize, "nobody else");
    drop(living);
}
