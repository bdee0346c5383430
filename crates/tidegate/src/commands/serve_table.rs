//! `tidegate serve-table`

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use entrypoint::config::parse_duration;
use serde::Serialize;
use tokio::runtime::Builder;

use super::runtime;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::lookup::{Counts, Faults, LookupService, Rows};
use crate::output::{Output, note};

/// Serve the rows of a file over HTTP, for trying jobs out
///
/// GET /KEY (percent-encoded) is answered 200 with the row, 404 where there is none, or an injected 503. When it serves,
/// it prints one line of JSON with its address; SIGTERM or Ctrl-C end it, and it says how much it has answered.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tidegate serve-table customers.jsonl --key customer_id
  tidegate serve-table planes.jsonl --key tailnum --bind 127.0.0.1:0 --delay 5ms --error-rate 0.01 --seed 7")]
pub(super) struct ServeTable {
    /// The rows, one JSON object a line
    #[arg(value_name = "FILE.jsonl")]
    file: PathBuf,

    /// The field that names a row
    #[arg(long, value_name = "FIELD")]
    key: String,

    /// Where to listen; port 0 is any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9900")]
    bind: SocketAddr,

    /// How long each answer takes, as in 5ms
    #[arg(long, value_name = "DURATION", default_value = "0ms", value_parser = delay)]
    delay: Duration,

    /// The share of requests that are answered by a 503, from 0 to 1
    #[arg(long, value_name = "RATE", default_value_t = 0.0, value_parser = rate)]
    error_rate: f64,

    /// Chooses which requests these are
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

#[derive(Serialize)]
struct Ready {
    ready: bool,
    role: &'static str,
    http: String,
}

impl ServeTable {
    pub(super) fn execute(self, output: Output) -> Result<(), Failure> {
        let runtime = runtime(&mut Builder::new_multi_thread())?;
        let served = runtime.block_on(self.serve(output));
        // Requests that are being answered are not waited for.
        runtime.shutdown_background();
        served
    }

    async fn serve(self, output: Output) -> Result<(), Failure> {
        let mut interrupts = Interrupts::watch()?;
        let rows = Rows::load(&self.file, &self.key)?;
        let listener =
            entrypoint::listen::tcp("--bind", self.bind).map_err(crate::lookup::LookupError::from)?;
        let bound = listener
            .local_addr()
            .map_err(|cause| Failure::System { what: "the bound address is not known", cause })?;
        let faults = Faults::new(self.error_rate, self.seed);
        let service = Arc::new(LookupService::new(rows, self.delay, faults));
        output.document(&Ready { ready: true, role: "serve-table", http: bound.to_string() })?;
        tokio::select! {
            biased;
            _ = interrupts.next() => {
                let Counts { served, injected } = service.counts();
                note(&format!("answered {served} requests, {injected} of them with an injected 503"));
                Ok(())
            }
            ended = service.clone().serve(listener, bound) => Ok(ended?),
        }
    }
}

fn delay(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .ok_or_else(|| "expected a duration, such as 5ms, 1s or a number of milliseconds".to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|rate| (0.0..=1.0).contains(rate))
        .ok_or_else(|| "expected a share from 0 to 1, such as 0.01".to_owned())
}
