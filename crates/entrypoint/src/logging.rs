//! Logs: to stderr, filtered by `RUST_LOG`, in the shape of `log.format`.

use std::io;

use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

/// What is logged without `RUST_LOG`: the roles' own news, of their libraries only what is wrong.
const DEFAULT_FILTER: &str = "info,h2=warn,hyper=warn,tonic=warn,tower=warn,reqwest=warn";

/// Starts logging for the whole process. A `RUST_LOG` that cannot be read is told and the default used.
///
/// In a process that logs already (a test, an embedding program) nothing changes.
pub fn start(format: LogFormat) {
    let (filter, complaint) = match std::env::var("RUST_LOG") {
        Ok(text) if !text.trim().is_empty() => match EnvFilter::try_new(&text) {
            Ok(filter) => (filter, None),
            Err(e) => (EnvFilter::new(DEFAULT_FILTER), Some(format!("RUST_LOG={text:?} is ignored: {e}"))),
        },
        _ => (EnvFilter::new(DEFAULT_FILTER), None),
    };
    let subscriber = tracing_subscriber::fmt().with_writer(io::stderr).with_env_filter(filter);
    // An error says that the process logs already.
    let _ = match format {
        LogFormat::Text => {
            let coloured = io::IsTerminal::is_terminal(&io::stderr());
            subscriber.with_ansi(coloured).try_init()
        }
        LogFormat::Json => subscriber.json().try_init(),
    };
    if let Some(complaint) = complaint {
        tracing::warn!("{complaint}");
    }
}
