//! Order types, times in force, visibility, amendments and bands.

use walras_types::Allocation::PriceTime;

use crate::script::check;

#[test]
fn a_limit_order_trades_at_the_makers_price_and_rests() {
    check(
        PriceTime,
        "
        a1 sell 5@100
          rests with 5
        b1 sell 5@101
          rests with 5
        x1 buy 12@101
          5@100 from a1 (0 left) to x1 (7 left)
          5@101 from b1 (0 left) to x1 (2 left)
          rests with 2
        book
          bids 101: x1 2
          asks none
        ",
    );
}

#[test]
fn immediate_or_cancel_takes_what_there_is() {
    check(
        PriceTime,
        "
        a1 sell 5@100
          rests with 5
        x1 buy 3@99 ioc
          unfilled 3
        x1 buy 8@100 ioc
          5@100 from a1 (0 left) to x1 (3 left)
          unfilled 3
        ",
    );
}

#[test]
fn fill_or_kill_takes_all_or_nothing() {
    check(
        PriceTime,
        "
        a1 sell 3@100
          rests with 3
        b1 sell 20@101 peak=2
          rests with 20, shows 2
        c1 sell 5@101 hidden
          rests with 5, shows 0
        x1 buy 29@101 fok
          refused: FillOrKillUnfillable
        x1 buy 4@100 fok
          refused: FillOrKillUnfillable
        x1 buy 5@101 fok
          3@100 from a1 (0 left) to x1 (2 left)
          2@101 from b1 (18 left) to x1 (0 left)
          b1 replenished, shows 2
          filled
        ",
    );
}

#[test]
fn a_minimum_holds_on_entry_only() {
    check(
        PriceTime,
        "
        a1 sell 3@100
          rests with 3
        x1 buy 10@100 min=4
          refused: MinSizeUnfillable
        x1 buy 10@100 min=3
          3@100 from a1 (0 left) to x1 (7 left)
          rests with 7
        a1 sell 1@100
          1@100 from a1 (0 left) to x1 (6 left)
          filled
        x2 buy 10@99 min=1
          refused: MinSizeUnfillable
        ",
    );
}

#[test]
fn post_only_is_refused_or_repriced() {
    check(
        PriceTime,
        "
        a1 sell 3@100
          rests with 3
        x1 buy 1@100 post
          refused: PostOnlyWouldTrade
        x1 buy 1@99 post
          rests with 1
        x2 buy 1@105 reprice
          rests with 1 at 99
        b1 sell 1@50 reprice
          rests with 1 at 100
        x1 amend price=100
          refused: PostOnlyWouldTrade
        x2 amend price=101 size=4
          rests with 4 at 99
        book
          bids 99: x1 1 x2 4
          asks 100: a1 3 b1 1
        ",
    );
}

#[test]
fn post_only_has_no_price_below_the_lowest() {
    check(
        PriceTime,
        "
        a1 sell 3@1
          rests with 3
        x1 buy 1@5 reprice
          refused: PostOnlyWouldTrade
        ",
    );
}

#[test]
fn post_only_also_yields_to_what_is_hidden() {
    check(
        PriceTime,
        "
        h1 sell 3@100 hidden
          rests with 3, shows 0
        x1 buy 1@100 post
          refused: PostOnlyWouldTrade
        x1 buy 1@100 reprice
          rests with 1 at 99
        ",
    );
}

#[test]
fn an_iceberg_goes_to_the_back_with_each_slice() {
    check(
        PriceTime,
        "
        a1 sell 7@100 peak=3
          rests with 7, shows 3
        b1 sell 2@100
          rests with 2
        x1 buy 4@100
          3@100 from a1 (4 left) to x1 (1 left)
          a1 replenished, shows 3
          1@100 from b1 (1 left) to x1 (0 left)
          filled
        x2 buy 5@100
          1@100 from b1 (0 left) to x2 (4 left)
          3@100 from a1 (1 left) to x2 (1 left)
          a1 replenished, shows 1
          1@100 from a1 (0 left) to x2 (0 left)
          filled
        ",
    );
}

#[test]
fn an_iceberg_takes_with_all_it_has_and_shows_a_slice_of_the_rest() {
    check(
        PriceTime,
        "
        a1 sell 5@100
          rests with 5
        x1 buy 9@100 peak=3
          5@100 from a1 (0 left) to x1 (4 left)
          rests with 4, shows 3
        ",
    );
}

#[test]
fn hidden_orders_trade_after_displayed_ones_of_their_price() {
    check(
        PriceTime,
        "
        h1 sell 2@100 hidden
          rests with 2, shows 0
        a1 sell 2@100
          rests with 2
        h2 sell 2@99 hidden
          rests with 2, shows 0
        x1 buy 5@100
          2@99 from h2 (0 left) to x1 (3 left)
          2@100 from a1 (0 left) to x1 (1 left)
          1@100 from h1 (1 left) to x1 (0 left)
          filled
        book
          bids none
          asks 100: [h1 1]
        ",
    );
}

#[test]
fn only_shrinking_keeps_the_place() {
    check(
        PriceTime,
        "
        a1 buy 5@100
          rests with 5
        b1 buy 5@100
          rests with 5
        a1 amend size=3
          keeps its place with 3, shows 3
        book
          bids 100: a1 3 b1 5
          asks none
        a1 amend size=4
          rests with 4
        b1 amend price=99
          rests with 5
        b1 amend price=100
          rests with 5
        book
          bids 100: a1 4 b1 5
          asks none
        z9 amend size=1
          unknown
        ",
    );
}

#[test]
fn an_amended_iceberg_shrinks_from_what_it_hides() {
    check(
        PriceTime,
        "
        a1 buy 10@100 peak=4
          rests with 10, shows 4
        x1 sell 1@100
          1@100 from x1 (0 left) to a1 (9 left)
          filled
        a1 amend size=5
          keeps its place with 5, shows 3
        a1 amend size=2
          keeps its place with 2, shows 2
        a1 amend size=9
          rests with 9, shows 4
        ",
    );
}

#[test]
fn an_amended_order_may_take() {
    check(
        PriceTime,
        "
        a1 buy 5@100
          rests with 5
        b1 sell 3@101
          rests with 3
        a1 amend price=101
          3@101 from b1 (0 left) to a1 (2 left)
          rests with 2
        b1 sell 3@102
          rests with 3
        a1 amend price=102
          2@102 from b1 (1 left) to a1 (0 left)
          filled
        a1 cancel
          unknown
        ",
    );
}

#[test]
fn nothing_trades_outside_the_band() {
    check(
        PriceTime,
        "
        a1 sell 2@100
          rests with 2
        b1 sell 2@110
          rests with 2
        x1 buy 4@120 band=95..105
          2@100 from a1 (0 left) to x1 (2 left)
          banded 2
        x2 buy 4@120 fok band=95..115
          refused: FillOrKillUnfillable
        x2 buy 4@120 min=1 band=95..105
          refused: MinSizeUnfillable
        x3 buy 1@109 band=95..105
          rests with 1
        x3 amend price=110 band=95..105
          banded 1
        book
          bids none
          asks 110: b1 2
        ",
    );
}

#[test]
fn the_band_has_a_near_end_too() {
    // The bids fell away, offers followed below the band: taking them would print a price that may not be.
    check(
        PriceTime,
        "
        a1 sell 2@80
          rests with 2
        x1 buy 2@100 band=90..110
          banded 2
        x2 buy 2@100 fok band=90..110
          refused: FillOrKillUnfillable
        x3 buy 2@79 band=90..110
          rests with 2
        x3 amend price=80 band=90..110
          banded 2
        x4 buy 2@100 band=80..110
          2@80 from a1 (0 left) to x4 (0 left)
          filled
        ",
    );
}

#[test]
fn a_name_is_free_again_when_its_order_is_gone() {
    check(
        PriceTime,
        "
        a1 buy 5@100
          rests with 5
        a1 buy 1@90
          refused: DuplicateClientOrderId
        b1 buy 1@90
          rests with 1
        a1 cancel
          cancelled 5
        a1 buy 1@90
          rests with 1
        ",
    );
}
