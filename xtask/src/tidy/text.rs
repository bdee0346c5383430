//! What the lints cannot see: macros inside macros, `select!` without `biased`, stdout in libraries, notes to oneself.

use super::Complaint;
use super::lexer::split;
use super::shape::{is_generated, is_test_file, lines_and_tests};

/// Left over from writing; clippy misses them in macro bodies and in code behind a `cfg`.
const LEFT_OVERS: &[&str] = &["dbg!", "todo!", "unimplemented!"];

/// Notes to oneself belong into the tracker.
const NOTES: &[&str] = &["TODO", "FIXME", "XXX"];

pub(super) fn check(path: &str, content: &str) -> Vec<Complaint> {
    if is_generated(path) {
        return Vec::new();
    }
    let parts = split(content);
    let (lines, _) = lines_and_tests(content);
    let mut complaints = Vec::new();
    for (place, line) in parts.code.lines().enumerate() {
        let number = place + 1;
        for word in LEFT_OVERS.iter().filter(|word| has_word(line, word)) {
            complaints.push(Complaint::error(path, number, format!("`{word}` is left over")));
        }
        if place < lines && is_library(path) {
            for word in ["println!", "print!"].iter().filter(|word| has_word(line, word)) {
                let what = format!("`{word}`: a server's stdout carries the ready line alone; log it");
                complaints.push(Complaint::error(path, number, what));
            }
        }
    }
    for (place, line) in parts.comments.lines().enumerate() {
        for word in NOTES.iter().filter(|word| has_word(line, word)) {
            complaints.push(Complaint::error(
                path,
                place + 1,
                format!("`{word}`: do it, or put it into the tracker"),
            ));
        }
        if is_banner(line) {
            complaints.push(Complaint::error(path, place + 1, "a banner: a file of one idea needs none"));
        }
    }
    complaints.extend(unbiased(path, &parts.code));
    complaints
}

/// The order in which `select!` looks at its branches is drawn without a seed: equal seeds would give unequal runs.
fn unbiased(path: &str, code: &str) -> Vec<Complaint> {
    code.match_indices("select!")
        .filter(|(place, _)| !ends_in_word(code.get(..*place).unwrap_or_default()))
        .filter_map(|(place, word)| Some((place, code.get(place + word.len()..)?.trim_start())))
        .filter_map(|(place, rest)| Some((place, rest.strip_prefix(['{', '(', '['])?)))
        .filter(|(_, body)| !body.trim_start().starts_with("biased;"))
        .map(|(place, _)| {
            let line = code.get(..place).unwrap_or_default().matches('\n').count() + 1;
            Complaint::error(path, line, "`select!` without `biased;`: equal seeds would give unequal runs")
        })
        .collect()
}

/// Code that runs inside a server; the command line and the tasks print for people.
fn is_library(path: &str) -> bool {
    let printing =
        ["/examples/", "/src/bin/", "/src/main.rs", "/build.rs"].iter().any(|part| path.contains(part));
    path.starts_with("crates/") && !path.starts_with("crates/tidegate/") && !is_test_file(path) && !printing
}

fn is_banner(comment: &str) -> bool {
    let text = comment.trim().trim_start_matches('/').trim();
    text.len() >= 5 && text.chars().all(|c| matches!(c, '-' | '=' | '*' | '#' | '~'))
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(place, _)| {
        let (before, after) =
            (line.get(..place).unwrap_or_default(), line.get(place + word.len()..).unwrap_or_default());
        let more = after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        !ends_in_word(before) && (word.ends_with('!') || !more)
    })
}

fn ends_in_word(text: &str) -> bool {
    text.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, content: &str) -> Vec<usize> {
        check(path, content).iter().map(|complaint| complaint.line).collect()
    }

    #[test]
    fn left_overs_and_notes_are_found_in_their_places_only() {
        let path = "crates/a/src/b.rs";
        assert_eq!(lines(path, "fn f() {\n    dbg!(1);\n    let s = \"dbg!\"; // dbg!\n}\n"), [2]);
        assert_eq!(lines(path, "macro_rules! m { () => { unimplemented!() } }\n"), [1]);
        assert_eq!(lines(path, "// TODO later\nlet todo_list = 1; // XXXL\n"), [1]);
        assert_eq!(lines(path, "let x = \"TODO\";\n"), Vec::<usize>::new());
        assert_eq!(lines(path, "// ------------\n// a - b\n/// |---|---|\n//!\n"), [1]);
    }

    #[test]
    fn every_select_is_biased() {
        let path = "crates/a/src/b.rs";
        assert_eq!(lines(path, "tokio::select! {\n    biased;\n    a => {}\n}\n"), Vec::<usize>::new());
        assert_eq!(lines(path, "x;\ntokio::select! {\n    // why\n    a => {}\n}\n"), [2]);
        assert_eq!(lines(path, "select! {\n    // why\n    biased;\n    a => {}\n}\n"), Vec::<usize>::new());
        assert_eq!(lines(path, "my_select! { a => {} }\n"), Vec::<usize>::new());
    }

    #[test]
    fn libraries_do_not_print_outside_their_tests() {
        let content = "fn f() { println!(); eprintln!(); }\n#[cfg(test)]\nmod tests {\n    println!();\n}\n";
        assert_eq!(lines("crates/a/src/b.rs", content), [1]);
        for path in
            ["crates/tidegate/src/b.rs", "crates/a/examples/b.rs", "crates/a/src/main.rs", "xtask/src/b.rs"]
        {
            assert_eq!(lines(path, content), Vec::<usize>::new(), "{path}");
        }
    }
}
