//! Leaving the book: cancelled, expired, at the day's end.

use walras_types::Allocation::PriceTime;

use crate::script::check;

#[test]
fn mass_cancels_go_by_age() {
    check(
        PriceTime,
        "
        a1 buy 1@90
          rests with 1
        b1 buy 1@95
          rests with 1
        a2 sell 2@110 hidden
          rests with 2, shows 0
        a3 buy 3@95
          rests with 3
        a4 buy 4@95 stop=120
          waits
        a cancel-all buy
          a1 removed with 1: MassCancelled
          a3 removed with 3: MassCancelled
          a4 removed with 4: MassCancelled
        a cancel-all
          a2 removed with 2: MassCancelled
        book
          bids 95: b1 1
          asks none
        ",
    );
}

#[test]
fn good_till_time_orders_expire_the_earliest_first() {
    check(
        PriceTime,
        "
        a1 buy 1@90 till=20
          rests with 1
        a2 buy 2@91 till=10
          rests with 2
        a3 buy 3@92 till=20 stop=99
          waits
        a4 buy 4@93 till=21
          rests with 4
        expire 9
        restart
        expire 20
          a2 removed with 2: Expired
          a1 removed with 1: Expired
          a3 removed with 3: Expired
        book
          bids 93: a4 4
          asks none
        ",
    );
}

#[test]
fn the_day_ends_for_day_orders_only() {
    check(
        PriceTime,
        "
        a1 buy 1@90 day
          rests with 1
        a2 buy 2@91
          rests with 2
        a3 buy 3@92 day stop=99
          waits
        a4 buy 4@93 till=5
          rests with 4
        a5 sell 5@80 ioc stop=70
          waits
        end-day
          a1 removed with 1: DayEnded
          a3 removed with 3: DayEnded
        book
          bids 93: a4 4; 91: a2 2
          asks none
          stops a5 5 at 70
        ",
    );
}
