//! The program `tidegate`: runs, shows and ends jobs.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidegate::main()
}
