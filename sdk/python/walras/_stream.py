"""The WebSocket of a running venue (docs/websocket.md): live data, the account's events, orders; connected again and resumed by itself."""

from __future__ import annotations

import asyncio
import itertools
import json
import queue
import secrets
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from decimal import Decimal
from typing import Any, TypeVar

from walras._rest import Client, Json, OutcomeUnknown, order_body, amend_body, refusal
from walras._venue import Exact

T = TypeVar("T")

_PAUSE_S, _PAUSE_S_MAX = 0.5, 10.0
#: Messages that wait to be read; a reader that is further behind loses its connection and takes snapshots again.
_MESSAGES_MAX = 1 << 16
_TIMESTAMP_STALE = 105


def _websockets() -> Any:
    try:
        import websockets
    except ImportError as error:
        raise ImportError("the stream needs websockets: pip install websockets") from error
    return websockets


class BookCopy:
    """A book as the stream's messages left it. Prices and sizes are ``Decimal``; ``bids`` and ``asks`` map price to size."""

    def __init__(self) -> None:
        self.bids: dict[Decimal, Decimal] = {}
        self.asks: dict[Decimal, Decimal] = {}
        self.feed_seq = 0
        self.log_index = 0

    @property
    def best_bid(self) -> Decimal | None:
        """The highest bid; ``None`` without one."""
        return max(self.bids, default=None)

    @property
    def best_ask(self) -> Decimal | None:
        """The lowest ask; ``None`` without one."""
        return min(self.asks, default=None)

    def apply(self, message: Json) -> bool:
        """Applies a message of the channel ``book``; ``False`` where one before it is missing."""
        feed_seq = int(message["feed_seq"])
        if message["kind"] == "snapshot":
            self.bids.clear()
            self.asks.clear()
        elif feed_seq != self.feed_seq + 1:
            return False
        self.feed_seq, self.log_index = feed_seq, int(message["log_index"])
        for levels, side in ((self.bids, message["bids"]), (self.asks, message["asks"])):
            for price, size, _ in side:
                if Decimal(size) == 0:
                    levels.pop(Decimal(price), None)
                else:
                    levels[Decimal(price)] = Decimal(size)
        return True


class AsyncStream:
    """One WebSocket, for asyncio. ``async with client.stream() as stream:``, then :meth:`subscribe`, :meth:`sign_in`, and ``async for``.

    When the connection is lost it connects again, signs in again and subscribes again; a message ``{"type": "connected"}`` says so, and the first
    message of each channel replaces what was there. Commands that had no answer then raise :class:`walras.OutcomeUnknown`. ``books`` holds a
    :class:`BookCopy` of each subscribed book.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._socket: Any = None
        self._subscriptions: list[Json] = []
        self._wants_account = False
        self._waiting: dict[str, asyncio.Future[Json]] = {}
        self._ids = itertools.count(1)
        self._task: asyncio.Task[None] | None = None
        self._failed: BaseException | None = None
        #: By symbol, as the venue writes it.
        self.books: dict[str, BookCopy] = {}
        #: How often it connected.
        self.connection_count = 0

    async def __aenter__(self) -> AsyncStream:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Connects, and goes on trying in the background; the first connection is waited for."""
        _websockets()
        self._messages: asyncio.Queue[Json | None] = asyncio.Queue()
        self._connected = asyncio.Event()
        self._task = asyncio.create_task(self._run())
        waiter = asyncio.create_task(self._connected.wait())
        await asyncio.wait({self._task, waiter}, return_when=asyncio.FIRST_COMPLETED)
        waiter.cancel()
        if self._task.done():
            await self._task

    async def close(self) -> None:
        """Ends the connection."""
        if self._task is not None:
            self._task.cancel()
            try:
                await self._task
            except (asyncio.CancelledError, Exception):
                pass
        self._lose()
        self._messages.put_nowait(None)

    async def _run(self) -> None:
        websockets, pause_s = _websockets(), _PAUSE_S
        while True:
            begun = time.monotonic()
            try:
                address = self._client.url.replace("http", "ws", 1) + "/v1/ws"
                tls = {"ssl": self._client._transport.tls} if address.startswith("wss") and self._client._transport.tls else {}
                # The library answers the venue's pings, sends its own, and ends a connection on which nothing comes back.
                async with websockets.connect(address, ping_interval=10, ping_timeout=20, max_size=None, **tls) as socket:
                    self._socket = socket
                    self.connection_count += 1
                    reader = asyncio.create_task(self._read(socket))
                    try:
                        if self._wants_account:
                            await self._authenticate()
                        for subscription in self._subscriptions:
                            await self._ask({"op": "subscribe", **subscription})
                        self._messages.put_nowait({"type": "connected", "count": self.connection_count})
                        self._connected.set()
                        await reader
                    finally:
                        reader.cancel()
            except (OSError, websockets.WebSocketException, OutcomeUnknown):
                pass
            except BaseException as error:
                self._failed = error
                self._messages.put_nowait(None)
                raise
            finally:
                self._socket = None
                self._lose()
            self._client._transport.next_replica(self._client._transport.current)
            # A connection that held for a while was a success.
            pause_s = _PAUSE_S if time.monotonic() - begun > 30 else min(2 * pause_s, _PAUSE_S_MAX)
            await asyncio.sleep(pause_s)

    def _lose(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(OutcomeUnknown("the connection was lost before the answer: look at orders and fills"))
                # A caller that has gone on does not hear of it.
                future.exception()

    async def _read(self, socket: Any) -> None:
        async for text in socket:
            message: Json = json.loads(text)
            future = self._waiting.pop(message.get("id", ""), None)
            if future is not None:
                if not future.done():
                    future.set_result(message)
                continue
            if message.get("type") == "book":
                book = self.books.setdefault(message["instrument"], BookCopy())
                if not book.apply(message):
                    # Docs say that this does not happen within a connection: take the snapshot again.
                    await socket.close()
            if self._messages.qsize() >= _MESSAGES_MAX:
                while not self._messages.empty():
                    self._messages.get_nowait()
                await socket.close()
            self._messages.put_nowait(message)

    async def _ask(self, request: Json) -> Json:
        socket = self._socket
        if socket is None:
            raise ConnectionError("the venue is not connected now: wait for the message 'connected'")
        name = f"{next(self._ids)}"
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[name] = future
        try:
            await socket.send(json.dumps({**request, "id": name}))
        except Exception as error:
            self._waiting.pop(name, None)
            raise OutcomeUnknown(f"the connection was lost while sending ({error}): look at orders and fills") from error
        answer = await future
        if answer.get("type") == "error":
            raise refusal(answer)
        return answer

    async def _authenticate(self) -> None:
        key = self._client.key
        if key is None:
            raise ValueError("signing in needs a key: give the client one")
        for attempt in range(5):
            stamp, nonce = max(time.time_ns(), self._client._accepts_from_ns), secrets.token_urlsafe(12)
            signature = key.sign("WS", "/v1/ws", b"", stamp, nonce)
            try:
                await self._ask({"op": "auth", "key": key.id, "timestamp": str(stamp), "nonce": nonce, "signature": signature})
                return
            except Exception as error:
                if getattr(error, "code", 0) != _TIMESTAMP_STALE or attempt == 4:
                    raise
            await asyncio.to_thread(self._client._resynchronise)

    async def sign_in(self) -> None:
        """Signs in with the client's key, now and on every later connection: the account's channel begins, and orders may be sent."""
        await self._authenticate()
        self._wants_account = True

    async def subscribe(self, channel: str, **needs: str) -> None:
        """Subscribes to a channel (``book``, ``trades``, ``candles``, ``ticker``, ``status``, ``batch``, ``demand``), with what it needs."""
        subscription = {"channel": channel, **needs}
        await self._ask({"op": "subscribe", **subscription})
        self._subscriptions.append(subscription)

    async def unsubscribe(self, channel: str, **needs: str) -> None:
        """Ends a subscription."""
        subscription = {"channel": channel, **needs}
        self._subscriptions = [other for other in self._subscriptions if other != subscription]
        await self._ask({"op": "unsubscribe", **subscription})

    async def submit(
        self,
        instrument: str,
        side: str,
        size: Exact,
        price: Exact | None = None,
        *,
        client_order_id: int | None = None,
        tif: str | None = None,
        trigger: Exact | None = None,
        take_profit: Exact | None = None,
        trail: Exact | None = None,
        trail_ppm: int | None = None,
        post_only: str | None = None,
        peak: Exact | None = None,
        hidden: bool = False,
        min_size: Exact | None = None,
        self_trade: str | None = None,
        oco_with: int | None = None,
        exit_of: int | None = None,
        expires_ns: int | None = None,
    ) -> Json:
        """Enters an order, as ``Client.submit``; needs :meth:`sign_in`."""
        body = order_body(
            instrument, side, size, price, client_order_id, tif, trigger, take_profit, trail, trail_ppm, post_only, peak, hidden, min_size,
            self_trade, oco_with, exit_of, expires_ns,
        )
        return await self._ask({"op": "order", **body})

    async def cancel(self, instrument: str, client_order_id: int) -> Json:
        """Cancels an order."""
        return await self._ask({"op": "cancel", "instrument": instrument, "client_order_id": str(client_order_id)})

    async def amend(
        self,
        instrument: str,
        client_order_id: int,
        *,
        price: Exact | None = None,
        trigger: Exact | None = None,
        size: Exact | None = None,
    ) -> Json:
        """Changes an order."""
        body = amend_body(price, trigger, size)
        return await self._ask({"op": "amend", "instrument": instrument, "client_order_id": str(client_order_id), **body})

    async def mass_cancel(self, instrument: str | None = None, side: str | None = None) -> Json:
        """Cancels all open orders, or those of one instrument or side."""
        given = {"instrument": instrument, "side": side}
        return await self._ask({"op": "mass_cancel", **{name: value for name, value in given.items() if value is not None}})

    async def __aiter__(self) -> AsyncIterator[Json]:
        while True:
            message = await self._messages.get()
            if message is None:
                if self._failed is not None and not isinstance(self._failed, asyncio.CancelledError):
                    raise self._failed
                return
            yield message


class Stream:
    """:class:`AsyncStream` without asyncio: ``with client.stream() as stream:``, and ``for message in stream``. It reads in a thread of its own."""

    def __init__(self, client: Client) -> None:
        self._inner = AsyncStream(client)
        self._loop = asyncio.new_event_loop()
        self._messages: queue.Queue[Json | BaseException | None] = queue.Queue()
        self._thread = threading.Thread(target=self._loop.run_forever, name="walras stream", daemon=True)

    def __enter__(self) -> Stream:
        self._thread.start()
        try:
            self._wait(self._inner.start())
        except BaseException:
            self._stop()
            raise
        self._pump = asyncio.run_coroutine_threadsafe(self._forward(), self._loop)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _forward(self) -> None:
        try:
            async for message in self._inner:
                self._messages.put(message)
        except BaseException as error:
            self._messages.put(error)
            raise
        self._messages.put(None)

    def _wait(self, what: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def close(self) -> None:
        """Ends the connection and its thread."""
        if not self._loop.is_closed():
            self._wait(self._inner.close())
            self._pump.cancel()
            self._stop()

    @property
    def books(self) -> dict[str, BookCopy]:
        """A copy of each subscribed book, by symbol."""
        return self._inner.books

    def sign_in(self) -> None:
        """As :meth:`AsyncStream.sign_in`."""
        self._wait(self._inner.sign_in())

    def subscribe(self, channel: str, **needs: str) -> None:
        """As :meth:`AsyncStream.subscribe`."""
        self._wait(self._inner.subscribe(channel, **needs))

    def unsubscribe(self, channel: str, **needs: str) -> None:
        """As :meth:`AsyncStream.unsubscribe`."""
        self._wait(self._inner.unsubscribe(channel, **needs))

    def submit(self, instrument: str, side: str, size: Exact, price: Exact | None = None, **terms: Any) -> Json:
        """As :meth:`AsyncStream.submit`."""
        return self._wait(self._inner.submit(instrument, side, size, price, **terms))

    def cancel(self, instrument: str, client_order_id: int) -> Json:
        """As :meth:`AsyncStream.cancel`."""
        return self._wait(self._inner.cancel(instrument, client_order_id))

    def amend(self, instrument: str, client_order_id: int, **changes: Any) -> Json:
        """As :meth:`AsyncStream.amend`."""
        return self._wait(self._inner.amend(instrument, client_order_id, **changes))

    def mass_cancel(self, instrument: str | None = None, side: str | None = None) -> Json:
        """As :meth:`AsyncStream.mass_cancel`."""
        return self._wait(self._inner.mass_cancel(instrument, side))

    def receive(self, timeout_s: float | None = None) -> Json:
        """The next message. ``TimeoutError`` where none comes within ``timeout_s``."""
        try:
            message = self._messages.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError(f"no message within {timeout_s} s") from None
        if message is None:
            raise StopIteration
        if isinstance(message, BaseException):
            raise message
        return message

    def __iter__(self) -> Iterator[Json]:
        while True:
            try:
                yield self.receive()
            except StopIteration:
                return
