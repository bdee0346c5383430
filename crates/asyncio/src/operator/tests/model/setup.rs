//! What an operator of the model tests is made with, and how its calls are judged.

use runtime_core::{EpochMillis, Record, StreamElement, Watermark, WatermarkStatus};

use crate::operator::tests::driver::ms;
use crate::*;

pub(in crate::operator::tests) type Answer = Result<u32, CallError<u8>>;
pub(in crate::operator::tests) type Operator =
    AsyncWaitOperator<u32, u32, u8, fn(&u32) -> Option<u32>, fn(&Answer) -> Verdict>;

/// Errors 0 are final, errors 1 may be retried, errors 2 not before a while.
pub(super) fn judge(answer: &Answer) -> Verdict {
    match answer {
        Ok(_) | Err(CallError::Error(0)) => Verdict::Final,
        Err(CallError::Error(2)) => Verdict::RetryAfter(ms(9)),
        Err(_) => Verdict::Retry,
    }
}

/// The key that keeps records in order. Inputs of the last residue have none.
pub(super) fn key_of(value: &u32) -> Option<u32> {
    Some(value % 4).filter(|&key| key < 3)
}

/// The key whose records share calls; not the one that keeps them in order.
pub(super) fn shared_key_of(value: &u32) -> Option<u32> {
    Some(value % 5).filter(|&rest| rest > 0).map(|rest| rest % 2)
}

/// Who answers when a budget ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::operator::tests) enum Asks {
    /// Nobody is asked: the record fails.
    Nobody,
    /// Who is asked answers at once.
    Answers,
    /// Who is asked does nothing.
    Silent,
}

/// What the handler of [`Asks::Answers`] says.
pub(super) const FALLBACK: u32 = 99;

#[derive(Debug, Clone)]
pub(in crate::operator::tests) struct Setup {
    pub(in crate::operator::tests) options: Options,
    pub(in crate::operator::tests) asks: Asks,
    pub(in crate::operator::tests) coalesces: bool,
}

impl Setup {
    pub(super) fn operator(&self) -> Operator {
        let mut operator: Operator = AsyncWaitOperator::with(self.options.clone(), key_of, judge);
        if self.coalesces {
            operator = operator.coalescing_by(shared_key_of);
        }
        if self.asks == Asks::Nobody { operator } else { operator.asking_on_timeout() }
    }
}

/// What takes a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::operator::tests) enum Element {
    Record(u32),
    Watermark(i64),
    Status(WatermarkStatus),
}

impl Element {
    /// Records have their value for a timestamp.
    pub(super) fn offered(self) -> StreamElement<u32> {
        match self {
            Self::Record(value) => StreamElement::Record(Record::at(value, EpochMillis(value.into()))),
            Self::Watermark(at) => StreamElement::Watermark(Watermark(EpochMillis(at))),
            Self::Status(status) => StreamElement::Status(status),
        }
    }

    pub(super) fn stored(element: &StreamElement<&u32>) -> Self {
        match element {
            StreamElement::Record(record) => Self::Record(*record.value),
            StreamElement::Watermark(watermark) => Self::Watermark(watermark.0.0),
            StreamElement::Status(status) => Self::Status(*status),
            other => panic!("{other:?} is never stored"),
        }
    }
}

/// What can be seen of an element that leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::operator::tests) enum Seen {
    Record(u32, Outcome<u32, u8>, Attempts),
    Control(Element),
    Marker,
    Barrier(u64),
}

impl Seen {
    pub(super) fn of(output: Output<u32, u32, u8>) -> Self {
        match output {
            Output::Record { input, outcome, attempts } => {
                assert_eq!(input.timestamp, Some(EpochMillis(input.value.into())), "timestamp");
                Self::Record(input.value, outcome, attempts)
            }
            Output::Watermark(watermark) => Self::Control(Element::Watermark(watermark.0.0)),
            Output::Status(status) => Self::Control(Element::Status(status)),
            Output::LatencyMarker(_) => Self::Marker,
            Output::Barrier(barrier) => Self::Barrier(barrier.checkpoint),
        }
    }
}
