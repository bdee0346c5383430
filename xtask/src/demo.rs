//! `cargo xtask demo`: a cluster of processes enriches real flights from a slow service that fails now and then.
//!
//! It works in `demo/` of the target folder, which it removes unless something went wrong. With `--docker` the cluster is
//! that of `docker-compose.yml`, and each part of it is killed and cut off while the job runs.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;
use testkit::flights;
use testkit::join::{self, Joined};
use testkit::processes::{LookupOptions, LookupService, ProcessCluster, Usage};

use crate::docker::{chaos, compose::Compose, engine::Engine};
use crate::image::{self, Programs};
use crate::programs;
use crate::workspace::root;

/// Where the cluster is.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Build the image, and run the cluster of docker-compose.yml: each part is killed and cut off meanwhile
    #[arg(long)]
    docker: bool,
}

/// The service: slow, and now and then busy; the seed makes every demo the same.
const SERVICE: LookupOptions =
    LookupOptions { delay: Duration::from_millis(5), error_rate: 0.01, seed: 2013 };

/// Runs the demo.
///
/// # Errors
/// A stage failed, or the result is wrong.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.docker {
        return in_containers(&Programs::build_static);
    }
    stage("building the programs");
    let binaries = programs::build()?;
    let folder = programs::work_folder("demo")?;
    show(&folder, &binaries).with_context(|| format!("logs and output are in {}", folder.display()))?;
    programs::remove(&folder)?;
    println!("\nThe result is right, and nothing is left running.");
    Ok(())
}

/// The demo cluster of `docker-compose.yml`, with an image of these programs.
///
/// # Errors
/// No engine answers, or the cluster does not stand what is done to it.
pub(crate) fn in_containers(programs: &dyn Fn() -> anyhow::Result<Programs>) -> anyhow::Result<()> {
    // An image under a name of its own: that of people is made by `cargo xtask image` alone.
    const TAG: &str = "tidegate:demo";
    let engine = Engine::find()?;
    let compose = Compose::find(engine, TAG)?;
    let size = image::make(&engine, &programs()?, TAG)?;
    stage(&format!("the image has {:.1} MB", size as f64 / 1e6));
    let walked = chaos::walk(&compose);
    let removed = engine.run(&["image", "rm", TAG]);
    walked?;
    removed?;
    println!("\nThe cluster has stood all of it, and nothing is left of it.");
    Ok(())
}

fn show(folder: &Path, binaries: &testkit::processes::Binaries) -> anyhow::Result<()> {
    let builder = ProcessCluster::builder().binaries(binaries.clone()).folder(folder);
    let mut cluster = builder.task_executors(2).slots(2).prepare()?;

    stage("starting the look-up service: 5 ms for each answer, 1 % of the answers are 503");
    let mut service =
        LookupService::start(binaries, &flights::planes(), "tailnum", SERVICE, &cluster.logs())?;

    stage("starting a resource manager, a job master and two task executors of two slots");
    cluster.start_all()?;

    stage("running examples/jobs/flights-keyed.yaml: 20,000 flights, those of one plane in order");
    let output = folder.join("out/");
    let job = root().join("examples/jobs/flights-keyed.yaml");
    let url = format!("steps.plane.call.http.url=http://{}/{{tailnum}}", service.address());
    let sink = format!("sink.file.path={}/", output.display());
    let args = ["run", &job.to_string_lossy(), "--json", "--set", &url, "--set", &sink];
    let ran = cluster.command_line()?.run(&args)?.expect_status(0)?;
    let result = ran.json()?;

    stage("checking the output against a join of its own");
    let expected = join::flights_with_planes(&flights::sample(), &flights::planes())?;
    check_figures(&result, &expected)?;
    let mut lines = Vec::new();
    for part in join::parts(&output)? {
        lines.extend(flights::lines(&part)?);
    }
    join::same_per_key(&expected.lines, &lines, tailnum).context("the output is wrong")?;

    let mut memory: Vec<(String, Usage)> =
        cluster.usage()?.into_iter().map(|(role, usage)| (role.to_string(), usage)).collect();
    memory.push(("look-up service".into(), service.process().usage()?));
    print_table(&result, &memory);

    stage("stopping everything");
    for (role, status) in cluster.stop_all()? {
        ensure!(status.success(), "{role} ended with {status}; its log is in {}", cluster.logs().display());
    }
    let (status, _) = service.process().stop()?;
    ensure!(status.success(), "the look-up service ended with {status}");
    Ok(())
}

fn stage(what: &str) {
    eprintln!("demo: {what}");
}

/// What the final figures must be: every record once, and each call accounted for.
fn check_figures(result: &Value, expected: &Joined) -> anyhow::Result<()> {
    let retries = figure(result, "retries");
    let records = expected.lines.len() as u64;
    ensure!(retries > 0, "one call in a hundred fails, and none was repeated: {result}");
    let wanted = [
        ("records_in", records),
        ("records_out", records),
        ("filtered", 0),
        ("dropped", 0),
        ("dead_letters", 0),
        ("empty", expected.empty()),
        ("calls", expected.called() + retries),
        ("timeouts", 0),
        ("restarts", 0),
    ];
    let wrong: Vec<String> = wanted
        .iter()
        .filter(|(name, value)| figure(result, name) != *value)
        .map(|(name, value)| format!("{name} is {}, not {value}", figure(result, name)))
        .collect();
    if !wrong.is_empty() {
        bail!("the figures are wrong: {}; {result}", wrong.join(", "));
    }
    Ok(())
}

fn print_table(result: &Value, memory: &[(String, Usage)]) {
    let milliseconds = figure(result, "duration_ms").max(1);
    let records = figure(result, "records_in");
    println!();
    for (what, value) in [
        ("records", grouped(records)),
        ("with a plane", grouped(records - figure(result, "empty"))),
        ("calls", grouped(figure(result, "calls"))),
        ("retries", grouped(figure(result, "retries"))),
        ("time", format!("{:.2} s", milliseconds as f64 / 1_000.0)),
        ("records per second", grouped(records * 1_000 / milliseconds)),
    ] {
        println!("{what:<20} {value:>10}");
    }
    println!("\n{:<20} {:>10} {:>10} {:>10}", "process", "memory", "peak", "CPU");
    for (name, usage) in memory {
        let mb = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
        let cpu = format!("{:.2} s", usage.cpu.as_secs_f64());
        println!("{name:<20} {:>10} {:>10} {cpu:>10}", mb(usage.resident), mb(usage.peak));
    }
    println!();
}

fn figure(result: &Value, name: &str) -> u64 {
    result.get(name).and_then(Value::as_u64).unwrap_or(u64::MAX)
}

/// With a comma at the thousands.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The plane of a flight.
pub(crate) fn tailnum(line: &[u8]) -> Option<String> {
    let record: Value = serde_json::from_slice(line).ok()?;
    record.get("tailnum")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_have_commas() {
        for (n, text) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (336_776, "336,776"), (1_000_000, "1,000,000")]
        {
            assert_eq!(grouped(n), text);
        }
    }

    #[test]
    fn figures_that_do_not_add_up_are_named() {
        let expected = Joined { lines: vec![Vec::new(); 3], without_key: 1, unknown: 1 };
        let mut result = serde_json::json!({"records_in": 3, "records_out": 3, "filtered": 0, "dropped": 0, "dead_letters": 0,
            "empty": 2, "calls": 3, "retries": 1, "timeouts": 0, "restarts": 0});
        check_figures(&result, &expected).unwrap();
        result["calls"] = 2.into();
        result["empty"] = Value::Null;
        let error = check_figures(&result, &expected).unwrap_err().to_string();
        assert!(error.contains("calls is 2, not 3") && error.contains("empty is"), "{error}");
    }
}
