//! Messages between replicas as bytes. The encoding is our own, so that bytes from a network never reach the library's decoder.
//!
//! ```text
//!  0 version u8   1 kind u8   2 rejected u8   3 zero u8   4 cluster u64   12 from u64   20 to u64   28 term u64   36 slot u64
//! 44 log_term u64   52 commit u64   60 commit_term u64   68 reject_hint u64   76 context_len u32   80 entry_count u32
//! 84 context, then for each entry: term u64, body kind u8, length u32, bytes; or, in a snapshot message, its position
//! ```
//!
//! Entries stand without gaps, the first after `slot`. A snapshot message holds slot, term and log index of the snapshot (u64 each)
//! and its members (four lists: count u32, ids u64): the state itself goes another way. Integers are little-endian.

use crate::durable::{Body, SlotEntry, SnapshotMeta};
use crate::ids::{ReplicaId, Slot, Term};
use crate::members::{MEMBERS_MAX, Members, decode_changes, encode_changes};
use crate::pack::Packed;
use crate::window::{entry_from_raft, entry_to_raft, snapshot_from_raft, snapshot_to_raft};
use bytes::{Buf, Bytes};
use raft::eraftpb::{Message, MessageType};
use std::collections::BTreeSet;
use walras_types::LogIndex;

/// Version of the messages.
pub const MESSAGE_VERSION: u8 = 1;

const HEADER_BYTES: usize = 84;
const SENDER_AT: usize = 12;
const ENTRY_HEADER_BYTES: usize = 13;
/// The context is a read's token or the mark of a leadership transfer; both are shorter.
const CONTEXT_BYTES_MAX: usize = 64;
/// Terms and slots stay far below this, so that additions do not overflow.
const NUMBER_MAX: u64 = 1 << 62;

/// Why bytes are not a message for this replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    /// Not a message, truncated, or inconsistent.
    #[error("a message between replicas is not well-formed ({0}); check that only replicas of this program connect here")]
    Malformed(&'static str),
    /// Another version of the messages.
    #[error("a message between replicas has version {found}, this program speaks {MESSAGE_VERSION}; run compatible versions")]
    Version {
        /// The one in the message.
        found: u8,
    },
    /// It belongs to another cluster.
    #[error("a message from cluster {found:016x} came to cluster {expected:016x}; correct the addresses in the configuration")]
    Cluster {
        /// The one in the message.
        found: u64,
        /// This replica's.
        expected: u64,
    },
    /// It is for another replica, or claims to be from this one.
    #[error("a message from replica {from} to {to} came to replica {id}; two replicas share an id or an address is wrong")]
    Address {
        /// Its sender.
        from: ReplicaId,
        /// Its receiver.
        to: ReplicaId,
        /// This replica.
        id: ReplicaId,
    },
}

/// The kinds sent between replicas. The library's other kinds are local: hosts send proposals to the leader themselves.
pub(crate) const KINDS: &[MessageType] = &[
    MessageType::MsgAppend,
    MessageType::MsgAppendResponse,
    MessageType::MsgRequestVote,
    MessageType::MsgRequestVoteResponse,
    MessageType::MsgSnapshot,
    MessageType::MsgHeartbeat,
    MessageType::MsgHeartbeatResponse,
    MessageType::MsgTimeoutNow,
    MessageType::MsgReadIndex,
    MessageType::MsgReadIndexResp,
    MessageType::MsgRequestPreVote,
    MessageType::MsgRequestPreVoteResponse,
];

/// The sender that a message states; `None` if it is too short. The host must compare this with the link on which the message
/// arrived; the replica does not check it.
#[must_use]
pub fn said_sender(bytes: &[u8]) -> Option<ReplicaId> {
    ReplicaId::new(u64::from_le_bytes(*bytes.get(SENDER_AT..)?.first_chunk()?))
}

/// The snapshot that a message announces, with its receiver.
pub(crate) fn announced_snapshot(message: &Message) -> Option<SnapshotMeta> {
    (message.get_msg_type() == MessageType::MsgSnapshot).then(|| snapshot_from_raft(message.get_snapshot())).flatten()
}

pub(crate) fn encode(cluster_id: u64, message: &Message) -> Vec<u8> {
    let kind = message.get_msg_type();
    let at = KINDS.iter().position(|k| *k == kind).expect("the library sends no other kinds while proposals are not forwarded");
    let entries_bytes: usize = message.entries.iter().map(|e| ENTRY_HEADER_BYTES + e.data.len()).sum();
    // One spare byte, so that the host can append a kind of its own without reallocation.
    let mut bytes = Vec::with_capacity(HEADER_BYTES + message.context.len() + entries_bytes + 1);
    bytes.extend_from_slice(&[MESSAGE_VERSION, u8::try_from(at).expect("there are few kinds"), u8::from(message.reject), 0]);
    let fields = [
        cluster_id,
        message.from,
        message.to,
        message.term,
        message.index,
        message.log_term,
        message.commit,
        message.commit_term,
        message.reject_hint,
    ];
    fields.iter().for_each(|field| bytes.extend_from_slice(&field.to_le_bytes()));
    put_len(&mut bytes, message.context.len());
    put_len(&mut bytes, message.entries.len());
    bytes.extend_from_slice(&message.context);
    for raft in &message.entries {
        let SlotEntry { term, body, .. } = entry_from_raft(raft);
        let (kind, data) = match body {
            Body::Empty => (0, Bytes::new()),
            Body::Pack(data) => (1, data),
            Body::Members(changes) => (2, encode_changes(&changes).into()),
        };
        bytes.extend_from_slice(&term.0.to_le_bytes());
        bytes.push(kind);
        put_len(&mut bytes, data.len());
        bytes.extend_from_slice(&data);
    }
    if let Some(meta) = announced_snapshot(message) {
        put_snapshot(&mut bytes, &meta);
    }
    bytes
}

pub(crate) fn decode(cluster_id: u64, id: ReplicaId, bytes: Bytes) -> Result<Message, BadMessage> {
    let mut at = Reader(bytes);
    let [version, kind, rejected, zero] = at.array()?;
    if version != MESSAGE_VERSION {
        return Err(BadMessage::Version { found: version });
    }
    let found = at.word()?;
    if found != cluster_id {
        return Err(BadMessage::Cluster { found, expected: cluster_id });
    }
    let (from, to) = (at.id()?, at.id()?);
    if to != id || from == id {
        return Err(BadMessage::Address { from, to, id });
    }
    let kind = *KINDS.get(usize::from(kind)).ok_or(BadMessage::Malformed("unknown kind"))?;
    if rejected > 1 || zero != 0 {
        return Err(BadMessage::Malformed("a mark out of range"));
    }
    let mut message = Message::default();
    message.set_msg_type(kind);
    (message.reject, message.from, message.to) = (rejected == 1, from.get(), to.get());
    (message.term, message.index, message.log_term) = (at.word()?, at.word()?, at.word()?);
    (message.commit, message.commit_term, message.reject_hint) = (at.word()?, at.word()?, at.word()?);
    let (context_len, entry_count) = (at.len()?, at.len()?);
    if context_len > CONTEXT_BYTES_MAX {
        return Err(BadMessage::Malformed("a context too long"));
    }
    message.context = at.bytes(context_len)?;
    let mut slot = message.index;
    for _ in 0..entry_count {
        slot = slot.checked_add(1).ok_or(BadMessage::Malformed("a slot out of range"))?;
        let term = Term(at.word()?);
        let [kind] = at.array()?;
        let len = at.len()?;
        let data = at.bytes(len)?;
        let body = match (kind, data.is_empty()) {
            (0, true) => Body::Empty,
            (1, false) => Body::Pack(data),
            (2, _) => {
                Body::Members(decode_changes(&data).ok_or(BadMessage::Malformed("a change of members that does not decode"))?)
            }
            _ => return Err(BadMessage::Malformed("unknown body of a slot")),
        };
        message.entries.push(entry_to_raft(&SlotEntry { slot: Slot(slot), term, body }));
    }
    if kind == MessageType::MsgSnapshot {
        message.set_snapshot(snapshot_to_raft(&at.snapshot()?));
    }
    if at.0.has_remaining() {
        return Err(BadMessage::Malformed("bytes left over"));
    }
    check(&message)?;
    Ok(message)
}

/// Checks what the library assumes.
fn check(message: &Message) -> Result<(), BadMessage> {
    let kind = message.get_msg_type();
    let numbers = [message.term, message.index, message.log_term, message.commit, message.commit_term, message.reject_hint];
    if numbers.iter().any(|number| *number > NUMBER_MAX) {
        return Err(BadMessage::Malformed("a number out of range"));
    }
    let is_read = matches!(kind, MessageType::MsgReadIndex | MessageType::MsgReadIndexResp);
    // The library treats a message without a term as local. Only read requests are sent without one.
    if (message.term == 0) != (kind == MessageType::MsgReadIndex) {
        return Err(BadMessage::Malformed("a term that is missing or should be"));
    }
    if is_read {
        let token = message.entries.first().map_or(0, |entry| entry.data.len());
        return if message.entries.len() == 1 && (1..=CONTEXT_BYTES_MAX).contains(&token) {
            Ok(())
        } else {
            Err(BadMessage::Malformed("a read without a token"))
        };
    }
    if kind != MessageType::MsgAppend && !message.entries.is_empty() {
        return Err(BadMessage::Malformed("entries where none belong"));
    }
    // The library returns term 0 for slots that it does not have.
    if kind == MessageType::MsgAppend && (message.index == 0) != (message.log_term == 0) {
        return Err(BadMessage::Malformed("a slot without a term"));
    }
    let mut term_before = message.log_term.max(1);
    for raft in &message.entries {
        if raft.term < term_before || raft.term > message.term {
            return Err(BadMessage::Malformed("terms out of order"));
        }
        term_before = raft.term;
        if let Body::Pack(bytes) = entry_from_raft(raft).body
            && Packed::decode(bytes).is_none()
        {
            return Err(BadMessage::Malformed("a pack that does not decode"));
        }
    }
    if kind == MessageType::MsgSnapshot {
        let sound = announced_snapshot(message).is_some_and(|meta| {
            (1..NUMBER_MAX).contains(&meta.slot.0)
                && (1..=message.term).contains(&meta.term.0)
                && meta.log_index.0 < NUMBER_MAX
                && meta.members.is_sound()
        });
        if !sound {
            return Err(BadMessage::Malformed("an impossible snapshot"));
        }
    }
    Ok(())
}

fn put_len(bytes: &mut Vec<u8>, len: usize) {
    let len = u32::try_from(len).expect("messages are far smaller than 4 GiB: settings bound them");
    bytes.extend_from_slice(&len.to_le_bytes());
}

pub(crate) fn put_snapshot(bytes: &mut Vec<u8>, meta: &SnapshotMeta) {
    for word in [meta.slot.0, meta.term.0, meta.log_index.0] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    let Members { voters, learners, outgoing, next_learners } = &meta.members;
    for set in [voters, learners, outgoing, next_learners] {
        put_len(bytes, set.len());
        set.iter().for_each(|id| bytes.extend_from_slice(&id.get().to_le_bytes()));
    }
}

/// Decodes what [`put_snapshot`] wrote; `None` for anything else or for invalid members.
pub(crate) fn decode_snapshot(bytes: Bytes) -> Option<SnapshotMeta> {
    let mut at = Reader(bytes);
    let meta = at.snapshot().ok()?;
    (!at.0.has_remaining() && meta.members.is_sound()).then_some(meta)
}

struct Reader(Bytes);

impl Reader {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadMessage> {
        let array = *self.0.first_chunk().ok_or(BadMessage::Malformed("cut short"))?;
        self.0.advance(N);
        Ok(array)
    }

    fn word(&mut self) -> Result<u64, BadMessage> {
        self.array().map(u64::from_le_bytes)
    }

    fn len(&mut self) -> Result<usize, BadMessage> {
        self.array().map(|bytes| u32::from_le_bytes(bytes) as usize)
    }

    fn id(&mut self) -> Result<ReplicaId, BadMessage> {
        ReplicaId::new(self.word()?).ok_or(BadMessage::Malformed("a replica without an id"))
    }

    fn bytes(&mut self, len: usize) -> Result<Bytes, BadMessage> {
        if len > self.0.len() {
            return Err(BadMessage::Malformed("cut short"));
        }
        Ok(self.0.split_to(len))
    }

    fn snapshot(&mut self) -> Result<SnapshotMeta, BadMessage> {
        let (slot, term, log_index) = (Slot(self.word()?), Term(self.word()?), LogIndex(self.word()?));
        let members = Members { voters: self.ids()?, learners: self.ids()?, outgoing: self.ids()?, next_learners: self.ids()? };
        Ok(SnapshotMeta { slot, term, log_index, members })
    }

    fn ids(&mut self) -> Result<BTreeSet<ReplicaId>, BadMessage> {
        let count = self.len()?;
        if count > MEMBERS_MAX {
            return Err(BadMessage::Malformed("too many members"));
        }
        let mut set = BTreeSet::new();
        for _ in 0..count {
            let id = self.id()?;
            if set.last().is_some_and(|last| *last >= id) {
                return Err(BadMessage::Malformed("members out of order"));
            }
            set.insert(id);
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::MemberChange;
    use crate::pack::Pack;
    use proptest::prelude::*;

    const CLUSTER: u64 = 7;

    fn id(id: u64) -> ReplicaId {
        ReplicaId::new(id).unwrap()
    }

    fn message() -> impl Strategy<Value = Message> {
        let words = prop::array::uniform5(prop_oneof![0_u64..5, 0..NUMBER_MAX]);
        let bodies = prop::collection::vec((0_u8..3, prop::collection::vec(any::<u8>(), 0..5)), 0..5);
        (0..KINDS.len(), 1_u64..9, words, any::<bool>(), bodies).prop_map(|(kind, term, words, reject, bodies)| {
            let mut m = Message::default();
            let kind = KINDS[kind];
            m.set_msg_type(kind);
            (m.from, m.to, m.term, m.reject) = (1, 2, if kind == MessageType::MsgReadIndex { 0 } else { term }, reject);
            [m.index, m.commit, m.commit_term, m.reject_hint, _] = words;
            m.log_term = words[4].clamp(u64::from(m.index > 0), if m.index > 0 { term } else { 0 });
            if matches!(kind, MessageType::MsgReadIndex | MessageType::MsgReadIndexResp) {
                let token = SlotEntry { slot: Slot(m.index + 1), term: Term(0), body: Body::Pack(vec![1; 24].into()) };
                m.entries.push(entry_to_raft(&token));
            } else if kind == MessageType::MsgAppend {
                for (at, (kind, data)) in bodies.into_iter().enumerate() {
                    let mut pack = Pack::new();
                    pack.push(&data);
                    let body = match kind {
                        0 => Body::Empty,
                        1 => Body::Pack(pack.into_bytes()),
                        _ => Body::Members(data.iter().map(|n| MemberChange::AddVoter(id(u64::from(*n) + 1))).collect()),
                    };
                    let slot = Slot(m.index + 1 + at as u64);
                    m.entries.push(entry_to_raft(&SlotEntry { slot, term: Term(term), body }));
                }
            } else if kind == MessageType::MsgSnapshot {
                let mut members = Members::of_voters([id(1), id(2)]);
                members.learners.insert(id(3));
                m.set_snapshot(snapshot_to_raft(&SnapshotMeta {
                    slot: Slot(words[0] + 1),
                    term: Term(1),
                    log_index: LogIndex(5),
                    members,
                }));
            }
            m
        })
    }

    proptest! {
        #[test]
        fn every_message_comes_back(message in message()) {
            let bytes = encode(CLUSTER, &message);
            prop_assert_eq!(said_sender(&bytes), Some(id(message.from)));
            prop_assert_eq!(decode(CLUSTER, id(2), bytes.clone().into()).unwrap(), message);
            for cut in 0..bytes.len() {
                prop_assert!(decode(CLUSTER, id(2), bytes[..cut].to_vec().into()).is_err());
            }
        }

        #[test]
        fn damaged_messages_decode_to_what_encodes_the_same_or_are_refused(
            message in message(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
        ) {
            let mut bytes = encode(CLUSTER, &message);
            for (at, byte) in damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Ok(message) = decode(CLUSTER, id(2), bytes.clone().into()) {
                prop_assert_eq!(encode(CLUSTER, &message), bytes);
            }
        }
    }

    #[test]
    fn strangers_are_told_apart() {
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgHeartbeat);
        (message.from, message.to, message.term) = (1, 2, 3);
        let bytes = Bytes::from(encode(CLUSTER, &message));
        assert_eq!(decode(8, id(2), bytes.clone()), Err(BadMessage::Cluster { found: CLUSTER, expected: 8 }));
        assert!(matches!(decode(CLUSTER, id(3), bytes.clone()), Err(BadMessage::Address { .. })));
        assert!(matches!(decode(CLUSTER, id(1), bytes.clone()), Err(BadMessage::Address { .. })), "from itself");
        let mut newer = bytes.to_vec();
        newer[0] += 1;
        assert_eq!(decode(CLUSTER, id(2), newer.into()), Err(BadMessage::Version { found: 2 }));
    }
}
