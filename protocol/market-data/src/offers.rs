//! Each account's standing offers in batch markets and their last fills. The engine stores offers by pair and price, so it could
//! find those of one account only by a full scan.

use std::sync::Arc;

use walras_types::limits::{ASSETS_MAX, BATCH_MARKETS_MAX, TRANSACTION_SEQ_BITS};
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, DropReason, RejectReason, TimeNs,
    TransactionSeq, effective_limit,
};

use crate::limits::{OFFER_FILLS_MAX, OFFERS_PER_ACCOUNT_MAX, OUTCOMES_MAX};

/// An offer that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandingOffer {
    /// The batch market.
    pub market: BatchMarketId,
    /// The number of the transaction that created it.
    pub sequence: TransactionSeq,
    /// The asset that it sells.
    pub sell: AssetId,
    /// The asset that it buys.
    pub buy: AssetId,
    /// Units left.
    pub amount: Amount,
    /// The limit as its owner stated it.
    pub stated: BatchPrice,
    /// The limit as whole units can honour it, which changes when a part is sold: its place among others, to cancel it by.
    pub limit: BatchPrice,
    /// Its place among others of one limit, likewise.
    pub tie: u64,
    /// The block that it came with.
    pub block: u64,
}

/// What an offer sold in one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferFill {
    /// The batch market.
    pub market: BatchMarketId,
    /// The offer.
    pub sequence: TransactionSeq,
    /// The block.
    pub block: u64,
    /// What it sold.
    pub sell: AssetId,
    /// The asset that it buys.
    pub buy: AssetId,
    /// Units sold.
    pub sold: Amount,
    /// Units bought.
    pub bought: Amount,
    /// The log time.
    pub time: TimeNs,
}

/// A collected transaction and its outcome so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionOutcome {
    /// The batch market.
    pub market: BatchMarketId,
    /// Its number.
    pub sequence: TransactionSeq,
    /// The block that it was collected for.
    pub block: u64,
    /// Why it was left out of that block, if it was.
    pub dropped: Option<DropReason>,
    /// Of one that created an offer, as far as it is kept.
    pub offer: Option<OfferOutcome>,
}

/// What an offer has traded since it was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferOutcome {
    /// The asset that it sells.
    pub sell: AssetId,
    /// The asset that it buys.
    pub buy: AssetId,
    /// Units sold.
    pub sold: Amount,
    /// Units bought.
    pub bought: Amount,
    /// What is left of it and stands; `None` where it is sold or cancelled.
    pub standing: Option<Amount>,
}

/// What became of one of an account's transactions or offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferChange {
    /// It stands.
    Opened(StandingOffer),
    /// It traded; what is left stands, if anything is.
    Traded {
        /// What it traded.
        fill: OfferFill,
        /// The remaining amount.
        left: Amount,
        /// The limit of what is left, if anything is: another than before, since fewer units honour a limit less finely. A cancel
        /// has to name this one.
        limit: Option<BatchPrice>,
    },
    /// Its owner took it out, or what was left.
    Cancelled {
        /// The batch market.
        market: BatchMarketId,
        /// The transaction's number.
        sequence: TransactionSeq,
        /// What it sold.
        sell: AssetId,
        /// Units that did not trade.
        amount: Amount,
    },
    /// The transaction was left out of its batch.
    Dropped {
        /// The batch market.
        market: BatchMarketId,
        /// The transaction's number.
        sequence: TransactionSeq,
        /// The reason.
        reason: DropReason,
    },
}

/// All accounts' offers, and what came of their transactions: 40 bytes for each that stands, each fill and each transaction that is
/// remembered, and 72 for each account up to the last that had one.
///
/// In parts of some accounts. Copies share each part until either changes it: so a snapshot's copy takes no time.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    parts: Vec<Option<Arc<Part>>>,
}

/// Accounts in a part.
const PART: usize = 64;

type Part = [OfAccount; PART];

/// Numbers of transactions are an account's, whatever the market.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OfAccount {
    /// By number.
    standing: Vec<Standing>,
    /// Oldest first.
    fills: Vec<Filled>,
    /// In the order in which they were collected.
    outcomes: Vec<Collected>,
}

/// A [`TransactionOutcome`] but for what stands. It sells an asset for itself unless it is known to have created an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Collected {
    name: Name,
    came: BlockOf,
    dropped: Option<DropReason>,
    sold: Amount,
    bought: Amount,
}

/// Number of the transaction, what is sold and what for, in the order of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name(u64);

/// A block of a market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockOf(u64);

const ASSET_BITS: u32 = ASSETS_MAX.trailing_zeros();
const MARKET_BITS: u32 = BATCH_MARKETS_MAX.trailing_zeros();
const _: () = assert!(ASSETS_MAX.is_power_of_two() && TRANSACTION_SEQ_BITS + 2 * ASSET_BITS <= 64);
// At one block a millisecond, the numbers that are left last nine million years.
const _: () = assert!(BATCH_MARKETS_MAX.is_power_of_two() && MARKET_BITS <= 6);

impl Name {
    fn new(sequence: TransactionSeq, sell: AssetId, buy: AssetId) -> Self {
        Self(sequence.0 << (2 * ASSET_BITS) | u64::from(sell.0) << ASSET_BITS | u64::from(buy.0))
    }

    fn sequence(self) -> TransactionSeq {
        TransactionSeq(self.0 >> (2 * ASSET_BITS))
    }

    fn sell(self) -> AssetId {
        AssetId((self.0 >> ASSET_BITS) as u32 & (ASSETS_MAX - 1))
    }

    fn buy(self) -> AssetId {
        AssetId(self.0 as u32 & (ASSETS_MAX - 1))
    }
}

impl BlockOf {
    fn new(market: BatchMarketId, block: u64) -> Self {
        Self(block << MARKET_BITS | u64::from(market.0))
    }

    fn market(self) -> BatchMarketId {
        BatchMarketId((self.0 & ((1 << MARKET_BITS) - 1)) as u16)
    }

    fn block(self) -> u64 {
        self.0 >> MARKET_BITS
    }
}

/// A [`StandingOffer`], whose limit follows from what it states and what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    name: Name,
    came: BlockOf,
    amount: Amount,
    stated: BatchPrice,
    tie: u64,
}

impl Standing {
    fn pack(offer: &StandingOffer) -> Self {
        let StandingOffer { market, sequence, sell, buy, amount, stated, limit: _, tie, block } = *offer;
        Self { name: Name::new(sequence, sell, buy), came: BlockOf::new(market, block), amount, stated, tie }
    }

    fn unpack(&self) -> StandingOffer {
        let Self { name, came, amount, stated, tie } = *self;
        StandingOffer {
            market: came.market(),
            sequence: name.sequence(),
            sell: name.sell(),
            buy: name.buy(),
            amount,
            stated,
            limit: effective_limit(stated, amount).unwrap_or(stated),
            tie,
            block: came.block(),
        }
    }
}

/// An [`OfferFill`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Filled {
    name: Name,
    traded: BlockOf,
    sold: Amount,
    bought: Amount,
    time: TimeNs,
}

impl Filled {
    fn pack(fill: &OfferFill) -> Self {
        let OfferFill { market, sequence, block, sell, buy, sold, bought, time } = *fill;
        Self { name: Name::new(sequence, sell, buy), traded: BlockOf::new(market, block), sold, bought, time }
    }

    fn unpack(&self) -> OfferFill {
        let Self { name, traded, sold, bought, time } = *self;
        OfferFill {
            market: traded.market(),
            sequence: name.sequence(),
            block: traded.block(),
            sell: name.sell(),
            buy: name.buy(),
            sold,
            bought,
            time,
        }
    }
}

const _: () = assert!(size_of::<Standing>() == 40 && size_of::<Filled>() == 40 && size_of::<Collected>() == 40);
const _: () = assert!(size_of::<OfAccount>() == 72);

/// Makes room for one more; a quarter beyond, for doubling would waste half of the memory.
fn make_room<T>(all: &mut Vec<T>) {
    if all.len() == all.capacity() {
        all.reserve_exact(1 + all.len() / 4);
    }
}

impl OfAccount {
    fn place(&self, sequence: TransactionSeq) -> Result<usize, usize> {
        self.standing.binary_search_by_key(&sequence, |offer| offer.name.sequence())
    }

    /// Whether no other had its number.
    fn open(&mut self, offer: Standing) -> bool {
        match self.place(offer.name.sequence()) {
            Ok(place) => {
                self.standing[place] = offer;
                false
            }
            Err(place) => {
                make_room(&mut self.standing);
                self.standing.insert(place, offer);
                true
            }
        }
    }

    /// What is remembered of a transaction: the last of its number.
    fn outcome_mut(&mut self, sequence: TransactionSeq) -> Option<&mut Collected> {
        self.outcomes.iter_mut().rev().find(|outcome| outcome.name.sequence() == sequence)
    }

    fn collect(&mut self, outcome: Collected) {
        // One that was left out may be sent again under its number.
        self.outcomes.retain(|other| other.name.sequence() != outcome.name.sequence());
        if self.outcomes.len() == OUTCOMES_MAX {
            self.outcomes.remove(0);
        }
        if self.outcomes.len() == self.outcomes.capacity() {
            self.outcomes.reserve_exact((1 + self.outcomes.len() / 4).min(OUTCOMES_MAX - self.outcomes.len()));
        }
        self.outcomes.push(outcome);
    }

    fn unpack(&self, outcome: &Collected) -> TransactionOutcome {
        let Collected { name, came, dropped, sold, bought } = *outcome;
        let standing = self.place(name.sequence()).ok().map(|place| self.standing[place].amount);
        let offer = OfferOutcome { sell: name.sell(), buy: name.buy(), sold, bought, standing };
        TransactionOutcome {
            market: came.market(),
            sequence: name.sequence(),
            block: came.block(),
            dropped,
            offer: (name.sell() != name.buy()).then_some(offer),
        }
    }

    /// Whether it stood.
    fn remove(&mut self, sequence: TransactionSeq) -> bool {
        let Ok(place) = self.place(sequence) else { return false };
        self.standing.remove(place);
        if self.standing.len() < self.standing.capacity() / 2 {
            self.standing.shrink_to_fit();
        }
        true
    }
}

/// Memory that offers take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferBytes {
    /// By those that stand.
    pub standing: usize,
    /// By the rest: fills, and what there is for each account.
    pub accounts: usize,
}

impl Offers {
    fn account(&self, account: AccountId) -> Option<&OfAccount> {
        let part = self.parts.get(account.0 as usize / PART)?.as_ref()?;
        part.get(account.0 as usize % PART)
    }

    /// An account, to change it.
    fn account_mut(&mut self, account: AccountId) -> &mut OfAccount {
        let (part, place) = (account.0 as usize / PART, account.0 as usize % PART);
        if self.parts.len() <= part {
            self.parts.resize(part + 1, None);
        }
        let part = self.parts[part].get_or_insert_with(|| Arc::new(std::array::from_fn(|_| OfAccount::default())));
        &mut Arc::make_mut(part)[place]
    }

    /// Accounts that had an offer, by id.
    fn accounts(&self) -> impl Iterator<Item = (AccountId, &OfAccount)> {
        let parts = (0_u32..).zip(&self.parts).filter_map(|(number, part)| Some((number * PART as u32, part.as_deref()?)));
        parts.flat_map(|(first, part)| (first..).map(AccountId).zip(part))
    }

    /// Accounts with standing offers, by id, and these, oldest first.
    pub(crate) fn standing(&self) -> impl Iterator<Item = (AccountId, impl ExactSizeIterator<Item = StandingOffer>)> {
        let all = self.accounts().filter(|(_, of)| !of.standing.is_empty());
        all.map(|(account, of)| (account, of.standing.iter().map(Standing::unpack)))
    }

    /// Accounts with fills, by id, and these, oldest first.
    pub(crate) fn fills(&self) -> impl Iterator<Item = (AccountId, impl ExactSizeIterator<Item = OfferFill>)> {
        let all = self.accounts().filter(|(_, of)| !of.fills.is_empty());
        all.map(|(account, of)| (account, of.fills.iter().map(Filled::unpack)))
    }

    /// Accounts with transactions that are remembered, by id, and these, in the order in which they were collected.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (AccountId, impl ExactSizeIterator<Item = TransactionOutcome>)> {
        let all = self.accounts().filter(|(_, of)| !of.outcomes.is_empty());
        all.map(|(account, of)| (account, of.outcomes.iter().map(|outcome| of.unpack(outcome))))
    }

    /// What came of an account's last transactions, the one collected last first, [`OUTCOMES_MAX`] at most.
    pub fn outcomes_newest_first(&self, account: AccountId) -> impl Iterator<Item = TransactionOutcome> {
        self.account(account).into_iter().flat_map(|of| of.outcomes.iter().rev().map(|outcome| of.unpack(outcome)))
    }

    /// An account's standing offers, oldest first.
    pub fn of(&self, account: AccountId) -> impl Iterator<Item = StandingOffer> {
        self.account(account).into_iter().flat_map(|of| of.standing.iter().map(Standing::unpack))
    }

    /// An account's standing offers with numbers from this one on, oldest first. Found in O(log offers).
    pub fn from(&self, account: AccountId, first: TransactionSeq) -> impl Iterator<Item = StandingOffer> {
        let standing = self.account(account).map_or(&[][..], |of| of.standing.as_slice());
        let first = standing.partition_point(|offer| offer.name.sequence() < first);
        standing[first..].iter().map(Standing::unpack)
    }

    /// Whether a transaction may be sent to the log: one that creates an offer is refused while the account has as many as it may. Those
    /// that are collected do not stand yet, so an account may come to have a batch's transactions more.
    ///
    /// # Errors
    /// The reason to refuse it for.
    pub fn admits(&self, transaction: &BatchTransaction) -> Result<(), RejectReason> {
        let is_offer = matches!(transaction.operation, BatchOperation::CreateOffer(_));
        let standing = self.account(transaction.account).map_or(0, |of| of.standing.len());
        if is_offer && standing >= OFFERS_PER_ACCOUNT_MAX { Err(RejectReason::TooManyOpenOrders) } else { Ok(()) }
    }

    /// The stated limit of an account's standing offer, and its amount.
    pub(crate) fn stood(&self, account: AccountId, sequence: TransactionSeq) -> Option<(BatchPrice, Amount)> {
        let of = self.account(account)?;
        let offer = of.standing.get(of.place(sequence).ok()?)?;
        Some((offer.stated, offer.amount))
    }

    /// An account's last fills, newest first, [`OFFER_FILLS_MAX`] at most.
    pub fn fills_newest_first(&self, account: AccountId) -> impl Iterator<Item = OfferFill> {
        self.account(account).into_iter().flat_map(|of| of.fills.iter().rev().map(Filled::unpack))
    }

    /// What they take, but for the allocator's own.
    #[must_use]
    pub fn bytes(&self) -> OfferBytes {
        let mut bytes = OfferBytes { standing: 0, accounts: self.parts.capacity() * size_of::<Option<Arc<Part>>>() };
        for (_, of) in self.accounts() {
            bytes.standing += of.standing.capacity() * size_of::<Standing>();
            bytes.accounts += size_of::<OfAccount>() + of.fills.capacity() * size_of::<Filled>();
            bytes.accounts += of.outcomes.capacity() * size_of::<Collected>();
        }
        bytes
    }

    /// How many more offers stand after this change.
    pub(crate) fn apply(&mut self, account: AccountId, change: &OfferChange) -> i64 {
        match change {
            OfferChange::Opened(offer) => {
                if let Some(outcome) = self.account_mut(account).outcome_mut(offer.sequence) {
                    outcome.name = Name::new(offer.sequence, offer.sell, offer.buy);
                }
                i64::from(self.open(account, offer))
            }
            OfferChange::Traded { fill, left, limit: _ } => {
                self.push_fill(account, *fill);
                let of = self.account_mut(account);
                if let Some(outcome) = of.outcome_mut(fill.sequence) {
                    // At most what the offer had; what it bought, an account can hold.
                    outcome.sold = outcome.sold.checked_add(fill.sold).unwrap_or(Amount::MAX);
                    outcome.bought = outcome.bought.checked_add(fill.bought).unwrap_or(Amount::MAX);
                }
                if left.is_zero() {
                    return -i64::from(of.remove(fill.sequence));
                }
                if let Ok(place) = of.place(fill.sequence) {
                    of.standing[place].amount = *left;
                }
                0
            }
            OfferChange::Cancelled { sequence, .. } => -i64::from(self.account_mut(account).remove(*sequence)),
            OfferChange::Dropped { sequence, reason, market: _ } => {
                if let Some(outcome) = self.account_mut(account).outcome_mut(*sequence) {
                    outcome.dropped = Some(*reason);
                }
                0
            }
        }
    }

    /// A transaction was collected for a block.
    pub(crate) fn collected(&mut self, account: AccountId, market: BatchMarketId, sequence: TransactionSeq, block: u64) {
        let outcome = TransactionOutcome { market, sequence, block, dropped: None, offer: None };
        self.push_outcome(account, &outcome);
    }

    /// As it is read from a snapshot; what stands of its offer is known from elsewhere.
    pub(crate) fn push_outcome(&mut self, account: AccountId, outcome: &TransactionOutcome) {
        let TransactionOutcome { market, sequence, block, dropped, offer } = *outcome;
        let none = AssetId(0);
        let (sell, buy) = offer.map_or((none, none), |offer| (offer.sell, offer.buy));
        let (sold, bought) = offer.map_or((Amount::ZERO, Amount::ZERO), |offer| (offer.sold, offer.bought));
        let (name, came) = (Name::new(sequence, sell, buy), BlockOf::new(market, block));
        self.account_mut(account).collect(Collected { name, came, dropped, sold, bought });
    }

    /// Whether no other had its number.
    pub(crate) fn open(&mut self, account: AccountId, offer: &StandingOffer) -> bool {
        self.account_mut(account).open(Standing::pack(offer))
    }

    pub(crate) fn push_fill(&mut self, account: AccountId, fill: OfferFill) {
        let fills = &mut self.account_mut(account).fills;
        if fills.len() == OFFER_FILLS_MAX {
            fills.remove(0);
        }
        if fills.len() == fills.capacity() {
            fills.reserve_exact((1 + fills.len() / 4).min(OFFER_FILLS_MAX - fills.len()));
        }
        fills.push(Filled::pack(&fill));
    }
}

/// Whatever room they have.
impl PartialEq for Offers {
    fn eq(&self, other: &Self) -> bool {
        let some = |offers: &'_ Self| -> Vec<(AccountId, OfAccount)> {
            let all = offers.accounts().filter(|(_, of)| **of != OfAccount::default());
            all.map(|(account, of)| (account, of.clone())).collect()
        };
        some(self) == some(other)
    }
}

impl Eq for Offers {}

#[cfg(test)]
mod tests {
    use walras_types::{CancelOffer, CreateOffer, Payment};

    use super::*;

    #[test]
    fn what_came_of_a_transaction_is_remembered() {
        let (account, market) = (AccountId(70), BatchMarketId(1));
        let [one, two, three] = [1, 2, 3].map(TransactionSeq);
        let mut offers = Offers::default();
        [one, two, three].into_iter().for_each(|sequence| offers.collected(account, market, sequence, 5));
        let stated = BatchPrice::ONE;
        let (sell, buy, block) = (AssetId(3), AssetId(0), 5);
        let offer = StandingOffer { market, sequence: two, sell, buy, amount: amount(10), stated, limit: stated, tie: 0, block };
        offers.apply(account, &OfferChange::Opened(offer));
        offers.apply(account, &OfferChange::Dropped { market, sequence: one, reason: DropReason::Overdraft });
        for (sold, left) in [(4, 6), (1, 5)] {
            let (bought, sold, time) = (amount(2 * sold), amount(sold), TimeNs(1));
            let fill = OfferFill { market, sequence: two, block, sell, buy, sold, bought, time };
            offers.apply(account, &OfferChange::Traded { fill, left: amount(left), limit: None });
        }
        let outcome =
            |sequence: TransactionSeq| offers.outcomes_newest_first(account).find(|outcome| outcome.sequence == sequence).unwrap();
        let traded = OfferOutcome { sell, buy, sold: amount(5), bought: amount(10), standing: Some(amount(5)) };
        assert_eq!((outcome(one).dropped, outcome(one).offer), (Some(DropReason::Overdraft), None));
        assert_eq!((outcome(two).dropped, outcome(two).offer), (None, Some(traded)));
        assert_eq!((outcome(three).dropped, outcome(three).offer), (None, None));
        // Sent again for a later block.
        offers.collected(account, market, one, 6);
        let newest: Vec<_> = offers.outcomes_newest_first(account).map(|outcome| (outcome.sequence, outcome.block)).collect();
        assert_eq!(newest, [(one, 6), (three, 5), (two, 5)]);
        offers.apply(account, &OfferChange::Cancelled { market, sequence: two, sell, amount: amount(5) });
        let last = offers.outcomes_newest_first(account).last().unwrap();
        assert_eq!(last.offer, Some(OfferOutcome { standing: None, ..traded }));
        (10..10 + 2 * OUTCOMES_MAX as u64).for_each(|number| offers.collected(account, market, TransactionSeq(number), 7));
        assert_eq!(offers.outcomes_newest_first(account).count(), OUTCOMES_MAX);
    }

    fn amount(units: u64) -> Amount {
        Amount::new(units).unwrap()
    }

    #[test]
    fn an_account_with_as_many_offers_as_it_may_have_gets_no_further_one() {
        let (account, market, stated) = (AccountId(4), BatchMarketId(0), BatchPrice::ONE);
        let (sell, buy, block, one) = (AssetId(0), AssetId(1), 2, amount(1));
        let standing = |number: usize| {
            let (market, sequence) = (BatchMarketId((number % 2) as u16), TransactionSeq(number as u64));
            OfferChange::Opened(StandingOffer { market, sequence, sell, buy, amount: one, stated, limit: stated, tie: 0, block })
        };
        let of = |account, operation| BatchTransaction::new(account, TransactionSeq(1 << 20), operation);
        let create = BatchOperation::CreateOffer(CreateOffer { market, sell, buy, amount: one, limit: stated });
        let mut offers = Offers::default();
        for number in 1..=OFFERS_PER_ACCOUNT_MAX {
            assert_eq!(offers.admits(&of(account, create)), Ok(()), "it has {} offers", number - 1);
            offers.apply(account, &standing(number));
        }
        assert_eq!(offers.admits(&of(account, create)), Err(RejectReason::TooManyOpenOrders));
        let sequence = TransactionSeq(1);
        let cancel = BatchOperation::CancelOffer(CancelOffer { market, sell, buy, limit: stated, tie: 0, sequence });
        let pay = BatchOperation::Payment(Payment { to: AccountId(5), asset: sell, amount: one });
        assert_eq!([cancel, pay].map(|operation| offers.admits(&of(account, operation))), [Ok(()); 2]);
        assert_eq!(offers.admits(&of(AccountId(5), create)), Ok(()), "each account has its own");
        offers.apply(account, &OfferChange::Cancelled { market, sequence, sell, amount: one });
        assert_eq!(offers.admits(&of(account, create)), Ok(()));
    }

    #[test]
    fn an_offer_stands_until_it_is_sold_or_cancelled() {
        let (account, market, sequence) = (AccountId(4), BatchMarketId(1), TransactionSeq(9));
        let stated = BatchPrice::from_decimal("0.3", walras_types::Rounding::Up).unwrap();
        let offer = |sequence| StandingOffer {
            market,
            sequence,
            sell: AssetId(0),
            buy: AssetId(1),
            amount: amount(10),
            stated,
            limit: effective_limit(stated, amount(10)).unwrap(),
            tie: 5,
            block: 2,
        };
        let mut offers = Offers::default();
        assert_eq!(offers.apply(account, &OfferChange::Opened(offer(sequence))), 1);
        assert_eq!(offers.apply(account, &OfferChange::Opened(offer(TransactionSeq(10)))), 1);
        let fill = |sold| OfferFill {
            market,
            sequence,
            block: 2,
            sell: AssetId(0),
            buy: AssetId(1),
            sold: amount(sold),
            bought: amount(1),
            time: TimeNs(3),
        };
        assert_eq!(offers.apply(account, &OfferChange::Traded { fill: fill(8), left: amount(2), limit: None }), 0);
        let left = offers.of(account).next().unwrap();
        assert_eq!((left.amount, Some(left.limit)), (amount(2), effective_limit(stated, amount(2))));
        let from = |first| offers.from(account, TransactionSeq(first)).map(|offer| offer.sequence.0).collect::<Vec<_>>();
        assert_eq!([from(0), from(9), from(10), from(11)], [vec![9, 10], vec![9, 10], vec![10], vec![]]);
        assert_ne!(left.limit, offer(sequence).limit, "two units can not be honoured as finely as ten");
        assert_eq!(offers.apply(account, &OfferChange::Traded { fill: fill(2), left: Amount::ZERO, limit: None }), -1);
        let cancelled = OfferChange::Cancelled { market, sequence: TransactionSeq(10), sell: AssetId(0), amount: amount(10) };
        assert_eq!(offers.apply(account, &cancelled), -1);
        assert_eq!(offers.apply(account, &cancelled), 0, "it is gone");
        assert_eq!(offers.of(account).count(), 0);
        assert_eq!(offers.fills_newest_first(account).map(|fill| fill.sold.get()).collect::<Vec<_>>(), [2, 8]);
        for _ in 0..OFFER_FILLS_MAX {
            offers.push_fill(account, fill(1));
        }
        assert_eq!(offers.fills_newest_first(account).count(), OFFER_FILLS_MAX);
    }
}
