//! Frames of the load's transactions: what is sent, what is known of it, what is sent again.

use std::collections::{BTreeMap, VecDeque};

use walras_gateway::session::FrameOutcome;
use walras_types::RejectReason;
use walras_wire::order_entry::{TRANSACTIONS_PER_FRAME_MAX, push_signed_bytes};

/// What has no room is sent again after this, where the venue says nothing else.
pub(super) const RETRY_NS: u64 = 5_000_000;

/// Items of frames.
#[derive(Default)]
pub(super) struct Items {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Items {
    pub(super) fn push(&mut self, signed: &[u8]) {
        assert!(push_signed_bytes(signed, &mut self.bytes), "it is a signed transaction");
        self.ends.push(self.bytes.len());
    }

    pub(super) fn append(&mut self, other: &Self) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| before + end));
    }

    fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }
}

/// What is sent, and what is known of it.
pub(super) struct Sending<'i> {
    items: &'i Items,
    accounts: usize,
    /// Of each connection. An account sends by one of them, in the order of its numbers: one below a number that was taken is refused.
    pub(super) flights: Vec<Flight>,
    pub(super) answered: u64,
    pub(super) collected: u64,
    pub(super) refused: u64,
    pub(super) first_refusal: Option<RejectReason>,
    pub(super) sent_again: u64,
    pub(super) progress_ns: u64,
}

/// What is sent by one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    next: usize,
    /// To be sent again, from a time on.
    again: VecDeque<(u64, usize)>,
    /// The transactions of each frame.
    pub(super) frames: BTreeMap<u64, Vec<usize>>,
}

impl<'i> Sending<'i> {
    pub(super) fn new(items: &'i Items, accounts: usize, connections: usize, progress_ns: u64) -> Self {
        let flights = vec![Flight::default(); connections];
        Self { items, accounts, flights, answered: 0, collected: 0, refused: 0, first_refusal: None, sent_again: 0, progress_ns }
    }

    /// The next frame: what waits to be sent again first.
    pub(super) fn next_frame(&mut self, connection: usize, now_ns: u64) -> Option<(Vec<usize>, Vec<u8>)> {
        let (mut indexes, mut frame) = (Vec::new(), Vec::new());
        let (connections, accounts) = (self.flights.len(), self.accounts);
        let flight = &mut self.flights[connection];
        while indexes.len() < TRANSACTIONS_PER_FRAME_MAX {
            let index = if flight.again.front().is_some_and(|(due_ns, _)| *due_ns <= now_ns) {
                flight.again.pop_front().map(|(_, index)| index)
            } else {
                let is_its = |index: &usize| index % accounts % connections == connection;
                let found = (flight.next..self.items.ends.len()).find(is_its);
                flight.next = found.map_or(self.items.ends.len(), |index| index + 1);
                found
            };
            let Some(index) = index else { break };
            frame.extend_from_slice(self.items.get(index));
            indexes.push(index);
        }
        (!indexes.is_empty()).then_some((indexes, frame))
    }

    pub(super) fn take(&mut self, flight: usize, now_ns: u64, outcome: &FrameOutcome) {
        let Flight { again, frames, .. } = &mut self.flights[flight];
        let indexes = frames.remove(&outcome.number).unwrap_or_default();
        self.progress_ns = now_ns;
        for (index, result) in indexes.into_iter().zip(&outcome.results) {
            match result {
                None => self.collected += 1,
                Some(RejectReason::BatchFull | RejectReason::Overloaded | RejectReason::Throttled) => {
                    self.sent_again += 1;
                    again.push_back((now_ns + outcome.retry_after_ns.unwrap_or(RETRY_NS), index));
                    continue;
                }
                Some(reason) => {
                    self.refused += 1;
                    self.first_refusal.get_or_insert(*reason);
                }
            }
            self.answered += 1;
        }
    }
}
