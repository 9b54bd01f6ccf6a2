"""python-binance, as it is, with another base URL."""

from __future__ import annotations

import asyncio
from typing import Any

from binance import AsyncClient, BinanceSocketManager, Client, DepthCacheManager
from binance.exceptions import BinanceAPIException

from steps import Steps, raises
from venue import Account, Venue

steps = Steps("python-binance", "python-binance")
SYMBOL = "BTCUSD"


class Context:
    def __init__(self, running: Venue) -> None:
        self.venue = running
        for kind in (Client, AsyncClient):
            kind.API_URL = f"{running.rest}/api"
            kind.WS_API_URL = f"{running.ws}/ws-api/v3"
        BinanceSocketManager.STREAM_URL = f"{running.ws}/"
        self.taker = Client(running.taker.api_key, running.taker.secret)
        self.maker = Client(running.maker.api_key, running.maker.secret)

    async def client(self, account: Account) -> Any:
        return await AsyncClient.create(account.api_key, account.secret)


def limit(client: Any, side: str, quantity: str, price: str, **more: Any) -> dict[str, Any]:
    return dict(client.create_order(
        symbol=SYMBOL, side=side, type="LIMIT", timeInForce="GTC", quantity=quantity, price=price, **more
    ))


@steps.step
def instruments_and_filters(c: Context) -> None:
    info = c.taker.get_symbol_info(SYMBOL)
    kinds = [f["filterType"] for f in info["filters"]]
    assert info["baseAsset"] == "BTC" and info["status"] == "TRADING", info
    assert kinds[0] == "PRICE_FILTER" and {"LOT_SIZE", "MARKET_LOT_SIZE", "NOTIONAL"} <= set(kinds), kinds
    assert c.taker.get_server_time()["serverTime"] > 0 and c.taker.ping() == {}


@steps.step
def place(c: Context) -> None:
    order = limit(c.maker, "SELL", "0.5", "30100.00", newClientOrderId="ask-1")
    assert order["status"] == "NEW" and order["clientOrderId"] == "ask-1" and order["fills"] == [], order
    limit(c.maker, "BUY", "0.5", "29900.00", newClientOrderId="bid-1", newOrderRespType="ACK")
    assert c.maker.get_order(symbol=SYMBOL, origClientOrderId="bid-1")["price"] == "29900.00"
    assert c.taker.create_test_order(symbol=SYMBOL, side="BUY", type="MARKET", quantity="0.1") == {}


@steps.step
def book(c: Context) -> None:
    book = c.taker.get_order_book(symbol=SYMBOL, limit=5)
    assert book["asks"] == [["30100.00", "0.5000"]] and book["bids"] == [["29900.00", "0.5000"]], book
    assert c.taker.get_orderbook_ticker(symbol=SYMBOL)["bidPrice"] == "29900.00"


@steps.step
def fill(c: Context) -> None:
    order = c.taker.order_market_buy(symbol=SYMBOL, quantity="0.2")
    assert order["status"] == "FILLED" and order["executedQty"] == "0.2000", order
    assert order["fills"][0]["price"] == "30100.00" and order["cummulativeQuoteQty"] == "6020.000000", order


@steps.step
def trades_and_klines(c: Context) -> None:
    assert c.taker.get_recent_trades(symbol=SYMBOL)[-1]["qty"] == "0.2000"
    assert c.taker.get_aggregate_trades(symbol=SYMBOL)[-1]["q"] == "0.2000"
    assert c.taker.get_historical_trades(symbol=SYMBOL)[-1]["isBuyerMaker"] is False
    kline = c.taker.get_klines(symbol=SYMBOL, interval="1m")[-1]
    assert kline[4] == "30100.00", kline
    assert c.taker.get_klines(symbol=SYMBOL, interval="1h")[-1][7] == "6020.000000"
    assert c.taker.get_ticker(symbol=SYMBOL)["volume"] == "0.2000"
    assert c.taker.get_avg_price(symbol=SYMBOL)["mins"] == 5
    assert c.taker.get_symbol_ticker(symbol=SYMBOL)["price"] == "30100.00"
    assert c.taker.get_my_trades(symbol=SYMBOL)[-1]["commissionAsset"] == "USD"


@steps.step
def rolling_windows_and_time_zones(c: Context) -> None:
    window = c.taker.get_symbol_ticker_window(symbol=SYMBOL, windowSize="4h")
    assert window["volume"] == "0.2000" and window["openTime"] % 60_000 == 0, window
    day = c.taker.v3_get_ticker_trading_day(symbol=SYMBOL, timeZone="8")
    assert day["lastPrice"] == "30100.00" and day["openTime"] % 86_400_000 == 57_600_000, day
    assert c.taker.get_klines(symbol=SYMBOL, interval="1d", timeZone="8")[-1][0] == day["openTime"]


@steps.step
def balances(c: Context) -> None:
    assert c.taker.get_asset_balance(asset="BTC")["free"] == "100.2"
    assert c.maker.get_asset_balance(asset="BTC")["locked"] == "0.3"


@steps.step
def cancel(c: Context) -> None:
    order = limit(c.taker, "BUY", "0.1", "29000.00")
    assert [o["orderId"] for o in c.taker.get_open_orders(symbol=SYMBOL)] == [order["orderId"]]
    gone = c.taker.cancel_order(symbol=SYMBOL, orderId=order["orderId"])
    assert gone["status"] == "CANCELED" and gone["origClientOrderId"] == order["clientOrderId"], gone
    raises(BinanceAPIException, lambda: c.taker.cancel_order(symbol=SYMBOL, orderId=order["orderId"]), "-2011")
    assert c.taker.get_order(symbol=SYMBOL, origClientOrderId=order["clientOrderId"])["status"] == "CANCELED"
    known = {o["orderId"]: o["status"] for o in c.taker.get_all_orders(symbol=SYMBOL)}
    assert known[order["orderId"]] == "CANCELED" and "FILLED" in known.values(), known


@steps.step
def replace(c: Context) -> None:
    order = limit(c.taker, "BUY", "0.1", "29000.00")
    done = c.taker.cancel_replace_order(
        symbol=SYMBOL, side="BUY", type="LIMIT", timeInForce="GTC", quantity="0.2", price="29100.00",
        cancelReplaceMode="STOP_ON_FAILURE", cancelOrderId=order["orderId"],
    )
    assert done["cancelResult"] == "SUCCESS" and done["newOrderResponse"]["price"] == "29100.00", done
    assert len(c.taker.cancel_all_open_orders(symbol=SYMBOL)) == 1
    assert c.taker.get_open_orders(symbol=SYMBOL) == []


@steps.step
def order_lists(c: Context) -> None:
    placed = c.taker.create_oco_order(
        symbol=SYMBOL, side="SELL", quantity="0.1", aboveType="LIMIT_MAKER", abovePrice="31000.00", belowType="STOP_LOSS",
        belowStopPrice="29000.00",
    )
    assert placed["contingencyType"] == "OCO" and len(placed["orderReports"]) == 2, placed
    assert {order["orderListId"] for order in c.taker.get_open_orders(symbol=SYMBOL)} == {placed["orderListId"]}
    assert [one["orderListId"] for one in c.taker.get_open_oco_orders()] == [placed["orderListId"]]
    assert len(c.taker.cancel_all_open_orders(symbol=SYMBOL)) == 2
    assert c.taker.get_open_orders(symbol=SYMBOL) == [] == c.taker.get_open_oco_orders()


@steps.step
def error_codes(c: Context) -> None:
    raises(BinanceAPIException, lambda: limit(c.taker, "SELL", "900", "30200.00"), "-2010", "insufficient balance")
    raises(BinanceAPIException, lambda: limit(c.taker, "BUY", "0.1", "30000.001"), "-1013", "PRICE_FILTER")
    raises(BinanceAPIException, lambda: limit(c.taker, "BUY", "0.00001", "30000.00"), "-1013", "LOT_SIZE")
    raises(BinanceAPIException, lambda: limit(c.taker, "BUY", "0.1", "1e5"), "-1100")
    raises(BinanceAPIException, lambda: c.taker.get_order(symbol=SYMBOL, orderId=999999), "-2013")
    raises(BinanceAPIException, lambda: c.taker.get_order_book(symbol="NOPE"), "-1121")
    raises(BinanceAPIException, lambda: c.taker.get_klines(symbol=SYMBOL, interval="7m"), "-1120")
    hasty = Client(c.venue.taker.api_key, c.venue.taker.secret)
    hasty.REQUEST_RECVWINDOW = 70_000
    raises(BinanceAPIException, hasty.get_account, "-1131")
    raises(BinanceAPIException, lambda: Client("hm_nobody", "x").get_account(), "-2015")
    raises(BinanceAPIException, lambda: Client(c.venue.taker.api_key, "x").get_account(), "-1022")


@steps.step
def rate_limit_headers(c: Context) -> None:
    order = limit(c.taker, "BUY", "0.1", "29000.00")
    headers = c.taker.response.headers
    assert int(headers["x-mbx-used-weight-1m"]) > 0 and int(headers["x-mbx-order-count-10s"]) > 0, headers
    c.taker.cancel_order(symbol=SYMBOL, orderId=order["orderId"])


@steps.step
def ed25519_key(c: Context) -> None:
    client = Client(c.venue.taker.ed25519_key, private_key=c.venue.taker.ed25519_pem)
    assert client.get_account()["uid"] == c.venue.taker.account_id


@steps.step
def rsa_key(c: Context) -> None:
    client = Client(c.venue.taker.rsa_key, private_key=c.venue.taker.rsa_pem)
    assert client.get_account()["uid"] == c.venue.taker.account_id
    order = limit(client, "BUY", "0.1", "28000.00")
    assert client.cancel_order(symbol=SYMBOL, orderId=order["orderId"])["status"] == "CANCELED"


@steps.step
async def streams(c: Context) -> None:
    client = await c.client(c.venue.taker)
    manager = BinanceSocketManager(client)
    kinds = ("trade", "aggTrade", "kline_1m", "kline_1d@+08:00", "miniTicker", "ticker", "ticker_1h", "bookTicker", "depth5@100ms")
    names = [f"btcusd@{kind}" for kind in kinds]
    async with manager.multiplex_socket(names) as socket:
        await asyncio.sleep(0.3)
        limit(c.maker, "SELL", "0.1", "30050.00")
        c.taker.order_market_buy(symbol=SYMBOL, quantity="0.1")
        seen: set[str] = set()
        while seen != set(names):
            message = await asyncio.wait_for(socket.recv(), 10)
            seen.add(message["stream"])
    await client.close_connection()


@steps.step
async def stream_of_all_tickers(c: Context) -> None:
    client = await c.client(c.venue.taker)
    async with BinanceSocketManager(client).miniticker_socket() as socket:
        await asyncio.sleep(0.3)
        c.taker.order_market_buy(symbol=SYMBOL, quantity="0.01")
        tickers = await asyncio.wait_for(socket.recv(), 10)
        assert [ticker["s"] for ticker in tickers] == [SYMBOL], tickers
    await client.close_connection()


@steps.step
async def depth_cache(c: Context) -> None:
    client = await c.client(c.venue.taker)
    async with DepthCacheManager(client, symbol=SYMBOL, ws_interval=100) as depth:
        await asyncio.sleep(0.5)
        order = limit(c.maker, "BUY", "0.3", "29950.00")
        cache = await asyncio.wait_for(depth.recv(), 10)
        while not cache.get_bids() or cache.get_bids()[0] != [29950.0, 0.3]:
            cache = await asyncio.wait_for(depth.recv(), 10)
        c.maker.cancel_order(symbol=SYMBOL, orderId=order["orderId"])
        while cache.get_bids()[0] != [29900.0, 0.5]:
            cache = await asyncio.wait_for(depth.recv(), 10)
        assert cache.get_asks()[0][0] == 30100.0, cache.get_asks()
    await client.close_connection()


@steps.step
async def user_stream(c: Context) -> None:
    client = await c.client(c.venue.taker)
    async with BinanceSocketManager(client).user_socket() as socket:
        order = limit(c.taker, "BUY", "0.1", "29000.00", newClientOrderId="watched-1")
        c.taker.cancel_order(symbol=SYMBOL, orderId=order["orderId"])
        c.taker.order_market_sell(symbol=SYMBOL, quantity="0.01")
        seen = []
        while "TRADE" not in seen or "outboundAccountPosition" not in seen[seen.index("TRADE"):]:
            event = await asyncio.wait_for(socket.recv(), 10)
            seen.append(event.get("x", event["e"]))
            if event.get("x") == "NEW" and event["o"] == "LIMIT":
                assert event["c"] == "watched-1" and event["i"] == order["orderId"], event
        assert {"NEW", "CANCELED", "TRADE"} <= set(seen), seen
    await client.close_connection()


@steps.step
async def websocket_api(c: Context) -> None:
    client = await c.client(c.venue.taker)
    order = await client.ws_create_order(
        symbol=SYMBOL, side="BUY", type="LIMIT", timeInForce="GTC", quantity="0.1", price="29000.00"
    )
    assert order["status"] == "NEW", order
    assert (await client.ws_get_order(symbol=SYMBOL, orderId=order["orderId"]))["orderId"] == order["orderId"]
    assert len(await client.ws_get_open_orders(symbol=SYMBOL)) == 1
    assert (await client.ws_cancel_order(symbol=SYMBOL, orderId=order["orderId"]))["status"] == "CANCELED"
    assert (await client.ws_get_account())["accountType"] == "SPOT"
    assert (await client.ws_get_order_book(symbol=SYMBOL))["bids"][0][0] == "29900.00"
    await client.close_connection()


@steps.step
async def websocket_market_data(c: Context) -> None:
    client = await c.client(c.venue.taker)
    last = c.taker.get_recent_trades(symbol=SYMBOL)[-1]
    assert (await client.ws_get_recent_trades(symbol=SYMBOL))[-1] == last
    assert (await client.ws_get_historical_trades(symbol=SYMBOL, fromId=last["id"])) == [last]
    assert (await client.ws_get_aggregate_trades(symbol=SYMBOL))[-1]["l"] == last["id"]
    assert (await client.ws_get_symbol_ticker(symbol=SYMBOL))["price"] == last["price"]
    assert (await client.ws_get_orderbook_ticker(symbol=SYMBOL))["askPrice"] == "30100.00"
    assert (await client.ws_get_avg_price(symbol=SYMBOL))["mins"] == 5
    for ticker in (
        await client.ws_get_ticker(symbol=SYMBOL),
        await client.ws_get_symbol_ticker_window(symbol=SYMBOL, windowSize="1h"),
        await client.ws_get_trading_day_ticker(symbol=SYMBOL),
    ):
        assert ticker["lastPrice"] == last["price"] and ticker["lastId"] == last["id"], ticker
    rates = await client.ws_get_commission_rates(symbol=SYMBOL)
    assert rates["standardCommission"]["maker"] == "0.000100", rates
    assert (await client.ws_get_account_rate_limits_orders())[1]["count"] > 0
    await client.close_connection()


@steps.step
async def reconnect(c: Context) -> None:
    client = await c.client(c.venue.taker)
    async with BinanceSocketManager(client).multiplex_socket(["btcusd@bookTicker", "btcusd@miniTicker"]) as socket:
        await asyncio.wait_for(socket.recv(), 10)
        c.venue.stop()
        c.venue.start()
        for _ in range(100):
            message = await asyncio.wait_for(socket.recv(), 30)
            if "stream" in message:
                break
        else:
            raise AssertionError("the stream did not go on")
    await client.close_connection()


if __name__ == "__main__":
    steps.run(Context)
