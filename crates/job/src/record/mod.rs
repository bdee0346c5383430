//! A record: one JSON object on a line, kept as the bytes that were read together with the places of its fields.
//!
//! Nothing is parsed into a tree and printed anew, so unchanged fields leave byte for byte as they came, whatever their
//! spacing, escapes and digits. Filters, templates and keys look at a field's text where it stands. It does not know of
//! byte order marks, line ends and empty lines: those are the reader's.

mod compact;
mod scan;
mod text;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

pub use compact::compact;
pub(crate) use text::push_json_string;
pub use text::{JsonText, Kind, LoneSurrogate};

use scan::Field;

/// Where a record was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The file's path.
    pub file: Arc<str>,
    /// The line, from 1, counted from the start of the split.
    pub line: u64,
    /// Bytes from the start of the (unpacked) file to the line's first byte.
    pub offset: u64,
    /// Bytes from the start of the (unpacked) file to the start of the split.
    pub split_start: u64,
}

/// A text that is not what it should be: no JSON value, or no object, or no UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Malformed {
    /// What is wrong.
    pub reason: String,
    /// At which byte, from 0.
    pub at: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.reason, self.at)
    }
}

/// A record. Cloning shares the bytes.
///
/// ```
/// use job::record::{JsonRecord, Origin};
///
/// let origin = Origin { file: "orders.jsonl".into(), line: 1, offset: 0, split_start: 0 };
/// let order = JsonRecord::parse(r#"{"id": 1.50, "to": {"city": "Rome"}}"#.into(), origin)?;
/// assert_eq!(order.path("to.city").map(|c| c.text()), Some(r#""Rome""#));
/// assert_eq!(order.with_field("known", b"true").line(), r#"{"id": 1.50, "to": {"city": "Rome"},"known":true}"#);
/// # Ok::<(), job::record::Malformed>(())
/// ```
#[derive(Debug, Clone)]
pub struct JsonRecord {
    line: Bytes,
    fields: Arc<Vec<Field>>,
    /// The offset of the closing brace.
    close: u32,
    origin: Origin,
}

impl JsonRecord {
    /// Checks a line whole and finds its fields. White space around the object is kept.
    ///
    /// # Errors
    ///
    /// [`Malformed`] where the line is no JSON object (RFC 8259), is not UTF-8 or is longer than 4 GiB.
    pub fn parse(line: Bytes, origin: Origin) -> Result<Self, Malformed> {
        let object = scan::object(&line)?;
        Ok(Self { line, fields: Arc::new(object.fields), close: object.close, origin })
    }

    /// The line as it was read, with what was added, without a line end.
    #[must_use]
    pub fn line(&self) -> &Bytes {
        &self.line
    }

    /// Where it was read.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The value of a field of the outermost object; of equal names the last.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<JsonText<'_>> {
        self.find(name).and_then(|field| self.value(field))
    }

    /// The value of a field, or of a field within fields: `to.city`. A field of the outermost object whose name is the
    /// whole text wins.
    #[must_use]
    pub fn path(&self, path: &str) -> Option<JsonText<'_>> {
        if let Some(value) = self.field(path) {
            return Some(value);
        }
        let mut names = path.split('.');
        let outermost = self.field(names.next()?)?;
        names.try_fold(outermost, member)
    }

    /// The fields of the outermost object in their order, equal names included. A name with half of a surrogate pair is
    /// left out, as it is no text.
    pub fn fields(&self) -> impl Iterator<Item = (Cow<'_, str>, JsonText<'_>)> {
        self.fields.iter().filter_map(|field| Some((text_name_of(&self.line, field)?, self.value(field)?)))
    }

    /// The record with a field set to `value`, which is one JSON value on one line, as [`compact`] makes it.
    ///
    /// A field of that name gets the value in its place (of equal names the last, which is the one that is read);
    /// otherwise `,"name":value` is put before the closing brace. Every other byte stays.
    #[must_use]
    pub fn with_field(&self, name: &str, value: &[u8]) -> Self {
        match self.fields.iter().rposition(|field| is_named(&self.line, field, name)) {
            Some(index) => self.replaced(index, value),
            None => self.appended(name, value),
        }
    }

    /// The record that an answer takes the place of this one as; its origin stays.
    ///
    /// # Errors
    ///
    /// [`Malformed`] where the answer is no JSON object.
    pub fn replaced_by(&self, answer: Bytes) -> Result<Self, Malformed> {
        Self::parse(answer, self.origin.clone())
    }

    fn find(&self, name: &str) -> Option<&Field> {
        self.fields.iter().rev().find(|field| is_named(&self.line, field, name))
    }

    fn value(&self, field: &Field) -> Option<JsonText<'_>> {
        value_of(&self.line, field)
    }

    fn appended(&self, name: &str, value: &[u8]) -> Self {
        let (before, after) = self.line.split_at_checked(self.close as usize).unwrap_or_default();
        let mut line = Vec::with_capacity(self.line.len() + name.len() + value.len() + 4);
        line.extend_from_slice(before);
        if !self.fields.is_empty() {
            line.push(b',');
        }
        let name_start = offset(line.len() + 1);
        push_json_string(&mut line, name);
        let name_end = offset(line.len() - 1);
        line.push(b':');
        let value_start = offset(line.len());
        line.extend_from_slice(value);
        let close = offset(line.len());
        line.extend_from_slice(after);
        // A name was written with escapes where it had to be; then it is longer than it is.
        let escaped = (name_end - name_start) as usize != name.len();
        let mut fields = Vec::with_capacity(self.fields.len() + 1);
        fields.extend_from_slice(&self.fields);
        fields.push(Field { name_start, name_end, value_start, value_end: close, escaped });
        Self { line: Bytes::from(line), fields: Arc::new(fields), close, origin: self.origin.clone() }
    }

    fn replaced(&self, index: usize, value: &[u8]) -> Self {
        let mut fields = Vec::clone(&self.fields);
        let Some((field, later)) = fields.get_mut(index..).and_then(<[Field]>::split_first_mut) else {
            return self.clone();
        };
        let start = field.value_start as usize;
        let end = field.value_end as usize;
        let mut line = Vec::with_capacity(self.line.len() - (end - start) + value.len());
        line.extend_from_slice(self.line.get(..start).unwrap_or_default());
        line.extend_from_slice(value);
        field.value_end = offset(line.len());
        line.extend_from_slice(self.line.get(end..).unwrap_or_default());
        // What follows has moved by the difference of the two values.
        let moved = |at: u32| offset((at as usize + value.len()).saturating_sub(end - start));
        for field in later {
            field.name_start = moved(field.name_start);
            field.name_end = moved(field.name_end);
            field.value_start = moved(field.value_start);
            field.value_end = moved(field.value_end);
        }
        let close = moved(self.close);
        Self { line: Bytes::from(line), fields: Arc::new(fields), close, origin: self.origin.clone() }
    }
}

/// The value of a field of an object; of equal names the last.
pub(crate) fn member<'a>(object: JsonText<'a>, name: &str) -> Option<JsonText<'a>> {
    let bytes = object.text().as_bytes();
    let mut last = None;
    scan::each_field(bytes, |field| {
        if is_named(bytes, &field, name) {
            last = Some(field);
        }
        true
    });
    value_of(bytes, &last?)
}

/// The fields of an object in their order; a name with half of a surrogate pair is left out, as it is no text.
pub(crate) fn members<'a>(object: JsonText<'a>) -> Vec<(Cow<'a, str>, JsonText<'a>)> {
    let bytes = object.text().as_bytes();
    let mut members = Vec::new();
    scan::each_field(bytes, |field| {
        if let (Some(name), Some(value)) = (text_name_of(bytes, &field), value_of(bytes, &field)) {
            members.push((name, value));
        }
        true
    });
    members
}

/// The elements of an array.
pub(crate) fn elements(array: JsonText<'_>) -> Vec<JsonText<'_>> {
    let mut elements = Vec::new();
    scan::each_element(array.text().as_bytes(), |range| {
        elements.extend(array.text().get(range).map(JsonText::new));
    });
    elements
}

/// A field's name as text; absent where it has half of a surrogate pair.
fn text_name_of<'a>(line: &'a [u8], field: &Field) -> Option<Cow<'a, str>> {
    match name_of(line, field) {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}

/// A field's name without its escapes.
fn name_of<'a>(line: &'a [u8], field: &Field) -> Cow<'a, [u8]> {
    let name = line.get(field.name_start as usize..field.name_end as usize).unwrap_or_default();
    if field.escaped { text::unescape(name) } else { Cow::Borrowed(name) }
}

#[inline]
fn is_named(line: &[u8], field: &Field, name: &str) -> bool {
    if field.escaped {
        return *name_of(line, field) == *name.as_bytes();
    }
    line.get(field.name_start as usize..field.name_end as usize) == Some(name.as_bytes())
}

fn value_of<'a>(line: &'a [u8], field: &Field) -> Option<JsonText<'a>> {
    let value = line.get(field.value_start as usize..field.value_end as usize)?;
    std::str::from_utf8(value).ok().map(JsonText::new)
}

/// A place within a line; answers are far shorter than what the type reaches, and lines were checked.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
