//! Telling Rust code from comments and literals, as far as a search for words needs it.

/// A file twice, line for line: as code without comments and without the insides of literals, and as comments only.
/// What is left out is blank, so that places stay the same.
pub(super) struct Split {
    pub(super) code: String,
    pub(super) comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    LineComment,
    /// How deep: Rust's block comments nest.
    BlockComment(usize),
    Text,
    /// How many `#` end it.
    RawText(usize),
}

/// Splits a file. A file that does not compile is split somehow.
pub(super) fn split(source: &str) -> Split {
    let chars: Vec<char> = source.chars().collect();
    let at = |place: usize| chars.get(place).copied().unwrap_or('\0');
    let mut split = Split { code: String::new(), comments: String::new() };
    let mut state = State::Code;
    let mut place = 0;
    while place < chars.len() {
        let (c, next) = (at(place), at(place + 1));
        // How many characters this step takes, and whether they are code or comment.
        let (taken, code, comment) = match state {
            State::Code => match c {
                '/' if next == '/' => {
                    state = State::LineComment;
                    (2, false, true)
                }
                '/' if next == '*' => {
                    state = State::BlockComment(1);
                    (2, false, true)
                }
                '"' => {
                    state = State::Text;
                    (1, true, false)
                }
                'r' if !is_word(at(place.wrapping_sub(1))) || at(place.wrapping_sub(1)) == 'b' => {
                    let hashes = chars.iter().skip(place + 1).take_while(|c| **c == '#').count();
                    if at(place + 1 + hashes) == '"' {
                        state = State::RawText(hashes);
                        (2 + hashes, true, false)
                    } else {
                        (1, true, false)
                    }
                }
                // A character, not a lifetime.
                '\'' if next == '\\' => {
                    let end = chars.iter().skip(place + 3).position(|c| *c == '\'').unwrap_or(0);
                    (4 + end, false, false)
                }
                '\'' if at(place + 2) == '\'' => (3, false, false),
                _ => (1, true, false),
            },
            State::LineComment => {
                if c == '\n' {
                    state = State::Code;
                }
                (1, false, true)
            }
            State::BlockComment(depth) => match (c, next) {
                ('/', '*') => {
                    state = State::BlockComment(depth + 1);
                    (2, false, true)
                }
                ('*', '/') => {
                    state = if depth == 1 { State::Code } else { State::BlockComment(depth - 1) };
                    (2, false, true)
                }
                _ => (1, false, true),
            },
            State::Text => match c {
                '\\' => (2, false, false),
                '"' => {
                    state = State::Code;
                    (1, true, false)
                }
                _ => (1, false, false),
            },
            State::RawText(hashes) => {
                if c == '"' && (1..=hashes).all(|n| at(place + n) == '#') {
                    state = State::Code;
                    (1 + hashes, true, false)
                } else {
                    (1, false, false)
                }
            }
        };
        for c in chars.iter().skip(place).take(taken) {
            let blank = |keep: bool| if keep || *c == '\n' { *c } else { ' ' };
            split.code.push(blank(code));
            split.comments.push(blank(comment));
        }
        place += taken;
    }
    split
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(source: &str) -> String {
        split(source).code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        let cases = [
            ("a // b\nc", "a c"),
            ("a /* b /* c */ d */ e", "a e"),
            ("f(\"x // y\") g", "f(\" \") g"),
            ("f(\"\\\"x\") g", "f(\" \") g"),
            ("f(r#\"x\"y\"#) g", "f(r#\" \"#) g"),
            ("f(br\"x\\\") g", "f(br\" \") g"),
            ("for r in x", "for r in x"),
            ("g('\"', '\\'', '\\u{1}') h", "g( , , ) h"),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
        ];
        for (source, expected) in cases {
            assert_eq!(code(source), expected, "{source}");
        }
    }

    #[test]
    fn both_halves_keep_the_lines() {
        let source = "a // b\n\"c\nd\"\n/* e\nf */ g\n";
        let split = split(source);
        assert_eq!(split.code.lines().count(), source.lines().count());
        assert_eq!(split.comments.lines().nth(4).map(str::trim), Some("f */"));
        assert_eq!(split.code.lines().nth(4).map(str::trim), Some("g"));
    }
}
