//! The thread that finds prices and amounts of closed batches. It works on a share of the market, which does not change before the block
//! is cleared, so the engine's thread waits for nothing.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use tracing::{error, info, warn};
use walras_batch_solver::{Budget, ClosedBatch, Deadline, KeptIndex};
use walras_clearing::AssetIndex;
use walras_ports::Doorbell;
use walras_sequencer::{SolveJob, Solved};
use walras_types::{BatchMarketId, BatchPrice};
use walras_wire::batch::BlockProposal;

use super::attempts::Attempts;

/// Longest search for prices: the best so far are then proposed.
const SEARCH_MAX: Duration = Duration::from_secs(2);

/// The first attempt starts from the last block's prices, the second from none; from this one on nothing trades, so that payments and
/// cancels of the batch are not kept waiting by offers that can not be priced.
const NOTHING_FROM_ATTEMPT: u32 = 3;

/// An asset that is set aside in so many blocks in a row is logged as an error, and again each time that the number doubles.
const ASIDE_BLOCKS_ALARM: u64 = 8;

/// Jobs that wait, of different markets.
const JOBS_MAX: usize = walras_types::limits::BATCH_MARKETS_MAX;

#[derive(Debug, Default)]
struct Waiting {
    /// One of each market at most. The first waits longest.
    jobs: VecDeque<SolveJob>,
    has_stopped: bool,
}

impl Waiting {
    /// Adds a job. It takes the place of an older one of its market: no market waits longer because others are asked for again.
    fn add(&mut self, job: SolveJob) {
        match self.jobs.iter_mut().find(|other| other.market == job.market) {
            Some(older) => *older = job,
            None => self.jobs.push_back(job),
        }
    }
}

type Shared = Arc<(Mutex<Waiting>, Condvar)>;

/// The thread, from the side of the engine's. Dropping it ends the thread after what it is at.
#[derive(Debug)]
pub(in crate::runtime) struct Solver {
    shared: Shared,
    done: Receiver<Solved>,
    thread: Option<JoinHandle<()>>,
}

impl Solver {
    /// Starts the thread; it rings when something is solved, and notes in the venue's folder what it is at.
    pub(in crate::runtime) fn start(folder: &Path, doorbell: Doorbell) -> std::io::Result<Self> {
        let shared = Shared::default();
        let (done_in, done) = bounded(2 * JOBS_MAX);
        let of_thread = Arc::clone(&shared);
        let attempts = Attempts::new(folder);
        let run = move || run(&of_thread, &done_in, &attempts, &doorbell);
        let thread = std::thread::Builder::new().name("walras-solver".to_owned()).spawn(run)?;
        Ok(Self { shared, done, thread: Some(thread) })
    }

    /// What is solved comes here.
    pub(in crate::runtime) fn done(&self) -> &Receiver<Solved> {
        &self.done
    }

    /// Has a batch solved, in place of any older one of its market, after those that other markets wait for longer.
    pub(in crate::runtime) fn solve(&self, job: SolveJob) {
        let (waiting, wake) = &*self.shared;
        waiting.lock().unwrap_or_else(PoisonError::into_inner).add(job);
        wake.notify_one();
    }

    /// Drops the jobs that wait and are for blocks which are not to be cleared any more. Each would keep the thread from a block that is,
    /// and holds a market, which is copied when it changes.
    pub(in crate::runtime) fn keep(&self, is_wanted: impl FnMut(&SolveJob) -> bool) {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).jobs.retain(is_wanted);
    }
}

impl Drop for Solver {
    fn drop(&mut self) {
        let (waiting, wake) = &*self.shared;
        waiting.lock().unwrap_or_else(PoisonError::into_inner).has_stopped = true;
        wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // What it was at is lost with it, and begun again after the next start.
            let _ = thread.join();
        }
    }
}

fn next(shared: &Shared) -> Option<SolveJob> {
    let (waiting, wake) = &**shared;
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if waiting.has_stopped {
            return None;
        }
        if let Some(job) = waiting.jobs.pop_front() {
            return Some(job);
        }
        waiting = wake.wait(waiting).unwrap_or_else(PoisonError::into_inner);
    }
}

fn run(shared: &Shared, done: &Sender<Solved>, attempts: &Attempts, doorbell: &Doorbell) {
    let mut last_prices: HashMap<BatchMarketId, Vec<Option<BatchPrice>>> = HashMap::new();
    let mut kept: HashMap<BatchMarketId, KeptIndex> = HashMap::new();
    let mut aside: HashMap<BatchMarketId, Aside> = HashMap::new();
    while let Some(job) = next(shared) {
        let begun = Instant::now();
        let attempt = attempts.begin(job.market, job.place.number, job.attempt);
        let job = SolveJob { attempt, ..job };
        let proposal = solve(&job, kept.entry(job.market).or_default(), last_prices.get(&job.market).map(Vec::as_slice));
        attempts.end(job.market);
        let (market, block) = (job.market, job.place.number);
        if let Some(proposal) = &proposal {
            let took = begun.elapsed();
            if took > Duration::from_millis(500) {
                info!("block {block} of batch market {market} took {took:?} to price");
            }
            last_prices.insert(market, proposal.prices.clone());
            let assets = batch(&job).assets_set_aside(proposal);
            let set_aside = assets.len();
            if set_aside > 0 && proposal.trades.is_empty() {
                error!(
                    "block {block} of batch market {market} trades nothing: all {set_aside} assets that could trade are set \
                     aside; after eight \
                     such blocks in a row another replica leads, if there is one; report the offers (`walras log dump`)"
                );
            }
            let aside = aside.entry(market).or_default();
            let set_aside_before = aside.blocks.len();
            for (asset, blocks) in aside.follow(block, &assets) {
                error!(
                    "asset {asset} of batch market {market} (counted from 0, as its section or `walras batch list` names them) was set \
                     aside in the last {blocks} blocks, so its offers wait; report the offers (`walras log dump`), or close the market \
                     until they are cancelled"
                );
            }
            if set_aside_before != set_aside {
                warn!(
                    "in block {block} of batch market {market} {set_aside} assets are set aside, for which no clearing was found \
                     that its rules accept"
                );
            }
        }
        // Holds the market no longer: the engine's thread would have to copy it to change it.
        drop(job);
        if done.send(Solved { market, block, proposal: proposal.map(Box::new) }).is_err() {
            return;
        }
        doorbell.ring();
    }
}

/// The assets of a market that are set aside.
#[derive(Debug, Default)]
struct Aside {
    /// In how many blocks in a row, the last one included.
    blocks: HashMap<AssetIndex, u64>,
    /// The last block.
    last: u64,
}

impl Aside {
    /// Takes the assets set aside in a block; another proposal for the same block does not count again. Returns the assets whose number
    /// of blocks is to be logged as an error, in their order.
    fn follow(&mut self, block: u64, assets: &[AssetIndex]) -> Vec<(AssetIndex, u64)> {
        let more = u64::from(block != self.last);
        self.last = block;
        self.blocks = assets.iter().map(|asset| (*asset, self.blocks.get(asset).map_or(1, |blocks| blocks + more))).collect();
        let is_alarm = |blocks: u64| more > 0 && blocks >= ASIDE_BLOCKS_ALARM && blocks.is_power_of_two();
        assets.iter().map(|asset| (*asset, self.blocks[asset])).filter(|(_, blocks)| is_alarm(*blocks)).collect()
    }
}

fn batch(job: &SolveJob) -> ClosedBatch<'_> {
    let SolveJob { market, place, ref offers, rules, quality, attempt: _ } = *job;
    ClosedBatch { market, place, offers, rules, quality }
}

fn solve(job: &SolveJob, kept: &mut KeptIndex, last_prices: Option<&[Option<BatchPrice>]>) -> Option<BlockProposal> {
    let SolveJob { market, place, ref offers, attempt, .. } = *job;
    let batch = batch(job);
    if attempt >= NOTHING_FROM_ATTEMPT {
        warn!("block {} of batch market {market} is cleared without trades after {attempt} attempts to price it", place.number);
        return Some(batch.propose_nothing());
    }
    let start = last_prices.filter(|prices| attempt == 0 && prices.len() == offers.asset_count());
    let budget = Budget { deadline: Some(Deadline::At(Instant::now() + SEARCH_MAX)), ..Budget::queries(10_000) };
    let proposed = batch.propose_with(kept, start, budget);
    proposed.inspect_err(|e| warn!("block {} of batch market {market} was not priced: {e}", place.number)).ok()
}

#[cfg(test)]
mod tests {
    use walras_batch::BlockPlace;
    use walras_clearing::{BatchMarket, Edition, LowerBounds, Offer, OfferId, Pair, Rules};
    use walras_types::{Amount, Commission, Mu, QualityMax, Rounding};

    use super::*;

    fn job(attempt: u32) -> SolveJob {
        let offer = |id, units, limit| {
            let limit = BatchPrice::from_decimal(limit, Rounding::Up).unwrap();
            Offer::new(limit, 0, OfferId(id), Amount::new(units).unwrap()).unwrap()
        };
        let [gold, silver] = [AssetIndex(0), AssetIndex(1)];
        let (sells_gold, sells_silver) = (Pair { sell: gold, buy: silver }, Pair { sell: silver, buy: gold });
        let offers = [(sells_gold, offer(1, 100, "75")), (sells_silver, offer(2, 8_000, "0.01"))];
        let rules = Rules {
            edition: Edition::NEWEST,
            commission: Commission::new(15).unwrap(),
            mu: Mu::new(10).unwrap(),
            lower_bounds: LowerBounds::BestEffort,
        };
        SolveJob {
            market: BatchMarketId(3),
            place: BlockPlace { number: 7, parent: [1; 32], batch_hash: [2; 32] },
            offers: Arc::new(BatchMarket::build(2, &offers, &[], Vec::new()).unwrap()),
            rules,
            quality: QualityMax::USUAL,
            attempt,
        }
    }

    #[test]
    fn of_three_busy_markets_each_has_its_turn() {
        let of = |market, attempt| SolveJob { market: BatchMarketId(market), ..job(attempt) };
        let mut waiting = Waiting::default();
        waiting.add(of(0, 0));
        let mut taken = Vec::new();
        // Each time that a job is taken, one of two other markets has asked: twice, and the later job counts.
        waiting.add(of(1, 0));
        for asks in [2, 1, 2, 1, 2] {
            waiting.add(of(asks, 0));
            waiting.add(of(asks, 7));
            let next = waiting.jobs.pop_front().unwrap();
            taken.push((next.market.0, next.attempt));
        }
        assert_eq!(taken, [(0, 0), (1, 7), (2, 7), (1, 7), (2, 7)]);
    }

    #[test]
    fn a_block_that_is_not_wanted_any_more_is_not_solved() {
        let shared = Shared::default();
        let (_, done) = bounded(1);
        let solver = Solver { shared: Arc::clone(&shared), done, thread: None };
        let of = |market, number| {
            let asked = job(0);
            SolveJob { market: BatchMarketId(market), place: BlockPlace { number, ..asked.place }, ..asked }
        };
        let jobs = [of(0, 7), of(1, 7), of(2, 8)];
        let held = jobs.each_ref().map(|job| Arc::clone(&job.offers));
        jobs.into_iter().for_each(|job| solver.solve(job));
        solver.keep(|job| job.place.number == 8);
        assert_eq!(held.each_ref().map(Arc::strong_count), [1, 1, 2], "their markets are let go");
        assert_eq!(next(&shared).map(|job| job.market), Some(BatchMarketId(2)));
        drop(solver);
        assert!(next(&shared).is_none(), "it has stopped");
    }

    #[test]
    fn what_is_found_is_accepted_and_names_its_block() {
        let folder = tempfile::tempdir().unwrap();
        let solver = Solver::start(folder.path(), Doorbell::default()).unwrap();
        for (attempt, trades) in [(0, true), (1, true), (NOTHING_FROM_ATTEMPT, false)] {
            let asked = job(attempt);
            let offers = Arc::clone(&asked.offers);
            solver.solve(asked);
            let solved = solver.done().recv().unwrap();
            let found = solved.proposal.unwrap();
            assert_eq!((solved.market, solved.block, found.number, found.parent), (BatchMarketId(3), 7, 7, [1; 32]));
            assert_eq!(!found.trades.is_empty(), trades, "attempt {attempt}");
            assert!(found.trades.iter().all(|trade| trade.marginal.is_some()));
            assert_eq!(found.certificate.potentials.len(), 2);
            assert_eq!(found.certificate.unserved_ppb == 1_000_000_000, !trades, "attempt {attempt}");
            assert_eq!(Arc::strong_count(&offers), 1, "the market is let go");
        }
    }

    #[test]
    fn an_asset_that_is_set_aside_for_ever_is_an_error_at_the_eighth_block_and_each_time_that_they_double() {
        let (mut aside, mut errors) = (Aside::default(), Vec::new());
        for block in 1..=33 {
            // The second is set aside now and then alone.
            let assets = if block % 3 == 0 { vec![AssetIndex(1)] } else { vec![AssetIndex(1), AssetIndex(2)] };
            errors.extend(aside.follow(block, &assets).into_iter().map(|(asset, blocks)| (block, asset, blocks)));
            assert!(aside.follow(block, &assets).is_empty(), "it is proposed again");
        }
        assert_eq!(errors, [8, 16, 32].map(|blocks| (blocks, AssetIndex(1), blocks)));
        assert!(aside.follow(34, &[]).is_empty());
        assert!(aside.follow(35, &[AssetIndex(1)]).is_empty());
        assert_eq!(aside.blocks[&AssetIndex(1)], 1, "it traded in between");
    }

    /// As if the process had ended while each of three attempts was made, one start after the other.
    #[test]
    fn a_batch_whose_pricing_ends_the_process_is_cleared_without_trades_in_the_end() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("pricing-3"), "7 2\n").unwrap();
        let solver = Solver::start(folder.path(), Doorbell::default()).unwrap();
        for trades in [false, true] {
            solver.solve(job(0));
            let found = solver.done().recv().unwrap().proposal.unwrap();
            assert_eq!(!found.trades.is_empty(), trades, "only what never ended counts");
        }
        drop(solver);
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing is being priced");
    }
}
