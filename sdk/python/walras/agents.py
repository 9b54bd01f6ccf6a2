"""A market of agents on the real engine, for studies of market design: the same traders under another design, seed by seed.

The classes are those that agent-based studies share: zero intelligence, value, momentum, heuristic beliefs, the imbalance of the book,
market makers, of which some quote by the volume, snipers who race them to news, and executions of a large order by the volume or over a
time. Orders and data take time to travel; a design says what the venue does about it:
continuous matching or a batch every so often, ``d_s`` (orders are held so long and put in the order in which they reached the venue's edge)
and ``d_h`` (data is held so long and given to all at once), tick, fees, allocation. A run is a function of design, agents and seed:
its ``state_hash`` is the same wherever it is made.

>>> from walras import agents
>>> people = agents.population(zero_intelligence=20, market_makers=2, snipers=2)
>>> rows = agents.study({"continuous": agents.Design(), "batch": agents.Design(batch_ns=100_000_000)}, people, seeds=range(2), seconds=5)
>>> [row["design"] for row in rows]
['continuous', 'continuous', 'batch', 'batch']

Studies spread over processes or machines by ``map=``: ``multiprocessing.Pool().map``, an executor's ``map``, or a function around
Ray or Dask.
"""

from __future__ import annotations

import bisect
import copy
import heapq
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from walras._venue import Exact, Venue

__all__ = [
    "Agent",
    "Design",
    "Execution",
    "HeuristicBelief",
    "Imbalance",
    "MarketMaker",
    "Momentum",
    "News",
    "Result",
    "Sniper",
    "Twap",
    "Value",
    "View",
    "VolumeMarketMaker",
    "Vwap",
    "ZeroIntelligence",
    "population",
    "simulate",
    "study",
]

SECOND_NS = 1_000_000_000
_INSTRUMENT = 0


@dataclass(frozen=True)
class Design:
    """What a venue decides. ``batch_ns`` ``None`` is continuous trading; else orders collect so long and trade at one price."""

    batch_ns: int | None = None
    #: How long orders are held to put them in the order of their stamps: d_s.
    sequencing_ns: int = 0
    #: How long market data is held to give it to all at once: d_h.
    release_ns: int = 0
    tick_size: Exact = "0.01"
    maker_fee_ppm: int = 0
    taker_fee_ppm: int = 0
    #: ``price_time``, ``pro_rata``, ``top_pro_rata`` or ``split``, as ``Venue.create_instrument``.
    allocation: str = "price_time"
    top_lots_max: int = 0
    fifo_percent: int = 0


@dataclass(frozen=True)
class News:
    """What the asset is worth: a walk that returns to its mean, and jumps of which all hear at the same instant."""

    value: float = 100.0
    #: Standard deviation of the walk in one second, as a share of the value.
    volatility: float = 2e-4
    #: Share of the distance to the mean that is made up in one second.
    reversion: float = 0.01
    #: Jumps a second, and the standard deviation of one, as a share of the value.
    jumps_per_s: float = 0.2
    jump: float = 1e-3


class View:
    """What an agent knows when it wakes: market data as old as its path and the design make it, its own account, the time."""

    __slots__ = ("now_ns", "bid", "bid_lots", "ask", "ask_lots", "last", "value", "position_lots", "tick", "_market", "_agent", "_seen_ns")

    now_ns: int
    #: Best prices in ticks and what they show; 0 where there is none.
    bid: int
    bid_lots: int
    ask: int
    ask_lots: int
    #: The price of the last trade in ticks; 0 before the first.
    last: int
    #: What the asset is worth now, in ticks: for those who know it, exactly or with noise.
    value: float
    #: Bought less sold.
    position_lots: int
    #: The price of a tick.
    tick: float
    _market: _Market
    _agent: Agent
    #: Market data is as it was then.
    _seen_ns: int

    @property
    def volume_lots(self) -> int:
        """All that has traded since the run began, as market data shows it."""
        market = self._market
        return market.volumes[max(bisect.bisect_right(market.traded_ns, self._seen_ns) - 1, 0)]

    def trades(self, count: int) -> list[tuple[int, int]]:
        """Price and lots of the last trades, the newest last, as market data shows them."""
        market = self._market
        seen = market.trade_counts[max(bisect.bisect_right(market.traded_ns, self._seen_ns) - 1, 0)]
        return [(price, lots) for _, price, lots, *_ in market.trades[max(seen - count, 0) : seen]]

    def quotes(self, count: int) -> list[tuple[int, int]]:
        """The last best prices, bid and ask, the newest last, as market data shows them; 0 where there was none."""
        market = self._market
        seen = bisect.bisect_right(market.published, self._seen_ns)
        return [(bid, ask) for bid, _, ask, _, _ in market.tops[max(seen - count, 0) : seen]]

    @property
    def middle(self) -> float:
        """Between the best prices; the last price, or what the asset was worth at first, where a side is empty."""
        if self.bid and self.ask:
            return (self.bid + self.ask) / 2
        return float(self.bid or self.ask or self.last or self._market.start_ticks)

    def rest(self, side: int, lots: int, ticks: float) -> int:
        """Sends a limit order that may rest; its name, for :meth:`cancel`. ``side`` is 0 to buy, 1 to sell."""
        return self._market.send(self._agent, "rest", side, lots, max(round(ticks), 1))

    def take(self, side: int, lots: int, ticks: float) -> int:
        """Sends an order that trades at ``ticks`` or better, at once or in the next batch, and does not stay."""
        return self._market.send(self._agent, "take", side, lots, max(round(ticks), 1))

    def is_on_its_way(self, name: int) -> bool:
        """Whether an order of :meth:`take` is still to arrive, or waits for the next batch."""
        return name in self._market.on_their_way

    def cancel(self, name: int) -> None:
        """Sends a cancel."""
        self._market.send(self._agent, "cancel", 0, 0, 0, name)


@dataclass
class Agent:
    """One trader. Derive from it, and write :meth:`wake`; ``random`` is its own generator, made of the run's seed."""

    #: Mean time between two wakes; exponential.
    every_ns: int = SECOND_NS
    #: From the agent to the venue's edge, one way; there its orders are stamped.
    near_ns: int = 50_000
    #: From the edge to the sequencer, and for data back: a mean, with a heavy tail.
    path_ns: int = 200_000
    #: Whether news wakes it, besides its clock.
    hears_news: bool = False
    random: random.Random = field(default_factory=random.Random, repr=False)
    number: int = 0

    @property
    def kind(self) -> str:
        """By which results are grouped."""
        return type(self).__name__

    def wake(self, view: View) -> None:
        """Looks and acts."""
        raise NotImplementedError

    def travel_ns(self) -> int:
        """How long a message takes between edge and sequencer: half the mean for certain, the rest log-normal with a heavy tail."""
        return int(self.path_ns * (0.5 + 0.5 * self.random.lognormvariate(-0.5, 1.0)))


@dataclass
class ZeroIntelligence(Agent):
    """Buys and sells at random, at prices around the middle; keeps at most ``orders_max`` orders, and cancels the oldest (Gode and
    Sunder 1993; Farmer, Patelli and Zovko 2005)."""

    lots_max: int = 10
    #: Prices lie up to this share of the value from the middle, to either side.
    width: float = 2e-3
    orders_max: int = 4
    names: list[int] = field(default_factory=list, repr=False)

    def wake(self, view: View) -> None:
        side = self.random.randrange(2)
        away = self.random.uniform(-0.25, 1.0) * self.width * view.middle
        self.names.append(view.rest(side, self.random.randint(1, self.lots_max), view.middle - away if side == 0 else view.middle + away))
        if len(self.names) > self.orders_max:
            view.cancel(self.names.pop(0))


@dataclass
class Value(Agent):
    """Knows what the asset is worth but for noise, and trades when the price is further off than ``edge``."""

    noise: float = 5e-4
    edge: float = 5e-4
    lots_max: int = 10

    def wake(self, view: View) -> None:
        worth = view.value * (1 + self.random.gauss(0, self.noise))
        lots = self.random.randint(1, self.lots_max)
        if view.ask and view.ask < worth * (1 - self.edge):
            view.take(0, lots, worth * (1 - self.edge))
        elif view.bid and view.bid > worth * (1 + self.edge):
            view.take(1, lots, worth * (1 + self.edge))


@dataclass
class Momentum(Agent):
    """Follows the trend: buys when the short average of what it saw is above the long one, and sells below."""

    short: float = 0.3
    long: float = 0.05
    edge: float = 1e-4
    lots: int = 5
    position_max: int = 100
    averages: tuple[float, float] | None = field(default=None, repr=False)

    def wake(self, view: View) -> None:
        middle = view.middle
        fast, slow = self.averages or (middle, middle)
        self.averages = fast, slow = fast + self.short * (middle - fast), slow + self.long * (middle - slow)
        if fast > slow * (1 + self.edge) and view.ask and view.position_lots < self.position_max:
            view.take(0, self.lots, view.ask)
        elif fast < slow * (1 - self.edge) and view.bid and view.position_lots > -self.position_max:
            view.take(1, self.lots, view.bid)


@dataclass
class HeuristicBelief(Agent):
    """Learns from what traded and what did not how likely an order trades at each price, and sends the one from which it expects the most
    (heuristic belief learning: Gjerstad and Dickhaut 1998). With ABIDES it is ``HeuristicBeliefLearningAgent``."""

    #: What the asset is worth to it differs by so much, each time.
    noise: float = 5e-4
    lots: int = 5
    position_max: int = 100
    #: Trades and quotes that it remembers.
    memory: int = 50
    name: int | None = field(default=None, repr=False)

    @staticmethod
    def chance(side: int, ticks: int, trades: Sequence[tuple[int, int]], quotes: Sequence[tuple[int, int]]) -> float:
        """How likely an order at this price trades: of those at prices as good or better, how many did or could have."""
        if side == 0:
            taken = sum(price <= ticks for price, _ in trades) + sum(0 < ask <= ticks for _, ask in quotes)
            left = sum(bid >= ticks for bid, _ in quotes)
        else:
            taken = sum(price >= ticks for price, _ in trades) + sum(bid >= ticks for bid, _ in quotes)
            left = sum(0 < ask <= ticks for _, ask in quotes)
        return taken / (taken + left) if taken else 0.0

    def wake(self, view: View) -> None:
        if self.name is not None:
            view.cancel(self.name)
            self.name = None
        worth = view.value * (1 + self.random.gauss(0, self.noise))
        side = self.random.randrange(2)
        if abs(view.position_lots) >= self.position_max:
            side = 1 if view.position_lots > 0 else 0
        sign = 1 if side == 0 else -1
        trades, quotes = view.trades(self.memory), view.quotes(self.memory)
        seen = {price for price, _ in trades} | {price for quote in quotes for price in quote if price}
        gains = [((worth - price) * sign * self.chance(side, price, trades, quotes), price) for price in seen]
        gain, price = max(gains, default=(0.0, 0))
        if gain > 0:
            self.name = view.rest(side, self.lots, price)


@dataclass
class Imbalance(Agent):
    """Buys where the best bid shows much more than the best ask, and sells where it shows much less. It leaves when the book is even again,
    or has gone against it. With ABIDES it is ``OrderBookImbalanceAgent``."""

    every_ns: int = SECOND_NS // 2
    #: Share of the bid at which it buys; it sells at the same share of the ask.
    enter: float = 0.7
    #: Share at which it leaves.
    leave: float = 0.5
    #: It leaves, too, where the middle is so far from the best one since it came, as a share of that.
    stop: float = 1e-3
    lots: int = 5
    best: float = field(default=0.0, repr=False)
    name: int | None = field(default=None, repr=False)

    def wake(self, view: View) -> None:
        if not (view.bid and view.ask) or (self.name is not None and view.is_on_its_way(self.name)):
            return
        share = view.bid_lots / (view.bid_lots + view.ask_lots)
        position, middle = view.position_lots, view.middle
        if position == 0:
            self.best = middle
            if share >= self.enter:
                self.name = view.take(0, self.lots, view.ask)
            elif 1 - share >= self.enter:
                self.name = view.take(1, self.lots, view.bid)
            return
        is_long = position > 0
        self.best = max(self.best, middle) if is_long else min(self.best, middle)
        has_lost = abs(self.best - middle) > self.stop * self.best
        if has_lost or (share if is_long else 1 - share) <= self.leave:
            self.name = view.take(1 if is_long else 0, abs(position), view.bid if is_long else view.ask)


@dataclass
class MarketMaker(Agent):
    """Quotes both sides around what the asset is worth, leans against its position, and moves its quotes when news comes."""

    every_ns: int = SECOND_NS // 5
    hears_news: bool = True
    lots: int = 20
    levels: int = 3
    #: Half the spread, and the distance of levels, as a share of the value.
    half_spread: float = 3e-4
    position_max: int = 500
    #: How far the quotes lean at the largest position, in half spreads.
    lean: float = 2.0
    names: list[int] = field(default_factory=list, repr=False)

    def wake(self, view: View) -> None:
        for name in self.names:
            view.cancel(name)
        self.names.clear()
        half = max(self.half_spread * view.value, 0.5)
        centre = view.value - self.lean * half * view.position_lots / self.position_max
        for level in range(self.levels):
            away = half * (1 + level)
            if view.position_lots < self.position_max:
                self.names.append(view.rest(0, self.lots, math.floor(centre - away)))
            if view.position_lots > -self.position_max:
                self.names.append(view.rest(1, self.lots, math.ceil(centre + away)))


@dataclass
class VolumeMarketMaker(Agent):
    """Quotes both sides around the middle of the book, as much at each price as is its share of what has traded since it looked last (a
    percentage of volume, POV). With ABIDES it is ``POVMarketMakerAgent``."""

    every_ns: int = SECOND_NS // 2
    share: float = 0.1
    #: What it quotes at each price at least.
    lots_min: int = 5
    levels: int = 3
    half_spread: float = 5e-4
    position_max: int = 500
    seen_lots: int = field(default=0, repr=False)
    names: list[int] = field(default_factory=list, repr=False)

    def wake(self, view: View) -> None:
        for name in self.names:
            view.cancel(name)
        self.names.clear()
        volume = view.volume_lots
        lots = max(round(self.share * (volume - self.seen_lots)), self.lots_min)
        self.seen_lots = volume
        half = max(self.half_spread * view.middle, 0.5)
        for level in range(self.levels):
            away = half * (1 + level)
            if view.position_lots < self.position_max:
                self.names.append(view.rest(0, lots, math.floor(view.middle - away)))
            if view.position_lots > -self.position_max:
                self.names.append(view.rest(1, lots, math.ceil(view.middle + away)))


@dataclass
class Sniper(Agent):
    """Waits for news, and takes the quotes that it made stale before their owner moves them (Budish, Cramton and Shim 2015)."""

    every_ns: int = 30 * SECOND_NS
    hears_news: bool = True
    near_ns: int = 40_000
    lots: int = 20
    position_max: int = 500

    def wake(self, view: View) -> None:
        if view.ask and view.ask < view.value and view.position_lots < self.position_max:
            view.take(0, self.lots, view.value - 0.5)
        elif view.bid and view.bid > view.value and view.position_lots > -self.position_max:
            view.take(1, self.lots, view.value + 0.5)
        elif view.position_lots:
            # Sells what it took at what it is worth.
            view.take(1 if view.position_lots > 0 else 0, min(abs(view.position_lots), self.lots), view.value)


@dataclass
class Execution(Agent):
    """Buys or sells a large order in parts: it takes as much as makes its trades the given share of all that has traded since it began (a
    percentage of volume, POV), until it has traded the target. With ABIDES it is ``POVExecutionAgent``."""

    #: 0 to buy, 1 to sell.
    side: int = 0
    target_lots: int = 1_000
    share: float = 0.1
    #: How far beyond the best price it trades at most, as a share of that.
    reach: float = 1e-2
    begun_lots: int | None = field(default=None, repr=False)
    name: int | None = field(default=None, repr=False)

    def wake(self, view: View) -> None:
        if self.begun_lots is None:
            self.begun_lots = view.volume_lots
        if self.name is not None and view.is_on_its_way(self.name):
            return
        done = -view.position_lots if self.side else view.position_lots
        due = min(int(self.share * (view.volume_lots - self.begun_lots)), self.target_lots) - done
        best = view.bid if self.side else view.ask
        if due > 0 and best:
            self.name = view.take(self.side, due, best * (1 - self.reach if self.side else 1 + self.reach))


@dataclass
class Twap(Agent):
    """Buys or sells a large order in parts, evenly over a time (to trade at the time-weighted average price, TWAP): it takes what it is
    behind. With ABIDES it is ``TWAPExecutionAgent``."""

    every_ns: int = SECOND_NS // 2
    #: 0 to buy, 1 to sell.
    side: int = 0
    target_lots: int = 1_000
    #: From its first look on.
    duration_s: float = 30.0
    #: How far beyond the best price it trades at most, as a share of that.
    reach: float = 1e-2
    begun_ns: int | None = field(default=None, repr=False)
    name: int | None = field(default=None, repr=False)

    def due(self, passed: float) -> float:
        """What share of the order has traded when this share of the time has passed."""
        return passed

    def wake(self, view: View) -> None:
        if self.begun_ns is None:
            self.begun_ns = view.now_ns
        if self.name is not None and view.is_on_its_way(self.name):
            return
        done = -view.position_lots if self.side else view.position_lots
        passed = min((view.now_ns - self.begun_ns) / (self.duration_s * SECOND_NS), 1.0)
        lots = int(self.due(passed) * self.target_lots) - done
        best = view.bid if self.side else view.ask
        if lots > 0 and best:
            self.name = view.take(self.side, lots, best * (1 - self.reach if self.side else 1 + self.reach))


@dataclass
class Vwap(Twap):
    """The same along a profile of the volume (to trade at the volume-weighted average price, VWAP). With ABIDES it is
    ``VWAPExecutionAgent``."""

    #: How much trades in equal parts of the time, one next to the other: as a rule most at the ends.
    profile: Sequence[float] = (3.0, 2.0, 1.5, 1.0, 1.0, 1.0, 1.0, 1.5, 2.0, 3.0)

    def due(self, passed: float) -> float:
        at = passed * len(self.profile)
        whole = int(at)
        rest = self.profile[whole] * (at - whole) if whole < len(self.profile) else 0.0
        return (sum(self.profile[:whole]) + rest) / sum(self.profile)


def population(
    *,
    zero_intelligence: int = 50,
    value: int = 10,
    momentum: int = 5,
    market_makers: int = 3,
    snipers: int = 0,
    executions: int = 0,
    heuristic_beliefs: int = 0,
    imbalances: int = 0,
    volume_market_makers: int = 0,
    twaps: int = 0,
    vwaps: int = 0,
) -> list[Agent]:
    """So many agents of each class, with the classes' own settings."""
    kinds: list[tuple[type[Agent], int]] = [
        (ZeroIntelligence, zero_intelligence),
        (Value, value),
        (Momentum, momentum),
        (MarketMaker, market_makers),
        (Sniper, snipers),
        (Execution, executions),
        (HeuristicBelief, heuristic_beliefs),
        (Imbalance, imbalances),
        (VolumeMarketMaker, volume_market_makers),
        (Twap, twaps),
        (Vwap, vwaps),
    ]
    return [kind() for kind, count in kinds for _ in range(count)]


@dataclass
class Result:
    """What a run came to. Prices are ticks, times nanoseconds."""

    #: Time, price, lots, side of the taker (0 buy; of a batch none: 2), number of the maker's and the taker's agent.
    trades: list[tuple[int, int, int, int, int, int]]
    #: Time, best bid, best ask: after each change that was published; 0 where there is none.
    quotes: list[tuple[int, int, int]]
    #: What the asset was worth from each time on.
    values: list[tuple[int, float]]
    #: Money made, in currency, by class: what its agents hold at the end, at what it is worth, less what they began with.
    profit: dict[str, float]
    #: Figures by name; :func:`study` makes rows of them.
    figures: dict[str, float]
    #: The hash of the venue's state at the end.
    state_hash: bytes


class _Market:
    """One run: the venue, the paths, and the agents' clocks."""

    def __init__(self, design: Design, agents: Sequence[Agent], news: News, seed: int, seconds: float) -> None:
        self.design, self.news, self.end_ns = design, news, int(seconds * SECOND_NS)
        self.tick = float(Decimal(str(design.tick_size)))
        self.start_ticks = news.value / self.tick
        self.random = random.Random(f"{seed}/news")
        self.venue = Venue()
        self.venue.create_asset("BASE", 8)
        self.venue.create_asset("QUOTE", 8)
        self.venue.create_instrument(
            "BASE/QUOTE",
            "BASE",
            "QUOTE",
            tick_size=design.tick_size,
            lot_size="0.01",
            reference_price=Decimal(round(self.start_ticks)) * Decimal(str(design.tick_size)),
            maker_fee_ppm=design.maker_fee_ppm,
            taker_fee_ppm=design.taker_fee_ppm,
            allocation=design.allocation,
            top_lots_max=design.top_lots_max,
            fifo_percent=design.fifo_percent,
            phase="continuous" if design.batch_ns is None else "pre_open",
        )
        if design.batch_ns is not None:
            self.venue.set_phase(_INSTRUMENT, "opening_auction")
        self.agents: list[Agent] = []
        for number, prototype in enumerate(agents):
            agent = copy.deepcopy(prototype)
            agent.number, agent.random = number, random.Random(f"{seed}/{number}")
            self.agents.append(agent)
            self.venue.create_account(BASE=1_000, QUOTE=1_000_000)
        self.value = self.start_ticks
        self.values: list[tuple[int, float]] = [(0, self.value)]
        self.published: list[int] = [0]
        self.tops: list[tuple[int, int, int, int, int]] = [(0, 0, 0, 0, 0)]
        self.trades: list[tuple[int, int, int, int, int, int]] = []
        self.last = 0
        #: When there were trades, and how many lots and trades there had been then, from the beginning on.
        self.traded_ns: list[int] = [0]
        self.volumes: list[int] = [0]
        self.trade_counts: list[int] = [0]
        self.passing: list[tuple[int, int]] = []
        #: Orders that are to trade at once, until they have, or have not.
        self.on_their_way: set[int] = set()
        self.sent = self.refused = self.overtaken = self.late = 0
        self.newest_stamp = -1
        # Time, rank (news before batches before orders before wakes), stamp, a number that makes the order total, what.
        self.queue: list[tuple[int, int, int, int, Any]] = []
        self.count = self.now_ns = 0

    def push(self, at: int, rank: int, stamp: int, what: Any) -> None:
        self.count += 1
        heapq.heappush(self.queue, (at, rank, stamp, self.count, what))

    def begin(self) -> None:
        """Sets all clocks."""
        for agent in self.agents:
            self.push(self._wait(agent), 3, 0, agent)
        self.push(SECOND_NS // 100, 0, 0, "walk")
        if self.news.jumps_per_s > 0:
            self.push(self._next_jump(0), 0, 0, "jump")
        if self.design.batch_ns is not None:
            self.push(self.design.batch_ns, 1, 0, "batch")

    def run_until(self, until_ns: int) -> None:
        """Lets happen what happens up to a time."""
        while self.queue and self.queue[0][0] <= until_ns:
            at, rank, stamp, _, what = heapq.heappop(self.queue)
            self.now_ns = at
            if rank == 3:
                self._wake(what, at)
                self.push(at + self._wait(what), 3, 0, what)
            elif rank == 2:
                self._arrive(at, stamp, what)
            elif rank == 4:
                self._wake(what, at)
            elif what == "batch":
                self._uncross(at)
                self.push(at + (self.design.batch_ns or 1), 1, 0, "batch")
            else:
                self._move_value(at, what)

    def _wait(self, agent: Agent) -> int:
        return max(int(agent.random.expovariate(1.0) * agent.every_ns), 1)

    def _next_jump(self, at: int) -> int:
        return at + max(int(self.random.expovariate(self.news.jumps_per_s) * SECOND_NS), 1)

    def _move_value(self, at: int, what: str) -> None:
        if what == "walk":
            step_s = 0.01
            back = self.news.reversion * step_s * (self.start_ticks - self.value)
            self.value += back + self.random.gauss(0, self.news.volatility * math.sqrt(step_s)) * self.value
            self.push(at + SECOND_NS // 100, 0, 0, "walk")
        else:
            self.value *= 1 + self.random.gauss(0, self.news.jump)
            self.push(self._next_jump(at), 0, 0, "jump")
            for agent in self.agents:
                if agent.hears_news:
                    # News comes to all at once, by a way of its own; who acts first is for the paths to the venue.
                    self.push(at + 1 + int(agent.random.random() * 20_000), 4, 0, agent)
        self.value = max(self.value, 1.0)
        self.values.append((at, self.value))

    def _wake(self, agent: Agent, now_ns: int) -> None:
        agent.wake(self.view(agent, now_ns))

    def view(self, agent: Agent, now_ns: int) -> View:
        """What an agent knows at a time."""
        # Data of the edge: as old as its path, and no younger than the venue gives to anybody.
        old_ns = max(agent.travel_ns(), self.design.release_ns) + agent.near_ns
        top = self.tops[max(bisect.bisect_right(self.published, now_ns - old_ns) - 1, 0)]
        view = View()
        view.now_ns, view._seen_ns, view.value, view.tick = now_ns, now_ns - old_ns, self.value, self.tick
        view.bid, view.bid_lots, view.ask, view.ask_lots, view.last = top
        view.position_lots = self.venue.position_lots(agent.number, _INSTRUMENT)[0]
        view._market, view._agent = self, agent
        return view

    def send(self, agent: Agent, kind: str, side: int, lots: int, ticks: int, name: int = 0) -> int:
        self.sent += 1
        stamp = self.now_ns + agent.near_ns
        arrives = stamp + agent.travel_ns()
        if kind != "cancel":
            name = self.sent
        if kind == "take":
            self.on_their_way.add(name)
        held_until = stamp + self.design.sequencing_ns
        if self.design.sequencing_ns:
            self.late += arrives > held_until
        self.push(max(arrives, held_until), 2, stamp, (agent.number, kind, side, lots, ticks, name))
        return name

    def _arrive(self, at: int, stamp: int, what: tuple[int, str, int, int, int, int]) -> None:
        account, kind, side, lots, ticks, name = what
        self.overtaken += stamp < self.newest_stamp
        self.newest_stamp = max(self.newest_stamp, stamp)
        if kind == "cancel":
            outcome = self.venue.cancel_id(account, _INSTRUMENT, name, time_ns=at)
        elif kind == "take" and self.design.batch_ns is None:
            outcome = self.venue.submit_lots(account, _INSTRUMENT, side, lots, ticks, name, tif="ioc", time_ns=at)
            self.on_their_way.discard(name)
        else:
            outcome = self.venue.submit_lots(account, _INSTRUMENT, side, lots, ticks, name, time_ns=at)
            if kind == "take" and outcome.open_lots:
                self.passing.append((account, name))
            elif kind == "take":
                self.on_their_way.discard(name)
        # A cancel of what traded meanwhile is no fault.
        self.refused += outcome.code not in (0, 4)
        self._note(at, outcome)
        if self.design.batch_ns is None:
            self._publish(at)

    def _note(self, at: int, outcome: Any) -> None:
        if outcome.trade_count:
            side_of_batch, trades = 2 if self.design.batch_ns is not None else None, outcome.trades
            for trade in trades:
                side = 0 if trade.taker_side == "buy" else 1
                taken = side if side_of_batch is None else side_of_batch
                self.trades.append((at, trade.price_ticks, trade.size_lots, taken, trade.maker_account, trade.taker_account))
                self.last = trade.price_ticks
            self.traded_ns.append(at)
            self.volumes.append(self.volumes[-1] + sum(trade.size_lots for trade in trades))
            self.trade_counts.append(len(self.trades))

    def _uncross(self, at: int) -> None:
        self._note(at, self.venue._set_phase(_INSTRUMENT, "continuous", at))
        for account, name in self.passing:
            self.venue.cancel_id(account, _INSTRUMENT, name, time_ns=at)
            self.on_their_way.discard(name)
        self.passing.clear()
        # What is left does not cross: this is what all see until the next batch.
        self._publish(at)
        self.venue._set_phase(_INSTRUMENT, "halt", at)
        self.venue._set_phase(_INSTRUMENT, "opening_auction", at)

    def _publish(self, at: int) -> None:
        top = (*self.venue.best_lots(_INSTRUMENT), self.last)
        if top != self.tops[-1]:
            self.published.append(at)
            self.tops.append(top)

    def result(self) -> Result:
        decimals, lot = 10.0**8, 0.01
        worth = self.value * self.tick
        profit: dict[str, float] = {}
        for agent in self.agents:
            money = sum(self.venue.balance_units(agent.number, 1)) / decimals - 1_000_000
            held = self.venue.position_lots(agent.number, _INSTRUMENT)[0] * lot
            profit[agent.kind] = profit.get(agent.kind, 0.0) + money + held * worth
        quotes = [(at, top[0], top[2]) for at, top in zip(self.published, self.tops)]
        return Result(self.trades, quotes, self.values, profit, self._figures(quotes), self.venue.state_hash())

    def _figures(self, quotes: list[tuple[int, int, int]]) -> dict[str, float]:
        """Time-weighted, from the first two-sided quote on."""
        times = [at for at, _ in self.values]
        spread = error = both_ns = 0.0
        middles: list[float] = []
        for (at, bid, ask), (until, _, _) in zip(quotes, [*quotes[1:], (self.end_ns, 0, 0)]):
            if bid and ask and until > at:
                value = self.values[bisect.bisect_right(times, at) - 1][1]
                middle = (bid + ask) / 2
                both_ns += until - at
                spread += (until - at) * (ask - bid) / value
                error += (until - at) * ((middle - value) / value) ** 2
                middles.append(middle)
        returns = [math.log(b / a) for a, b in zip(middles, middles[1:])]
        lots = sum(trade[2] for trade in self.trades)
        return {
            "trades": float(len(self.trades)),
            "lots": float(lots),
            "orders": float(self.sent),
            "refused": float(self.refused),
            "two_sided_share": both_ns / self.end_ns,
            "spread_bp": 1e4 * spread / both_ns if both_ns else math.nan,
            "price_error_bp": 1e4 * math.sqrt(error / both_ns) if both_ns else math.nan,
            "volatility_bp_per_s": 1e4 * math.sqrt(sum(r * r for r in returns) / (both_ns / SECOND_NS)) if both_ns else math.nan,
            # Orders that went after one with a later stamp.
            "overtaken_share": self.overtaken / self.sent if self.sent else 0.0,
            "late_share": self.late / self.sent if self.sent else 0.0,
            "fees": self.venue.supply_units(1)[1] / 10.0**8,
        }


def simulate(design: Design, agents: Sequence[Agent], *, seed: int, seconds: float = 60.0, news: News | None = None) -> Result:
    """One run. The agents given are prototypes: they are copied, and what they are given is not changed."""
    market = _Market(design, agents, news or News(), seed, seconds)
    market.begin()
    market.run_until(market.end_ns)
    return market.result()


def _one(task: tuple[str, Design, Sequence[Agent], int, float, News | None]) -> dict[str, Any]:
    name, design, agents, seed, seconds, news = task
    result = simulate(design, agents, seed=seed, seconds=seconds, news=news)
    profits = {f"profit_{kind}": made for kind, made in sorted(result.profit.items())}
    return {"design": name, "seed": seed, **result.figures, **profits, "state_hash": result.state_hash.hex()}


def study(
    designs: Mapping[str, Design],
    agents: Sequence[Agent],
    *,
    seeds: Iterable[int],
    seconds: float = 60.0,
    news: News | None = None,
    map: Callable[..., Iterable[Any]] = map,
) -> list[dict[str, Any]]:
    """The same agents and news under each design, with each seed: a row of figures for each run, design by design.

    ``map`` is called once with a function and a list of tasks, all of which can be pickled.
    ``pandas.DataFrame(rows).groupby("design").mean(numeric_only=True)`` compares the designs; runs of one seed have the same news.
    """
    every = list(seeds)
    tasks = [(name, design, list(agents), seed, seconds, news) for name, design in designs.items() for seed in every]
    return list(map(_one, tasks))
