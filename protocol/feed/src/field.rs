//! The types that a message's fields have, each with one encoding of a fixed size.

use walras_types::{
    Allocation, AssetId, BatchMarketId, BatchPhase, BatchPrice, InstrumentId, OrderId, PriceTicks, Side, SizeLots, Symbol, TradeId,
    TradingPhase,
};
use walras_wire::PhaseCause;

/// An integer, or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// One byte.
    U8,
    /// Two bytes, little endian.
    U16,
    /// Four bytes, little endian.
    U32,
    /// Eight bytes, little endian.
    U64,
    /// Four bytes, little endian, two's complement.
    I32,
    /// Eight bytes, little endian, two's complement.
    I64,
    /// The bits of a positive binary64, little endian.
    Binary64,
    /// ASCII, padded with zeros.
    Text(usize),
    /// As they are.
    Bytes(usize),
}

impl Primitive {
    /// How many bytes it has.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 | Self::I32 => 4,
            Self::U64 | Self::I64 | Self::Binary64 => 8,
            Self::Text(bytes) | Self::Bytes(bytes) => bytes,
        }
    }

    /// Its name in the documents.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::U8 => "u8".into(),
            Self::U16 => "u16".into(),
            Self::U32 => "u32".into(),
            Self::U64 => "u64".into(),
            Self::I32 => "i32".into(),
            Self::I64 => "i64".into(),
            Self::Binary64 => "binary64".into(),
            Self::Text(bytes) => format!("text of {bytes}"),
            Self::Bytes(bytes) => format!("{bytes} bytes"),
        }
    }
}

/// A part of a field. Most fields have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// What follows the field's name; nothing where it has one part.
    pub suffix: &'static str,
    /// Its bytes.
    pub primitive: Primitive,
    /// What each number means, where only some are allowed.
    pub values: &'static [(u8, &'static str)],
}

impl Part {
    const fn plain(primitive: Primitive) -> Self {
        Self { suffix: "", primitive, values: &[] }
    }

    const fn named(suffix: &'static str, primitive: Primitive) -> Self {
        Self { suffix, primitive, values: &[] }
    }

    const fn choice(suffix: &'static str, values: &'static [(u8, &'static str)]) -> Self {
        Self { suffix, primitive: Primitive::U8, values }
    }
}

const PRESENT: Part = Part::choice("_present", &[(0, "absent: the value is 0"), (1, "present")]);

/// A type of fields.
pub(crate) trait Field: Copy {
    /// Bytes of each value.
    const BYTES: usize;
    /// The parts of a value, which have as many bytes together.
    const PARTS: &'static [Part];
    /// Writes into as many bytes.
    fn put(self, out: &mut [u8]);
    /// Reads as many bytes.
    fn get(bytes: &[u8]) -> Option<Self>;
    /// As test vectors have it: each part's number, separated by blanks.
    fn text(self) -> String;
}

macro_rules! integers {
    ($($int:ident as $primitive:ident),*) => {
        $(impl Field for $int {
            const BYTES: usize = size_of::<$int>();
            const PARTS: &'static [Part] = &[Part::plain(Primitive::$primitive)];
            #[inline]
            fn put(self, out: &mut [u8]) { out.copy_from_slice(&self.to_le_bytes()); }
            #[inline]
            fn get(bytes: &[u8]) -> Option<Self> { Some(Self::from_le_bytes(bytes.try_into().ok()?)) }
            fn text(self) -> String { self.to_string() }
        })*
    };
}

integers!(u8 as U8, u16 as U16, u32 as U32, u64 as U64, i32 as I32, i64 as I64);

macro_rules! ids {
    ($($id:ident: $int:ident),*) => {
        $(impl Field for $id {
            const BYTES: usize = <$int as Field>::BYTES;
            const PARTS: &'static [Part] = <$int as Field>::PARTS;
            #[inline]
            fn put(self, out: &mut [u8]) { self.0.put(out); }
            #[inline]
            fn get(bytes: &[u8]) -> Option<Self> { $int::get(bytes).map(Self) }
            fn text(self) -> String { self.to_string() }
        })*
    };
}

ids!(InstrumentId: u32, AssetId: u32, BatchMarketId: u16, OrderId: u64, TradeId: u64);

macro_rules! choices {
    ($($type:ty { $($value:path = $number:literal $name:literal),* $(,)? })*) => {
        $(impl Field for $type {
            const BYTES: usize = 1;
            const PARTS: &'static [Part] = &[Part::choice("", &[$(($number, $name)),*])];
            #[inline]
            fn put(self, out: &mut [u8]) { out[0] = match self { $($value => $number),* }; }
            #[inline]
            fn get(bytes: &[u8]) -> Option<Self> {
                match bytes { $([$number] => Some($value),)* _ => None }
            }
            fn text(self) -> String { match self { $($value => $number.to_string()),* } }
        })*
    };
}

choices! {
    Side { Self::Buy = 0 "buy", Self::Sell = 1 "sell" }
    TradingPhase {
        Self::Closed = 0 "closed",
        Self::PreOpen = 1 "pre-open",
        Self::OpeningAuction = 2 "opening auction",
        Self::Continuous = 3 "continuous",
        Self::Halt = 4 "halt",
        Self::ClosingAuction = 5 "closing auction",
    }
    PhaseCause { Self::Operator = 0 "the operator", Self::PriceBand = 1 "the price band" }
    BatchPhase { Self::Closed = 0 "closed", Self::Open = 1 "open" }
}

/// Who came in; nobody does in an uncross.
impl Field for Option<Side> {
    const BYTES: usize = 1;
    const PARTS: &'static [Part] = &[Part::choice("", &[(0, "buy"), (1, "sell"), (2, "nobody: an auction")])];
    #[inline]
    fn put(self, out: &mut [u8]) {
        out[0] = match self {
            Some(Side::Buy) => 0,
            Some(Side::Sell) => 1,
            None => 2,
        };
    }
    #[inline]
    fn get(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0] => Some(Some(Side::Buy)),
            [1] => Some(Some(Side::Sell)),
            [2] => Some(None),
            _ => None,
        }
    }
    fn text(self) -> String {
        self.map_or("2".to_owned(), Side::text)
    }
}

impl Field for SizeLots {
    const BYTES: usize = 8;
    const PARTS: &'static [Part] = u64::PARTS;
    #[inline]
    fn put(self, out: &mut [u8]) {
        SizeLots::get(self).put(out);
    }
    #[inline]
    fn get(bytes: &[u8]) -> Option<Self> {
        <u64 as Field>::get(bytes).map(SizeLots::new)
    }
    fn text(self) -> String {
        self.to_string()
    }
}

impl Field for PriceTicks {
    const BYTES: usize = 8;
    const PARTS: &'static [Part] = i64::PARTS;
    #[inline]
    fn put(self, out: &mut [u8]) {
        PriceTicks::get(self).put(out);
    }
    #[inline]
    fn get(bytes: &[u8]) -> Option<Self> {
        <i64 as Field>::get(bytes).and_then(PriceTicks::new)
    }
    fn text(self) -> String {
        self.to_string()
    }
}

impl Field for Option<PriceTicks> {
    const BYTES: usize = 9;
    const PARTS: &'static [Part] = &[PRESENT, Part::plain(Primitive::I64)];
    #[inline]
    fn put(self, out: &mut [u8]) {
        out[0] = u8::from(self.is_some());
        self.map_or(0, PriceTicks::get).put(&mut out[1..]);
    }
    #[inline]
    fn get(bytes: &[u8]) -> Option<Self> {
        let (present, price) = bytes.split_first()?;
        match (*present, <i64 as Field>::get(price)?) {
            (0, 0) => Some(None),
            (1, ticks) => PriceTicks::new(ticks).map(Some),
            _ => None,
        }
    }
    fn text(self) -> String {
        format!("{} {}", u8::from(self.is_some()), self.map_or(0, PriceTicks::get))
    }
}

impl Field for Option<BatchPrice> {
    const BYTES: usize = 9;
    const PARTS: &'static [Part] = &[PRESENT, Part::plain(Primitive::Binary64)];
    fn put(self, out: &mut [u8]) {
        out[0] = u8::from(self.is_some());
        self.map_or(0, BatchPrice::bits).put(&mut out[1..]);
    }
    fn get(bytes: &[u8]) -> Option<Self> {
        let (present, price) = bytes.split_first()?;
        match (*present, <u64 as Field>::get(price)?) {
            (0, 0) => Some(None),
            (1, bits) if bits != 0 => BatchPrice::from_bits(bits).ok().map(Some),
            _ => None,
        }
    }
    fn text(self) -> String {
        format!("{} {:#018x}", u8::from(self.is_some()), self.map_or(0, BatchPrice::bits))
    }
}

/// One byte more than the longest symbol, so that every text ends with a zero.
const SYMBOL_BYTES: usize = Symbol::LEN_MAX + 1;

impl Field for Symbol {
    const BYTES: usize = SYMBOL_BYTES;
    const PARTS: &'static [Part] = &[Part::plain(Primitive::Text(SYMBOL_BYTES))];
    fn put(self, out: &mut [u8]) {
        let text = self.as_str().as_bytes();
        out[..text.len()].copy_from_slice(text);
        out[text.len()..].fill(0);
    }
    fn get(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|&byte| byte == 0)?;
        let (text, padding) = bytes.split_at(end);
        let is_padded = padding.iter().all(|&byte| byte == 0);
        Symbol::new(std::str::from_utf8(text).ok()?).filter(|_| is_padded)
    }
    fn text(self) -> String {
        self.as_str().to_owned()
    }
}

impl Field for Allocation {
    const BYTES: usize = 18;
    const PARTS: &'static [Part] = &[
        Part::choice("", &[(0, "price-time"), (1, "pro rata"), (2, "top order, then pro rata"), (3, "split")]),
        Part::named("_min_lots", Primitive::U64),
        Part::named("_top_lots_max", Primitive::U64),
        Part::named("_fifo_percent", Primitive::U8),
    ];
    fn put(self, out: &mut [u8]) {
        let (kind, min_lots, top_lots_max, fifo_percent) = flat(self);
        out[0] = kind;
        min_lots.put(&mut out[1..9]);
        top_lots_max.put(&mut out[9..17]);
        out[17] = fifo_percent;
    }
    fn get(bytes: &[u8]) -> Option<Self> {
        let lots = |at: usize| <SizeLots as Field>::get(bytes.get(at..at + 8)?);
        let (kind, min_lots, top_lots_max, fifo_percent) = (*bytes.first()?, lots(1)?, lots(9)?, *bytes.get(17)?);
        let allocation = match kind {
            0 => Self::PriceTime,
            1 => Self::ProRata { min_lots },
            2 => Self::TopProRata { top_lots_max, min_lots },
            3 => Self::Split { fifo_percent, min_lots },
            _ => return None,
        };
        (flat(allocation) == (kind, min_lots, top_lots_max, fifo_percent)).then_some(allocation)
    }
    fn text(self) -> String {
        let (kind, min_lots, top_lots_max, fifo_percent) = flat(self);
        format!("{kind} {min_lots} {top_lots_max} {fifo_percent}")
    }
}

/// What an allocation does not have is 0.
fn flat(allocation: Allocation) -> (u8, SizeLots, SizeLots, u8) {
    match allocation {
        Allocation::PriceTime => (0, SizeLots::ZERO, SizeLots::ZERO, 0),
        Allocation::ProRata { min_lots } => (1, min_lots, SizeLots::ZERO, 0),
        Allocation::TopProRata { top_lots_max, min_lots } => (2, min_lots, top_lots_max, 0),
        Allocation::Split { fifo_percent, min_lots } => (3, min_lots, SizeLots::ZERO, fifo_percent),
    }
}

impl Field for [u8; 32] {
    const BYTES: usize = 32;
    const PARTS: &'static [Part] = &[Part::plain(Primitive::Bytes(32))];
    fn put(self, out: &mut [u8]) {
        out.copy_from_slice(&self);
    }
    fn get(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }
    fn text(self) -> String {
        self.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
