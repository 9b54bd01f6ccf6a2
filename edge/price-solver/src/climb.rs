//! Climbs hills among markets: a change that makes a market harder is kept, until the market is broken or nothing makes it harder.
//!
//! What is hard, and what is broken, the caller says ([`Trial`]): a search that finds no prices, or a block that sets a part aside.
//! `make break` climbs for as long as it is let, tests climb a few hills from fixed seeds.

use crate::families::FamilyMarket;
use crate::random::Random;
use crate::synthetic::Offer;

/// How hard a market is, or none if it is broken.
pub type Trial<'a> = &'a dyn Fn(&FamilyMarket) -> Option<u64>;

/// A climb ends after so many changes in a row that make nothing harder.
const FUTILE_MAX: u32 = 60;
/// What is tried to make a broken market smaller.
const SHRINKS_MAX: u32 = 400;
const AMOUNT_MAX: f64 = (1u64 << 62) as f64;

/// Where a climb ended.
#[derive(Clone, Debug)]
pub struct Climbed {
    /// The hardest market.
    pub harder: FamilyMarket,
    /// How hard it is, or none if it is broken.
    pub hardness: Option<u64>,
    /// Markets that were tried.
    pub tried: u64,
}

/// From this market upwards, as long as `goes_on` says so.
pub fn climb(mut market: FamilyMarket, random: &mut Random, trial: Trial<'_>, mut goes_on: impl FnMut() -> bool) -> Climbed {
    let (mut best, mut futile, mut tried) = (trial(&market), 0, 0);
    while futile < FUTILE_MAX && best.is_some() && goes_on() {
        let mut changed = market.clone();
        change(&mut changed, random);
        let hardness = trial(&changed);
        tried += 1;
        let is_harder = hardness.is_none_or(|hardness| best.is_some_and(|best| hardness > best));
        futile = if is_harder { 0 } else { futile + 1 };
        if hardness.is_none() || hardness >= best {
            (market, best) = (changed, hardness);
        }
    }
    Climbed { harder: market, hardness: best, tried }
}

fn change(market: &mut FamilyMarket, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let at = random.below(market.offers.len());
        let other = market.offers[random.below(market.offers.len())];
        let offer = &mut market.offers[at];
        match random.below(7) {
            0 => offer.amount *= 10f64.powf(random.uniform(-6.0, 6.0)),
            1 => offer.limit *= 10f64.powf(random.uniform(-3.0, 3.0)),
            2 => offer.limit *= 1.0 + 0.02 * random.uniform(-1.0, 1.0),
            3 => (offer.sell, offer.buy, offer.limit) = (other.sell, other.buy, other.limit),
            4 => offer.amount = other.amount,
            5 => {
                // The other way round, at the same rate.
                let limit = if offer.limit > 0.0 { 1.0 / offer.limit } else { 0.0 };
                (offer.sell, offer.buy, offer.limit) = (offer.buy, offer.sell, limit);
            }
            _ => {
                let copied = Offer { amount: (offer.amount * random.unit()).max(1.0), ..*offer };
                market.offers.push(copied);
            }
        }
        let offer = &mut market.offers[at];
        offer.amount = offer.amount.floor().clamp(1.0, AMOUNT_MAX);
        offer.limit = offer.limit.clamp(0.0, 1e60);
    }
}

/// Leaves out offers as long as the market is still broken.
pub fn shrink(market: &mut FamilyMarket, random: &mut Random, trial: Trial<'_>) {
    for _ in 0..SHRINKS_MAX {
        let mut less = market.clone();
        for _ in 0..=less.offers.len() / 20 {
            less.offers.swap_remove(random.below(less.offers.len()));
        }
        if less.offers.len() > 3 && trial(&less).is_none() {
            *market = less;
        }
    }
}

/// A market as text: a line `sell,buy,limit,amount` for each offer, below one that says so.
#[must_use]
pub fn text(market: &FamilyMarket) -> String {
    let mut text = String::from("sell,buy,limit,amount\n");
    for Offer { sell, buy, limit, amount } in &market.offers {
        text += &format!("{sell},{buy},{limit:e},{amount}\n");
    }
    text
}

/// The market of such a text, without lines that begin with `#`. None where it is no such text.
#[must_use]
pub fn parse(text: &str) -> Option<FamilyMarket> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    let offers: Vec<Offer> = lines.map(offer_of).collect::<Option<_>>()?;
    let asset_count = offers.iter().map(|offer| offer.sell.max(offer.buy) + 1).max()?;
    Some(FamilyMarket { asset_count, offers })
}

fn offer_of(line: &str) -> Option<Offer> {
    let fields: Vec<&str> = line.split(',').collect();
    let [sell, buy, limit, amount] = fields[..] else { return None };
    let [sell, buy] = [sell.parse().ok()?, buy.parse().ok()?];
    Some(Offer { sell, buy, limit: limit.parse().ok()?, amount: amount.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::Family;

    #[test]
    fn a_climb_keeps_what_is_harder_and_stops_at_what_is_broken() {
        let market = Family::Ring.market(0);
        let first = market.offers.len() as u64;
        // The more offers, the harder.
        let by_count = |market: &FamilyMarket| Some(market.offers.len() as u64);
        let mut left = 50;
        let climbed = climb(market.clone(), &mut Random::new(1), &by_count, || {
            left -= 1;
            left > 0
        });
        assert!(climbed.hardness > Some(first) && climbed.tried == 49, "{:?} {}", climbed.hardness, climbed.tried);
        let with_most = |most: u64| move |market: &FamilyMarket| by_count(market).filter(|count| *count < most);
        let climbed = climb(market, &mut Random::new(1), &with_most(first + 3), || true);
        assert_eq!(climbed.hardness, None);
        let mut broken = climbed.harder;
        shrink(&mut broken, &mut Random::new(1), &with_most(first / 2));
        assert!((first / 2..first).contains(&(broken.offers.len() as u64)), "{}", broken.offers.len());
    }

    #[test]
    fn a_market_comes_back_from_its_text() {
        let market = Family::ExtremeValuations.market(3);
        assert_eq!(parse(&text(&market)).map(|market| market.offers), Some(market.offers));
        assert_eq!(parse("sell,buy,limit,amount\n1,2,3\n"), None);
        assert_eq!(parse("sell,buy,limit,amount\n"), None);
    }
}
