//! From nothing to a finished job on four processes, and what these use when nothing is to be done.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use testkit::flights;
use testkit::patience::Patience;
use testkit::processes::{Binaries, ProcessCluster, Role};

use super::report::Report;

const DEADLINE: Duration = Duration::from_secs(60);

/// Measures some cold starts.
///
/// # Errors
/// A process did not start, or the job failed.
pub(super) fn measure(
    binaries: &Binaries,
    folder: &Path,
    runs: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let input = folder.join("ten.jsonl");
    let mut ten: Vec<Vec<u8>> = flights::lines(&flights::sample())?;
    ten.truncate(10);
    fs::write(&input, ten.join(&b'\n'))?;
    let job = folder.join("ten.yaml");
    let planes = serde_json::Value::from(flights::planes().to_string_lossy()).to_string();
    fs::write(
        &job,
        format!(
            "name: ten-records\nsource: {{file: {{path: ten.jsonl}}}}\nsteps:\n  - enrich:\n      name: plane\n      into: plane\n      \
             call: {{table: {{file: {planes}, key: tailnum, by: tailnum}}}}\nsink: {{file: {{path: ten-out.jsonl, overwrite: true}}}}\n"
        ),
    )?;
    let (mut times, mut memory) = (Vec::new(), BTreeMap::<&str, Vec<f64>>::new());
    for run in 0..runs {
        let builder = ProcessCluster::builder().binaries(binaries.clone());
        let mut cluster = builder.folder(folder.join(format!("start-{run}"))).prepare()?;
        let begun = Patience::endless();
        for role in cluster.roles() {
            cluster.launch(role)?;
        }
        // It says where REST is; the task executors register while the job is on its way.
        cluster.await_ready(Role::JobMaster)?;
        let command = cluster.command_line()?.start(&["run", &job.to_string_lossy(), "--json"])?;
        command.wait(DEADLINE)?.expect_status(0)?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        for (role, usage) in cluster.usage()? {
            let name = match role {
                Role::ResourceManager => "resourcemanager",
                Role::JobMaster => "jobmaster",
                Role::TaskExecutor(_) => "taskexecutor",
            };
            memory.entry(name).or_default().push(usage.resident as f64 / 1e6);
        }
        cluster.stop_all()?;
    }
    report.median("cluster/startup/ten-records", "ms", &times)?;
    for (role, megabytes) in memory {
        report.median(format!("cluster/idle-memory/{role}"), "MB", &megabytes)?;
    }
    Ok(())
}
