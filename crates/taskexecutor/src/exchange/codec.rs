//! Batches as messages.

use std::sync::Arc;

use job::record::{JsonRecord, Malformed, Origin};
use runtime_core::{Barrier, EpochMillis, JobId, Record, StreamElement, Watermark, WatermarkStatus};
use wire::v1;

use super::element::{Batch, Element};

/// A message is no batch of elements.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// An element without content: the sender speaks a newer protocol.
    #[error("element {0} of the batch is of an unknown kind")]
    UnknownKind(usize),
    /// A record that is none.
    #[error("element {index} of the batch is no record: {reason}")]
    NoRecord {
        /// The element's place in the batch.
        index: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// The message of a batch; `number` counts the batches of the channel from 1.
#[must_use]
pub fn encode(number: u64, batch: Batch) -> v1::Batch {
    v1::Batch { number, elements: batch.into_iter().filter_map(encode_element).collect() }
}

fn encode_element(element: Element) -> Option<v1::Element> {
    use v1::element::Element as Wire;
    let element = match element {
        Element::Stream(StreamElement::Record(record)) => {
            Wire::Record(encode_record(&record.value, record.timestamp))
        }
        Element::Stream(StreamElement::Watermark(watermark)) => Wire::Watermark(watermark.0.0),
        Element::Stream(StreamElement::Status(status)) => Wire::Idle(status == WatermarkStatus::Idle),
        Element::Stream(StreamElement::Barrier(barrier)) => {
            Wire::Barrier(v1::BarrierElement { checkpoint: barrier.checkpoint, begun_at: barrier.begun_at.0 })
        }
        // Measures a chain, not a network: clocks of two machines differ by more than it measures.
        Element::Stream(StreamElement::LatencyMarker(_)) => return None,
        Element::DeadLetter(line) => Wire::DeadLetter(v1::DeadLetterElement { line }),
        Element::End => Wire::End(v1::EndOfInput {}),
    };
    Some(v1::Element { element: Some(element) })
}

/// A record as a message.
pub(crate) fn encode_record(value: &JsonRecord, timestamp: Option<EpochMillis>) -> v1::RecordElement {
    let origin = value.origin();
    v1::RecordElement {
        line: value.line().clone(),
        origin: Some(v1::Origin {
            file: origin.file.to_string(),
            line: origin.line,
            offset: origin.offset,
            split_start: origin.split_start,
        }),
        timestamp: timestamp.map(|at| at.0),
    }
}

/// Reads records out of messages. File names repeat from record to record and are kept once.
#[derive(Debug)]
pub(crate) struct RecordReader {
    file: Arc<str>,
}

impl Default for RecordReader {
    fn default() -> Self {
        Self { file: Arc::from("") }
    }
}

impl RecordReader {
    /// The record in a message, without its timestamp.
    pub(crate) fn read(&mut self, record: v1::RecordElement) -> Result<JsonRecord, Malformed> {
        let origin = record.origin.unwrap_or_default();
        if *self.file != *origin.file {
            self.file = Arc::from(origin.file);
        }
        let origin = Origin {
            file: Arc::clone(&self.file),
            line: origin.line,
            offset: origin.offset,
            split_start: origin.split_start,
        };
        JsonRecord::parse(record.line, origin)
    }
}

/// Reads the batches of one channel.
#[derive(Debug)]
pub struct Decoder {
    job: JobId,
    records: RecordReader,
}

impl Decoder {
    /// A decoder for a channel of `job`.
    #[must_use]
    pub fn new(job: JobId) -> Self {
        Self { job, records: RecordReader::default() }
    }

    /// The batch in a message.
    ///
    /// # Errors
    ///
    /// The message has an element of an unknown kind, or a record that is no JSON object.
    pub fn decode(&mut self, message: v1::Batch) -> Result<Batch, DecodeError> {
        message
            .elements
            .into_iter()
            .enumerate()
            .map(|(index, element)| self.element(index, element))
            .collect()
    }

    fn element(&mut self, index: usize, element: v1::Element) -> Result<Element, DecodeError> {
        use v1::element::Element as Wire;
        Ok(match element.element.ok_or(DecodeError::UnknownKind(index))? {
            Wire::Record(record) => Element::Stream(StreamElement::Record(self.record(index, record)?)),
            Wire::Watermark(at) => Element::Stream(StreamElement::Watermark(Watermark(EpochMillis(at)))),
            Wire::Idle(true) => Element::Stream(StreamElement::Status(WatermarkStatus::Idle)),
            Wire::Idle(false) => Element::Stream(StreamElement::Status(WatermarkStatus::Active)),
            Wire::Barrier(barrier) => Element::Stream(StreamElement::Barrier(Barrier {
                job: self.job,
                checkpoint: barrier.checkpoint,
                begun_at: EpochMillis(barrier.begun_at),
            })),
            Wire::End(v1::EndOfInput {}) => Element::End,
            Wire::DeadLetter(letter) => Element::DeadLetter(letter.line),
        })
    }

    fn record(&mut self, index: usize, record: v1::RecordElement) -> Result<Record<JsonRecord>, DecodeError> {
        let timestamp = record.timestamp.map(EpochMillis);
        let value = self
            .records
            .read(record)
            .map_err(|malformed| DecodeError::NoRecord { index, reason: malformed.reason })?;
        Ok(Record { value, timestamp })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn record(line: &'static str, timestamp: Option<i64>) -> Element {
        let origin = Origin { file: "a.jsonl".into(), line: 3, offset: 99, split_start: 7 };
        let value = JsonRecord::parse(Bytes::from_static(line.as_bytes()), origin).unwrap();
        Element::Stream(StreamElement::Record(Record { value, timestamp: timestamp.map(EpochMillis) }))
    }

    #[test]
    fn a_batch_is_read_back_as_it_was_written() {
        let job = JobId::from_u128(7);
        let batch = vec![
            record(r#"{"a" : 1.0, "b":"x"}"#, Some(-5)),
            record("{}", None),
            Element::Stream(StreamElement::Watermark(Watermark::MAX)),
            Element::Stream(StreamElement::Status(WatermarkStatus::Idle)),
            Element::Stream(StreamElement::Status(WatermarkStatus::Active)),
            Element::Stream(StreamElement::Barrier(Barrier { job, checkpoint: 4, begun_at: EpochMillis(9) })),
            Element::DeadLetter(Bytes::from_static(b"{\"record\":1}")),
            Element::End,
        ];
        let message = encode(3, batch.clone());
        assert_eq!(message.number, 3);
        let read = Decoder::new(job).decode(message).unwrap();
        assert_eq!(format!("{read:?}"), format!("{batch:?}"));
    }

    #[test]
    fn what_is_no_element_or_no_record_is_named_by_its_place() {
        let mut decoder = Decoder::new(JobId::from_u128(7));
        let empty = v1::Batch { number: 1, elements: vec![v1::Element { element: None }] };
        assert_eq!(decoder.decode(empty).unwrap_err(), DecodeError::UnknownKind(0));
        let mut broken = encode(1, vec![Element::End, record("{}", None)]);
        if let Some(v1::element::Element::Record(record)) = &mut broken.elements[1].element {
            record.line = Bytes::from_static(b"[1]");
        }
        assert!(matches!(decoder.decode(broken), Err(DecodeError::NoRecord { index: 1, .. })));
    }
}
