//! Stdout: a command's result, as one JSON document or as text for people.

use std::io::{self, Write as _};

use serde::Serialize;

use crate::failure::Failure;

/// How a command's result is printed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// As one JSON document on one line.
    pub(crate) json: bool,
}

impl Output {
    /// Prints one JSON document.
    pub(crate) fn document(self, document: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(document).map_err(|e| unprintable(e.into()))?;
        self.text(&text)
    }

    /// Prints a text that may have lines; a missing line end is added.
    pub(crate) fn text(self, text: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        let end = if text.ends_with('\n') { "" } else { "\n" };
        write!(stdout, "{text}{end}").and_then(|()| stdout.flush()).map_err(unprintable)
    }
}

fn unprintable(cause: io::Error) -> Failure {
    Failure::System { what: "the result cannot be written to stdout", cause }
}

/// Tells a person something that is no result: one line on stderr.
pub(crate) fn note(text: &str) {
    // Nobody may be there to read it.
    let _ = writeln!(io::stderr(), "{text}");
}
