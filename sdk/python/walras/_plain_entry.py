"""Binary order entry without asyncio: ``walras._entry`` in a thread of its own."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from walras._entry import Answer, FrameAnswer, OrderEntry, Report, SessionEnded
from walras._loop import LoopThread
from walras._rest import KeyLike, OrderName
from walras._venue import Exact

T = TypeVar("T")


class PlainOrderEntry:
    """:class:`OrderEntry` without asyncio, with the same arguments: ``with client.order_entry() as entry:``. A thread of its own serves the
    sockets. Safe to use from several threads; what one of them sends goes in its order.

    >>> with client.order_entry("127.0.0.1:7272", reports=-1) as entry:                             # doctest: +SKIP
    ...     entry.submit("BTC-USD", "buy", "0.5", "30000")                      # waits for the answer
    ...     answers = [entry.send(0, "buy", 5, 60_000) for _ in range(100)]     # futures
    ...     codes = [answer.result().code for answer in answers]
    ...     entry.receive(timeout_s=1).event.kind
    """

    def __init__(self, addresses: str | Iterable[str], key: KeyLike, **settings: Any) -> None:
        self._thread = LoopThread("walras order entry")
        self._make: Callable[[], OrderEntry] = lambda: OrderEntry(addresses, key, **settings)
        self._inner: OrderEntry | None = None

    def __enter__(self) -> PlainOrderEntry:
        if self._inner is None:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, timeout_s: float = 30.0) -> None:
        """Connects and logs on; goes on trying for ``timeout_s``. It is begun once."""
        self._thread.start()
        try:
            self._thread.wait(self._start(timeout_s))
        except BaseException:
            self._thread.stop()
            raise

    async def _start(self, timeout_s: float) -> None:
        # What it waits with belongs to the loop in which it is made.
        self._inner = self._make()
        try:
            await self._inner.start(timeout_s)
        except BaseException:
            await self._close()
            raise

    @property
    def _entry(self) -> OrderEntry:
        if self._inner is None:
            raise ConnectionError("it is not open: use it inside of its `with`")
        return self._inner

    def close(self) -> None:
        """Logs out, and ends its thread. The session stays open at the venue; commands without an answer may still take effect."""
        if not self._thread.loop.is_closed():
            self._thread.wait(self._close())
            self._thread.stop()

    async def _close(self) -> None:
        await self._entry.close()
        # For the loop to let go of the connection.
        await asyncio.sleep(0)

    # How it is.

    @property
    def account(self) -> int:
        """Of its key."""
        return self._entry.account

    @property
    def token(self) -> int:
        """Names its session."""
        return self._entry.token

    @property
    def logon_count(self) -> int:
        """How often it logged on; more than 1 after a lost connection."""
        return self._entry.logon_count

    @property
    def late_count(self) -> int:
        """How many commands came later than the venue holds orders for (docs/fair-access.md)."""
        return self._entry.late_count

    @property
    def reports_dropped(self) -> int:
        """How many reports were not read in time."""
        return self._entry.reports_dropped

    @property
    def is_logged_on(self) -> bool:
        """Whether it is connected and logged on now."""
        return self._thread.wait(self._read(lambda entry: entry.is_logged_on))

    @property
    def unanswered_count(self) -> int:
        """How many commands wait for their answer."""
        return self._thread.wait(self._read(lambda entry: entry.unanswered_count))

    async def _read(self, what: Callable[[OrderEntry], T]) -> T:
        return what(self._entry)

    # Commands.

    def send(
        self,
        instrument: int,
        side: str | int,
        size_lots: int,
        price_ticks: int | None = None,
        client_order_id: OrderName | None = None,
        **terms: Any,
    ) -> concurrent.futures.Future[Answer]:
        """Sends an order in ids, ticks and lots; its answer as a future, whose ``code`` may be a refusal's. ``terms`` are those of
        ``Venue.submit_lots``. Where as many commands wait for an answer as may, it waits for room first.

        A future's callbacks run in the thread that serves the sockets: there, nothing of this class can be called.
        """
        return self._sent(lambda entry: entry.send(instrument, side, size_lots, price_ticks, client_order_id, **terms))

    def send_cancel(self, instrument: int, client_order_id: OrderName) -> concurrent.futures.Future[Answer]:
        """Sends a cancel, as :meth:`send`."""
        return self._sent(lambda entry: entry.send_cancel(instrument, client_order_id))

    def send_amend(self, instrument: int, client_order_id: OrderName, **changes: Any) -> concurrent.futures.Future[Answer]:
        """Sends an amendment (``price_ticks``, ``trigger_ticks``, ``size_lots``), as :meth:`send`."""
        return self._sent(lambda entry: entry.send_amend(instrument, client_order_id, **changes))

    def send_mass_cancel(self, instrument: int | None = None, side: int | None = None) -> concurrent.futures.Future[Answer]:
        """Sends a cancel of all orders, or of those of one instrument or side (0 buy, 1 sell), as :meth:`send`."""
        return self._sent(lambda entry: entry.send_mass_cancel(instrument, side))

    def send_cancel_after(self, timeout_s: float) -> concurrent.futures.Future[Answer]:
        """Sends the dead man's switch, as :meth:`OrderEntry.send_cancel_after`."""
        return self._sent(lambda entry: entry.send_cancel_after(timeout_s))

    def send_transactions(self, market: int, signed: Sequence[bytes]) -> concurrent.futures.Future[FrameAnswer]:
        """As :meth:`OrderEntry.send_transactions`. :class:`WindowFull` where too many wait for their results."""
        return self._sent(lambda entry: entry.send_transactions(market, signed), needs_room=False)

    def _sent(self, send: Callable[[OrderEntry], asyncio.Future[T]], *, needs_room: bool = True) -> concurrent.futures.Future[T]:
        answer: concurrent.futures.Future[T] = concurrent.futures.Future()

        async def enter() -> None:
            if needs_room:
                await self._entry.room()
            send(self._entry).add_done_callback(lambda done: _pass_on(done, answer))

        self._thread.wait(enter())
        return answer

    def submit(
        self,
        instrument: str | int,
        side: str,
        size: Exact,
        price: Exact | None = None,
        client_order_id: OrderName | None = None,
        **terms: Any,
    ) -> Answer:
        """As :meth:`OrderEntry.submit`: enters an order in exact decimals, and waits for its answer."""
        return self._thread.wait(self._entry.submit(instrument, side, size, price, client_order_id, **terms))

    def cancel(self, instrument: str | int, client_order_id: OrderName) -> Answer:
        """Cancels an order, and waits for the answer."""
        return self._thread.wait(self._entry.cancel(instrument, client_order_id))

    def amend(
        self,
        instrument: str | int,
        client_order_id: OrderName,
        *,
        price: Exact | None = None,
        trigger: Exact | None = None,
        size: Exact | None = None,
    ) -> Answer:
        """Changes an order, and waits for the answer."""
        return self._thread.wait(self._entry.amend(instrument, client_order_id, price=price, trigger=trigger, size=size))

    # Reports.

    def receive(self, timeout_s: float | None = None) -> Report:
        """The next execution report. ``TimeoutError`` where none comes within ``timeout_s``; :class:`SessionEnded` after the last one."""

        async def next_one() -> Report | None:
            report = self._entry.report()
            # One that is there is given out however short the time is.
            return await (report if self._entry._reports else asyncio.wait_for(report, timeout_s))

        try:
            report = self._thread.wait(next_one())
        except (asyncio.TimeoutError, TimeoutError):
            raise TimeoutError(f"no report within {timeout_s} s") from None
        if report is None:
            raise SessionEnded("the session has ended, and all its reports are read")
        return report

    def reports(self) -> Iterator[Report]:
        """The account's execution reports, in order and without gaps (``reports_dropped`` counts what was not read in time)."""
        while True:
            try:
                yield self.receive()
            except ConnectionError:
                if self._inner is None:
                    raise
                return


def _pass_on(done: asyncio.Future[T], answer: concurrent.futures.Future[T]) -> None:
    if not answer.set_running_or_notify_cancel():
        return
    error = done.exception()
    if error is None:
        answer.set_result(done.result())
    else:
        answer.set_exception(error)
