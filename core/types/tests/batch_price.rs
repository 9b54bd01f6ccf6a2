//! Batch prices and rates against fractions of big integers.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::str::FromStr;

use num_bigint::BigInt;
use num_rational::Ratio;
use proptest::prelude::*;
use walras_types::{
    Amount, BatchPrice, BatchPriceError, Commission, Mu, NetRate, Rounding, effective_buy_limit, effective_limit,
    limits::AMOUNT_MAX,
};

type Fraction = Ratio<BigInt>;

fn whole(units: u64) -> Fraction {
    Fraction::from_integer(BigInt::from(units))
}

fn power_of_two(exponent: i32) -> Fraction {
    let power = Fraction::from_integer(BigInt::from(1) << exponent.unsigned_abs());
    if exponent < 0 { power.recip() } else { power }
}

/// The value, read from the bits as IEEE 754 says, not by the code under test.
fn value(price: BatchPrice) -> Fraction {
    let bits = price.bits();
    if bits == 0 {
        return whole(0);
    }
    let (exponent, fraction) = ((bits >> 52) as i32 - 1023, bits & ((1 << 52) - 1));
    (whole(1) + whole(fraction) * power_of_two(-52)) * power_of_two(exponent)
}

fn kept(commission: Commission) -> Fraction {
    commission.exponent().map_or(whole(1), |k| whole(1) - power_of_two(-i32::from(k)))
}

fn rate_of(sell: BatchPrice, buy: BatchPrice, commission: Commission) -> Fraction {
    value(sell) / value(buy) * kept(commission)
}

fn as_amount(units: &BigInt) -> Option<Amount> {
    u64::try_from(units.clone()).ok().and_then(Amount::new)
}

fn amount(units: u64) -> Amount {
    Amount::new(units).unwrap()
}

/// Mantissas at their corners, exponents near, far and at the ends.
fn price() -> impl Strategy<Value = BatchPrice> {
    let fraction = prop_oneof![Just(0), Just(1), Just((1_u64 << 52) - 1), 0..8_u64, 0..1_u64 << 52];
    let exponent = prop_oneof![4 => -3..4_i32, 4 => -64..64_i32, 2 => -126..126_i32, 1 => Just(-126), 1 => Just(125)];
    let inside = (fraction, exponent)
        .prop_map(|(fraction, exponent)| BatchPrice::from_bits(((exponent + 1023) as u64) << 52 | fraction).unwrap());
    prop_oneof![30 => inside, 1 => Just(BatchPrice::MAX), 1 => Just(BatchPrice::MIN), 3 => Just(BatchPrice::ONE)]
}

fn any_amount() -> impl Strategy<Value = Amount> {
    let units = (0..=63_u32, any::<u64>()).prop_map(|(bits, units)| units & ((1_u64 << bits) - 1));
    prop_oneof![6 => units, 1 => (0..4_u64).prop_map(|less| AMOUNT_MAX - less), 2 => 0..20_u64].prop_map(amount)
}

fn commission() -> impl Strategy<Value = Commission> {
    (0..=30_u8).prop_map(|k| Commission::new(k).unwrap_or(Commission::NONE))
}

/// Two valuations, often nearly equal, and sometimes making a simple fraction.
fn valuations() -> impl Strategy<Value = (BatchPrice, BatchPrice)> {
    let small = (1..60_u64, 1..60_u64).prop_map(|(a, b)| {
        let of = |units: u64| BatchPrice::from_parts(units, 0, Rounding::Down).unwrap();
        (of(a), of(b))
    });
    let near = (price(), -3..=3_i64)
        .prop_map(|(price, steps)| (price, BatchPrice::from_bits(price.bits().wrapping_add_signed(steps)).unwrap_or(price)));
    prop_oneof![4 => (price(), price()), 2 => small, 1 => near]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn bits_are_ordered_as_values_and_are_those_of_a_float(a in price(), b in price()) {
        prop_assert_eq!(a.cmp(&b), value(a).cmp(&value(b)));
        prop_assert_eq!(a.bits().to_be_bytes().cmp(&b.bits().to_be_bytes()), value(a).cmp(&value(b)));
        let (m, e) = a.parts();
        prop_assert_eq!(whole(m) * power_of_two(e), value(a));
        prop_assert_eq!(BatchPrice::from_parts(m, e, Rounding::Up), Ok(a));
        prop_assert_eq!(f64::from_bits(a.bits()), m as f64 * 2_f64.powi(e));
    }

    #[test]
    fn ratios_round_to_the_neighbours(n in any::<u128>(), d in any::<u128>(), n_by in 0..128_u32, d_by in 0..128_u32) {
        let (n, d) = (n >> n_by, d >> d_by);
        let down = BatchPrice::from_ratio(n, d, Rounding::Down);
        let up = BatchPrice::from_ratio(n, d, Rounding::Up);
        if n == 0 || d == 0 {
            prop_assert_eq!((down, up), (Err(BatchPriceError::OutOfRange), Err(BatchPriceError::OutOfRange)));
            return Ok(());
        }
        let exact = Fraction::new(n.into(), d.into());
        let (low, high) = (value(BatchPrice::MIN), value(BatchPrice::MAX));
        prop_assert_eq!(down.is_ok(), exact >= low && (exact <= high || down == Ok(BatchPrice::MAX)), "{:?} {}", down, exact);
        prop_assert_eq!(up.is_ok(), exact <= high && (exact >= low || up == Ok(BatchPrice::MIN)), "{:?} {}", up, exact);
        if let Ok(down) = down {
            prop_assert!(value(down) <= exact);
            let next = BatchPrice::from_bits(down.bits() + 1);
            prop_assert!(next.is_err() || value(next.unwrap()) > exact);
        }
        if let Ok(up) = up {
            prop_assert!(value(up) >= exact);
            let before = BatchPrice::from_bits(up.bits() - 1);
            prop_assert!(before.is_err() || value(before.unwrap()) < exact);
        }
    }

    #[test]
    fn decimals_round_to_the_neighbours(whole_part in 0..10_u64.pow(12), decimals in "[0-9]{0,20}") {
        let text = format!("{whole_part}.{decimals}");
        let ten = BigInt::from(10).pow(decimals.len() as u32);
        let exact = Fraction::new(BigInt::from_str(&format!("{whole_part}{decimals}")).unwrap(), ten);
        let (down, up) = (BatchPrice::from_decimal(&text, Rounding::Down), BatchPrice::from_decimal(&text, Rounding::Up));
        if exact == whole(0) {
            prop_assert_eq!((down, up), (Err(BatchPriceError::OutOfRange), Err(BatchPriceError::OutOfRange)));
        } else {
            let (down, up) = (down.unwrap(), up.unwrap());
            prop_assert!(value(down) <= exact && exact <= value(up));
            prop_assert_eq!(up.bits() - down.bits(), u64::from(value(down) != exact));
            // The float of the same text is one of the two.
            let nearest = text.parse::<f64>().unwrap().to_bits();
            prop_assert!(nearest == down.bits() || nearest == up.bits());
        }
    }

    #[test]
    fn the_limit_of_a_sale_asks_for_what_the_ratio_does_where_a_price_can(n in 1..10_u128.pow(12), places in 0..14_u32, units in any_amount()) {
        let d = 10_u128.pow(places);
        let Ok(limit) = BatchPrice::limit_of_sale(n, d, units) else { return Ok(()) };
        let asked = (Fraction::new(n.into(), d.into()) * whole(units.get())).ceil().to_integer();
        let least = limit.bought_at_least(units);
        prop_assert!(least.is_none_or(|least| BigInt::from(least.get()) >= asked), "{:?} {}", least, asked);
        // Of fewer bits than a price has, what is asked for is not rounded.
        prop_assert!(asked >= BigInt::from(1_u64 << 52) || least == as_amount(&asked), "{:?} {}", least, asked);
    }

    #[test]
    fn the_limit_of_a_purchase_allows_what_the_ratio_does_where_a_price_can(n in 1..10_u128.pow(12), places in 0..14_u32, units in any_amount()) {
        let d = 10_u128.pow(places);
        let Ok(limit) = BatchPrice::limit_of_purchase(n, d, units) else { return Ok(()) };
        let allowed = (whole(units.get()) / Fraction::new(n.into(), d.into())).floor().to_integer();
        let most = limit.sold_at_most(units);
        prop_assert!(BigInt::from(most.get()) <= allowed, "{:?} {}", most, allowed);
        prop_assert!(allowed >= BigInt::from(1_u64 << 52) || as_amount(&allowed) == Some(most), "{:?} {}", most, allowed);
    }

    #[test]
    fn the_most_that_may_be_sold_is_the_last_amount_that_honours_the_limit(limit in price(), bought in any_amount()) {
        let most = limit.sold_at_most(bought);
        prop_assert!(limit.is_honoured_by(most, bought));
        prop_assert!(most == Amount::MAX || !limit.is_honoured_by(amount(most.get() + 1), bought));
    }

    #[test]
    fn limits_are_honoured_exactly(limit in price(), sold in any_amount(), bought in any_amount()) {
        let least = value(limit) * whole(sold.get());
        prop_assert_eq!(limit.is_honoured_by(sold, bought), least <= whole(bought.get()));
        prop_assert_eq!(limit.is_at_most_ratio(bought.get(), sold.get()), least <= whole(bought.get()));
        prop_assert_eq!(limit.bought_at_least(sold), as_amount(&least.ceil().to_integer()));
        if let Some(bought) = limit.bought_at_least(sold) {
            prop_assert!(limit.is_honoured_by(sold, bought));
            prop_assert!(bought.is_zero() || !limit.is_honoured_by(sold, amount(bought.get() - 1)));
        }
    }

    #[test]
    fn a_rate_is_the_exact_fraction((sell, buy) in valuations(), commission in commission(), limit in price(), units in any_amount()) {
        let (rate, exact) = (NetRate::new(sell, buy, commission).unwrap(), rate_of(sell, buy, commission));
        prop_assert_eq!(rate.holds(limit), value(limit) <= exact);
        prop_assert!(rate.holds(BatchPrice::ZERO));
        let sold = whole(units.get());
        prop_assert_eq!(rate.bought_down(units), as_amount(&(sold.clone() * exact.clone()).floor().to_integer()));
        let up = as_amount(&(sold.clone() * exact.clone()).ceil().to_integer());
        prop_assert_eq!(rate.bought_up(units), up.filter(|_| rate.bought_down(units).is_some()));
        prop_assert_eq!(rate.sold_up(units), as_amount(&(sold / exact).ceil().to_integer()));
    }

    /// Where the rate's own first bits leave the answer open: products at or next to a whole number.
    #[test]
    fn a_rate_is_exact_next_to_whole_numbers(a in 1..2_000_u64, b in 1..2_000_u64, times in 1..1_u64 << 40, off in -1..=1_i64, k in commission()) {
        let of = |units: u64| BatchPrice::from_parts(units, 0, Rounding::Down).unwrap();
        let (rate, exact) = (NetRate::new(of(a), of(b), k).unwrap(), rate_of(of(a), of(b), k));
        let units = amount((b * times).wrapping_add_signed(off));
        let product = whole(units.get()) * exact.clone();
        prop_assert_eq!(rate.bought_down(units), as_amount(&product.floor().to_integer()));
        prop_assert_eq!(rate.bought_up(units), as_amount(&product.ceil().to_integer()));
        prop_assert_eq!(rate.sold_up(units), as_amount(&(whole(units.get()) / exact).ceil().to_integer()));
    }

    #[test]
    fn comparisons_of_products_are_exact((sell, buy) in valuations(), commission in commission(), sold: u128, bought: u128, s in 0..128_u32, b in 0..128_u32) {
        let (rate, exact) = (NetRate::new(sell, buy, commission).unwrap(), rate_of(sell, buy, commission));
        let (sold, bought) = (sold >> s, bought >> b);
        let (paid, wanted) = (Fraction::from_integer(sold.into()) * exact, Fraction::from_integer(bought.into()));
        prop_assert_eq!(rate.pays_at_least(sold, bought), paid >= wanted);
        prop_assert_eq!(rate.pays_at_most(sold, bought), paid <= wanted);
    }

    #[test]
    fn an_effective_limit_is_honoured_in_whole_units(
        stated in price(),
        units in any_amount(),
        (sell, buy) in valuations(),
        commission in commission(),
    ) {
        let least = (value(stated) * whole(units.get())).ceil().to_integer();
        let Some(limit) = effective_limit(stated, units) else {
            prop_assert!(units.is_zero() || as_amount(&least).is_none());
            return Ok(());
        };
        // The least price that will do, and so never below the stated one.
        let exact = Fraction::new(least.clone(), units.get().into());
        prop_assert!(value(limit) >= exact && limit >= stated);
        prop_assert!(value(BatchPrice::from_bits(limit.bits() - 1).unwrap()) < exact);
        // At this rate, and at the lowest that the limit accepts.
        let lowest = NetRate::new(limit, BatchPrice::ONE, Commission::NONE).unwrap();
        for rate in [NetRate::new(sell, buy, commission).unwrap(), lowest] {
            if rate.holds(limit) {
                prop_assert!(rate.bought_down(units).is_none_or(|bought| BigInt::from(bought.get()) >= least));
            }
        }
        prop_assert!(lowest.holds(limit));
    }

    #[test]
    fn an_effective_buy_limit_is_honoured_in_whole_units(
        stated in prop_oneof![5 => price(), 1 => Just(BatchPrice::ZERO)],
        bought in any_amount(),
        sold_max in any_amount(),
        (sell, buy) in valuations(),
    ) {
        let stated_most = (stated > BatchPrice::ZERO).then(|| (whole(bought.get()) / value(stated)).floor().to_integer());
        let most = stated_most.map_or(sold_max.get().into(), |most| most.min(sold_max.get().into()));
        let Some(limit) = effective_buy_limit(stated, bought, sold_max) else {
            prop_assert!(bought.is_zero() || most == BigInt::from(0));
            return Ok(());
        };
        prop_assert!(limit >= stated);
        let exact = Fraction::new(bought.get().into(), most.clone());
        prop_assert!(value(limit) >= exact && value(BatchPrice::from_bits(limit.bits() - 1).unwrap()) < exact);
        let lowest = NetRate::new(limit, BatchPrice::ONE, Commission::NONE).unwrap();
        for rate in [NetRate::new(sell, buy, Commission::NONE).unwrap(), lowest] {
            if rate.holds(limit) {
                prop_assert!(BigInt::from(rate.sold_up(bought).unwrap().get()) <= most);
            }
        }
    }
}

#[test]
fn the_ends_of_the_range_are_inside() {
    assert_eq!(value(BatchPrice::MIN), power_of_two(-126));
    assert_eq!(value(BatchPrice::MAX), power_of_two(126));
    for price in [BatchPrice::ZERO, BatchPrice::MIN, BatchPrice::ONE, BatchPrice::MAX] {
        assert_eq!(BatchPrice::from_bits(price.bits()), Ok(price));
    }
    let outside = [
        1,
        BatchPrice::MIN.bits() - 1,
        BatchPrice::MAX.bits() + 1,
        f64::INFINITY.to_bits(),
        f64::NAN.to_bits(),
        (-1_f64).to_bits(),
    ];
    for bits in outside {
        assert_eq!(BatchPrice::from_bits(bits), Err(BatchPriceError::InvalidBits(bits)));
    }
    assert_eq!(BatchPrice::from_parts(u64::MAX, 62, Rounding::Up), Ok(BatchPrice::MAX));
    assert_eq!(BatchPrice::from_parts(u64::MAX, 63, Rounding::Down), Err(BatchPriceError::OutOfRange));
    assert_eq!(BatchPrice::from_parts(1, i32::MIN, Rounding::Up), Err(BatchPriceError::OutOfRange));
    assert_eq!(BatchPrice::from_parts(1, i32::MAX, Rounding::Down), Err(BatchPriceError::OutOfRange));
    assert_eq!(BatchPrice::from_parts(0, 0, Rounding::Up), Err(BatchPriceError::OutOfRange));
}

#[test]
fn rates_at_the_ends_of_the_range_are_exact() {
    let ends = [BatchPrice::MIN, BatchPrice::from_bits(BatchPrice::MIN.bits() + 1).unwrap(), BatchPrice::ONE, BatchPrice::MAX];
    for (sell, buy) in ends.into_iter().flat_map(|sell| ends.map(|buy| (sell, buy))) {
        for k in [0, 1, 2, 29, 30] {
            let commission = Commission::new(k).unwrap_or(Commission::NONE);
            let (rate, exact) = (NetRate::new(sell, buy, commission).unwrap(), rate_of(sell, buy, commission));
            for limit in ends {
                assert_eq!(rate.holds(limit), value(limit) <= exact, "{sell} / {buy}, {commission:?}, {limit}");
            }
            for units in [0, 1, 2, AMOUNT_MAX - 1, AMOUNT_MAX].map(amount) {
                let product = whole(units.get()) * exact.clone();
                assert_eq!(rate.bought_down(units), as_amount(&product.floor().to_integer()), "{units} at {sell} / {buy}");
                let quotient = whole(units.get()) / exact.clone();
                assert_eq!(rate.sold_up(units), as_amount(&quotient.ceil().to_integer()), "{units} at {sell} / {buy}");
            }
        }
        assert_eq!(NetRate::new(sell, BatchPrice::ZERO, Commission::NONE), None);
        assert_eq!(NetRate::new(BatchPrice::ZERO, buy, Commission::NONE), None);
    }
}

#[test]
fn less_mu_is_a_share_of_the_rate() {
    let mu = Mu::new(10).unwrap();
    let rate = NetRate::less_mu(BatchPrice::ONE, BatchPrice::ONE, mu).unwrap();
    assert_eq!(value(rate.highest_limit()), whole(1) - power_of_two(-10));
    assert_eq!((Mu::new(0), Mu::new(31), Commission::new(0), Commission::new(31)), (None, None, None, None));
    assert_eq!((mu.exponent(), Commission::NONE.exponent(), Commission::new(30).unwrap().exponent()), (10, None, Some(30)));
}

#[test]
fn decimals_that_are_none_are_refused() {
    for text in ["", ".", "1.2.3", "-1", "+1", "1e3", " 1", "1 ", "0x1", "NaN", "1_000", "١"] {
        assert_eq!(BatchPrice::from_decimal(text, Rounding::Up), Err(BatchPriceError::Malformed), "{text:?}");
    }
    let long = "1".repeat(39);
    assert_eq!(BatchPrice::from_decimal(&long, Rounding::Up), Err(BatchPriceError::Malformed));
    assert_eq!(BatchPrice::from_decimal(&format!("0.{}1", "0".repeat(38)), Rounding::Up), Err(BatchPriceError::Malformed));
    for text in ["0", "0.00", "99999999999999999999999999999999999999"] {
        assert_eq!(BatchPrice::from_decimal(text, Rounding::Up), Err(BatchPriceError::OutOfRange), "{text:?}");
    }
    for text in ["1", "1.", "01.000", "0001.00000000000000000000000000000000000000000000000000"] {
        assert_eq!(BatchPrice::from_decimal(text, Rounding::Up), Ok(BatchPrice::ONE), "{text:?}");
    }
    assert_eq!(BatchPrice::from_decimal(".5", Rounding::Up).map(value), Ok(Fraction::new(1.into(), 2.into())));
}
