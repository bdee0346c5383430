//! Ctrl-C and SIGTERM while a job is waited for, and the question what is to become of it.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::failure::Failure;

/// What has interrupted the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// A person at the keyboard, who can be asked.
    CtrlC,
    /// Somebody who wants this process to end, and says nothing about the job.
    Terminate,
}

/// What is to become of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// It is cancelled.
    Cancel,
    /// It runs on, and nobody waits for it.
    Leave,
    /// It runs on, and is waited for.
    Wait,
}

/// The signals, once they no longer end the process by themselves.
#[derive(Debug)]
pub(crate) struct Interrupts {
    ctrl_c: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// Begins to watch. From now on Ctrl-C does only what the caller makes of it.
    pub(crate) fn watch() -> Result<Self, Failure> {
        let failed = |cause| Failure::System { what: "signals cannot be watched", cause };
        Ok(Self {
            ctrl_c: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
        })
    }

    /// The next one. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Interrupt {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Interrupt::Terminate,
            _ = self.ctrl_c.recv() => Interrupt::CtrlC,
        }
    }

    /// Finds out what is to become of the job. Without a terminal, or when interrupted again, it is left.
    pub(crate) async fn wish(&mut self, interrupt: Interrupt) -> Wish {
        let on_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        if interrupt == Interrupt::Terminate || !on_terminal {
            return Wish::Leave;
        }
        loop {
            let _ = write!(io::stderr(), "\n[c]ancel the job, [l]eave it running, or [w]ait on? ");
            let answer = read_line();
            let answer = tokio::select! {
                biased;
                _ = self.next() => {
                    let _ = writeln!(io::stderr());
                    return Wish::Leave;
                }
                answer = answer => answer,
            };
            match answer.as_deref().map(wish_of) {
                None => return Wish::Leave,
                Some(Some(wish)) => return wish,
                Some(None) => {}
            }
        }
    }
}

/// A line of stdin; `None` at its end. It is read on a thread of its own, which the end of the process does not wait for.
fn read_line() -> impl Future<Output = Option<String>> {
    let (send, receive) = oneshot::channel();
    let read = move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        // Nobody waits for it any more when a second Ctrl-C came first.
        let _ = send.send(matches!(read, Ok(1..)).then_some(line));
    };
    let started = std::thread::Builder::new().name("answer".to_owned()).spawn(read);
    async move {
        started.ok()?;
        receive.await.ok().flatten()
    }
}

fn wish_of(answer: &str) -> Option<Wish> {
    match answer.trim().to_lowercase().as_str() {
        "c" | "cancel" => Some(Wish::Cancel),
        "l" | "leave" => Some(Wish::Leave),
        "w" | "wait" => Some(Wish::Wait),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_letter_or_a_word_and_anything_else_is_asked_again() {
        for (answer, wish) in [
            ("c\n", Some(Wish::Cancel)),
            (" Leave \n", Some(Wish::Leave)),
            ("w", Some(Wish::Wait)),
            ("\n", None),
            ("yes\n", None),
        ] {
            assert_eq!(wish_of(answer), wish, "{answer:?}");
        }
    }
}
