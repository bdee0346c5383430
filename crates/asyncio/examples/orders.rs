//! The same calls in the three orders: `cargo run -p asyncio --example orders`.
//!
//! Each input names a customer and how long the service takes for it. In order, the slow first answer holds up all others;
//! without order each leaves when it is ready; in keyed order a customer's answers keep their order, and a customer is
//! asked about one at a time.

use std::time::Duration;

use asyncio::{AsyncWaitExt, Options, OptionsBuilder, OptionsError, RetryErrors};
use futures::{StreamExt, stream};
use runtime_core::time::{Clock, TokioClock};

#[derive(Debug, Clone)]
struct Request {
    customer: &'static str,
    number: u32,
    takes: Duration,
}

async fn ask(request: Request) -> Result<String, std::convert::Infallible> {
    tokio::time::sleep(request.takes).await;
    Ok(format!("{}{}", request.customer, request.number))
}

async fn show(name: &str, options: OptionsBuilder) -> Result<(), OptionsError> {
    let requests = [("a", 1, 60), ("a", 2, 10), ("b", 1, 20), ("c", 1, 5), ("b", 2, 10)];
    let requests = requests.map(|(customer, number, millis)| Request {
        customer,
        number,
        takes: Duration::from_millis(millis),
    });
    let clock = TokioClock::start();
    let answers = stream::iter(requests).async_wait_with(
        options.timeout(Duration::from_secs(1)).build()?,
        |request: &Request| Some(request.customer),
        RetryErrors,
        |request: &Request| ask(request.clone()),
    );
    let answers: Vec<String> = answers.filter_map(|answer| async { answer.ok() }).collect().await;
    println!("{name:>9}: {}   after {} ms", answers.join(" "), clock.now().as_millis());
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), OptionsError> {
    show("ordered", Options::ordered()).await?;
    show("unordered", Options::unordered()).await?;
    show("keyed", Options::keyed()).await
}
