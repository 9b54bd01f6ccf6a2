//! Fast fail-over: a follower that lost its leader does not wait for a random election timeout.
//!
//! A follower has lost its leader if the link to it broke, or if it heard nothing from it for the shortest election timeout. When a
//! process dies, its operating system closes all of its connections at once; a machine that loses power or network is only silent.
//! The follower forgets the leader and starts a pre-vote a moment later. A pre-vote opens no term, and replicas that still hear the
//! leader refuse it. So a single broken link costs nothing, and if all followers have lost the leader, a majority agrees within
//! milliseconds. Each follower starts at its own time, by its index among the voters; otherwise two would stand at once and split
//! the votes, which random timeouts avoid by waiting longer. Each tries a few times, because the others may notice the death a little
//! later. Only the time of the first pre-vote differs from the ordinary course after a timeout; the rules of the election are the same.

use crate::effect::Effect;
use crate::ids::ReplicaId;
use crate::replica::Replica;
use raft::StateRole;

/// Delay until the first voter's pre-vote.
const FIRST_NS: u64 = 2_000_000;
/// Delay between the pre-votes of two voters: longer than a request, an answer and a durable vote take on a local network.
const STEP_NS: u64 = 8_000_000;
/// Maximum random addition, so that voters that a network with equal delays keeps in step do not stay so.
const SPREAD_NS: u64 = 2_000_000;
/// Pre-votes in a row before the ordinary timeout applies.
const ATTEMPTS: u8 = 8;

/// Pre-votes to be started without the ordinary timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FastFailOver {
    /// The lost leader.
    lost: ReplicaId,
    /// The term in which this applies.
    term: u64,
    /// Pre-votes left.
    attempts: u8,
}

impl Replica {
    /// The link to a replica was closed by the peer or broke. The host calls this once for each link that was up, but not for links
    /// that are merely silent, were closed by this side, or were replaced by a new one.
    pub fn on_link_lost(&mut self, now_ns: u64, peer: ReplicaId, effects: &mut Vec<Effect>) {
        self.pass(now_ns);
        self.node.report_unreachable(peer.get());
        if self.leader_to_lose() == Some(peer) {
            self.forget_leader(peer);
        }
        self.settle(effects);
    }

    /// Before each tick: whether it is the one by which the leader was silent for too long.
    pub(crate) fn lose_silent_leader(&mut self) {
        if self.node.raft.election_elapsed + 1 < self.node.raft.election_timeout() {
            return;
        }
        if let Some(leader) = self.leader_to_lose() {
            self.forget_leader(leader);
        } else if self.follows_without_a_vote() {
            let term = self.node.raft.term;
            self.node.raft.become_follower(term, raft::INVALID_ID);
        }
    }

    /// Whether it knows a leader and is no voter: a learner, or removed. The library would believe in that leader for ever, since no
    /// election of its own ends it.
    fn follows_without_a_vote(&self) -> bool {
        let raft = &self.node.raft;
        let is_follower = raft.state == StateRole::Follower && raft.leader_id != raft::INVALID_ID;
        is_follower && !raft.promotable() && self.installing.is_none()
    }

    /// Ticks after which a pre-vote follows, if nothing is heard: of the leader, or at all. Who has no vote forgets the leader instead.
    pub(crate) fn silence_ticks(&self) -> usize {
        let loses = self.leader_to_lose().is_some() || self.follows_without_a_vote();
        if loses { self.node.raft.election_timeout() } else { self.timeouts.current() }
    }

    /// The leader whom this follower replaces fast when it is lost.
    fn leader_to_lose(&self) -> Option<ReplicaId> {
        let (raft, settings) = (&self.node.raft, &self.settings);
        let is_fast = settings.fast_fail_over
            && settings.pre_vote
            && settings.check_quorum
            && raft.state == StateRole::Follower
            && raft.promotable()
            && self.installing.is_none();
        ReplicaId::new(raft.leader_id).filter(|_| is_fast)
    }

    fn forget_leader(&mut self, lost: ReplicaId) {
        let term = self.node.raft.term;
        // It keeps its vote and forgets only the leader.
        self.node.raft.become_follower(term, raft::INVALID_ID);
        self.fast_fail_over = Some(FastFailOver { lost, term, attempts: ATTEMPTS });
        self.impose_timeout();
        self.shorten_timeout();
    }

    /// After each tick: schedules the next pre-vote, or ends the fast fail-over.
    pub(crate) fn continue_fast_fail_over(&mut self) {
        let raft = &self.node.raft;
        let Some(fast) = self.fast_fail_over else { return };
        let is_over = raft.term != fast.term || raft.leader_id != raft::INVALID_ID || fast.attempts == 0;
        if is_over || raft.state == StateRole::Candidate || raft.state == StateRole::Leader {
            self.fast_fail_over = None;
        } else if raft.state == StateRole::PreCandidate && raft.election_elapsed == 0 {
            // A pre-vote was started in this tick.
            self.shorten_timeout();
        }
    }

    /// Shortens the current timeout to this voter's delay.
    fn shorten_timeout(&mut self) {
        let Some(fast) = &mut self.fast_fail_over else { return };
        fast.attempts = fast.attempts.saturating_sub(1);
        let (me, lost) = (self.settings.id, fast.lost);
        let place = self.members().voters.iter().filter(|id| **id != lost).position(|id| *id == me).unwrap_or(0) as u64;
        let random_ns = self.timeouts.next_u64() % SPREAD_NS;
        let wait_ns = FIRST_NS + place * STEP_NS + random_ns;
        let ticks = usize::try_from(wait_ns.div_ceil(self.settings.tick_ns)).unwrap_or(usize::MAX);
        let raft = &mut self.node.raft;
        raft.election_elapsed = raft.election_elapsed.max(self.timeouts.current().saturating_sub(ticks));
    }
}
