//! The same calls in the three orders: `cargo run -p asyncio --example orders`.
//!
//! Each request names a customer and how long the service takes for it. Prints, for each order, when which answer left:
//!
//! - ordered: the slow first answer holds up all others, and they leave together;
//! - unordered: each leaves when it is there;
//! - keyed: a customer is asked about one request at a time and the answers keep their order, other customers' calls
//!   overlap with them.

use std::convert::Infallible;
use std::error::Error;
use std::fmt::Write;
use std::time::Duration;

use asyncio::{AsyncWaitExt, Options, OptionsBuilder, RetryErrors};
use futures::{StreamExt, stream};
use runtime_core::time::{Clock, TokioClock};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Request {
    customer: char,
    number: u32,
    takes: Duration,
}

const fn request(customer: char, number: u32, millis: u64) -> Request {
    Request { customer, number, takes: Duration::from_millis(millis) }
}

const REQUESTS: [Request; 5] =
    [request('a', 1, 60), request('a', 2, 10), request('b', 1, 20), request('c', 1, 5), request('b', 2, 10)];

async fn ask(request: Request) -> Result<Request, Infallible> {
    tokio::time::sleep(request.takes).await;
    Ok(request)
}

/// The answers as they left, and a line that says when they did.
async fn answers(name: &str, options: OptionsBuilder) -> Result<(Vec<Request>, String), Box<dyn Error>> {
    let clock = TokioClock::start();
    let mut answers = stream::iter(REQUESTS).async_wait_with(
        options.timeout(Duration::from_secs(10)).build()?,
        |request: &Request| Some(request.customer),
        RetryErrors,
        |request: &Request| ask(*request),
    );
    let (mut left, mut line) = (Vec::new(), format!("{name:>9}:"));
    while let Some(answer) = answers.next().await {
        let answer = answer.map_err(|failed| failed.to_string())?;
        write!(line, "  {}{} {} ms", answer.customer, answer.number, clock.now().as_millis())?;
        left.push(answer);
    }
    Ok((left, line))
}

fn ensure(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

/// What is printed; an error if an order did not hold.
pub(crate) async fn run() -> Result<String, Box<dyn Error>> {
    let (ordered, first) = answers("ordered", Options::ordered()).await?;
    ensure(ordered == REQUESTS, "ordered answers changed places")?;

    let (unordered, second) = answers("unordered", Options::unordered()).await?;
    ensure(REQUESTS.iter().all(|request| unordered.contains(request)), "an answer is missing")?;

    let (keyed, third) = answers("keyed", Options::keyed()).await?;
    for customer in ['a', 'b', 'c'] {
        let of = |requests: &[Request]| -> Vec<Request> {
            requests.iter().filter(|request| request.customer == customer).copied().collect()
        };
        ensure(of(&keyed) == of(&REQUESTS), "a customer's answers changed places")?;
    }
    Ok([first, second, third].join("\n"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run().await?);
    Ok(())
}
