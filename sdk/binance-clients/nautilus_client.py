"""The Binance adapter of nautilus_trader, as it is, with another base URL."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from nautilus_trader.adapters.binance.common.enums import BinanceAccountType, BinanceKlineInterval, BinanceOrderType, BinanceTimeInForce
from nautilus_trader.adapters.binance.common.enums import BinanceOrderSide
from nautilus_trader.adapters.binance.http.client import BinanceHttpClient
from nautilus_trader.adapters.binance.http.error import BinanceClientError
from nautilus_trader.adapters.binance.spot.http.account import BinanceSpotAccountHttpAPI
from nautilus_trader.adapters.binance.spot.http.market import BinanceSpotMarketHttpAPI
from nautilus_trader.adapters.binance.spot.http.user import BinanceSpotUserDataHttpAPI
from nautilus_trader.adapters.binance.websocket.client import BinanceWebSocketClient
from nautilus_trader.common.component import LiveClock

from steps import Steps
from venue import Venue

steps = Steps("nautilus_trader", "nautilus_trader")
SYMBOL = "BTCUSD"


class Context:
    def __init__(self, running: Venue) -> None:
        self.venue, self.clock = running, LiveClock()
        kind = BinanceAccountType.SPOT
        taker, maker = (
            BinanceHttpClient(self.clock, account.api_key, account.secret, running.rest)
            for account in (running.taker, running.maker)
        )
        self.market = BinanceSpotMarketHttpAPI(taker, account_type=kind)
        self.taker = BinanceSpotAccountHttpAPI(taker, self.clock, account_type=kind)
        self.maker = BinanceSpotAccountHttpAPI(maker, self.clock, account_type=kind)
        self.user = BinanceSpotUserDataHttpAPI(taker, account_type=kind)

    def stream(self, seen: list[Any]) -> BinanceWebSocketClient:
        loop = asyncio.get_running_loop()
        return BinanceWebSocketClient(self.clock, self.venue.ws, lambda raw: seen.append(json.loads(raw)), None, loop)


async def limit(account: BinanceSpotAccountHttpAPI, side: BinanceOrderSide, quantity: str, price: str, **more: Any) -> Any:
    return await account.new_order(
        symbol=SYMBOL, side=side, order_type=BinanceOrderType.LIMIT, time_in_force=BinanceTimeInForce.GTC, quantity=quantity,
        price=price, **more,
    )


async def until(seen: list[Any], is_it: Any) -> Any:
    for _ in range(100):
        found = [message for message in seen if is_it(message)]
        if found:
            return found[0]
        await asyncio.sleep(0.1)
    raise AssertionError(f"not heard: {seen}")


@steps.step
async def instruments(c: Context) -> None:
    info = await c.market.query_spot_exchange_info(SYMBOL)
    assert [s.symbol for s in info.symbols] == [SYMBOL] and info.symbols[0].filters[0].tickSize == "0.01", info
    base, quote = info.symbols[0].parse_to_base_asset(), info.symbols[0].parse_to_quote_asset()
    assert (base.code, quote.code) == ("BTC", "USD")
    assert await c.market.request_server_time() > 0


@steps.step
async def place(c: Context) -> None:
    order = await limit(c.maker, BinanceOrderSide.SELL, "0.5", "30100.00", new_client_order_id="ask-1")
    assert order.clientOrderId == "ask-1", order
    await limit(c.maker, BinanceOrderSide.BUY, "0.5", "29900.00", new_client_order_id="bid-1")
    assert (await c.maker.query_order(symbol=SYMBOL, orig_client_order_id="bid-1")).price == "29900.00"
    assert len(await c.maker.query_open_orders(SYMBOL)) == 2


@steps.step
async def book(c: Context) -> None:
    depth = await c.market.query_depth(SYMBOL, 5)
    assert depth.asks[0] == ("30100.00", "0.5000"), depth


@steps.step
async def fill(c: Context) -> None:
    order = await c.taker.new_order(
        symbol=SYMBOL, side=BinanceOrderSide.BUY, order_type=BinanceOrderType.MARKET, quantity="0.2"
    )
    assert order.executedQty == "0.2000", order
    trades = await c.taker.query_user_trades(SYMBOL)
    assert trades[-1].qty == "0.2000" and trades[-1].commissionAsset == "USD", trades


@steps.step
async def trades_and_klines(c: Context) -> None:
    assert (await c.market.query_trades(SYMBOL))[-1].price == "30100.00"
    assert (await c.market.query_agg_trades(SYMBOL))[-1].q == "0.2000"
    kline = (await c.market.query_klines(SYMBOL, BinanceKlineInterval.MINUTE_1))[-1]
    assert kline.close == "30100.00", kline
    assert (await c.market.query_ticker_24hr(SYMBOL))[0].lastPrice == "30100.00"


@steps.step
async def balances(c: Context) -> None:
    account = await c.taker.query_spot_account_info()
    assert {b.asset: b.free for b in account.balances}["BTC"] == "100.2", account
    assert len(account.parse_to_account_balances()) == 2


@steps.step
async def streams(c: Context) -> None:
    seen: list[Any] = []
    client = c.stream(seen)
    await client.subscribe_agg_trades(SYMBOL)
    await client.subscribe_book_ticker(SYMBOL)
    await client.subscribe_diff_book_depth(SYMBOL, 100)
    await asyncio.sleep(1)
    await limit(c.maker, BinanceOrderSide.SELL, "0.1", "30050.00")
    placed = ["30050.00", "0.1000"]
    await until(seen, lambda m: m.get("data", {}).get("e") == "depthUpdate" and placed in m["data"]["a"])
    await c.taker.new_order(symbol=SYMBOL, side=BinanceOrderSide.BUY, order_type=BinanceOrderType.MARKET, quantity="0.1")
    assert (await until(seen, lambda m: m.get("data", {}).get("e") == "aggTrade"))["data"]["p"] == "30050.00"
    await client.disconnect()


@steps.step
async def user_stream(c: Context) -> None:
    seen: list[Any] = []
    listen_key = (await c.user.create_listen_key()).listenKey
    client = c.stream(seen)
    await client.subscribe_listen_key(listen_key)
    await asyncio.sleep(1)
    order = await limit(c.taker, BinanceOrderSide.BUY, "0.1", "29000.00")
    report = await until(seen, lambda m: m.get("data", {}).get("e") == "executionReport")
    assert report["data"]["i"] == order.orderId, report
    await c.taker.cancel_order(symbol=SYMBOL, order_id=order.orderId)
    await until(seen, lambda m: m.get("data", {}).get("x") == "CANCELED")
    await c.user.keepalive_listen_key(listen_key=listen_key)
    await client.disconnect()


@steps.step
async def error_codes(c: Context) -> None:
    for order_id, code in ((999_999, "-2013"),):
        try:
            await c.taker.query_order(symbol=SYMBOL, order_id=order_id)
        except BinanceClientError as e:
            assert code in str(e.message), e.message
        else:
            raise AssertionError("nothing was raised")


if __name__ == "__main__":
    steps.run(Context)
