//! Streams of 32-byte records: the common input of every engine in a comparison.

use std::path::Path;

use anyhow::{Context, bail};

/// What a record asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// A good-till-cancel limit order.
    Gtc = 0,
    /// An immediate-or-cancel limit order.
    Ioc = 1,
    /// A cancel.
    Cancel = 2,
    /// A new price, at the back of the queue.
    Move = 3,
    /// A smaller size, in place.
    Reduce = 4,
}

/// One command of a stream.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Record {
    /// What.
    pub op: Op,
    /// 0 ask, 1 bid; only of orders.
    pub side: u8,
    /// Whose.
    pub user: u32,
    /// Which order.
    pub id: i64,
    /// Limit price.
    pub price: i64,
    /// Size, or by how much to reduce.
    pub size: i64,
}

/// Reads a stream of records.
pub fn read(path: &Path) -> anyhow::Result<Vec<Record>> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    if bytes.len() % 32 != 0 {
        bail!("{}: {} bytes are no whole number of 32-byte records", path.display(), bytes.len());
    }
    let field = |chunk: &[u8], at: usize| i64::from_le_bytes(chunk[at..at + 8].try_into().expect("eight bytes"));
    bytes
        .chunks_exact(32)
        .enumerate()
        .map(|(index, chunk)| {
            let op = match chunk[0] {
                0 => Op::Gtc,
                1 => Op::Ioc,
                2 => Op::Cancel,
                3 => Op::Move,
                4 => Op::Reduce,
                other => bail!("record {index} has the unknown operation {other}"),
            };
            let user = u32::from_le_bytes(chunk[4..8].try_into().expect("four bytes"));
            Ok(Record { op, side: chunk[1], user, id: field(chunk, 8), price: field(chunk, 16), size: field(chunk, 24) })
        })
        .collect()
}
