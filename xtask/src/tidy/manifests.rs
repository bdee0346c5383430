//! Manifests: which crate may depend on which, and where versions stand.
//!
//! The directions are those of the map: `runtime-core`, then the three libraries, then `wire` and `job`, then
//! `connectors`, `entrypoint` and `checkpoint`, then the roles, then the command line. Only ordinary dependencies count: examples
//! and tests may use a sibling.

use anyhow::{Context as _, bail};
use serde::Deserialize;

use super::Complaint;
use crate::workspace::{cargo, root};

const CORE: &[&str] = &["runtime-core"];
const LIBRARIES: &[&str] = &["runtime-core", "controller-events", "heartbeat", "asyncio"];
const CONNECTORS: &[&str] = &["runtime-core", "controller-events", "heartbeat", "asyncio", "job"];
const ROLES: &[&str] = &[
    "runtime-core",
    "controller-events",
    "heartbeat",
    "asyncio",
    "job",
    "wire",
    "connectors",
    "entrypoint",
    "checkpoint",
];

/// What a crate may depend on. `None`: the map does not know it.
fn allowed(package: &str) -> Option<Vec<&'static str>> {
    let roles = ["resourcemanager", "jobmaster", "taskexecutor"];
    Some(match package {
        "runtime-core" => Vec::new(),
        "controller-events" | "heartbeat" | "asyncio" => CORE.to_vec(),
        "entrypoint" | "checkpoint" => [LIBRARIES, &["wire"]].concat(),
        "wire" | "job" => LIBRARIES.to_vec(),
        "connectors" => CONNECTORS.to_vec(),
        "resourcemanager" | "jobmaster" | "taskexecutor" => ROLES.to_vec(),
        "tidegate" => [ROLES, &roles].concat(),
        "testkit" | "xtask" => [ROLES, &roles, &["tidegate", "testkit"]].concat(),
        _ => return None,
    })
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// Absent: an ordinary one.
    kind: Option<String>,
    /// Present for crates of the workspace.
    path: Option<String>,
}

/// Checks the directions between the crates of the workspace.
pub(super) fn check_directions() -> anyhow::Result<Vec<Complaint>> {
    let output = cargo()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("what cargo metadata printed")?;
    Ok(metadata.packages.iter().flat_map(directions).collect())
}

fn directions(package: &Package) -> Vec<Complaint> {
    let root = format!("{}/", root().display());
    let path = package.manifest_path.strip_prefix(&root).unwrap_or(&package.manifest_path);
    let Some(allowed) = allowed(&package.name) else {
        let what = format!(
            "`{}` is not on the map of the crates: give it its place in tidy and architecture",
            package.name
        );
        return vec![Complaint::error(path, 0, what)];
    };
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.path.is_some() && dependency.kind.is_none())
        .filter(|dependency| !allowed.contains(&dependency.name.as_str()))
        .map(|d| Complaint::error(path, 0, format!("`{}` must not depend on `{}`", package.name, d.name)))
        .collect()
}

/// Checks that a crate's manifest takes versions and lints from the root.
pub(super) fn check_text(path: &str, content: &str) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let (mut section, mut lints) = (String::new(), false);
    for (place, line) in content.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_matches(['[', ']']).to_owned();
            let parts: Vec<&str> = section.split('.').collect();
            if parts.iter().rev().nth(1).is_some_and(|above| above.ends_with("dependencies")) {
                complaints.push(Complaint::error(
                    path,
                    place + 1,
                    "write dependencies as `name = { workspace = true }`",
                ));
            }
            continue;
        }
        let entry = line.split_once('=').filter(|_| !line.starts_with('#'));
        let Some((name, value)) = entry.map(|(name, value)| (name.trim(), value.trim())) else { continue };
        let from_root =
            value.contains("workspace = true") || (name.ends_with(".workspace") && value == "true");
        if section.ends_with("dependencies") && !from_root {
            complaints.push(Complaint::error(
                path,
                place + 1,
                format!("the version of `{name}` belongs into the root manifest"),
            ));
        }
        if section == "package" && name == "version" {
            complaints.push(Complaint::error(path, place + 1, "write `version.workspace = true`"));
        }
        lints |= section == "lints" && name == "workspace" && value == "true";
    }
    if !lints {
        complaints.push(Complaint::error(path, 0, "`[lints] workspace = true` is missing"));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, Option<&str>, bool)]) -> Package {
        let dependencies = dependencies.iter().map(|(name, kind, ours)| Dependency {
            name: (*name).to_owned(),
            kind: kind.map(str::to_owned),
            path: ours.then(|| "x".to_owned()),
        });
        Package { name: name.to_owned(), manifest_path: "m".to_owned(), dependencies: dependencies.collect() }
    }

    #[test]
    fn dependencies_point_one_way() {
        let good = [
            package(
                "asyncio",
                &[("runtime-core", None, true), ("heartbeat", Some("dev"), true), ("serde", None, false)],
            ),
            package(
                "jobmaster",
                &[("wire", None, true), ("entrypoint", None, true), ("testkit", Some("dev"), true)],
            ),
            package("tidegate", &[("taskexecutor", None, true)]),
        ];
        let bad = [
            package("asyncio", &[("heartbeat", None, true)]),
            package("runtime-core", &[("asyncio", None, true)]),
            package("job", &[("wire", None, true)]),
            package("connectors", &[("entrypoint", None, true)]),
            package("checkpoint", &[("job", None, true)]),
            package("jobmaster", &[("taskexecutor", None, true)]),
            package("tidegate", &[("testkit", None, true)]),
            package("something-new", &[]),
        ];
        for package in good {
            assert_eq!(directions(&package), [], "{}", package.name);
        }
        for package in bad {
            assert_eq!(directions(&package).len(), 1, "{}", package.name);
        }
    }

    #[test]
    fn versions_stand_in_the_root_manifest() {
        let good = "[package]\nversion.workspace = true\n[lints]\nworkspace = true\n[features]\nx = [\"dep:y\"]\n\
                    [dependencies]\na = { workspace = true, features = [\"b\"] }\n# c = \"1\"\nd.workspace = true\n";
        assert_eq!(check_text("m", good), []);
        let bad = "[package]\nversion = \"1\"\n[dependencies]\na = \"1\"\nb = { version = \"1\" }\n\
                   [target.'cfg(unix)'.dependencies]\nc = \"2\"\n[dev-dependencies.d]\nversion = \"1\"\n";
        let lines: Vec<usize> = check_text("m", bad).iter().map(|c| c.line).collect();
        assert_eq!(lines, [2, 4, 5, 7, 8, 0]);
    }
}
