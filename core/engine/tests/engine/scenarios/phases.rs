//! Auctions, halts, and the prices that bound trading.

use super::{banded, plain, with_fees};
use crate::script::check;

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
            accepted A#3 sell 1 waits with 1
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
            accepted C#2 sell 1 waits with 1
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
            accepted C#1 buy 1 waits with 1
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
fn a_bid_beyond_the_band_halts_whoever_sells_to_it() {
    check(
        banded(),
        "
        A buy 1 @106 #1
            accepted A#1 buy 1 @106 rests 1
        B sell 1 @100 fok #1
            rejected FillOrKillUnfillable
        B sell 1 @100 #1
            accepted B#1 sell 1 @100 rests 0
            cancelled B#1 1 PriceBand
            phase Halt by PriceBand
        A cancel #1
            cancelled A#1 1 Requested
        phase Continuous
            phase Continuous by Operator
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
            accepted B#1 buy 1 waits with 1
        B buy 1 @105 stop=105 #2
            accepted B#2 buy 1 waits with 1
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
            accepted D#2 sell 1 waits with 1
        phase OpeningAuction
            phase OpeningAuction by Operator
        B sell 4 @105 #2
            accepted B#2 sell 4 @105 rests 4
        ? indicative
            8 @102, imbalance 4
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
        ? indicative
            2 @100, imbalance 0
        phase Continuous
            trade 2 @100 A#1 left 0, B#1 left 0
            uncrossed 2 @100, imbalance 0
            phase Continuous by Operator
        ? indicative
            nothing crosses
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
            accepted A#1 buy 2 waits with 2
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
