//! What stays of a log for replicas that are behind, and what goes where there are none.

use crate::common::{id, meta, open, sim, slot_entry, take_snapshot, tiny, write};
use walras_consensus::{Members, SnapshotMeta};

/// Where a log of 200 slots begins after snapshots of slots 100 and 200, if the members were these.
fn begins(members: &Members) -> u64 {
    // Some ten slots fill a segment.
    let mut opened = open(&sim(1), &tiny(8, 1_000)).unwrap();
    for slot in 1..=200 {
        opened.log.write(&write(slot, 1, slot, vec![slot_entry(slot, 1, 300)])).unwrap();
        opened.log.sync().unwrap();
    }
    for slot in [100, 200] {
        take_snapshot(&opened, slot, 1).unwrap();
        opened.log.let_go(&SnapshotMeta { members: members.clone(), ..meta(slot, 1) }).unwrap();
    }
    opened.log.slots().start.0
}

#[test]
fn slots_stay_for_other_members_and_go_where_there_are_none() {
    assert_eq!(begins(&Members::of_voters([1, 2].map(id))), 1, "a thousand slots stay for the other one");
    let alone = begins(&Members::of_voters([id(2)]));
    assert!((80..=101).contains(&alone), "alone, it begins with the snapshot before, or shortly before that: {alone}");
}
