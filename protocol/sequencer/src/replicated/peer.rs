//! What sequencers of one cluster say to each other: the consensus's messages, the hashes of their states, how long market data was
//! on its way, how far the leader's clock is ahead of the venue's time, and who they are.
//!
//! ```text
//! a message of the consensus | 0 u8
//! cluster u64 | replica u64 | log index u64 | state hash 32 bytes | 1 u8        all little-endian
//! cluster u64 | replica u64 | log index u64 | transit i64, nanoseconds | 16 u8
//! an introduction | 17 u8
//! cluster u64 | replica u64 | term u64 | from u64, ns | ahead i64, ns | bound u64, ns | 18 u8
//! ```
//!
//! A kind that a replica does not know, as those of another version, is dropped.
//!
//! Some say who sends them. That counts for nothing but a check: a message is of the replica by whose link it came, and one that
//! says otherwise is dropped.
//!
//! Kinds from 2 on are those between gateways and the leader (`gateway/message.rs`); those from 240 on are the hosts' own, and
//! dropped here. The kind stands last, so that marking a long message moves none of its bytes.

use bytes::Bytes;
use walras_consensus::{ReplicaId, Term, said_sender};
use walras_types::{LogIndex, TimeNs};

use super::agreement::StateHash;
use super::introductions::Greeting;
use super::leader_clocks::ClockReport;

const CONSENSUS: u8 = 0;
const HASH: u8 = 1;
const ARRIVAL: u8 = 16;
const GREETING: u8 = 17;
const CLOCK: u8 = 18;

/// A message, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PeerMessage {
    Consensus(Bytes),
    Hash { cluster_id: u64, from: ReplicaId, at: LogIndex, hash: StateHash },
    Arrival { cluster_id: u64, from: ReplicaId, at: LogIndex, transit_ns: i64 },
    Greeting(Bytes),
    Clock { cluster_id: u64, from: ReplicaId, report: ClockReport },
}

impl PeerMessage {
    /// A message that came by the link of `from`. `None` for what is no message, and for one that names another sender.
    pub(super) fn of(from: ReplicaId, bytes: Bytes) -> Option<Self> {
        let message = Self::decode(bytes)?;
        let said = match &message {
            Self::Consensus(bytes) => said_sender(bytes),
            Self::Hash { from, .. } | Self::Arrival { from, .. } | Self::Clock { from, .. } => Some(*from),
            Self::Greeting(bytes) => Greeting::said_sender(bytes),
        };
        (said == Some(from)).then_some(message)
    }

    /// `None` for what is no message.
    pub(super) fn decode(mut bytes: Bytes) -> Option<Self> {
        let kind = *bytes.last()?;
        bytes.truncate(bytes.len() - 1);
        match kind {
            CONSENSUS => Some(Self::Consensus(bytes)),
            GREETING => Some(Self::Greeting(bytes)),
            HASH => {
                let fields: &[u8; 56] = bytes.as_ref().try_into().ok()?;
                let word = |at: usize| u64::from_le_bytes(*fields[at..].first_chunk().expect("24 bytes come before the hash"));
                let hash = *fields.last_chunk().expect("32 of 56 bytes");
                Some(Self::Hash { cluster_id: word(0), from: ReplicaId::new(word(8))?, at: LogIndex(word(16)), hash })
            }
            ARRIVAL => {
                let fields: &[u8; 32] = bytes.as_ref().try_into().ok()?;
                let word = |at: usize| u64::from_le_bytes(*fields[at..].first_chunk().expect("32 bytes are four words"));
                let (from, at) = (ReplicaId::new(word(8))?, LogIndex(word(16)));
                Some(Self::Arrival { cluster_id: word(0), from, at, transit_ns: word(24).cast_signed() })
            }
            CLOCK => {
                let fields: &[u8; 48] = bytes.as_ref().try_into().ok()?;
                let word = |at: usize| u64::from_le_bytes(*fields[at..].first_chunk().expect("48 bytes are six words"));
                let (term, from) = (Term(word(16)), TimeNs(word(24)));
                let report = ClockReport { term, from, ahead_ns: word(32).cast_signed(), bound_ns: word(40) };
                Some(Self::Clock { cluster_id: word(0), from: ReplicaId::new(word(8))?, report })
            }
            _ => None,
        }
    }
}

/// Whether a message between sequencers is one of the consensus. Its sender takes part: no process on probation sends one.
#[must_use]
pub fn is_of_consensus(message: &[u8]) -> bool {
    message.last() == Some(&CONSENSUS)
}

/// Marks a message of the consensus.
pub(super) fn consensus(mut message: Vec<u8>) -> Vec<u8> {
    message.push(CONSENSUS);
    message
}

/// Marks an introduction.
pub(super) fn greeting(mut greeting: Vec<u8>) -> Vec<u8> {
    greeting.push(GREETING);
    greeting
}

pub(super) fn hash(cluster_id: u64, from: ReplicaId, at: LogIndex, hash: &StateHash) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(57);
    for word in [cluster_id, from.get(), at.0] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(hash);
    bytes.push(HASH);
    bytes
}

pub(super) fn arrival(cluster_id: u64, from: ReplicaId, at: LogIndex, transit_ns: i64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(33);
    for word in [cluster_id, from.get(), at.0, transit_ns.cast_unsigned()] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.push(ARRIVAL);
    bytes
}

pub(super) fn clock(cluster_id: u64, from: ReplicaId, report: &ClockReport) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(49);
    let ClockReport { term, from: holds_from, ahead_ns, bound_ns } = *report;
    for word in [cluster_id, from.get(), term.0, holds_from.0, ahead_ns.cast_unsigned(), bound_ns] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.push(CLOCK);
    bytes
}

#[cfg(test)]
mod tests {
    use walras_consensus::Slot;

    use super::super::introductions::{DiskId, Introductions};
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        assert_eq!(PeerMessage::decode(consensus(vec![7, 8]).into()), Some(PeerMessage::Consensus(vec![7, 8].into())));
        let from = ReplicaId::new(3).unwrap();
        let said = hash(9, from, LogIndex(5), &[4; 32]);
        assert_eq!(
            PeerMessage::decode(said.clone().into()),
            Some(PeerMessage::Hash { cluster_id: 9, from, at: LogIndex(5), hash: [4; 32] })
        );
        for cut in 1..said.len() {
            assert_eq!(PeerMessage::decode(said[cut..].to_vec().into()), None, "cut at the front");
        }
        let said = arrival(9, from, LogIndex(5), -7);
        let understood = PeerMessage::Arrival { cluster_id: 9, from, at: LogIndex(5), transit_ns: -7 };
        assert_eq!(PeerMessage::decode(said.clone().into()), Some(understood));
        for cut in 1..said.len() {
            assert_eq!(PeerMessage::decode(said[cut..].to_vec().into()), None, "cut at the front");
        }
        let report = ClockReport { term: Term(6), from: TimeNs(7), ahead_ns: -8, bound_ns: 10 };
        let said = clock(9, from, &report);
        assert_eq!(PeerMessage::decode(said.clone().into()), Some(PeerMessage::Clock { cluster_id: 9, from, report }));
        for cut in 1..said.len() {
            assert_eq!(PeerMessage::decode(said[cut..].to_vec().into()), None, "cut at the front");
        }
        assert_eq!(PeerMessage::decode(vec![].into()), None);
        assert_eq!(PeerMessage::decode(vec![0, 200].into()), None);
        assert_eq!(PeerMessage::decode(greeting(vec![5]).into()), Some(PeerMessage::Greeting(vec![5].into())));
    }

    #[test]
    fn a_message_is_of_the_replica_by_whose_link_it_came() {
        let (sender, other) = (ReplicaId::new(3).unwrap(), ReplicaId::new(2).unwrap());
        let mut of_consensus = vec![0; 84];
        of_consensus[12] = 3;
        let introductions = Introductions::new(sender, DiskId::of_random(9), "here", [sender, other].into());
        let introduction = introductions.greeting(9, true, Slot(0), &[sender].into()).encode();
        let all = [
            hash(9, sender, LogIndex(5), &[4; 32]),
            arrival(9, sender, LogIndex(5), -7),
            clock(9, sender, &ClockReport { term: Term(6), from: TimeNs(7), ahead_ns: -8, bound_ns: 10 }),
            consensus(of_consensus),
            greeting(introduction),
        ];
        for said in all {
            assert!(PeerMessage::of(sender, said.clone().into()).is_some());
            assert_eq!(PeerMessage::of(other, said.clone().into()), None, "{said:?}");
        }
        for short in [consensus(vec![0; 13]), greeting(vec![1; 10]), vec![]] {
            assert_eq!(PeerMessage::of(sender, short.into()), None, "it does not say who");
        }
    }
}
