//! The allocation rules as `walras_types::Allocation` tells them.

use walras_order_book::{OpenOrder, Seniority};
use walras_types::{Allocation, SizeLots};

/// What each order of a displayed level, in queue order, gets of `quantity`, which is less than the level shows.
pub(super) fn shares(allocation: Allocation, level: &[OpenOrder], quantity: SizeLots) -> Vec<SizeLots> {
    let shown: Vec<u64> = level.iter().map(|order| order.shown.get()).collect();
    let mut shares = vec![0; level.len()];
    let mut left = quantity.get();
    match allocation {
        Allocation::PriceTime => first_in_first_out(&shown, &mut shares, &mut left, u64::MAX),
        Allocation::ProRata { min_lots } => pro_rata(&shown, &mut shares, &mut left, min_lots.get()),
        Allocation::TopProRata { top_lots_max, min_lots } => {
            if let Some(top) = level.iter().position(|order| order.seniority == Seniority::SetThePrice) {
                shares[top] = shown[top].min(top_lots_max.get()).min(left);
                left -= shares[top];
            }
            pro_rata(&shown, &mut shares, &mut left, min_lots.get());
        }
        Allocation::Split { fifo_percent, min_lots } => {
            let first = u128::from(left) * u128::from(fifo_percent) / 100;
            first_in_first_out(&shown, &mut shares, &mut left, first as u64);
            pro_rata(&shown, &mut shares, &mut left, min_lots.get());
        }
    }
    shares.into_iter().map(SizeLots::new).collect()
}

/// Gives at most `limit` of `left`.
fn first_in_first_out(shown: &[u64], shares: &mut [u64], left: &mut u64, mut limit: u64) {
    for (share, shown) in shares.iter_mut().zip(shown) {
        let more = (shown - *share).min(*left).min(limit);
        *share += more;
        *left -= more;
        limit -= more;
    }
}

/// Gives all of `left`, in proportion to what each order still shows.
fn pro_rata(shown: &[u64], shares: &mut [u64], left: &mut u64, min_lots: u64) {
    let rest: Vec<u64> = shown.iter().zip(shares.iter()).map(|(shown, share)| shown - share).collect();
    let total: u128 = rest.iter().map(|rest| u128::from(*rest)).sum();
    let to_share = u128::from(*left);
    for (share, rest) in shares.iter_mut().zip(rest) {
        let proportional = (u128::from(rest) * to_share / total) as u64;
        if proportional >= min_lots {
            *share += proportional;
            *left -= proportional;
        }
    }
    first_in_first_out(shown, shares, left, u64::MAX);
}
