//! The program `taskexecutor`: runs tasks in slots.

use std::process::ExitCode;

fn main() -> ExitCode {
    taskexecutor::TaskExecutor::builder().run()
}
