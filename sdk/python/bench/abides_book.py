"""The order book of ABIDES on orders of the same flow. Run by venue_rates.py where a checkout of ABIDES is named.

ABIDES simulates markets of agents. Its order book matches by price and then by time, as ours does, but has no accounts: it checks and
moves no balances, takes no fees, and lets an agent trade with itself. It cancels an order that the caller holds, not a number. So it gets
the orders that both treat alike, and ours gets the same ones. Messages from the book to its agents are dropped, and no simulation runs
around it: that is in its favour.
"""

from __future__ import annotations

import importlib
import pathlib
import subprocess
import sys
import time
from typing import Any, NamedTuple

import numpy as np

import walras

PACKAGES = ("abides-core", "abides-markets")


class Abides(NamedTuple):
    """What is used of a checkout, and its name with the commit."""

    name: str
    OrderBook: Any
    LimitOrder: Any
    Side: Any


def load(folder: pathlib.Path) -> Abides:
    """ABIDES from a checkout, which need not be installed."""
    missing = [package for package in PACKAGES if not (folder / package).is_dir()]
    if missing:
        raise SystemExit(f"--abides: {folder} is no checkout of ABIDES: it has no folder {missing[0]}")
    sys.path[:0] = [str(folder / package) for package in PACKAGES]
    try:
        book, orders = (importlib.import_module(f"abides_markets.{module}") for module in ("order_book", "orders"))
    except ImportError as error:
        raise SystemExit(f"--abides: {folder} does not load: {error}. It needs pandas and scipy: pip install pandas scipy") from error
    commit = ""
    # Only in a checkout's root: git would look for a repository in the folders above it.
    if (folder / ".git").exists():
        asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=folder, capture_output=True, text=True)
        commit = asked.stdout.strip()
    return Abides(f"ABIDES, commit {commit or 'unknown'}", book.OrderBook, orders.LimitOrder, orders.Side)


def orders_alike(rows: Any) -> Any:
    """The orders and cancels of these rows that both books treat alike.

    Buys are of other accounts than sells, so that no account meets itself. A cancel of what never was an order is left out, for ABIDES
    cancels an order that the caller holds; one of an order that is gone stays.
    """
    orders = rows[rows["kind"] == 0]
    rows = rows[np.isin(rows["client_order_id"], orders["client_order_id"])].copy()
    of = orders[np.searchsorted(orders["client_order_id"], rows["client_order_id"])]
    rows["account"] = of["account"] // 2 * 2 + of["side"]
    return rows


class Owner:
    """What a book asks of the exchange's agent that owns it. Drops every message and entry of a log."""

    mkt_open = 0
    book_logging = False

    def __init__(self) -> None:
        self.current_time = 0

    def send_message(self, *_: Any) -> None:
        pass

    def logEvent(self, *_: Any) -> None:
        pass


def by_abides(abides: Abides, rows: Any) -> tuple[float, Any]:
    """Seconds; then the trades, each with both parties and its size, and how many cancels found nothing."""
    assert set(np.unique(rows["kind"])) <= {0, walras.KINDS.index("cancel")}, "the flow has orders and cancels alone"
    owner, held, gone = Owner(), {}, 0
    book, limit_order, sides = abides.OrderBook(owner, "BASE/QUOTE"), abides.LimitOrder, (abides.Side.BID, abides.Side.ASK)
    names = ("kind", "account", "side", "size", "price", "client_order_id", "time_ns")
    columns = [rows[name].tolist() for name in names]
    begun = time.perf_counter()
    for kind, account, side, size, price, name, at in zip(*columns):
        owner.current_time = at
        if kind == 0:
            order = limit_order(account, at, "BASE/QUOTE", size, sides[side], price, order_id=name)
            held[name] = order
            book.handle_limit_order(order)
        else:
            gone += not book.cancel_order(held[name])
    seconds = time.perf_counter() - begun
    said = [(entry["order_id"], entry["oppos_order_id"], entry["quantity"]) for entry in book.history if entry["type"] == "EXEC"]
    return seconds, (said, gone)
