//! What happens when: events in order of time, and of one time in the order in which they were planned.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

#[derive(Debug)]
pub(crate) struct Schedule<E> {
    due: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, E>,
    next_number: u64,
}

impl<E> Schedule<E> {
    pub(crate) fn new() -> Self {
        Self { due: BinaryHeap::new(), events: BTreeMap::new(), next_number: 0 }
    }

    pub(crate) fn at(&mut self, time_ns: u64, event: E) {
        self.due.push(Reverse((time_ns, self.next_number)));
        self.events.insert(self.next_number, event);
        self.next_number += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<(u64, E)> {
        let Reverse((time_ns, number)) = self.due.pop()?;
        Some((time_ns, self.events.remove(&number).expect("each number is planned once")))
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
