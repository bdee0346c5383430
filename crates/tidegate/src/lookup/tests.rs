//! Rows are found by what a URL says, and failures by the seed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::*;

const ROWS: &str = concat!(
    "\u{feff}{\"id\": \"a/b c\", \"n\": 1}\r\n",
    "\n",
    "{\"id\":\"\\u00fc%\",\"n\":2}\n",
    "{\"id\":7,\"n\":3}\n",
    "{\"id\":null,\"n\":4}\n",
    "{\"id\":[1, 2],\"n\":5}\n",
    "{\"id\":\"\",\"n\":6}",
);

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn rows(text: &str) -> Result<Rows, LookupError> {
    let (_folder, path) = file(text);
    Rows::load(&path, "id")
}

async fn start(faults: Faults) -> (Arc<LookupService>, SocketAddr) {
    let listener = entrypoint::listen::tcp("--bind", SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let bound = listener.local_addr().unwrap();
    let service = Arc::new(LookupService::new(rows(ROWS).unwrap(), Duration::ZERO, faults));
    tokio::spawn(Arc::clone(&service).serve(listener, bound));
    (service, bound)
}

/// Status and body, over a plain connection.
async fn request(bound: SocketAddr, method: &str, path: &str) -> (u16, String) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(bound).await.unwrap();
    let request = format!("{method} {path} HTTP/1.0\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

#[tokio::test]
async fn a_key_is_percent_decoded_and_compared_with_what_a_template_would_say() {
    let (service, bound) = start(Faults::new(0.0, 0)).await;
    for (path, row) in [
        ("/a%2Fb%20c", r#"{"id":"a/b c","n":1}"#),
        ("/a/b%20c?v=1", r#"{"id":"a/b c","n":1}"#),
        ("/%C3%BC%25", r#"{"id":"\u00fc%","n":2}"#),
        ("/7", r#"{"id":7,"n":3}"#),
        ("/%5B1,2%5D", r#"{"id":[1,2],"n":5}"#),
        ("/", r#"{"id":"","n":6}"#),
    ] {
        assert_eq!(request(bound, "GET", path).await, (200, row.to_owned()), "{path}");
    }
    for path in ["/none", "/null", "/%FF", "/7.0"] {
        assert_eq!(request(bound, "GET", path).await.0, 404, "{path}");
    }
    assert_eq!(service.counts(), Counts { served: 10, injected: 0 });
}

#[tokio::test]
async fn rows_can_only_be_read() {
    let (service, bound) = start(Faults::new(0.0, 0)).await;
    assert_eq!(request(bound, "POST", "/7").await.0, 405);
    assert_eq!(request(bound, "DELETE", "/7").await.0, 405);
    assert_eq!(service.counts().served, 0);
}

#[tokio::test]
async fn injected_failures_are_those_that_the_seed_chooses() {
    let (service, bound) = start(Faults::new(0.5, 11)).await;
    let mut chosen = Faults::new(0.5, 11);
    for _ in 0..40 {
        let expected = if chosen.strikes() { 503 } else { 200 };
        assert_eq!(request(bound, "GET", "/7").await.0, expected);
    }
    let counts = service.counts();
    assert_eq!(counts.served, 40);
    assert!((1..40).contains(&counts.injected), "{counts:?}");
}

#[test]
fn what_is_no_table_is_refused_with_its_line() {
    for (text, line, reason) in [
        ("{\"id\":1}\n[2]\n", 2, "object"),
        ("{\"id\":1}\n\n{\"n\":1}\n", 3, "no field `id`"),
        ("{\"id\":7}\n{\"id\":\"7\"}\n", 2, "another row has the `id` 7"),
        ("{\"id\":\"\\ud800\"}\n", 1, "surrogate"),
    ] {
        let error = rows(text).unwrap_err();
        assert!(matches!(&error, LookupError::Row { line: l, .. } if *l == line), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    assert!(matches!(Rows::load("/no/such/file".as_ref(), "id"), Err(LookupError::Source(_))));
}
