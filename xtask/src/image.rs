//! `cargo xtask image`: static programs, and the container image `tidegate:local` that is made of nothing else.
//!
//! The image is laid out in `image/` of the target folder: the program and its links, the data and the job file of the demo cluster,
//! and the Dockerfile that takes them. The static build has a target folder of its own there, since its flags are others
//! than everybody's: in one folder each build would undo the other.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use testkit::processes::{Binaries, PROGRAMS};

use crate::docker::engine::Engine;
use crate::programs;
use crate::step::succeed;
use crate::workspace::{cargo, root};

/// The name that `docker-compose.yml` expects.
pub(crate) const TAG: &str = "tidegate:local";

/// The program that is the servers as well, by the name that it is started under.
const COMMAND_LINE: &str = "tidegate";

/// More than the static program and the data together have any reason to be.
const MOST_BYTES: u64 = 60_000_000;

/// What the image is to be.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Make no image: only lay out its files in this folder, which needs no Docker
    #[arg(long, value_name = "FOLDER")]
    files: Option<PathBuf>,
}

/// Builds the programs and the image.
///
/// # Errors
/// No engine answers, something does not build, or the image is too large.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(folder) = &args.files {
        return lay_out(&Programs::build_static()?, folder);
    }
    // Before minutes of building.
    let engine = Engine::find()?;
    let size = make(&engine, &Programs::build_static()?, TAG)?;
    println!("{TAG}: {:.1} MB; `docker-compose up` starts the demo cluster", size as f64 / 1e6);
    ensure!(size < MOST_BYTES, "the image is larger than {MOST_BYTES} bytes");
    Ok(())
}

/// The program, and what it needs beside it.
pub(crate) struct Programs {
    binaries: Binaries,
    libraries: Vec<PathBuf>,
}

impl Programs {
    /// A static one, for release.
    ///
    /// # Errors
    /// It cannot be built, or not here.
    pub(crate) fn build_static() -> anyhow::Result<Self> {
        if !cfg!(target_os = "linux") {
            bail!(
                "static programs for Linux are built on Linux; `docker build --tag {TAG} .` builds them within Docker"
            );
        }
        let host = host()?;
        let target = programs::target()?.join("image/cargo");
        let mut build = cargo();
        // With a target named, the flag is not for build scripts and macros, which cannot be static.
        build.args(["build", "--release", "--bins", "--target", &host]);
        // The servers are links to it: four times the same libraries are three times too many.
        build.args(["--package", COMMAND_LINE]);
        build.env_remove("CARGO_ENCODED_RUSTFLAGS").env("RUSTFLAGS", "-C target-feature=+crt-static");
        build.env("CARGO_PROFILE_RELEASE_STRIP", "symbols").env("CARGO_TARGET_DIR", &target);
        succeed(&mut build)?;
        let binaries = Binaries::some_in_folder(target.join(host).join("release"), &[COMMAND_LINE])?;
        Ok(Self { binaries, libraries: Vec::new() })
    }

    /// The one that `cargo build` has made already, with the loader and the libraries of this machine beside it:
    /// no build of minutes for a test.
    ///
    /// # Errors
    /// It is not there, or what it loads cannot be found out.
    pub(crate) fn as_built() -> anyhow::Result<Self> {
        let binaries = Binaries::some_in_folder(programs::target()?.join("debug"), &[COMMAND_LINE])?;
        let program = binaries.path(COMMAND_LINE);
        let output = Command::new("ldd").arg(&program).output().context("cannot start ldd")?;
        ensure!(output.status.success(), "ldd says nothing of {}", program.display());
        let libraries = loaded(&String::from_utf8_lossy(&output.stdout));
        Ok(Self { binaries, libraries })
    }
}

/// Lays out the files, has the image made of them, and starts each program in it once.
///
/// Returns its size in bytes.
///
/// # Errors
/// The engine's, or a program does not run there.
pub(crate) fn make(engine: &Engine, programs: &Programs, tag: &str) -> anyhow::Result<u64> {
    let folder = programs::work_folder("image/context")?;
    lay_out(programs, &folder.join("files"))?;
    fs::create_dir(folder.join("empty"))?;
    copy(&root().join("docker/Dockerfile"), &folder.join("Dockerfile"))?;
    engine.run(&["build", "--quiet", "--tag", tag, &folder.to_string_lossy()])?;
    programs::remove(&folder)?;
    for program in PROGRAMS {
        engine.run(&["run", "--rm", "--network", "none", tag, program, "--version"])?;
    }
    let size = engine.run(&["image", "inspect", "--format", "{{.Size}}", tag])?;
    size.parse().with_context(|| format!("docker says that {tag} has the size {size:?}"))
}

/// What lies where in the image.
fn lay_out(programs: &Programs, folder: &Path) -> anyhow::Result<()> {
    let program = folder.join("bin").join(COMMAND_LINE);
    copy(&programs.binaries.path(COMMAND_LINE), &program)?;
    // Only size: without the tool it is as it is.
    let _ = Command::new("strip").arg(&program).status();
    for server in PROGRAMS.into_iter().filter(|name| *name != COMMAND_LINE) {
        let link = program.with_file_name(server);
        symlink(COMMAND_LINE, &link).with_context(|| format!("cannot make {}", link.display()))?;
    }
    for library in &programs.libraries {
        copy(library, &folder.join(library.strip_prefix("/").unwrap_or(library)))?;
    }
    for (from, name) in [
        ("docker/flights.yaml", "flights.yaml"),
        ("data/nycflights/flights-sample.jsonl.gz", "flights-sample.jsonl.gz"),
        ("data/nycflights/planes.jsonl", "planes.jsonl"),
    ] {
        copy(&root().join(from), &folder.join("demo").join(name))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// The machine that programs are built for here, as rustc calls it.
fn host() -> anyhow::Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().context("cannot start rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say what it builds for")?.to_owned())
}

/// The files in what `ldd` prints: `libc.so.6 => /lib/libc.so.6 (0x...)`, or the loader alone by its path.
fn loaded(ldd: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let file = line.split_once(" => ").map_or(line, |(_, file)| file);
        file.split_whitespace().next().filter(|word| word.starts_with('/')).map(PathBuf::from)
    };
    ldd.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_loads_is_read_from_ldd() {
        let text = "\tlinux-vdso.so.1 (0x00007f)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x00007f)\n\t/lib64/ld.so.2 (0x7f)\n";
        assert_eq!(loaded(text), [PathBuf::from("/lib/x/libc.so.6"), PathBuf::from("/lib64/ld.so.2")]);
        assert!(loaded("\tstatically linked\n").is_empty());
    }

    /// From its last `FROM` on, but for where the files come from.
    fn last_stage(dockerfile: &str) -> Vec<String> {
        let lines: Vec<&str> =
            dockerfile.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        let from = lines.iter().rposition(|line| line.starts_with("FROM ")).unwrap();
        let stage = &lines[from..];
        stage.iter().map(|line| line.replace("--from=build ", "").replace("/image/", "")).collect()
    }

    #[test]
    fn both_dockerfiles_make_the_same_image() {
        let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
        assert_eq!(last_stage(&read("Dockerfile")), last_stage(&read("docker/Dockerfile")));
    }
}
