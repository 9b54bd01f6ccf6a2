//! The messages of the market-data feed, as `docs/market-data-feed.md` has them. Prices are in ticks, sizes in lots, times in nanoseconds
//! since the Unix epoch. Bytes that are no message of this version give none, so a strategy ignores what it does not know.
//!
//! A test of the venue (`protocol/feed/tests/feed/strategy_sdk.rs`) compares all of it with the feed's schema and its test vectors.

/// The version of the messages.
pub const VERSION: u8 = 1;

/// Bytes of the head.
pub const HEAD_BYTES: usize = 19;

/// The market of a channel: an instrument, or a batch market.
#[must_use]
pub const fn market_of(channel: u32) -> u32 {
    channel & 0x00ff_ffff
}

/// Whether a channel has the snapshots of others. Its messages between SnapshotBegan and SnapshotEnded are those of the channel that the
/// first of them names.
#[must_use]
pub const fn is_of_snapshots(channel: u32) -> bool {
    market_of(channel) >= 0x00ff_ffc0
}

/// What every message begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The last message of its log entry in its channel: what follows from it is a state that the venue was in.
    pub is_last: bool,
    /// The log entry that it comes from.
    pub log_index: u64,
    /// The entry's time.
    pub time_ns: u64,
}

/// A value of a fixed size.
trait Field: Sized {
    const BYTES: usize;
    fn get(bytes: &[u8]) -> Option<Self>;
}

fn take<F: Field>(rest: &mut &[u8]) -> Option<F> {
    let (own, after) = rest.split_at_checked(F::BYTES)?;
    *rest = after;
    F::get(own)
}

/// The head of a message of this kind and length, and what follows it.
fn head_of(bytes: &[u8], kind: u8, len: usize) -> Option<(Head, &[u8])> {
    let (mut head, body) = bytes.split_at_checked(HEAD_BYTES)?;
    let [version, its_kind, flags]: [u8; 3] = take(&mut head)?;
    if bytes.len() != len || version != VERSION || its_kind != kind || flags > 1 {
        return None;
    }
    Some((Head { is_last: flags == 1, log_index: take(&mut head)?, time_ns: take(&mut head)? }, body))
}

macro_rules! integers {
    ($($int:ident),*) => {
        $(impl Field for $int {
            const BYTES: usize = size_of::<$int>();
            fn get(bytes: &[u8]) -> Option<Self> { Some(Self::from_le_bytes(bytes.try_into().ok()?)) }
        })*
    };
}

integers!(u8, u16, u32, u64, i32, i64);

impl<const N: usize> Field for [u8; N] {
    const BYTES: usize = N;
    fn get(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }
}

macro_rules! choices {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident { $( $(#[doc = $value_doc:literal])+ $value:ident = $number:literal, )+ }
    )+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $name { $( $(#[doc = $value_doc])+ $value = $number, )+ }

            impl Field for $name {
                const BYTES: usize = 1;
                fn get(bytes: &[u8]) -> Option<Self> {
                    match bytes {
                        $([$number] => Some(Self::$value),)+
                        _ => None,
                    }
                }
            }
        )+
    };
}

choices! {
    /// The side of an order or a level.
    Side {
        /// Buy, or bid.
        Buy = 0,
        /// Sell, or ask.
        Sell = 1,
    }
    /// The trading phase of an instrument.
    TradingPhase {
        /// Closed.
        Closed = 0,
        /// Before the opening auction.
        PreOpen = 1,
        /// The opening auction.
        OpeningAuction = 2,
        /// Continuous trading.
        Continuous = 3,
        /// Halted.
        Halt = 4,
        /// The closing auction.
        ClosingAuction = 5,
    }
    /// Who or what changed a phase.
    PhaseCause {
        /// The operator.
        Operator = 0,
        /// The price band.
        PriceBand = 1,
    }
    /// The phase of a batch market.
    BatchPhase {
        /// Closed.
        Closed = 0,
        /// Open.
        Open = 1,
    }
}

/// The side of the order that came in; none came in to an uncross.
impl Field for Option<Side> {
    const BYTES: usize = 1;
    fn get(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [2] => Some(None),
            _ => Side::get(bytes).map(Some),
        }
    }
}

/// A value that is 0 where it is absent.
fn optional(bytes: &[u8]) -> Option<Option<u64>> {
    let (present, value) = bytes.split_first()?;
    match (*present, u64::get(value)?) {
        (0, 0) => Some(None),
        (1, value) => Some(Some(value)),
        _ => None,
    }
}

/// A price.
impl Field for Option<i64> {
    const BYTES: usize = 9;
    fn get(bytes: &[u8]) -> Option<Self> {
        optional(bytes).map(|price| price.map(u64::cast_signed))
    }
}

/// An asset's valuation in a block. Only ratios of two valuations of a block mean something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchPrice(u64);

impl BatchPrice {
    /// As a number, exactly.
    #[must_use]
    pub const fn get(self) -> f64 {
        f64::from_bits(self.0)
    }

    /// The bits of that number.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

impl Field for Option<BatchPrice> {
    const BYTES: usize = 9;
    fn get(bytes: &[u8]) -> Option<Self> {
        optional(bytes).map(|bits| bits.map(BatchPrice))
    }
}

/// A market's name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Symbol([u8; 16]);

impl Symbol {
    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let name = self.0.split(|byte| *byte == 0).next().unwrap_or_default();
        core::str::from_utf8(name).unwrap_or_default()
    }
}

impl core::fmt::Debug for Symbol {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Symbol").field(&self.as_str()).finish()
    }
}

impl Field for Symbol {
    const BYTES: usize = 16;
    fn get(bytes: &[u8]) -> Option<Self> {
        let text: [u8; 16] = bytes.try_into().ok()?;
        text.is_ascii().then_some(Self(text))
    }
}

/// How an incoming order is shared among the orders of a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// The earliest first.
    PriceTime,
    /// By size.
    ProRata {
        /// Smaller shares are rounded to nothing.
        min_lots: u64,
    },
    /// The first order at a price up to a size, the rest by size.
    TopProRata {
        /// What the first order has at most.
        top_lots_max: u64,
        /// Smaller shares are rounded to nothing.
        min_lots: u64,
    },
    /// A part the earliest first, the rest by size.
    Split {
        /// That part.
        fifo_percent: u8,
        /// Smaller shares are rounded to nothing.
        min_lots: u64,
    },
}

impl Field for Allocation {
    const BYTES: usize = 18;
    fn get(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        let (kind, min_lots, top_lots_max, fifo_percent): (u8, u64, u64, u8) = (take(rest)?, take(rest)?, take(rest)?, take(rest)?);
        match kind {
            0 => Some(Self::PriceTime),
            1 => Some(Self::ProRata { min_lots }),
            2 => Some(Self::TopProRata { top_lots_max, min_lots }),
            3 => Some(Self::Split { fifo_percent, min_lots }),
            _ => None,
        }
    }
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

            impl $name {
                /// The number of this kind of messages.
                pub const KIND: u8 = $kind;
                /// How long each of them is, with its head.
                pub const BYTES: usize = HEAD_BYTES $(+ <$type as Field>::BYTES)+;

                /// Reads such a message, all of `bytes`; none where it is another one.
                #[must_use]
                pub fn decode(bytes: &[u8]) -> Option<(Head, Self)> {
                    let (head, mut rest) = head_of(bytes, Self::KIND, Self::BYTES)?;
                    Some((head, Self { $($field: take(&mut rest)?,)+ }))
                }
            }
        )+

        /// A message of any kind, without its head.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Message { $( $(#[doc = $doc])+ $name($name), )+ }

        impl Message {
            /// Reads a message, all of `bytes`.
            #[must_use]
            pub fn decode(bytes: &[u8]) -> Option<(Head, Self)> {
                match *bytes.get(1)? {
                    $($kind => $name::decode(bytes).map(|(head, message)| (head, Self::$name(message))),)+
                    _ => None,
                }
            }
        }

        /// Every kind of messages: its number, its name and its length.
        pub const MESSAGES: &[(u8, &str, usize)] = &[$(($name::KIND, stringify!($name), $name::BYTES)),+];
    };
}

messages! {
    /// An instrument's definition.
    1 InstrumentDefined {
        /// Its id.
        instrument: u32,
        /// Its name.
        symbol: Symbol,
        /// The base asset.
        base: u32,
        /// The quote asset.
        quote: u32,
        /// Smallest units of base in a lot.
        lot_units: u64,
        /// Smallest units of quote in a tick, for each lot.
        tick_value_units: u64,
        /// How an incoming order is shared among the orders of a price.
        allocation: Allocation,
        /// What the maker pays, in ppm of a trade's value; negative for a rebate.
        maker_ppm: i32,
        /// What the taker pays, in ppm of a trade's value.
        taker_ppm: i32,
        /// How far from the last trade a limit may lie, in ppm.
        collar_ppm: u32,
        /// How far from the reference price a trade may lie, in ppm.
        band_ppm: u32,
        /// The reference price until the first trade or uncross.
        reference_price: i64,
    }
    /// The instrument is in another trading phase.
    2 PhaseChanged {
        /// The phase.
        phase: TradingPhase,
        /// Who or what changed it.
        cause: PhaseCause,
    }
    /// Two orders traded. There is one such message for each trade, in every view.
    3 Traded {
        /// The trade's number in the instrument, increasing from 1.
        trade_id: u64,
        /// The price.
        price: i64,
        /// The size.
        size: u64,
        /// The side of the order that came in.
        taker_side: Option<Side>,
    }
    /// What an auction would trade now. There is no price where nothing would trade, and when the auction is over.
    4 AuctionIndicated {
        /// The price.
        price: Option<i64>,
        /// What would trade.
        volume: u64,
        /// How much more is bid (positive) or offered (negative) at the price.
        imbalance_lots: i64,
    }
    /// An auction is over. Its trades precede this.
    5 AuctionUncrossed {
        /// The price of all its trades; none where nothing crossed.
        price: Option<i64>,
        /// What traded.
        volume: u64,
        /// How much more was bid (positive) or offered (negative) at the price.
        imbalance_lots: i64,
    }
    /// A displayed order stands behind all others of its price.
    10 OrderAdded {
        /// The venue's number of the order.
        order_id: u64,
        /// Bid or ask.
        side: Side,
        /// Its limit.
        price: i64,
        /// What it shows, at least 1.
        shown: u64,
    }
    /// A displayed order traded.
    11 OrderExecuted {
        /// Which order.
        order_id: u64,
        /// By which trade.
        trade_id: u64,
        /// What it shows after the trade; 0 where it is displayed no more.
        shown: u64,
    }
    /// A displayed order shows another size without a trade. It keeps its place.
    12 OrderReduced {
        /// Which order.
        order_id: u64,
        /// What it shows now, at least 1.
        shown: u64,
    }
    /// A displayed order is displayed no more.
    13 OrderCancelled {
        /// Which order.
        order_id: u64,
    }
    /// A displayed order has another price or size, and stands behind all others of its price.
    14 OrderReplaced {
        /// Which order.
        order_id: u64,
        /// Its limit.
        price: i64,
        /// What it shows, at least 1.
        shown: u64,
    }
    /// A price level shows something else.
    20 LevelChanged {
        /// Bid or ask.
        side: Side,
        /// The price.
        price: i64,
        /// What all its orders show together; 0 where nothing is left.
        shown: u64,
        /// How many orders show something there.
        order_count: u32,
    }
    /// The best bid and the best ask, where one of them shows something else.
    21 TopChanged {
        /// The best bid's price.
        bid: Option<i64>,
        /// What the best bid shows; 0 where there is none.
        bid_shown: u64,
        /// How many orders show something there.
        bid_order_count: u32,
        /// The best ask's price.
        ask: Option<i64>,
        /// What the best ask shows; 0 where there is none.
        ask_shown: u64,
        /// How many orders show something there.
        ask_order_count: u32,
    }
    /// A batch market's definition.
    30 BatchMarketDefined {
        /// Its id.
        market: u16,
        /// Its name.
        symbol: Symbol,
        /// From one close to the next.
        interval_ns: u64,
        /// Most transactions of one batch.
        transactions_max: u32,
    }
    /// A batch market has one more asset.
    31 BatchAssetAdded {
        /// Its place among the market's assets, from 0.
        place: u16,
        /// Which asset.
        asset: u32,
    }
    /// A batch market was opened or closed.
    32 BatchPhaseChanged {
        /// The phase.
        phase: BatchPhase,
    }
    /// The time between a batch market's batches changed.
    33 BatchIntervalChanged {
        /// From one close to the next.
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
        asset: u32,
        /// Its valuation.
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
