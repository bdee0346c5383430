//! The shape of a source file: its documentation, its length, the place of its tests.

use super::Complaint;

const LONG: usize = 400;
const TOO_LONG: usize = 800;
const LONG_TESTS: usize = 200;

pub(super) fn check(path: &str, content: &str) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    if !begins_with_docs(content) {
        complaints.push(Complaint::error(path, 1, "begin with `//!`: what is this file for?"));
    }
    if is_test_file(path) || is_generated(path) {
        return complaints;
    }
    let (lines, tests) = lines_and_tests(content);
    if lines > TOO_LONG {
        let what = format!("{lines} lines without tests, at most {TOO_LONG}: one idea a file");
        complaints.push(Complaint::error(path, 0, what));
    } else if lines > LONG {
        complaints.push(Complaint::warning(
            path,
            0,
            format!("{lines} lines without tests, best below {LONG}"),
        ));
    }
    if tests > LONG_TESTS {
        let what = format!("{tests} lines of tests: above {LONG_TESTS} they get a file of their own");
        complaints.push(Complaint::error(path, lines + 1, what));
    }
    complaints
}

/// Files that hold tests only, whatever their length.
pub(super) fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let in_folder = path.split('/').any(|folder| matches!(folder, "tests" | "benches"));
    in_folder || name == "tests.rs" || name.ends_with("_tests.rs")
}

/// Files that `cargo xtask codegen` makes.
pub(super) fn is_generated(path: &str) -> bool {
    path.contains("/src/gen/")
}

/// Lines before and lines of the test module that a file may end with.
pub(super) fn lines_and_tests(content: &str) -> (usize, usize) {
    let all = content.lines().count();
    let lines: Vec<&str> = content.lines().collect();
    let begin = lines.windows(2).position(|pair| {
        matches!(pair, [attribute, module] if attribute.trim_end() == "#[cfg(test)]"
            && module.starts_with("mod ") && module.trim_end().ends_with('{'))
    });
    begin.map_or((all, 0), |begin| (begin, all - begin))
}

fn begins_with_docs(content: &str) -> bool {
    let first = content.lines().find(|line| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with("#![")
    });
    first.is_some_and(|line| line.starts_with("//!"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(lines: usize, tests: usize) -> String {
        let mut content = format!("//! Docs.\n{}", "x\n".repeat(lines - 1));
        if tests > 0 {
            content.push_str("#[cfg(test)]\nmod tests {\n");
            content.push_str(&"y\n".repeat(tests - 3));
            content.push_str("}\n");
        }
        content
    }

    #[test]
    fn only_what_is_too_long_is_complained_about() {
        let cases = [(400, 200, 0, 0), (401, 0, 0, 1), (800, 0, 0, 1), (801, 0, 1, 0), (10, 201, 1, 0)];
        for (lines, tests, errors, warnings) in cases {
            let complaints = check("crates/a/src/b.rs", &file(lines, tests));
            let found = complaints.iter().filter(|c| !c.warning).count();
            assert_eq!(
                (found, complaints.len() - found),
                (errors, warnings),
                "{lines} {tests}: {complaints:?}"
            );
        }
    }

    #[test]
    fn tests_and_generated_code_may_be_long() {
        for path in [
            "crates/a/src/b/tests.rs",
            "crates/a/src/b_tests.rs",
            "crates/a/tests/c.rs",
            "crates/w/src/gen/x.rs",
        ] {
            assert_eq!(check(path, &file(900, 0)), []);
        }
    }

    #[test]
    fn docs_may_stand_behind_attributes_only() {
        assert!(begins_with_docs("#![allow(x)]\n\n//! Docs.\n"));
        for content in ["", "// no\n", "use a;\n//! late\n", "/// item docs\nfn f() {}\n"] {
            assert!(!begins_with_docs(content), "{content:?}");
        }
    }
}
