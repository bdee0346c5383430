//! The walk: a demo cluster comes up, and while the flights job runs on it, each of its services is killed, crashed and
//! cut off. The output is that of a cluster where nothing happened.

use anyhow::Context as _;
use serde_json::Value;
use testkit::patience::Patience;

use super::compose::{Compose, SERVICES};
use super::deeds::{self, Deed};
use super::flights::{Flights, records_flow};
use super::{refused, times};

/// Records a second: the 20,000 flights take about as long as the walk.
const RATE: u32 = 160;

/// What people are promised, in seconds from the start of a container.
const READY_WITHIN: f64 = 3.0;

/// Walks. The cluster is removed with its volumes, whatever happens.
///
/// # Errors
/// A service does not come back, or the output is wrong; with what the services said last.
pub(crate) fn walk(compose: &Compose) -> anyhow::Result<()> {
    eprintln!("demo: should this be interrupted, remove the cluster with `{}`", compose.removal());
    let walked = steps(compose).map_err(|error| error.context(last_words(compose)));
    let removed = compose.down();
    walked.and(removed)
}

fn steps(compose: &Compose) -> anyhow::Result<()> {
    let up = Patience::endless();
    compose.up()?;
    eprintln!("demo: {} services are healthy after {:.1} s", SERVICES.len(), up.elapsed().as_secs_f64());
    for service in SERVICES {
        eprintln!("demo: {service:<16} ready {}", ready(compose, service)?);
    }
    refused::check(compose).context("a volume that cannot be used")?;
    eprintln!("demo: volumes of another user and without room are refused, and not in a hurry");
    let crashes = deeds::may_crash(compose)?;
    if !crashes {
        eprintln!("demo: SKIPPED kill -9 on the host: it takes root, and an engine on this machine");
    }
    let mut job = Flights::submit(compose, RATE)?;
    records_flow(compose, &mut job).context("the job does not begin")?;
    eprintln!("\n{:<16} {:<20} {:<24} all work together again", "service", "deed", "ready");
    for (service, deed) in deeds::all().filter(|(_, deed)| crashes || *deed != Deed::Crash) {
        if job.has_ended()? {
            report(&job.check(compose)?);
            job = Flights::submit(compose, RATE)?;
            records_flow(compose, &mut job)?;
        }
        let what = || format!("{deed}: {service}");
        deed.perform(compose, service).with_context(what)?;
        let since = Patience::endless();
        compose.all_healthy().with_context(what)?;
        // One that was only cut off was not started again.
        let ready = if deed == Deed::CutOff { "-".to_owned() } else { ready(compose, service)? };
        records_flow(compose, &mut job).with_context(what)?;
        let again = since.elapsed().as_secs_f64();
        eprintln!("{service:<16} {:<20} {ready:<24} after {again:.1} s", deed.to_string());
    }
    report(&job.check(compose)?);
    Ok(())
}

fn report(result: &Value) {
    eprintln!("\ndemo: the output is right, every record once: {result}");
}

/// How long a service took, and whether that is too long. A machine that has other work is no failure of the cluster.
fn ready(compose: &Compose, service: &str) -> anyhow::Result<String> {
    let Some(seconds) = times::until_ready(compose, service)? else {
        anyhow::bail!("{service} is healthy and has not said that it is ready");
    };
    let late = if seconds > READY_WITHIN { " (late)" } else { "" };
    Ok(format!("after {seconds:.2} s{late}"))
}

/// The end of each service's log, for whoever looks for the cause.
fn last_words(compose: &Compose) -> String {
    let mut words = String::from("the services said last:\n");
    for service in SERVICES {
        let log = compose
            .container(service)
            .and_then(|container| compose.engine.logs(&container, "60s"))
            .unwrap_or_else(|error| format!("{error:#}"));
        let lines: Vec<&str> = log.lines().collect();
        let first = lines.len().saturating_sub(15);
        words.push_str(&format!("--- {service}\n{}\n", lines.get(first..).unwrap_or_default().join("\n")));
    }
    words
}
