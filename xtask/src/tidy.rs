//! `cargo xtask tidy`: conventions as a test.
//!
//! | what | rule |
//! |---|---|
//! | module docs | every `.rs` file begins with `//!` (attributes may stand before it) |
//! | length | more than 400 lines: a warning, more than 800: an error; test files, generated files and the test module at a file's end do not count |
//! | tests | a test module of more than 200 lines has a file of its own |
//! | text | what the lints cannot see: see [`text`] |
//! | dependencies | the directions of the map, versions in the root manifest only: see [`manifests`] |
//! | weight | the libraries bring no serde, YAML, tonic or subscriber: see [`weight`] |
//! | paths | no file names this machine's folders |
//! | links | every relative link of a page leads to a file and, with `#`, to a heading |
//! | generated code | is what `cargo xtask codegen` makes |
//!
//! Each check is a function of a text (or of what cargo says) and returns complaints; only this file reads the tree.

mod files;
mod lexer;
mod links;
mod machine;
mod manifests;
mod shape;
mod text;
pub(crate) mod weight;

use std::fmt;

use anyhow::bail;

use crate::codegen;
use crate::workspace::root;

/// Something to be changed, and where.
#[derive(Debug, PartialEq, Eq)]
struct Complaint {
    /// Relative to the root.
    path: String,
    /// From 1; 0 for the file as a whole.
    line: usize,
    what: String,
    /// Told, but no failure.
    warning: bool,
}

impl Complaint {
    fn error(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into(), warning: false }
    }

    fn warning(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { warning: true, ..Self::error(path, line, what) }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.warning { "warning" } else { "error" };
        match self.line {
            0 => write!(f, "{kind}: {}: {}", self.path, self.what),
            line => write!(f, "{kind}: {}:{line}: {}", self.path, self.what),
        }
    }
}

/// Checks everything and prints each complaint on a line.
///
/// # Errors
/// At least one complaint is no warning, or the tree cannot be read.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = root();
    let tree = files::read(&root)?;
    let mut complaints = Vec::new();
    for (path, content) in &tree {
        if path.ends_with(".rs") {
            complaints.extend(shape::check(path, content));
            complaints.extend(text::check(path, content));
        }
        if path.ends_with(".md") {
            complaints.extend(links::check(&root, path, content, &tree));
        }
        // What lies outside the workspace takes nothing from its root manifest.
        let outside = ["examples/outside/", "benches/"].iter().any(|folder| path.starts_with(folder));
        let member = path != "Cargo.toml" && !outside;
        if path.ends_with("Cargo.toml") && member {
            complaints.extend(manifests::check_text(path, content));
        }
        complaints.extend(machine::check(path, content, &machine::folders(&root)));
    }
    complaints.extend(manifests::check_directions()?);
    complaints.extend(weight::check()?);
    if let Err(stale) = codegen::run(true) {
        complaints.push(Complaint::error("proto", 0, format!("{stale:#}")));
    }
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    let errors = complaints.iter().filter(|complaint| !complaint.warning).count();
    if errors > 0 {
        bail!("tidy: {errors} errors in {} files looked at", tree.len());
    }
    eprintln!("tidy: {} files, {} warnings", tree.len(), complaints.len());
    Ok(())
}
