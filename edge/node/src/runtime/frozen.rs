//! A venue's state as it was after one entry: taken on the engine's thread, made into a snapshot's bytes on another.

use walras_engine::{Engine, Frozen};
use walras_market_data::{FrozenMarketData, MarketData};

/// Everything that a snapshot holds.
pub(super) struct FrozenState {
    engine: Frozen,
    market: FrozenMarketData,
    others: Vec<Vec<u8>>,
}

/// Writes a part of a snapshot.
pub(super) type WritePart<'a> = &'a dyn Fn(&mut Vec<u8>);

impl FrozenState {
    /// Keeps what is large by copying or sharing it; `others`, which are small, are written at once.
    pub(super) fn new(engine: &Engine, market: &MarketData, others: &[WritePart<'_>]) -> Self {
        let write = |part: &WritePart<'_>| {
            let mut bytes = Vec::new();
            part(&mut bytes);
            bytes
        };
        Self { engine: engine.freeze(), market: market.freeze(), others: others.iter().map(write).collect() }
    }

    /// The parts one after the other, each behind its length.
    pub(super) fn encode(self) -> Vec<u8> {
        let Self { engine, market, others } = self;
        // First, for what it shares with the running venue is copied there when it changes meanwhile.
        let mut market_bytes = Vec::new();
        market.snapshot(&mut market_bytes);
        drop(market);
        let mut bytes = Vec::new();
        put(&mut bytes, |out| engine.snapshot(out));
        drop(engine);
        for part in std::iter::once(&market_bytes).chain(&others) {
            put(&mut bytes, |out| out.extend_from_slice(part));
        }
        bytes
    }
}

fn put(bytes: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = bytes.len();
    bytes.extend_from_slice(&[0; 8]);
    write(bytes);
    let length = (bytes.len() - at - 8) as u64;
    bytes[at..at + 8].copy_from_slice(&length.to_le_bytes());
}

/// As many parts as [`FrozenState::encode`] joined.
pub(super) fn split_parts<const N: usize>(mut bytes: &[u8]) -> Result<[&[u8]; N], String> {
    let mut parts = [[].as_slice(); N];
    for part in &mut parts {
        (*part, bytes) = split_part(bytes)?;
    }
    if bytes.is_empty() { Ok(parts) } else { Err(format!("{} bytes too many stand at its end", bytes.len())) }
}

/// The first part, and what stands behind it.
pub(super) fn split_part(bytes: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or("it is cut short")?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| "it is cut short")?;
    Ok(rest.split_at_checked(length).ok_or("it is cut short")?)
}
