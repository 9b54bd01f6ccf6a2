//! The messages of the feed: a head that all share, then fields of a fixed size, one after the other, little endian.
//!
//! The table in this file is the schema. From it come the structures, their encoding, the tables of `docs/market-data-feed.md` and the
//! dissector `sdk/wireshark/walras.lua`.

use walras_types::{
    Allocation, AssetId, BatchMarketId, BatchPhase, BatchPrice, InstrumentId, OrderId, PriceTicks, Side, SizeLots, Symbol, TradeId,
    TradingPhase,
};
use walras_wire::PhaseCause;

use crate::field::{Field, Part, Primitive};

/// The version of all messages. It is the first byte of each.
pub const VERSION: u8 = 1;

/// Bytes of the head.
pub const HEAD_BYTES: usize = 19;

/// The last message of its log entry in its channel: what a reader has after it is a state that the venue was in.
const LAST: u8 = 1;

/// Where a head's flags are.
const FLAGS_AT: usize = 2;

/// What every message begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Whether more messages of the same log entry follow in the channel.
    pub place: Place,
    /// The log entry that it comes from.
    pub log_index: u64,
    /// The entry's time, in ns since the Unix epoch.
    pub time_ns: u64,
}

/// A message's place among those of its log entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// More follow.
    Inner,
    /// It is the last one.
    Last,
}

/// The fields of the head, as the schema has them.
pub const HEAD: &[FieldSchema] = &[
    FieldSchema { name: "version", docs: &["The version of the message, 1."], parts: u8::PARTS },
    FieldSchema { name: "kind", docs: &["Which message."], parts: u8::PARTS },
    FieldSchema {
        name: "flags",
        docs: &["1: the last message of its log entry in this channel. All other bits are 0."],
        parts: u8::PARTS,
    },
    FieldSchema { name: "log_index", docs: &["The log entry that it comes from."], parts: u64::PARTS },
    FieldSchema { name: "time_ns", docs: &["The entry's time, in nanoseconds since the Unix epoch."], parts: u64::PARTS },
];

/// One kind of message in the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSchema {
    /// Its number.
    pub kind: u8,
    /// Its name.
    pub name: &'static str,
    /// What it says, by line.
    pub docs: &'static [&'static str],
    /// Bytes of the head and its fields.
    pub bytes: usize,
    /// What follows the head.
    pub fields: &'static [FieldSchema],
}

/// One field in the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldSchema {
    /// Its name.
    pub name: &'static str,
    /// What it says, by line.
    pub docs: &'static [&'static str],
    /// Its parts, one after the other.
    pub parts: &'static [Part],
}

impl FieldSchema {
    /// Bytes of all its parts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.primitive.bytes()).sum()
    }

    /// The names of its parts with their bytes and the meaning of their numbers.
    pub fn parts(&self) -> impl Iterator<Item = (String, Primitive, &'static [(u8, &'static str)])> + '_ {
        self.parts.iter().map(|part| (format!("{}{}", self.name, part.suffix), part.primitive, part.values))
    }
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Shorter than a head.
    #[error("a message has at least {HEAD_BYTES} bytes, this one {0}")]
    Short(usize),
    /// Another version.
    #[error("messages of version {0} are not known: run a reader of the venue's version")]
    Version(u8),
    /// A kind that this version does not have.
    #[error("version {VERSION} has no messages of kind {0}")]
    Kind(u8),
    /// Flags that this version does not have.
    #[error("version {VERSION} has no flags {0:#04x}")]
    Flags(u8),
    /// Not as long as its kind.
    #[error("a message of kind {kind} has {expected} bytes, this one {got}")]
    Length {
        /// The kind.
        kind: u8,
        /// Bytes of the kind.
        expected: usize,
        /// Bytes that came.
        got: usize,
    },
    /// A field's bytes mean nothing.
    #[error("the field {field} of a message of kind {kind} has a value that means nothing")]
    Field {
        /// The message.
        kind: u8,
        /// The field.
        field: &'static str,
    },
}

macro_rules! messages {
    ($(
        $(#[doc = $doc:literal])+
        $kind:literal $name:ident { $( $(#[doc = $field_doc:literal])+ $field:ident: $type:ty, )+ }
    )+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name { $( $(#[doc = $field_doc])+ pub $field: $type, )+ }

            impl From<$name> for Message {
                #[inline]
                fn from(message: $name) -> Self { Self::$name(message) }
            }
        )+

        /// A message without its head.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Message { $( $(#[doc = $doc])+ $name($name), )+ }

        /// Every message, by kind.
        pub const MESSAGES: &[MessageSchema] = &[$(
            MessageSchema {
                kind: $kind,
                name: stringify!($name),
                docs: &[$($doc),+],
                bytes: HEAD_BYTES $(+ <$type as Field>::BYTES)+,
                fields: &[$(
                    FieldSchema { name: stringify!($field), docs: &[$($field_doc),+], parts: <$type as Field>::PARTS },
                )+],
            },
        )+];

        impl Message {
            /// Its number.
            #[must_use]
            pub const fn kind(&self) -> u8 {
                match self { $(Self::$name(_) => $kind,)+ }
            }

            /// Appends it with its head.
            #[inline]
            pub fn encode(&self, head: &Head, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name(message) => {
                        let mut bytes = [0_u8; HEAD_BYTES $(+ <$type as Field>::BYTES)+];
                        put_head(head, $kind, &mut bytes);
                        let mut rest = &mut bytes[HEAD_BYTES..];
                        $(rest = put(message.$field, rest);)+
                        let _ = rest;
                        out.extend_from_slice(&bytes);
                    })+
                }
            }

            fn decode_body(kind: u8, body: &[u8]) -> Result<Self, DecodeError> {
                match kind {
                    $($kind => {
                        let expected = 0 $(+ <$type as Field>::BYTES)+;
                        if body.len() != expected {
                            let (expected, got) = (HEAD_BYTES + expected, HEAD_BYTES + body.len());
                            return Err(DecodeError::Length { kind, expected, got });
                        }
                        let mut rest = body;
                        let message = $name { $($field: take(&mut rest, kind, stringify!($field))?,)+ };
                        Ok(Self::$name(message))
                    })+
                    _ => Err(DecodeError::Kind(kind)),
                }
            }

            /// Its fields with their values as test vectors have them: each part's number, separated by blanks.
            #[must_use]
            pub fn fields(&self) -> Vec<(&'static str, String)> {
                match self {
                    $(Self::$name(message) => vec![$((stringify!($field), Field::text(message.$field))),+],)+
                }
            }
        }
    };
}

messages! {
    /// An instrument's definition. One lot is `lot_units` smallest units of the base asset; one tick on one lot is
    /// `tick_value_units` smallest units of the quote asset.
    1 InstrumentDefined {
        /// Its id.
        instrument: InstrumentId,
        /// Its name.
        symbol: Symbol,
        /// The base asset.
        base: AssetId,
        /// The quote asset.
        quote: AssetId,
        /// Smallest units of base in a lot.
        lot_units: u64,
        /// Smallest units of quote in a tick, for each lot.
        tick_value_units: u64,
        /// How an incoming order is shared among the orders of a price. Numbers that a rule does not have are 0.
        allocation: Allocation,
        /// What the maker pays, in ppm of a trade's value; negative for a rebate.
        maker_ppm: i32,
        /// What the taker pays, in ppm of a trade's value.
        taker_ppm: i32,
        /// How far from the last trade a limit may lie, in ppm.
        collar_ppm: u32,
        /// How far from the reference price a trade may lie, in ppm.
        band_ppm: u32,
        /// The reference price until the first trade or uncross, in ticks.
        reference_price: PriceTicks,
    }
    /// The instrument is in another trading phase.
    2 PhaseChanged {
        /// The phase.
        phase: TradingPhase,
        /// Who or what changed it.
        cause: PhaseCause,
    }
    /// Two orders traded. There is one such message for each trade, in every view; what a displayed order lost by it follows as
    /// OrderExecuted.
    3 Traded {
        /// The trade's number in the instrument, increasing from 1.
        trade_id: TradeId,
        /// The price, in ticks.
        price: PriceTicks,
        /// The size, in lots.
        size: SizeLots,
        /// The side of the order that came in.
        taker_side: Option<Side>,
    }
    /// What an auction would trade now. Both sizes are 0 and there is no price where nothing would trade, and when the auction is
    /// over.
    4 AuctionIndicated {
        /// The price, in ticks.
        price: Option<PriceTicks>,
        /// What would trade, in lots.
        volume: SizeLots,
        /// How much more is bid (positive) or offered (negative) at the price, in lots.
        imbalance_lots: i64,
    }
    /// An auction is over. Its trades precede this.
    5 AuctionUncrossed {
        /// The price of all its trades, in ticks; none where nothing crossed.
        price: Option<PriceTicks>,
        /// What traded, in lots.
        volume: SizeLots,
        /// How much more was bid (positive) or offered (negative) at the price, in lots.
        imbalance_lots: i64,
    }
    /// A displayed order stands behind all others of its price. The next slice of an iceberg order comes with the same number as the
    /// one before it.
    10 OrderAdded {
        /// The venue's number of the order, as in execution reports.
        order_id: OrderId,
        /// Bid or ask.
        side: Side,
        /// Its limit, in ticks.
        price: PriceTicks,
        /// What it shows, in lots, at least 1.
        shown: SizeLots,
    }
    /// A displayed order traded.
    11 OrderExecuted {
        /// Which order.
        order_id: OrderId,
        /// By which trade.
        trade_id: TradeId,
        /// What it shows after the trade, in lots; 0 where it is displayed no more.
        shown: SizeLots,
    }
    /// A displayed order shows another size without a trade. It keeps its place.
    12 OrderReduced {
        /// Which order.
        order_id: OrderId,
        /// What it shows now, in lots, at least 1.
        shown: SizeLots,
    }
    /// A displayed order is displayed no more.
    13 OrderCancelled {
        /// Which order.
        order_id: OrderId,
    }
    /// A displayed order has another price or size, and stands behind all others of its price.
    14 OrderReplaced {
        /// Which order.
        order_id: OrderId,
        /// Its limit, in ticks.
        price: PriceTicks,
        /// What it shows, in lots, at least 1.
        shown: SizeLots,
    }
    /// A price level shows something else.
    20 LevelChanged {
        /// Bid or ask.
        side: Side,
        /// The price, in ticks.
        price: PriceTicks,
        /// What all its orders show together, in lots; 0 where nothing is left.
        shown: SizeLots,
        /// How many orders show something there.
        order_count: u32,
    }
    /// The best bid and the best ask, where one of them shows something else.
    21 TopChanged {
        /// The best bid's price, in ticks.
        bid: Option<PriceTicks>,
        /// What the best bid shows, in lots; 0 where there is none.
        bid_shown: SizeLots,
        /// How many orders show something there.
        bid_order_count: u32,
        /// The best ask's price, in ticks.
        ask: Option<PriceTicks>,
        /// What the best ask shows, in lots; 0 where there is none.
        ask_shown: SizeLots,
        /// How many orders show something there.
        ask_order_count: u32,
    }
    /// A batch market's definition.
    30 BatchMarketDefined {
        /// Its id.
        market: BatchMarketId,
        /// Its name.
        symbol: Symbol,
        /// From one close to the next, in ns.
        interval_ns: u64,
        /// Most transactions of one batch.
        transactions_max: u32,
    }
    /// A batch market has one more asset.
    31 BatchAssetAdded {
        /// Its place among the market's assets, from 0.
        place: u16,
        /// Which asset.
        asset: AssetId,
    }
    /// A batch market was opened or closed.
    32 BatchPhaseChanged {
        /// The phase.
        phase: BatchPhase,
    }
    /// The time between a batch market's batches changed.
    33 BatchIntervalChanged {
        /// From one close to the next, in ns.
        interval_ns: u64,
    }
    /// A batch was closed. It is cleared later.
    34 BatchClosed {
        /// The block that it becomes.
        block: u64,
        /// How many transactions are kept.
        kept: u32,
        /// How many were left out.
        dropped: u32,
    }
    /// An asset's price in a block and how much of it was sold. One for each asset follows BatchCleared.
    35 AssetCleared {
        /// The block.
        block: u64,
        /// Which asset.
        asset: AssetId,
        /// Its valuation. Only ratios of two valuations of a block mean something.
        price: Option<BatchPrice>,
        /// How much of it was sold, in its smallest units.
        sold: u64,
    }
    /// A batch was cleared: the block is final.
    36 BatchCleared {
        /// The block.
        block: u64,
        /// How many transactions it has.
        transactions: u32,
        /// How many pairs traded.
        pairs: u32,
        /// How many offers traded.
        offers_traded: u64,
        /// Of what could trade at the prices, the share that did not, in parts per billion.
        gap_ppb: u32,
        /// Of what offers clearly in the money wanted to sell, the share that did not trade, in parts per billion.
        unserved_ppb: u32,
        /// Assets that were left without a price.
        set_aside: u16,
        /// The block's hash.
        state_root: [u8; 32],
    }
    /// A snapshot of a channel begins. The messages between this and SnapshotEnded are the state before a message of the channel.
    40 SnapshotBegan {
        /// The channel.
        channel: u32,
        /// The number of the channel's first message that the snapshot does not have.
        next: u64,
        /// How many messages lie between this and SnapshotEnded.
        messages: u64,
    }
    /// A snapshot is whole.
    41 SnapshotEnded {
        /// The channel.
        channel: u32,
        /// The number of the channel's first message that the snapshot does not have.
        next: u64,
    }
}

impl TopChanged {
    /// Nobody bids or offers.
    pub const NOTHING: Self =
        Self { bid: None, bid_shown: SizeLots::ZERO, bid_order_count: 0, ask: None, ask_shown: SizeLots::ZERO, ask_order_count: 0 };
}

impl AuctionIndicated {
    /// Nothing would trade, or the auction is over.
    pub const NOTHING: Self = Self { price: None, volume: SizeLots::ZERO, imbalance_lots: 0 };
}

impl Message {
    /// Reads a message with its head, all of it.
    pub fn decode(bytes: &[u8]) -> Result<(Head, Self), DecodeError> {
        let (head, body) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or(DecodeError::Short(bytes.len()))?;
        let [version, kind, flags, ..] = *head;
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let place = match flags {
            0 => Place::Inner,
            LAST => Place::Last,
            _ => return Err(DecodeError::Flags(flags)),
        };
        let number = |at: usize| <u64 as Field>::get(&head[at..at + 8]).expect("the head has this number");
        let head = Head { place, log_index: number(3), time_ns: number(11) };
        Ok((head, Self::decode_body(kind, body)?))
    }

    /// Its entry in the schema.
    #[must_use]
    pub fn schema(&self) -> &'static MessageSchema {
        let kind = self.kind();
        MESSAGES.iter().find(|schema| schema.kind == kind).expect("every message is in the schema")
    }
}

/// Marks an encoded message as the last of its entry.
///
/// # Panics
/// Where the bytes are no message: the caller has encoded one.
pub(crate) fn mark_last(message: &mut [u8]) {
    message[FLAGS_AT] = LAST;
}

/// Whether an encoded message is the last of its entry.
pub(crate) fn is_last(message: &[u8]) -> bool {
    message.get(FLAGS_AT) == Some(&LAST)
}

#[inline]
fn put_head(head: &Head, kind: u8, out: &mut [u8]) {
    out[0] = VERSION;
    out[1] = kind;
    out[FLAGS_AT] = match head.place {
        Place::Inner => 0,
        Place::Last => LAST,
    };
    head.log_index.put(&mut out[3..11]);
    head.time_ns.put(&mut out[11..HEAD_BYTES]);
}

#[inline]
fn put<F: Field>(value: F, out: &mut [u8]) -> &mut [u8] {
    let (own, rest) = out.split_at_mut(F::BYTES);
    value.put(own);
    rest
}

#[inline]
fn take<F: Field>(rest: &mut &[u8], kind: u8, field: &'static str) -> Result<F, DecodeError> {
    let value = rest.split_at_checked(F::BYTES).and_then(|(own, after)| {
        *rest = after;
        F::get(own)
    });
    value.ok_or(DecodeError::Field { kind, field })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_adds_up() {
        let mut kinds: Vec<u8> = MESSAGES.iter().map(|message| message.kind).collect();
        kinds.dedup();
        assert!(kinds.len() == MESSAGES.len() && kinds.is_sorted(), "{kinds:?}");
        assert_eq!(HEAD.iter().map(FieldSchema::bytes).sum::<usize>(), HEAD_BYTES);
        for message in MESSAGES {
            assert_eq!(
                HEAD_BYTES + message.fields.iter().map(FieldSchema::bytes).sum::<usize>(),
                message.bytes,
                "{}",
                message.name
            );
            assert!(message.bytes <= walras_relay::packet::MESSAGE_BYTES_MAX);
        }
    }

    #[test]
    fn a_message_is_as_written_down() {
        let head = Head { place: Place::Last, log_index: 0x0102, time_ns: 7 };
        let price = PriceTicks::new(300).unwrap();
        let added = OrderAdded { order_id: OrderId(9), side: Side::Sell, price, shown: SizeLots::new(5) };
        let mut bytes = vec![0xee];
        Message::from(added).encode(&head, &mut bytes);
        let expected: &[&[u8]] = &[
            &[0xee, 1, 10, 1, 2, 1, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0],
            &[9, 0, 0, 0, 0, 0, 0, 0, 1, 44, 1, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(bytes, expected.concat());
        assert_eq!(Message::decode(&bytes[1..]), Ok((head, Message::OrderAdded(added))));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let price = PriceTicks::new(300);
        let uncrossed = AuctionUncrossed { price, volume: SizeLots::new(5), imbalance_lots: -3 };
        let mut bytes = Vec::new();
        Message::from(uncrossed).encode(&Head { place: Place::Inner, log_index: 1, time_ns: 7 }, &mut bytes);
        let wrong = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            Message::decode(&bytes).unwrap_err()
        };
        assert_eq!(wrong(0, 2), DecodeError::Version(2));
        assert_eq!(wrong(1, 0), DecodeError::Kind(0));
        assert_eq!(wrong(1, 13), DecodeError::Length { kind: 13, expected: HEAD_BYTES + 8, got: bytes.len() });
        assert_eq!(wrong(2, 2), DecodeError::Flags(2));
        // A price that is said to be absent, and one beyond the largest.
        assert_eq!(wrong(HEAD_BYTES, 0), DecodeError::Field { kind: 5, field: "price" });
        assert_eq!(wrong(HEAD_BYTES + 8, 0x7f), DecodeError::Field { kind: 5, field: "price" });
        assert_eq!(Message::decode(&bytes[..HEAD_BYTES - 1]), Err(DecodeError::Short(HEAD_BYTES - 1)));
        for cut in HEAD_BYTES..bytes.len() {
            assert!(matches!(Message::decode(&bytes[..cut]), Err(DecodeError::Length { .. })), "cut at {cut}");
        }
    }
}
