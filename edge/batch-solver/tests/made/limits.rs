//! Limits and amounts at random, near each other, far apart, and at the ends of what there can be.

use proptest::prelude::*;
use walras_types::{Amount, BatchPrice};

/// Limits.
pub(crate) fn stated() -> impl Strategy<Value = BatchPrice> {
    let near_one = (-1.0..1.0_f64).prop_map(f64::exp2);
    let far = (-125.0..125.0_f64).prop_map(f64::exp2);
    let edge = prop_oneof![Just(BatchPrice::MIN), Just(BatchPrice::MAX), Just(BatchPrice::ONE), Just(BatchPrice::ZERO)];
    prop_oneof![6 => near_one, 2 => (-20.0..20.0_f64).prop_map(f64::exp2), 1 => far]
        .prop_map(|value| BatchPrice::from_bits(value.to_bits()).unwrap())
        .boxed()
        .prop_union(edge.boxed())
}

/// Amounts; 64 of them are one.
pub(crate) fn units() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 1..1_000_u64, 3 => 1..1_000_000_000_u64, 2 => 1..=3_u64, 1 => 1..=Amount::MAX.get() / 64, 1 => Just(Amount::MAX.get() / 64)]
}
