//! Order types and times in force: what an order does when it comes in, and how it stands.

use walras_types::Allocation;

use super::{banded, plain, shared};
use crate::script::check;
use crate::venue::lots;

#[test]
fn a_limit_order_trades_at_the_price_that_stood_there_first() {
    check(
        plain(),
        "
        A buy 5 @100 #1
            accepted A#1 buy 5 @100 rests 5
        ? A
            200 BTC, 9500 USD and 500 reserved, net 0
        B sell 8 @98 #1
            accepted B#1 sell 8 @98 rests 3
            trade 5 @100 A#1 left 0, B#1 left 3
        ? A
            205 BTC, 9500 USD, net 5
        C buy 1 @99 #1
            accepted C#1 buy 1 @99 rests 0
            trade 1 @98 B#1 left 2, C#1 left 0
        ? B
            192 BTC and 2 reserved, 10598 USD, net -6
        B cancel #1
            cancelled B#1 2 Requested
        ? B
            194 BTC, 10598 USD, net -6
        B cancel #1
            rejected UnknownOrder
        ",
    );
}

#[test]
fn orders_queue_by_price_then_time() {
    check(
        plain(),
        "
        A sell 2 @101 #1
            accepted A#1 sell 2 @101 rests 2
        B sell 2 @100 #1
            accepted B#1 sell 2 @100 rests 2
        C sell 2 @100 #1
            accepted C#1 sell 2 @100 rests 2
        D buy 5 @101 #1
            accepted D#1 buy 5 @101 rests 0
            trade 2 @100 B#1 left 0, D#1 left 3
            trade 2 @100 C#1 left 0, D#1 left 1
            trade 1 @101 A#1 left 1, D#1 left 0
        ",
    );
}

#[test]
fn a_market_order_takes_what_the_collar_holds() {
    check(
        banded(),
        "
        A sell 1 @101 #1
            accepted A#1 sell 1 @101 rests 1
        A sell 1 @104 #2
            accepted A#2 sell 1 @104 rests 1
        B buy 5 market #1
            accepted B#1 buy 5 @110 rests 0
            trade 1 @101 A#1 left 0, B#1 left 4
            trade 1 @104 A#2 left 0, B#1 left 3
            cancelled B#1 3 Unfilled
        ? B
            202 BTC, 9795 USD, net 2
        B buy 5 market gtc #2
            rejected TimeInForceInvalid
        B buy 5 market fok #2
            rejected FillOrKillUnfillable
        ",
    );
}

#[test]
fn immediate_or_cancel_and_fill_or_kill_never_rest() {
    check(
        plain(),
        "
        A sell 3 @100 #1
            accepted A#1 sell 3 @100 rests 3
        B buy 5 @100 fok #1
            rejected FillOrKillUnfillable
        B buy 3 @100 fok #1
            accepted B#1 buy 3 @100 rests 0
            trade 3 @100 A#1 left 0, B#1 left 0
        A sell 3 @100 #1
            accepted A#1 sell 3 @100 rests 3
        B buy 5 @100 ioc #1
            accepted B#1 buy 5 @100 rests 0
            trade 3 @100 A#1 left 0, B#1 left 2
            cancelled B#1 2 Unfilled
        B buy 5 @100 ioc #1
            accepted B#1 buy 5 @100 rests 0
            cancelled B#1 5 Unfilled
        ? B
            206 BTC, 9400 USD, net 6
        ",
    );
}

#[test]
fn an_order_stands_until_its_time() {
    check(
        plain(),
        "
        at 10 tick
        A buy 1 @100 till=10 #1
            rejected AlreadyExpired
        A buy 1 @100 till=20 #1
            accepted A#1 buy 1 @100 rests 1
        A buy 1 @99 till=15 #2
            accepted A#2 buy 1 @99 rests 1
        A buy 1 @98 #3
            accepted A#3 buy 1 @98 rests 1
        at 14 tick
        at 30 tick
            cancelled A#2 1 Expired
            cancelled A#1 1 Expired
        ? A
            200 BTC, 9902 USD and 98 reserved, net 0
        A buy 1 @97 till=40 #1
            accepted A#1 buy 1 @97 rests 1
        at 40 tick
            cancelled A#1 1 Expired
        ",
    );
}

#[test]
fn a_rejected_command_still_lets_time_pass() {
    check(
        plain(),
        "
        A buy 1 @100 till=20 #1
            accepted A#1 buy 1 @100 rests 1
        at 19 A sell 1 @150 #1
            rejected DuplicateClientOrderId
        at 25 B cancel #9
            cancelled A#1 1 Expired
            rejected UnknownOrder
        ",
    );
}

#[test]
fn post_only_never_takes() {
    check(
        plain(),
        "
        A sell 1 @100 #1
            accepted A#1 sell 1 @100 rests 1
        B buy 1 @100 post #1
            rejected PostOnlyWouldTrade
        B buy 1 @99 post #1
            accepted B#1 buy 1 @99 rests 1
        B buy 2 @105 reprice #2
            accepted B#2 buy 2 @99 rests 2
        ? B
            200 BTC, 9703 USD and 297 reserved, net 0
        B buy 1 @100 post ioc #3
            rejected PostOnlyInvalid
        A sell 1 @95 reprice #2
            accepted A#2 sell 1 @100 rests 1
        C sell 1 @99 ioc #1
            accepted C#1 sell 1 @99 rests 0
            trade 1 @99 B#1 left 0, C#1 left 0
        ",
    );
}

#[test]
fn an_iceberg_shows_a_slice_and_queues_anew_for_the_next() {
    check(
        plain(),
        "
        A sell 5 @100 peak=2 #1
            accepted A#1 sell 5 @100 rests 5 shows 2
        B sell 2 @100 #1
            accepted B#1 sell 2 @100 rests 2
        C buy 3 @100 #1
            accepted C#1 buy 3 @100 rests 0
            trade 2 @100 A#1 left 3, C#1 left 1
            replenished A#1 shows 2
            trade 1 @100 B#1 left 1, C#1 left 0
        C buy 3 @100 #2
            accepted C#2 buy 3 @100 rests 0
            trade 1 @100 B#1 left 0, C#2 left 2
            trade 2 @100 A#1 left 1, C#2 left 0
            replenished A#1 shows 1
        A sell 5 @100 peak=5 #2
            rejected DisplayInvalid
        A sell 5 @100 peak=2 ioc #2
            rejected DisplayInvalid
        ? A
            195 BTC and 1 reserved, 10400 USD, net -4
        ",
    );
}

#[test]
fn an_iceberg_has_at_most_a_thousand_slices_for_each_is_a_trade_of_one_command() {
    check(
        plain(),
        "
        A buy 2001 @1 peak=2 #1
            rejected DisplayInvalid
        A buy 2000 @1 peak=2 #1
            accepted A#1 buy 2000 @1 rests 2000 shows 2
        A amend #1 size=2001
            rejected DisplayInvalid
        A amend #1 size=1999
            amended A#1 @1 rests 1999 shows 2, priority Kept
        A amend #1 size=2000
            amended A#1 @1 rests 2000 shows 2, priority Lost
        ",
    );
}

#[test]
fn a_hidden_order_trades_after_all_that_is_shown() {
    check(
        plain(),
        "
        A sell 2 @100 hidden #1
            accepted A#1 sell 2 @100 rests 2 shows 0
        B sell 2 @100 #1
            accepted B#1 sell 2 @100 rests 2
        C buy 3 @100 #1
            accepted C#1 buy 3 @100 rests 0
            trade 2 @100 B#1 left 0, C#1 left 1
            trade 1 @100 A#1 left 1, C#1 left 0
        C buy 1 market fok #2
            accepted C#2 buy 1 @200 rests 0
            trade 1 @100 A#1 left 0, C#2 left 0
        ",
    );
}

#[test]
fn a_minimum_size_is_met_or_nothing_happens() {
    check(
        plain(),
        "
        A sell 2 @100 #1
            accepted A#1 sell 2 @100 rests 2
        B buy 5 @100 min=3 #1
            rejected MinSizeUnfillable
        B buy 5 @100 min=2 #1
            accepted B#1 buy 5 @100 rests 3
            trade 2 @100 A#1 left 0, B#1 left 3
        B buy 5 @100 min=6 #2
            rejected MinSizeInvalid
        B buy 5 @100 min=5 fok #2
            rejected MinSizeInvalid
        ",
    );
}

#[test]
fn pro_rata_shares_a_level() {
    check(
        shared(Allocation::ProRata { min_lots: lots(1) }),
        "
        A sell 60 @100 #1
            accepted A#1 sell 60 @100 rests 60
        B sell 30 @100 #1
            accepted B#1 sell 30 @100 rests 30
        C sell 10 @100 #1
            accepted C#1 sell 10 @100 rests 10
        D buy 50 @100 #1
            accepted D#1 buy 50 @100 rests 0
            trade 30 @100 A#1 left 30, D#1 left 20
            trade 15 @100 B#1 left 15, D#1 left 5
            trade 5 @100 C#1 left 5, D#1 left 0
        ? D
            250 BTC, 5000 USD, net 50
        ",
    );
}
