//! Programs that trade by FIX, at replicas and leaf gateways, with the product's end of FIX (`walras-fix-orders`) below order entry and a
//! client's end of their own. Their numbers and messages outlive connections and replicas; they never die, and reconnect wherever
//! somebody listens.
//!
//! With relays one more program reads a book by FIX at a leaf gateway (`book.rs`, `overlay/board.rs`).
//!
//! One says in its logons which number it expects next (NextExpectedMsgSeqNum(789)), one asks for what it lacks (ResendRequest(2)), one
//! only listens (a drop copy). By their places they speak FIX 4.4, FIX 4.2 with signed logons, and 5.0 SP2.

pub(super) mod asked;
pub(super) mod book;
mod client;
pub(super) mod message;
pub(super) mod planted;
pub(super) mod trader;

use walras_fix_orders::Catalog;

use super::event::{Event, Phase};
use super::net::{Direction, Flow};
use super::replica::{FIX_FROM, StreamId};
use super::world::World;
use crate::common::checks::Violation;
use crate::common::clock::EPOCH_NS;

/// Signed logons are good while the log's time is so far ahead of their time at most.
const LOG_AHEAD_NS_MAX: u64 = 5_000_000_000;

/// They look whether there is something to do this often, at the most.
const WAKE_NS: u64 = 40_000_000;

impl World {
    pub(super) fn plan_fix(&mut self) {
        for at in 0..self.fix.len() {
            self.schedule.at(WAKE_NS, Event::FixWakes(at));
        }
    }

    /// What a FIX client does now, and when it looks again.
    pub(super) fn fix_wakes(&mut self, at: usize) {
        let after_ns = self.fix[at].choices.within(WAKE_NS / 8, WAKE_NS);
        self.schedule.at(self.now_ns + after_ns, Event::FixWakes(at));
        if !self.is_set_up || self.clients_rest {
            return;
        }
        if self.fix[at].hangs_up(self.now_ns, self.phase == Phase::Safety) {
            self.fix_hangs_up(at);
        }
        if self.fix[at].stream.is_none() {
            let has_whims = self.phase == Phase::Safety;
            if let Some(place) = self.fix[at].connects(self.now_ns, self.machines.len(), has_whims) {
                let delay_ns = self.network.delay_ns();
                self.schedule.at(self.now_ns + delay_ns, Event::Connect { client: FIX_FROM + at, line: 0, replica: place });
            }
            return;
        }
        let may_ask = self.phase == Phase::Safety;
        {
            let mut checks = self.checks.borrow_mut();
            let engine = checks.replay().engine();
            let catalog = Catalog::of(engine.instruments().map(|view| view.spec), engine.assets());
            let asked = self.fix[at].acts((self.now_ns, self.density.think_times), may_ask, &catalog);
            asked.into_iter().for_each(|(seq, asked)| checks.on_fix_asked(at, seq, asked));
        }
        self.fix_writes(at);
    }

    /// Faults have stopped: it asks for one thing more, which comes with its next logon if it is not there.
    pub(super) fn fix_asks(&mut self, at: usize) {
        {
            let mut checks = self.checks.borrow_mut();
            let engine = checks.replay().engine();
            let catalog = Catalog::of(engine.instruments().map(|view| view.spec), engine.assets());
            let asked = self.fix[at].asks(self.now_ns, &catalog);
            asked.into_iter().for_each(|(seq, asked)| checks.on_fix_asked(at, seq, asked));
        }
        self.fix_writes(at);
    }

    fn fix_writes(&mut self, at: usize) {
        let Some(stream) = self.fix[at].stream else { return };
        let output = self.fix[at].take_output(self.now_ns);
        self.write(stream, Direction::ToReplica, Flow::Bytes(output));
    }

    fn fix_hangs_up(&mut self, at: usize) {
        self.fix_writes(at);
        if let Some(stream) = self.fix[at].stream {
            self.write(stream, Direction::ToReplica, Flow::End);
            self.write(stream, Direction::ToClient, Flow::End);
        }
        self.fix[at].on_lost(self.now_ns);
    }

    /// Its connection is there, or could not be made.
    pub(super) fn fix_connected(&mut self, at: usize, stream: Option<StreamId>) {
        let Some(stream) = stream else { return self.fix[at].on_lost(self.now_ns) };
        self.network.is_up(stream);
        let asked = self.fix[at].on_connected(self.now_ns, stream);
        asked.into_iter().for_each(|(seq, asked)| self.checks.borrow_mut().on_fix_asked(at, seq, asked));
        self.fix_writes(at);
    }

    /// Something comes to it.
    pub(super) fn fix_arrives(&mut self, at: usize, stream: StreamId, flow: Flow) -> Result<(), Violation> {
        if self.fix[at].stream != Some(stream) {
            return Ok(());
        }
        match flow {
            Flow::End => self.fix[at].on_lost(self.now_ns),
            Flow::Bytes(bytes) => {
                let received = self.fix[at].on_bytes(self.now_ns, &bytes);
                let received = received.map_err(|why| Violation::new("fix", format!("FIX client {at} gets {why}")))?;
                let account = self.fix[at].account;
                let mut checks = self.checks.borrow_mut();
                received.iter().for_each(|message| checks.on_fix_message(at, account, message));
                drop(checks);
                self.fix_writes(at);
            }
        }
        Ok(())
    }

    /// What a FIX client still waits for.
    pub(super) fn fix_waits_for(&self, at: usize) -> Option<String> {
        // A clock that was wrong has led the log's time ahead, and it takes no logon that was signed so long before.
        let log_ns = self.checks.borrow().replay().engine().time().0;
        if self.fix[at].signs_logons() && log_ns > EPOCH_NS + self.now_ns + LOG_AHEAD_NS_MAX {
            return None;
        }
        if !self.fix[at].is_logged_on() {
            return Some(format!("a logon: the last one was answered by {:?}", self.fix[at].last_logout()));
        }
        self.checks.borrow().fix_waits_for(at, self.fix[at].account)
    }
}
