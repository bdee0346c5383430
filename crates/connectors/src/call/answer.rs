//! What every answer must be, whoever gave it.

use bytes::Bytes;
use job::options::EnrichOptions;
use job::record::compact;

use super::{Answer, CallFailure, CallOutcome};

/// The rules of one step.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerRules {
    /// The longest answer in bytes, as it was given.
    pub(super) max: u64,
    /// Whether it is to replace the record, and so must be an object.
    pub(super) object: bool,
}

impl AnswerRules {
    pub(super) fn of(options: &EnrichOptions) -> Self {
        Self { max: options.max_answer, object: options.into.is_none() }
    }

    /// The answer in one line.
    pub(super) fn check(&self, raw: &[u8]) -> CallOutcome {
        self.check_length(raw.len() as u64)?;
        let value = compact(raw)
            .map_err(|malformed| CallFailure::terminal(format!("the answer is no JSON: {malformed}")))?;
        self.check_object(&value)?;
        Ok(Answer::Value(value))
    }

    pub(super) fn check_length(&self, length: u64) -> Result<(), CallFailure> {
        if length <= self.max {
            return Ok(());
        }
        Err(CallFailure::terminal(format!("the answer is longer than max_answer, {} bytes", self.max)))
    }

    fn check_object(&self, value: &Bytes) -> Result<(), CallFailure> {
        if !self.object || value.first() == Some(&b'{') {
            return Ok(());
        }
        Err(CallFailure::terminal(
            "the answer is no JSON object, but is to replace the record; `into` names a field for it",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTO_FIELD: AnswerRules = AnswerRules { max: 16, object: false };
    const REPLACING: AnswerRules = AnswerRules { max: 16, object: true };

    #[test]
    fn an_answer_is_compacted_to_one_line() {
        let expected = Ok(Answer::Value(Bytes::from_static(br#"{"a":"b c"}"#)));
        assert_eq!(REPLACING.check(b"{\n\"a\": \"b c\"}"), expected);
        assert_eq!(INTO_FIELD.check(b" 7\n"), Ok(Answer::Value(Bytes::from_static(b"7"))));
    }

    #[test]
    fn what_is_no_json_or_too_long_or_no_object_where_one_is_needed_is_terminal() {
        for (rules, raw) in [
            (INTO_FIELD, &b"<html>"[..]),
            (INTO_FIELD, b""),
            (INTO_FIELD, b"{} {}"),
            (INTO_FIELD, b"\"\xff\""),
            (INTO_FIELD, b"\"seventeen bytes.\""),
            (REPLACING, b"[1]"),
            (REPLACING, b"null"),
        ] {
            let failure = rules.check(raw).unwrap_err();
            assert!(!failure.retryable, "{failure}");
        }
    }
}
