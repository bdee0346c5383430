//! What a handler can reach besides its own state.

use crate::event::Event;
use crate::handle::Handle;
use runtime_core::{Epoch, Tick};

/// The loop as seen from a handler.
pub struct Cx<'a, E: Event> {
    pub(crate) handle: &'a Handle<E>,
    pub(crate) now: Tick,
    pub(crate) epoch: &'a mut Epoch,
}

impl<E: Event> Cx<'_, E> {
    /// The moment at which this event started. One event sees one time, so that what it decides does not depend on how
    /// long deciding takes.
    #[must_use]
    pub const fn now(&self) -> Tick {
        self.now
    }

    /// The loop's handle, to put, schedule and cancel with and to give to what will come back with an event. What a
    /// handler puts is not bound by the capacity.
    #[must_use]
    pub const fn handle(&self) -> &Handle<E> {
        self.handle
    }

    /// The loop's epoch; [`Epoch::UNKNOWN`] until it is set.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        *self.epoch
    }

    /// From the next event on, events put for another epoch are not run.
    pub const fn set_epoch(&mut self, epoch: Epoch) {
        *self.epoch = epoch;
    }

    /// Ends the loop after this event: the same as [`Handle::begin_close`].
    pub fn stop(&self) {
        self.handle.begin_close();
    }
}
