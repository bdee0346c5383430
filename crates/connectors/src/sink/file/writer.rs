//! One attempt's output, until it is staged.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use job::options::FileSinkOptions;
use runtime_core::AttemptId;

use super::{SinkError, StagedFile, name};

/// How much is written at a time.
const BUFFER: usize = 256 << 10;

/// Writes the lines of one attempt. It blocks. Dropped before it is finished, it removes what it has written.
pub struct FileWriter {
    /// Absent once finished.
    out: Option<BufWriter<File>>,
    staged: PathBuf,
    target: PathBuf,
    length: u64,
    /// Whether the output is a file even without a line in it.
    kept_when_empty: bool,
}

impl FileWriter {
    /// Opens the attempt's dot file, in the folder that [`prepare`](super::prepare) has made.
    ///
    /// # Errors
    ///
    /// The file cannot be made.
    pub fn create(options: &FileSinkOptions, attempt: AttemptId) -> Result<Self, SinkError> {
        let staged = name::staged(options, attempt)?;
        // An attempt's name is never used again, so what is there already can only be a repeat of the same deployment.
        let file = File::create(&staged).map_err(SinkError::io("create", &staged))?;
        Ok(Self {
            out: Some(BufWriter::with_capacity(BUFFER, file)),
            staged,
            target: name::target(options, attempt),
            length: 0,
            // Somebody waits for the output to appear: of a folder, at least one part does.
            kept_when_empty: !options.parts || attempt.subtask == 0,
        })
    }

    /// Appends a line; the line end is added.
    ///
    /// # Errors
    ///
    /// The file cannot be written: the disk is full, above all. The attempt is lost then.
    pub fn write_line(&mut self, line: &[u8]) -> Result<(), SinkError> {
        if let Some(out) = &mut self.out {
            let written = out.write_all(line).and_then(|()| out.write_all(b"\n"));
            written.map_err(SinkError::io("write", &self.staged))?;
            self.length += line.len() as u64 + 1;
        }
        Ok(())
    }

    /// The bytes written so far.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Puts everything on the disk and hands it over to be committed. `None`: there is nothing to commit, as a subtask
    /// other than the first makes no empty part.
    ///
    /// # Errors
    ///
    /// The file cannot be written or synced; it is removed.
    pub fn finish(mut self) -> Result<Option<StagedFile>, SinkError> {
        if self.length == 0 && !self.kept_when_empty {
            return Ok(None);
        }
        if let Some(out) = &mut self.out {
            out.flush().map_err(SinkError::io("write", &self.staged))?;
            out.get_ref().sync_all().map_err(SinkError::io("sync", &self.staged))?;
        }
        self.out = None;
        Ok(Some(StagedFile {
            staged_path: self.staged.clone(),
            final_path: self.target.clone(),
            length: self.length,
        }))
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        let Some(out) = self.out.take() else { return };
        // Without the buffer, which would be written first.
        drop(out.into_parts());
        if let Err(error) = fs::remove_file(&self.staged) {
            tracing::warn!(path = %self.staged.display(), %error, "cannot remove unfinished output");
        }
    }
}
