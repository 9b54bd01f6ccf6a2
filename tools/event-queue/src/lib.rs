//! The event queue of a simulation: what happens when, in order of time, and of one time in the order in which it was planned.
//!
//! *Deliberately absent*: a clock, handlers, and events that are taken back: who runs the simulation has those.
//!
//! *Invariant*: the same calls give the same events in the same order on every machine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events and their times.
#[derive(Debug)]
pub struct EventQueue<E> {
    /// Time, number, and where the event is.
    due: BinaryHeap<Reverse<(u64, u64, usize)>>,
    events: Vec<Option<E>>,
    /// Places without an event.
    free: Vec<usize>,
    next_number: u64,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self { due: BinaryHeap::new(), events: Vec::new(), free: Vec::new(), next_number: 0 }
    }
}

impl<E> EventQueue<E> {
    /// Nothing is planned.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Plans an event.
    pub fn at(&mut self, time_ns: u64, event: E) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[place] = Some(event);
        self.due.push(Reverse((time_ns, self.next_number, place)));
        self.next_number += 1;
    }

    /// When the next event is.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((time_ns, ..))| *time_ns)
    }

    /// The next event and its time.
    pub fn pop(&mut self) -> Option<(u64, E)> {
        let Reverse((time_ns, _, place)) = self.due.pop()?;
        self.free.push(place);
        Some((time_ns, self.events[place].take().expect("an event is there until its time")))
    }

    /// The next event and its time, unless that is later than this.
    pub fn pop_until(&mut self, last_ns: u64) -> Option<(u64, E)> {
        if self.next_ns()? > last_ns { None } else { self.pop() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_as_planned() {
        let mut queue = EventQueue::new();
        for (time_ns, event) in [(5, 'c'), (3, 'a'), (5, 'd'), (4, 'b')] {
            queue.at(time_ns, event);
        }
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, "abcd");
    }

    #[test]
    fn what_is_later_stays() {
        let mut queue = EventQueue::new();
        [(5, 'b'), (3, 'a')].into_iter().for_each(|(time_ns, event)| queue.at(time_ns, event));
        let popped = [2, 3, 4, 5, 6].map(|last_ns| queue.pop_until(last_ns));
        assert_eq!(popped, [None, Some((3, 'a')), None, Some((5, 'b')), None]);
    }
}
