//! The demo's batch market: ten assets, and bots that make offers around random-walk fair prices.
//!
//! Everything is derived from the seed (`demo.seed`). In each interval the logarithm of every asset's fair value takes a step of
//! about 4 basis points and reverts slightly to its start. Then randomly chosen bots send 50 to 200 transactions. About eight in
//! ten sell one asset for another, worth $50 to $5,000, at a limit from 15 basis points below the fair rate to 35 above it; one
//! cancels the bot's oldest offer, and one pays another bot. All are signed, checked and settled like any participant's.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tracing::warn;
use walras_access::now;
use walras_batch_signatures::SigningKey;
use walras_config as config;
use walras_ports::VenueHandle;
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPhase, BatchPrice, BatchTransaction, CancelOffer, CreateOffer,
    Payment, RejectReason, TransactionSeq, TransferId,
};
use walras_wire::batch::{SignedTransaction, SigningDomain};
use walras_wire::{AccountCommand, BatchMarketCommand, BatchMarketSpec, Command, SetAccountKey, SetBatchPhase, Transfer};

use super::scenario::{apply, asset, refused};
use super::{DemoError, StopSignal};

/// Symbol, decimals and initial fair value in dollars.
const ASSETS: [(&str, u8, f64); 10] = [
    ("USD", 6, 1.0),
    ("EUR", 6, 1.08),
    ("GBP", 6, 1.27),
    ("JPY", 6, 0.0067),
    ("CHF", 6, 1.13),
    ("CAD", 6, 0.73),
    ("AUD", 6, 0.66),
    ("BTC", 8, 63_000.0),
    ("ETH", 8, 3_100.0),
    ("XAU", 6, 2_350.0),
];

/// The market's name.
const NAME: &str = "main";
const INTERVAL_MS: u64 = 500;
const INTERVAL: Duration = Duration::from_millis(INTERVAL_MS);
/// Timeout for the venue to create and open the market, once its assets exist: a few commands.
const OPEN_WITHIN: Duration = Duration::from_secs(30);
/// Interval of polling while a batch is not cleared yet.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Initial funds of an account in each asset, in dollars.
const USER_DOLLARS: f64 = 10_000.0;
const BOT_DOLLARS: f64 = 1_000_000.0;
/// A bot with less than this share of its initial funds of an asset gets more.
const TOP_UP_BELOW: f64 = 0.2;

/// Transactions in an interval.
const TRANSACTIONS: std::ops::RangeInclusive<u64> = 50..=200;
/// Maximum number of one bot's transactions in a batch: below the 64 numbers that it may use.
const PER_BOT_MAX: usize = 30;
/// Number of standing offers from which on a bot only cancels.
const STANDING_MAX: usize = 40;

/// The demo's batch market, found or created.
pub(super) struct BatchScenario {
    venue: VenueHandle,
    market: BatchMarketId,
    domain: SigningDomain,
    assets: Vec<AssetId>,
    bots: Vec<(AccountId, SigningKey)>,
}

impl BatchScenario {
    /// Creates the assets, waits for their market, funds the user and the bots, and sets their keys.
    pub(super) fn prepare(
        venue: &VenueHandle,
        (user, user_key): (AccountId, Option<SigningKey>),
        bots: Vec<(AccountId, SigningKey)>,
    ) -> Result<Self, DemoError> {
        let assets =
            ASSETS.iter().map(|(name, decimals, _)| asset(venue, name, *decimals)).collect::<Result<Vec<AssetId>, DemoError>>()?;
        let spec = open_market(venue, &assets)?;
        let scenario = Self { venue: venue.clone(), market: spec.market, domain: SigningDomain::new(&spec.domain), assets, bots };
        for (account, key) in
            scenario.bots.iter().map(|(account, key)| (*account, key)).chain(user_key.as_ref().map(|key| (user, key)))
        {
            let key = key.public_key();
            let has = venue.read_blocking(move |v| v.engine.transaction_key(account)).map_err(refused("show a key"))?;
            if has != Some(key) {
                apply(venue, "give an account its key", Command::Account(AccountCommand::SetKey(SetAccountKey { account, key })))?;
            }
        }
        scenario.fund(user, USER_DOLLARS, 0.0)?;
        for (bot, _) in &scenario.bots {
            scenario.fund(*bot, BOT_DOLLARS, TOP_UP_BELOW)?;
        }
        Ok(scenario)
    }

    /// Restores an account's initial funds in each asset of which it has at most a given share of them.
    fn fund(&self, account: AccountId, dollars: f64, below: f64) -> Result<(), DemoError> {
        for (place, (&asset, (_, decimals, value))) in self.assets.iter().zip(ASSETS).enumerate() {
            let target = units(dollars / value, decimals);
            let balance = self.venue.read_blocking(move |v| v.engine.balance(account, asset)).map_err(refused("show a balance"))?;
            let has = balance.available.get() + balance.reserved.get();
            #[expect(clippy::cast_precision_loss, reason = "a bot needs about so much")]
            let is_poor = has as f64 <= below * target.get() as f64;
            // Dollars are funded with the demo's other market.
            if is_poor && (place > 0 || below > 0.0) {
                let amount = Amount::new(target.get() - has.min(target.get())).unwrap_or(target);
                let transfer = Transfer { account, asset, amount, transfer_id: TransferId(now().0) };
                apply(&self.venue, "deposit", Command::Account(AccountCommand::Deposit(transfer)))?;
            }
        }
        Ok(())
    }
}

/// Converts whole units into smallest units.
fn units(whole: f64, decimals: u8) -> Amount {
    let units = whole * 10_f64.powi(i32::from(decimals));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates, and nobody in the demo has so much")]
    Amount::new(units as u64).unwrap_or(Amount::MAX)
}

/// The market as a section of the configuration: the venue creates it once its assets exist.
pub(super) fn section() -> config::Batch {
    let assets = ASSETS.iter().map(|(symbol, ..)| (*symbol).to_owned()).collect();
    config::Batch { name: NAME.to_owned(), assets, interval_ms: INTERVAL_MS, ..config::Batch::default() }
}

/// Waits until the venue has created the market; opens it again if the operator closed it in an earlier run.
fn open_market(venue: &VenueHandle, assets: &[AssetId]) -> Result<BatchMarketSpec, DemoError> {
    let symbol = section().symbol().expect("the name above is a symbol");
    let begun = Instant::now();
    let (spec, found, phase) = loop {
        let made = venue.read_blocking(move |v| {
            let view = v.engine.batch_markets().find(|view| view.spec.symbol == symbol)?;
            // Until it is first opened, its assets are still being added.
            view.market.is_some().then(|| (*view.spec, view.assets.to_vec(), view.phase))
        });
        match made.map_err(refused("list batch markets"))? {
            Some(made) => break made,
            None if begun.elapsed() > OPEN_WITHIN => return Err(DemoError::NoBatchMarket { name: NAME, waited: OPEN_WITHIN }),
            None => std::thread::sleep(LOOK_AGAIN), // pause: the venue makes it step by step
        }
    };
    if found != assets {
        return Err(DemoError::OtherBatchMarket(NAME));
    }
    if phase == BatchPhase::Closed {
        let open = SetBatchPhase { market: spec.market, phase: BatchPhase::Open };
        apply(venue, "open the batch market", Command::BatchMarket(BatchMarketCommand::SetPhase(open)))?;
    }
    Ok(spec)
}

/// The state of one bot.
struct Seen {
    next: u64,
    /// Available funds by index of the asset in the market.
    available: Vec<u64>,
    /// Its standing offers, oldest first.
    offers: Vec<CancelOffer>,
}

/// All bots, run by one thread.
pub(super) struct BatchBots {
    scenario: BatchScenario,
    /// Logarithms of fair values in dollars.
    fair: [f64; ASSETS.len()],
    random: u64,
    looks: u64,
}

impl BatchBots {
    pub(super) fn new(scenario: BatchScenario, seed: u64) -> Self {
        Self {
            scenario,
            fair: ASSETS.map(|(_, _, value)| value.ln()),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            looks: 0,
        }
    }

    pub(super) fn run(mut self, stop: &StopSignal) {
        let mut pause = INTERVAL;
        while !stop.wait(pause) {
            pause = match self.act() {
                Ok(true) => INTERVAL,
                Ok(false) => LOOK_AGAIN,
                Err(reason) => return warn!("the bots of the batch market stop: {reason}"),
            };
        }
    }

    /// Sends a batch's transactions, unless the previous batch is not cleared yet: then offers and funds are about to change, and
    /// an account that spends more than it has loses all its transactions of the batch.
    fn act(&mut self) -> Result<bool, RejectReason> {
        let Some(mut seen) = self.look()? else { return Ok(false) };
        self.wander();
        self.looks += 1;
        if self.looks.is_multiple_of(60) {
            for bot in 0..self.scenario.bots.len() {
                let account = self.scenario.bots[bot].0;
                if let Err(e) = self.scenario.fund(account, BOT_DOLLARS, TOP_UP_BELOW) {
                    warn!("{e}");
                }
            }
        }
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        let count = TRANSACTIONS.start() + self.below(TRANSACTIONS.end() - TRANSACTIONS.start() + 1);
        for _ in 0..count {
            #[expect(clippy::cast_possible_truncation, reason = "a place among the bots")]
            let bot = self.below(self.scenario.bots.len() as u64) as usize;
            *counts.entry(bot).or_default() += 1;
        }
        let mut transactions = Vec::new();
        for (bot, count) in counts {
            for _ in 0..count.min(PER_BOT_MAX) {
                transactions.extend(self.one(bot, &mut seen));
            }
        }
        let outcomes = self.scenario.venue.transactions_blocking(self.scenario.market, transactions);
        for outcome in outcomes {
            match outcome.map_err(walras_ports::NoOutcome::reason).and_then(|outcome| outcome.collected().map(drop)) {
                // The last batch may not have been applied when the bots read their state.
                Ok(()) | Err(RejectReason::TransactionSeqOutOfWindow | RejectReason::DuplicateTransaction) => {}
                // The market is closed or the disk is full, which may be temporary.
                Err(
                    RejectReason::BatchMarketClosed
                    | RejectReason::BatchFull
                    | RejectReason::Overloaded
                    | RejectReason::StorageFull,
                ) => {
                    return Ok(true);
                }
                Err(reason) => return Err(reason),
            }
        }
        Ok(true)
    }

    fn look(&self) -> Result<Option<Vec<Seen>>, RejectReason> {
        let accounts: Vec<AccountId> = self.scenario.bots.iter().map(|(account, _)| *account).collect();
        let (assets, market) = (self.scenario.assets.clone(), self.scenario.market);
        self.scenario.venue.read_blocking(move |v| {
            let one = |account: &AccountId| Seen {
                next: v.engine.next_transaction(*account).0,
                available: assets.iter().map(|asset| v.engine.balance(*account, *asset).available.get()).collect(),
                offers: (v.market.offers().of(*account).filter(|offer| offer.market == market))
                    .map(|offer| CancelOffer {
                        market,
                        sell: offer.sell,
                        buy: offer.buy,
                        limit: offer.limit,
                        tie: offer.tie,
                        sequence: offer.sequence,
                    })
                    .collect(),
            };
            let view = v.engine.batch_market(market)?;
            let is_quiet = view.collected == 0 && !view.is_under_way;
            is_quiet.then(|| accounts.iter().map(one).collect())
        })
    }

    /// Moves the fair values by one step.
    fn wander(&mut self) {
        for (place, (_, _, home)) in ASSETS.iter().enumerate().skip(1) {
            self.fair[place] += 0.0004 * self.gauss() + 0.001 * (home.ln() - self.fair[place]);
        }
    }

    /// A bot's next transaction, if it has one to send.
    fn one(&mut self, bot: usize, seen: &mut [Seen]) -> Option<SignedTransaction> {
        let bot_count = seen.len() as u64;
        let kind = self.below(10);
        let operation = match kind {
            0 if bot_count > 1 => self.payment(bot, seen)?,
            1 if !seen[bot].offers.is_empty() => BatchOperation::CancelOffer(seen[bot].offers.remove(0)),
            _ if seen[bot].offers.len() > STANDING_MAX => BatchOperation::CancelOffer(seen[bot].offers.remove(0)),
            _ => self.offer(&mut seen[bot])?,
        };
        let (account, key) = &self.scenario.bots[bot];
        let transaction = BatchTransaction::new(*account, TransactionSeq(seen[bot].next), operation);
        seen[bot].next += 1;
        Some(key.sign(&self.scenario.domain, &transaction))
    }

    fn place(&mut self) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "a place among the assets")]
        let place = self.below(ASSETS.len() as u64) as usize;
        place
    }

    /// Takes an amount of an asset worth `dollars` from the bot's available funds, if it has that much.
    fn take(&mut self, seen: &mut Seen, place: usize, dollars: f64) -> Option<Amount> {
        let amount = units(dollars / self.fair[place].exp(), ASSETS[place].1);
        let available = &mut seen.available[place];
        *available = available.checked_sub(amount.get()).filter(|_| !amount.is_zero())?;
        Some(amount)
    }

    fn offer(&mut self, seen: &mut Seen) -> Option<BatchOperation> {
        let (sell, buy) = (self.place(), self.place());
        if sell == buy {
            return None;
        }
        let dollars = 50.0 * 100_f64.powf(self.unit());
        let amount = self.take(seen, sell, dollars)?;
        let rate = (self.fair[sell] - self.fair[buy]).exp() * (1.0 + (50.0 * self.unit() - 15.0) / 10_000.0);
        let of_units = rate * 10_f64.powi(i32::from(ASSETS[buy].1) - i32::from(ASSETS[sell].1));
        let limit = BatchPrice::from_bits(of_units.to_bits()).ok()?;
        let (market, sell, buy) = (self.scenario.market, self.scenario.assets[sell], self.scenario.assets[buy]);
        Some(BatchOperation::CreateOffer(CreateOffer { market, sell, buy, amount, limit }))
    }

    fn payment(&mut self, bot: usize, seen: &mut [Seen]) -> Option<BatchOperation> {
        let place = self.place();
        let dollars = 1.0 + 99.0 * self.unit();
        let amount = self.take(&mut seen[bot], place, dollars)?;
        #[expect(clippy::cast_possible_truncation, reason = "a place among the bots")]
        let other = (bot + 1 + self.below(seen.len() as u64 - 1) as usize) % seen.len();
        let (to, _) = self.scenario.bots[other];
        Some(BatchOperation::Payment(Payment { to, asset: self.scenario.assets[place], amount }))
    }

    /// A number below `n` (xorshift: bots need variety, not chance).
    fn below(&mut self, n: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % n
    }

    /// From 0 to 1.
    fn unit(&mut self) -> f64 {
        f64::from(u32::try_from(self.below(1 << 24)).unwrap_or(0)) / f64::from(1 << 24)
    }

    /// About normally distributed.
    fn gauss(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}
