//! A chain of blocks that grows until many offers stand, stopped here and there to measure: SPEEDEX 2021, figures 3 to 5; 2023, figures 3 to 6.
//!
//! The chain grows on one state. Where it stops, the state is copied; then blocks go through both copies, proposed on one and validated on
//! the other, the numbers of threads taking turns: what they come to is the same, and so is the state that they meet.

use std::time::{Duration, Instant};

use anyhow::ensure;
use walras_batch_venue::Signatures;
use walras_batch_workload::{Faults, Model};

use crate::blocks::batches::{Batches, Sample};
use crate::blocks::{memory_available_bytes, nonzero, state_bytes};
use crate::ruler::grouped;

/// How often a growing chain reports its progress.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Which paper's chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// 20 assets, nobody cancels, a few transactions are wrong, nothing is signed.
    Speedex2021,
    /// 50 assets, offers are cancelled, transactions are signed.
    Speedex2023,
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Which paper's.
    pub paper: Paper,
    /// Accounts in the beginning.
    pub account_count: u32,
    /// Transactions of a block.
    pub block_len: usize,
    /// Transactions between two moves of the valuations.
    pub set_len: usize,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Measure once so many offers stand, ascending.
    pub open_offers: Vec<usize>,
    /// The most blocks between two stops.
    pub growth_blocks_max: usize,
    /// Blocks measured at each stop by each number of threads.
    pub rounds: usize,
    /// Other sizes of blocks, measured by the most threads at every other stop; none in 2021.
    pub block_lens: Vec<usize>,
    /// Of the workload.
    pub seed: u64,
}

impl Setup {
    /// Blocks of half a million, a million accounts, up to ten million open offers.
    #[must_use]
    pub fn full(paper: Paper, threads: Vec<usize>) -> Self {
        let block_lens = match paper {
            Paper::Speedex2021 => Vec::new(),
            Paper::Speedex2023 => vec![10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000],
        };
        Self {
            paper,
            account_count: 1_000_000,
            block_len: 500_000,
            set_len: 100_000,
            threads,
            open_offers: vec![0, 2_500_000, 5_000_000, 7_500_000, 10_000_000],
            growth_blocks_max: 400,
            rounds: 3,
            block_lens,
            seed: 1,
        }
    }

    /// Some seconds in a debug build.
    #[must_use]
    pub fn small(paper: Paper) -> Self {
        let block_lens = if paper == Paper::Speedex2023 { vec![200, 1_000] } else { Vec::new() };
        Self {
            account_count: 500,
            block_len: 1_000,
            set_len: 200,
            open_offers: vec![0, 300],
            rounds: 2,
            block_lens,
            ..Self::full(paper, vec![1, 2])
        }
    }

    fn model(&self) -> Model {
        let asset_count = if self.paper == Paper::Speedex2021 { 20 } else { 50 };
        let standard = Model::standard(asset_count, self.account_count, self.block_len);
        let offers = self.set_len as f64 * standard.mix.offers / (standard.mix.offers + standard.mix.payments);
        let model = Model { offers_per_valuation: Some((offers as usize).max(1)), ..standard };
        match self.paper {
            Paper::Speedex2023 => model,
            Paper::Speedex2021 => {
                let wrong = self.block_len / 2_000;
                let faults = Faults {
                    reused_numbers: wrong / 2,
                    overdrafts: wrong,
                    empty_cancels: wrong,
                    account_count: Some((self.account_count / 1_000).max(2)),
                    ..Faults::default()
                };
                Model { cancel_share: 0.0, faults, ..model }
            }
        }
    }

    /// About what two states and all that goes with them take in the end.
    fn bytes(&self) -> u64 {
        let offers = self.open_offers.last().copied().unwrap_or(0) as u64;
        let assets = self.model().assets.len() as u16;
        2 * (state_bytes(self.account_count, assets) + offers * 130) + u64::from(self.account_count) * 400
    }
}

/// Some blocks of one size by one number of threads, on a state of about so many offers.
#[derive(Clone, Debug)]
pub struct Point {
    /// What the stop was for.
    pub(crate) stop: usize,
    pub(crate) threads: usize,
    pub(crate) block_len: usize,
    pub(crate) samples: Vec<Sample>,
    /// Checking the signatures of such a block, where it was measured.
    pub(crate) check_ms: Option<f64>,
}

/// What came of a chain.
#[derive(Debug)]
pub struct Measured {
    pub(crate) by_threads: Vec<Point>,
    pub(crate) by_block_len: Vec<Point>,
    /// Blocks of the chain, with those that were measured, and transactions kept in them.
    pub(crate) block_count: usize,
    pub(crate) transaction_count: usize,
    /// Stops that it did not come to.
    pub(crate) missed: Vec<usize>,
}

/// Runs it.
pub fn run(setup: &Setup) -> anyhow::Result<Measured> {
    let (needed, there) = (setup.bytes() >> 20, memory_available_bytes() >> 20);
    ensure!(needed <= there, "this takes about {needed} MiB, and {there} are available: ask for fewer --accounts or --offers");
    let threads_max = setup.threads.iter().copied().max().unwrap_or(1);
    let signatures = match setup.paper {
        Paper::Speedex2021 => None,
        Paper::Speedex2023 => Some(Signatures::new(setup.account_count)?),
    };
    let mut chain = Chain { batches: Batches::new(setup.model(), None, setup.seed, 1)?, block_count: 0, transaction_count: 0 };
    let (mut by_threads, mut by_block_len, mut missed) = (Vec::new(), Vec::new(), Vec::new());
    // The first blocks hash every account and touch all of the memory.
    for _ in 0..2 {
        chain.block(threads_max)?;
    }
    for (&stop, has_block_lens) in setup.open_offers.iter().zip([true, false].into_iter().cycle()) {
        let (until, mut reported) = (chain.block_count + setup.growth_blocks_max, Instant::now());
        while chain.batches.proposer.open_offer_count() < stop && chain.block_count < until {
            chain.block(threads_max)?;
            if reported.elapsed() >= REPORT_EVERY {
                reported = Instant::now();
                let open = grouped(chain.batches.proposer.open_offer_count());
                println!("{:?}: {open} of {} offers stand after {} blocks", setup.paper, grouped(stop), chain.block_count);
            }
        }
        let open = chain.batches.proposer.open_offer_count();
        println!("{:?}: {} offers stand after {} blocks", setup.paper, grouped(open), chain.block_count);
        if open < stop {
            missed.push(stop);
            continue;
        }
        chain.batches.validator = Some(chain.batches.proposer.clone());
        // A copy has no room to grow: it gets it now, and not while it is measured.
        chain.block(threads_max)?;
        by_threads.extend(chain.points(setup, stop, signatures.as_ref())?);
        for &block_len in setup.block_lens.iter().filter(|_| has_block_lens) {
            chain.batches.workload.set_transaction_count(block_len);
            let samples = (0..setup.rounds + 2).map(|_| chain.block(threads_max)).collect::<Result<_, _>>()?;
            by_block_len.push(Point { stop, threads: threads_max, block_len, samples, check_ms: None });
        }
        chain.batches.workload.set_transaction_count(setup.block_len);
        chain.batches.validator = None;
    }
    let Chain { block_count, transaction_count, batches } = chain;
    batches.proposer.batch.check_invariants(&batches.proposer.ledger);
    Ok(Measured { by_threads, by_block_len, block_count, transaction_count, missed })
}

struct Chain {
    batches: Batches,
    block_count: usize,
    transaction_count: usize,
}

impl Chain {
    fn block(&mut self, threads: usize) -> anyhow::Result<Sample> {
        let sample = self.batches.block(threads)?;
        self.count(&sample);
        Ok(sample)
    }

    fn count(&mut self, sample: &Sample) {
        self.block_count += 1;
        self.transaction_count += sample.kept;
    }

    /// Each number of threads in turn, round by round; the signatures of the first block are checked by each.
    fn points(&mut self, setup: &Setup, stop: usize, signatures: Option<&Signatures>) -> anyhow::Result<Vec<Point>> {
        let point = |&threads: &usize| Point { stop, threads, block_len: setup.block_len, samples: Vec::new(), check_ms: None };
        let mut points: Vec<Point> = setup.threads.iter().map(point).collect();
        for round in 0..setup.rounds {
            for index in 0..points.len() {
                let threads = points[index].threads;
                let transactions = self.batches.next();
                if let (Some(signatures), 0, 0) = (signatures, round, index) {
                    let signed = signatures.sign(&transactions, nonzero(setup.threads.iter().copied().max().unwrap_or(1)));
                    for point in &mut points {
                        let (read, check_ms) = signatures.check(&signed, nonzero(point.threads))?;
                        ensure!(read == transactions, "what was signed is not what was read");
                        point.check_ms = Some(check_ms);
                    }
                }
                let (sample, _) = self.batches.apply(&transactions, threads)?;
                self.count(&sample);
                points[index].samples.push(sample);
            }
        }
        Ok(points)
    }
}

/// What the model of a setup says, for the record.
pub(crate) fn described(setup: &Setup) -> serde_json::Value {
    let model = setup.model();
    serde_json::json!({
        "asset_count": model.assets.len(),
        "account_count": model.account_count,
        "block_len": model.transaction_count,
        "offers_per_valuation": model.offers_per_valuation,
        "cancel_share": model.cancel_share,
        "faults_per_block_max": model.faults.transaction_count_max(),
        "commission_bits": 15,
        "mu_bits": 10,
        "seed": setup.seed,
        "rounds": setup.rounds,
        "threads": setup.threads,
    })
}
