//! The bytes of a probe. All probes are of one size, so that both directions take the same time on a wire.

use thiserror::Error;

/// The size of every probe.
pub const PROBE_BYTES: usize = 48;

const ASK: u8 = 1;
const ANSWER: u8 = 2;
const ANSWER_WITH_STAMPS: u8 = 3;

/// When the answering node got an exchange's two asks and sent its two answers, by its clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamps {
    /// Which exchange.
    pub exchange: u32,
    /// When the asks came.
    pub ask_rx_ns: [u64; 2],
    /// When the answers left.
    pub answer_tx_ns: [u64; 2],
}

/// A packet of the mesh. An exchange is two asks, sent one shortly after the other, and an answer to each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Probe {
    /// Sent by the node that an edge belongs to.
    Ask {
        /// Which exchange.
        exchange: u32,
        /// Which of its two.
        half: Half,
    },
    /// Sent back at once.
    Answer {
        /// Which exchange.
        exchange: u32,
        /// Which of its two.
        half: Half,
        /// The stamps of an exchange before: a packet cannot carry the time at which it leaves.
        stamps: Option<Stamps>,
    },
}

/// Which of a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    /// The one sent first.
    First,
    /// The one sent shortly after.
    Second,
}

impl Half {
    pub(super) fn index(self) -> usize {
        match self {
            Self::First => 0,
            Self::Second => 1,
        }
    }
}

/// Bytes that are no probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ProbeError {
    /// Not `PROBE_BYTES` long.
    #[error("a probe has {PROBE_BYTES} bytes, this has {0}: drop it")]
    Length(usize),
    /// A kind or half that there is not, or bytes that should be 0.
    #[error("not a probe of this version: drop it, and check that all nodes run the same version")]
    Kind,
}

impl Probe {
    /// As bytes, little endian: kind, half, two zeros, exchange, then the stamps or zeros.
    pub fn encode(&self) -> [u8; PROBE_BYTES] {
        let mut bytes = [0; PROBE_BYTES];
        let (kind, exchange, half, stamps) = match *self {
            Self::Ask { exchange, half } => (ASK, exchange, half, None),
            Self::Answer { exchange, half, stamps: None } => (ANSWER, exchange, half, None),
            Self::Answer { exchange, half, stamps } => (ANSWER_WITH_STAMPS, exchange, half, stamps),
        };
        bytes[0] = kind;
        bytes[1] = u8::from(half == Half::Second);
        bytes[4..8].copy_from_slice(&exchange.to_le_bytes());
        if let Some(stamps) = stamps {
            bytes[8..12].copy_from_slice(&stamps.exchange.to_le_bytes());
            let times = stamps.ask_rx_ns.into_iter().chain(stamps.answer_tx_ns);
            for (place, time_ns) in bytes[16..].chunks_exact_mut(8).zip(times) {
                place.copy_from_slice(&time_ns.to_le_bytes());
            }
        }
        bytes
    }

    /// From bytes that anyone may have sent.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProbeError> {
        let bytes: &[u8; PROBE_BYTES] = bytes.try_into().map_err(|_| ProbeError::Length(bytes.len()))?;
        let half = match bytes[1] {
            0 => Half::First,
            1 => Half::Second,
            _ => return Err(ProbeError::Kind),
        };
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let time_ns = |at: usize| (u64::from(number(at + 4)) << 32) | u64::from(number(at));
        let exchange = number(4);
        let probe = match bytes[0] {
            ASK => Self::Ask { exchange, half },
            ANSWER => Self::Answer { exchange, half, stamps: None },
            ANSWER_WITH_STAMPS => {
                let ask_rx_ns = [time_ns(16), time_ns(24)];
                let answer_tx_ns = [time_ns(32), time_ns(40)];
                Self::Answer { exchange, half, stamps: Some(Stamps { exchange: number(8), ask_rx_ns, answer_tx_ns }) }
            }
            _ => return Err(ProbeError::Kind),
        };
        // One encoding per value: what is not used is 0.
        if probe.encode() == *bytes { Ok(probe) } else { Err(ProbeError::Kind) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn probe() -> impl Strategy<Value = Probe> {
        let half = prop_oneof![Just(Half::First), Just(Half::Second)];
        let stamps = (any::<u32>(), any::<[u64; 2]>(), any::<[u64; 2]>()).prop_map(|(exchange, ask_rx_ns, answer_tx_ns)| Stamps {
            exchange,
            ask_rx_ns,
            answer_tx_ns,
        });
        (any::<u32>(), half, prop::option::of(stamps), any::<bool>()).prop_map(|(exchange, half, stamps, ask)| {
            if ask { Probe::Ask { exchange, half } } else { Probe::Answer { exchange, half, stamps } }
        })
    }

    proptest! {
        #[test]
        fn a_probe_survives_its_bytes(probe in probe()) {
            prop_assert_eq!(Probe::decode(&probe.encode()), Ok(probe));
        }

        /// Any bytes are refused or are the one encoding of a probe.
        #[test]
        fn bytes_have_one_meaning(mut bytes in prop::collection::vec(any::<u8>(), 40..56), kind in 0u8..5, half in 0u8..3, clean: bool) {
            bytes[0] = kind;
            bytes[1] = half;
            if clean {
                bytes[2..4].fill(0);
                bytes[12..16].fill(0);
            }
            if let Ok(probe) = Probe::decode(&bytes) {
                prop_assert_eq!(&probe.encode()[..], &bytes[..]);
            }
        }
    }
}
