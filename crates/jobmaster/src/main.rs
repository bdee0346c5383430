//! The program `jobmaster`: accepts jobs and runs them on task executors.

use std::process::ExitCode;

fn main() -> ExitCode {
    entrypoint::run_server(entrypoint::Role::JobMaster, jobmaster::server::run)
}
