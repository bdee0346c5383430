//! One edge that leaves a chain.

use runtime_core::{StreamElement, Tick};

use crate::exchange::{ChannelWriter, Element, Partitioner, Peer};

/// Gives records to the channels of an edge by its partitioner, and control elements to all of them.
pub(crate) struct EdgeOutput {
    partitioner: Partitioner,
    writers: Vec<ChannelWriter>,
    /// How many writers have a whole batch that they could not send.
    full: usize,
    /// Whether some consumer wants nothing but barriers and ends.
    paused: bool,
}

impl EdgeOutput {
    pub(crate) fn new(partitioner: Partitioner, writers: Vec<ChannelWriter>) -> Self {
        Self { partitioner, writers, full: 0, paused: false }
    }

    /// Whether every channel could take an element (Flink: `ResultPartitionWriter.isAvailable`). One full channel stops
    /// all, since nobody knows where the next record goes; what can pile up is one batch for each channel.
    pub(crate) fn has_room(&self) -> bool {
        self.full == 0 && !self.paused
    }

    pub(crate) fn push(&mut self, element: Element, now: Tick) {
        let target = match &element {
            Element::Stream(StreamElement::Record(record)) => self.partitioner.target(&record.value),
            Element::DeadLetter(_) => self.partitioner.in_turn(),
            Element::Stream(_) | Element::End => {
                for writer in &mut self.writers {
                    writer.push(element.clone(), now);
                }
                self.count_full();
                return;
            }
        };
        if let Some(writer) = self.writers.get_mut(target) {
            let was_full = writer.is_full();
            writer.push(element, now);
            match (was_full, writer.is_full()) {
                (false, true) => self.full += 1,
                (true, false) => self.full -= 1,
                _ => {}
            }
        }
    }

    /// Tries to send the batches that found no room, and looks whether consumers want more. Says whether there is more room.
    pub(crate) fn retry(&mut self) -> bool {
        let before = self.full;
        let was_paused = self.paused;
        self.paused = self.writers.iter().any(ChannelWriter::is_paused);
        if before > 0 {
            self.writers.iter_mut().filter(|writer| writer.is_full()).for_each(ChannelWriter::flush);
            self.count_full();
        }
        self.full < before || (was_paused && !self.paused)
    }

    /// Sends what has waited long enough, or with `all` whatever there is, as far as there is room.
    pub(crate) fn flush(&mut self, now: Tick, all: bool) {
        for writer in &mut self.writers {
            if all {
                writer.flush();
            } else {
                writer.flush_due(now);
            }
        }
        self.count_full();
    }

    /// Ends every channel. Calling it again changes nothing.
    pub(crate) fn end(&mut self, now: Tick) {
        self.writers.iter_mut().for_each(|writer| writer.end(now));
        self.count_full();
    }

    pub(crate) fn peers(&self) -> impl Iterator<Item = Peer> {
        self.writers.iter().map(ChannelWriter::peer)
    }

    fn count_full(&mut self) {
        self.full = self.writers.iter().filter(|writer| writer.is_full()).count();
    }
}
