//! Links between replicas, as far as their ends are reported: messages pass as the network lets them (`net.rs`), and a replica that
//! had a connection to a process that was killed learns of it from the dead one's system. A machine whose power fails says nothing.

use super::event::{Event, Phase};
use super::net::End;
use super::places::replica_id;
use super::world::World;
use crate::common::checks::Violation;

/// Links break this often in a storm, on average.
const BREAK_NS: u64 = 700_000_000;

impl World {
    pub(super) fn plan_link_break(&mut self) {
        let after_ns = self.links.within(1_000_000, 2 * BREAK_NS) * self.density.rarer;
        self.schedule.at(self.now_ns + after_ns, Event::LinkBreaks);
    }

    /// Something between two replicas ends their connection; the next one is there at once.
    pub(super) fn link_breaks(&mut self) {
        if self.phase != Phase::Safety {
            return;
        }
        self.plan_link_break();
        let in_use: Vec<usize> = (0..self.machines.len()).filter(|at| self.machines[*at].process.is_some()).collect();
        if in_use.len() < 2 {
            return;
        }
        let (one, other) = (self.links.pick(&in_use), self.links.pick(&in_use));
        // Mostly one of the leader's, which may cost something.
        let other = if self.links.one_in(3) { other } else { self.leader().unwrap_or(other) };
        if one != other {
            self.trace.line(self.now_ns, || format!("the link between {} and {} breaks", replica_id(one), replica_id(other)));
            self.report.faults += 1;
            self.report_lost(one, other);
            self.report_lost(other, one);
        }
    }

    /// The process on a machine has ended, and the machine goes on.
    pub(super) fn close_links(&mut self, replica: usize) {
        // In some venues something between them keeps it from being heard.
        if self.links_close {
            for other in 0..self.machines.len() {
                if other != replica {
                    self.report_lost(other, replica);
                }
            }
        }
    }

    fn report_lost(&mut self, at: usize, peer: usize) {
        if self.machines[at].process.is_some() && self.network.reaches(End::Replica(peer), End::Replica(at)) {
            let generation = self.machines[at].generation;
            let delay_ns = 20_000 + self.links.below(self.network.quality.delay_ns_max.max(1));
            self.schedule.at(self.now_ns + delay_ns, Event::LinkLost { at, generation, peer });
        }
    }

    pub(super) fn link_lost(&mut self, at: usize, generation: u64, peer: usize) -> Result<(), Violation> {
        if self.machines[at].generation != generation {
            return Ok(());
        }
        self.report.lost_links += 1;
        self.with_process(at, |process, moment| process.on_link_lost(moment, replica_id(peer)))
    }
}
