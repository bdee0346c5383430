//! A sink at the end of a chain.

use connectors::sink::TwoPhaseSink;
use connectors::sink::file::{FileWriter, StagedFile};
use runtime_core::StreamElement;

use super::Flow;
use super::context::Context;
use crate::task::TaskError;

/// Writes records, or the dead letters of other chains, into a file that becomes visible when the job has finished.
pub(crate) struct SinkTail {
    /// Absent once finished.
    writer: Option<FileWriter>,
}

impl SinkTail {
    pub(crate) fn new(writer: FileWriter) -> Self {
        Self { writer: Some(writer) }
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
        if let Some(writer) = &mut self.writer {
            writer.write_line(line).map_err(TaskError::recoverable)?;
            cx.figures.bytes_out.add(line.len() as u64 + 1);
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<Vec<StagedFile>, TaskError> {
        let Some(mut writer) = self.writer.take() else { return Ok(Vec::new()) };
        writer.finish().map_err(TaskError::recoverable)
    }
}
