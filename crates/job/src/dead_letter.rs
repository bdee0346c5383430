//! The line that says which record could not be dealt with, where it came from and why.

use bytes::Bytes;
use runtime_core::EpochMillis;

use crate::event_time;
use crate::record::{JsonRecord, push_json_string};

/// How much of a malformed line is kept.
pub const LONGEST_TEXT: usize = 64 * 1024;

/// Why a record is a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The record's budget ran out.
    Timeout,
    /// A call or a filter failed.
    Error,
    /// Nothing is known about the record, and the job's file says that this is a reason.
    Empty,
    /// The source could not read a record.
    Malformed,
}

impl Reason {
    /// The word in the dead letter.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Error => "error",
            Self::Empty => "empty",
            Self::Malformed => "malformed",
        }
    }
}

/// What could not be dealt with.
#[derive(Debug, Clone, Copy)]
pub enum Undelivered<'a> {
    /// A record, as it came into the step.
    Record(&'a JsonRecord),
    /// A line that is no record.
    Text(&'a [u8]),
}

/// A record that could not be dealt with.
#[derive(Debug, Clone, Copy)]
pub struct DeadLetter<'a> {
    /// The record or the line.
    pub record: Undelivered<'a>,
    /// The step that gave it up; absent where the source did.
    pub step: Option<&'a str>,
    /// Why.
    pub reason: Reason,
    /// What happened, as a sentence.
    pub error: &'a str,
    /// How many attempts were begun.
    pub attempts: u32,
    /// When the first one began; absent without attempts.
    pub first_attempt_at: Option<EpochMillis>,
    /// When the last one began; absent without attempts.
    pub last_attempt_at: Option<EpochMillis>,
    /// The file it was read from.
    pub file: &'a str,
    /// The line in the file, from 1.
    pub line: u64,
    /// The byte offset of the line in the (unpacked) file.
    pub offset: u64,
}

impl DeadLetter<'_> {
    /// One line of JSON, without a line end.
    #[must_use]
    pub fn line(&self) -> Bytes {
        let mut out = Vec::with_capacity(512);
        out.extend(b"{\"record\":");
        match self.record {
            Undelivered::Record(record) => out.extend(record.line().trim_ascii()),
            Undelivered::Text(text) => push_json_string(&mut out, &shown(text)),
        }
        if let Some(step) = self.step {
            out.extend(b",\"step\":");
            push_json_string(&mut out, step);
        }
        out.extend(b",\"reason\":");
        push_json_string(&mut out, self.reason.as_str());
        out.extend(b",\"error\":");
        push_json_string(&mut out, self.error);
        out.extend(format!(",\"attempts\":{}", self.attempts).as_bytes());
        push_time(&mut out, "first_attempt_at", self.first_attempt_at);
        push_time(&mut out, "last_attempt_at", self.last_attempt_at);
        out.extend(b",\"source\":{\"file\":");
        push_json_string(&mut out, self.file);
        out.extend(format!(",\"line\":{},\"offset\":{}}}}}", self.line, self.offset).as_bytes());
        Bytes::from(out)
    }
}

fn push_time(out: &mut Vec<u8>, name: &str, time: Option<EpochMillis>) {
    out.push(b',');
    push_json_string(out, name);
    out.push(b':');
    match time {
        Some(time) => push_json_string(out, &event_time::format(time)),
        None => out.extend(b"null"),
    }
}

/// At most 64 KiB of UTF-8, cut at a character, with U+FFFD for invalid bytes.
fn shown(text: &[u8]) -> String {
    let text = text.get(..LONGEST_TEXT).unwrap_or(text);
    let mut shown = String::from_utf8_lossy(text).into_owned();
    // The replacement character is longer than what it replaces.
    let end = (0..=LONGEST_TEXT).rev().find(|&end| shown.is_char_boundary(end.min(shown.len())));
    shown.truncate(end.unwrap_or(0));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Origin;

    fn letter(record: Undelivered<'_>) -> DeadLetter<'_> {
        DeadLetter {
            record,
            step: None,
            reason: Reason::Malformed,
            error: "no JSON object at byte 0",
            attempts: 0,
            first_attempt_at: None,
            last_attempt_at: None,
            file: "/in/a\"b.jsonl",
            line: 17,
            offset: 3141,
        }
    }

    #[test]
    fn a_record_stands_in_it_byte_for_byte() {
        let origin = Origin { file: "a".into(), line: 1, offset: 0, split_start: 0 };
        let record = JsonRecord::parse("  {\"a\" : 1E2} \r".into(), origin).unwrap();
        let letter = DeadLetter {
            step: Some("customer"),
            reason: Reason::Timeout,
            attempts: 4,
            first_attempt_at: Some(EpochMillis(0)),
            last_attempt_at: Some(EpochMillis(1500)),
            ..letter(Undelivered::Record(&record))
        };
        assert_eq!(
            letter.line(),
            "{\"record\":{\"a\" : 1E2},\"step\":\"customer\",\"reason\":\"timeout\",\
             \"error\":\"no JSON object at byte 0\",\"attempts\":4,\
             \"first_attempt_at\":\"1970-01-01T00:00:00.000Z\",\"last_attempt_at\":\"1970-01-01T00:00:01.500Z\",\
             \"source\":{\"file\":\"/in/a\\\"b.jsonl\",\"line\":17,\"offset\":3141}}"
        );
    }

    #[test]
    fn a_malformed_line_is_shown_as_text_and_names_no_step() {
        let line = letter(Undelivered::Text(b"a\xff\"\t\x01")).line();
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(value["record"], "a\u{fffd}\"\t\u{1}");
        assert_eq!(value["reason"], "malformed");
        assert!(value.get("step").is_none());
        assert!(value["first_attempt_at"].is_null());
    }

    #[test]
    fn a_long_malformed_line_is_cut_at_a_character() {
        for text in [
            "ä".repeat(LONGEST_TEXT).into_bytes(),
            vec![0xff; LONGEST_TEXT * 2],
            b"x".repeat(LONGEST_TEXT + 1),
        ] {
            let shown = shown(&text);
            assert!(shown.len() <= LONGEST_TEXT && shown.len() > LONGEST_TEXT - 4, "{}", shown.len());
        }
    }
}
