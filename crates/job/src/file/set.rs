//! `--set KEY=VALUE`: one value of the tree replaced.

use super::error::{JobFileError, Place};
use super::node::{Entry, Node, Value};
use crate::suggest::closest;

/// Sets the value of a key; what is missing on the way is made.
pub(super) fn apply(root: &mut Node, file: &str, key: &str, text: &str) -> Result<(), JobFileError> {
    let place = Place::Set(format!("{key}={text}"));
    let refuse = |message: String| JobFileError {
        file: file.to_owned(),
        place: place.clone(),
        path: String::new(),
        message,
    };
    let mut value = Node::read(if text.is_empty() { "null" } else { text }, file)
        .map_err(|error| refuse(format!("the value is no YAML: {}", error.message)))?;
    value.place_at(&place);
    if key.is_empty() || key.split('.').any(str::is_empty) {
        return Err(refuse(
            "expected KEY=VALUE, such as parallelism=4 or steps.customer.capacity=50".to_owned(),
        ));
    }
    let (node, rest) = start(root, key).map_err(refuse)?;
    let mut target = node;
    for part in rest.split('.') {
        target = child(target, part, &place)
            .ok_or_else(|| refuse(format!("`{part}` cannot be set: what it belongs to has no keys")))?;
    }
    *target = value;
    Ok(())
}

/// Where the key's path starts: at the root, or within a step. Returns the rest of the path.
fn start<'a, 'k>(root: &'a mut Node, key: &'k str) -> Result<(&'a mut Node, &'k str), String> {
    let Some(rest) = key.strip_prefix("steps").and_then(|rest| rest.strip_prefix(['.', '['])) else {
        return Ok((root, key));
    };
    let steps = match root.get_mut("steps").map(|node| &mut node.value) {
        Some(Value::List(steps)) => steps,
        _ => return Err("the job has no list of steps".to_owned()),
    };
    let (number, after_number) = rest.split_once('.').unwrap_or((rest, ""));
    if let Ok(index) = number.trim_end_matches(']').parse::<usize>() {
        let count = steps.len();
        let step = steps
            .get_mut(index)
            .ok_or_else(|| format!("there is no step {index}; there are {count}, from 0"))?;
        return if after_number.is_empty() { Err(incomplete(rest)) } else { Ok((step, after_number)) };
    }
    let names = names(steps);
    // Of names that begin alike the longest is meant, as names may have dots.
    let found = names
        .iter()
        .enumerate()
        .filter(|(_, name)| {
            rest.strip_prefix(name.as_str()).is_some_and(|r| r.is_empty() || r.starts_with('.'))
        })
        .max_by_key(|(_, name)| name.len());
    let Some((index, name)) = found else {
        let hint = closest(number, names.iter().map(String::as_str)).map_or_else(
            || format!("; there are {}", names.join(", ")),
            |near| format!(", did you mean `{near}`?"),
        );
        return Err(format!("there is no step `{number}`{hint}"));
    };
    let rest = rest.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('.'));
    let rest = rest.ok_or_else(|| incomplete(name))?;
    let step =
        steps.get_mut(index).and_then(inside).ok_or_else(|| format!("the step `{name}` has no keys"))?;
    Ok((step, rest))
}

fn incomplete(step: &str) -> String {
    format!("say which key of the step is meant: steps.{step}.KEY")
}

/// The names of the steps; a filter's is counted, one that cannot be read is empty.
fn names(steps: &[Node]) -> Vec<String> {
    let mut filters = 0;
    let name = |step: &Node| {
        if step.get("filter").is_some() {
            filters += 1;
            return format!("filter-{filters}");
        }
        match step.get("enrich").and_then(|enrich| enrich.get("name")).map(|name| &name.value) {
            Some(Value::Text(name)) => name.clone(),
            _ => String::new(),
        }
    };
    steps.iter().map(name).collect()
}

/// The map of a step's own keys. A filter that is written as a bare condition becomes one.
fn inside(step: &mut Node) -> Option<&mut Node> {
    let kind = if step.get("filter").is_some() { "filter" } else { "enrich" };
    let node = step.get_mut(kind)?;
    if kind == "filter" && !matches!(node.value, Value::Map(_)) {
        let place = node.place.clone();
        let condition = Entry { key: "if".to_owned(), key_place: place.clone(), node: node.clone() };
        *node = Node { place, value: Value::Map(vec![condition]) };
    }
    Some(node)
}

/// The value of a key, made where it is missing; `None` where there are no keys.
fn child<'a>(node: &'a mut Node, key: &str, place: &Place) -> Option<&'a mut Node> {
    if node.value == Value::Null {
        *node = Node { place: place.clone(), value: Value::Map(Vec::new()) };
    }
    let Value::Map(entries) = &mut node.value else { return None };
    let index = entries.iter().position(|entry| entry.key == key).unwrap_or(entries.len());
    if index == entries.len() {
        let node = Node { place: place.clone(), value: Value::Null };
        entries.push(Entry { key: key.to_owned(), key_place: place.clone(), node });
    }
    entries.get_mut(index).map(|entry| &mut entry.node)
}
