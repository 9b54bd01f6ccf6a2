//! Prices for test orders on an instrument: far from the market, or inside its spread.

use serde_json::Value;

use super::Mode;
use crate::error::LoadError;
use crate::http::Client;

/// Maximum distance of a resting bid below the market, in parts per million; less if the collar is narrower.
const DISTANCE_PPM: i128 = 500_000;
const MILLION: i128 = 1_000_000;

/// The parameters of the orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Quote {
    /// Its symbol, as the venue writes it.
    pub(super) instrument: String,
    pub(super) price: String,
    /// One lot.
    pub(super) size: String,
}

/// Chooses a price from the market's state.
pub(super) fn quote(client: &Client, instrument: &str, mode: Mode) -> Result<Quote, LoadError> {
    let answer = client.get("/v1/instruments")?;
    let found =
        answer["instruments"].as_array().into_iter().flatten().find(|row| {
            row["symbol"].as_str().is_some_and(|symbol| symbol == instrument || symbol.replace('/', "-") == instrument)
        });
    let row = found.ok_or_else(|| LoadError::UnknownInstrument(instrument.to_owned()))?;
    let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
    if text("phase") != "continuous" {
        return Err(LoadError::NotOpen { instrument: instrument.to_owned(), phase: text("phase") });
    }
    let symbol = text("symbol");
    let book = client.get(&format!("/v1/instruments/{}/book?depth=1", symbol.replace('/', "-")))?;
    let price = Market::read(row, &book).and_then(|market| market.price(mode));
    let price = price.map_err(|(why, advice)| LoadError::NoPrice { instrument: symbol.clone(), why, advice })?;
    Ok(Quote { instrument: symbol, price, size: text("lot_size") })
}

/// The reason that there is no price, and advice.
type NoPrice = (&'static str, &'static str);

const NOT_A_VENUE: NoPrice = ("its prices are no decimal numbers", "check that --url is of a venue of this version");

/// The market's prices, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Market {
    /// The tick in the last decimal.
    tick_units: i128,
    decimals: u32,
    /// Price of the last trade, or the reference price before the first.
    middle: i128,
    bid: Option<i128>,
    ask: Option<i128>,
    collar_ppm: i128,
}

impl Market {
    fn read(row: &Value, book: &Value) -> Result<Self, NoPrice> {
        let number = |field: &str| row[field].as_u64().ok_or(NOT_A_VENUE);
        let decimals = u32::try_from(number("price_decimals")?).map_err(|_| NOT_A_VENUE)?;
        let units = |text: &Value| text.as_str().and_then(|text| units(text, decimals)).ok_or(NOT_A_VENUE);
        let tick_units = units(&row["tick_size"]).ok().filter(|units| *units > 0).ok_or(NOT_A_VENUE)?;
        let ticks = |text: &Value| Ok::<i128, NoPrice>(units(text)? / tick_units);
        let best = |side: &str| book[side].get(0).map(|level| ticks(&level[0])).transpose();
        let middle = if row["last_price"].is_null() { &row["reference_price"] } else { &row["last_price"] };
        Ok(Self {
            tick_units,
            decimals,
            middle: ticks(middle)?,
            bid: best("bids")?,
            ask: best("asks")?,
            collar_ppm: number("collar_ppm")?.into(),
        })
    }

    fn price(&self, mode: Mode) -> Result<String, NoPrice> {
        let ticks = match mode {
            Mode::Resting => self.far_below()?,
            Mode::Matching => self.inside()?,
        };
        Ok(text(ticks * self.tick_units, self.decimals))
    }

    /// Four fifths of the distance to the end of the collar, at most half the price, and below every offer.
    fn far_below(&self) -> Result<i128, NoPrice> {
        let distance_ppm = (self.collar_ppm * 4 / 5).min(DISTANCE_PPM);
        let far = self.middle - self.middle * distance_ppm / MILLION;
        let below_ask = self.ask.map_or(far, |ask| far.min(ask - 1));
        if below_ask >= 1 {
            Ok(below_ask)
        } else {
            Err(("its lowest offer is at the lowest price there is", "choose another instrument, or --mode matching"))
        }
    }

    /// A price between the sides: the middle of the spread, or the last price as far as one side allows.
    fn inside(&self) -> Result<i128, NoPrice> {
        let price = match (self.bid, self.ask) {
            (Some(bid), Some(ask)) if ask - bid >= 2 => (bid + ask) / 2,
            (Some(_), Some(_)) => {
                return Err(("no price lies between its bid and its offer", "choose another instrument, or --mode resting"));
            }
            (Some(bid), None) => self.middle.max(bid + 1),
            (None, Some(ask)) => self.middle.min(ask - 1),
            (None, None) => self.middle,
        };
        if price >= 1 { Ok(price) } else { Err(("no price lies below its offer", "choose another instrument, or --mode resting")) }
    }
}

/// A decimal number in units of its last decimal.
fn units(text: &str, decimals: u32) -> Option<i128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let missing = decimals.checked_sub(u32::try_from(part.len()).ok()?)?;
    format!("{whole}{part}").parse::<i128>().ok()?.checked_mul(10_i128.checked_pow(missing)?)
}

fn text(units: i128, decimals: u32) -> String {
    if decimals == 0 {
        return units.to_string();
    }
    let scale = 10_i128.pow(decimals);
    format!("{}.{:0width$}", units / scale, units % scale, width = decimals as usize)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn market(last: Option<&str>, bid: Option<&str>, ask: Option<&str>) -> Market {
        let row = json!({
            "price_decimals": 2, "tick_size": "0.25", "reference_price": "100.00", "last_price": last, "collar_ppm": 200_000,
        });
        let level = |price: Option<&str>| price.map_or(json!([]), |price| json!([[price, "1", 1]]));
        Market::read(&row, &json!({"bids": level(bid), "asks": level(ask)})).unwrap()
    }

    #[test]
    fn a_resting_bid_lies_far_below_within_the_collar_and_on_a_tick() {
        assert_eq!(market(None, None, None).price(Mode::Resting).unwrap(), "84.00");
        assert_eq!(market(Some("50.25"), None, None).price(Mode::Resting).unwrap(), "42.25");
        assert_eq!(market(None, None, Some("80.00")).price(Mode::Resting).unwrap(), "79.75");
        assert!(market(None, None, Some("0.25")).price(Mode::Resting).is_err());
    }

    #[test]
    fn orders_that_match_meet_nobody_else() {
        assert_eq!(market(None, Some("99.00"), Some("101.00")).price(Mode::Matching).unwrap(), "100.00");
        assert_eq!(market(None, Some("99.00"), Some("99.50")).price(Mode::Matching).unwrap(), "99.25");
        assert!(market(None, Some("99.00"), Some("99.25")).price(Mode::Matching).is_err());
        assert_eq!(market(None, Some("120.00"), None).price(Mode::Matching).unwrap(), "120.25");
        assert_eq!(market(None, None, Some("80.00")).price(Mode::Matching).unwrap(), "79.75");
        assert_eq!(market(Some("77.00"), None, None).price(Mode::Matching).unwrap(), "77.00");
    }

    #[test]
    fn decimals_are_read_and_written_exactly() {
        assert_eq!((units("1.5", 2), units("0.01", 2), units("7", 0), units("1.234", 2)), (Some(150), Some(1), Some(7), None));
        assert_eq!((text(150, 2), text(1, 2), text(7, 0)), ("1.50".into(), "0.01".into(), "7".into()));
        assert_eq!(units("x", 1), None);
    }
}
