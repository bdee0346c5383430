//! A small HTTP/1.1 server that answers as a test wants and remembers what it was asked.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What stands in the place of a response that never ends: the connection is closed after what comes before.
pub(super) const BREAK_OFF: &str = "\u{1}";

type Answer = dyn Fn(&str) -> String + Send + Sync;

pub(super) struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    requests: Mutex<Vec<String>>,
}

impl Server {
    /// Serves on a free port of this machine until the test's runtime ends.
    pub(super) async fn start(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let (shared, answer): (_, Arc<Answer>) = (Arc::clone(&seen), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(stream, Arc::clone(&shared), Arc::clone(&answer)));
            }
        });
        Self { address, seen }
    }

    pub(super) fn url(&self, rest: &str) -> String {
        format!("http://{}{rest}", self.address)
    }

    pub(super) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Relaxed)
    }

    /// Head and body of each request so far.
    pub(super) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, seen: Arc<Seen>, answer: Arc<Answer>) {
    while let Some(request) = read_request(&mut stream).await {
        let response = answer(&request);
        seen.requests.lock().unwrap().push(request);
        let (bytes, broken) = match response.strip_suffix(BREAK_OFF) {
            Some(bytes) => (bytes, true),
            None => (response.as_str(), false),
        };
        if stream.write_all(bytes.as_bytes()).await.is_err() || broken {
            return;
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut text = String::new();
    while !text.ends_with("\r\n\r\n") {
        text.push(char::from(stream.read_u8().await.ok()?));
    }
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.ok()?;
    Some(text + &String::from_utf8(body).unwrap())
}

/// A response with a body of known length.
pub(super) fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len())
}
