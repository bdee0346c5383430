//! Volumes that a server cannot use: it says whose they are and what helps, and does not come back faster and faster.

use std::time::Duration;

use anyhow::ensure;
use testkit::patience::{Look, Patience};

use super::compose::Compose;

/// Four starts: the engine's pauses of 0.1, 0.2 and 0.4 seconds lie between them.
const STARTS: u32 = 4;
const REFUSED: Duration = Duration::from_secs(60);

/// A volume, and the words that the error must have.
struct Volume {
    name: &'static str,
    options: &'static str,
    words: &'static [&'static str],
}

/// Another owner, and no room for a single block.
const VOLUMES: [Volume; 2] = [
    Volume {
        name: "foreign",
        options: "uid=4711,gid=4712,mode=0755",
        words: &[
            "/var/lib/tidegate/jobmaster",
            "belongs to user 4711",
            "runs as 10001:10001",
            "chown -R 10001:10001",
            "`user:`",
        ],
    },
    Volume {
        name: "full",
        options: "uid=10001,gid=10001,size=4k",
        words: &["/var/lib/tidegate/jobmaster", "No space left", "make room"],
    },
];

/// Starts a job master on each.
///
/// # Errors
/// It says something else, or is started again without a pause.
pub(super) fn check(compose: &Compose) -> anyhow::Result<()> {
    for volume in &VOLUMES {
        let name = format!("{}-{}", compose.project, volume.name);
        let options = format!("o={}", volume.options);
        // Removed with the cluster, whatever happens: by its label the container, by its own name the volume.
        let label = format!("com.docker.compose.project={}", compose.project);
        let mut make = vec!["volume", "create", "--opt", "type=tmpfs", "--opt", "device=tmpfs"];
        make.extend(["--opt", &options, &name]);
        compose.engine.run(&make)?;
        let outcome = refused(compose, &name, &label, volume.words);
        let _ = compose.engine.run(&["rm", "--force", &name]);
        compose.engine.run(&["volume", "rm", &name])?;
        outcome?;
    }
    Ok(())
}

fn refused(compose: &Compose, name: &str, label: &str, words: &[&str]) -> anyhow::Result<()> {
    let begun = Patience::of(REFUSED);
    let mount = format!("{name}:/var/lib/tidegate");
    let mut start =
        vec!["run", "--detach", "--name", name, "--label", label, "--read-only", "--network", "none"];
    start.extend(["--restart", "on-failure", "--volume", &mount, &compose.image]);
    start.extend(["jobmaster", "--set", "state.dir=/var/lib/tidegate"]);
    compose.engine.run(&start)?;
    begun.until("the engine starts it again", || {
        let count = compose.engine.run(&["inspect", "--format", "{{.RestartCount}}", name])?;
        let enough = count.parse::<u32>().is_ok_and(|count| count >= STARTS - 1);
        Ok(Look::of(enough.then_some(()), || format!("{count} restarts")))
    })?;
    let took = begun.elapsed();
    let log = compose.engine.logs(name, "0")?;
    for word in words {
        ensure!(log.contains(word), "`{word}` is not in what a job master says of the volume {name}: {log}");
    }
    ensure!(took > Duration::from_millis(700), "{STARTS} starts within {took:?}: nothing holds them up");
    Ok(())
}
