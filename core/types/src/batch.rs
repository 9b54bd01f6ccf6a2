//! What accounts ask of a batch market: transactions that take effect together, whatever their order.

use crate::{AccountId, Amount, AssetId, BatchPrice};

/// A batch market of the venue: a set of assets that clear together. Assigned by the operator in dense order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct BatchMarketId(pub u16);

impl std::fmt::Display for BatchMarketId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// An Ed25519 public key, as RFC 8032 encodes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub [u8; 32]);

/// The number that an account gives a transaction. In one block it may use those of the
/// [`crate::limits::TRANSACTIONS_PER_ACCOUNT_MAX`] numbers that follow the highest one it used before, each once and in any order;
/// those it left out are gone. So no transaction is ever taken twice. Below [`crate::limits::TRANSACTION_SEQ_END`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct TransactionSeq(pub u64);

impl std::fmt::Display for TransactionSeq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What an account asks of a batch market. Its effects are seen when its block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchTransaction {
    /// Who asks.
    pub account: AccountId,
    /// Its number among those of the account.
    pub sequence: TransactionSeq,
    /// What it asks.
    pub operation: BatchOperation,
}

/// An operation of a batch market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOperation {
    /// A new account of this key, with nothing on it. It gets the next id when the block ends; ids follow the order of (asking
    /// account, sequence). No two accounts have one key. The asking account pays the market's [`AccountFee`], if there is one.
    CreateAccount(PublicKey),
    /// Sell an amount of one asset for another.
    CreateOffer(CreateOffer),
    /// Take an offer of one's own out of the market.
    CancelOffer(CancelOffer),
    /// Give an amount of an asset to another account.
    Payment(Payment),
    /// By an asset's issuer: make new units of it.
    Issue(IssuedAmount),
    /// By an asset's issuer: destroy units that it has.
    Burn(IssuedAmount),
}

/// An offer to sell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateOffer {
    /// Where.
    pub market: BatchMarketId,
    /// What is sold.
    pub sell: AssetId,
    /// What for.
    pub buy: AssetId,
    /// How many smallest units are sold, at least 1.
    pub amount: Amount,
    /// Smallest units bought for each one sold, at least. [`BatchPrice::ZERO`] for any price.
    pub limit: BatchPrice,
}

/// A cancel of one offer: its place as the venue reported it when it was created, so that nothing has to be searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelOffer {
    /// Where.
    pub market: BatchMarketId,
    /// What it sells.
    pub sell: AssetId,
    /// What for.
    pub buy: AssetId,
    /// Its effective limit.
    pub limit: BatchPrice,
    /// Its tie-break.
    pub tie: u64,
    /// The number of the transaction that created it.
    pub sequence: TransactionSeq,
}

/// A payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payment {
    /// To whom; not to oneself.
    pub to: AccountId,
    /// Of what.
    pub asset: AssetId,
    /// How many smallest units, at least 1.
    pub amount: Amount,
}

/// Units that an issuer makes or destroys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IssuedAmount {
    /// Of what.
    pub asset: AssetId,
    /// How many smallest units, at least 1.
    pub amount: Amount,
}

/// What it costs to open an account by a transaction. It goes to the fees that the venue collects in that asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountFee {
    /// Any asset of the venue, whether the market has it or not: a payment may be in any, and the fee is one to the venue.
    pub asset: AssetId,
    /// How many smallest units each account costs, at least 1.
    pub amount: Amount,
}

/// Whatever identifies an offer at a venue: who created it by which transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferName {
    /// Whose.
    pub account: AccountId,
    /// By which of its transactions.
    pub sequence: TransactionSeq,
}

impl OfferName {
    /// In one number: the account above, the sequence below. Numbers order as names do.
    #[must_use]
    #[inline]
    pub const fn number(self) -> u64 {
        (self.account.0 as u64) << crate::limits::TRANSACTION_SEQ_BITS | self.sequence.0
    }

    /// The name that a number stands for.
    #[must_use]
    #[inline]
    pub const fn of_number(number: u64) -> Self {
        let sequence = TransactionSeq(number & (crate::limits::TRANSACTION_SEQ_END - 1));
        // An account's id has 26 bits, so nothing is lost.
        Self { account: AccountId((number >> crate::limits::TRANSACTION_SEQ_BITS) as u32), sequence }
    }
}

/// Whether a batch market takes transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum BatchPhase {
    /// Nothing is collected and no batch is closed; what was collected waits, what stands goes on standing.
    Closed = 0,
    /// Transactions collect, and batches are closed.
    Open = 1,
}

/// How it is decided which transactions of a batch are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Intake {
    /// Leaves out each transaction that is invalid by itself. Of an account's other transactions it keeps all or none, by what the
    /// account had when the block began. Neither the order nor the proposer matters. See [`crate::DropReason::is_of_one`].
    Filter = 0,
    /// One after the other in the order given, each against what is left; those refused are left out singly. The filter keeps all
    /// of what this keeps.
    Reserve = 1,
}

/// Whether sell offers that are clearly in the money must trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LowerBounds {
    /// They must, or the proposal is rejected.
    Required = 0,
    /// What is missing is only reported.
    BestEffort = 1,
}

/// Everything, in parts per billion.
pub const PPB_ALL: u32 = 1_000_000_000;

/// How much a clearing may leave undone before every validator refuses its block, in parts per billion of what there was to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QualityMax {
    /// Of what could trade at the block's prices.
    pub gap_ppb: u32,
    /// Of what offers clearly in the money want to trade, in any one asset.
    pub unserved_ppb: u32,
}

impl QualityMax {
    /// What a market has where nothing else is said: a percent of each.
    pub const USUAL: Self = Self { gap_ppb: PPB_ALL / 100, unserved_ppb: PPB_ALL / 100 };

    /// No limit: whatever keeps the other rules is accepted.
    pub const NONE: Self = Self { gap_ppb: PPB_ALL, unserved_ppb: PPB_ALL };

    /// Whether both are shares.
    #[must_use]
    pub const fn is_possible(&self) -> bool {
        self.gap_ppb <= PPB_ALL && self.unserved_ppb <= PPB_ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{ACCOUNTS_MAX, TRANSACTION_SEQ_END};

    #[test]
    fn an_offers_number_says_its_name() {
        for account in [0, 1, ACCOUNTS_MAX - 1] {
            for sequence in [0, 1, TRANSACTION_SEQ_END - 1] {
                let name = OfferName { account: AccountId(account), sequence: TransactionSeq(sequence) };
                assert_eq!(OfferName::of_number(name.number()), name);
            }
        }
        let name = |account, sequence| OfferName { account: AccountId(account), sequence: TransactionSeq(sequence) };
        assert!(name(1, TRANSACTION_SEQ_END - 1).number() < name(2, 0).number());
    }
}
