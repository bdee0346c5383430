//! Look-ups over HTTP in the three orders: `cargo run -p asyncio --example http_lookup`.
//!
//! A server on a free port of this machine knows prices. It holds the first answer back until it has given three others,
//! and refuses one product the first time with 503, which is retried. Prints the prices as they left, a line an order.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use asyncio::{
    AsyncWaitExt, AsyncWaitOperator, CallContext, CallError, FutureCalls, Options, OptionsBuilder, Retry,
    Verdict,
};
use futures::{StreamExt, stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

const PRODUCTS: [&str; 5] = ["apple-1", "banana-1", "apple-2", "cherry-1", "banana-2"];

#[derive(Debug, thiserror::Error)]
enum LookupError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("status {0}")]
    Status(u16),
}

/// `GET /PRODUCT`, and the body of the answer.
async fn get(server: SocketAddr, product: &str, context: CallContext) -> Result<String, LookupError> {
    let mut connection = TcpStream::connect(server).await?;
    let key = context.idempotency_key();
    let request = format!("GET /{product} HTTP/1.1\r\nHost: {server}\r\nIdempotency-Key: {key}\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    // Status 0 stands for an answer that is no HTTP.
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    match head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0) {
        200 => Ok(body.to_owned()),
        status => Err(LookupError::Status(status)),
    }
}

/// What the server remembers.
struct Shop {
    /// Products that were answered.
    given: Semaphore,
    was_busy: AtomicBool,
}

async fn answer(mut connection: TcpStream, shop: &Shop) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(connection.read_u8().await?);
    }
    let request = String::from_utf8_lossy(&request);
    let product = request.split([' ', '/']).nth(2).unwrap_or_default();
    let busy = product == "cherry-1" && !shop.was_busy.swap(true, Ordering::Relaxed);
    if product == "apple-1" {
        let _ = shop.given.acquire_many(3).await;
    }
    let (status, body) =
        if busy { ("503 Busy", String::new()) } else { ("200 OK", format!("{product}=1.99")) };
    let answer = format!("HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{body}");
    connection.write_all(answer.as_bytes()).await?;
    connection.shutdown().await?;
    // The client closes when it has read everything.
    let _ = connection.read_u8().await;
    if !busy {
        shop.given.add_permits(1);
    }
    Ok(())
}

async fn serve(listener: TcpListener) {
    let shop = Arc::new(Shop { given: Semaphore::new(0), was_busy: AtomicBool::new(false) });
    while let Ok((connection, _)) = listener.accept().await {
        let shop = Arc::clone(&shop);
        tokio::spawn(async move { answer(connection, &shop).await });
    }
}

async fn look_up(options: OptionsBuilder) -> Result<Vec<String>, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = listener.local_addr()?;
    let serving = tokio::spawn(serve(listener));

    let retry = Retry::FixedDelay { max_retries: 3, delay: Duration::from_millis(1) };
    let worth_it = |outcome: &Result<String, CallError<LookupError>>| match outcome {
        Err(CallError::Error(LookupError::Io(_) | LookupError::Status(500..))) => Verdict::Retry,
        _ => Verdict::Final,
    };
    let fruit = |product: &&str| product.split('-').next().map(str::to_owned);
    let options = options.timeout(Duration::from_secs(30)).retry(retry).build()?;
    let operator = AsyncWaitOperator::with(options, fruit, worth_it);
    let calls =
        FutureCalls::with_context(move |product: &&'static str, context| get(server, product, context));
    // The source stays open: once its input has ended, an operator retries nothing any more.
    let source = stream::iter(PRODUCTS).chain(stream::pending());
    let prices: Vec<_> = source.async_wait_on(operator, calls).take(PRODUCTS.len()).collect().await;
    serving.abort();
    prices.into_iter().map(|price| price.map_err(|failed| failed.to_string().into())).collect()
}

/// What is printed; an error if an order did not hold.
pub(crate) async fn run() -> Result<String, Box<dyn Error>> {
    let place = |prices: &[String], product: &str| prices.iter().position(|price| price.starts_with(product));
    let ordered = look_up(Options::ordered()).await?;
    let in_order = ordered.iter().zip(PRODUCTS).all(|(price, product)| price.starts_with(product));
    let unordered = look_up(Options::unordered()).await?;
    let overtaken = place(&unordered, "apple-1") >= Some(3);
    let keyed = look_up(Options::keyed()).await?;
    let by_key = [("apple-1", "apple-2"), ("banana-1", "banana-2")]
        .iter()
        .all(|(first, second)| place(&keyed, first) < place(&keyed, second));
    if !(in_order && overtaken && by_key) {
        return Err(format!("an order did not hold: {ordered:?} {unordered:?} {keyed:?}").into());
    }
    let [ordered, unordered, keyed] = [ordered, unordered, keyed].map(|prices| prices.join("  "));
    Ok(format!("  ordered: {ordered}\nunordered: {unordered}\n    keyed: {keyed}"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run().await?);
    Ok(())
}
