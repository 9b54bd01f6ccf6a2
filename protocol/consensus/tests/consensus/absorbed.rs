//! Several writes as one: whichever of them a log has already, it holds the same after that one as after each of them in order.

use proptest::prelude::*;
use walras_consensus::{
    Body, DurableLog, HardState, Members, MemoryLog, ReplicaId, Slot, SlotEntry, SnapshotMeta, Term, Ticket, Write,
};
use walras_types::LogIndex;

/// What a write does: where it cuts, as a share of what is held; how much it appends; whether a snapshot is installed before that.
type Plan = (u64, u64, Option<u64>);

fn members() -> Members {
    Members::of_voters([1, 2, 3].map(|id| ReplicaId::new(id).unwrap()))
}

/// Writes as a replica makes them: slots without gaps, nothing of what an installed snapshot covers.
fn writes(plans: &[Plan]) -> Vec<Write> {
    let (mut base, mut last) = (0, 0);
    let make = |(term, &(cut, count, installs)): (u64, &Plan)| {
        if let Some(ahead) = installs {
            base = last + 1 + ahead;
            last = base;
        }
        let from = base + 1 + (last - base) * cut / 16;
        let entry = |slot| SlotEntry { slot: Slot(slot), term: Term(term), body: Body::Pack(vec![slot as u8, term as u8].into()) };
        let entries: Vec<SlotEntry> = (from..from + count).map(entry).collect();
        last = entries.last().map_or(last, |entry| entry.slot.0);
        let installed =
            installs.map(|_| SnapshotMeta { slot: Slot(base), term: Term(term), log_index: LogIndex(base), members: members() });
        let hard_state = HardState { term: Term(term), vote: ReplicaId::new(term % 4), commit: Slot(base) };
        Write { ticket: Ticket(term), hard_state, installed, entries }
    };
    (1..).zip(plans).map(make).collect()
}

fn held_after(writes: impl IntoIterator<Item = Write>) -> MemoryLog {
    let mut log = MemoryLog::new(members());
    for write in writes {
        let Ok(()) = log.write(write);
    }
    let Ok(_) = log.sync();
    log
}

proptest! {
    #[test]
    fn it_comes_to_the_same(
        plans in prop::collection::vec((0..17_u64, 0..5_u64, prop::option::weighted(0.15, 0..4_u64)), 1..12),
        synced in 0..12_usize,
        reached in 0..12_usize,
    ) {
        let all = writes(&plans);
        let synced = synced.min(all.len() - 1);
        let reached = reached.clamp(synced, all.len());
        let mut owed = all[synced].clone();
        all[synced + 1..].iter().for_each(|later| owed.absorb(later.clone()));
        let expected = held_after(all.clone());
        // The first so many reached the disk before an attempt failed, and then all that is owed is written at once.
        let held = held_after(all[..reached].iter().cloned().chain([owed]));
        prop_assert_eq!(held.recover(), expected.recover());
    }
}

#[test]
#[should_panic(expected = "slots are written without gaps")]
fn a_gap_is_refused() {
    let [mut first, mut later] = <[Write; 2]>::try_from(writes(&[(0, 2, None), (16, 1, None)])).unwrap();
    later.entries[0].slot = Slot(7);
    first.absorb(later);
}
