//! The element queue alone: put, complete, emit, on one thread.
//!
//! | pattern | with K in flight |
//! |---|---|
//! | `oldest-first` | the oldest completes and leaves, one is put |
//! | `newest-first` | K are put; the newest completes, again and again, what may leave leaves at once |
//! | `shuffled` | K are put, complete in a shuffled order, then all leave |

use crate::case::Order;
use crate::machine::now;
use crate::ours::{Name, Queue};
use crate::{Failure, machine};

/// `ORDER PATTERN IN_FLIGHT ELEMENTS`: runs it twice, measures the second, gives a line of JSON.
pub(crate) fn measure(args: &[&str]) -> Result<String, Failure> {
    let &[order, pattern, in_flight, elements] = args else {
        return Err("ORDER PATTERN IN_FLIGHT ELEMENTS".into());
    };
    let capacity: usize = in_flight.parse()?;
    let mut run = Run {
        queue: Queue::new(order.parse::<Order>()?),
        names: Vec::with_capacity(capacity),
        // Whole fillings.
        elements: elements.parse::<u64>()?.div_ceil(capacity as u64) * capacity as u64,
        capacity,
        emitted: 0,
        sum: 0,
    };
    let shuffled = shuffled(capacity);
    let mut took = 0;
    for _ in 0..2 {
        let begun = now();
        match pattern {
            "oldest-first" => run.oldest_first()?,
            "newest-first" => run.newest_first()?,
            "shuffled" => run.in_order_of(&shuffled)?,
            _ => return Err(format!("`{pattern}` is no pattern").into()),
        }
        took = now() - begun;
        run.check()?;
    }
    Ok(format!(
        "{{\"peer\":\"tidegate\",\"bench\":\"element-queue\",\"mode\":\"{order}\",\"pattern\":\"{pattern}\",\
         \"in_flight\":{in_flight},\"ns_per_element\":{:.2},\"peak_rss_mib\":{:.1}}}",
        took as f64 / run.elements as f64,
        machine::peak_rss()
    ))
}

struct Run {
    queue: Queue,
    names: Vec<Name>,
    elements: u64,
    capacity: usize,
    emitted: u64,
    sum: u64,
}

impl Run {
    fn emit(&mut self) {
        if let Some(value) = self.queue.emit() {
            self.emitted += 1;
            self.sum = self.sum.wrapping_add(value);
        }
    }

    fn emit_all(&mut self) {
        while let Some(value) = self.queue.emit() {
            self.emitted += 1;
            self.sum = self.sum.wrapping_add(value);
        }
    }

    fn fill(&mut self, first: u64) {
        self.names.clear();
        for value in first..first + self.capacity as u64 {
            self.names.push(self.queue.put(value));
        }
    }

    fn oldest_first(&mut self) -> Result<(), Failure> {
        self.fill(0);
        let (mut oldest, mut next) = (0, self.capacity as u64);
        for value in 0..self.elements {
            let Some(place) = self.names.get_mut(oldest) else { return Err("no such place".into()) };
            self.queue.complete(*place, value);
            // Not `emit`: a place of `names` is borrowed.
            if let Some(value) = self.queue.emit() {
                self.emitted += 1;
                self.sum = self.sum.wrapping_add(value);
            }
            if next < self.elements {
                *place = self.queue.put(next);
                next += 1;
            }
            oldest += 1;
            if oldest == self.capacity {
                oldest = 0;
            }
        }
        Ok(())
    }

    fn newest_first(&mut self) -> Result<(), Failure> {
        for first in (0..self.elements).step_by(self.capacity) {
            self.fill(first);
            let mut value = first + self.capacity as u64;
            while let Some(name) = self.names.pop() {
                value -= 1;
                self.queue.complete(name, value);
                self.emit();
            }
            self.emit_all();
        }
        Ok(())
    }

    fn in_order_of(&mut self, places: &[usize]) -> Result<(), Failure> {
        for first in (0..self.elements).step_by(self.capacity) {
            self.fill(first);
            for place in places {
                let Some(name) = self.names.get(*place) else { return Err("no such place".into()) };
                self.queue.complete(*name, first + *place as u64);
            }
            self.emit_all();
        }
        Ok(())
    }

    /// Everything has come once. Begins anew.
    fn check(&mut self) -> Result<(), Failure> {
        let expected = (self.elements, self.elements * (self.elements - 1) / 2);
        if (self.emitted, self.sum) != expected {
            return Err(format!("{} elements of sum {}, not {expected:?}", self.emitted, self.sum).into());
        }
        (self.emitted, self.sum) = (0, 0);
        Ok(())
    }
}

/// Fisher and Yates with a fixed seed.
fn shuffled(count: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for last in (1..count).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        places.swap(last, (state % (last as u64 + 1)) as usize);
    }
    places
}
