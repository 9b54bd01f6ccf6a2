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

#[test]
fn a_stop_that_becomes_a_market_order_waits_as_it_says_and_never_rests() {
    check(
        PriceTime,
        "
        s1 buy 5@110 stop-market=105
          waits
        s2 buy 5@110 stop-market=105 day
          waits
        s3 buy 5@110 stop-market=105 till=20
          waits
        s4 buy 9@110 stop-market=105 fok
          waits
        s5 buy 5@110 stop-market=105 till=10
          waits
        s6 buy 5@110 stop-market=106 day
          waits
        restart
        expire 10
          s5 removed with 5: Expired
        a1 sell 4@105
          rests with 4
        a2 sell 8@107
          rests with 8
        x1 buy 1@105
          1@105 from a1 (3 left) to x1 (0 left)
          filled
        trigger
          s1 triggers
          3@105 from a1 (0 left) to s1 (2 left)
          2@107 from a2 (6 left) to s1 (0 left)
          filled
          s2 triggers
          5@107 from a2 (1 left) to s2 (0 left)
          filled
          s3 triggers
          1@107 from a2 (0 left) to s3 (4 left)
          unfilled 4
          s4 triggers
          refused: FillOrKillUnfillable
          s6 triggers
          unfilled 5
        book
          bids none
          asks none
        ",
    );
}

#[test]
fn the_day_ends_for_a_stop_that_waits_to_become_a_market_order() {
    check(
        PriceTime,
        "
        s1 sell 5@90 stop-market=95 day
          waits
        s2 sell 5@90 stop-market=95 ioc
          waits
        s3 sell 5@90 stop-market=95
          waits
        end-day
          s1 removed with 5: DayEnded
        book
          bids none
          asks none
          stops s2 5 at 95; s3 5 at 95
        ",
    );
}

#[test]
fn a_stop_touched_already_enters_as_what_it_becomes() {
    check(
        PriceTime,
        "
        a1 sell 2@105
          rests with 2
        x1 buy 1@105
          1@105 from a1 (1 left) to x1 (0 left)
          filled
        s1 buy 4@110 stop-market=100 day
          1@105 from a1 (0 left) to s1 (3 left)
          unfilled 3
        s2 buy 4@110 stop=100 day
          rests with 4
        ",
    );
}

#[test]
fn another_trigger_is_waited_for_behind_those_who_wait_for_it() {
    check(
        PriceTime,
        "
        s1 buy 1@110 stop=105 ioc
          waits
        s2 buy 1@110 stop=106
          waits
        s3 buy 9@110 stop=107 min=5
          waits
        s1 retrigger 106 2@111
          waits with 2 at 111
        s3 retrigger 104 3@108
          waits with 3 at 108
        restart
        book
          bids none
          asks none
          stops s3 3 at 104; s2 1 at 106; s1 2 at 106
        a1 sell 9@106
          rests with 9
        x1 buy 1@106
          1@106 from a1 (8 left) to x1 (0 left)
          filled
        trigger
          s3 triggers
          3@106 from a1 (5 left) to s3 (0 left)
          filled
          s2 triggers
          1@106 from a1 (4 left) to s2 (0 left)
          filled
          s1 triggers
          2@106 from a1 (2 left) to s1 (0 left)
          filled
        s4 buy 1@110 stop=120
          waits
        s4 retrigger 106 1@110
          waits with 1 at 110
        trigger
          s4 triggers
          1@106 from a1 (1 left) to s4 (0 left)
          filled
        ",
    );
}

#[test]
fn a_take_profit_waits_for_a_price_in_its_favour() {
    check(
        PriceTime,
        "
        t1 sell 2@104 profit=105
          waits
        t2 sell 1@1 profit-market=105
          waits
        t3 buy 1@96 profit=96
          waits
        s1 sell 1@90 stop=96
          waits
        a1 sell 1@104
          rests with 1
        a2 sell 1@105
          rests with 1
        b1 buy 1@103
          rests with 1
        b2 buy 1@96
          rests with 1
        x1 buy 1@104
          1@104 from a1 (0 left) to x1 (0 left)
          filled
        trigger
        restart
        book
          bids 103: b1 1; 96: b2 1
          asks 105: a2 1
          stops s1 1 at 96; t3 1 at 96; t1 2 at 105; t2 1 at 105
        x2 buy 1@105
          1@105 from a2 (0 left) to x2 (0 left)
          filled
        trigger
          t1 triggers
          rests with 2
          t2 triggers
          1@103 from t2 (0 left) to b1 (0 left)
          filled
        x3 sell 1@96
          1@96 from x3 (0 left) to b2 (0 left)
          filled
        trigger
          s1 triggers
          rests with 1
          t3 triggers
          1@90 from s1 (0 left) to t3 (0 left)
          filled
        ",
    );
}

#[test]
fn a_take_profit_that_is_touched_already_enters_at_once() {
    check(
        PriceTime,
        "
        a1 sell 1@105
          rests with 1
        x1 buy 1@105
          1@105 from a1 (0 left) to x1 (0 left)
          filled
        t1 sell 1@110 profit=105
          rests with 1
        t2 buy 1@100 profit=106
          rests with 1
        t3 sell 1@110 profit=106
          waits
        t3 retrigger 107 2@111
          waits with 2 at 111
        t4 buy 1@100 profit=104 day
          waits
        end-day
          t4 removed with 1: DayEnded
        book
          bids 100: t2 1
          asks 110: t1 1
          stops t3 2 at 107
        ",
    );
}

#[test]
fn a_trailing_stop_follows_the_market_and_never_moves_back() {
    check(
        PriceTime,
        "
        a1 sell 1@100
          rests with 1
        a2 sell 1@104
          rests with 1
        x1 buy 1@100
          1@100 from a1 (0 left) to x1 (0 left)
          filled
        s1 sell 1@90 trail=3
          waits
        s2 sell 1@1 trail-market=5
          waits
        s3 buy 1@120 trail-ppm=25000
          waits
        book
          bids none
          asks 104: a2 1
          stops s3 1 at 103; s1 1 at 97; s2 1 at 95
        x2 buy 1@104
          1@104 from a2 (0 left) to x2 (0 left)
          filled
        trigger
          s3 triggers at 103
          rests with 1
        book
          bids 120: s3 1
          asks none
          stops s1 1 at 101; s2 1 at 99
        s3 cancel
          cancelled 1
        b1 buy 1@102
          rests with 1
        x3 sell 1@102
          1@102 from x3 (0 left) to b1 (0 left)
          filled
        trigger
        restart
        book
          bids none
          asks none
          stops s1 1 at 101; s2 1 at 99
        b2 buy 1@101
          rests with 1
        x4 sell 1@101
          1@101 from x4 (0 left) to b2 (0 left)
          filled
        trigger
          s1 triggers at 101
          rests with 1
        b3 buy 1@89
          rests with 1
        b4 buy 1@88
          rests with 1
        x5 sell 1@89
          1@89 from x5 (0 left) to b3 (0 left)
          filled
        trigger
          s2 triggers at 99
          1@88 from s2 (0 left) to b4 (0 left)
          filled
        ",
    );
}

#[test]
fn trailing_stops_begin_at_the_last_trade_and_at_what_they_say_before_any() {
    check(
        PriceTime,
        "
        s1 sell 1@90 trail=3
          waits
        collect
        s2 buy 1@120 trail=3 day
          waits
        a1 sell 1@110
          rests with 1
        b1 buy 1@112
          rests with 1
        uncross 111
          1 at 111, imbalance 0
          1@111 from a1 (0 left) to b1 (0 left)
        trigger
          s2 triggers at 103
          rests with 1
        s3 sell 1@90 trail=2
          waits
        s4 sell 2@90 trail=2
          waits
        s4 amend size=1 price=91
          keeps its place with 1, shows 0
        book
          bids 120: s2 1
          asks none
          stops s1 1 at 108; s3 1 at 109; s4 1 at 109
        a2 sell 1@109
          1@120 from a2 (0 left) to s2 (0 left)
          filled
        trigger
        book
          bids none
          asks none
          stops s1 1 at 117; s3 1 at 118; s4 1 at 118
        b2 buy 1@118
          rests with 1
        x1 sell 1@118
          1@118 from x1 (0 left) to b2 (0 left)
          filled
        trigger
          s3 triggers at 118
          rests with 1
          s4 triggers at 118
          rests with 1
        ",
    );
}
