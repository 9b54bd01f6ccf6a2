//! Batch markets that nobody can stop: families of hard markets, and dense ones of a thousand assets: `make bench NAME=batch`.
//!
//! Every market has a clearing in each of its parts, so a search without one has failed. In whole units each market becomes a block, as a
//! leader proposes it: parts of it may be set aside. Tatonnement, as the papers have it, runs on all of these markets, each within a
//! number of queries and a time. Both clear them in whole units, and the bench compares what each leaves undone: see
//! `Left::is_worse_than`.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use walras_batch::{BlockPlace, Certificate, ProposedClearing, assess};
use walras_batch_solver::{Cleared, ClosedBatch, Deadline, KeptIndex, Settings, Solver, clear, clear_with};
use walras_batch_venue::rules;
use walras_clearing::{AssetIndex, BatchMarket, Fill, Offer, OfferKey, Pair, PairClearing, Rules, SellChange, verify};
use walras_price_solver::demand::DemandIndex;
use walras_price_solver::families::{self, Family, FamilyMarket};
use walras_price_solver::random::Random;
use walras_price_solver::solve::{Accuracy, Budget, Outcome, Portfolio, PriceSolver, Problem, Solution};
use walras_price_solver::synthetic::{MadeBatch, Model, Shape, Variant};
use walras_types::{BatchMarketId, BatchPrice, Commission, Mu, PPB_ALL, QualityMax};

use crate::batch_peers::in_whole_units;
use crate::clearing::sells_of;
use crate::report::{Figure, Report, Unit};

/// How to run.
#[derive(Debug)]
pub struct Config {
    /// Rounds; figures are medians over them.
    pub rounds: usize,
    /// Whether to run all of it, or some seeds.
    pub is_full: bool,
}

const ACCURACIES: [(i32, i32); 4] = [(15, 10), (10, 10), (15, 15), (20, 15)];
/// What a search may take.
const WORST_MS: f64 = 250.0;
/// What the search of a block may take, without a deadline. It tries several ways.
const WORST_BLOCK_MS: f64 = 1_000.0;
const TATONNEMENT_QUERIES: u64 = 5_000;
/// What tatonnement's clearing of a market may take. The papers give a batch as long.
const TATONNEMENT_MAX: Duration = Duration::from_secs(2);
/// A clearing that took more than this share of its time may have ended for lack of it: prices get 0.7 of the time, amounts the rest.
const MAY_BE_CUT: f64 = 0.6;
/// Two clearings count as alike if what they leave unserved differs by at most this share: chance decides among ties and single units.
const ALIKE: f64 = 0.01;

/// What a clearing in whole units comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Left {
    outcome: Outcome,
    /// Of what offers clearly in the money want to sell, the share that does not trade, of the asset that is worst off.
    unserved: f64,
    /// Of all utility in reach of the offers at its own prices, the share that is not realised.
    unrealised: f64,
}

impl Left {
    fn of(cleared: &Cleared<'_>, market: &BatchMarket, rules: &Rules) -> Self {
        let unserved_ppb = Certificate::find(market, &cleared.proposal, rules).unserved_ppb;
        let report = &cleared.report;
        let unserved = f64::from(unserved_ppb) / f64::from(PPB_ALL);
        Self { outcome: report.outcome, unserved, unrealised: report.unrealised_share() }
    }

    /// Prices that clear the market are better than prices that do not. If both clear it, or neither, what is left of offers clearly in
    /// the money decides. A clearing by the rules may leave any offer within mu of the rate, and it is chance which of these a
    /// solver takes.
    fn is_worse_than(&self, other: &Self) -> bool {
        let clears = |left: &Self| left.outcome < Outcome::Approximate;
        match (clears(self), clears(other)) {
            (false, true) => true,
            (true, false) => false,
            _ => self.unserved > other.unserved + ALIKE,
        }
    }
}

fn cleared<'m>(solver: Solver, market: &'m BatchMarket, rules: &Rules) -> anyhow::Result<Cleared<'m>> {
    let budget = match solver {
        Solver::Tatonnement => Budget::queries(TATONNEMENT_QUERIES).within(TATONNEMENT_MAX),
        Solver::Portfolio | Solver::Newton => Budget::queries(10_000),
    };
    let settings = Settings { solver, budget, ..Settings::new(rules.commission, rules.mu) };
    Ok(clear(market, &settings)?)
}

/// What the fills of a clearing gain against their limits, valued at these prices. Offers without a limit gain nothing.
fn gains(cleared: &Cleared<'_>, prices: &[Option<BatchPrice>]) -> f64 {
    let float = |price: BatchPrice| f64::from_bits(price.bits());
    let value = |asset: AssetIndex| prices[asset.index()].map_or(0.0, float);
    let verified = &cleared.verified;
    let of_pair = |clearing: &PairClearing| {
        let books = verified.market().books();
        let Ok(at) = books.binary_search_by_key(&clearing.pair, |book| book.pair()) else { return 0.0 };
        let offers = verified.fills(clearing).sells().zip(books[at].sells().as_slice());
        let gain = |(fill, offer): (Fill, &Offer)| fill.bought.get() as f64 - float(offer.key().limit) * fill.sold.get() as f64;
        let with_limits = offers.filter(|(_, offer)| !offer.key().limit.is_zero());
        with_limits.map(gain).map(|gain| gain.max(0.0)).sum::<f64>() * value(clearing.pair.buy)
    };
    verified.pairs().iter().map(of_pair).sum()
}

/// The rules by which a market of this accuracy is cleared in whole units: those of a venue where the accuracy leaves no freedom.
fn rules_of((eps_bits, mu_bits): (i32, i32)) -> anyhow::Result<Rules> {
    let commission = Commission::new(u8::try_from(eps_bits)?).context("an exponent within 1 and 30")?;
    let mu = Mu::new(u8::try_from(mu_bits)?).context("an exponent within 1 and 30")?;
    let exact = Rules { commission, mu, ..rules() };
    Ok(if exact.leave_freedom() { exact } else { rules() })
}

/// The block that a leader proposes of a market: how many assets it sets aside, and how many milliseconds it took.
fn block(market: &BatchMarket, rules: &Rules, budget: Budget<'_>) -> anyhow::Result<(usize, f64)> {
    let place = BlockPlace { number: 1, parent: [0; 32], batch_hash: [1; 32] };
    let quality = QualityMax::USUAL;
    let batch = ClosedBatch { market: BatchMarketId(0), place, offers: market, rules: *rules, quality };
    let begun = Instant::now();
    let block = batch.propose(None, budget)?;
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    let proposal = ProposedClearing::from(&block).proposal;
    verify(market, &proposal, rules).map_err(|rejected| anyhow::anyhow!("the core refuses a block: {rejected}"))?;
    ensure!(assess(market, &proposal, rules, &quality).beyond.is_empty(), "a validator would not accept the block");
    Ok((batch.set_aside(&block), ms))
}

/// Metrics that the file of results has to hold. `order_p99_ratio_while_clearing` is not among them, since it has another name if
/// the machine is too slow. Nor are those of the largest states, which another bench measures.
pub const REQUIRED: [&str; 20] = [
    "families_failed",
    "markets_tried",
    "worst_solve_ms",
    "families_set_aside",
    "worst_block_ms",
    "worse_than_tatonnement",
    "compared_with_tatonnement",
    "dense_1000_assets_ms",
    "prices_4000_assets_ms",
    "offers_to_prices_500k_ms",
    "propose_ktps_3m_standing",
    "validate_ktps_3m_standing",
    "clearing_block_transactions",
    "end_to_end_signed_ktps",
    "snapshot_pause_1k_accounts_ms",
    "snapshot_pause_10k_accounts_ms",
    "snapshot_pause_100k_accounts_ms",
    "pool_blocks_ktps",
    "header_bytes_light_client",
    "peer_markets",
];

/// Runs all of it.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(config.rounds);
    families_of_markets(config, report)?;
    dense(config, report)?;
    thousands_of_assets(config, report)?;
    offers_to_prices(config, report)?;
    deadline(config, report)
}

/// What a search finds, and how many milliseconds it took.
fn solved(market: &FamilyMarket, (eps_bits, mu_bits): (i32, i32)) -> anyhow::Result<(Solution, f64)> {
    let index = DemandIndex::from_offers(market.asset_count, &market.offers, Vec::new())?;
    let problem = Problem::cold(&index, Accuracy::bits(eps_bits, mu_bits));
    let begun = Instant::now();
    let solution = Portfolio.solve(&problem);
    Ok((solution, begun.elapsed().as_secs_f64() * 1e3))
}

fn families_of_markets(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let seeds = if config.is_full { 400 } else { 2 };
    let mut families = Families::default();
    for family in Family::ALL {
        eprintln!("{family:?}: {seeds} markets");
        for seed in 0..seeds {
            families.add(family, seed)?;
        }
    }
    families.tell(report);
    Ok(())
}

/// What came of the markets of all families.
#[derive(Default)]
struct Families {
    tried: u64,
    worst_ms: f64,
    failed: Vec<String>,
    worst_block_ms: f64,
    set_aside: Vec<String>,
    compared: u64,
    /// Of these, the markets that tatonnement had too little time for, as far as can be told.
    cut: Vec<String>,
    worse: Vec<String>,
    unrealised_beyond: f64,
    gains_below: f64,
}

impl Families {
    fn add(&mut self, family: Family, seed: u64) -> anyhow::Result<()> {
        let bits = ACCURACIES[seed as usize % ACCURACIES.len()];
        let made = family.market(seed);
        let (solution, ms) = solved(&made, bits)?;
        self.tried += 1;
        self.worst_ms = self.worst_ms.max(ms);
        let name = format!("{family:?} {seed} at {bits:?}");
        if solution.outcome == Outcome::Approximate {
            self.failed.push(name.clone());
        }
        let (_, market) = in_whole_units(&made)?;
        let rules = rules_of(bits)?;
        let (set_aside, ms) = block(&market, &rules, Budget::queries(10_000))?;
        self.worst_block_ms = self.worst_block_ms.max(ms);
        if set_aside > 0 {
            self.set_aside.push(format!("{name}: {set_aside} of {} assets", made.asset_count));
        }
        self.compare(&name, &market, &rules)
    }

    /// Our clearing in whole units and tatonnement's.
    fn compare(&mut self, name: &str, market: &BatchMarket, rules: &Rules) -> anyhow::Result<()> {
        let ours = cleared(Solver::Portfolio, market, rules)?;
        let begun = Instant::now();
        let theirs = cleared(Solver::Tatonnement, market, rules)?;
        if begun.elapsed() > TATONNEMENT_MAX.mul_f64(MAY_BE_CUT) {
            self.cut.push(name.to_owned());
        }
        let [left, left_by_theirs] = [&ours, &theirs].map(|cleared| Left::of(cleared, market, rules));
        self.compared += 1;
        self.unrealised_beyond = self.unrealised_beyond.max(left.unrealised - left_by_theirs.unrealised);
        // Both at our prices: shares of utility at different prices have different wholes.
        let [gained, gained_by_theirs] = [&ours, &theirs].map(|cleared| gains(cleared, &ours.proposal.prices));
        if gained_by_theirs > 0.0 {
            self.gains_below = self.gains_below.max(1.0 - gained / gained_by_theirs);
        }
        if left.is_worse_than(&left_by_theirs) {
            self.worse.push(format!("{name}: {left:?} against {left_by_theirs:?}"));
        }
        Ok(())
    }

    fn tell(self, report: &mut Report) {
        report.check(format!(
            "{} markets of {} families, each solved cold on one core; none may be left approximate. The block of each in whole units \
             was verified and assessed",
            self.tried,
            Family::ALL.len()
        ));
        let notes = [
            ("no prices", &self.failed),
            ("set aside", &self.set_aside),
            ("worse than tatonnement", &self.worse),
            ("tatonnement may have ended for lack of time", &self.cut),
        ];
        for (what, names) in notes {
            names.iter().take(20).for_each(|name| report.note(format!("{what}: {name}")));
        }
        report.note(format!(
            "tatonnement with at most {TATONNEMENT_QUERIES} queries a search and {} s a market, on {} of these markets, in whole units; {} \
             may have ended for lack of time",
            TATONNEMENT_MAX.as_secs(),
            self.compared,
            self.cut.len()
        ));
        let failures = |metric: &str, names: &[String]| Figure::new(metric, names.len() as f64, Unit::Failures).bar(0.0);
        report.figure(failures("families_failed", &self.failed));
        report.figure(Figure::new("markets_tried", self.tried as f64, Unit::Count));
        report.figure(Figure::new("worst_solve_ms", self.worst_ms, Unit::Ms).bar(WORST_MS));
        report.figure(failures("families_set_aside", &self.set_aside));
        report.figure(Figure::new("worst_block_ms", self.worst_block_ms, Unit::Ms).bar(WORST_BLOCK_MS));
        report.figure(failures("worse_than_tatonnement", &self.worse));
        report.figure(Figure::new("compared_with_tatonnement", self.compared as f64, Unit::Count));
        report.figure(Figure::new("tatonnement_short_of_time", self.cut.len() as f64, Unit::Failures));
        let percent = |metric: &str, share: f64| Figure::new(metric, 100.0 * share, Unit::PercentWrong);
        report.figure(percent("unrealised_beyond_tatonnement_percent", self.unrealised_beyond));
        report.figure(percent("gains_below_tatonnement_percent", self.gains_below));
    }
}

fn dense(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let asset_count = if config.is_full { 1_000 } else { 120 };
    eprintln!("{asset_count} dense assets");
    let market = families::dense(asset_count, 0);
    let mut times = Vec::new();
    for _ in 0..config.rounds {
        let (solution, ms) = solved(&market, ACCURACIES[0])?;
        ensure!(solution.outcome != Outcome::Approximate, "the dense market was not cleared");
        times.push(ms);
    }
    let ms = report.samples("dense_1000_assets_ms", times);
    report.figure(Figure::new("dense_1000_assets_ms", ms, Unit::Ms).bar(1_000.0));
    Ok(())
}

/// The share of standing offers that goes from one block to the next; as many come.
const CHANGING: f64 = 0.1;
/// Threads that change the market, as in a venue on such a machine. Index and prices are found on one.
const THREADS: usize = 2;

/// From a block's changes to prices: offers come and go, the solver's index follows, prices are searched from the last block's. Each
/// round's result is that of an index made anew.
fn offers_to_prices(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let offer_count = if config.is_full { 500_000 } else { 5_000 };
    eprintln!("50 assets, {offer_count} offers, from offers to prices");
    let model = Model { asset_count: 50, offer_count, variant: Variant::Default, shape: Shape::Cycles };
    let (mut made, mut random, mut first_id) = (MadeBatch::new(model, 0), Random::new(0), 0);
    let mut market = BatchMarket::build(50, &sells_of(&made.offers, &mut first_id)?, &[], Vec::new())?;
    let (settings, threads) = (settings()?, NonZero::new(THREADS).context("at least one thread")?);
    let mut kept = KeptIndex::default();
    let mut last = clear_with(&mut kept, &market, &settings)?.proposal.prices;
    let (mut all, mut parts) = (Vec::new(), [Vec::new(), Vec::new(), Vec::new()]);
    for _ in 0..config.rounds {
        let mut changes: BTreeMap<Pair, (Vec<OfferKey>, Vec<Offer>)> = BTreeMap::new();
        for book in market.books() {
            let gone = book.sells().as_slice().iter().filter(|_| random.unit() < CHANGING).map(Offer::key);
            changes.entry(book.pair()).or_default().0.extend(gone);
        }
        made.next_of((offer_count as f64 * CHANGING) as usize);
        for (pair, offer) in sells_of(&made.offers, &mut first_id)? {
            changes.entry(pair).or_default().1.push(offer);
        }
        let changes = changes.iter_mut().map(|(pair, (removed, added))| SellChange { pair: *pair, removed, added }).collect();
        let begun = Instant::now();
        market.change_sells(changes, threads)?;
        let change_ms = begun.elapsed().as_secs_f64() * 1e3;
        let settings = Settings { start: Some(&last), ..settings };
        let cleared = clear_with(&mut kept, &market, &settings)?;
        let times = cleared.report.times;
        ensure!(cleared.report.outcome != Outcome::Approximate, "a market that must clear did not");
        let anew = clear(&market, &settings)?.proposal;
        ensure!(cleared.proposal == anew, "an index that was kept found something else than one made anew");
        let of_round = [change_ms, times.index.as_secs_f64() * 1e3, times.prices.as_secs_f64() * 1e3];
        all.push(of_round.iter().sum());
        parts.iter_mut().zip(of_round).for_each(|(samples, ms)| samples.push(ms));
        last = anew.prices;
    }
    report.check("offers to prices: the index that was kept found what one made anew finds, in every round");
    let ms = report.samples("offers_to_prices_500k_ms", all);
    report.figure(Figure::new("offers_to_prices_500k_ms", ms, Unit::Ms).bar(15.0));
    for (part, samples) in ["change", "index", "prices"].into_iter().zip(parts) {
        let metric = format!("offers_to_prices_500k_{part}_ms");
        let value = report.samples(&metric, samples);
        report.figure(Figure::new(metric, value, Unit::Ms));
    }
    Ok(())
}

/// 4,000 assets and 20,000 offers without a deadline: prices alone, and from the offers to a clearing that the core has verified.
fn thousands_of_assets(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let (market, _) = many_assets(config);
    eprintln!("{} assets, {} offers, without a deadline", market.asset_count, market.offers.len());
    let (mut prices, mut build, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..config.rounds.min(LONG_ROUNDS) {
        let (solution, ms) = solved(&market, ACCURACIES[0])?;
        ensure!(solution.outcome != Outcome::Approximate, "the market of thousands of assets was not cleared");
        prices.push(ms);
        let begun = Instant::now();
        let built = built(&market)?;
        build.push(begun.elapsed().as_secs_f64() * 1e3);
        let cleared = clear(&built, &settings()?)?;
        all.push(begun.elapsed().as_secs_f64() * 1e3);
        ensure!(cleared.report.fill_count > 0, "nothing trades in a market of thousands of assets");
    }
    report.check("4,000 assets: prices clear, and the core verified what trades at them");
    let rows =
        [("prices_4000_assets_ms", prices, true), ("build_4000_assets_ms", build, false), ("clear_4000_assets_ms", all, true)];
    for (metric, samples, has_bar) in rows {
        let figure = Figure::new(metric, report.samples(metric, samples), Unit::Ms);
        report.figure(if has_bar { figure.bar(10_000.0) } else { figure });
    }
    Ok(())
}

/// A round takes ten seconds, and more rounds would change the median little.
const LONG_ROUNDS: usize = 3;

/// A market of thousands of assets, and a deadline too near for it, in milliseconds.
fn many_assets(config: &Config) -> (FamilyMarket, u64) {
    let (asset_count, offer_count, ms) = if config.is_full { (4_000, 20_000, 2_000) } else { (200, 1_000, 20) };
    let model = Model { asset_count, offer_count, variant: Variant::Default, shape: Shape::EvenCycles };
    (families::made(model, 0), ms)
}

fn built(market: &FamilyMarket) -> anyhow::Result<BatchMarket> {
    Ok(BatchMarket::build(market.asset_count, &sells_of(&market.offers, &mut 0)?, &[], Vec::new())?)
}

/// A market too large for its time: how long a clearing with a deadline of two seconds takes, from the offers on; and how long a leader
/// takes for the block, which tries other ways and sets aside what none of them clears.
fn deadline(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let (market, ms) = many_assets(config);
    eprintln!("{} assets, {} offers, a deadline of {ms} ms", market.asset_count, market.offers.len());
    let settings = settings()?;
    let (mut times, mut of_blocks) = (Vec::new(), Vec::new());
    let within = |begun: Instant| {
        let deadline = Some(Deadline::At(begun + Duration::from_millis(ms)));
        Budget { deadline, ..settings.budget }
    };
    for _ in 0..config.rounds {
        let begun = Instant::now();
        let budget = within(begun);
        let built = built(&market)?;
        let build_ms = begun.elapsed().as_secs_f64() * 1e3;
        // The core has checked what comes back.
        clear(&built, &Settings { budget, ..settings })?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        let (_, propose_ms) = block(&built, &rules(), within(Instant::now()))?;
        of_blocks.push(build_ms + propose_ms);
    }
    report.check(
        "what a deadline of two seconds left of 4,000 assets and 20,000 offers was verified by the core, and the block of it assessed",
    );
    for (metric, samples) in [("deadline_2s_4000_assets_ms", times), ("deadline_2s_4000_assets_block_ms", of_blocks)] {
        let ms = report.samples(metric, samples);
        report.figure(Figure::new(metric, ms, Unit::Ms).bar(2_500.0));
    }
    Ok(())
}

fn settings() -> anyhow::Result<Settings<'static>> {
    let commission = Commission::new(15).context("an exponent within 1 and 30")?;
    Ok(Settings::new(commission, Mu::new(10).context("an exponent within 1 and 30")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_has_every_figure() {
        let mut report = Report::begin("batch");
        run(&Config { rounds: 2, is_full: false }, &mut report).unwrap();
        let value = |name: &str| report.figures().iter().find(|figure| figure.metric == name).unwrap().value;
        assert!(value("families_failed") < 1.0 && value("worse_than_tatonnement") < 1.0);
        assert_eq!(value("compared_with_tatonnement"), value("markets_tried"));
        assert!(value("tatonnement_short_of_time") <= value("markets_tried"));
        assert!(value("families_set_aside") < 1.0 && value("worst_block_ms") > 0.0);
        assert!(value("markets_tried") > 50.0 && value("worst_solve_ms") > 0.0 && value("dense_1000_assets_ms") > 0.0);
        assert!(value("offers_to_prices_500k_ms") > 0.0 && value("deadline_2s_4000_assets_ms") > 0.0);
        assert!(value("deadline_2s_4000_assets_block_ms") > 0.0);
        assert!(value("prices_4000_assets_ms") > 0.0 && value("clear_4000_assets_ms") >= value("build_4000_assets_ms"));
    }

    #[test]
    fn worse_is_what_does_not_clear_or_leaves_more_of_what_clearly_wants_to_trade() {
        let cleared = Left { outcome: Outcome::Cleared, unserved: 0.0, unrealised: 0.01 };
        let within = Left { outcome: Outcome::ClearedWithinBounds, ..cleared };
        let approximate = Left { outcome: Outcome::Approximate, unserved: 0.9, unrealised: 0.92 };
        assert!(approximate.is_worse_than(&cleared) && approximate.is_worse_than(&within) && !cleared.is_worse_than(&approximate));
        // Both clear: an offer within mu of the rate may be left, an offer clearly in the money may not.
        let much_at_the_edge = Left { unrealised: 0.4, ..within };
        assert!(!much_at_the_edge.is_worse_than(&cleared) && !within.is_worse_than(&cleared));
        let left_out = Left { unserved: 0.02, ..much_at_the_edge };
        assert!(left_out.is_worse_than(&cleared) && !left_out.is_worse_than(&left_out));
        // Neither clears.
        let better = Left { unserved: 0.5, ..approximate };
        assert!(approximate.is_worse_than(&better) && !better.is_worse_than(&approximate));
    }

    /// The comparison can fail: here a search that stops after one query is judged.
    #[test]
    fn a_bad_search_is_found_to_be_worse() {
        let (_, market) = in_whole_units(&Family::TenWhales.market(0)).unwrap();
        let usual = rules_of((15, 10)).unwrap();
        let one_query = Settings { budget: Budget::queries(1), solver: Solver::Tatonnement, ..settings().unwrap() };
        let (bad, good) = (clear(&market, &one_query).unwrap(), cleared(Solver::Portfolio, &market, &usual).unwrap());
        let [left_by_bad, left] = [&bad, &good].map(|cleared| Left::of(cleared, &market, &usual));
        assert!(left_by_bad.is_worse_than(&left) && !left.is_worse_than(&left_by_bad), "{left_by_bad:?} {left:?}");
        let [gained_by_bad, gained] = [&bad, &good].map(|cleared| gains(cleared, &good.proposal.prices));
        assert!(gained_by_bad < 0.9 * gained, "{gained_by_bad} {gained}");
    }

    #[test]
    fn accuracies_without_freedom_are_cleared_by_the_usual_rules() {
        let exponents =
            ACCURACIES.map(|bits| rules_of(bits).unwrap()).map(|rules| (rules.commission.exponent(), rules.mu.exponent()));
        assert_eq!(exponents, [(Some(15), 10), (Some(15), 10), (Some(15), 10), (Some(20), 15)]);
        let (_, market) = in_whole_units(&Family::Ring.market(0)).unwrap();
        assert_eq!(block(&market, &rules_of(ACCURACIES[0]).unwrap(), Budget::queries(10_000)).unwrap().0, 0);
    }
}
