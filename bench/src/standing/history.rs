//! The history that first a proposer and then a validator goes through, each on a state of its own.

use std::fs::File;
use std::io::Write;
use std::num::NonZero;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use walras_batch::ProposedClearing;
use walras_batch_venue::{Signatures, Venue};
use walras_batch_workload::Workload;
use walras_price_solver::random::Random;
use walras_types::{BatchOperation, BatchPrice, BatchTransaction};

use super::{CANCELS, Config, Held, Rates};
use crate::memory;
use crate::statistics::median;

const THREADS: NonZero<usize> = NonZero::new(2).expect("two is not zero");
const SEED: u64 = 1;
/// Blocks of each kind at each size before the first that counts.
const WARM_UP: usize = 2;
/// Transactions of a block that fills the market, if others have 100,000: larger blocks lose less to the fixed cost of a block.
const FILLING: usize = 400_000;
/// How much more than in the model an offer asks that fills the market: the least and the most.
const MORE: (f64, f64) = (0.02, 0.3);
/// The run fails after so many filling blocks in a row that leave nothing more standing.
const FUTILE_MAX: usize = 20;
/// How often a run reports its progress.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// What a block is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// It fills the market with offers that stand.
    Filling,
    WarmingUp(Kind),
    Measured(Kind),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bare,
    Signed,
}

/// A block as the validator gets it.
pub(super) struct Kept {
    block: ProposedClearing,
    batch_hash: [u8; 32],
    /// Time of decoding, signatures and disk.
    logged_ms: f64,
}

/// Reports progress now and then.
struct Progress {
    begun: Instant,
    reported: Instant,
    doing: &'static str,
    blocks: usize,
}

impl Progress {
    fn new(doing: &'static str) -> Self {
        let begun = Instant::now();
        Self { begun, reported: begun, doing, blocks: 0 }
    }

    fn block(&mut self, standing: usize, most: usize) {
        self.blocks += 1;
        if self.reported.elapsed() >= REPORT_EVERY {
            self.reported = Instant::now();
            let resident = memory::resident_mib().unwrap_or(0.0) / 1_024.0;
            let (doing, blocks, seconds) = (self.doing, self.blocks, self.begun.elapsed().as_secs());
            eprintln!("  {doing}: {standing} of {most} offers stand after {blocks} blocks, {seconds} s, {resident:.1} GiB");
        }
    }
}

/// Proposes or validates a block, and gives the hash of its batch. The number is the place of its size in the configuration.
type Act<'a> = dyn FnMut(&mut Venue, &[BatchTransaction], usize, Purpose) -> anyhow::Result<[u8; 32]> + 'a;

/// The whole history of a state: `act` handles each block. It depends on the configuration alone, as long as the states that `act`
/// leaves do.
fn go_through(config: &Config, doing: &'static str, act: &mut Act<'_>) -> anyhow::Result<Held> {
    let model = config.model();
    let mut workload = Workload::new(model.clone(), SEED);
    eprintln!("{} accounts, {doing}", config.accounts);
    let mut venue = Venue::new(&model, workload.endowment(), THREADS)?;
    let (mut random, mut progress) = (Random::new(SEED), Progress::new(doing));
    let most = config.sizes.last().map_or(0, |(size, _)| *size);
    // An account may send 32 transactions in a block.
    let filling = (FILLING / 100_000 * config.transactions).min(config.accounts as usize * 32);
    let kinds = if config.log.is_some() { &[Kind::Bare, Kind::Signed][..] } else { &[Kind::Bare] };
    for (place, (size, name)) in config.sizes.iter().enumerate() {
        let (mut standing, mut futile) = (venue.open_offer_count(), 0);
        while standing < *size {
            let missing = size - standing;
            workload.set_transaction_count(filling.min(missing + missing / 4 + 100));
            let transactions = asking_more(workload.block(|_, _| false), &mut random)?;
            let batch_hash = act(&mut venue, &transactions, place, Purpose::Filling)?;
            workload.closed(&batch_hash, []);
            let now = venue.open_offer_count();
            progress.block(now, most);
            futile = if now > standing { 0 } else { futile + 1 };
            ensure!(
                futile <= FUTILE_MAX,
                "more than {FUTILE_MAX} filling blocks in a row left no more offers standing: {now} of {size} stand"
            );
            standing = now;
        }
        eprintln!("{doing}: {name} of {} accounts after {} s", config.accounts, progress.begun.elapsed().as_secs());
        workload.set_transaction_count(config.transactions);
        for &kind in kinds {
            for round in 0..WARM_UP + config.rounds {
                let transactions = workload.block_cancelling(CANCELS, venue.batch.market()).to_vec();
                let purpose = if round < WARM_UP { Purpose::WarmingUp(kind) } else { Purpose::Measured(kind) };
                let batch_hash = act(&mut venue, &transactions, place, purpose)?;
                workload.closed(&batch_hash, []);
                progress.block(venue.open_offer_count(), most);
            }
        }
    }
    Ok(Held { offers: venue.open_offer_count(), accounts: venue.ledger.account_count(), memory_mib: 0.0 })
}

/// Offers so dear that they stand.
fn asking_more(transactions: &[BatchTransaction], random: &mut Random) -> anyhow::Result<Vec<BatchTransaction>> {
    let mut transactions = transactions.to_vec();
    for transaction in &mut transactions {
        if let BatchOperation::CreateOffer(create) = &mut transaction.operation {
            let more = 1.0 + random.uniform(MORE.0, MORE.1);
            create.limit = BatchPrice::from_bits((f64::from_bits(create.limit.bits()) * more).to_bits())?;
        }
    }
    Ok(transactions)
}

/// Proposes the whole history.
pub(super) fn propose(config: &Config, log: Option<&Log>, rates: &mut [[Rates; 2]]) -> anyhow::Result<(Vec<Kept>, Held)> {
    let (mut kept, mut start) = (Vec::new(), None::<Vec<Option<BatchPrice>>>);
    let held = go_through(config, "proposing", &mut |venue, transactions, place, purpose| {
        let logged_ms = match (purpose, log) {
            (Purpose::WarmingUp(Kind::Signed) | Purpose::Measured(Kind::Signed), Some(log)) => log.take(transactions)?,
            _ => 0.0,
        };
        let proposed = venue.propose(transactions, start.as_deref())?;
        let dropped = proposed.dropped().count();
        ensure!(dropped == 0, "{dropped} of {} valid transactions were dropped", transactions.len());
        if let Purpose::Measured(kind) = purpose {
            let ktps = transactions.len() as f64 / (logged_ms + proposed.times.total());
            rates[place][kind as usize].propose.push(ktps);
            say(config, &rates[place][kind as usize].propose, kind, "proposed");
        }
        start = Some(proposed.block.proposal.prices.clone());
        let batch_hash = proposed.closed.batch_hash;
        kept.push(Kept { block: proposed.block, batch_hash, logged_ms });
        Ok(batch_hash)
    })?;
    Ok((kept, held))
}

/// Validates the whole history.
pub(super) fn validate(config: &Config, proposed: Vec<Kept>, rates: &mut [[Rates; 2]]) -> anyhow::Result<()> {
    let mut proposed = proposed.into_iter();
    go_through(config, "validating", &mut |venue, transactions, place, purpose| {
        let Kept { block, batch_hash, logged_ms } = proposed.next().context("the proposer had fewer blocks than the validator")?;
        let validate_ms = venue.validate(transactions, &block)?;
        if let Purpose::Measured(kind) = purpose {
            rates[place][kind as usize].validate.push(transactions.len() as f64 / (logged_ms + validate_ms));
            say(config, &rates[place][kind as usize].validate, kind, "validated");
        }
        Ok(batch_hash)
    })?;
    ensure!(proposed.next().is_none(), "the proposer had more blocks than the validator");
    Ok(())
}

fn say(config: &Config, rates: &[f64], kind: Kind, done: &str) {
    if rates.len() == config.rounds {
        eprintln!("  {kind:?} blocks {done}: {:.0} thousand transactions a second", median(rates));
    }
}

/// Takes in signed blocks: they are decoded, checked and on disk before they are used.
pub(super) struct Log {
    signatures: Signatures,
    file: File,
}

impl Log {
    pub(super) fn create(folder: &Path, accounts: u32) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join("blocks-standing.log");
        let file = File::create(&path).with_context(|| format!("writing {}", path.display()))?;
        eprintln!("keys of {accounts} accounts");
        Ok(Self { signatures: Signatures::new(accounts)?, file })
    }

    /// Takes a block in; gives the milliseconds.
    fn take(&self, transactions: &[BatchTransaction]) -> anyhow::Result<f64> {
        let signed = self.signatures.sign(transactions, THREADS);
        let (checked, check_ms) = self.signatures.check(&signed, THREADS)?;
        ensure!(checked == transactions, "what was signed is not what was read");
        let begun = Instant::now();
        (&self.file).write_all(signed.bytes())?;
        self.file.sync_data()?;
        Ok(check_ms + begun.elapsed().as_secs_f64() * 1e3)
    }
}
