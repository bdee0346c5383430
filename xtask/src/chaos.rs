//! `cargo xtask chaos`: whatever may happen to a cluster happens to one, and the job's result is exact.
//!
//! It works in `chaos/` of the target folder, which it removes unless something went wrong.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use testkit::chaos::{self, Options, Spared};

use crate::programs;
use crate::workspace::root;

/// What happens, and how long.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long processes are killed, stopped and cut off; the job ends soon after
    #[arg(long, default_value_t = 5.0, value_name = "N", value_parser = minutes)]
    minutes: f64,
    /// Draws the faults; without it the time of day does
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// The job takes no checkpoints: each restart begins at the start of the input
    #[arg(long)]
    no_checkpoints: bool,
    /// Leave these alone
    #[arg(long, value_enum, value_name = "WHO", value_delimiter = ',')]
    spare: Vec<Who>,
    /// Programs that are built sooner and are slower
    #[arg(long)]
    debug: bool,
    /// The folder of flights.jsonl.gz; without the whole file the sample is taken
    #[arg(long, value_name = "FOLDER", default_value = "data/nycflights")]
    data: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Who {
    /// The resource manager
    ResourceManager,
    /// The job master
    JobMaster,
    /// The task executors
    TaskExecutors,
    /// The connections between them
    Cuts,
}

impl From<Who> for Spared {
    fn from(who: Who) -> Self {
        match who {
            Who::ResourceManager => Self::ResourceManager,
            Who::JobMaster => Self::JobMaster,
            Who::TaskExecutors => Self::TaskExecutors,
            Who::Cuts => Self::Cuts,
        }
    }
}

/// Runs the job, and tells how to run it again when it went wrong.
///
/// # Errors
/// The result is wrong, or something was left, or could not be started.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let binaries = if args.debug { programs::build_for_debugging()? } else { programs::build()? };
    let folder = programs::work_folder("chaos")?;
    let seed = args.seed.unwrap_or_else(seed_of_the_moment);
    let options = Options {
        length: Duration::from_secs_f64(args.minutes * 60.0),
        seed,
        checkpoints: !args.no_checkpoints,
        spared: args.spare.iter().copied().map(Spared::from).collect(),
        flights: root().join(&args.data).join("flights.jsonl.gz"),
        folder: folder.clone(),
    };
    eprintln!("chaos: seed {seed}");
    let outcome = chaos::run(&options, &binaries, &mut |line| eprintln!("chaos: {line}"));
    let outcome = outcome.with_context(|| {
        format!("logs, state and output are in {}; to repeat it: {}", folder.display(), again(args, seed))
    })?;
    programs::remove(&folder)?;
    println!(
        "seed {seed}: right after {} deeds, {} restarts, {} checkpoints, {} calls for {} records in {:.1} s; nothing is left",
        outcome.faults.len(),
        outcome.figure("restarts"),
        outcome.figure("checkpoints"),
        outcome.figure("calls"),
        outcome.figure("records_in"),
        outcome.took.as_secs_f64()
    );
    Ok(())
}

/// The command that draws the same faults.
fn again(args: &Args, seed: u64) -> String {
    let mut command = format!("cargo xtask chaos --minutes {} --seed {seed}", args.minutes);
    if args.no_checkpoints {
        command.push_str(" --no-checkpoints");
    }
    let names = args.spare.iter().filter_map(clap::ValueEnum::to_possible_value);
    let names: Vec<String> = names.map(|value| value.get_name().to_owned()).collect();
    if !names.is_empty() {
        command.push_str(" --spare ");
        command.push_str(&names.join(","));
    }
    command
}

// Any will do, as it is told.
#[allow(clippy::disallowed_methods)]
fn seed_of_the_moment() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| u64::from(since.subsec_nanos()) ^ since.as_secs())
}

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(minutes) if (0.1..=600.0).contains(&minutes) => Ok(minutes),
        _ => Err("expected a number from 0.1 to 600".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_repeated_by_what_it_prints() {
        let args = Args {
            minutes: 0.5,
            seed: None,
            no_checkpoints: true,
            debug: false,
            spare: vec![Who::JobMaster, Who::Cuts],
            data: PathBuf::new(),
        };
        assert_eq!(
            again(&args, 7),
            "cargo xtask chaos --minutes 0.5 --seed 7 --no-checkpoints --spare job-master,cuts"
        );
    }
}
