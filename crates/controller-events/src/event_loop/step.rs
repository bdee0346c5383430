//! Driving a loop by hand: deterministic tests and simulations without a thread.

use super::EventLoop;
use super::core::Turn;
use crate::processor::{Processor, StopReason};
use runtime_core::Tick;

/// What one step did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// An event was handled.
    Ran,
    /// An event was told that it will not run, because of its deadline or its epoch.
    Rejected,
    /// There was nothing to do, and there will be nothing before this moment unless something is put.
    Idle {
        /// No scheduled event and no deadline is due before it. The earliest one is due then, unless it was cancelled.
        next_wakeup: Option<Tick>,
    },
    /// Another thread is just telling the events of a barrier; nothing may start meanwhile.
    Held,
    /// The loop has ended.
    Stopped(StopReason),
}

impl<P: Processor> EventLoop<P> {
    /// Does the next thing there is to do, if any.
    pub fn step(&mut self) -> Step {
        let _inside = self.enter();
        self.core.look_at_the_clock();
        self.step_inside()
    }

    fn step_inside(&mut self) -> Step {
        match self.turn() {
            Turn::Ran => Step::Ran,
            Turn::Rejected => Step::Rejected,
            Turn::Idle { next_wakeup } => Step::Idle { next_wakeup },
            Turn::Held => Step::Held,
            Turn::Stopped(why) => Step::Stopped(why),
        }
    }

    /// Steps until there is nothing to do at the present moment. Returns how many events were handled. A handler that
    /// always puts another event keeps this from returning.
    pub fn run_until_idle(&mut self) -> usize {
        let _inside = self.enter();
        self.core.look_at_the_clock();
        let mut ran = 0;
        loop {
            match self.step_inside() {
                Step::Ran => ran += 1,
                Step::Rejected => {}
                Step::Idle { .. } | Step::Held | Step::Stopped(_) => return ran,
            }
        }
    }

    /// The processor, for a look between two steps.
    #[must_use]
    pub const fn processor(&self) -> &P {
        &self.processor
    }
}
