"""The binary market-data feed of a running venue (docs/market-data-feed.md): every order, every entry of the log, by UDP.

A reader is a receiver of the venue's relay tree: the tree's file lists its address, and it needs the tree's key. Messages come in
order, each once, whatever datagrams are lost, doubled or reordered. A reader asks for what it misses, and one that begins late starts
from a snapshot.

>>> from walras import feed
>>> hex(feed.by_order(5)), hex(feed.batches(7))
('0x1000005', '0x4000007')
"""

from __future__ import annotations

import asyncio
import importlib
import pathlib
import socket
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from walras import _native

_DATAGRAM_BYTES = 2_048
#: Bytes that the system holds for a reader that is busy.
_SOCKET_BYTES = 1 << 23
_LOOK_S = 0.05
_Feed = TypeVar("_Feed", bound="Feed")


def by_order(instrument: int) -> int:
    """The channel of every displayed order of an instrument."""
    return 0x0100_0000 | instrument


def by_level(instrument: int) -> int:
    """The channel of an instrument's price levels."""
    return 0x0200_0000 | instrument


def top(instrument: int) -> int:
    """The channel of an instrument's best bid and ask."""
    return 0x0300_0000 | instrument


def batches(market: int) -> int:
    """The channel of a batch market's blocks."""
    return 0x0400_0000 | market


@dataclass(frozen=True)
class Message:
    """A message of the feed. ``fields`` are those of docs/market-data-feed.md: integers in ticks, lots and nanoseconds."""

    channel: int
    #: Such as ``OrderAdded`` or ``Traded``. ``SnapshotTaken``, without fields, says that the copy was just made from a snapshot.
    name: str
    #: Whether it is the last one of its log entry: the channel's copy is then one that the venue had.
    is_last: bool
    log_index: int
    #: The log entry's time.
    time_ns: int
    #: When it may be used, where the venue holds market data; 0 for at once.
    release_ns: int
    fields: dict[str, Any]


class Level(NamedTuple):
    """A price in ticks, the lots that it shows, and by how many orders."""

    price: int
    shown: int
    orders: int


class Order(NamedTuple):
    """A displayed order: its number, whether it buys, its price in ticks and the lots that it shows."""

    order_id: int
    buys: bool
    price: int
    shown: int


class Reader:
    """Channels of the feed without a socket: datagrams in, messages and requests out. For a host with sockets of its own."""

    def __init__(
        self, channels: Iterable[int], key: bytes, *, tree: int = 0, trees: int = 1, can_ask: bool = True, from_the_start: bool = False
    ) -> None:
        self.channels = list(channels)
        self._native = _native.FeedReader(key, tree, trees, can_ask)
        for channel in self.channels:
            self._native.read(channel, from_the_start)

    def datagram(self, data: bytes, now_ns: int | None = None) -> list[Message]:
        """Takes a datagram; returns the messages that followed from it."""
        now_ns = time.monotonic_ns() if now_ns is None else now_ns
        return [Message(*taken) for taken in self._native.datagram(now_ns, data)]

    def requests(self, now_ns: int | None = None) -> list[bytes]:
        """Requests for missed messages, to be sent to the venue or a gateway at once; none before a gap has lasted for 0.3 ms.

        They carry the time of day: the computer's clock must be right within ten seconds, or each request brings one packet at most.
        """
        return list(self._native.requests(time.monotonic_ns() if now_ns is None else now_ns, time.time_ns()))

    @property
    def wake_ns(self) -> int | None:
        """When :meth:`requests` may have something, by the clock of ``now_ns``; ``None`` while nothing is missing."""
        return self._native.wake_ns

    def is_live(self, channel: int) -> bool:
        """Whether the channel's copy is one that the venue had: neither waiting for a snapshot nor within a log entry."""
        return self._native.is_live(channel)

    def levels(self, channel: int, depth: int = 1 << 32) -> tuple[list[Level], list[Level]] | None:
        """Bids and asks, best first; ``None`` while the channel waits for a snapshot."""
        found = self._native.levels(channel, depth)
        return None if found is None else ([Level(*row) for row in found[0]], [Level(*row) for row in found[1]])

    def orders(self, channel: int) -> list[Order] | None:
        """Every displayed order of a channel by order, those at one price in their order of execution.

        ``None`` while the channel waits for a snapshot.
        """
        found = self._native.orders(channel)
        return None if found is None else [Order(*row) for row in found]

    def error(self, channel: int) -> str | None:
        """Why the channel's copy was last given up; the next snapshot replaces it."""
        return self._native.error(channel)

    def counts(self, channel: int) -> dict[str, int]:
        """Messages ``read``, further ``copies`` of them, those ``dropped`` for want of room, requests (``asked``), ``forged`` datagrams.

        A forged datagram has no seal of the tree. They are counted for all channels together.
        """
        read, copies, dropped, asked = self._native.counts(channel)
        return {"read": read, "copies": copies, "dropped": dropped, "asked": asked, "forged": self._native.forged}


def _toml() -> Any:
    """What reads TOML: of the standard library from Python 3.11 on, else the package tomli."""
    for name in ("tomllib", "tomli"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise RuntimeError("reading a tree's file needs Python 3.11, or pip install tomli; or give tree=(number, key) instead")


def tree_of(file: str | pathlib.Path) -> tuple[int, bytes]:
    """Number and key of a tree's file (docs/relays.md). Before Python 3.11 it needs the package tomli."""
    path = pathlib.Path(file)
    content = _toml().loads(path.read_text(encoding="utf-8"))
    if "key_file" not in content:
        raise ValueError(f"{path}: no key_file in it: give the file of a relay tree, as docs/relays.md shows it")
    key = bytes.fromhex((path.parent / content["key_file"]).read_text(encoding="ascii").strip())
    return int(content.get("tree", 0)), key


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"{text!r} is no address: give one such as 127.0.0.1:7401")
    return host.strip("[]"), int(port)


class Feed(Reader):
    """Channels on a socket: iterate over it for messages.

    ``listen`` is this receiver's address as the tree's file has it. ``tree`` is that file, or the tree's number and key. ``ask`` is
    where the venue or a gateway takes requests for missed messages (``[feed] requests``). Without it, the next snapshot closes a gap.

    >>> with feed.Feed("127.0.0.1:7501", "tree.toml", [feed.by_order(0)], ask="127.0.0.1:7410") as books:   # doctest: +SKIP
    ...     for message in books:
    ...         print(message.name, message.fields, books.levels(message.channel, 1))
    """

    def __init__(
        self,
        listen: str,
        tree: str | pathlib.Path | tuple[int, bytes],
        channels: Iterable[int],
        *,
        ask: str | None = None,
        trees: int = 1,
        from_the_start: bool = False,
    ) -> None:
        number, key = tree if isinstance(tree, tuple) else tree_of(tree)
        super().__init__(channels, key, tree=number, trees=trees, can_ask=ask is not None, from_the_start=from_the_start)
        self._ask = None if ask is None else _address(ask)
        host, port = _address(listen)
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BYTES)
        self._socket.bind((host, port))

    @property
    def address(self) -> str:
        """Where it listens."""
        host, port = self._socket.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def __enter__(self: _Feed) -> _Feed:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

    def _send_requests(self) -> None:
        if self._ask is not None:
            for request in self.requests():
                self._socket.sendto(request, self._ask)

    def _pause_s(self) -> float:
        wake_ns = self.wake_ns
        return _LOOK_S if wake_ns is None else min(max((wake_ns - time.monotonic_ns()) / 1e9, 1e-4), _LOOK_S)

    def receive(self, timeout_s: float | None = None) -> list[Message]:
        """The next messages; ``TimeoutError`` where none come within ``timeout_s``."""
        ends = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            self._socket.settimeout(self._pause_s())
            try:
                messages = self.datagram(self._socket.recv(_DATAGRAM_BYTES))
            except socket.timeout:  # TimeoutError from Python 3.10 on
                messages = []
            self._send_requests()
            if messages:
                return messages
            if ends is not None and time.monotonic() >= ends:
                raise TimeoutError(f"no message within {timeout_s} s: is {self.address} a receiver of the tree, and the venue up?")

    def __iter__(self) -> Iterator[Message]:
        while True:
            yield from self.receive()


class AsyncFeed(Feed):
    """:class:`Feed` for asyncio: ``async for message in feed``."""

    async def next(self) -> list[Message]:
        """The next messages."""
        loop = asyncio.get_running_loop()
        self._socket.setblocking(False)
        while True:
            try:
                data = await asyncio.wait_for(loop.sock_recv(self._socket, _DATAGRAM_BYTES), self._pause_s())
                messages = self.datagram(data)
            except asyncio.TimeoutError:
                messages = []
            self._send_requests()
            if messages:
                return messages

    async def __aiter__(self) -> AsyncIterator[Message]:
        while True:
            for message in await self.next():
                yield message
