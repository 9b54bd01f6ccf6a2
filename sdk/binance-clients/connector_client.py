"""binance-connector, as it is, with another base URL."""

from __future__ import annotations

import asyncio
import json
import queue
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
def order_lists(c: Context) -> None:
    placed = c.taker.new_oco_order(
        SYMBOL, "SELL", "0.1", "LIMIT_MAKER", "STOP_LOSS", abovePrice="31000.00", belowStopPrice="29000.00"
    )
    list_id = placed["orderListId"]
    assert c.taker.get_oco_order(orderListId=list_id)["listOrderStatus"] == "EXECUTING"
    assert [one["orderListId"] for one in c.taker.get_oco_open_orders()] == [list_id]
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
    await heard.until(lambda m: m.get("result", 1) is None)
    await asyncio.sleep(0.5)
    limit(c.maker, "SELL", "0.1", "30050.00")
    await heard.until(lambda m: m.get("e") == "depthUpdate")
    c.taker.new_order(SYMBOL, "BUY", "MARKET", quantity="0.1")
    assert (await heard.until(lambda m: m.get("e") == "aggTrade"))["p"] == "30050.00"
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


if __name__ == "__main__":
    steps.run(Context)
