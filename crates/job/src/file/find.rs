//! Where a key was written: for what is found out about its value after the file was checked.

use super::error::Place;
use super::node::{Node, Value};

/// The place of a key (`sink.file.path`, `steps.customer.call.table.file`) and its path in the file, as far as it goes.
pub(super) fn find(root: &Node, key: &str) -> (Place, String) {
    let mut found = Found { node: root, path: String::new() };
    let rest = match key.strip_prefix("steps.").and_then(|rest| step(root, rest)) {
        Some((index, enrich, rest)) => {
            found = Found { node: enrich, path: format!("steps[{index}].enrich") };
            rest
        }
        None => key,
    };
    for part in rest.split('.') {
        let Some(node) = found.node.get(part) else { break };
        let dot = if found.path.is_empty() { "" } else { "." };
        found = Found { node, path: format!("{}{dot}{part}", found.path) };
    }
    (found.node.place.clone(), found.path)
}

struct Found<'a> {
    node: &'a Node,
    path: String,
}

/// The enrichment that `rest` begins with the name of. Of names that begin alike the longest is meant.
fn step<'a, 'k>(root: &'a Node, rest: &'k str) -> Option<(usize, &'a Node, &'k str)> {
    let Value::List(steps) = &root.get("steps")?.value else { return None };
    let named = steps.iter().enumerate().filter_map(|(index, step)| {
        let enrich = step.get("enrich")?;
        let Value::Text(name) = &enrich.get("name")?.value else { return None };
        let rest = rest.strip_prefix(name.as_str())?.strip_prefix('.')?;
        Some((index, enrich, rest))
    });
    named.min_by_key(|(.., rest)| rest.len())
}

#[cfg(test)]
mod tests {
    use crate::file::JobFile;

    #[test]
    fn what_is_found_out_later_has_the_place_of_its_key() {
        let text = "name: x\nsource: {file: {path: in.jsonl}}\nsteps:\n  - enrich:\n      name: a.b\n      call:\n        \
                    table: {file: t.jsonl, key: k, by: k}\nsink: {file: {path: out.jsonl}}\n";
        let file = JobFile::parse(text, "x.yaml").unwrap();
        for (key, expected) in [
            ("source.file.path", "x.yaml:2:23: source.file.path: gone"),
            ("steps.a.b.call.table.file", "x.yaml:7:23: steps[0].enrich.call.table.file: gone"),
            ("sink.file.path", "x.yaml:8:21: sink.file.path: gone"),
            ("dead_letters.file.path", "x.yaml:1:1: gone"),
        ] {
            assert_eq!(file.mistake_at(key, "gone").to_string(), expected);
        }
    }
}
