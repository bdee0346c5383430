//! A sink at the end of a chain.

use connectors::sink::file::{FileWriter, StagedFile};
use connectors::sink::{SinkError, TwoPhaseSink};
use runtime_core::StreamElement;

use super::Flow;
use super::context::Context;
use crate::task::TaskError;

/// Writes records, or the dead letters of other chains, and stages them; the job master makes them visible.
pub(crate) struct SinkTail {
    writer: FileWriter,
}

impl SinkTail {
    pub(crate) fn new(writer: FileWriter) -> Self {
        Self { writer }
    }

    pub(crate) fn push(&mut self, element: &Flow, cx: &Context) -> Result<(), TaskError> {
        if let StreamElement::Record(record) = element {
            self.write(record.value.line(), cx)?;
            cx.figures.records_out.add(1);
        }
        Ok(())
    }

    /// Dead letters were counted where they were made, so they are none of the sink's records.
    pub(crate) fn write_dead_letter(&mut self, line: &[u8], cx: &Context) -> Result<(), TaskError> {
        self.write(line, cx)
    }

    fn write(&mut self, line: &[u8], cx: &Context) -> Result<(), TaskError> {
        self.writer.write_line(line).map_err(TaskError::recoverable)?;
        cx.figures.bytes_out.add(line.len() as u64 + 1);
        Ok(())
    }

    /// Stages what was written since the last barrier; yields all that is not known to be visible.
    pub(crate) fn stage(&mut self, checkpoint: u64) -> Result<Vec<StagedFile>, SinkError> {
        self.writer.stage(checkpoint)
    }

    /// Of a single file: the target's length once all that is staged is appended.
    pub(crate) fn committed_length(&self) -> u64 {
        self.writer.committed_length()
    }

    /// What was staged up to this checkpoint is visible.
    pub(crate) fn confirmed(&mut self, checkpoint: u64) {
        self.writer.confirmed(checkpoint);
    }

    /// Stages the rest.
    pub(crate) fn finish(&mut self) -> Result<Vec<StagedFile>, TaskError> {
        self.writer.finish().map_err(TaskError::recoverable)
    }
}
