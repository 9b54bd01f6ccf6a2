"""A venue in the process: the engine that a running venue replicates, without log, network and clock."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from walras import _arrays, _native

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from walras._batch_venue import Block, VenueMarket

#: An exact number. Floats are refused: which decimal one stands for is not known.
Exact = Union[str, int, Decimal]

_ALLOCATIONS = ("price_time", "pro_rata", "top_pro_rata", "split")


class Refused(Exception):
    """The venue refused a command, and nothing changed. ``code`` and ``name`` are those of docs/reject-reasons.md."""

    def __init__(self, code: int, name: str, advice: str, log_index: int | None = None) -> None:
        super().__init__(f"{name} ({code}): {advice}")
        self.code, self.name, self.advice = code, name, advice
        #: Where the rejection of a session's command is in the log of a running venue: its number is used up. ``None`` for any other.
        self.log_index = log_index

    def __reduce__(self) -> tuple[Any, ...]:
        return (Refused, (self.code, self.name, self.advice, self.log_index))


class Balance(NamedTuple):
    """What an account has of an asset."""

    available: Decimal
    #: For open orders.
    reserved: Decimal


class Position(NamedTuple):
    """What an account has at stake in an instrument."""

    #: Bought less sold, since the account was opened.
    net: Decimal
    open_orders: int
    open_buy: Decimal
    open_sell: Decimal


class Level(NamedTuple):
    """A price of a book, with what it shows."""

    price: Decimal
    size: Decimal
    order_count: int


class Book(NamedTuple):
    """Price levels, best first."""

    bids: list[Level]
    asks: list[Level]


class OpenOrder(NamedTuple):
    """An order that stands in the book, or a stop that waits (its ``price`` is ``None``)."""

    order_id: int
    client_order_id: int
    side: str
    price: Decimal | None
    open: Decimal
    shown: Decimal


class Asset(NamedTuple):
    """An asset; one of it is ``10**decimals`` units."""

    id: int
    symbol: str
    decimals: int


class Instrument(NamedTuple):
    """What is traded, and how its prices and sizes count: a tick is ``tick_size``, a lot ``lot_size``."""

    id: int
    symbol: str
    base: int
    quote: int
    tick_size: Decimal
    lot_size: Decimal
    phase: str
    reference_price: Decimal
    last_price: Decimal | None


class Uncross(NamedTuple):
    """What an auction would trade now."""

    price: Decimal
    volume: Decimal
    #: How much more is bid (positive) or offered (negative) at the price than trades.
    imbalance: Decimal


class Run:
    """What came of rows of orders. Arrays are numpy's, with the dtypes ``walras.OUTCOME_DTYPE`` and so on."""

    def __init__(
        self,
        outcomes: NDArray[Any],
        trades: NDArray[Any] | None,
        events: NDArray[Any] | None,
        best: NDArray[Any] | None,
    ) -> None:
        #: A row for each order: ``order_id``, lots ``filled`` and ``open``, ``trade_count``, and ``code``: 0, or the number of the refusal.
        self.outcomes = outcomes
        self._trades, self._events, self._best = trades, events, best

    @property
    def trades(self) -> NDArray[Any]:
        """A row for each trade; ``row`` is that of the order that caused it. Fees are in the quote's units."""
        return self._wanted("trades", self._trades)

    @property
    def events(self) -> NDArray[Any]:
        """Everything that happened, in order; ``kind`` counts as ``walras.EVENT_KINDS``. The order of a trade's row is the maker's."""
        return self._wanted("events", self._events)

    @property
    def best(self) -> NDArray[Any]:
        """After each order the best bid and ask of its instrument and what they show; 0 where there is none."""
        return self._wanted("best", self._best)

    @staticmethod
    def _wanted(name: str, rows: NDArray[Any] | None) -> NDArray[Any]:
        if rows is None:
            raise ValueError(f"{name} were not asked for: give run(..., {name}=True)")
        return rows

    @property
    def rejected(self) -> int:
        """How many orders were refused."""
        return int((self.outcomes["code"] > 0).sum())

    def __repr__(self) -> str:
        traded = "" if self._trades is None else f", {len(self._trades)} trades"
        return f"Run({len(self.outcomes)} orders, {self.rejected} refused{traded})"


class Venue(_native.Venue):
    """A venue in this process, with the rules of a real one: ledger, risk limits, phases, auctions, every type of order, batch markets.

    There are two ways to do the same. :meth:`submit`, :meth:`cancel` and :meth:`amend` take symbols and exact decimals (``str``,
    ``Decimal`` or ``int``; a ``float`` is a ``TypeError``), and raise :class:`Refused`. ``submit_lots``, ``cancel_id`` and ``amend_lots``
    take ids, ticks and lots, and an order that is refused is an ``Outcome`` with a ``code``. :meth:`run` takes whole arrays.

    Time is what the caller says: ``time_ns`` of a command, which never goes back, or that of the command before. The same commands at the
    same times end in the same :meth:`state_hash`, here as on every replica of a venue.

    >>> venue = Venue()
    >>> _ = venue.create_asset("BTC", 8), venue.create_asset("USD", 4)
    >>> btc_usd = venue.create_instrument("BTC/USD", "BTC", "USD", tick_size="0.5", lot_size="0.01", reference_price=30000)
    >>> alice, bob = venue.create_account(BTC=2), venue.create_account(USD=100_000)
    >>> _ = venue.submit(alice, "BTC/USD", "sell", "0.5", "30000.5")
    >>> outcome = venue.submit(bob, "BTC/USD", "buy", "0.2", "30001")
    >>> outcome.trades
    [Trade(buy 0.20 at 30000.5, maker 0, taker 1)]
    >>> venue.balance(bob, "BTC").available
    Decimal('0.20000000')
    """

    # Definitions and accounts: the operator's.

    def create_asset(self, symbol: str, decimals: int, *, time_ns: int | None = None) -> int:
        """Defines an asset whose unit is ``10**-decimals``, 0 to 18; its id."""
        asset, outcome = self._create_asset(symbol, decimals, time_ns)
        _done(outcome)
        return asset

    def create_instrument(
        self,
        symbol: str,
        base: str | int,
        quote: str | int,
        *,
        tick_size: Exact,
        lot_size: Exact,
        reference_price: Exact,
        maker_fee_ppm: int = 0,
        taker_fee_ppm: int = 0,
        collar_ppm: int = 1_000_000,
        band_ppm: int = 1_000_000,
        allocation: str = "price_time",
        top_lots_max: int = 0,
        fifo_percent: int = 0,
        min_lots: int = 1,
        phase: str | None = "continuous",
        time_ns: int | None = None,
    ) -> int:
        """Defines an instrument, and moves it to ``phase`` (``None``: it stays closed); its id.

        Prices are multiples of ``tick_size``, sizes of ``lot_size``; a lot is a whole number of base units, and a tick of a lot of quote units.
        Around ``reference_price`` lie the band (a trade outside halts the instrument: at most twice the price with 1,000,000 ppm) and, until the
        first trade, the collar. ``allocation`` is ``price_time``, ``pro_rata``, ``top_pro_rata`` (first ``top_lots_max`` lots to the order that
        set the price) or ``split`` (``fifo_percent`` first in, first out, the rest pro rata); shares below ``min_lots`` are dropped.
        """
        base_id, quote_id = self.asset_id(base), self.asset_id(quote)
        decimals = [asset.decimals for asset in self.assets()]
        lot_units = _whole("lot_size", lot_size, Decimal(10) ** decimals[base_id], f"units of {base}")
        tick_units = _whole("tick_size", tick_size, _decimal("lot_size", lot_size) * Decimal(10) ** decimals[quote_id], f"units of {quote} a lot")
        reference_ticks = _whole("reference_price", reference_price, 1 / _decimal("tick_size", tick_size), "ticks")
        if allocation not in _ALLOCATIONS:
            raise ValueError(f"allocation: {allocation!r} is none: give one of {', '.join(_ALLOCATIONS)}")
        instrument, outcome = self._create_instrument(
            symbol,
            (base_id, quote_id),
            (lot_units, tick_units),
            reference_ticks,
            (maker_fee_ppm, taker_fee_ppm),
            (collar_ppm, band_ppm),
            (_ALLOCATIONS.index(allocation), fifo_percent if allocation == "split" else top_lots_max, min_lots),
            time_ns,
        )
        _done(outcome)
        if phase is not None:
            self.set_phase(instrument, phase, time_ns=time_ns)
        return instrument

    def create_batch_market(
        self,
        name: str,
        assets: Sequence[str | int],
        *,
        currencies: Sequence[str | int] = (),
        eps: float = 2**-15,
        mu: float = 2**-10,
        intake: str = "filter",
        transactions_max: int = 100_000,
        time_ns: int | None = None,
    ) -> int:
        """Defines a batch market, in which all offers among its assets clear at one vector of prices, and opens it; its id.

        Each asset trades with each other: 2 to 100 of them. With ``currencies``, these come first, and the others trade with
        currencies only. The first asset is the numeraire, in which prices are shown. The assets are fixed from then on; accounts and
        balances are those of the continuous markets.

        ``eps`` is the venue's share of what each trade buys: ``0`` or ``2**-k``, k from 1 to 30. An offer whose limit is better than the
        rate by more than the share ``mu``, ``2**-k`` and larger than ``eps``, trades in full, but for 1 percent of each asset at most.
        ``intake`` says which transactions of a batch are kept. ``filter``: of each account all that is good by itself, or none where
        together they spend more than it had. ``reserve``: one by one, in the order in which they came. A batch takes
        ``transactions_max`` of them, 1 to 1,048,576.

        Raises :class:`Refused` for a name in use or rules that do not go together, ``KeyError`` for an unknown asset, ``ValueError`` for a
        number out of range.
        """
        from walras import _batch_venue

        return _batch_venue.create(self, name, assets, currencies, (eps, mu, intake, transactions_max), time_ns)

    def create_account(self, *, time_ns: int | None = None, **deposits: Exact) -> int:
        """Opens an account, and credits it with these amounts by symbol: ``create_account(BTC="1.5", USD=1000)``; its id."""
        account, outcome = self._create_account(time_ns)
        _done(outcome)
        for symbol, amount in deposits.items():
            self.deposit(account, symbol, amount, time_ns=time_ns)
        return account

    def deposit(self, account: int, asset: str | int, amount: Exact, *, time_ns: int | None = None) -> _native.Outcome:
        """Credits an account; the asset's supply grows."""
        id = self.asset_id(asset)
        return _done(self._transfer(True, account, id, self._amount_units(id, amount), time_ns))

    def withdraw(self, account: int, asset: str | int, amount: Exact, *, time_ns: int | None = None) -> _native.Outcome:
        """Debits what an account has available."""
        id = self.asset_id(asset)
        return _done(self._transfer(False, account, id, self._amount_units(id, amount), time_ns))

    def set_phase(self, instrument: str | int, phase: str | int, *, time_ns: int | None = None) -> _native.Outcome:
        """Moves an instrument to ``closed``, ``pre_open``, ``opening_auction``, ``continuous``, ``halt`` or ``closing_auction``.

        Orders collect in an auction; leaving it for ``continuous`` (``closed`` from the closing one) trades all that crosses at one price.
        """
        return _done(self._set_phase(self.instrument_id(instrument), phase, time_ns))

    def set_limits(
        self,
        account: int,
        instrument: str | int,
        *,
        order_lots_max: int | None = None,
        order_units_max: int | None = None,
        open_orders_max: int | None = None,
        position_lots_max: int | None = None,
        time_ns: int | None = None,
    ) -> _native.Outcome:
        """Sets an account's limits in an instrument; ``None`` is no limit."""
        limits = (order_lots_max, order_units_max, open_orders_max, position_lots_max)
        return _done(self._set_limits(account, self.instrument_id(instrument), limits, time_ns))

    def suspend(self, account: int, *, time_ns: int | None = None) -> _native.Outcome:
        """Cancels an account's orders, and takes no more of them until :meth:`reinstate`."""
        return _done(self._set_status(account, True, time_ns))

    def reinstate(self, account: int, *, time_ns: int | None = None) -> _native.Outcome:
        """Lets a suspended account trade again."""
        return _done(self._set_status(account, False, time_ns))

    def collect_fees(self, asset: str | int, account: int, *, time_ns: int | None = None) -> _native.Outcome:
        """Moves the fees that were collected in an asset to an account."""
        return _done(self._collect_fees(self.asset_id(asset), account, time_ns))

    # Orders.

    def submit(
        self,
        account: int,
        instrument: str | int,
        side: str | int,
        size: Exact,
        price: Exact | None = None,
        client_order_id: int | None = None,
        *,
        tif: str | int | None = None,
        trigger: Exact | None = None,
        take_profit: Exact | None = None,
        trail: Exact | None = None,
        trail_ppm: int | None = None,
        post_only: str | int | None = None,
        peak: Exact | None = None,
        hidden: bool = False,
        min_size: Exact | None = None,
        self_trade: str | int | None = None,
        oco_with: int | None = None,
        exit_of: int | None = None,
        expires_ns: int = 0,
        time_ns: int | None = None,
    ) -> _native.Outcome:
        """Enters an order: without a ``price`` a market order, with a ``trigger`` a stop, with both a stop limit.
        ``take_profit`` is the trigger of a take-profit, which waits for a price in its favour. ``trail`` is the distance of
        a trailing stop, whose trigger follows the market; ``trail_ppm`` the same in millionths of the price. ``oco_with``
        is the ``client_order_id`` of an open order of the same side and size: one cancels the other. ``exit_of`` is that of an
        order to come, of the other side and the same size: this one is a stop or a take-profit that stands for what that one has filled.

        ``side`` is ``buy`` or ``sell``. ``tif`` is ``gtc`` (a market order: ``ioc``), ``day``, ``gtd`` (until ``expires_ns``), ``ioc`` or ``fok``.
        ``post_only`` is ``reject`` or ``reprice``. ``peak`` shows that much at a time; ``hidden`` nothing. ``self_trade`` is ``cancel_newest``,
        ``cancel_oldest``, ``cancel_both``, ``decrement`` or ``allow``. ``client_order_id`` names it for :meth:`cancel`; without one it is the
        ``order_id``, and ``outcome.client_order_id`` has it.

        Raises :class:`Refused` when the venue refuses it, ``ValueError`` for a value that is not what its name says, ``TypeError`` for a float.
        """
        return _done(
            self._submit(
                account,
                instrument,
                side,
                size,
                price,
                client_order_id,
                tif=tif,
                trigger=trigger,
                take_profit=take_profit,
                trail=trail,
                trail_ppm=trail_ppm,
                post_only=post_only,
                peak=peak,
                hidden=hidden,
                min_size=min_size,
                self_trade=self_trade,
                oco_with=oco_with,
                exit_of=exit_of,
                expires_ns=expires_ns,
                time_ns=time_ns,
            )
        )

    def cancel(self, account: int, instrument: str | int, client_order_id: int, *, time_ns: int | None = None) -> _native.Outcome:
        """Cancels an order; ``Refused`` with code 4 where it is gone."""
        return _done(self.cancel_id(account, self.instrument_id(instrument), client_order_id, time_ns=time_ns))

    def amend(
        self,
        account: int,
        instrument: str | int,
        client_order_id: int,
        *,
        price: Exact | None = None,
        trigger: Exact | None = None,
        size: Exact | None = None,
        time_ns: int | None = None,
    ) -> _native.Outcome:
        """Changes price, trigger or open size of an order. A smaller size keeps its place in the queue; all else loses it."""
        id = self.instrument_id(instrument)
        return _done(
            self.amend_lots(
                account,
                id,
                client_order_id,
                price_ticks=None if price is None else self.price_ticks(id, price),
                trigger_ticks=None if trigger is None else self.price_ticks(id, trigger),
                size_lots=None if size is None else self.size_lots(id, size),
                time_ns=time_ns,
            )
        )

    def mass_cancel(
        self,
        account: int,
        instrument: str | int | None = None,
        side: str | None = None,
        *,
        time_ns: int | None = None,
    ) -> _native.Outcome:
        """Cancels all orders of an account, or those of one instrument or side."""
        if side is not None and side not in _arrays.SIDES:
            raise ValueError(f"side: {side!r} is none: give 'buy', 'sell' or None for both")
        of = None if instrument is None else self.instrument_id(instrument)
        return _done(self._mass_cancel(account, of, None if side is None else _arrays.SIDES.index(side), time_ns))

    def run(self, orders: Any, *, trades: bool = True, events: bool = False, best: bool = False) -> Run:
        """Applies rows of orders, one after the other, and gives back arrays.

        ``orders`` is an array of ``walras.ORDER_DTYPE``, or a structured array, a dict of columns, a pandas or polars frame or an Arrow table
        with some of its columns; what is not given is 0. ``kind``, ``side``, ``tif``, ``post_only``, ``self_trade`` and ``instrument`` may be
        names. ``price``, ``trigger`` are ticks, ``size``, ``peak``, ``min_size`` lots. A ``time_ns`` of 0 is that of the row before. An order's
        refusal is the ``code`` of its outcome; what is no order (an unknown ``kind``, a time that goes back) is a ``ValueError`` that names row
        and column, before any row takes effect. Other Python threads run meanwhile.

        To amend, 0 keeps price, trigger or size. To cancel all, ``instrument`` 2**32 - 1 and ``side`` 255 stand for any.
        """
        ids = {instrument.symbol: instrument.id for instrument in self.instruments()}
        rows = _arrays.orders(orders, ids)
        outcomes, traded, happened, levels = self._run(rows.tobytes(), (trades, events, best))
        return Run(
            _arrays.rows("OUTCOME", outcomes),
            None if traded is None else _arrays.rows("TRADE", traded),
            None if happened is None else _arrays.rows("EVENT", happened),
            None if levels is None else _arrays.rows("BEST", levels),
        )

    # Batch markets.

    def batch(self, name: str, account: int) -> VenueMarket:
        """A batch market as one account sees it: enter and cancel offers, pay, read prices. ``KeyError`` where there is none so named.

        Its methods are those of ``walras.Client.batch`` under the same names. The account sends at most 64 transactions in a batch.
        """
        from walras import _batch_venue

        return _batch_venue.VenueMarket(self, name, account)

    def clear_batch(self, name: str, *, queries: int = 10_000, time_ns: int | None = None) -> Block:
        """Closes a market's batch and clears it: its prices, trades, cancels, and what was left out of it.

        A running venue does so every few hundred milliseconds; here it happens when you say so. ``queries`` bounds the search for
        prices, in demand queries for each part of the market that is priced on its own. There is no deadline, so the same transactions
        end in the same block. Where the search finds no prices, nothing trades, and offers go on standing.

        Other Python threads run meanwhile. Ctrl-C ends the search; the batch stays closed, and the next call clears it.
        """
        from walras import _batch_venue

        return _batch_venue.clear(self, name, queries, time_ns)

    # What there is.

    def assets(self) -> list[Asset]:
        """All assets, by id."""
        return [Asset(id, symbol, decimals) for id, (symbol, decimals) in enumerate(self._assets())]

    def instrument(self, instrument: str | int) -> Instrument:
        """An instrument as it stands."""
        id = self.instrument_id(instrument)
        symbol, base, quote, tick, lot, phase, reference, last = self._instrument(id)
        tick_size = Decimal(tick)
        last_price = None if last is None else last * tick_size
        return Instrument(id, symbol, base, quote, tick_size, Decimal(lot), phase, reference * tick_size, last_price)

    def instruments(self) -> list[Instrument]:
        """All instruments, by id."""
        return [self.instrument(id) for id in range(self.instrument_count)]

    def balance(self, account: int, asset: str | int) -> Balance:
        """What an account has of an asset; ``balance_units`` is the same in units."""
        id = self.asset_id(asset)
        available, reserved = self.balance_units(account, id)
        scale = -self.assets()[id].decimals
        return Balance(Decimal(available).scaleb(scale), Decimal(reserved).scaleb(scale))

    def balances(self, account: int) -> dict[str, Balance]:
        """What an account has, by symbol."""
        return {asset.symbol: self.balance(account, asset.id) for asset in self.assets()}

    def fees(self, asset: str | int) -> Decimal:
        """The fees that were collected in an asset and not yet moved, those of batch markets included."""
        id = self.asset_id(asset)
        return Decimal(self.supply_units(id)[1]).scaleb(-self.assets()[id].decimals)

    def position(self, account: int, instrument: str | int) -> Position:
        """What an account has at stake; ``position_lots`` is the same in lots."""
        view = self.instrument(instrument)
        net, open_orders, buy, sell = self.position_lots(account, view.id)
        return Position(net * view.lot_size, open_orders, buy * view.lot_size, sell * view.lot_size)

    def book(self, instrument: str | int, levels: int = 10) -> Book:
        """The first levels of each side; ``depth_lots`` and ``best_lots`` are the same in ticks and lots."""
        view = self.instrument(instrument)

        def side(name: str) -> list[Level]:
            depth = self.depth_lots(view.id, name, levels)
            return [Level(price * view.tick_size, size * view.lot_size, count) for price, size, count in depth]

        return Book(side("buy"), side("sell"))

    def open_orders(self, account: int, instrument: str | int) -> list[OpenOrder]:
        """An account's open orders in an instrument, oldest first."""
        view = self.instrument(instrument)
        return [
            OpenOrder(order_id, name, side, None if price is None else price * view.tick_size, size * view.lot_size, shown * view.lot_size)
            for order_id, name, side, price, size, shown in self.open_orders_lots(account, view.id)
        ]

    def indicative(self, instrument: str | int) -> Uncross | None:
        """What an auction would trade now; ``None`` while trading is continuous or nothing crosses."""
        view = self.instrument(instrument)
        found = self.indicative_lots(view.id)
        if found is None:
            return None
        return Uncross(found[0] * view.tick_size, found[1] * view.lot_size, found[2] * view.lot_size)

    def copy(self) -> Venue:
        """Another venue in the same state: what one does then, the other does not."""
        other = type(self)()
        other.restore(self.snapshot())
        return other

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Venue:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (type(self), self.snapshot()))


def _restored(kind: type[Venue], snapshot: bytes) -> Venue:
    venue = kind()
    venue.restore(snapshot)
    return venue


def _done(outcome: _native.Outcome) -> _native.Outcome:
    if outcome.code:
        raise Refused(outcome.code, outcome.reason or "", outcome.advice or "")
    return outcome


def _decimal(what: str, value: Exact) -> Decimal:
    if isinstance(value, float) or not isinstance(value, (str, int, Decimal)):
        raise TypeError(f"{what}: give a str, a Decimal or an int: {value!r} is no exact number")
    number = Decimal(value)
    if not number.is_finite() or number <= 0:
        raise ValueError(f"{what}: {value} is not above 0: give a positive number")
    return number


def _whole(what: str, value: Exact, times: Decimal, unit: str) -> int:
    """How many units a value is; refused unless they are a whole number of them."""
    number = _decimal(what, value) * times
    # A division may have been rounded in its last digit.
    nearest = int(number.to_integral_value())
    if nearest < 1 or abs(number - nearest) > Decimal(nearest).scaleb(-24):
        raise ValueError(f"{what}: {value} is {number.normalize():f} {unit}, and a whole number of them is needed: choose a multiple")
    return nearest
