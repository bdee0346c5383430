//! Where the project lies, and its cargo.

use std::path::{Path, PathBuf};

pub(crate) use testkit::processes::cargo;

/// The folder of the root manifest.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}
