//! Blocks of a batch market on the ledger, proposed and validated: `make bench NAME=blocks`.
//!
//! A block is *proposed* by closing a batch (filter, reserve, new offers stand), finding prices and amounts, and clearing it (check, trade,
//! hash); it is *validated* by closing and clearing with what the proposer found, every root compared. Both run on states of their own, one
//! after the other, and neither writes to a disk. Transactions are those of the papers' model (`walras-batch-workload`), made before.
//!
//! Peers: SPEEDEX's own implementation can not be built here; its figures are those measured apart on a machine like this one.

use std::num::NonZero;
use std::time::Instant;

use anyhow::{Context, ensure};
use walras_batch::{Accounts, Batch, BatchSettings, BlockPlace, Certificate, Intake, ProposedClearing};
use walras_batch_signatures::{KeyCache, SignedItem, SigningKey, Verifier};
use walras_batch_solver::{Settings, clear};
use walras_batch_workload::{Model, PaidAssets, Workload, stands_in};
use walras_clearing::{LowerBounds, Rules, Verified};
use walras_ledger::Ledger;
use walras_types::{AccountId, BatchPrice, BatchTransaction, Commission, Mu};
use walras_wire::batch::{SigningDomain, encode_signed_transaction};

use crate::report::{Figure, PeerFigure, Report, Unit};

/// How to run.
#[derive(Debug)]
pub struct Config {
    /// Blocks measured, of which figures are medians.
    pub rounds: usize,
    /// Whether to run all of it, not a hundredth.
    pub is_full: bool,
}

const ASSETS: u16 = 50;
const TRANSACTIONS: usize = 100_000;
const THREADS: [usize; 2] = [1, 2];
/// Blocks before the first that counts.
const WARM_UP: usize = 3;
const SEED: u64 = 1;

/// Metrics that the file of results has to hold. The time of recovery is measured where states are kept on disk, which is not built yet.
pub const REQUIRED: [&str; 5] =
    ["propose_ktps", "validate_ktps", "propose_1m_accounts_ktps", "bytes_per_offer", "bytes_per_account"];

/// Runs all of it. Fails at the first wrong answer.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(config.rounds);
    report.require(&REQUIRED);
    let scale = if config.is_full { 1 } else { 100 };
    let transactions = TRANSACTIONS / scale;
    let mixed = |accounts: u32| Model::standard(ASSETS, accounts / scale as u32, transactions);
    for threads in THREADS {
        let suffix = if threads == 2 { String::new() } else { format!("_{threads}_thread") };
        let blocks = measure(config, &mixed(100_000), threads, Signed::No)?;
        let (propose, validate) = (reference("mixed", threads, (55.0, 108.0)), reference("mixed", threads, (116.0, 197.0)));
        let bars = (threads == 2).then_some((430.0, 760.0));
        blocks.tell(report, &format!("{suffix}_ktps"), (propose, validate), bars);
        blocks.tell_parts(report, &suffix);
        if threads == 2 {
            report.figure(Figure::new("bytes_per_offer", blocks.bytes_per_offer, Unit::Bytes).against(memory(470.0)).bar(100.0));
            let account = Figure::new("bytes_per_account", blocks.bytes_per_account, Unit::Bytes).against(memory(4_500.0));
            report.figure(account.bar(1_100.0));
            report.figure(Figure::new("header_bytes", blocks.header_bytes, Unit::Bytes));
        }
    }
    let payments = Model::payments(ASSETS, 100_000 / scale as u32, transactions, PaidAssets::All);
    let blocks = measure(config, &payments, 2, Signed::No)?;
    let peers = (reference("payments", 2, (65.0, 100.0)), reference("payments", 2, (82.0, 132.0)));
    blocks.tell(report, "_payments_ktps", peers, Some((400.0, 528.0)));
    let blocks = measure(config, &mixed(100_000), 2, Signed::Yes)?;
    let peers = (signed_reference(25.5), signed_reference(34.5));
    blocks.tell(report, "_signed_ktps", peers, Some((100.0, 130.0)));
    let blocks = measure(config, &mixed(1_000_000), 2, Signed::No)?;
    let how = "measured apart on a machine like this one, 2 threads, blocks of 200,000, no signatures, no disk";
    let peer = PeerFigure::new("SPEEDEX's own implementation", 58.0, Unit::Ktps, how);
    blocks.tell(report, "_1m_accounts_ktps", (peer.clone(), peer), Some((290.0, f64::NAN)));
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

/// A state that blocks are applied to.
struct Venue {
    ledger: Ledger,
    accounts: Accounts,
    batch: Batch,
    threads: NonZero<usize>,
}

impl Venue {
    /// Every account of the model with its endowment of every asset.
    fn new(workload: &Workload, threads: usize) -> anyhow::Result<Self> {
        let model = workload.model();
        let mut ledger = Ledger::new();
        for _ in 0..model.account_count {
            ledger.create_account()?;
        }
        for _ in &model.assets {
            let asset = ledger.create_asset()?;
            for account in 0..model.account_count {
                ledger.deposit(walras_types::AccountId(account), asset, workload.endowment())?;
            }
        }
        let batch = Batch::new(BatchSettings { market: model.market, assets: model.assets.clone(), rules: rules() })?;
        Ok(Self { ledger, accounts: Accounts::new(), batch, threads: NonZero::new(threads).context("at least one thread")? })
    }
}

fn rules() -> Rules {
    let (commission, mu) = (Commission::new(15).expect("a commission"), Mu::new(10).expect("a share"));
    Rules { commission, mu, lower_bounds: LowerBounds::BestEffort }
}

/// Whether transactions come signed, and are decoded and checked with the block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signed {
    Yes,
    No,
}

/// Who signs, and what checks it.
struct Signatures {
    domain: SigningDomain,
    signers: Vec<SigningKey>,
    keys: KeyCache,
    verifier: Verifier,
}

impl Signatures {
    fn new(accounts: u32) -> anyhow::Result<Self> {
        let domain = SigningDomain::new(&[7; 32]);
        let seed = |account: u32| std::array::from_fn(|place| (account >> (8 * (place % 4))) as u8 ^ place as u8);
        let signers: Vec<SigningKey> = (0..accounts).map(|account| SigningKey::from_seed(&seed(account))).collect();
        let mut keys = KeyCache::default();
        for (account, signer) in (0..).zip(&signers) {
            keys.insert(AccountId(account), signer.public_key())?;
        }
        let verifier = Verifier::new(domain).context("drawing a secret")?;
        Ok(Self { domain, signers, keys, verifier })
    }

    /// The transactions as bytes, signed, one after the other; and where each ends.
    fn sign(&self, transactions: &[BatchTransaction]) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = Vec::new();
        let ends = transactions.iter().map(|transaction| {
            let signer = &self.signers[transaction.account.0 as usize];
            encode_signed_transaction(&signer.sign(&self.domain, transaction), &mut bytes);
            bytes.len()
        });
        let ends = ends.collect();
        (bytes, ends)
    }

    /// The transactions in such bytes, if all of their signatures hold.
    fn check(&self, (bytes, ends): &(Vec<u8>, Vec<usize>), threads: NonZero<usize>) -> anyhow::Result<Vec<BatchTransaction>> {
        let mut begin = 0;
        let mut transactions = Vec::with_capacity(ends.len());
        let mut items = Vec::with_capacity(ends.len());
        for &end in ends {
            let (transaction, item) = SignedItem::decode(&bytes[begin..end])?;
            transactions.push(transaction);
            items.push(item);
            begin = end;
        }
        let held = self.verifier.verify(&self.keys, &items, threads);
        ensure!(held.iter().all(|held| *held), "a signature of ours does not hold");
        Ok(transactions)
    }
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
    header_bytes: f64,
}

fn measure(config: &Config, model: &Model, threads: usize, signed: Signed) -> anyhow::Result<Blocks> {
    let with = if signed == Signed::Yes { ", signed" } else { "" };
    eprintln!("{} accounts, blocks of {}, {threads} threads{with}", model.account_count, model.transaction_count);
    let signatures = (signed == Signed::Yes).then(|| Signatures::new(model.account_count)).transpose()?;
    let mut workload = Workload::new(model.clone(), SEED);
    let (mut proposer, mut validator) = (Venue::new(&workload, threads)?, Venue::new(&workload, threads)?);
    let mut blocks = Blocks::default();
    let mut start: Option<Vec<Option<BatchPrice>>> = None;
    for round in 0..WARM_UP + config.rounds {
        let transactions = workload.block(stands_in(proposer.batch.market())).to_vec();
        let mut parts = Parts::default();
        if let Some(signatures) = &signatures {
            let bytes = signatures.sign(&transactions);
            let checked = timed(&mut parts.signatures, || signatures.check(&bytes, proposer.threads))?;
            ensure!(checked == transactions, "what was signed is not what was read");
        }
        let (dropped, block) = parts.propose(&mut proposer, &transactions, start.as_deref())?;
        parts.validate(&mut validator, &transactions, &block)?;
        ensure!(dropped.is_empty(), "{} of {} valid transactions were dropped", dropped.len(), transactions.len());
        workload.closed(&block.place.context("the proposer says where")?.batch_hash, dropped);
        start = Some(block.proposal.prices);
        if round >= WARM_UP {
            blocks.kept.push(transactions.len() as f64);
            blocks.signatures_ms.push(parts.signatures);
            blocks.close_ms.push(parts.close);
            blocks.solve_ms.push(parts.solve);
            blocks.clear_ms.push(parts.clear);
            blocks.validate_ms.push(parts.validate);
            blocks.header_bytes = parts.header_bytes;
        }
    }
    let offers: usize = proposer.batch.market().books().iter().map(|book| book.sells().as_slice().len()).sum();
    let (arrays, tries) = proposer.batch.offer_bytes();
    blocks.bytes_per_offer = (arrays + tries) as f64 / offers.max(1) as f64;
    let accounts = f64::from(proposer.ledger.account_count());
    blocks.bytes_per_account = (proposer.ledger.bytes() + proposer.accounts.bytes()) as f64 / accounts;
    Ok(blocks)
}

#[derive(Default)]
struct Parts {
    /// Decoding and checking signatures, which proposer and validator do alike.
    signatures: f64,
    close: f64,
    solve: f64,
    clear: f64,
    validate: f64,
    header_bytes: f64,
}

fn timed<T>(ms: &mut f64, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = work();
    *ms += begun.elapsed().as_secs_f64() * 1e3;
    result
}

impl Parts {
    fn propose(
        &mut self,
        venue: &mut Venue,
        transactions: &[BatchTransaction],
        start: Option<&[Option<BatchPrice>]>,
    ) -> anyhow::Result<(Vec<usize>, ProposedClearing)> {
        let Venue { ledger, accounts, batch, threads } = venue;
        let closed = timed(&mut self.close, || batch.close(ledger, accounts, transactions, Intake::Filter, *threads))?;
        let place = BlockPlace { number: batch.number(), parent: *batch.parent(), batch_hash: closed.batch_hash };
        let mut block = timed(&mut self.solve, || {
            let Rules { commission, mu, .. } = rules();
            let found = clear(batch.market(), &Settings { start, ..Settings::new(commission, mu) })?;
            let marginal = marginal(&found.verified);
            let certificate = Some(Certificate::find(batch.market(), &found.proposal, &rules()));
            anyhow::Ok(ProposedClearing { place: Some(place), proposal: found.proposal, marginal, certificate, expected: None })
        })?;
        let cleared = timed(&mut self.clear, || batch.clear(ledger, accounts, &block, *threads))?;
        block.expected = Some(cleared.roots);
        self.header_bytes = cleared.header.bytes().len() as f64;
        Ok((closed.dropped.iter().map(|(place, _)| *place as usize).collect(), block))
    }

    fn validate(&mut self, venue: &mut Venue, transactions: &[BatchTransaction], block: &ProposedClearing) -> anyhow::Result<()> {
        let Venue { ledger, accounts, batch, threads } = venue;
        timed(&mut self.validate, || {
            batch.close(ledger, accounts, transactions, Intake::Filter, *threads)?;
            batch.clear(ledger, accounts, block, *threads)?;
            Ok(())
        })
    }
}

fn marginal(verified: &Verified<'_>) -> Vec<(walras_clearing::Pair, walras_clearing::OfferKey)> {
    let key = |clearing| verified.fills(clearing).marginal_sell();
    verified.pairs().iter().filter_map(|clearing| Some((clearing.pair, key(clearing)?))).collect()
}

impl Blocks {
    fn tell(
        &self,
        report: &mut Report,
        suffix: &str,
        (propose_peer, validate_peer): (PeerFigure, PeerFigure),
        bars: Option<(f64, f64)>,
    ) {
        let ktps = |ms: Vec<f64>| self.kept.iter().zip(ms).map(|(kept, ms)| kept / ms).collect::<Vec<f64>>();
        let sums = |parts: &[&Vec<f64>]| (0..self.kept.len()).map(|block| parts.iter().map(|ms| ms[block]).sum()).collect();
        let proposed = sums(&[&self.signatures_ms, &self.close_ms, &self.solve_ms, &self.clear_ms]);
        let validated = sums(&[&self.signatures_ms, &self.validate_ms]);
        let rows =
            [("propose", proposed, propose_peer, bars.map(|b| b.0)), ("validate", validated, validate_peer, bars.map(|b| b.1))];
        for (name, ms, peer, bar) in rows {
            let metric = format!("{name}{suffix}");
            let value = report.samples(metric.clone(), ktps(ms));
            let figure = Figure::new(metric, value, Unit::Ktps).against(peer);
            report.figure(match bar {
                Some(bar) if bar.is_finite() => figure.bar(bar),
                _ => figure,
            });
        }
    }

    fn tell_parts(&self, report: &mut Report, suffix: &str) {
        for (name, samples) in [("close", &self.close_ms), ("solve", &self.solve_ms), ("clear", &self.clear_ms)] {
            let metric = format!("{name}{suffix}_ms");
            let value = report.samples(metric.clone(), samples.clone());
            report.figure(Figure::new(metric, value, Unit::Ms));
        }
    }
}
