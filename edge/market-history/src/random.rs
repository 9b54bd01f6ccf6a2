//! Random numbers that are the same on every machine: integers only, no floats, no mathematics library.
//!
//! The generator is that of `walras_random`. Exponential and power-law samples need a logarithm and a power of two; both are computed bit
//! by bit in fixed point.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(walras_random::Random);

/// Fraction bits of the fixed-point numbers here.
const FRACTION_BITS: u32 = 32;

/// One, in fixed point.
pub(crate) const ONE_Q32: u64 = 1 << FRACTION_BITS;

/// The natural logarithm of two, in fixed point.
const LN_2_Q32: u64 = 2_977_044_472;

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(walras_random::Random::new(seed))
    }

    /// All 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// From 0 to `bound - 1`; `bound` above zero. The bias is below `bound / 2^64`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        self.0.below(bound)
    }

    /// From `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        debug_assert!(low <= high);
        low + self.below(high.abs_diff(low) + 1).cast_signed()
    }

    /// True `share` times in `2^32`.
    pub(crate) fn chance_q32(&mut self, share: u64) -> bool {
        self.bits() >> FRACTION_BITS < share
    }

    /// True `numerator` times in `denominator`.
    pub(crate) fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// `log2` of one over a number uniform in (0, 1], in fixed point: what exponential and power-law samples are made of.
    fn minus_log2_uniform_q32(&mut self) -> u64 {
        let uniform = self.bits().max(1);
        (64 << FRACTION_BITS) - log2_q32(uniform)
    }

    /// Exponentially distributed with this mean.
    pub(crate) fn exponential(&mut self, mean: u64) -> u64 {
        let e_folds_q32 = (u128::from(self.minus_log2_uniform_q32()) * u128::from(LN_2_Q32)) >> FRACTION_BITS;
        u64::try_from((u128::from(mean) * e_folds_q32) >> FRACTION_BITS).unwrap_or(u64::MAX)
    }

    /// From 1 to `cap`; `x` or more with probability `x^-tail`, where `tail` is `tail_tenths / 10`.
    pub(crate) fn power_law(&mut self, tail_tenths: u64, cap: u64) -> u64 {
        let exponent_q32 = self.minus_log2_uniform_q32() * 10 / tail_tenths;
        if exponent_q32 >> FRACTION_BITS >= 63 {
            return cap;
        }
        exp2_q32(exponent_q32).min(cap)
    }
}

/// `log2` of an integer above zero, in fixed point, rounded down.
fn log2_q32(value: u64) -> u64 {
    let whole = u64::from(value.ilog2());
    // The mantissa in [1, 2) with 63 fraction bits; squaring it doubles its logarithm, whose next bit is whether it passes 2.
    let mut mantissa = u128::from(value << value.leading_zeros());
    let mut log = whole;
    for _ in 0..FRACTION_BITS {
        mantissa = (mantissa * mantissa) >> 63;
        let carry = mantissa >> 64;
        mantissa >>= carry;
        log = log << 1 | carry as u64;
    }
    log
}

/// `2^(1/2), 2^(1/4), ...`, with 62 fraction bits, each the root of the last.
const ROOTS_OF_TWO_Q62: [u128; FRACTION_BITS as usize] = {
    let mut roots = [0; FRACTION_BITS as usize];
    let mut root = 2u128 << 62;
    let mut at = 0;
    while at < roots.len() {
        root = (root << 62).isqrt();
        roots[at] = root;
        at += 1;
    }
    roots
};

/// `floor(2^exponent)` of a fixed-point exponent below 63.
pub(crate) fn exp2_q32(exponent: u64) -> u64 {
    let whole = exponent >> FRACTION_BITS;
    let mut power = 1u128 << 62;
    for (bit, root) in (0..FRACTION_BITS).rev().zip(ROOTS_OF_TWO_Q62) {
        if exponent >> bit & 1 == 1 {
            power = (power * root) >> 62;
        }
    }
    ((power << whole) >> 62) as u64
}

/// `2^(-elapsed / half_life)` in fixed point: what is left of a decaying quantity.
pub(crate) fn decay_q32(elapsed: u64, half_life: u64) -> u64 {
    let halvings_q32 = (u128::from(elapsed) << FRACTION_BITS) / u128::from(half_life);
    match u64::try_from(halvings_q32) {
        // exp2 of (32 - halvings) is the fraction scaled by 2^32.
        Ok(halvings) if halvings < 32 << FRACTION_BITS => exp2_q32((32 << FRACTION_BITS) - halvings),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // First outputs for seed 1234567, as every implementation of SplitMix64 gives them.
        let mut random = Random::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([random.bits(), random.bits(), random.bits()], expected);
    }

    #[test]
    fn logarithm_and_power_are_inverse() {
        assert_eq!(log2_q32(1), 0);
        assert_eq!(log2_q32(1 << 40), 40 << 32);
        // log2(10) = 3.321928094887362, times 2^32 = 14,267,572,527.6.
        assert_eq!(log2_q32(10), 14_267_572_527);
        assert_eq!(exp2_q32(0), 1);
        assert_eq!(exp2_q32(40 << 32), 1 << 40);
        for value in [3u64, 10, 1_000, 123_456_789] {
            // The logarithm is rounded down by under 2^-32, so the power falls short by under value / 2^32 and then rounds down.
            assert!((value - 1..=value).contains(&exp2_q32(log2_q32(value))), "{value}");
        }
        assert_eq!(decay_q32(0, 7), ONE_Q32);
        assert_eq!(decay_q32(7, 7), ONE_Q32 / 2);
        assert_eq!(decay_q32(u64::MAX, 1), 0);
    }

    #[test]
    fn samples_have_the_documented_distributions() {
        let mut random = Random::new(1);
        let sum: u64 = (0..100_000).map(|_| random.exponential(1_000_000)).sum();
        assert!((98_000_000_000..102_000_000_000).contains(&sum), "{sum}");
        // P(x >= 10) = 10^-1.5 = 3.16 %.
        let tail = (0..100_000).filter(|_| random.power_law(15, 1 << 40) >= 10).count();
        assert!((2_900..3_450).contains(&tail), "{tail}");
        assert!((0..10_000).all(|_| (1..=7).contains(&random.power_law(15, 7))));
        let low = (0..100_000).filter(|_| random.between(-3, 6) < 0).count();
        assert!((29_000..31_000).contains(&low), "{low}");
    }
}
