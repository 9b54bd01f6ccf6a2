"""ccxt and ccxt.pro, as they are, with another base URL."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import ccxt
import ccxt.pro

from steps import Steps, raises
from venue import Account, Venue

steps = Steps("ccxt", "ccxt")
MARKET = "BTC/USD"


def configured(exchange: Any, running: Venue) -> Any:
    for name in ("public", "private"):
        exchange.urls["api"][name] = f"{running.rest}/api/v3"
    exchange.urls["api"]["sapi"] = f"{running.rest}/sapi/v1"
    if "ws" in exchange.urls["api"]:
        exchange.urls["api"]["ws"]["spot"] = f"{running.ws}/ws"
        exchange.urls["api"]["ws"]["ws-api"]["spot"] = f"{running.ws}/ws-api/v3"
    return exchange


def options(account: Account) -> dict[str, Any]:
    return {
        "apiKey": account.api_key,
        "secret": account.secret,
        "enableRateLimit": False,
        "options": {"defaultType": "spot", "fetchMarkets": {"types": ["spot"]}, "fetchCurrencies": False, "fetchMargins": False, "adjustForTimeDifference": False},
    }


class Context:
    def __init__(self, running: Venue) -> None:
        self.venue = running
        self.taker = configured(ccxt.binance(options(running.taker)), running)
        self.maker = configured(ccxt.binance(options(running.maker)), running)
        self.taker.load_markets()
        self.maker.load_markets()
        self.pro = configured(ccxt.pro.binance(options(running.taker)), running)

    async def close(self) -> None:
        await self.pro.close()


@steps.step
def instruments(c: Context) -> None:
    market = c.taker.markets[MARKET]
    assert market["id"] == "BTCUSD" and market["base"] == "BTC" and market["quote"] == "USD"
    assert market["active"] and market["spot"], market


@steps.step
def filters(c: Context) -> None:
    market = c.taker.market(MARKET)
    assert market["precision"]["price"] == 0.01 and market["precision"]["amount"] == 0.0001, market["precision"]
    assert market["limits"]["amount"]["min"] == 0.0001, market["limits"]
    assert c.taker.price_to_precision(MARKET, 30000.018) == "30000.02"


@steps.step
def trading_fees(c: Context) -> None:
    for fees in (c.taker.fetch_trading_fees(), {MARKET: c.taker.fetch_trading_fee(MARKET)}):
        assert (fees[MARKET]["maker"], fees[MARKET]["taker"]) == (0.0001, 0.0002), fees


@steps.step
def server_time(c: Context) -> None:
    assert abs(c.taker.fetch_time() - c.taker.milliseconds()) < 5_000


@steps.step
def place(c: Context) -> None:
    order = c.maker.create_order(MARKET, "limit", "sell", 0.5, 30100, {"newClientOrderId": "ask-1"})
    assert order["status"] == "open" and order["clientOrderId"] == "ask-1" and order["filled"] == 0, order
    order = c.maker.create_order(MARKET, "limit", "buy", 0.5, 29900, {"newClientOrderId": "bid-1"})
    assert order["status"] == "open" and order["side"] == "buy", order
    fetched = c.maker.fetch_order(order["id"], MARKET)
    assert fetched["price"] == 29900 and fetched["clientOrderId"] == "bid-1", fetched


@steps.step
def book(c: Context) -> None:
    seen = c.taker.fetch_order_book(MARKET)
    assert seen["asks"][0][:2] == [30100, 0.5] and seen["bids"][0][:2] == [29900, 0.5], seen


@steps.step
def open_orders(c: Context) -> None:
    assert {order["clientOrderId"] for order in c.maker.fetch_open_orders(MARKET)} == {"ask-1", "bid-1"}
    c.maker.options["warnOnFetchOpenOrdersWithoutSymbol"] = False
    assert len(c.maker.fetch_open_orders()) == 2


@steps.step
def fill(c: Context) -> None:
    order = c.taker.create_order(MARKET, "market", "buy", 0.2)
    assert order["status"] == "closed" and order["filled"] == 0.2 and order["average"] == 30100, order
    assert order["trades"] and order["fees"][0]["currency"] == "USD", order
    assert Decimal(str(order["fees"][0]["cost"])) == Decimal("1.204"), order["fees"]


@steps.step
def market_by_cost(c: Context) -> None:
    order = c.taker.create_market_buy_order_with_cost(MARKET, 301)
    assert order["filled"] == 0.01 and order["cost"] == 301, order


@steps.step
def balances(c: Context) -> None:
    seen = c.taker.fetch_balance()
    assert seen["BTC"]["free"] == 100.21, seen["BTC"]
    assert c.maker.fetch_balance()["BTC"]["used"] == 0.29


@steps.step
def trades(c: Context) -> None:
    seen = c.taker.fetch_trades(MARKET)
    # Aggregated trades of the two orders.
    assert [trade["amount"] for trade in seen] == [0.2, 0.01] and seen[0]["side"] == "buy", seen
    own = c.taker.fetch_my_trades(MARKET)
    assert [trade["amount"] for trade in own] == [0.2, 0.01] and own[0]["takerOrMaker"] == "taker", own


@steps.step
def klines(c: Context) -> None:
    seen = c.taker.fetch_ohlcv(MARKET, "1m")
    assert sum(candle[5] for candle in seen) == 0.21, seen
    assert c.taker.fetch_ohlcv(MARKET, "1d")[-1][4] == 30100


@steps.step
def tickers(c: Context) -> None:
    ticker = c.taker.fetch_ticker(MARKET)
    assert ticker["last"] == 30100 and ticker["bid"] == 29900 and ticker["baseVolume"] == 0.21, ticker
    assert ticker["quoteVolume"] == 6321 and ticker["vwap"] == 30100, ticker
    assert c.taker.fetch_bids_asks([MARKET])[MARKET]["ask"] == 30100


@steps.step
def rolling_windows_and_time_zones(c: Context) -> None:
    ticker = c.taker.fetch_ticker(MARKET, {"rolling": True, "windowSize": "4h"})
    assert ticker["last"] == 30100 and ticker["baseVolume"] == 0.21 and ticker["change"] == 0, ticker
    assert c.taker.fetch_tickers([MARKET], {"rolling": True})[MARKET]["quoteVolume"] == 6321
    day = c.taker.fetch_ohlcv(MARKET, "1d", params={"timeZone": "8"})[-1]
    assert day[0] % 86_400_000 == 57_600_000 and day[4] == 30100, day


@steps.step
def cancel(c: Context) -> None:
    order = c.taker.create_order(MARKET, "limit", "buy", 0.1, 29000)
    gone = c.taker.cancel_order(order["id"], MARKET)
    assert gone["status"] == "canceled" and gone["id"] == order["id"], gone
    raises(ccxt.OrderNotFound, lambda: c.taker.cancel_order(order["id"], MARKET), "-2011")
    ended = c.taker.fetch_order(order["id"], MARKET)
    assert ended["status"] == "canceled" and ended["remaining"] == 0.1, ended
    closed = c.taker.fetch_closed_orders(MARKET)
    assert [o["amount"] for o in closed if o["status"] == "closed"] == [0.2, 0.01], closed


@steps.step
def replace(c: Context) -> None:
    order = c.taker.create_order(MARKET, "limit", "buy", 0.1, 29000)
    other = c.taker.edit_order(order["id"], MARKET, "limit", "buy", 0.2, 29100)
    assert other["id"] != order["id"] and other["price"] == 29100 and other["amount"] == 0.2, other
    assert [o["id"] for o in c.taker.fetch_open_orders(MARKET)] == [other["id"]]
    c.taker.cancel_all_orders(MARKET)
    assert c.taker.fetch_open_orders(MARKET) == []


@steps.step
def order_types(c: Context) -> None:
    maker = c.taker.create_order(MARKET, "LIMIT_MAKER", "buy", 0.1, 29000)
    assert maker["postOnly"] or maker["info"]["clientOrderId"], maker
    c.taker.cancel_order(maker["id"], MARKET)
    raises(ccxt.OrderImmediatelyFillable, lambda: c.taker.create_order(MARKET, "LIMIT_MAKER", "buy", 0.1, 31000))
    expired = c.taker.create_order(MARKET, "limit", "buy", 0.1, 29000, {"timeInForce": "IOC"})
    assert expired["status"] == "expired" and expired["filled"] == 0, expired
    expired = c.taker.create_order(MARKET, "limit", "buy", 5, 30100, {"timeInForce": "FOK"})
    assert expired["status"] == "expired", expired
    stop = c.taker.create_order(MARKET, "STOP_LOSS_LIMIT", "sell", 0.1, 28900, {"stopPrice": 29000})
    assert c.taker.fetch_order(stop["id"], MARKET)["triggerPrice"] == 29000
    c.taker.cancel_order(stop["id"], MARKET)


@steps.step
def order_lists(c: Context) -> None:
    request = {
        "symbol": "BTCUSD", "side": "SELL", "quantity": "0.1", "aboveType": "LIMIT_MAKER", "abovePrice": "31000",
        "belowType": "STOP_LOSS", "belowStopPrice": "29000",
    }
    placed = c.taker.private_post_orderlist_oco(request)
    assert sorted(order["type"] for order in placed["orderReports"]) == ["LIMIT_MAKER", "STOP_LOSS"], placed
    [listed] = c.taker.private_get_openorderlist()
    assert listed["orderListId"] == placed["orderListId"] and len(listed["orders"]) == 2, listed
    gone = c.taker.cancel_order(placed["orders"][0]["orderId"], MARKET)
    assert gone["status"] == "canceled" and c.taker.private_get_openorderlist() == [], gone
    assert c.taker.fetch_open_orders(MARKET) == []


@steps.step
def error_codes(c: Context) -> None:
    # ccxt knows this one by its text, and shows no number.
    raises(ccxt.InsufficientFunds, lambda: c.taker.create_order(MARKET, "limit", "sell", 900, 30200), "insufficient balance")
    raises(ccxt.BadSymbol, lambda: c.taker.public_get_depth({"symbol": "NOPE"}), "-1121")
    raises(ccxt.OrderNotFound, lambda: c.taker.fetch_order("999999999", MARKET), "-2013")
    raises(ccxt.InvalidOrder, lambda: c.taker.private_post_order(order(price="30000.001")), "-1013", "PRICE_FILTER")
    raises(ccxt.InvalidOrder, lambda: c.taker.private_post_order(order(quantity="0.00001")), "-1013", "LOT_SIZE")
    raises(ccxt.BadRequest, lambda: c.taker.private_post_order(order(price="1e5")), "-1100")
    wrong = configured(ccxt.binance({**options(c.venue.taker), "secret": "x" * 43}), c.venue)
    raises(ccxt.AuthenticationError, lambda: wrong.private_get_account(), "-1022")
    unknown = configured(ccxt.binance({**options(c.venue.taker), "apiKey": "hm_nobody"}), c.venue)
    raises(ccxt.AuthenticationError, lambda: unknown.private_get_account(), "-2015")


def order(**changed: str) -> dict[str, str]:
    return {"symbol": "BTCUSD", "side": "BUY", "type": "LIMIT", "timeInForce": "GTC", "quantity": "0.1", "price": "29000", **changed}


def places_with_key(c: Context, key: str, pem: str) -> None:
    exchange = configured(ccxt.binance({**options(c.venue.taker), "apiKey": key, "secret": pem}), c.venue)
    order = exchange.create_order(MARKET, "limit", "buy", 0.01, 28000)
    assert exchange.cancel_order(order["id"], MARKET)["status"] == "canceled"


@steps.step
def ed25519_key(c: Context) -> None:
    places_with_key(c, c.venue.taker.ed25519_key, c.venue.taker.ed25519_pem)


@steps.step
def rsa_key(c: Context) -> None:
    places_with_key(c, c.venue.taker.rsa_key, c.venue.taker.rsa_pem)


@steps.step
def rate_limit_headers(c: Context) -> None:
    c.taker.fetch_time()
    assert int(c.taker.last_response_headers["X-Mbx-Used-Weight-1m"]) > 0, c.taker.last_response_headers
    order = c.taker.create_order(MARKET, "limit", "buy", 0.1, 29000)
    assert int(c.taker.last_response_headers["X-Mbx-Order-Count-10s"]) > 0, c.taker.last_response_headers
    c.taker.cancel_order(order["id"], MARKET)


@steps.step
async def stream_book_and_trades(c: Context) -> None:
    await c.pro.load_markets()
    seen = await c.pro.watch_order_book(MARKET)
    assert seen["bids"][0][0] == 29900, seen
    trade = asyncio.create_task(c.pro.watch_trades(MARKET))
    ticker = asyncio.create_task(c.pro.watch_ticker(MARKET))
    await asyncio.sleep(0.3)
    c.maker.create_order(MARKET, "limit", "sell", 0.05, 30050)
    c.taker.create_order(MARKET, "market", "buy", 0.05)
    assert (await trade)[-1]["price"] == 30050
    assert (await ticker)["last"] in (30050, 30100)
    candle = await c.pro.watch_ohlcv(MARKET, "1m")
    assert candle[-1][4] == 30050, candle


@steps.step
async def stream_windows_and_time_zones(c: Context) -> None:
    tickers = await c.pro.watch_tickers([MARKET], {"name": "ticker_1h"})
    assert tickers[MARKET]["last"] == 30050, tickers
    day = (await c.pro.watch_ohlcv(MARKET, "1d", params={"timezone": "+08:00"}))[-1]
    assert day[0] % 86_400_000 == 57_600_000 and day[4] == 30050, day


@steps.step
async def user_stream(c: Context) -> None:
    orders = asyncio.create_task(c.pro.watch_orders(MARKET))
    await asyncio.sleep(0.3)
    order = await c.pro.create_order(MARKET, "limit", "buy", 0.1, 29000, {"newClientOrderId": "watched-1"})
    seen = await orders
    assert seen[-1]["id"] == order["id"] and seen[-1]["clientOrderId"] == "watched-1", seen
    gone = asyncio.create_task(c.pro.watch_orders(MARKET))
    balance = asyncio.create_task(c.pro.watch_balance())
    await asyncio.sleep(0.1)
    await c.pro.cancel_order(order["id"], MARKET)
    assert (await gone)[-1]["status"] == "canceled"
    assert (await balance)["USD"]["free"] > 0
    own = asyncio.create_task(c.pro.watch_my_trades(MARKET))
    await asyncio.sleep(0.1)
    await c.pro.create_order(MARKET, "market", "sell", 0.01)
    assert (await own)[-1]["amount"] == 0.01


@steps.step
async def websocket_api(c: Context) -> None:
    order = await c.pro.create_order_ws(MARKET, "limit", "buy", 0.1, 29000)
    assert order["status"] == "open", order
    assert (await c.pro.fetch_order_ws(order["id"], MARKET))["id"] == order["id"]
    assert [o["id"] for o in await c.pro.fetch_open_orders_ws(MARKET)] == [order["id"]]
    await c.pro.cancel_order_ws(order["id"], MARKET)
    # ccxt 4.5.90 makes balances of this answer for other accounts than spot's alone; what it was sent is there.
    balances = {b["asset"]: float(b["free"]) for b in (await c.pro.fetch_balance_ws())["info"]["balances"]}
    assert balances["BTC"] > 0, balances


@steps.step
async def websocket_market_data(c: Context) -> None:
    trades = await c.pro.fetch_trades_ws(MARKET, limit=1)
    assert trades[-1]["id"] == str(c.taker.public_get_trades({"symbol": "BTCUSD", "limit": 1})[0]["id"]), trades
    assert (await c.pro.fetch_ohlcv_ws(MARKET, "1d"))[-1][4] == trades[-1]["price"]


@steps.step
async def reconnect(c: Context) -> None:
    c.venue.stop()
    c.venue.start()
    pro = configured(ccxt.pro.binance(options(c.venue.taker)), c.venue)
    try:
        seen = await pro.watch_order_book(MARKET)
        assert seen["bids"][0][0] == 29900, seen
    finally:
        await pro.close()
    # Requests before the restart are not known any more: only later stamps are taken.
    for _ in range(100):
        try:
            assert c.taker.fetch_balance()["BTC"]["free"] > 100
            break
        except ccxt.InvalidNonce:
            await asyncio.sleep(0.1)
    else:
        raise AssertionError("the restarted venue took no request")


if __name__ == "__main__":
    steps.run(Context)
