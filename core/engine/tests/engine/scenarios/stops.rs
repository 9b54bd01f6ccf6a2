//! Stops: when they enter, and as what.

use super::{banded, plain};
use crate::script::check;

#[test]
fn a_stop_enters_when_a_trade_touches_its_trigger() {
    check(
        plain(),
        "
        A sell 2 stop=95 #1
            accepted A#1 sell 2 waits with 2
        A sell 2 @94 stop=94 #2
            accepted A#2 sell 2 waits with 2
        ? A
            196 BTC and 4 reserved, 10000 USD, net 0
        B buy 3 @96 #1
            accepted B#1 buy 3 @96 rests 3
        B buy 3 @94 #2
            accepted B#2 buy 3 @94 rests 3
        B buy 1 @90 #3
            accepted B#3 buy 1 @90 rests 1
        C sell 1 @96 #1
            accepted C#1 sell 1 @96 rests 0
            trade 1 @96 B#1 left 2, C#1 left 0
        C sell 3 @94 #2
            accepted C#2 sell 3 @94 rests 0
            trade 2 @96 B#1 left 0, C#2 left 1
            trade 1 @94 B#2 left 2, C#2 left 0
            triggered A#1 sell @1 rests 0
            trade 2 @94 B#2 left 0, A#1 left 0
            triggered A#2 sell @94 rests 2
        ? A
            196 BTC and 2 reserved, 10188 USD, net -2
        ",
    );
}

#[test]
fn stops_cascade_in_the_order_in_which_they_are_touched() {
    check(
        plain(),
        "
        A buy 1 @100 #1
            accepted A#1 buy 1 @100 rests 1
        A buy 1 @99 #2
            accepted A#2 buy 1 @99 rests 1
        A buy 1 @98 #3
            accepted A#3 buy 1 @98 rests 1
        A buy 1 @97 #4
            accepted A#4 buy 1 @97 rests 1
        B sell 1 stop=99 #1
            accepted B#1 sell 1 waits with 1
        C sell 1 stop=100 #1
            accepted C#1 sell 1 waits with 1
        D sell 1 @100 #1
            accepted D#1 sell 1 @100 rests 0
            trade 1 @100 A#1 left 0, D#1 left 0
            triggered C#1 sell @1 rests 0
            trade 1 @99 A#2 left 0, C#1 left 0
            triggered B#1 sell @1 rests 0
            trade 1 @98 A#3 left 0, B#1 left 0
        ",
    );
}

#[test]
fn a_stop_that_would_not_wait_is_refused() {
    check(
        plain(),
        "
        A sell 1 @100 #1
            accepted A#1 sell 1 @100 rests 1
        B buy 1 @100 #1
            accepted B#1 buy 1 @100 rests 0
            trade 1 @100 A#1 left 0, B#1 left 0
        A sell 3 @101 #2
            accepted A#2 sell 3 @101 rests 3
        B buy 2 @102 stop=99 #2
            rejected StopWouldTrigger
        B buy 2 stop=100 fok #2
            rejected StopWouldTrigger
        B buy 2 @102 stop=101 #2
            accepted B#2 buy 2 waits with 2
        C sell 1 stop=101 #1
            rejected StopWouldTrigger
        C sell 1 @95 stop=100 #1
            rejected StopWouldTrigger
        C sell 1 stop=99 #1
            accepted C#1 sell 1 waits with 1
        D buy 1 @101 #1
            accepted D#1 buy 1 @101 rests 0
            trade 1 @101 A#2 left 2, D#1 left 0
            triggered B#2 buy @102 rests 0
            trade 2 @101 A#2 left 0, B#2 left 0
        C amend #1 stop=100
            amended C#1 waits with 1, priority Lost
        ",
    );
}

#[test]
fn a_stop_that_the_book_refuses_is_cancelled() {
    check(
        plain(),
        "
        A buy 5 @95 stop=101 fok #1
            accepted A#1 buy 5 waits with 5
        B sell 1 @101 #1
            accepted B#1 sell 1 @101 rests 1
        C buy 1 @101 #1
            accepted C#1 buy 1 @101 rests 0
            trade 1 @101 B#1 left 0, C#1 left 0
            triggered A#1 buy @95 rests 0
            cancelled A#1 5 TriggerRefused
        ? A
            200 BTC, 10000 USD, net 0
        ",
    );
}

#[test]
fn a_stop_waits_as_long_as_it_says_and_its_price_is_the_collars() {
    check(
        plain(),
        "
        A sell 2 stop=95 day #1
            accepted A#1 sell 2 waits with 2
        A sell 2 stop=95 till=90 #2
            accepted A#2 sell 2 waits with 2
        A sell 2 stop=95 #3
            accepted A#3 sell 2 waits with 2
        A sell 2 stop=95 ioc #4
            accepted A#4 sell 2 waits with 2
        A sell 2 @94 stop=95 ioc #5
            accepted A#5 sell 2 waits with 2
        A amend #1 @90
            rejected AmendInvalid
        A amend #3 size=1
            amended A#3 waits with 1, priority Kept
        A amend #5 @81
            amended A#5 waits with 2, priority Kept
        phase Closed
            phase Closed by Operator
            cancelled A#1 2 DayEnded
        at 90 tick
            cancelled A#2 2 Expired
        A cancel all
            cancelled A#3 1 MassCancelled
            cancelled A#4 2 MassCancelled
            cancelled A#5 2 MassCancelled
        ",
    );
}

#[test]
fn nothing_of_a_stop_without_a_limit_rests() {
    check(
        plain(),
        "
        A buy 5 stop=100 day #1
            accepted A#1 buy 5 waits with 5
        B sell 3 @100 #1
            accepted B#1 sell 3 @100 rests 3
        C buy 1 @100 #1
            accepted C#1 buy 1 @100 rests 0
            trade 1 @100 B#1 left 2, C#1 left 0
            triggered A#1 buy @200 rests 0
            trade 2 @100 B#1 left 0, A#1 left 3
            cancelled A#1 3 Unfilled
        ",
    );
}

#[test]
fn a_trigger_moves_and_the_reserve_of_a_stop_without_a_limit_with_it() {
    check(
        banded(),
        "
        A buy 10 stop=100 #1
            accepted A#1 buy 10 waits with 10
        ? A
            200 BTC, 8900 USD and 1100 reserved, net 0
        A amend #1 stop=110
            amended A#1 waits with 10, priority Lost
        ? A
            200 BTC, 8790 USD and 1210 reserved, net 0
        A amend #1 stop=110
            rejected AmendInvalid
        A buy 10 @105 stop=100 #2
            accepted A#2 buy 10 waits with 10
        A amend #2 stop=120
            rejected PriceOutsideCollar
        A amend #2 stop=120 @125
            amended A#2 waits with 10, priority Lost
        A buy 1 @99 #3
            accepted A#3 buy 1 @99 rests 1
        A amend #3 stop=98
            rejected AmendInvalid
        ",
    );
}

#[test]
fn a_stop_keeps_its_trigger_where_the_new_one_is_touched() {
    check(
        plain(),
        "
        A sell 3 @100 #1
            accepted A#1 sell 3 @100 rests 3
        B buy 1 @100 #1
            accepted B#1 buy 1 @100 rests 0
            trade 1 @100 A#1 left 2, B#1 left 0
        C buy 1 stop=105 #1
            accepted C#1 buy 1 waits with 1
        C amend #1 stop=100
            rejected StopWouldTrigger
        C amend #1 stop=99 size=2
            rejected StopWouldTrigger
        C amend #1 stop=101
            amended C#1 waits with 1, priority Lost
        C amend #1 size=2
            amended C#1 waits with 2, priority Kept
        B buy 1 @100 #2
            accepted B#2 buy 1 @100 rests 0
            trade 1 @100 A#1 left 1, B#2 left 0
        ",
    );
}

/// While an auction collects, the last trade is the one before it: it decides whether a stop waits, for it is what may touch the stop where
/// the auction trades nothing.
#[test]
fn during_an_auction_the_trade_before_it_decides() {
    check(
        plain(),
        "
        A sell 1 @100 #1
            accepted A#1 sell 1 @100 rests 1
        B buy 1 @100 #1
            accepted B#1 buy 1 @100 rests 0
            trade 1 @100 A#1 left 0, B#1 left 0
        phase Halt
            phase Halt by Operator
        C buy 1 stop=105 #1
            rejected PhaseTakesNoOrders
        phase OpeningAuction
            phase OpeningAuction by Operator
        C buy 1 stop=100 #1
            rejected StopWouldTrigger
        C sell 1 stop=100 #1
            rejected StopWouldTrigger
        C buy 1 @110 stop=101 #1
            accepted C#1 buy 1 waits with 1
        D sell 1 @80 stop=90 #1
            accepted D#1 sell 1 waits with 1
        C amend #1 stop=95
            rejected StopWouldTrigger
        A buy 2 @85 #2
            accepted A#2 buy 2 @85 rests 2
        B sell 1 @85 #2
            accepted B#2 sell 1 @85 rests 1
        phase Continuous
            trade 1 @85 A#2 left 1, B#2 left 0
            uncrossed 1 @85, imbalance 1
            phase Continuous by Operator
            triggered D#1 sell @80 rests 0
            trade 1 @85 A#2 left 0, D#1 left 0
        C amend #1 stop=86
            amended C#1 waits with 1, priority Lost
        ",
    );
}
