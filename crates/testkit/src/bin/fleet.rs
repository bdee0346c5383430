//! A process of many task executors, to be killed or left alone: `fleet http://HOST:PORT FIRST COUNT PER-CONNECTION`.
//!
//! It says one JSON object on stdout when all have registered, and then one a second with what happened so far.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use testkit::fleet::{Counts, Group};

/// As of a small machine.
const SLOTS: u32 = 4;
const LOOK: Duration = Duration::from_millis(10);

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, first, count, per_connection] = args.as_slice() else {
        anyhow::bail!("expected: fleet http://HOST:PORT FIRST COUNT PER-CONNECTION");
    };
    let address = address.parse().context("the resource manager's address")?;
    let (first, count): (u32, u32) = (first.parse()?, count.parse()?);
    let per_connection: u32 = per_connection.parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let counts = Arc::<Counts>::default();
    runtime.block_on(async {
        let mut groups = Vec::new();
        for from in (first..first + count).step_by(per_connection.max(1) as usize) {
            let numbers = from..(from + per_connection).min(first + count);
            groups.push(Group::start(&address, numbers, SLOTS, &counts).await?);
        }
        while counts.registered() + counts.lost() < u64::from(count) {
            tokio::time::sleep(LOOK).await;
        }
        loop {
            let Counted { registered, answered, failed, lost } = Counted::of(&counts);
            let mut out = std::io::stdout().lock();
            writeln!(
                out,
                r#"{{"registered":{registered},"answered":{answered},"failed":{failed},"lost":{lost}}}"#
            )?;
            drop(out);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    })
}

struct Counted {
    registered: u64,
    answered: u64,
    failed: u64,
    lost: u64,
}

impl Counted {
    fn of(counts: &Counts) -> Self {
        Self {
            registered: counts.registered(),
            answered: counts.answered(),
            failed: counts.failed(),
            lost: counts.lost(),
        }
    }
}
