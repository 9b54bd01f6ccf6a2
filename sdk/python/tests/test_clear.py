"""What `walras.clear` promises, on every kind of input."""

from __future__ import annotations

import random
import signal
import threading
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pandas
import polars
import pyarrow
import pytest

import walras

COLUMNS = ["sell", "buy", "amount", "limit_price", "id"]
Row = tuple[Any, ...]
BATCH: list[Row] = [
    ("BTC", "USD", 2.5, 29_500.0, "a"),
    ("BTC", "USD", 1.0, 31_000.0, "b"),
    ("USD", "BTC", 45_000.0, 0.0000333, "c"),
    ("USD", "ETH", 20_000.25, 0.0004, "d"),
    ("ETH", "BTC", 10.0, 0.0655, "e"),
    ("ETH", "USD", 5.0, 1.0, "f"),
]
DECIMALS = {"BTC": 8, "ETH": 8, "USD": 2}


def dicts(rows: list[Row]) -> list[dict[str, Any]]:
    return [dict(zip(COLUMNS, row)) for row in rows]


def made(seed: int, asset_count: int, offer_count: int) -> list[Row]:
    """Offers around hidden values, in whole units."""
    draw = random.Random(seed)
    values = [draw.lognormvariate(0, 2) for _ in range(asset_count)]
    rows: list[Row] = []
    for number in range(offer_count):
        sell, buy = draw.sample(range(asset_count), 2)
        limit = values[sell] / values[buy] * draw.uniform(0.9, 1.05)
        rows.append((f"A{sell:02}", f"A{buy:02}", draw.randint(10_000, 10_000_000), limit, number))
    return rows


def check_fills(rows: list[Row], cleared: walras.Clearing[Any], fills: list[dict[str, Any]]) -> None:
    """Conservation and limits, in exact arithmetic."""
    net: dict[str, int] = defaultdict(int)
    for fill in fills:
        sell, buy, amount, limit = rows[fill["row"]][:4]
        scale_sell, scale_buy = 10 ** cleared.decimals[sell], 10 ** cleared.decimals[buy]
        sold, bought = fill.get("sold_units", fill["sold"]), fill.get("bought_units", fill["bought"])
        remaining = fill.get("remaining_units", fill["remaining"])
        assert (fill["sell"], fill["buy"], fill["id"]) == (sell, buy, rows[fill["row"]][4])
        assert sold > 0 and sold + remaining == Fraction(str(amount)) * scale_sell
        assert Fraction(bought, scale_buy) >= Fraction(str(limit)) * Fraction(sold, scale_sell)
        net[sell] += sold
        net[buy] -= bought
    assert all(units >= 0 for units in net.values())
    kept = {asset: net[asset] / 10 ** cleared.decimals[asset] for asset in cleared.prices}
    assert kept == cleared.quality.kept


def test_all_kinds_of_input_agree() -> None:
    frame = pandas.DataFrame(BATCH, columns=COLUMNS)
    frame.index = frame.index + 100  # rows are counted, not labelled
    of_dicts = walras.clear(dicts(BATCH), decimals=DECIMALS, numeraire="USD")
    of_tuples = walras.clear(BATCH, decimals=DECIMALS, numeraire="USD")
    of_pandas = walras.clear(frame, decimals=DECIMALS, numeraire="USD")
    of_polars = walras.clear(polars.DataFrame(BATCH, schema=COLUMNS, orient="row"), decimals=DECIMALS, numeraire="USD")
    of_arrow = walras.clear(pyarrow.Table.from_pylist(dicts(BATCH)), decimals=DECIMALS, numeraire="USD")
    assert of_dicts.fills, "something trades"
    assert isinstance(of_pandas.fills, pandas.DataFrame) and isinstance(of_polars.fills, polars.DataFrame)
    assert isinstance(of_arrow.fills, pyarrow.Table)
    assert of_pandas.fills.to_dict("records") == of_dicts.fills
    assert of_polars.fills.to_dicts() == of_arrow.fills.to_pylist() == of_dicts.fills
    assert of_pandas.trades.to_dict("records") == of_polars.trades.to_dicts() == of_dicts.trades
    assert [fill._asdict() for fill in of_tuples.fills] == of_dicts.fills  # type: ignore[attr-defined]
    assert [tuple(fill.values()) for fill in of_dicts.fills] == of_tuples.fills
    for other in (of_tuples, of_pandas, of_polars, of_arrow):
        assert (other.prices, other.decimals) == (of_dicts.prices, of_dicts.decimals)
    check_fills(BATCH, of_dicts, of_dicts.fills)
    assert of_dicts.prices["USD"] == 1.0 and of_dicts.price_in == dict.fromkeys(DECIMALS, "USD")


def test_numbers_of_any_type_are_the_same_number() -> None:
    for number in (str, lambda value: Decimal(str(value))):
        rows = [(sell, buy, number(amount), number(limit), name) for sell, buy, amount, limit, name in BATCH]
        assert walras.clear(rows, decimals=DECIMALS).fills == walras.clear(BATCH, decimals=DECIMALS).fills


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("eps", [0, 2**-15, 2**-6])
def test_conservation_and_limits(seed: int, eps: float) -> None:
    rows = made(seed, 8, 300)
    cleared = walras.clear(rows, eps=eps)
    fills = [fill._asdict() for fill in cleared.fills]  # type: ignore[attr-defined]
    assert len(fills) > 50 and len(fills) == cleared.quality.fill_count
    check_fills(rows, cleared, fills)
    assert all(isinstance(fill["sold"], int) for fill in fills), "whole amounts count units"
    for fill in fills:
        rate = cleared.rate(fill["sell"], fill["buy"])
        assert rate is not None and fill["bought"] <= fill["sold"] * rate * (1 + 1e-12)
        assert fill["bought"] >= fill["sold"] * rate - 1.001


def test_fifty_assets() -> None:
    rows = made(1, 50, 20_000)
    cleared = walras.clear(pandas.DataFrame(rows, columns=COLUMNS), strict=True)
    check_fills(rows, cleared, cleared.fills.to_dict("records"))
    quality = cleared.quality
    assert quality.outcome != "approximate" and quality.component_count == 1 and quality.pairs_below_count == 0
    assert quality.mu_achieved <= 2**-10 and quality.unrealised_share < 0.01
    assert quality.fill_count == len(cleared.fills) == cleared.trades["fill_count"].sum()
    assert None not in cleared.prices.values()
    # Warm: the last prices are as good a start as any.
    assert walras.clear(rows, start=cleared.prices, strict=True).quality.outcome != "approximate"


def test_a_limit_is_never_worse_than_stated() -> None:
    # 1/3 of a cent has no exact price: the offer may get more, never less.
    rows = [("A", "B", "100", "0.3333333333333333", 1), ("B", "A", "33", "3", 2)]
    cleared = walras.clear(rows, eps=0)
    check_fills(rows, cleared, [fill._asdict() for fill in cleared.fills])  # type: ignore[attr-defined]


def test_buy_offers_and_pools() -> None:
    offers = [
        {"sell": "A", "buy": "B", "amount": 1_000_000, "limit_price": 0.5},
        {"sell": "B", "buy": "A", "amount": 900_000, "limit_price": 0.5},
        {"sell": "B", "buy": "A", "amount": 50_000, "limit_price": 0.9, "kind": "buy", "sell_max": 60_000},
        {"sell": "A", "buy": "B", "amount": 5_000_000, "limit_price": None, "kind": "pool", "buy_reserve": 5_000_000, "fee_ppm": 300},
    ]
    cleared = walras.clear(offers)
    by_kind = {fill["kind"]: fill for fill in cleared.fills}
    assert set(by_kind) == {"sell", "buy", "pool"}
    assert by_kind["buy"]["bought"] + by_kind["buy"]["remaining"] == 50_000
    sums = [sum(trade["sold"] for trade in cleared.trades if trade["sell"] == asset) for asset in "AB"]
    got = [sum(trade["bought"] for trade in cleared.trades if trade["buy"] == asset) for asset in "AB"]
    assert all(sold >= bought for sold, bought in zip(sums, got))
    assert cleared.quality.pool_count == 1


def test_a_buy_offer_needs_no_limit_if_it_says_what_it_may_sell() -> None:
    for missing in [None, float("nan"), "market"]:
        offers = [
            {"sell": "A", "buy": "B", "amount": 1_000_000, "limit_price": 0.5},
            {"sell": "B", "buy": "A", "amount": 900_000, "limit_price": 0.5},
            {"sell": "B", "buy": "A", "amount": 50_000, "limit_price": missing, "kind": "buy", "sell_max": 60_000},
        ]
        fills = [fill for fill in walras.clear(offers).fills if fill["kind"] == "buy"]
        assert len(fills) == 1 and 0 < fills[0]["bought"] <= 50_000 and fills[0]["sold"] <= 60_000, missing


def test_nothing_to_clear() -> None:
    kinds: list[Any] = [[], pandas.DataFrame(columns=COLUMNS), pandas.DataFrame(), polars.DataFrame(schema=COLUMNS)]
    for empty in kinds:
        cleared: walras.Clearing[Any] = walras.clear(empty)
        assert cleared.prices == {} and len(cleared.fills) == 0 and len(cleared.trades) == 0
        assert isinstance(cleared.fills, type(empty)) and cleared.quality.fill_count == 0
    lone = walras.clear([("A", "B", 5, 1)])
    assert lone.prices == {"A": None, "B": None} and lone.fills == [] and lone.rate("A", "B") is None


def test_decimals_are_chosen_and_said() -> None:
    cleared = walras.clear(BATCH)
    assert cleared.decimals == {"BTC": 8, "ETH": 8, "USD": 8}
    assert walras.clear([("A", "B", "0.0000000001", "market"), ("B", "A", 1, "market")]).decimals == {"A": 10, "B": 8}
    assert walras.clear([("A", "B", 7, "market"), ("B", "A", 1.0, "market")]).decimals == {"A": 0, "B": 0}
    assert walras.clear([("A", "B", 7, "market"), ("B", "A", 1, "market")], decimals=3).decimals == {"A": 3, "B": 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"amount": 0}, "row 1, column amount: is zero: offer at least one unit"),
        ({"amount": -3}, "row 1, column amount: `-3` is below zero"),
        ({"amount": float("nan")}, "row 1, column amount: is empty"),
        ({"amount": float("inf")}, "row 1, column amount: `inf` is no number"),
        ({"amount": 2**63}, "row 1, column amount: .* more than 2\\^63 - 1 units"),
        ({"amount": True}, "row 1, column amount: True is neither"),
        ({"amount": "0.001"}, "row 1, column amount: 0.001 is no whole number of units of USD, which has 2 decimals"),
        ({"limit_price": None}, "row 1, column limit_price: is missing: .* or \"market\" to trade at any rate"),
        ({"limit_price": None, "kind": "buy"}, "row 1, column limit_price: is no limit, and sell_max is empty: a buy offer needs one"),
        ({"limit_price": 0}, "row 1, column limit_price: is zero: "),
        ({"limit_price": "cheap"}, "row 1, column limit_price: `cheap` is no number"),
        ({"limit_price": 1e200}, "row 1, column limit_price: .* use other units"),
        ({"sell": None}, "row 1, column sell: is empty"),
        ({"buy": "USD"}, "row 1, column buy: USD for itself"),
        ({"kind": "short"}, "row 1, column kind: `short` is no kind of offer: write sell, buy or pool"),
        ({"sell_max": 5}, "row 1, column sell_max: means nothing for the kind sell"),
    ],
)
def test_a_wrong_cell_is_named(change: dict[str, Any], message: str) -> None:
    right = {"sell": "USD", "buy": "BTC", "amount": 5, "limit_price": 1}
    with pytest.raises(ValueError, match=message):
        walras.clear([right | {"sell": "BTC", "buy": "USD"}, right | change], decimals=2)


def test_a_missing_number_of_a_frame_is_no_market_order() -> None:
    frame = pandas.DataFrame({"sell": ["A", "B"], "buy": ["B", "A"], "amount": [1, 2], "limit_price": [1.0, float("nan")]})
    with pytest.raises(ValueError, match="row 1, column limit_price: is missing"):
        walras.clear(frame)
    with pytest.raises(ValueError, match="column limit_price is missing: offers need"):
        walras.clear(frame.drop(columns="limit_price"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"eps": 0.001}, "eps: 0.001 is not allowed: give 0, or 2\\*\\*-k .*; the nearest is 2\\*\\*-10"),
        ({"eps": -1}, "eps: -1 is not allowed"),
        ({"mu": 0}, "mu: 0 is not allowed"),
        ({"mu": 2**-31}, "mu: .* the nearest is 2\\*\\*-30"),
        ({"decimals": 19}, "decimals: 19"),
        ({"decimals": {"GOLD": 2}}, "decimals are given for GOLD, which no offer names"),
        ({"numeraire": "GOLD"}, "numeraire: no offer names 'GOLD'"),
        ({"start": {"BTC": -1.0}}, "start: .* BTC is no price"),
        ({"solver": "luck"}, "solver: \"luck\" is none"),
        ({"queries": -1}, "queries: -1"),
        ({"deadline_s": -1}, "deadline_s: -1"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        walras.clear(BATCH, **settings)


def test_what_is_no_table_is_refused() -> None:
    wrongs: list[Any] = [5, "offers.csv", None]
    for wrong in wrongs:
        with pytest.raises(TypeError, match="give a pandas or polars DataFrame"):
            walras.clear(wrong)
    with pytest.raises(ValueError, match="row 1 is a tuple: make all rows dicts"):
        walras.clear([{"sell": "A", "buy": "B", "amount": 1, "limit_price": 1}, ("B", "A", 1, 1)])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="row 0 has 3 values"):
        walras.clear([("A", "B", 1)])


def test_solvers_and_deadlines() -> None:
    rows = made(3, 6, 400)
    for solver in ("portfolio", "newton", "tatonnement"):
        cleared = walras.clear(rows, solver=solver)
        check_fills(rows, cleared, [fill._asdict() for fill in cleared.fills])  # type: ignore[attr-defined]
    late = walras.clear(rows, deadline_s=0)
    check_fills(rows, late, [fill._asdict() for fill in late.fills])  # type: ignore[attr-defined]
    assert walras.clear(rows).prices == walras.clear(rows).prices


def test_threads_get_the_same_answer() -> None:
    rows = made(4, 10, 2_000)
    expected = walras.clear(rows).fills
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(walras.clear(rows).fills)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 3


def test_a_signal_ends_the_search() -> None:
    class Interrupted(Exception):
        pass

    def interrupt(_number: int, _frame: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(Interrupted):
            # Tatonnement gets nowhere near this accuracy; without the signal, the deadline would end it and no exception be raised.
            walras.clear(made(5, 20, 1_000), solver="tatonnement", eps=2**-30, mu=2**-30, queries=10**12, deadline_s=60)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
