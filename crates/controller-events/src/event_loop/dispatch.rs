//! One turn of a loop whose handlers do not wait.

use super::EventLoop;
use super::core::{Hooks, Next, Turn};
use crate::cx::Cx;
use crate::inside::{self, Inside, Place};
use crate::processor::{Fault, FaultAction, Processor, StopReason};
use std::panic::{AssertUnwindSafe, catch_unwind};

struct Of<'a, P>(&'a mut P);

impl<P: Processor> Hooks for Of<'_, P> {
    fn after_each(&mut self) {
        self.0.after_each();
    }

    fn on_fault(&mut self, fault: &Fault) -> FaultAction {
        self.0.on_fault(fault)
    }

    fn on_failover(&mut self, fault: &Fault) {
        self.0.on_failover(fault);
    }

    fn on_stop(&mut self, why: StopReason) {
        self.0.on_stop(why);
    }
}

impl<P: Processor> EventLoop<P> {
    /// Marks this thread as the one that drives the loop.
    pub(super) fn enter(&self) -> Inside {
        inside::enter(self.core.shared().id, Place::Processor)
    }

    /// Takes one turn. The thread must have been marked.
    pub(super) fn turn(&mut self) -> Turn {
        let Self { processor, core } = self;
        match core.next() {
            Next::Run(event, begun) => {
                let mut cx = Cx { handle: &core.handle, now: begun.at(), confined: &mut core.confined };
                let mut has_followed = false;
                // What follows a success is called from here as well: to catch twice costs more than most handlers.
                let ended = catch_unwind(AssertUnwindSafe(|| {
                    let result = processor.process(event, &mut cx);
                    if result.is_ok() {
                        has_followed = true;
                        processor.after_each();
                    }
                    result
                }));
                core.finish(begun, ended, has_followed, &mut Of(processor))
            }
            Next::End(why) => core.end(why, &mut Of(processor)),
            Next::Did(turn) => turn,
        }
    }
}
