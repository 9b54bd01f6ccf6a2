"""cryptofeed, as it is, with another base URL: it reads feeds, and orders over REST."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

from cryptofeed.connection import RestEndpoint, Routes, WebsocketEndpoint
from cryptofeed.defines import BALANCES, BUY, CANDLES, GOOD_TIL_CANCELED, L2_BOOK, LIMIT, ORDER_INFO, SELL, TICKER, TRADES
from cryptofeed.exchanges import Binance
from cryptofeed.symbols import Symbols

from steps import Steps
from tls_proxy import TlsProxy
from venue import Venue

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

    async def limit(self, account: Any, side: str, amount: str, price: str) -> Any:
        client = self.client(account)
        try:
            return await client.place_order(SYMBOL, side, LIMIT, Decimal(amount), Decimal(price), GOOD_TIL_CANCELED)
        finally:
            await client.shutdown()

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
    client = c.client(c.venue.taker)
    try:
        balances = {balance["asset"]: Decimal(balance["free"]) for balance in await client.balances()}
        assert balances["BTC"] > 100, balances
        orders = await client.orders(SYMBOL)
        assert len(orders) == 2, orders
    finally:
        await client.shutdown()


if __name__ == "__main__":
    steps.run(Context)
