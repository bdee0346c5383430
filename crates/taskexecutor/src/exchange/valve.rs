//! The watermark of several inputs: the least of those that count.
//!
//! Flink: `StatusWatermarkValve`. A channel counts while it is active, has not ended and has caught up with what was
//! already said; so the outgoing watermark never runs backwards and an idle channel holds nobody back.

use runtime_core::{EpochMillis, Watermark, WatermarkStatus};

#[derive(Debug, Clone, Copy)]
struct Input {
    watermark: EpochMillis,
    idle: bool,
    ended: bool,
}

/// What follows from one input's element; the status goes out before the watermark when both are there and it is
/// `Active`, after it when it is `Idle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ValveOutput {
    /// A new watermark.
    pub watermark: Option<Watermark>,
    /// A new status.
    pub status: Option<WatermarkStatus>,
}

/// Merges the watermarks and statuses of a fixed number of inputs.
#[derive(Debug)]
pub struct Valve {
    inputs: Vec<Input>,
    said: EpochMillis,
    idle: bool,
}

const BEFORE_ALL: EpochMillis = EpochMillis(i64::MIN);

impl Valve {
    /// A valve of so many inputs, all active, none with a watermark.
    #[must_use]
    pub fn new(inputs: usize) -> Self {
        let input = Input { watermark: BEFORE_ALL, idle: false, ended: false };
        Self { inputs: vec![input; inputs], said: BEFORE_ALL, idle: false }
    }

    /// A watermark came from an input.
    pub fn watermark(&mut self, index: usize, watermark: Watermark) -> ValveOutput {
        if let Some(input) = self.inputs.get_mut(index) {
            input.watermark = input.watermark.max(watermark.0);
        }
        self.settle()
    }

    /// An input became idle or active.
    pub fn status(&mut self, index: usize, status: WatermarkStatus) -> ValveOutput {
        if let Some(input) = self.inputs.get_mut(index) {
            input.idle = status == WatermarkStatus::Idle;
        }
        self.settle()
    }

    /// An input has ended.
    pub fn end(&mut self, index: usize) -> ValveOutput {
        if let Some(input) = self.inputs.get_mut(index) {
            input.ended = true;
        }
        self.settle()
    }

    fn settle(&mut self) -> ValveOutput {
        let open = || self.inputs.iter().filter(|input| !input.ended);
        let active = || open().filter(|input| !input.idle);
        let idle = open().next().is_some() && active().next().is_none();
        let candidate = if active().next().is_some() {
            active().map(|input| input.watermark).filter(|&at| at >= self.said).min()
        } else {
            // Nobody is left to hold anybody back: what any of them has reached is reached.
            self.inputs.iter().map(|input| input.watermark).max()
        };
        let watermark = candidate.filter(|&at| at > self.said).map(Watermark);
        if let Some(Watermark(at)) = watermark {
            self.said = at;
        }
        let status =
            (idle != self.idle).then_some(if idle { WatermarkStatus::Idle } else { WatermarkStatus::Active });
        self.idle = idle;
        ValveOutput { watermark, status }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    enum In {
        W(usize, i64),
        Idle(usize),
        Active(usize),
        End(usize),
    }
    use In::{Active, End, Idle, W};

    /// Watermarks as they come out; status changes as -1 (idle) and -2 (active).
    fn run(inputs: usize, script: &[In]) -> Vec<i64> {
        let mut valve = Valve::new(inputs);
        let mut out = Vec::new();
        for &step in script {
            let ValveOutput { watermark, status } = match step {
                W(i, at) => valve.watermark(i, Watermark(EpochMillis(at))),
                Idle(i) => valve.status(i, WatermarkStatus::Idle),
                Active(i) => valve.status(i, WatermarkStatus::Active),
                End(i) => valve.end(i),
            };
            if status == Some(WatermarkStatus::Active) {
                out.push(-2);
            }
            out.extend(watermark.map(|w| w.0.0));
            if status == Some(WatermarkStatus::Idle) {
                out.push(-1);
            }
        }
        out
    }

    #[test]
    fn the_watermark_is_the_least_of_the_inputs_that_count() {
        let cases: &[(&str, usize, &[In], &[i64])] = &[
            ("one input passes through", 1, &[W(0, 5), W(0, 7)], &[5, 7]),
            ("a repeat says nothing", 1, &[W(0, 5), W(0, 5)], &[5]),
            ("it waits for all", 2, &[W(0, 5), W(1, 3), W(1, 9)], &[3, 5]),
            ("an idle input holds nobody back", 2, &[W(0, 5), Idle(1), W(0, 8)], &[5, 8]),
            ("an ended input holds nobody back", 2, &[W(0, 5), End(1), W(0, 8)], &[5, 8]),
            (
                "all idle is idle, after the highest watermark",
                2,
                &[W(0, 5), W(1, 3), Idle(1), Idle(0)],
                &[3, 5, -1],
            ),
            ("one active again is active", 1, &[Idle(0), Active(0)], &[-1, -2]),
            (
                "it never runs backwards",
                2,
                &[Idle(1), W(0, 8), Active(1), W(1, 4), W(0, 9), W(1, 10)],
                &[8, 9],
            ),
            ("the last end lets the highest pass", 2, &[W(0, 5), W(1, 9), End(0), End(1)], &[5, 9]),
        ];
        for (name, inputs, script, expected) in cases {
            assert_eq!(&run(*inputs, script), expected, "{name}");
        }
    }

    #[test]
    fn an_input_that_lags_behind_what_was_said_counts_again_once_it_has_caught_up() {
        let script = [Idle(1), W(0, 8), Active(1), W(1, 4), W(0, 12), W(1, 9), W(1, 11)];
        assert_eq!(run(2, &script), [8, 12]);
    }
}
