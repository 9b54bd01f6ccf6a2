//! Bytes: little endian, fixed widths, optional fields announced by a flag byte. No varints (but in the blocks of [`crate::batch`]), so a
//! reader in any language is a page.

use walras_types::{
    AccountId, Amount, AssetId, ClientOrderId, ClientTransferId, ContentDigest, EngineVersion, InstrumentId, LogIndex, OrderId,
    PriceTicks, RejectReason, SessionId, SessionSeq, ShardId, Side, SizeLots, Symbol, TimeNs, TradeId, TransferId, TransferSeq,
};

/// Why bytes were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Offset of the first byte that could not be read.
    pub at_byte: usize,
    /// What was expected there.
    pub expected: &'static str,
    /// The reject reason of a value that is out of its documented range; `None` where the bytes are laid out otherwise than they should be.
    pub out_of_range: Option<RejectReason>,
}

impl DecodeError {
    /// Bytes that are laid out otherwise than they should be.
    #[must_use]
    pub const fn layout(at_byte: usize, expected: &'static str) -> Self {
        Self { at_byte, expected, out_of_range: None }
    }
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "byte {}: expected {}; the sender and this program disagree on the format, or the bytes are damaged",
            self.at_byte, self.expected
        )
    }
}

impl std::error::Error for DecodeError {}

/// Appends values to a buffer.
pub struct Writer<'a>(pub &'a mut Vec<u8>);

/// Takes values off a slice.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

macro_rules! integers {
    ($($name:ident: $int:ty),*) => {
        impl Writer<'_> {
            $(
                #[doc = concat!("Appends a little-endian `", stringify!($int), "`.")]
                #[inline]
                pub fn $name(&mut self, value: $int) { self.0.extend_from_slice(&value.to_le_bytes()); }
            )*
        }
        impl Reader<'_> {
            $(
                #[doc = concat!("Takes a little-endian `", stringify!($int), "`.")]
                #[inline]
                pub fn $name(&mut self) -> Result<$int, DecodeError> {
                    let bytes = self.take(stringify!($int))?;
                    Ok(<$int>::from_le_bytes(bytes))
                }
            )*
        }
    };
}

integers!(u8: u8, u16: u16, u32: u32, u64: u64, i32: i32, i64: i64);

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    #[inline]
    fn take<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], DecodeError> {
        let bytes = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>()).ok_or_else(|| self.expected(expected))?;
        self.at += N;
        Ok(*bytes)
    }

    /// An error at the current byte.
    #[must_use]
    pub fn expected(&self, expected: &'static str) -> DecodeError {
        DecodeError::layout(self.at, expected)
    }

    /// Bytes taken so far.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Takes what `make` accepts out of `value`, or says what was `expected`.
    #[inline]
    pub fn checked<T>(&self, value: Option<T>, expected: &'static str) -> Result<T, DecodeError> {
        value.ok_or_else(|| self.expected(expected))
    }

    /// As [`Self::checked`], of a value whose range is documented: outside it a command is rejected for `reason`.
    #[inline]
    pub fn in_range<T>(&self, value: Option<T>, reason: RejectReason, expected: &'static str) -> Result<T, DecodeError> {
        value.ok_or(DecodeError { out_of_range: Some(reason), ..self.expected(expected) })
    }

    /// Takes the next `len` bytes as they are.
    pub fn slice(&mut self, len: usize, expected: &'static str) -> Result<&'a [u8], DecodeError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = self.checked(rest.get(..len), expected)?;
        self.at += len;
        Ok(taken)
    }

    /// Takes the next `N` bytes as they are.
    pub fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], DecodeError> {
        self.take(expected)
    }

    /// Takes all that is left, as it is.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at = self.bytes.len();
        rest
    }

    /// Checks that nothing is left.
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.expected("the end of the message")) }
    }
}

/// A value with one encoding.
pub trait Wire: Sized {
    /// Appends it.
    fn put(&self, w: &mut Writer<'_>);
    /// Takes it, or says why not.
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

macro_rules! wire_ids {
    ($($id:ident: $int:ident),*) => {
        $(impl Wire for $id {
            #[inline]
            fn put(&self, w: &mut Writer<'_>) { w.$int(self.0); }
            #[inline]
            fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> { Ok(Self(r.$int()?)) }
        })*
    };
}

wire_ids!(ContentDigest: u64, AccountId: u32, AssetId: u32, InstrumentId: u32, OrderId: u64, ClientOrderId: u64, TradeId: u64, TransferId: u64, ClientTransferId: u64, TransferSeq: u64, ShardId: u8, EngineVersion: u16, LogIndex: u64, SessionId: u64, SessionSeq: u64, TimeNs: u64);

impl Wire for PriceTicks {
    #[inline]
    fn put(&self, w: &mut Writer<'_>) {
        w.i64(PriceTicks::get(*self));
    }
    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let ticks = r.i64()?;
        r.in_range(PriceTicks::new(ticks), RejectReason::PriceOutOfRange, "a price from 1 to PRICE_TICKS_MAX")
    }
}

impl Wire for SizeLots {
    #[inline]
    fn put(&self, w: &mut Writer<'_>) {
        w.u64(SizeLots::get(*self));
    }
    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(SizeLots::new(r.u64()?))
    }
}

impl Wire for Amount {
    #[inline]
    fn put(&self, w: &mut Writer<'_>) {
        w.u64(Amount::get(*self));
    }
    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let units = r.u64()?;
        r.in_range(Amount::new(units), RejectReason::AmountOutOfRange, "an amount up to AMOUNT_MAX")
    }
}

/// A hash: its bytes as they are.
impl Wire for [u8; 32] {
    fn put(&self, w: &mut Writer<'_>) {
        w.0.extend_from_slice(self);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.take("a hash of 32 bytes")
    }
}

impl Wire for Side {
    #[inline]
    fn put(&self, w: &mut Writer<'_>) {
        w.u8(*self as u8);
    }
    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u8()? {
            0 => Ok(Side::Buy),
            1 => Ok(Side::Sell),
            _ => Err(r.expected("side 0 (buy) or 1 (sell)")),
        }
    }
}

impl Wire for Symbol {
    fn put(&self, w: &mut Writer<'_>) {
        let text = self.as_str().as_bytes();
        w.u8(u8::try_from(text.len()).expect("a symbol is at most 15 bytes"));
        w.0.extend_from_slice(text);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let len = usize::from(r.u8()?);
        let bytes = r.bytes.get(r.at..r.at + len);
        let text = r.checked(bytes.and_then(|b| std::str::from_utf8(b).ok()), "a symbol")?;
        let symbol = r.checked(Symbol::new(text), "a symbol of A-Z 0-9 / - . _")?;
        r.at += len;
        Ok(symbol)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, w: &mut Writer<'_>) {
        match self {
            None => w.u8(0),
            Some(value) => {
                w.u8(1);
                value.put(w);
            }
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u8()? {
            0 => Ok(None),
            1 => Ok(Some(T::get(r)?)),
            _ => Err(r.expected("0 (absent) or 1 (present)")),
        }
    }
}

/// Implements [`Wire`] for a struct field by field, in the order given.
macro_rules! wire_struct {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::codec::Wire for $name {
            #[inline]
            fn put(&self, w: &mut $crate::codec::Writer<'_>) { $($crate::codec::Wire::put(&self.$field, w);)* }
            #[inline]
            fn get(r: &mut $crate::codec::Reader<'_>) -> Result<Self, $crate::codec::DecodeError> {
                Ok(Self { $($field: $crate::codec::Wire::get(r)?),* })
            }
        }
    };
}

/// Implements [`Wire`] for an enum without fields, one byte each.
macro_rules! wire_enum {
    ($name:ident, $expected:literal { $($variant:ident = $tag:literal),* $(,)? }) => {
        impl $crate::codec::Wire for $name {
            #[inline]
            fn put(&self, w: &mut $crate::codec::Writer<'_>) { w.u8(match self { $(Self::$variant => $tag),* }); }
            #[inline]
            fn get(r: &mut $crate::codec::Reader<'_>) -> Result<Self, $crate::codec::DecodeError> {
                match r.u8()? { $($tag => Ok(Self::$variant),)* _ => Err(r.expected($expected)) }
            }
        }
    };
}

pub(crate) use {wire_enum, wire_struct};

macro_rules! wire_int {
    ($($int:ident),*) => {
        $(impl Wire for $int {
            #[inline]
            fn put(&self, w: &mut Writer<'_>) { w.$int(*self); }
            #[inline]
            fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> { r.$int() }
        })*
    };
}

wire_int!(u8, u16, u32, u64, i32, i64);
