//! Stops: when they enter, and as what.

use super::plain;
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
fn a_touched_stop_enters_at_once() {
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
            accepted B#2 buy 2 @102 rests 0
            trade 2 @101 A#2 left 1, B#2 left 0
        B buy 2 stop=101 fok #3
            rejected FillOrKillUnfillable
        B buy 3 @103 stop=101 fok #4
            rejected FillOrKillUnfillable
        A sell 1 @99 #3
            accepted A#3 sell 1 @99 rests 1
        C buy 1 @101 #1
            accepted C#1 buy 1 @101 rests 0
            trade 1 @99 A#3 left 0, C#1 left 0
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
fn a_stop_waits_until_cancelled_and_its_price_is_the_collars() {
    check(
        plain(),
        "
        A sell 2 stop=95 day #1
            rejected TimeInForceInvalid
        A sell 2 stop=95 till=90 #1
            rejected TimeInForceInvalid
        A sell 2 stop=95 #1
            accepted A#1 sell 2 waits with 2
        A amend #1 @90
            rejected AmendInvalid
        A amend #1 size=1
            amended A#1 waits with 1, priority Kept
        A sell 2 @80 stop=95 #2
            accepted A#2 sell 2 waits with 2
        A amend #2 @81
            amended A#2 waits with 2, priority Kept
        A cancel all
            cancelled A#1 1 MassCancelled
            cancelled A#2 2 MassCancelled
        ",
    );
}
