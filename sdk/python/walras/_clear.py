"""From a frame or a list of offers to a clearing of the same kind."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, overload

from walras import _native

_COLUMNS = ("sell", "buy", "amount", "limit_price", "id", "kind", "sell_max", "buy_reserve", "fee_ppm")
_REQUIRED = _COLUMNS[:4]
_EXPONENT_MAX = 30


class DataFrame(Protocol):
    """What a pandas or polars DataFrame and a pyarrow Table have in common."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def columns(self) -> Any: ...


FrameT = TypeVar("FrameT", bound=DataFrame)
TableT = TypeVar("TableT")
_Columns = dict[str, list[Any]]


class Offer(NamedTuple):
    """One row. A plain tuple in this order does as well; what follows ``limit_price`` may be left out."""

    sell: str
    buy: str
    amount: Any
    limit_price: Any
    id: Any = None
    kind: str | None = None
    sell_max: Any = None
    buy_reserve: Any = None
    fee_ppm: int | None = None


@dataclass(frozen=True)
class Quality:
    """What a clearing is worth, and what it took. Values are in :attr:`unit`; only those of one component compare."""

    #: ``cleared``: supply and demand, smoothed over mu, agree within eps. ``cleared_within_bounds``: amounts that keep all bounds exist.
    #: ``approximate``: the best prices found. Fills are exact in all three.
    outcome: str
    #: Demand queries of the price search, or as much other work.
    queries: int
    #: The largest share of an asset's smoothed demand that its supply does not cover.
    worst_excess: float
    #: Offers of both kinds, without pools.
    offer_count: int
    #: Offers whose limit holds at the rate after commission.
    in_the_money_count: int
    #: Offers that trade.
    fill_count: int
    #: Offers that trade in part: at most one of each kind in a pair.
    partial_count: int
    #: Pairs in which offers trade.
    pair_count: int
    #: Pools that trade.
    pool_count: int
    #: Groups of assets between which nothing is offered: their prices have nothing to do with each other.
    component_count: int
    #: Parts that were priced on their own.
    block_count: int
    #: Pairs where offers that must trade (see ``mu``) do not all trade in full. 0 in a good clearing.
    pairs_below_count: int
    #: The least mu for which every sell offer with a limit more than that share below the rate trades in full.
    mu_achieved: float
    #: Value sold by offers and pools.
    volume: float
    #: What fills of sell offers gain against their limits, in value. Market orders have none.
    realised_utility: float
    #: What sell offers in the money would gain in addition, had all of them traded in full.
    unrealised_utility: float
    #: The same of buy offers, which are filled after sell offers.
    buy_realised_utility: float
    #: The same of buy offers.
    buy_unrealised_utility: float
    #: Value that stays with the venue: commission and what rounding leaves.
    kept_value: float
    #: Seconds that clearing took, without reading the offers.
    total_s: float
    #: The asset that values are given in; ``None`` if no asset has a price.
    unit: str | None
    #: What stays with the venue of each asset, counted as amounts are.
    kept: dict[str, int | float]

    @property
    def unrealised_share(self) -> float:
        """The share of the utility in reach of sell offers that is not realised, from 0 to 1."""
        total = self.realised_utility + self.unrealised_utility
        return self.unrealised_utility / total if total > 0 else 0.0


@dataclass(frozen=True)
class Clearing(Generic[TableT]):
    """A batch that was cleared. ``fills`` and ``trades`` are of the kind that the offers were."""

    #: Worth of one (whole) of each asset, in ``price_in[asset]``; ``None`` if what it is offered for never comes back to it: it cannot trade.
    prices: dict[str, float | None]
    #: The asset in which each price is given: ``numeraire``, or the asset traded most, of each component.
    price_in: dict[str, str | None]
    #: Each asset's unit is ``10**-decimals``; 0 for all if amounts count units.
    decimals: dict[str, int]
    #: A row for each offer that trades, in the order of the offers: ``row`` (from 0), ``id`` (the row if there are no ids), ``kind``, ``sell``,
    #: ``buy``, ``sold``, ``bought``, ``remaining`` (to be sold; of kind ``buy``, to be bought; of a pool, its reserve of what it sold). With
    #: decimals, amounts are the floats nearest to the exact ``sold_units``, ``bought_units``, ``remaining_units`` next to them.
    fills: TableT
    #: A row for each pair that trades, pools included: ``sell``, ``buy``, ``sold``, ``bought``, ``rate`` (bought for each sold, after commission,
    #: before rounding), ``fill_count``; with decimals, ``sold_units`` and ``bought_units`` too.
    trades: TableT
    #: What the clearing is worth.
    quality: Quality
    #: The commission.
    eps: float

    def rate(self, sell: str, buy: str) -> float | None:
        """What one ``sell`` buys of ``buy`` after commission; ``None`` without prices, or between components.

        Raises ``ValueError`` for an asset that no offer names.
        """
        for asset in (sell, buy):
            if asset not in self.prices:
                raise ValueError(f"{asset!r}: no offer names this asset; give one of `prices`")
        sell_price, buy_price = self.prices[sell], self.prices[buy]
        if sell_price is None or buy_price is None or self.price_in[sell] != self.price_in[buy]:
            return None
        return sell_price / buy_price * (1 - self.eps)


@overload
def clear(
    offers: Sequence[Mapping[str, Any]],
    *,
    eps: float = ...,
    mu: float = ...,
    decimals: int | Mapping[str, int] | None = ...,
    numeraire: str | None = ...,
    start: Mapping[str, float | None] | None = ...,
    solver: str = ...,
    queries: int = ...,
    deadline_s: float | None = ...,
    strict: bool = ...,
) -> Clearing[list[dict[str, Any]]]: ...
@overload
def clear(
    offers: Sequence[tuple[Any, ...]],
    *,
    eps: float = ...,
    mu: float = ...,
    decimals: int | Mapping[str, int] | None = ...,
    numeraire: str | None = ...,
    start: Mapping[str, float | None] | None = ...,
    solver: str = ...,
    queries: int = ...,
    deadline_s: float | None = ...,
    strict: bool = ...,
) -> Clearing[list[tuple[Any, ...]]]: ...
@overload
def clear(
    offers: FrameT,
    *,
    eps: float = ...,
    mu: float = ...,
    decimals: int | Mapping[str, int] | None = ...,
    numeraire: str | None = ...,
    start: Mapping[str, float | None] | None = ...,
    solver: str = ...,
    queries: int = ...,
    deadline_s: float | None = ...,
    strict: bool = ...,
) -> Clearing[FrameT]: ...
def clear(
    offers: Any,
    *,
    eps: float = 2**-15,
    mu: float = 2**-10,
    decimals: int | Mapping[str, int] | None = None,
    numeraire: str | None = None,
    start: Mapping[str, float | None] | None = None,
    solver: str = "portfolio",
    queries: int = 10_000,
    deadline_s: float | None = None,
    strict: bool = False,
) -> Clearing[Any]:
    """Clear a batch: one price per asset at which offers trade with each other, and what each of them trades.

    Parameters
    ----------
    offers
        A pandas or polars DataFrame, a pyarrow Table, a list of dicts, or a list of tuples (see :class:`Offer`). Columns:

        - ``sell``, ``buy``: names of the asset sold and the asset bought.
        - ``amount``: how much is sold; of kind ``buy``, bought; of kind ``pool``, the reserve of ``sell``.
        - ``limit_price``: the least that is bought for each sold, or ``"market"`` to trade at any rate. Empty only for pools
          and for offers of kind ``buy`` with ``sell_max``.
        - ``id`` (optional): any value, passed on to the fills.
        - ``kind`` (optional): ``sell`` (default) sells a fixed amount, ``buy`` buys one, ``pool`` is a constant-product market maker.
        - ``sell_max`` (optional): of kind ``buy``, the most that it may sell; needed without a limit.
        - ``buy_reserve``, ``fee_ppm`` (optional): of kind ``pool``, the reserve of ``buy``, and the fee in parts per million.

        Other columns are ignored. Numbers may be int, float, ``Decimal`` or text; a float counts as the shortest decimal that prints it.
        A limit that is no exact ratio of units is rounded so that it is never worse than stated; nothing else is rounded on the way in.
    eps
        The commission: this share of what each fill buys stays with the venue. ``0`` or ``2**-k``, k from 1 to 30.
    mu
        An offer whose limit is better than the rate by more than this share must trade in full. ``2**-k``, k from 1 to 30.
    decimals
        Of every asset, or by asset: amounts are exact multiples of ``10**-decimals``, at most 18. For those not given: 0 if all amounts of
        the batch are whole numbers (they count units), else 8, or as many as the asset's amounts need, or fewer than 8 where there would be
        nearly 2**63 units. The result says what was used.
    numeraire
        The asset that prices and values are given in; without it, the asset traded most.
    start
        Prices to start from, such as ``prices`` of the last batch. Cold without.
    solver, queries, deadline_s
        How prices are searched (``portfolio``, ``newton``, ``tatonnement``), with how many demand queries, and for how many seconds at most.
        Without a deadline the same offers give the same clearing, on any machine.
    strict
        Fail where offers that must trade cannot all trade in full, instead of reporting it in ``quality.pairs_below_count``.

    Raises
    ------
    ValueError
        What is wrong, with its row (from 0) and column, and what to do. Nothing is cleared then.
    TypeError
        ``offers`` is none of the kinds above.

    Other threads run while the batch is cleared; Ctrl-C stops it.

    >>> cleared = clear([("BTC", "USD", 2, 29_500), ("USD", "BTC", 60_000, "0.00003")], numeraire="USD")
    >>> 29_500 <= cleared.prices["BTC"] <= 33_334
    True
    """
    table = _Table.of(offers)
    options = {
        "eps_exponent": None if eps == 0 else _exponent("eps", eps, "0, or 2**-k with k from 1 to 30"),
        "mu_exponent": _exponent("mu", mu, "2**-k with k from 1 to 30"),
        "decimals": _checked_decimals("every asset", decimals) if isinstance(decimals, int) else None,
        "decimals_of": {name: _checked_decimals(name, of) for name, of in decimals.items()} if isinstance(decimals, Mapping) else {},
        "start": None if start is None else {name: float(price) for name, price in start.items() if price is not None},
        "solver": solver,
        "queries": _whole("queries", queries),
        "deadline_s": deadline_s,
        "strict": bool(strict),
    }
    if deadline_s is not None and not 0 <= deadline_s < math.inf:
        raise ValueError(f"deadline_s: {deadline_s!r} is no time: give seconds from 0 up, or None")
    if decimals is not None and not isinstance(decimals, (int, Mapping)):
        raise ValueError(f"decimals: {decimals!r}: give a whole number from 0 to 18, or one by asset")
    columns = {name: values for name, values in table.columns.items() if name != "id"}
    return _result(_native.clear_columns(columns, options), table, eps, numeraire)


def _exponent(name: str, value: float, allowed: str) -> int:
    fraction, exponent = math.frexp(value) if isinstance(value, (int, float)) else (0.0, 0)
    # value == fraction * 2**exponent, with a fraction of one half for powers of two.
    if fraction == 0.5 and 1 <= 1 - exponent <= _EXPONENT_MAX:
        return 1 - exponent
    hint = ""
    if isinstance(value, (int, float)) and 0 < value < 1:
        hint = f"; the nearest is 2**-{min(max(round(-math.log2(value)), 1), _EXPONENT_MAX)}"
    raise ValueError(f"{name}: {value!r} is not allowed: give {allowed}{hint}")


def _checked_decimals(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 18:
        raise ValueError(f"decimals: {value!r} for {name}: give a whole number from 0 to 18")
    return value


def _whole(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"{name}: {value!r}: give a whole number from 0 up")
    return value


@dataclass(frozen=True)
class _Table:
    """Offers by column, and how to make a table of the same kind."""

    columns: _Columns
    row_count: int
    like: Callable[[_Columns], Any]

    @staticmethod
    def of(offers: Any) -> _Table:
        modules = {cls.__module__.split(".")[0] for cls in type(offers).__mro__}
        if "pandas" in modules and hasattr(offers, "columns"):
            values = lambda name: offers[name].tolist()  # noqa: E731
            return _Table._of_frame(offers, [str(name) for name in offers.columns], values, sys.modules["pandas"].DataFrame)
        if "polars" in modules and hasattr(offers, "columns"):
            values = lambda name: offers[name].to_list()  # noqa: E731
            return _Table._of_frame(offers, list(offers.columns), values, sys.modules["polars"].DataFrame)
        if "pyarrow" in modules and hasattr(offers, "column_names"):
            values = lambda name: offers.column(name).to_pylist()  # noqa: E731
            return _Table._of_frame(offers, list(offers.column_names), values, sys.modules["pyarrow"].table)
        if isinstance(offers, Sequence) and not isinstance(offers, (str, bytes)):
            return _Table._of_rows(offers)
        raise TypeError(
            f"offers: {type(offers).__name__} is not known: give a pandas or polars DataFrame (collect a LazyFrame first), "
            "a pyarrow Table, a list of dicts or a list of tuples"
        )

    @staticmethod
    def _of_frame(offers: Any, names: list[str], values: Callable[[str], list[Any]], like: Callable[[_Columns], Any]) -> _Table:
        row_count = int(offers.shape[0])
        missing = [name for name in _REQUIRED if name not in names]
        if missing and row_count > 0:
            raise ValueError(f"column {missing[0]} is missing: offers need {', '.join(_REQUIRED)}; these are {', '.join(names)}")
        twice = [name for name in _COLUMNS if names.count(name) > 1]
        if twice:
            raise ValueError(f"column {twice[0]} is there more than once: rename or drop one of them")
        return _Table({name: values(name) for name in _COLUMNS if name in names}, row_count, like)

    @staticmethod
    def _of_rows(offers: Sequence[Any]) -> _Table:
        columns: _Columns = {name: [] for name in _COLUMNS}
        is_of_tuples = bool(offers) and isinstance(offers[0], tuple)
        for row_number, row in enumerate(offers):
            if is_of_tuples and isinstance(row, tuple):
                if not len(_REQUIRED) <= len(row) <= len(_COLUMNS):
                    raise ValueError(f"row {row_number} has {len(row)} values: give {len(_REQUIRED)} to {len(_COLUMNS)}: {', '.join(_COLUMNS)}")
                for place, name in enumerate(_COLUMNS):
                    columns[name].append(row[place] if place < len(row) else None)
            elif not is_of_tuples and isinstance(row, Mapping):
                for name in _COLUMNS:
                    columns[name].append(row.get(name))
            else:
                raise ValueError(f"row {row_number} is a {type(row).__name__}: make all rows dicts, or all of them tuples")
        if all(value is None for value in columns["id"]):
            del columns["id"]
        return _Table(columns, len(offers), _tuples if is_of_tuples else _dicts)


def _dicts(columns: _Columns) -> list[dict[str, Any]]:
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def _tuples(columns: _Columns) -> list[tuple[Any, ...]]:
    # One class for each set of columns: fields are read by name, and it is a tuple all the same.
    from collections import namedtuple

    row_type = namedtuple("Row", list(columns))  # type: ignore[misc]
    return [row_type(*row) for row in zip(*columns.values())]


def _result(native: dict[str, Any], table: _Table, eps: float, numeraire: str | None) -> Clearing[Any]:
    assets: list[str] = native["assets"]
    decimals: list[int] = native["decimals"]
    worths: list[float | None] = native["worths"]
    if numeraire is not None and numeraire not in assets and assets:
        raise ValueError(f"numeraire: no offer names {numeraire!r}: give one of the assets, or leave it out")
    counts_units = not any(decimals)
    fills, trades = native["fills"], native["trades"]
    numeraires, unit = _numeraires(native, assets, decimals, numeraire)

    def amounts(units: list[int], of: list[int]) -> list[Any]:
        # A quotient of whole numbers is the nearest float.
        return units if counts_units else [amount / 10 ** decimals[asset] for amount, asset in zip(units, of)]

    def exact(**columns: list[int]) -> _Columns:
        return {} if counts_units else dict(columns)

    def names(of: list[int]) -> list[str]:
        return [assets[asset] for asset in of]

    rows: list[int] = fills["row"]
    ids = table.columns.get("id")
    # What a buy offer still wants is of the asset it buys.
    remaining_of = [buy if kind == "buy" else sell for kind, sell, buy in zip(fills["kind"], fills["sell"], fills["buy"])]
    fill_columns: _Columns = {
        "row": rows,
        "id": rows if ids is None else [ids[row] for row in rows],
        "kind": fills["kind"],
        "sell": names(fills["sell"]),
        "buy": names(fills["buy"]),
        "sold": amounts(fills["sold"], fills["sell"]),
        "bought": amounts(fills["bought"], fills["buy"]),
        "remaining": amounts(fills["remaining"], remaining_of),
        **exact(sold_units=fills["sold"], bought_units=fills["bought"], remaining_units=fills["remaining"]),
    }
    rates = [(worths[sell] or math.nan) / (worths[buy] or math.nan) * (1 - eps) for sell, buy in zip(trades["sell"], trades["buy"])]
    trade_columns: _Columns = {
        "sell": names(trades["sell"]),
        "buy": names(trades["buy"]),
        "sold": amounts(trades["sold"], trades["sell"]),
        "bought": amounts(trades["bought"], trades["buy"]),
        "rate": rates,
        "fill_count": trades["fill_count"],
        **exact(sold_units=trades["sold"], bought_units=trades["bought"]),
    }

    def price(asset: int) -> float | None:
        worth, of = worths[asset], numeraires[asset]
        return None if worth is None or of is None else worth / (worths[of] or math.nan)

    unit_worth = 1.0 if unit is None else (worths[unit] or math.nan)
    report = dict(native["report"])
    for value in ("volume", "realised_utility", "unrealised_utility", "buy_realised_utility", "buy_unrealised_utility", "kept_value"):
        report[value] /= unit_worth
    kept = dict(zip(assets, amounts(native["kept"], list(range(len(assets))))))
    return Clearing(
        prices={name: price(asset) for asset, name in enumerate(assets)},
        price_in={name: None if of is None else assets[of] for name, of in zip(assets, numeraires)},
        decimals=dict(zip(assets, decimals)),
        fills=table.like(fill_columns),
        trades=table.like(trade_columns),
        quality=Quality(**report, unit=None if unit is None else assets[unit], kept=kept),
        eps=eps,
    )


def _numeraires(
    native: dict[str, Any], assets: list[str], decimals: list[int], asked: str | None
) -> tuple[list[int | None], int | None]:
    """The asset in which each asset's price is given, and the one for values: the one asked for, or of each component the one sold most."""
    worths: list[float | None] = native["worths"]
    components: list[int | None] = native["components"]
    value = [0.0] * len(assets)
    for sell, sold in zip(native["trades"]["sell"], native["trades"]["sold"]):
        value[sell] += sold / 10 ** decimals[sell] * (worths[sell] or 0.0)
    best: dict[int, int] = {}
    for asset, component in enumerate(components):
        if component is not None and (component not in best or value[asset] > value[best[component]]):
            best[component] = asset
    place = assets.index(asked) if asked in assets else None
    asked_component = None if place is None else components[place]
    if place is not None and asked_component is not None:
        best[asked_component] = place
        unit: int | None = place
    else:
        unit = max(best.values(), key=lambda asset: value[asset], default=None)
    return [None if component is None else best[component] for component in components], unit
