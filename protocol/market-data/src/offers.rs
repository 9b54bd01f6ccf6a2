//! Each account's standing offers in batch markets and their last fills. The engine stores offers by pair and price, so it could
//! find those of one account only by a full scan.

use std::sync::Arc;

use walras_ledger::Parts;
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
/// remembered, and 80 for each account up to the last that had one.
///
/// In parts of some accounts. Copies share each part until either changes it, and a snapshot's copy ([`crate::MarketData::share`]) the list
/// of them too: so it takes no time.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    parts: Parts<Option<Arc<Part>>>,
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
    /// `None` until an offer of an older transaction trades or ends.
    older: Option<Box<Older>>,
}

/// What came of transactions that are not among an account's last ones, and whose offers stood for longer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Older {
    /// Of offers that stand and have traded in part, by number. Of those that have not traded it follows from what stands.
    traded: Vec<Collected>,
    /// Of offers that ended, the last one last.
    ended: Vec<Collected>,
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

impl Collected {
    /// Of an offer that has not traded.
    const fn of(offer: &Standing) -> Self {
        Self { name: offer.name, came: offer.came, dropped: None, sold: Amount::ZERO, bought: Amount::ZERO }
    }

    fn add(&mut self, fill: &OfferFill) {
        // At most what the offer had; what it bought, an account can hold.
        self.sold = self.sold.checked_add(fill.sold).unwrap_or(Amount::MAX);
        self.bought = self.bought.checked_add(fill.bought).unwrap_or(Amount::MAX);
    }
}

impl Older {
    fn place(&self, sequence: TransactionSeq) -> Result<usize, usize> {
        self.traded.binary_search_by_key(&sequence, |outcome| outcome.name.sequence())
    }

    fn get(&self, sequence: TransactionSeq) -> Option<Collected> {
        match self.place(sequence) {
            Ok(place) => Some(self.traded[place]),
            Err(_) => self.ended.iter().rev().find(|outcome| outcome.name.sequence() == sequence).copied(),
        }
    }

    /// Its offer stands.
    fn put_traded(&mut self, outcome: Collected) {
        match self.place(outcome.name.sequence()) {
            Ok(place) => self.traded[place] = outcome,
            Err(place) => {
                make_room(&mut self.traded);
                self.traded.insert(place, outcome);
            }
        }
    }

    /// Its offer does not stand any more.
    fn put_ended(&mut self, outcome: Collected) {
        if let Ok(place) = self.place(outcome.name.sequence()) {
            self.traded.remove(place);
            if self.traded.len() < self.traded.capacity() / 2 {
                self.traded.shrink_to_fit();
            }
        }
        push_of_most(&mut self.ended, outcome);
    }
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
const _: () = assert!(size_of::<OfAccount>() == 80);

/// Makes room for one more; a quarter beyond, for doubling would waste half of the memory.
fn make_room<T>(all: &mut Vec<T>) {
    if all.len() == all.capacity() {
        all.reserve_exact(1 + all.len() / 4);
    }
}

/// Appends to outcomes, of which there are [`OUTCOMES_MAX`] at most: gives the first back where it has to go.
fn push_of_most(all: &mut Vec<Collected>, outcome: Collected) -> Option<Collected> {
    let first = (all.len() == OUTCOMES_MAX).then(|| all.remove(0));
    if all.len() == all.capacity() {
        all.reserve_exact((1 + all.len() / 4).min(OUTCOMES_MAX - all.len()));
    }
    all.push(outcome);
    first
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
        if let Some(first) = push_of_most(&mut self.outcomes, outcome)
            && !first.sold.is_zero()
            && self.place(first.name.sequence()).is_ok()
        {
            self.older.get_or_insert_default().put_traded(first);
        }
    }

    /// What is remembered of a transaction that is not among the last ones.
    fn older(&self, sequence: TransactionSeq) -> Option<Collected> {
        let known = self.older.as_ref().and_then(|older| older.get(sequence));
        known.or_else(|| Some(Collected::of(&self.standing[self.place(sequence).ok()?])))
    }

    /// An offer that stands trades, and this is left of it.
    fn note_fill(&mut self, fill: &OfferFill, left: Amount) {
        if let Some(outcome) = self.outcome_mut(fill.sequence) {
            outcome.add(fill);
        } else if self.place(fill.sequence).is_ok()
            && let Some(mut outcome) = self.older(fill.sequence)
        {
            outcome.add(fill);
            let older = self.older.get_or_insert_default();
            if left.is_zero() {
                older.put_ended(outcome);
            } else {
                older.put_traded(outcome);
            }
        }
    }

    /// An offer that stands ends, whatever is left of it.
    fn note_end(&mut self, sequence: TransactionSeq) {
        if self.outcome_mut(sequence).is_none()
            && self.place(sequence).is_ok()
            && let Some(outcome) = self.older(sequence)
        {
            self.older.get_or_insert_default().put_ended(outcome);
        }
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
    /// A copy that has everything in common with these offers until it changes.
    pub(crate) fn share(&mut self) -> Self {
        Self { parts: self.parts.share() }
    }

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
        let parts = (0_u32..).zip(self.parts.iter()).filter_map(|(number, part)| Some((number * PART as u32, part.as_deref()?)));
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

    /// What came of one of an account's transactions: of its last ones, of those whose offers stand, and of as many more whose offers stood
    /// for longer and ended last.
    #[must_use]
    pub fn outcome(&self, account: AccountId, sequence: TransactionSeq) -> Option<TransactionOutcome> {
        let of = self.account(account)?;
        let last = of.outcomes.iter().rev().find(|outcome| outcome.name.sequence() == sequence).copied();
        last.or_else(|| of.older(sequence)).map(|outcome| of.unpack(&outcome))
    }

    /// Accounts of which older transactions are remembered, by id, and these: those whose offers stand, by number, and those whose offers
    /// ended, the last one last.
    pub(crate) fn older(&self) -> impl Iterator<Item = (AccountId, [Vec<TransactionOutcome>; 2])> {
        self.accounts().filter_map(|(account, of)| {
            let older = of.older.as_ref()?;
            Some((account, [&older.traded, &older.ended].map(|all| all.iter().map(|outcome| of.unpack(outcome)).collect())))
        })
    }

    /// As they are read from a snapshot, once the last ones are and what stands: whether they can be so.
    pub(crate) fn push_older(&mut self, account: AccountId, [traded, ended]: [Vec<TransactionOutcome>; 2]) -> bool {
        let of = self.account_mut(account);
        let is_known = |outcome: &TransactionOutcome| of.outcomes.iter().any(|last| last.name.sequence() == outcome.sequence);
        let stands = |outcome: &TransactionOutcome| {
            of.place(outcome.sequence).is_ok_and(|place| of.standing[place].name == packed(outcome).name)
        };
        let is_of_offer = |outcome: &TransactionOutcome| outcome.dropped.is_none() && outcome.offer.is_some();
        let is_right = |outcome: &TransactionOutcome| is_of_offer(outcome) && !is_known(outcome);
        let has_traded = |outcome: &TransactionOutcome| outcome.offer.is_some_and(|offer| !offer.sold.is_zero());
        let mut names: Vec<TransactionSeq> = ended.iter().map(|outcome| outcome.sequence).collect();
        names.sort_unstable();
        let can_be = traded.iter().all(|outcome| is_right(outcome) && has_traded(outcome) && stands(outcome))
            && traded.is_sorted_by(|a, b| a.sequence < b.sequence)
            && ended.iter().all(|outcome| is_right(outcome) && of.place(outcome.sequence).is_err())
            && names.is_sorted_by(|a, b| a < b)
            && ended.len() <= OUTCOMES_MAX
            && !(traded.is_empty() && ended.is_empty());
        let [traded, ended] = [traded, ended].map(|all| all.iter().map(packed).collect());
        of.older = Some(Box::new(Older { traded, ended }));
        can_be
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
        let mut bytes = OfferBytes { standing: 0, accounts: self.parts.bytes() };
        for (_, of) in self.accounts() {
            bytes.standing += of.standing.capacity() * size_of::<Standing>();
            bytes.accounts += size_of::<OfAccount>() + of.fills.capacity() * size_of::<Filled>();
            bytes.accounts += of.outcomes.capacity() * size_of::<Collected>();
            bytes.accounts += of.older.as_ref().map_or(0, |older| {
                size_of::<Older>() + (older.traded.capacity() + older.ended.capacity()) * size_of::<Collected>()
            });
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
                of.note_fill(fill, *left);
                if left.is_zero() {
                    return -i64::from(of.remove(fill.sequence));
                }
                if let Ok(place) = of.place(fill.sequence) {
                    of.standing[place].amount = *left;
                }
                0
            }
            OfferChange::Cancelled { sequence, .. } => {
                let of = self.account_mut(account);
                of.note_end(*sequence);
                -i64::from(of.remove(*sequence))
            }
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
        self.account_mut(account).collect(packed(outcome));
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

fn packed(outcome: &TransactionOutcome) -> Collected {
    let TransactionOutcome { market, sequence, block, dropped, offer } = *outcome;
    let none = AssetId(0);
    let (sell, buy) = offer.map_or((none, none), |offer| (offer.sell, offer.buy));
    let (sold, bought) = offer.map_or((Amount::ZERO, Amount::ZERO), |offer| (offer.sold, offer.bought));
    Collected { name: Name::new(sequence, sell, buy), came: BlockOf::new(market, block), dropped, sold, bought }
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

    #[test]
    fn an_offer_that_stands_for_long_has_an_outcome_as_long_as_it_stands_and_after() {
        let (account, market, stated) = (AccountId(3), BatchMarketId(0), BatchPrice::ONE);
        let (sell, buy) = (AssetId(1), AssetId(2));
        let mut offers = Offers::default();
        let collect = |offers: &mut Offers, numbers: std::ops::Range<u64>| {
            for number in numbers {
                offers.collected(account, market, TransactionSeq(number), number / 64);
                let sequence = TransactionSeq(number);
                let (tie, block) = (number, number / 64);
                offers.apply(
                    account,
                    &OfferChange::Opened(StandingOffer {
                        market,
                        sequence,
                        sell,
                        buy,
                        amount: amount(10),
                        stated,
                        limit: stated,
                        tie,
                        block,
                    }),
                );
            }
        };
        let trade = |offers: &mut Offers, number: u64, sold: u64, left: u64| {
            let (sequence, time) = (TransactionSeq(number), TimeNs(number));
            let (sold, bought) = (amount(sold), amount(3 * sold));
            let fill = OfferFill { market, sequence, block: 9, sell, buy, sold, bought, time };
            offers.apply(account, &OfferChange::Traded { fill, left: amount(left), limit: None });
        };
        let cancel = |offers: &mut Offers, number: u64, left: u64| {
            offers.apply(account, &OfferChange::Cancelled { market, sequence: TransactionSeq(number), sell, amount: amount(left) });
        };
        let of = |offers: &Offers, number: u64| {
            let outcome = offers.outcome(account, TransactionSeq(number))?;
            let OfferOutcome { sold, bought, standing, .. } = outcome.offer.unwrap();
            assert_eq!((outcome.sequence, outcome.dropped, bought.get()), (TransactionSeq(number), None, 3 * sold.get()));
            assert_eq!(outcome.block, number / 64);
            Some((sold.get(), standing.map(Amount::get)))
        };
        collect(&mut offers, 1..6);
        trade(&mut offers, 1, 4, 6);
        trade(&mut offers, 2, 4, 6);
        // So many come later that none of these is among the last ones.
        collect(&mut offers, 64..64 + 2 * OUTCOMES_MAX as u64);
        assert_eq!(offers.outcomes_newest_first(account).count(), OUTCOMES_MAX, "the list has the last ones");
        assert_eq!([1, 2, 3].map(|number| of(&offers, number)), [Some((4, Some(6))), Some((4, Some(6))), Some((0, Some(10)))]);
        trade(&mut offers, 1, 1, 5);
        trade(&mut offers, 1, 5, 0);
        cancel(&mut offers, 2, 6);
        trade(&mut offers, 3, 10, 0);
        cancel(&mut offers, 4, 10);
        trade(&mut offers, 5, 2, 8);
        let expected = [(10, None), (4, None), (10, None), (0, None), (2, Some(8))].map(Some);
        assert_eq!([1, 2, 3, 4, 5].map(|number| of(&offers, number)), expected);
        assert_eq!(of(&offers, 6), None);
        // Of those that end, as many as of the last ones are kept.
        let older = 64..64 + OUTCOMES_MAX as u64;
        older.clone().for_each(|number| trade(&mut offers, number, 10, 0));
        assert_eq!([1, 2, 3, 4, 5].map(|number| of(&offers, number)), [None, None, None, None, Some((2, Some(8)))]);
        assert!(older.clone().all(|number| of(&offers, number) == Some((10, None))));
        // The last ones are where they were.
        let last = older.end;
        trade(&mut offers, last, 10, 0);
        assert_eq!((of(&offers, last), of(&offers, 64)), (Some((10, None)), Some((10, None))));
        // What does not stand any more trades no more.
        let before = offers.clone();
        trade(&mut offers, 70, 1, 3);
        cancel(&mut offers, 70, 3);
        assert_eq!((of(&offers, 70), of(&before, 70)), (Some((10, None)), Some((10, None))));
        let of_account = offers.account(account).unwrap();
        let older = of_account.older.as_ref().unwrap();
        assert_eq!((older.traded.len(), older.ended.len()), (1, OUTCOMES_MAX));
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
