//! Texts with places for a record's fields: `http://customers/{customer_id}.json`.
//!
//! `{{` and `}}` stand for the braces themselves. A place names a field or, with dots, a field within fields.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::record::{JsonRecord, JsonText, Kind, compact};

/// What is left as it is in a URL: RFC 3986's unreserved characters. All others are encoded, so that a value stays
/// within its place whatever it holds.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Why a text is no template, or why a record does not fit into one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A brace opens a place that does not end.
    #[error("`{{` at character {at} is not closed; write `{{{{` for the character itself")]
    Unclosed {
        /// The character, from 1.
        at: usize,
    },
    /// A brace closes nothing.
    #[error("`}}` at character {at} closes nothing; write `}}}}` for the character itself")]
    Unopened {
        /// The character, from 1.
        at: usize,
    },
    /// A place without a name, or with an empty part of one.
    #[error("the place at character {at} does not name a field: write `{{field}}` or `{{nested.field}}`")]
    Unnamed {
        /// The character, from 1.
        at: usize,
    },
    /// A string that is no text.
    #[error("the field {field} cannot be put into a text: it holds half of a surrogate pair")]
    LoneSurrogate {
        /// The field.
        field: String,
    },
    /// A value that would make the URL mean another folder.
    #[error("the URL would have a path segment `{segment}`, which means another folder")]
    DotSegment {
        /// `.` or `..`.
        segment: &'static str,
    },
}

/// What values are put into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// A URL: values are percent-encoded.
    Url,
    /// A header or a body: values stand as they are.
    None,
}

/// A template with a record's values in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rendered {
    /// The text.
    Text(String),
    /// A field is missing or null, so there is nothing to ask.
    Empty,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(String),
}

/// A checked template.
///
/// ```
/// use job::record::{JsonRecord, Origin};
/// use job::template::{Escape, Rendered, Template};
///
/// let origin = Origin { file: "a".into(), line: 1, offset: 0, split_start: 0 };
/// let record = JsonRecord::parse(r#"{"id": "a b"}"#.into(), origin)?;
/// let template = Template::parse("http://host/{id}")?;
/// assert_eq!(template.render(&record, Escape::Url)?, Rendered::Text("http://host/a%20b".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    source: String,
    parts: Vec<Part>,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// [`TemplateError`] for a brace without its partner and for a place that names no field.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut chars = source.chars().enumerate().peekable();
        while let Some((index, c)) = chars.next() {
            let at = index + 1;
            match c {
                '{' | '}' if chars.next_if(|(_, next)| *next == c).is_some() => text.push(c),
                '}' => return Err(TemplateError::Unopened { at }),
                '{' => {
                    let mut name = String::new();
                    loop {
                        match chars.next() {
                            Some((_, '}')) => break,
                            Some((_, '{')) | None => return Err(TemplateError::Unclosed { at }),
                            Some((_, c)) => name.push(c),
                        }
                    }
                    if name.split('.').any(|part| part.trim().is_empty()) {
                        return Err(TemplateError::Unnamed { at });
                    }
                    if !text.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut text)));
                    }
                    parts.push(Part::Field(name));
                }
                _ => text.push(c),
            }
        }
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        Ok(Self { source: source.to_owned(), parts })
    }

    /// The text it was read from.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The fields it asks for, in order, each as often as it stands there.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Field(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The text with `value` in every place, for checking what surrounds the places.
    #[must_use]
    pub fn with_each(&self, value: &str) -> String {
        let parts = self.parts.iter().map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Field(_) => value,
        });
        parts.collect()
    }

    /// Puts a record's values into the places: a string's characters, a number's or boolean's text, the compact JSON
    /// of an array or object.
    ///
    /// # Errors
    ///
    /// [`TemplateError::LoneSurrogate`] and [`TemplateError::DotSegment`]; a retry cannot help.
    pub fn render(&self, record: &JsonRecord, escape: Escape) -> Result<Rendered, TemplateError> {
        let mut out = String::with_capacity(self.source.len() + 32);
        for part in &self.parts {
            let field = match part {
                Part::Text(text) => {
                    out.push_str(text);
                    continue;
                }
                Part::Field(field) => field,
            };
            let Some(value) = record.path(field).filter(|value| !value.is_null()) else {
                return Ok(Rendered::Empty);
            };
            let text = text_of(value).ok_or_else(|| TemplateError::LoneSurrogate { field: field.clone() })?;
            match escape {
                Escape::Url => out.extend(utf8_percent_encode(&text, ENCODED)),
                Escape::None => out.push_str(&text),
            }
        }
        if escape == Escape::Url
            && let Some(segment) = dot_segment(&out)
        {
            return Err(TemplateError::DotSegment { segment });
        }
        Ok(Rendered::Text(out))
    }
}

fn text_of(value: JsonText<'_>) -> Option<Cow<'_, str>> {
    match value.kind() {
        Kind::Array | Kind::Object => {
            let json = compact(value.text().as_bytes()).ok()?;
            String::from_utf8(json.into()).ok().map(Cow::Owned)
        }
        _ => value.string().ok(),
    }
}

/// A segment of the URL's path that means the same or the parent folder, in any spelling that URL parsers know.
#[must_use]
pub(crate) fn dot_segment(url: &str) -> Option<&'static str> {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let hierarchy = after_scheme.split(['?', '#']).next().unwrap_or_default();
    // The first is the host.
    hierarchy.split(['/', '\\']).skip(1).find_map(|segment| {
        if segment.len() > 6 || !segment.starts_with(['.', '%']) {
            return None;
        }
        match segment.to_ascii_lowercase().replace("%2e", ".").as_str() {
            "." => Some("."),
            ".." => Some(".."),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Origin;

    fn render(template: &str, record: &str, escape: Escape) -> Result<Rendered, TemplateError> {
        let origin = Origin { file: "a".into(), line: 1, offset: 0, split_start: 0 };
        let record = JsonRecord::parse(record.to_owned().into(), origin).unwrap();
        Template::parse(template).unwrap().render(&record, escape)
    }

    fn text(text: &str) -> Result<Rendered, TemplateError> {
        Ok(Rendered::Text(text.to_owned()))
    }

    #[test]
    fn a_value_gives_its_text_percent_encoded_in_a_url() {
        for (record, in_url, as_is) in [
            (r#"{"a":"x/y?z #%ü"}"#, "x%2Fy%3Fz%20%23%25%C3%BC", "x/y?z #%ü"),
            (r#"{"a":"\u00fc\"\n"}"#, "%C3%BC%22%0A", "ü\"\n"),
            (r#"{"a":1.50e+3}"#, "1.50e%2B3", "1.50e+3"),
            (r#"{"a":true}"#, "true", "true"),
            (r#"{"a":""}"#, "", ""),
            (r#"{"a":[1, {"b": " "}]}"#, "%5B1%2C%7B%22b%22%3A%22%20%22%7D%5D", r#"[1,{"b":" "}]"#),
            (r#"{"a":1,"a":"-._~last"}"#, "-._~last", "-._~last"),
        ] {
            assert_eq!(
                render("http://h/{a}!", record, Escape::Url),
                text(&format!("http://h/{in_url}!")),
                "{record}"
            );
            assert_eq!(render("<{a}>", record, Escape::None), text(&format!("<{as_is}>")), "{record}");
        }
    }

    #[test]
    fn fields_within_fields_are_found() {
        assert_eq!(render("{a.b.c}", r#"{"a": {"b": {"c": 1, "c": 2}}}"#, Escape::None), text("2"));
        assert_eq!(render("{a.b}", r#"{"a.b": 3, "a": {"b": 4}}"#, Escape::None), text("3"));
    }

    #[test]
    fn a_missing_or_null_field_makes_it_empty() {
        for record in [
            "{}",
            r#"{"a":null}"#,
            r#"{"a":{}}"#,
            r#"{"a":{"b":null}}"#,
            r#"{"a":[{"b":1}]}"#,
            r#"{"a":"b"}"#,
        ] {
            assert_eq!(render("x{a.b}", record, Escape::Url), Ok(Rendered::Empty), "{record}");
        }
    }

    #[test]
    fn doubled_braces_stand_for_themselves() {
        assert_eq!(render(r#"{{"id":{a}}}"#, r#"{"a":1}"#, Escape::None), text(r#"{"id":1}"#));
    }

    #[test]
    fn a_lone_surrogate_is_no_text() {
        let error = render("{a}", r#"{"a":"\ud800"}"#, Escape::None);
        assert_eq!(error, Err(TemplateError::LoneSurrogate { field: "a".to_owned() }));
        assert_eq!(render("{a}", r#"{"a":"\ud83d\ude00"}"#, Escape::None), text("😀"));
    }

    #[test]
    fn a_value_cannot_name_another_folder() {
        for (template, value, segment) in [
            ("http://h/{a}", ".", Some(".")),
            ("http://h/{a}/x", "..", Some("..")),
            ("http://h/.{a}/x", ".", Some("..")),
            ("http://h/%2E{a}?x", ".", Some("..")),
            ("http://h/{a}.json", ".", None),
            ("http://h/{a}.json", "..", None),
            ("http://h/x?y=/{a}/", "..", None),
            ("http://h/{a}", "../..", None),
            ("http://h/{a}", "...", None),
            ("http://h/{a}", "%2e", None),
        ] {
            let rendered = render(template, &format!(r#"{{"a":"{value}"}}"#), Escape::Url);
            match segment {
                Some(segment) => {
                    assert_eq!(rendered, Err(TemplateError::DotSegment { segment }), "{template} {value}")
                }
                None => assert!(matches!(rendered, Ok(Rendered::Text(_))), "{template} {value}"),
            }
        }
    }

    #[test]
    fn what_is_no_template_says_where() {
        use TemplateError::{Unclosed, Unnamed, Unopened};
        for (template, error) in [
            ("ä{a", Unclosed { at: 2 }),
            ("{a{b}", Unclosed { at: 1 }),
            ("{", Unclosed { at: 1 }),
            ("a}", Unopened { at: 2 }),
            ("{}", Unnamed { at: 1 }),
            ("x{ }", Unnamed { at: 2 }),
            ("{a..b}", Unnamed { at: 1 }),
            ("{.a}", Unnamed { at: 1 }),
        ] {
            assert_eq!(Template::parse(template), Err(error), "{template}");
        }
        assert_eq!(
            Unclosed { at: 2 }.to_string(),
            "`{` at character 2 is not closed; write `{{` for the character itself"
        );
    }
}
