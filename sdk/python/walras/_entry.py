"""Binary order entry for asyncio: the sockets around ``walras._native.Session``, which has the protocol (docs/order-entry.md)."""

from __future__ import annotations

import asyncio
import collections
import os
import secrets
import ssl
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from walras import _native
from walras._rest import KeyLike, OrderName, key_of
from walras._venue import Exact, Refused

#: Reports that wait to be read; beyond that the oldest are dropped and counted.
_REPORTS_MAX = 1 << 16
#: Transactions of batch markets without results.
_TRANSACTIONS_MAX = 8_192
#: A host that says nothing, as one without power, is left for the next address after so long.
_CONNECT_S = 3.0


class Answer(NamedTuple):
    """What came of a command: it is in the log, at ``log_index``, which is also the ``order_id`` of an order that was entered."""

    session_seq: int
    log_index: int
    #: The log's time there; ``None`` where the venue answered again from memory.
    time_ns: int | None
    #: 0, or the number of the refusal.
    code: int


class Report(NamedTuple):
    """An execution report: what happened to the account. Numbered from 1 without gaps."""

    report_seq: int
    log_index: int
    time_ns: int
    event: _native.Event


class FrameAnswer(NamedTuple):
    """What came of a frame of transactions of a batch market."""

    #: Of each, in the frame's order: 0 for one that was collected, else the number of the refusal.
    codes: tuple[int, ...]
    #: The blocks that the first and the last collected one are for.
    blocks: tuple[int, int] | None
    #: How long to wait before those are sent again that were throttled (107).
    retry_after_ns: int | None


class SessionEnded(ConnectionError):
    """The session cannot go on; what it says tells why, and what became of commands without an answer."""


class WindowFull(RuntimeError):
    """As many commands wait for an answer as may: await some."""


class OrderEntry(asyncio.Protocol):
    """A session of binary order entry. It connects again by itself, to the same replica or another, and sends again what was not answered: each
    command takes effect once.

    ``addresses`` are ``host:port`` of one replica or of several. ``account`` is the key's. ``instruments`` (of ``Client.instruments``) lets
    :meth:`submit` take symbols and exact decimals; without them only ids, ticks and lots go. ``token`` names the session; a program that lost
    its list of unanswered commands takes a new one, as is done without it. ``reports``: ``None`` for none, ``-1`` for those that come from
    now on, or the number after which they are wanted. ``cancel_on_disconnect`` cancels all of the account's orders when the connection is lost.
    ``tls`` is a context of the module ``ssl``, for a venue whose port speaks TLS.

    Made and logged on by ``await client.order_entry()``, or by ``async with OrderEntry(...)``.
    """

    def __init__(
        self,
        addresses: str | Iterable[str],
        key: KeyLike,
        *,
        account: int,
        instruments: Iterable[Mapping[str, Any]] = (),
        token: int | None = None,
        cancel_on_disconnect: bool = False,
        reports: int | None = None,
        window: int = 1_024,
        answer_timeout_s: float = 10.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.account, self.tls, self.window = account, tls, window
        self.token = secrets.randbits(63) if token is None else token
        places = [addresses] if isinstance(addresses, str) else list(addresses)
        self._session = _native.Session(
            places, key_of(key), self.token, cancel_on_disconnect, reports, window, int(answer_timeout_s * 1e9), time.time_ns()
        )
        self._units = {row["symbol"]: (int(row["instrument_id"]), Decimal(row["tick_size"]), Decimal(row["lot_size"])) for row in instruments}
        self._units.update({symbol.replace("/", "-"): units for symbol, units in self._units.items()})
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._frames: dict[int, asyncio.Future[FrameAnswer]] = {}
        self._reports: collections.deque[Report] = collections.deque(maxlen=_REPORTS_MAX)
        self.reports_dropped = 0
        #: How many commands came later than the venue holds orders for (docs/fair-access.md).
        self.late_count = 0
        #: How often it logged on; more than 1 after a lost connection.
        self.logon_count = 0
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._is_flushing = False
        self._ended: SessionEnded | None = None
        # Two sessions of an account must not name orders alike, and they may begin at the same time.
        self._names = secrets.randbits(63)
        self._changed = asyncio.Event()

    # Its life.

    async def __aenter__(self) -> OrderEntry:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self, timeout_s: float = 30.0) -> None:
        """Connects and logs on; goes on trying for ``timeout_s``."""
        self._loop = asyncio.get_running_loop()
        self._step()
        try:
            await asyncio.wait_for(self._until(lambda: self._session.is_logged_on), timeout_s)
        except (asyncio.TimeoutError, TimeoutError):
            await self.close()
            raise TimeoutError(f"no logon within {timeout_s} s: is order entry at that address, and does the venue run?") from None

    async def close(self) -> None:
        """Logs out. The session stays open at the venue; commands without an answer may still take effect."""
        if self._ended is None:
            self._handle(self._session.log_out())
            self._flush()
            if self._transport is not None:
                try:
                    await asyncio.wait_for(self._until(lambda: self._ended is not None), 5.0)
                except (SessionEnded, asyncio.TimeoutError, TimeoutError):
                    pass
        self._end("the client logged out")
        if self._connecting is not None:
            self._connecting.cancel()
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.close()

    async def _until(self, is_so: Any) -> None:
        while not is_so():
            if self._ended is not None:
                raise self._ended
            self._changed.clear()
            await self._changed.wait()

    def _end(self, why: str) -> None:
        if self._ended is None:
            self._ended = SessionEnded(why)
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(SessionEnded(f"{self._ended}: this command may have taken effect, look at orders and fills"))
        frames, self._frames = self._frames, {}
        for frame in frames.values():
            if not frame.done():
                says = f"{self._ended}: these transactions may have been collected, look at GET /v1/transactions"
                frame.set_exception(SessionEnded(says))
        self._changed.set()

    @property
    def is_logged_on(self) -> bool:
        """Whether it is connected and logged on now."""
        return self._session.is_logged_on

    @property
    def unanswered_count(self) -> int:
        """How many commands wait for their answer."""
        return self._session.unanswered_count

    # What it does for the state machine: connect, carry bytes, wake it.

    def _step(self) -> None:
        wish = self._session.wish(time.time_ns())
        if wish == "":
            if self._transport is not None:
                self._transport.close()
        elif wish is not None:
            self._session.on_connecting()
            self._connecting = self._loop.create_task(self._connect(wish))
        self._arm()

    async def _connect(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        try:
            connecting = self._loop.create_connection(lambda: self, host.strip("[]"), int(port), ssl=self.tls)
            await asyncio.wait_for(connecting, _CONNECT_S)
        except (OSError, ValueError, asyncio.TimeoutError):
            # Of one that was there already, `connection_lost` comes.
            if self._transport is None:
                self._session.on_disconnected(time.time_ns())
                self._step()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ns = self._session.deadline_ns()
        if deadline_ns is not None and self._ended is None:
            self._timer = self._loop.call_later(max((deadline_ns - time.time_ns()) / 1e9, 0.0), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._handle(self._session.on_timer(time.time_ns()))
        self._flush()
        self._step()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Of asyncio's protocol."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._session.on_connected(time.time_ns(), os.urandom(32))
        self._arm()

    def data_received(self, data: bytes) -> None:
        """Of asyncio's protocol."""
        events = self._session.on_bytes(time.time_ns(), data)
        if events:
            self._handle(events)
        if self._frames:
            self._take_transactions()
        self._schedule()
        if self._session.wish(time.time_ns()) == "":
            self._flush()
            self._step()

    def connection_lost(self, exc: Exception | None) -> None:
        """Of asyncio's protocol."""
        self._transport = None
        self._session.on_disconnected(time.time_ns())
        if self._ended is None:
            self._step()

    def _schedule(self) -> None:
        # All that is sent in one turn of the loop is one write, and one seal.
        if not self._is_flushing:
            self._is_flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flushing = False
        if self._transport is not None:
            output = self._session.take_output()
            if output:
                self._transport.write(output)
        self._arm()

    def _handle(self, events: list[Any]) -> None:
        for name, number, log_index, at, code, more in events:
            if name == "answer":
                future = self._waiting.pop(number, None)
                if future is not None and not future.done():
                    future.set_result(Answer(number, log_index, at, code))
            elif name == "report":
                self.reports_dropped += len(self._reports) == _REPORTS_MAX
                self._reports.append(Report(number, log_index, at, more))
            elif name == "logged_on":
                self.logon_count += 1
            elif name == "late":
                self.late_count += 1
            elif name == "reports_missing":
                self.reports_dropped += log_index - number
            elif name == "ended":
                self._end(more)
        self._changed.set()

    def _take_transactions(self) -> None:
        for number, codes, blocks, retry_after_ns in self._session.take_transactions():
            frame = self._frames.pop(number, None)
            if frame is not None and not frame.done():
                frame.set_result(FrameAnswer(tuple(codes), blocks, retry_after_ns))
        self._changed.set()

    # Commands.

    def send(
        self,
        instrument: int,
        side: str | int,
        size_lots: int,
        price_ticks: int | None = None,
        client_order_id: OrderName | None = None,
        **terms: Any,
    ) -> asyncio.Future[Answer]:
        """Sends an order in ids, ticks and lots, now; its answer as a future, whose ``code`` may be a refusal's. ``terms`` are those of
        ``Venue.submit_lots``. Raises :class:`WindowFull` where too many commands wait; :meth:`room` waits for fewer.

        Where an order has a text for its name, reports have the number of that text: ``walras.order_number`` says which.
        """
        now_ns = time.time_ns()
        if client_order_id is None:
            self._names += 1
            client_order_id = self._names
        return self._sent(
            lambda: self._session.submit_order(
                now_ns, self.account, instrument, side, size_lots, price_ticks, client_order_id, **terms
            )
        )

    def send_cancel(self, instrument: int, client_order_id: OrderName) -> asyncio.Future[Answer]:
        """Sends a cancel, as :meth:`send`."""
        return self._sent(lambda: self._session.submit_cancel(time.time_ns(), self.account, instrument, client_order_id))

    def send_amend(self, instrument: int, client_order_id: OrderName, **changes: Any) -> asyncio.Future[Answer]:
        """Sends an amendment (``price_ticks``, ``trigger_ticks``, ``size_lots``), as :meth:`send`."""
        return self._sent(
            lambda: self._session.submit_amend(time.time_ns(), self.account, instrument, client_order_id, **changes)
        )

    def send_mass_cancel(self, instrument: int | None = None, side: int | None = None) -> asyncio.Future[Answer]:
        """Sends a cancel of all orders, or of those of one instrument or side (0 buy, 1 sell), as :meth:`send`."""
        return self._sent(lambda: self._session.submit_mass_cancel(time.time_ns(), self.account, instrument, side))

    def send_cancel_after(self, timeout_s: float) -> asyncio.Future[Answer]:
        """Sends the dead man's switch, as :meth:`send`: the venue cancels all orders of the account after this time, unless this is
        sent again before. 0 switches it off."""
        return self._sent(lambda: self._session.submit_cancel_after(time.time_ns(), self.account, round(timeout_s * 1_000)))

    def send_transactions(self, market: int, signed: Sequence[bytes]) -> asyncio.Future[FrameAnswer]:
        """Sends 1 to 256 signed transactions of a batch market in one frame, now; what came of them as a future.

        ``walras.batch.Market.signed`` makes them, of any accounts: each signature is its authority. A frame without results is sent
        again on the next connection, where one that was taken before comes back as 12 or 32: it was collected once. At most 8,192
        transactions wait at a time; :class:`WindowFull` says to await some.
        """
        if self._ended is not None:
            raise self._ended
        if self._session.unanswered_transactions + len(signed) > _TRANSACTIONS_MAX:
            raise WindowFull(f"{self._session.unanswered_transactions} transactions wait for their results: await some")
        number = self._session.submit_transactions(time.time_ns(), market, list(signed))
        future: asyncio.Future[FrameAnswer] = self._loop.create_future()
        self._frames[number] = future
        self._schedule()
        return future

    def _sent(self, submit: Any) -> asyncio.Future[Answer]:
        if self._ended is not None:
            raise self._ended
        if self._session.unanswered_count >= self.window:
            raise WindowFull(f"{self.window} commands wait for an answer: await some, or room()")
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._waiting[submit()] = future
        self._schedule()
        return future

    async def room(self) -> None:
        """Waits until another command may be sent."""
        await self._until(lambda: self._session.unanswered_count < self.window)

    def _ids(self, instrument: str | int) -> tuple[int, Decimal, Decimal]:
        if isinstance(instrument, int):
            for units in self._units.values():
                if units[0] == instrument:
                    return units
        elif instrument in self._units:
            return self._units[instrument]
        raise KeyError(f"{instrument!r}: no such instrument is known here: give OrderEntry(instruments=client.instruments()), or use send()")

    async def submit(
        self,
        instrument: str | int,
        side: str,
        size: Exact,
        price: Exact | None = None,
        client_order_id: OrderName | None = None,
        *,
        trigger: Exact | None = None,
        take_profit: Exact | None = None,
        trail: Exact | None = None,
        peak: Exact | None = None,
        min_size: Exact | None = None,
        **terms: Any,
    ) -> Answer:
        """Enters an order in exact decimals, as ``Venue.submit``, and waits for its answer; a refusal raises :class:`walras.Refused`."""
        id, tick, lot = self._ids(instrument)
        await self.room()
        return _done(
            await self.send(
                id,
                side,
                _count("size", size, lot) or 0,
                _count("price", price, tick),
                client_order_id,
                trigger_ticks=_count("trigger", trigger, tick),
                take_profit_ticks=_count("take_profit", take_profit, tick),
                trail_ticks=_count("trail", trail, tick),
                peak_lots=_count("peak", peak, lot),
                min_size_lots=_count("min_size", min_size, lot),
                **terms,
            )
        )

    async def cancel(self, instrument: str | int, client_order_id: OrderName) -> Answer:
        """Cancels an order, and waits for the answer."""
        await self.room()
        return _done(await self.send_cancel(self._ids(instrument)[0], client_order_id))

    async def amend(
        self,
        instrument: str | int,
        client_order_id: OrderName,
        *,
        price: Exact | None = None,
        trigger: Exact | None = None,
        size: Exact | None = None,
    ) -> Answer:
        """Changes an order, and waits for the answer."""
        id, tick, lot = self._ids(instrument)
        await self.room()
        changes = {
            "price_ticks": _count("price", price, tick),
            "trigger_ticks": _count("trigger", trigger, tick),
            "size_lots": _count("size", size, lot),
        }
        return _done(await self.send_amend(id, client_order_id, **changes))

    async def report(self) -> Report | None:
        """The next execution report; ``None`` where the session has ended and all are read."""
        while not self._reports:
            if self._ended is not None:
                return None
            self._changed.clear()
            await self._changed.wait()
        return self._reports.popleft()

    async def reports(self) -> AsyncIterator[Report]:
        """The account's execution reports, in order and without gaps (``reports_dropped`` counts what was not read in time)."""
        while (report := await self.report()) is not None:
            yield report


def _count(what: str, value: Exact | None, step: Decimal) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int, Decimal)):
        raise TypeError(f"{what}: give a str, a Decimal or an int: {value!r} is no exact number")
    number = Decimal(value)
    count = int(number / step) if number.is_finite() else 0
    if count < 1 or count * step != number:
        raise ValueError(f"{what}: {value} is no whole number of steps of {step}: choose a multiple")
    return count


def _done(answer: Answer) -> Answer:
    if answer.code:
        name, advice = _native.reject_reason(answer.code) or ("unknown", "this version does not know that number")
        raise Refused(answer.code, name, advice)
    return answer
