//! Exits: they stand for what their entry has filled, and an entry never stands without them.

use super::{plain, with_fees};
use crate::script::check;

#[test]
fn exits_of_an_order_that_takes_stand_for_what_it_took() {
    check(
        plain(),
        "
        B sell 3 @101 #1
            accepted B#1 sell 3 @101 rests 3
        A sell 5 @120 profit=119 exit=1 #2
            accepted A#2 sell 5 waits with 5
        A sell 5 stop=90 exit=1 #3
            accepted A#3 sell 5 waits with 5
        ? A
            200 BTC, 10000 USD, net 0
        A buy 5 market #1
            accepted A#1 buy 5 @200 rests 0
            trade 3 @101 B#1 left 0, A#1 left 2
            cancelled A#1 2 Unfilled
            amended A#2 waits with 3, priority Kept
            amended A#3 waits with 3, priority Kept
        ? A
            200 BTC and 3 reserved, 9697 USD, net 3
        A cancel #3
            cancelled A#3 3 Requested
            cancelled A#2 3 Linked
        ? A
            203 BTC, 9697 USD, net 3
        ",
    );
}

#[test]
fn exits_leave_with_an_entry_that_filled_nothing() {
    check(
        plain(),
        "
        A sell 5 profit=110 exit=1 #2
            accepted A#2 sell 5 waits with 5
        A sell 5 stop=90 exit=1 #3
            accepted A#3 sell 5 waits with 5
        A buy 5 @99 #1
            accepted A#1 buy 5 @99 rests 5
        A cancel #1
            cancelled A#1 5 Requested
            cancelled A#2 5 Linked
            cancelled A#3 5 Linked
        A sell 5 stop=90 exit=1 #3
            accepted A#3 sell 5 waits with 5
        A buy 5 @99 ioc #1
            accepted A#1 buy 5 @99 rests 0
            cancelled A#1 5 Unfilled
            cancelled A#3 5 Linked
        at 10 A sell 5 stop=90 exit=1 #3
            accepted A#3 sell 5 waits with 5
        at 10 A buy 5 @99 till=20 #1
            accepted A#1 buy 5 @99 rests 5
        at 20 tick
            cancelled A#1 5 Expired
            cancelled A#3 5 Linked
        ? A
            200 BTC, 10000 USD, net 0
        ",
    );
}

#[test]
fn no_price_touches_an_exit_before_its_entry_has_traded() {
    check(
        plain(),
        "
        A sell 2 stop=95 exit=1 #2
            accepted A#2 sell 2 waits with 2
        A buy 2 @80 #1
            accepted A#1 buy 2 @80 rests 2
        B buy 1 @90 #1
            accepted B#1 buy 1 @90 rests 1
        C sell 1 @90 #1
            accepted C#1 sell 1 @90 rests 0
            trade 1 @90 B#1 left 0, C#1 left 0
        D buy 9 @79 #1
            accepted D#1 buy 9 @79 rests 9
        C sell 1 @80 #1
            accepted C#1 sell 1 @80 rests 0
            trade 1 @80 A#1 left 1, C#1 left 0
            amended A#2 waits with 1, priority Kept
            cancelled A#1 1 Linked
            triggered A#2 sell @1 rests 0
            trade 1 @79 D#1 left 8, A#2 left 0
        ? A
            200 BTC, 9999 USD, net 0
        ",
    );
}

#[test]
fn an_entry_never_stands_without_its_exits() {
    check(
        plain(),
        "
        A sell 5 profit=110 exit=1 #2
            accepted A#2 sell 5 waits with 5
        A sell 5 stop=90 exit=1 #3
            accepted A#3 sell 5 waits with 5
        A buy 5 @99 #1
            accepted A#1 buy 5 @99 rests 5
        A cancel #2
            cancelled A#2 5 Requested
            cancelled A#3 5 Linked
            cancelled A#1 5 Linked
        A sell 5 profit=110 exit=1 #2
            accepted A#2 sell 5 waits with 5
        A sell 5 stop=90 exit=1 #3
            accepted A#3 sell 5 waits with 5
        A buy 5 @99 #1
            accepted A#1 buy 5 @99 rests 5
        B sell 2 @99 #1
            accepted B#1 sell 2 @99 rests 0
            trade 2 @99 A#1 left 3, B#1 left 0
            amended A#2 waits with 2, priority Kept
            amended A#3 waits with 2, priority Kept
        A cancel #3
            cancelled A#3 2 Requested
            cancelled A#2 2 Linked
            cancelled A#1 3 Linked
        A sell 5 stop=90 exit=1 #3
            accepted A#3 sell 5 waits with 5
        A cancel #3
            cancelled A#3 5 Requested
        A sell 5 stop=90 exit=1 day #3
            accepted A#3 sell 5 waits with 5
        A buy 5 @99 #1
            accepted A#1 buy 5 @99 rests 5
        A cancel all sells
            cancelled A#3 5 MassCancelled
            cancelled A#1 5 Linked
        A sell 5 stop=90 exit=1 day #3
            accepted A#3 sell 5 waits with 5
        A buy 5 @99 #1
            accepted A#1 buy 5 @99 rests 5
        phase Closed
            phase Closed by Operator
            cancelled A#3 5 DayEnded
            cancelled A#1 5 Linked
        suspend A
        ? A
            202 BTC, 9802 USD, net 2
        ",
    );
}

#[test]
fn exits_stay_when_their_entry_leaves() {
    check(
        plain(),
        "
        A sell 5 profit=110 exit=1 #2
            accepted A#2 sell 5 waits with 5
        A sell 5 stop=90 exit=1 #3
            accepted A#3 sell 5 waits with 5
        A buy 5 @99 #1
            accepted A#1 buy 5 @99 rests 5
        B sell 2 @99 #1
            accepted B#1 sell 2 @99 rests 0
            trade 2 @99 A#1 left 3, B#1 left 0
            amended A#2 waits with 2, priority Kept
            amended A#3 waits with 2, priority Kept
        A cancel #1
            cancelled A#1 3 Requested
        A amend #3 stop=91
            rejected LinkedOrderFixed
        B buy 1 @110 #2
            accepted B#2 buy 1 @110 rests 1
        C sell 1 @110 #1
            accepted C#1 sell 1 @110 rests 0
            trade 1 @110 B#2 left 0, C#1 left 0
            cancelled A#3 2 Linked
            triggered A#2 sell @1 rests 0
            cancelled A#2 2 Unfilled
        A sell 1 stop=90 exit=1 #2
            accepted A#2 sell 1 waits with 1
        B sell 1 @108 #1
            accepted B#1 sell 1 @108 rests 1
        A buy 1 @108 #1
            accepted A#1 buy 1 @108 rests 0
            trade 1 @108 B#1 left 0, A#1 left 0
            amended A#2 waits with 1, priority Kept
        A amend #2 stop=95
            amended A#2 waits with 1, priority Lost
        ",
    );
}

#[test]
fn an_exit_that_triggers_takes_the_rest_of_its_entry_out() {
    check(
        plain(),
        "
        A sell 5 profit=110 exit=1 #2
            accepted A#2 sell 5 waits with 5
        A sell 5 stop=90 exit=1 #3
            accepted A#3 sell 5 waits with 5
        A buy 5 @99 #1
            accepted A#1 buy 5 @99 rests 5
        B sell 2 @99 #1
            accepted B#1 sell 2 @99 rests 0
            trade 2 @99 A#1 left 3, B#1 left 0
            amended A#2 waits with 2, priority Kept
            amended A#3 waits with 2, priority Kept
        A amend #1 size=9
            rejected LinkedOrderFixed
        A amend #1 @98
            amended A#1 @98 rests 3, priority Lost
        B buy 3 @110 #1
            accepted B#1 buy 3 @110 rests 3
        C sell 1 @110 #1
            accepted C#1 sell 1 @110 rests 0
            trade 1 @110 B#1 left 2, C#1 left 0
            cancelled A#3 2 Linked
            cancelled A#1 3 Linked
            triggered A#2 sell @1 rests 0
            trade 2 @110 B#1 left 0, A#2 left 0
        ? A
            200 BTC, 10022 USD, net 0
        ",
    );
}

#[test]
fn exits_that_buy_may_lack_funds() {
    check(
        with_fees(0, 10_000),
        "
        withdraw A 9600 id=9
        A buy 5 @150 stop=140 exit=1 #2
            accepted A#2 buy 5 waits with 5
        B buy 9 @100 #1
            accepted B#1 buy 9 @100 rests 9
        A sell 5 @100 #1
            accepted A#1 sell 5 @100 rests 0
            trade 5 @100 B#1 left 4, A#1 left 0 fee 5
            amended A#2 waits with 5, priority Kept
        ? A
            195 BTC, 137 USD and 758 reserved, net -5
        A cancel #2
            cancelled A#2 5 Requested
        A buy 4 @500 stop=300 exit=1 #2
            accepted A#2 buy 4 waits with 4
        A sell 4 @100 #1
            accepted A#1 sell 4 @100 rests 0
            trade 4 @100 B#1 left 0, A#1 left 0 fee 4
            cancelled A#2 4 Unfunded
        ? A
            191 BTC, 1291 USD, net -9
        ",
    );
}

#[test]
fn an_entry_may_wait_for_a_trigger_itself_and_may_trade_in_an_auction() {
    check(
        plain(),
        "
        A sell 2 stop=100 exit=1 #2
            accepted A#2 sell 2 waits with 2
        A buy 2 @106 stop=105 #1
            accepted A#1 buy 2 waits with 2
        B sell 3 @105 #1
            accepted B#1 sell 3 @105 rests 3
        C buy 1 @105 #1
            accepted C#1 buy 1 @105 rests 0
            trade 1 @105 B#1 left 2, C#1 left 0
            triggered A#1 buy @106 rests 0
            trade 2 @105 B#1 left 0, A#1 left 0
            amended A#2 waits with 2, priority Kept
        phase Halt
            phase Halt by Operator
        phase OpeningAuction
            phase OpeningAuction by Operator
        D sell 3 stop=99 exit=1 #2
            accepted D#2 sell 3 waits with 3
        D buy 3 @104 #1
            accepted D#1 buy 3 @104 rests 3
        B sell 2 @104 #2
            accepted B#2 sell 2 @104 rests 2
        phase Continuous
            trade 2 @104 D#1 left 1, B#2 left 0
            amended D#2 waits with 2, priority Kept
            uncrossed 2 @104, imbalance 1
            phase Continuous by Operator
        ? D
            200 BTC and 2 reserved, 9688 USD and 104 reserved, net 2
        ",
    );
}

#[test]
fn what_fits_no_entry_is_refused() {
    check(
        plain(),
        "
        A buy 5 @99 #1
            accepted A#1 buy 5 @99 rests 5
        A sell 5 stop=90 exit=1 #2
            rejected LinkInvalid
        A sell 5 stop=90 exit=2 #2
            rejected LinkInvalid
        A sell 5 @110 exit=3 #2
            rejected LinkInvalid
        A sell 5 trail=3 exit=3 #2
            rejected LinkInvalid
        A sell 5 stop=90 exit=3 #2
            accepted A#2 sell 5 waits with 5
        A sell 4 profit=120 exit=3 #4
            rejected LinkInvalid
        A buy 5 profit=80 exit=3 #4
            rejected LinkInvalid
        A sell 5 profit=120 exit=3 #2
            rejected DuplicateClientOrderId
        A sell 5 profit=120 exit=3 #4
            accepted A#4 sell 5 waits with 5
        A sell 5 stop=80 exit=3 #5
            rejected LinkInvalid
        A sell 5 stop=80 exit=6 #3
            rejected LinkInvalid
        A sell 5 stop=80 oco=2 #5
            rejected LinkInvalid
        A buy 4 @99 #3
            rejected LinkInvalid
        A sell 5 @120 #3
            rejected LinkInvalid
        A sell 5 stop=80 #7
            accepted A#7 sell 5 waits with 5
        A sell 5 @150 post oco=7 #3
            rejected LinkInvalid
        A amend #2 stop=91
            rejected LinkedOrderFixed
        A buy 5 @98 #3
            accepted A#3 buy 5 @98 rests 5
        limits B orders=1
        B sell 5 stop=90 exit=1 #2
            accepted B#2 sell 5 waits with 5
        B sell 5 profit=110 exit=1 #3
            rejected TooManyOpenOrders
        B buy 5 @50 #1
            rejected TooManyOpenOrders
        ",
    );
}
