"""hftbacktest on the same flow: what it does of it, and how fast. Run by venue_rates.py where hftbacktest is installed.

It is no exchange: recorded orders do not match each other, and there are no accounts; it replays what a market recorded and fills the
strategy's own orders by a model of their place in the queue. So it gets the record that our venue made of the flow, order by order, and
walks through it; and it gets the first orders and cancels of the flow, the same that ours are measured with, as a strategy's own.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
from hftbacktest import (
    ADD_ORDER_EVENT,
    BUY_EVENT,
    CANCEL_ORDER_EVENT,
    EXCH_EVENT,
    GTC,
    LIMIT,
    LOCAL_EVENT,
    MODIFY_ORDER_EVENT,
    SELL_EVENT,
    BacktestAsset,
    HashMapMarketDepthBacktest,
    event_dtype,
)
from numba import njit

import walras

_FLAGS = EXCH_EVENT | LOCAL_EVENT


def record(events: Any) -> Any:
    """Our venue's events as its feed, order by order."""
    kinds = {name: number for number, name in enumerate(walras.EVENT_KINDS)}
    added = events["order_id"][(events["kind"] == kinds["accepted"]) & (events["open"] > 0)]
    named = (events["kind"] == kinds["accepted"]) & (events["open"] > 0)
    named |= np.isin(events["kind"], [kinds["traded"], kinds["cancelled"]]) & np.isin(events["order_id"], added)
    rows = events[named]
    of = np.zeros(len(rows), dtype=event_dtype)
    is_added, is_left = rows["kind"] == kinds["accepted"], rows["open"] > 0
    what = np.select([is_added, is_left], [ADD_ORDER_EVENT, MODIFY_ORDER_EVENT], CANCEL_ORDER_EVENT)
    side = np.where(rows["side"] == 1, SELL_EVENT, BUY_EVENT)
    of["ev"] = what.astype(np.uint64) | side.astype(np.uint64) | np.uint64(_FLAGS)
    of["exch_ts"] = of["local_ts"] = rows["time_ns"].astype(np.int64)
    of["px"], of["qty"], of["order_id"] = rows["price"] / 100, rows["open"] / 100, rows["order_id"]
    return of


def asset(feed: Any) -> Any:
    return (
        BacktestAsset()
        .data([feed])
        .linear_asset(1.0)
        .constant_order_latency(0, 0)
        .l3_fifo_queue_model()
        .no_partial_fill_exchange()
        .trading_value_fee_model(0.0001, 0.00025)
        .tick_size(0.01)
        .lot_size(0.01)
        .last_trades_capacity(0)
    )


@njit  # type: ignore[untyped-decorator]
def walk(hbt: Any) -> int:
    code = 0
    while code == 0:
        code = hbt.elapse(1_000_000)
    return code


@njit  # type: ignore[untyped-decorator]
def send(hbt: Any, kinds: Any, names: Any, sides: Any, prices: Any, sizes: Any) -> tuple[int, int]:
    """Sends all; how many that were, and how many it refused: cancels of what is not there."""
    sent, refused = 0, 0
    hbt.elapse(1)
    for place in range(len(kinds)):
        if kinds[place] != 0:
            code = hbt.cancel(0, names[place], False)
        elif sides[place] == 0:
            code = hbt.submit_buy_order(0, names[place], prices[place], sizes[place], GTC, LIMIT, False)
        else:
            code = hbt.submit_sell_order(0, names[place], prices[place], sizes[place], GTC, LIMIT, False)
        sent += 1
        refused += code != 0
        if place % 64 == 63:
            hbt.elapse(1)
            hbt.clear_inactive_orders(0)
    return sent, refused


def hftbacktest_rates(rows: Any, few: Any, rounds: int, venue: walras.Venue) -> dict[str, Any]:
    """Figures by name."""
    feed = record(venue.run(rows, events=True).events)
    # A book that stands still around the orders, and time enough to send them.
    quiet = np.zeros(4, dtype=event_dtype)
    for place, (flag, price) in enumerate([(BUY_EVENT, 1.0), (SELL_EVENT, 10_000.0), (BUY_EVENT, 1.0), (SELL_EVENT, 10_000.0)]):
        at = 1 if place < 2 else 10**12
        quiet[place] = (ADD_ORDER_EVENT | flag | _FLAGS, at, at, price, 1.0, place + 1, 0, 0.0)
    assert set(np.unique(few["kind"])) <= {0, walras.KINDS.index("cancel")}, "the flow has orders and cancels alone"
    columns = [few[name].copy() for name in ("kind", "client_order_id", "side")]
    prices, sizes = few["price"] / 100, few["size"] / 100
    seconds: dict[str, list[float]] = {"walk": [], "send": []}
    for number in range(rounds + 1):
        hbt = HashMapMarketDepthBacktest([asset(feed)])
        begun = time.perf_counter()
        ended = walk(hbt)
        walked = time.perf_counter() - begun
        assert ended == 1, f"the record ended in {ended}, not at its end"
        hbt.close()
        hbt = HashMapMarketDepthBacktest([asset(quiet)])
        begun = time.perf_counter()
        sent, refused = send(hbt, *columns, prices, sizes)
        spent = time.perf_counter() - begun
        hbt.close()
        assert sent == len(few) and refused < sent / 4, f"of {sent} orders and cancels it refused {refused}"
        # The first round compiles.
        if number > 0:
            seconds["walk"].append(walked)
            seconds["send"].append(spent)
    figures = {
        "hftbacktest, our record of the flow walked through, no orders": (len(feed), seconds["walk"], "events_per_s"),
        "hftbacktest, orders and cancels of a strategy, unmatched": (len(few), seconds["send"], "orders_per_s"),
    }
    found = {}
    for name, (count, times, unit) in figures.items():
        rate = count / statistics.median(times)
        found[name] = {unit: round(rate)}
        print(f"{name:65} {rate:12,.0f} {unit}")
    return found


