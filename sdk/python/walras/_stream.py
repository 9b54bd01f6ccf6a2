"""The WebSocket of a running venue (docs/websocket.md): live data, the account's events, orders; connected again and resumed by itself."""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import heapq
import itertools
import json
import queue
import secrets
import time
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Union, cast

from walras._loop import LoopThread
from walras._orders import AsyncOrders, AsyncStreamSession, CommandNumber, OneNumber, PlainNumberedOrders, PlainOrders, StreamSession
from walras._rest import Client, Json, OutcomeUnknown, Session, refusal
from walras._venue import Refused

if TYPE_CHECKING:
    from walras import schema

_PAUSE_S, _PAUSE_S_MAX = 0.5, 10.0
#: Messages that wait to be read; a reader that is further behind loses its connection and takes snapshots again. Where nobody reads,
#: the newest are kept.
_MESSAGES_MAX = 1 << 16
#: How often it is seen whether a reader in another thread has made room.
_LOOK_S = 0.01
_TIMESTAMP_STALE = 105
#: Refusals that end by themselves: throttled, starting, overloaded.
_PASSING = {107, 110, 112}
#: With this code the venue closes a connection on which a message came that is larger than it reads.
_TOO_LARGE = 1009


class Connected(TypedDict):
    """A connection is there. The first message of each channel replaces what was there before."""

    type: Literal["connected"]
    #: How often the stream connected.
    count: int


if TYPE_CHECKING:
    #: What a stream hands out. ``message["type"]`` says which it is.
    StreamMessage = Union[Connected, schema.SocketMessage]


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

    def apply(self, message: Mapping[str, Any]) -> bool:
        """Applies a message of the channel ``book``; ``False`` where one before it is missing, or the checksum is not this copy's."""
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
        return bool(message.get("checksum", self.checksum) == self.checksum)

    @property
    def checksum(self) -> int:
        """The CRC-32 of the ten best levels of each side, as the venue computes it."""
        best = heapq.nlargest(10, self.bids.items()) + heapq.nsmallest(10, self.asks.items())
        return zlib.crc32(":".join(format(number, "f") for level in best for number in level).encode())


class BookOrder(NamedTuple):
    """A displayed order."""

    #: The venue's number of it, as in reports.
    order_id: int
    price: Decimal
    #: What it shows.
    size: Decimal


class OrdersCopy:
    """A book by order as the stream's messages left it: the first 500 orders of each side, as they stand, the first to trade first."""

    def __init__(self) -> None:
        self.bids: list[BookOrder] = []
        self.asks: list[BookOrder] = []
        self.log_index = 0
        self.has_more_bids = False
        self.has_more_asks = False

    def apply(self, message: Mapping[str, Any]) -> bool:
        """Applies a message of the channel ``book_orders``; ``False`` where one before it is missing, or the checksum is another
        one."""
        if message["kind"] == "snapshot":
            self.bids, self.asks = [], []
        elif int(message["previous_log_index"]) != self.log_index:
            return False
        removed = {int(order_id) for order_id in message["removed"]}
        resized = {int(order_id): Decimal(size) for order_id, size in message["resized"]}
        for orders in (self.bids, self.asks):
            kept = (order for order in orders if order.order_id not in removed)
            orders[:] = [order._replace(size=resized.get(order.order_id, order.size)) for order in kept]
        for order_id, side, price, size in message["added"]:
            order = BookOrder(int(order_id), Decimal(price), Decimal(size))
            orders, sign = (self.bids, -1) if side == "buy" else (self.asks, 1)
            # Behind all others of its price.
            orders.insert(bisect.bisect_right([sign * other.price for other in orders], sign * order.price), order)
        self.log_index = int(message["log_index"])
        self.has_more_bids, self.has_more_asks = message["has_more_bids"], message["has_more_asks"]
        return bool(message.get("checksum", self.checksum) == self.checksum)

    @property
    def checksum(self) -> int:
        """The CRC-32 of the first ten orders of each side, as the venue computes it."""
        first = self.bids[:10] + self.asks[:10]
        return zlib.crc32(":".join(f"{order.order_id}:{order.price:f}:{order.size:f}" for order in first).encode())


class AsyncStream(AsyncOrders["schema.WsReply", "schema.WsMassCancelReply", "schema.OrderAnswer | schema.MassCancelAnswer"]):
    """One WebSocket, for asyncio. ``async with client.stream() as stream:``, then :meth:`subscribe`, :meth:`sign_in`, and ``async for``.

    When the connection is lost it connects, signs in and subscribes again. A message ``{"type": "connected"}`` says so, and the first
    message of each channel replaces what was there. Commands that had no answer then raise :class:`walras.OutcomeUnknown`; those of a
    :meth:`session` are sent again, and take effect once. ``books`` holds a :class:`BookCopy` of each subscribed book, ``order_books`` an
    :class:`OrdersCopy` of each that is subscribed to by order.

    A reader that is 65,536 messages behind loses them and the connection: then ``connected`` comes again, snapshots, and reports from the
    first that it has not read.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._socket: Any = None
        self._subscriptions: list[Json] = []
        self._wants_account = False
        #: Of each message without an answer: how long it is, and who waits.
        self._waiting: dict[str, tuple[int, asyncio.Future[Json]]] = {}
        self._ids = itertools.count(1)
        self._task: asyncio.Task[None] | None = None
        self._failed: BaseException | None = None
        #: The last number of each feed of the connection.
        self._feed_seqs: dict[tuple[object, ...], int] = {}
        #: By symbol, as the venue writes it.
        self.books: dict[str, BookCopy] = {}
        #: Likewise, of the channel ``book_orders``.
        self.order_books: dict[str, OrdersCopy] = {}
        #: How often it connected.
        self.connection_count = 0
        self._reader_count = 0

    async def __aenter__(self) -> AsyncStream:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Connects, and goes on trying in the background; the first connection is waited for."""
        _websockets()
        self._messages: asyncio.Queue[StreamMessage | None] = asyncio.Queue()
        self._connected = asyncio.Event()
        self._signed_in = asyncio.Event()
        self._task = asyncio.create_task(self._run())
        waiter = asyncio.create_task(self._connected.wait())
        try:
            await asyncio.wait({self._task, waiter}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # Nobody waits for the connection any more.
            await self.close()
            raise
        finally:
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
                    self._feed_seqs.clear()
                    self.connection_count += 1
                    reader = asyncio.create_task(self._read(socket))
                    reader.add_done_callback(partial(self._on_reader_done, socket))
                    try:
                        await self._resume(reader)
                        self._messages.put_nowait({"type": "connected", "count": self.connection_count})
                        self._connected.set()
                        await reader
                    finally:
                        reader.cancel()
            except (OSError, websockets.WebSocketException, OutcomeUnknown):
                pass
            except Refused as refused:
                if refused.code not in _PASSING:
                    self._fail(refused)
                    raise
            except BaseException as error:
                self._fail(error)
                raise
            finally:
                closed, self._socket = self._socket, None
                self._lose(getattr(closed, "close_code", None))
            self._client._transport.next_replica(self._client._transport.current)
            # A connection that held for a while was a success.
            pause_s = _PAUSE_S if time.monotonic() - begun > 30 else min(2 * pause_s, _PAUSE_S_MAX)
            await asyncio.sleep(pause_s)

    def _on_reader_done(self, socket: Any, _: asyncio.Task[None]) -> None:
        """No answer comes any more."""
        self._lose(getattr(socket, "close_code", None))

    async def _resume(self, reader: asyncio.Task[None]) -> None:
        """Signs in and subscribes as before. Where the connection ends meanwhile, what ended its reader counts."""
        try:
            if self._wants_account:
                await self._authenticate()
            for subscription in list(self._subscriptions):
                await self._subscribe(subscription)
        except OutcomeUnknown:
            if reader.done():
                await reader
            raise

    def _fail(self, error: BaseException) -> None:
        self._failed = error
        self._messages.put_nowait(None)

    def _lose(self, close_code: int | None = None) -> None:
        self._signed_in.clear()
        waiting, self._waiting = self._waiting, {}
        largest = max((length for length, _ in waiting.values()), default=0)
        for length, future in waiting.values():
            if future.done():
                continue
            if close_code == _TOO_LARGE and length == largest:
                # The venue read none that is as large as the one for which it closed.
                future.set_exception(ValueError(f"a message of {length} bytes is larger than the venue reads: send fewer commands at once"))
            else:
                future.set_exception(OutcomeUnknown("the connection was lost before the answer: look at orders and fills"))
            # A caller that has gone on does not hear of it.
            future.exception()

    async def _read(self, socket: Any) -> None:
        async for text in socket:
            found: Json = json.loads(text)
            waiting = self._waiting.pop(found.get("id", ""), None)
            if waiting is not None:
                if not waiting[1].done():
                    waiting[1].set_result(found)
                continue
            if not self._is_next(found):
                # Docs say that this does not happen within a connection: take the snapshots again.
                await socket.close()
                continue
            message = cast("schema.SocketMessage", found)
            if message["type"] == "reports" and message["reports"]:
                # A new connection continues after these.
                self._continue_reports(message["reports"][-1]["report_seq"])
            if message["type"] == "book":
                book = self.books.setdefault(message["instrument"], BookCopy())
                if not book.apply(message):
                    # Docs say that this does not happen within a connection: take the snapshot again.
                    await socket.close()
            if message["type"] == "book_orders":
                orders = self.order_books.setdefault(message["instrument"], OrdersCopy())
                if not orders.apply(message):
                    await socket.close()
            if self._messages.qsize() >= _MESSAGES_MAX:
                if self._reader_count > 0:
                    self._forget_unread(message)
                    await socket.close()
                    return
                self._messages.get_nowait()
            self._messages.put_nowait(message)

    def _forget_unread(self, newest: StreamMessage) -> None:
        """Of reports none is left out: a new connection begins with the first that nobody has read."""
        unread: list[Any] = []
        while not self._messages.empty():
            unread.append(self._messages.get_nowait())
        reports = (report for message in [*unread, newest] if message["type"] == "reports" for report in message["reports"])
        first = next(reports, None)
        if first is not None:
            self._continue_reports(str(int(first["report_seq"]) - 1))

    def _continue_reports(self, after: str) -> None:
        for subscription in self._subscriptions:
            if subscription["channel"] == "reports":
                subscription["after"] = after

    def _is_next(self, message: Json) -> bool:
        """Whether none of its feed is missing before it; 1 begins the count. Earlier venues number the channel ``book`` alone."""
        if "feed_seq" not in message:
            return True
        feed = tuple(message.get(field) for field in ("type", "instrument", "interval", "batch", "sell", "buy"))
        last, feed_seq = self._feed_seqs.get(feed), int(message["feed_seq"])
        self._feed_seqs[feed] = feed_seq
        return last is None or feed_seq in (last + 1, 1)

    async def _ask(self, request: Json) -> Json:
        socket = self._socket
        if socket is None:
            raise ConnectionError("the venue is not connected now: wait for the message 'connected'")
        name = f"{next(self._ids)}"
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        text = json.dumps({**request, "id": name})
        self._waiting[name] = (len(text), future)
        try:
            await socket.send(text)
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
                self._signed_in.set()
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
        """Subscribes to a channel (``book``, ``book_orders``, ``trades``, ``candles``, ``ticker``, ``instruments``, ``status``, ``batch``,
        ``demand``), with what it needs.
        """
        subscription = {"channel": channel, **needs}
        # Kept before the answer is here: the first reports may arrive with it, and `_read` notes their numbers.
        self._subscriptions.append(subscription)
        try:
            await self._subscribe(subscription)
        except BaseException:
            self._subscriptions = [other for other in self._subscriptions if other is not subscription]
            raise

    async def _subscribe(self, subscription: Json) -> None:
        answer = await self._ask({"op": "subscribe", **subscription})
        if "after" in answer:
            # A connection that is lost before the first report continues from here.
            subscription.setdefault("after", answer["after"])

    async def unsubscribe(self, channel: str, **needs: str) -> None:
        """Ends a subscription."""
        subscription = {"channel": channel, **needs}
        # `after` of reports has changed since they were subscribed to.
        self._subscriptions = [other for other in self._subscriptions if other | {"after": None} != subscription | {"after": None}]
        await self._ask({"op": "unsubscribe", **subscription})

    async def carry(self, command: Mapping[str, object], number: CommandNumber | None = None) -> Any:
        """Sends a command of :mod:`walras.commands` once, and waits for its answer; with a session's number it takes effect once."""
        return await self._ask({**command, **(number.fields() if number else {})})

    async def carry_many(
        self, commands: Sequence[Mapping[str, object]], number: CommandNumber | None = None
    ) -> list[schema.ManyResult]:
        """Sends several once, as :meth:`carry`; ``number`` is that of the first. What came of each, in the same places."""
        answer = await self._ask({"op": "many", "commands": list(commands), **(number.fields() if number else {})})
        return list(answer["results"])

    async def _one(self, command: Json) -> Any:
        return await self.carry(command)

    async def _several(self, commands: Sequence[Mapping[str, object]]) -> list[schema.ManyResult]:
        return await self.carry_many(commands)

    def numbered(self, session: Session | int, session_seq: int) -> OneNumber:
        """For one call of ``submit``, ``cancel``, ``amend``, ``mass_cancel`` or ``many``, under this number of a session: where the
        answer is lost, make the same call again under the same number, over this or another connection, and it takes effect once.

        It is for programs that count by themselves, such as those that keep their numbers on disk; :meth:`session` counts and sends again.
        """
        return OneNumber(self, CommandNumber(session if isinstance(session, int) else session.session_id, session_seq))

    async def session(self, token: int | None = None, *, patience_s: float = 60.0) -> AsyncStreamSession:
        """A session whose commands go over this stream, which has signed in: each takes effect once, however often its answer is lost.

        ``token`` and ``patience_s`` are those of :meth:`Client.session`; a program uses a session over one interface at a time.
        """
        return AsyncStreamSession(self, await asyncio.to_thread(self._client.session, token, patience_s=patience_s))

    @property
    def is_ended(self) -> bool:
        """Whether it connects no more: it was closed, or its key or a subscription was refused."""
        return self._task is None or self._task.done()

    async def until_signed_in(self, timeout_s: float) -> None:
        """Waits until it is connected and signed in. ``ConnectionError`` where it is not within ``timeout_s``."""
        if self._signed_in.is_set():
            return
        if not self._wants_account:
            raise ValueError("the stream has not signed in: call sign_in first")
        if self._task is not None and not self._task.done() and timeout_s > 0:
            waiter = asyncio.create_task(self._signed_in.wait())
            await asyncio.wait({self._task, waiter}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            waiter.cancel()
        if self._signed_in.is_set():
            return
        if self.is_ended:
            raise ConnectionError(f"the stream has ended: {self._failed or 'it was closed'}") from self._failed
        raise ConnectionError("the venue is not connected now, or has not taken the key yet: wait for the message 'connected'")

    async def reconnect(self) -> None:
        """Takes another connection, at another replica where there are several."""
        self._signed_in.clear()
        if self._socket is not None:
            await self._socket.close()

    async def cancel_on_disconnect(self, session: Session | AsyncStreamSession | StreamSession | int) -> schema.WsCancelsOnDisconnect:
        """Cancels all orders of the account when this connection ends. ``session`` is one of :meth:`Client.session` (docs/websocket.md)."""
        number = session if isinstance(session, int) else session.session_id
        return cast("schema.WsCancelsOnDisconnect", await self._ask({"op": "cancel_on_disconnect", "session": str(number)}))

    async def __aiter__(self) -> AsyncIterator[StreamMessage]:
        self._reader_count += 1
        try:
            while True:
                message = await self._messages.get()
                if message is None:
                    if self._failed is not None and not isinstance(self._failed, asyncio.CancelledError):
                        raise self._failed
                    return
                yield message
        finally:
            self._reader_count -= 1


class Stream(PlainOrders["schema.WsReply", "schema.WsMassCancelReply", "schema.OrderAnswer | schema.MassCancelAnswer"]):
    """:class:`AsyncStream` without asyncio: ``with client.stream() as stream:``, and ``for message in stream``. It reads in a
    thread of its own."""

    def __init__(self, client: Client) -> None:
        self._orders = self._inner = AsyncStream(client)
        self._thread = LoopThread("walras stream")
        self._messages: queue.Queue[StreamMessage | BaseException | None] = queue.Queue()
        self._is_read = False

    def __enter__(self) -> Stream:
        self._thread.start()
        try:
            self._thread.wait(self._inner.start())
        except BaseException:
            self._thread.stop()
            raise
        self._pump = asyncio.run_coroutine_threadsafe(self._forward(), self._thread.loop)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _forward(self) -> None:
        try:
            async for message in self._inner:
                while self._messages.qsize() >= _MESSAGES_MAX:
                    if self._is_read:
                        await asyncio.sleep(_LOOK_S)
                        continue
                    with contextlib.suppress(queue.Empty):
                        self._messages.get_nowait()
                self._messages.put(message)
        except BaseException as error:
            self._messages.put(error)
            raise
        self._messages.put(None)

    def close(self) -> None:
        """Ends the connection and its thread."""
        if not self._thread.loop.is_closed():
            self._thread.wait(self._inner.close())
            self._pump.cancel()
            self._thread.stop()

    @property
    def books(self) -> dict[str, BookCopy]:
        """A copy of each subscribed book, by symbol."""
        return self._inner.books

    @property
    def order_books(self) -> dict[str, OrdersCopy]:
        """A copy of each book that is subscribed to by order, by symbol."""
        return self._inner.order_books

    def sign_in(self) -> None:
        """As :meth:`AsyncStream.sign_in`."""
        self._thread.wait(self._inner.sign_in())

    def subscribe(self, channel: str, **needs: str) -> None:
        """As :meth:`AsyncStream.subscribe`."""
        self._thread.wait(self._inner.subscribe(channel, **needs))

    def unsubscribe(self, channel: str, **needs: str) -> None:
        """As :meth:`AsyncStream.unsubscribe`."""
        self._thread.wait(self._inner.unsubscribe(channel, **needs))

    def numbered(self, session: Session | int, session_seq: int) -> PlainNumberedOrders:
        """As :meth:`AsyncStream.numbered`."""
        return PlainNumberedOrders(self._inner.numbered(session, session_seq), self._thread)

    def session(self, token: int | None = None, *, patience_s: float = 60.0) -> StreamSession:
        """As :meth:`AsyncStream.session`."""
        return StreamSession(self._thread.wait(self._inner.session(token, patience_s=patience_s)), self._thread)

    def cancel_on_disconnect(self, session: Session | AsyncStreamSession | StreamSession | int) -> schema.WsCancelsOnDisconnect:
        """As :meth:`AsyncStream.cancel_on_disconnect`."""
        return self._thread.wait(self._inner.cancel_on_disconnect(session))

    def receive(self, timeout_s: float | None = None) -> StreamMessage:
        """The next message. ``TimeoutError`` where none comes within ``timeout_s``."""
        self._is_read = True
        try:
            message = self._messages.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError(f"no message within {timeout_s} s") from None
        if message is None:
            raise StopIteration
        if isinstance(message, BaseException):
            raise message
        return message

    def __iter__(self) -> Iterator[StreamMessage]:
        while True:
            try:
                yield self.receive()
            except StopIteration:
                return
