//! The file source at the head of a chain.

use std::collections::VecDeque;
use std::time::Duration;

use connectors::source::file::{FileSplit, Position, ReadLine, SplitReader};
use connectors::source::rate::RateLimiter;
use connectors::source::watermark::WatermarkGenerator;
use job::dead_letter::{Reason, Undelivered};
use job::event_time;
use job::options::FileSourceOptions;
use job::record::{JsonRecord, Origin};
use runtime_core::{Record, StreamElement, Tick, Watermark, WatermarkStatus};

use super::Flow;
use super::context::{Context, Rejected};
use super::policy::failure;
use crate::task::{NextSplit, SplitError, TaskError};

/// How long the source waits for a split before it says that it is idle. A shorter wait holds nobody back, and telling
/// of each would let the watermark run ahead between any two splits.
const IDLE_AFTER: Duration = Duration::from_millis(200);

/// How often a source with a rate asks for it anew: its share grows when other subtasks end. A repeated request is
/// given the same split, with the share of today.
const RATE_EVERY: Duration = Duration::from_secs(1);

/// What the source has for its chain.
#[derive(Debug)]
pub(crate) enum Next {
    Element(Flow),
    /// Something was read that is not for the chain.
    Consumed,
    /// Ask for the next split with this number, and give the answer to [`Source::on_split`].
    Ask(u64),
    /// Nothing before [`Source::next_wakeup`] or the answer about a split.
    Nothing,
    Ended,
}

enum State {
    /// Without a split, and none was asked for.
    Between,
    Asked {
        since: Tick,
    },
    Reading {
        split: u32,
        reader: Box<SplitReader>,
    },
    Ended,
}

/// How far a source has got.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// The splits that it has read to their end, in that order.
    pub finished: Vec<u32>,
    /// The split that it reads, and where its next line begins.
    pub reading: Option<(u32, Position)>,
}

/// Reads the lines of one split after another and makes records of them, with event times and watermarks.
pub(crate) struct Source {
    options: FileSourceOptions,
    state: State,
    requests: u64,
    limiter: Option<RateLimiter>,
    /// When the rate was last asked for.
    rate_asked_at: Tick,
    /// When the limiter lets the next line pass, once it has refused.
    held_until: Option<Tick>,
    /// Present where records have an event time.
    watermarks: Option<WatermarkGenerator>,
    idle: bool,
    control: VecDeque<Flow>,
    finished: Vec<u32>,
    /// Where it was drained.
    left_at: Option<(u32, Position)>,
}

impl Source {
    pub(crate) fn new(options: FileSourceOptions) -> Self {
        let watermarks = options.event_time.is_some().then(|| WatermarkGenerator::new(options.watermark_lag));
        Self {
            options,
            state: State::Between,
            requests: 0,
            limiter: None,
            rate_asked_at: Tick::ZERO,
            held_until: None,
            watermarks,
            idle: false,
            control: VecDeque::new(),
            finished: Vec::new(),
            left_at: None,
        }
    }

    /// Reads no further, as if the input ended here.
    pub(crate) fn drain(&mut self) {
        if matches!(self.state, State::Ended) {
            return;
        }
        self.left_at = self.progress().reading;
        self.end();
    }

    fn end(&mut self) {
        self.set_idle(false);
        self.state = State::Ended;
        self.control.push_back(StreamElement::Watermark(Watermark::MAX));
    }

    /// How far it has got: whatever it has given out was read before, and nothing else. Watermarks that wait are not in
    /// it: those to come say more.
    pub(crate) fn progress(&self) -> Progress {
        let reading = match &self.state {
            State::Reading { split, reader } => Some((*split, reader.position())),
            State::Between | State::Asked { .. } | State::Ended => self.left_at,
        };
        Progress { finished: self.finished.clone(), reading }
    }

    /// Once in each turn: what time brings about.
    pub(crate) fn begin_turn(&mut self, now: Tick) {
        if self.held_until.is_some_and(|at| at <= now) {
            self.held_until = None;
        }
        if let State::Asked { since } = self.state
            && !self.idle
            && now >= since + IDLE_AFTER
        {
            self.set_idle(true);
        }
        if !self.idle
            && let Some(watermark) = self.watermarks.as_mut().and_then(|watermarks| watermarks.advance(now))
        {
            self.control.push_back(StreamElement::Watermark(watermark));
        }
    }

    /// When a turn is wanted though nothing comes.
    pub(crate) fn next_wakeup(&self) -> Option<Tick> {
        let idle = match self.state {
            State::Asked { since } if !self.idle => Some(since + IDLE_AFTER),
            _ => None,
        };
        let watermark = match self.state {
            State::Ended => None,
            _ if self.idle => None,
            _ => self.watermarks.as_ref().and_then(WatermarkGenerator::next_wakeup),
        };
        [idle, watermark, self.held_until].into_iter().flatten().min()
    }

    /// The next element. To be called only while the chain has room for it.
    pub(crate) fn next(&mut self, cx: &mut Context) -> Result<Next, TaskError> {
        if let Some(control) = self.control.pop_front() {
            return Ok(Next::Element(control));
        }
        let (split, reader) = match &mut self.state {
            State::Reading { split, reader } => (*split, reader),
            State::Between => {
                self.state = State::Asked { since: cx.now };
                self.rate_asked_at = cx.now;
                self.requests += 1;
                return Ok(Next::Ask(self.requests));
            }
            State::Asked { .. } => return Ok(Next::Nothing),
            State::Ended => return Ok(Next::Ended),
        };
        if let Some(limiter) = &mut self.limiter {
            if cx.now >= self.rate_asked_at + RATE_EVERY {
                self.rate_asked_at = cx.now;
                return Ok(Next::Ask(self.requests));
            }
            if let Err(until) = limiter.take(cx.now) {
                self.held_until = Some(until);
                return Ok(Next::Nothing);
            }
        }
        match reader.next().map_err(TaskError::recoverable)? {
            Some(ReadLine::Line { bytes, origin }) => {
                cx.figures.records_in.add(1);
                cx.figures.bytes_in.add(bytes.len() as u64 + 1);
                match JsonRecord::parse(bytes.clone(), origin.clone()) {
                    Ok(record) => self.timed(record, cx),
                    Err(malformed) => {
                        let reason = format!("{} (at byte {} of the line)", malformed.reason, malformed.at);
                        self.malformed(&bytes, &reason, &origin, cx)
                    }
                }
            }
            Some(ReadLine::Malformed { text, reason, origin }) => {
                cx.figures.records_in.add(1);
                cx.figures.bytes_in.add(text.len() as u64 + 1);
                self.malformed(text.as_bytes(), &reason, &origin, cx)
            }
            None => {
                self.finished.push(split);
                self.state = State::Between;
                Ok(Next::Consumed)
            }
        }
    }

    /// The answer to what [`Next::Ask`] asked for. Of an answer to an earlier request, and of a repeated one, only the rate
    /// counts.
    pub(crate) fn on_split(
        &mut self,
        request: u64,
        answer: Result<NextSplit, SplitError>,
        now: Tick,
    ) -> Result<(), TaskError> {
        let awaited = request == self.requests && matches!(self.state, State::Asked { .. });
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if awaited => return Err(TaskError::recoverable(error)),
            // The rate stays as it is.
            Err(_) => return Ok(()),
        };
        match (answer.max_rate, &mut self.limiter) {
            (Some(rate), Some(limiter)) => limiter.set_rate(rate, now),
            (Some(rate), none) => *none = Some(RateLimiter::new(rate, now)),
            (None, limiter) => *limiter = None,
        }
        if !awaited {
            return Ok(());
        }
        match answer.split {
            Some(split) => {
                self.set_idle(false);
                self.open(&split)
            }
            None => {
                self.end();
                Ok(())
            }
        }
    }

    fn open(&mut self, split: &FileSplit) -> Result<(), TaskError> {
        let reader = SplitReader::open(split, self.options.max_record).map_err(TaskError::recoverable)?;
        self.state = State::Reading { split: split.id, reader: Box::new(reader) };
        Ok(())
    }

    fn timed(&mut self, record: JsonRecord, cx: &mut Context) -> Result<Next, TaskError> {
        let timestamp = match &self.options.event_time {
            None => None,
            Some(field) => match record.path(field).and_then(event_time::parse) {
                Some(at) => Some(at),
                None => {
                    let reason = format!("no event time can be read from the field `{field}`");
                    return self.malformed(record.line(), &reason, record.origin(), cx);
                }
            },
        };
        if let (Some(at), Some(watermarks)) = (timestamp, &mut self.watermarks) {
            watermarks.on_event(at);
        }
        Ok(Next::Element(StreamElement::Record(Record { value: record, timestamp })))
    }

    fn malformed(
        &self,
        text: &[u8],
        reason: &str,
        origin: &Origin,
        cx: &mut Context,
    ) -> Result<Next, TaskError> {
        let rejected = Rejected {
            record: Undelivered::Text(text),
            origin,
            step: None,
            reason: Reason::Malformed,
            error: reason,
            attempts: None,
        };
        if cx.dead_letters.is_none() {
            return Err(failure(&rejected, true, cx));
        }
        cx.dead_letter(&rejected)?;
        Ok(Next::Consumed)
    }

    fn set_idle(&mut self, idle: bool) {
        if std::mem::replace(&mut self.idle, idle) != idle {
            let status = if idle { WatermarkStatus::Idle } else { WatermarkStatus::Active };
            self.control.push_back(StreamElement::Status(status));
        }
    }
}
