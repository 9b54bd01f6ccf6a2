//! Orders that wait for a trade at their trigger.

use walras_types::Allocation::PriceTime;

use crate::script::check;

#[test]
fn a_stop_waits_until_a_trade_touches_it() {
    check(
        PriceTime,
        "
        s1 buy 5@110 stop=105 ioc
          waits
        a1 sell 1@104
          rests with 1
        b1 sell 9@105
          rests with 9
        x1 buy 1@104
          1@104 from a1 (0 left) to x1 (0 left)
          filled
        trigger
        x2 buy 1@105
          1@105 from b1 (8 left) to x2 (0 left)
          filled
        trigger
          s1 triggers
          5@105 from b1 (3 left) to s1 (0 left)
          filled
        ",
    );
}

#[test]
fn a_stop_that_is_touched_already_enters_at_once() {
    check(
        PriceTime,
        "
        a1 sell 1@105
          rests with 1
        x1 buy 1@105
          1@105 from a1 (0 left) to x1 (0 left)
          filled
        s1 buy 1@104 stop=105
          rests with 1
        s2 sell 1@108 stop=105
          rests with 1
        s3 buy 1@108 stop=106
          waits
        s4 sell 1@100 stop=104
          waits
        book
          bids 104: s1 1
          asks 108: s2 1
          stops s3 1 at 106; s4 1 at 104
        ",
    );
}

#[test]
fn stops_cascade_in_the_order_in_which_a_moving_price_meets_them() {
    check(
        PriceTime,
        "
        a1 buy 1@100
          rests with 1
        a2 buy 2@99
          rests with 2
        a3 buy 9@97
          rests with 9
        s3 sell 1@90 stop=97 ioc
          waits
        s1 sell 2@90 stop=100 ioc
          waits
        s2 sell 1@90 stop=99 ioc
          waits
        s4 sell 3@90 stop=99 fok
          waits
        restart
        book
          bids 100: a1 1; 99: a2 2; 97: a3 9
          asks none
          stops s1 2 at 100; s2 1 at 99; s4 3 at 99; s3 1 at 97
        x1 sell 1@100
          1@100 from x1 (0 left) to a1 (0 left)
          filled
        trigger
          s1 triggers
          2@99 from s1 (0 left) to a2 (0 left)
          filled
          s2 triggers
          1@97 from s2 (0 left) to a3 (8 left)
          filled
          s4 triggers
          3@97 from s4 (0 left) to a3 (5 left)
          filled
          s3 triggers
          1@97 from s3 (0 left) to a3 (4 left)
          filled
        ",
    );
}

#[test]
fn buys_trigger_before_sells() {
    check(
        PriceTime,
        "
        s1 sell 1@90 stop=100
          waits
        t2 buy 1@95 stop=100
          waits
        a1 sell 1@100
          rests with 1
        x1 buy 1@100
          1@100 from a1 (0 left) to x1 (0 left)
          filled
        trigger
          t2 triggers
          rests with 1
          s1 triggers
          1@95 from s1 (0 left) to t2 (0 left)
          filled
        ",
    );
}

#[test]
fn a_triggered_stop_keeps_its_terms() {
    check(
        PriceTime,
        "
        s1 buy 9@100 stop=100 peak=2
          waits
        s2 buy 5@100 stop=100 min=3
          waits
        a1 sell 2@100
          rests with 2
        x1 buy 1@100
          1@100 from a1 (1 left) to x1 (0 left)
          filled
        trigger
          s1 triggers
          1@100 from a1 (0 left) to s1 (8 left)
          rests with 8, shows 2
          s2 triggers
          refused: MinSizeUnfillable
        ",
    );
}

#[test]
fn a_waiting_stop_keeps_its_turn_when_amended() {
    check(
        PriceTime,
        "
        s1 buy 1@101 stop=100
          waits
        s2 buy 1@101 stop=100
          waits
        s1 amend price=102 size=9
          keeps its place with 9, shows 0
        book
          bids none
          asks none
          stops s1 9 at 100; s2 1 at 100
        s1 cancel
          cancelled 9
        s2 cancel
          cancelled 1
        ",
    );
}

#[test]
fn a_stop_that_shrinks_below_its_minimum_asks_for_all_of_itself() {
    check(
        PriceTime,
        "
        s1 buy 9@100 stop=100 min=5
          waits
        s1 amend size=3
          keeps its place with 3, shows 0
        a1 sell 4@100
          rests with 4
        x1 buy 1@100
          1@100 from a1 (3 left) to x1 (0 left)
          filled
        trigger
          s1 triggers
          3@100 from a1 (0 left) to s1 (0 left)
          filled
        ",
    );
}
