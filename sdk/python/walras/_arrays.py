"""Arrays of orders and of what came of them: dtypes, and frames and dicts of columns as rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from walras import _native

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: What a row asks, by its number. The ``trigger`` of a trailing stop is its distance, in ticks or in millionths of the price (``_ppm``).
KINDS = (
    "limit", "market", "cancel", "amend", "stop", "stop_limit", "mass_cancel", "tick", "take_profit", "take_profit_limit",
    "trailing_stop", "trailing_stop_limit", "trailing_stop_ppm", "trailing_stop_limit_ppm",
)
SIDES = ("buy", "sell")
#: Times in force: until cancelled, day, until ``expires_ns``, immediate or cancel, fill or kill.
TIMES = ("gtc", "day", "gtd", "ioc", "fok")
POST_ONLY = ("off", "reject", "reprice")
SELF_TRADE = ("cancel_newest", "cancel_oldest", "cancel_both", "decrement", "allow")
#: What an event says, by its number; 255 is none of these.
EVENT_KINDS = (
    "rejected",
    "accepted",
    "amended",
    "traded",
    "cancelled",
    "reduced",
    "replenished",
    "triggered",
    "phase_changed",
    "uncrossed",
)
NAMES: dict[str, tuple[str, ...]] = {
    "kind": KINDS,
    "side": SIDES,
    "tif": TIMES,
    "post_only": POST_ONLY,
    "self_trade": SELF_TRADE,
}

_ORDER: list[tuple[str, str]] = [
    ("time_ns", "<u8"),
    ("client_order_id", "<u8"),
    ("price", "<i8"),
    ("size", "<u8"),
    ("trigger", "<i8"),
    ("expires_ns", "<u8"),
    ("peak", "<u8"),
    ("min_size", "<u8"),
    ("account", "<u4"),
    ("instrument", "<u4"),
    ("kind", "u1"),
    ("side", "u1"),
    ("tif", "u1"),
    ("post_only", "u1"),
    ("self_trade", "u1"),
    ("hidden", "u1"),
]
_OUTCOME: list[tuple[str, str]] = [
    ("order_id", "<u8"),
    ("filled", "<u8"),
    ("open", "<u8"),
    ("trade_count", "<u4"),
    ("code", "<u4"),
]
_TRADE: list[tuple[str, str]] = [
    ("row", "<u8"),
    ("time_ns", "<u8"),
    ("trade_id", "<u8"),
    ("price", "<i8"),
    ("size", "<u8"),
    ("maker_order_id", "<u8"),
    ("taker_order_id", "<u8"),
    ("maker_client_order_id", "<u8"),
    ("taker_client_order_id", "<u8"),
    ("maker_open", "<u8"),
    ("taker_open", "<u8"),
    ("maker_fee", "<i8"),
    ("taker_fee", "<i8"),
    ("instrument", "<u4"),
    ("maker_account", "<u4"),
    ("taker_account", "<u4"),
    ("taker_side", "u1"),
]
_EVENT: list[tuple[str, str]] = [
    ("row", "<u8"),
    ("time_ns", "<u8"),
    ("order_id", "<u8"),
    ("client_order_id", "<u8"),
    ("price", "<i8"),
    ("size", "<u8"),
    ("open", "<u8"),
    ("shown", "<u8"),
    ("instrument", "<u4"),
    ("account", "<u4"),
    ("reason", "<u4"),
    ("kind", "u1"),
    ("side", "u1"),
]
_BEST: list[tuple[str, str]] = [("bid", "<i8"), ("bid_size", "<u8"), ("ask", "<i8"), ("ask_size", "<u8")]

_FIELDS = {"ORDER": _ORDER, "OUTCOME": _OUTCOME, "TRADE": _TRADE, "EVENT": _EVENT, "BEST": _BEST}
_BYTES = dict(zip(_FIELDS, _native.layout()))
_dtypes: dict[str, np.dtype[Any]] = {}
#: Every whole number up to here is a float; of larger ones two may be the same.
_EXACT_MAX = 2**53


def numpy() -> Any:
    """numpy, or an error that says how to get it."""
    try:
        import numpy
    except ImportError as error:
        raise ImportError("arrays need numpy: pip install numpy") from error
    return numpy


def dtype(name: str) -> np.dtype[Any]:
    """The dtype of rows of this kind: ``ORDER``, ``OUTCOME``, ``TRADE``, ``EVENT`` or ``BEST``. Rows are as the native part reads them."""
    found = _dtypes.get(name)
    if found is None:
        fields = _FIELDS[name]
        names = [field for field, _ in fields]
        formats = [form for _, form in fields]
        ends, offsets = 0, []
        for form in formats:
            offsets.append(ends)
            ends += int(form[-1])
        assert ends <= _BYTES[name], f"the fields of {name} do not fit their row"
        found = numpy().dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": _BYTES[name]})
        _dtypes[name] = found
    return found


def rows(name: str, data: bytearray) -> NDArray[Any]:
    """Bytes as an array that may be written."""
    result: NDArray[Any] = numpy().frombuffer(data, dtype=dtype(name))
    return result


def _column(frame: Any, name: str) -> Any:
    """A column of a dict, a structured array, a pandas or polars frame or an Arrow table, as an array."""
    column = frame[name] if not hasattr(frame, "column") or not hasattr(frame, "combine_chunks") else frame.column(name)
    to_numpy = getattr(column, "to_numpy", None)
    if to_numpy is not None and getattr(getattr(column, "dtype", None), "tz", None) is not None:
        # pandas makes objects of times with a zone, unless it is asked for UTC.
        return to_numpy(dtype="datetime64[ns]")
    return to_numpy() if to_numpy is not None else column


def _names(frame: Any) -> list[str]:
    if isinstance(frame, Mapping):
        return [str(name) for name in frame]
    if getattr(frame, "dtype", None) is not None and frame.dtype.names is not None:
        return list(frame.dtype.names)
    if hasattr(frame, "column_names"):
        return list(frame.column_names)
    if hasattr(frame, "columns"):
        return [str(name) for name in frame.columns]
    raise TypeError(f"orders: {type(frame).__name__} has no named columns: give a structured array, a dict of columns, or a frame")


def _numbers(name: str, column: Any, ids: dict[str, int] | None) -> Any:
    """A column of names as one of numbers; one of floats is refused where it holds a fraction."""
    np = numpy()
    array = np.asarray(column)
    if array.dtype.kind in "OUST":
        table = {text: number for number, text in enumerate(NAMES.get(name, ()))} if ids is None else ids
        values, places = np.unique(array.astype(str), return_inverse=True)
        unknown = [str(value) for value in values if str(value) not in table and not str(value).isdecimal()]
        if unknown:
            raise ValueError(f"orders, column {name}: {unknown[0]!r} is none: give a number, or one of {', '.join(sorted(table))}")
        numbers = np.array([table.get(str(value), int(value) if str(value).isdecimal() else 0) for value in values])
        return numbers[places].reshape(array.shape)
    if array.dtype.kind == "f":
        if not (np.isfinite(array) & (array == np.floor(array))).all():
            raise ValueError(f"orders, column {name}: whole numbers of ticks or lots are expected, and it has others: round them yourself")
        if (np.abs(array.astype(np.float64)) > _EXACT_MAX).any():
            raise ValueError(f"orders, column {name}: floats above 2^53 have lost digits: give integers")
        return array.astype(np.int64)
    if array.dtype.kind in "Mm":
        return array.astype(f"{array.dtype.kind}8[ns]").astype(np.int64)
    return array


def orders(frame: Any, instruments: dict[str, int]) -> NDArray[Any]:
    """Orders as rows of ``ORDER``: columns that are not given have the defaults of a plain limit order, which are all 0."""
    np, wanted = numpy(), dtype("ORDER")
    if isinstance(frame, np.ndarray) and frame.dtype == wanted:
        result: NDArray[Any] = np.ascontiguousarray(frame)
        return result
    names = _names(frame)
    known = {name for name, _ in _ORDER}
    for name in names:
        if name not in known:
            raise ValueError(f"orders: {name!r} is no column: give some of {', '.join(name for name, _ in _ORDER)}")
    columns = {name: _numbers(name, _column(frame, name), instruments if name == "instrument" else None) for name in names}
    lengths = {name: len(column) for name, column in columns.items() if np.ndim(column) > 0}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"orders: columns differ in length: {lengths}")
    # Values that are all single ones are one order.
    array: NDArray[Any] = np.zeros(next(iter(lengths.values()), min(len(columns), 1)), dtype=wanted)
    for name, column in columns.items():
        field = array[name]
        # A value that does not fit its field is an error, not another value.
        if np.size(column) and field.dtype.kind == "u" and np.min(column) < 0:
            raise ValueError(f"orders, column {name}: {np.min(column)} is negative")
        if np.size(column) and np.max(column) > np.iinfo(field.dtype).max:
            raise ValueError(f"orders, column {name}: {np.max(column)} is larger than {np.iinfo(field.dtype).max}")
        field[:] = column
    return array


def frame(rows: Any, library: str = "pandas") -> Any:
    """Rows as a data frame of ``pandas``, ``polars`` or ``pyarrow`` (a table): an array of :meth:`walras.Venue.run`, or a list of dicts such as
    the answers of :class:`walras.Client` (quantities stay exact text) or of ``agents.study``.

    In an array's frame ``kind``, ``side``, ``taker_side`` and ``code`` stay numbers: ``walras.EVENT_KINDS`` and ``walras.SIDES`` have the names.
    """
    if getattr(getattr(rows, "dtype", None), "names", None) is not None:
        columns = {name: numpy().ascontiguousarray(rows[name]) for name in rows.dtype.names}
    else:
        listed = [row if isinstance(row, Mapping) else row._asdict() for row in rows]
        names = list(dict.fromkeys(name for row in listed for name in row))
        columns = {name: [row.get(name) for row in listed] for name in names}
    if library == "pandas":
        import pandas

        return pandas.DataFrame(columns)
    if library == "polars":
        import polars

        return polars.DataFrame(columns, strict=False)
    if library == "pyarrow":
        import pyarrow

        return pyarrow.table(columns)
    raise ValueError(f"library: {library!r} is none: give 'pandas', 'polars' or 'pyarrow'")
