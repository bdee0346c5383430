//! A job over a slow and failing service, whose processes are killed, stopped and cut off, and whose result is exact.
//!
//! The faults are drawn from a seed before anything runs ([`plan`]), so that a run that went wrong is run again by its
//! seed. Processes do not repeat themselves to the microsecond, faults at the same moments do.

mod deeds;
mod job;
pub mod plan;
mod verdict;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::patience::Patience;
use crate::processes::{
    Binaries, LookupOptions, LookupService, Network, Place, ProcessCluster, Role, open_files,
};
use deeds::Deeds;
use job::Job;
use plan::Drawn;
pub use verdict::Outcome;

/// Task executors; the job needs the slots of two of them.
const TASK_EXECUTORS: usize = 3;
/// Slots of each.
const SLOTS: u32 = 2;
/// Slow, and busy now and then.
const SERVICE: LookupOptions = LookupOptions { delay: Duration::from_millis(5), error_rate: 0.02, seed: 7 };
/// Short, so that a process that stands still is sometimes given up, and sometimes not.
const HEARTBEAT: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(2));
/// Far longer than a healthy cluster takes for anything.
const LONG: Duration = Duration::from_secs(60);

/// What a run is like.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long faults happen, and about how long the job reads.
    pub length: Duration,
    /// Draws the faults.
    pub seed: u64,
    /// Whether the job takes checkpoints. Without them each restart begins at the start of the input.
    pub checkpoints: bool,
    /// Who is left alone.
    pub spared: Vec<Spared>,
    /// The whole flights, packed or not; where it is not, the sample is taken.
    pub flights: PathBuf,
    /// State, logs and output go there.
    pub folder: PathBuf,
}

/// What is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spared {
    /// Nothing happens to the resource manager.
    ResourceManager,
    /// Nothing happens to the job master.
    JobMaster,
    /// Nothing happens to task executors.
    TaskExecutors,
    /// Nobody is cut off from anybody.
    Cuts,
}

/// Runs a job under faults, tells each as it happens, and judges the result.
///
/// # Errors
/// Something could not be started, or the result is wrong, or something was left.
pub fn run(options: &Options, binaries: &Binaries, tell: &mut dyn FnMut(&str)) -> anyhow::Result<Outcome> {
    let drawn = plan::draw(options.seed, options.length, TASK_EXECUTORS, &options.spared);
    // Processes end before their network does.
    let network = network(&drawn, tell);
    let mut cluster = cluster(options, binaries, network.as_ref())?;
    let host = network.as_ref().map_or_else(|| "127.0.0.1".to_owned(), Network::host);
    let table = crate::flights::planes();
    let service = LookupService::start_at(&host, binaries, &table, "tailnum", SERVICE, &cluster.logs())?;
    cluster.start_all()?;
    let all_slots = u64::from(SLOTS) * TASK_EXECUTORS as u64;
    cluster.await_free_slots(all_slots, LONG)?;

    let job = Job::prepare(options, service.address())?;
    tell(&format!(
        "{} flights at {} a second, {}",
        job.expected.lines.len(),
        job.rate,
        if options.checkpoints { "with a checkpoint every 500 ms" } else { "without checkpoints" }
    ));
    let files = open_files_of(&mut cluster)?;
    let id = job.submit(&cluster)?;
    let reading = |detail: &Value| {
        detail.pointer("/result/records_in").and_then(Value::as_u64).is_some_and(|read| read > 0)
    };
    cluster.await_answer(&format!("/jobs/{id}"), LONG, reading).context("the job does not begin to read")?;

    let begun = Patience::endless();
    let mut deeds = Deeds::new(network.as_ref());
    deeds.follow(&drawn, &begun, &mut cluster, &id, tell)?;
    deeds.undo_all(&begun, &mut cluster, tell)?;
    // Once more from the start, at worst, and some waiting.
    let patience = options.length * if options.checkpoints { 1 } else { 2 } + LONG * 2;
    let result = result_of(&cluster, &id, patience)?;
    let took = begun.elapsed();
    tell(&format!("the job ended after {:.1} s: {result}", took.as_secs_f64()));

    let outcome = Outcome { result, faults: deeds.done, took };
    outcome.check(&job)?;
    cluster.await_free_slots(all_slots, LONG).context("slots are missing")?;
    verdict::nothing_is_left(&job)?;
    verdict::files_are_bounded(&files, || open_files_of(&mut cluster))?;
    if options.checkpoints {
        verdict::is_remembered(&mut cluster, &id, &outcome.result)?;
    }
    for (role, status) in cluster.stop_all()? {
        ensure!(status.success(), "{role} ended with {status}");
    }
    let answered = service.stop()?;
    tell(&format!("the service has answered {answered} requests"));
    outcome.check_calls(answered, &job, options)?;
    verdict::nobody_is_left(&options.folder)?;
    Ok(outcome)
}

/// A network of its own for each, if there is something to be cut and it is allowed here.
fn network(drawn: &[Drawn], tell: &mut dyn FnMut(&str)) -> Option<Network> {
    if !drawn.iter().any(|drawn| matches!(drawn.fault, plan::Fault::Cut { .. })) {
        return None;
    }
    Network::new(TASK_EXECUTORS + 2).inspect_err(|error| tell(&format!("nobody is cut off: {error:#}"))).ok()
}

/// Which node of the network a process is.
fn node(role: Role) -> usize {
    match role {
        Role::ResourceManager => 0,
        Role::JobMaster => 1,
        Role::TaskExecutor(n) => n + 2,
    }
}

fn cluster(
    options: &Options,
    binaries: &Binaries,
    network: Option<&Network>,
) -> anyhow::Result<ProcessCluster> {
    let builder = ProcessCluster::builder().binaries(binaries.clone()).folder(&options.folder);
    let (interval, timeout) = HEARTBEAT;
    let mut builder = builder.task_executors(TASK_EXECUTORS).slots(SLOTS).heartbeat(interval, timeout);
    let task_executors = (0..TASK_EXECUTORS).map(Role::TaskExecutor);
    for role in [Role::ResourceManager, Role::JobMaster].into_iter().chain(task_executors) {
        if let Some(network) = network {
            let node = node(role);
            builder =
                builder.place(role, Place { host: network.address(node), prefix: network.prefix(node) });
        }
    }
    builder.prepare()
}

/// How many files each server has open.
fn open_files_of(cluster: &mut ProcessCluster) -> anyhow::Result<Vec<(Role, usize)>> {
    let roles = cluster.roles();
    roles.into_iter().map(|role| Ok((role, open_files(cluster.process(role)?.id())?))).collect()
}

/// The final figures, once the job has ended.
fn result_of(cluster: &ProcessCluster, id: &str, within: Duration) -> anyhow::Result<Value> {
    let patience = Patience::of(within);
    while !patience.left().is_zero() {
        if let Some(result) = deeds::ended(cluster, id).ok().flatten() {
            return Ok(result);
        }
        Patience::of(deeds::LOOK).pass();
    }
    anyhow::bail!("the job does not end within {within:?}: {}", shown(cluster, id))
}

/// What is known about a job, for an error.
fn shown(cluster: &ProcessCluster, id: &str) -> String {
    let detail = cluster.get(&format!("/jobs/{id}")).map(|detail| detail.to_string());
    detail.unwrap_or_else(|error| format!("{error:#}"))
}

/// Below the run's folder.
fn output(folder: &Path) -> PathBuf {
    folder.join("out")
}
