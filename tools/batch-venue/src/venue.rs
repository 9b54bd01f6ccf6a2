//! The state, and the two ways of applying a block to it.

use std::num::NonZero;
use std::time::{Duration, Instant};

use walras_batch::{Accounts, Batch, BatchSettings, BlockPlace, Cleared, Closed, Intake, ProposedClearing, threads_worth};
use walras_batch_solver::{Budget, ClosedBatch, KeptIndex};
use walras_batch_workload::Model;
use walras_clearing::{Edition, LowerBounds, Rules};
use walras_ledger::Ledger;
use walras_types::{AccountId, Amount, BatchPrice, BatchTransaction, Commission, Mu, PublicKey, QualityMax};

/// A state that blocks are applied to.
#[derive(Clone, Debug)]
pub struct Venue {
    /// Who has what.
    pub ledger: Ledger,
    /// Whose transactions had which numbers.
    pub accounts: Accounts,
    /// What stands.
    pub batch: Batch,
    /// How many threads apply a block, of those that it is worth. May change between blocks: nothing else depends on it.
    pub threads: NonZero<usize>,
    /// Which transactions a batch keeps.
    pub intake: Intake,
    /// The solver's, from block to block.
    pub index: KeptIndex,
}

/// A block, and the cost of proposing it.
#[derive(Debug)]
pub struct Proposed {
    /// The proposal that a validator gets.
    pub block: ProposedClearing,
    /// The hash of its batch, the kept transactions, and the dropped ones with their reasons.
    pub closed: Closed,
    /// How long it took.
    pub times: Times,
    /// Size of its full header.
    pub header_bytes: usize,
    /// What it did, from which proofs are made.
    pub cleared: Cleared,
}

impl Proposed {
    /// The places of transactions that were left out.
    pub fn dropped(&self) -> impl Iterator<Item = usize> + '_ {
        self.closed.dropped.iter().map(|(place, _)| *place as usize)
    }
}

/// The parts of proposing a block, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// Filter, reserve, hash the batch, new offers stand and cancelled ones do not.
    pub close_ms: f64,
    /// Prices, amounts, certificate.
    pub solve_ms: f64,
    /// Check, trade, pay, hash the state.
    pub clear_ms: f64,
}

impl Times {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.close_ms + self.solve_ms + self.clear_ms
    }
}

/// Those of the papers' experiments: a commission of 2^-15 and mu = 2^-10; offers that must trade and cannot are reported.
#[must_use]
pub fn rules() -> Rules {
    let (commission, mu) = (Commission::new(15).expect("a commission"), Mu::new(10).expect("a share"));
    Rules { edition: Edition::NEWEST, commission, mu, lower_bounds: LowerBounds::BestEffort }
}

/// As in the venue.
const QUERIES_MAX: u64 = 10_000;
/// A venue gives up after two seconds. What takes longer than that is to be seen in the times, but nothing takes for ever.
const SEARCH_MAX: Duration = Duration::from_secs(30);

impl Venue {
    /// Every account of the model with a key and so much of every asset; batches are filtered.
    ///
    /// # Errors
    /// When ledger or market refuse what the model asks for.
    pub fn new(model: &Model, endowment: Amount, threads: NonZero<usize>) -> anyhow::Result<Self> {
        let mut ledger = Ledger::new();
        for _ in 0..model.account_count {
            ledger.create_account()?;
        }
        for _ in &model.assets {
            let asset = ledger.create_asset()?;
            for account in 0..model.account_count {
                ledger.deposit(AccountId(account), asset, endowment)?;
            }
        }
        let mut accounts = Accounts::new();
        for account in (0..model.account_count).map(AccountId) {
            accounts.set_key(account, key(account))?;
        }
        let batch = Batch::new(BatchSettings {
            market: model.market,
            assets: model.assets.clone(),
            currencies: None,
            rules: rules(),
            quality: QualityMax::USUAL,
            account_fee: None,
        })?;
        Ok(Self { ledger, accounts, batch, threads, intake: Intake::Filter, index: KeptIndex::default() })
    }

    /// How many offers stand.
    #[must_use]
    pub fn open_offer_count(&self) -> usize {
        self.batch.market().books().iter().map(|book| book.sells().as_slice().len()).sum()
    }

    /// Proposes a block of these transactions and executes it. Prices are searched from `start`, such as those of the block before.
    ///
    /// # Errors
    /// When there is no clearing, or it is not accepted: a defect.
    pub fn propose(&mut self, transactions: &[BatchTransaction], start: Option<&[Option<BatchPrice>]>) -> anyhow::Result<Proposed> {
        let Self { ledger, accounts, batch, threads, intake, index } = self;
        let mut times = Times::default();
        let closed = timed(&mut times.close_ms, || {
            let threads = threads_worth(*threads, transactions);
            batch.close(ledger, accounts, transactions, *intake, threads)
        })?;
        let place = BlockPlace { number: batch.number(), parent: *batch.parent(), batch_hash: closed.batch_hash };
        let (market, offers) = (batch.settings().market, batch.market());
        let closed_batch = ClosedBatch { market, place, offers, rules: rules(), quality: QualityMax::USUAL };
        let budget = Budget::queries(QUERIES_MAX).within(SEARCH_MAX);
        let found = timed(&mut times.solve_ms, || closed_batch.propose_with(index, start, budget))?;
        let mut block = ProposedClearing::from(&found);
        let cleared = timed(&mut times.clear_ms, || {
            let threads = batch.threads_worth_clearing(*threads);
            batch.clear(ledger, accounts, &block, threads)
        })?;
        block.expected = Some(cleared.roots);
        Ok(Proposed { block, closed, times, header_bytes: cleared.header.bytes().len(), cleared })
    }

    /// Executes a block that another proposed, all of its fields and roots checked; in how many milliseconds.
    ///
    /// # Errors
    /// When it is not accepted.
    pub fn validate(&mut self, transactions: &[BatchTransaction], block: &ProposedClearing) -> anyhow::Result<f64> {
        let Self { ledger, accounts, batch, threads, intake, index: _ } = self;
        let mut validate_ms = 0.0;
        // What comes of it is dropped later, as the proposer's is.
        let _results = timed(&mut validate_ms, || {
            let closed = batch.close(ledger, accounts, transactions, *intake, threads_worth(*threads, transactions))?;
            let threads = batch.threads_worth_clearing(*threads);
            anyhow::Ok((closed, batch.clear(ledger, accounts, block, threads)?))
        })?;
        Ok(validate_ms)
    }
}

/// A key that looks like any other: nobody checks signatures with it.
fn key(account: AccountId) -> PublicKey {
    let word = |place: u64| {
        let mixed = (u64::from(account.0) + 1 + (place << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 24) as u8
    };
    PublicKey(std::array::from_fn(|place| word(place as u64)))
}

pub(crate) fn timed<T>(ms: &mut f64, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = work();
    *ms += begun.elapsed().as_secs_f64() * 1e3;
    result
}

#[cfg(test)]
mod tests {
    use walras_batch_workload::{Workload, stands_in};
    use walras_types::{BatchOperation, CreateOffer, TransactionSeq};

    use super::*;

    #[test]
    fn threads_change_nothing_and_a_lie_is_found() {
        let mut workload = Workload::new(Model::standard(5, 200, 5_000), 1);
        let two = NonZero::new(2).unwrap();
        let mut proposer = Venue::new(workload.model(), workload.endowment(), two).unwrap();
        let mut validator = Venue { threads: NonZero::<usize>::MIN, ..proposer.clone() };
        let mut start = None;
        for _ in 0..3 {
            let transactions = workload.block(stands_in(proposer.batch.market())).to_vec();
            let proposed = proposer.propose(&transactions, start.as_deref()).unwrap();
            let mut lie = proposed.block.clone();
            lie.expected.as_mut().unwrap().state[0] ^= 1;
            assert!(validator.clone().validate(&transactions, &lie).is_err());
            validator.validate(&transactions, &proposed.block).unwrap();
            assert_eq!((proposed.dropped().count(), proposed.closed.kept_count), (0, 5_000));
            assert!(proposed.times.total() > 0.0 && proposed.header_bytes > 0);
            workload.closed(&proposed.closed.batch_hash, proposed.dropped());
            start = Some(proposed.block.proposal.prices);
        }
        assert!(proposer.open_offer_count() > 0);
        assert_eq!(proposer.open_offer_count(), validator.open_offer_count());
        proposer.batch.check_invariants(&proposer.ledger);
    }

    /// Ten accounts offer a hundred thousand times what others do, at limits that some of the others accept. Every block after that
    /// trades as much as one without them would, about, until the whales are cancelled.
    #[test]
    fn ten_whales_hold_up_no_later_block() {
        const WHALES: u32 = 10;
        let mut workload = Workload::new(Model::standard(20, 200, 1_000), 3);
        let others = workload.model().account_count;
        let with_whales = Model { account_count: others + WHALES, ..workload.model().clone() };
        let mut venue = Venue::new(&with_whales, workload.endowment(), NonZero::<usize>::MIN).unwrap();
        let mut start: Option<Vec<Option<BatchPrice>>> = None;
        for block in 0..6 {
            let mut transactions = workload.block(stands_in(venue.batch.market())).to_vec();
            let own_count = transactions.len();
            if block == 1 {
                let offers = transactions.iter().filter_map(|transaction| match transaction.operation {
                    BatchOperation::CreateOffer(create) => Some(create),
                    _ => None,
                });
                let whales = (others..).map(AccountId).zip(offers).take(WHALES as usize).map(|(account, create)| {
                    let amount = workload.endowment();
                    let operation = BatchOperation::CreateOffer(CreateOffer { amount, ..create });
                    BatchTransaction::new(account, TransactionSeq(1), operation)
                });
                transactions.extend(whales.collect::<Vec<_>>());
            }
            let proposed = venue.propose(&transactions, start.as_deref()).unwrap();
            let pairs = proposed.block.proposal.trades.len();
            assert!(proposed.block.proposal.prices.iter().all(Option::is_some), "block {block}: assets are set aside");
            assert!(pairs > 100, "block {block}: {pairs} pairs traded");
            let dropped: Vec<usize> = proposed.dropped().filter(|place| *place < own_count).collect();
            workload.closed(&proposed.closed.batch_hash, dropped);
            start = Some(proposed.block.proposal.prices);
        }
        venue.batch.check_invariants(&venue.ledger);
    }
}
