"""binance-connector, as it is, with another base URL."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from decimal import Decimal
from typing import Any

from binance.error import ClientError
from binance.spot import Spot
from binance.websocket.spot.websocket_api import SpotWebsocketAPIClient
from binance.websocket.spot.websocket_stream import SpotWebsocketStreamClient

from steps import Steps, raises
from venue import Venue

steps = Steps("binance-connector", "binance-connector")
SYMBOL = "BTCUSD"


class Context:
    def __init__(self, running: Venue) -> None:
        self.venue = running
        self.taker = Spot(running.taker.api_key, running.taker.secret, base_url=running.rest)
        self.maker = Spot(running.maker.api_key, running.maker.secret, base_url=running.rest)


def limit(client: Spot, side: str, quantity: str, price: str, **more: Any) -> dict[str, Any]:
    return dict(client.new_order(SYMBOL, side, "LIMIT", timeInForce="GTC", quantity=quantity, price=price, **more))


class Heard:
    """Messages of a WebSocket client, which calls back from a thread of its own."""

    def __init__(self) -> None:
        self.messages: queue.Queue[Any] = queue.Queue()

    def __call__(self, _client: Any, text: str) -> None:
        self.messages.put(json.loads(text))

    async def until(self, is_it: Any) -> Any:
        while True:
            message = await asyncio.to_thread(self.messages.get, timeout=10)
            if is_it(message):
                return message


@steps.step
def instruments_and_filters(c: Context) -> None:
    info = c.taker.exchange_info(symbol=SYMBOL)
    assert [s["symbol"] for s in info["symbols"]] == [SYMBOL] and info["rateLimits"], info
    assert c.taker.ping() == {} and c.taker.time()["serverTime"] > 0


@steps.step
def place(c: Context) -> None:
    order = limit(c.maker, "SELL", "0.5", "30100.00", newClientOrderId="ask-1")
    assert order["status"] == "NEW" and order["clientOrderId"] == "ask-1", order
    limit(c.maker, "BUY", "0.5", "29900.00", newClientOrderId="bid-1")
    assert c.maker.get_order(SYMBOL, origClientOrderId="bid-1")["status"] == "NEW"


@steps.step
def book(c: Context) -> None:
    assert c.taker.depth(SYMBOL, limit=5)["asks"] == [["30100.00", "0.5000"]]
    assert c.taker.book_ticker(SYMBOL)["askQty"] == "0.5000"


@steps.step
def fill(c: Context) -> None:
    order = c.taker.new_order(SYMBOL, "BUY", "MARKET", quantity="0.2")
    assert order["status"] == "FILLED" and order["fills"][0]["commissionAsset"] == "USD", order


@steps.step
def trades_and_klines(c: Context) -> None:
    assert c.taker.trades(SYMBOL)[-1]["price"] == "30100.00"
    assert c.taker.historical_trades(SYMBOL)[-1]["price"] == "30100.00"
    assert c.taker.agg_trades(SYMBOL)[-1]["q"] == "0.2000"
    assert c.taker.klines(SYMBOL, "1m")[-1][4] == "30100.00"
    assert c.taker.ticker_24hr(SYMBOL)["lastPrice"] == "30100.00"
    assert c.taker.ticker_price(SYMBOL)["price"] == "30100.00"
    assert Decimal(c.taker.avg_price(SYMBOL)["price"]) == 30100, c.taker.avg_price(SYMBOL)
    assert c.taker.my_trades(SYMBOL)[-1]["qty"] == "0.2000"


@steps.step
def rolling_windows_and_time_zones(c: Context) -> None:
    window = c.taker.rolling_window_ticker(SYMBOL, windowSize="4h")
    assert window["volume"] == "0.2000" and window["openTime"] % 60_000 == 0, window
    [mini] = c.taker.rolling_window_ticker(symbols=[SYMBOL], type="MINI")
    assert mini["count"] == 1 and "priceChange" not in mini, mini
    assert c.taker.trading_day_ticker(SYMBOL)["openTime"] % 86_400_000 == 0
    assert c.taker.klines(SYMBOL, "1d", timeZone="8")[-1][0] % 86_400_000 == 57_600_000


@steps.step
def balances(c: Context) -> None:
    balances = {b["asset"]: b for b in c.taker.account()["balances"]}
    assert balances["BTC"]["free"] == "100.2", balances


@steps.step
def cancel_and_replace(c: Context) -> None:
    order = limit(c.taker, "BUY", "0.1", "29000.00")
    done = c.taker.cancel_and_replace(
        SYMBOL, "BUY", "LIMIT", "STOP_ON_FAILURE", timeInForce="GTC", quantity="0.2", price="29100.00", cancelOrderId=order["orderId"]
    )
    assert done["newOrderResult"] == "SUCCESS", done
    assert len(c.taker.get_open_orders(SYMBOL)) == 1
    assert len(c.taker.cancel_open_orders(SYMBOL)) == 1
    raises(ClientError, lambda: c.taker.cancel_open_orders(SYMBOL), "-2011")


@steps.step
def amend(c: Context) -> None:
    order = limit(c.taker, "BUY", "0.2", "29000.00", newClientOrderId="smaller")
    wanted = {"symbol": SYMBOL, "orderId": order["orderId"], "newQty": "0.1"}
    # It has no method for this path of its own.
    done = c.taker.sign_request("PUT", "/api/v3/order/amend/keepPriority", dict(wanted))
    assert done["amendedOrder"]["qty"] == "0.1000" and done["amendedOrder"]["clientOrderId"] == "smaller", done
    assert c.taker.get_order(SYMBOL, orderId=order["orderId"])["origQty"] == "0.1000"
    raises(ClientError, lambda: c.taker.sign_request("PUT", "/api/v3/order/amend/keepPriority", dict(wanted)), "-2038")
    c.taker.cancel_order(SYMBOL, orderId=order["orderId"])


@steps.step
def order_lists(c: Context) -> None:
    placed = c.taker.new_oco_order(
        SYMBOL, "SELL", "0.1", "LIMIT_MAKER", "STOP_LOSS", abovePrice="31000.00", belowStopPrice="29000.00"
    )
    list_id = placed["orderListId"]
    assert c.taker.get_oco_order(orderListId=list_id)["listOrderStatus"] == "EXECUTING"
    assert [one["orderListId"] for one in c.taker.get_oco_open_orders()] == [list_id]
    assert [one["orderListId"] for one in c.taker.get_oco_orders()] == [list_id]
    done = c.taker.cancel_oco_order(SYMBOL, orderListId=list_id)
    assert [order["status"] for order in done["orderReports"]] == ["CANCELED", "CANCELED"], done
    assert c.taker.get_open_orders(SYMBOL) == []


@steps.step
def error_codes(c: Context) -> None:
    raises(ClientError, lambda: c.taker.depth("NOPE"), "-1121")
    raises(ClientError, lambda: c.taker.new_order(SYMBOL, "BUY", "LIMIT", quantity="1", price="29000"), "-1102", "timeInForce")
    raises(ClientError, lambda: c.taker.new_order(SYMBOL, "BUY", "TAKE_PROFIT", quantity="1", trailingDelta=100), "-2010")
    raises(ClientError, lambda: Spot(base_url=c.venue.rest, api_key="nobody", api_secret="x").account(), "-2014")


@steps.step
def rate_limit_headers(c: Context) -> None:
    client = Spot(c.venue.taker.api_key, c.venue.taker.secret, base_url=c.venue.rest, show_limit_usage=True)
    assert int(client.account()["limit_usage"]["x-mbx-used-weight-1m"]) >= 20
    assert client.get_order_rate_limit()["data"][0]["count"] > 0


@steps.step
def ed25519_key(c: Context) -> None:
    client = Spot(c.venue.taker.ed25519_key, base_url=c.venue.rest, private_key=c.venue.taker.ed25519_pem)
    assert client.account()["uid"] == c.venue.taker.account_id


@steps.step
def rsa_key(c: Context) -> None:
    client = Spot(c.venue.taker.rsa_key, base_url=c.venue.rest, private_key=c.venue.taker.rsa_pem)
    assert client.account()["uid"] == c.venue.taker.account_id


@steps.step
async def streams(c: Context) -> None:
    heard = Heard()
    client = SpotWebsocketStreamClient(stream_url=c.venue.ws, on_message=heard)
    client.agg_trade(symbol="btcusd")
    client.diff_book_depth(symbol="btcusd", speed=100)
    client.book_ticker(symbol="btcusd")
    client.rolling_window_ticker(symbol="btcusd", windowSize="1h")
    client.kline_timezone_offset(symbol="btcusd", interval="1d")
    await heard.until(lambda m: m.get("result", 1) is None)
    await asyncio.sleep(0.5)
    limit(c.maker, "SELL", "0.1", "30050.00")
    await heard.until(lambda m: m.get("e") == "depthUpdate")
    c.taker.new_order(SYMBOL, "BUY", "MARKET", quantity="0.1")
    assert (await heard.until(lambda m: m.get("e") == "aggTrade"))["p"] == "30050.00"
    assert (await heard.until(lambda m: m.get("e") == "1hTicker"))["O"] % 60_000 == 0
    assert (await heard.until(lambda m: m.get("e") == "kline"))["k"]["t"] % 86_400_000 == 57_600_000
    client.stop()


@steps.step
async def user_stream(c: Context) -> None:
    heard = Heard()
    listen_key = c.taker.new_listen_key()["listenKey"]
    client = SpotWebsocketStreamClient(stream_url=c.venue.ws, on_message=heard)
    client.user_data(listen_key=listen_key)
    await heard.until(lambda m: m.get("result", 1) is None)
    await asyncio.sleep(0.5)
    order = limit(c.taker, "BUY", "0.1", "29000.00")
    assert (await heard.until(lambda m: m.get("e") == "executionReport"))["i"] == order["orderId"]
    assert (await heard.until(lambda m: m.get("e") == "outboundAccountPosition"))["B"]
    c.taker.cancel_order(SYMBOL, orderId=order["orderId"])
    assert (await heard.until(lambda m: m.get("e") == "executionReport"))["x"] == "CANCELED"
    assert c.taker.renew_listen_key(listen_key) == {}
    assert c.taker.close_listen_key(listen_key) == {}
    await heard.until(lambda m: m.get("e") == "listenKeyExpired")
    raises(ClientError, lambda: c.taker.renew_listen_key(listen_key), "-1125")
    client.stop()


@steps.step
async def websocket_api(c: Context) -> None:
    heard = Heard()
    account = c.venue.taker
    client = SpotWebsocketAPIClient(
        stream_url=f"{c.venue.ws}/ws-api/v3", api_key=account.api_key, api_secret=account.secret, on_message=heard
    )
    client.new_order(symbol=SYMBOL, side="BUY", type="LIMIT", timeInForce="GTC", quantity="0.1", price="29000.00", id="1")
    placed = await heard.until(lambda m: m.get("id") == "1")
    assert placed["status"] == 200 and placed["rateLimits"], placed
    client.cancel_order(symbol=SYMBOL, orderId=placed["result"]["orderId"], id="2")
    assert (await heard.until(lambda m: m.get("id") == "2"))["result"]["status"] == "CANCELED"
    client.account(id="3")
    assert (await heard.until(lambda m: m.get("id") == "3"))["result"]["canTrade"] is True
    client.stop()


@steps.step
async def websocket_market_data(c: Context) -> None:
    heard = Heard()
    account = c.venue.taker
    client = SpotWebsocketAPIClient(
        stream_url=f"{c.venue.ws}/ws-api/v3", api_key=account.api_key, api_secret=account.secret, on_message=heard
    )
    last = c.taker.trades(SYMBOL)[-1]
    asked = {
        "recent": (client.recent_trades, {}),
        "historical": (client.historical_trades, {"apiKey": account.api_key}),
        "aggregate": (client.aggregate_trades, {}),
        "average": (client.avg_price, {}),
        "day": (client.ticker_24hr, {}),
        "window": (client.ticker, {"windowSize": "7d"}),
        "price": (client.ticker_price, {}),
        "book": (client.ticker_book, {}),
    }
    results = {}
    for name, (ask, more) in asked.items():
        ask(symbol=SYMBOL, id=name, **more)
        answer = await heard.until(lambda m: m.get("id") == name)  # noqa: B023
        assert answer["status"] == 200, answer
        results[name] = answer["result"]
    assert results["recent"][-1] == last == results["historical"][-1], results
    assert results["aggregate"][-1]["l"] == last["id"] and results["average"]["mins"] == 5, results
    assert {results[name]["lastId"] for name in ("day", "window")} == {last["id"]}, results
    assert results["price"]["price"] == last["price"] and results["book"]["askPrice"] == "30100.00", results
    client.order_rate_limit(id="orders")
    assert (await heard.until(lambda m: m.get("id") == "orders"))["result"][1]["count"] > 0
    client.oco_history(id="lists")
    assert (await heard.until(lambda m: m.get("id") == "lists"))["result"] == []
    client.user_data_start(id="start")
    listen_key = (await heard.until(lambda m: m.get("id") == "start"))["result"]["listenKey"]
    client.user_data_stop(listenKey=listen_key, id="stop")
    assert (await heard.until(lambda m: m.get("id") == "stop"))["result"] == {}
    client.stop()


@steps.step
async def reconnect(c: Context) -> None:
    """It does not connect again by itself: it reports the end, and the program opens another stream. REST needs nothing."""
    ended = threading.Event()
    first = Heard()

    def at_end(_client: Any, *_why: Any) -> None:
        ended.set()

    client = SpotWebsocketStreamClient(stream_url=c.venue.ws, on_message=first, on_close=at_end, on_error=at_end)
    client.book_ticker(symbol="btcusd")
    await first.until(lambda m: m.get("result", 1) is None)
    c.venue.stop()
    assert await asyncio.to_thread(ended.wait, 10), "it does not report the end of the stream"
    c.venue.start()
    second = Heard()
    client = SpotWebsocketStreamClient(stream_url=c.venue.ws, on_message=second)
    client.book_ticker(symbol="btcusd")
    assert (await second.until(lambda m: "b" in m))["b"] == "29900.00"
    client.stop()
    # Requests before the restart are not known any more: only later stamps are taken.
    for _ in range(100):
        try:
            assert c.taker.account()["canTrade"] is True
            break
        except ClientError as e:
            assert e.error_code == -1021, e
            await asyncio.sleep(0.1)
    else:
        raise AssertionError("the restarted venue took no request")


if __name__ == "__main__":
    steps.run(Context)
