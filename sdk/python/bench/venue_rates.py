"""How many orders a second a venue in the process takes: from an array, and one call at a time. Next to it hftbacktest and ABIDES.

    python sdk/python/bench/venue_rates.py [--orders 1000000] [--rounds 5] [--seed 1] [--abides FOLDER]

Ours is built in release (`make python`, then the wheel's environment). The same seeded flow goes to each: limit orders around a middle that
walks, a fifth cancels, 64 accounts, about a third of the orders trade. A figure counts orders and cancels, those that are refused too. Each
is the median of the rounds; every answer is checked: our ways must end in the same state.

What goes to ours one by one is the first fifth of the flow. hftbacktest, where it is installed, gets the same; what it does less of is
printed with it. ABIDES is not on PyPI: FOLDER is a checkout of its public repository (abides-jpmc-public of jpmorganchase, on GitHub), and
pandas and scipy are installed for it. Its order book gets those of the first fifth that both treat alike (`orders_alike` says which), and
ours is measured on the same ones again. Both must make the same trades and refuse as many cancels.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pathlib
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from typing import Any

import abides_book
import numpy as np

import walras

ACCOUNTS = 64
MIDDLE_TICKS = 100_000


def flow(count: int, seed: int) -> Any:
    """Orders and cancels, as rows of ORDER_DTYPE."""
    draw = np.random.default_rng(seed)
    rows = np.zeros(count, dtype=walras.ORDER_DTYPE)
    middle = MIDDLE_TICKS + np.cumsum(draw.integers(-1, 2, count) * (draw.random(count) < 0.02))
    rows["time_ns"] = np.arange(1, count + 1) * 1_000
    rows["account"] = draw.integers(0, ACCOUNTS, count)
    rows["side"] = draw.integers(0, 2, count)
    away = np.minimum(draw.geometric(0.2, count) - 3, 60)
    rows["price"] = middle + np.where(rows["side"] == 0, -away, away)
    rows["size"] = draw.integers(1, 20, count)
    rows["client_order_id"] = np.arange(count)
    cancels = np.flatnonzero((draw.random(count) < 0.2) & (np.arange(count) > 100))
    # Of an order that came a while ago; where it has traded meanwhile, the venue refuses the cancel.
    which = np.maximum(cancels - draw.integers(1, 100, len(cancels)), 0)
    rows["kind"][cancels] = walras.KINDS.index("cancel")
    rows["client_order_id"][cancels] = rows["client_order_id"][which]
    rows["account"][cancels] = rows["account"][which]
    return rows


def venue() -> walras.Venue:
    v = walras.Venue()
    v.create_asset("BASE", 8)
    v.create_asset("QUOTE", 8)
    v.create_instrument(
        "BASE/QUOTE", "BASE", "QUOTE", tick_size="0.01", lot_size="0.01", reference_price=MIDDLE_TICKS // 100, maker_fee_ppm=100, taker_fee_ppm=250
    )
    for _ in range(ACCOUNTS):
        v.create_account(BASE=10**8, QUOTE=10**9)
    return v


def timed(rounds: int, run: Callable[[], tuple[float, Any]]) -> tuple[float, Any]:
    """Median seconds, and the answer, which is the same in every round."""
    seconds, answers = zip(*(run() for _ in range(rounds)))
    assert all(answer == answers[0] for answer in answers), answers
    return statistics.median(seconds), answers[0]


def from_array(rows: Any) -> tuple[float, Any]:
    v = venue()
    begun = time.perf_counter()
    result = v.run(rows)
    return time.perf_counter() - begun, (v.state_hash(), len(result.trades), result.rejected)


def by_calls(rows: Any) -> tuple[float, Any]:
    """As a loop in Python sends orders: ids, ticks and lots."""
    v, trades, refused = venue(), 0, 0
    names = ("kind", "account", "side", "size", "price", "client_order_id", "time_ns")
    columns = [rows[name].tolist() for name in names]
    begun = time.perf_counter()
    for kind, account, side, size, price, name, at in zip(*columns):
        if kind == 0:
            outcome = v.submit_lots(account, 0, side, size, price, name, time_ns=at)
        else:
            outcome = v.cancel_id(account, 0, name, time_ns=at)
        trades += outcome.trade_count
        refused += outcome.code > 0
    return time.perf_counter() - begun, (v.state_hash(), trades, refused)


def by_decimals(rows: Any) -> tuple[float, Any]:
    """As a person writes them: symbols, and prices and sizes as exact text."""
    v, trades, refused = venue(), 0, 0
    prices = [f"{price / 100:.2f}" for price in rows["price"].tolist()]
    sizes = [f"{size / 100:.2f}" for size in rows["size"].tolist()]
    columns = [rows[name].tolist() for name in ("kind", "account", "side", "client_order_id", "time_ns")]
    begun = time.perf_counter()
    for kind, account, side, name, at, price, size in zip(*columns, prices, sizes):
        try:
            if kind == 0:
                outcome = v.submit(account, "BASE/QUOTE", walras.SIDES[side], size, price, name, time_ns=at)
            else:
                outcome = v.cancel(account, "BASE/QUOTE", name, time_ns=at)
            trades += outcome.trade_count
        except walras.Refused:
            refused += 1
    return time.perf_counter() - begun, (v.state_hash(), trades, refused)


def compared_with_abides(abides: abides_book.Abides, few: Any, rounds: int) -> dict[str, Any]:
    """Figures by name. Both get the orders that both treat alike, and must make the same trades of them."""
    rows = abides_book.orders_alike(few)
    array_s, answer = timed(rounds, lambda: from_array(rows))
    calls_s, called = timed(rounds, lambda: by_calls(rows))
    assert called == answer, "one array and a call each came to different states"
    theirs_s, (their_trades, their_refused) = timed(rounds, lambda: abides_book.by_abides(abides, rows))
    trades = venue().run(rows).trades
    ours = [trades[name].tolist() for name in ("maker_client_order_id", "taker_client_order_id", "size")]
    assert list(zip(*ours)) == their_trades, f"ABIDES made other trades than ours: {len(their_trades)}, ours {len(trades)}"
    assert answer[2] == their_refused, f"ABIDES refused {their_refused} of {len(rows)} orders and cancels, ours {answer[2]}"
    lots = sum(size for _, _, size in their_trades)
    figures = {
        "walras, one array (the orders of ABIDES)": array_s,
        "walras, a call each (the orders of ABIDES)": calls_s,
        "ABIDES, its order book": theirs_s,
    }
    found = {}
    for name, seconds in figures.items():
        found[name] = {"orders_per_s": round(len(rows) / seconds), "trades": len(trades), "lots": lots, "refused": their_refused}
        print(f"{name:65} {len(rows) / seconds:12,.0f} orders/s   {len(trades):,} trades, {their_refused:,} refused")
    return found


def machine() -> dict[str, Any]:
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.processor())
    here = pathlib.Path(__file__).parent
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True).stdout.strip()
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "commit": commit or "not from a checkout",
    }


def refuse_the_extension_of_the_tests() -> None:
    """`make test` leaves one that is not optimised next to the sources; the wheel is installed elsewhere."""
    if pathlib.Path(walras.__file__).is_relative_to(pathlib.Path(__file__).resolve().parents[1] / "walras"):
        raise SystemExit("the extension is the one of make test, which is not optimised: run make python, then this again")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--abides", type=pathlib.Path, help="the folder of a checkout of ABIDES")
    args = parser.parse_args()
    refuse_the_extension_of_the_tests()
    abides = abides_book.load(args.abides) if args.abides else None
    report: dict[str, Any] = {**machine(), "orders": args.orders, "rounds": args.rounds, "seed": args.seed, "figures": {}}
    rows = flow(args.orders, args.seed)
    few = rows[: max(args.orders // 5, 1)]
    ways: list[tuple[str, Any, Callable[[Any], tuple[float, Any]]]] = [
        ("walras, one array", rows, from_array),
        ("walras, one array (first fifth)", few, from_array),
        ("walras, a call each, ids and ticks", few, by_calls),
        ("walras, a call each, symbols and exact text", few, by_decimals),
    ]
    answers = {}
    for name, orders, way in ways:
        seconds, answer = timed(args.rounds, lambda: way(orders))
        answers.setdefault(len(orders), answer)
        assert answers[len(orders)] == answer, f"{name} came to another state"
        report["figures"][name] = {"orders_per_s": round(len(orders) / seconds), "trades": answer[1], "refused": answer[2]}
        print(f"{name:65} {len(orders) / seconds:12,.0f} orders/s   {answer[1]:,} trades, {answer[2]:,} refused")
    if importlib.util.find_spec("hftbacktest"):
        from peers import hftbacktest_rates

        report["figures"].update(hftbacktest_rates(rows, few, args.rounds, venue()))
    else:
        print("hftbacktest is not installed: pip install hftbacktest")
    if abides:
        report["abides"] = abides.name
        report["figures"].update(compared_with_abides(abides, few, args.rounds))
    else:
        print("ABIDES is not measured: --abides FOLDER names a checkout of it")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
