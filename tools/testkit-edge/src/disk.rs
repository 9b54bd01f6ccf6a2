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

/// A part of eight bytes: a count of zero.
const NO_HISTORIES: [u8; 16] = [8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn snapshot_whole(bytes: &[u8]) {
    match snapshot_again(bytes) {
        // Those of the version before lack the histories of orders, the last part: there it holds none.
        Ok(again) => {
            let is_older = || again.strip_suffix(&NO_HISTORIES).is_some_and(|older| older == bytes);
            assert!(again == bytes || is_older(), "one state has one encoding");
        }
        Err(why) => assert!(!why.is_empty(), "an error without a reason"),
    }
}

/// The fills in a snapshot.
pub fn fills(bytes: &[u8]) {
    let Ok(fills) = Fills::restore(bytes) else { return };
    let mut again = Vec::new();
    fills.snapshot(&mut again);
    assert!(again == bytes, "one state has one encoding");
}
