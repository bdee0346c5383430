//! The programs, built as people get them, and the folder where tasks work.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use testkit::processes::Binaries;

use crate::step::succeed;
use crate::workspace::cargo;

/// Builds the four programs for release.
///
/// # Errors
/// They cannot be built.
pub(crate) fn build() -> anyhow::Result<Binaries> {
    build_as("release")
}

/// Builds the four programs as `cargo build` does: sooner there, and slower.
///
/// # Errors
/// They cannot be built.
pub(crate) fn build_for_debugging() -> anyhow::Result<Binaries> {
    build_as("debug")
}

fn build_as(profile: &str) -> anyhow::Result<Binaries> {
    let mut command = cargo();
    // All of the workspace, as tests do: a choice of packages has other features, and so builds every dependency again.
    command.args(["build", "--workspace", "--bins"]);
    if profile == "release" {
        command.arg("--release");
    }
    succeed(&mut command)?;
    Binaries::in_folder(target()?.join(profile))
}

/// An empty folder of this name in the target folder: nothing is written anywhere else. One that an interrupted task
/// left is emptied.
///
/// # Errors
/// It cannot be made.
pub(crate) fn work_folder(name: &str) -> anyhow::Result<PathBuf> {
    let folder = target()?.join(name);
    remove(&folder)?;
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

/// Removes a folder, if it is there.
///
/// # Errors
/// The system's.
pub(crate) fn remove(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// Where cargo builds: this program lies in its `debug/`.
///
/// # Errors
/// It lies elsewhere.
pub(crate) fn target() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(Path::parent).context("this program lies in no target folder")?;
    Ok(target.to_owned())
}
