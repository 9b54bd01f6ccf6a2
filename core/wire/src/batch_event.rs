//! Events of batch markets, and their bytes.
//!
//! A batch gives two groups of events. When it is closed: [`BatchClosed`], then dropped transactions, then new offers. When it is
//! cleared: what traded, by pair and in the order of the offers' keys; what pools traded; what came into pools and went out of them, by
//! (account, sequence), and pools that are gone; the effects of payments, cancels, issues, burns and account fees, by asset; accounts
//! that were created; and last [`BlockCleared`].

use walras_types::{
    AccountFee, AccountId, Amount, AssetId, BatchMarketId, BatchPhase, BatchPrice, DropReason, OfferName, PoolRule, PublicKey,
    TransactionSeq,
};

use crate::batch_command::BatchMarketSpec;
use crate::codec::{DecodeError, Reader, Wire, Writer, wire_struct};

/// What happened to the rules of a batch market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchMarketEvent {
    /// It was defined.
    Created(BatchMarketSpec),
    /// It has one more asset.
    AssetAdded(BatchAssetAdded),
    /// It was opened or closed.
    PhaseChanged(BatchPhaseChanged),
    /// The time between its batches changed.
    IntervalChanged(BatchIntervalChanged),
    /// What it costs to open an account by a transaction changed.
    AccountFeeChanged(AccountFeeChanged),
    /// How many of its assets are currencies was set.
    CurrenciesSet(BatchCurrenciesSet),
}

/// What happened in a batch of a batch market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchEvent {
    /// A transaction is in the batch that collects.
    TransactionCollected(TransactionCollected),
    /// A batch was closed. What was left out of it, and its new offers, follow.
    Closed(BatchClosed),
    /// A transaction was left out of its block.
    TransactionDropped(TransactionDropped),
    /// An offer stands in a batch market.
    OfferOpened(OfferOpened),
    /// An offer, or what was left of it, is gone without a trade.
    OfferCancelled(OfferCancelled),
    /// An offer traded.
    OfferTraded(OfferTraded),
    /// An account paid another.
    Paid(Paid),
    /// An account paid for one that it opened.
    AccountFeePaid(AccountFeePaid),
    /// An asset's issuer made units.
    Issued(SupplyChanged),
    /// An asset's issuer destroyed units.
    Burnt(SupplyChanged),
    /// A pool was created.
    PoolCreated(PoolCreated),
    /// A provider added to a pool.
    PoolDeposited(PoolMoved),
    /// A provider gave shares of a pool back.
    PoolWithdrawn(PoolMoved),
    /// A pool traded.
    PoolTraded(PoolTraded),
    /// A pool has no provider any more and is gone.
    PoolClosed(PoolClosed),
    /// A batch was cleared; all that it did precedes this.
    Cleared(BlockCleared),
    /// A proposed clearing was refused.
    ClearingRejected(BlockRejected),
}

/// A transaction is in the collecting batch. Whether it is kept is known when the batch is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionCollected {
    /// Where.
    pub market: BatchMarketId,
    /// Whose.
    pub account: AccountId,
    /// Its number.
    pub sequence: TransactionSeq,
    /// The block that it is to be in.
    pub block: u64,
}

/// A batch market has one more asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchAssetAdded {
    /// Which market.
    pub market: BatchMarketId,
    /// Which asset; its place is the next.
    pub asset: AssetId,
}

/// A batch market was opened or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchPhaseChanged {
    /// Which.
    pub market: BatchMarketId,
    /// To what.
    pub phase: BatchPhase,
}

/// The time between a batch market's batches changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchIntervalChanged {
    /// Which.
    pub market: BatchMarketId,
    /// From one close to the next.
    pub interval_ns: u64,
}

/// What it costs to open an account by a transaction of a batch market changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountFeeChanged {
    /// Which.
    pub market: BatchMarketId,
    /// The first block whose accounts cost this.
    pub from_block: u64,
    /// What each costs; `None` for nothing.
    pub fee: Option<AccountFee>,
}

/// How many of a batch market's assets are currencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchCurrenciesSet {
    /// Which market.
    pub market: BatchMarketId,
    /// How many, from its first asset on.
    pub currencies: u16,
}

/// An account has a key for its transactions, in place of any before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountKeySet {
    /// Which.
    pub account: AccountId,
    /// Its key.
    pub key: PublicKey,
}

/// An asset has an issuer, in place of any before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IssuerSet {
    /// Which.
    pub asset: AssetId,
    /// Who.
    pub account: AccountId,
}

/// A batch was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchClosed {
    /// Where.
    pub market: BatchMarketId,
    /// The block that it becomes.
    pub block: u64,
    /// The hash of the transactions that are kept and of the block before.
    pub batch_hash: [u8; 32],
    /// How many are kept.
    pub kept: u32,
    /// How many are dropped; each has an event.
    pub dropped: u32,
}

/// A transaction was left out of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionDropped {
    /// Where.
    pub market: BatchMarketId,
    /// Whose.
    pub account: AccountId,
    /// Its number.
    pub sequence: TransactionSeq,
    /// Why.
    pub reason: DropReason,
}

/// An offer stands in a batch market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferOpened {
    /// Where.
    pub market: BatchMarketId,
    /// Whose.
    pub account: AccountId,
    /// By which transaction.
    pub sequence: TransactionSeq,
    /// What it sells.
    pub sell: AssetId,
    /// What for.
    pub buy: AssetId,
    /// How much is for sale.
    pub amount: Amount,
    /// The limit that was asked.
    pub stated: BatchPrice,
    /// The limit in force, which is part of the offer's place.
    pub limit: BatchPrice,
    /// The tie-break, which is part of the offer's place.
    pub tie: u64,
}

/// An offer, or what was left of it, is gone without a trade, and its funds are available: its owner asked, or no units could
/// honour its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferCancelled {
    /// Where.
    pub market: BatchMarketId,
    /// Whose.
    pub account: AccountId,
    /// By which transaction it was created.
    pub sequence: TransactionSeq,
    /// What it sold.
    pub sell: AssetId,
    /// What for.
    pub buy: AssetId,
    /// What did not trade.
    pub amount: Amount,
}

/// An offer traded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferTraded {
    /// Where.
    pub market: BatchMarketId,
    /// Whose.
    pub account: AccountId,
    /// By which transaction it was created.
    pub sequence: TransactionSeq,
    /// What it sells.
    pub sell: AssetId,
    /// What for.
    pub buy: AssetId,
    /// How much it sold.
    pub sold: Amount,
    /// How much it bought.
    pub bought: Amount,
    /// What is left of it.
    pub left: Amount,
}

/// A pool was created, and stands from the block on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolCreated {
    /// Where.
    pub market: BatchMarketId,
    /// By whom and by which transaction: its name.
    pub pool: OfferName,
    /// The first asset.
    pub first: AssetId,
    /// The second asset.
    pub second: AssetId,
    /// How it prices them.
    pub rule: PoolRule,
    /// What it asks beyond its marginal price, in parts per million.
    pub fee_ppm: u32,
    /// What it begins with of each.
    pub amounts: [Amount; 2],
    /// The shares of its creator.
    pub shares: Amount,
}

/// A provider added to a pool or gave shares of it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolMoved {
    /// Where.
    pub market: BatchMarketId,
    /// The pool.
    pub pool: OfferName,
    /// The provider.
    pub account: AccountId,
    /// By which transaction.
    pub sequence: TransactionSeq,
    /// The first asset.
    pub first: AssetId,
    /// The second asset.
    pub second: AssetId,
    /// Units of each that it gave or got.
    pub amounts: [Amount; 2],
    /// Shares that it got or gave.
    pub shares: Amount,
}

/// A pool traded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolTraded {
    /// Where.
    pub market: BatchMarketId,
    /// The pool.
    pub pool: OfferName,
    /// What it sold.
    pub sell: AssetId,
    /// What for.
    pub buy: AssetId,
    /// How much it sold.
    pub sold: Amount,
    /// How much it bought.
    pub bought: Amount,
}

/// A pool is gone, since all its shares were given back. The units that rounding left in it are among the fees that the venue collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolClosed {
    /// Where.
    pub market: BatchMarketId,
    /// The pool.
    pub pool: OfferName,
    /// The first asset.
    pub first: AssetId,
    /// The second asset.
    pub second: AssetId,
    /// Units of each that were left.
    pub amounts: [Amount; 2],
}

/// An account paid another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paid {
    /// In whose block.
    pub market: BatchMarketId,
    /// Who paid.
    pub from: AccountId,
    /// Whom.
    pub to: AccountId,
    /// Of what.
    pub asset: AssetId,
    /// How much.
    pub amount: Amount,
}

/// An account paid for an account that it opened: the amount is among the fees that the venue collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountFeePaid {
    /// In whose block.
    pub market: BatchMarketId,
    /// Who paid.
    pub account: AccountId,
    /// Of what.
    pub asset: AssetId,
    /// How much.
    pub amount: Amount,
}

/// An asset's issuer made or destroyed units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupplyChanged {
    /// Whose.
    pub account: AccountId,
    /// Of what.
    pub asset: AssetId,
    /// How much.
    pub amount: Amount,
}

/// A batch was cleared: its block is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCleared {
    /// Where.
    pub market: BatchMarketId,
    /// The block's number.
    pub block: u64,
    /// How many transactions it has.
    pub transactions: u32,
    /// How many pairs traded.
    pub pairs: u32,
    /// How many offers traded.
    pub offers_traded: u64,
    /// Of what could trade at the prices, the share that did not, in parts per billion.
    pub gap_ppb: u32,
    /// Of what offers clearly in the money wanted to sell, the share that did not trade, in parts per billion: of the asset that is
    /// worst off.
    pub unserved_ppb: u32,
    /// Assets that could have traded with others and were left without a price.
    pub set_aside: u16,
    /// What the state hashes to; the block's hash.
    pub state_root: [u8; 32],
}

/// A proposed clearing was refused and changed nothing; another may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRejected {
    /// Where.
    pub market: BatchMarketId,
    /// The block that it was for.
    pub block: u64,
    /// Why: the numbers of `walras_batch::BlockRejected`.
    pub code: u16,
}

wire_struct!(TransactionCollected { market, account, sequence, block });
wire_struct!(BatchAssetAdded { market, asset });
wire_struct!(BatchPhaseChanged { market, phase });
wire_struct!(BatchIntervalChanged { market, interval_ns });
wire_struct!(AccountFeeChanged { market, from_block, fee });
wire_struct!(BatchCurrenciesSet { market, currencies });
wire_struct!(AccountKeySet { account, key });
wire_struct!(IssuerSet { asset, account });
wire_struct!(BatchClosed { market, block, batch_hash, kept, dropped });
wire_struct!(TransactionDropped { market, account, sequence, reason });
wire_struct!(OfferOpened { market, account, sequence, sell, buy, amount, stated, limit, tie });
wire_struct!(OfferCancelled { market, account, sequence, sell, buy, amount });
wire_struct!(OfferTraded { market, account, sequence, sell, buy, sold, bought, left });
wire_struct!(PoolCreated { market, pool, first, second, rule, fee_ppm, amounts, shares });
wire_struct!(PoolMoved { market, pool, account, sequence, first, second, amounts, shares });
wire_struct!(PoolTraded { market, pool, sell, buy, sold, bought });
wire_struct!(PoolClosed { market, pool, first, second, amounts });
wire_struct!(Paid { market, from, to, asset, amount });
wire_struct!(AccountFeePaid { market, account, asset, amount });
wire_struct!(SupplyChanged { account, asset, amount });
wire_struct!(BlockCleared { market, block, transactions, pairs, offers_traded, gap_ppb, unserved_ppb, set_aside, state_root });
wire_struct!(BlockRejected { market, block, code });

impl Wire for DropReason {
    fn put(&self, w: &mut Writer<'_>) {
        w.u8(self.number());
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = r.u8()?;
        r.checked(DropReason::from_number(number), "a drop reason's number")
    }
}
