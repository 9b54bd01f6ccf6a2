//! Linked orders: one cancels the other, and one reserve is enough for both.

use super::plain;
use crate::script::check;

#[test]
fn a_partial_fill_of_one_cancels_the_other() {
    check(
        plain(),
        "
        A sell 5 @110 #1
            accepted A#1 sell 5 @110 rests 5
        A sell 5 stop=90 oco=1 #2
            accepted A#2 sell 5 waits with 5
        ? A
            195 BTC and 5 reserved, 10000 USD, net 0
        B buy 2 @110 #1
            accepted B#1 buy 2 @110 rests 0
            trade 2 @110 A#1 left 3, B#1 left 0
            cancelled A#2 5 Linked
        ? A
            195 BTC and 3 reserved, 10220 USD, net -2
        A cancel #2
            rejected UnknownOrder
        A amend #1 @109
            amended A#1 @109 rests 3, priority Lost
        ",
    );
}

#[test]
fn a_trigger_cancels_the_other_first() {
    check(
        plain(),
        "
        A buy 10 @80 #1
            accepted A#1 buy 10 @80 rests 10
        A buy 10 @120 stop=115 oco=1 #2
            accepted A#2 buy 10 waits with 10
        ? A
            200 BTC, 8800 USD and 1200 reserved, net 0
        B sell 12 @115 #1
            accepted B#1 sell 12 @115 rests 12
        C buy 1 @115 #1
            accepted C#1 buy 1 @115 rests 0
            trade 1 @115 B#1 left 11, C#1 left 0
            cancelled A#1 10 Linked
            triggered A#2 buy @120 rests 0
            trade 10 @115 B#1 left 1, A#2 left 0
        ? A
            210 BTC, 8850 USD, net 10
        ",
    );
}

#[test]
fn a_pair_of_two_that_wait() {
    check(
        plain(),
        "
        A sell 3 @104 profit=105 #1
            accepted A#1 sell 3 waits with 3
        A sell 3 stop=95 oco=1 #2
            accepted A#2 sell 3 waits with 3
        ? A
            197 BTC and 3 reserved, 10000 USD, net 0
        B sell 1 @105 #1
            accepted B#1 sell 1 @105 rests 1
        C buy 1 @105 #1
            accepted C#1 buy 1 @105 rests 0
            trade 1 @105 B#1 left 0, C#1 left 0
            cancelled A#2 3 Linked
            triggered A#1 sell @104 rests 3
        ? A
            197 BTC and 3 reserved, 10000 USD, net 0
        A cancel #1
            cancelled A#1 3 Requested
        ? A
            200 BTC, 10000 USD, net 0
        ",
    );
}

#[test]
fn a_cancel_of_one_cancels_both() {
    check(
        plain(),
        "
        A buy 10 @80 #1
            accepted A#1 buy 10 @80 rests 10
        A buy 10 @120 stop=115 oco=1 #2
            accepted A#2 buy 10 waits with 10
        A cancel #2
            cancelled A#2 10 Requested
            cancelled A#1 10 Linked
        ? A
            200 BTC, 10000 USD, net 0
        A buy 10 @120 stop=115 #3
            accepted A#3 buy 10 waits with 10
        A buy 10 @80 post oco=3 #4
            accepted A#4 buy 10 @80 rests 10
        ? A
            200 BTC, 8800 USD and 1200 reserved, net 0
        A cancel all
            cancelled A#3 10 MassCancelled
            cancelled A#4 10 Linked
        ? A
            200 BTC, 10000 USD, net 0
        A sell 1 stop=90 #5
            accepted A#5 sell 1 waits with 1
        A sell 1 @110 reprice oco=5 #6
            accepted A#6 sell 1 @110 rests 1
        suspend A
            cancelled A#5 1 AccountSuspended
            cancelled A#6 1 Linked
        ? A
            200 BTC, 10000 USD, net 0
        ",
    );
}

#[test]
fn what_cannot_be_linked_is_refused() {
    check(
        plain(),
        "
        A sell 5 stop=90 #1
            accepted A#1 sell 5 waits with 5
        A sell 5 @110 post oco=9 #2
            rejected LinkInvalid
        A sell 4 @110 post oco=1 #2
            rejected LinkInvalid
        A buy 5 @80 post oco=1 #2
            rejected LinkInvalid
        A sell 5 @110 oco=1 #2
            rejected LinkInvalid
        A sell 5 market oco=1 #2
            rejected LinkInvalid
        B buy 1 @120 #1
            accepted B#1 buy 1 @120 rests 1
        A sell 5 @110 post oco=1 #2
            rejected PostOnlyWouldTrade
        ? A
            195 BTC and 5 reserved, 10000 USD, net 0
        A sell 5 @130 #2
            accepted A#2 sell 5 @130 rests 5
        A sell 5 @131 post oco=2 #3
            rejected LinkInvalid
        A sell 5 @140 post oco=1 #1
            rejected DuplicateClientOrderId
        A sell 5 @140 post oco=1 #3
            accepted A#3 sell 5 @140 rests 5
        A sell 5 stop=80 oco=3 #4
            rejected LinkInvalid
        A amend #3 size=4
            rejected LinkedOrderFixed
        A amend #1 stop=91
            rejected LinkedOrderFixed
        ",
    );
}

#[test]
fn the_larger_of_both_is_reserved_and_counts_once() {
    check(
        plain(),
        "
        A buy 90 @100 #1
            accepted A#1 buy 90 @100 rests 90
        A buy 90 @150 stop=140 oco=1 #2
            rejected InsufficientFunds
        ? A
            200 BTC, 1000 USD and 9000 reserved, net 0
        A buy 90 @110 stop=105 oco=1 #2
            accepted A#2 buy 90 waits with 90
        ? A
            200 BTC, 100 USD and 9900 reserved, net 0
        A buy 2 @51 #3
            rejected InsufficientFunds
        limits B position=5
        B sell 5 @110 #1
            accepted B#1 sell 5 @110 rests 5
        B sell 5 stop=95 oco=1 #2
            accepted B#2 sell 5 waits with 5
        B sell 1 @111 #3
            rejected PositionLimit
        limits B orders=2
        B sell 1 @111 #3
            rejected TooManyOpenOrders
        ",
    );
}

#[test]
fn time_and_self_trade_prevention_part_a_pair() {
    check(
        plain(),
        "
        at 10 A sell 5 @110 till=20 #1
            accepted A#1 sell 5 @110 rests 5
        at 10 A sell 5 stop=90 oco=1 #2
            accepted A#2 sell 5 waits with 5
        at 20 tick
            cancelled A#1 5 Expired
            cancelled A#2 5 Linked
        A sell 5 @110 #3
            accepted A#3 sell 5 @110 rests 5
        A sell 5 stop=90 oco=3 #4
            accepted A#4 sell 5 waits with 5
        A buy 2 @110 stp=Decrement #5
            accepted A#5 buy 2 @110 rests 0
            reduced A#3 by 2, rests 3
            cancelled A#5 0 SelfTrade
            cancelled A#4 5 Linked
        A cancel all
            cancelled A#3 3 MassCancelled
        A sell 5 @110 day #6
            accepted A#6 sell 5 @110 rests 5
        A sell 5 stop=90 oco=6 #7
            accepted A#7 sell 5 waits with 5
        phase Closed
            phase Closed by Operator
            cancelled A#6 5 DayEnded
            cancelled A#7 5 Linked
        ? A
            200 BTC, 10000 USD, net 0
        ",
    );
}

#[test]
fn an_uncross_parts_a_pair_before_stops_enter() {
    check(
        plain(),
        "
        phase Halt
            phase Halt by Operator
        phase OpeningAuction
            phase OpeningAuction by Operator
        A sell 5 @95 #1
            accepted A#1 sell 5 @95 rests 5
        A sell 5 stop=96 oco=1 #2
            accepted A#2 sell 5 waits with 5
        B buy 2 @96 #1
            accepted B#1 buy 2 @96 rests 2
        phase Continuous
            trade 2 @95 B#1 left 0, A#1 left 3
            cancelled A#2 5 Linked
            uncrossed 2 @95, imbalance -3
            phase Continuous by Operator
        ? A
            195 BTC and 3 reserved, 10190 USD, net -2
        ",
    );
}
