"""cryptofeed, as it is, with another base URL: it reads feeds, and orders over REST."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import aiohttp
from cryptofeed.connection import RestEndpoint, Routes, WebsocketEndpoint
from cryptofeed.defines import BALANCES, BUY, CANDLES, GOOD_TIL_CANCELED, L2_BOOK, LIMIT, ORDER_INFO, SELL, TICKER, TRADES
from cryptofeed.exchanges import Binance
from cryptofeed.symbols import Symbols

from steps import Steps
from tls_proxy import TlsProxy
from venue import Account, Venue

steps = Steps("cryptofeed", "cryptofeed")
SYMBOL = "BTC-USD"


class Context:
    def __init__(self, running: Venue) -> None:
        self.venue = running
        routes = Routes(
            "/api/v3/exchangeInfo", l2book="/api/v3/depth?symbol={}&limit={}", authentication="/api/v3/userDataStream"
        )
        # It takes no address without TLS: a proxy stands in front, as docs/binance.md says.
        self.proxy = TlsProxy(running.facade_port)
        Binance.websocket_endpoints = [WebsocketEndpoint(f"wss://localhost:{self.proxy.port}")]
        Binance.rest_endpoints = [RestEndpoint(running.rest, routes=routes)]
        Binance.api = f"{running.rest}/api/v3/"
        Symbols.clear()

    def client(self, account: Any) -> Any:
        client = Binance(config={"binance": {"key_id": account.api_key, "key_secret": account.secret}})
        client.key_id, client.key_secret = account.api_key, account.secret
        return client

    async def with_client(self, account: Account, act: Callable[[Any], Awaitable[Any]]) -> Any:
        client = self.client(account)
        try:
            return await act(client)
        finally:
            await client.shutdown()

    async def limit(self, account: Account, side: str, amount: str, price: str) -> Any:
        return await self.with_client(
            account, lambda client: client.place_order(SYMBOL, side, LIMIT, Decimal(amount), Decimal(price), GOOD_TIL_CANCELED)
        )

    async def heard(self, channel: str, act: Any, **more: Any) -> list[Any]:
        """What a feed says of a channel while something is done."""
        seen: list[Any] = []

        async def callback(said: Any, _at: float) -> None:
            seen.append(said)

        subscription = {"symbols": [SYMBOL], "channels": [channel]}
        own = self.venue.taker
        config = {"binance": {"key_id": own.api_key, "key_secret": own.secret}} if channel in (BALANCES, ORDER_INFO) else None
        feed = Binance(callbacks={channel: callback}, config=config, **subscription, **more)
        feed.start(asyncio.get_running_loop())
        try:
            await asyncio.sleep(1)
            await act()
            for _ in range(100):
                if seen:
                    break
                await asyncio.sleep(0.1)
            await asyncio.sleep(0.5)
        finally:
            feed.stop()
            await feed.shutdown()
        assert seen, f"the feed said nothing of {channel}"
        return seen


@steps.step
def instruments(c: Context) -> None:
    assert Binance.symbols() == [SYMBOL], Binance.symbols()
    assert Binance.info()["tick_size"][SYMBOL] == "0.01"


@steps.step
async def place(c: Context) -> None:
    await c.limit(c.venue.maker, SELL, "0.5", "30100")
    await c.limit(c.venue.maker, BUY, "0.5", "29900")


@steps.step
async def book(c: Context) -> None:
    async def act() -> None:
        await c.limit(c.venue.maker, BUY, "0.1", "29950")

    seen = await c.heard(L2_BOOK, act)
    assert Decimal("29950") in seen[-1].book.bids and Decimal("30100") in seen[-1].book.asks, seen[-1].book


@steps.step
async def ticker(c: Context) -> None:
    async def act() -> None:
        await c.limit(c.venue.maker, BUY, "0.1", "29951")

    assert (await c.heard(TICKER, act))[-1].bid == Decimal("29951")


@steps.step
async def trades(c: Context) -> None:
    async def act() -> None:
        await c.limit(c.venue.taker, BUY, "0.01", "30100")

    seen = await c.heard(TRADES, act)
    assert (seen[-1].price, seen[-1].amount, seen[-1].side) == (Decimal("30100"), Decimal("0.01"), BUY)


@steps.step
async def candles(c: Context) -> None:
    async def act() -> None:
        await c.limit(c.venue.taker, BUY, "0.01", "30100")

    seen = await c.heard(CANDLES, act, candle_interval="1m", candle_closed_only=False)
    assert seen[-1].close == Decimal("30100"), seen


@steps.step
async def user_stream(c: Context) -> None:
    async def act() -> None:
        await c.limit(c.venue.taker, BUY, "0.01", "29000")

    seen = await c.heard(ORDER_INFO, act)
    # Its price is that of what was filled: none.
    assert (seen[-1].amount, seen[-1].price, seen[-1].status) == (Decimal("0.01"), None, "NEW"), seen
    assert seen[-1].raw["p"] == "29000.00", seen
    assert await c.heard(BALANCES, act)


@steps.step
async def orders_and_balances(c: Context) -> None:
    async def look(client: Any) -> None:
        balances = {balance["asset"]: Decimal(balance["free"]) for balance in await client.balances()}
        assert balances["BTC"] > 100, balances
        orders = await client.orders(SYMBOL)
        assert len(orders) == 2, orders

    await c.with_client(c.venue.taker, look)


@steps.step
async def cancel(c: Context) -> None:
    async def act(client: Any) -> None:
        before = [order["orderId"] for order in await client.orders(SYMBOL)]
        placed = await client.place_order(SYMBOL, BUY, LIMIT, Decimal("0.01"), Decimal("28900"), GOOD_TIL_CANCELED)
        gone = await client.cancel_order(placed["orderId"], SYMBOL)
        assert gone["status"] == "CANCELED" and gone["orderId"] == placed["orderId"], gone
        assert [order["orderId"] for order in await client.orders(SYMBOL)] == before
        try:
            await client.cancel_order(placed["orderId"], SYMBOL)
        except aiohttp.ClientResponseError as e:
            assert e.status == 400, e
        else:
            raise AssertionError("an order was cancelled twice")

    await c.with_client(c.venue.taker, act)


class Log(logging.Handler):
    """What the library logs: it raises an error's status alone, and logs the answer."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@steps.step
async def error_codes(c: Context) -> None:
    taker = c.venue.taker
    refused = [
        (taker, "0.1", "30000.001", 400, "-1013"),
        (taker, "0.00001", "30000", 400, "-1013"),
        (taker, "900", "30000", 400, "-2010"),
        (dataclasses.replace(taker, secret="x" * 43), "0.1", "29000", 400, "-1022"),
        (dataclasses.replace(taker, api_key="hm_nobody"), "0.1", "29000", 401, "-2015"),
    ]
    log, logger = Log(), logging.getLogger("feedhandler")
    logger.addHandler(log)
    try:
        for account, amount, price, status, code in refused:
            log.texts.clear()
            try:
                await c.limit(account, BUY, amount, price)
            except aiohttp.ClientResponseError as e:
                assert e.status == status, e
            else:
                raise AssertionError(f"{amount} at {price} was taken")
            assert any(code in text for text in log.texts), log.texts
    finally:
        logger.removeHandler(log)


@steps.step
async def rate_limit_headers(c: Context) -> None:
    async def look(client: Any) -> None:
        _, headers = await client.http_conn.read(f"{client.api}time", return_headers=True)
        assert int(headers["X-MBX-USED-WEIGHT-1M"]) > 0, headers

    await c.with_client(c.venue.taker, look)


@steps.step
async def reconnect(c: Context) -> None:
    seen: list[Any] = []

    async def callback(said: Any, _at: float) -> None:
        seen.append(said)

    async def until(what: str, is_so: Callable[[], bool]) -> None:
        for _ in range(150):
            if is_so():
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"the feed said nothing {what}")

    feed = Binance(callbacks={TICKER: callback}, symbols=[SYMBOL], channels=[TICKER])
    feed.start(asyncio.get_running_loop())
    try:
        await until("at first", lambda: len(seen) > 0)
        c.venue.stop()
        c.venue.start()
        before = len(seen)
        # It begins with the best levels, as they were.
        await until("after the restart", lambda: len(seen) > before)
        assert seen[-1].bid == seen[0].bid and seen[-1].ask == seen[0].ask, seen
    finally:
        feed.stop()
        await feed.shutdown()


if __name__ == "__main__":
    steps.run(Context)
