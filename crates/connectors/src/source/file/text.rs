//! The text of a malformed line as a dead letter carries it.

use std::str;

/// The longest text that is kept of a malformed line, in bytes.
pub const MALFORMED_TEXT_LIMIT: usize = 64 << 10;

/// A malformed line as text: U+FFFD for what is no UTF-8, at most [`MALFORMED_TEXT_LIMIT`] bytes.
///
/// ```
/// assert_eq!(connectors::source::file::malformed_text(b"caf\xe9"), "caf\u{fffd}");
/// ```
#[must_use]
pub fn malformed_text(line: &[u8]) -> String {
    let cut = line.len() > MALFORMED_TEXT_LIMIT;
    let kept = line.get(..MALFORMED_TEXT_LIMIT).unwrap_or(line);
    let mut text = String::with_capacity(kept.len());
    let mut chunks = kept.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        text.push_str(chunk.valid());
        // A character that only the cut has torn apart was no invalid one.
        let torn = cut && chunks.peek().is_none() && may_begin_a_character(chunk.invalid());
        if !chunk.invalid().is_empty() && !torn {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    // The replacement takes three bytes where one was.
    let mut end = text.len().min(MALFORMED_TEXT_LIMIT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

fn may_begin_a_character(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_bytes_become_replacement_characters() {
        assert_eq!(malformed_text(b"a\xff\xfeb"), "a\u{fffd}\u{fffd}b");
        assert_eq!(malformed_text("gr\u{fc}n".as_bytes()), "gr\u{fc}n");
        assert_eq!(malformed_text(b"ends in \xe2\x82"), "ends in \u{fffd}");
    }

    #[test]
    fn a_character_torn_by_the_limit_is_left_out() {
        let line = "\u{20ac}".repeat(MALFORMED_TEXT_LIMIT);
        let text = malformed_text(line.as_bytes());
        assert_eq!(text.len(), MALFORMED_TEXT_LIMIT / 3 * 3);
        assert!(line.starts_with(&text));
    }

    #[test]
    fn the_limit_holds_for_the_text_and_not_only_for_the_bytes() {
        let text = malformed_text(&vec![0xff; MALFORMED_TEXT_LIMIT * 2]);
        assert_eq!(text.len(), MALFORMED_TEXT_LIMIT / 3 * 3);
    }
}
