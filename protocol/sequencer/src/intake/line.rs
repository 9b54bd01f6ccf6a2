//! A session's line: what of it is held, and what waits for one before it.

use std::collections::BTreeMap;

use walras_fair_access::GatewayId;
use walras_fair_access::resequence::Stamp;
use walras_types::SessionSeq;
use walras_wire::Command;

/// What the intake knows of a session in this term.
#[derive(Debug)]
pub(super) struct Line {
    /// The place that goes into the hold next.
    pub(super) next: SessionSeq,
    /// The stamp that counted of the last one that did.
    pub(super) stamped_last_ns: Option<u64>,
    /// Grows when what is held is given up: what carries a lower one is dropped when it leaves the hold.
    pub(super) generation: u32,
    /// In the hold, of any generation.
    pub(super) held: u32,
    /// Those whose predecessor has not come.
    pub(super) early: BTreeMap<SessionSeq, Lined>,
    /// When something came last.
    pub(super) used_ns: u64,
    /// Whether two copies of a place have differed.
    pub(super) has_differed: bool,
}

/// An order in its session's line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lined {
    pub(super) gateway: GatewayId,
    pub(super) stamp: Stamp,
    pub(super) command: Command,
    pub(super) since_ns: u64,
}

impl Line {
    pub(super) fn new(next: SessionSeq, now_ns: u64) -> Self {
        Self { next, stamped_last_ns: None, generation: 0, held: 0, early: BTreeMap::new(), used_ns: now_ns, has_differed: false }
    }

    /// Whether it may be forgotten.
    pub(super) fn is_idle(&self) -> bool {
        self.held == 0 && self.early.is_empty()
    }

    /// The early one that is next, if it is there.
    pub(super) fn take_next_early(&mut self) -> Option<Lined> {
        self.early.remove(&self.next)
    }
}
