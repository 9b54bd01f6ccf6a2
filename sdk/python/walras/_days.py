"""Recorded days that become rows of orders in Python: DBN with the schema mbo, and a venue's own archive, with its orders or without."""

from __future__ import annotations

import importlib
import json
import os
import pathlib
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from walras import _arrays
from walras._venue import Venue, _done

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAKERS, _TAKERS = 0, 1
_RICHES = 2**59
_LIMIT, _CANCEL, _AMEND = 0, 2, 3
_IOC = 3
_ALLOW = 4


@dataclass
class Day:
    """Rows of orders of two accounts, and what their ticks and lots are."""

    rows: NDArray[Any]
    tick_size: str
    lot_size: str
    first_ticks: int

    def prepare(self, venue: Venue, fees_ppm: tuple[int, int]) -> tuple[str, str]:
        """Sets up an empty venue: a tick of a lot is one unit of the quote."""
        venue.create_asset("BASE", 0)
        venue.create_asset("QUOTE", 0)
        widest = (1_000_000, 1_000_000)
        _done(venue._create_instrument("BASE/QUOTE", (0, 1), (1, 1), self.first_ticks, fees_ppm, widest, (0, 0, 1), None)[1])
        venue.set_phase(0, "continuous")
        for account in (_MAKERS, _TAKERS):
            venue.create_account()
            for asset in range(2):
                _done(venue._transfer(True, account, asset, _RICHES, None))
        return self.tick_size, self.lot_size


class _Rows:
    """Columns of rows that are still added to."""

    def __init__(self) -> None:
        self.columns: dict[str, list[int]] = {
            name: [] for name in ("time_ns", "client_order_id", "price", "size", "account", "kind", "side", "tif", "self_trade")
        }

    def add(self, at: int, account: int, kind: int, name: int, side: int = 0, price: int = 0, size: int = 0, tif: int = 0) -> None:
        for column, value in zip(self.columns.values(), (at, name, price, size, account, kind, side, tif, _ALLOW)):
            column.append(value)

    def array(self) -> NDArray[Any]:
        return _arrays.orders(self.columns, {})


def archive(folder: pathlib.Path, instrument: str | None) -> Day:
    """A day's folder of a venue's archive."""
    listed = json.loads((folder / "instruments.json").read_text())
    names = {row["symbol"].replace("/", "-"): row for row in listed}
    wanted = instrument.replace("/", "-") if instrument is not None else next(iter(names)) if len(names) == 1 else None
    if wanted is None or wanted not in names:
        raise ValueError(f"{folder}: instrument {instrument!r} is none of this day: give one of {', '.join(sorted(names))}")
    spec = names[wanted]
    by_order = sorted(folder.glob(f"{wanted}.*.mbo.dbn*"))
    if by_order:
        # Every displayed order, as it was.
        return replace(dbn(by_order[0], None, str(spec["tick"])), lot_size=str(spec["lot"]))
    (trades_file,) = folder.glob(f"{wanted}.*.trades.parquet")
    (books_file,) = folder.glob(f"{wanted}.*.books.parquet")
    trades = _parquet(trades_file, ["time_ns", "log_index", "taker_side", "price_ticks", "size_lots"])
    books = _parquet(books_file, ["time_ns", "log_index", "side", "price_ticks", "size_lots"])
    events: list[tuple[int, int, Any]] = []
    for at, index, side, ticks, lots in zip(*trades):
        if side != "none":
            # A trade comes before the picture that the same entry left.
            events.append((index, 0, (at, 0 if side == "buy" else 1, ticks, lots)))
    pictures: dict[int, tuple[int, dict[tuple[int, int], int]]] = {}
    for at, index, side, ticks, lots in zip(*books):
        pictures.setdefault(index, (at, {}))[1][(0 if side == "buy" else 1, ticks)] = lots
    events += [(index, 1, picture) for index, picture in pictures.items()]
    rows, name = _Rows(), 0
    #: The orders that stand for each level, first in the queue first: name and size.
    standing: dict[tuple[int, int], list[list[int]]] = {}
    for _, kind, what in sorted(events, key=lambda event: event[:2]):
        if kind == 0:
            at, side, ticks, lots = what
            name += 1
            rows.add(at, _TAKERS, _LIMIT, name, side, ticks, lots, _IOC)
            reached = [level for level in standing if level[0] == 1 - side and (level[1] <= ticks if side == 0 else level[1] >= ticks)]
            for level in sorted(reached, key=lambda level: level[1], reverse=side == 1):
                lots = _taken(standing[level], lots)
                if not standing[level]:
                    del standing[level]
            continue
        at, levels = what
        for level in [level for level in standing if level not in levels]:
            for of, _ in standing.pop(level):
                rows.add(at, _MAKERS, _CANCEL, of)
        for level, lots in levels.items():
            queue = standing.setdefault(level, [])
            more = lots - sum(size for _, size in queue)
            if more > 0:
                # What stood keeps its place.
                name += 1
                queue.append([name, more])
                rows.add(at, _MAKERS, _LIMIT, name, level[0], level[1], more)
            while more < 0:
                # The last to come is taken to be the first to go: so nobody moves up in a queue by a guess.
                of, size = queue.pop()
                if size <= -more:
                    rows.add(at, _MAKERS, _CANCEL, of)
                else:
                    queue.append([of, size + more])
                    rows.add(at, _MAKERS, _AMEND, of, size=size + more)
                more += size if size <= -more else -more
    if not events:
        raise ValueError(f"{folder}: {wanted} has neither trades nor books that day: choose another day")
    prices = books[3] or trades[3]
    return Day(rows.array(), str(spec["tick"]), str(spec["lot"]), int(prices[0]))


def _taken(queue: list[list[int]], lots: int) -> int:
    """Takes lots from the front of a queue; how many are left."""
    while queue and lots:
        taken = min(lots, queue[0][1])
        queue[0][1] -= taken
        lots -= taken
        if queue[0][1] == 0:
            queue.pop(0)
    return lots


def _parquet(path: pathlib.Path, columns: list[str]) -> list[list[Any]]:
    """Columns as lists; times in nanoseconds."""
    try:
        import polars

        frame = polars.read_parquet(path, columns=columns)
        times = frame["time_ns"].cast(polars.Int64)
        return [times.to_list() if name == "time_ns" else frame[name].to_list() for name in columns]
    except ImportError:
        pass
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("an archive's files need polars or pyarrow: pip install polars") from error
    table = pyarrow.parquet.read_table(path, columns=columns)
    return [
        table[name].cast(pyarrow.int64()).to_pylist() if name == "time_ns" else table[name].to_pylist() for name in columns
    ]


_MBO = 160
_UNDEFINED = 2**63 - 1
_ZSTD = b"\x28\xb5\x2f\xfd"


def dbn(path: str | os.PathLike[str], instrument: str | None, tick: str | None) -> Day:
    """A file of DBN (version 1 to 3, plain or compressed by zstd) with the schema mbo: every order of the book."""
    np = _arrays.numpy()
    data = pathlib.Path(path).read_bytes()
    if data[:4] == _ZSTD:
        data = _decompressed(path, data)
    if data[:3] != b"DBN" or len(data) < 8:
        raise ValueError(f"{path}: no file of DBN: it begins with {data[:8]!r}")
    if tick is None:
        raise ValueError(f"{path}: DBN does not say what a tick is: give tick=, such as tick='0.01'")
    begin = 8 + int.from_bytes(data[4:8], "little")
    record = np.dtype(
        [
            ("length", "u1"),
            ("rtype", "u1"),
            ("publisher", "<u2"),
            ("instrument", "<u4"),
            ("ts_event", "<u8"),
            ("order_id", "<u8"),
            ("price", "<i8"),
            ("size", "<u4"),
            ("flags", "u1"),
            ("channel", "u1"),
            ("action", "S1"),
            ("side", "S1"),
            ("ts_recv", "<u8"),
            ("ts_in_delta", "<i4"),
            ("sequence", "<u4"),
        ]
    )
    if data[begin : begin + 1] == b"\x10":
        # What was recorded live may say when it was sent, too.
        record = np.dtype([*record.descr, ("ts_out", "<u8")])
    if begin > len(data) or (len(data) - begin) % record.itemsize:
        raise ValueError(f"{path}: cut off, or not of the schema mbo alone: ask for that schema")
    records = np.frombuffer(data, dtype=record, offset=begin)
    if (records["rtype"] != _MBO).any() or (records["length"] != record.itemsize // 4).any():
        raise ValueError(f"{path}: has records of another schema than mbo: ask for that schema")
    numbers = np.unique(records["instrument"]).tolist()
    chosen = int(instrument) if instrument is not None else numbers[0] if len(numbers) == 1 else None
    if chosen not in numbers:
        raise ValueError(f"{path}: instrument {instrument!r} is none of this file: give one of {numbers[:20]}")
    records = records[records["instrument"] == chosen]
    return _from_mbo(path, records, tick)


def _decompressed(path: str | os.PathLike[str], data: bytes) -> bytes:
    """What zstd has compressed, in one frame or several."""
    try:
        # Of Python's own library, from 3.14 on.
        library: Any = importlib.import_module("compression.zstd")
        decompress = library.decompress
    except ImportError:
        try:
            library = importlib.import_module("zstandard")
        except ImportError as error:
            raise ImportError(f"{path} is compressed by zstd: pip install zstandard, or decompress it first (zstd -d)") from error
        decompress = _frames
    try:
        decompressed: bytes = decompress(data)
    except (library.ZstdError, EOFError) as error:
        raise ValueError(f"{path}: cut off, or damaged where it is compressed: {error}") from error
    return decompressed


def _frames(data: bytes) -> bytes:
    """All frames, by the package zstandard."""
    zstandard, parts = importlib.import_module("zstandard"), []
    while data:
        frame = zstandard.ZstdDecompressor().decompressobj()
        parts.append(frame.decompress(data))
        if not frame.eof:
            raise EOFError("a frame has no end")
        data = frame.unused_data
    return b"".join(parts)


def _from_mbo(path: str | os.PathLike[str], records: NDArray[np.void], tick: str) -> Day:
    step = Decimal(tick) * 10**9
    if step != int(step) or step <= 0:
        raise ValueError(f"tick: {tick!r} is no multiple of 0.000000001: give the price of a tick")
    rows, first, last = _Rows(), 0, 0
    #: Side, ticks and size of each order, and what trades have taken of it whose removal is still to be recorded.
    orders: dict[int, list[int]] = {}
    #: Whether somebody took in the last trade. In an auction nobody does: what its orders lost is taken off as the record says it.
    is_taken = True
    columns = [records[name].tolist() for name in ("ts_event", "order_id", "price", "size", "action", "side")]
    for number, (at, order, price, size, action, side_text) in enumerate(zip(*columns)):
        last = at = max(at, last)
        side = {b"B": 0, b"A": 1}.get(side_text, 2)
        if action in (b"A", b"M", b"T") and price != _UNDEFINED:
            ticks, off = divmod(price, int(step))
            if off or ticks < 1:
                raise ValueError(f"{path}: record {number}: price {Decimal(price) / 10**9} is no multiple of {tick}: give a finer tick")
            first = first or ticks
        if action == b"R":
            for of in orders:
                rows.add(at, _MAKERS, _CANCEL, of)
            orders.clear()
        elif action == b"A" and side < 2:
            orders[order] = [side, ticks, size, 0]
            rows.add(at, _MAKERS, _LIMIT, order, side, ticks, size)
        elif action == b"T":
            is_taken = side < 2
            if is_taken and size:
                # The one who took: it matches in our book, by our rules.
                rows.add(at, _TAKERS, _LIMIT, number + 1, side, ticks, size, _IOC)
        elif action == b"F" and order in orders and is_taken:
            orders[order][3] += size
        elif action == b"C" and order in orders:
            standing = orders[order]
            taken = min(size, standing[3])
            standing[3] -= taken
            standing[2] -= size
            if standing[2] <= 0:
                del orders[order]
            if size > taken:
                # What is left of it at the venue is what the record leaves.
                if standing[2] <= 0:
                    rows.add(at, _MAKERS, _CANCEL, order)
                else:
                    rows.add(at, _MAKERS, _AMEND, order, size=standing[2])
        elif action == b"M" and order in orders:
            standing = orders[order]
            is_same, is_left = standing[1] == ticks, size == standing[2] - standing[3]
            is_filled = is_same and standing[3] > 0 and is_left
            standing[1], standing[2], standing[3] = ticks, size, 0
            if not is_filled:
                # Otherwise it is what the trades have left of it.
                rows.add(at, _MAKERS, _AMEND, order, price=0 if is_same else ticks, size=size)
    if not first:
        raise ValueError(f"{path}: no order of that instrument has a price: choose another one")
    return Day(rows.array(), tick, "1", first)
