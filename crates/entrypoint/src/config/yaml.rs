//! The configuration file: YAML with nested or dotted keys, flattened, each value with its line.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// One value of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The dotted key.
    pub(super) key: String,
    /// Where the key stands, from 1.
    pub(super) line: u64,
    /// The value.
    pub(super) value: Leaf,
}

/// What can stand at the end of a path of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Leaf {
    /// A number, a word or a text, as text.
    Text(String),
    /// Nothing behind the colon.
    Nothing,
    /// A list, which no key takes.
    List,
}

enum Node {
    Leaf(Leaf),
    /// What YAML takes for a number or a truth value, printed by us: `0x1f` would come as `31`.
    Typed(String),
    Map(Map),
}

type Map = Vec<(Spanned<String>, Spanned<Node>)>;

/// Reads a file's text. A text without any content is an empty configuration.
///
/// # Errors
/// What the parser says, with line and column.
pub(super) fn read(text: &str) -> Result<Vec<Entry>, String> {
    let blank = |line: &str| matches!(line.trim().chars().next(), None | Some('#'));
    if text.trim_start_matches('\u{feff}').lines().all(blank) {
        return Ok(Vec::new());
    }
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true, leading_zero_numbers_as_strings: true };
    let root: Node = serde_saphyr::from_str_with_options(text, options).map_err(|e| e.to_string())?;
    let mut entries = Vec::new();
    match root {
        Node::Leaf(Leaf::Nothing) => {}
        Node::Leaf(_) | Node::Typed(_) => return Err("the document is a single value or a list".to_owned()),
        Node::Map(map) => flatten(text, "", map, &mut entries),
    }
    Ok(entries)
}

fn flatten(text: &str, prefix: &str, map: Map, entries: &mut Vec<Entry>) {
    for (name, node) in map {
        let key = if prefix.is_empty() { name.value } else { format!("{prefix}.{}", name.value) };
        let line = name.referenced.line();
        match node.value {
            Node::Map(inner) => flatten(text, &key, inner, entries),
            Node::Leaf(value) => entries.push(Entry { key, line, value }),
            Node::Typed(printed) => {
                let value = Leaf::Text(written(text, node.defined).unwrap_or(printed));
                entries.push(Entry { key, line, value });
            }
        }
    }
}

/// The text of a value as it stands in the file: what type it has is for its key to say, not for YAML.
fn written(text: &str, at: serde_saphyr::Location) -> Option<String> {
    let span = at.span();
    let begin = usize::try_from(span.byte_offset()?).ok()?;
    let length = usize::try_from(span.byte_len()?).ok()?;
    let written = text.get(begin..begin.checked_add(length)?)?.trim();
    (!written.is_empty() && !written.starts_with(['"', '\'', '!', '&', '*'])).then(|| written.to_owned())
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl NodeVisitor {
    fn typed<E>(value: impl fmt::Display) -> Result<Node, E> {
        Ok(Node::Typed(value.to_string()))
    }
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or a mapping of keys to values")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Self::typed(value)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Self::typed(value)
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Self::typed(value)
    }

    fn visit_i128<E>(self, value: i128) -> Result<Node, E> {
        Self::typed(value)
    }

    fn visit_u128<E>(self, value: u128) -> Result<Node, E> {
        Self::typed(value)
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Self::typed(value)
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Leaf(Leaf::Text(value.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf(Leaf::Nothing))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf(Leaf::Nothing))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        while seq.next_element::<Node>()?.is_some() {}
        Ok(Node::Leaf(Leaf::List))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_the_text_that_was_written() {
        let cases = [
            ("0x1f", "0x1f"),
            ("1e3", "1e3"),
            ("007", "007"),
            ("1_000", "1_000"),
            ("5 # why", "5"),
            ("true", "true"),
            ("off", "off"),
            ("'7'", "7"),
            ("\"a\\tb\"", "a\tb"),
            ("10s", "10s"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("-1", "-1"),
        ];
        for (written, read_as) in cases {
            for text in [format!("a:\n  b: {written}\n"), format!("# \u{e4}\u{2026}\na.b: {written}")] {
                let entry = Entry { key: "a.b".to_owned(), line: 2, value: Leaf::Text(read_as.to_owned()) };
                assert_eq!(read(&text), Ok(vec![entry]), "{text}");
            }
        }
        let anchored = read("x: &a 0x1f\ny: *a\n").unwrap();
        assert_eq!(
            anchored.iter().map(|e| (e.line, e.value.clone())).collect::<Vec<_>>(),
            [(1, Leaf::Text("0x1f".to_owned())), (2, Leaf::Text("0x1f".to_owned())),]
        );
    }

    #[test]
    fn what_is_no_yaml_is_told_on_one_line_with_its_place() {
        for text in ["a: [", "a: 1\na: 2\n", "a: 1\n---\nb: 2\n", "a:\n\t- x\n", "a: b: c\n", "just text"] {
            let told = read(text).unwrap_err();
            assert!(!told.contains('\n'), "{told:?}");
        }
    }
}
