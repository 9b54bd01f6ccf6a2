"""A venue in the process: what it does with orders, one by one and from arrays, and what it refuses."""

from __future__ import annotations

import copy
import doctest
import pickle
import random
from decimal import Decimal
from typing import Any

import pytest

import walras

np = pytest.importorskip("numpy")

ALICE, BOB = 0, 1


def venue(accounts: int = 2, riches: int = 10**9, **terms: Any) -> walras.Venue:
    """BTC/USD in ticks of 0.5 and lots of 0.01, and accounts that can pay."""
    venue = walras.Venue()
    venue.create_asset("BTC", 8)
    venue.create_asset("USD", 4)
    given = {"tick_size": "0.5", "lot_size": "0.01", "reference_price": 30_000, **terms}
    venue.create_instrument("BTC/USD", "BTC", "USD", **given)
    for _ in range(accounts):
        venue.create_account(BTC=riches, USD=riches)
    return venue


def test_docstring() -> None:
    tests = doctest.DocTestFinder(recurse=False).find(walras.Venue, "walras.Venue", globs={"Venue": walras.Venue})
    runner = doctest.DocTestRunner()
    for test in tests:
        runner.run(test)
    assert runner.tries > 0 and runner.failures == 0


def test_a_trade_moves_exact_amounts() -> None:
    v = venue(maker_fee_ppm=-100, taker_fee_ppm=250)
    sold = v.submit(ALICE, "BTC/USD", "sell", "0.50", "30000.5", 7)
    assert sold.filled == 0 and sold.open == Decimal("0.50") and sold.client_order_id == 7
    assert v.balance(ALICE, "BTC").reserved == Decimal("0.5")
    bought = v.submit(BOB, "BTC-USD", "buy", Decimal("0.2"), Decimal("30001"), tif="ioc")
    (trade,) = bought.trades
    assert (trade.price, trade.size, trade.taker_side) == (Decimal("30000.5"), Decimal("0.20"), "buy")
    assert (trade.maker_account, trade.maker_client_order_id, trade.maker_open_lots) == (ALICE, 7, 30)
    # 0.2 * 30000.5 is 6000.10: the taker pays 250 ppm of it, and the maker gets 100 ppm, both rounded down.
    assert (trade.taker_fee, trade.maker_fee) == (Decimal("1.5000"), Decimal("-0.6000"))
    assert v.balance(BOB, "USD").available == 10**9 - Decimal("6000.10") - Decimal("1.5000")
    assert v.balance(ALICE, "USD").available == 10**9 + Decimal("6000.10") + Decimal("0.6000")
    assert v.fees("USD") == Decimal("0.9000")
    assert v.position(BOB, "BTC/USD").net == Decimal("0.2") and v.position(ALICE, 0).net == Decimal("-0.2")
    assert v.book("BTC/USD").asks == [(Decimal("30000.5"), Decimal("0.30"), 1)]
    assert [order.client_order_id for order in v.open_orders(ALICE, "BTC/USD")] == [7]
    assert v.instrument("BTC/USD").last_price == Decimal("30000.5")
    v.check_invariants()


def test_floats_are_refused() -> None:
    v = venue()
    for terms in ({"size": 0.5, "price": "30000"}, {"size": "0.5", "price": 30000.0}):
        with pytest.raises(TypeError, match="is a float, which is no exact decimal"):
            v.submit(ALICE, "BTC/USD", "buy", **terms)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="amount: .* is a float"):
        v.deposit(ALICE, "USD", 0.1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="give a str, a Decimal or an int"):
        v.create_instrument("A/B", "BTC", "USD", tick_size=0.5, lot_size=1, reference_price=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no bool"):
        v.submit(ALICE, "BTC/USD", "buy", True, "30000")


@pytest.mark.parametrize(
    ("terms", "error", "says"),
    [
        ({"side": "bid"}, ValueError, r"side: 'bid' is none: give \"buy\" \(0\), \"sell\" \(1\)"),
        ({"side": 2}, ValueError, "side: 2 is none"),
        ({"price": "30000.3"}, ValueError, "price: the price is not a whole multiple of 0.5"),
        ({"size": "0.001"}, ValueError, "size: the size is not a whole multiple of 0.01"),
        ({"size": "-1"}, ValueError, "not a plain decimal"),
        ({"size": "1e3"}, ValueError, "not a plain decimal"),
        ({"price": Decimal("NaN")}, ValueError, "not a plain decimal"),
        ({"tif": "forever"}, ValueError, "tif: 'forever' is none"),
        ({"tif": "gtd"}, ValueError, "needs expires_ns"),
        ({"peak": "1", "hidden": True}, ValueError, "not both"),
        ({"price": None, "post_only": "reject"}, ValueError, "post_only goes with limit orders"),
        ({"instrument": "ETH/USD"}, KeyError, "no such instrument: create it first"),
        ({"instrument": 7}, KeyError, "no such instrument"),
        ({"time_ns": -1}, OverflowError, "negative"),
    ],
)
def test_what_is_no_order_raises(terms: dict[str, Any], error: type[Exception], says: str) -> None:
    v = venue()
    before = v.state_hash()
    given: dict[str, Any] = {"account": ALICE, "instrument": "BTC/USD", "side": "buy", "size": "1", "price": "30000", **terms}
    with pytest.raises(error, match=says):
        v.submit(**given)
    assert v.state_hash() == before


def test_the_venue_refuses_with_a_number() -> None:
    v = venue(riches=1_000)
    with pytest.raises(walras.Refused, match="InsufficientFunds") as caught:
        v.submit(ALICE, "BTC/USD", "buy", "1", "30000")
    assert caught.value.code == 60 and pickle.loads(pickle.dumps(caught.value)).code == 60
    refused = v.submit_lots(ALICE, 0, "buy", 100, 60_000)
    assert not refused.accepted and (refused.code, refused.reason) == (60, "InsufficientFunds") and refused.advice
    assert [event.kind for event in refused.events] == ["rejected"]
    with pytest.raises(walras.Refused) as caught:
        v.cancel(ALICE, "BTC/USD", 99)
    assert caught.value.code == 4
    with pytest.raises(walras.Refused) as caught:
        v.create_asset("BTC", 8)
    assert caught.value.name == "DuplicateSymbol"
    with pytest.raises(walras.Refused) as caught:
        v.withdraw(ALICE, "USD", "1000.01")
    assert caught.value.code == 60
    with pytest.raises(ValueError, match="does not go back"):
        v.tick(5)
        v.tick(4)


def test_instruments_have_whole_units() -> None:
    v = venue()
    with pytest.raises(ValueError, match=r"lot_size: 0.000000001 is 0.1 units of BTC"):
        v.create_instrument("X/Y", "BTC", "USD", tick_size=1, lot_size="0.000000001", reference_price=1)
    with pytest.raises(ValueError, match="tick_size: 0.001 is 0.1 units of USD a lot"):
        v.create_instrument("X/Y", "BTC", "USD", tick_size="0.001", lot_size="0.01", reference_price=1)
    with pytest.raises(ValueError, match="reference_price"):
        v.create_instrument("X/Y", "BTC", "USD", tick_size="0.5", lot_size="0.01", reference_price="0.7")
    with pytest.raises(ValueError, match="allocation: 'lifo' is none"):
        v.create_instrument("X/Y", "BTC", "USD", tick_size="0.5", lot_size="0.01", reference_price=1, allocation="lifo")
    with pytest.raises(ValueError, match="is no symbol"):
        v.create_asset("btc", 8)
    # A tick whose inverse is no finite decimal.
    third = v.create_instrument("X/Y", "BTC", "USD", tick_size=3, lot_size=1, reference_price=30)
    assert v.instrument(third).reference_price == 30


def test_types_of_orders() -> None:
    v = venue()
    v.submit(ALICE, 0, "sell", 10, 30_000, 1, peak=1)
    assert v.book(0).asks == [(Decimal(30_000), Decimal(1), 1)]
    v.submit(ALICE, 0, "sell", 5, 30_001, 2, hidden=True)
    assert len(v.book(0).asks) == 1
    with pytest.raises(walras.Refused, match="PostOnlyWouldTrade"):
        v.submit(BOB, 0, "buy", 1, 30_000, post_only="reject")
    priced = v.submit(BOB, 0, "buy", 1, 30_000, 3, post_only="reprice")
    assert priced.events[0].price == Decimal("29999.5") and priced.open == 1
    with pytest.raises(walras.Refused, match="FillOrKillUnfillable"):
        v.submit(BOB, 0, "buy", 100, 30_001, tif="fok")
    stop = v.submit(BOB, 0, "buy", 1, trigger=30_001, client_order_id=4)
    assert stop.events[0].price is None and stop.open == 1
    # It sweeps the iceberg and meets the hidden order, whose price touches the stop.
    swept = v.submit(BOB, 0, "buy", 11, 30_001)
    assert swept.filled == 11
    assert "triggered" in [event.kind for event in swept.events] and v.position(BOB, 0).net == 12
    amended = v.amend(ALICE, 0, 2, size="2.5")
    assert amended.events[0].reason == "priority_kept" and amended.open == Decimal("2.5")
    v.submit(BOB, 0, "buy", 1, 29_000, 5, expires_ns=1_000)
    (gone,) = v.tick(1_000).events
    assert (gone.kind, gone.reason, gone.client_order_id) == ("cancelled", "expired", 5)
    crossed = v.submit(ALICE, 0, "buy", 1, 30_001, self_trade="cancel_oldest")
    assert "self_trade" in [event.reason for event in crossed.events]
    assert {event.reason for event in v.mass_cancel(BOB).events} == {"mass_cancelled"}
    v.check_invariants()


def test_auctions() -> None:
    v = venue(phase=None)
    assert v.instrument(0).phase == "closed"
    with pytest.raises(walras.Refused, match="PhaseChangeInvalid"):
        v.set_phase(0, "halt")
    v.set_phase(0, "pre_open")
    v.set_phase(0, "opening_auction")
    v.submit(ALICE, 0, "sell", 3, 29_990)
    v.submit(BOB, 0, "buy", 2, 30_010)
    indicative = v.indicative(0)
    assert indicative is not None and indicative.volume == 2 and indicative.imbalance == -1
    opened = v.set_phase(0, "continuous")
    assert [event.kind for event in opened.events] == ["traded", "uncrossed", "phase_changed"]
    assert opened.trades[0].price == indicative.price == v.instrument(0).reference_price
    assert v.indicative(0) is None


def test_a_suspended_account_loses_its_orders() -> None:
    v = venue()
    v.submit(ALICE, 0, "sell", 3, 30_000)
    assert v.suspend(ALICE).events[-1].reason == "account_suspended"
    with pytest.raises(walras.Refused, match="AccountSuspended"):
        v.submit(ALICE, 0, "sell", 3, 30_000)
    v.reinstate(ALICE)
    v.set_limits(ALICE, 0, order_lots_max=100)
    with pytest.raises(walras.Refused, match="OrderTooLarge"):
        v.submit(ALICE, 0, "sell", "1.01", 30_000)


def test_a_take_profit_and_a_stop_cancel_each_other() -> None:
    v = venue(2)
    with pytest.raises(ValueError, match="not two of them"):
        v.submit(ALICE, 0, "sell", 1, trigger=29_000, take_profit=31_000)
    profit = v.submit(ALICE, 0, "sell", 1, 31_000, client_order_id=1)
    stop = v.submit(ALICE, 0, "sell", 1, trigger=29_000, client_order_id=2, oco_with=1)
    assert profit.open == stop.open == 1
    traded = v.submit(BOB, 0, "buy", "0.5", 31_000)
    gone = [(event.kind, event.reason, event.client_order_id) for event in traded.events if event.kind == "cancelled"]
    assert gone == [("cancelled", "linked", 2)]
    v.submit(ALICE, 0, "sell", 1, 32_000, client_order_id=3, take_profit=31_500)
    with pytest.raises(walras.Refused, match="LinkInvalid"):
        v.submit(ALICE, 0, "buy", 1, client_order_id=4, trigger=33_000, oco_with=3)


def test_exits_stand_for_what_their_entry_has_filled() -> None:
    v = venue(2)
    with pytest.raises(ValueError, match="not both"):
        v.submit(ALICE, 0, "sell", 1, trigger=29_000, oco_with=1, exit_of=1)
    v.submit(ALICE, 0, "sell", 1, take_profit=31_000, client_order_id=2, exit_of=1)
    v.submit(ALICE, 0, "sell", 1, trigger=29_000, client_order_id=3, exit_of=1)
    v.submit(ALICE, 0, "buy", 1, 30_000, 1)
    filled = v.submit(BOB, 0, "sell", "0.5", 30_000)
    grown = [(event.client_order_id, event.kind) for event in filled.events if event.kind == "amended"]
    assert grown == [(2, "amended"), (3, "amended")]
    gone = v.cancel(ALICE, 0, 3)
    assert [(event.client_order_id, event.reason) for event in gone.events] == [(3, "requested"), (2, "linked"), (1, "linked")]
    v.submit(BOB, 0, "sell", "0.3", 30_000)
    v.submit(ALICE, 0, "sell", 1, trigger=29_000, client_order_id=3, exit_of=1)
    taken = v.submit(ALICE, 0, "buy", 1, 30_000, 1, tif="ioc")
    assert (taken.filled, taken.open) == (Decimal("0.3"), Decimal(0)), "what its exit stands for is not what is left of it"
    with pytest.raises(walras.Refused, match="LinkInvalid"):
        v.submit(ALICE, 0, "sell", 1, 31_000, exit_of=9)


def test_a_trailing_stop_follows_the_market() -> None:
    v = venue(2)
    with pytest.raises(ValueError, match="not both"):
        v.submit(ALICE, 0, "sell", 1, trail=100, trail_ppm=5_000)
    with pytest.raises(ValueError, match="not two of them"):
        v.submit(ALICE, 0, "sell", 1, trail=100, trigger=29_000)
    with pytest.raises(walras.Refused, match="TrailInvalid"):
        v.submit(ALICE, 0, "sell", 1, trail_ppm=1_000_000)
    v.submit(ALICE, 0, "sell", 1, trail=100, client_order_id=1)
    for price in (30_000, 30_200):
        v.submit(ALICE, 0, "sell", "0.1", price)
        assert [event.kind for event in v.submit(BOB, 0, "buy", "0.1", price).events] == ["accepted", "traded"]
    v.submit(BOB, 0, "buy", "0.1", 30_100)
    v.submit(BOB, 0, "buy", 1, 30_000)
    moved = v.submit(ALICE, 0, "sell", "0.1", 30_100)
    triggered = [event for event in moved.events if event.kind == "triggered"]
    assert [event.client_order_id for event in triggered] == [1]


#: The kinds of rows that enter an order.
ORDERS = (0, 1, 4, 5, 8, 9, 10, 11, 12, 13)


def drawn(count: int, seed: int, accounts: int) -> Any:
    """Rows of every kind, some of which the venue refuses."""
    draw = random.Random(seed)
    rows = np.zeros(count, dtype=walras.ORDER_DTYPE)
    for number, row in enumerate(rows):
        row["time_ns"] = number // 3 + 1
        row["account"] = draw.randrange(accounts + 1)
        row["kind"] = draw.choices(range(14), weights=[20, 3, 6, 5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])[0]
        row["client_order_id"] = number if row["kind"] in ORDERS else draw.randrange(max(number, 1))
        row["side"] = draw.randrange(2)
        row["price"] = 60_000 + draw.randrange(-30, 30) if draw.random() < 0.98 else draw.choice([0, -5, 2**50])
        row["size"] = draw.randrange(1, 50) if draw.random() < 0.98 else draw.choice([0, 2**50])
        row["trigger"] = 60_000 + draw.randrange(-30, 30) if row["kind"] < 10 else draw.choice([0, 5, 20, 1_000, 999_999, 2**32 - 1])
        row["tif"] = draw.choice([0, 0, 0, 3, 4])
        row["post_only"] = draw.choice([0, 0, 0, 1, 2]) if row["kind"] == 0 else 0
        row["self_trade"] = draw.randrange(5)
        row["peak"] = draw.choice([0, 0, 0, 5])
    return rows


@pytest.mark.parametrize("seed", range(3))
def test_arrays_do_what_calls_do(seed: int) -> None:
    rows = drawn(3_000, seed, accounts=4)
    bulk, single = venue(4), venue(4)
    result = bulk.run(rows, events=True, best=True)
    codes, filled, opened, events, best = [], [], [], [], []
    for row in rows:
        at, account, name, kind = int(row["time_ns"]), int(row["account"]), int(row["client_order_id"]), int(row["kind"])
        price, size, trigger = int(row["price"]), int(row["size"]), int(row["trigger"])
        try:
            if kind in ORDERS:
                outcome = single.submit_lots(
                    account,
                    0,
                    int(row["side"]),
                    size,
                    price if kind in (0, 5, 9, 11, 13) else None,
                    name,
                    tif=3 if kind == 1 and row["tif"] == 0 else int(row["tif"]),
                    trigger_ticks=trigger if kind in (4, 5) else None,
                    take_profit_ticks=trigger if kind in (8, 9) else None,
                    trail_ticks=trigger if kind in (10, 11) else None,
                    trail_ppm=trigger if kind in (12, 13) else None,
                    post_only=int(row["post_only"]),
                    peak_lots=int(row["peak"]) or None,
                    self_trade=int(row["self_trade"]),
                    time_ns=at,
                )
            elif kind == 2:
                outcome = single.cancel_id(account, 0, name, time_ns=at)
            elif kind == 3:
                outcome = single.amend_lots(
                    account, 0, name, price_ticks=price or None, size_lots=size or None, trigger_ticks=trigger, time_ns=at
                )
            elif kind == 6:
                outcome = single._mass_cancel(account, 0, int(row["side"]), at)
            else:
                outcome = single.tick(at)
        except ValueError as error:
            # A call says at once what a row is refused for, and takes no place of the log.
            assert "out of range" in str(error)
            single.tick(at)
            codes.append(20 if "price" in str(error) else 21)
            filled.append(0)
            opened.append(0)
        else:
            codes.append(outcome.code)
            filled.append(outcome.filled_lots)
            opened.append(outcome.open_lots)
            events += [(event.kind, event.order_id or 0, event.price_ticks or 0) for event in outcome.events]
        best.append(single.best_lots(0))
    assert result.outcomes["filled"].tolist() == filled and result.outcomes["open"].tolist() == opened
    different = [(a, b) for a, b in zip(result.outcomes["code"].tolist(), codes) if a != b]
    # Of a row with a price and a size out of range, either may be named.
    assert all({a, b} == {20, 21} for a, b in different), different
    seen = [(walras.EVENT_KINDS[row["kind"]], int(row["order_id"]), int(row["price"])) for row in result.events]
    assert [event for event in seen if event[0] != "rejected"] == [event for event in events if event[0] != "rejected"]
    assert result.best["bid"].tolist() == [bid for bid, _, _, _ in best]
    assert result.best["ask_size"].tolist() == [size for _, _, _, size in best]
    assert len(result.trades) == (result.events["kind"] == walras.EVENT_KINDS.index("traded")).sum() > 100
    assert result.trades["size"].tolist() == result.events["size"][result.events["kind"] == walras.EVENT_KINDS.index("traded")].tolist()
    assert bulk.state_hash() == single.state_hash()
    assert 0 < result.rejected < len(rows)
    bulk.check_invariants()


@pytest.mark.parametrize("allocation", ["price_time", "pro_rata"])
def test_queues_are_what_the_book_shows(allocation: str) -> None:
    v = venue(0, allocation=allocation)
    v.watch_queues()
    for _ in range(4):
        v.create_account(BTC=10**9, USD=10**9)
    rows = drawn(2_000, 5, accounts=4)
    checked = 0
    for number in range(len(rows)):
        v.run(rows[number : number + 1])
        if number % 20:
            continue
        levels: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        for account in range(4):
            for _, name, side, price, _, shown in v.open_orders_lots(account, 0):
                place = v.queue_ahead(account, 0, name)
                assert (place is None) == (price is None or shown == 0)
                if place is not None and price is not None:
                    levels.setdefault((side, price), []).append((*place, shown))
        for (side, price), orders in levels.items():
            orders.sort(key=lambda order: order[1])
            # Each stands behind as much as those before it show.
            assert [before for before, _, _ in orders] == [sum(shown for _, _, shown in orders[:place]) for place in range(len(orders))]
            assert [place for _, place, _ in orders] == list(range(len(orders)))
            checked += len(orders) > 1
        shown_levels = {("buy", price): size for price, size, _ in v.depth_lots(0, "buy", 10_000)}
        shown_levels |= {("sell", price): size for price, size, _ in v.depth_lots(0, "sell", 10_000)}
        assert {level: sum(shown for _, _, shown in orders) for level, orders in levels.items()} == shown_levels
    assert checked > 100


def test_columns_of_many_kinds_are_the_same_orders() -> None:
    columns: dict[str, Any] = {
        "time_ns": [1, 2, 3],
        "account": [ALICE, BOB, BOB],
        "instrument": ["BTC/USD"] * 3,
        "side": ["sell", "buy", "buy"],
        "kind": ["limit", "limit", "market"],
        "price": [60_000, 60_001, 0],
        "size": [10, 4, 3],
    }
    expected = venue().run(columns)
    assert expected.trades["size"].tolist() == [4, 3] and expected.outcomes["code"].tolist() == [0, 0, 0]
    frames: list[Any] = [{name: np.array(column) for name, column in columns.items()}]
    try:
        import pandas as pd

        frames.append(pd.DataFrame(columns))
    except ImportError:
        pass
    try:
        import polars as pl

        frames.append(pl.DataFrame(columns))
    except ImportError:
        pass
    try:
        import pyarrow as pa

        frames.append(pa.table(columns))
    except ImportError:
        pass
    for frame in frames:
        v = venue()
        assert v.run(frame).trades.tobytes() == expected.trades.tobytes(), type(frame)


def test_times_of_any_unit_and_zone_are_nanoseconds() -> None:
    kinds: list[Any] = [np.array([1, 2], "timedelta64[us]"), np.array([1, 2], "datetime64[us]")]
    try:
        import pandas as pd

        kinds.append(pd.Series(pd.to_datetime([1, 2], unit="us", utc=True)).dt.tz_convert("Asia/Tokyo"))
    except ImportError:
        pass
    for times in kinds:
        v = venue()
        assert v.run({"time_ns": times, "kind": ["tick"] * 2}).rejected == 0 and v.time_ns == 2_000, times


def test_single_values_alone_are_one_order() -> None:
    result = venue().run({"account": ALICE, "side": "sell", "price": 60_000, "size": 3})
    assert result.outcomes["open"].tolist() == [3] and len(venue().run({}).outcomes) == 0


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(library: str) -> None:
    pytest.importorskip(library, reason=f"makes frames of {library}, which is not installed")
    result = venue().run({"account": [ALICE, BOB], "side": ["sell", "buy"], "price": [60_000] * 2, "size": [3, 2]})
    trades = walras.frame(result.trades, library)
    assert trades.shape == (1, 17) and int(trades["size"][0].as_py() if library == "pyarrow" else trades["size"][0]) == 2
    answers = walras.frame([{"price": "30000.5", "size": "0.1"}, {"price": None, "fee": "1"}], library)
    assert answers.shape == (2, 3)
    with pytest.raises(ValueError, match="'sas' is none"):
        walras.frame(result.trades, "sas")


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"colour": [1]}, "'colour' is no column: give some of time_ns"),
        ({"side": ["bid"]}, "column side: 'bid' is none"),
        ({"kind": [14], "size": [1]}, "row 0, column kind: give 0 to 13"),
        ({"side": [0, 3], "size": [1, 1], "price": [9, 9]}, "row 1, column side"),
        ({"time_ns": [5, 4], "kind": [7, 7]}, "row 1, column time_ns: 4 is before 5"),
        ({"price": [1.5]}, "column price: whole numbers"),
        ({"price": [float("nan")]}, "column price: whole numbers"),
        ({"price": [2.0**53 + 2]}, "column price: floats above 2.53"),
        ({"size": [-1]}, "column size: -1 is negative"),
        ({"kind": [300]}, "column kind: 300 is larger than 255"),
        ({"price": [1, 2], "size": [1]}, "columns differ in length"),
        ({"price": [9], "size": [1], "hidden": [1], "peak": [1]}, "not both"),
    ],
)
def test_rows_that_are_no_orders_change_nothing(columns: dict[str, list[Any]], says: str) -> None:
    v = venue()
    before = v.state_hash()
    with pytest.raises(ValueError, match=says):
        v.run(columns)
    assert v.state_hash() == before
    with pytest.raises(TypeError, match="no named columns"):
        v.run([1, 2])


def test_what_was_not_asked_for_says_so() -> None:
    result = venue().run({"kind": ["tick"]}, trades=False)
    for name in ("trades", "events", "best"):
        with pytest.raises(ValueError, match=f"{name} were not asked for"):
            getattr(result, name)
    assert "1 orders, 0 refused" in repr(result)


def test_a_long_sweep_is_carried_on_at_once() -> None:
    v = venue()
    makers = {"account": [ALICE] * 2_000, "side": [1] * 2_000, "price": [60_000] * 2_000, "size": [1] * 2_000}
    v.run({**makers, "client_order_id": range(2_000)})
    swept = v.submit(BOB, 0, "buy", "19.5", 30_000)
    assert swept.trade_count == 1_950 and swept.filled == Decimal("19.5") and swept.open == 0
    v.submit(BOB, 0, "buy", "0.5", 30_000)
    assert v.book(0).asks == []
    rows = {"account": [ALICE] * 2_000 + [BOB], "side": [1] * 2_000 + [0], "price": [60_000] * 2_001, "size": [1] * 2_000 + [2_000]}
    result = v.run({**rows, "client_order_id": range(2_001)})
    assert result.outcomes[-1].tolist()[1:] == (2_000, 0, 2_000, 0)


def test_copies_go_their_own_way() -> None:
    v = venue()
    v.submit(ALICE, "BTC/USD", "sell", 1, 30_000)
    for other in (v.copy(), copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
        assert other.state_hash() == v.state_hash() and other.instruments() == v.instruments()
        other.submit(BOB, "BTC/USD", "buy", 1, 30_000)
        assert other.state_hash() != v.state_hash()
    with pytest.raises(ValueError, match="snapshot|state|bytes"):
        v.restore(b"nothing")
    assert v.book(0).asks
