//! Blocks of a batch market on the ledger, proposed and validated: `make bench NAME=blocks`.
//!
//! How a block is *proposed* and *validated*, and what is timed, says `walras-batch-venue`. Both run on states of their own, one
//! after the other, and neither writes to a disk. The states change roles after each block, so that neither figure is of the state
//! that lies better in memory. Transactions are those of the papers' model (`walras-batch-workload`), made before.
//!
//! Peers: SPEEDEX's own implementation cannot be built here; its figures are those measured apart on a machine like this one.

use std::num::NonZero;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use walras_batch::light::LightBlock;
use walras_batch_signatures::KeyCache;
use walras_batch_venue::{Proposed, Signatures, Venue};
use walras_batch_workload::{Model, PaidAssets, Workload, stands_in};
use walras_market_data::MarketData;
use walras_market_data::limits::OFFER_FILLS_MAX;
use walras_types::{
    AccountId, Amount, AssetId, BatchOperation, BatchPrice, BatchTransaction, Intake, LogIndex, OfferName, QualityMax, Symbol,
    TimeNs, TransactionSeq, TransferId,
};
use walras_wire::{AccountStatus, BatchEvent, BatchMarketEvent, BatchMarketSpec, Event, OfferOpened, OfferTraded};

use crate::recovery::{self, Size};
use crate::report::{Figure, PeerFigure, Report, Unit};
use crate::standing;

/// How to run.
#[derive(Debug)]
pub struct Config {
    /// Measured blocks; figures are medians over them.
    pub rounds: usize,
    /// Whether to run all of it, not a hundredth.
    pub is_full: bool,
    /// Where a venue's log and snapshots lie while it is killed and recovered: on the disk to be measured.
    pub scratch: PathBuf,
}

const ASSETS: u16 = 50;
/// All offers of a sparse block are among so many of them: in 5 % of the pairs.
const SPARSE_ASSETS: u32 = 12;
const TRANSACTIONS: usize = 100_000;
const THREADS: [usize; 2] = [1, 2];
/// Blocks before the first that counts.
const WARM_UP: usize = 3;
const SEED: u64 = 1;

/// Metrics that the file of results has to hold.
pub const REQUIRED: [&str; 10] = [
    "propose_ktps",
    "validate_ktps",
    "propose_1m_accounts_ktps",
    "propose_signed_ktps",
    "validate_signed_ktps",
    "propose_ktps_3m_standing",
    "validate_ktps_3m_standing",
    "bytes_per_offer",
    "bytes_per_account",
    "recovery_s",
];

/// States that are recovered after a kill.
const RECOVERED: [Size; 3] =
    [Size { accounts: 1_000, blocks: 2 }, Size { accounts: 10_000, blocks: 5 }, Size { accounts: 100_000, blocks: 10 }];

/// Runs all of it. Fails at the first wrong answer.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(config.rounds);
    report.require(&REQUIRED);
    let scale = if config.is_full { 1 } else { 100 };
    let transactions = TRANSACTIONS / scale;
    let mixed_of = |accounts: u32, transactions| Model::standard(ASSETS, accounts / scale as u32, transactions);
    let mixed = |accounts| mixed_of(accounts, transactions);
    for threads in THREADS {
        let suffix = if threads == 2 { String::new() } else { format!("_{threads}_thread") };
        let blocks = measure(config, &mixed(100_000), threads, Signed::No, Intake::Filter)?;
        let (propose, validate) = (reference("mixed", threads, (55.0, 108.0)), reference("mixed", threads, (116.0, 197.0)));
        let bars = (threads == 2).then_some((430.0, 760.0));
        let (propose_ktps, validate_ktps) = blocks.tell(report, &format!("{suffix}_ktps"), (Some(propose), Some(validate)), bars);
        blocks.tell_parts(report, &suffix);
        if threads == 2 {
            report.figure(Figure::new("bytes_per_offer", blocks.bytes_per_offer, Unit::Bytes).against(memory(470.0)).bar(100.0));
            let account = Figure::new("bytes_per_account", blocks.bytes_per_account, Unit::Bytes).against(memory(4_500.0));
            report.figure(account.bar(1_100.0));
            for (metric, bytes) in [
                ("edge_bytes_per_offer", blocks.edge.offer),
                ("edge_bytes_per_account", blocks.edge.account),
                ("edge_fills_bytes_per_account_max", blocks.edge.fills),
                ("header_bytes", blocks.header_bytes),
                ("header_bytes_light_client", blocks.light_bytes),
                ("header_bytes_sparse", sparse_header_bytes(&mixed(100_000))?),
            ] {
                report.figure(Figure::new(metric, bytes, Unit::Bytes));
            }
            report.figure(Figure::new("validate_vs_propose", validate_ktps / propose_ktps, Unit::TimesFaster));
        }
    }
    let payments = Model::payments(ASSETS, 100_000 / scale as u32, transactions, PaidAssets::All);
    let blocks = measure(config, &payments, 2, Signed::No, Intake::Filter)?;
    let peers = (Some(reference("payments", 2, (65.0, 100.0))), Some(reference("payments", 2, (82.0, 132.0))));
    blocks.tell(report, "_payments_ktps", peers, Some((400.0, 528.0)));
    let blocks = measure(config, &mixed(100_000), 2, Signed::Yes, Intake::Filter)?;
    let peers = (Some(signed_reference(25.5)), Some(signed_reference(34.5)));
    blocks.tell(report, "_signed_ktps", peers, Some((100.0, 130.0)));
    let blocks = measure(config, &mixed(100_000), 2, Signed::No, Intake::Reserve)?;
    blocks.tell(report, "_reserve_ktps", (None, None), None);
    // Blocks as large as those of the reference's figure; for validation it has none.
    let blocks = measure(config, &mixed_of(1_000_000, 2 * transactions), 2, Signed::No, Intake::Filter)?;
    let how = "measured apart on a machine like this one, 2 threads, blocks of 200,000, no signatures, no disk";
    let peer = PeerFigure::new("SPEEDEX's own implementation", 58.0, Unit::Ktps, how);
    blocks.tell(report, "_1m_accounts_ktps", (Some(peer), None), Some((290.0, f64::NAN)));
    standing::run(&standing::Config::at_three_million(config.rounds, scale, config.scratch.clone()), report)?;
    report.note(standing::NAMES);
    let sizes = if config.is_full { &RECOVERED[..] } else { &RECOVERED[..1] };
    recovery::run(sizes, &config.scratch, report)?;
    report.check("every block that was proposed was validated on another state, all roots equal; nothing valid was dropped");
    Ok(())
}

fn reference(workload: &str, threads: usize, (one, two): (f64, f64)) -> PeerFigure {
    let how = format!(
        "measured apart on a machine like this one (2 cores, 2.6 GHz), {workload}, 50 assets, blocks of 100,000, {threads} threads, no \
         signatures, no disk; middle of its range"
    );
    PeerFigure::new("SPEEDEX's own implementation", if threads == 1 { one } else { two }, Unit::Ktps, how)
}

fn signed_reference(ktps: f64) -> PeerFigure {
    let how =
        "measured apart on a machine like this one, mixed, blocks of 100,000, 2 threads, libsodium, no disk; middle of its range";
    PeerFigure::new("SPEEDEX's own implementation", ktps, Unit::Ktps, how)
}

fn memory(bytes: f64) -> PeerFigure {
    PeerFigure::new("SPEEDEX's own implementation", bytes, Unit::Bytes, "measured apart: growth of its memory; middle of its range")
}

/// Whether transactions come signed, and are decoded and checked with the block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signed {
    Yes,
    No,
}

/// Milliseconds of each block's parts, and what the state takes.
#[derive(Default)]
struct Blocks {
    kept: Vec<f64>,
    signatures_ms: Vec<f64>,
    close_ms: Vec<f64>,
    solve_ms: Vec<f64>,
    clear_ms: Vec<f64>,
    validate_ms: Vec<f64>,
    bytes_per_offer: f64,
    bytes_per_account: f64,
    edge: EdgeBytes,
    header_bytes: f64,
    light_bytes: f64,
}

/// What a venue keeps in addition to the state.
#[derive(Default)]
struct EdgeBytes {
    /// For each standing offer: its owner's list of them.
    offer: f64,
    /// For each account: its key once more for who checks signatures, the point of the key, and the place of its lists.
    account: f64,
    /// For each account that traded so often that none are forgotten: its last fills.
    fills: f64,
}

fn measure(config: &Config, model: &Model, threads: usize, signed: Signed, intake: Intake) -> anyhow::Result<Blocks> {
    let with = if signed == Signed::Yes { ", signed" } else { "" };
    eprintln!("{} accounts, blocks of {}, {threads} threads{with}", model.account_count, model.transaction_count);
    let signatures = (signed == Signed::Yes).then(|| Signatures::new(model.account_count)).transpose()?;
    let threads = NonZero::new(threads).context("at least one thread")?;
    let mut workload = Workload::new(model.clone(), SEED);
    let venue = || anyhow::Ok(Venue { intake, ..Venue::new(model, workload.endowment(), threads)? });
    let (mut proposer, mut validator) = (venue()?, venue()?);
    let mut blocks = Blocks::default();
    let mut start: Option<Vec<Option<BatchPrice>>> = None;
    for round in 0..WARM_UP + config.rounds {
        let transactions = workload.block(stands_in(proposer.batch.market())).to_vec();
        let mut signatures_ms = 0.0;
        if let Some(signatures) = &signatures {
            let checked = signatures.check(&signatures.sign(&transactions, threads), threads)?;
            ensure!(checked.0 == transactions, "what was signed is not what was read");
            signatures_ms = checked.1;
        }
        let proposed = proposer.propose(&transactions, start.as_deref())?;
        let validate_ms = validator.validate(&transactions, &proposed.block)?;
        let dropped_count = proposed.dropped().count();
        ensure!(dropped_count == 0, "{dropped_count} of {} valid transactions were dropped", transactions.len());
        workload.closed(&proposed.closed.batch_hash, []);
        if round >= WARM_UP {
            blocks.kept.push(transactions.len() as f64);
            blocks.signatures_ms.push(signatures_ms);
            blocks.close_ms.push(proposed.times.close_ms);
            blocks.solve_ms.push(proposed.times.solve_ms);
            blocks.clear_ms.push(proposed.times.clear_ms);
            blocks.validate_ms.push(validate_ms);
            blocks.header_bytes = proposed.header_bytes as f64;
            blocks.light_bytes = light_bytes(&proposed, &transactions)? as f64;
        }
        start = Some(proposed.block.proposal.prices);
        std::mem::swap(&mut proposer, &mut validator);
    }
    let offers = proposer.open_offer_count();
    let (arrays, tries) = proposer.batch.offer_bytes();
    blocks.bytes_per_offer = (arrays + tries) as f64 / offers.max(1) as f64;
    let accounts = f64::from(proposer.ledger.account_count());
    // In addition the engine has each account's status and last transfer, in lists that grow to twice their length at most.
    let engine = 2 * (size_of::<AccountStatus>() + size_of::<Option<TransferId>>());
    blocks.bytes_per_account = (proposer.ledger.bytes() + proposer.accounts.bytes()) as f64 / accounts + engine as f64;
    blocks.edge = edge_bytes(&proposer)?;
    Ok(blocks)
}

/// What a light client reads of a block to know what came of a transaction: the light header, the roots, and the longest proof of a
/// thousand transactions. Each is checked.
pub(crate) fn light_bytes(proposed: &Proposed, transactions: &[BatchTransaction]) -> anyhow::Result<usize> {
    let (header, roots) = (proposed.cleared.header.light().bytes(), proposed.cleared.light_roots());
    let block = LightBlock::open(&proposed.cleared.roots.state, &header, &roots)?;
    let mut longest = 0;
    for transaction in transactions.iter().step_by(transactions.len().div_ceil(1_000).max(1)) {
        let name = OfferName { account: transaction.account, sequence: transaction.sequence };
        let statement = proposed.cleared.outcomes.statement(name);
        ensure!(block.outcome(name, &statement)? == proposed.cleared.outcomes.get(name), "an outcome is proven as it is");
        longest = longest.max(statement.len());
    }
    Ok(header.len() + roots.len() + longest)
}

/// What a venue holds in addition to this state, made from the events that it would have had.
fn edge_bytes(venue: &Venue) -> anyhow::Result<EdgeBytes> {
    let Venue { ledger, batch, .. } = venue;
    let settings = batch.settings();
    let (market, accounts) = (settings.market, ledger.account_count());
    let (mut data, at, time) = (MarketData::new(), LogIndex(1), TimeNs(1));
    let rules = &settings.rules;
    data.on_event(
        at,
        time,
        &Event::BatchMarket(BatchMarketEvent::Created(BatchMarketSpec {
            market,
            symbol: Symbol::new("MAIN").context("a symbol")?,
            commission: rules.commission,
            mu: rules.mu,
            quality: QualityMax::USUAL,
            lower_bounds: rules.lower_bounds,
            intake: Intake::Filter,
            interval_ns: 1_000_000_000,
            transactions_max: 1,
            domain: [0; 32],
        })),
    )?;
    let mut offers = 0;
    for book in batch.market().books() {
        let asset = |index| batch.asset(index).context("a pair is of the market's assets");
        let (sell, buy) = (asset(book.pair().sell)?, asset(book.pair().buy)?);
        for offer in book.sells().as_slice() {
            let OfferName { account, sequence } = OfferName::of_number(offer.key().id.0);
            let (amount, stated, limit, tie) = (offer.amount(), offer.stated(), offer.key().limit, offer.key().tie);
            let opened = OfferOpened { market, account, sequence, sell, buy, amount, stated, limit, tie };
            data.on_event(at, time, &Event::Batch(BatchEvent::OfferOpened(opened)))?;
            offers += 1;
        }
    }
    let without_fills = data.offers().bytes();
    let mut keys = KeyCache::default();
    for account in (0..accounts).map(AccountId) {
        keys.insert(account, venue.accounts.key(account).context("every account has a key")?)?;
        let (sell, buy, sequence, left) = (AssetId(0), AssetId(1), TransactionSeq(1), Amount::ZERO);
        // Some that are forgotten, too.
        for units in 1..=2 * OFFER_FILLS_MAX as u64 {
            let sold = Amount::new(units).context("a small amount")?;
            let traded = OfferTraded { market, account, sequence, sell, buy, sold, bought: sold, left };
            data.on_event(at, time, &Event::Batch(BatchEvent::OfferTraded(traded)))?;
        }
    }
    let per_account = |bytes: usize| bytes as f64 / f64::from(accounts);
    Ok(EdgeBytes {
        offer: without_fills.standing as f64 / f64::max(1.0, offers.into()),
        account: per_account(without_fills.accounts + keys.bytes()),
        fills: per_account(data.offers().bytes().accounts - without_fills.accounts),
    })
}

/// The header of the last of some blocks whose offers are all among few of the assets.
fn sparse_header_bytes(model: &Model) -> anyhow::Result<f64> {
    let mut workload = Workload::new(model.clone(), SEED);
    let mut venue = Venue::new(model, workload.endowment(), NonZero::<usize>::MIN.saturating_add(1))?;
    let (mut start, mut header_bytes): (Option<Vec<Option<BatchPrice>>>, f64) = (None, 0.0);
    for _ in 0..WARM_UP {
        let is_sparse = |transaction: &BatchTransaction| match &transaction.operation {
            BatchOperation::CreateOffer(offer) => offer.sell.0 < SPARSE_ASSETS && offer.buy.0 < SPARSE_ASSETS,
            _ => true,
        };
        let transactions: Vec<_> = workload.block(stands_in(venue.batch.market())).iter().copied().filter(is_sparse).collect();
        let proposed = venue.propose(&transactions, start.as_deref())?;
        workload.closed(&proposed.closed.batch_hash, []);
        header_bytes = proposed.header_bytes as f64;
        start = Some(proposed.block.proposal.prices);
    }
    Ok(header_bytes)
}

impl Blocks {
    /// Tells how fast blocks are proposed and validated, and says it.
    fn tell(
        &self,
        report: &mut Report,
        suffix: &str,
        (propose_peer, validate_peer): (Option<PeerFigure>, Option<PeerFigure>),
        bars: Option<(f64, f64)>,
    ) -> (f64, f64) {
        let ktps = |ms: Vec<f64>| self.kept.iter().zip(ms).map(|(kept, ms)| kept / ms).collect::<Vec<f64>>();
        let sums = |parts: &[&Vec<f64>]| (0..self.kept.len()).map(|block| parts.iter().map(|ms| ms[block]).sum()).collect();
        let proposed = sums(&[&self.signatures_ms, &self.close_ms, &self.solve_ms, &self.clear_ms]);
        let validated = sums(&[&self.signatures_ms, &self.validate_ms]);
        let rows =
            [("propose", proposed, propose_peer, bars.map(|b| b.0)), ("validate", validated, validate_peer, bars.map(|b| b.1))];
        let [propose, validate] = rows.map(|(name, ms, peer, bar)| {
            let metric = format!("{name}{suffix}");
            let value = report.samples(metric.clone(), ktps(ms));
            let mut figure = Figure::new(metric, value, Unit::Ktps);
            if let Some(peer) = peer {
                figure = figure.against(peer);
            }
            if let Some(bar) = bar.filter(|bar| bar.is_finite()) {
                figure = figure.bar(bar);
            }
            report.figure(figure);
            value
        });
        (propose, validate)
    }

    fn tell_parts(&self, report: &mut Report, suffix: &str) {
        for (name, samples) in [("close", &self.close_ms), ("solve", &self.solve_ms), ("clear", &self.clear_ms)] {
            let metric = format!("{name}{suffix}_ms");
            let value = report.samples(metric.clone(), samples.clone());
            report.figure(Figure::new(metric, value, Unit::Ms));
        }
    }
}
