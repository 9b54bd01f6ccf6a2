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

/// The limit of a market order, and what a buyer reserves, lie at the end of the collar around the trigger; both get better with it.
#[test]
fn a_trailing_buy_reserves_for_where_it_begins_and_enters_where_it_is() {
    check(
        banded(),
        "
        B buy 2 trail=5 #1
            accepted B#1 buy 2 waits with 2
        ? B
            200 BTC, 9770 USD and 230 reserved, net 0
        A sell 1 @99 #1
            accepted A#1 sell 1 @99 rests 1
        C buy 1 @99 #1
            accepted C#1 buy 1 @99 rests 0
            trade 1 @99 A#1 left 0, C#1 left 0
        A sell 1 @96 #2
            accepted A#2 sell 1 @96 rests 1
        C buy 1 @96 #2
            accepted C#2 buy 1 @96 rests 0
            trade 1 @96 A#2 left 0, C#2 left 0
        B amend #1 stop=99
            rejected AmendInvalid
        B amend #1 @99
            rejected AmendInvalid
        B amend #1 size=1
            amended B#1 waits with 1, priority Kept
        ? B
            200 BTC, 9885 USD and 115 reserved, net 0
        A sell 1 @100 #3
            accepted A#3 sell 1 @100 rests 1
        A sell 1 @101 #4
            accepted A#4 sell 1 @101 rests 1
        A sell 1 @104 #5
            accepted A#5 sell 1 @104 rests 1
        C buy 1 @100 #3
            accepted C#3 buy 1 @100 rests 0
            trade 1 @100 A#3 left 0, C#3 left 0
        C buy 1 @101 #4
            accepted C#4 buy 1 @101 rests 0
            trade 1 @101 A#4 left 0, C#4 left 0
            triggered B#1 buy @111 rests 0
            trade 1 @104 A#5 left 0, B#1 left 0
        ? B
            201 BTC, 9896 USD, net 1
        ",
    );
}

#[test]
fn a_trailing_stop_with_a_limit_keeps_it_within_the_collar_where_it_triggers() {
    check(
        banded(),
        "
        A sell 1 @90 trail=1 #1
            accepted A#1 sell 1 waits with 1
        A sell 1 @88 trail=1 #2
            rejected PriceOutsideCollar
        A sell 1 @95 trail=3 #2
            accepted A#2 sell 1 waits with 1
        B buy 1 @105 #1
            accepted B#1 buy 1 @105 rests 1
        B buy 1 @104 #2
            accepted B#2 buy 1 @104 rests 1
        B buy 1 @102 #3
            accepted B#3 buy 1 @102 rests 1
        C sell 1 @105 #1
            accepted C#1 sell 1 @105 rests 0
            trade 1 @105 B#1 left 0, C#1 left 0
        C sell 1 @104 #2
            accepted C#2 sell 1 @104 rests 0
            trade 1 @104 B#2 left 0, C#2 left 0
            triggered A#1 sell @94 rests 0
            trade 1 @102 B#3 left 0, A#1 left 0
            triggered A#2 sell @95 rests 1
        ",
    );
}

#[test]
fn a_trailing_stop_must_have_a_trigger_that_is_a_price() {
    check(
        plain(),
        "
        A sell 1 trail=0 #1
            rejected TrailInvalid
        A sell 1 trail=100 #1
            rejected TrailInvalid
        A sell 1 trail-ppm=0 #1
            rejected TrailInvalid
        A sell 1 trail-ppm=1000000 #1
            rejected TrailInvalid
        A sell 1 trail-ppm=990001 #1
            rejected TrailInvalid
        A sell 1 trail=99 #1
            accepted A#1 sell 1 waits with 1
        A sell 1 trail-ppm=990000 peak=1 #2
            rejected DisplayInvalid
        A sell 1 trail-ppm=990000 #2
            accepted A#2 sell 1 waits with 1
        B buy 1 trail-ppm=999999 #1
            accepted B#1 buy 1 waits with 1
        ",
    );
}

/// A trailing stop and a take-profit of one position: the trigger of the one cancels the other.
#[test]
fn a_trailing_stop_may_be_linked() {
    check(
        plain(),
        "
        A sell 3 @110 #1
            accepted A#1 sell 3 @110 rests 3
        A sell 3 trail=4 oco=1 #2
            accepted A#2 sell 3 waits with 3
        ? A
            197 BTC and 3 reserved, 10000 USD, net 0
        B buy 1 @107 #1
            accepted B#1 buy 1 @107 rests 1
        B buy 1 @103 #2
            accepted B#2 buy 1 @103 rests 1
        B buy 5 @101 #3
            accepted B#3 buy 5 @101 rests 5
        C sell 1 @107 #1
            accepted C#1 sell 1 @107 rests 0
            trade 1 @107 B#1 left 0, C#1 left 0
        C sell 1 @103 #2
            accepted C#2 sell 1 @103 rests 0
            trade 1 @103 B#2 left 0, C#2 left 0
            cancelled A#1 3 Linked
            triggered A#2 sell @1 rests 0
            trade 3 @101 B#3 left 2, A#2 left 0
        ? A
            197 BTC, 10303 USD, net -3
        ",
    );
}
