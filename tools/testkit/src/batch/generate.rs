//! Small random venues, batches and proposals, biased to where a block goes wrong: balances run out, numbers and keys meet, sums come
//! near the largest amount.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;

use walras_clearing::{
    AssetIndex, Edition, LowerBounds, OfferKey, Pair, PairTrade, PoolIndex, PoolSide, PoolTrade, Proposal, Rules, honourable_sold,
};
use walras_types::limits::{AMOUNT_MAX, TRANSACTION_SEQ_END, TRANSACTIONS_PER_ACCOUNT_MAX};
use walras_types::{
    AccountFee, AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, CancelOffer, Commission,
    CreateOffer, IssuedAmount, Joined, Mu, NetRate, OfferName, Payment, PublicKey, Rounding, TransactionSeq, TransactionTerms,
};

use super::venue::{Holding, Venue};
use crate::Choices;

/// Assets of a venue; the last is in no market.
const ASSETS: u32 = 5;
/// Its market has these.
const IN_MARKET: [AssetId; 4] = [AssetId(2), AssetId(0), AssetId(3), AssetId(1)];
const ACCOUNTS: u32 = 6;

fn amount(units: u64) -> Amount {
    Amount::new(units.min(AMOUNT_MAX)).expect("at most the largest amount")
}

fn key(c: &mut Choices<'_>) -> PublicKey {
    PublicKey(std::array::from_fn(|_| c.byte()))
}

/// A venue of six accounts, and five assets of which four are in the market. There is little of some and nearly as much as there may be
/// of others.
pub fn venue(c: &mut Choices<'_>, lower_bounds: LowerBounds) -> Venue {
    let commission = c
        .pick(&[Some(2), Some(6), Some(10), Some(30), Some(30), None, None, None])
        .and_then(Commission::new)
        .unwrap_or(Commission::NONE);
    let mu = Mu::new(c.pick(&[1, 4, 10, 30])).expect("in range");
    let rules = Rules { edition: Edition::NEWEST, commission, mu, lower_bounds };
    let mut venue = Venue::new(BatchMarketId(3), ASSETS, IN_MARKET.to_vec(), rules);
    venue.account_count = ACCOUNTS;
    for account in (0..ACCOUNTS).map(AccountId) {
        let key = key(c);
        if !venue.keys.values().any(|taken| *taken == key) {
            venue.keys.insert(account, key);
        }
    }
    let alike = c.one_in(2).then(|| c.below(4));
    for asset in (0..ASSETS).map(AssetId) {
        venue.issuers.insert(asset, AccountId(c.below(u64::from(ACCOUNTS)) as u32));
        let mut left = match alike.unwrap_or_else(|| c.below(4)) {
            0 => 60,
            1 => 100_000,
            2 => 1 << 40,
            _ => AMOUNT_MAX - c.below(3),
        };
        venue.supply.insert(asset, u128::from(left));
        for account in (0..ACCOUNTS).map(AccountId) {
            let is_last = account.0 == ACCOUNTS - 1;
            let units = if is_last { left } else { left / c.within(2, 6) * c.below(4).min(1) };
            left -= units;
            venue.holdings.insert((account, asset), Holding { available: u128::from(units), reserved: 0 });
        }
    }
    if c.one_in(8) {
        // Its numbers are nearly used up.
        venue.last.insert(AccountId(c.below(u64::from(ACCOUNTS)) as u32), TRANSACTION_SEQ_END - c.within(1, 80));
    }
    if c.one_in(4) {
        venue.suspended.insert(AccountId(c.below(u64::from(ACCOUNTS)) as u32));
    }
    venue.account_fee = account_fee(c);
    venue
}

/// What an account costs at such a venue: nothing, mostly, or some of any asset.
pub fn account_fee(c: &mut Choices<'_>) -> Option<AccountFee> {
    let fee = AccountFee { asset: AssetId(c.below(u64::from(ASSETS)) as u32), amount: amount(c.pick(&[1, 1, 4, 9, 30, 5_000])) };
    c.one_in(3).then_some(fee)
}

/// A batch in the making.
struct Batch<'c, 'b, 'v> {
    c: &'c mut Choices<'b>,
    venue: &'v Venue,
    /// One choice in so many is a wrong one.
    fault_one_in: u64,
    faults_left: u32,
    made: Vec<BatchTransaction>,
    spent: BTreeMap<(AccountId, AssetId), u128>,
    cancelled: BTreeSet<OfferKey>,
}

/// A batch of so many transactions: in one of four nothing is wrong, in one of four much, in one of four at most one thing.
pub fn transactions(c: &mut Choices<'_>, venue: &Venue, count: usize) -> Vec<BatchTransaction> {
    let (fault_one_in, faults_left) = c.pick(&[(u64::MAX, 0), (60, 1), (200, u32::MAX), (12, u32::MAX)]);
    let mut batch =
        Batch { c, venue, fault_one_in, faults_left, made: Vec::new(), spent: BTreeMap::new(), cancelled: BTreeSet::new() };
    for _ in 0..count {
        batch.push();
    }
    batch.add_terms();
    batch.made
}

impl Batch<'_, '_, '_> {
    fn is_wrong(&mut self) -> bool {
        let is_wrong = self.faults_left > 0 && self.c.one_in(self.fault_one_in);
        self.faults_left -= u32::from(is_wrong);
        is_wrong
    }

    fn push(&mut self) {
        let account = self.account();
        if self.is_wrong() && !self.made.is_empty() {
            let again = self.c.pick(&self.made);
            self.made.push(again);
            return;
        }
        let sequence = self.sequence(account);
        let operation = match self.c.weighted(&[50, 14, 14, 8, 8, 6, 3]) {
            0 => self.create_offer(account),
            1 => self.cancel(account).unwrap_or_else(|| self.create_offer(account)),
            2 => self.payment(account),
            3 => self.create_account(account),
            4 => self.issue(account).unwrap_or_else(|| self.create_offer(account)),
            5 => self.burn(account).unwrap_or_else(|| self.create_offer(account)),
            _ => BatchOperation::SetKey(self.key()),
        };
        self.made.push(BatchTransaction::new(account, sequence, operation));
    }

    /// Says of some the last block that may have them, joins some with the next one, and makes chains of some that follow each other.
    fn add_terms(&mut self) {
        if !self.c.one_in(3) {
            return;
        }
        let sent: BTreeSet<(AccountId, TransactionSeq)> = self.made.iter().map(|t| (t.account, t.sequence)).collect();
        for place in 0..self.made.len() {
            let BatchTransaction { account, sequence, .. } = self.made[place];
            let block = self.venue.block;
            let until = if self.is_wrong() { block - 1 } else { self.c.pick(&[0, 0, block, block + 1, u64::MAX]) };
            let has_next = sent.contains(&(account, TransactionSeq(sequence.0.wrapping_add(1))));
            let is_joined = if has_next { self.c.one_in(2) } else { self.is_wrong() };
            let joined = if is_joined { Joined::Next } else { Joined::No };
            self.made[place].terms = TransactionTerms { until: NonZero::new(until), joined };
        }
        if self.c.one_in(2) {
            self.make_chains();
        }
    }

    /// Lets those that are joined with the next one say their places in a chain; now and then a wrong one.
    fn make_chains(&mut self) {
        let with_next = self.made.iter().filter(|t| t.terms.joined == Joined::Next).map(|t| (t.account, t.sequence));
        let with_next: BTreeSet<(AccountId, TransactionSeq)> = with_next.collect();
        for place in 0..self.made.len() {
            let BatchTransaction { account, sequence, terms, .. } = self.made[place];
            let is_with_one_before = with_next.contains(&(account, TransactionSeq(sequence.0.wrapping_sub(1))));
            let right = match (is_with_one_before, terms.joined == Joined::Next) {
                (false, false) => Joined::No,
                (false, true) => Joined::First,
                (true, true) => Joined::Middle,
                (true, false) => Joined::Last,
            };
            let any = [Joined::No, Joined::Next, Joined::First, Joined::Middle, Joined::Last];
            self.made[place].terms.joined = if self.is_wrong() { self.c.pick(&any) } else { right };
        }
    }

    fn account(&mut self) -> AccountId {
        if self.is_wrong() {
            // The last one's names are those of account 0, if nobody looks.
            let unknown = [self.venue.account_count, u32::MAX, walras_types::limits::ACCOUNTS_MAX];
            return AccountId(self.c.pick(&unknown));
        }
        loop {
            let account = AccountId(self.c.below(u64::from(self.venue.account_count)) as u32);
            if self.fault_one_in < u64::MAX || self.c.is_spent() || !self.venue.suspended.contains(&account) {
                return account;
            }
        }
    }

    fn sequence(&mut self, account: AccountId) -> TransactionSeq {
        let last = self.venue.last.get(&account).copied().unwrap_or(0);
        if self.is_wrong() {
            let wrong = [0, last, last + TRANSACTIONS_PER_ACCOUNT_MAX + 1, TRANSACTION_SEQ_END, u64::MAX];
            return TransactionSeq(self.c.pick(&wrong));
        }
        let used: BTreeSet<u64> = self.made.iter().filter(|t| t.account == account).map(|t| t.sequence.0).collect();
        let start = match self.c.below(8) {
            0 => TRANSACTIONS_PER_ACCOUNT_MAX - 1,
            1 => self.c.below(TRANSACTIONS_PER_ACCOUNT_MAX),
            _ => 0,
        };
        let free = (0..TRANSACTIONS_PER_ACCOUNT_MAX).map(|by| last + 1 + (start + by) % TRANSACTIONS_PER_ACCOUNT_MAX);
        TransactionSeq(free.into_iter().find(|number| !used.contains(number)).unwrap_or(last + 1))
    }

    fn asset(&mut self) -> AssetId {
        if self.is_wrong() {
            AssetId(self.c.pick(&[ASSETS - 1, ASSETS, u32::MAX]))
        } else {
            IN_MARKET[self.c.weighted(&[5, 5, 2, 1])]
        }
    }

    /// An amount that the account may spend, mostly.
    fn spend(&mut self, account: AccountId, asset: AssetId) -> Amount {
        let available = self.venue.holding(account, asset).available;
        let spent = self.spent.entry((account, asset)).or_default();
        let left = u64::try_from(available.saturating_sub(*spent)).expect("an amount");
        let units = match self.c.weighted(&[6, 6, 3, 1]) {
            0 => self.c.within(1, 20).min(left),
            1 => left / self.c.within(1, 8),
            2 => left - self.c.below(3).min(left),
            _ => left,
        };
        *spent += u128::from(units);
        if self.is_wrong() {
            return match self.c.below(4) {
                0 => amount(left.saturating_add(1)),
                1 => amount(0),
                2 => amount(AMOUNT_MAX),
                _ => amount(u64::try_from(available).expect("an amount")),
            };
        }
        amount(units)
    }

    fn create_offer(&mut self, account: AccountId) -> BatchOperation {
        let market = if self.is_wrong() { BatchMarketId(self.c.below(3) as u16) } else { self.venue.market };
        let mut sell = self.asset();
        for _ in 0..4 {
            let spent = self.spent.get(&(account, sell)).copied().unwrap_or_default();
            if self.venue.holding(account, sell).available > spent {
                break;
            }
            sell = self.asset();
        }
        let mut buy = self.asset();
        while buy == sell && !self.is_wrong() {
            // Spent bytes choose the same asset for ever.
            buy = if self.c.is_spent() { IN_MARKET[usize::from(sell == IN_MARKET[0])] } else { self.asset() };
        }
        let limit = limit(self.c);
        let amount = self.spend(account, sell);
        // Whoever has nothing pays nothing, or offers what is not there.
        if amount.is_zero() && !self.is_wrong() {
            return self.create_account(account);
        }
        BatchOperation::CreateOffer(CreateOffer { market, sell, buy, amount, limit })
    }

    /// For one that the account can pay for, mostly; or else of an asset that it issues.
    fn create_account(&mut self, account: AccountId) -> BatchOperation {
        if let Some(AccountFee { asset, amount }) = self.venue.account_fee {
            let available = self.venue.holding(account, asset).available;
            let spent = self.spent.entry((account, asset)).or_default();
            let is_short = *spent + u128::from(amount.get()) > available;
            if !is_short {
                *spent += u128::from(amount.get());
            } else if !self.is_wrong()
                && let Some(issue) = self.issue(account)
            {
                return issue;
            }
        }
        BatchOperation::CreateAccount(self.key())
    }

    fn cancel(&mut self, account: AccountId) -> Option<BatchOperation> {
        let of_account = |key: &OfferKey| OfferName::of_number(key.id.0).account == account;
        let anybodys = self.is_wrong();
        let again = self.is_wrong();
        let standing: Vec<(Pair, OfferKey)> = self.venue.offers.keys().copied().collect();
        let mut mine = standing;
        mine.retain(|(_, key)| (anybodys || of_account(key)) && (again || !self.cancelled.contains(key)));
        if mine.is_empty() {
            return None;
        }
        let (pair, key) = self.c.pick(&mine);
        self.cancelled.insert(key);
        let mut cancel = CancelOffer {
            market: self.venue.market,
            sell: self.venue.assets[pair.sell.index()],
            buy: self.venue.assets[pair.buy.index()],
            limit: key.limit,
            tie: key.tie,
            sequence: OfferName::of_number(key.id.0).sequence,
        };
        if self.is_wrong() {
            match self.c.below(5) {
                0 => cancel.tie ^= 1,
                1 => cancel.limit = limit(self.c),
                2 => cancel.sequence.0 ^= 1,
                3 => std::mem::swap(&mut cancel.sell, &mut cancel.buy),
                _ => cancel.sequence.0 |= TRANSACTION_SEQ_END,
            }
        }
        Some(BatchOperation::CancelOffer(cancel))
    }

    fn payment(&mut self, account: AccountId) -> BatchOperation {
        let asset = if self.c.one_in(4) { AssetId(ASSETS - 1) } else { self.asset() };
        let amount = self.spend(account, asset);
        let mut to =
            AccountId((account.0.wrapping_add(1 + self.c.below(u64::from(ACCOUNTS - 1)) as u32)) % self.venue.account_count);
        if self.is_wrong() {
            to = self.c.pick(&[account, AccountId(self.venue.account_count), AccountId(u32::MAX)]);
        }
        if (amount.is_zero() || to == account) && !self.is_wrong() {
            return self.create_account(account);
        }
        BatchOperation::Payment(Payment { to, asset, amount })
    }

    fn key(&mut self) -> PublicKey {
        if self.is_wrong() {
            let asked = self.made.iter().filter_map(|t| match t.operation {
                BatchOperation::CreateAccount(key) | BatchOperation::SetKey(key) => Some(key),
                _ => None,
            });
            let taken: Vec<PublicKey> = self.venue.keys.values().copied().chain(asked).collect();
            return if taken.is_empty() { key(self.c) } else { self.c.pick(&taken) };
        }
        key(self.c)
    }

    /// An asset of which the account is the issuer, mostly.
    fn issued_by(&mut self, account: AccountId) -> Option<AssetId> {
        let anybodys = self.is_wrong();
        let of_account = |(_, issuer): &(&AssetId, &AccountId)| anybodys || **issuer == account;
        let assets: Vec<AssetId> = self.venue.issuers.iter().filter(of_account).map(|(asset, _)| *asset).collect();
        if assets.is_empty() { None } else { Some(self.c.pick(&assets)) }
    }

    fn issue(&mut self, account: AccountId) -> Option<BatchOperation> {
        let asset = self.issued_by(account)?;
        let issued = self.made.iter().map(|t| match t.operation {
            BatchOperation::Issue(issue) if issue.asset == asset => u128::from(issue.amount.get()),
            _ => 0,
        });
        let there = self.venue.supply_of(asset) + issued.sum::<u128>();
        let room = u64::try_from(u128::from(AMOUNT_MAX).saturating_sub(there)).expect("below the largest amount");
        let units = match self.c.below(3) {
            0 => room,
            1 => room / 2,
            _ => self.c.within(1, 1_000).min(room),
        };
        let units = if self.is_wrong() { room + 1 } else { units };
        (units > 0).then(|| BatchOperation::Issue(IssuedAmount { asset, amount: amount(units) }))
    }

    fn burn(&mut self, account: AccountId) -> Option<BatchOperation> {
        let asset = self.issued_by(account)?;
        let amount = self.spend(account, asset);
        (!amount.is_zero() || self.is_wrong()).then_some(BatchOperation::Burn(IssuedAmount { asset, amount }))
    }
}

/// A limit near one, mostly, and often the same.
fn limit(c: &mut Choices<'_>) -> BatchPrice {
    match c.weighted(&[14, 14, 60, 6, 1, 1]) {
        0 => valuation(c),
        1 => {
            let (a, b) = (c.within(1, 12), c.within(1, 12));
            BatchPrice::from_ratio(u128::from(a), u128::from(b), Rounding::Up).expect("a small ratio")
        }
        2 => BatchPrice::from_ratio(u128::from(c.within(900, 1_000)), 1_000, Rounding::Up).expect("a small ratio"),
        3 => BatchPrice::ZERO,
        4 => BatchPrice::MAX,
        _ => BatchPrice::MIN,
    }
}

fn valuation(c: &mut Choices<'_>) -> BatchPrice {
    let price = c.pick(&["1", "1", "1", "0.5", "2", "1.5", "0.99", "1.01", "0.3333333333333333"]);
    BatchPrice::from_decimal(price, Rounding::Down).expect("a decimal number")
}

/// A proposal at random prices that trades cycles of two assets; often sound, and often not quite.
pub fn proposal(c: &mut Choices<'_>, venue: &Venue) -> Proposal {
    let prices = venue.assets.iter().map(|_| (!c.one_in(12)).then(|| valuation(c))).collect();
    let mut proposal = Proposal { prices, trades: Vec::new(), pools: Vec::new() };
    let count = venue.assets.len() as u16;
    for first in (0..count).map(AssetIndex) {
        for second in (first.0 + 1..count).map(AssetIndex) {
            let (there, back) = (Pair { sell: first, buy: second }, Pair { sell: second, buy: first });
            if let Some((sold, paid)) = cycle(c, venue, &proposal, there, back) {
                for (pair, sold) in [(there, sold), (back, paid)] {
                    proposal.trades.push(PairTrade { pair, sold, bought_by_buy_offers: Amount::ZERO });
                }
            }
        }
    }
    proposal.trades.sort_by_key(|trade| trade.pair);
    proposal
}

/// What goes there and back: what is sold in the second pair is what the first one buys.
fn cycle(c: &mut Choices<'_>, venue: &Venue, proposal: &Proposal, there: Pair, back: Pair) -> Option<(Amount, Amount)> {
    let price = |asset: AssetIndex| proposal.prices[asset.index()];
    let rate = NetRate::new(price(there.sell)?, price(there.buy)?, venue.rules.commission)?;
    let rate_back = NetRate::new(price(back.sell)?, price(back.buy)?, venue.rules.commission)?;
    let most = |pair, rate: &NetRate| {
        let held = venue.standing(pair).filter(|(key, _)| rate.holds(key.limit));
        Amount::from_wide(held.map(|(_, standing)| u128::from(standing.amount.get())).sum())
    };
    let (most_there, most_back) = (most(there, &rate)?, most(back, &rate_back)?);
    let sold = rate.sold_up(most_back).map_or(most_there, |enough| enough.min(most_there));
    let sold = amount(sold.get() - c.below(2).min(sold.get()));
    let sold = whole_or_honoured(venue, there, &rate, sold);
    let paid = whole_or_honoured(venue, back, &rate_back, rate.bought_down(sold)?.min(most_back));
    (!sold.is_zero() && !paid.is_zero()).then_some((sold, paid))
}

/// At most so much, such that the last offer gets its limit.
fn whole_or_honoured(venue: &Venue, pair: Pair, rate: &NetRate, sold: Amount) -> Amount {
    let mut left = sold;
    for (key, standing) in venue.standing(pair) {
        match left.checked_sub(standing.amount) {
            Some(rest) => left = rest,
            None => {
                let part = honourable_sold(venue.part_limit(key, standing), rate, left);
                return amount(sold.get() - left.get() + part.get());
            }
        }
    }
    amount(sold.get() - left.get())
}

/// Changes a proposal, or its marginal keys, in one place. What comes of it may still be right.
pub fn lie(c: &mut Choices<'_>, proposal: &mut Proposal, marginal: &mut Vec<(Pair, OfferKey)>) {
    let place = |c: &mut Choices<'_>, len: usize| (len > 0).then(|| c.below(len.max(1) as u64) as usize);
    match c.below(6) {
        0 => {
            let Some(at) = place(c, proposal.prices.len()) else { return };
            let near = |price: BatchPrice, by: i64| BatchPrice::from_bits(price.bits().wrapping_add_signed(by)).unwrap_or(price);
            proposal.prices[at] = match (c.below(4), proposal.prices[at]) {
                (0, _) => None,
                (1, _) => Some(BatchPrice::ZERO),
                (2, Some(price)) => Some(near(price, c.pick(&[-1, 1, 1 << 40]))),
                _ => Some(valuation(c)),
            };
        }
        1 => match c.below(2) {
            0 => drop(proposal.prices.pop()),
            _ => proposal.prices.push(None),
        },
        2 | 3 => {
            let Some(at) = place(c, proposal.trades.len()) else { return };
            let trade = &mut proposal.trades[at];
            match c.weighted(&[2, 8, 1, 1, 1, 1, 1, 1]) {
                0 => trade.sold = amount(trade.sold.get() + 1),
                1 => trade.sold = amount(trade.sold.get().saturating_sub(c.within(1, 3))),
                2 => trade.sold = amount(c.pick(&[0, AMOUNT_MAX])),
                3 => trade.bought_by_buy_offers = amount(1),
                4 => trade.pair = Pair { sell: trade.pair.buy, buy: trade.pair.sell },
                5 => trade.pair.buy = AssetIndex(c.pick(&[trade.pair.sell.0, 4, u16::MAX])),
                6 => drop(proposal.trades.remove(at)),
                _ => {
                    let again = proposal.trades[at];
                    proposal.trades.insert(at, again);
                }
            }
        }
        4 => {
            let trade = PoolTrade { pool: PoolIndex(0), side: PoolSide::First, sold: amount(c.below(2)) };
            proposal.pools.push(trade);
        }
        _ => {
            let Some(at) = place(c, marginal.len()) else { return };
            match c.below(5) {
                0 => drop(marginal.remove(at)),
                1 => marginal[at].1.tie ^= 1,
                2 => marginal[at].1.id.0 ^= 1,
                3 => marginal[at].1.limit = limit(c),
                _ => {
                    let again = marginal[at];
                    marginal.push(again);
                }
            }
        }
    }
}
