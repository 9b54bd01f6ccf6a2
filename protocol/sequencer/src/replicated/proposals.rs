//! What this replica has taken and the log has not decided: commands that collect, and packs on their way.

use std::collections::{BTreeMap, VecDeque};

use walras_consensus::{Pack, Slot, Term};
use walras_types::{Ordinal, SessionId, SessionSeq, TimeNs};
use walras_wire::Command;
use walras_wire::batch::{BlockProposal, UnwritableProposal};

use crate::entry::{SignedBy, encode_clearing, encode_entry, encode_signed};

/// What a pack adds to an entry's bytes, at most.
const ENTRY_OVERHEAD_BYTES: usize = 16;

/// A pack that was proposed, and who sent its commands.
#[derive(Debug)]
pub(super) struct Proposed<O> {
    slot: Slot,
    term: Term,
    origins: Vec<Option<O>>,
}

/// What became of packs when a slot was decided.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decided<O> {
    /// Who sent the entries of the pack that was decided, one each; empty when it was another replica's.
    pub(super) origins: Vec<Option<O>>,
    /// Those whose packs will never be in the log.
    pub(super) lost: Vec<O>,
}

/// What a leader collects in its term.
#[derive(Debug)]
pub(super) struct Collecting<O> {
    pub(super) term: Term,
    /// Stamp of the last command taken.
    time: TimeNs,
    pack: Pack,
    origins: Vec<Option<O>>,
    /// The place that follows the last one taken in this term, by session. Begins empty with every term: what an earlier leader
    /// took may be lost, so only the state says what counts.
    next: BTreeMap<SessionId, SessionSeq>,
    scratch: Vec<u8>,
}

impl<O> Collecting<O> {
    /// Stamps go on after `time`, the last one in the log.
    pub(super) fn new(term: Term, time: TimeNs) -> Self {
        let (pack, origins, next, scratch) = (Pack::new(), Vec::new(), BTreeMap::new(), Vec::new());
        Self { term, time, pack, origins, next, scratch }
    }

    /// The place that follows the last one that was taken from a session in this term.
    pub(super) fn next_of(&self, session: SessionId) -> Option<SessionSeq> {
        self.next.get(&session).copied()
    }

    /// Takes a command.
    pub(super) fn push(&mut self, now: TimeNs, ordinal: Option<Ordinal>, signed: &SignedBy, command: &Command, origin: Option<O>) {
        self.time = self.time.max(now);
        self.scratch.clear();
        match signed {
            SignedBy { key: None, nonce: None } => encode_entry(self.time, ordinal, command, &mut self.scratch),
            SignedBy { key, nonce } => encode_signed(self.time, *key, nonce.as_deref(), command, &mut self.scratch),
        }
        self.pack.push(&self.scratch);
        self.origins.push(origin);
        if let Some(Ordinal { session, session_seq }) = ordinal {
            self.next.insert(session, session_seq.next());
        }
    }

    /// Takes a clearing, if it has bytes and those fit within `room` in all; whether it did.
    pub(super) fn push_clearing(&mut self, now: TimeNs, block: &BlockProposal, room: usize) -> Result<bool, UnwritableProposal> {
        self.time = self.time.max(now);
        self.scratch.clear();
        encode_clearing(self.time, block, &mut self.scratch)?;
        let fits = self.pack.encoded_bytes() + self.scratch.len() + ENTRY_OVERHEAD_BYTES <= room;
        if fits {
            self.pack.push(&self.scratch);
            self.origins.push(None);
        }
        Ok(fits)
    }

    /// A session that is closed will not be asked for again.
    pub(super) fn forget(&mut self, session: SessionId) {
        self.next.remove(&session);
    }

    pub(super) fn time(&self) -> TimeNs {
        self.time
    }

    pub(super) fn len(&self) -> usize {
        self.pack.len()
    }

    pub(super) fn encoded_bytes(&self) -> usize {
        self.pack.encoded_bytes()
    }

    /// What has collected.
    pub(super) fn take(&mut self) -> (Pack, Vec<Option<O>>) {
        (std::mem::take(&mut self.pack), std::mem::take(&mut self.origins))
    }

    /// Those who wait for what has collected, which stays.
    pub(super) fn take_origins(&mut self) -> impl Iterator<Item = O> {
        self.origins.iter_mut().filter_map(Option::take)
    }

    pub(super) fn into_origins(self) -> impl Iterator<Item = O> {
        self.origins.into_iter().flatten()
    }
}

/// Packs on their way, in the order in which they were proposed. They outlive the term: a new leader may yet decide them.
#[derive(Debug)]
pub(super) struct OnTheirWay<O> {
    packs: VecDeque<Proposed<O>>,
    /// Commands in all of them.
    commands: usize,
}

impl<O> OnTheirWay<O> {
    pub(super) fn new() -> Self {
        Self { packs: VecDeque::new(), commands: 0 }
    }

    pub(super) fn push(&mut self, (slot, term): (Slot, Term), origins: Vec<Option<O>>) {
        self.commands += origins.len();
        self.packs.push_back(Proposed { slot, term, origins });
    }

    pub(super) fn packs(&self) -> usize {
        self.packs.len()
    }

    pub(super) fn commands(&self) -> usize {
        self.commands
    }

    /// Those who wait for what is on its way, which stays so.
    pub(super) fn take_origins(&mut self) -> impl Iterator<Item = O> {
        self.packs.iter_mut().flat_map(|proposed| proposed.origins.iter_mut().filter_map(Option::take))
    }

    /// A slot was decided. A pack proposed for it in another term, or for one before it, never will be.
    pub(super) fn decide(&mut self, slot: Slot, term: Term) -> Decided<O> {
        let mut decided = Decided { origins: Vec::new(), lost: Vec::new() };
        let mut at = 0;
        while let Some(proposed) = self.packs.get(at) {
            if proposed.slot > slot {
                at += 1;
                continue;
            }
            let is_it = (proposed.slot, proposed.term) == (slot, term);
            let Some(Proposed { origins, .. }) = self.packs.remove(at) else { break };
            self.commands -= origins.len();
            if is_it {
                decided.origins = origins;
            } else {
                decided.lost.extend(origins.into_iter().flatten());
            }
        }
        decided
    }

    /// This replica leads `term`, and has handed out all that was decided before. What it proposed in an earlier term and was not
    /// decided is not in its log, whose end is of this term: no later leader will have it either, since terms ascend in every log.
    ///
    /// Without this, packs beyond the end of the log would count as on their way until something is proposed for their slots; and
    /// nothing would be, when there are as many of them as may be on their way.
    pub(super) fn lose_before(&mut self, term: Term) -> impl Iterator<Item = O> {
        let (gone, left): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.packs).into_iter().partition(|p| p.term < term);
        self.packs = left;
        self.commands = self.packs.iter().map(|proposed| proposed.origins.len()).sum();
        gone.into_iter().flat_map(|proposed| proposed.origins).flatten()
    }

    /// A snapshot took the place of the slots up to this one: their outcomes are not reported.
    pub(super) fn skip_to(&mut self, slot: Slot) -> impl Iterator<Item = O> {
        let (gone, left): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.packs).into_iter().partition(|p| p.slot <= slot);
        self.packs = left;
        self.commands = self.packs.iter().map(|proposed| proposed.origins.len()).sum();
        gone.into_iter().flat_map(|proposed| proposed.origins).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packs(places: &[(u64, u64)]) -> OnTheirWay<(u64, u64)> {
        let mut packs = OnTheirWay::new();
        for &(slot, term) in places {
            packs.push((Slot(slot), Term(term)), vec![Some((slot, term)), None]);
        }
        packs
    }

    #[test]
    fn a_pack_is_known_by_slot_and_term() {
        let mut mine = packs(&[(5, 1), (6, 1), (7, 1), (6, 3)]);
        assert_eq!(mine.decide(Slot(5), Term(1)), Decided { origins: vec![Some((5, 1)), None], lost: vec![] });
        let decided = mine.decide(Slot(6), Term(3));
        assert_eq!(decided, Decided { origins: vec![Some((6, 3)), None], lost: vec![(6, 1)] });
        assert_eq!(mine.decide(Slot(7), Term(4)), Decided { origins: vec![], lost: vec![(7, 1)] }, "another's stands there");
        assert_eq!((mine.packs(), mine.commands()), (0, 0));
    }

    #[test]
    fn those_who_gave_up_waiting_are_not_answered_and_their_commands_stay() {
        let mut mine = packs(&[(5, 1), (6, 1)]);
        assert_eq!(mine.take_origins().collect::<Vec<_>>(), [(5, 1), (6, 1)]);
        assert_eq!((mine.packs(), mine.commands()), (2, 4));
        assert_eq!(mine.decide(Slot(5), Term(1)), Decided { origins: vec![None, None], lost: vec![] });
        assert_eq!(mine.take_origins().count(), 0);
    }

    #[test]
    fn a_slot_without_a_pack_decides_those_before_it() {
        let mut mine = packs(&[(5, 1), (6, 1)]);
        assert_eq!(mine.decide(Slot(6), Term(2)).lost, [(5, 1), (6, 1)]);
        let mut mine = packs(&[(5, 1), (9, 1)]);
        assert_eq!(mine.skip_to(Slot(8)).collect::<Vec<_>>(), [(5, 1)]);
        assert_eq!((mine.packs(), mine.commands()), (1, 2));
    }

    #[test]
    fn what_a_former_term_left_beyond_the_log_is_lost_when_a_new_one_begins() {
        let mut mine = packs(&[(5, 1), (6, 1), (7, 1), (6, 3)]);
        assert_eq!(mine.lose_before(Term(3)).collect::<Vec<_>>(), [(5, 1), (6, 1), (7, 1)]);
        assert_eq!((mine.packs(), mine.commands()), (1, 2), "nothing of it holds up what is proposed now");
        assert_eq!(mine.decide(Slot(6), Term(3)).origins, [Some((6, 3)), None]);
    }
}
