//! Requests and responses against a server on this machine.

mod server;

use std::time::Duration;

use server::{BREAK_OFF, Server, response};

use super::*;
use crate::call::CallOutcome;
use crate::call::testing::request;

fn options(url: &str) -> HttpOptions {
    HttpOptions {
        url: Template::parse(url).unwrap(),
        method: "GET".to_owned(),
        headers: Vec::new(),
        body: None,
        success: StatusSet(vec![(200, 299)]),
        empty: StatusSet(vec![(204, 204), (404, 404)]),
        retryable: StatusSet(vec![(408, 408), (429, 429), (500, 599)]),
    }
}

const RULES: AnswerRules = AnswerRules { max: 1000, object: false };

async fn ask_with(options: &HttpOptions, rules: AnswerRules, record: &str) -> CallOutcome {
    match HttpCall::build(options, rules).unwrap().call(&request(record)) {
        Called::Ready(outcome) | Called::NotMade(outcome) => outcome,
        Called::Pending(future) => future.await,
    }
}

async fn ask(url: &str, record: &str) -> CallOutcome {
    ask_with(&options(url), RULES, record).await
}

#[tokio::test]
async fn a_record_is_asked_about_and_the_answer_compacted() {
    let server = Server::start(|_| response("200 OK", "", "{ \"name\": \"A b\" }\n")).await;
    let outcome = ask(&server.url("/c/{id}.json?q={to.city}"), r#"{"id":"x/y","to":{"city":"R m"}}"#).await;
    assert_eq!(outcome, Ok(Answer::Value(r#"{"name":"A b"}"#.into())));
    let asked = server.requests().remove(0);
    assert!(asked.starts_with("GET /c/x%2Fy.json?q=R%20m HTTP/1.1\r\n"), "{asked}");
    let key = request("{}").idempotency_key;
    assert!(asked.contains(&format!("idempotency-key: {key}\r\n")), "{asked}");
}

#[tokio::test]
async fn method_headers_and_body_are_filled_in() {
    let server = Server::start(|_| response("200 OK", "", "1")).await;
    let mut options = options(&server.url("/"));
    options.method = "POST".to_owned();
    options.headers = vec![("X-Who".to_owned(), Template::parse("<{id}>").unwrap())];
    options.body = Some(Template::parse(r#"{{"id":"{id}"}}"#).unwrap());
    assert_eq!(ask_with(&options, RULES, r#"{"id":"ü"}"#).await, Ok(Answer::Value("1".into())));
    let asked = server.requests().remove(0);
    assert!(asked.starts_with("POST / HTTP/1.1\r\n") && asked.ends_with("\r\n\r\n{\"id\":\"ü\"}"), "{asked}");
    assert!(asked.contains("content-type: application/json\r\n"), "{asked}");
    assert!(asked.contains("x-who: <"), "{asked}");
}

#[tokio::test]
async fn a_missing_or_null_field_is_empty_and_nobody_is_asked() {
    let server = Server::start(|_| response("200 OK", "", "1")).await;
    for record in ["{}", r#"{"id":null}"#] {
        assert_eq!(ask(&server.url("/{id}"), record).await, Ok(Answer::Empty), "{record}");
    }
    let mut options = options(&server.url("/"));
    options.headers = vec![("a".to_owned(), Template::parse("{id}").unwrap())];
    assert_eq!(ask_with(&options, RULES, "{}").await, Ok(Answer::Empty));
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_value_that_makes_no_request_is_a_terminal_failure_and_nobody_is_asked() {
    let server = Server::start(|_| response("200 OK", "", "1")).await;
    let mut options = options(&server.url("/a/{id}/b"));
    options.headers = vec![("a".to_owned(), Template::parse("{id}").unwrap())];
    for record in [r#"{"id":".."}"#, r#"{"id":"."}"#, r#"{"id":"a\nb"}"#, r#"{"id":"\ud800"}"#] {
        let failure = ask_with(&options, RULES, record).await.unwrap_err();
        assert!(!failure.retryable && failure.message.contains("no request"), "{record}: {failure}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_status_decides_what_a_response_means() {
    for (status, expected) in [
        ("200 OK", Ok(Answer::Value("1".into()))),
        ("299 Odd", Ok(Answer::Value("1".into()))),
        ("204 No Content", Ok(Answer::Empty)),
        ("404 Not Found", Ok(Answer::Empty)),
        ("408 Request Timeout", Err(true)),
        ("429 Too Many Requests", Err(true)),
        ("503 Service Unavailable", Err(true)),
        ("302 Found", Err(false)),
        ("400 Bad Request", Err(false)),
    ] {
        let body = if status.starts_with("204") { "" } else { "1" };
        let server =
            Server::start(move |_| response(status, "location: http://127.0.0.1:1/\r\n", body)).await;
        let outcome = ask(&server.url("/x"), "{}").await;
        assert_eq!(outcome.clone().map_err(|failure| failure.retryable), expected, "{status}");
        if let Err(failure) = outcome {
            let message = failure.message;
            assert!(message.contains(&server.url("/x")) && message.contains(status), "{message}");
        }
    }
}

#[tokio::test]
async fn retry_after_is_told_with_a_retryable_status() {
    let server = Server::start(|_| response("503 Busy", "retry-after: 7\r\n", "come back")).await;
    let failure = ask(&server.url("/"), "{}").await.unwrap_err();
    assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
    assert!(failure.message.ends_with(": come back"), "{failure}");
}

#[tokio::test]
async fn connections_are_used_again_after_every_kind_of_response() {
    let server = Server::start(|asked| {
        let status = ["200 OK", "404 Not Found", "503 Busy", "400 Bad"].into_iter();
        let status = status.cycle().nth(asked.as_bytes()[5] as usize).unwrap();
        response(status, "", &"1".repeat(600))
    })
    .await;
    for id in 0..20 {
        let _ = ask(&server.url("/{id}"), &format!("{{\"id\":{}}}", id % 10)).await;
    }
    assert_eq!((server.requests().len(), server.connections()), (20, 1));
}

#[tokio::test]
async fn what_is_no_json_or_no_object_where_one_is_needed_is_a_terminal_failure() {
    let replacing = AnswerRules { object: true, ..RULES };
    for (rules, body) in [(RULES, "<html>"), (RULES, ""), (replacing, "[1]")] {
        let server = Server::start(move |_| response("200 OK", "", body)).await;
        let failure = ask_with(&options(&server.url("/")), rules, "{}").await.unwrap_err();
        assert!(!failure.retryable && failure.message.contains(&server.url("/")), "{failure}");
    }
}

#[tokio::test]
async fn an_answer_beyond_the_limit_is_given_up_before_it_has_come() {
    let endless = |_: &str| {
        let chunk = format!("190\r\n{}\r\n", "1".repeat(400));
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}", chunk.repeat(3))
    };
    let announced = |_: &str| "HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n".to_owned();
    // Neither response ever ends: only who stops reading comes back.
    for server in [Server::start(endless).await, Server::start(announced).await] {
        let failure = ask(&server.url("/"), "{}").await.unwrap_err();
        assert!(!failure.retryable && failure.message.contains("max_answer"), "{failure}");
    }
}

#[tokio::test]
async fn an_answer_in_pieces_is_put_together() {
    let server = Server::start(|_| {
        let chunks = "4\r\n[\"ab\r\n3\r\n\", \r\n2\r\n2]\r\n0\r\n\r\n";
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}")
    })
    .await;
    assert_eq!(ask(&server.url("/"), "{}").await, Ok(Answer::Value(r#"["ab",2]"#.into())));
}

#[tokio::test]
async fn every_transport_error_is_retryable_and_says_what_was_asked_and_why_it_failed() {
    let refused = {
        let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}/x", free.local_addr().unwrap())
    };
    let garbage = Server::start(|_| format!("SSH-2.0-hello\r\n{BREAK_OFF}")).await;
    let closed = Server::start(|_| BREAK_OFF.to_owned()).await;
    let torn = Server::start(|_| format!("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{{{BREAK_OFF}")).await;
    for (url, cause) in [
        (refused, "refused"),
        (garbage.url("/x"), "invalid"),
        (closed.url("/x"), "connection closed"),
        (torn.url("/x"), "end of file"),
    ] {
        let failure = ask(&url, "{}").await.unwrap_err();
        assert!(failure.retryable, "{failure}");
        assert!(failure.message.contains(&url) && failure.message.contains(cause), "{failure}");
    }
}

#[tokio::test]
async fn a_password_in_the_url_is_sent_and_not_told() {
    let server = Server::start(|_| response("400 Bad", "", "")).await;
    let url = server.url("/").replace("://", "://me:secret@");
    let failure = ask(&url, "{}").await.unwrap_err();
    assert!(!failure.message.contains("secret"), "{failure}");
    assert!(server.requests()[0].contains("authorization: Basic"), "{}", server.requests()[0]);
}

#[test]
fn what_makes_no_request_is_refused_before_the_first_record() {
    let refused = |change: fn(&mut HttpOptions)| {
        let mut options = options("http://127.0.0.1/{id}");
        change(&mut options);
        HttpCall::build(&options, RULES).err().unwrap()
    };
    assert!(refused(|o| o.method = "G T".to_owned()).contains("method"));
    assert!(refused(|o| o.url = Template::parse("ftp://host/").unwrap()).contains("ftp"));
    assert!(refused(|o| o.url = Template::parse("/no/host").unwrap()).contains("no URL"));
    assert!(
        refused(|o| o.headers = vec![("a b".to_owned(), Template::parse("").unwrap())]).contains("header")
    );
}
