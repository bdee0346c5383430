//! Where the programs lie.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, bail};

use crate::flights::root;

/// What `cargo build` makes.
pub const PROGRAMS: [&str; 4] = ["resourcemanager", "jobmaster", "taskexecutor", "tidegate"];

/// A folder that holds the programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// The programs of a folder.
    ///
    /// # Errors
    /// One is not there.
    pub fn in_folder(folder: impl Into<PathBuf>) -> anyhow::Result<Self> {
        Self::some_in_folder(folder, &PROGRAMS)
    }

    /// A folder of which only these programs are needed.
    ///
    /// # Errors
    /// One is not there.
    pub fn some_in_folder(folder: impl Into<PathBuf>, programs: &[&str]) -> anyhow::Result<Self> {
        let folder = folder.into();
        for program in programs {
            if !folder.join(program).is_file() {
                bail!("{} has no `{program}`; `cargo build` makes it", folder.display());
            }
        }
        Ok(Self { folder })
    }

    /// The programs that belong to the test at hand, built if need be: to test a package cargo builds the programs of
    /// that package only, and an older program of another would be tested unnoticed.
    ///
    /// # Errors
    /// They cannot be built.
    pub fn of_this_test() -> anyhow::Result<Self> {
        static BUILT: OnceLock<Result<Binaries, String>> = OnceLock::new();
        let built = BUILT.get_or_init(|| build_beside_test().map_err(|error| format!("{error:#}")));
        built.clone().map_err(anyhow::Error::msg)
    }

    /// The path of a program.
    #[must_use]
    pub fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }
}

/// The cargo that started this process, in the root folder of the project.
///
/// What that said of the package it ran is not passed on: some dependencies are built anew whenever it differs.
#[must_use]
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    let of_a_package = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| of_a_package(name)) {
        command.env_remove(name);
    }
    command.current_dir(root());
    command
}

/// The test lies in `TARGET/PROFILE/deps/`.
fn build_beside_test() -> anyhow::Result<Binaries> {
    let test = std::env::current_exe()?;
    let profile = test.parent().and_then(Path::parent).context("the test lies in no target folder")?;
    let target = profile.parent().context("the test lies in no target folder")?;
    let mut build = cargo();
    // With the tests of the workspace: then libraries have the features that `cargo test` gives them, and are there.
    build.args(["build", "--quiet", "--workspace", "--bins", "--tests", "--target-dir"]);
    build.arg(target);
    if profile.ends_with("release") {
        build.arg("--release");
    }
    let output = build.output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the programs cannot be built: {}", String::from_utf8_lossy(&output.stderr));
    }
    Binaries::in_folder(profile)
}
