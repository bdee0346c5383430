//! Looking up rows, and files that are no tables.

use std::io::Write;

use tempfile::{NamedTempFile, TempDir};

use super::*;
use crate::call::CallOutcome;
use crate::call::testing::request;

const RULES: AnswerRules = AnswerRules { max: 100, object: true };

fn table(text: &str) -> (NamedTempFile, TableOptions) {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let options =
        TableOptions { file: file.path().to_path_buf(), key: "id".to_owned(), by: "who".to_owned() };
    (file, options)
}

fn ask(text: &str, record: &str) -> CallOutcome {
    let (_file, options) = table(text);
    match TableCall::build(&options, RULES).unwrap().call(&request(record)) {
        Called::Ready(outcome) | Called::NotMade(outcome) => outcome,
        Called::Pending(_) => panic!("a table answers at once"),
    }
}

fn refused(text: &str) -> String {
    let (_file, options) = table(text);
    TableCall::build(&options, RULES).err().unwrap().to_string()
}

#[test]
fn the_answer_is_the_whole_row_in_one_line_as_it_was_written() {
    let rows = "\u{feff}{ \"id\" : \"a\", \"n\" : 1.0 }\r\n\n{\"id\":\"b\"}";
    assert_eq!(ask(rows, r#"{"who":"a"}"#), Ok(Answer::Value(r#"{"id":"a","n":1.0}"#.into())));
    assert_eq!(ask(rows, r#"{"who":"\u0062"}"#), Ok(Answer::Value(r#"{"id":"b"}"#.into())));
}

#[test]
fn a_key_of_another_type_or_text_a_null_and_a_missing_one_are_empty() {
    let rows = "{\"id\":7}\n{\"id\":null}\n{\"id\":null}\n";
    assert!(matches!(ask(rows, r#"{"who":7}"#), Ok(Answer::Value(_))));
    for record in [r#"{"who":"7"}"#, r#"{"who":7.0}"#, r#"{"who":null}"#, "{}"] {
        assert_eq!(ask(rows, record), Ok(Answer::Empty), "{record}");
    }
}

#[test]
fn two_rows_of_one_key_are_refused_with_both_lines() {
    let error = refused("{\"id\":1}\n\n{\"id\":2}\n{\"id\":1}\n");
    assert!(error.contains("`id` 1: lines 1 and 4"), "{error}");
}

#[test]
fn a_line_that_is_no_row_is_refused_with_its_line() {
    for text in ["{\"id\":1}\n[2]\n", "{\"id\":1}\n{\"id\n", "{\"id\":1}\n{\"other\":1}\n"] {
        let error = refused(text);
        assert!(error.contains("line 2"), "{error}");
    }
}

#[test]
fn a_file_that_is_not_there_is_refused_with_its_name() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("none.jsonl");
    let options = TableOptions { file: file.clone(), key: "id".to_owned(), by: "id".to_owned() };
    let error = TableCall::build(&options, RULES).err().unwrap().to_string();
    assert!(error.contains(file.to_str().unwrap()), "{error}");
}

#[test]
fn a_row_longer_than_the_limit_is_a_terminal_failure() {
    let row = format!("{{\"id\":1,\"text\":\"{}\"}}", "x".repeat(100));
    assert!(!ask(&row, r#"{"who":1}"#).unwrap_err().retryable);
}

#[test]
fn subtasks_share_one_table_until_the_file_changes() {
    let (mut file, options) = table("{\"id\":1}\n");
    let first = shared(&options).unwrap();
    assert!(Arc::ptr_eq(&first, &shared(&options).unwrap()));
    file.write_all(b"{\"id\":2}\n").unwrap();
    let second = shared(&options).unwrap();
    assert_eq!((first.rows.len(), second.rows.len()), (1, 2));
}
