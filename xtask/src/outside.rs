//! Programs of somebody else's, in `examples/outside`: each is no member of the workspace, depends on one of the three
//! libraries, and is built and run. They bring no serde, YAML, tonic or subscriber with them.

use anyhow::Context as _;

use crate::step::succeed;
use crate::tidy::weight::is_heavy;
use crate::workspace::{cargo, root};

/// The libraries that stand alone.
pub(crate) const LIBRARIES: [&str; 3] = ["asyncio", "controller-events", "heartbeat"];

/// Builds and runs each, and looks at its tree.
///
/// # Errors
/// One does not build, ends with an error, or brings something heavy.
pub(crate) fn run() -> anyhow::Result<()> {
    for library in LIBRARIES {
        let manifest = root().join("examples/outside").join(library).join("Cargo.toml");
        let manifest = manifest.to_str().context("the project's path is no UTF-8")?;
        // Its own target folder within ours: the features of its dependencies are its own.
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
        let target = target.join("outside");
        succeed(
            cargo()
                .args(["run", "--quiet", "--locked", "--manifest-path", manifest])
                .env("CARGO_TARGET_DIR", &target),
        )?;
        let tree = ["tree", "--locked", "--manifest-path", manifest, "--edges", "normal", "--prefix", "none"];
        let output = cargo().args(tree).args(["--format", "{p}"]).output().context("cargo tree")?;
        anyhow::ensure!(output.status.success(), "cargo tree failed for {manifest}");
        let tree = String::from_utf8_lossy(&output.stdout);
        let heavy =
            tree.lines().filter_map(|line| line.split_whitespace().next()).find(|name| is_heavy(name));
        if let Some(heavy) = heavy {
            anyhow::bail!("whoever depends on `{library}` gets `{heavy}`");
        }
    }
    Ok(())
}
