"""Back-tests on recorded days: a strategy's orders meet the recorded flow in the real engine.

A day is a file that ``walras replay`` reads: LOBSTER messages, NASDAQ ITCH 5.0, Bitstamp's and Shanghai's logs, plain or
compressed; or a file of DBN with the schema ``mbo`` (``.dbn``, ``.dbn.zst``); or a day's folder of a venue's archive: with its
orders, or as near as pictures of books and trades come to them. Every order of the record enters the engine's book at its time;
the strategy's orders enter among them, wait in the same queues, and trade by the same rules. What the strategy takes is gone: an
order of the record that comes for it later finds less, and may rest instead. Nobody of the record reacts to the strategy, as in
every back-test.

>>> from walras import backtest
>>> class Joiner(backtest.Strategy):
...     def on_book(self, best):
...         if not self.orders and best.bid:
...             self.submit("buy", 100, best.bid)          # lots, ticks
...     def on_fill(self, fill):
...         print(fill.lots, "at", fill.ticks)
>>> result = backtest.run("AAPL_message_50.csv", Joiner(), latency=backtest.Latency(order_ns=50_000))      # doctest: +SKIP

:func:`study` makes many runs: a strategy with several parameters on several days. ``map=`` spreads them over processes or machines.
"""

from __future__ import annotations

import functools
import heapq
import math
import numbers
import os
import pathlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Union

from walras import _native
from walras._venue import Venue

__all__ = [
    "Answer",
    "Best",
    "Fill",
    "Latency",
    "Order",
    "Result",
    "Strategy",
    "Trade",
    "lognormal",
    "normal",
    "run",
    "study",
]

_NEVER = 2**64 - 1
_RICHES = 2**60

#: Nanoseconds: always as many; drawn from these with equal chances; or as a function of a generator says.
Delay = Union[int, Sequence[int], Callable[[random.Random], float]]


def normal(mean_ns: float, deviation_ns: float) -> Callable[[random.Random], float]:
    """Delays of a normal distribution; never below 0."""
    return functools.partial(_normal, mean_ns, deviation_ns)


def lognormal(median_ns: float, sigma: float = 0.5) -> Callable[[random.Random], float]:
    """Delays of a log-normal distribution, whose tail is heavy."""
    return functools.partial(_lognormal, median_ns, sigma)


# Functions of the module, so that a latency can be pickled.
def _normal(mean_ns: float, deviation_ns: float, draw: random.Random) -> float:
    return draw.gauss(mean_ns, deviation_ns)


def _lognormal(median_ns: float, sigma: float, draw: random.Random) -> float:
    return median_ns * math.exp(draw.gauss(0, sigma))


@dataclass(frozen=True)
class Latency:
    """How long things take. Messages of one way keep their order: one that is sent later does not arrive earlier."""

    #: From the strategy to the venue.
    order_ns: Delay = 0
    #: Market data, from the venue to the strategy.
    data_ns: Delay = 0
    #: Answers and fills, from the venue to the strategy; ``None``: as market data.
    answer_ns: Delay | None = None
    seed: int = 0


class Best(NamedTuple):
    """The best prices, in ticks, and what they show, in lots; 0 where there is none. The strategy's own orders are among them."""

    time_ns: int
    bid: int
    bid_lots: int
    ask: int
    ask_lots: int


class Trade(NamedTuple):
    """A trade, as all see it. ``side`` is the taker's: 0 bought, 1 sold."""

    time_ns: int
    ticks: int
    lots: int
    side: int


class Fill(NamedTuple):
    """A trade of the strategy's order. ``fee_units`` are of the quote; ``open_lots`` is what is left of the order."""

    time_ns: int
    name: int
    side: int
    ticks: int
    lots: int
    open_lots: int
    fee_units: int
    is_maker: bool


class Answer(NamedTuple):
    """What came of an order, a cancel or an amendment: ``code`` is 0, or the number of the refusal. ``what`` is ``cancelled`` where the
    venue cancelled an order by itself: it expired, met another one of the strategy, or was linked to one that traded."""

    time_ns: int
    name: int
    what: str
    code: int
    open_lots: int


@dataclass
class Order:
    """An order as the strategy knows it: by what it heard so far."""

    name: int
    side: int
    ticks: int | None
    open_lots: int
    #: Whether the venue has answered.
    is_confirmed: bool = False


class Strategy:
    """Derive from it, and write what it does. All callbacks come when the news of it has arrived; what they send arrives later again."""

    #: Whether :meth:`on_book` is called; without it a run is faster.
    watches_book = True
    #: Its open orders by name, as far as it heard.
    orders: dict[int, Order]
    #: Bought less sold, as far as it heard.
    position_lots: int
    _run: _Run

    def on_start(self) -> None:
        """Before the first message of the record."""

    def on_trade(self, trade: Trade) -> None:
        """A trade, its own ones too."""

    def on_book(self, best: Best) -> None:
        """The best prices changed, or what they show."""

    def on_fill(self, fill: Fill) -> None:
        """One of its orders traded."""

    def on_answer(self, answer: Answer) -> None:
        """What it sent was taken or refused, or the venue cancelled an order by itself."""

    def on_timer(self) -> None:
        """The time that :meth:`wake_at` named."""

    def on_end(self) -> None:
        """After the last message."""

    @property
    def now_ns(self) -> int:
        """The time; of a recorded day mostly since its midnight."""
        return self._run.now_ns

    @property
    def best(self) -> Best:
        """The best prices as it last heard of them."""
        return self._run.heard

    def submit(self, side: str | int, lots: int, ticks: int | None = None, **terms: Any) -> int:
        """Sends an order, a market order without ``ticks``; its name. ``terms`` are those of ``Venue.submit_lots``."""
        return self._run.submit(side, lots, ticks, terms)

    def cancel(self, name: int) -> None:
        """Sends a cancel."""
        self._run.send(("cancel", name, {}))

    def amend(self, name: int, **changes: int) -> None:
        """Sends an amendment: ``price_ticks``, ``size_lots``."""
        self._run.send(("amend", name, changes))

    def wake_at(self, time_ns: int) -> None:
        """Calls :meth:`on_timer` at that time."""
        self._run.push(max(time_ns, self.now_ns), 2, None)

    def queue_ahead(self, name: int) -> tuple[int, int] | None:
        """Lots and orders that stand before its order at the venue now, as no participant could know it; ``None`` where it is gone
        or shows nothing."""
        return self._run.venue.queue_ahead(self._run.account, 0, name)


@dataclass
class Result:
    """What a back-test came to."""

    fills: list[Fill] = field(default_factory=list)
    #: Orders, cancels and amendments that it sent, and those that the venue refused.
    sent: int = 0
    refused: int = 0
    position_lots: int = 0
    #: Money less what the day began with, in units of the quote; fees are in it. A tick of a lot is one unit.
    cash_units: int = 0
    #: With the position at the middle of the last best prices.
    profit_units: float = 0.0
    fees_units: int = 0
    #: Commands of the record, and those that the venue refused: cancels of what the strategy took, or of what the record itself lost.
    played: int = 0
    played_refused: int = 0
    #: The price of a tick, the size of a lot, and what they are counted in.
    tick_size: str = ""
    lot_size: str = ""
    state_hash: bytes = b""

    @property
    def traded_lots(self) -> int:
        """Lots that the strategy traded."""
        return sum(fill.lots for fill in self.fills)

    @property
    def maker_share(self) -> float:
        """The share of its lots that traded while they stood in the book."""
        return sum(fill.lots for fill in self.fills if fill.is_maker) / self.traded_lots if self.fills else 0.0


class _Way:
    """A path on which messages keep their order."""

    def __init__(self, delay: Delay, draw: random.Random) -> None:
        if isinstance(delay, (int, numbers.Real)):
            # A number of numpy's, too.
            delay = int(delay)
            if delay < 0:
                raise ValueError(f"a delay of {delay} ns: give 0 or more")
        elif not callable(delay) and len(delay) == 0:
            raise ValueError("there is no delay to draw: give one at least")
        self.delay, self.draw, self.last = delay, draw, 0

    def arrives(self, at: int) -> int:
        delay = self.delay
        if callable(delay):
            taken = max(int(delay(self.draw)), 0)
        elif isinstance(delay, int):
            taken = delay
        else:
            taken = max(int(delay[self.draw.randrange(len(delay))]), 0)
        self.last = max(self.last, at + taken)
        return self.last


class _Run:
    def __init__(
        self,
        history: _native.History,
        strategy: Strategy,
        latency: Latency,
        keep_queues: bool,
        prepare: Callable[[Venue], tuple[str, str]] | None = None,
    ) -> None:
        self.history, self.strategy, self.result = history, strategy, Result()
        self.venue = Venue()
        if keep_queues:
            self.venue.watch_queues()
        units = None if prepare is None else prepare(self.venue)
        history.begin(self.venue)
        view = self.venue.instrument(0)
        self.result.tick_size, self.result.lot_size = units or (str(view.tick_size), str(view.lot_size))
        self.now_ns = self.venue.time_ns
        self.account, outcome = self.venue._create_account(None)
        for asset in range(2):
            deposited = self.venue._transfer(True, self.account, asset, _RICHES, None)
            assert deposited.accepted, deposited
        draw = random.Random(latency.seed)
        answer = latency.data_ns if latency.answer_ns is None else latency.answer_ns
        self.orders_way, self.data_way, self.answer_way = (_Way(delay, draw) for delay in (latency.order_ns, latency.data_ns, answer))
        self.heard = Best(self.now_ns, 0, 0, 0, 0)
        self.best = (0, 0, 0, 0)
        self.queue: list[tuple[int, int, int, Any]] = []
        self.count = self.names = 0
        strategy._run, strategy.orders, strategy.position_lots = self, {}, 0

    def push(self, at: int, rank: int, what: Any) -> None:
        self.count += 1
        heapq.heappush(self.queue, (at, rank, self.count, what))

    def submit(self, side: str | int, lots: int, ticks: int | None, terms: dict[str, Any]) -> int:
        number = {"buy": 0, "sell": 1}.get(side, side) if isinstance(side, str) else side
        if number not in (0, 1):
            raise ValueError(f"side: {side!r} is none: give 'buy' or 'sell'")
        self.names += 1
        self.strategy.orders[self.names] = Order(self.names, number, ticks, lots)
        self.send(("order", self.names, {"side": number, "size_lots": lots, "price_ticks": ticks, **terms}))
        return self.names

    def send(self, what: tuple[str, int, dict[str, Any]]) -> None:
        self.result.sent += 1
        self.push(self.orders_way.arrives(self.now_ns), 0, what)

    def play(self) -> Result:
        history, strategy = self.history, self.strategy
        strategy.on_start()
        while True:
            next_own = self.queue[0][0] if self.queue else _NEVER
            if history.next_ns is not None and history.next_ns <= next_own:
                # What the record did at a time comes before what arrives at it.
                found = history.advance(self.venue, next_own, self.account, strategy.watches_book)
                if found is not None:
                    self._publish(*found)
            elif self.queue and (history.next_ns is not None or any(rank < 2 for _, rank, _, _ in self.queue)):
                at, rank, _, what = heapq.heappop(self.queue)
                self.now_ns = at
                if rank == 0:
                    self._arrive(at, *what)
                elif rank == 1:
                    self._hear(what)
                else:
                    strategy.on_timer()
            else:
                break
        strategy.on_end()
        return self._ended()

    def _publish(self, at: int, tape: list[Any], fills: list[Any], gone: list[Any], best: Any) -> None:
        """What happened at the venue goes out to the strategy."""
        if tape or best is not None:
            arrives = self.data_way.arrives(at)
            for ticks, lots, side, _ in tape:
                self.push(arrives, 1, Trade(at, ticks, lots, side))
            if best is not None:
                self.best = best
                self.push(arrives, 1, Best(at, *best))
        for ticks, lots, side, name, open_lots, fee, is_maker in fills:
            fill = Fill(at, name, side, ticks, lots, open_lots, fee, is_maker)
            self.result.fills.append(fill)
            self.push(self.answer_way.arrives(at), 1, fill)
        for name in gone:
            self.push(self.answer_way.arrives(at), 1, Answer(at, name, "cancelled", 0, 0))

    def _arrive(self, at: int, what: str, name: int, terms: dict[str, Any]) -> None:
        """An order of the strategy is at the venue."""
        at = max(at, self.venue.time_ns)
        if what == "order":
            given = dict(terms)
            side, size, price = given.pop("side"), given.pop("size_lots"), given.pop("price_ticks")
            outcome = self.venue.submit_lots(self.account, 0, side, size, price, name, time_ns=at, **given)
        elif what == "cancel":
            outcome = self.venue.cancel_id(self.account, 0, name, time_ns=at)
        else:
            outcome = self.venue.amend_lots(self.account, 0, name, time_ns=at, **terms)
        self.result.refused += outcome.code > 0
        self.push(self.answer_way.arrives(at), 1, Answer(at, name, what, outcome.code, outcome.open_lots))
        tape, fills = [], []
        for trade in outcome.trades if outcome.trade_count else ():
            side = 0 if trade.taker_side == "buy" else 1
            tape.append((trade.price_ticks, trade.size_lots, side, trade.trade_id))
            if trade.taker_account == self.account:
                row = (trade.taker_client_order_id, trade.taker_open_lots, trade.taker_fee_units, False)
                fills.append((trade.price_ticks, trade.size_lots, side, *row))
            if trade.maker_account == self.account:
                row = (trade.maker_client_order_id, trade.maker_open_lots, trade.maker_fee_units, True)
                fills.append((trade.price_ticks, trade.size_lots, 1 - side, *row))
        best = self.venue.best_lots(0) if self.strategy.watches_book else self.best
        cancelled = (event for event in outcome.events if event.kind == "cancelled" and event.account == self.account)
        # Of the command's own order the answer says it.
        gone = [event.client_order_id for event in cancelled if event.client_order_id != name]
        self._publish(at, tape, fills, gone, best if best != self.best else None)

    def _hear(self, what: Any) -> None:
        strategy = self.strategy
        if isinstance(what, Best):
            self.heard = what
            strategy.on_book(what)
        elif isinstance(what, Trade):
            strategy.on_trade(what)
        elif isinstance(what, Fill):
            strategy.position_lots += what.lots if what.side == 0 else -what.lots
            order = strategy.orders.get(what.name)
            if order is not None:
                order.open_lots = what.open_lots
                if what.open_lots == 0 and order.is_confirmed:
                    del strategy.orders[what.name]
            strategy.on_fill(what)
        else:
            order = strategy.orders.get(what.name)
            if order is not None:
                # Of an amendment or a cancel that was refused, the order stands as it did, unless it is unknown.
                if what.code == 0 or what.what == "order" or what.code == 4:
                    order.is_confirmed = True
                    order.open_lots = what.open_lots if what.code == 0 and what.what != "cancel" else 0
                    if order.open_lots == 0:
                        del strategy.orders[what.name]
            strategy.on_answer(what)

    def _ended(self) -> Result:
        result, venue = self.result, self.venue
        result.played, result.played_refused = self.history.counts
        result.position_lots = venue.position_lots(self.account, 0)[0]
        result.cash_units = sum(venue.balance_units(self.account, 1)) - _RICHES
        result.fees_units = sum(fill.fee_units for fill in result.fills)
        bid, _, ask, _ = venue.best_lots(0)
        middle = (bid + ask) / 2 if bid and ask else float(bid or ask or (venue._instrument(0)[7] or 0))
        result.profit_units = result.cash_units + result.position_lots * middle
        result.state_hash = venue.state_hash()
        return result


def run(
    path: str | os.PathLike[str],
    strategy: Strategy,
    *,
    latency: Latency | None = None,
    format: str | None = None,
    instrument: str | None = None,
    tick: str | None = None,
    accounts: int = 16,
    maker_fee_ppm: int = 0,
    taker_fee_ppm: int = 0,
    keep_queues: bool = True,
) -> Result:
    """Plays a recorded day with a strategy in it.

    ``format`` is a name of ``walras replay --format`` (``None``: recognised); ``instrument`` one of a file that has several, by
    symbol or number; ``tick`` the price of a tick. The record's orders belong to ``accounts`` of a pool. ``keep_queues=False`` is
    faster, and ``Strategy.queue_ahead`` raises then. A file that is no record is a ``ValueError`` that says what is wrong where.

    Of a day's folder of a venue's archive (docs/history.md), ``instrument`` is the symbol. Where the archive keeps orders
    (``archive.orders`` and ``archive.dbn``), each displayed order comes as it did. Otherwise (needs polars or pyarrow) a few stand for
    each level of the last picture of the book, and each trade comes as one that takes. A ``.dbn`` or ``.dbn.zst`` file with the schema
    ``mbo`` has the orders too; ``tick`` is needed (``instrument``: its number, where there are several), and lots are its sizes. Before
    Python 3.14, what zstd has compressed needs the package zstandard (``pip install walras[dbn]``).

    Without orders of the strategy, the venue trades what the record says (``docs/replay.md`` says how closely); with the same seed
    and strategy the same happens again.
    """
    place = pathlib.Path(path)
    fees = (maker_fee_ppm, taker_fee_ppm)
    if place.is_dir() or place.name.endswith((".dbn", ".dbn.zst")):
        from walras import _days

        day = _days.archive(place, instrument) if place.is_dir() else _days.dbn(place, instrument, tick)
        history = _native.History.of_rows(day.rows.tobytes())
        return _Run(history, strategy, latency or Latency(), keep_queues, lambda venue: day.prepare(venue, fees)).play()
    history = _native.History(os.fspath(path), format, instrument, tick, accounts, fees)
    return _Run(history, strategy, latency or Latency(), keep_queues).play()


#: What a row of :func:`study` has of its result, in addition to the number of fills and the hash.
_FIGURES = (
    "profit_units",
    "cash_units",
    "fees_units",
    "position_lots",
    "traded_lots",
    "maker_share",
    "sent",
    "refused",
    "played",
    "played_refused",
    "tick_size",
    "lot_size",
)
_COLUMNS = {"day", "latency", "fills", *_FIGURES, "state_hash"}


def _one(task: tuple[dict[str, str], Callable[..., Strategy], Mapping[str, Any], dict[str, Any]]) -> dict[str, Any]:
    names, strategy, parameters, settings = task
    result = run(names["day"], strategy(**parameters), **settings)
    figures = {name: getattr(result, name) for name in _FIGURES}
    return {**names, **parameters, "fills": len(result.fills), **figures, "state_hash": result.state_hash.hex()}


def study(
    strategy: Callable[..., Strategy],
    days: Iterable[str | os.PathLike[str]],
    parameters: Iterable[Mapping[str, Any]] = ({},),
    *,
    latency: Latency | Mapping[str, Latency] | None = None,
    format: str | None = None,
    instrument: str | None = None,
    tick: str | None = None,
    accounts: int = 16,
    maker_fee_ppm: int = 0,
    taker_fee_ppm: int = 0,
    keep_queues: bool = True,
    map: Callable[..., Iterable[Any]] = map,
) -> list[dict[str, Any]]:
    """Back-tests a strategy with each of several parameters on each day: a row for each run, parameters by parameters.

    ``strategy`` is a class, or a function that makes a strategy: it is called for each run, with ``parameters`` as its keywords. A
    ``latency`` may be several by name: all parameters run with each. All else is as in :func:`run`, and the same for all runs.

    A row has ``day``, the name of the latency where there are several, the parameters, and what the run came to: ``profit_units``,
    ``cash_units``, ``fees_units``, ``position_lots``, ``traded_lots``, ``maker_share``, ``fills`` (how many), ``sent``, ``refused``,
    ``played``, ``played_refused``, ``tick_size``, ``lot_size``, ``state_hash``.
    ``pandas.DataFrame(rows).groupby("lots").mean(numeric_only=True)`` compares the values of a parameter ``lots``.

    ``map`` is called once with a function and a list of tasks. It may be ``multiprocessing.Pool().map``, an executor's ``map``, or a
    function around Ray or Dask. A task is pickled on its way to another process: there, the strategy is a class or a function of a
    module, the parameters can be pickled, and so can the delays (:func:`normal` and :func:`lognormal` can). A run is a function of
    its task, so the rows are the same wherever they are made.
    """
    if isinstance(days, (str, os.PathLike)):
        raise TypeError(f"days: {days!r} is one: give a list of days")
    paths, every = [os.fspath(day) for day in days], [dict(given) for given in parameters]
    for given in every:
        taken = sorted(_COLUMNS & given.keys())
        if taken:
            raise ValueError(f"parameters: a row has a column {taken[0]!r} already: give the parameter another name")
    ways: list[tuple[dict[str, str], Latency]]
    if isinstance(latency, Mapping):
        ways = [({"latency": name}, way) for name, way in latency.items()]
    else:
        ways = [({}, latency or Latency())]
    settings = {
        "format": format,
        "instrument": instrument,
        "tick": tick,
        "accounts": accounts,
        "maker_fee_ppm": maker_fee_ppm,
        "taker_fee_ppm": taker_fee_ppm,
        "keep_queues": keep_queues,
    }
    tasks = [
        ({"day": path, **named}, strategy, given, {**settings, "latency": way})
        for given in every
        for named, way in ways
        for path in paths
    ]
    return list(map(_one, tasks))
