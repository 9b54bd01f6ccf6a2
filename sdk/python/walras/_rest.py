"""A running venue over HTTP: signed requests, and commands that take effect once."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import pathlib
import secrets
import select
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Union, cast

from walras import _native
from walras._venue import Exact, Refused

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from walras import schema
    from walras._async_market import AsyncMarket
    from walras._entry import OrderEntry
    from walras._market import Market
    from walras._plain_entry import PlainOrderEntry
    from walras._stream import AsyncStream, Stream

Json = dict[str, Any]
KeyLike = Union[_native.Key, str, "os.PathLike[str]"]
#: The participant's name of an order: a number below 2^64, or a text of 1 to 36 characters (docs/rest.md, "Names of orders").
OrderName = Union[int, str]

_TIMESTAMP_STALE, _NOT_LEADER, _STORAGE_FULL = 105, 116, 111
#: Refusals after which the same command is sent again: it is not in the log.
_AGAIN = {_TIMESTAMP_STALE, 107, 110, _STORAGE_FULL, 112, _NOT_LEADER, 92}
#: With one of these it may be in the log all the same.
_UNCERTAIN = {110, _STORAGE_FULL, _NOT_LEADER}
_PAUSE_S, _PAUSE_S_MAX = 0.05, 2.0
IS_LOST = "an earlier command's outcome is unknown: open another session, and look at orders and fills first"


class OutcomeUnknown(Exception):
    """A command was sent, and no answer came: the venue may have taken it, or may yet take it.

    Look for its ``client_order_id`` in orders and fills. A command of a session is sent again instead, under its number, which is harmless.
    """


def key_of(key: KeyLike) -> _native.Key:
    """A key: itself, the line of a key file (``<key id>.<secret>``), or the path of such a file."""
    if isinstance(key, _native.Key):
        return key
    if isinstance(key, str) and key.startswith(("ed_", "hm_")) and "." in key and os.sep not in key:
        return _native.Key(key)
    return _native.Key(pathlib.Path(key).read_text(encoding="ascii"))


def refusal(answer: Json) -> Refused:
    error = answer.get("error", {})
    detail = error.get("detail")
    advice = error.get("message", "") + (f" [{detail}]" if detail else "")
    log_index = answer.get("log_index")
    return Refused(int(error.get("code", 0)), str(error.get("name", "unknown")), advice, None if log_index is None else int(log_index))


def uses_number(result: Mapping[str, Any]) -> bool:
    """Whether one of several commands has used its number up: it was carried out, or its rejection is in the log."""
    return "answer" in result or "log_index" in result


def merged(before: Sequence[Any], now: Sequence[Any]) -> list[Any]:
    """What is known of several commands that were sent again under their numbers: the first answer says more than that to a repeat."""
    if not before:
        return list(now)
    return [old if uses_number(old) else new for old, new in zip(before, now)]


def in_doubt(results: Sequence[Any]) -> Refused | None:
    """Why it is not known what came of one of several commands, such as where the leader changed; ``None`` where nothing is in doubt."""
    refused = (refusal(result) for result in results if not uses_number(result))
    return next((why for why in refused if why.code in _UNCERTAIN), None)


def path_symbol(instrument: str) -> str:
    return urllib.parse.quote(instrument.replace("/", "-"), safe="")


def text(what: str, value: Exact | None) -> str | None:
    """A quantity as the venue reads it."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int, Decimal)):
        raise TypeError(f"{what}: give a str, a Decimal or an int: {value!r} is no exact number")
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def name_of(order: OrderName) -> str:
    """An order's name as the venue reads it."""
    if isinstance(order, bool) or not isinstance(order, (int, str)):
        raise TypeError(f"client_order_id: give an int or a str: {order!r} names no order")
    return str(order)


def name_or_none(order: OrderName | None) -> str | None:
    return None if order is None else name_of(order)


def order_path(instrument: str, order: OrderName) -> str:
    return f"/v1/orders/{path_symbol(instrument)}/{urllib.parse.quote(name_of(order), safe='')}"


def query(path: str, **given: Any) -> str:
    pairs = [(name, str(value)) for name, value in given.items() if value is not None]
    return f"{path}?{urllib.parse.urlencode(pairs)}" if pairs else path


class _Exit(TypedDict):
    trigger: Exact


class Exit(_Exit, total=False):
    """An exit of an order: with a limit where it has a price."""

    price: Exact
    client_order_id: OrderName


class Exits(TypedDict, total=False):
    """What closes an order as it fills: entered with it or not at all, and sent without a session's number."""

    take_profit: Exit
    stop_loss: Exit


class OrderTerms(TypedDict, total=False):
    """What an order may say besides instrument, side, size and price. Each term means what it means for ``walras.Venue.submit``, which has
    no ``exits``."""

    client_order_id: OrderName | None
    tif: str | None
    trigger: Exact | None
    take_profit: Exact | None
    trail: Exact | None
    trail_ppm: int | None
    post_only: str | None
    peak: Exact | None
    hidden: bool
    min_size: Exact | None
    self_trade: str | None
    oco_with: OrderName | None
    exit_of: OrderName | None
    exits: Exits | None
    expires_ns: int | None


def _checked_keys(what: str, given: Mapping[str, object], known: frozenset[str]) -> None:
    if unknown := given.keys() - known:
        raise TypeError(f"{', '.join(sorted(unknown))}: {what} are {', '.join(sorted(known))}")


def _exit_body(what: str, exit_: Exit) -> Json:
    _checked_keys(f"fields of {what}", exit_, Exit.__required_keys__ | Exit.__optional_keys__)
    if "trigger" not in exit_:
        raise TypeError(f"{what}: an exit needs a trigger")
    body = {
        "trigger": text(f"{what}.trigger", exit_["trigger"]),
        "price": text(f"{what}.price", exit_.get("price")),
        "client_order_id": name_or_none(exit_.get("client_order_id")),
    }
    return {name: value for name, value in body.items() if value is not None}


def _exits_body(exits: Exits) -> Json:
    _checked_keys("exits of an order", exits, Exits.__optional_keys__)
    bodies = {}
    if "take_profit" in exits:
        bodies["take_profit"] = _exit_body("take_profit", exits["take_profit"])
    if "stop_loss" in exits:
        bodies["stop_loss"] = _exit_body("stop_loss", exits["stop_loss"])
    return bodies


def check_numbered(commands: Iterable[Mapping[str, object]]) -> None:
    """Exits have no numbers: a session cannot send them with their order."""
    for command in commands:
        for what in ("take_profit", "stop_loss"):
            if what in command:
                raise ValueError(
                    f"{what}: a session sends no exits with an order: send them before it, with exit_of, or all without the session"
                )


def order_body(instrument: str, side: str, size: Exact, price: Exact | None, terms: OrderTerms) -> Json:
    """An order as in ``OrderRequest`` of openapi.yaml."""
    _checked_keys("terms of an order", terms, OrderTerms.__optional_keys__)
    trigger, take_profit = terms.get("trigger"), terms.get("take_profit")
    trail, trail_ppm = terms.get("trail"), terms.get("trail_ppm")
    given = {"stop": trigger, "take_profit": take_profit, "trailing_stop": trail if trail_ppm is None else trail_ppm}
    kinds = [kind for kind, value in given.items() if value is not None]
    if len(kinds) > 1:
        raise ValueError("an order is a stop, a take-profit or a trailing stop: give trigger, take_profit or trail, not two of them")
    if trail is not None and trail_ppm is not None:
        raise ValueError("a trailing stop has one distance: give trail or trail_ppm, not both")
    waits = kinds[0] if kinds else None
    kind = ("market" if price is None else "limit") if waits is None else waits if price is None else f"{waits}_limit"
    peak, hidden, expires_ns = terms.get("peak"), terms.get("hidden", False), terms.get("expires_ns")
    if peak is not None and hidden:
        raise ValueError("an order has a peak or is hidden, not both: leave one out")
    body: Json = {
        "instrument": instrument,
        "side": side,
        "type": kind,
        "size": text("size", size),
        "price": text("price", price),
        "trigger": text("trigger", trigger) if take_profit is None else text("take_profit", take_profit),
        "trail": text("trail", trail),
        "trail_ppm": trail_ppm,
        "client_order_id": name_or_none(terms.get("client_order_id")),
        # What an order in the process calls gtd is gtt over HTTP.
        "time_in_force": terms.get("tif") if expires_ns is None else "gtt",
        "expire_time_ns": None if expires_ns is None else str(expires_ns),
        "post_only": terms.get("post_only"),
        "display": "iceberg" if peak is not None else "hidden" if hidden else None,
        "peak": text("peak", peak),
        "min_size": text("min_size", terms.get("min_size")),
        "self_trade": terms.get("self_trade"),
        "oco_with": name_or_none(terms.get("oco_with")),
        "exit_of": name_or_none(terms.get("exit_of")),
        **_exits_body(terms.get("exits") or {}),
    }
    return {name: value for name, value in body.items() if value is not None}


def amend_body(price: Exact | None, trigger: Exact | None, size: Exact | None) -> Json:
    body = {"price": text("price", price), "trigger": text("trigger", trigger), "size": text("size", size)}
    return {name: value for name, value in body.items() if value is not None}


class _Transport:
    """Connections to the venue's replicas, kept open and used by any number of threads."""

    def __init__(self, urls: Sequence[str], timeout_s: float, tls: ssl.SSLContext | None) -> None:
        if not urls:
            raise ValueError("no address: give the URL of a replica, such as http://127.0.0.1:7070")
        self.urls = [urllib.parse.urlsplit(url) for url in urls]
        for url in self.urls:
            if url.scheme not in ("http", "https") or not url.hostname:
                raise ValueError(f"{url.geturl()!r} is no address of a venue: give one such as http://127.0.0.1:7070")
        self.timeout_s, self.tls = timeout_s, tls
        self.current = 0
        self._idle: list[tuple[int, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return self.urls[self.current].geturl().rstrip("/")

    def next_replica(self, after: int) -> None:
        """Goes on to another replica, unless somebody did already."""
        with self._lock:
            if self.current == after:
                self.current = (after + 1) % len(self.urls)

    def _connection(self) -> tuple[int, http.client.HTTPConnection, bool]:
        with self._lock:
            while self._idle:
                number, connection = self._idle.pop()
                if number == self.current and not _has_ended(connection):
                    return number, connection, True
                connection.close()
            number = self.current
        url = self.urls[number]
        assert url.hostname
        if url.scheme == "https":
            made: http.client.HTTPConnection = http.client.HTTPSConnection(
                url.hostname, url.port, timeout=self.timeout_s, context=self.tls or ssl.create_default_context()
            )
        else:
            made = http.client.HTTPConnection(url.hostname, url.port, timeout=self.timeout_s)
        return number, made, False

    def send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, int, bytes]:
        """Replica, status, body. ``OSError`` where there is no answer; then ``sent`` of it says whether the request may have arrived."""
        number, connection, is_used = self._connection()
        headers = {**headers, "Content-Type": "application/json"} if body else headers
        sent = False
        try:
            if connection.sock is None:
                connection.connect()
            sent = True
            connection.request(method, path, body=body or None, headers=headers)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            if is_used and isinstance(error, (http.client.RemoteDisconnected, ConnectionError)):
                # The venue closed it while nobody used it: nothing else is known of those that wait beside it.
                self._forget(number)
            self.next_replica(number)
            raise Lost(f"{self.urls[number].geturl()}: {error or type(error).__name__}", sent) from error
        if answer.will_close:
            connection.close()
        else:
            with self._lock:
                self._idle.append((number, connection))
        return number, answer.status, content

    def _forget(self, number: int) -> None:
        with self._lock:
            for of, connection in self._idle:
                if of == number:
                    connection.close()
            self._idle = [(of, connection) for of, connection in self._idle if of != number]

    def close(self) -> None:
        with self._lock:
            for _, connection in self._idle:
                connection.close()
            self._idle.clear()


def _has_ended(connection: http.client.HTTPConnection) -> bool:
    """Whether the venue closed a connection that nobody uses: there is something to read then."""
    if connection.sock is None:
        return True
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(connection.sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([connection.sock], [], [], 0)[0])


class Lost(ConnectionError):
    """No answer came. ``sent``: the request may have arrived."""

    def __init__(self, what: str, sent: bool) -> None:
        super().__init__(what)
        self.sent = sent


class Client:
    """A running venue over HTTP. Every answer is the JSON object that ``edge/api/openapi.yaml`` describes: quantities in it are exact
    text. ``walras.schema`` has the types of all answers.

    ``url`` is the address of the venue, or those of its replicas, of which one that answers is used. ``key`` is the path of a key file, its line,
    or a :class:`walras.Key`; without one only public requests work. Safe to use from several threads.

    A refusal is a :class:`walras.Refused` with the number of docs/reject-reasons.md. A command whose answer is lost raises
    :class:`walras.OutcomeUnknown`; :meth:`session` sends it again instead, so that it takes effect once.

    >>> client = Client("http://127.0.0.1:7070", key="trader.key")      # doctest: +SKIP
    >>> client.submit("BTC-USD", "buy", "0.5", "30000")["status"]       # doctest: +SKIP
    'resting'
    """

    def __init__(
        self,
        url: str | Sequence[str] = "http://127.0.0.1:7070",
        key: KeyLike | None = None,
        *,
        timeout_s: float = 10.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._transport = _Transport([url] if isinstance(url, str) else list(url), timeout_s, tls)
        self.key = None if key is None else key_of(key)
        self._accepts_from_ns = 0

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes its connections; the next request opens others."""
        self._transport.close()

    @property
    def url(self) -> str:
        """The address that is used now."""
        return self._transport.url

    def _headers(self, method: str, path: str, body: bytes) -> dict[str, str]:
        if self.key is None:
            raise ValueError("this needs a key: give Client(..., key=) the path of a key file")
        # A venue that started a moment ago takes no stamps from before that.
        stamp, nonce = max(time.time_ns(), self._accepts_from_ns), secrets.token_urlsafe(12)
        signature = self.key.sign(method, path, body, stamp, nonce)
        return {"Walras-Key": self.key.id, "Walras-Timestamp": str(stamp), "Walras-Nonce": nonce, "Walras-Signature": signature}

    def request(self, method: str, path: str, body: Json | None = None, *, signed: bool = True, fresh: bool = False) -> Json:
        """One request, and its answer. ``fresh`` reads see everything that was acknowledged before, by whichever replica.

        A GET is sent again where its answer is lost; any other request is sent once more only where it certainly did not arrive.
        """
        content = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        for attempt in range(3 + 2 * len(self._transport.urls)):
            headers = self._headers(method, path, content) if signed else {}
            if fresh:
                headers["Walras-Consistency"] = "linearizable"
            try:
                replica, status, answer = self._transport.send(method, path, content, headers)
            except Lost as lost:
                if method != "GET" and lost.sent:
                    raise OutcomeUnknown(f"{method} {path}: no answer ({lost}): look whether it took effect before sending it again") from lost
                if attempt + 1 >= 2 * len(self._transport.urls):
                    raise
                continue
            found = _decoded(path, status, answer)
            if status < 300:
                return found
            code = int(found.get("error", {}).get("code", 0))
            if code == _TIMESTAMP_STALE and attempt < 3:
                self._resynchronise()
            elif code == _NOT_LEADER and len(self._transport.urls) > 1 and attempt + 1 < 2 * len(self._transport.urls):
                self._transport.next_replica(replica)
                time.sleep(_PAUSE_S)
            else:
                raise refusal(found)
        raise refusal(found)

    def _resynchronise(self) -> None:
        self._accepts_from_ns = int(self.get("/v1/status")["accepts_timestamps_from_ns"])
        ahead_s = (self._accepts_from_ns - time.time_ns()) / 1e9
        # It takes stamps that are at most a second ahead of its clock.
        time.sleep(min(max(ahead_s - 0.9, 0.0), 5.0))

    def get(self, path: str, *, signed: bool = False, fresh: bool = False, **given: Any) -> Json:
        """A GET of any path, with these query parameters."""
        return self.request("GET", query(path, **given), signed=signed, fresh=fresh)

    # Public.

    def status(self) -> schema.Status:
        """What the venue is doing."""
        return cast("schema.Status", self.get("/v1/status"))

    def assets(self) -> list[schema.Asset]:
        """All assets."""
        return list(self.get("/v1/assets")["assets"])

    def instruments(self) -> list[schema.Instrument]:
        """All instruments."""
        return list(self.get("/v1/instruments")["instruments"])

    def book(self, instrument: str, depth: int = 50, *, fresh: bool = False) -> schema.Book:
        """The book, best price first: levels are price, size and count of orders."""
        return cast("schema.Book", self.get(f"/v1/instruments/{path_symbol(instrument)}/book", depth=depth, fresh=fresh))

    def book_orders(self, instrument: str, limit: int = 100, *, fresh: bool = False) -> schema.BookOrders:
        """The book by order, in the order in which they stand, up to 500 of each side: an order is order_id, price and what it shows."""
        return cast("schema.BookOrders", self.get(f"/v1/instruments/{path_symbol(instrument)}/book/orders", limit=limit, fresh=fresh))

    def auction(self, instrument: str, *, fresh: bool = False) -> schema.Auction:
        """The phase, what an auction would trade now (``indicative``), and how the latest one ended."""
        return cast("schema.Auction", self.get(f"/v1/instruments/{path_symbol(instrument)}/auction", fresh=fresh))

    def ticker(self, instrument: str, *, fresh: bool = False) -> schema.Ticker:
        """An instrument at a glance: last price, best prices and sizes, figures of the UTC day, phase."""
        return cast("schema.Ticker", self.get(f"/v1/instruments/{path_symbol(instrument)}/ticker", fresh=fresh))

    def trades(self, instrument: str, limit: int = 100, before: int | None = None) -> list[schema.Trade]:
        """The last trades, newest first."""
        return list(self.get(f"/v1/instruments/{path_symbol(instrument)}/trades", limit=limit, before=before)["trades"])

    def candles(self, instrument: str, interval: str = "1m", limit: int = 500) -> list[schema.Candle]:
        """The last candles, oldest first."""
        return list(self.get(f"/v1/instruments/{path_symbol(instrument)}/candles", interval=interval, limit=limit)["candles"])

    # The past, of a venue that keeps an archive (docs/history.md).

    def past_trades(self, instrument: str, limit: int = 100, since: int = 0, until: int | None = None) -> list[schema.PastTrade]:
        """The archive's trades, oldest first, of as many pages as it takes; in nanoseconds from ``since`` (included) to ``until`` (not)."""
        which = {"instrument": instrument, "from": since, "to": until}
        return self._rows("/v1/history/trades", "trades", limit, which, signed=False)

    def past_book(self, instrument: str, at: int | None = None) -> schema.PastBook:
        """The archive's last picture of a book at a time, in nanoseconds; the last of all without one."""
        return cast("schema.PastBook", self.get("/v1/history/books", instrument=instrument, at=at))

    def past_days(self) -> schema.PastDays:
        """The archive's days, oldest first, with their files, and how far it is."""
        return cast("schema.PastDays", self.get("/v1/history/days"))

    # The account.

    def account(self, *, fresh: bool = False) -> schema.Account:
        """The key's account: balances, positions, status."""
        return cast("schema.Account", self.get("/v1/account", signed=True, fresh=fresh))

    def fills(self, limit: int = 100, **which: Any) -> list[schema.Fill]:
        """The account's last trades, newest first, of as many pages as it takes.

        ``which`` of them: ``instrument``, ``order_id``, ``client_order_id``, and in nanoseconds ``since`` (included) and ``until`` (not).
        With ``after``, a ``trade_id`` of the ``instrument``, those after that trade, oldest first; 0 for all. A trade of an account with
        itself is two fills of one number, and a full list may end between them.
        """
        return self._pages("/v1/fills", "fills", limit, which)

    def closed_orders(self, limit: int = 100, **which: Any) -> list[schema.OrderState]:
        """The account's orders that have ended, newest first, each with what it filled and why it ended; ``which`` as for :meth:`fills`.

        With ``after``, the ``log_index`` at which one ended, those that ended later, oldest first; 0 for all. One entry can end many, and a
        full list may end among them.
        """
        return self._pages("/v1/orders/closed", "orders", limit, which)

    def _pages(self, path: str, name: str, limit: int, which: Json) -> list[Any]:
        known = {"instrument", "order_id", "client_order_id", "since", "until", "after"}
        if unknown := which.keys() - known:
            raise TypeError(f"{', '.join(sorted(unknown))}: known are {', '.join(sorted(known))}")
        return self._rows(path, name, limit, which, signed=True)

    def _rows(self, path: str, name: str, limit: int, which: Json, *, signed: bool) -> list[Any]:
        """So many rows of pages. A page may be short, or empty, and still have a next one."""
        rows: list[Any] = []
        cursor: str | None = None
        while len(rows) < limit:
            page = self.get(path, signed=signed, limit=min(limit - len(rows), 1_000), cursor=cursor, **which)
            rows += page[name]
            cursor = page["next"]
            if cursor is None:
                break
        return rows

    def order(self, instrument: str, client_order_id: OrderName, *, by: str = "client_order_id", fresh: bool = False) -> schema.OrderState:
        """One order, open or ended: what it filled, at what average price, when, and why it ended.

        ``by="order_id"`` looks for the venue's id instead. An order that nobody knows is :class:`walras.Refused` (``NotFound``).
        """
        by_id = None if by == "client_order_id" else by
        return cast("schema.OrderState", self.get(order_path(instrument, client_order_id), signed=True, fresh=fresh, by=by_id))

    def reports(self, after: int = 0, limit: int = 100) -> list[schema.Report]:
        """The account's numbered reports after a number, oldest first. Their ``report_seq`` has no gaps: begin again after the last one."""
        return list(self.get("/v1/reports", signed=True, after=after, limit=limit)["reports"])

    def open_orders(self, instrument: str | None = None, *, fresh: bool = False) -> list[schema.Order]:
        """All open orders, page by page."""
        orders: list[schema.Order] = []
        cursor: str | None = None
        while True:
            page = self.get("/v1/orders", signed=True, fresh=fresh, instrument=instrument, cursor=cursor)
            orders += page["orders"]
            cursor = page.get("next")
            if cursor is None:
                return orders

    # Commands.

    def submit(self, instrument: str, side: str, size: Exact, price: Exact | None = None, **terms: Unpack[OrderTerms]) -> schema.OrderAnswer:
        """Enters an order. Its answer says what became of it at once.

        Arguments and terms (:class:`walras.OrderTerms`) mean what they mean for ``walras.Venue.submit``. With ``exits``
        (:class:`walras.Exits`) all of the order and its exits is entered, or nothing.
        """
        return cast("schema.OrderAnswer", self._command("POST", "/v1/orders", order_body(instrument, side, size, price, terms)))

    def cancel(self, instrument: str, client_order_id: OrderName) -> schema.OrderAnswer:
        """Cancels an order."""
        return cast("schema.OrderAnswer", self._command("DELETE", order_path(instrument, client_order_id), None))

    def amend(
        self,
        instrument: str,
        client_order_id: OrderName,
        *,
        price: Exact | None = None,
        trigger: Exact | None = None,
        size: Exact | None = None,
    ) -> schema.OrderAnswer:
        """Changes price, trigger or open size of an order."""
        return cast("schema.OrderAnswer", self._command("PATCH", order_path(instrument, client_order_id), amend_body(price, trigger, size)))

    def mass_cancel(self, instrument: str | None = None, side: str | None = None) -> schema.MassCancelAnswer:
        """Cancels all open orders, or those of one instrument or side."""
        return cast("schema.MassCancelAnswer", self._command("DELETE", query("/v1/orders", instrument=instrument, side=side), None))

    def many(self, commands: Sequence[Mapping[str, object]]) -> list[schema.OrderAnswer | schema.MassCancelAnswer | Refused]:
        """Up to 100 commands in one request, carried out in their order; :mod:`walras.commands` makes them.

        Returned are, in the same places, the answer of each, or its refusal, which is not raised: the others go on. Of an order with
        ``exits`` all is entered, or nothing.
        """
        found = self._numbered("POST", "/v1/orders/batch", {"commands": list(commands)}, len(commands))
        return [result["answer"] if "answer" in result else refusal(result) for result in found["results"]]

    def cancel_after(self, timeout_s: float) -> schema.CancelAfter:
        """Dead man's switch: the venue cancels all orders of the account after this time, unless this is called again before.

        0 switches it off. ``cancels_at_ns`` of the answer is the time.
        """
        return cast("schema.CancelAfter", self._command("POST", "/v1/cancel-after", {"timeout_ms": round(timeout_s * 1_000)}))

    def _command(self, method: str, path: str, body: Json | None) -> Json:
        return self._numbered(method, path, body, 1)

    def _numbered(self, method: str, path: str, body: Json | None, count: int) -> Json:
        """A request of so many commands; a session gives them numbers."""
        return self.request(method, path, body)

    def session(self, token: int | None = None, *, patience_s: float = 60.0) -> Session:
        """A session, whose commands take effect once however often their answers are lost: for this program alone.

        ``token`` names it; the same one is the same session for as long as that is open. A program that does not know what came of its last
        commands takes a new one, as is done without it. :class:`walras.OutcomeUnknown` where no answer comes within ``patience_s``: the
        session takes no more commands then.
        """
        return Session(self, secrets.randbits(63) if token is None else token, patience_s)

    def batch(
        self,
        name: str,
        key: KeyLike | None = None,
        *,
        patience_s: float = 60.0,
        blocks: int | Literal["auto"] | None = "auto",
    ) -> Market:
        """A batch market: its prices, and this account's offers, payments and pools in it (:class:`walras.batch.Market`).

        ``key`` signs the transactions, the client's without it: an Ed25519 key either way. Transactions without an answer are sent
        again for ``patience_s``. So many ``blocks``, from the one that collects on, may have a transaction whose call has no ``until``:
        ``"auto"`` as many as the market has in about two minutes, ``None`` any.
        """
        from walras._market import Market

        return Market(self, name, key, patience_s=patience_s, blocks=blocks)

    def stream(self) -> Stream:
        """The WebSocket: live market data, the account's own events, and orders. Needs ``websockets``."""
        from walras._stream import Stream

        return Stream(self)

    def order_entry(self, addresses: str | Iterable[str] = "127.0.0.1:7272", **settings: Any) -> PlainOrderEntry:
        """A session of binary order entry for this key's account, logged on: see :class:`walras.PlainOrderEntry`."""
        from walras._plain_entry import PlainOrderEntry

        if self.key is None:
            raise ValueError("order entry needs a key: give Client(..., key=) the path of a key file")
        entry = PlainOrderEntry(addresses, self.key, account=self.account()["account_id"], instruments=self.instruments(), **settings)
        entry.start()
        return entry


def _decoded(path: str, status: int, content: bytes) -> Json:
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise OutcomeUnknown(f"{path}: status {status}, and no JSON object: is this the address of a venue?")
    return found


class Session(Client):
    """Commands under numbers of their own: each takes effect once. Made by :meth:`Client.session`; one command at a time. Its orders have
    no ``exits``, which have no numbers.
    """

    def __init__(self, client: Client, token: int, patience_s: float) -> None:
        # It shares its client's key and connections.
        self._transport, self.key, self._accepts_from_ns = client._transport, client.key, client._accepts_from_ns
        self.token, self.patience_s = token, patience_s
        self._once = threading.Lock()
        self._is_lost = False
        opened = self._until_answered("POST", "/v1/sessions", {"token": str(token)})
        self.session_id, self.next_seq = int(opened["session"]), int(opened["next_seq"])

    if TYPE_CHECKING:
        # A command whose answer was lost is answered as one that is known.

        def submit(  # type: ignore[override]
            self, instrument: str, side: str, size: Exact, price: Exact | None = None, **terms: Unpack[OrderTerms]
        ) -> schema.OrderAnswer | schema.RepeatedAnswer: ...
        def cancel(  # type: ignore[override]
            self, instrument: str, client_order_id: OrderName
        ) -> schema.OrderAnswer | schema.RepeatedAnswer: ...
        def amend(  # type: ignore[override]
            self,
            instrument: str,
            client_order_id: OrderName,
            *,
            price: Exact | None = None,
            trigger: Exact | None = None,
            size: Exact | None = None,
        ) -> schema.OrderAnswer | schema.RepeatedAnswer: ...
        def mass_cancel(  # type: ignore[override]
            self, instrument: str | None = None, side: str | None = None
        ) -> schema.MassCancelAnswer | schema.RepeatedAnswer: ...
        def many(  # type: ignore[override]
            self, commands: Sequence[Mapping[str, object]]
        ) -> list[schema.OrderAnswer | schema.MassCancelAnswer | schema.RepeatedAnswer | Refused]: ...

    def close(self) -> None:
        """The connections are its client's; the session stays open."""

    def _numbered(self, method: str, path: str, body: Json | None, count: int) -> Json:
        if body is not None:
            check_numbered(body.get("commands", [body]))
        joint = "&" if "?" in path else "?"
        known: list[Any] = []

        def doubt(answer: Json) -> Refused | None:
            if "results" not in answer:
                return None
            answer["results"] = known[:] = merged(known, answer["results"])
            return in_doubt(known)

        with self._once:
            if self._is_lost:
                raise OutcomeUnknown(IS_LOST)
            numbered = f"{path}{joint}session={self.session_id}&session_seq={self.next_seq}"
            # Where nobody waits any more, as after Ctrl-C, it is not known whether the number is used either.
            self._is_lost = True
            try:
                answer = self._until_answered(method, numbered, body, doubt)
            except Numbered as rejected:
                self.next_seq += 1
                self._is_lost = False
                raise rejected.refused from None
            except (Refused, TypeError):
                # The log does not have it, or it was not sent.
                self._is_lost = False
                raise
            # Of several, those that the venue has no place for use no number.
            results = answer["results"] if count > 1 or "results" in answer else [{"answer": answer}]
            self.next_seq += sum(map(uses_number, results))
            self._is_lost = False
            return answer

    def _until_answered(
        self, method: str, path: str, body: Json | None, doubt: Callable[[Json], Refused | None] = lambda _: None
    ) -> Json:
        """Sends it again, by any replica, until there is an answer in which nothing is in doubt: it is the same command under the same
        number.
        """
        content = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        ends, pause_s = time.monotonic() + self.patience_s, _PAUSE_S
        while True:
            why: Exception
            try:
                replica, status, answer = self._transport.send(method, path, content, self._headers(method, path, content))
                found = _decoded(path, status, answer)
                refused = refusal(found) if status >= 300 else doubt(found)
                if refused is None:
                    return found
                why = refused
                if "log_index" in found:
                    raise Numbered(refused)
                if refused.code not in _AGAIN and status < 500:
                    raise refused
                if refused.code == _TIMESTAMP_STALE:
                    self._resynchronise()
                if refused.code == _NOT_LEADER or status >= 500:
                    self._transport.next_replica(replica)
            except (Lost, OutcomeUnknown) as lost:
                why = lost
            if time.monotonic() >= ends:
                raise OutcomeUnknown(
                    f"{method} {path}: no answer within {self.patience_s} s ({why}): use this session no more, and look at orders and fills"
                ) from why
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)


class Numbered(Exception):
    """A rejection that stands in the log: it has used its number up."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(str(refused))
        self.refused = refused


class AsyncClient:
    """:class:`Client` for asyncio: the same methods, awaited. Requests run in threads, so as many are under way as are awaited at a time.

    For many orders use :meth:`order_entry`, for live data :meth:`stream`.
    """

    def __init__(
        self,
        url: str | Sequence[str] = "http://127.0.0.1:7070",
        key: KeyLike | None = None,
        *,
        timeout_s: float = 10.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.plain = Client(url, key, timeout_s=timeout_s, tls=tls)

    @classmethod
    def _of(cls, plain: Client) -> Self:
        made = cls.__new__(cls)
        made.plain = plain
        return made

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.plain.close)

    @property
    def key(self) -> _native.Key | None:
        """Its key."""
        return self.plain.key

    @property
    def url(self) -> str:
        """The address that is used now."""
        return self.plain.url

    async def request(self, method: str, path: str, body: Json | None = None, *, signed: bool = True, fresh: bool = False) -> Json:
        """As :meth:`Client.request`."""
        return await asyncio.to_thread(self.plain.request, method, path, body, signed=signed, fresh=fresh)

    async def status(self) -> schema.Status:
        """As :meth:`Client.status`."""
        return await asyncio.to_thread(self.plain.status)

    async def assets(self) -> list[schema.Asset]:
        """As :meth:`Client.assets`."""
        return await asyncio.to_thread(self.plain.assets)

    async def instruments(self) -> list[schema.Instrument]:
        """As :meth:`Client.instruments`."""
        return await asyncio.to_thread(self.plain.instruments)

    async def book(self, instrument: str, depth: int = 50, *, fresh: bool = False) -> schema.Book:
        """As :meth:`Client.book`."""
        return await asyncio.to_thread(self.plain.book, instrument, depth, fresh=fresh)

    async def book_orders(self, instrument: str, limit: int = 100, *, fresh: bool = False) -> schema.BookOrders:
        """As :meth:`Client.book_orders`."""
        return await asyncio.to_thread(self.plain.book_orders, instrument, limit, fresh=fresh)

    async def auction(self, instrument: str, *, fresh: bool = False) -> schema.Auction:
        """As :meth:`Client.auction`."""
        return await asyncio.to_thread(self.plain.auction, instrument, fresh=fresh)

    async def ticker(self, instrument: str, *, fresh: bool = False) -> schema.Ticker:
        """As :meth:`Client.ticker`."""
        return await asyncio.to_thread(self.plain.ticker, instrument, fresh=fresh)

    async def trades(self, instrument: str, limit: int = 100, before: int | None = None) -> list[schema.Trade]:
        """As :meth:`Client.trades`."""
        return await asyncio.to_thread(self.plain.trades, instrument, limit, before)

    async def candles(self, instrument: str, interval: str = "1m", limit: int = 500) -> list[schema.Candle]:
        """As :meth:`Client.candles`."""
        return await asyncio.to_thread(self.plain.candles, instrument, interval, limit)

    async def past_trades(self, instrument: str, limit: int = 100, since: int = 0, until: int | None = None) -> list[schema.PastTrade]:
        """As :meth:`Client.past_trades`."""
        return await asyncio.to_thread(self.plain.past_trades, instrument, limit, since, until)

    async def past_book(self, instrument: str, at: int | None = None) -> schema.PastBook:
        """As :meth:`Client.past_book`."""
        return await asyncio.to_thread(self.plain.past_book, instrument, at)

    async def past_days(self) -> schema.PastDays:
        """As :meth:`Client.past_days`."""
        return await asyncio.to_thread(self.plain.past_days)

    async def account(self, *, fresh: bool = False) -> schema.Account:
        """As :meth:`Client.account`."""
        return await asyncio.to_thread(self.plain.account, fresh=fresh)

    async def fills(self, limit: int = 100, **which: Any) -> list[schema.Fill]:
        """As :meth:`Client.fills`."""
        return await asyncio.to_thread(self.plain.fills, limit, **which)

    async def closed_orders(self, limit: int = 100, **which: Any) -> list[schema.OrderState]:
        """As :meth:`Client.closed_orders`."""
        return await asyncio.to_thread(self.plain.closed_orders, limit, **which)

    async def order(self, instrument: str, client_order_id: OrderName, *, by: str = "client_order_id", fresh: bool = False) -> schema.OrderState:
        """As :meth:`Client.order`."""
        return await asyncio.to_thread(self.plain.order, instrument, client_order_id, by=by, fresh=fresh)

    async def reports(self, after: int = 0, limit: int = 100) -> list[schema.Report]:
        """As :meth:`Client.reports`."""
        return await asyncio.to_thread(self.plain.reports, after, limit)

    async def open_orders(self, instrument: str | None = None, *, fresh: bool = False) -> list[schema.Order]:
        """As :meth:`Client.open_orders`."""
        return await asyncio.to_thread(self.plain.open_orders, instrument, fresh=fresh)

    async def submit(self, instrument: str, side: str, size: Exact, price: Exact | None = None, **terms: Unpack[OrderTerms]) -> schema.OrderAnswer:
        """As :meth:`Client.submit`."""
        return await asyncio.to_thread(self.plain.submit, instrument, side, size, price, **terms)

    async def cancel(self, instrument: str, client_order_id: OrderName) -> schema.OrderAnswer:
        """As :meth:`Client.cancel`."""
        return await asyncio.to_thread(self.plain.cancel, instrument, client_order_id)

    async def amend(self, instrument: str, client_order_id: OrderName, **changes: Exact | None) -> schema.OrderAnswer:
        """As :meth:`Client.amend`."""
        return await asyncio.to_thread(self.plain.amend, instrument, client_order_id, **changes)

    async def mass_cancel(self, instrument: str | None = None, side: str | None = None) -> schema.MassCancelAnswer:
        """As :meth:`Client.mass_cancel`."""
        return await asyncio.to_thread(self.plain.mass_cancel, instrument, side)

    async def many(self, commands: Sequence[Mapping[str, object]]) -> list[schema.OrderAnswer | schema.MassCancelAnswer | Refused]:
        """As :meth:`Client.many`."""
        return await asyncio.to_thread(self.plain.many, commands)

    async def cancel_after(self, timeout_s: float) -> schema.CancelAfter:
        """As :meth:`Client.cancel_after`."""
        return await asyncio.to_thread(self.plain.cancel_after, timeout_s)

    async def session(self, token: int | None = None, *, patience_s: float = 60.0) -> AsyncSession:
        """As :meth:`Client.session`: a client whose commands take effect once, one after the other."""
        return AsyncSession._of(await asyncio.to_thread(self.plain.session, token, patience_s=patience_s))

    async def batch(
        self,
        name: str,
        key: KeyLike | None = None,
        *,
        patience_s: float = 60.0,
        blocks: int | Literal["auto"] | None = "auto",
    ) -> AsyncMarket:
        """As :meth:`Client.batch`."""
        from walras._async_market import AsyncMarket

        return AsyncMarket(await asyncio.to_thread(self.plain.batch, name, key, patience_s=patience_s, blocks=blocks))

    def stream(self) -> AsyncStream:
        """As :meth:`Client.stream`."""
        from walras._stream import AsyncStream

        return AsyncStream(self.plain)

    async def order_entry(self, addresses: str | Iterable[str] = "127.0.0.1:7272", **settings: Any) -> OrderEntry:
        """A session of binary order entry for this key's account, logged on: see :class:`walras.OrderEntry`."""
        from walras._entry import OrderEntry

        if self.key is None:
            raise ValueError("order entry needs a key: give AsyncClient(..., key=) the path of a key file")
        account = await self.account()
        entry = OrderEntry(addresses, self.key, account=account["account_id"], instruments=await self.instruments(), **settings)
        await entry.start()
        return entry


class AsyncSession(AsyncClient):
    """:class:`Session` for asyncio; ``plain`` is that session, with its ``session_id``, ``token`` and ``next_seq``."""

    plain: Session

    if TYPE_CHECKING:
        # As of :class:`Session`.

        async def submit(  # type: ignore[override]
            self, instrument: str, side: str, size: Exact, price: Exact | None = None, **terms: Unpack[OrderTerms]
        ) -> schema.OrderAnswer | schema.RepeatedAnswer: ...
        async def cancel(  # type: ignore[override]
            self, instrument: str, client_order_id: OrderName
        ) -> schema.OrderAnswer | schema.RepeatedAnswer: ...
        async def amend(  # type: ignore[override]
            self, instrument: str, client_order_id: OrderName, **changes: Exact | None
        ) -> schema.OrderAnswer | schema.RepeatedAnswer: ...
        async def mass_cancel(  # type: ignore[override]
            self, instrument: str | None = None, side: str | None = None
        ) -> schema.MassCancelAnswer | schema.RepeatedAnswer: ...
        async def many(  # type: ignore[override]
            self, commands: Sequence[Mapping[str, object]]
        ) -> list[schema.OrderAnswer | schema.MassCancelAnswer | schema.RepeatedAnswer | Refused]: ...
