//! What sequencers of one cluster say to each other: the consensus's messages, the hashes of their states, how long market data was on its
//! way, and who they are.
//!
//! ```text
//! a message of the consensus | 0 u8
//! cluster u64 | replica u64 | log index u64 | state hash 32 bytes | 1 u8        all little-endian
//! cluster u64 | replica u64 | log index u64 | transit i64, nanoseconds | 16 u8
//! an introduction | 17 u8
//! ```
//!
//! Kinds from 2 on are those between gateways and the leader (`gateway/message.rs`); those from 240 on are the hosts' own, and dropped here. The kind
//! stands last, so that marking a long message moves none of its bytes.

use bytes::Bytes;
use walras_consensus::ReplicaId;
use walras_types::LogIndex;

use super::agreement::StateHash;

const CONSENSUS: u8 = 0;
const HASH: u8 = 1;
const ARRIVAL: u8 = 16;
const GREETING: u8 = 17;

/// A message, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PeerMessage {
    Consensus(Bytes),
    Hash { cluster_id: u64, from: ReplicaId, at: LogIndex, hash: StateHash },
    Arrival { cluster_id: u64, from: ReplicaId, at: LogIndex, transit_ns: i64 },
    Greeting(Bytes),
}

impl PeerMessage {
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
            _ => None,
        }
    }
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

#[cfg(test)]
mod tests {
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
        assert_eq!(PeerMessage::decode(vec![].into()), None);
        assert_eq!(PeerMessage::decode(vec![0, 200].into()), None);
        assert_eq!(PeerMessage::decode(greeting(vec![5]).into()), Some(PeerMessage::Greeting(vec![5].into())));
    }
}
