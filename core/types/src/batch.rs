//! The transactions of batch markets, which take effect together, independent of their order.

use std::num::NonZero;

use crate::{AccountId, Amount, AssetId, BatchPrice, CreatePool, DepositToPool, WithdrawFromPool};

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

/// The number that an account gives a transaction. In one block it may use the [`crate::limits::TRANSACTIONS_PER_ACCOUNT_MAX`]
/// numbers after the highest one used before, each once and in any order; skipped numbers are lost. So no transaction is ever
/// accepted twice. Below [`crate::limits::TRANSACTION_SEQ_END`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct TransactionSeq(pub u64);

impl std::fmt::Display for TransactionSeq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A transaction of a batch market. Its effects are visible when its block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchTransaction {
    /// The requesting account.
    pub account: AccountId,
    /// The account's number for it.
    pub sequence: TransactionSeq,
    /// When it counts.
    pub terms: TransactionTerms,
    /// The requested operation.
    pub operation: BatchOperation,
}

impl BatchTransaction {
    /// A transaction that counts alone, in whatever block.
    #[must_use]
    #[inline]
    pub const fn new(account: AccountId, sequence: TransactionSeq, operation: BatchOperation) -> Self {
        Self { account, sequence, terms: TransactionTerms::NONE, operation }
    }

    /// The same with these terms.
    #[must_use]
    pub const fn with_terms(self, terms: TransactionTerms) -> Self {
        Self { terms, ..self }
    }
}

/// The terms on which a transaction counts. Its account signs them with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionTerms {
    /// The last block of the market that may have it, below [`crate::limits::UNTIL_BLOCK_END`]. `None` for any.
    pub until: Option<NonZero<u64>>,
    /// With which others it is kept, in the same block, or not at all.
    pub joined: Joined,
}

impl TransactionTerms {
    /// It counts alone, in whatever block.
    pub const NONE: Self = Self { until: None, joined: Joined::No };

    /// Whether a block of this number may have it.
    #[must_use]
    #[inline]
    pub fn allow(&self, block: u64) -> bool {
        self.until.is_none_or(|until| block <= until.get())
    }
}

/// With which of its account's transactions one is kept together or not at all.
///
/// Several operations of which all count or none are a *chain*: transactions of an account whose numbers follow each other, each of
/// which says where it stands. So no block keeps a part of one, whatever became of the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Joined {
    /// With none.
    #[default]
    No,
    /// With that of the next number, which does not say so and may be kept alone. What transactions said before there were chains.
    Next,
    /// With the second of a chain, whose first one it is.
    First,
    /// With the ones before and after it in a chain.
    Middle,
    /// With the one before it in a chain, whose last one it is.
    Last,
}

impl Joined {
    /// The place in a chain of so many transactions, counted from 0. One alone is joined with none.
    #[must_use]
    pub const fn of_chain(place: usize, count: usize) -> Self {
        match (place, count) {
            (_, 0 | 1) => Self::No,
            (0, _) => Self::First,
            _ if place + 1 < count => Self::Middle,
            _ => Self::Last,
        }
    }

    /// Whether it needs the transaction of the number before.
    #[must_use]
    #[inline]
    pub const fn needs_one_before(self) -> bool {
        matches!(self, Self::Middle | Self::Last)
    }

    /// Whether it needs the transaction of the next number.
    #[must_use]
    #[inline]
    pub const fn needs_next(self) -> bool {
        matches!(self, Self::Next | Self::First | Self::Middle)
    }

    /// Whether it is joined with the transaction of the next number, where that one is joined like this.
    #[must_use]
    #[inline]
    pub const fn meets(self, next: Self) -> bool {
        match self {
            Self::No | Self::Last => false,
            Self::Next => !next.needs_one_before(),
            Self::First | Self::Middle => next.needs_one_before(),
        }
    }
}

/// Which of these transactions are refused, or joined with one that is, directly or through others. Each comes with whether it is
/// refused. They may come in any order.
#[must_use]
pub fn torn_chains(transactions: &[(BatchTransaction, bool)]) -> Vec<bool> {
    let mut is_torn: Vec<bool> = transactions.iter().map(|(_, is_refused)| *is_refused).collect();
    let is_any_joined = transactions.iter().any(|(transaction, _)| transaction.terms.joined != Joined::No);
    if !is_any_joined || !is_torn.contains(&true) {
        return is_torn;
    }
    let mut by_number: Vec<usize> = (0..transactions.len()).collect();
    by_number.sort_by_key(|place| (transactions[*place].0.account, transactions[*place].0.sequence));
    let are_joined = |first: &usize, second: &usize| {
        let (first, second) = (&transactions[*first].0, &transactions[*second].0);
        let is_next = first.sequence.0.checked_add(1) == Some(second.sequence.0);
        first.terms.joined.meets(second.terms.joined) && first.account == second.account && is_next
    };
    for chain in by_number.chunk_by(are_joined) {
        if chain.iter().any(|place| is_torn[*place]) {
            chain.iter().for_each(|place| is_torn[*place] = true);
        }
    }
    is_torn
}

/// An operation of a batch market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOperation {
    /// Opens an empty account with this key. It gets the next id when the block ends; ids follow the order of (requesting account,
    /// sequence). Each key has one account. The requesting account pays the market's [`AccountFee`], if there is one.
    CreateAccount(PublicKey),
    /// Offers an amount of one asset for another.
    CreateOffer(CreateOffer),
    /// Cancels an offer of the account.
    CancelOffer(CancelOffer),
    /// Transfers an amount of an asset to another account.
    Payment(Payment),
    /// Creates new units of an asset, by its issuer.
    Issue(IssuedAmount),
    /// Destroys units that the asset's issuer has.
    Burn(IssuedAmount),
    /// Creates a pool that trades two assets by a rule.
    CreatePool(CreatePool),
    /// Adds to a pool for shares of it.
    DepositToPool(DepositToPool),
    /// Gives shares of a pool back.
    WithdrawFromPool(WithdrawFromPool),
    /// Replaces the account's key by this one, which no other account has, when the block ends. Until then the old key signs.
    SetKey(PublicKey),
}

/// An offer to sell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateOffer {
    /// The batch market.
    pub market: BatchMarketId,
    /// The sold asset.
    pub sell: AssetId,
    /// The asset that it buys.
    pub buy: AssetId,
    /// Amount to sell, in smallest units, at least 1.
    pub amount: Amount,
    /// Minimum of units bought per unit sold. [`BatchPrice::ZERO`] for any price.
    pub limit: BatchPrice,
}

/// A cancel of one offer. It gives the offer's key as the venue reported it, so that no search is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelOffer {
    /// The batch market.
    pub market: BatchMarketId,
    /// The asset that it sells.
    pub sell: AssetId,
    /// The asset that it buys.
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
    /// The receiver, another account.
    pub to: AccountId,
    /// The asset.
    pub asset: AssetId,
    /// Amount in smallest units, at least 1.
    pub amount: Amount,
}

/// Units that an issuer makes or destroys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IssuedAmount {
    /// The asset.
    pub asset: AssetId,
    /// Amount in smallest units, at least 1.
    pub amount: Amount,
}

/// The fee for opening an account by a transaction. It goes to the venue's collected fees in that asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountFee {
    /// Any asset of the venue, even if the market does not trade it.
    pub asset: AssetId,
    /// Fee per account in smallest units, at least 1.
    pub amount: Amount,
}

/// Identifies an offer or a pool of a venue by its account and the transaction that created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferName {
    /// The account.
    pub account: AccountId,
    /// The number of the transaction.
    pub sequence: TransactionSeq,
}

impl OfferName {
    /// Encodes it in one number, the account in the high bits. The order of numbers is that of names.
    #[must_use]
    #[inline]
    pub const fn number(self) -> u64 {
        (self.account.0 as u64) << crate::limits::TRANSACTION_SEQ_BITS | self.sequence.0
    }

    /// Decodes a number.
    #[must_use]
    #[inline]
    pub const fn of_number(number: u64) -> Self {
        let sequence = TransactionSeq(number & (crate::limits::TRANSACTION_SEQ_END - 1));
        // An account's id has 26 bits, so nothing is lost.
        Self { account: AccountId((number >> crate::limits::TRANSACTION_SEQ_BITS) as u32), sequence }
    }

    /// Whether account and number are below their limits. [`Self::number`] of a name beyond them is that of another name.
    #[must_use]
    #[inline]
    pub const fn is_possible(self) -> bool {
        self.account.0 < crate::limits::ACCOUNTS_MAX && self.sequence.0 < crate::limits::TRANSACTION_SEQ_END
    }
}

/// Whether a batch market accepts transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum BatchPhase {
    /// Nothing is collected and no batch is closed. Collected transactions wait, and standing offers stay.
    Closed = 0,
    /// Transactions collect, and batches are closed.
    Open = 1,
}

/// The rule for which transactions of a batch are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Intake {
    /// Drops each transaction that is invalid by itself. Of an account's other transactions it keeps all or none, depending on the
    /// account's balances at the start of the block. The result does not depend on the order or the proposer. See
    /// [`crate::DropReason::is_of_one`].
    Filter = 0,
    /// One by one in the given order, each against the remaining balances; refused ones are dropped individually. The filter keeps
    /// all of what this keeps.
    Reserve = 1,
}

/// Whether sell offers that are clearly in the money must trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LowerBounds {
    /// They must, or the proposal is rejected.
    Required = 0,
    /// A shortfall is only reported.
    BestEffort = 1,
}

/// The whole, in parts per billion.
pub const PPB_ALL: u32 = 1_000_000_000;

/// Limits on the quality of a clearing, in parts per billion. Validators refuse blocks beyond them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QualityMax {
    /// Maximum share of possible trades at the block's prices that do not happen.
    pub gap_ppb: u32,
    /// Maximum share of offers clearly in the money that does not trade, in any one asset.
    pub unserved_ppb: u32,
}

impl QualityMax {
    /// The default: one percent each.
    pub const USUAL: Self = Self { gap_ppb: PPB_ALL / 100, unserved_ppb: PPB_ALL / 100 };

    /// No limit: any clearing that keeps the other rules is accepted.
    pub const NONE: Self = Self { gap_ppb: PPB_ALL, unserved_ppb: PPB_ALL };

    /// Whether both are at most the whole.
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
                assert_eq!((OfferName::of_number(name.number()), name.is_possible()), (name, true));
            }
        }
        let name = |account, sequence| OfferName { account: AccountId(account), sequence: TransactionSeq(sequence) };
        for (beyond, taken_for) in [(name(ACCOUNTS_MAX, 1), name(0, 1)), (name(0, TRANSACTION_SEQ_END), name(1, 0))] {
            assert_eq!((beyond.number(), beyond.is_possible()), (taken_for.number(), false));
        }
        assert!(name(1, TRANSACTION_SEQ_END - 1).number() < name(2, 0).number());
    }

    /// What is refused spreads to whatever is joined with it, step by step.
    fn torn_step_by_step(transactions: &[(BatchTransaction, bool)]) -> Vec<bool> {
        let mut is_torn: Vec<bool> = transactions.iter().map(|(_, is_refused)| *is_refused).collect();
        for _ in transactions {
            for (first, (one, _)) in transactions.iter().enumerate() {
                for (second, (other, _)) in transactions.iter().enumerate() {
                    let follows = one.account == other.account && one.sequence.0 + 1 == other.sequence.0;
                    if one.terms.joined.meets(other.terms.joined) && follows && (is_torn[first] || is_torn[second]) {
                        (is_torn[first], is_torn[second]) = (true, true);
                    }
                }
            }
        }
        is_torn
    }

    #[test]
    fn the_places_of_a_chain_meet_and_no_part_of_one_is_whole() {
        const JOINED: [Joined; 5] = [Joined::No, Joined::Next, Joined::First, Joined::Middle, Joined::Last];
        assert_eq!((Joined::of_chain(0, 0), Joined::of_chain(0, 1)), (Joined::No, Joined::No));
        for count in 2..6 {
            let chain: Vec<Joined> = (0..count).map(|place| Joined::of_chain(place, count)).collect();
            assert!(chain.windows(2).all(|two| two[0].meets(two[1])), "{chain:?}");
            assert!(!chain[0].needs_one_before() && !chain[count - 1].needs_next(), "{chain:?}");
            assert!(chain[1..].iter().all(|joined| joined.needs_one_before()), "{chain:?}");
            assert!(chain[..count - 1].iter().all(|joined| joined.needs_next()), "{chain:?}");
        }
        for joined in JOINED {
            assert!(!joined.meets(Joined::First) || joined == Joined::Next, "{joined:?}: a chain begins with its first one");
            assert_eq!(Joined::Next.meets(joined), !joined.needs_one_before(), "{joined:?}");
            assert!(JOINED.iter().all(|next| !joined.meets(*next) || joined.needs_next()), "{joined:?}");
        }
    }

    #[test]
    fn a_chain_is_torn_where_one_of_it_is_refused_in_whatever_order_it_came() {
        let payment = BatchOperation::Payment(Payment { to: AccountId(9), asset: AssetId(0), amount: Amount::new(1).unwrap() });
        let mut state = 7_u64;
        let mut one_in = |count: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33).is_multiple_of(count)
        };
        let mut torn_in_all = 0;
        for _ in 0..2_000 {
            let mut all = Vec::new();
            for (account, sequence) in (0..3).flat_map(|account| (1..8).map(move |sequence| (account, sequence))) {
                // Mostly such that they meet, and some that do not.
                let joined = if one_in(3) {
                    [Joined::No, Joined::First, Joined::Last][usize::from(one_in(2)) + usize::from(one_in(2))]
                } else if one_in(2) {
                    Joined::Next
                } else {
                    Joined::Middle
                };
                let terms = TransactionTerms { until: None, joined };
                let transaction = BatchTransaction::new(AccountId(account), TransactionSeq(sequence), payment).with_terms(terms);
                if !one_in(6) {
                    // Some come before all that came so far.
                    let place = if one_in(2) { 0 } else { all.len() };
                    all.insert(place, (transaction, one_in(9)));
                }
            }
            let torn = torn_chains(&all);
            assert_eq!(torn, torn_step_by_step(&all), "{all:?}");
            torn_in_all += torn.iter().zip(&all).filter(|(is_torn, (_, is_refused))| **is_torn && !is_refused).count();
        }
        assert!(torn_in_all > 1_000, "{torn_in_all}");
    }
}
