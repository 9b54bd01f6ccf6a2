//! A cluster of one: it needs no votes, no acknowledgements and no messages.
//!
//! A venue on one machine is a cluster of one, and can grow later. The only voter elects itself as soon as it takes part.
//! Everything durable on its disk is decided, so a start applies all of it at once. While it leads it has nothing to send, so it
//! asks for no timer.

use crate::durable::{Body, Recovered};
use crate::ids::ReplicaId;
use crate::members::Members;
use crate::replica::Replica;
use raft::StateRole;

/// Whether this replica alone decides.
fn decides_alone(members: &Members, id: ReplicaId) -> bool {
    members.voters.len() == 1 && members.voters.contains(&id) && !members.is_joint()
}

/// Marks what a sole voter has on its disk as decided, up to the first change of members; after that, other members may vote.
pub(crate) fn decide_what_is_durable(recovered: &mut Recovered, id: ReplicaId) {
    if !decides_alone(&recovered.snapshot.members, id) {
        return;
    }
    for entry in &recovered.entries {
        recovered.hard_state.commit = recovered.hard_state.commit.max(entry.slot);
        if matches!(entry.body, Body::Members(_)) {
            break;
        }
    }
}

impl Replica {
    /// Whether it can elect itself, and does not lead yet.
    pub(crate) fn stands_alone(&self) -> bool {
        self.node.raft.state != StateRole::Leader && decides_alone(self.members(), self.settings.id)
    }

    /// Whether it leads without any other member, so that the passing of time changes nothing.
    pub(crate) fn leads_alone(&self) -> bool {
        self.node.raft.state == StateRole::Leader
            && decides_alone(self.members(), self.settings.id)
            && self.members().learners.is_empty()
    }

    /// Skips the election timeout, because no other member can be elected.
    pub(crate) fn stand_at_once(&mut self) {
        if self.stands_alone() {
            let raft = &mut self.node.raft;
            raft.election_elapsed = raft.election_elapsed.max(self.timeouts.current().saturating_sub(1));
        }
    }

    /// Discounts the time in which it led alone; otherwise all deadlines would fire when the first member joins.
    pub(crate) fn forget_time_alone(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.was_alone) {
            self.skip_to(now_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::{SlotEntry, Write};
    use crate::effect::{Effect, Role};
    use crate::ids::{Slot, Term, Ticket};
    use crate::members::MemberChange;
    use crate::pack::Pack;
    use crate::settings::Settings;

    const MS: u64 = 1_000_000;

    fn id(number: u64) -> ReplicaId {
        ReplicaId::new(number).expect("not 0")
    }

    /// One replica with a disk of adjustable speed, and what it wrote.
    struct One {
        replica: Replica,
        written: Vec<Write>,
        effects: Vec<Effect>,
        applied: u64,
    }

    impl One {
        fn start(now_ns: u64, recovered: Recovered) -> Self {
            let mut effects = Vec::new();
            let replica = Replica::start(now_ns, Settings::new(1, id(1)), recovered, 7, &mut effects).expect("sound");
            let mut one = Self { replica, written: Vec::new(), effects, applied: 0 };
            one.settle();
            one
        }

        fn settle(&mut self) {
            loop {
                let effects = std::mem::take(&mut self.effects);
                if effects.is_empty() {
                    return;
                }
                for effect in effects {
                    match effect {
                        Effect::Persist(write) => {
                            let ticket = write.ticket;
                            self.written.push(write);
                            self.replica.on_persisted(ticket, &mut self.effects);
                        }
                        Effect::Committed(committed) => self.applied += committed.pack.len() as u64,
                        Effect::Send { .. } => panic!("there is nobody to send it to"),
                        Effect::MembersChanged { .. } | Effect::Role(_) | Effect::Leading { .. } | Effect::ReadReady { .. } => {}
                        Effect::SnapshotWanted { .. } | Effect::SendSnapshot { .. } | Effect::Install(_) => {}
                    }
                }
            }
        }

        fn at(&mut self, now_ns: u64) {
            self.replica.on_timer(now_ns, &mut self.effects);
            self.settle();
        }

        fn propose(&mut self) {
            let mut pack = Pack::new();
            pack.push(b"one");
            self.replica.propose(pack, &mut self.effects).expect("it leads");
            self.settle();
        }

        fn leads(&self) -> bool {
            self.replica.status().role == Role::Leader
        }

        /// The durable content of the disk.
        fn recovered(&self, of: Recovered) -> Recovered {
            let mut recovered = of;
            for write in &self.written {
                recovered.hard_state = write.hard_state;
                recovered.entries.extend(write.entries.iter().cloned());
            }
            recovered
        }
    }

    fn genesis() -> Recovered {
        Recovered::genesis(Members::of_voters([id(1)]))
    }

    #[test]
    fn it_leads_within_a_tick_and_then_asks_for_no_timer() {
        let mut one = One::start(5 * MS, genesis());
        assert!(one.replica.next_deadline_ns() <= 6 * MS, "{}", one.replica.next_deadline_ns());
        one.at(6 * MS);
        assert!(one.leads());
        assert_eq!(one.replica.next_deadline_ns(), u64::MAX);
        one.propose();
        assert_eq!((one.applied, one.replica.next_deadline_ns()), (1, u64::MAX));
    }

    #[test]
    fn a_restart_applies_all_that_is_on_its_disk_before_it_leads() {
        let mut one = One::start(0, genesis());
        one.at(MS);
        (0..3).for_each(|_| one.propose());
        let mut disk = one.recovered(genesis());
        // The last commit was never written.
        assert!(disk.hard_state.commit < disk.entries.last().expect("it wrote").slot);
        let again = One::start(0, disk.clone());
        assert_eq!((again.applied, again.leads()), (3, false));
        // After another member appears in the log, the rest is not decided by this replica alone.
        let last = disk.entries.last().expect("it wrote").slot;
        let term = disk.hard_state.term;
        let joins = SlotEntry { slot: last.next(), term, body: Body::Members(vec![MemberChange::AddLearner(id(2))]) };
        let after = SlotEntry { slot: last.next().next(), term, body: Body::Empty };
        disk.entries.extend([joins, after]);
        decide_what_is_durable(&mut disk, id(1));
        assert_eq!(disk.hard_state.commit, last.next());
    }

    #[test]
    fn those_who_are_not_alone_are_left_as_they_are() {
        let entry = SlotEntry { slot: Slot(1), term: Term(1), body: Body::Empty };
        for (voters, me) in [(vec![1, 2], 1), (vec![1], 2)] {
            let mut recovered = Recovered::genesis(Members::of_voters(voters.into_iter().map(id)));
            recovered.entries.push(entry.clone());
            decide_what_is_durable(&mut recovered, id(me));
            assert_eq!(recovered.hard_state.commit, Slot(0));
        }
    }

    #[test]
    fn a_day_alone_does_not_make_it_resign_when_another_one_joins() {
        let mut one = One::start(0, genesis());
        one.at(MS);
        let day_ns = 86_400_000 * MS;
        one.replica.change_members(&[MemberChange::AddLearner(id(2))], &mut one.effects).expect("a learner may always join");
        // Messages to the learner are dropped here.
        let mut left = std::mem::take(&mut one.effects);
        while !left.is_empty() {
            for effect in std::mem::take(&mut left) {
                if let Effect::Persist(Write { ticket: Ticket(ticket), .. }) = effect {
                    one.replica.on_persisted(Ticket(ticket), &mut left);
                }
            }
        }
        let mut effects = Vec::new();
        one.replica.on_timer(day_ns, &mut effects);
        let sent = effects.iter().filter(|effect| matches!(effect, Effect::Send { .. })).count();
        assert!(one.leads() && sent <= 1, "{sent} messages at once");
        assert!(one.replica.next_deadline_ns() <= day_ns + 30 * MS, "heartbeats are due again");
    }
}
