//! What a trader or an operator may rely on, a script per subject. The language is explained in [`crate::script`].

mod brackets;
mod changes;
mod funds;
mod links;
mod orders;
mod phases;
mod stops;

use walras_types::{Allocation, FeeSchedule, InstrumentSpec};

use crate::venue::spec;

/// No fees; one tick on a lot is a dollar; any price up to twice the reference, which is 100.
fn plain() -> InstrumentSpec {
    spec(0)
}

fn with_fees(maker_ppm: i32, taker_ppm: i32) -> InstrumentSpec {
    InstrumentSpec { fees: FeeSchedule { maker_ppm, taker_ppm }, ..plain() }
}

/// Limit prices within 10 %, trades within 5 % of the reference.
fn banded() -> InstrumentSpec {
    InstrumentSpec { collar_ppm: 100_000, band_ppm: 50_000, ..plain() }
}

fn shared(allocation: Allocation) -> InstrumentSpec {
    InstrumentSpec { allocation, ..plain() }
}
