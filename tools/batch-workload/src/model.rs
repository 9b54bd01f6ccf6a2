//! What a workload is made of.

use walras_price_solver::random::Random;
use walras_price_solver::synthetic::{Shape, Variant};
use walras_types::limits::{ACCOUNTS_MAX, BATCH_ASSETS_MAX, TRANSACTIONS_PER_ACCOUNT_MAX};
use walras_types::{AssetId, BatchMarketId};

/// How often each account sends a transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AccountChoice {
    /// All as often.
    Uniform,
    /// An account's number is distributed exponentially with this mean, in accounts; what is above the last begins again at the
    /// first.
    Exponential {
        /// The mean.
        mean: f64,
    },
    /// The account of rank `r`, from 1, is drawn in proportion to `r^-exponent`.
    PowerLaw {
        /// The exponent, at least 0.
        exponent: f64,
    },
}

impl AccountChoice {
    /// Draws an account of so many.
    pub(crate) fn draw(self, random: &mut Random, account_count: u32) -> u32 {
        let count = f64::from(account_count);
        // From 0, so that the logarithm is of a number above 0.
        let unit = random.unit();
        let place = match self {
            Self::Uniform => unit * count,
            Self::Exponential { mean } => (-(1.0 - unit).ln() * mean) % count,
            Self::PowerLaw { exponent } => bounded_power_law(unit, exponent, count) - 1.0,
        };
        // Whatever rounding does, an account of ours.
        (place as u32).min(account_count - 1)
    }
}

/// From 1 to `count + 1` with a density in proportion to `x^-exponent`: the inverse of its distribution.
fn bounded_power_law(unit: f64, exponent: f64, count: f64) -> f64 {
    let end = count + 1.0;
    let rest = 1.0 - exponent;
    if rest.abs() < 1e-9 { end.powf(unit) } else { (1.0 + unit * (end.powf(rest) - 1.0)).powf(1.0 / rest) }
}

/// Proportions of the kinds of transactions, not counting cancels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// New offers.
    pub offers: f64,
    /// Payments.
    pub payments: f64,
    /// New accounts.
    pub accounts: f64,
}

/// The assets of payments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaidAssets {
    /// All assets, with equal frequency.
    All,
    /// The first asset alone.
    First,
}

/// Numbers of faulty transactions of each kind, in each block, in addition to the valid ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Transactions of the block sent a second time, byte for byte.
    pub repeated: usize,
    /// Offers that take the number of another offer of the block, of one account.
    pub reused_numbers: usize,
    /// Offers of more than the endowment.
    pub overdrafts: usize,
    /// Cancels of an offer that another transaction of the block cancels; no more than the block cancels.
    pub double_cancels: usize,
    /// Cancels of an offer that never stood.
    pub empty_cancels: usize,
    /// Pairs of new accounts with one key, asked for by two accounts.
    pub twin_keys: usize,
    /// The faults of `reused_numbers`, `overdrafts`, `empty_cancels` and `twin_keys` come from so many accounts, spread over all;
    /// from any if `None`.
    pub account_count: Option<u32>,
}

impl Faults {
    /// How many transactions they add to a block, at most.
    #[must_use]
    pub const fn transaction_count_max(&self) -> usize {
        self.repeated + 2 * self.reused_numbers + self.overdrafts + self.double_cancels + self.empty_cancels + 2 * self.twin_keys
    }
}

/// The model of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The market.
    pub market: BatchMarketId,
    /// Its assets, by [`walras_clearing::AssetIndex`].
    pub assets: Vec<AssetId>,
    /// Accounts that send transactions: those with ids from 0.
    pub account_count: u32,
    /// Transactions of a block, but for faults.
    pub transaction_count: usize,
    /// Who sends.
    pub accounts: AccountChoice,
    /// What is sent.
    pub mix: Mix,
    /// The assets of payments.
    pub paid_assets: PaidAssets,
    /// Payments go to so many accounts, those with ids from 0, all as often; to any, as `accounts` says, if `None`.
    pub payee_count: Option<u32>,
    /// Valuations move after so many offers, however these are cut into blocks; after each block if `None`.
    pub offers_per_valuation: Option<usize>,
    /// The distribution of offers.
    pub variant: Variant,
    /// Which assets offers go round.
    pub shape: Shape,
    /// The share of offers that are to be cancelled, if they still stand then.
    pub cancel_share: f64,
    /// After how many blocks, at least and at most; from 1.
    pub cancel_after_blocks: (u16, u16),
    /// The share of transactions that come one block later than they were made, at valuations that have moved on.
    pub late_share: f64,
    /// An account leaves out up to so many numbers before each transaction.
    pub sequence_gap_max: u8,
    /// The fault.
    pub faults: Faults,
}

impl Model {
    /// The papers' model: exponential accounts, payments : offers : accounts = 0.1 : 1 : 0.001, 70 % of offers cancelled after 5 to
    /// 50 blocks if they still stand, 10 % of transactions one block late, no gaps, no faults. Assets have the ids from 0.
    #[must_use]
    pub fn standard(asset_count: u16, account_count: u32, transaction_count: usize) -> Self {
        Self {
            market: BatchMarketId(0),
            assets: (0..u32::from(asset_count)).map(AssetId).collect(),
            account_count,
            transaction_count,
            accounts: AccountChoice::Exponential { mean: f64::from(account_count) },
            mix: Mix { offers: 1.0, payments: 0.1, accounts: 0.001 },
            paid_assets: PaidAssets::All,
            payee_count: None,
            offers_per_valuation: None,
            variant: Variant::Default,
            shape: Shape::Cycles,
            cancel_share: 0.7,
            cancel_after_blocks: (5, 50),
            late_share: 0.1,
            sequence_gap_max: 0,
            faults: Faults::default(),
        }
    }

    /// Payments alone, among random accounts (SPEEDEX 2023, figure 7 and section 7.1).
    #[must_use]
    pub fn payments(asset_count: u16, account_count: u32, transaction_count: usize, paid_assets: PaidAssets) -> Self {
        Self {
            accounts: AccountChoice::Uniform,
            mix: Mix { offers: 0.0, payments: 1.0, accounts: 0.0 },
            paid_assets,
            cancel_share: 0.0,
            ..Self::standard(asset_count, account_count, transaction_count)
        }
    }

    /// A bare order book: offers alone, between two assets (SPEEDEX 2023, section 7.1).
    #[must_use]
    pub fn bare_book(account_count: u32, transaction_count: usize) -> Self {
        Self {
            accounts: AccountChoice::Uniform,
            mix: Mix { offers: 1.0, payments: 0.0, accounts: 0.0 },
            cancel_share: 0.0,
            ..Self::standard(2, account_count, transaction_count)
        }
    }

    /// Checks what can be checked beforehand.
    ///
    /// # Panics
    /// When the model asks for what cannot be.
    pub(crate) fn check(&self) {
        let Self { mix, cancel_after_blocks: (soonest, latest), .. } = self;
        assert!((1..=ACCOUNTS_MAX).contains(&self.account_count), "a workload needs 1 to {ACCOUNTS_MAX} accounts");
        assert!((1..=BATCH_ASSETS_MAX).contains(&self.assets.len()), "a workload needs 1 to {BATCH_ASSETS_MAX} assets");
        assert!(mix.offers == 0.0 || self.assets.len() >= 2, "offers need two assets");
        assert!(mix.payments == 0.0 || self.account_count >= 2, "payments need two accounts");
        assert!(
            self.payee_count.is_none_or(|count| (1..=self.account_count).contains(&count)),
            "payees are accounts, at least one"
        );
        assert!(self.offers_per_valuation != Some(0), "a valuation holds for an offer at least");
        assert!([mix.offers, mix.payments, mix.accounts].iter().all(|&part| part >= 0.0), "no part of the mix is below 0");
        assert!(mix.offers + mix.payments + mix.accounts > 0.0, "a mix needs something in it");
        assert!(1 <= *soonest && soonest <= latest, "an offer is cancelled in a later block than it was made in");
        assert!((0.0..=1.0).contains(&self.cancel_share) && (0.0..1.0).contains(&self.late_share), "a share is within 0 and 1");
        let places = u64::from(self.account_count) * (TRANSACTIONS_PER_ACCOUNT_MAX / (1 + u64::from(self.sequence_gap_max)));
        let most = (self.transaction_count + self.faults.transaction_count_max()) as u64;
        assert!(most <= places, "so many accounts can send {places} transactions in a block: ask for fewer, or take more accounts");
        assert!(self.faults.account_count != Some(0), "faults need an account to come from");
        assert!(self.faults.twin_keys == 0 || self.account_count >= 2, "two accounts of one key need two that ask for them");
    }
}
