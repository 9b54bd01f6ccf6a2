//! SPEEDEX 2023, Appendix H: what buy offers get where sell offers make the prices, and where buy offers make them too, on real days.
//!
//! A part of each day's offers comes from participants who want a fixed amount of what they buy. Each day is cleared in three ways: they
//! send buy offers, which are filled at the prices that the other offers make; they send buy offers, which make prices with the
//! others; or they send sell offers of what the amount costs at most, with the limit at which all of it brings the amount, as
//! `walras offer buy` does. All other offers are the same. Counted is what those get whose limit is clearly in the money at the prices
//! of their own clearing, and what the search of prices took.

use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use serde_json::{Value, json};
use walras_batch_solver::{Budget, Cleared, Outcome, PriceMakers, Settings, clear};
use walras_clearing::{BatchMarket, BuyOffer, Offer, Pair, Rules};
use walras_price_solver::random::Random;
use walras_price_solver::real_days::RealDays;
use walras_types::{Amount, BatchPrice, NetRate};

use crate::history;
use crate::record::{Record, markdown};
use crate::ruler::grouped;

/// Rounds in which buy offers make prices: where the distance from the end halves with each, it is below a billionth after these.
const ROUNDS_MAX: usize = 32;

/// What to run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Days, offers of each, folder; of the accuracies the first counts.
    pub history: history::Setup,
    /// Shares of the offers that come from those who want a fixed amount: above 0, at most 1.
    pub shares: Vec<f64>,
}

impl Setup {
    /// 500 days of 50 assets, 30,000 offers each.
    #[must_use]
    pub fn full() -> Self {
        let history = history::Setup { folder: "speedex-2023/app-H", ..history::Setup::full_2023() };
        Self { history, shares: vec![0.05, 0.2, 0.5, 1.0] }
    }

    /// Some seconds in a debug build.
    #[must_use]
    pub fn small() -> Self {
        Self { history: history::Setup { folder: "speedex-2023/app-H", ..history::Setup::small() }, ..Self::full() }
    }
}

/// The offers of a day.
struct Day {
    /// Under their places as ids.
    offers: Vec<(Pair, Offer)>,
    /// What a unit of each asset is worth at the day's prices, the same for both ways of sending.
    worth: Vec<f64>,
    /// Who draws less than the share of buyers is one. So a larger share has all buyers of a smaller one.
    draws: Vec<f64>,
}

impl Day {
    /// `None` when fewer than two assets traded.
    fn of(setup: &Setup, days: &RealDays, day: usize) -> anyhow::Result<Option<Self>> {
        let (made, prices) = (days.offers(day, setup.history.offer_count, 1), days.prices(day));
        if made.is_empty() {
            return Ok(None);
        }
        let worth = prices.iter().zip(history::scales(&prices)).map(|(price, scale)| price / scale).collect();
        // Another stream than that of the offers.
        let mut random = Random::new(!(day as u64));
        let draws = made.iter().map(|_| random.unit()).collect();
        Ok(Some(Self { offers: history::standing(&made, &prices)?, worth, draws }))
    }

    /// The market in which this share of the offers are buy offers.
    fn market(&self, buyers: f64) -> anyhow::Result<BatchMarket> {
        let (mut sells, mut buys) = (Vec::new(), Vec::new());
        for ((pair, offer), draw) in self.offers.iter().zip(&self.draws) {
            if *draw < buyers {
                buys.push((*pair, as_buy_offer(offer)?));
            } else {
                sells.push((*pair, *offer));
            }
        }
        Ok(BatchMarket::build(self.worth.len(), &sells, &buys, Vec::new())?)
    }
}

/// Buys what a full fill of the sell offer brings at least, for at most what that sells.
fn as_buy_offer(offer: &Offer) -> anyhow::Result<BuyOffer> {
    let key = offer.key();
    BuyOffer::new(BatchPrice::ZERO, key.tie, key.id, offer.asked(), offer.amount())
        .map_err(|error| anyhow!("offer {} as a buy offer: {error}", key.id.0))
}

/// What one offer trades, in units.
#[derive(Clone, Copy, Debug, Default)]
struct Traded {
    sold: u64,
    bought: u64,
}

/// By the places of the offers.
fn traded(cleared: &Cleared<'_>, offer_count: usize) -> anyhow::Result<Vec<Traded>> {
    let mut all = vec![Traded::default(); offer_count];
    for clearing in cleared.verified.pairs() {
        let fills = cleared.verified.fills(clearing);
        for fill in fills.sells().chain(fills.buys()) {
            let place = all.get_mut(usize::try_from(fill.id.0)?).context("ids are the places of the offers")?;
            *place = Traded { sold: fill.sold.get(), bought: fill.bought.get() };
        }
    }
    Ok(all)
}

/// The highest limit that is clearly in the money in a pair; `None` where it has no rate.
fn clear_limit(prices: &[Option<BatchPrice>], pair: Pair, rules: &Rules) -> Option<BatchPrice> {
    let (sell, buy) = (prices[pair.sell.index()]?, prices[pair.buy.index()]?);
    let (net, less_mu) = (NetRate::new(sell, buy, rules.commission)?, NetRate::less_mu(sell, buy, rules.mu)?);
    Some(net.highest_limit().min(less_mu.highest_limit()))
}

/// What some participants want and get whose limit is clearly in the money. Values are at the day's prices.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    offers: usize,
    /// Of these, those that get all they want.
    full: usize,
    wanted: f64,
    left: f64,
    /// What they get beyond what they want.
    beyond: f64,
}

impl Served {
    fn add(&mut self, wanted: Amount, got: u64, worth: f64) {
        let wanted = wanted.get();
        self.offers += 1;
        self.full += usize::from(got >= wanted);
        self.wanted += wanted as f64 * worth;
        self.left += wanted.saturating_sub(got) as f64 * worth;
        self.beyond += got.saturating_sub(wanted) as f64 * worth;
    }

    fn add_all(&mut self, other: &Self) {
        self.offers += other.offers;
        self.full += other.full;
        self.wanted += other.wanted;
        self.left += other.left;
        self.beyond += other.beyond;
    }

    /// Of the offers; all of none.
    fn full_share(&self) -> f64 {
        if self.offers == 0 { 1.0 } else { self.full as f64 / self.offers as f64 }
    }

    /// Of the value wanted; nothing of none.
    fn left_share(&self) -> f64 {
        if self.wanted > 0.0 { self.left / self.wanted } else { 0.0 }
    }

    /// Of the value wanted; nothing of none.
    fn beyond_share(&self) -> f64 {
        if self.wanted > 0.0 { self.beyond / self.wanted } else { 0.0 }
    }

    fn to_json(self) -> Value {
        json!({
            "clearly_in_the_money": self.offers,
            "filled_in_full_share": self.full_share(),
            "value_left_out_share": self.left_share(),
            "value_beyond_share": self.beyond_share(),
        })
    }
}

/// What came of one share of buyers by one way of sending, over all days.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    buyers: Served,
    others: Served,
    /// The largest share of the buyers' value that a day left out, and the days that left some out.
    worst_day: f64,
    days_short: usize,
    /// What all offers sell.
    volume: f64,
    without_rate: usize,
    search: Searches,
}

/// What the search of prices took and came to, over the days that were cleared.
#[derive(Clone, Copy, Debug, Default)]
struct Searches {
    days: usize,
    /// Days without a clearing.
    failed: usize,
    approximate: usize,
    /// Days on which buy offers took part.
    with_buyers: usize,
    /// Of these, those on which rates still moved after the last round.
    unsettled: usize,
    /// Of those with buyers.
    rounds: usize,
    rounds_most: usize,
    queries: u64,
    time: Duration,
    /// The largest share of an asset's smoothed demand that its supply does not cover.
    worst_excess: f64,
    /// The utility of sell offers that is not realised, as a share of all in reach.
    unrealised_share: f64,
}

impl Searches {
    fn add(&mut self, cleared: &Cleared<'_>) {
        let report = &cleared.report;
        self.days += 1;
        self.approximate += usize::from(report.outcome == Outcome::Approximate);
        self.with_buyers += usize::from(report.buying_pair_count > 0);
        self.unsettled += usize::from(!report.are_buy_rates_settled);
        self.rounds += report.buy_round_count;
        self.rounds_most = self.rounds_most.max(report.buy_round_count);
        self.queries += report.queries;
        self.time += report.times.index + report.times.prices;
        self.worst_excess = self.worst_excess.max(report.worst_excess);
        self.unrealised_share += report.unrealised_share();
    }

    /// Of a day that was cleared; nothing of none.
    fn mean(&self, of_all: f64) -> f64 {
        if self.days == 0 { 0.0 } else { of_all / self.days as f64 }
    }

    fn time_ms(&self) -> f64 {
        self.mean(1e3 * self.time.as_secs_f64())
    }

    fn to_json(self) -> Value {
        json!({
            "days": self.days,
            "days_failed": self.failed,
            "days_approximate": self.approximate,
            "days_priced_by_buy_offers": self.with_buyers,
            "days_with_unsettled_rates": self.unsettled,
            "buy_rounds": { "mean": self.mean(self.rounds as f64), "max": self.rounds_most },
            "queries_mean": self.mean(self.queries as f64),
            "prices_ms_mean": self.time_ms(),
            "worst_excess_max": self.worst_excess,
            "unrealised_share_of_sell_offers_mean": self.mean(self.unrealised_share),
        })
    }
}

impl Tally {
    fn add(&mut self, day: &Day, share: f64, cleared: &Cleared<'_>, rules: &Rules) -> anyhow::Result<()> {
        let (mut buyers, mut others) = (Served::default(), Served::default());
        let traded = traded(cleared, day.offers.len())?;
        for (((pair, offer), draw), traded) in day.offers.iter().zip(&day.draws).zip(traded) {
            let [sell, buy] = [pair.sell, pair.buy].map(|asset| day.worth[asset.index()]);
            self.volume += traded.sold as f64 * sell;
            let Some(highest) = clear_limit(&cleared.proposal.prices, *pair, rules) else {
                self.without_rate += 1;
                continue;
            };
            if offer.key().limit > highest {
                continue;
            }
            if *draw < share {
                buyers.add(offer.asked(), traded.bought, buy);
            } else {
                others.add(offer.amount(), traded.sold, sell);
            }
        }
        self.worst_day = self.worst_day.max(buyers.left_share());
        self.days_short += usize::from(buyers.left > 0.0);
        self.search.add(cleared);
        self.buyers.add_all(&buyers);
        self.others.add_all(&others);
        Ok(())
    }

    fn to_json(self) -> Value {
        json!({
            "buyers": self.buyers.to_json(),
            "other_offers": self.others.to_json(),
            "worst_day_value_left_out_share": self.worst_day,
            "days_with_value_left_out": self.days_short,
            "offers_without_rate": self.without_rate,
            "search": self.search.to_json(),
        })
    }
}

/// One share of buyers.
#[derive(Clone, Copy, Debug, Default)]
struct Compared {
    as_buy_offers: Tally,
    as_price_makers: Tally,
    as_sell_offers: Tally,
}

impl Compared {
    /// In the order of the tables.
    fn by_way(&self) -> [(&'static str, &Tally); 3] {
        [
            ("buy offers", &self.as_buy_offers),
            ("buy offers that make prices", &self.as_price_makers),
            ("sell offers", &self.as_sell_offers),
        ]
    }

    /// The value that trades in a way, of the value that trades where all are sell offers.
    fn volume_ratio(&self, tally: &Tally) -> f64 {
        tally.volume / self.as_sell_offers.volume.max(f64::MIN_POSITIVE)
    }
}

/// The same, but buy offers make prices too. Each round may take as many queries as a whole search without them.
fn with_makers<'a>(settings: &Settings<'a>) -> Settings<'a> {
    let queries = settings.budget.queries.saturating_mul(ROUNDS_MAX as u64);
    let budget = Budget { queries, ..settings.budget };
    Settings { makers: PriceMakers::AllOffers { rounds_max: ROUNDS_MAX }, budget, ..*settings }
}

/// Runs it.
///
/// # Errors
/// When no day has trade, a market is not cleared, or a buy offer gets more than it buys.
pub fn run(setup: &Setup, days: &RealDays) -> anyhow::Result<Record> {
    let settings = history::settings(*setup.history.bits.first().context("an accuracy is needed")?)?;
    let rules = settings.rules();
    let mut all = vec![Compared::default(); setup.shares.len()];
    let mut cleared_days = 0;
    for day in 0..days.len() {
        let Some(today) = Day::of(setup, days, day)? else { continue };
        cleared_days += 1;
        let sells_alone = today.market(0.0)?;
        let as_sells = clear(&sells_alone, &settings).with_context(|| format!("day {day} as sell offers"))?;
        for (share, compared) in setup.shares.iter().zip(&mut all) {
            let mixed = today.market(*share)?;
            let as_buys = clear(&mixed, &settings).with_context(|| format!("day {day}, {share} of the offers as buy offers"))?;
            compared.as_buy_offers.add(&today, *share, &as_buys, &rules)?;
            // Prices need not exist: a day without them is a result.
            match clear(&mixed, &with_makers(&settings)) {
                Ok(cleared) => compared.as_price_makers.add(&today, *share, &cleared, &rules)?,
                Err(error) => {
                    println!("day {day}, {share} of the offers as buy offers that make prices: {error}");
                    compared.as_price_makers.search.failed += 1;
                }
            }
            compared.as_sell_offers.add(&today, *share, &as_sells, &rules)?;
        }
        if (day + 1).is_multiple_of(100) {
            println!("{}: {} days done", setup.history.folder, day + 1);
        }
    }
    ensure!(cleared_days > 0, "no day on which two assets traded: are these the right histories?");
    let bought = all.iter().flat_map(|compared| [&compared.as_buy_offers, &compared.as_price_makers]);
    let beyond = bought.map(|tally| tally.buyers.beyond).sum::<f64>();
    ensure!(beyond <= 0.0, "buy offers got more than they buy, by a value of {beyond}");
    Ok(record(setup, days, cleared_days, &all))
}

fn record(setup: &Setup, days: &RealDays, cleared_days: usize, all: &[Compared]) -> Record {
    let (eps, mu) = setup.history.bits[0];
    let result = json!({
        "asset_count": days.asset_count(),
        "days": cleared_days,
        "offer_count": setup.history.offer_count,
        "eps_bits": eps,
        "mu_bits": mu,
        "shares": setup.shares.iter().zip(all).map(|(share, compared)| json!({
            "share_of_buyers": share,
            "as_buy_offers": compared.as_buy_offers.to_json(),
            "as_price_makers": compared.as_price_makers.to_json(),
            "as_sell_offers": compared.as_sell_offers.to_json(),
            "volume_ratio": compared.volume_ratio(&compared.as_buy_offers),
            "volume_ratio_of_price_makers": compared.volume_ratio(&compared.as_price_makers),
        })).collect::<Vec<_>>(),
    });
    let header = [
        "buyers",
        "sent as",
        "clearly in the money",
        "filled in full",
        "value left out",
        "on the worst day",
        "days with some left out",
        "beyond what they want",
        "of the others left out",
        "value traded",
    ];
    let (mut rows, mut searches) = (Vec::new(), Vec::new());
    for (share, compared) in setup.shares.iter().zip(all) {
        for (sent_as, tally) in compared.by_way() {
            rows.push(row(*share, sent_as, tally, compared.volume_ratio(tally)));
            searches.push(search_row(*share, sent_as, &tally.search));
        }
    }
    let table = format!(
        "{} assets, {cleared_days} days, {} offers a day, at ({eps}, {mu}). What is clearly in the money is so at the prices of its own\n\
         clearing; values are at the day's prices; the value traded is a share of what trades where all are sell offers.\n\n{}\n\
         What the search of prices took. Buy offers that make prices do so in up to {ROUNDS_MAX} rounds, at the rates of the round\n\
         before; those that do not, in up to 4 where an asset has no price without them. Utility is that of sell offers.\n\n{}",
        days.asset_count(),
        grouped(setup.history.offer_count),
        markdown(&header.map(String::from), &rows),
        markdown(&SEARCH_HEADER.map(String::from), &searches),
    );
    Record { folder: setup.history.folder.into(), result, table, plot_svg: None }
}

const SEARCH_HEADER: [&str; 10] = [
    "buyers",
    "sent as",
    "days priced with buy offers",
    "rounds, mean",
    "rounds, most",
    "days with rates that did not settle",
    "days approximate",
    "days failed",
    "ms of prices, mean",
    "utility not realised, mean",
];

fn search_row(share: f64, sent_as: &str, search: &Searches) -> Vec<String> {
    vec![
        format!("{:.0} %", 100.0 * share),
        sent_as.into(),
        search.with_buyers.to_string(),
        format!("{:.1}", search.mean(search.rounds as f64)),
        search.rounds_most.to_string(),
        search.unsettled.to_string(),
        search.approximate.to_string(),
        search.failed.to_string(),
        format!("{:.1}", search.time_ms()),
        format!("{:.3} %", 100.0 * search.mean(search.unrealised_share)),
    ]
}

fn row(share: f64, sent_as: &str, tally: &Tally, volume_ratio: f64) -> Vec<String> {
    let percent = |share: f64| format!("{:.3} %", 100.0 * share);
    vec![
        format!("{:.0} %", 100.0 * share),
        sent_as.into(),
        grouped(tally.buyers.offers),
        percent(tally.buyers.full_share()),
        percent(tally.buyers.left_share()),
        percent(tally.worst_day),
        tally.days_short.to_string(),
        percent(tally.buyers.beyond_share()),
        percent(tally.others.left_share()),
        format!("{:.1} %", 100.0 * volume_ratio),
    ]
}

#[cfg(test)]
mod tests {
    use walras_clearing::{AssetIndex, OfferId};
    use walras_types::Rounding;

    use super::*;

    const BITS: (i32, i32) = (15, 10);

    fn offer(id: u64, limit: &str, units: u64) -> Offer {
        let limit = BatchPrice::from_decimal(limit, Rounding::Up).unwrap();
        Offer::new(limit, id, OfferId(id), Amount::new(units).unwrap()).unwrap()
    }

    /// Two assets of the same worth.
    fn day(offers: &[(bool, Offer)], draws: &[f64]) -> Day {
        let pair = |sells_first: bool| {
            let (first, second) = (AssetIndex(0), AssetIndex(1));
            if sells_first { Pair { sell: first, buy: second } } else { Pair { sell: second, buy: first } }
        };
        let offers = offers.iter().map(|(sells_first, offer)| (pair(*sells_first), *offer)).collect();
        Day { offers, worth: vec![1.0; 2], draws: draws.to_vec() }
    }

    fn tally(day: &Day, share: f64, buyers: f64) -> Tally {
        tally_by(&history::settings(BITS).unwrap(), day, share, buyers)
    }

    fn tally_by(settings: &Settings<'_>, day: &Day, share: f64, buyers: f64) -> Tally {
        let market = day.market(buyers).unwrap();
        let mut tally = Tally::default();
        tally.add(day, share, &clear(&market, settings).unwrap(), &settings.rules()).unwrap();
        tally
    }

    /// Two sellers serve each other at a rate of one, and nothing is left for a buyer of half a unit. If it makes prices too, the rate is a
    /// half: the first seller takes one half of what the second sells, and the buyer the other.
    #[test]
    fn a_buy_offer_that_makes_prices_is_served() {
        let unit = 1_000_000_000;
        let offers = [(true, offer(0, "0.1", unit)), (false, offer(1, "0.1", unit)), (true, offer(2, "0.25", 2 * unit))];
        let day = day(&offers, &[0.9, 0.9, 0.1]);
        let outside = tally(&day, 0.5, 0.5);
        assert!(outside.buyers.offers == 1 && outside.buyers.left_share() > 0.9, "{outside:?}");
        assert_eq!((outside.search.with_buyers, outside.search.rounds, outside.search.unsettled), (0, 0, 0));
        let inside = tally_by(&with_makers(&history::settings(BITS).unwrap()), &day, 0.5, 0.5);
        assert!(inside.buyers.offers == 1 && inside.buyers.left_share() < 1e-3 && inside.buyers.beyond <= 0.0, "{inside:?}");
        assert!(inside.others.offers == 2 && inside.others.left_share() < 1e-3, "{inside:?}");
        assert_eq!((inside.search.days, inside.search.with_buyers, inside.search.approximate), (1, 1, 0), "{inside:?}");
        assert!(inside.search.rounds > 1 && inside.search.rounds_most == inside.search.rounds, "{inside:?}");
    }

    /// Two sellers make a price of one and serve each other. A buyer pays up to two for twice as much as there is: as a buy offer it stays
    /// outside, clearly in the money; as a sell offer it raises the price to its own limit.
    #[test]
    fn a_buy_offer_that_moves_no_price_is_left_out_and_counted() {
        let unit = 1_000_000_000;
        let offers = [(true, offer(0, "0.9", unit)), (false, offer(1, "0.9", unit)), (true, offer(2, "0.5", 4 * unit))];
        let day = day(&offers, &[0.9, 0.9, 0.1]);
        let bought = tally(&day, 0.5, 0.5);
        assert_eq!((bought.buyers.offers, bought.buyers.full), (1, 0), "{bought:?}");
        assert!(bought.buyers.left_share() > 0.9 && bought.worst_day > 0.9 && bought.days_short == 1, "{bought:?}");
        assert!(bought.others.offers == 2 && bought.others.left_share() < 1e-3, "{bought:?}");
        let sold = tally(&day, 0.5, 0.0);
        assert_eq!((sold.buyers.offers, sold.others.offers), (0, 1), "{sold:?}");
        assert!(sold.others.left_share() < 1e-3 && sold.volume > bought.volume, "{sold:?}");
    }

    /// Near the rate more is for sale than others want. There a buy offer gets exactly what it wants, and a sell offer all that its
    /// amount brings.
    #[test]
    fn a_buyer_that_is_served_gets_the_amount_or_more() {
        let unit = 1_000_000_000;
        let offers = [
            (true, offer(0, "0.9", 50 * unit)),
            (false, offer(1, "0.9", 50 * unit)),
            (true, offer(2, "0.9995", 20 * unit)),
            (false, offer(3, "0.9995", 50 * unit)),
            (true, offer(4, "0.5", unit)),
        ];
        let day = day(&offers, &[0.9, 0.9, 0.9, 0.9, 0.1]);
        let bought = tally(&day, 0.5, 0.5);
        assert_eq!((bought.buyers.offers, bought.buyers.full), (1, 1), "{bought:?}");
        assert!(bought.buyers.beyond <= 0.0 && bought.buyers.left <= 0.0 && bought.days_short == 0, "{bought:?}");
        let sold = tally(&day, 0.5, 0.0);
        assert_eq!((sold.buyers.offers, sold.buyers.full), (1, 1), "{sold:?}");
        // It pays a half at most, and the rate is near one.
        assert!((sold.buyers.beyond_share() - 1.0).abs() < 0.05, "{sold:?}");
    }

    /// Both ways stand at the same place in the pair, which is that of what `walras offer buy` sends.
    #[test]
    fn both_ways_have_the_limit_of_the_command_line() {
        for (limit, units) in [("0.9", 1_000_000_007), ("1.0800001", 999_983), ("0.00001234", 123_456_789)] {
            let offer = offer(7, limit, units);
            assert_eq!(as_buy_offer(&offer).unwrap().key(), offer.key());
            let (asked, amount) = (offer.asked(), offer.amount());
            let exact = BatchPrice::limit_of_sale(asked.get().into(), amount.get().into(), amount).unwrap();
            assert_eq!(Offer::new(exact, 7, OfferId(7), amount).unwrap().key(), offer.key());
        }
    }
}
