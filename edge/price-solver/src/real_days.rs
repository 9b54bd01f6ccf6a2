//! Batches from the daily prices and volumes of real assets: the robustness check of SPEEDEX 2023, section 6.2.
//!
//! Input are CSV texts with the columns `snapped_at, price, market_cap, total_volume`, one per asset, oldest day first. All assets
//! are aligned at their common last day; a day before an asset's first has price 1 and volume 0, a missing day repeats the one before.
//! An offer sells an asset in proportion to its volume that day, buys another in proportion to volume, and asks for a limit
//! within 2 % of the day's ratio: nine in ten below it, one above.

use thiserror::Error;

use crate::random::Random;
use crate::synthetic::Offer;

/// Why a price history could not be read.
#[derive(Debug, Error)]
pub enum HistoryError {
    /// A line is not what the format says.
    #[error("line {line}: expected `YYYY-MM-DD ..., price, market_cap, total_volume`, found `{text}`: mend or leave out the line")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// There is no day at all.
    #[error("no day in the history: give a file with at least one line below its header")]
    Empty,
}

/// Prices and volumes of several assets over the same days.
#[derive(Clone, Debug)]
pub struct RealDays {
    /// `days[d][a]`: price and traded value of asset `a` on day `d`, oldest day first.
    days: Vec<Vec<(f64, f64)>>,
}

impl RealDays {
    /// The last `day_count` days of these histories.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>, day_count: usize) -> Result<Self, HistoryError> {
        let histories: Vec<Vec<(i64, f64, f64)>> = texts.into_iter().map(parse_history).collect::<Result<_, _>>()?;
        let last_day =
            histories.iter().filter_map(|history| history.last()).map(|&(day, ..)| day).min().ok_or(HistoryError::Empty)?;
        let first_day = last_day + 1 - day_count as i64;
        let days = (first_day..=last_day).map(|day| histories.iter().map(|history| on_day(history, day)).collect()).collect();
        Ok(Self { days })
    }

    /// Days.
    pub fn len(&self) -> usize {
        self.days.len()
    }

    /// Whether there is no day.
    pub fn is_empty(&self) -> bool {
        self.days.is_empty()
    }

    /// Assets.
    pub fn asset_count(&self) -> usize {
        self.days.first().map_or(0, Vec::len)
    }

    /// The day's prices.
    pub fn prices(&self, day: usize) -> Vec<f64> {
        self.days[day].iter().map(|&(price, _)| price).collect()
    }

    /// `offer_count` offers around the prices of a day; none on a day when fewer than two assets traded.
    pub fn offers(&self, day: usize, offer_count: usize, seed: u64) -> Vec<Offer> {
        let assets = &self.days[day];
        let mut random = Random::new(seed ^ (day as u64) << 32);
        let running: Vec<f64> = assets
            .iter()
            .scan(0.0, |sum, &(_, volume)| {
                Some({
                    *sum += volume;
                    *sum
                })
            })
            .collect();
        if assets.iter().filter(|&&(_, volume)| volume > 0.0).count() < 2 {
            return Vec::new();
        }
        (0..offer_count)
            .map(|_| {
                let sell = random.weighted(&running);
                let buy = loop {
                    let buy = random.weighted(&running);
                    if buy != sell {
                        break buy;
                    }
                };
                let ratio = assets[sell].0 / assets[buy].0;
                let distance = random.uniform(0.0, 0.02);
                let limit = if random.below(10) == 0 { ratio * (1.0 + distance) } else { ratio * (1.0 - distance) };
                let amount = (random.uniform(1e3, 1e6) * 1e6 / assets[sell].0).floor().max(1.0);
                Offer { sell, buy, limit, amount }
            })
            .collect()
    }
}

/// The last entry not after the day; before the first, price 1 and volume 0.
fn on_day(history: &[(i64, f64, f64)], day: i64) -> (f64, f64) {
    match history.partition_point(|&(of, ..)| of <= day) {
        0 => (1.0, 0.0),
        after => (history[after - 1].1, history[after - 1].2),
    }
}

fn parse_history(text: &str) -> Result<Vec<(i64, f64, f64)>, HistoryError> {
    let mut history: Vec<(i64, f64, f64)> = Vec::new();
    for (index, line) in text.lines().enumerate().skip(1).filter(|(_, line)| !line.is_empty()) {
        let entry = parse_line(line).ok_or_else(|| HistoryError::Line { line: index + 1, text: line.to_owned() })?;
        // A price of zero or nothing is a gap in the source.
        if entry.1 > 0.0 {
            history.push(entry);
        }
    }
    history.sort_by_key(|&(day, ..)| day);
    Ok(history)
}

fn parse_line(line: &str) -> Option<(i64, f64, f64)> {
    let mut fields = line.split(',');
    let date = fields.next()?.get(..10)?;
    let price = fields.next()?;
    let volume = fields.nth(1)?;
    let mut parts = date.split('-').map(str::parse::<i64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let number = |text: &str| if text.is_empty() { Some(0.0) } else { text.parse::<f64>().ok().filter(|value| value.is_finite()) };
    Some((days_from_civil(year, month, day), number(price)?, number(volume)?.max(0.0)))
}

/// Days since 1970-01-01 of a Gregorian date; March starts the year, so that the leap day is its last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_before_listing_and_missing_days() {
        let old =
            "snapped_at,price,market_cap,total_volume\n2021-02-27 00:00:00 UTC,5.5,,100\n2021-03-01 00:00:00 UTC,6.5,1.0,200\n";
        let new = "h\n2021-02-28 00:00:00 UTC,2,0,3\n2021-03-01 00:00:00 UTC,0,0,3\n2021-03-02 00:00:00 UTC,4,0,5\n";
        let days = RealDays::parse([old, new], 4).unwrap();
        // They end at 2021-03-01, the earlier of the two last days; the zero price repeats the day before.
        assert_eq!(days.days[0], [(1.0, 0.0), (1.0, 0.0)]);
        assert_eq!(days.days[1], [(5.5, 100.0), (1.0, 0.0)]);
        assert_eq!(days.days[2], [(5.5, 100.0), (2.0, 3.0)]);
        assert_eq!(days.days[3], [(6.5, 200.0), (2.0, 3.0)]);
        assert!(days.offers(1, 10, 0).is_empty());
        assert_eq!(days.offers(2, 10, 0).len(), 10);
        assert!(RealDays::parse(["h\nnonsense\n"], 1).is_err());
        assert_eq!(days_from_civil(1970, 1, 1), 0);
        assert_eq!(days_from_civil(2000, 3, 1), 11_017);
    }
}
