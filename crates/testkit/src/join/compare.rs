//! Whether an output is the expected one, and where it is not.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::io::BufRead as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::flights;

type Line = Vec<u8>;

/// The same lines in the same order.
///
/// # Errors
/// The first difference.
pub fn same_sequence(expected: &[Line], actual: &[Line]) -> anyhow::Result<()> {
    for (place, (wanted, found)) in expected.iter().zip(actual).enumerate() {
        if wanted != found {
            bail!("line {}: expected {}, found {}", place + 1, shown(wanted), shown(found));
        }
    }
    if expected.len() != actual.len() {
        bail!("expected {} lines, found {}", expected.len(), actual.len());
    }
    Ok(())
}

/// The same lines equally often, in any order.
///
/// # Errors
/// A line that is missing or too many, and how many such there are.
pub fn same_multiset(expected: &[Line], actual: &[Line]) -> anyhow::Result<()> {
    let mut counts: HashMap<&[u8], i64> = HashMap::new();
    for line in expected {
        *counts.entry(line).or_default() += 1;
    }
    for line in actual {
        *counts.entry(line).or_default() -= 1;
    }
    let mut wrong: Vec<(&[u8], i64)> = counts.into_iter().filter(|(_, count)| *count != 0).collect();
    wrong.sort_unstable();
    let missing: i64 = wrong.iter().map(|(_, count)| count.max(&0)).sum();
    let surplus: i64 = wrong.iter().map(|(_, count)| -count.min(&0)).sum();
    match wrong.first() {
        None => Ok(()),
        Some((line, count)) => {
            let what = if *count > 0 { "missing" } else { "not expected" };
            bail!("{missing} lines are missing, {surplus} are not expected; {what}: {}", shown(line))
        }
    }
}

/// The same lines, those of one key in the same order. `key` says a line's key; lines without one have no order.
///
/// # Errors
/// The first difference.
pub fn same_per_key(
    expected: &[Line],
    actual: &[Line],
    key: impl Fn(&[u8]) -> Option<String>,
) -> anyhow::Result<()> {
    same_multiset(expected, actual)?;
    let by_key = |lines: &[Line]| -> HashMap<String, Vec<Line>> {
        let mut groups: HashMap<String, Vec<Line>> = HashMap::new();
        for line in lines {
            if let Some(key) = key(line) {
                groups.entry(key).or_default().push(line.clone());
            }
        }
        groups
    };
    let found = by_key(actual);
    let mut groups: Vec<_> = by_key(expected).into_iter().collect();
    groups.sort_unstable();
    for (name, wanted) in &groups {
        let lines = found.get(name).map(Vec::as_slice).unwrap_or_default();
        same_sequence(wanted, lines).with_context(|| format!("key `{name}`"))?;
    }
    Ok(())
}

/// A fingerprint of lines in any order, for outputs that are too large to be held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Digest {
    /// How many lines.
    pub lines: u64,
    sum: u64,
}

impl Digest {
    /// Takes in a line.
    pub fn add(&mut self, line: &[u8]) {
        // Equally seeded each time: the digests of two processes can be compared.
        let mut hasher = DefaultHasher::new();
        hasher.write(line);
        self.lines += 1;
        self.sum = self.sum.wrapping_add(hasher.finish());
    }

    /// That of some lines.
    pub fn of<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Self {
        let mut digest = Self::default();
        lines.into_iter().for_each(|line| digest.add(line));
        digest
    }

    /// That of the lines of some files.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn of_files(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let mut digest = Self::default();
        let mut line = Vec::new();
        for path in paths {
            let mut file = flights::open(path)?;
            while file.read_until(b'\n', &mut line)? > 0 {
                digest.add(line.strip_suffix(b"\n").unwrap_or(&line));
                line.clear();
            }
        }
        Ok(digest)
    }

    /// That of the same lines `n` times.
    #[must_use]
    pub const fn times(self, n: u64) -> Self {
        Self { lines: self.lines * n, sum: self.sum.wrapping_mul(n) }
    }
}

/// The visible files of an output folder, by name. A hidden one is an error: something unfinished was left.
///
/// # Errors
/// The folder cannot be read, or holds a hidden file.
pub fn parts(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
            bail!("{} was left", path.display());
        }
        paths.push(path);
    }
    paths.sort_by_key(|path| numbers(path));
    Ok(paths)
}

/// Those in a file's name: part 10 comes after part 9.
fn numbers(path: &Path) -> Vec<u64> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Line> {
        text.split_whitespace().map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn parts_come_in_the_order_of_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        for name in
            ["part-0-10.jsonl", "part-0-9.jsonl", "part-1-1.jsonl", "part-10-2.jsonl", "part-2-3.jsonl"]
        {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let names = parts(folder.path()).unwrap();
        let names: Vec<_> = names.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        let expected =
            ["part-0-9.jsonl", "part-0-10.jsonl", "part-1-1.jsonl", "part-2-3.jsonl", "part-10-2.jsonl"];
        assert_eq!(names, expected);
    }

    fn first_letter(line: &[u8]) -> Option<String> {
        line.first().filter(|letter| **letter != b'-').map(|letter| char::from(*letter).to_string())
    }

    #[test]
    fn each_check_sees_what_it_is_for() {
        // expected, actual, same sequence, same per key, same multiset
        let cases = [
            ("a1 b1 a2", "a1 b1 a2", true, true, true),
            ("a1 b1 a2", "b1 a1 a2", false, true, true),
            ("a1 b1 a2", "a2 b1 a1", false, false, true),
            ("-1 -2 a1", "a1 -2 -1", false, true, true),
            ("a1 b1 a2", "a1 b1", false, false, false),
            ("a1 b1", "a1 b1 b1", false, false, false),
            ("a1 a1 b1", "a1 b1 b1", false, false, false),
            ("", "", true, true, true),
        ];
        for (expected, actual, sequence, per_key, multiset) in cases {
            let (wanted, found) = (lines(expected), lines(actual));
            assert_eq!(same_sequence(&wanted, &found).is_ok(), sequence, "{expected} / {actual}");
            assert_eq!(same_per_key(&wanted, &found, first_letter).is_ok(), per_key, "{expected} / {actual}");
            assert_eq!(same_multiset(&wanted, &found).is_ok(), multiset, "{expected} / {actual}");
            assert_eq!(Digest::of(&wanted) == Digest::of(&found), multiset, "{expected} / {actual}");
        }
    }

    #[test]
    fn a_digest_of_copies_is_that_of_the_copies_lines() {
        assert_eq!(Digest::of(&lines("a b c")).times(3), Digest::of(&lines("a b c c b a a b c")));
    }

    #[test]
    fn a_hidden_file_is_something_left() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("part-1-0.jsonl"), "").unwrap();
        std::fs::write(folder.path().join("part-0-0.jsonl"), "").unwrap();
        let names = parts(folder.path()).unwrap();
        assert_eq!(names.len(), 2);
        assert!(names[0].ends_with("part-0-0.jsonl"));
        std::fs::write(folder.path().join(".part"), "").unwrap();
        assert!(parts(folder.path()).unwrap_err().to_string().contains(".part was left"));
    }
}
