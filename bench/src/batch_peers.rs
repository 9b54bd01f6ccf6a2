//! Peers on the same markets: tatonnement, as the papers have it, and Clarabel on the convex program find prices, GLPK on the
//! linear program finds amounts. Their time and quality stand next to ours: `make bench NAME=batch`.
//!
//! All search the same offers, with limits that have the commission in them, as a venue's search does. All prices are judged in the
//! same way: the integer network finds what trades at them in whole units, the core verifies it, and it is assessed as a block. A market
//! is *served* if a market of the usual rules would accept that block. A venue tries further searches if a block would not be accepted
//! ([`walras_batch_solver::ClosedBatch`]); here each search has one try.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::Value;
use walras_batch::assess;
use walras_batch_solver::batch_prices;
use walras_batch_venue::rules;
use walras_clearing::{BatchMarket, verify};
use walras_price_solver::demand::DemandIndex;
use walras_price_solver::families::{self, Family, FamilyMarket};
use walras_price_solver::solve::{Accuracy, Budget, Portfolio, PriceSolver, Problem, Tatonnement};
use walras_price_solver::synthetic::{Model, Offer, Shape, Variant};
use walras_trade_amounts::{AmountsFinder, Answer, CirculationSolver, Cut, Network, Proposed, ValueArc, propose};
use walras_types::{PPB_ALL, QualityMax};

use crate::clearing::{Glpk, sells_of};
use crate::report::{Figure, PeerFigure, Report, Unit};
use crate::statistics::median;

/// How to run.
#[derive(Debug)]
pub struct Config {
    /// Rounds of our own searches; the median of a market counts.
    pub rounds: usize,
    /// Whether to run all of it, or some markets.
    pub is_full: bool,
    /// The folder of peers, if they are to be run.
    pub peers: Option<PathBuf>,
    /// Where problems for peers are written.
    pub scratch: PathBuf,
}

/// Exponents of the commission and of mu in the usual rules.
const ACCURACY: (i32, i32) = (15, 10);
const TATONNEMENT_QUERIES: u64 = 5_000;
/// Tatonnement and Clarabel give up a search after this time.
const SEARCH_MAX: Duration = Duration::from_secs(20);
/// Solves of each market by Clarabel, which may take [`SEARCH_MAX`] each.
const CLARABEL_ROUNDS: &str = "1";
/// The value of all that could trade, in units of a network: one unit is far less than an asset's, and the sum is far below the
/// bound.
const NETWORK_VALUE: f64 = (1_u64 << 44) as f64;

/// Runs all of it.
///
/// # Errors
/// When a market cannot be made, the core refuses a clearing, or a peer does not do what it is there for.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let clarabel = peer(config, "Clarabel", report, Clarabel::build);
    let glpk = peer(config, "GLPK", report, Glpk::build);
    let (mut ours, mut walks, mut convex) = (Searches::default(), Searches::default(), Searches::default());
    let mut amounts = AmountsOf::default();
    let markets = markets(config.is_full);
    for (name, market) in &markets {
        eprintln!("{name}: {} assets, {} offers, ours and peers", market.asset_count, market.offers.len());
        let (market, whole) = in_whole_units(market)?;
        let (market, accuracy) = after_commission(&market);
        let index = DemandIndex::from_offers(market.asset_count, &market.offers, Vec::new())?;
        let problem = Problem::cold(&index, accuracy);
        let mut times = Vec::new();
        for _ in 0..config.rounds.max(1) {
            times.push(timed(|| Portfolio.solve(&problem)).1);
        }
        let prices = Portfolio.solve(&problem).prices;
        let proposed = ours.add(median(&times), judged(&whole, &prices)?);
        let budget = Budget::queries(TATONNEMENT_QUERIES).within(SEARCH_MAX);
        let (found, ms) = timed(|| Tatonnement::default().solve(&Problem { budget, ..problem }));
        walks.add(ms, judged(&whole, &found.prices)?);
        if let Some(clarabel) = &clarabel {
            let solved = clarabel.solve(&market, &prices, &config.scratch)?;
            if let Some(why) = solved.refusal {
                report.note(format!("{name} counts as not served by Clarabel, which ended with: {why}"));
            }
            convex.add(solved.ms, judged(&whole, &solved.prices)?);
        }
        amounts.add(config, &whole, proposed, glpk.as_ref())?;
    }
    report.figure(Figure::new("peer_markets", markets.len() as f64, Unit::Count));
    let of_clarabel = clarabel.is_some().then_some(&convex);
    tell_searches(report, &ours, &walks, of_clarabel);
    amounts.tell(report, glpk.is_some());
    report.check(format!(
        "{} markets by ours, tatonnement{}: the core verified what trades at the prices of each",
        markets.len(),
        if clarabel.is_some() { " and Clarabel" } else { "" }
    ));
    Ok(())
}

fn peer<P>(config: &Config, name: &str, report: &mut Report, build: fn(&Path) -> Result<P, String>) -> Option<P> {
    let built = config.peers.as_deref().map_or_else(|| Err("--no-peer was given".to_owned()), build);
    built.map_err(|why| report.note(format!("{name} was NOT RUN, so ours stands alone: {why}"))).ok()
}

/// Markets of each family, two of each in full, and synthetic ones of the papers' model.
fn markets(is_full: bool) -> Vec<(String, FamilyMarket)> {
    let seeds = if is_full { 0..2 } else { 0..1 };
    let of_families = Family::ALL.into_iter().filter(|family| is_full || *family == Family::Ring);
    let mut all: Vec<_> =
        of_families.flat_map(|family| seeds.clone().map(move |seed| (format!("{family:?} {seed}"), family.market(seed)))).collect();
    let sizes: &[(usize, usize)] = if is_full { &[(10, 200), (20, 1_000), (50, 1_000), (50, 5_000)] } else { &[(10, 200)] };
    for &(asset_count, offer_count) in sizes {
        let model = Model { asset_count, offer_count, variant: Variant::Default, shape: Shape::Cycles };
        all.push((format!("{asset_count} assets, {offer_count} offers"), families::made(model, 0)));
    }
    all
}

/// The offers that have whole units, as all searches see them, and the market of these.
pub(crate) fn in_whole_units(market: &FamilyMarket) -> anyhow::Result<(FamilyMarket, BatchMarket)> {
    let is_possible = |offer: &&Offer| sells_of(std::slice::from_ref(*offer), &mut 0).is_ok();
    let offers: Vec<Offer> = market.offers.iter().filter(is_possible).copied().collect();
    let whole = BatchMarket::build(market.asset_count, &sells_of(&offers, &mut 0)?, &[], Vec::new())?;
    Ok((FamilyMarket { asset_count: market.asset_count, offers }, whole))
}

/// The same offers as their sellers see them: a limit holds for what the commission leaves. And the accuracy that this leaves of the
/// rules' `mu`, as `edge/batch-solver/src/index.rs` has it.
fn after_commission(market: &FamilyMarket) -> (FamilyMarket, Accuracy) {
    let Accuracy { eps, mu } = Accuracy::bits(ACCURACY.0, ACCURACY.1);
    let kept = 1.0 - eps;
    let offers = market.offers.iter().map(|offer| Offer { limit: offer.limit / kept, ..*offer }).collect();
    (FamilyMarket { asset_count: market.asset_count, offers }, Accuracy { eps, mu: 1.0 - (1.0 - mu) / kept })
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let begun = Instant::now();
    let result = work();
    (result, begun.elapsed().as_secs_f64() * 1e3)
}

/// What can be traded at some prices.
struct Judged {
    proposed: Proposed,
    /// The share of what is clearly in the money that does not trade, for the asset that fares worst.
    unserved: f64,
    is_served: bool,
}

/// What trades at these prices in whole units, verified by the core.
fn judged(market: &BatchMarket, prices: &[Option<f64>]) -> anyhow::Result<Judged> {
    let (rules, most) = (rules(), QualityMax::USUAL);
    let proposed = propose(&mut AmountsFinder::new(), market, &batch_prices(market, prices), &rules);
    verify(market, &proposed.proposal, &rules).map_err(|rejected| anyhow::anyhow!("the core refuses what trades: {rejected}"))?;
    let assessed = assess(market, &proposed.proposal, &rules, &most);
    let (gap_ppb, unserved_ppb) = (assessed.certificate.gap_ppb, assessed.certificate.unserved_ppb);
    let is_served = assessed.beyond.is_empty() && gap_ppb <= most.gap_ppb && unserved_ppb <= most.unserved_ppb;
    Ok(Judged { proposed, unserved: f64::from(unserved_ppb) / f64::from(PPB_ALL), is_served })
}

/// What a method came to on all markets.
#[derive(Default)]
struct Searches {
    ms: Vec<f64>,
    unserved: Vec<f64>,
    served: usize,
}

impl Searches {
    fn add(&mut self, ms: f64, judged: Judged) -> Proposed {
        self.ms.push(ms);
        self.unserved.push(judged.unserved);
        self.served += usize::from(judged.is_served);
        judged.proposed
    }

    fn worst_ms(&self) -> f64 {
        self.ms.iter().copied().fold(0.0, f64::max)
    }

    fn unserved_mean(&self) -> f64 {
        self.unserved.iter().sum::<f64>() / self.unserved.len().max(1) as f64
    }
}

fn tell_searches(report: &mut Report, ours: &Searches, walks: &Searches, convex: Option<&Searches>) {
    let clarabel = |value: fn(&Searches) -> f64, unit| {
        let how = "its solver alone, by one thread, one solve of each market in a process of its own, given up after 20 s";
        convex.map(|convex| PeerFigure::new("Clarabel 0.11.1", value(convex), unit, how))
    };
    let tatonnement = |value: f64, unit| {
        let how =
            "the papers' method as we wrote it, one search of each market in the same process; at most 5,000 queries and 20 s";
        PeerFigure::new("tatonnement", value, unit, how)
    };
    for (name, searches) in [("ours", Some(ours)), ("tatonnement", Some(walks)), ("clarabel", convex)] {
        if let Some(searches) = searches {
            report.samples(format!("peer_prices_{name}_ms"), searches.ms.clone());
            report.samples(format!("peer_unserved_{name}"), searches.unserved.clone());
        }
    }
    let median_ms = |searches: &Searches| median(&searches.ms);
    let figure = |metric: &str, value: fn(&Searches) -> f64, unit| Figure::new(metric, value(ours), unit);
    report.figure(figure("peer_prices_ms", median_ms, Unit::Ms).against_any(clarabel(median_ms, Unit::Ms)));
    report.figure(figure("peer_prices_worst_ms", Searches::worst_ms, Unit::Ms).against_any(clarabel(Searches::worst_ms, Unit::Ms)));
    let served = |searches: &Searches| searches.served as f64;
    report.figure(figure("peer_markets_served", served, Unit::Count).against_any(clarabel(served, Unit::Count)));
    for (metric, value, unit) in [
        ("peer_prices_ms_tatonnement", median_ms as fn(&Searches) -> f64, Unit::Ms),
        ("peer_prices_worst_ms_tatonnement", Searches::worst_ms, Unit::Ms),
        ("peer_markets_served_tatonnement", served, Unit::Count),
    ] {
        report.figure(Figure::new(metric, value(ours), unit).against(tatonnement(value(walks), unit)));
    }
    // These may be zero, so no ratio is formed.
    report.figure(Figure::new("peer_unserved_ours", ours.unserved_mean(), Unit::Share));
    report.figure(Figure::new("peer_unserved_tatonnement", walks.unserved_mean(), Unit::Share));
    if let Some(convex) = convex {
        report.figure(Figure::new("peer_unserved_clarabel", convex.unserved_mean(), Unit::Share));
    }
}

/// Amounts at our prices, as values between bounds: the integer network next to the linear program.
#[derive(Default)]
struct AmountsOf {
    whole_us: Vec<f64>,
    network_us: Vec<f64>,
    glpk_us: Vec<f64>,
    /// The network's times for the markets that GLPK solves, too.
    shared_us: Vec<f64>,
    /// The value that the network trades over that of the linear program, where both have an answer.
    value_shares: Vec<f64>,
    network_solved: usize,
    glpk_solved: usize,
    /// Why the network finds no amounts, for each market of which GLPK finds some.
    differences: Vec<Difference>,
    /// Markets of which the network finds amounts and GLPK none.
    network_alone: usize,
}

impl AmountsOf {
    fn add(&mut self, config: &Config, market: &BatchMarket, proposed: Proposed, glpk: Option<&Glpk>) -> anyhow::Result<()> {
        let arcs = arcs(&proposed);
        if arcs.is_empty() {
            return Ok(());
        }
        let prices = &proposed.proposal.prices;
        let (_, ms) = timed(|| propose(&mut AmountsFinder::new(), market, prices, &rules()));
        let allowance = allowance(&arcs, market.asset_count());
        let network = Network::new(&arcs, &allowance)?;
        let (answer, network_ms) = timed(|| CirculationSolver::new().solve(&network));
        let (value, cut) = match answer {
            Answer::Best(best) => {
                ensure!(best.check(&network), "the circulation does not prove itself");
                (Some(best.value as f64), None)
            }
            Answer::Infeasible(cut) => (None, Some(cut)),
        };
        self.network_solved += usize::from(value.is_some());
        self.whole_us.push(ms * 1e3);
        self.network_us.push(network_ms * 1e3);
        let Some(glpk) = glpk else { return Ok(()) };
        // The linear program has the commission of its own.
        let nothing = vec![0; market.asset_count()];
        let answered = glpk.solve(&Network::new(&arcs, &nothing)?, &config.scratch, config.rounds)?;
        let Some((us, objective)) = answered else {
            self.network_alone += usize::from(value.is_some());
            return Ok(());
        };
        if let Some(cut) = cut {
            self.differences.push(Difference::of(&arcs, market.asset_count(), &cut)?);
        }
        self.glpk_solved += 1;
        self.glpk_us.push(us);
        self.shared_us.push(network_ms * 1e3);
        self.value_shares.extend(value.filter(|_| objective > 0.0).map(|value| value / objective));
        Ok(())
    }

    fn tell(self, report: &mut Report, has_peer: bool) {
        if self.network_us.is_empty() {
            return;
        }
        let how =
            "glp_simplex alone, primal, presolver on; both on the bounds of the markets that GLPK solves, in the same call, median";
        let has_times = has_peer && !self.glpk_us.is_empty();
        // Both medians are of the same markets.
        let us = report.samples("peer_amounts_us", if has_times { self.shared_us } else { self.network_us });
        let theirs = has_times.then(|| report.samples("peer_amounts_glpk_us", self.glpk_us));
        let peer = theirs.map(|us| PeerFigure::new("GLPK", us, Unit::Us, how));
        report.figure(Figure::new("peer_amounts_us", us, Unit::Us).against_any(peer));
        let whole = report.samples("peer_amounts_whole_units_us", self.whole_us);
        report.figure(Figure::new("peer_amounts_whole_units_us", whole, Unit::Us));
        let solved = Figure::new("peer_amounts_solved", self.network_solved as f64, Unit::Count);
        let theirs = has_peer.then(|| PeerFigure::new("GLPK", self.glpk_solved as f64, Unit::Count, how));
        report.figure(solved.against_any(theirs.filter(|peer| peer.value > 0.0)));
        if has_peer {
            tell_differences(report, &self.differences, self.network_alone);
        }
        if !self.value_shares.is_empty() {
            let share = report.samples("peer_amounts_value_fraction", self.value_shares);
            report.figure(Figure::new("peer_amounts_value_fraction", share, Unit::Fraction));
            report.note(
                "peer_amounts_value_fraction: the value that the integer network trades, over the value that the linear program \
                 trades; the one spends the commission of what must be bought, the other that of all that is bought",
            );
        }
    }
}

/// Why the linear program has an answer where the network has none. Both get the same bounds. The linear program may spend the commission
/// of all that is bought, the network that of what must be bought; and GLPK accepts what breaks a row within its tolerance, where the
/// network is exact.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Difference {
    /// Nothing shows that the linear program has no exact answer: its larger commission makes the difference.
    Commission,
    /// A cut proves that the linear program has no exact answer, so GLPK's is one within its tolerance: by this share of what must be
    /// bought, its rows are broken at least.
    Tolerance(f64),
}

impl Difference {
    fn of(arcs: &[ValueArc], asset_count: usize, cut: &Cut) -> anyhow::Result<Self> {
        if let Some(tolerance) = broken_by(arcs, cut) {
            return Ok(tolerance);
        }
        // More than the linear program may spend: the commission of all that may be bought. If even this is too little, it has no answer.
        let mut most = vec![0_i64; asset_count];
        arcs.iter().for_each(|arc| most[arc.to as usize] += arc.upper);
        let short: Vec<i64> = most.iter().map(|bought| -(bought >> ACCURACY.0) - 1).collect();
        Ok(match CirculationSolver::new().solve(&Network::new(arcs, &short)?) {
            Answer::Best(_) => Self::Commission,
            Answer::Infeasible(cut) => {
                let missing = cut.surplus_min + cut.lower_in - cut.upper_out;
                broken_by(arcs, &cut).unwrap_or(Self::Tolerance(missing as f64 / cut.lower_in.max(1) as f64))
            }
        })
    }
}

/// Whether the assets of a cut cannot keep the rows of the linear program, exactly, and by what share of what must be bought of them.
///
/// Added up over these assets, the rows say that what is sold out of them, and all that they trade among themselves, is at least
/// `1 - eps` times what is bought into them, and all that they trade among themselves.
fn broken_by(arcs: &[ValueArc], cut: &Cut) -> Option<Difference> {
    let is_inside = |asset: u32| cut.assets.binary_search(&asset).is_ok();
    let among: i128 = arcs.iter().filter(|arc| is_inside(arc.from) && is_inside(arc.to)).map(|arc| i128::from(arc.upper)).sum();
    // All of it times 2^15.
    let missing = ((cut.lower_in - cut.upper_out) << ACCURACY.0) - cut.lower_in - among;
    let share = missing as f64 / f64::from(1_u32 << ACCURACY.0) / cut.lower_in.max(1) as f64;
    (missing > 0).then_some(Difference::Tolerance(share))
}

fn tell_differences(report: &mut Report, differences: &[Difference], network_alone: usize) {
    let broken: Vec<f64> = differences
        .iter()
        .filter_map(|difference| match difference {
            Difference::Commission => None,
            Difference::Tolerance(share) => Some(*share),
        })
        .collect();
    let by_commission = differences.len() - broken.len();
    report.figure(Figure::new("peer_amounts_glpk_by_commission", by_commission as f64, Unit::Count));
    report.figure(Figure::new("peer_amounts_glpk_by_tolerance", broken.len() as f64, Unit::Count));
    report.figure(Figure::new("peer_amounts_network_alone", network_alone as f64, Unit::Count));
    let worst = broken.iter().copied().fold(0.0, f64::max);
    report.note(format!(
        "of the markets of which GLPK finds amounts and the network none, {by_commission} need the commission of trades that need not \
         be, which the linear program may spend; in {} a cut proves that the linear program has no exact answer: GLPK's breaks its rows \
         by {worst:.1e} of what must be bought at most",
        broken.len()
    ));
}

/// How short the venue may stay of each asset: by the commission of what must be bought of it, as in `walras_trade_amounts`.
fn allowance(arcs: &[ValueArc], asset_count: usize) -> Vec<i64> {
    let mut surplus_min = vec![0; asset_count];
    arcs.iter().for_each(|arc| surplus_min[arc.to as usize] -= arc.lower);
    surplus_min.iter().map(|bought: &i64| -(-bought >> ACCURACY.0)).collect()
}

/// The bounds of each pair, in value.
fn arcs(proposed: &Proposed) -> Vec<ValueArc> {
    let price = |asset: u32| proposed.proposal.prices[asset as usize].map_or(0.0, |price| f64::from_bits(price.bits()));
    let bounds = |lane: &walras_trade_amounts::Lane| [lane.lower, lane.upper].map(|units| units.get() as f64 * price(lane.sell));
    let all: f64 = proposed.lanes.iter().map(|lane| bounds(lane)[1]).sum();
    let unit = all / NETWORK_VALUE;
    let arcs = proposed.lanes.iter().map(|lane| {
        let [lower, upper] = bounds(lane).map(|value| (value / unit) as i64);
        ValueArc { from: lane.sell, to: lane.buy, lower: lower.min(upper), upper }
    });
    if unit > 0.0 { arcs.collect() } else { Vec::new() }
}

/// The peer of the price search.
struct Clarabel {
    script: PathBuf,
}

/// Clarabel's answer.
struct Solved {
    prices: Vec<Option<f64>>,
    /// Its solver's time; the process's where it ended without an answer.
    ms: f64,
    /// Why there is no answer.
    refusal: Option<String>,
}

impl Clarabel {
    fn build(peers: &Path) -> Result<Self, String> {
        let script = peers.join("clarabel/run.sh");
        match Command::new(&script).arg("--build-only").output() {
            Ok(output) if output.status.success() => Ok(Self { script }),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(format!("{} does not start ({error}); run the bench by bench/run.sh", script.display())),
        }
    }

    /// Solves the market of the assets that our search has priced; the others cannot trade.
    fn solve(&self, market: &FamilyMarket, priced: &[Option<f64>], scratch: &Path) -> anyhow::Result<Solved> {
        let (text, assets) = market_text(market, priced);
        let mut prices = vec![None; market.asset_count];
        if assets.is_empty() {
            return Ok(Solved { prices, ms: 0.0, refusal: None });
        }
        std::fs::create_dir_all(scratch)?;
        let file = scratch.join("market.txt");
        std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        let seconds = SEARCH_MAX.as_secs().to_string();
        let mut command = Command::new(&self.script);
        let (output, ms) = timed(|| command.arg(&file).args(["--rounds", CLARABEL_ROUNDS, "--seconds", &seconds]).output());
        let output = output?;
        if !output.status.success() {
            let refusal = format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
            return Ok(Solved { prices, ms, refusal: Some(refusal) });
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let answer: Value = serde_json::from_str(text.lines().last().unwrap_or_default()).context("reading Clarabel's answer")?;
        // If it gives up, its last prices are judged all the same.
        let found = answer["prices"].as_array().context("Clarabel's answer has no prices")?;
        for (asset, price) in assets.into_iter().zip(found) {
            prices[asset] = price.as_f64().filter(|price| price.is_normal() && *price > 0.0);
        }
        let ms = answer["solve_ms_median"].as_f64().context("Clarabel's answer has no solve_ms_median")?;
        Ok(Solved { prices, ms, refusal: None })
    }
}

/// The market of the assets that have a price, numbered from 0, as the peer reads it; and these assets.
fn market_text(market: &FamilyMarket, priced: &[Option<f64>]) -> (String, Vec<usize>) {
    let assets: Vec<usize> = (0..market.asset_count).filter(|asset| priced[*asset].is_some()).collect();
    let number = |asset: usize| assets.binary_search(&asset).ok();
    let offers: Vec<String> = market
        .offers
        .iter()
        .filter_map(|offer| Some(format!("{} {} {:e} {:e}\n", number(offer.sell)?, number(offer.buy)?, offer.limit, offer.amount)))
        .collect();
    (format!("{} {}\n{}", assets.len(), offers.len(), offers.concat()), assets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_without_peers_compares_with_tatonnement() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = Report::begin("peers");
        let config = Config { rounds: 1, is_full: false, peers: None, scratch: folder.path().to_owned() };
        run(&config, &mut report).unwrap();
        let value = |name: &str| report.figures().iter().find(|figure| figure.metric == name).unwrap().value;
        assert_eq!(value("peer_markets"), 2.0);
        // Each search has one try within its time, so not every market has to be served.
        let served = value("peer_markets_served");
        assert!((1.0..=2.0).contains(&served), "{served}");
        assert!(value("peer_unserved_ours") < if served == 2.0 { 0.01 } else { 1.0 });
        assert!(value("peer_amounts_us") > 0.0);
        let walks = report.figures().iter().find(|figure| figure.metric == "peer_prices_ms_tatonnement").unwrap();
        assert!(walks.peer.is_some());
    }

    #[test]
    fn bad_prices_serve_nobody_and_good_ones_do() {
        let (_, market) = &markets(false)[1];
        let (market, whole) = in_whole_units(market).unwrap();
        let (market, accuracy) = after_commission(&market);
        let index = DemandIndex::from_offers(market.asset_count, &market.offers, Vec::new()).unwrap();
        let good = Portfolio.solve(&Problem::cold(&index, accuracy)).prices;
        let skewed: Vec<Option<f64>> = (0..).zip(&good).map(|(asset, price)| price.map(|p| p * 1.01_f64.powi(asset))).collect();
        assert!(judged(&whole, &good).unwrap().is_served);
        let bad = judged(&whole, &skewed).unwrap();
        assert!(!bad.is_served && bad.unserved > 0.01, "{}", bad.unserved);
        assert!(!judged(&whole, &vec![None; market.asset_count]).unwrap().is_served);
    }

    #[test]
    fn the_commission_is_in_the_limits_and_in_what_the_venue_may_lack() {
        let offers = vec![Offer { sell: 0, buy: 1, limit: 2.0, amount: 10.0 }];
        let (market, accuracy) = after_commission(&FamilyMarket { asset_count: 2, offers });
        // After the commission, what is sold at the new limit gets the old one.
        assert!((market.offers[0].limit * (1.0 - accuracy.eps) - 2.0).abs() < 1e-12);
        // An offer that must trade has the same limit before and after.
        assert!(((1.0 - accuracy.mu) * (1.0 - accuracy.eps) - (1.0 - 1.0 / 1024.0)).abs() < 1e-12);
        let arc = |from, to, lower| ValueArc { from, to, lower, upper: 1 << 40 };
        assert_eq!(allowance(&[arc(0, 1, 1 << 20), arc(2, 1, 1 << 20), arc(1, 0, 1 << 14)], 3), [0, -64, 0]);
    }

    /// Asset 1 must be bought for `bought`, and at most `sold` of it can be sold.
    #[test]
    fn a_difference_to_the_linear_program_has_its_cause() {
        let difference = |bought: i64, sold: i64, among: i64| {
            let arc = |from, to, lower, upper| ValueArc { from, to, lower, upper };
            let mut arcs = vec![arc(0, 1, bought, bought), arc(1, 0, 0, sold), arc(0, 2, 0, 1)];
            if among > 0 {
                arcs.extend([arc(1, 2, 0, among), arc(2, 1, 0, among)]);
            }
            let allowance = allowance(&arcs, 3);
            let network = Network::new(&arcs, &allowance).unwrap();
            match CirculationSolver::new().solve(&network) {
                Answer::Best(_) => None,
                Answer::Infeasible(cut) => Some(Difference::of(&arcs, 3, &cut).unwrap()),
            }
        };
        let must = 1 << 30;
        // The commission of what must be bought is 2^15 units.
        assert_eq!(difference(must, must - (1 << 15), 0), None);
        let Some(Difference::Tolerance(share)) = difference(must, must - (1 << 15) - 100, 0) else { panic!("a cut proves it") };
        assert!((share - 100.0 / must as f64).abs() < 1e-12, "{share}");
        // What 1 and 2 may trade with each other pays a commission that the linear program may spend.
        assert_eq!(difference(must, must - (1 << 15) - 100, must), Some(Difference::Commission));
    }

    #[test]
    fn a_peer_gets_the_assets_that_can_trade() {
        let offer = |sell, buy, limit| Offer { sell, buy, limit, amount: 10.0 };
        let market = FamilyMarket { asset_count: 3, offers: vec![offer(0, 2, 0.5), offer(1, 0, 2.0), offer(2, 0, 0.0)] };
        let (text, assets) = market_text(&market, &[Some(1.0), None, Some(2.0)]);
        assert_eq!(assets, [0, 2]);
        assert_eq!(text, "2 2\n0 1 5e-1 1e1\n1 0 0e0 1e1\n");
    }
}
