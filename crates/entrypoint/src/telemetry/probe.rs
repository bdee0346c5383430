//! The client behind `tidegate health`: one HTTP/1.0 request over a plain socket.
//!
//! An image without a shell runs it as its health check every few seconds. So it starts no runtime and loads no
//! certificates, and works where there are none.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use axum::http::Uri;
use runtime_core::time::{Clock as _, TokioClock};

/// The whole check; a process that needs longer is not well.
const BUDGET: Duration = Duration::from_secs(3);

/// The answer is a status line and a few lines of JSON; what is longer is not ours.
const MOST: usize = 64 << 10;

/// Why a process does not count as well.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The argument is no address.
    #[error("{url:?} is no address of a health endpoint; expected http://HOST:PORT, or HOST:PORT")]
    Url {
        /// The argument.
        url: String,
    },
    /// Nobody answered in time.
    #[error("{authority} does not answer: {cause}")]
    Unreachable {
        /// Host and port.
        authority: String,
        /// What the system says.
        cause: io::Error,
    },
    /// Something answered that speaks no HTTP.
    #[error("{authority} answers something that is no HTTP: {line:?}")]
    NoHttp {
        /// Host and port.
        authority: String,
        /// The beginning of it.
        line: String,
    },
    /// It says that it is not well.
    #[error("{authority} answers {status}: {body}")]
    Unwell {
        /// Host and port.
        authority: String,
        /// The HTTP status.
        status: u16,
        /// The body, on one line.
        body: String,
    },
}

/// Asks a process whether it is well. The path is `/healthz` where the address has none. Blocks, for three seconds at
/// most (looking up a name not counted).
///
/// # Errors
/// Why it is not.
pub fn check(url: &str) -> Result<(), ProbeError> {
    let wrong = || ProbeError::Url { url: url.to_owned() };
    let whole = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let uri: Uri = whole.parse().map_err(|_| wrong())?;
    let authority = uri.authority().ok_or_else(wrong)?;
    if uri.scheme_str() != Some("http") || authority.host().is_empty() || authority.as_str().contains('@') {
        return Err(wrong());
    }
    let path = match uri.path_and_query().map_or("/", |path| path.as_str()) {
        "/" => "/healthz",
        path => path,
    };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let answer = ask(host, authority.port_u16().unwrap_or(80), authority.as_str(), path)
        .map_err(|cause| ProbeError::Unreachable { authority: authority.to_string(), cause })?;
    judge(authority.as_str(), &answer)
}

fn ask(host: &str, port: u16, authority: &str, path: &str) -> io::Result<Vec<u8>> {
    let clock = TokioClock::start();
    let deadline = clock.now() + BUDGET;
    let left = || match deadline.since(clock.now()) {
        left if left.is_zero() => {
            Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {BUDGET:?}")))
        }
        left => Ok(left),
    };
    let mut refused = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left()?) {
            Err(e) => refused = e,
            Ok(mut stream) => {
                stream.set_write_timeout(Some(left()?))?;
                let request =
                    format!("GET {path} HTTP/1.0\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
                stream.write_all(request.as_bytes())?;
                let mut answer = Vec::new();
                let mut piece = [0; 4096];
                while answer.len() < MOST {
                    stream.set_read_timeout(Some(left()?))?;
                    match stream.read(&mut piece) {
                        Ok(0) => break,
                        Ok(n) => answer.extend_from_slice(piece.get(..n).unwrap_or_default()),
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                        // It answered and hung up without reading all of the request.
                        Err(e) if e.kind() == io::ErrorKind::ConnectionReset && !answer.is_empty() => break,
                        // An unread timeout is called "would block" by the system.
                        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                            left()?;
                        }
                        Err(e) => return Err(e),
                    }
                }
                return Ok(answer);
            }
        }
    }
    Err(refused)
}

fn judge(authority: &str, answer: &[u8]) -> Result<(), ProbeError> {
    let text = String::from_utf8_lossy(answer);
    let first = text.lines().next().unwrap_or_default();
    let status = first
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1))
        .and_then(|status| status.parse::<u16>().ok())
        .ok_or_else(|| ProbeError::NoHttp {
            authority: authority.to_owned(),
            line: first.chars().take(60).collect(),
        })?;
    if status == 200 {
        return Ok(());
    }
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let body: String = body.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(500).collect();
    Err(ProbeError::Unwell { authority: authority.to_owned(), status, body })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_is_no_address_is_refused_before_anything_is_sent() {
        for url in ["", "https://x:1", "http://", "http://a b", "ftp://x", "http://u@h:1"] {
            assert!(matches!(check(url), Err(ProbeError::Url { .. })), "{url:?}");
        }
    }

    #[test]
    fn an_answer_that_is_no_http_is_shown() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.extend_from_slice(&byte);
            }
            stream.write_all(b"SSH-2.0-what\r\n").unwrap();
        });
        let refused = check(&address.to_string()).unwrap_err();
        assert!(matches!(&refused, ProbeError::NoHttp { line, .. } if line == "SSH-2.0-what"), "{refused}");
        server.join().unwrap();
    }

    #[test]
    fn only_200_is_well() {
        assert!(judge("a", b"HTTP/1.1 200 OK\r\n\r\n").is_ok());
        assert!(matches!(judge("a", b"HTTP/1.0 204 x\r\n\r\n"), Err(ProbeError::Unwell { status: 204, .. })));
        assert!(matches!(judge("a", b""), Err(ProbeError::NoHttp { .. })));
        assert!(matches!(judge("a", b"HTTP/1.1 abc\r\n"), Err(ProbeError::NoHttp { .. })));
    }
}
