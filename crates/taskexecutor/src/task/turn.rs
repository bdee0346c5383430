//! One turn of a task's loop: everything that can be done now, up to a budget.
//!
//! Synchronous and told the time: what a turn does depends on what it is given alone. The order within a turn is: mail
//! and completions, timers, results on their way out, then input. So what frees room comes before what takes it.

use std::sync::Arc;
use std::time::Duration;

use runtime_core::{EpochMillis, JobId, StreamElement, Tick};

use super::checkpointing::Checkpointing;
use super::error::TaskError;
use super::mailbox::Mailbox;
use super::savepoint::Savepoints;
use super::snapshot::{Taken, TaskSnapshot};
use crate::chain::{Chain, Next, Peers, Source};
use crate::exchange::{ChannelId, Element, InputGates};

/// Elements taken in by one turn, and bytes of them. Some milliseconds of work at most, so that the order to stop is
/// heard in time.
const TURN_ELEMENTS: usize = 512;
const TURN_BYTES: usize = 1 << 20;
/// How often the figures of the steps are published while something happens.
const PUBLISH_EVERY: Duration = Duration::from_millis(100);
/// How often while nothing does: ages and waiting times grow on. The figures are reported once a second.
const PUBLISH_IDLE: Duration = Duration::from_secs(1);
/// How long a task goes on without a peer whose task is gone. That task's own end is reported by whoever ran it, and
/// this one is then cancelled; ending at once would hide the cause behind its consequence.
const PEER_GONE_WAIT: Duration = Duration::from_secs(10);
/// The same where the connection broke: a task executor that dies breaks it first, and is reported lost a moment later.
/// Nobody may be there to report a connection that broke by itself, so the wait is shorter.
const PEER_BROKEN_WAIT: Duration = Duration::from_secs(1);

/// Where a chain's elements come from.
pub(crate) enum Head {
    Source(Box<Source>),
    Gates(Box<InputGates>),
}

/// What is to follow a turn.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Another turn, soon.
    Busy,
    /// A turn when something has come, or at that time.
    Wait { until: Option<Tick>, backpressured: bool },
    /// The source wants its next split; then another turn.
    Ask(u64),
    /// All has left; to be [finished](Runner::finish).
    Ended,
    /// A savepoint has ended the job; what the task still holds is in it.
    Stopped,
}

/// A task's operators, and how far it has got.
pub(crate) struct Runner {
    pub(super) head: Head,
    pub(super) chain: Chain,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) checkpointing: Checkpointing,
    pub(super) savepoints: Savepoints,
    /// What came of checkpoints in this turn.
    pub(super) taken: Vec<Taken>,
    input_ended: bool,
    published_at: Tick,
    unpublished: bool,
    gone: Option<(ChannelId, Tick)>,
    broken: Option<(TaskError, Tick)>,
}

enum Input {
    /// So many bytes.
    Moved(usize),
    Nothing,
    Ask(u64),
    Ended,
}

impl Runner {
    pub(crate) fn new(job: JobId, head: Head, chain: Chain, mailbox: Arc<Mailbox>) -> Self {
        Self {
            head,
            chain,
            mailbox,
            checkpointing: Checkpointing::new(job),
            savepoints: Savepoints::default(),
            taken: Vec::new(),
            input_ended: false,
            published_at: Tick::ZERO,
            unpublished: false,
            gone: None,
            broken: None,
        }
    }

    pub(crate) fn turn(&mut self, now: Tick, wall: EpochMillis) -> Result<Turn, TaskError> {
        let mut moved = if self.savepoints.stands_still() {
            self.chain.begin_still_turn(now, wall)
        } else {
            self.chain.begin_turn(now, wall)?
        };
        let mail = self.mailbox.take();
        if let Head::Source(source) = &mut self.head {
            source.begin_turn(now);
            for (request, answer) in mail.splits {
                source.on_split(request, answer, now)?;
                moved = true;
            }
        }
        for order in mail.orders {
            self.obey(order, now);
            moved = true;
        }
        if self.savepoints.stands_still() {
            return Ok(self.stand_still(now));
        }
        let mut ask = None;
        if !self.input_ended {
            match self.take_input(&mut moved)? {
                Input::Ask(request) => ask = Some(request),
                Input::Ended => self.input_ended = true,
                Input::Moved(_) | Input::Nothing => {}
            }
        }
        if self.input_ended {
            self.checkpoint_at_the_end();
        }
        if self.savepoints.stands_still() {
            return Ok(self.stand_still(now));
        }
        moved |= self.chain.drain()?;
        let ended = self.input_ended && self.chain.end()?;
        let peers = self.chain.peers().unwrap_or_else(|broken| {
            self.broken.get_or_insert((broken, now));
            Peers::Open
        });
        if ended && peers == Peers::Delivered {
            return Ok(Turn::Ended);
        }
        self.watch_peers(&peers, now)?;
        self.pause_producers();
        self.unpublished |= moved;
        self.chain.flush(!moved);
        if now >= self.publish_at() {
            self.publish(now);
        }
        Ok(match ask {
            Some(request) => Turn::Ask(request),
            None if moved => Turn::Busy,
            None => Turn::Wait { until: self.next_wakeup(), backpressured: self.chain.is_backpressured() },
        })
    }

    /// Completes the sink's output once all [has ended](Turn::Ended). Yields the task's last word.
    pub(crate) fn finish(&mut self) -> Result<TaskSnapshot, TaskError> {
        let source = self.progress();
        Ok(TaskSnapshot { source, ..self.chain.finish()? })
    }

    /// Publishes what the steps have counted: for the last word of a task that does not finish.
    pub(crate) fn publish_last(&self) {
        self.chain.publish();
    }

    pub(super) fn publish(&mut self, now: Tick) {
        self.chain.publish();
        self.published_at = now;
        self.unpublished = false;
    }

    pub(super) fn publish_at(&self) -> Tick {
        self.published_at + if self.unpublished { PUBLISH_EVERY } else { PUBLISH_IDLE }
    }

    fn take_input(&mut self, moved: &mut bool) -> Result<Input, TaskError> {
        let mut bytes = 0;
        for _ in 0..TURN_ELEMENTS {
            if !self.chain.has_room() {
                *moved |= self.chain.drain()?;
            }
            let room = self.chain.has_room();
            if !room && !self.parks() {
                return Ok(Input::Nothing);
            }
            match self.take_element(room)? {
                Input::Moved(more) => bytes += more,
                other => return Ok(other),
            }
            *moved = true;
            if bytes >= TURN_BYTES || self.savepoints.stands_still() {
                break;
            }
        }
        Ok(Input::Moved(bytes))
    }

    fn take_element(&mut self, room: bool) -> Result<Input, TaskError> {
        let element = match &mut self.head {
            Head::Source(source) => match source.next(&mut self.chain.cx)? {
                Next::Element(element) => Element::Stream(element),
                Next::Consumed => return Ok(Input::Moved(0)),
                Next::Ask(request) => return Ok(Input::Ask(request)),
                Next::Nothing => return Ok(Input::Nothing),
                Next::Ended => return Ok(Input::Ended),
            },
            Head::Gates(gates) => match gates.next_element() {
                Ok(Some(element)) => element,
                Ok(None) if gates.is_finished() => return Ok(Input::Ended),
                Ok(None) => return Ok(Input::Nothing),
                Err(broken) => {
                    let now = self.chain.cx.now;
                    self.broken.get_or_insert((TaskError::recoverable(broken), now));
                    return Ok(Input::Nothing);
                }
            },
        };
        let bytes = element.weight();
        match element {
            Element::Stream(StreamElement::Barrier(barrier)) => self.checkpoint(barrier),
            Element::Stream(element) if room => self.chain.push(element)?,
            Element::Stream(element) => self.chain.park(element)?,
            Element::DeadLetter(line) => self.chain.push_dead_letter(&line)?,
            // Ends of channels are counted by the gates.
            Element::End => {}
        }
        Ok(Input::Moved(bytes))
    }

    fn watch_peers(&mut self, peers: &Peers, now: Tick) -> Result<(), TaskError> {
        if let Some((broken, _)) = self.broken.take_if(|(_, since)| now >= *since + PEER_BROKEN_WAIT) {
            return Err(broken);
        }
        let gone = match (peers, &self.head) {
            (Peers::Gone(channel), _) => Some(*channel),
            (_, Head::Gates(gates)) => gates.gone(),
            _ => None,
        };
        let Some(channel) = gone else { return Ok(()) };
        let (_, since) = *self.gone.get_or_insert((channel, now));
        if now >= since + PEER_GONE_WAIT {
            return Err(TaskError::recoverable(format!(
                "the task at the other end of the channel {channel} is gone, and nobody has said why"
            )));
        }
        Ok(())
    }

    fn next_wakeup(&mut self) -> Option<Tick> {
        let parking = self.checkpointing.next_wakeup(self.chain.cx.now);
        let source = match &self.head {
            Head::Source(source) => source.next_wakeup(),
            Head::Gates(_) => None,
        };
        let gone = self.gone.map(|(_, since)| since + PEER_GONE_WAIT);
        let broken = self.broken.as_ref().map(|(_, since)| *since + PEER_BROKEN_WAIT);
        [self.chain.next_wakeup(), source, Some(self.publish_at()), gone, broken, parking]
            .into_iter()
            .flatten()
            .min()
    }
}
