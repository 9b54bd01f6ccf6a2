//! What happens when: events in order of time, and of one time in the order in which they were planned.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug)]
pub(crate) struct Schedule<E> {
    /// Time, number, and where the event is.
    due: BinaryHeap<Reverse<(u64, u64, usize)>>,
    events: Vec<Option<E>>,
    /// Places without an event.
    free: Vec<usize>,
    next_number: u64,
}

impl<E> Schedule<E> {
    pub(crate) fn new() -> Self {
        Self { due: BinaryHeap::new(), events: Vec::new(), free: Vec::new(), next_number: 0 }
    }

    pub(crate) fn at(&mut self, time_ns: u64, event: E) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[place] = Some(event);
        self.due.push(Reverse((time_ns, self.next_number, place)));
        self.next_number += 1;
    }

    /// When the next event is.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((time_ns, ..))| *time_ns)
    }

    pub(crate) fn pop(&mut self) -> Option<(u64, E)> {
        let Reverse((time_ns, _, place)) = self.due.pop()?;
        self.free.push(place);
        Some((time_ns, self.events[place].take().expect("an event is there until its time")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_as_planned() {
        let mut schedule = Schedule::new();
        for (time_ns, event) in [(5, 'c'), (3, 'a'), (5, 'd'), (4, 'b')] {
            schedule.at(time_ns, event);
        }
        let order: String = std::iter::from_fn(|| schedule.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, "abcd");
    }
}
