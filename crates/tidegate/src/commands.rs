//! The commands, one file each.

mod cancel;
mod explain;
mod health;
mod list;
mod local;
mod run;
mod savepoint;
mod serve_table;
mod show;
mod stop;
mod taskexecutors;
mod validate;

use clap::{Parser, Subcommand};
use runtime_core::JobId;
use tokio::runtime::{Builder, Runtime};

use crate::client::{JobMasterClient, JobMasterUrl};
use crate::failure::Failure;
use crate::output::Output;

/// Streaming jobs whose work is waiting: run them, look at them, end them
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, after_help = EXAMPLES)]
pub struct Cli {
    /// The job master's REST address
    #[arg(short = 'm', long, value_name = "URL", global = true, default_value = "http://127.0.0.1:8081")]
    jobmaster: JobMasterUrl,

    /// Print one JSON document on stdout
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  tidegate validate job.yaml                 find the mistakes of a job file
  tidegate local job.yaml                    run it in this process, without a cluster
  tidegate run job.yaml                      run it on the cluster and wait for its end
  tidegate -m http://host:8081 list -a       the jobs of another cluster, ended ones too

Exit status: 0 done, 1 failed at run time, 2 wrong usage or job file.";

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    Local(local::Local),
    List(list::List),
    Show(show::Show),
    Taskexecutors(taskexecutors::TaskExecutors),
    Cancel(cancel::Cancel),
    Savepoint(savepoint::Savepoint),
    Stop(stop::Stop),
    Validate(validate::Validate),
    Explain(explain::Explain),
    Health(health::Health),
    ServeTable(serve_table::ServeTable),
}

/// Does what the command line says, and returns when it is done.
///
/// # Errors
///
/// Why it was not done; [`Failure::status`] is the program's exit status.
pub fn execute(cli: Cli) -> Result<(), Failure> {
    let cluster = Cluster { url: cli.jobmaster, output: Output { json: cli.json } };
    let output = cluster.output;
    match cli.command {
        Command::Run(command) => cluster.ask(async |client| command.execute(client, output).await),
        Command::List(command) => cluster.ask(async |client| command.execute(client, output).await),
        Command::Show(command) => cluster.ask(async |client| command.execute(client, output).await),
        Command::Taskexecutors(command) => cluster.ask(async |client| command.execute(client, output).await),
        Command::Cancel(command) => cluster.ask(async |client| command.execute(client, output).await),
        Command::Savepoint(command) => cluster.ask(async |client| command.execute(client, output).await),
        Command::Stop(command) => cluster.ask(async |client| command.execute(client, output).await),
        Command::Local(command) => command.execute(output),
        Command::Validate(command) => command.execute(output),
        Command::Explain(command) => command.execute(output),
        Command::Health(command) => command.execute(output),
        Command::ServeTable(command) => command.execute(output),
    }
}

/// The cluster that a command is about.
struct Cluster {
    url: JobMasterUrl,
    output: Output,
}

impl Cluster {
    /// Runs a command that asks the job master. One thread is enough for one request at a time.
    fn ask(&self, command: impl AsyncFnOnce(&JobMasterClient) -> Result<(), Failure>) -> Result<(), Failure> {
        let runtime = runtime(&mut Builder::new_current_thread())?;
        runtime.block_on(async {
            let client = JobMasterClient::new(&self.url)?;
            command(&client).await
        })
    }
}

fn runtime(builder: &mut Builder) -> Result<Runtime, Failure> {
    builder.enable_all().build().map_err(|cause| Failure::System { what: "no runtime can be started", cause })
}

/// Reads what was given as a job's id.
fn job_id(text: &str) -> Result<JobId, Failure> {
    text.to_lowercase().parse().map_err(|_| Failure::NoJobId { text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("tidegate").chain(line.split_whitespace()))
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_flags_stand_before_and_behind_the_command() {
        for line in ["-m http://a:1 --json list -a", "list -a --jobmaster http://a:1 --json"] {
            let cli = parse(line).unwrap();
            assert_eq!(cli.jobmaster.to_string(), "http://a:1");
            assert!(cli.json);
        }
        assert_eq!(parse("list").unwrap().jobmaster.to_string(), "http://127.0.0.1:8081");
    }

    #[test]
    fn every_form_of_the_commands_is_understood() {
        for line in [
            "run job.yaml",
            "run job.yaml --detach --from-savepoint file:///s --set parallelism=4 --set name=x",
            "local job.yaml --slots 4 --set parallelism=2",
            "list",
            "list --all",
            "show 00000000000000000000000000000001",
            "taskexecutors",
            "cancel 00000000000000000000000000000001",
            "savepoint 00000000000000000000000000000001",
            "savepoint 00000000000000000000000000000001 /tmp/s",
            "stop 00000000000000000000000000000001 --savepoint-dir /tmp/s --drain",
            "validate job.yaml --set parallelism=2",
            "explain job.yaml --set parallelism=2",
            "health http://127.0.0.1:9250",
            "serve-table rows.jsonl --key id",
            "serve-table rows.jsonl --key id --bind 127.0.0.1:0 --delay 5ms --error-rate 0.01 --seed 7",
        ] {
            assert!(parse(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn wrong_usage_is_exit_status_2() {
        for line in [
            "",
            "fly",
            "run",
            "run job.yaml --set parallelism",
            "-m ftp://a list",
            "serve-table rows.jsonl",
            "serve-table rows.jsonl --key id --error-rate 1.5",
            "serve-table rows.jsonl --key id --delay soon",
            "serve-table rows.jsonl --key id --bind here",
        ] {
            let error = parse(line).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}: {error}");
        }
    }

    #[test]
    fn an_id_is_taken_in_any_case() {
        assert_eq!(job_id("000000000000000000000000000000AB").unwrap(), JobId::from_u128(0xab));
        assert!(matches!(job_id("orders"), Err(Failure::NoJobId { .. })));
    }
}
