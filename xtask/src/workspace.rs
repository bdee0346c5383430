//! Where the project lies, and its cargo.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the root manifest.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

/// The cargo that started this task, in the root folder.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.current_dir(root());
    command
}
