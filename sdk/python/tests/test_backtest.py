"""Back-tests on small days that the tests write, and on a recorded one where it is there."""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import random
import shutil
import struct
import sys
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import databento_dbn as dbn
import numpy as np
import pytest
import zstandard

import walras
from walras import _days, backtest

FIRST_NS = 34_200_000_000_000
MILLISECOND = 1_000_000


def lobster(folder: pathlib.Path, rows: list[tuple[int, int, int, int, int, int]]) -> pathlib.Path:
    """Rows of milliseconds after the opening, type, order, shares, cents, side (1 buy, -1 sell)."""
    path = folder / "TEST_2012-06-21_34200000_57600000_message_10.csv"
    lines = [f"{34_200 + at / 1_000:.9f},{kind},{order},{size},{cents * 100},{side}" for at, kind, order, size, cents, side in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


ADD, REDUCE, DELETE, EXECUTE = 1, 2, 3, 4
#: Bids of 100, 200 and 300 shares at 99.90, an ask at 100.10; the first two bids trade, half of the second one by half.
DAY = [
    (0, ADD, 1, 100, 9_990, 1),
    (1, ADD, 2, 200, 9_990, 1),
    (2, ADD, 3, 50, 10_010, -1),
    (10, ADD, 4, 300, 9_990, 1),
    (20, EXECUTE, 1, 100, 9_990, 1),
    (30, REDUCE, 2, 100, 9_990, 1),
    (40, EXECUTE, 2, 100, 9_990, 1),
    (50, EXECUTE, 4, 250, 9_990, 1),
    (60, DELETE, 3, 50, 10_010, -1),
]


class Recorder(backtest.Strategy):
    """Notes what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, Any]] = []

    def on_trade(self, trade: backtest.Trade) -> None:
        self.heard.append((self.now_ns, trade))

    def on_book(self, best: backtest.Best) -> None:
        self.heard.append((self.now_ns, best))

    def on_fill(self, fill: backtest.Fill) -> None:
        self.heard.append((self.now_ns, fill))

    def on_answer(self, answer: backtest.Answer) -> None:
        self.heard.append((self.now_ns, answer))

    def of(self, kind: type) -> list[Any]:
        return [what for _, what in self.heard if isinstance(what, kind)]


def test_a_record_alone_trades_as_it_says(tmp_path: pathlib.Path) -> None:
    strategy = Recorder()
    result = backtest.run(lobster(tmp_path, DAY), strategy)
    assert [(trade.time_ns - FIRST_NS, trade.ticks, trade.lots, trade.side) for trade in strategy.of(backtest.Trade)] == [
        (20 * MILLISECOND, 9_990, 100, 1),
        (40 * MILLISECOND, 9_990, 100, 1),
        (50 * MILLISECOND, 9_990, 250, 1),
    ]
    best = strategy.of(backtest.Best)
    assert best[0][1:] == (9_990, 100, 0, 0) and best[2][1:] == (9_990, 300, 10_010, 50) and best[-1][1:] == (9_990, 50, 0, 0)
    assert (result.sent, result.fills, result.profit_units, result.played_refused) == (0, [], 0, 0)
    assert (result.tick_size, result.lot_size) == ("0.01", "1")


class JoinsBid(Recorder):
    """Buys 100 at the best bid once, after 5 ms, and says where it stands."""

    def __init__(self, at_ms: int = 5) -> None:
        super().__init__()
        self.at_ms, self.ahead = at_ms, []  # type: tuple[int, list[Any]]

    def on_start(self) -> None:
        self.wake_at(FIRST_NS + self.at_ms * MILLISECOND)

    def on_timer(self) -> None:
        self.name = self.submit("buy", 100, self.best.bid)

    def on_trade(self, trade: backtest.Trade) -> None:
        super().on_trade(trade)
        self.ahead.append(self.queue_ahead(self.name))

    def on_book(self, best: backtest.Best) -> None:
        super().on_book(best)
        if self.orders:
            self.ahead.append(self.queue_ahead(self.name))


def test_an_order_waits_in_the_queue_for_its_turn(tmp_path: pathlib.Path) -> None:
    strategy = JoinsBid()
    result = backtest.run(lobster(tmp_path, DAY), strategy)
    # It came after orders 1 and 2 and before order 4: what trades at 50 ms is its, and order 4 trades 150 less than on record.
    (fill,) = result.fills
    assert fill == (FIRST_NS + 50 * MILLISECOND, 1, 0, 9_990, 100, 0, 0, True)
    assert strategy.of(backtest.Fill) == [fill] and strategy.position_lots == result.position_lots == 100 and not strategy.orders
    assert [ahead for ahead in strategy.ahead if ahead is not None][:2] == [(300, 2), (300, 2)]
    assert (200, 1) in strategy.ahead and (100, 1) in strategy.ahead and (0, 0) in strategy.ahead
    assert result.cash_units == -999_000 and result.maker_share == 1.0
    # It ends between what is left of the bids and no ask.
    assert result.profit_units == 0


class LosesOrders(Recorder):
    """Has a stop cancelled by the fill of the bid with which it is linked, or a bid by an offer of its own."""

    def __init__(self, by: str) -> None:
        super().__init__()
        self.by = by

    def on_start(self) -> None:
        self.wake_at(FIRST_NS + 5 * MILLISECOND)

    def on_timer(self) -> None:
        if self.by == "link":
            self.submit("buy", 100, trigger_ticks=10_500, oco_with=self.submit("buy", 100, self.best.bid))
        else:
            self.submit("buy", 100, 10_000)
            self.submit("sell", 100, 10_000, self_trade="cancel_oldest")


@pytest.mark.parametrize(("by", "at_ms", "gone", "left"), [("link", 50, 2, []), ("own offer", 5, 1, [2])])
def test_what_the_venue_cancels_by_itself_is_heard(tmp_path: pathlib.Path, by: str, at_ms: int, gone: int, left: list[int]) -> None:
    strategy = LosesOrders(by)
    result = backtest.run(lobster(tmp_path, DAY), strategy)
    heard = [answer for answer in strategy.of(backtest.Answer) if answer.what == "cancelled"]
    assert heard == [backtest.Answer(FIRST_NS + at_ms * MILLISECOND, gone, "cancelled", 0, 0)]
    assert list(strategy.orders) == left and result.refused == 0


def test_delays_are_any_numbers(tmp_path: pathlib.Path) -> None:
    path = lobster(tmp_path, DAY)
    for delay in (np.int64(6 * MILLISECOND), 6e6):
        assert backtest.run(path, JoinsBid(), latency=backtest.Latency(order_ns=delay)).fills == []  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no delay to draw"):
        backtest.run(path, JoinsBid(), latency=backtest.Latency(order_ns=[]))


def test_latency_decides_who_is_first(tmp_path: pathlib.Path) -> None:
    path = lobster(tmp_path, DAY)
    # What is sent at 5 ms and takes 6 comes after order 4, which takes all that trades at 50 ms.
    late = backtest.run(path, JoinsBid(), latency=backtest.Latency(order_ns=6 * MILLISECOND))
    assert late.fills == []
    strategy = JoinsBid()
    backtest.run(path, strategy, latency=backtest.Latency(data_ns=2 * MILLISECOND, answer_ns=3 * MILLISECOND))
    assert {at - what.time_ns for at, what in strategy.heard if isinstance(what, (backtest.Trade, backtest.Best))} == {2 * MILLISECOND}
    assert {at - what.time_ns for at, what in strategy.heard if isinstance(what, (backtest.Fill, backtest.Answer))} == {3 * MILLISECOND}


@pytest.mark.parametrize(
    "delay", [[1_000, 2_000, 50_000], backtest.normal(20_000, 10_000), backtest.lognormal(20_000, 1.0), lambda draw: draw.random() * 1e5]
)
def test_sampled_latency_keeps_order_and_is_the_same_again(tmp_path: pathlib.Path, delay: Any) -> None:
    path = lobster(tmp_path, drawn_day(300, 1))
    latency = backtest.Latency(order_ns=delay, data_ns=delay, seed=3)
    first, again, other = Recorder(), Recorder(), Recorder()
    backtest.run(path, first, latency=latency)
    backtest.run(path, again, latency=latency)
    backtest.run(path, other, latency=backtest.Latency(order_ns=delay, data_ns=delay, seed=4))
    assert first.heard == again.heard != other.heard
    data = [(at, what.time_ns) for at, what in first.heard if isinstance(what, (backtest.Trade, backtest.Best))]
    assert data == sorted(data) and len({at - made for at, made in data}) > 2
    with pytest.raises(ValueError, match="give 0 or more"):
        backtest.run(path, Recorder(), latency=backtest.Latency(order_ns=-1))


def drawn_day(count: int, seed: int) -> list[tuple[int, int, int, int, int, int]]:
    """A day that could have been: executions hit the first order of the best price."""
    draw = random.Random(seed)
    queues: dict[int, dict[int, list[list[int]]]] = {1: {}, -1: {}}
    rows: list[tuple[int, int, int, int, int, int]] = []
    for number in range(1, count + 1):
        side = draw.choice([1, -1])
        levels, others = queues[side], queues[-side]
        best: Callable[[dict[int, Any], int], int] = lambda of, at: (max if at == 1 else min)(of)
        if levels and draw.random() < 0.4:
            cents = best(levels, side)
            order = levels[cents][0]
            kind = draw.choice([EXECUTE, EXECUTE, DELETE])
            size = order[1] if kind == DELETE else draw.randint(1, order[1])
            rows.append((number, kind, order[0], size, cents, side))
            order[1] -= size
            if order[1] == 0:
                levels[cents].pop(0)
                if not levels[cents]:
                    del levels[cents]
        else:
            cents = 10_000 - side * draw.randint(1, 8)
            if others:
                far = best(others, -side)
                cents = min(cents, far - 1) if side == 1 else max(cents, far + 1)
            size = draw.randint(1, 100)
            rows.append((number, ADD, number, size, cents, side))
            levels.setdefault(cents, []).append([number, size])
    return rows


class Maker(backtest.Strategy):
    """Quotes a tick behind the best prices, and moves with them."""

    lots = 20

    def on_book(self, best: backtest.Best) -> None:
        for order in list(self.orders.values()):
            wanted = best.bid if order.side == 0 else best.ask
            if order.is_confirmed and wanted and abs((order.ticks or 0) - wanted) > 1:
                self.cancel(order.name)
        sides = [order.side for order in self.orders.values()]
        if best.bid and 0 not in sides and self.position_lots < 300:
            self.submit("buy", self.lots, best.bid, post_only="reject")
        if best.ask and 1 not in sides and self.position_lots > -300:
            self.submit("sell", self.lots, best.ask, post_only="reject")


class SizedMaker(Maker):
    """The same, of a size that a study varies."""

    def __init__(self, lots: int) -> None:
        self.lots = lots


def test_a_study_is_the_same_wherever_it_is_made(tmp_path: pathlib.Path) -> None:
    days = []
    for seed in (3, 4):
        folder = tmp_path / str(seed)
        folder.mkdir()
        days.append(lobster(folder, drawn_day(400, seed)))
    sizes = [{"lots": 10}, {"lots": 40}]
    far = backtest.Latency(order_ns=backtest.lognormal(2 * MILLISECOND), data_ns=[MILLISECOND, 3 * MILLISECOND])
    latency = {"near": backtest.Latency(), "far": far}
    here = backtest.study(SizedMaker, iter(days), iter(sizes), latency=latency, maker_fee_ppm=-50, taker_fee_ppm=100)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        there = backtest.study(SizedMaker, days, sizes, latency=latency, maker_fee_ppm=-50, taker_fee_ppm=100, map=pool.map)
    with ThreadPoolExecutor(2) as threads:
        threaded = backtest.study(SizedMaker, days, sizes, latency=latency, maker_fee_ppm=-50, taker_fee_ppm=100, map=threads.map)
    assert here == there == threaded
    alone = []
    for size in sizes:
        for name, way in latency.items():
            for day in days:
                result = backtest.run(day, SizedMaker(**size), latency=way, maker_fee_ppm=-50, taker_fee_ppm=100)
                alone.append((str(day), name, size["lots"], result.profit_units, len(result.fills), result.state_hash.hex()))
    columns = ("day", "latency", "lots", "profit_units", "fills", "state_hash")
    assert [tuple(row[column] for column in columns) for row in here] == alone
    assert len({row["state_hash"] for row in here}) == 8 and all(row["sent"] > 0 and row["tick_size"] == "0.01" for row in here)


def test_a_study_of_one_latency_and_wrong_ones(tmp_path: pathlib.Path) -> None:
    day = lobster(tmp_path, DAY)
    rows = backtest.study(JoinsBid, [day], [{"at_ms": 5}, {"at_ms": 15}])
    assert [(row["at_ms"], row["fills"], row["traded_lots"]) for row in rows] == [(5, 1, 100), (15, 0, 0)]
    assert "latency" not in rows[0] and backtest.study(JoinsBid, [day])[0]["state_hash"] == rows[0]["state_hash"]
    assert backtest.study(JoinsBid, []) == backtest.study(JoinsBid, [day], []) == []
    with pytest.raises(TypeError, match="give a list of days"):
        backtest.study(JoinsBid, str(day))
    with pytest.raises(ValueError, match="column 'sent' already"):
        backtest.study(JoinsBid, [day], [{"sent": 1}])
    with pytest.raises(TypeError, match="lots"):
        backtest.study(JoinsBid, [day], [{"lots": 1}])


def test_a_market_maker_on_a_drawn_day(tmp_path: pathlib.Path) -> None:
    path = lobster(tmp_path, drawn_day(3_000, 2))
    first = backtest.run(path, Maker(), latency=backtest.Latency(order_ns=100_000, data_ns=100_000), maker_fee_ppm=-50, taker_fee_ppm=100)
    again = backtest.run(path, Maker(), latency=backtest.Latency(order_ns=100_000, data_ns=100_000), maker_fee_ppm=-50, taker_fee_ppm=100)
    assert first.state_hash == again.state_hash and first.fills == again.fills
    assert len(first.fills) > 50 and first.maker_share == 1.0 and first.fees_units < 0
    bought = sum(fill.lots for fill in first.fills if fill.side == 0)
    assert first.position_lots == bought - sum(fill.lots for fill in first.fills if fill.side == 1)
    money = sum((-1 if fill.side == 0 else 1) * fill.lots * fill.ticks - fill.fee_units for fill in first.fills)
    assert first.cash_units == money
    other = backtest.run(path, Maker(), keep_queues=False)
    assert other.state_hash != first.state_hash


def itch(folder: pathlib.Path) -> pathlib.Path:
    """The day's first messages as ITCH 5.0 has them."""

    def message(kind: bytes, at_ms: int, rest: bytes) -> bytes:
        at = (FIRST_NS + at_ms * MILLISECOND).to_bytes(6, "big")
        body = kind + struct.pack(">HH", 7, 0) + at + rest
        return struct.pack(">H", len(body)) + body

    stock = b"TEST    "

    def add(at_ms: int, order: int, side: bytes, size: int, cents: int) -> bytes:
        return message(b"A", at_ms, struct.pack(">QcI8sI", order, side, size, stock, cents * 100))

    parts = [
        message(b"S", -1_000, b"O"),
        add(0, 1, b"B", 100, 9_990),
        add(1, 2, b"B", 200, 9_990),
        add(2, 3, b"S", 50, 10_010),
        message(b"E", 20, struct.pack(">QIQ", 1, 100, 1)),
        message(b"X", 30, struct.pack(">QI", 2, 100)),
        message(b"E", 40, struct.pack(">QIQ", 2, 100, 2)),
        message(b"D", 60, struct.pack(">Q", 3)),
    ]
    path = folder / "day.itch"
    path.write_bytes(b"".join(parts))
    return path


def test_itch(tmp_path: pathlib.Path) -> None:
    strategy = Recorder()
    result = backtest.run(itch(tmp_path), strategy)
    trades = [(trade.time_ns - FIRST_NS, trade.ticks, trade.lots, trade.side) for trade in strategy.of(backtest.Trade)]
    assert [trade[1:] for trade in trades] == [(9_990, 100, 1), (9_990, 100, 1)]
    assert trades[1][0] - trades[0][0] == 20 * MILLISECOND and result.played_refused == 0
    aggressive = JoinsAsk()
    taken = backtest.run(itch(tmp_path), aggressive, taker_fee_ppm=1_000)
    (fill,) = taken.fills
    assert (fill.ticks, fill.lots, fill.is_maker, fill.fee_units) == (10_010, 50, False, 500)
    # Order 3 is gone when the record deletes it.
    assert taken.played_refused == 1


class JoinsAsk(Recorder):
    """Takes the first ask that it sees."""

    def on_book(self, best: backtest.Best) -> None:
        if best.ask and not self.position_lots and not self.orders:
            self.submit("buy", 60, best.ask, tif="ioc")


def test_what_is_no_record_says_so(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "day.csv"
    path.write_text("time,price\n1,2\n")
    with pytest.raises(ValueError, match="not a known format"):
        backtest.run(path, Recorder())
    with pytest.raises(ValueError, match="format: .nasdaq. is none: give one of"):
        backtest.run(path, Recorder(), format="nasdaq")
    with pytest.raises(ValueError, match="absent.csv"):
        backtest.run(tmp_path / "absent.csv", Recorder())
    path = lobster(tmp_path, DAY)
    with pytest.raises(ValueError, match="SpecInvalid"):
        backtest.run(path, Recorder(), maker_fee_ppm=-10)
    path.write_text(path.read_text() + "34200.9,1,oops\n")
    with pytest.raises(ValueError, match="line 10|row 10|10"):
        backtest.run(path, Recorder())


def test_queues_of_any_venue() -> None:
    venue = walras.Venue()
    with pytest.raises(ValueError, match="queues are not kept"):
        venue.queue_ahead(0, 0, 1)
    venue.watch_queues()
    venue.create_asset("BTC", 8)
    venue.create_asset("USD", 4)
    venue.create_instrument("BTC/USD", "BTC", "USD", tick_size="0.5", lot_size="0.01", reference_price=30_000)
    for _ in range(3):
        venue.create_account(BTC=10**6, USD=10**9)
    for account, name, lots in ((0, 1, 50), (1, 2, 30), (2, 3, 20)):
        venue.submit_lots(account, 0, "sell", lots, 60_000, name, peak_lots=10 if account == 1 else None)
    assert [venue.queue_ahead(account, 0, account + 1) for account in range(3)] == [(0, 0), (50, 1), (60, 2)]
    venue.submit_lots(2, 0, "buy", 55, 60_000, 9, self_trade="cancel_oldest")
    # The first is gone, and half of the slice.
    assert [venue.queue_ahead(account, 0, account + 1) for account in range(3)] == [None, (0, 0), (5, 1)]
    venue.submit_lots(0, 0, "buy", 5, 60_000, 10)
    # The next slice went to the back.
    assert [venue.queue_ahead(account, 0, account + 1) for account in range(3)] == [None, (20, 1), (0, 0)]
    venue.amend_lots(2, 0, 3, size_lots=25)
    assert venue.queue_ahead(2, 0, 3) == (10, 1)


ARCHIVE = pathlib.Path(__file__).parents[3] / "edge" / "archive" / "tests" / "golden" / "2026-11-20"
COMPRESSED = ARCHIVE.parents[1] / "golden-zstd" / ARCHIVE.name


def test_a_day_of_a_venues_archive(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("polars", reason="reads Parquet with polars, which is not installed")
    # An archive that keeps no orders.
    day = tmp_path / ARCHIVE.name
    shutil.copytree(ARCHIVE, day, ignore=shutil.ignore_patterns("*.mbo.dbn", "orders.journal"))
    strategy = Recorder()
    result = backtest.run(day, strategy, instrument="BTC-USD")
    assert [trade.ticks for trade in strategy.of(backtest.Trade)] == [60_002, 59_999, 60_002, 60_003]
    assert (result.tick_size, result.lot_size, result.played_refused) == ("0.5", "0.001", 0)
    assert backtest.run(day, Recorder()).state_hash == result.state_hash
    with pytest.raises(ValueError, match="is none of this day: give one of BTC-USD"):
        backtest.run(day, Recorder(), instrument="ETH-USD")


class StandsBehindAsk(backtest.Strategy):
    """Stands behind the first ask."""

    def __init__(self) -> None:
        self.ahead: list[tuple[int, int] | None] = []
        self.name: int | None = None

    def on_book(self, best: backtest.Best) -> None:
        if self.name is None and best.ask:
            self.name = self.submit("sell", 1, best.ask)
        elif self.name is not None:
            self.ahead.append(self.queue_ahead(self.name))


@pytest.mark.parametrize("day", [ARCHIVE, COMPRESSED], ids=["plain", "zstd"])
def test_a_day_of_a_venues_archive_with_its_orders(day: pathlib.Path) -> None:
    strategy = Recorder()
    result = backtest.run(day, strategy)
    trades = [trade[1:] for trade in strategy.of(backtest.Trade)]
    assert trades == [(60_002, 2, 0), (59_999, 1, 1), (60_002, 3, 0), (60_003, 3, 0)]
    # Three orders and four takers: what the trades leave of an order is no command of the record.
    assert (result.tick_size, result.lot_size, result.played, result.played_refused) == ("0.5", "0.001", 7, 0)
    assert strategy.of(backtest.Best)[-1][1:] == (59_999, 3, 60_003, 4)
    # Behind the five lots at the best ask: two of them are bought, then three, and then it is the next.
    joins = StandsBehindAsk()
    joined = backtest.run(day, joins)
    places = [place for place in joins.ahead if place is not None]
    assert (places[0], places[-1]) == ((5, 1), (3, 1))
    assert [(fill.ticks, fill.lots, fill.is_maker) for fill in joined.fills] == [(60_002, 1, True)]


def dbn_bytes(records: list[tuple[int, int, int, int, bytes, bytes]], **more: Any) -> bytes:
    """Records of milliseconds, order, cents, size, action and side, as Databento's own package writes them."""
    settings: dict[str, Any] = {"start": FIRST_NS, "stype_in": None, "stype_out": dbn.SType.INSTRUMENT_ID, "schema": dbn.Schema.MBO, **more}
    parts = [dbn.Metadata("TEST.ITCH", **settings).encode()]
    for at, order, cents, size, action, side in records:
        at_ns = FIRST_NS + at * MILLISECOND
        fields: dict[str, Any] = {"publisher_id": 1, "instrument_id": 42, "ts_event": at_ns, "ts_recv": at_ns + 1, "sequence": len(parts)}
        fields |= {"order_id": order, "price": cents * 10**7, "size": size}
        fields |= {"action": dbn.Action(action.decode()), "side": dbn.Side(side.decode())}
        if more.get("ts_out"):
            fields["ts_out"] = at_ns + 5
        parts.append(bytes(dbn.MBOMsg(**fields)))
    return b"".join(parts)


def dbn_file(folder: pathlib.Path, records: list[tuple[int, int, int, int, bytes, bytes]]) -> pathlib.Path:
    path = folder / "day.dbn"
    path.write_bytes(dbn_bytes(records))
    return path


#: As a venue that says what a trade has left of an order, and then an auction: nobody takes, and both orders lose by it.
MODIFIED = [
    (0, 1, 9_990, 100, b"A", b"B"),
    (1, 2, 10_010, 80, b"A", b"A"),
    (20, 0, 9_990, 30, b"T", b"A"),
    (20, 1, 9_990, 30, b"F", b"B"),
    (20, 1, 9_990, 70, b"M", b"B"),
    (30, 0, 10_000, 50, b"T", b"N"),
    (30, 1, 10_000, 50, b"F", b"B"),
    (30, 1, 9_990, 20, b"M", b"B"),
    (30, 2, 10_000, 50, b"F", b"A"),
    (30, 2, 10_010, 30, b"M", b"A"),
    (40, 2, 10_010, 30, b"C", b"A"),
    (40, 2, 10_010, 60, b"A", b"A"),
]


def test_what_a_trade_leaves_is_no_command_and_what_an_auction_leaves_is(tmp_path: pathlib.Path) -> None:
    strategy = Recorder()
    result = backtest.run(dbn_file(tmp_path, MODIFIED), strategy, tick="0.01")
    assert [trade[1:] for trade in strategy.of(backtest.Trade)] == [(9_990, 30, 1)]
    assert strategy.of(backtest.Best)[-1][1:] == (9_990, 20, 10_010, 60)
    # Two orders, one that takes, two amendments after the auction, a cancel, and an order of the same number.
    assert (result.played, result.played_refused) == (7, 0)


MBO = [
    (0, 1, 9_990, 100, b"A", b"B"),
    (1, 2, 9_990, 200, b"A", b"B"),
    (2, 3, 10_010, 50, b"A", b"A"),
    (10, 4, 9_990, 300, b"A", b"B"),
    # 150 are sold: all of order 1 and 50 of order 2, which the record takes out afterwards.
    (20, 0, 9_990, 150, b"T", b"A"),
    (20, 1, 9_990, 100, b"F", b"B"),
    (20, 2, 9_990, 50, b"F", b"B"),
    (20, 1, 9_990, 100, b"C", b"B"),
    (20, 2, 9_990, 50, b"C", b"B"),
    (30, 2, 9_990, 50, b"C", b"B"),
    (35, 3, 10_020, 40, b"M", b"A"),
    (50, 0, 9_990, 350, b"T", b"A"),
]


def test_dbn(tmp_path: pathlib.Path) -> None:
    strategy = Recorder()
    result = backtest.run(dbn_file(tmp_path, MBO), strategy, tick="0.01")
    assert [trade[1:] for trade in strategy.of(backtest.Trade)] == [
        (9_990, 100, 1),
        (9_990, 50, 1),
        (9_990, 100, 1),
        (9_990, 250, 1),
    ]
    assert strategy.of(backtest.Best)[-1][1:] == (9_990, 50, 10_020, 40) and result.played_refused == 0
    (fill,) = backtest.run(dbn_file(tmp_path, MBO), JoinsBid(), tick="0.01").fills
    assert (fill.time_ns - FIRST_NS, fill.ticks, fill.lots, fill.is_maker) == (50 * MILLISECOND, 9_990, 100, True)
    path = dbn_file(tmp_path, MBO)
    with pytest.raises(ValueError, match="give tick="):
        backtest.run(path, Recorder())
    with pytest.raises(ValueError, match="is no multiple of 0.03"):
        backtest.run(path, Recorder(), tick="0.03")
    with pytest.raises(ValueError, match="instrument '7' is none of this file"):
        backtest.run(path, Recorder(), tick="0.01", instrument="7")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="cut off"):
        backtest.run(path, Recorder(), tick="0.01")
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="no file of DBN"):
        backtest.run(path, Recorder(), tick="0.01")


@pytest.mark.parametrize("more", [{"version": 1}, {"version": 2}, {"version": 3}, {"ts_out": True}, {"symbols": ["TEST"], "end": 2**62}])
def test_dbn_of_each_version(tmp_path: pathlib.Path, more: dict[str, Any]) -> None:
    path = tmp_path / "day.dbn"
    path.write_bytes(dbn_bytes(MBO, **more))
    day = _days.dbn(path, None, "0.01")
    assert (day.rows == _days.dbn(dbn_file(tmp_path, MBO), "42", "0.01").rows).all() and len(day.rows) == 8


def zstd_file(folder: pathlib.Path, data: bytes) -> pathlib.Path:
    path = folder / "day.dbn.zst"
    path.write_bytes(data)
    return path


def test_dbn_that_is_compressed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, rows = dbn_bytes(MBO), _days.dbn(dbn_file(tmp_path, MBO), None, "0.01").rows
    whole, several = zstandard.compress(data), zstandard.compress(data[:250]) + zstandard.compress(data[250:])
    for compressed in (whole, several):
        assert (_days.dbn(zstd_file(tmp_path, compressed), None, "0.01").rows == rows).all()
    for wrong in (whole[:-5], several[:-5], whole + b"more", whole[:10] + bytes(30)):
        with pytest.raises(ValueError, match="cut off, or damaged where it is compressed"):
            _days.dbn(zstd_file(tmp_path, wrong), None, "0.01")
    # From 3.14 on Python has it; before, one package does.
    path = zstd_file(tmp_path, whole)
    for name in ("compression.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="pip install zstandard"):
        backtest.run(path, JoinsBid(), tick="0.01")
    library: Any = types.ModuleType("compression.zstd")
    library.decompress, library.ZstdError = zstandard.decompress, zstandard.ZstdError
    monkeypatch.setitem(sys.modules, "compression", types.ModuleType("compression"))
    monkeypatch.setitem(sys.modules, "compression.zstd", library)
    assert (_days.dbn(path, None, "0.01").rows == rows).all()
    result, plain = (backtest.run(each, JoinsBid(), tick="0.01") for each in (path, dbn_file(tmp_path, MBO)))
    assert (result.state_hash, result.fills) == (plain.state_hash, plain.fills) and len(plain.fills) == 1


def test_dbn_as_databentos_client_has_it(tmp_path: pathlib.Path) -> None:
    import databento

    store = databento.DBNStore.from_bytes(dbn_bytes(MBO, symbols=["TEST"]))
    path = tmp_path / "day.dbn.zst"
    store.to_file(path, compression="zstd")
    day = _days.dbn(path, None, "0.01")
    records = databento.DBNStore.from_file(path).to_ndarray()
    assert len(records) == len(MBO)
    # Orders as they came: the client's view of the file and ours.
    added, rows = records[records["action"] == b"A"], day.rows[(day.rows["kind"] == 0) & (day.rows["account"] == 0)]
    assert (added["order_id"] == rows["client_order_id"]).all() and (added["size"] == rows["size"]).all()
    assert (added["price"] == rows["price"].astype(np.int64) * 10**7).all() and (added["ts_event"] == rows["time_ns"]).all()
    assert ((added["side"] == b"A") == (rows["side"] == 1)).all() and day.first_ticks == 9_990


def recorded_day() -> pathlib.Path | None:
    """A file of LOBSTER's, from WALRAS_DATA or from where the other tests look."""
    repository = pathlib.Path(__file__).parents[3]
    named = os.environ.get("WALRAS_DATA")
    folders = [pathlib.Path(named)] if named else [repository.parent / "shared" / "data", repository.parent.parent / "shared" / "data"]
    for folder in folders:
        for path in sorted(folder.glob("lobster/*_message_*.csv")):
            return path
    return None


def test_a_recorded_hour() -> None:
    path = recorded_day()
    if path is None:
        pytest.skip("no LOBSTER file is in WALRAS_DATA or beside the repository")
    alone = backtest.run(path, Recorder(), keep_queues=False)
    assert alone.played > 10_000 and alone.played_refused < 0.01 * alone.played
    made = backtest.run(path, Maker(), latency=backtest.Latency(order_ns=200_000, data_ns=200_000))
    assert len(made.fills) > 100 and abs(made.position_lots) <= 340 and made.maker_share == 1.0
