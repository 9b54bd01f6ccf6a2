//! What a node reads of its own disk.

use walras_market_data::Fills;
use walras_node::runtime::snapshot_again;

/// A venue's snapshot: the bytes as they are, then again with the hash that makes the engine's part whole, so that what lies behind it is
/// reached. What restores saves to the same bytes.
pub fn snapshot(bytes: &[u8]) {
    snapshot_whole(bytes);
    if let Some(whole) = with_hash(bytes) {
        snapshot_whole(&whole);
    }
}

/// The first part with the hash of its bytes behind it, as an engine's snapshot ends; `None` if there is no first part.
fn with_hash(bytes: &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (engine, others) = rest.split_at_checked(length)?;
    let hash = *blake3::hash(engine).as_bytes();
    let length = (engine.len() + hash.len()) as u64;
    Some([&length.to_le_bytes()[..], engine, &hash, others].concat())
}

/// Whether it is a snapshot, but for the hash: what a seed must be to lead anywhere.
///
/// # Errors
/// Why it is none.
pub fn restores(bytes: &[u8]) -> Result<(), String> {
    let whole = with_hash(bytes).ok_or("it is cut short")?;
    snapshot_again(&whole).map(|_| ())
}

fn snapshot_whole(bytes: &[u8]) {
    match snapshot_again(bytes) {
        // Those of the versions before hold less: the parts that they lack are written as empty ones, and what one part did not keep
        // as absent. So what is written is read as the same.
        Ok(again) if parts(bytes) < PARTS || market_data_version(bytes) != market_data_version(&again) => {
            assert!(parts(&again) == PARTS && snapshot_again(&again).as_ref() == Ok(&again), "one state has one encoding");
        }
        Ok(again) => assert!(again == bytes, "one state has one encoding"),
        Err(why) => assert!(!why.is_empty(), "an error without a reason"),
    }
}

/// The version of the second part's format, the last byte of its first eight.
fn market_data_version(bytes: &[u8]) -> Option<u8> {
    let (_, rest) = walras_replica::split_part(bytes).ok()?;
    let (market_data, _) = walras_replica::split_part(rest).ok()?;
    market_data.get(7).copied()
}

/// Parts of a snapshot of this version.
const PARTS: usize = 8;

fn parts(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while let Ok((_, rest)) = walras_replica::split_part(bytes) {
        count += 1;
        bytes = rest;
    }
    count
}

/// The fills in a snapshot, of this version and of the one before.
pub fn fills(bytes: &[u8]) {
    if let Ok(fills) = Fills::restore_without_places(bytes) {
        let mut again = Vec::new();
        fills.snapshot(&mut again);
        assert_eq!(Fills::restore(&again), Ok(fills), "what was read of the version before is kept");
    }
    let Ok(fills) = Fills::restore(bytes) else { return };
    let mut again = Vec::new();
    fills.snapshot(&mut again);
    assert!(again == bytes, "one state has one encoding");
}
