//! Clarabel on the convex program of a batch market: reads a market, solves it several times, prints times and prices.
//!
//! The market is a text: a line "ASSETS OFFERS", then for each offer a line "SELL BUY LIMIT AMOUNT". The offer sells AMOUNT of
//! asset SELL for at least LIMIT units of asset BUY each; a limit of 0 means no limit. Every asset is sold and bought by some
//! offer.
//!
//! Devanur, Garg and Vegh (2016) give a convex program whose optimum, always zero, is an equilibrium of a linear exchange market.
//! An offer is an agent that values a unit of the bought asset at 1 and a unit of the sold asset at its limit r. With prices p, the
//! spending y of a budget e p_a, and the best utility per money 1 / beta:
//!
//! ```text
//! minimise    sum  e p_a log(p_a / beta) - (e p_a - y) log r
//! subject to  0 <= y <= e p_a,   r beta <= p_a,   beta <= p_b,
//!             of every asset, buyers spend as much money as sellers do,   sum p = number of assets
//! ```
//!
//! In conic form, `t >= p_a log(p_a / beta)` is the exponential cone of `(-t, p_a, beta)`. The amounts of an asset are divided by
//! all that is for sale of it, so that numbers are of similar size.

use std::process::ExitCode;
use std::time::Instant;

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};

const USAGE: &str = "usage: clarabel-prices FILE [--rounds N] [--seconds N]";
const VERSION: &str = "0.11.1";

struct Offer {
    sell: usize,
    buy: usize,
    limit: f64,
    amount: f64,
}

struct Market {
    asset_count: usize,
    offers: Vec<Offer>,
}

impl Market {
    fn read(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let head: Vec<usize> = numbers(lines.next().unwrap_or_default()).ok_or("the first line is not ASSETS OFFERS")?;
        let [asset_count, offer_count] = head[..] else { return Err("the first line is not ASSETS OFFERS".to_owned()) };
        let mut offers = Vec::new();
        for line in lines.filter(|line| !line.trim().is_empty()) {
            let wrong = || format!("`{line}` is not SELL BUY LIMIT AMOUNT between two different assets");
            let fields: Vec<f64> = numbers(line).ok_or_else(wrong)?;
            let [sell, buy, limit, amount] = fields[..] else { return Err(wrong()) };
            let is_asset = |number: f64| number.fract() == 0.0 && (0.0..asset_count as f64).contains(&number);
            let is_sound = limit >= 0.0 && amount > 0.0 && limit.is_finite() && amount.is_finite();
            if sell == buy || !is_asset(sell) || !is_asset(buy) || !is_sound {
                return Err(wrong());
            }
            offers.push(Offer { sell: sell as usize, buy: buy as usize, limit, amount });
        }
        if offers.len() != offer_count {
            return Err(format!("{offer_count} offers are announced, and there are {}", offers.len()));
        }
        let market = Self { asset_count, offers };
        let is_bought = |asset: usize| market.offers.iter().any(|offer| offer.buy == asset);
        match (market.supply().iter().position(|units| *units == 0.0), (0..asset_count).find(|asset| !is_bought(*asset))) {
            (Some(asset), _) => Err(format!("asset {asset} is sold by nobody: leave it out")),
            (_, Some(asset)) => Err(format!("asset {asset} is bought by nobody: leave it out")),
            (None, None) => Ok(market),
        }
    }

    fn supply(&self) -> Vec<f64> {
        let mut supply = vec![0.0; self.asset_count];
        self.offers.iter().for_each(|offer| supply[offer.sell] += offer.amount);
        supply
    }
}

fn numbers<T: std::str::FromStr>(line: &str) -> Option<Vec<T>> {
    line.split_whitespace().map(|word| word.parse().ok()).collect()
}

/// Rows of `A x + s = b`, cone by cone.
#[derive(Default)]
struct Rows {
    rows: Vec<usize>,
    columns: Vec<usize>,
    values: Vec<f64>,
    bounds: Vec<f64>,
}

impl Rows {
    fn push(&mut self, entries: &[(usize, f64)], bound: f64) {
        for &(column, value) in entries {
            self.rows.push(self.bounds.len());
            self.columns.push(column);
            self.values.push(value);
        }
        self.bounds.push(bound);
    }
}

struct Program {
    costs: Vec<f64>,
    rows: Rows,
    cones: Vec<SupportedConeT<f64>>,
}

/// Variables: the prices, then the spending of every offer, then every beta, then every t.
fn program(market: &Market) -> Program {
    let (n, m) = (market.asset_count, market.offers.len());
    let supply = market.supply();
    let (spending, beta, bound) = (n, n + m, n + 2 * m);
    let mut costs = vec![0.0; n + 3 * m];
    let (mut zero, mut others, mut exponential) = (Rows::default(), Rows::default(), Rows::default());
    let mut balances: Vec<Vec<(usize, f64)>> = vec![Vec::new(); n];
    for (number, offer) in market.offers.iter().enumerate() {
        let Offer { sell, buy, limit, amount } = *offer;
        let (amount, limit) = (amount / supply[sell], limit * supply[sell] / supply[buy]);
        let (spends, beta, bound) = (spending + number, beta + number, bound + number);
        balances[sell].push((spends, 1.0));
        balances[buy].push((spends, -1.0));
        costs[bound] += amount;
        others.push(&[(spends, -1.0)], 0.0);
        others.push(&[(beta, 1.0), (buy, -1.0)], 0.0);
        let unspent = [(spends, 1.0), (sell, -amount)];
        if limit > 0.0 {
            costs[sell] -= amount * limit.ln();
            costs[spends] += limit.ln();
            others.push(&unspent, 0.0);
            others.push(&[(beta, limit), (sell, -1.0)], 0.0);
        } else {
            // An offer without a limit spends all it gets.
            zero.push(&unspent, 0.0);
        }
        exponential.push(&[(bound, 1.0)], 0.0);
        exponential.push(&[(sell, -1.0)], 0.0);
        exponential.push(&[(beta, -1.0)], 0.0);
    }
    balances.iter().for_each(|entries| zero.push(entries, 0.0));
    let all: Vec<(usize, f64)> = (0..n).map(|asset| (asset, 1.0)).collect();
    zero.push(&all, n as f64);
    let mut cones = vec![SupportedConeT::ZeroConeT(zero.bounds.len()), SupportedConeT::NonnegativeConeT(others.bounds.len())];
    cones.extend((0..m).map(|_| SupportedConeT::ExponentialConeT()));
    let mut rows = zero;
    for part in [others, exponential] {
        let first = rows.bounds.len();
        rows.rows.extend(part.rows.iter().map(|row| first + row));
        rows.columns.extend(part.columns);
        rows.values.extend(part.values);
        rows.bounds.extend(part.bounds);
    }
    Program { costs, rows, cones }
}

struct Solved {
    status: SolverStatus,
    iterations: u32,
    prices: Vec<f64>,
    build_ms: f64,
    solve_ms: f64,
}

fn solve(market: &Market, seconds: f64) -> Result<Solved, String> {
    let begun = Instant::now();
    let Program { costs, rows, cones } = program(market);
    let (row_count, column_count) = (rows.bounds.len(), costs.len());
    let matrix = CscMatrix::new_from_triplets(row_count, column_count, rows.rows, rows.columns, rows.values);
    let quadratic = CscMatrix::zeros((column_count, column_count));
    let settings = DefaultSettings { verbose: false, time_limit: seconds, max_threads: 1, ..DefaultSettings::default() };
    let build_ms = begun.elapsed().as_secs_f64() * 1e3;
    let begun = Instant::now();
    let mut solver = DefaultSolver::new(&quadratic, &costs, &matrix, &rows.bounds, &cones, settings)
        .map_err(|error| format!("Clarabel does not take the program: {error}"))?;
    solver.solve();
    let solve_ms = begun.elapsed().as_secs_f64() * 1e3;
    let prices =
        solver.solution.x[..market.asset_count].iter().zip(market.supply()).map(|(price, supply)| price / supply).collect();
    Ok(Solved { status: solver.solution.status, iterations: solver.solution.iterations, prices, build_ms, solve_ms })
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn run(arguments: &[String]) -> Result<String, String> {
    let [file, options @ ..] = arguments else { return Err(USAGE.to_owned()) };
    let (mut rounds, mut seconds) = (3, 60.0);
    for option in options.chunks(2) {
        match option {
            [name, value] if name == "--rounds" => {
                rounds = value.parse().ok().filter(|rounds| (1..=10_000).contains(rounds)).ok_or("--rounds takes 1 to 10000")?;
            }
            [name, value] if name == "--seconds" => {
                seconds = value.parse().ok().filter(|seconds| *seconds > 0.0).ok_or("--seconds takes a number above 0")?;
            }
            _ => return Err(format!("unknown option; {USAGE}")),
        }
    }
    let text = std::fs::read_to_string(file).map_err(|_| "the file does not open: give the path of a market")?;
    let market = Market::read(&text)?;
    let all: Vec<Solved> = (0..rounds).map(|_| solve(&market, seconds)).collect::<Result<_, _>>()?;
    let last = all.last().ok_or("--rounds takes 1 to 10000")?;
    let is_finite = last.prices.iter().all(|price| price.is_finite());
    let prices: Vec<String> = last.prices.iter().filter(|_| is_finite).map(|price| format!("{price:e}")).collect();
    Ok(format!(
        "{{\"peer\": \"clarabel\", \"version\": \"{VERSION}\", \"status\": \"{:?}\", \"iterations\": {}, \"rounds\": {rounds}, \
         \"build_ms_median\": {:.6}, \"solve_ms_median\": {:.6}, \"prices\": [{}]}}",
        last.status,
        last.iterations,
        median(all.iter().map(|solved| solved.build_ms).collect()),
        median(all.iter().map(|solved| solved.solve_ms).collect()),
        prices.join(", ")
    ))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("clarabel peer: {why}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(text: &str) -> f64 {
        let solved = solve(&Market::read(text).unwrap(), 60.0).unwrap();
        assert_eq!(solved.status, SolverStatus::Solved);
        solved.prices[0] / solved.prices[1]
    }

    #[test]
    fn markets_worked_out_by_hand() {
        // Both trade in full at any limits below the rate of 200 / 100.
        assert!((ratio("2 2\n0 1 1 100\n1 0 0.25 200\n") - 2.0).abs() < 1e-3);
        assert!((ratio("2 2\n0 1 0 100\n1 0 0 200\n") - 2.0).abs() < 1e-3);
        // The second sells only a part, so the rate is its limit: a unit of asset 1 for at least 1/3 of a unit of asset 0.
        assert!((ratio("2 2\n0 1 1 100\n1 0 0.3333333333333333 1000\n") - 3.0).abs() < 1e-3);
    }

    #[test]
    fn what_is_no_market_is_refused() {
        for (text, words) in [
            ("x\n", "the first line is not"),
            ("2 2\n0 1 1 100\n", "there are 1"),
            ("2 1\n0 0 1 100\n", "between two different assets"),
            ("2 1\n0 2 1 100\n", "between two different assets"),
            ("2 1\n-1 1 1 100\n", "between two different assets"),
            ("2 1\n0 0.5 1 100\n", "between two different assets"),
            ("2 1\n0 1 -1 100\n", "between two different assets"),
            ("2 1\n0 1 1 100\n", "asset 1 is sold by nobody"),
            ("3 2\n0 1 1 100\n2 1 1 100\n", "asset 1 is sold by nobody"),
        ] {
            let refusal = Market::read(text).err().unwrap();
            assert!(refusal.contains(words), "{refusal}");
        }
    }
}
