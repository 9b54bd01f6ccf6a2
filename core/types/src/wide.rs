//! Products of two 128-bit numbers, to compare fractions exactly.

/// A 256-bit number: what a product of two 128-bit numbers needs. Only made and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct U256 {
    high: u128,
    low: u128,
}

impl U256 {
    /// `a * b`, exact.
    #[must_use]
    pub const fn product(a: u128, b: u128) -> Self {
        const LOW: u128 = u64::MAX as u128;
        let (a_high, a_low, b_high, b_low) = (a >> 64, a & LOW, b >> 64, b & LOW);
        // Four products below 2^128; the middle sum is below 3 * 2^64.
        let (low, cross_1, cross_2, high) = (a_low * b_low, a_low * b_high, a_high * b_low, a_high * b_high);
        let middle = (low >> 64) + (cross_1 & LOW) + (cross_2 & LOW);
        Self { high: high + (cross_1 >> 64) + (cross_2 >> 64) + (middle >> 64), low: (middle << 64) | (low & LOW) }
    }

    /// `self + other`; the caller knows that it fits.
    ///
    /// # Panics
    /// When it does not.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        let (low, is_carried) = self.low.overflowing_add(other.low);
        let high = self.high.checked_add(other.high).expect("a sum of 256 bits").checked_add(is_carried as u128);
        Self { high: high.expect("a sum of 256 bits"), low }
    }

    /// `(m, e)` with `m` of at most `bits` bits, 1 to 127, and `m * 2^e` not below the number: the nearest such, or the next.
    #[must_use]
    pub const fn leading_up(self, bits: u32) -> (u128, u32) {
        let (m, e) = self.leading_down(bits);
        let cut = Self { high: 0, low: m }.shifted(e);
        // One more may have a bit more, which a `u128` holds.
        if cut.high == self.high && cut.low == self.low { (m, e) } else { (m + 1, e) }
    }

    /// The same not above the number.
    #[must_use]
    pub const fn leading_down(self, bits: u32) -> (u128, u32) {
        let e = self.bit_count().saturating_sub(bits);
        let m = match e {
            0 => self.low,
            1..=127 => (self.high << (128 - e)) | (self.low >> e),
            _ => self.high >> (e - 128),
        };
        (m, e)
    }

    /// The number of bits up to the highest that is set, 0 for zero.
    const fn bit_count(self) -> u32 {
        match self.high {
            0 => 128 - self.low.leading_zeros(),
            high => 256 - high.leading_zeros(),
        }
    }

    /// `self * 2^by`; the caller knows that nothing is lost.
    const fn shifted(self, by: u32) -> Self {
        match by {
            0 => self,
            1..=127 => Self { high: (self.high << by) | (self.low >> (128 - by)), low: self.low << by },
            _ => Self { high: self.low << (by - 128), low: 0 },
        }
    }

    const fn is_at_least(self, other: Self) -> bool {
        self.high > other.high || (self.high == other.high && self.low >= other.low)
    }

    /// Whether `self * 2^shift >= other`, exactly, for any shift. Where the bit counts differ they decide; where they are equal the
    /// shifted one has as many bits as the other, so nothing is lost.
    #[must_use]
    pub const fn scaled_is_at_least(self, shift: i32, other: Self) -> bool {
        let (bits, other_bits) = (self.bit_count() as i64, other.bit_count() as i64);
        if bits == 0 || other_bits == 0 {
            return other_bits == 0;
        }
        match bits + shift as i64 - other_bits {
            0 if shift >= 0 => self.shifted(shift.unsigned_abs()).is_at_least(other),
            0 => self.is_at_least(other.shifted(shift.unsigned_abs())),
            more => more > 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_bits_bracket_a_number() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u128::from(state) << 64 | u128::from(state.rotate_left(17))
        };
        for round in 0..4_000_u32 {
            let (a, b) = (next() >> (round % 128), next() >> (round / 31 % 128));
            let (number, bits) = (U256::product(a, b), 1 + round % 127);
            let (down, up) = (number.leading_down(bits), number.leading_up(bits));
            let at = |(m, e): (u128, u32)| U256::product(m, 1).scaled_is_at_least(e as i32, number);
            let below = |(m, e): (u128, u32)| number.scaled_is_at_least(-(e as i32), U256::product(m, 1));
            assert!(below(down) && at(up) && down.0 >> bits == 0 && up.0 - down.0 <= 1, "{a} {b} {bits}");
            assert!(down == up || !at(down) && !below(up), "{a} {b} {bits}");
        }
    }

    #[test]
    fn a_sum_carries() {
        let max = U256::product(u128::MAX, 1);
        assert_eq!(max.plus(U256::product(1, 1)), U256::product(1 << 64, 1 << 64));
        assert_eq!(max.plus(max), U256::product(u128::MAX, 2));
    }
}
