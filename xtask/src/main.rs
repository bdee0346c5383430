//! The project's tasks: `cargo xtask TASK`. They need Rust and a C compiler and nothing else.
//!
//! A task is a module with an `Args` and a `run`; a line here for each in the three lists makes it known.

mod bench;
mod chaos;
mod cluster;
mod codegen;
mod demo;
mod docker;
mod image;
mod memory;
mod outside;
mod programs;
mod step;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's tasks
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run the flights job on a cluster of processes with a slow service, and check the result
    Demo(demo::Args),
    /// Measure, each figure the median of several runs
    Bench(bench::Args),
    /// Kill, stop and cut off the processes of a cluster while a job runs, and check its result
    Chaos(chaos::Args),
    /// Run a cluster in the foreground until Ctrl-C
    Cluster(cluster::Args),
    /// Make the gRPC code from proto/, or with --check compare it with what is committed
    Codegen {
        /// Change nothing; fail where the committed code is not what would be made
        #[arg(long)]
        check: bool,
    },
    /// Build static programs and the container image of them
    Image(image::Args),
    /// Check the conventions that a program can check
    Tidy,
    /// Run every check and test that a fresh machine can run
    Test(test::Args),
}

fn main() -> ExitCode {
    let outcome = match Command::parse().task {
        Task::Demo(args) => demo::run(&args),
        Task::Bench(args) => bench::run(&args),
        Task::Chaos(args) => chaos::run(&args),
        Task::Cluster(args) => cluster::run(&args),
        Task::Codegen { check } => codegen::run(check),
        Task::Image(args) => image::run(&args),
        Task::Tidy => tidy::run(),
        Task::Test(args) => test::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
