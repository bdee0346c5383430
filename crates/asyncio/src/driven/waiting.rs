//! The calls that wait, and who is called when one of them is woken.
//!
//! What keeps a wake-up from being lost: *while a place is in the list of the woken, the driver has been called since it
//! last saw that list empty, or is about to look again.* Each method is a step under one lock, so it keeps or breaks that
//! by itself:
//!
//! - Waking a call that is in its place puts the place into the list, and calls the driver if that waits. If the call is
//!   away, because somebody polls it, this is remembered, and whoever puts the call back puts its place into the list.
//! - The driver waits from the moment in which it sees the list empty, under the same lock.
//! - Whoever else takes calls (the consumer, who is here when results are wanted) has no part in this. It may have itself
//!   called as well, so that it need not wait for the driver's turn.
//!
//! Neither user code nor a waker ever runs under the lock.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::task::Waker;

use super::cell::{Attempt, Cell};
use crate::sync::{Mutex, MutexGuard};

/// Who polls calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Poller {
    /// The task that is always called.
    Driver,
    /// The consumer, called as well.
    Consumer,
    /// The consumer, not called: the driver will have results for it.
    Passer,
}

/// What taking calls out has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// All that were woken.
    All,
    /// As many as were wanted; there are more.
    More,
    /// Nothing is called any more.
    Closed,
}

pub(super) struct Waiting<Fut> {
    state: Mutex<State<Fut>>,
}

struct State<Fut> {
    places: Vec<Place<Fut>>,
    /// Places of calls that were woken, each once.
    woken: VecDeque<u32>,
    driver: Caller,
    consumer: Caller,
    /// Cells whose calls ended elsewhere than with the consumer.
    spare: Vec<Cell<Fut>>,
    closed: bool,
}

/// The place of one cell.
struct Place<Fut> {
    /// Absent while it is empty or somebody polls the call.
    cell: Option<Cell<Fut>>,
    /// The attempt that anybody wants to hear of.
    wanted: Option<Attempt>,
    /// Whether it is in the list of the woken.
    listed: bool,
    /// Whether the call was woken while it was away.
    woken_away: bool,
}

/// Who is called when there is something to do.
#[derive(Default)]
struct Caller {
    waker: Option<Waker>,
    waits: bool,
}

impl Caller {
    fn wait(&mut self, waker: &Waker) {
        match &mut self.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        self.waits = true;
    }

    fn called(&mut self) -> Option<Waker> {
        if std::mem::take(&mut self.waits) { self.waker.clone() } else { None }
    }
}

impl<Fut> State<Fut> {
    /// Whom to call because this place was put into the list.
    fn list(&mut self, place: u32) -> [Option<Waker>; 2] {
        self.woken.push_back(place);
        [self.driver.called(), self.consumer.called()]
    }

    fn place(&mut self, place: u32) -> Option<&mut Place<Fut>> {
        self.places.get_mut(place as usize)
    }
}

/// A runtime that prefers whoever was called last has the consumer find the calls still there.
fn call(whom: [Option<Waker>; 2]) {
    whom.into_iter().flatten().for_each(Waker::wake);
}

impl<Fut> Waiting<Fut> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                places: Vec::new(),
                woken: VecDeque::new(),
                driver: Caller::default(),
                consumer: Caller::default(),
                spare: Vec::new(),
                closed: false,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<Fut>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a new cell, which is away.
    pub(super) fn another_place(&self) -> u32 {
        let mut state = self.lock();
        state.places.push(Place { cell: None, wanted: None, listed: false, woken_away: false });
        // There are no more cells than records, and the capacity keeps those below 2^32 - 1.
        (state.places.len() - 1) as u32
    }

    /// A cell whose call has ended, with whoever that was.
    pub(super) fn spare(&self) -> Option<Cell<Fut>> {
        self.lock().spare.pop()
    }

    /// The call in this place can go on.
    pub(super) fn wake(&self, number: u32) {
        let mut state = self.lock();
        let Some(place) = state.place(number).filter(|place| !place.listed) else { return };
        if place.cell.is_none() {
            place.woken_away = true;
            return;
        }
        place.listed = true;
        let whom = state.list(number);
        drop(state);
        call(whom);
    }

    /// Puts a call that was begun and waits into its place.
    pub(super) fn begin(&self, cell: Cell<Fut>) {
        let mut state = self.lock();
        if let Some(place) = state.place(cell.place) {
            place.wanted = Some(cell.attempt);
        }
        Self::put_into(state, cell);
    }

    /// Puts a call that was polled and waits back, or lets it go if nobody wants it any more.
    pub(super) fn put_back(&self, mut cell: Cell<Fut>) {
        let mut state = self.lock();
        let wanted = state.place(cell.place).is_some_and(|place| place.wanted == Some(cell.attempt));
        if wanted {
            return Self::put_into(state, cell);
        }
        drop(state);
        cell.clear();
        Self::keep(self.lock(), cell);
    }

    fn put_into(mut state: MutexGuard<'_, State<Fut>>, cell: Cell<Fut>) {
        let number = cell.place;
        let Some(place) = state.place(number) else { return };
        place.cell = Some(cell);
        let lists = std::mem::take(&mut place.woken_away) && !place.listed;
        if lists {
            place.listed = true;
            let whom = state.list(number);
            drop(state);
            call(whom);
        }
    }

    /// A call has ended, and its cell is empty. Says whether anybody wants to hear of it.
    pub(super) fn ended(&self, cell: Cell<Fut>) -> bool {
        let mut state = self.lock();
        let place = state.place(cell.place);
        let wanted = place.and_then(|place| place.wanted.take_if(|wanted| *wanted == cell.attempt)).is_some();
        Self::keep(state, cell);
        wanted
    }

    /// Not once it is closed: a cell knows who has it.
    fn keep(mut state: MutexGuard<'_, State<Fut>>, cell: Cell<Fut>) {
        if state.closed {
            drop(state);
            drop(cell);
        } else {
            state.spare.push(cell);
        }
    }

    /// Takes out at most so many calls that were woken. Whoever has seen that there are no more is called when there are.
    pub(super) fn take(
        &self,
        who: Poller,
        waker: &Waker,
        at_most: usize,
        calls: &mut Vec<Cell<Fut>>,
    ) -> Found {
        let mut state = self.lock();
        if state.closed {
            return Found::Closed;
        }
        while calls.len() < at_most
            && let Some(number) = state.woken.pop_front()
        {
            if let Some(place) = state.place(number) {
                place.listed = false;
                // It may have been let go since it was woken.
                calls.extend(place.cell.take());
            }
        }
        if !state.woken.is_empty() {
            return Found::More;
        }
        match who {
            Poller::Driver => state.driver.wait(waker),
            Poller::Consumer => state.consumer.wait(waker),
            Poller::Passer => {}
        }
        Found::All
    }

    /// Nobody wants to hear of this attempt. Gives its call if nobody polls it; whoever does will let it go.
    pub(super) fn let_go(&self, number: u32, attempt: Attempt) -> Option<Cell<Fut>> {
        let mut state = self.lock();
        let place = state.place(number)?;
        place.wanted.take_if(|wanted| *wanted == attempt)?;
        place.cell.take()
    }

    /// The end: gives the calls that wait, and makes the driver end. A call that is being polled is let go after that.
    pub(super) fn close(&self) -> Vec<Cell<Fut>> {
        let mut state = self.lock();
        state.closed = true;
        let calls = state.places.iter_mut().filter_map(|place| {
            place.wanted = None;
            place.cell.take()
        });
        let mut calls: Vec<_> = calls.collect();
        calls.append(&mut state.spare);
        let (driver, consumer) = (state.driver.waker.take(), state.consumer.waker.take());
        drop(state);
        drop(consumer);
        driver.into_iter().for_each(Waker::wake);
        calls
    }
}
