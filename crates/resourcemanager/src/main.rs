//! The program `resourcemanager`: knows the task executors and hands their slots to jobs.

use std::process::ExitCode;

fn main() -> ExitCode {
    entrypoint::run_server(entrypoint::Role::ResourceManager, resourcemanager::server::run)
}
