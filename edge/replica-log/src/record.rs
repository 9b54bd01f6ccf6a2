//! Encoding of records, as `format.md` describes.

use crate::identity::Identity;
use walras_consensus::{Body, HardState, ReplicaId, Slot, SlotEntry, SnapshotMeta, Term};

/// Version of the records.
pub const REPLICA_LOG_VERSION: u32 = 1;

const HEAD: u8 = 0;
const STATE: u8 = 1;
const INSTALLED: u8 = 2;
const SLOT: u8 = 3;
const CLOSED: u8 = 4;

/// Bytes of a slot's record before its body.
const SLOT_HEADER_BYTES: usize = 17;

/// The log's owner, written at its start, at each opening, and before anything is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) version: u32,
    pub(crate) cluster_id: u64,
    pub(crate) replica: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Head(Head),
    State(HardState),
    Installed(SnapshotMeta),
    Slot(SlotEntry),
    Closed,
}

pub(crate) fn put_head(bytes: &mut Vec<u8>, identity: &Identity) {
    bytes.push(HEAD);
    bytes.extend_from_slice(&REPLICA_LOG_VERSION.to_le_bytes());
    bytes.extend_from_slice(&identity.cluster_id.to_le_bytes());
    bytes.extend_from_slice(&identity.replica.get().to_le_bytes());
}

pub(crate) fn put_state(bytes: &mut Vec<u8>, state: &HardState) {
    bytes.push(STATE);
    for word in [state.term.0, state.vote.map_or(0, ReplicaId::get), state.commit.0] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
}

pub(crate) fn put_installed(bytes: &mut Vec<u8>, meta: &SnapshotMeta) {
    bytes.push(INSTALLED);
    meta.encode(bytes);
}

pub(crate) fn put_slot(bytes: &mut Vec<u8>, entry: &SlotEntry) {
    bytes.push(SLOT);
    bytes.extend_from_slice(&entry.slot.0.to_le_bytes());
    bytes.extend_from_slice(&entry.term.0.to_le_bytes());
    entry.body.encode(bytes);
}

pub(crate) fn slot_record_bytes(entry: &SlotEntry) -> usize {
    SLOT_HEADER_BYTES + entry.body.encoded_bytes()
}

pub(crate) fn put_closed(bytes: &mut Vec<u8>) {
    bytes.push(CLOSED);
}

/// Slot and term of a slot's record, without decoding its body.
pub(crate) fn peek_slot(bytes: &[u8]) -> Option<(Slot, Term)> {
    let (kind, rest) = bytes.split_first()?;
    (*kind == SLOT && bytes.len() > SLOT_HEADER_BYTES).then(|| Some((Slot(word(rest, 0)?), Term(word(rest, 1)?))))?
}

/// Decodes a record. A head of another version is still a head.
pub(crate) fn decode(bytes: &[u8]) -> Option<Record> {
    let (kind, rest) = bytes.split_first()?;
    match *kind {
        HEAD => {
            let (version, ids) = rest.split_first_chunk::<4>()?;
            let version = u32::from_le_bytes(*version);
            let is_known_length = version != REPLICA_LOG_VERSION || ids.len() == 16;
            is_known_length.then(|| Some(Record::Head(Head { version, cluster_id: word(ids, 0)?, replica: word(ids, 1)? })))?
        }
        STATE if rest.len() == 24 => Some(Record::State(HardState {
            term: Term(word(rest, 0)?),
            vote: ReplicaId::new(word(rest, 1)?),
            commit: Slot(word(rest, 2)?),
        })),
        INSTALLED => SnapshotMeta::decode(rest).map(Record::Installed),
        SLOT => {
            let (slot, term) = peek_slot(bytes)?;
            let body = Body::decode(&bytes[SLOT_HEADER_BYTES..])?;
            Some(Record::Slot(SlotEntry { slot, term, body }))
        }
        CLOSED if rest.is_empty() => Some(Record::Closed),
        _ => None,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at * 8..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use walras_consensus::{MemberChange, Members};
    use walras_types::LogIndex;

    #[test]
    fn records_survive_a_round_trip_and_nothing_shorter_or_longer_decodes_to_them() {
        let id = |id| ReplicaId::new(id).unwrap();
        let members = Members { learners: [id(9)].into(), ..Members::of_voters([id(1), id(2)]) };
        let identity = Identity { cluster_id: 7, replica: id(2), genesis: members.clone() };
        let meta = SnapshotMeta { slot: Slot(5), term: Term(2), log_index: LogIndex(40), members };
        let state = HardState { term: Term(3), vote: Some(id(2)), commit: Slot(4) };
        let slot = |body| SlotEntry { slot: Slot(6), term: Term(3), body };
        let bodies =
            [Body::Empty, Body::Pack(vec![1, 2].into()), Body::Members(vec![]), Body::Members(vec![MemberChange::Remove(id(1))])];
        let mut all: Vec<(Record, Vec<u8>)> = Vec::new();
        let mut note = |record, put: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Vec::new();
            put(&mut bytes);
            all.push((record, bytes));
        };
        note(Record::Head(Head { version: REPLICA_LOG_VERSION, cluster_id: 7, replica: 2 }), &|b| put_head(b, &identity));
        note(Record::State(state), &|b| put_state(b, &state));
        note(Record::State(HardState::default()), &|b| put_state(b, &HardState::default()));
        note(Record::Installed(meta.clone()), &|b| put_installed(b, &meta));
        note(Record::Closed, &put_closed);
        for body in bodies {
            let entry = slot(body);
            note(Record::Slot(entry.clone()), &|b| {
                put_slot(b, &entry);
                assert_eq!(b.len(), slot_record_bytes(&entry));
            });
        }
        for (record, bytes) in all {
            assert_eq!(decode(&bytes), Some(record.clone()));
            let is_slot = matches!(record, Record::Slot(_));
            assert_eq!(peek_slot(&bytes), is_slot.then_some((Slot(6), Term(3))));
            for cut in 0..bytes.len() {
                assert_ne!(decode(&bytes[..cut]), Some(record.clone()));
            }
            assert_ne!(decode(&[&bytes[..], &[0]].concat()), Some(record));
        }
    }
}
