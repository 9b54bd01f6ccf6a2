//! Transactions to bytes and back.

use std::num::NonZero;

use walras_types::limits::{ACCOUNTS_MAX, ASSETS_MAX, MESSAGE_BYTES_MAX, TRANSACTION_SEQ_END, UNTIL_BLOCK_END};
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, CancelOffer, CreateOffer, CreatePool,
    DepositToPool, IssuedAmount, Joined, OfferName, Payment, PoolRule, PublicKey, TransactionSeq, TransactionTerms,
    WithdrawFromPool,
};

use crate::codec::{DecodeError, Reader, Wire, Writer, wire_struct};

/// Bytes of an Ed25519 signature.
pub const SIGNATURE_BYTES: usize = 64;

/// Bytes before a transaction's fields: account, sequence, tag.
pub(crate) const HEAD_BYTES: usize = 4 + 8 + 1;

/// The tag of [`BatchOperation::SetKey`].
pub(crate) const SET_KEY: u8 = 10;

/// Added to an operation's tag where a transaction says the last block that may have it, which follows in five bytes.
const UNTIL: u8 = 0x80;

/// Added to an operation's tag where a transaction is kept only together with the account's next one.
const WITH_NEXT: u8 = 0x40;

/// Added to an operation's tag where a transaction is kept only together with the account's one before.
const WITH_ONE_BEFORE: u8 = 0x20;

/// Added to an operation's tag where a transaction is of a chain, in which each says with which it is kept.
pub(crate) const OF_CHAIN: u8 = 0x10;

/// Added to an operation's tag for terms, any of them.
pub(crate) const TERMS: u8 = UNTIL | JOINS;

/// Added to an operation's tag where a transaction is joined with others, any of them.
const JOINS: u8 = WITH_NEXT | WITH_ONE_BEFORE | OF_CHAIN;

const _: () = assert!(SET_KEY & TERMS == 0, "the largest tag leaves the bits of terms free");

/// Bytes of the longest operation with its tag, a new pool: market, two assets, rule, fee, two amounts.
pub const OPERATION_BYTES_MAX: usize = 1 + 2 + 4 + 4 + 1 + 4 + 4 + 8 + 8;

/// Bytes of the longest transaction: account, sequence, operation, last block.
pub const TRANSACTION_BYTES_MAX: usize = HEAD_BYTES - 1 + OPERATION_BYTES_MAX + UNTIL_BYTES;

/// Bytes of the last block that may have a transaction.
const UNTIL_BYTES: usize = 5;

const _: () = assert!(UNTIL_BLOCK_END == 1 << (8 * UNTIL_BYTES));

/// Bytes of an operation's fields, by its tag.
const FIELD_BYTES: [usize; 11] = [0, 32, 26, 34, 16, 12, 12, 35, 30, 22, 32];

const _: () = assert!(TRANSACTION_BYTES_MAX + SIGNATURE_BYTES <= MESSAGE_BYTES_MAX);

/// A transaction and its account's signature, which nobody has checked yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedTransaction {
    /// What is asked.
    pub transaction: BatchTransaction,
    /// By whom: an Ed25519 signature over the venue's [`crate::batch::SigningDomain`] and the transaction's bytes.
    pub signature: [u8; SIGNATURE_BYTES],
}

/// How many bytes the transaction has that `bytes` begin with; 0 where they begin with none.
#[must_use]
pub(crate) fn transaction_bytes_of(bytes: &[u8]) -> usize {
    let Some(&tag) = bytes.get(HEAD_BYTES - 1) else { return 0 };
    let until = if tag & UNTIL == 0 { 0 } else { UNTIL_BYTES };
    FIELD_BYTES.get(usize::from(tag & !TERMS)).map_or(0, |fields| HEAD_BYTES + until + fields)
}

/// Appends a transaction to `buffer`. Ids and numbers beyond the limits are written as they are; no reader takes them. A last block beyond
/// the limit is written as the latest one.
pub fn encode_transaction(transaction: &BatchTransaction, buffer: &mut Vec<u8>) {
    transaction.put(&mut Writer(buffer));
}

/// Reads the one transaction that `bytes` are.
///
/// # Errors
/// [`DecodeError`] where the bytes stop being one: cut short, too long, an unknown tag, an id, number, amount or price out of range.
pub fn decode_transaction(bytes: &[u8]) -> Result<BatchTransaction, DecodeError> {
    whole(bytes)
}

/// Appends a signed transaction to `buffer`: the transaction's bytes, then the signature's.
pub fn encode_signed_transaction(signed: &SignedTransaction, buffer: &mut Vec<u8>) {
    signed.put(&mut Writer(buffer));
}

/// Reads the one signed transaction that `bytes` are. All but the last [`SIGNATURE_BYTES`] of them are the transaction's, those signed.
///
/// # Errors
/// [`DecodeError`], as [`decode_transaction`].
pub fn decode_signed_transaction(bytes: &[u8]) -> Result<SignedTransaction, DecodeError> {
    whole(bytes)
}

/// Reads the first of transactions that follow each other without anything between, and how many bytes it has.
///
/// # Errors
/// [`DecodeError`], as [`decode_transaction`].
pub fn decode_next_transaction(bytes: &[u8]) -> Result<(BatchTransaction, usize), DecodeError> {
    first(bytes)
}

/// Reads the operation that `bytes` begin with: a transaction's tag and fields, without account and sequence. And how many bytes it
/// has.
///
/// # Errors
/// [`DecodeError`], as [`decode_transaction`].
pub fn decode_operation(bytes: &[u8]) -> Result<(BatchOperation, usize), DecodeError> {
    first(bytes)
}

/// The tag of the operation and the bytes of its fields, of a transaction's bytes: what [`encode_operation`] writes, without terms.
///
/// # Panics
/// When the bytes are no transaction's.
#[must_use]
pub fn operation_bytes(transaction: &[u8]) -> (u8, &[u8]) {
    let tag = transaction[HEAD_BYTES - 1];
    let fields_at = if tag & UNTIL == 0 { HEAD_BYTES } else { HEAD_BYTES + UNTIL_BYTES };
    (tag & !TERMS, &transaction[fields_at..])
}

/// Appends an operation to `buffer`: what [`decode_operation`] reads.
pub fn encode_operation(operation: &BatchOperation, buffer: &mut Vec<u8>) {
    operation.put(&mut Writer(buffer));
}

fn first<T: Wire>(bytes: &[u8]) -> Result<(T, usize), DecodeError> {
    let r = &mut Reader::new(bytes);
    let value = T::get(r)?;
    Ok((value, r.position()))
}

fn whole<T: Wire>(bytes: &[u8]) -> Result<T, DecodeError> {
    let r = &mut Reader::new(bytes);
    let value = T::get(r)?;
    r.clone().finish()?;
    Ok(value)
}

impl Wire for BatchTransaction {
    #[inline]
    fn put(&self, w: &mut Writer<'_>) {
        let TransactionTerms { until, joined } = self.terms;
        self.account.put(w);
        self.sequence.put(w);
        let tag_at = w.0.len();
        self.operation.put(w);
        w.0[tag_at] |= match joined {
            Joined::No => 0,
            Joined::Next => WITH_NEXT,
            Joined::First => OF_CHAIN | WITH_NEXT,
            Joined::Middle => OF_CHAIN | WITH_NEXT | WITH_ONE_BEFORE,
            Joined::Last => OF_CHAIN | WITH_ONE_BEFORE,
        };
        if let Some(until) = until {
            w.0[tag_at] |= UNTIL;
            let bytes = until.get().min(UNTIL_BLOCK_END - 1).to_le_bytes();
            w.0.splice(tag_at + 1..tag_at + 1, bytes[..UNTIL_BYTES].iter().copied());
        }
    }
    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (account, sequence, tag) = (account(r)?, Wire::get(r)?, r.u8()?);
        let joined =
            r.checked(joined_of(tag), "joined: 0, 64 (with the next), 80 (first of a chain), 112 (middle) or 48 (last)")?;
        let until = if tag & UNTIL == 0 { None } else { Some(last_block(r)?) };
        Ok(Self { account, sequence, terms: TransactionTerms { until, joined }, operation: fields_of(tag & !TERMS, r)? })
    }
}

impl Wire for BatchOperation {
    #[inline]
    fn put(&self, w: &mut Writer<'_>) {
        match self {
            Self::CreateAccount(key) => tagged(w, 1, key),
            Self::CreateOffer(offer) => tagged(w, 2, offer),
            Self::CancelOffer(cancel) => tagged(w, 3, cancel),
            Self::Payment(payment) => tagged(w, 4, payment),
            Self::Issue(issued) => tagged(w, 5, issued),
            Self::Burn(burned) => tagged(w, 6, burned),
            Self::CreatePool(create) => tagged(w, 7, create),
            Self::DepositToPool(deposit) => tagged(w, 8, deposit),
            Self::WithdrawFromPool(withdraw) => tagged(w, 9, withdraw),
            Self::SetKey(key) => tagged(w, SET_KEY, key),
        }
    }
    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let tag = r.u8()?;
        fields_of(tag, r)
    }
}

/// With which others a transaction of this tag is kept; `None` where the bits say nothing that makes sense.
#[inline]
const fn joined_of(tag: u8) -> Option<Joined> {
    const FIRST: u8 = OF_CHAIN | WITH_NEXT;
    const MIDDLE: u8 = FIRST | WITH_ONE_BEFORE;
    const LAST: u8 = OF_CHAIN | WITH_ONE_BEFORE;
    match tag & JOINS {
        0 => Some(Joined::No),
        WITH_NEXT => Some(Joined::Next),
        FIRST => Some(Joined::First),
        MIDDLE => Some(Joined::Middle),
        LAST => Some(Joined::Last),
        _ => None,
    }
}

/// The operation of a tag, whose fields follow.
#[inline]
fn fields_of(tag: u8, r: &mut Reader<'_>) -> Result<BatchOperation, DecodeError> {
    match tag {
        1 => Ok(BatchOperation::CreateAccount(Wire::get(r)?)),
        2 => Ok(BatchOperation::CreateOffer(Wire::get(r)?)),
        3 => Ok(BatchOperation::CancelOffer(Wire::get(r)?)),
        4 => Ok(BatchOperation::Payment(Wire::get(r)?)),
        5 => Ok(BatchOperation::Issue(Wire::get(r)?)),
        6 => Ok(BatchOperation::Burn(Wire::get(r)?)),
        7 => Ok(BatchOperation::CreatePool(Wire::get(r)?)),
        8 => Ok(BatchOperation::DepositToPool(Wire::get(r)?)),
        9 => Ok(BatchOperation::WithdrawFromPool(Wire::get(r)?)),
        SET_KEY => Ok(BatchOperation::SetKey(Wire::get(r)?)),
        _ => Err(r.expected(
            "operation 1 (create account), 2 (create offer), 3 (cancel), 4 (payment), 5 (issue), 6 (burn), 7 (create pool), \
             8 (deposit), 9 (withdraw) or 10 (set key)",
        )),
    }
}

fn last_block(r: &mut Reader<'_>) -> Result<NonZero<u64>, DecodeError> {
    let mut bytes = [0; 8];
    bytes[..UNTIL_BYTES].copy_from_slice(r.slice(UNTIL_BYTES, "the last block that may have the transaction, in 5 bytes")?);
    let block = u64::from_le_bytes(bytes);
    r.checked(NonZero::new(block), "the last block that may have the transaction, at least 1")
}

#[inline]
fn tagged<T: Wire>(w: &mut Writer<'_>, tag: u8, value: &T) {
    w.u8(tag);
    value.put(w);
}

#[inline]
fn account(r: &mut Reader<'_>) -> Result<AccountId, DecodeError> {
    let account = r.u32()?;
    r.checked((account < ACCOUNTS_MAX).then_some(AccountId(account)), "an account below ACCOUNTS_MAX (2^26)")
}

#[inline]
fn asset(r: &mut Reader<'_>) -> Result<AssetId, DecodeError> {
    let asset = r.u32()?;
    r.checked((asset < ASSETS_MAX).then_some(AssetId(asset)), "an asset below ASSETS_MAX (4096)")
}

impl Wire for TransactionSeq {
    #[inline]
    fn put(&self, w: &mut Writer<'_>) {
        w.u64(self.0);
    }
    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let sequence = r.u64()?;
        r.checked((sequence < TRANSACTION_SEQ_END).then_some(Self(sequence)), "a transaction's number below 2^38")
    }
}

impl Wire for BatchMarketId {
    #[inline]
    fn put(&self, w: &mut Writer<'_>) {
        w.u16(self.0);
    }
    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self(r.u16()?))
    }
}

impl Wire for PublicKey {
    fn put(&self, w: &mut Writer<'_>) {
        self.0.put(w);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let key = r.slice(32, "a public key of 32 bytes")?;
        Ok(Self(key.try_into().expect("a slice of 32 bytes")))
    }
}

impl Wire for BatchPrice {
    #[inline]
    fn put(&self, w: &mut Writer<'_>) {
        w.u64(self.bits());
    }
    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let bits = r.u64()?;
        r.checked(Self::from_bits(bits).ok(), "0, or the bits of a binary64 within 2^-126 and 2^126")
    }
}

impl Wire for CreateOffer {
    #[inline]
    fn put(&self, w: &mut Writer<'_>) {
        let Self { market, sell, buy, amount, limit } = self;
        market.put(w);
        sell.put(w);
        buy.put(w);
        amount.put(w);
        limit.put(w);
    }
    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { market: Wire::get(r)?, sell: asset(r)?, buy: asset(r)?, amount: Wire::get(r)?, limit: Wire::get(r)? })
    }
}

impl Wire for CancelOffer {
    #[inline]
    fn put(&self, w: &mut Writer<'_>) {
        let Self { market, sell, buy, limit, tie, sequence } = self;
        market.put(w);
        sell.put(w);
        buy.put(w);
        limit.put(w);
        tie.put(w);
        sequence.put(w);
    }
    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            market: Wire::get(r)?,
            sell: asset(r)?,
            buy: asset(r)?,
            limit: Wire::get(r)?,
            tie: Wire::get(r)?,
            sequence: Wire::get(r)?,
        })
    }
}

impl Wire for Payment {
    #[inline]
    fn put(&self, w: &mut Writer<'_>) {
        let Self { to, asset, amount } = self;
        to.put(w);
        asset.put(w);
        amount.put(w);
    }
    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { to: account(r)?, asset: asset(r)?, amount: Wire::get(r)? })
    }
}

impl Wire for IssuedAmount {
    #[inline]
    fn put(&self, w: &mut Writer<'_>) {
        let Self { asset, amount } = self;
        asset.put(w);
        amount.put(w);
    }
    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { asset: asset(r)?, amount: Wire::get(r)? })
    }
}

impl Wire for OfferName {
    fn put(&self, w: &mut Writer<'_>) {
        self.account.put(w);
        self.sequence.put(w);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { account: account(r)?, sequence: Wire::get(r)? })
    }
}

/// Its number, then its parameters in one.
impl Wire for PoolRule {
    fn put(&self, w: &mut Writer<'_>) {
        let (number, parameters) = self.parts();
        w.u8(number);
        w.u32(parameters);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (number, parameters) = (r.u8()?, r.u32()?);
        let rule = Self::of_parts(number, parameters);
        r.checked(
            rule,
            "pool rule 0 (constant product), 1 (weighted, weights 1 to 1000) or 2 (stable swap, amplification 1 to 1000000)",
        )
    }
}

impl Wire for [Amount; 2] {
    fn put(&self, w: &mut Writer<'_>) {
        self.iter().for_each(|amount| amount.put(w));
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok([Wire::get(r)?, Wire::get(r)?])
    }
}

impl Wire for CreatePool {
    fn put(&self, w: &mut Writer<'_>) {
        let Self { market, assets, rule, fee_ppm, amounts } = self;
        market.put(w);
        assets.iter().for_each(|asset| asset.put(w));
        rule.put(w);
        w.u32(*fee_ppm);
        amounts.put(w);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (market, assets) = (Wire::get(r)?, [asset(r)?, asset(r)?]);
        Ok(Self { market, assets, rule: Wire::get(r)?, fee_ppm: r.u32()?, amounts: Wire::get(r)? })
    }
}

wire_struct!(DepositToPool { market, pool, amounts });
wire_struct!(WithdrawFromPool { market, pool, shares });

impl Wire for [u8; SIGNATURE_BYTES] {
    fn put(&self, w: &mut Writer<'_>) {
        w.0.extend_from_slice(self);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let signature = r.slice(SIGNATURE_BYTES, "a signature of 64 bytes")?;
        Ok(signature.try_into().expect("a slice of 64 bytes"))
    }
}

wire_struct!(SignedTransaction { transaction, signature });
