//! Self-trade prevention, amendments and cancels.

use super::{plain, with_fees};
use crate::script::{check, check_all};
use crate::venue::spec;

#[test]
fn self_trade_cancels_the_newest() {
    check(
        plain(),
        "
        A sell 2 @100 #1
            accepted A#1 sell 2 @100 rests 2
        B sell 1 @100 #1
            accepted B#1 sell 1 @100 rests 1
        A buy 5 @100 stp=CancelNewest #2
            accepted A#2 buy 5 @100 rests 0
            cancelled A#2 5 SelfTrade
        ? A
            198 BTC and 2 reserved, 10000 USD, net 0
        ",
    );
}

#[test]
fn self_trade_cancels_the_oldest() {
    check(
        plain(),
        "
        A sell 2 @100 #1
            accepted A#1 sell 2 @100 rests 2
        B sell 1 @100 #1
            accepted B#1 sell 1 @100 rests 1
        A buy 5 @100 stp=CancelOldest #2
            accepted A#2 buy 5 @100 rests 4
            cancelled A#1 2 SelfTrade
            trade 1 @100 B#1 left 0, A#2 left 4
        ? A
            201 BTC, 9500 USD and 400 reserved, net 1
        ",
    );
}

#[test]
fn self_trade_cancels_both() {
    check(
        plain(),
        "
        A sell 2 @100 #1
            accepted A#1 sell 2 @100 rests 2
        A buy 5 @100 stp=CancelBoth #2
            accepted A#2 buy 5 @100 rests 0
            cancelled A#1 2 SelfTrade
            cancelled A#2 5 SelfTrade
        ? A
            200 BTC, 10000 USD, net 0
        ",
    );
}

#[test]
fn self_trade_decrements_both() {
    check(
        plain(),
        "
        A sell 2 @100 #1
            accepted A#1 sell 2 @100 rests 2
        B sell 1 @100 #1
            accepted B#1 sell 1 @100 rests 1
        A sell 4 @100 #2
            accepted A#2 sell 4 @100 rests 4
        A buy 5 @100 stp=Decrement #3
            accepted A#3 buy 5 @100 rests 0
            cancelled A#1 2 SelfTrade
            trade 1 @100 B#1 left 0, A#3 left 2
            reduced A#2 by 2, rests 2
            cancelled A#3 0 SelfTrade
        ? A
            199 BTC and 2 reserved, 9900 USD, net 1
        A sell 2 @100 stp=Decrement #4
            accepted A#4 sell 2 @100 rests 2
        A buy 9 @100 stp=Decrement #5
            accepted A#5 buy 9 @100 rests 5
            cancelled A#2 2 SelfTrade
            cancelled A#4 2 SelfTrade
        ? A
            201 BTC, 9400 USD and 500 reserved, net 1
        ",
    );
}

#[test]
fn self_trade_may_be_allowed() {
    check(
        with_fees(0, 10_000),
        "
        A sell 2 @100 #1
            accepted A#1 sell 2 @100 rests 2
        A buy 5 @100 stp=Allow #2
            accepted A#2 buy 5 @100 rests 3
            trade 2 @100 A#1 left 0, A#2 left 3 fee 2
        ? A
            200 BTC, 9695 USD and 303 reserved, net 0
        ? market
            Continuous, reference 100, last 100, fees 2
        ",
    );
}

#[test]
fn an_amendment_keeps_its_place_only_when_it_shrinks() {
    check(
        plain(),
        "
        A buy 5 @100 #1
            accepted A#1 buy 5 @100 rests 5
        B buy 5 @100 #1
            accepted B#1 buy 5 @100 rests 5
        A amend #1 size=3
            amended A#1 @100 rests 3, priority Kept
        A amend #1 size=3
            rejected AmendInvalid
        A amend #1 size=0
            rejected SizeOutOfRange
        A amend #7 size=3
            rejected UnknownOrder
        C sell 1 @100 #1
            accepted C#1 sell 1 @100 rests 0
            trade 1 @100 A#1 left 2, C#1 left 0
        A amend #1 size=4
            amended A#1 @100 rests 4, priority Lost
        C sell 1 @100 #2
            accepted C#2 sell 1 @100 rests 0
            trade 1 @100 B#1 left 4, C#2 left 0
        ? A
            201 BTC, 9500 USD and 400 reserved, net 1
        A amend #1 @101
            amended A#1 @101 rests 4, priority Lost
        ? A
            201 BTC, 9496 USD and 404 reserved, net 1
        ",
    );
}

#[test]
fn an_amendment_may_trade() {
    check(
        plain(),
        "
        A buy 5 @99 #1
            accepted A#1 buy 5 @99 rests 5
        B sell 2 @101 #1
            accepted B#1 sell 2 @101 rests 2
        B sell 2 @102 #2
            accepted B#2 sell 2 @102 rests 2
        A amend #1 @101 size=6
            amended A#1 @101 rests 4, priority Lost
            trade 2 @101 B#1 left 0, A#1 left 4
        ? A
            202 BTC, 9394 USD and 404 reserved, net 2
        A amend #1 size=200
            rejected InsufficientFunds
        A amend #1 size=100
            rejected InsufficientFunds
        ? A
            202 BTC, 9394 USD and 404 reserved, net 2
        B sell 2 @150 post #3
            accepted B#3 sell 2 @150 rests 2
        B amend #3 @101
            rejected PostOnlyWouldTrade
        ? B
            194 BTC and 4 reserved, 10202 USD, net -2
        ",
    );
}

#[test]
fn mass_cancel_takes_all_or_one_side() {
    check(
        plain(),
        "
        A buy 1 @90 #1
            accepted A#1 buy 1 @90 rests 1
        A sell 1 @110 #2
            accepted A#2 sell 1 @110 rests 1
        A buy 1 @91 #3
            accepted A#3 buy 1 @91 rests 1
        A sell 1 stop=80 #4
            accepted A#4 sell 1 waits with 1
        B buy 1 @90 #1
            accepted B#1 buy 1 @90 rests 1
        A cancel all buys
            cancelled A#1 1 MassCancelled
            cancelled A#3 1 MassCancelled
        A cancel all buys
        A cancel all
            cancelled A#2 1 MassCancelled
            cancelled A#4 1 MassCancelled
        ? A
            200 BTC, 10000 USD, net 0
        ",
    );
}

#[test]
fn mass_cancel_of_one_instrument_leaves_the_others() {
    check_all(
        &[plain(), spec(1)],
        "
        A buy 1 @90 #1
            accepted A#1 buy 1 @90 rests 1
        A sell 1 @110 #2 in=1
            accepted A#2 sell 1 @110 rests 1
        A buy 1 @80 #3 in=1
            accepted A#3 buy 1 @80 rests 1
        A sell 1 stop=70 #4 in=1
            accepted A#4 sell 1 waits with 1
        B sell 1 @120 #5 in=1
            accepted B#5 sell 1 @120 rests 1
        A cancel all sells in=1
            cancelled A#2 1 MassCancelled
            cancelled A#4 1 MassCancelled
        A cancel all in=1
            cancelled A#3 1 MassCancelled
        A cancel all in=1
        ? A
            200 BTC, 9910 USD and 90 reserved, net 0
        A cancel all in=0
            cancelled A#1 1 MassCancelled
        A cancel all in=2
            rejected UnknownInstrument
        B cancel #5 in=1
            cancelled B#5 1 Requested
        ",
    );
}

#[test]
fn a_suspended_account_may_only_cancel() {
    check(
        plain(),
        "
        A buy 1 @90 #1
            accepted A#1 buy 1 @90 rests 1
        B sell 1 @110 #1
            accepted B#1 sell 1 @110 rests 1
        suspend A
            cancelled A#1 1 AccountSuspended
        A buy 1 @90 #1
            rejected AccountSuspended
        A amend #1 size=2
            rejected AccountSuspended
        A cancel #1
            rejected UnknownOrder
        A cancel all
        reinstate A
        A buy 1 @90 #1
            accepted A#1 buy 1 @90 rests 1
        ",
    );
}
