//! One attempt's output, until it is staged.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use job::options::FileSinkOptions;
use runtime_core::AttemptId;

use super::{SinkError, StagedFile, disk, name, target};
use crate::sink::TwoPhaseSink;

/// How much is written at a time.
const BUFFER: usize = 256 << 10;

/// When a writer's output becomes visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// All at once, when the job has finished. A barrier, as that of a savepoint, stages what there is until then.
    WithoutCheckpoints,
    /// With each completed checkpoint; the rest when the job has finished.
    WithCheckpoints(Restored),
}

/// What the attempt continues; the default: nothing, it is the beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Restored {
    /// The checkpoint from which the task was restored; 0: from none.
    pub checkpoint: u64,
    /// Of a single file: what [`TwoPhaseSink::committed_length`] was in it.
    pub committed_length: u64,
}

/// Writes the lines of one attempt. It blocks. Dropped before it is finished, it removes what it has not staged.
pub struct FileWriter {
    options: FileSinkOptions,
    attempt: AttemptId,
    with_checkpoints: bool,
    unfinished: PathBuf,
    out: Out,
    /// The bytes in the unfinished file and the buffer before it.
    length: u64,
    /// Where in a single target the next staged file will stand.
    end: u64,
    /// The latest barrier, or what the attempt was restored from.
    last_checkpoint: u64,
    /// By the checkpoints at whose barriers they were staged: what is not known to be visible.
    pending: Vec<(u64, StagedFile)>,
    staged_any: bool,
    /// A staged name must survive a loss of power before anybody relies on it.
    folder_synced: bool,
}

enum Out {
    Open(BufWriter<File>),
    /// There is no unfinished file; the next line makes one.
    Absent,
    /// Finished, or given up after an error.
    Closed,
}

impl FileWriter {
    /// Opens the attempt's dot file, in the folder that [`prepare`](super::prepare) has made.
    ///
    /// # Errors
    ///
    /// The file cannot be made.
    pub fn create(options: &FileSinkOptions, attempt: AttemptId, mode: Mode) -> Result<Self, SinkError> {
        let restored = match mode {
            Mode::WithoutCheckpoints => Restored::default(),
            Mode::WithCheckpoints(restored) => restored,
        };
        let mut writer = Self {
            options: options.clone(),
            attempt,
            with_checkpoints: mode != Mode::WithoutCheckpoints,
            unfinished: name::unfinished(options, attempt)?,
            out: Out::Absent,
            length: 0,
            end: if options.parts { 0 } else { restored.committed_length },
            last_checkpoint: restored.checkpoint,
            pending: Vec::new(),
            staged_any: false,
            folder_synced: true,
        };
        // Now and not with the first line: where nothing can be written the task shall not begin.
        writer.open()?;
        Ok(writer)
    }

    /// The unfinished file, made if there is none.
    fn open(&mut self) -> Result<&mut BufWriter<File>, SinkError> {
        if matches!(self.out, Out::Absent) {
            // An attempt's name is never used again, so what is there already can only be a repeat of the same deployment.
            let file = File::create(&self.unfinished).map_err(SinkError::io("create", &self.unfinished))?;
            self.out = Out::Open(BufWriter::with_capacity(BUFFER, file));
        }
        match &mut self.out {
            Out::Open(out) => Ok(out),
            Out::Absent | Out::Closed => Err(SinkError::Closed { path: self.unfinished.clone() }),
        }
    }

    /// Puts the unfinished file on the disk.
    fn sync(&mut self) -> Result<(), SinkError> {
        let (path, length) = (self.unfinished.clone(), self.length);
        let out = self.open()?;
        // What could not be written stays in the buffer, so that this may be tried again.
        out.flush().map_err(SinkError::io("write", &path))?;
        let synced = disk::sync(out.get_ref(), &path).and_then(|()| {
            let found = out.get_ref().metadata().map_err(SinkError::io("look at", &path))?.len();
            let whole = found == length;
            whole.then_some(()).ok_or(SinkError::Changed { path, expected: length, found })
        });
        if synced.is_err() {
            // After a failed sync the system may have dropped what it could not write, and say so but once.
            self.give_up();
        }
        synced
    }

    /// Gives the unfinished file its staged name.
    fn rotate(&mut self, checkpoint: u64) -> Result<(), SinkError> {
        self.sync()?;
        let staged_path = name::staged(&self.unfinished, checkpoint);
        let renamed = disk::rename(&self.unfinished, &staged_path);
        renamed.map_err(SinkError::io("rename unfinished output to", &staged_path))?;
        let offset = (!self.options.parts).then_some(self.end);
        if offset.is_some() {
            self.end += self.length;
        }
        let final_path = name::target(&self.options, self.attempt, checkpoint);
        let staged = StagedFile { staged_path, final_path, length: self.length, offset };
        self.pending.push((checkpoint, staged));
        (self.out, self.length) = (Out::Absent, 0);
        (self.staged_any, self.folder_synced) = (true, false);
        Ok(())
    }

    fn sync_folder(&mut self) -> Result<(), SinkError> {
        if !self.folder_synced {
            disk::sync_folder(name::folder(&self.options))?;
            self.folder_synced = true;
        }
        Ok(())
    }

    /// Whether the end is to leave output without a line in it, since somebody waits for it to appear: of a folder, at
    /// least one part does.
    fn wants_empty_output(&self) -> Result<bool, SinkError> {
        if !self.options.parts {
            return Ok(self.end == 0 && self.pending.is_empty());
        }
        Ok(self.attempt.subtask == 0 && !self.staged_any && !target::has_part_of(&self.options, 0)?)
    }

    /// The end without checkpoints: the unfinished file is what is staged.
    fn finish_whole(&mut self) -> Result<Vec<StagedFile>, SinkError> {
        // Whatever parts are there are another job's.
        if self.length == 0 && self.options.parts && self.attempt.subtask != 0 {
            return Ok(Vec::new());
        }
        self.sync()?;
        self.out = Out::Closed;
        if !self.options.parts {
            self.end = self.length;
        }
        Ok(vec![StagedFile {
            staged_path: self.unfinished.clone(),
            final_path: name::target(&self.options, self.attempt, name::WITHOUT_CHECKPOINTS),
            length: self.length,
            offset: None,
        }])
    }

    fn pending(&self) -> Vec<StagedFile> {
        self.pending.iter().map(|(_, staged)| staged.clone()).collect()
    }

    /// Removes what is not staged; nothing can be written any more.
    fn give_up(&mut self) {
        let Out::Open(out) = std::mem::replace(&mut self.out, Out::Closed) else { return };
        // Without the buffer, which would be written first.
        drop(out.into_parts());
        if let Err(error) = fs::remove_file(&self.unfinished) {
            tracing::warn!(path = %self.unfinished.display(), %error, "cannot remove unfinished output");
        }
    }
}

impl TwoPhaseSink for FileWriter {
    fn write_line(&mut self, line: &[u8]) -> Result<(), SinkError> {
        let out = self.open()?;
        if let Err(error) = out.write_all(line).and_then(|()| out.write_all(b"\n")) {
            // A part of the line may have been written.
            self.give_up();
            return Err(SinkError::io("write", &self.unfinished)(error));
        }
        self.length += line.len() as u64 + 1;
        Ok(())
    }

    fn stage(&mut self, checkpoint: u64) -> Result<Vec<StagedFile>, SinkError> {
        let path = || self.unfinished.clone();
        if matches!(self.out, Out::Closed) {
            return Err(SinkError::Closed { path: path() });
        }
        if checkpoint <= self.last_checkpoint {
            return Err(SinkError::OutOfOrder { path: path(), checkpoint, last: self.last_checkpoint });
        }
        // The savepoint of a job without checkpoints: from now on its output is in pieces, which become visible together.
        self.with_checkpoints = true;
        if self.length > 0 {
            self.rotate(checkpoint)?;
        }
        // A staged name is never given twice, even if this fails in what follows.
        self.last_checkpoint = checkpoint;
        self.sync_folder()?;
        Ok(self.pending())
    }

    fn committed_length(&self) -> u64 {
        self.end
    }

    fn confirmed(&mut self, checkpoint: u64) {
        self.pending.retain(|(staged_for, _)| *staged_for > checkpoint);
    }

    fn finish(&mut self) -> Result<Vec<StagedFile>, SinkError> {
        if matches!(self.out, Out::Closed) {
            return Err(SinkError::Closed { path: self.unfinished.clone() });
        }
        if !self.with_checkpoints {
            return self.finish_whole();
        }
        if self.length > 0 || self.wants_empty_output()? {
            // Why this number: see the module.
            self.rotate(self.last_checkpoint + 1)?;
        }
        self.sync_folder()?;
        self.give_up();
        self.out = Out::Closed;
        Ok(self.pending())
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        self.give_up();
    }
}
