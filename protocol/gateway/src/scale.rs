//! Conversion between decimals in requests and the core's integers: prices and ticks, sizes and lots, amounts and units.

use walras_types::limits::{ASSET_DECIMALS_MAX, UNITS_MAX};
use walras_types::{Amount, InstrumentSpec, PriceTicks, RejectReason, SizeLots};

use crate::decimal::{Decimal, Fault, parse_scaled};
use crate::limits::{TICK_DECIMALS_MAX, TICK_MANTISSA_MAX};

/// Decimals of a tick to which an average price is written.
const AVERAGE_DECIMALS: u32 = 6;

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A price, in quote per base.
    Price,
    /// A size, in base.
    Size,
    /// An amount of an asset.
    Amount,
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Price => "price",
            Self::Size => "size",
            Self::Amount => "amount",
        })
    }
}

/// Why a text is not a valid quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It is not a plain decimal.
    #[error("the {0} is not a plain decimal: write digits with at most one point between them, such as 30711.25")]
    Malformed(Quantity),
    /// It lies between two steps.
    #[error("the {quantity} is not a whole multiple of {step}")]
    NotOnStep {
        /// The kind of quantity.
        quantity: Quantity,
        /// The tick size, the lot size, or the asset's smallest unit.
        step: Decimal,
    },
    /// It is too small or too large.
    #[error("the {quantity} is not within {min} and {max}")]
    OutOfRange {
        /// The kind of quantity.
        quantity: Quantity,
        /// The smallest allowed.
        min: Decimal,
        /// The largest allowed.
        max: Decimal,
    },
}

impl QuantityError {
    /// The number under which it is refused.
    #[must_use]
    pub const fn reason(self) -> RejectReason {
        match self {
            Self::Malformed(_) => RejectReason::Malformed,
            Self::NotOnStep { quantity: Quantity::Price, .. } => RejectReason::PriceNotOnTick,
            Self::NotOnStep { quantity: Quantity::Size, .. } => RejectReason::SizeNotOnLot,
            Self::NotOnStep { quantity: Quantity::Amount, .. } => RejectReason::AmountNotOnUnit,
            Self::OutOfRange { quantity: Quantity::Price, .. } => RejectReason::PriceOutOfRange,
            Self::OutOfRange { quantity: Quantity::Size, .. } => RejectReason::SizeOutOfRange,
            Self::OutOfRange { quantity: Quantity::Amount, .. } => RejectReason::AmountOutOfRange,
        }
    }
}

/// Why an instrument's prices and sizes cannot be written as decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScaleError {
    /// Units outside the core's range.
    #[error("lot_units and tick_value_units must be from 1 to {UNITS_MAX}: correct the instrument's definition")]
    UnitsOutOfRange,
    /// Decimals outside the core's range.
    #[error("an asset has at most {ASSET_DECIMALS_MAX} decimals: correct the asset's definition")]
    DecimalsOutOfRange,
    /// One tick is not a finite decimal, such as a third.
    #[error(
        "one tick, {tick_value_units}/{lot_units} quote units per base unit, is not a finite decimal: choose lot_units whose only \
         prime factors beyond those of tick_value_units are 2 and 5, such as a power of ten"
    )]
    TickNotDecimal {
        /// As defined.
        tick_value_units: u64,
        /// As defined.
        lot_units: u64,
    },
    /// One tick has too many digits.
    #[error(
        "one tick has more than {TICK_DECIMALS_MAX} decimals or is above 2^87 of its last: choose a lot_units with fewer factors of 2 and 5"
    )]
    TickTooFine,
}

/// A step of `mantissa / 10^decimals`; quantities are whole multiples of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    mantissa: u128,
    decimals: u32,
}

impl Step {
    fn size(self) -> Decimal {
        Decimal::new(self.mantissa, self.decimals)
    }

    fn times(self, count: u64) -> Decimal {
        let product = u128::from(count).checked_mul(self.mantissa);
        Decimal::new(product.expect("a step times a count of the core fits 128 bits"), self.decimals)
    }

    fn times_signed(self, count: i64) -> Decimal {
        let magnitude = u128::from(count.unsigned_abs()).checked_mul(self.mantissa).and_then(|m| i128::try_from(m).ok());
        let magnitude = magnitude.expect("a step times a signed count of the core fits 127 bits");
        Decimal::signed(if count < 0 { -magnitude } else { magnitude }, self.decimals)
    }

    /// Parses `text` into a number of steps between `min` and `max`.
    fn count(self, quantity: Quantity, text: &str, min: u64, max: u64) -> Result<u64, QuantityError> {
        // The bounds' digits are counted by divisions of 128 bits, for errors alone.
        let out_of_range =
            || QuantityError::OutOfRange { quantity, min: self.times(min).minimal(), max: self.times(max).minimal() };
        let not_on_step = QuantityError::NotOnStep { quantity, step: self.size() };
        let scaled = parse_scaled(text, self.decimals).map_err(|fault| match fault {
            Fault::Malformed => QuantityError::Malformed(quantity),
            Fault::TooFine => not_on_step,
            Fault::TooLarge => out_of_range(),
        })?;
        if !scaled.is_multiple_of(self.mantissa) {
            return Err(not_on_step);
        }
        let count = u64::try_from(scaled / self.mantissa).ok();
        count.filter(|count| (min..=max).contains(count)).ok_or_else(out_of_range)
    }
}

/// How an instrument's ticks and lots are written.
///
/// One lot is `lot_units / 10^base_decimals` of base. One tick is `tick_value_units / 10^quote_decimals` of quote per lot, hence
/// `tick_value_units / lot_units * 10^(base_decimals - quote_decimals)` of quote per whole base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstrumentScale {
    tick: Step,
    lot: Step,
}

impl InstrumentScale {
    /// The scale of an instrument between two assets.
    pub fn of(spec: &InstrumentSpec, base_decimals: u8, quote_decimals: u8) -> Result<Self, ScaleError> {
        Self::new(spec.tick_value_units, spec.lot_units, base_decimals, quote_decimals)
    }

    /// The scale of these units and decimals.
    pub fn new(tick_value_units: u64, lot_units: u64, base_decimals: u8, quote_decimals: u8) -> Result<Self, ScaleError> {
        if !(1..=UNITS_MAX).contains(&tick_value_units) || !(1..=UNITS_MAX).contains(&lot_units) {
            return Err(ScaleError::UnitsOutOfRange);
        }
        if base_decimals > ASSET_DECIMALS_MAX || quote_decimals > ASSET_DECIMALS_MAX {
            return Err(ScaleError::DecimalsOutOfRange);
        }
        let lot = Decimal::new(u128::from(lot_units), u32::from(base_decimals)).minimal();
        let lot_mantissa = parse_scaled(&lot.to_string(), lot.decimals()).expect("what is printed parses back");

        // 2^50 * 10^18 < 2^110: both products fit.
        let power = |exponent: u8| 10_u128.pow(u32::from(exponent));
        let numerator = u128::from(tick_value_units) * power(base_decimals.saturating_sub(quote_decimals));
        let denominator = u128::from(lot_units) * power(quote_decimals.saturating_sub(base_decimals));
        let common = greatest_common_divisor(numerator, denominator);
        let (numerator, denominator) = (numerator / common, denominator / common);
        let (rest, twos) = divide_out(denominator, 2);
        let (rest, fives) = divide_out(rest, 5);
        if rest != 1 {
            return Err(ScaleError::TickNotDecimal { tick_value_units, lot_units });
        }
        // The smallest sufficient number: 10^decimals is the smallest power of ten that the denominator divides.
        let decimals = twos.max(fives);
        let mantissa = 2_u128
            .checked_pow(decimals - twos)
            .zip(5_u128.checked_pow(decimals - fives))
            .and_then(|(two, five)| numerator.checked_mul(two)?.checked_mul(five))
            .filter(|&mantissa| mantissa <= TICK_MANTISSA_MAX && decimals <= TICK_DECIMALS_MAX)
            .ok_or(ScaleError::TickTooFine)?;
        Ok(Self { tick: Step { mantissa, decimals }, lot: Step { mantissa: lot_mantissa, decimals: lot.decimals() } })
    }

    /// One tick, in quote per base.
    #[must_use]
    pub fn tick_size(&self) -> Decimal {
        self.tick.size()
    }

    /// The average price of trades, of which price in ticks times size in lots adds up to `tick_lots`, and size to `lots`. Rounded
    /// down to a millionth of a tick, or to as little of one as can be written. `None` where nothing traded.
    #[must_use]
    pub fn average_price(&self, tick_lots: u128, lots: SizeLots) -> Option<Decimal> {
        let lots = u128::from(lots.get());
        if tick_lots.checked_rem(lots)? == 0 {
            return Some(Decimal::new((tick_lots / lots).checked_mul(self.tick.mantissa)?, self.tick.decimals));
        }
        (0..=AVERAGE_DECIMALS).rev().find_map(|decimals| {
            let average = tick_lots.checked_mul(10_u128.pow(decimals))? / lots;
            Some(Decimal::new(average.checked_mul(self.tick.mantissa)?, self.tick.decimals + decimals).minimal())
        })
    }

    /// One lot, in base.
    #[must_use]
    pub fn lot_size(&self) -> Decimal {
        self.lot.size()
    }

    /// Number of decimals with which every price can be written.
    #[must_use]
    pub const fn price_decimals(&self) -> u32 {
        self.tick.decimals
    }

    /// Number of decimals with which every size can be written.
    #[must_use]
    pub const fn size_decimals(&self) -> u32 {
        self.lot.decimals
    }

    /// Parses a price into ticks.
    pub fn parse_price(&self, text: &str) -> Result<PriceTicks, QuantityError> {
        let [min, max] = [PriceTicks::MIN, PriceTicks::MAX].map(|price| price.get().unsigned_abs());
        let ticks = self.tick.count(Quantity::Price, text, min, max)?;
        let price = i64::try_from(ticks).ok().and_then(PriceTicks::new);
        Ok(price.expect("a count within the range of prices is a price"))
    }

    /// Parses an order's size into lots.
    pub fn parse_size(&self, text: &str) -> Result<SizeLots, QuantityError> {
        self.lot.count(Quantity::Size, text, 1, walras_types::limits::SIZE_LOTS_MAX).map(SizeLots::new)
    }

    /// A price, with [`InstrumentScale::price_decimals`] decimals.
    #[must_use]
    pub fn price(&self, price: PriceTicks) -> Decimal {
        self.tick.times(price.get().unsigned_abs())
    }

    /// A size, with [`InstrumentScale::size_decimals`] decimals.
    #[must_use]
    pub fn size(&self, size: SizeLots) -> Decimal {
        self.lot.times(size.get())
    }

    /// A position or an imbalance, with [`InstrumentScale::size_decimals`] decimals.
    #[must_use]
    pub fn net_size(&self, lots: i64) -> Decimal {
        self.lot.times_signed(lots)
    }
}

/// How an asset's units are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssetScale {
    unit: Step,
}

impl AssetScale {
    /// The scale of an asset with this many decimals.
    pub fn new(decimals: u8) -> Result<Self, ScaleError> {
        if decimals > ASSET_DECIMALS_MAX {
            return Err(ScaleError::DecimalsOutOfRange);
        }
        Ok(Self { unit: Step { mantissa: 1, decimals: u32::from(decimals) } })
    }

    /// Parses an amount into units; zero is valid.
    pub fn parse(&self, text: &str) -> Result<Amount, QuantityError> {
        let units = self.unit.count(Quantity::Amount, text, 0, Amount::MAX.get())?;
        Ok(Amount::new(units).expect("a count within the range of amounts is an amount"))
    }

    /// An amount, with the asset's decimals.
    #[must_use]
    pub fn amount(&self, amount: Amount) -> Decimal {
        self.unit.times(amount.get())
    }

    /// A fee or a rebate, with the asset's decimals.
    #[must_use]
    pub fn net_amount(&self, units: i64) -> Decimal {
        self.unit.times_signed(units)
    }
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Divides out all factors `prime`: returns the remaining number and how many factors there were.
fn divide_out(mut number: u128, prime: u128) -> (u128, u32) {
    let mut count = 0;
    while number.is_multiple_of(prime) {
        number /= prime;
        count += 1;
    }
    (number, count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use walras_types::limits::{PRICE_TICKS_MAX, SIZE_LOTS_MAX};

    use super::*;

    fn sizes(tick_value_units: u64, lot_units: u64, base: u8, quote: u8) -> (String, String) {
        let scale = InstrumentScale::new(tick_value_units, lot_units, base, quote).unwrap();
        (scale.tick_size().to_string(), scale.lot_size().to_string())
    }

    #[test]
    fn ticks_and_lots_are_what_the_definition_says() {
        let texts = |tick: &str, lot: &str| (tick.to_owned(), lot.to_owned());
        // BTC (8 decimals) in lots of 0.0001, USD (6 decimals), a tick worth 1 unit on a lot: 0.000001 / 0.0001 = 0.01.
        assert_eq!(sizes(1, 10_000, 8, 6), texts("0.01", "0.0001"));
        // Shares without decimals in cents.
        assert_eq!(sizes(1, 1, 0, 2), texts("0.01", "1"));
        // Lots of 100 shares, prices in cents: 100 cents a tick and lot.
        assert_eq!(sizes(100, 100, 0, 2), texts("0.01", "100"));
        // An asset with many decimals priced in one with none, and the other way round.
        assert_eq!(sizes(1, 1, 18, 0), texts("1000000000000000000", "0.000000000000000001"));
        assert_eq!(sizes(1, 1, 0, 18), texts("0.000000000000000001", "1"));
        // Quarters, and the yen case of a tick above one.
        assert_eq!(sizes(1, 4, 0, 0), texts("0.25", "4"));
        assert_eq!(sizes(5, 1, 0, 0), texts("5", "1"));
        // Lots of three are fine where three ticks make one.
        assert_eq!(sizes(6, 3, 0, 2), texts("0.02", "3"));
    }

    #[test]
    fn an_average_price_is_rounded_down_to_a_millionth_of_a_tick() {
        let average = |scale: (u64, u64, u8, u8), trades: &[(u64, u64)]| {
            let scale = InstrumentScale::new(scale.0, scale.1, scale.2, scale.3).unwrap();
            let tick_lots = trades.iter().map(|(ticks, lots)| u128::from(*ticks) * u128::from(*lots)).sum();
            let lots = SizeLots::new(trades.iter().map(|(_, lots)| lots).sum());
            scale.average_price(tick_lots, lots).map(|price| price.to_string())
        };
        let cents = (1, 10_000, 8, 6);
        assert_eq!(average(cents, &[]), None);
        assert_eq!(average(cents, &[(3_000_000, 7)]).as_deref(), Some("30000.00"), "as prices are written");
        assert_eq!(average(cents, &[(3_000_000, 1), (3_000_001, 1)]).as_deref(), Some("30000.005"));
        assert_eq!(average(cents, &[(1, 1), (2, 2)]).as_deref(), Some("0.01666666"));
        assert_eq!(average((5, 1, 0, 0), &[(2, 4), (3, 1)]).as_deref(), Some("11"));
        // Ticks so large that fewer decimals fit.
        let most = PRICE_TICKS_MAX.unsigned_abs();
        let large = average((UNITS_MAX, 1, 9, 0), &[(most, SIZE_LOTS_MAX), (most - 1, 1)]).unwrap();
        assert!(large.len() > 30, "{large}");
    }

    #[test]
    fn what_is_no_decimal_is_said() {
        let error =
            |tick_value_units, lot_units, base, quote| InstrumentScale::new(tick_value_units, lot_units, base, quote).unwrap_err();
        assert_eq!(error(1, 3, 0, 2), ScaleError::TickNotDecimal { tick_value_units: 1, lot_units: 3 });
        assert_eq!(error(0, 1, 0, 0), ScaleError::UnitsOutOfRange);
        assert_eq!(error(1, UNITS_MAX + 1, 0, 0), ScaleError::UnitsOutOfRange);
        assert_eq!(error(1, 1, 19, 0), ScaleError::DecimalsOutOfRange);
        // 2^-50 has fifty decimals.
        assert_eq!(error(1, UNITS_MAX, 0, 0), ScaleError::TickTooFine);
        assert_eq!(error(UNITS_MAX, 1, 18, 0), ScaleError::TickTooFine);
        assert_eq!(AssetScale::new(19), Err(ScaleError::DecimalsOutOfRange));
    }

    #[test]
    fn errors_tell_the_number_and_the_step() {
        let scale = InstrumentScale::new(25, 10_000, 8, 6).unwrap();
        assert_eq!(scale.tick_size().to_string(), "0.25");
        let price = |text| scale.parse_price(text).map_err(|error| (error.reason().number(), error.to_string()));
        assert_eq!(price("30711.25"), Ok(PriceTicks::new(122_845).unwrap()));
        assert_eq!(price("30711.30"), Err((113, "the price is not a whole multiple of 0.25".into())));
        assert_eq!(price("30711.251"), Err((113, "the price is not a whole multiple of 0.25".into())));
        assert_eq!(price("0"), Err((20, "the price is not within 0.25 and 274877906943.75".into())));
        assert_eq!(price("274877906943.75"), Ok(PriceTicks::MAX));
        assert_eq!(price("274877906944").unwrap_err().0, 20);
        assert_eq!(price("99999999999999999999999999999999999999").unwrap_err().0, 20);
        assert_eq!(price("-1").unwrap_err().0, 100);
        let size = |text: &str| scale.parse_size(text).map_err(|error| error.reason().number());
        assert_eq!((size("0.0001"), size("0.00015"), size("0"), size("x")), (Ok(SizeLots::new(1)), Err(114), Err(21), Err(100)));
        assert_eq!(size(&scale.size(SizeLots::new(SIZE_LOTS_MAX)).to_string()), Ok(SizeLots::new(SIZE_LOTS_MAX)));
        assert_eq!(size(&scale.size(SizeLots::new(SIZE_LOTS_MAX + 1)).to_string()), Err(21));
        let usd = AssetScale::new(2).unwrap();
        let amount = |text| usd.parse(text).map_err(|error| error.reason().number());
        assert_eq!((amount("1.5"), amount("1.555"), amount("0")), (Ok(Amount::new(150).unwrap()), Err(115), Ok(Amount::ZERO)));
        assert_eq!((amount("92233720368547758.07"), amount("92233720368547758.08")), (Ok(Amount::MAX), Err(30)));
        assert_eq!(
            (usd.net_amount(-5).to_string(), usd.net_amount(i64::MIN).to_string()),
            ("-0.05".into(), "-92233720368547758.08".into())
        );
        assert_eq!(scale.net_size(-15_000).minimal().to_string(), "-1.5");
    }

    fn valid_scale() -> impl Strategy<Value = (u64, u64, u8, u8)> {
        let units = || prop_oneof![1u64..50, (0u32..15).prop_map(|p| 10u64.pow(p)), (0u32..50).prop_map(|p| 1 << p), 1..=UNITS_MAX];
        (units(), units(), 0u8..=18, 0u8..=18)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn prices_and_sizes_go_to_text_and_back((tick_value_units, lot_units, base, quote) in valid_scale(),
                                                ticks in 1..=PRICE_TICKS_MAX, low in 1i64..1000, lots in 1..=SIZE_LOTS_MAX) {
            let scale = match InstrumentScale::new(tick_value_units, lot_units, base, quote) {
                Ok(scale) => scale,
                Err(error) => {
                    prop_assert!(matches!(error, ScaleError::TickNotDecimal { .. } | ScaleError::TickTooFine), "{error}");
                    return Ok(());
                }
            };
            for price in [PriceTicks::new(ticks), PriceTicks::new(low), Some(PriceTicks::MIN), Some(PriceTicks::MAX)] {
                let price = price.unwrap();
                let text = scale.price(price);
                prop_assert_eq!(text.decimals(), scale.price_decimals());
                prop_assert_eq!(scale.parse_price(&text.to_string()), Ok(price));
                prop_assert_eq!(scale.parse_price(&text.minimal().to_string()), Ok(price));
            }
            let size = SizeLots::new(lots);
            prop_assert_eq!(scale.parse_size(&scale.size(size).to_string()), Ok(size));
            prop_assert_eq!(scale.parse_size(&scale.size(size).minimal().to_string()), Ok(size));
            // The value of one lot at one tick, from the texts: tick_size * lot_size = tick_value_units / 10^quote_decimals.
            let (tick, lot) = (scale.tick, scale.lot);
            if let Some(product) = tick.mantissa.checked_mul(lot.mantissa) {
                let value = Decimal::new(product, tick.decimals + lot.decimals).minimal();
                prop_assert_eq!(value, Decimal::new(u128::from(tick_value_units), u32::from(quote)).minimal());
            }
            // Decimals are as few as they can be.
            prop_assert_eq!(scale.tick_size().minimal(), scale.tick_size());
            prop_assert_eq!(scale.lot_size().minimal(), scale.lot_size());
            // Sums over a book print too.
            let _ = scale.size(SizeLots::new(u64::MAX)).to_string() + &scale.net_size(i64::MIN).to_string();
        }

        #[test]
        fn between_two_ticks_is_no_price(ticks in 1..PRICE_TICKS_MAX, nudge in 1u128..25) {
            let scale = InstrumentScale::new(25, 10_000, 8, 6).unwrap();
            let text = Decimal::new(u128::from(ticks.unsigned_abs()) * 25 + nudge, 2).to_string();
            let error = scale.parse_price(&text).unwrap_err();
            prop_assert_eq!(error.reason(), RejectReason::PriceNotOnTick);
        }

        #[test]
        fn amounts_go_to_text_and_back(units in 0..=Amount::MAX.get(), decimals in 0u8..=18) {
            let scale = AssetScale::new(decimals).unwrap();
            let amount = Amount::new(units).unwrap();
            prop_assert_eq!(scale.parse(&scale.amount(amount).to_string()), Ok(amount));
            prop_assert_eq!(scale.parse(&scale.amount(amount).minimal().to_string()), Ok(amount));
        }
    }
}
