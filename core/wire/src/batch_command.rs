//! Commands of batch markets, and their bytes.

use walras_types::{
    AccountFee, AccountId, AssetId, BatchMarketId, BatchPhase, BatchTransaction, Commission, EngineVersion, Intake, LowerBounds,
    Mu, PublicKey, QualityMax, Symbol,
};

use crate::batch::{
    HEAD_BYTES, OF_CHAIN, SET_KEY, SIGNATURE_BYTES, SignedTransaction, TERMS, TRANSACTION_BYTES_MAX, decode_transaction,
    encode_transaction, transaction_bytes_of,
};
use crate::codec::{DecodeError, Reader, Wire, Writer, wire_enum, wire_struct};

/// What the operator asks of the rules of batch markets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchMarketCommand {
    /// Define a batch market. It starts [`BatchPhase::Closed`], without assets.
    Create(BatchMarketSpec),
    /// Add an asset to a batch market.
    AddAsset(AddBatchAsset),
    /// Open or close a batch market.
    SetPhase(SetBatchPhase),
    /// Set the time between a batch market's batches.
    SetInterval(SetBatchInterval),
    /// Set what it costs to open an account by a transaction.
    SetAccountFee(SetAccountFee),
    /// Set how many of a batch market's assets are currencies.
    SetCurrencies(SetBatchCurrencies),
}

/// What is asked of the batches of a batch market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchCommand {
    /// Put a signed transaction into the batch that collects.
    Submit(SubmitTransaction),
    /// The leader: close a market's batch.
    Close(CloseBatch),
    /// The leader: go on with a block that is carried out in steps.
    Step(StepBlock),
}

/// A batch market's definition. Its assets are added one by one, see [`AddBatchAsset`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchMarketSpec {
    /// Its id, the next free one.
    pub market: BatchMarketId,
    /// Its name.
    pub symbol: Symbol,
    /// The share of what an offer buys that stays with the venue.
    pub commission: Commission,
    /// How far in the money an offer clearly is: more than the commission.
    pub mu: Mu,
    /// Whether it must.
    pub lower_bounds: LowerBounds,
    /// How much a clearing may leave undone; one beyond is refused, unless it clears nothing.
    pub quality: QualityMax,
    /// How it is decided which transactions of a batch are kept.
    pub intake: Intake,
    /// Time from one close to the next, [`walras_types::limits::BATCH_INTERVAL_NS_MIN`] to
    /// [`walras_types::limits::BATCH_INTERVAL_NS_MAX`]. The state machine has no clock: the leader closes batches in time.
    pub interval_ns: u64,
    /// Most transactions of one batch, 1 to [`walras_types::limits::BATCH_VENUE_TRANSACTIONS_MAX`].
    pub transactions_max: u32,
    /// The domain that its accounts sign, see [`crate::batch::SigningDomain`].
    pub domain: [u8; 32],
}

/// Adds an asset to a batch market that was never open: [`walras_types::limits::BATCH_VENUE_CURRENCIES_MAX`] at most where all are
/// currencies, else as many as have [`walras_types::limits::BATCH_VENUE_PAIRS_MAX`] pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddBatchAsset {
    /// Where.
    pub market: BatchMarketId,
    /// What: it gets the next place among the market's assets.
    pub asset: AssetId,
}

/// Sets how many of a batch market's assets are currencies, before it is opened for the first time: those that it was given first.
/// Two assets of which neither is a currency do not trade with each other. Where this is never set, all assets are currencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetBatchCurrencies {
    /// Where.
    pub market: BatchMarketId,
    /// How many: 1 to [`walras_types::limits::BATCH_VENUE_CURRENCIES_MAX`].
    pub currencies: u16,
}

/// Opens or closes a batch market. The first opening fixes its assets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetBatchPhase {
    /// Which.
    pub market: BatchMarketId,
    /// To what.
    pub phase: BatchPhase,
}

/// Sets the time between a batch market's batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetBatchInterval {
    /// Which.
    pub market: BatchMarketId,
    /// From one close to the next, in the range of [`BatchMarketSpec::interval_ns`].
    pub interval_ns: u64,
}

/// Sets what it costs to open an account by a transaction of a batch market. A market that was just created takes nothing.
///
/// It applies to each batch whose first transaction comes after this command: so a transaction pays the fee in force when it was
/// collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetAccountFee {
    /// Which.
    pub market: BatchMarketId,
    /// What each account costs from then on; `None` for nothing.
    pub fee: Option<AccountFee>,
}

/// Gives an account the key that signs its transactions, in place of the one that it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetAccountKey {
    /// Whose.
    pub account: AccountId,
    /// Which: of one account only.
    pub key: PublicKey,
}

/// Says who may make and destroy units of an asset by transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetIssuer {
    /// Of what.
    pub asset: AssetId,
    /// Who.
    pub account: AccountId,
}

/// Puts a signed transaction into the batch that collects.
///
/// The transaction is kept as its bytes, which take half of the room that its fields do: so no command is longer for it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SubmitTransaction {
    /// Little endian, as all of it is: without an alignment no byte is lost.
    market: [u8; 2],
    /// Of a transaction, zeros after it.
    bytes: [u8; TRANSACTION_BYTES_MAX],
    signature: [u8; SIGNATURE_BYTES],
}

impl SubmitTransaction {
    /// The command. The signature was checked before, and is checked again by an audit of the log.
    ///
    /// # Errors
    /// [`DecodeError`] where the transaction has an id or a number that no reader takes.
    pub fn new(market: BatchMarketId, signed: &SignedTransaction) -> Result<Self, DecodeError> {
        let mut buffer = Vec::with_capacity(TRANSACTION_BYTES_MAX);
        encode_transaction(&signed.transaction, &mut buffer);
        decode_transaction(&buffer)?;
        Ok(Self::of_bytes(market, &buffer, signed.signature))
    }

    fn of_bytes(market: BatchMarketId, transaction: &[u8], signature: [u8; SIGNATURE_BYTES]) -> Self {
        let mut bytes = [0; TRANSACTION_BYTES_MAX];
        bytes[..transaction.len()].copy_from_slice(transaction);
        Self { market: market.0.to_le_bytes(), bytes, signature }
    }

    /// Into which market's batch. A transaction that names a market has to name this one.
    #[must_use]
    pub const fn market(&self) -> BatchMarketId {
        BatchMarketId(u16::from_le_bytes(self.market))
    }

    /// What is asked.
    #[must_use]
    pub fn transaction(&self) -> BatchTransaction {
        decode_transaction(self.transaction_bytes()).expect("the bytes were a transaction's when they were taken")
    }

    /// The transaction's bytes, those that are signed.
    #[must_use]
    pub fn transaction_bytes(&self) -> &[u8] {
        &self.bytes[..transaction_bytes_of(&self.bytes)]
    }

    /// The version of the engine whose programs, and later ones, can read it: 13 where it sets its account's key or has terms, 14 where it
    /// is of a chain.
    pub(crate) const fn since(&self) -> EngineVersion {
        let tag = self.bytes[HEAD_BYTES - 1];
        if tag & OF_CHAIN != 0 {
            EngineVersion(14)
        } else if tag == SET_KEY || tag & TERMS != 0 {
            EngineVersion(13)
        } else {
            EngineVersion(0)
        }
    }

    /// What is said to be its account's signature.
    #[must_use]
    pub const fn signature(&self) -> &[u8; SIGNATURE_BYTES] {
        &self.signature
    }

    /// The transaction and its signature.
    #[must_use]
    pub fn signed(&self) -> SignedTransaction {
        SignedTransaction { transaction: self.transaction(), signature: self.signature }
    }

    /// Whose transaction it is: read from the first of its bytes.
    #[must_use]
    pub fn account(&self) -> AccountId {
        let [a, b, c, d, ..] = self.bytes;
        AccountId(u32::from_le_bytes([a, b, c, d]))
    }
}

impl std::fmt::Debug for SubmitTransaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubmitTransaction").field("market", &self.market()).field("signed", &self.signed()).finish()
    }
}

/// Takes the next step of a market's block, as much as one entry does of it. The number lets it be submitted twice: it is applied once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepBlock {
    /// Where.
    pub market: BatchMarketId,
    /// Which block: the next one.
    pub block: u64,
    /// How many of its steps came before.
    pub step: u32,
}

/// Closes a market's batch: from then on its transactions are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseBatch {
    /// Which.
    pub market: BatchMarketId,
    /// The number of its next block, so that no batch is closed twice.
    pub block: u64,
}

wire_struct!(AccountFee { asset, amount });
wire_struct!(QualityMax { gap_ppb, unserved_ppb });
wire_struct!(BatchMarketSpec {
    market,
    symbol,
    commission,
    mu,
    lower_bounds,
    quality,
    intake,
    interval_ns,
    transactions_max,
    domain
});
wire_struct!(AddBatchAsset { market, asset });
wire_struct!(SetBatchPhase { market, phase });
wire_struct!(SetBatchInterval { market, interval_ns });
wire_struct!(SetAccountFee { market, fee });
wire_struct!(SetBatchCurrencies { market, currencies });
wire_struct!(SetAccountKey { account, key });
wire_struct!(SetIssuer { asset, account });
wire_struct!(CloseBatch { market, block });
wire_struct!(StepBlock { market, block, step });

wire_enum!(BatchPhase, "batch phase 0 (closed) or 1 (open)" { Closed = 0, Open = 1 });
wire_enum!(Intake, "intake 0 (filter) or 1 (reserve)" { Filter = 0, Reserve = 1 });
wire_enum!(LowerBounds, "lower bounds 0 (required) or 1 (best effort)" { Required = 0, BestEffort = 1 });

impl Wire for SubmitTransaction {
    fn put(&self, w: &mut Writer<'_>) {
        self.market().put(w);
        w.0.extend_from_slice(self.transaction_bytes());
        self.signature.put(w);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let market = Wire::get(r)?;
        let (mut bytes, begin) = (r.clone(), r.position());
        BatchTransaction::get(r)?;
        let transaction = bytes.slice(r.position() - begin, "a transaction")?;
        Ok(Self::of_bytes(market, transaction, Wire::get(r)?))
    }
}

/// 0 for none, or `k` of the commission 2^-k.
impl Wire for Commission {
    fn put(&self, w: &mut Writer<'_>) {
        w.u8(self.exponent().unwrap_or(0));
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u8()? {
            0 => Ok(Self::NONE),
            k => r.checked(Self::new(k), "0 for no commission, or 1 to 30 for 2^-k"),
        }
    }
}

impl Wire for Mu {
    fn put(&self, w: &mut Writer<'_>) {
        w.u8(self.exponent());
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let m = r.u8()?;
        r.checked(Self::new(m), "1 to 30 for mu = 2^-m")
    }
}
