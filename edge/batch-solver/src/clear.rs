//! From a market to a clearing: prices, amounts, check, report.

use std::time::{Duration, Instant};

use thiserror::Error;
use walras_batch::Certificate;
use walras_clearing::{BatchMarket, Edition, LowerBounds, Pair, PairTrade, Proposal, Rejected, Rules, Verified, verify};
use walras_price_solver::demand::{DemandIndex, IndexError, Window};
use walras_price_solver::solve::{Budget, Newton, Outcome, Portfolio, PriceSolver, Problem, Solution, Tatonnement};
use walras_trade_amounts::{AmountsFinder, Proposed, propose_until};
use walras_types::{BatchPrice, Commission, Mu};

use crate::close_up::{CloseUp, Lens};
use crate::exact;
use crate::index::{self, Scale};
use crate::kept::KeptIndex;
use crate::quality::{self, Report, Times};

/// How prices are searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Solver {
    /// By the market's structure, with fallbacks.
    #[default]
    Portfolio,
    /// By Newton's method with continuation alone.
    Newton,
    /// As in the papers, for comparison.
    Tatonnement,
}

impl Solver {
    fn as_price_solver(self) -> Box<dyn PriceSolver> {
        match self {
            Self::Portfolio => Box::new(Portfolio),
            Self::Newton => Box::new(Newton),
            Self::Tatonnement => Box::new(Tatonnement::default()),
        }
    }
}

/// Which offers a search of prices looks at, one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sight {
    /// Of large markets those near the rates, and all where these do not suffice; of others all.
    #[default]
    CloseUps,
    /// All, for comparison.
    AllOffers,
}

/// Which offers make prices. Pools always do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PriceMakers {
    /// Sell offers; buy offers only in pairs with an asset that has no price without them.
    #[default]
    SellOffers,
    /// Buy offers too, for comparison. They count for what they need at the rates of the round before.
    AllOffers {
        /// Rounds end here if rates have not settled.
        rounds_max: usize,
    },
}

/// How a market is to be cleared.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The share of what each fill buys that stays with the venue.
    pub commission: Commission,
    /// A sell offer whose limit is more than this share below the rate is clearly in the money, and should trade in full.
    pub mu: Mu,
    /// How prices are searched.
    pub solver: Solver,
    /// Among which offers.
    pub sight: Sight,
    /// Which of the offers make prices.
    pub makers: PriceMakers,
    /// How long.
    pub budget: Budget<'a>,
    /// Prices to start from, one or none per asset, such as the last batch's; without, it starts cold.
    pub start: Option<&'a [Option<BatchPrice>]>,
    /// How rules are read: [`Edition::NEWEST`], but of a market that says otherwise.
    pub edition: Edition,
    /// What happens when not all offers that must trade can: [`LowerBounds::BestEffort`] trades what can and reports the rest,
    /// [`LowerBounds::Required`] fails.
    pub lower_bounds: LowerBounds,
}

impl Settings<'_> {
    /// The default: cold, 10,000 queries, best effort.
    #[must_use]
    pub fn new(commission: Commission, mu: Mu) -> Self {
        let (solver, budget, lower_bounds) = (Solver::Portfolio, Budget::queries(10_000), LowerBounds::BestEffort);
        let (sight, makers, edition) = (Sight::CloseUps, PriceMakers::SellOffers, Edition::NEWEST);
        Self { commission, mu, solver, sight, makers, budget, start: None, edition, lower_bounds }
    }

    /// What the clearing is checked by.
    #[must_use]
    pub fn rules(&self) -> Rules {
        Rules { edition: self.edition, commission: self.commission, mu: self.mu, lower_bounds: self.lower_bounds }
    }
}

/// Why there is no clearing.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ClearError {
    /// The offers are too many.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The start prices are not one per asset.
    #[error("{found} start prices for {expected} assets: give a price or none for each asset, or start cold")]
    StartPrices {
        /// Assets of the market.
        expected: usize,
        /// Start prices given.
        found: usize,
    },
    /// [`LowerBounds::Required`], and some offers clearly in the money would not trade in full.
    #[error(
        "offers clearly in the money would not trade in full in {pair_count} pairs, first in {first:?}: \
         allow more queries, a larger mu or commission, or lower bounds by best effort"
    )]
    LowerBounds {
        /// Pairs that would sell too little.
        pair_count: usize,
        /// The first of them.
        first: Option<Pair>,
    },
    /// The core rejected what was proposed. Nothing was cleared.
    #[error("the core rejects the clearing that was found ({0}): this is a defect of the solver; please report it with the offers")]
    Rejected(Rejected),
}

/// A clearing that the core accepted.
#[derive(Clone, Debug)]
pub struct Cleared<'m> {
    /// Prices and amounts, as the engine would be told them.
    pub proposal: Proposal,
    /// The same as the core found it right: the fills of every offer.
    pub verified: Verified<'m>,
    /// What it is worth, and what it took.
    pub report: Report,
}

/// Clears a market.
///
/// Buy offers are filled at the prices that sell offers and pools make, and do not take part in making them, with one exception: where
/// an asset would have no price without them, the buy offers of its pairs count as if they sold what they need. For comparison, all
/// buy offers may count so ([`PriceMakers`]).
///
/// # Errors
/// See [`ClearError`]. Where nothing can trade, the clearing is empty and no error.
pub fn clear<'m>(market: &'m BatchMarket, settings: &Settings<'_>) -> Result<Cleared<'m>, ClearError> {
    clear_with(&mut KeptIndex::default(), market, settings)
}

/// [`clear`], with the index that was kept of the market as it was before.
///
/// # Errors
/// See [`ClearError`].
pub fn clear_with<'m>(kept: &mut KeptIndex, market: &'m BatchMarket, settings: &Settings<'_>) -> Result<Cleared<'m>, ClearError> {
    clear_by(Margins::WhereBelow, kept, market, settings)
}

/// [`clear_with`], with these margins.
pub(crate) fn clear_by<'m>(
    margins: Margins,
    kept: &mut KeptIndex,
    market: &'m BatchMarket,
    settings: &Settings<'_>,
) -> Result<Cleared<'m>, ClearError> {
    let mut times = Times::default();
    let (priced, proposed) = search(market, settings, margins, kept, &mut times)?;
    let verified =
        timed(&mut times.verify, || verify(market, &proposed.proposal, &best_effort(settings))).map_err(ClearError::Rejected)?;
    let shortfall = verified.shortfall();
    if settings.lower_bounds == LowerBounds::Required && shortfall.pair_count > 0 {
        return Err(ClearError::LowerBounds { pair_count: shortfall.pair_count, first: shortfall.first.map(|(pair, _)| pair) });
    }
    let mut report = timed(&mut times.report, || quality::report(&priced, &proposed, &verified, &settings.rules()));
    report.times = times;
    Ok(Cleared { proposal: proposed.proposal, verified, report })
}

/// Prices and amounts, neither checked nor reported.
pub(crate) fn search(
    market: &BatchMarket,
    settings: &Settings<'_>,
    margins: Margins,
    kept: &mut KeptIndex,
    times: &mut Times,
) -> Result<(Priced, Proposed), ClearError> {
    let lens = (settings.sight == Sight::CloseUps && Lens::is_for(market)).then_some(Lens::USUAL);
    let rules = best_effort(settings);
    let Budget { deadline, .. } = settings.budget;
    let pricing =
        Settings { budget: Budget { deadline: deadline.map(|at| at.sooner(PRICES_SHARE)), ..settings.budget }, ..*settings };
    let is_over = || settings.budget.is_over();
    let mut attempt = |margin: f64, start: Option<&[Option<BatchPrice>]>| -> Result<(Priced, Proposed), ClearError> {
        let priced = find_prices(market, &Settings { start, ..pricing }, lens, margin, kept, times)?;
        let proposed =
            timed(&mut times.amounts, || propose_until(&mut AmountsFinder::new(), market, &priced.prices, &rules, &is_over));
        Ok((priced, proposed))
    };
    let left = |(_, proposed): &(Priced, Proposed)| Left::of(market, proposed, settings, &rules);
    let mut best = attempt(margins.first(), settings.start)?;
    let mut of_best = None;
    for margin in margins.others() {
        // Most often no pair sells less than it should: then there is nothing to work out.
        if best.1.amounts.below_lower_count == 0 || pricing.budget.is_over() {
            break;
        }
        let so_far = *of_best.get_or_insert_with(|| left(&best));
        if so_far.is_nothing() {
            break;
        }
        let other = attempt(*margin, start_with_margin(&best.0, settings.start))?;
        let of_other = left(&other);
        if of_other < so_far {
            (best, of_best) = (other, Some(of_other));
        }
    }
    if settings.commission == Commission::NONE && settings.edition == Edition::Second {
        at_limits(market, &rules, &mut best, times, &is_over);
    }
    Ok(best)
}

/// Where a search with a margin begins: at the prices without it, where these clear, for it asks for prices within mu of them. They are a
/// function of the market and the settings, so the result is one, too.
fn start_with_margin<'p>(best: &'p Priced, given: Option<&'p [Option<BatchPrice>]>) -> Option<&'p [Option<BatchPrice>]> {
    if best.solution.outcome < Outcome::Approximate { Some(&best.prices) } else { given }
}

/// What a clearing leaves undone, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Left {
    /// Pairs below their lower bounds, if these are required. Otherwise units that do not count ([`walras_batch::Quality`]) may be
    /// missing from any pair.
    below_count: usize,
    unserved_ppb: u32,
    gap_ppb: u32,
}

impl Left {
    fn of(market: &BatchMarket, proposed: &Proposed, settings: &Settings<'_>, rules: &Rules) -> Self {
        let Certificate { gap_ppb, unserved_ppb, .. } = Certificate::find(market, &proposed.proposal, rules);
        let below_count = match settings.lower_bounds {
            LowerBounds::Required => proposed.amounts.below_lower_count,
            LowerBounds::BestEffort => 0,
        };
        Self { below_count, unserved_ppb, gap_ppb }
    }

    /// Whether every offer clearly in the money is served. Prices with margins can do no more for these.
    fn is_nothing(self) -> bool {
        self.below_count == 0 && self.unserved_ppb == 0
    }
}

/// Without commission offers may meet at one rate alone: tries prices that give such rates exactly, and takes them where more
/// trades by them and no more is unserved.
fn at_limits(
    market: &BatchMarket,
    rules: &Rules,
    (priced, proposed): &mut (Priced, Proposed),
    times: &mut Times,
    is_over: &dyn Fn() -> bool,
) {
    let Some(prices) = exact::at_limits(market, &priced.prices, is_over) else { return };
    let other = timed(&mut times.amounts, || propose_until(&mut AmountsFinder::new(), market, &prices, rules, is_over));
    let unserved = |proposed: &Proposed| Certificate::find(market, &proposed.proposal, rules).unserved_ppb;
    if volume(&other.proposal) > volume(&proposed.proposal) && unserved(&other) <= unserved(proposed) {
        (priced.prices, *proposed) = (prices, other);
    }
}

/// The value of all that is sold.
fn volume(proposal: &Proposal) -> f64 {
    let value = |trade: &PairTrade| {
        let price = proposal.prices[trade.pair.sell.index()].map_or(0.0, index::float);
        trade.sold.get() as f64 * price
    };
    proposal.trades.iter().map(value).sum()
}

/// The share of the time until the deadline that prices may take: amounts need the rest.
const PRICES_SHARE: f64 = 0.7;

/// Where an offer is so large that a small share of it balances the market, prices are so near its limit that hardly any part of it can be honoured in
/// whole units, and those who would trade with it find nobody. Prices that leave it such a share of mu serve them.
pub(crate) const MARGINS: [f64; 2] = [1.0 / 16.0, 1.0 / 2.0];

/// Which margins prices are looked for with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Margins {
    /// None, and those of [`MARGINS`] as long as an offer clearly in the money is not served.
    WhereBelow,
    /// This one alone.
    Only(f64),
}

impl Margins {
    fn first(self) -> f64 {
        match self {
            Self::WhereBelow => 0.0,
            Self::Only(margin) => margin,
        }
    }

    fn others(self) -> &'static [f64] {
        match self {
            Self::WhereBelow => &MARGINS,
            Self::Only(_) => &[],
        }
    }
}

fn best_effort(settings: &Settings<'_>) -> Rules {
    Rules { lower_bounds: LowerBounds::BestEffort, ..settings.rules() }
}

fn timed<T>(time: &mut Duration, work: impl FnOnce() -> T) -> T {
    let since = Instant::now();
    let result = work();
    *time += since.elapsed();
    result
}

/// Prices in the core's format, and how they were found.
#[derive(Debug)]
pub(crate) struct Priced {
    pub(crate) prices: Vec<Option<BatchPrice>>,
    pub(crate) solution: Solution,
    /// Pairs whose buy offers took part.
    pub(crate) buying_pair_count: usize,
    /// Searches with buy offers.
    pub(crate) buy_round_count: usize,
    /// Whether the last of these kept the rates that buy offers counted for.
    pub(crate) are_buy_rates_settled: bool,
}

/// Rounds in which buy offers that have to take part count for what they need at the rate of the round before.
const BUY_ROUNDS_MAX: usize = 4;

/// Close-ups before all offers are looked at, and queries in each: where these do not suffice, more offers help, not more queries.
const CLOSE_UPS_MAX: usize = 4;
const CLOSE_UP_QUERIES_MAX: u64 = 500;

/// Prices by close-ups, if there is a lens for them, else or where they lead nowhere by all offers.
pub(crate) fn find_prices(
    market: &BatchMarket,
    settings: &Settings<'_>,
    lens: Option<Lens>,
    margin: f64,
    kept: &mut KeptIndex,
    times: &mut Times,
) -> Result<Priced, ClearError> {
    let start = settings.start.map(|start| {
        let float = |price: &Option<BatchPrice>| price.map_or(0.0, index::float);
        (start.len() == market.asset_count()).then(|| start.iter().map(float).collect::<Vec<f64>>()).ok_or(start.len())
    });
    let start = start.transpose().map_err(|found| ClearError::StartPrices { expected: market.asset_count(), found })?;
    let scale = Scale::new(settings.commission, settings.mu, margin);
    let mut search = Search { market, settings, scale, is_first: margin == 0.0, queries: 0, kept, times };
    let by_close_ups = lens.map(|lens| search.by_close_ups(lens, start.as_deref())).transpose()?;
    let mut solution = match by_close_ups {
        Some(Seen::Clears(solution)) => solution,
        other => {
            // With margins limits are others: the index that is kept is of those without.
            let among_all = if margin == 0.0 {
                search.among_sells(start.as_deref())?
            } else {
                search.among_all(&|_| None, start.as_deref())?
            };
            match (among_all, other) {
                (Some(solution), _) | (None, Some(Seen::Blurred(solution))) => solution,
                (None, _) => search.unpriced(),
            }
        }
    };
    let is_unpriced =
        |prices: &[Option<f64>], pair: Pair| prices[pair.sell.index()].is_none() || prices[pair.buy.index()].is_none();
    let with_buys = market.books().iter().filter(|book| !book.buys().is_empty()).map(|book| book.pair());
    let (all_take_part, rounds_max) = match settings.makers {
        PriceMakers::SellOffers => (false, BUY_ROUNDS_MAX),
        PriceMakers::AllOffers { rounds_max } => (true, rounds_max),
    };
    let needed: Vec<Pair> = with_buys.filter(|&pair| all_take_part || is_unpriced(&solution.prices, pair)).collect();
    let (mut buy_round_count, mut are_buy_rates_settled) = (0, needed.is_empty());
    if !needed.is_empty() {
        for _ in 0..rounds_max {
            let prices = solution.prices.clone();
            let price = |asset: usize| prices[asset].unwrap_or(0.0);
            let rate = |pair: Pair| {
                let rate = price(pair.sell.index()) / price(pair.buy.index()) * index::kept(settings.commission);
                // Without a price yet: what they need at their limit.
                needed.binary_search(&pair).ok().map(|_| if rate.is_finite() { rate } else { 0.0 })
            };
            let from = floats(&prices);
            let is_first = needed.iter().any(|&pair| is_unpriced(&prices, pair));
            let from = if is_first { start.as_deref() } else { Some(&from[..]) };
            let Some(next) = search.among_all(&rate, from)? else { break };
            let is_still = needed.iter().all(|&pair| {
                let ratio = |prices: &[Option<f64>]| Some(prices[pair.sell.index()]? / prices[pair.buy.index()]?);
                match (ratio(&prices), ratio(&next.prices)) {
                    (Some(old), Some(new)) => (old / new - 1.0).abs() < 1e-9,
                    (old, new) => old.is_none() && new.is_none(),
                }
            });
            solution = next;
            buy_round_count += 1;
            are_buy_rates_settled = is_still;
            if is_still || settings.budget.is_over() {
                break;
            }
        }
    }
    let prices = index::batch_prices(market, &solution.prices);
    Ok(Priced { prices, solution, buying_pair_count: needed.len(), buy_round_count, are_buy_rates_settled })
}

/// A search of prices on its way.
struct Search<'a> {
    market: &'a BatchMarket,
    settings: &'a Settings<'a>,
    scale: Scale,
    /// Whether there are no prices yet: with a margin there are those without one.
    is_first: bool,
    /// Spent so far.
    queries: u64,
    kept: &'a mut KeptIndex,
    times: &'a mut Times,
}

/// What close-ups show.
enum Seen {
    /// Prices that clear the market.
    Clears(Solution),
    /// Prices that are not good, or at which offers were not looked at one by one: better than none.
    Blurred(Solution),
}

impl Search<'_> {
    /// From all sell offers and pools; `None` when it is over before they are indexed.
    fn among_sells(&mut self, start: Option<&[f64]>) -> Result<Option<Solution>, IndexError> {
        let (market, divisor, budget) = (self.market, self.scale.kept, self.settings.budget);
        let is_late = is_late(market, self.is_first, budget);
        let index = timed(&mut self.times.index, || self.kept.of(market, divisor, &is_late))?;
        let Some(index) = index else { return Ok(None) };
        let problem = Problem { index, start, accuracy: self.scale.accuracy, budget, feasible: None };
        Ok(Some(solve(self.settings.solver, problem, &mut self.queries, self.times)))
    }

    /// From all sell offers and pools, and from buy offers as far as they have a rate; `None` when it is over before they are indexed.
    fn among_all(&mut self, buy_rate: index::BuyRate<'_>, start: Option<&[f64]>) -> Result<Option<Solution>, IndexError> {
        let (market, kept) = (self.market, self.scale.kept);
        let is_late = is_late(market, self.is_first, self.settings.budget);
        let index = timed(&mut self.times.index, || index::index_with_buys(market, kept, buy_rate, &is_late))?;
        Ok(index.map(|index| self.in_index(&index, start, u64::MAX)))
    }

    /// Prices of nothing.
    fn unpriced(&self) -> Solution {
        let prices = vec![None; self.market.asset_count()];
        Solution { prices, outcome: Outcome::Approximate, queries: self.queries, worst_excess: 1.0, blocks: 0 }
    }

    /// From close-ups, until one has the offers around the prices that were found in it.
    fn by_close_ups(&mut self, lens: Lens, start: Option<&[f64]>) -> Result<Seen, IndexError> {
        let (market, Scale { kept, accuracy }) = (self.market, self.scale);
        let window = Window::of_mu(accuracy.mu);
        let mut around: Option<Vec<f64>> = start.map(<[f64]>::to_vec);
        let mut blurred = None;
        for _ in 0..CLOSE_UPS_MAX {
            if blurred.is_some() && self.settings.budget.is_over() {
                break;
            }
            let close_up = timed(&mut self.times.index, || CloseUp::taken(market, kept, around.as_deref(), window, lens))?;
            let solution = self.in_index(&close_up.index, around.as_deref(), CLOSE_UP_QUERIES_MAX);
            if close_up.is_sharp_at(&solution.prices, window) {
                let is_good = solution.outcome < Outcome::Approximate;
                return Ok(if is_good { Seen::Clears(solution) } else { Seen::Blurred(solution) });
            }
            around = Some(floats(&solution.prices));
            blurred = Some(solution);
        }
        Ok(Seen::Blurred(blurred.expect("one close-up is taken in any case")))
    }

    fn in_index(&mut self, index: &DemandIndex, start: Option<&[f64]>, queries_max: u64) -> Solution {
        let Budget { queries, .. } = self.settings.budget;
        let budget = Budget { queries: queries.min(self.queries.saturating_add(queries_max)), ..self.settings.budget };
        let problem = Problem { index, start, accuracy: self.scale.accuracy, budget, feasible: None };
        solve(self.settings.solver, problem, &mut self.queries, self.times)
    }
}

/// Says when an index of all offers is no longer worth making. The first one of a market without close-ups always is: without it there
/// are no prices at all, and most such markets are small.
fn is_late<'a>(market: &BatchMarket, is_first: bool, budget: Budget<'a>) -> impl Fn() -> bool + use<'a> {
    let is_needed = is_first && !Lens::is_for(market);
    move || !is_needed && budget.is_over()
}

/// Solves a problem whose budget counts what was spent before.
fn solve(solver: Solver, mut problem: Problem<'_>, spent: &mut u64, times: &mut Times) -> Solution {
    problem.budget.queries = problem.budget.queries.saturating_sub(*spent);
    let mut solution = timed(&mut times.prices, || solver.as_price_solver().solve(&problem));
    *spent += solution.queries;
    solution.queries = *spent;
    solution
}

/// Prices as a start of the next search; zero for none.
fn floats(prices: &[Option<f64>]) -> Vec<f64> {
    prices.iter().map(|price| price.unwrap_or(0.0)).collect()
}

#[cfg(test)]
mod tests;
