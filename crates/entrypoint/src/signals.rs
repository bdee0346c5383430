//! SIGTERM and Ctrl-C: the first asks, the second ends, and a stop that hangs is cut off.
//!
//! They are watched by a thread with a small runtime of its own: however busy or stuck the program's runtime is, a
//! second signal ends it and the bound holds.

use std::io;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use runtime_core::shutdown::Shutdown;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The whole stop takes at most 5 s; what is left is for the exit itself.
const STOP_BOUND: Duration = Duration::from_millis(4_500);

/// Begins to watch; when this returns, a signal no longer kills the process by default.
///
/// # Errors
/// The handlers cannot be installed.
pub(crate) fn watch(shutdown: Shutdown) -> io::Result<()> {
    let (installed, answer) = mpsc::sync_channel(1);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => runtime.block_on(run(&shutdown, &installed)),
            Err(e) => {
                let _ = installed.send(Err(e));
            }
        }
    })?;
    answer.recv().unwrap_or_else(|_| Err(io::Error::other("the thread that watches for signals ended")))
}

async fn run(shutdown: &Shutdown, installed: &mpsc::SyncSender<io::Result<()>>) {
    let handlers = signal(SignalKind::terminate()).and_then(|t| Ok((t, signal(SignalKind::interrupt())?)));
    let (mut terminate, mut interrupt) = match handlers {
        Ok(handlers) => handlers,
        Err(e) => {
            let _ = installed.send(Err(e));
            return;
        }
    };
    let _ = installed.send(Ok(()));
    let mut asked = shutdown.signal();
    // The program may also have asked for its own end; then only the bound is left to watch.
    tokio::select! {
        biased;
        name = next(&mut terminate, &mut interrupt) => {
            tracing::info!("stopping on {}; a second signal ends at once", name.0);
            shutdown.trigger();
        }
        () = asked.wait() => {}
    }
    match tokio::time::timeout(STOP_BOUND, next(&mut terminate, &mut interrupt)).await {
        Ok((name, status)) => {
            tracing::warn!("ended at once by a second {name}");
            std::process::exit(status);
        }
        Err(_) => {
            // Peers that could not be told find out by their own means, as after a kill.
            tracing::warn!("the stop took longer than {STOP_BOUND:?} and was cut off");
            std::process::exit(0);
        }
    }
}

/// The next signal, its name and the exit status of a process that it ends.
async fn next(terminate: &mut Signal, interrupt: &mut Signal) -> (&'static str, i32) {
    tokio::select! {
        biased;
        _ = interrupt.recv() => ("SIGINT", 130),
        _ = terminate.recv() => ("SIGTERM", 143),
    }
}

/// The exit status of a program whose main future ended so, with its error on stderr in one line.
pub(crate) fn status(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let wrong_configuration = error.downcast_ref::<crate::ConfigError>().is_some();
            complain(&format!("{error:#}"));
            ExitCode::from(if wrong_configuration { 2 } else { 1 })
        }
    }
}

/// One line on stderr, whatever the text has in it.
pub(crate) fn complain(text: &str) {
    use io::Write as _;
    let line: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // A closed stderr must not turn a clean exit status into another.
    let _ = writeln!(io::stderr(), "error: {}", line.join("; "));
}
