//! A JSON text without the white space between its tokens.

use bytes::Bytes;

use super::{Malformed, scan};

/// Checks that `json` is one JSON value and leaves out the white space outside its strings, line ends included.
/// Everything else stays as it was written.
///
/// # Errors
///
/// [`Malformed`] where it is no JSON value, or not UTF-8.
pub fn compact(json: &[u8]) -> Result<Bytes, Malformed> {
    scan::any(json)?;
    let mut out = Vec::with_capacity(json.len());
    let mut rest = json;
    // Outside and inside of strings in turn.
    while let Some(quote) = memchr::memchr(b'"', rest) {
        let (outside, string) = rest.split_at(quote);
        push_tokens(&mut out, outside);
        let (string, after) = string.split_at(string_length(string));
        out.extend_from_slice(string);
        rest = after;
    }
    push_tokens(&mut out, rest);
    Ok(Bytes::from(out))
}

fn push_tokens(out: &mut Vec<u8>, outside: &[u8]) {
    out.extend(outside.iter().copied().filter(|b| !matches!(b, b' ' | b'\t' | b'\n' | b'\r')));
}

/// The length of the string at the start, quotes included.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if text.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    text.len()
}
