//! Orders collect, then trade at one price.

use walras_types::{Allocation, Allocation::PriceTime, SizeLots};

use crate::script::check;

#[test]
fn the_price_with_the_most_volume_wins() {
    check(
        PriceTime,
        "
        collect
        a1 buy 10@103
          rests with 10
        a2 buy 20@101
          rests with 20
        b1 sell 15@100
          rests with 15
        b2 sell 20@102
          rests with 20
        uncross 110
          15 at 101, imbalance 15
          10@101 from b1 (5 left) to a1 (0 left)
          5@101 from b1 (0 left) to a2 (15 left)
        book
          bids 101: a2 15
          asks 102: b2 20
        ",
    );
}

#[test]
fn then_the_price_with_the_least_imbalance() {
    // 10 trade at every price from 100 to 102; at 102 two bids of 5 fall away.
    check(
        PriceTime,
        "
        collect
        a1 buy 10@102
          rests with 10
        a2 buy 5@101
          rests with 5
        b1 sell 10@100
          rests with 10
        uncross 90
          10 at 102, imbalance 0
          10@102 from b1 (0 left) to a1 (0 left)
        ",
    );
}

#[test]
fn then_the_pressure_of_what_is_left_over() {
    // From 100 to 105 alike 10 trade and 5 are bid beyond: as far up as they bid.
    check(
        PriceTime,
        "
        collect
        a1 buy 15@105
          rests with 15
        b1 sell 10@100
          rests with 10
        uncross 100
          10 at 105, imbalance 5
          10@105 from b1 (0 left) to a1 (5 left)
        collect
        b2 sell 20@98
          rests with 20
        uncross 105
          5 at 98, imbalance -15
          5@98 from b2 (15 left) to a1 (0 left)
        ",
    );
}

#[test]
fn then_the_reference_price_even_between_limits() {
    for (reference, price) in [(90, 100), (100, 100), (103, 103), (105, 105), (200, 105)] {
        check(
            PriceTime,
            &format!(
                "
                collect
                a1 buy 10@105
                  rests with 10
                b1 sell 10@100
                  rests with 10
                uncross {reference}
                  10 at {price}, imbalance 0
                  10@{price} from b1 (0 left) to a1 (0 left)
                ",
            ),
        );
    }
}

#[test]
fn pressure_both_ways_leaves_it_to_the_reference() {
    // 10 trade throughout; 5 are bid beyond up to 102, 5 offered beyond from 103 on.
    let collected = "
        collect
        a1 buy 10@110
          rests with 10
        a2 buy 5@102
          rests with 5
        b1 sell 10@100
          rests with 10
        b2 sell 5@103
          rests with 5
    ";
    for (reference, price, imbalance) in [(99, 100, 5), (102, 102, 5), (104, 104, -5), (200, 110, -5)] {
        let uncross = format!(
            "
        uncross {reference}
          10 at {price}, imbalance {imbalance}
          10@{price} from b1 (0 left) to a1 (0 left)
    "
        );
        check(PriceTime, &format!("{collected}{uncross}"));
    }
}

#[test]
fn nothing_crosses() {
    check(
        PriceTime,
        "
        collect
        a1 buy 10@99
          rests with 10
        b1 sell 10@100
          rests with 10
        uncross 100
          nothing crosses
        x1 buy 1@100
          1@100 from b1 (9 left) to x1 (0 left)
          filled
        ",
    );
}

#[test]
fn an_uncross_goes_by_price_visibility_and_time_whatever_the_allocation() {
    check(
        Allocation::ProRata { min_lots: SizeLots::new(1) },
        "
        collect
        h1 buy 3@100 hidden
          rests with 3, shows 0
        i1 buy 5@100 peak=2
          rests with 5, shows 2
        a1 buy 4@100
          rests with 4
        b1 sell 10@100
          rests with 10
        uncross 100
          10 at 100, imbalance 2
          2@100 from b1 (8 left) to i1 (3 left)
          i1 replenished, shows 2
          4@100 from b1 (4 left) to a1 (0 left)
          2@100 from b1 (2 left) to i1 (1 left)
          i1 replenished, shows 1
          1@100 from b1 (1 left) to i1 (0 left)
          1@100 from b1 (0 left) to h1 (2 left)
        ",
    );
}

#[test]
fn an_uncross_allows_self_trades_and_touches_stops() {
    check(
        PriceTime,
        "
        collect
        a1 buy 1@100
          rests with 1
        a2 sell 1@100
          rests with 1
        s1 buy 1@99 stop=100
          waits
        a1 amend size=2
          rests with 2
        a2 amend price=99
          rests with 1
        uncross 100
          1 at 100, imbalance 1
          1@100 from a2 (0 left) to a1 (1 left)
        trigger
          s1 triggers
          rests with 1
        ",
    );
}
