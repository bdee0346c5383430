//! Asks a server over HTTP, with nothing but a socket.
//!
//! HTTP/1.0 on purpose: the answer ends where the connection ends, so there are no chunks, no pool and no state that
//! could explain a surprise. For loopback only.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;

/// Longer than any answer of a server that lives.
const DEADLINE: Duration = Duration::from_secs(20);

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Everything after the headers.
    pub body: String,
}

impl Response {
    /// The body as JSON.
    ///
    /// # Errors
    /// It is none.
    pub fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_str(&self.body).with_context(|| format!("the body is no JSON: {}", self.body))
    }
}

/// `GET`.
///
/// # Errors
/// The server cannot be reached or does not answer in HTTP.
pub fn get(address: &str, path: &str) -> anyhow::Result<Response> {
    request(address, "GET", path, "application/json", &[])
}

/// Any method, with a body. A server may answer before it has read the body whole.
///
/// # Errors
/// As [`get`].
pub fn request(
    address: &str,
    method: &str,
    path: &str,
    media_type: &str,
    body: &[u8],
) -> anyhow::Result<Response> {
    let at = || format!("{method} http://{address}{path}");
    let mut stream = TcpStream::connect(address).with_context(at)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.set_write_timeout(Some(DEADLINE))?;
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).with_context(at)?;
    let refused = |kind| matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
    match stream.write_all(body) {
        // It has seen enough, and its answer may be here already.
        Err(error) if refused(error.kind()) => {}
        written => written.with_context(at)?,
    }
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // Data that the server never read resets the connection behind its answer.
        Err(error) if refused(error.kind()) && !answer.is_empty() => {}
        read => drop(read.with_context(at)?),
    }
    parse(&answer).with_context(at)
}

fn parse(answer: &[u8]) -> anyhow::Result<Response> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").context("the answer has no headers")?;
    let status = head.split_whitespace().nth(1).and_then(|code| code.parse().ok());
    let status = status.with_context(|| format!("no status: {}", head.lines().next().unwrap_or_default()))?;
    Ok(Response { status, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_body_are_taken_apart() {
        let answer = parse(b"HTTP/1.0 202 Accepted\r\na: b\r\n\r\n{\"x\":\r\n\r\n1}").unwrap();
        assert_eq!(answer, Response { status: 202, body: "{\"x\":\r\n\r\n1}".into() });
        assert!(parse(b"\0\0\x04").is_err());
        assert!(parse(b"x\r\n\r\n").is_err());
    }
}
