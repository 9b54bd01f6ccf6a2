//! The workload itself.

use std::collections::HashSet;

use walras_clearing::{AssetIndex, BatchMarket, Offer as StandingOffer, OfferId, OfferKey, Pair, TieBreak};
use walras_price_solver::random::Random;
use walras_price_solver::synthetic::{MadeBatch, Model as OfferModel, Offer};
use walras_types::limits::{AMOUNT_MAX, TRANSACTIONS_PER_ACCOUNT_MAX};
use walras_types::{
    AccountId, Amount, AssetId, BatchOperation, BatchPrice, BatchTransaction, CancelOffer, CreateOffer, OfferName, Payment,
    PublicKey, TransactionSeq,
};

use crate::model::{Model, PaidAssets};
use crate::planned::{Calendar, Planned};

/// Largest endowment: sums of so many accounts' stay below the largest amount.
const ENDOWMENT_MAX: u64 = 1 << 50;
/// Smallest units in a unit of value at valuation 1.
const UNITS_PER_VALUE: f64 = 1e4;
/// Values of payments.
const PAID_VALUE: (f64, f64) = (1e3, 1e6);

/// Accounts that are drawn for a transaction until one has numbers left; then neighbours are tried.
const DRAWS_MAX: usize = 16;

/// Makes block after block.
#[derive(Clone, Debug)]
pub struct Workload {
    model: Model,
    offers: MadeBatch,
    /// Made at the present valuations, and not sent yet; see [`Model::offers_per_valuation`].
    stock: Vec<Offer>,
    random: Random,
    /// The highest number that a transaction of each account had in a block, as far as it was kept.
    last: Vec<u32>,
    /// How far above that each account is in this block.
    ahead: Vec<u8>,
    calendar: Calendar,
    late: Vec<BatchOperation>,
    block: Vec<BatchTransaction>,
}

impl Workload {
    /// The workload of a model and a seed.
    ///
    /// # Panics
    /// When the model asks for what cannot be: offers between fewer than two assets, more transactions than its accounts may send.
    #[must_use]
    pub fn new(model: Model, seed: u64) -> Self {
        model.check();
        let offer_model =
            OfferModel { asset_count: model.assets.len(), offer_count: 0, variant: model.variant, shape: model.shape };
        let mut random = Random::new(seed);
        Self {
            offers: MadeBatch::new(offer_model, random.bits()),
            stock: Vec::new(),
            random,
            last: vec![0; model.account_count as usize],
            ahead: vec![0; model.account_count as usize],
            calendar: Calendar::default(),
            late: Vec::new(),
            block: Vec::new(),
            model,
        }
    }

    /// What each account should have of each asset in the beginning so that none overdraws for thousands of transactions.
    #[must_use]
    pub fn endowment(&self) -> Amount {
        let share = AMOUNT_MAX / u64::from(self.model.account_count) / 2;
        Amount::new(share.min(ENDOWMENT_MAX)).expect("a part of the largest amount")
    }

    /// The model.
    #[must_use]
    pub const fn model(&self) -> &Model {
        &self.model
    }

    /// Makes blocks of another size from now on.
    ///
    /// # Panics
    /// When the model's accounts may not send so many transactions in a block.
    pub fn set_transaction_count(&mut self, transaction_count: usize) {
        self.model.transaction_count = transaction_count;
        self.model.check();
    }

    /// Goes on after the numbers that accounts have used, where another workload was before.
    pub fn go_on_after(&mut self, last: impl Fn(AccountId) -> TransactionSeq) {
        for (account, mine) in (0..).map(AccountId).zip(&mut self.last) {
            *mine = u32::try_from(last(account).0).expect("no run has 2^32 transactions of one account");
        }
    }

    /// The hidden valuations, by [`AssetIndex`].
    #[must_use]
    pub fn valuations(&self) -> &[f64] {
        &self.offers.valuations
    }

    /// The next block, in random order. `stands` says whether an offer stands, under this key, in the market as the last block left
    /// it: a cancel that is due is sent if it does. See [`stands_in`].
    ///
    /// Say by [`Self::closed`] what became of it before you ask for the next.
    pub fn block(&mut self, stands: impl FnMut(Pair, &OfferKey) -> bool) -> &[BatchTransaction] {
        self.block.clear();
        self.ahead.fill(0);
        self.push_cancels(stands);
        self.fill_block()
    }

    /// Adds to the cancels what else is in a block.
    fn fill_block(&mut self) -> &[BatchTransaction] {
        let cancels = self.block.clone();
        let made_count = self.model.transaction_count.saturating_sub(self.block.len());
        for operation in self.operations(made_count) {
            self.send(operation);
        }
        self.push_faults(&cancels);
        shuffle(&mut self.random, &mut self.block);
        &self.block
    }

    /// The next block, of which so large a share cancels offers that stand in this market as the last block left it: any of them, all as
    /// often, whenever they were made. What [`Model::cancel_share`] plans comes in addition.
    pub fn block_cancelling(&mut self, share: f64, market: &BatchMarket) -> &[BatchTransaction] {
        self.block.clear();
        self.ahead.fill(0);
        self.push_cancels(stands_in(market));
        self.push_drawn_cancels(share, market);
        self.fill_block()
    }

    /// Says what became of the block: the hash of its batch, which decides ties, and the places of the transactions that were
    /// dropped. Numbers of dropped transactions are used again, and offers that were dropped are not cancelled.
    ///
    /// Where blocks are made beforehand the hashes are not known: any will do when the model's `cancel_share` is zero.
    pub fn closed(&mut self, batch_hash: &[u8; 32], dropped: impl IntoIterator<Item = usize>) {
        let tie_break = TieBreak::new(batch_hash);
        let mut is_dropped = vec![false; self.block.len()];
        for place in dropped {
            is_dropped[place] = true;
        }
        let (soonest, latest) = self.model.cancel_after_blocks;
        for (transaction, is_dropped) in std::mem::take(&mut self.block).into_iter().zip(is_dropped) {
            let BatchTransaction { account, sequence, operation, .. } = transaction;
            if is_dropped {
                continue;
            }
            let last = &mut self.last[account.0 as usize];
            *last = (*last).max(u32::try_from(sequence.0).expect("no run has 2^32 transactions of one account"));
            let BatchOperation::CreateOffer(create) = operation else { continue };
            if self.random.unit() >= self.model.cancel_share {
                continue;
            }
            let in_blocks = soonest + self.random.below(usize::from(latest - soonest) + 1) as u16;
            let id = OfferId(OfferName { account, sequence }.number());
            let tie = tie_break.of(u64::from(account.0), id);
            if let Ok(offer) = StandingOffer::new(create.limit, tie, id, create.amount) {
                let pair = Pair { sell: self.index_of(create.sell), buy: self.index_of(create.buy) };
                let planned = Planned { pair, limit: offer.key().limit, tie, account, sequence };
                self.calendar.plan(in_blocks, planned);
            }
        }
    }

    /// Assets mostly have the ids from 0.
    fn index_of(&self, asset: AssetId) -> AssetIndex {
        let assets = &self.model.assets;
        let index = match assets.get(asset.0 as usize) {
            Some(&found) if found == asset => asset.0 as usize,
            _ => assets.iter().position(|&found| found == asset).expect("the workload made the offer"),
        };
        AssetIndex(index as u16)
    }

    fn push_cancels(&mut self, mut stands: impl FnMut(Pair, &OfferKey) -> bool) {
        for planned in self.calendar.take_due() {
            if !stands(planned.pair, &planned.key()) {
                continue;
            }
            let Some(number) = self.next_number(planned.account).filter(|_| self.block.len() < self.model.transaction_count) else {
                // The block, or the account's numbers, are used up: next time.
                self.calendar.plan(1, planned);
                continue;
            };
            let cancel = CancelOffer {
                market: self.model.market,
                sell: self.model.assets[planned.pair.sell.index()],
                buy: self.model.assets[planned.pair.buy.index()],
                limit: planned.limit,
                tie: planned.tie,
                sequence: planned.sequence,
            };
            let operation = BatchOperation::CancelOffer(cancel);
            self.block.push(BatchTransaction::new(planned.account, number, operation));
        }
    }

    /// Cancels of offers that are drawn among all that stand, each once.
    fn push_drawn_cancels(&mut self, share: f64, market: &BatchMarket) {
        let mut ends = Vec::with_capacity(market.books().len());
        let mut standing = 0;
        for book in market.books() {
            standing += book.sells().as_slice().len();
            ends.push(standing);
        }
        let count = ((self.model.transaction_count as f64 * share) as usize).min(standing / 2);
        let mut drawn: HashSet<usize> = HashSet::with_capacity(count);
        // Offers of accounts whose numbers are used up are passed over, so a draw may come to nothing.
        for _ in 0..4 * count {
            if drawn.len() == count || self.block.len() >= self.model.transaction_count {
                break;
            }
            let place = self.random.below(standing);
            if drawn.contains(&place) {
                continue;
            }
            let at = ends.partition_point(|end| *end <= place);
            let (pair, sells) = (market.books()[at].pair(), market.books()[at].sells().as_slice());
            let key = sells[place + sells.len() - ends[at]].key();
            let OfferName { account, sequence } = OfferName::of_number(key.id.0);
            let Some(number) = self.next_number(account) else { continue };
            drawn.insert(place);
            let cancel = CancelOffer {
                market: self.model.market,
                sell: self.model.assets[pair.sell.index()],
                buy: self.model.assets[pair.buy.index()],
                limit: key.limit,
                tie: key.tie,
                sequence,
            };
            self.block.push(BatchTransaction::new(account, number, BatchOperation::CancelOffer(cancel)));
        }
    }

    /// Operations of this block: the late ones of the last block, and new ones. Some of the new ones are held back to be late.
    fn operations(&mut self, count: usize) -> Vec<BatchOperation> {
        let mut operations = std::mem::take(&mut self.late);
        let rest = operations.split_off(operations.len().min(count));
        let late_count = (count as f64 * self.model.late_share) as usize;
        let made_count = count - operations.len();
        let mut made = self.made(made_count + late_count.saturating_sub(rest.len()));
        shuffle(&mut self.random, &mut made);
        self.late = made.split_off(made_count);
        self.late.extend(rest);
        operations.append(&mut made);
        // Whom each comes from is drawn in this order, and numbers are scarce at the end.
        shuffle(&mut self.random, &mut operations);
        operations
    }

    /// New operations at the valuations of this block.
    fn made(&mut self, count: usize) -> Vec<BatchOperation> {
        let mix = self.model.mix;
        let total = mix.offers + mix.payments + mix.accounts;
        let part = |weight: f64| (count as f64 * weight / total).round() as usize;
        let account_count = part(mix.accounts).min(count);
        let payment_count = part(mix.payments).min(count - account_count);
        // Rounding leaves a rest, which goes to the larger kind.
        let offer_count = if mix.offers > 0.0 { count - account_count - payment_count } else { 0 };
        let payment_count = count - account_count - offer_count;
        let mut operations = Vec::with_capacity(count);
        match self.model.offers_per_valuation {
            None => {
                self.offers.next_of(offer_count);
                let model = &self.model;
                operations.extend(self.offers.offers.iter().map(|offer| BatchOperation::CreateOffer(create_offer(model, offer))));
            }
            Some(set_len) => {
                for _ in 0..offer_count {
                    let offer = self.offer_of_set(set_len);
                    operations.push(BatchOperation::CreateOffer(create_offer(&self.model, &offer)));
                }
            }
        }
        for _ in 0..payment_count {
            operations.push(self.payment());
        }
        for _ in 0..account_count {
            operations.push(BatchOperation::CreateAccount(self.key()));
        }
        operations
    }

    /// The next offer of a set of so many that are made at the same valuations.
    fn offer_of_set(&mut self, set_len: usize) -> Offer {
        if self.stock.is_empty() {
            self.offers.next_of(set_len);
            self.stock.clone_from(&self.offers.offers);
            shuffle(&mut self.random, &mut self.stock);
        }
        self.stock.pop().expect("a set has an offer at least")
    }

    fn payment(&mut self) -> BatchOperation {
        let asset = match self.model.paid_assets {
            PaidAssets::All => self.random.below(self.model.assets.len()),
            PaidAssets::First => 0,
        };
        let units = self.random.uniform(PAID_VALUE.0, PAID_VALUE.1) * UNITS_PER_VALUE / self.offers.valuations[asset];
        let to = AccountId(match self.model.payee_count {
            Some(count) => self.random.below(count as usize) as u32,
            None => self.model.accounts.draw(&mut self.random, self.model.account_count),
        });
        BatchOperation::Payment(Payment { to, asset: self.model.assets[asset], amount: amount_of(units) })
    }

    /// A key that nobody has: random, not the key of a signature.
    fn key(&mut self) -> PublicKey {
        let mut key = [0; 32];
        for chunk in key.chunks_mut(8) {
            chunk.copy_from_slice(&self.random.bits().to_le_bytes());
        }
        PublicKey(key)
    }

    /// Sends an operation from an account that the model draws.
    fn send(&mut self, operation: BatchOperation) {
        for _ in 0..DRAWS_MAX {
            let account = AccountId(self.model.accounts.draw(&mut self.random, self.model.account_count));
            if let Some(sequence) = self.number_for(account, &operation) {
                self.block.push(BatchTransaction::new(account, sequence, operation));
                return;
            }
        }
        let drawn = self.model.accounts.draw(&mut self.random, self.model.account_count);
        self.send_from(drawn, operation);
    }

    /// The next number of an account, if it has one and may send this.
    fn number_for(&mut self, account: AccountId, operation: &BatchOperation) -> Option<TransactionSeq> {
        let pays_itself = matches!(operation, BatchOperation::Payment(payment) if payment.to == account);
        if pays_itself { None } else { self.next_number(account) }
    }

    /// The first account from `first` on that has numbers left and may send this.
    fn sender_from(&mut self, first: u32, operation: &BatchOperation) -> (AccountId, TransactionSeq) {
        let mut account = AccountId(first);
        loop {
            if let Some(sequence) = self.number_for(account, operation) {
                return (account, sequence);
            }
            account = AccountId((account.0 + 1) % self.model.account_count);
            assert!(account.0 != first, "the model's accounts have numbers enough for its transactions");
        }
    }

    /// The next number of an account, if it has one in this block; with a gap before it where the model says so.
    fn next_number(&mut self, account: AccountId) -> Option<TransactionSeq> {
        let gap_max = self.model.sequence_gap_max;
        let gap = if gap_max == 0 { 0 } else { self.random.below(usize::from(gap_max) + 1) as u8 };
        let ahead = &mut self.ahead[account.0 as usize];
        let next = *ahead + 1 + gap;
        if u64::from(next) > TRANSACTIONS_PER_ACCOUNT_MAX {
            return None;
        }
        *ahead = next;
        Some(TransactionSeq(u64::from(self.last[account.0 as usize]) + u64::from(next)))
    }

    /// An account that does something wrong.
    fn faulty(&mut self) -> u32 {
        let all = self.model.account_count;
        match self.model.faults.account_count {
            None => self.model.accounts.draw(&mut self.random, all),
            Some(count) => {
                let step = (all / count.min(all)).max(1);
                self.random.below(count.min(all) as usize) as u32 * step
            }
        }
    }

    fn push_faults(&mut self, cancels: &[BatchTransaction]) {
        let faults = self.model.faults;
        let good_count = self.block.len();
        if good_count > 0 {
            for _ in 0..faults.repeated {
                let repeated = self.block[self.random.below(good_count)];
                self.block.push(repeated);
            }
        }
        for cancel in cancels.iter().take(faults.double_cancels) {
            if let Some(sequence) = self.next_number(cancel.account) {
                self.block.push(BatchTransaction { sequence, ..*cancel });
            }
        }
        for _ in 0..faults.reused_numbers {
            let first = self.faulty();
            let operations = [self.small_offer(), self.small_offer()];
            let (account, sequence) = self.sender_from(first, &operations[0]);
            self.block.extend(operations.map(|operation| BatchTransaction::new(account, sequence, operation)));
        }
        for _ in 0..faults.overdrafts {
            let (first, mut operation) = (self.faulty(), self.small_offer());
            if let BatchOperation::CreateOffer(create) = &mut operation {
                create.amount = Amount::new(self.endowment().get() * 2).expect("twice the endowment is an amount");
            }
            self.send_from(first, operation);
        }
        for _ in 0..faults.empty_cancels {
            let (first, operation) = (self.faulty(), self.small_offer());
            if let BatchOperation::CreateOffer(CreateOffer { market, sell, buy, limit, .. }) = operation {
                let (tie, sequence) = (self.random.bits(), TransactionSeq(0));
                self.send_from(first, BatchOperation::CancelOffer(CancelOffer { market, sell, buy, limit, tie, sequence }));
            }
        }
        for _ in 0..faults.twin_keys {
            let (first, operation) = (self.faulty(), BatchOperation::CreateAccount(self.key()));
            let (account, sequence) = self.sender_from(first, &operation);
            self.block.push(BatchTransaction::new(account, sequence, operation));
            self.send_from((account.0 + 1) % self.model.account_count, operation);
        }
    }

    fn send_from(&mut self, first: u32, operation: BatchOperation) {
        let (account, sequence) = self.sender_from(first, &operation);
        self.block.push(BatchTransaction::new(account, sequence, operation));
    }

    /// An offer of one unit of the first asset; of an asset for itself where there is one asset, which is wrong in any case.
    fn small_offer(&mut self) -> BatchOperation {
        let [sell, buy] = [0, 1.min(self.model.assets.len() - 1)].map(|index| self.model.assets[index]);
        let amount = Amount::new(1 + self.random.below(1_000) as u64).expect("a small number");
        BatchOperation::CreateOffer(CreateOffer { market: self.model.market, sell, buy, amount, limit: BatchPrice::ONE })
    }
}

/// Whether an offer stands in a market: what [`Workload::block`] asks.
pub fn stands_in(market: &BatchMarket) -> impl FnMut(Pair, &OfferKey) -> bool {
    |pair, key| {
        let sells = market.book(pair).map_or(&[][..], |book| book.sells().as_slice());
        sells.binary_search_by_key(key, StandingOffer::key).is_ok()
    }
}

fn create_offer(model: &Model, offer: &Offer) -> CreateOffer {
    CreateOffer {
        market: model.market,
        sell: model.assets[offer.sell],
        buy: model.assets[offer.buy],
        amount: amount_of(offer.amount),
        limit: BatchPrice::from_bits(offer.limit.to_bits())
            .expect("valuations drift by a few percent: the ratio of two stays in range"),
    }
}

/// At least one unit.
fn amount_of(units: f64) -> Amount {
    Amount::new((units as u64).clamp(1, AMOUNT_MAX)).expect("clamped")
}

/// Fisher and Yates.
fn shuffle<T>(random: &mut Random, items: &mut [T]) {
    for end in (1..items.len()).rev() {
        items.swap(end, random.below(end + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payees(block: &[BatchTransaction]) -> impl Iterator<Item = u32> {
        block.iter().filter_map(|transaction| match transaction.operation {
            BatchOperation::Payment(payment) => Some(payment.to.0),
            _ => None,
        })
    }

    #[test]
    fn payments_go_to_the_payees_alone() {
        let model = Model { payee_count: Some(2), ..Model::payments(2, 100, 1_000, PaidAssets::First) };
        let mut workload = Workload::new(model, 1);
        let paid: Vec<u32> = payees(workload.block(|_, _| false)).collect();
        assert_eq!(paid.len(), 1_000);
        assert!(paid.iter().all(|to| *to < 2) && paid.contains(&0) && paid.contains(&1));
    }

    #[test]
    fn valuations_move_with_offers_and_not_with_blocks() {
        let model = Model { offers_per_valuation: Some(900), late_share: 0.0, ..Model::bare_book(100, 300) };
        let mut workload = Workload::new(model, 1);
        let mut valuations = Vec::new();
        for transaction_count in [300, 300, 200, 100, 900] {
            workload.set_transaction_count(transaction_count);
            assert_eq!(workload.block(|_, _| false).len(), transaction_count);
            valuations.push(workload.valuations()[0]);
            workload.closed(&[0; 32], []);
        }
        assert!(valuations[..3].iter().all(|value| *value == valuations[0]), "{valuations:?}");
        assert_eq!(valuations[3], valuations[0]);
        assert!(valuations[4] != valuations[0], "{valuations:?}");
    }
}
