//! One pass over a JSON text: is it valid, and where are the values of its outermost object?
//!
//! The scanner builds nothing. It is iterative, so depth costs a byte a level and never the thread's stack, and strings
//! are crossed eight bytes at a time. The grammar is RFC 8259's, lone surrogates in escapes included.

use std::ops::Range;

use super::Malformed;

/// Where a field of the outermost object lies, as byte offsets into the line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    /// First byte after the quote that opens the name.
    pub(super) name_start: u32,
    /// The quote that closes the name.
    pub(super) name_end: u32,
    /// First byte of the value.
    pub(super) value_start: u32,
    /// First byte after the value.
    pub(super) value_end: u32,
    /// Whether the name contains a backslash.
    pub(super) escaped: bool,
}

/// What a line holds.
#[derive(Debug)]
pub(super) struct Object {
    /// The fields in their order.
    pub(super) fields: Vec<Field>,
    /// The offset of the closing brace.
    pub(super) close: u32,
}

/// The lines that offsets of 32 bits can address.
const LONGEST: usize = u32::MAX as usize;

/// Checks that `line` is one JSON object, white space around it allowed, and finds its fields.
pub(super) fn object(line: &[u8]) -> Result<Object, Malformed> {
    checked(line)?;
    let mut scanner = Scanner::new(line);
    scanner.white();
    if scanner.peek() != Some(b'{') {
        return Err(scanner.fault(if scanner.peek().is_none() {
            "the line is empty"
        } else {
            "no JSON object"
        }));
    }
    let mut fields = Vec::with_capacity(16);
    let close = scanner.fields(|field| {
        fields.push(field);
        true
    })?;
    scanner.end()?;
    Ok(Object { fields, close })
}

/// Checks that `text` is one JSON value, white space around it allowed.
pub(super) fn any(text: &[u8]) -> Result<(), Malformed> {
    checked(text)?;
    let mut scanner = Scanner::new(text);
    scanner.white();
    if scanner.peek().is_none() {
        return Err(scanner.fault("there is no value"));
    }
    scanner.value()?;
    scanner.end()
}

/// Calls `found` for each field of the object that `text` starts with; it returns whether to go on. A text that is no
/// object has no fields.
pub(super) fn each_field(text: &[u8], found: impl FnMut(Field) -> bool) {
    let mut scanner = Scanner::new(text);
    if scanner.peek() == Some(b'{') {
        // The text lies within a line that has been checked whole, so there is nothing to report.
        let _ = scanner.fields(found);
    }
}

/// Calls `found` with the range of each element of the array that `text` starts with. A text that is no array has none.
pub(super) fn each_element(text: &[u8], mut found: impl FnMut(Range<usize>)) {
    let mut scanner = Scanner::new(text);
    if scanner.peek() != Some(b'[') {
        return;
    }
    loop {
        scanner.at += 1;
        scanner.white();
        let start = scanner.at;
        // Fails at the end of an empty array only, as the text has been checked.
        if scanner.value().is_err() {
            return;
        }
        found(start..scanner.at);
        scanner.white();
        if scanner.peek() != Some(b',') {
            return;
        }
    }
}

/// UTF-8, and not longer than offsets reach.
fn checked(text: &[u8]) -> Result<(), Malformed> {
    if text.len() > LONGEST {
        return Err(Malformed { reason: "longer than 4 GiB".to_owned(), at: LONGEST });
    }
    std::str::from_utf8(text)
        .map(|_| ())
        .map_err(|e| Malformed { reason: "invalid UTF-8".to_owned(), at: e.valid_up_to() })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    Object,
    Array,
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The containers that are open within a value of the outermost object.
    open: Vec<Container>,
}

impl<'a> Scanner<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, open: Vec::new() }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[cold]
    fn fault(&self, reason: &str) -> Malformed {
        Malformed { reason: reason.to_owned(), at: self.at }
    }

    #[inline]
    fn white(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Nothing but white space follows.
    fn end(&mut self) -> Result<(), Malformed> {
        self.white();
        if self.peek().is_some() { Err(self.fault("something follows the JSON value")) } else { Ok(()) }
    }

    /// The object at the cursor. Returns where its closing brace is, or where the cursor was when `found` had enough.
    fn fields(&mut self, mut found: impl FnMut(Field) -> bool) -> Result<u32, Malformed> {
        self.at += 1;
        self.white();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(offset(self.at - 1));
        }
        loop {
            let name_start = self.at + 1;
            let (name_end, escaped) = self.name()?;
            let value_start = self.at;
            self.value()?;
            let field = Field {
                name_start: offset(name_start),
                name_end: offset(name_end),
                value_start: offset(value_start),
                value_end: offset(self.at),
                escaped,
            };
            if !found(field) {
                return Ok(offset(self.at));
            }
            self.white();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    self.white();
                }
                Some(b'}') => {
                    self.at += 1;
                    return Ok(offset(self.at - 1));
                }
                _ => return Err(self.fault("expected `,` or `}`")),
            }
        }
    }

    /// A name, its colon, and the white space up to the value. Returns where the closing quote is and whether the name
    /// has escapes.
    fn name(&mut self) -> Result<(usize, bool), Malformed> {
        if self.peek() != Some(b'"') {
            return Err(self.fault("expected a field's name in quotes"));
        }
        let escaped = self.string()?;
        let end = self.at - 1;
        self.white();
        if self.peek() != Some(b':') {
            return Err(self.fault("expected `:`"));
        }
        self.at += 1;
        self.white();
        Ok((end, escaped))
    }

    /// One value of any kind and depth.
    fn value(&mut self) -> Result<(), Malformed> {
        self.open.clear();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b'{') => {
                    self.at += 1;
                    self.white();
                    if self.peek() != Some(b'}') {
                        self.open.push(Container::Object);
                        self.name()?;
                        continue;
                    }
                    self.at += 1;
                }
                Some(b'[') => {
                    self.at += 1;
                    self.white();
                    if self.peek() != Some(b']') {
                        self.open.push(Container::Array);
                        continue;
                    }
                    self.at += 1;
                }
                Some(b't') => self.word(b"true")?,
                Some(b'f') => self.word(b"false")?,
                Some(b'n') => self.word(b"null")?,
                _ => return Err(self.fault("expected a value")),
            }
            if !self.after_value()? {
                return Ok(());
            }
        }
    }

    /// Closes what ends after a value. Returns whether another value follows within the open containers.
    fn after_value(&mut self) -> Result<bool, Malformed> {
        while let Some(&container) = self.open.last() {
            self.white();
            match (self.peek(), container) {
                (Some(b','), Container::Array) => {
                    self.at += 1;
                    self.white();
                    return Ok(true);
                }
                (Some(b','), Container::Object) => {
                    self.at += 1;
                    self.white();
                    self.name()?;
                    return Ok(true);
                }
                (Some(b'}'), Container::Object) | (Some(b']'), Container::Array) => {
                    self.at += 1;
                    self.open.pop();
                }
                (_, Container::Object) => return Err(self.fault("expected `,` or `}`")),
                (_, Container::Array) => return Err(self.fault("expected `,` or `]`")),
            }
        }
        Ok(false)
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Malformed> {
        if self.bytes.get(self.at..self.at + word.len()) != Some(word) {
            return Err(self.fault("expected a value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Malformed> {
        let from = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == from { Err(self.fault("expected a digit")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<(), Malformed> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
            if let Some(b'0'..=b'9') = self.peek() {
                return Err(self.fault("a number does not start with 0"));
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// A string; the cursor stands on its opening quote. Returns whether it has escapes.
    fn string(&mut self) -> Result<bool, Malformed> {
        self.at += 1;
        let mut escaped = false;
        loop {
            self.plain();
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(self.fault("a control character in a string is to be escaped")),
                None => return Err(self.fault("a string is not closed")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Malformed> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|b| b.is_ascii_hexdigit()) {
                        return Err(self.fault("expected four hex digits after \\u"));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.fault("unknown escape in a string")),
        }
        Ok(())
    }

    /// Moves to the next quote, backslash or control character, or to the end.
    #[inline]
    fn plain(&mut self) {
        while let Some(chunk) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<8>) {
            let special = specials(u64::from_le_bytes(*chunk));
            if special != 0 {
                self.at += special.trailing_zeros() as usize / 8;
                return;
            }
            self.at += 8;
        }
        while let Some(b) = self.peek() {
            if b == b'"' || b == b'\\' || b < 0x20 {
                return;
            }
            self.at += 1;
        }
    }
}

/// Sets the high bit of bytes that are a quote, a backslash or below 0x20. Bytes above the lowest one found may be
/// wrong, as a borrow runs upwards; only the lowest is asked for.
#[inline]
fn specials(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let zero_in = |w: u64| w.wrapping_sub(ONES) & !w;
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (zero_in(quote) | zero_in(backslash) | control) & HIGH
}

/// A place within a line; lines that are longer than the type reaches were refused at the start.
#[inline]
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
