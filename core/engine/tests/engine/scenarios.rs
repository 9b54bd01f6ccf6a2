//! What a trader or an operator may rely on, one page per subject. The language is explained in `script`.

use walras_types::*;

use crate::script::check;
use crate::venue::{lots, spec};

/// No fees; one tick on a lot is a dollar; any price up to twice the reference, which is 100.
fn plain() -> InstrumentSpec {
    spec(0)
}

fn with_fees(maker_ppm: i32, taker_ppm: i32) -> InstrumentSpec {
    InstrumentSpec { fees: FeeSchedule { maker_ppm, taker_ppm }, ..plain() }
}

/// Limit prices within 10 %, trades within 5 % of the reference.
fn banded() -> InstrumentSpec {
    InstrumentSpec { collar_ppm: 100_000, band_ppm: 50_000, ..plain() }
}

fn shared(allocation: Allocation) -> InstrumentSpec {
    InstrumentSpec { allocation, ..plain() }
}

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
fn a_day_order_ends_with_the_day() {
    check(
        plain(),
        "
        A buy 1 @100 day #1
            accepted A#1 buy 1 @100 rests 1
        A buy 1 @99 #2
            accepted A#2 buy 1 @99 rests 1
        A sell 1 @105 stop=90 day #3
            accepted A#3 sell 1 waits
        A sell 1 @85 stop=90 day #3
            rejected DuplicateClientOrderId
        phase Closed
            phase Closed by Operator
            cancelled A#1 1 DayEnded
            cancelled A#3 1 DayEnded
        ? A
            200 BTC, 9901 USD and 99 reserved, net 0
        A buy 1 @100 #4
            rejected PhaseTakesNoOrders
        A cancel #2
            cancelled A#2 1 Requested
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
fn a_stop_enters_when_a_trade_touches_its_trigger() {
    check(
        plain(),
        "
        A sell 2 stop=95 #1
            accepted A#1 sell 2 waits
        A sell 2 @94 stop=94 #2
            accepted A#2 sell 2 waits
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
            accepted B#1 sell 1 waits
        C sell 1 stop=100 #1
            accepted C#1 sell 1 waits
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
            accepted A#1 buy 5 waits
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
            accepted A#1 sell 2 waits
        A amend #1 @90
            rejected AmendInvalid
        A amend #1 size=1
            amended A#1 waits, priority Kept
        A sell 2 @80 stop=95 #2
            accepted A#2 sell 2 waits
        A amend #2 @81
            amended A#2 waits, priority Kept
        A cancel all
            cancelled A#1 1 MassCancelled
            cancelled A#2 2 MassCancelled
        ",
    );
}

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
            accepted A#4 sell 1 waits
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

#[test]
fn orders_reserve_their_worst_case_and_no_more_than_there_is() {
    check(
        with_fees(0, 10_000),
        "
        A buy 101 @100 #1
            rejected InsufficientFunds
        A buy 99 @100 #1
            accepted A#1 buy 99 @100 rests 99
        ? A
            200 BTC, 1 USD and 9999 reserved, net 0
        A amend #1 @99
            amended A#1 @99 rests 99, priority Lost
        ? A
            200 BTC, 100 USD and 9900 reserved, net 0
        A sell 201 @100 #2
            rejected InsufficientFunds
        A sell 200 @150 #2
            accepted A#2 sell 200 @150 rests 200
        ? A
            0 BTC and 200 reserved, 100 USD and 9900 reserved, net 0
        withdraw A 2 usd id=5
        withdraw A 1 usd id=5
            rejected DuplicateTransfer
        withdraw A 100 usd id=6
            rejected InsufficientFunds
        deposit A 100 usd id=6
        deposit A 0 usd id=7
            rejected AmountOutOfRange
        deposit A 100 usd id=7
        deposit A 100 usd id=7
            rejected DuplicateTransfer
        ? A
            0 BTC and 200 reserved, 298 USD and 9900 reserved, net 0
        ",
    );
}

#[test]
fn fees_round_for_the_payer_and_go_to_the_venue() {
    check(
        with_fees(10_000, 25_000),
        "
        A sell 3 @101 #1
            accepted A#1 sell 3 @101 rests 3
        B buy 1 @101 #1
            accepted B#1 buy 1 @101 rests 0
            trade 1 @101 A#1 left 2 fee 1, B#1 left 0 fee 2
        B buy 2 @101 #2
            accepted B#2 buy 2 @101 rests 0
            trade 2 @101 A#1 left 0 fee 2, B#2 left 0 fee 5
        ? A
            197 BTC, 10300 USD, net -3
        ? B
            203 BTC, 9690 USD, net 3
        ? market
            Continuous, reference 100, last 101, fees 10
        collect C
            collected 10
        ? C
            200 BTC, 10010 USD, net 0
        ? market
            Continuous, reference 100, last 101, fees 0
        ",
    );
}

#[test]
fn a_rebate_comes_out_of_the_takers_fee() {
    check(
        with_fees(-10_000, 30_000),
        "
        A buy 2 @150 #1
            accepted A#1 buy 2 @150 rests 2
        ? A
            200 BTC, 9691 USD and 309 reserved, net 0
        B sell 2 @150 #1
            accepted B#1 sell 2 @150 rests 0
            trade 2 @150 A#1 left 0 fee -3, B#1 left 0 fee 9
        ? A
            202 BTC, 9703 USD, net 2
        ? B
            198 BTC, 10291 USD, net -2
        ? market
            Continuous, reference 100, last 150, fees 6
        ",
    );
}

#[test]
fn a_buyers_reserve_returns_when_it_trades_for_less() {
    check(
        with_fees(20_000, 50_000),
        "
        A sell 1 @90 #1
            accepted A#1 sell 1 @90 rests 1
        A sell 1 @95 #2
            accepted A#2 sell 1 @95 rests 1
        B buy 3 @101 #1
            accepted B#1 buy 3 @101 rests 1
            trade 1 @90 A#1 left 0 fee 1, B#1 left 2 fee 4
            trade 1 @95 A#2 left 0 fee 1, B#1 left 1 fee 4
        ? B
            202 BTC, 9700 USD and 107 reserved, net 2
        C sell 1 @101 #1
            accepted C#1 sell 1 @101 rests 0
            trade 1 @101 B#1 left 0 fee 2, C#1 left 0 fee 5
        ? B
            203 BTC, 9704 USD, net 3
        ",
    );
}

#[test]
fn limits_bind_each_account() {
    check(
        plain(),
        "
        limits A lots=10 value=1000 orders=2 position=12
        A buy 11 @50 #1
            rejected OrderTooLarge
        A buy 10 @101 #1
            rejected OrderValueTooLarge
        A buy 10 @100 #1
            accepted A#1 buy 10 @100 rests 10
        A buy 3 @50 #2
            rejected PositionLimit
        A buy 2 @50 #2
            accepted A#2 buy 2 @50 rests 2
        A buy 1 @50 #3
            rejected TooManyOpenOrders
        A sell 10 @150 ioc #3
            rejected OrderValueTooLarge
        A amend #2 size=3
            rejected PositionLimit
        A amend #1 @101
            rejected OrderValueTooLarge
        A amend #1 size=9
            amended A#1 @100 rests 9, priority Kept
        B sell 9 @100 #1
            accepted B#1 sell 9 @100 rests 0
            trade 9 @100 A#1 left 0, B#1 left 0
        A buy 2 @50 #3
            rejected PositionLimit
        A buy 1 @50 #3
            accepted A#3 buy 1 @50 rests 1
        A sell 6 @150 #4
            rejected TooManyOpenOrders
        A cancel all
            cancelled A#2 2 MassCancelled
            cancelled A#3 1 MassCancelled
        limits A position=0
        A sell 10 @90 #4
            rejected PositionLimit
        A sell 9 @90 #4
            accepted A#4 sell 9 @90 rests 9
        A sell 1 @95 #5
            rejected PositionLimit
        A buy 1 @50 ioc #6
            rejected PositionLimit
        ",
    );
}

#[test]
fn the_collar_follows_the_market_and_the_band_stays() {
    check(
        banded(),
        "
        A buy 1 @111 #1
            rejected PriceOutsideCollar
        A sell 1 @89 #1
            rejected PriceOutsideCollar
        A buy 1 @90 #1
            accepted A#1 buy 1 @90 rests 1
        A amend #1 @111
            rejected PriceOutsideCollar
        B sell 1 @105 #1
            accepted B#1 sell 1 @105 rests 1
        C buy 1 @105 #1
            accepted C#1 buy 1 @105 rests 0
            trade 1 @105 B#1 left 0, C#1 left 0
        ? market
            Continuous, reference 100, last 105, fees 0
        A amend #1 @94
            rejected PriceOutsideCollar
        A amend #1 @95
            amended A#1 @95 rests 1, priority Lost
        B sell 1 @115 #2
            accepted B#2 sell 1 @115 rests 1
        B sell 1 @116 #3
            rejected PriceOutsideCollar
        C sell 1 @112 stop=101 #2
            rejected PriceOutsideCollar
        C sell 1 @90 stop=101 #2
            rejected PriceOutsideCollar
        C sell 1 @91 stop=101 #2
            accepted C#2 sell 1 waits
        ",
    );
}

#[test]
fn a_trade_beyond_the_band_halts_first() {
    check(
        banded(),
        "
        A sell 1 @105 #1
            accepted A#1 sell 1 @105 rests 1
        A sell 1 @106 #2
            accepted A#2 sell 1 @106 rests 1
        C buy 1 stop=105 #1
            accepted C#1 buy 1 waits
        B buy 3 @106 #1
            accepted B#1 buy 3 @106 rests 0
            trade 1 @105 A#1 left 0, B#1 left 2
            cancelled B#1 2 PriceBand
            phase Halt by PriceBand
        ? B
            201 BTC, 9895 USD, net 1
        B buy 1 @100 #2
            rejected PhaseTakesNoOrders
        A amend #2 size=2
            rejected PhaseTakesNoOrders
        A cancel #1
            rejected UnknownOrder
        C cancel #1
            cancelled C#1 1 Requested
        phase Continuous
            phase Continuous by Operator
        ? market
            Continuous, reference 100, last 105, fees 0
        ",
    );
}

#[test]
fn stops_wait_through_a_halt() {
    check(
        banded(),
        "
        A sell 1 @105 #1
            accepted A#1 sell 1 @105 rests 1
        A sell 1 @106 #2
            accepted A#2 sell 1 @106 rests 1
        B buy 1 @106 stop=105 #1
            accepted B#1 buy 1 waits
        B buy 1 @105 stop=105 #2
            accepted B#2 buy 1 waits
        C buy 1 @105 #1
            accepted C#1 buy 1 @105 rests 0
            trade 1 @105 A#1 left 0, C#1 left 0
            triggered B#1 buy @106 rests 0
            cancelled B#1 1 PriceBand
            phase Halt by PriceBand
        phase Continuous
            phase Continuous by Operator
            triggered B#2 buy @105 rests 1
        ? market
            Continuous, reference 100, last 105, fees 0
        ",
    );
}

#[test]
fn the_opening_auction_trades_at_one_price() {
    check(
        with_fees(10_000, 20_000),
        "
        phase Closed
            phase Closed by Operator
        A buy 1 @100 #1
            rejected PhaseTakesNoOrders
        phase PreOpen
            phase PreOpen by Operator
        A buy 10 @102 #1
            accepted A#1 buy 10 @102 rests 10
        B sell 4 @99 #1
            accepted B#1 sell 4 @99 rests 4
        C sell 4 @101 #1
            accepted C#1 sell 4 @101 rests 4
        D buy 2 @103 #1
            accepted D#1 buy 2 @103 rests 2
        A buy 1 market #2
            rejected PhaseNoImmediate
        A buy 1 @100 ioc #2
            rejected PhaseNoImmediate
        A buy 1 @100 min=1 #2
            rejected PhaseNoImmediate
        D sell 1 stop=105 #2
            accepted D#2 sell 1 waits
        phase OpeningAuction
            phase OpeningAuction by Operator
        B sell 4 @105 #2
            accepted B#2 sell 4 @105 rests 4
        phase Continuous
            trade 2 @102 D#1 left 0 fee 2, B#1 left 2 fee 2
            trade 2 @102 A#1 left 8 fee 2, B#1 left 0 fee 2
            trade 4 @102 A#1 left 4 fee 4, C#1 left 0 fee 4
            uncrossed 8 @102, imbalance 4
            phase Continuous by Operator
            triggered D#2 sell @1 rests 0
            trade 1 @102 A#1 left 3 fee 1, D#2 left 0 fee 2
        ? A
            207 BTC, 8966 USD and 313 reserved, net 7
        ? B
            192 BTC and 4 reserved, 10404 USD, net -4
        ? D
            201 BTC, 9894 USD, net 1
        ? market
            Continuous, reference 102, last 102, fees 19
        ",
    );
}

#[test]
fn an_auction_without_a_match_says_so() {
    check(
        plain(),
        "
        phase Closed
            phase Closed by Operator
        phase PreOpen
            phase PreOpen by Operator
        phase Continuous
            rejected PhaseChangeInvalid
        phase OpeningAuction
            phase OpeningAuction by Operator
        A buy 1 @99 #1
            accepted A#1 buy 1 @99 rests 1
        B sell 1 @101 #1
            accepted B#1 sell 1 @101 rests 1
        phase Continuous
            uncrossed nothing
            phase Continuous by Operator
        ? market
            Continuous, reference 100, last none, fees 0
        ",
    );
}

#[test]
fn a_rebate_is_not_paid_in_an_auction() {
    check(
        with_fees(-10_000, 20_000),
        "
        phase ClosingAuction
            phase ClosingAuction by Operator
        A buy 2 @100 #1
            accepted A#1 buy 2 @100 rests 2
        B sell 2 @100 #1
            accepted B#1 sell 2 @100 rests 2
        phase Closed
            trade 2 @100 A#1 left 0, B#1 left 0
            uncrossed 2 @100, imbalance 0
            phase Closed by Operator
        ? A
            202 BTC, 9800 USD, net 2
        ? B
            198 BTC, 10200 USD, net -2
        ",
    );
}

#[test]
fn the_closing_auction_sets_the_next_days_reference() {
    check(
        plain(),
        "
        A buy 5 @90 #1
            accepted A#1 buy 5 @90 rests 5
        A buy 5 @91 day #2
            accepted A#2 buy 5 @91 rests 5
        phase ClosingAuction
            phase ClosingAuction by Operator
        B sell 3 @90 #1
            accepted B#1 sell 3 @90 rests 3
        B sell 1 @120 day #2
            accepted B#2 sell 1 @120 rests 1
        A amend #1 size=6
            amended A#1 @90 rests 6, priority Lost
        phase Closed
            trade 3 @91 A#2 left 2, B#1 left 0
            uncrossed 3 @91, imbalance 2
            phase Closed by Operator
            cancelled A#2 2 DayEnded
            cancelled B#2 1 DayEnded
        ? market
            Closed, reference 91, last 91, fees 0
        phase Continuous
            phase Continuous by Operator
        ",
    );
}

#[test]
fn an_auction_that_is_broken_off_uncrosses_before_trading() {
    check(
        plain(),
        "
        phase Closed
            phase Closed by Operator
        phase PreOpen
            phase PreOpen by Operator
        A buy 2 @101 #1
            accepted A#1 buy 2 @101 rests 2
        B sell 2 @99 #1
            accepted B#1 sell 2 @99 rests 2
        phase OpeningAuction
            phase OpeningAuction by Operator
        phase Halt
            phase Halt by Operator
        A amend #1 size=1
            rejected PhaseTakesNoOrders
        phase Continuous
            trade 2 @100 A#1 left 0, B#1 left 0
            uncrossed 2 @100, imbalance 0
            phase Continuous by Operator
        phase Halt
            phase Halt by Operator
        phase Continuous
            phase Continuous by Operator
        ",
    );
}

#[test]
fn stops_enter_after_the_uncross() {
    check(
        plain(),
        "
        phase Closed
            phase Closed by Operator
        phase PreOpen
            phase PreOpen by Operator
        A buy 2 @110 stop=104 #1
            accepted A#1 buy 2 waits
        B sell 3 @105 #1
            accepted B#1 sell 3 @105 rests 3
        C buy 1 @105 #1
            accepted C#1 buy 1 @105 rests 1
        phase OpeningAuction
            phase OpeningAuction by Operator
        phase Continuous
            trade 1 @105 C#1 left 0, B#1 left 2
            uncrossed 1 @105, imbalance -2
            phase Continuous by Operator
            triggered A#1 buy @110 rests 0
            trade 2 @105 B#1 left 0, A#1 left 0
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
