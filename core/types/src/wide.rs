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
