//! The journal of a day's orders: what the public feed says of displayed orders, one by one. It is kept where `archive.orders` asks for it.
//!
//! ```text
//! orders.journal: 64 bytes each
//!  0 kind u8: 1 cleared, 2 lost, 3 standing, 4 added, 5 traded, 6 executed, 7 resized, 8 cancelled, 9 replaced
//!  1 side u8: 0 none, 1 buy, 2 sell
//!  2 flag u8: 1 where a replaced order has the price that it had
//!  4 instrument u32
//!  8 log_index u64
//! 16 time_ns u64
//! 24 order_id u64; of a trade its trade_id
//! 32 price_ticks u64
//! 40 shown_lots u64: what the order shows after it; of a trade its size
//! 48 lots u64: how much less it shows of an executed order; what a resized, cancelled or replaced one showed
//! 56 zeros, 60 CRC32C of bytes 0..60
//! ```
//!
//! The journal begins with a header as the others do, magic `WALRASOR`. Its first records are the orders that stood when the day began,
//! so a day is read without the one before it.

use walras_types::{InstrumentId, LogIndex, OrderId, PriceTicks, Side, SizeLots, TimeNs, TradeId};

use crate::ArchiveError;
use crate::journal::{Journal, LINE_BYTES, half, price, seal, word};
use crate::record::{OrderRecord, OrderStep, Shown};

pub(crate) const ORDERS: &str = "orders.journal";

fn side_number(side: Option<Side>) -> u8 {
    match side {
        None => 0,
        Some(Side::Buy) => 1,
        Some(Side::Sell) => 2,
    }
}

fn side_of(number: u8) -> Option<Option<Side>> {
    match number {
        0 => Some(None),
        1 => Some(Some(Side::Buy)),
        2 => Some(Some(Side::Sell)),
        _ => None,
    }
}

/// The fields of a record behind its time.
struct Fields {
    kind: u8,
    side: Option<Side>,
    flag: u8,
    /// An order's or a trade's.
    number: u64,
    price: Option<PriceTicks>,
    shown: SizeLots,
    lots: SizeLots,
}

impl Fields {
    fn of(step: &OrderStep) -> Self {
        let nothing =
            |kind| Self { kind, side: None, flag: 0, number: 0, price: None, shown: SizeLots::ZERO, lots: SizeLots::ZERO };
        let order = |kind, order: &Shown, lots| Self {
            kind,
            side: Some(order.side),
            flag: 0,
            number: order.order_id.0,
            price: Some(order.price),
            shown: order.shown,
            lots,
        };
        match step {
            OrderStep::Cleared => nothing(1),
            OrderStep::Lost => nothing(2),
            OrderStep::Standing(shown) => order(3, shown, SizeLots::ZERO),
            OrderStep::Added(shown) => order(4, shown, SizeLots::ZERO),
            OrderStep::Traded { trade_id, price, size, taker_side } => {
                Self { side: *taker_side, number: trade_id.0, price: Some(*price), shown: *size, ..nothing(5) }
            }
            OrderStep::Executed { order: shown, by } => order(6, shown, *by),
            OrderStep::Resized { order: shown, from } => order(7, shown, *from),
            OrderStep::Cancelled { order: shown, from } => order(8, shown, *from),
            OrderStep::Replaced { order: shown, from, same_price } => {
                Self { flag: u8::from(*same_price), ..order(9, shown, *from) }
            }
        }
    }

    fn step(&self) -> Option<OrderStep> {
        let order = || {
            let (order_id, side, price, shown) = (OrderId(self.number), self.side?, self.price?, self.shown);
            Some(Shown { order_id, side, price, shown })
        };
        Some(match self.kind {
            1 => OrderStep::Cleared,
            2 => OrderStep::Lost,
            3 => OrderStep::Standing(order()?),
            4 => OrderStep::Added(order()?),
            5 => OrderStep::Traded { trade_id: TradeId(self.number), price: self.price?, size: self.shown, taker_side: self.side },
            6 => OrderStep::Executed { order: order()?, by: self.lots },
            7 => OrderStep::Resized { order: order()?, from: self.lots },
            8 => OrderStep::Cancelled { order: order()?, from: self.lots },
            9 => OrderStep::Replaced { order: order()?, from: self.lots, same_price: self.flag == 1 },
            _ => return None,
        })
    }
}

/// Appends a record.
pub(crate) fn encode(record: &OrderRecord, out: &mut Vec<u8>) {
    let OrderRecord { log_index, time, instrument, step } = record;
    let fields = Fields::of(step);
    let mut bytes = [0; LINE_BYTES];
    (bytes[0], bytes[1], bytes[2]) = (fields.kind, side_number(fields.side), fields.flag);
    bytes[4..8].copy_from_slice(&instrument.0.to_le_bytes());
    let ticks = fields.price.map_or(0, |price| price.get().unsigned_abs());
    let words = [log_index.0, time.0, fields.number, ticks, fields.shown.get(), fields.lots.get()];
    for (place, value) in bytes[8..56].chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    seal(&mut bytes);
    out.extend_from_slice(&bytes);
}

fn decode(bytes: &[u8]) -> Option<OrderRecord> {
    let fields = Fields {
        kind: bytes[0],
        side: side_of(bytes[1])?,
        flag: bytes[2],
        number: word(bytes, 24),
        price: price(word(bytes, 32)),
        shown: SizeLots::new(word(bytes, 40)),
        lots: SizeLots::new(word(bytes, 48)),
    };
    let (log_index, time, instrument) = (LogIndex(word(bytes, 8)), TimeNs(word(bytes, 16)), InstrumentId(half(bytes, 4)));
    Some(OrderRecord { log_index, time, instrument, step: fields.step()? })
}

/// Reads a journal of orders from its beginning, until `each` returns `false`.
pub(crate) fn read(
    journal: &Journal,
    mut each: impl FnMut(u64, OrderRecord) -> Result<bool, ArchiveError>,
) -> Result<(), ArchiveError> {
    journal.each(0, |at, bytes| each(at, decode(bytes).ok_or_else(|| journal.damage(at))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::is_sealed;

    #[test]
    fn records_read_back_and_no_byte_may_change() {
        let order = |side, shown| Shown { order_id: OrderId(u64::MAX), side, price: PriceTicks::MAX, shown: SizeLots::new(shown) };
        let (from, by) = (SizeLots::new(7), SizeLots::new(4));
        let traded =
            |taker_side| OrderStep::Traded { trade_id: TradeId(9), price: PriceTicks::MIN, size: SizeLots::new(4), taker_side };
        let replaced = |same_price| OrderStep::Replaced { order: order(Side::Buy, 9), from, same_price };
        for step in [
            OrderStep::Cleared,
            OrderStep::Lost,
            OrderStep::Standing(order(Side::Buy, 7)),
            OrderStep::Added(order(Side::Sell, 1)),
            traded(None),
            traded(Some(Side::Buy)),
            traded(Some(Side::Sell)),
            OrderStep::Executed { order: order(Side::Sell, 3), by },
            OrderStep::Resized { order: order(Side::Buy, 3), from },
            OrderStep::Cancelled { order: order(Side::Buy, 0), from },
            replaced(true),
            replaced(false),
        ] {
            let record = OrderRecord { log_index: LogIndex(5), time: TimeNs(u64::MAX), instrument: InstrumentId(3), step };
            let mut bytes = Vec::new();
            encode(&record, &mut bytes);
            assert!(bytes.len() == LINE_BYTES && is_sealed(&bytes));
            assert_eq!(decode(&bytes), Some(record));
            for at in 0..bytes.len() {
                bytes[at] ^= 1;
                assert!(!is_sealed(&bytes), "{record:?}: byte {at}");
                bytes[at] ^= 1;
            }
            bytes[0] = 10;
            assert_eq!(decode(&bytes), None, "there is no such kind");
        }
    }
}
