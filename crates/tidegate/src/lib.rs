//! The command line, and a whole cluster in one process.
//!
//! A command talks to a job master over its REST interface ([`client`]), or needs no cluster at all: checking and
//! explaining a job file, and the [`lookup`] service for trying jobs out. What a command prints on stdout is its result
//! and nothing else, so that it can be read by programs; progress and complaints go to stderr.
//!
//! Nothing here decides about jobs. The job file is read here only to find mistakes before anything is sent and to make
//! its paths absolute, as only this process knows the folder they are meant from.

pub mod client;
pub mod cluster;
pub mod commands;
mod failure;
mod interrupt;
mod job_file;
pub mod lookup;
mod names;
mod output;
mod patience;
mod progress;
mod text;
mod waiting;

use std::process::ExitCode;

use clap::Parser as _;

pub use failure::Failure;

/// The whole program: reads the command line, does what it says, and ends with the status that the command's result
/// has: 0 done, 1 failed at run time, 2 wrong usage or job file.
/// Started under the name of a server, as through a link, it is that server.
#[must_use]
pub fn main() -> ExitCode {
    if let Some(role) = names::server(std::env::args_os().next().as_deref()) {
        return names::serve(role);
    }
    let cli = commands::Cli::parse();
    match commands::execute(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.complain();
            ExitCode::from(failure.status())
        }
    }
}
