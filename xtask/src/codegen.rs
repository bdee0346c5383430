//! `cargo xtask codegen`: Rust code of the `.proto` files.
//!
//! The code is committed, so that building the workspace needs no code generator; this task makes it without `protoc`
//! (protox reads the files) and, with `--check`, only compares.

use anyhow::{Context as _, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// What the generated file begins with: its module documentation and what is not asked of generated code.
const HEADER: &str = "\
//! The messages and services of `proto/`, made by `cargo xtask codegen`. Edit the `.proto` files instead.
#![allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
";

/// Makes the code, or with `check` compares it with what is committed.
///
/// # Errors
///
/// A `.proto` file that does not compile, a folder that cannot be read or written, and with `check` any difference.
pub(crate) fn run(check: bool) -> anyhow::Result<()> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the task's package lies in no workspace")?;
    let made = generate(&root.join("proto"))?;
    let target = root.join("crates/wire/src/gen");
    if check {
        return compare(&target, &made);
    }
    fs::create_dir_all(&target).with_context(|| format!("cannot create {}", target.display()))?;
    for (name, code) in &made {
        let path = target.join(name);
        fs::write(&path, code).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The generated files by name, in the order of their names.
fn generate(proto: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let descriptors = protox::compile(files_in(proto, "proto")?, [proto])?;
    let folder = tempfile::tempdir().context("no temporary folder")?;
    tonic_prost_build::configure()
        .build_transport(false)
        .bytes(".")
        .out_dir(folder.path())
        .compile_fds(descriptors)
        .context("cannot make code of the messages")?;
    files_in(folder.path(), "rs")?
        .into_iter()
        .map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let code =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok((name, format!("{HEADER}{code}")))
        })
        .collect()
}

fn compare(target: &Path, made: &[(String, String)]) -> anyhow::Result<()> {
    for (name, code) in made {
        let path = target.join(name);
        let committed = fs::read_to_string(&path).unwrap_or_default();
        if committed != *code {
            bail!("{} is not what `proto/` gives: run `cargo xtask codegen`", path.display());
        }
    }
    let present = files_in(target, "rs")?.len();
    if present != made.len() {
        bail!("{} holds {present} files, `proto/` gives {}: delete the others", target.display(), made.len());
    }
    Ok(())
}

fn files_in(folder: &Path, extension: &str) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
