//! Sharing a price level. The first two are the worked examples of the dissertation's section 2.3.2, prices in hundredths.

use walras_types::{Allocation, SizeLots};

use crate::script::check;

const PRO_RATA: Allocation = Allocation::ProRata { min_lots: SizeLots::new(1) };

#[test]
fn price_time_as_in_the_dissertation() {
    check(
        Allocation::PriceTime,
        "
        a1 buy 20@2000
          rests with 20
        b1 buy 50@2000
          rests with 50
        c1 buy 30@1975
          rests with 30
        d1 buy 100@1950
          rests with 100
        e1 buy 10@1950
          rests with 10
        x1 sell 150@1950
          20@2000 from x1 (130 left) to a1 (0 left)
          50@2000 from x1 (80 left) to b1 (0 left)
          30@1975 from x1 (50 left) to c1 (0 left)
          50@1950 from x1 (0 left) to d1 (50 left)
          filled
        book
          bids 1950: d1 50 e1 10
          asks none
        ",
    );
}

#[test]
fn pro_rata_as_in_the_dissertation() {
    // 50 * 100 / 110 = 45 and 50 * 10 / 110 = 4, rounded down; the 1 that remains goes to the earlier.
    check(
        PRO_RATA,
        "
        a1 buy 20@2000
          rests with 20
        b1 buy 50@2000
          rests with 50
        c1 buy 30@1975
          rests with 30
        d1 buy 100@1950
          rests with 100
        e1 buy 10@1950
          rests with 10
        x1 sell 150@1950
          20@2000 from x1 (130 left) to a1 (0 left)
          50@2000 from x1 (80 left) to b1 (0 left)
          30@1975 from x1 (50 left) to c1 (0 left)
          46@1950 from x1 (4 left) to d1 (54 left)
          4@1950 from x1 (0 left) to e1 (6 left)
          filled
        book
          bids 1950: d1 54 e1 6
          asks none
        ",
    );
}

#[test]
fn shares_below_the_minimum_are_dropped() {
    // Of 10: 6, 2, 1; below 3 nothing is given, and the 4 dropped go first in, first out.
    check(
        Allocation::ProRata { min_lots: SizeLots::new(3) },
        "
        a1 sell 20@100
          rests with 20
        b1 sell 60@100
          rests with 60
        c1 sell 20@100
          rests with 20
        x1 buy 10@100
          4@100 from a1 (16 left) to x1 (6 left)
          6@100 from b1 (54 left) to x1 (0 left)
          filled
        book
          bids none
          asks 100: a1 16 b1 54 c1 20
        ",
    );
}

#[test]
fn the_top_order_comes_first() {
    // a1 set the price: 5 ahead of the others. Then 25 in proportion to what each still shows, 15 and 20 and 60 of 95: 3, 5, 15.
    // The 2 that remain go first in, first out.
    check(
        Allocation::TopProRata { top_lots_max: SizeLots::new(5), min_lots: SizeLots::new(1) },
        "
        z1 sell 10@101
          rests with 10
        a1 sell 20@100
          rests with 20
        b1 sell 20@100
          rests with 20
        c1 sell 60@100
          rests with 60
        x1 buy 30@100
          10@100 from a1 (10 left) to x1 (20 left)
          5@100 from b1 (15 left) to x1 (15 left)
          15@100 from c1 (45 left) to x1 (0 left)
          filled
        ",
    );
}

#[test]
fn an_order_that_left_its_place_is_no_top_order() {
    // a1 gives its place up for more size; b1 did not set the price, so nobody is ahead.
    check(
        Allocation::TopProRata { top_lots_max: SizeLots::new(5), min_lots: SizeLots::new(1) },
        "
        a1 sell 10@100
          rests with 10
        b1 sell 20@100
          rests with 20
        a1 amend size=20
          rests with 20
        x1 buy 10@100
          5@100 from b1 (15 left) to x1 (5 left)
          5@100 from a1 (15 left) to x1 (0 left)
          filled
        ",
    );
}

#[test]
fn shrinking_keeps_the_top_order_where_it_is_and_a_restart_too() {
    check(
        Allocation::TopProRata { top_lots_max: SizeLots::new(5), min_lots: SizeLots::new(1) },
        "
        a1 sell 11@100
          rests with 11
        b1 sell 20@100
          rests with 20
        a1 amend size=10
          keeps its place with 10, shows 10
        restart
        x1 buy 10@100
          6@100 from a1 (4 left) to x1 (4 left)
          4@100 from b1 (16 left) to x1 (0 left)
          filled
        ",
    );
}

#[test]
fn split_between_first_come_and_proportion() {
    // 40 % of 50 first in, first out: 20 to a1. Then 30 over the 20, 40 and 40 that are left: 6, 12, 12.
    check(
        Allocation::Split { fifo_percent: 40, min_lots: SizeLots::new(1) },
        "
        a1 buy 40@100
          rests with 40
        b1 buy 40@100
          rests with 40
        c1 buy 40@100
          rests with 40
        x1 sell 50@100
          26@100 from x1 (24 left) to a1 (14 left)
          12@100 from x1 (12 left) to b1 (28 left)
          12@100 from x1 (0 left) to c1 (28 left)
          filled
        ",
    );
}

#[test]
fn proportions_are_of_what_is_displayed() {
    // The iceberg shows 10 of 100, so it shares like b1; the hidden order waits until nothing is displayed.
    check(
        PRO_RATA,
        "
        a1 sell 100@100 peak=10
          rests with 100, shows 10
        h1 sell 50@100 hidden
          rests with 50, shows 0
        b1 sell 10@100
          rests with 10
        x1 buy 10@100
          5@100 from a1 (95 left) to x1 (5 left)
          5@100 from b1 (5 left) to x1 (0 left)
          filled
        x2 buy 14@100
          5@100 from a1 (90 left) to x2 (9 left)
          a1 replenished, shows 10
          5@100 from b1 (0 left) to x2 (4 left)
          4@100 from a1 (86 left) to x2 (0 left)
          filled
        book
          bids none
          asks 100: a1 6/86 [h1 50]
        ",
    );
}
