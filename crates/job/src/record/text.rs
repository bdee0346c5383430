//! One JSON value within a record, as it was written.

use std::borrow::Cow;

/// What kind of value a JSON text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number of any size and precision.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// A string that holds half of a surrogate pair (`"\ud800"`): valid JSON, yet no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the string holds half of a surrogate pair (\\ud800 to \\udfff), which is no character")]
pub struct LoneSurrogate;

/// The text of one JSON value, borrowed from a record whose line has been checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonText<'a>(&'a str);

impl<'a> JsonText<'a> {
    /// `null`, for what is not there.
    pub(crate) const NULL: JsonText<'static> = JsonText("null");

    /// Takes a text that is known to be one JSON value without white space around it.
    pub(crate) const fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// The text as it was written, quotes and escapes included.
    #[must_use]
    pub const fn text(self) -> &'a str {
        self.0
    }

    /// What kind of value it is.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self.0.as_bytes().first() {
            Some(b'"') => Kind::String,
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number,
        }
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// The characters of a string; the text of any other value.
    ///
    /// # Errors
    ///
    /// [`LoneSurrogate`] where the escapes name half of a surrogate pair.
    pub fn string(self) -> Result<Cow<'a, str>, LoneSurrogate> {
        match self.string_bytes() {
            Cow::Borrowed(_) if self.kind() == Kind::String => Ok(Cow::Borrowed(self.inner())),
            Cow::Borrowed(_) => Ok(Cow::Borrowed(self.0)),
            Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(|_| LoneSurrogate),
        }
    }

    /// The value of `true` or `false`.
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The value of a number without fraction and exponent that fits.
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        if self.kind() == Kind::Number { self.0.parse().ok() } else { None }
    }

    /// The nearest double of a number; absent where that is infinite.
    #[must_use]
    pub fn as_f64(self) -> Option<f64> {
        if self.kind() != Kind::Number {
            return None;
        }
        self.0.parse().ok().filter(|value: &f64| value.is_finite())
    }

    /// Between the quotes.
    fn inner(self) -> &'a str {
        self.0.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(self.0)
    }

    /// A string's characters as WTF-8: UTF-8, but half of a surrogate pair is encoded on its own, so that two strings
    /// are equal exactly when these bytes are. The text of any other value.
    pub(crate) fn string_bytes(self) -> Cow<'a, [u8]> {
        if self.kind() != Kind::String {
            return Cow::Borrowed(self.0.as_bytes());
        }
        unescape(self.inner().as_bytes())
    }
}

/// Replaces the escapes of a string's inside.
pub(super) fn unescape(mut rest: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', rest).is_none() {
        return Cow::Borrowed(rest);
    }
    let mut out = Vec::with_capacity(rest.len());
    while let Some(backslash) = memchr::memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at(backslash);
        out.extend_from_slice(plain);
        let single = match escape.get(1) {
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let (code, used) = code_point(escape);
                push_code_point(&mut out, code);
                rest = escape.get(used..).unwrap_or_default();
                continue;
            }
            Some(&same) => same,
            None => b'\\',
        };
        out.push(single);
        rest = escape.get(2..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    Cow::Owned(out)
}

/// The code point of the `\uXXXX`, or pair of them, at the start, and how many bytes it takes.
fn code_point(escape: &[u8]) -> (u32, usize) {
    let first = hex(escape);
    if (0xd800..0xdc00).contains(&first)
        && let Some(next) = escape.get(6..)
        && next.starts_with(b"\\u")
    {
        let second = hex(next);
        if (0xdc00..0xe000).contains(&second) {
            return (0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12);
        }
    }
    (first, 6)
}

/// The number in `\uXXXX`.
fn hex(escape: &[u8]) -> u32 {
    let digits = escape.get(2..6).unwrap_or_default();
    digits.iter().fold(0, |n, &d| n * 16 + char::from(d).to_digit(16).unwrap_or(0))
}

fn push_code_point(out: &mut Vec<u8>, code: u32) {
    match char::from_u32(code) {
        Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        // A surrogate, in three bytes as WTF-8 has it.
        None => out
            .extend([0xe0 | (code >> 12), 0x80 | (code >> 6 & 0x3f), 0x80 | (code & 0x3f)].map(|b| b as u8)),
    }
}

/// Writes `text` as a JSON string.
pub(crate) fn push_json_string(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for &b in text.as_bytes() {
        match b {
            b'"' | b'\\' => out.extend([b'\\', b]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            0..0x20 => {
                let low = HEX.get(usize::from(b & 0xf)).copied().unwrap_or(b'0');
                out.extend([b'\\', b'u', b'0', b'0', b'0' + (b >> 4), low]);
            }
            _ => out.push(b),
        }
    }
    out.push(b'"');
}
