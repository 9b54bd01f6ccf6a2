//! A follower that lost the link to its leader: what it does instead of waiting for its timeout.
//!
//! A process that dies has its connections closed by its system, at once and everywhere. So whoever loses the link to its leader forgets it and
//! asks, a moment later, whether it would be elected. That question (the pre-vote) opens no term: those who still hear the leader do not answer
//! it, so a link that merely broke costs nobody anything, and where all have lost it a majority agrees within milliseconds. Each asks at
//! a time of its own, by its place among the voters, or two would stand at once and split the votes; and a few times, since the others may notice
//! the death a little later. Nothing but the moment of the first question is other than it would be after a timeout: who may lead is decided as ever.

use crate::effect::Effect;
use crate::ids::ReplicaId;
use crate::replica::Replica;
use raft::StateRole;

/// Until the first of the voters asks.
const FIRST_NS: u64 = 2_000_000;
/// Between the questions of two neighbours: longer than a question, an answer and a written vote take on a local network.
const STEP_NS: u64 = 8_000_000;
/// A random part of it is added, so that those whom a network of equal delays keeps in step part after all.
const SPREAD_NS: u64 = 2_000_000;
/// Questions in a row before the usual wait.
const ATTEMPTS: u8 = 8;

/// Questions to be asked without the usual wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Haste {
    /// Who led.
    lost: ReplicaId,
    /// In this term alone.
    term: u64,
    /// Still to be asked.
    attempts: u8,
}

impl Replica {
    /// The link to a replica was closed from its end or broke: its process is gone, or something between the two. Say it once for each link that
    /// was up. Not for links that are merely silent, those closed here, or those that a new one took the place of.
    pub fn on_link_lost(&mut self, now_ns: u64, peer: ReplicaId, effects: &mut Vec<Effect>) {
        self.pass(now_ns);
        self.node.report_unreachable(peer.get());
        if self.forgets_leader(peer) {
            let term = self.node.raft.term;
            // It keeps its vote: only what it heard of the leader is forgotten.
            self.node.raft.become_follower(term, raft::INVALID_ID);
            self.haste = Some(Haste { lost: peer, term, attempts: ATTEMPTS });
            self.impose_timeout();
            self.make_haste();
        }
        self.settle(effects);
    }

    fn forgets_leader(&self, peer: ReplicaId) -> bool {
        let (raft, settings) = (&self.node.raft, &self.settings);
        settings.fail_over_on_lost_link
            && settings.pre_vote
            && settings.check_quorum
            && raft.state == StateRole::Follower
            && raft.leader_id == peer.get()
            && raft.promotable()
            && self.installing.is_none()
    }

    /// After each tick: whether the next question comes soon.
    pub(crate) fn go_on_in_haste(&mut self) {
        let raft = &self.node.raft;
        let Some(haste) = self.haste else { return };
        let is_over = raft.term != haste.term || raft.leader_id != raft::INVALID_ID || haste.attempts == 0;
        if is_over || raft.state == StateRole::Candidate || raft.state == StateRole::Leader {
            self.haste = None;
        } else if raft.state == StateRole::PreCandidate && raft.election_elapsed == 0 {
            // It asked just now.
            self.make_haste();
        }
    }

    /// Lets most of the wait pass.
    fn make_haste(&mut self) {
        let Some(haste) = &mut self.haste else { return };
        haste.attempts = haste.attempts.saturating_sub(1);
        let (me, lost) = (self.settings.id, haste.lost);
        let place = self.members().voters.iter().filter(|id| **id != lost).position(|id| *id == me).unwrap_or(0) as u64;
        let random_ns = self.timeouts.next_u64() % SPREAD_NS;
        let wait_ns = FIRST_NS + place * STEP_NS + random_ns;
        let ticks = usize::try_from(wait_ns.div_ceil(self.settings.tick_ns)).unwrap_or(usize::MAX);
        let raft = &mut self.node.raft;
        raft.election_elapsed = raft.election_elapsed.max(self.timeouts.current().saturating_sub(ticks));
    }
}
