//! What somebody gets who depends on one of the libraries.

use anyhow::{Context as _, bail};

use super::Complaint;
use crate::workspace::cargo;

const LIBRARIES: &[&str] = &["runtime-core", "controller-events", "heartbeat", "asyncio"];

/// Asks cargo for each library's tree of ordinary dependencies.
pub(super) fn check() -> anyhow::Result<Vec<Complaint>> {
    let mut complaints = Vec::new();
    for library in LIBRARIES {
        let args = ["tree", "--package", library, "--edges", "normal", "--prefix", "none", "--format", "{p}"];
        let output = cargo().args(args).output().context("cargo tree")?;
        if !output.status.success() {
            bail!("cargo tree: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        complaints.extend(heavy(library, &String::from_utf8_lossy(&output.stdout)));
    }
    Ok(complaints)
}

fn heavy(library: &str, tree: &str) -> Vec<Complaint> {
    let mut names: Vec<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    names.sort_unstable();
    names.dedup();
    let manifest = format!("crates/{library}/Cargo.toml");
    names
        .into_iter()
        .filter(|name| is_heavy(name))
        .map(|name| Complaint::error(&manifest, 0, format!("whoever depends on `{library}` gets `{name}`")))
        .collect()
}

/// Whether nobody who wants a library alone should get this package.
pub(crate) fn is_heavy(name: &str) -> bool {
    let families = ["serde", "tonic", "prost", "tracing-subscriber"];
    let of_family = |family: &&str| {
        name.strip_prefix(*family).is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '-']))
    };
    families.iter().any(of_family) || name.contains("yaml") || name.contains("saphyr")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_heavy_is_complained_about_and_once() {
        let tree = "asyncio v0.1.0\nserde v1\ntracing v0.1\nserde_core v1\nserde v1 (*)\ntonic-prost v1\nserde-saphyr v2\nprostate v1\n";
        assert_eq!(heavy("asyncio", tree).len(), 4);
        assert_eq!(heavy("asyncio", "tokio v1\ntracing-core v0.1\nserdes v1\n"), []);
    }
}
