//! Meeting oneself: the incoming order's choice decides.

use walras_types::{Allocation, Allocation::PriceTime, SizeLots};

use crate::script::check;

#[test]
fn cancel_newest_ends_the_incoming_order() {
    check(
        PriceTime,
        "
        b1 sell 2@100
          rests with 2
        a1 sell 5@100 oldest
          rests with 5
        a2 buy 8@101 newest
          2@100 from b1 (0 left) to a2 (6 left)
          self-traded 6
        book
          bids none
          asks 100: a1 5
        ",
    );
}

#[test]
fn cancel_oldest_ends_the_resting_order_and_goes_on() {
    check(
        PriceTime,
        "
        a1 sell 5@100
          rests with 5
        b1 sell 2@100
          rests with 2
        a2 buy 8@100 oldest
          a1 removed with 5: SelfTrade
          2@100 from b1 (0 left) to a2 (6 left)
          rests with 6
        ",
    );
}

#[test]
fn cancel_both_ends_both() {
    check(
        PriceTime,
        "
        a1 sell 5@100
          rests with 5
        b1 sell 2@100
          rests with 2
        a2 buy 8@100 both
          a1 removed with 5: SelfTrade
          self-traded 8
        book
          bids none
          asks 100: b1 2
        ",
    );
}

#[test]
fn decrement_takes_the_smaller_off_both() {
    check(
        PriceTime,
        "
        a1 sell 5@100
          rests with 5
        b1 sell 2@100
          rests with 2
        a2 buy 8@100 decrement
          a1 removed with 5: SelfTrade
          itself reduced by 5 to 3
          2@100 from b1 (0 left) to a2 (1 left)
          rests with 1
        a3 sell 7@100 decrement
          a2 removed with 1: SelfTrade
          itself reduced by 1 to 6
          rests with 6
        a4 buy 2@100 decrement
          a3 reduced by 2 to 4, shows 4
          itself reduced by 2 to 0
          self-traded 0
        ",
    );
}

#[test]
fn decrement_takes_from_what_an_iceberg_hides_first() {
    check(
        PriceTime,
        "
        a1 sell 9@100 peak=3
          rests with 9, shows 3
        a2 buy 4@100 decrement
          a1 reduced by 4 to 5, shows 3
          itself reduced by 4 to 0
          self-traded 0
        a3 buy 3@100 decrement
          a1 reduced by 3 to 2, shows 2
          itself reduced by 3 to 0
          self-traded 0
        ",
    );
}

#[test]
fn allowed_self_trades_are_trades() {
    check(
        PriceTime,
        "
        a1 sell 5@100
          rests with 5
        a2 buy 5@100 allow
          5@100 from a1 (0 left) to a2 (0 left)
          filled
        ",
    );
}

#[test]
fn a_shared_level_is_cleared_of_oneself_before_it_is_shared() {
    let pro_rata = Allocation::ProRata { min_lots: SizeLots::new(1) };
    check(
        pro_rata,
        "
        b1 sell 10@100
          rests with 10
        a1 sell 10@100
          rests with 10
        a2 buy 4@100 newest
          self-traded 4
        a2 buy 4@100 oldest
          a1 removed with 10: SelfTrade
          4@100 from b1 (6 left) to a2 (0 left)
          filled
        ",
    );
}

#[test]
fn fill_or_kill_counts_trades_only() {
    // Only the iceberg's slice trades before the own order ends the taker.
    check(
        PriceTime,
        "
        b1 sell 20@100 peak=2
          rests with 20, shows 2
        a1 sell 5@100
          rests with 5
        a2 buy 3@100 fok newest
          refused: FillOrKillUnfillable
        a2 buy 3@100 fok decrement
          refused: FillOrKillUnfillable
        a2 buy 9@100 min=4 decrement ioc
          2@100 from b1 (18 left) to a2 (7 left)
          b1 replenished, shows 2
          a1 removed with 5: SelfTrade
          itself reduced by 5 to 2
          2@100 from b1 (16 left) to a2 (0 left)
          b1 replenished, shows 2
          filled
        a1 sell 5@100
          rests with 5
        a3 buy 10@100 fok oldest
          2@100 from b1 (14 left) to a3 (8 left)
          b1 replenished, shows 2
          a1 removed with 5: SelfTrade
          2@100 from b1 (12 left) to a3 (6 left)
          b1 replenished, shows 2
          2@100 from b1 (10 left) to a3 (4 left)
          b1 replenished, shows 2
          2@100 from b1 (8 left) to a3 (2 left)
          b1 replenished, shows 2
          2@100 from b1 (6 left) to a3 (0 left)
          b1 replenished, shows 2
          filled
        ",
    );
}
