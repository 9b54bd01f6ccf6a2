//! A venue's state as it was after one entry: taken between two entries, made into a snapshot's bytes on another thread.

use walras_engine::{Engine, Frozen, snapshot_hash};
use walras_market_data::MarketData;
use walras_types::EngineVersion;

/// Everything that a snapshot holds.
pub struct FrozenState {
    /// In force: every program that knows it can read the snapshot.
    version: EngineVersion,
    engine: Frozen,
    market: MarketData,
    others: Vec<WritePart>,
}

/// Writes a part of a snapshot: of a clone that shares what is large.
pub type WritePart = Box<dyn FnOnce(&mut Vec<u8>) + Send>;

impl FrozenState {
    /// Keeps what is large by copying or sharing it.
    pub fn new(engine: &mut Engine, market: &mut MarketData, others: Vec<WritePart>) -> Self {
        Self { version: engine.version(), engine: engine.freeze(), market: market.share(), others }
    }

    /// The parts one after the other, each behind its length.
    pub fn encode(self) -> Vec<u8> {
        let Self { version, engine, market, others } = self;
        // First, for what these share with the running venue is copied there when it changes meanwhile.
        let mut rest = Vec::new();
        put(&mut rest, |out| market.snapshot_under(version, out));
        drop(market);
        for part in others {
            put(&mut rest, part);
        }
        let mut bytes = Vec::new();
        put(&mut bytes, |out| engine.snapshot(out));
        drop(engine);
        bytes.extend_from_slice(&rest);
        bytes
    }
}

/// The hash of the engine's state in what [`FrozenState::encode`] wrote.
pub fn engine_hash(bytes: &[u8]) -> Option<[u8; 32]> {
    split_part(bytes).ok().and_then(|(engine, _)| snapshot_hash(engine))
}

fn put(bytes: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = bytes.len();
    bytes.extend_from_slice(&[0; 8]);
    write(bytes);
    let length = (bytes.len() - at - 8) as u64;
    bytes[at..at + 8].copy_from_slice(&length.to_le_bytes());
}

/// As many parts as [`FrozenState::encode`] joined.
pub fn split_parts<const N: usize>(mut bytes: &[u8]) -> Result<[&[u8]; N], String> {
    let mut parts = [[].as_slice(); N];
    for part in &mut parts {
        (*part, bytes) = split_part(bytes)?;
    }
    if bytes.is_empty() { Ok(parts) } else { Err(format!("{} bytes too many stand at its end", bytes.len())) }
}

/// The first part, and what stands behind it.
pub fn split_part(bytes: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or("it is cut short")?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| "it is cut short")?;
    Ok(rest.split_at_checked(length).ok_or("it is cut short")?)
}
