//! Records of an account's past: its fills, and its orders that have ended. They are numbered by where the log has them, so that a
//! reader pages through them, in memory and in an archive, by the same numbers.

use std::fmt;
use std::str::FromStr;

use walras_types::{
    AccountId, ClientOrderId, ClientOrderName, InstrumentId, LogIndex, OrderId, OrderTerms, PriceTicks, Side, SizeLots, TimeNs,
};
use walras_wire::codec::{Reader, Wire, Writer};
use walras_wire::{CancelReason, DecodeError};

use crate::private::{Fill, FillRole};

/// The place of a record: its log entry, and its number among the records of that entry. Later records have larger places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId {
    /// The entry. 0 for fills that a program kept before it knew their entries.
    pub log_index: LogIndex,
    /// The number, from 0.
    pub number: u32,
}

impl RecordId {
    /// Behind all records.
    pub const MAX: Self = Self { log_index: LogIndex(u64::MAX), number: u32::MAX };
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.log_index.0, self.number)
    }
}

/// A text that [`RecordId`] does not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no place of a record: give one that a page before said")]
pub struct NoRecordId;

impl FromStr for RecordId {
    type Err = NoRecordId;

    fn from_str(text: &str) -> Result<Self, NoRecordId> {
        let (log_index, number) = text.split_once('-').ok_or(NoRecordId)?;
        let id = Self {
            log_index: LogIndex(log_index.parse().map_err(|_| NoRecordId)?),
            number: number.parse().map_err(|_| NoRecordId)?,
        };
        if id.to_string() == text { Ok(id) } else { Err(NoRecordId) }
    }
}

/// How an order ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderEnd {
    /// It traded in full.
    Filled,
    /// It, or what was left of it, is gone without a trade.
    Cancelled(CancelReason),
}

/// An order that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedOrder {
    /// The venue's name for it.
    pub order_id: OrderId,
    /// The participant's name for it.
    pub client_order_id: ClientOrderId,
    /// The same as text, if it was one.
    pub name: Option<ClientOrderName>,
    /// Where.
    pub instrument: InstrumentId,
    /// Buy or sell.
    pub side: Side,
    /// The limit that was in force at its end; `None` for a stop that was not triggered.
    pub price: Option<PriceTicks>,
    /// What it said, with its amendments; `None` for an order that the venue made itself. Its size is what was open after the last
    /// amendment of the size.
    pub terms: Option<OrderTerms>,
    /// How much was asked when it entered.
    pub size: SizeLots,
    /// How much of it neither traded nor stands.
    pub open: SizeLots,
    /// How much traded.
    pub filled: SizeLots,
    /// The sum over its trades of price in ticks times size in lots.
    pub filled_tick_lots: u128,
    /// What its trades paid in quote; negative for rebates.
    pub fee: i64,
    /// When it entered.
    pub entered: TimeNs,
    /// When it ended.
    pub ended: TimeNs,
    /// How.
    pub end: OrderEnd,
}

/// What happened to an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountRecord {
    /// An order of it traded.
    Fill(Fill),
    /// An order of it ended.
    Ended(EndedOrder),
}

/// A record with its place and its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its place.
    pub id: RecordId,
    /// Whose.
    pub account: AccountId,
    /// What.
    pub record: AccountRecord,
}

impl EndedOrder {
    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let w = &mut Writer(out);
        self.order_id.put(w);
        self.client_order_id.put(w);
        self.name.put(w);
        self.instrument.put(w);
        self.side.put(w);
        self.price.put(w);
        self.terms.put(w);
        for size in [self.size, self.open, self.filled] {
            w.u64(size.get());
        }
        put_u128(self.filled_tick_lots, w);
        w.i64(self.fee);
        self.entered.put(w);
        self.ended.put(w);
        match self.end {
            OrderEnd::Filled => w.u8(0),
            OrderEnd::Cancelled(reason) => {
                w.u8(1);
                reason.put(w);
            }
        }
    }

    /// Reads what [`EndedOrder::encode`] wrote.
    ///
    /// # Errors
    /// It is something else.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            order_id: Wire::get(r)?,
            client_order_id: Wire::get(r)?,
            name: Wire::get(r)?,
            instrument: Wire::get(r)?,
            side: Wire::get(r)?,
            price: Wire::get(r)?,
            terms: Wire::get(r)?,
            size: SizeLots::new(r.u64()?),
            open: SizeLots::new(r.u64()?),
            filled: SizeLots::new(r.u64()?),
            filled_tick_lots: get_u128(r)?,
            fee: r.i64()?,
            entered: Wire::get(r)?,
            ended: Wire::get(r)?,
            end: match r.u8()? {
                0 => OrderEnd::Filled,
                1 => OrderEnd::Cancelled(Wire::get(r)?),
                _ => return Err(r.expected("0 (filled) or 1 (cancelled)")),
            },
        })
    }
}

impl Fill {
    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_without_name(out);
        self.name.put(&mut Writer(out));
    }

    /// Reads what [`Fill::encode`] wrote.
    ///
    /// # Errors
    /// It is something else.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let fill = Self::decode_without_name(r)?;
        Ok(Self { name: Wire::get(r)?, ..fill })
    }

    /// Appends its bytes as the version before wrote them.
    pub fn encode_without_name(&self, out: &mut Vec<u8>) {
        let w = &mut Writer(out);
        w.u32(self.instrument.0);
        w.u64(self.trade_id.0);
        w.u64(self.order_id.0);
        w.u64(self.client_order_id.0);
        w.u64(self.time.0);
        w.u8(self.side as u8);
        w.i64(self.price.get());
        w.u64(self.size.get());
        w.i64(self.fee);
        w.u64(self.open.get());
        w.u8(match self.role {
            FillRole::Maker => 0,
            FillRole::Taker => 1,
            FillRole::Auction => 2,
        });
    }

    /// Reads what [`Fill::encode_without_name`] wrote.
    ///
    /// # Errors
    /// It is something else.
    pub fn decode_without_name(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            instrument: Wire::get(r)?,
            trade_id: Wire::get(r)?,
            order_id: Wire::get(r)?,
            client_order_id: Wire::get(r)?,
            name: None,
            time: Wire::get(r)?,
            side: Wire::get(r)?,
            price: PriceTicks::new(r.i64()?).ok_or_else(|| r.expected("a price"))?,
            size: SizeLots::new(r.u64()?),
            fee: r.i64()?,
            open: SizeLots::new(r.u64()?),
            role: match r.u8()? {
                0 => FillRole::Maker,
                1 => FillRole::Taker,
                2 => FillRole::Auction,
                _ => return Err(r.expected("a role")),
            },
        })
    }
}

pub(crate) fn put_u128(value: u128, w: &mut Writer<'_>) {
    w.u64((value >> 64) as u64);
    w.u64(value as u64);
}

pub(crate) fn get_u128(r: &mut Reader<'_>) -> Result<u128, DecodeError> {
    Ok(u128::from(r.u64()?) << 64 | u128::from(r.u64()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_what_it_writes_and_nothing_else() {
        let id = RecordId { log_index: LogIndex(17), number: 3 };
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(RecordId::MAX.to_string().parse(), Ok(RecordId::MAX));
        for text in ["", "17", "-", "17-", "-3", "17-3-1", "017-3", "17-+3", " 17-3", "17-4294967296", "x-1"] {
            assert_eq!(text.parse::<RecordId>(), Err(NoRecordId), "{text}");
        }
    }
}
