//! The paths in a job file.

use std::path::Path;

use super::error::Place;
use super::node::{Node, Value};
use super::section::Findings;

/// What a path in the file is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// May be a glob.
    Input,
    Plain,
    /// A `file://` URL or a path.
    Url,
}

/// Makes each path absolute.
pub(super) fn make_absolute(root: &mut Node, base: &Path) {
    each(root, &mut |_, form, node| {
        if let Value::Text(path) = &mut node.value
            && !is_absolute(path, form)
        {
            *path = joined(base, path, form);
        }
    });
}

/// Notes each relative path.
pub(super) fn require_absolute(root: &Node, findings: &Findings<'_>) {
    // The walk may change the nodes; a copy keeps it the only one.
    let mut root = root.clone();
    each(&mut root, &mut |key, form, node| {
        let place: &Place = &node.place;
        if let Value::Text(path) = &node.value
            && !is_absolute(path, form)
        {
            findings.note(
                place,
                key,
                format!("\"{path}\" is relative; a job that is posted has absolute paths only"),
            );
        }
    });
}

fn each(root: &mut Node, visit: &mut impl FnMut(&str, Form, &mut Node)) {
    let paths: [(&[&str], Form); 4] = [
        (&["source", "file", "path"], Form::Input),
        (&["sink", "file", "path"], Form::Plain),
        (&["dead_letters", "file", "path"], Form::Plain),
        (&["checkpoints", "dir"], Form::Url),
    ];
    for (keys, form) in paths {
        if let Some(node) = descend(root, keys) {
            visit(&keys.join("."), form, node);
        }
    }
    if let Some(Value::List(steps)) = root.get_mut("steps").map(|node| &mut node.value) {
        for (index, step) in steps.iter_mut().enumerate() {
            let keys = ["enrich", "call", "table", "file"];
            if let Some(node) = descend(step, &keys) {
                visit(&format!("steps[{index}].{}", keys.join(".")), Form::Plain, node);
            }
        }
    }
}

fn descend<'a>(node: &'a mut Node, keys: &[&str]) -> Option<&'a mut Node> {
    keys.iter().try_fold(node, |node, key| node.get_mut(key))
}

fn is_absolute(path: &str, form: Form) -> bool {
    // An empty path is refused by the check, and is to stay what it is until then.
    path.is_empty()
        || (form == Form::Url && path.contains("://"))
        || (form != Form::Url && Path::new(path).is_absolute())
}

fn joined(base: &Path, path: &str, form: Form) -> String {
    let relative = path.strip_prefix("./").unwrap_or(path);
    let base = base.to_string_lossy();
    let base = base.trim_end_matches('/');
    match form {
        Form::Input if is_glob(path) => format!("{}/{relative}", without_wildcards(base)),
        Form::Url if path.starts_with('/') => format!("file://{path}"),
        Form::Url => format!("file://{base}/{relative}"),
        _ => format!("{base}/{relative}"),
    }
}

fn is_glob(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

/// The folder's own brackets and stars mean themselves within a glob.
fn without_wildcards(base: &str) -> String {
    let mut escaped = String::with_capacity(base.len());
    for c in base.chars() {
        match c {
            '*' | '?' | '[' => {
                escaped.push('[');
                escaped.push(c);
                escaped.push(']');
            }
            _ => escaped.push(c),
        }
    }
    escaped
}
