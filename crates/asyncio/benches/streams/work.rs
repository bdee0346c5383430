//! What the calls wait for.
//!
//! | work | a call completes |
//! |---|---|
//! | `ready` | where it is made |
//! | `external` | from one other thread, in the order in which the calls were handed over |
//! | `timer-Nms`, `exp-Nms`, `spread-Nms` | from a wheel of 1 ms ticks on one other thread |
//! | `sleep-Nms`, `exp-sleep-Nms`, `spread-sleep-Nms` | when a sleep of the runtime ends |
//!
//! after N ms, after exponentially distributed ms of mean N, or after 0.5 N to 1.5 N ms. The spread is for many in flight:
//! with equal delays they would all complete in one tick, and the last exponential delay is many times the mean.

use std::str::FromStr;
use std::time::Duration;

use crate::Failure;

/// What completes a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Work {
    Ready,
    External,
    Wheel(Delays),
    Sleep(Delays),
}

impl Work {
    /// Whether the rate is set by the delays and the capacity rather than by the CPU.
    pub(crate) const fn is_timed(&self) -> bool {
        matches!(self, Self::Wheel(_) | Self::Sleep(_))
    }

    /// Whether the delays are spread, so that the run is steady until the last calls are under way.
    pub(crate) const fn is_spread(&self) -> bool {
        matches!(self, Self::Wheel(delays) | Self::Sleep(delays) if matches!(delays.shape, Shape::Spread))
    }
}

impl FromStr for Work {
    type Err = Failure;

    fn from_str(name: &str) -> Result<Self, Failure> {
        match name {
            "ready" => return Ok(Self::Ready),
            "external" => return Ok(Self::External),
            _ => {}
        }
        let unknown = || format!("`{name}` is no work");
        let (kind, mean) =
            name.strip_suffix("ms").and_then(|name| name.rsplit_once('-')).ok_or_else(unknown)?;
        let delays = |shape| Ok::<_, Failure>(Delays::new(shape, mean.parse()?));
        Ok(match kind {
            "timer" => Self::Wheel(delays(Shape::Fixed)?),
            "exp" => Self::Wheel(delays(Shape::Exponential)?),
            "spread" => Self::Wheel(delays(Shape::Spread)?),
            "sleep" => Self::Sleep(delays(Shape::Fixed)?),
            "exp-sleep" => Self::Sleep(delays(Shape::Exponential)?),
            "spread-sleep" => Self::Sleep(delays(Shape::Spread)?),
            _ => return Err(unknown().into()),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    Fixed,
    Exponential,
    Spread,
}

/// Delays one after the other, the same in every run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Delays {
    shape: Shape,
    mean_ms: f64,
    state: u64,
}

impl Delays {
    const fn new(shape: Shape, mean_ms: f64) -> Self {
        Self { shape, mean_ms, state: 0x9E37_79B9_7F4A_7C15 }
    }

    /// The next one, in ms.
    pub(crate) fn next_ms(&mut self) -> f64 {
        match self.shape {
            Shape::Fixed => self.mean_ms,
            Shape::Exponential => -self.mean_ms * self.unit().ln(),
            Shape::Spread => self.mean_ms * (0.5 + self.unit()),
        }
    }

    /// The next one.
    pub(crate) fn next(&mut self) -> Duration {
        Duration::from_secs_f64(self.next_ms() / 1e3)
    }

    /// Above 0, up to 1 (Marsaglia's xorshift: it costs nothing to speak of).
    fn unit(&mut self) -> f64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        ((self.state >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}
