//! What orders reserve, trades cost, and limits forbid.

use walras_types::InstrumentSpec;

use super::{plain, with_fees};
use crate::script::check;

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

/// A tick on a lot is so many units that 8192 ticks are more than an amount can be.
#[test]
fn a_repriced_offer_is_worth_no_more_than_an_amount_can_be() {
    check(
        InstrumentSpec { tick_value_units: 1 << 50, ..plain() },
        "
        deposit B 144115188075855872 usd id=5
        B buy 1 @99 #1
            accepted B#1 buy 1 @99 rests 1
        A sell 200 @1 reprice #1
            rejected ValueOverflow
        A sell 82 @99 reprice #1
            rejected ValueOverflow
        A sell 81 @1 reprice #1
            accepted A#1 sell 81 @100 rests 81
        A amend #1 @1 size=82
            rejected ValueOverflow
        A amend #1 @1
            amended A#1 @100 rests 81, priority Lost
        A amend #1 size=80
            amended A#1 @100 rests 80, priority Kept
        A sell 1 @99 #2
            accepted A#2 sell 1 @99 rests 0
            trade 1 @99 B#1 left 0, A#2 left 0
        A cancel #1
            cancelled A#1 80 Requested
        ? A
            199 BTC, 111464090777429776 USD, net -1
        ",
    );
}
