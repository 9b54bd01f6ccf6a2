"""The Binance adapter of nautilus_trader, as it is, with another base URL; and its loader of Databento's files, on a venue's archive."""

from __future__ import annotations

import asyncio
import json
import pathlib
import sys
import tempfile
from collections.abc import Awaitable
from typing import Any

from nautilus_trader.adapters.binance.common.enums import BinanceAccountType, BinanceKlineInterval, BinanceOrderType, BinanceTimeInForce
from nautilus_trader.adapters.binance.common.enums import BinanceKeyType, BinanceOrderSide
from nautilus_trader.adapters.binance.http.client import BinanceHttpClient
from nautilus_trader.adapters.binance.http.error import BinanceClientError
from nautilus_trader.adapters.binance.spot.http.account import BinanceSpotAccountHttpAPI
from nautilus_trader.adapters.binance.spot.http.market import BinanceSpotMarketHttpAPI
from nautilus_trader.adapters.binance.spot.http.user import BinanceSpotUserDataHttpAPI
from nautilus_trader.adapters.binance.websocket.client import BinanceWebSocketClient
from nautilus_trader.adapters.databento.loaders import DatabentoDataLoader
from nautilus_trader.common.component import LiveClock
from nautilus_trader.core.nautilus_pyo3 import HttpMethod
from nautilus_trader.model.book import OrderBook
from nautilus_trader.model.enums import BookType
from nautilus_trader.model.identifiers import InstrumentId

from steps import Steps
from venue import Venue

steps = Steps("nautilus_trader", "nautilus_trader")
SYMBOL = "BTCUSD"
REPOSITORY = pathlib.Path(__file__).parents[2]
ARCHIVE = REPOSITORY / "edge" / "archive" / "tests" / "golden-zstd" / "2026-11-20"
ARCHIVED = InstrumentId.from_str("BTC/USD.WALRAS")


class Context:
    def __init__(self, running: Venue) -> None:
        self.venue, self.clock = running, LiveClock()
        kind = BinanceAccountType.SPOT
        taker, maker = (
            BinanceHttpClient(self.clock, account.api_key, account.secret, running.rest)
            for account in (running.taker, running.maker)
        )
        self.http = taker
        self.market = BinanceSpotMarketHttpAPI(taker, account_type=kind)
        self.taker = BinanceSpotAccountHttpAPI(taker, self.clock, account_type=kind)
        self.maker = BinanceSpotAccountHttpAPI(maker, self.clock, account_type=kind)
        self.user = BinanceSpotUserDataHttpAPI(taker, account_type=kind)

    def with_key(self, key: str, kind: BinanceKeyType, **secret: str) -> BinanceSpotAccountHttpAPI:
        client = BinanceHttpClient(self.clock, key, "", self.venue.rest, key_type=kind, **secret)
        return BinanceSpotAccountHttpAPI(client, self.clock, account_type=BinanceAccountType.SPOT)

    def stream(self, seen: list[Any]) -> BinanceWebSocketClient:
        loop = asyncio.get_running_loop()
        return BinanceWebSocketClient(self.clock, self.venue.ws, lambda raw: seen.append(json.loads(raw)), None, loop)


async def limit(account: BinanceSpotAccountHttpAPI, side: BinanceOrderSide, quantity: str, price: str, **more: Any) -> Any:
    return await account.new_order(
        symbol=SYMBOL, side=side, order_type=BinanceOrderType.LIMIT, time_in_force=BinanceTimeInForce.GTC, quantity=quantity,
        price=price, **more,
    )


async def refused(asked: Awaitable[Any], status: int, code: int) -> None:
    """A request must end in this error."""
    try:
        await asked
    except BinanceClientError as e:
        assert e.status == status and e.message["code"] == code, (e.status, e.message)
    else:
        raise AssertionError(f"nothing was raised, where {code} was expected")


async def places(account: BinanceSpotAccountHttpAPI) -> None:
    order = await limit(account, BinanceOrderSide.BUY, "0.01", "28000.00")
    assert (await account.cancel_order(symbol=SYMBOL, order_id=order.orderId)).status.value == "CANCELED"


async def until(seen: list[Any], is_it: Any) -> Any:
    for _ in range(150):
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
async def replace(c: Context) -> None:
    """By its client for signed requests: its adapter replaces no spot orders."""
    order = await limit(c.taker, BinanceOrderSide.BUY, "0.1", "29000.00")
    wanted = {
        "symbol": SYMBOL, "side": "BUY", "type": "LIMIT", "timeInForce": "GTC", "quantity": "0.2", "price": "29100.00",
        "cancelReplaceMode": "STOP_ON_FAILURE", "cancelOrderId": str(order.orderId), "timestamp": str(c.clock.timestamp_ms()),
    }
    done = json.loads(await c.http.sign_request(HttpMethod.POST, "/api/v3/order/cancelReplace", wanted))
    assert (done["cancelResult"], done["newOrderResult"]) == ("SUCCESS", "SUCCESS"), done
    [other] = await c.taker.query_open_orders(SYMBOL)
    assert other.price == "29100.00" and other.orderId != order.orderId, other
    assert await c.taker.cancel_all_open_orders(SYMBOL)
    assert await c.taker.query_open_orders(SYMBOL) == []


@steps.step
async def order_lists(c: Context) -> None:
    placed = await c.taker.new_spot_oco(
        symbol=SYMBOL, side=BinanceOrderSide.SELL, quantity="0.1", price="31000.00", stop_price="29000.00"
    )
    assert [one.orderListId for one in await c.taker.query_spot_all_open_oco()] == [placed.orderListId]
    assert [one.orderListId for one in await c.taker.query_spot_all_oco()] == [placed.orderListId]
    await c.taker.cancel_spot_oco(symbol=SYMBOL, order_list_id=str(placed.orderListId))
    assert await c.taker.query_open_orders(SYMBOL) == []


@steps.step
async def error_codes(c: Context) -> None:
    buy = BinanceOrderSide.BUY
    await refused(c.taker.query_order(symbol=SYMBOL, order_id=999_999), 400, -2013)
    await refused(c.taker.cancel_order(symbol=SYMBOL, order_id=999_999), 400, -2011)
    await refused(c.market.query_depth("NOPE", 5), 400, -1121)
    await refused(limit(c.taker, BinanceOrderSide.SELL, "900", "30200.00"), 400, -2010)
    await refused(limit(c.taker, buy, "0.1", "30000.001"), 400, -1013)
    await refused(limit(c.taker, buy, "0.00001", "30000.00"), 400, -1013)
    await refused(limit(c.taker, buy, "0.1", "1e5"), 400, -1100)
    await refused(c.taker.query_open_orders(SYMBOL, recv_window="70000"), 400, -1131)
    own = c.venue.taker
    for key, secret, status, code in ((own.api_key, "x" * 43, 400, -1022), ("hm_nobody", own.secret, 401, -2015)):
        client = BinanceHttpClient(c.clock, key, secret, c.venue.rest)
        account = BinanceSpotAccountHttpAPI(client, c.clock, account_type=BinanceAccountType.SPOT)
        await refused(account.query_spot_account_info(), status, code)


@steps.step
async def rate_limits(c: Context) -> None:
    """It shows no headers."""
    info = await c.market.query_spot_exchange_info(SYMBOL)
    assert [limit.rateLimitType.value for limit in info.rateLimits] == ["REQUEST_WEIGHT", "ORDERS", "ORDERS"], info.rateLimits
    limits = await c.taker.query_spot_order_rate_limit()
    assert [limit.intervalNum for limit in limits] == [10, 1] and limits[1].count > 0, limits


@steps.step
async def ed25519_key(c: Context) -> None:
    own = c.venue.taker
    # It takes what is between the lines of the PEM.
    key = "".join(line for line in own.ed25519_pem.splitlines() if not line.startswith("-"))
    await places(c.with_key(own.ed25519_key, BinanceKeyType.ED25519, ed25519_private_key=key))


@steps.step
async def rsa_key(c: Context) -> None:
    own = c.venue.taker
    await places(c.with_key(own.rsa_key, BinanceKeyType.RSA, rsa_private_key=own.rsa_pem))


def archived(kind: str, **more: Any) -> Any:
    """What its loader reads of a day of a venue's archive (docs/history.md), which is compressed as Databento's files are."""
    return DatabentoDataLoader().from_dbn_file(ARCHIVE / f"BTC-USD.0.{kind}.dbn.zst", instrument_id=ARCHIVED, price_precision=1, **more)


@steps.step
async def archived_trades(_: Context) -> None:
    trades = archived("trades")
    assert [str(trade.price) for trade in trades] == ["30001.0", "29999.5", "30001.0", "30001.5"], trades
    assert [int(trade.size) for trade in trades] == [2, 1, 3, 3], "in lots"


@steps.step
async def archived_books(_: Context) -> None:
    books = archived("mbp-10")
    assert len(books) == 5 and str(books[-1].bids[0].price) == "29999.5", books
    assert int(books[-1].bids[0].size) == 3 and int(books[-1].asks[0].size) == 4


@steps.step
async def archived_orders(_: Context) -> None:
    book = OrderBook(ARCHIVED, BookType.L3_MBO)
    for delta in archived("mbo"):
        book.apply_delta(delta)
    levels = [(str(level.price), [int(order.size) for order in level.orders()]) for level in book.bids() + book.asks()]
    assert levels == [("29999.5", [3]), ("30001.5", [4])], levels
    trades = [item for item in archived("mbo", include_trades=True) if type(item).__name__ == "TradeTick"]
    assert [int(trade.size) for trade in trades] == [2, 1, 3, 3], trades


@steps.step
async def archived_definition(_: Context) -> None:
    """As docs/history.md says: its loader takes definitions of Databento's own publishers alone."""
    try:
        archived("definition")
    except ValueError as e:
        assert "publisher" in str(e), e
    else:
        raise AssertionError("it takes a definition of nobody's now: say so in docs/history.md")


@steps.step
async def archived_back_test(_: Context) -> None:
    """The program of docs/history.md: the book is that of the archive, order by order, and a strategy's order trades against it."""
    program = str(REPOSITORY / "docs" / "nautilus-back-test.py")
    pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
    run = await asyncio.create_subprocess_exec(sys.executable, program, str(ARCHIVE), "BTC/USD", **pipes)
    try:
        out, err = await asyncio.wait_for(run.communicate(), 25)
    finally:
        if run.returncode is None:
            run.kill()
    lines = out.decode().splitlines()
    assert run.returncode == 0 and lines, err.decode()[-3000:]
    assert "filled 1 30001.0" in lines and lines[-1] == "book 29999.5 3 30001.5 4", lines


async def trading_node(c: Context) -> list[dict[str, str]]:
    """Runs a whole node (nautilus_node.py) until its strategy is done, and returns what the strategy was sent."""
    with tempfile.TemporaryDirectory() as folder:
        out, own = pathlib.Path(folder) / "said", c.venue.taker
        settings = {"api_key": own.api_key, "secret": own.secret, "rest": c.venue.rest, "ws": c.venue.ws, "out": str(out)}
        program = str(pathlib.Path(__file__).with_name("nautilus_node.py"))
        pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.STDOUT}
        node = await asyncio.create_subprocess_exec(sys.executable, program, json.dumps(settings), **pipes)
        try:
            log, _ = await asyncio.wait_for(node.communicate(), 25)
        finally:
            if node.returncode is None:
                node.kill()
        assert node.returncode == 0, log.decode()[-3000:]
        return [json.loads(line) for line in out.read_text().splitlines()]


@steps.step
async def a_trading_node(c: Context) -> None:
    resting = await limit(c.taker, BinanceOrderSide.BUY, "0.3", "29500.00")
    await limit(c.maker, BinanceOrderSide.SELL, "1", "30060.00")
    said = await trading_node(c)
    by_kind = {line["what"]: line for line in said}
    assert by_kind["started"]["tick"] == "0.01" and by_kind["started"]["lot"] == "0.0001", said
    known = [line for line in said if line["what"] == "known" and line["id"] == resting.clientOrderId]
    assert [line["status"] for line in known] == ["ACCEPTED"], "it takes over an order that it did not send"
    assert "quote" in by_kind and "trade" in by_kind and "cancelled" in by_kind, said
    assert {"rejected", "denied"}.isdisjoint(by_kind), said
    fills = [line for line in said if line["what"] == "filled"]
    assert sum(float(line["size"]) for line in fills) == 0.1, said
    await c.taker.cancel_order(symbol=SYMBOL, order_id=resting.orderId)


@steps.step
async def reconnect(c: Context) -> None:
    seen: list[Any] = []
    client = c.stream(seen)
    await client.subscribe_book_ticker(SYMBOL)
    await client.subscribe_agg_trades(SYMBOL)

    def is_best(message: Any) -> bool:
        return "b" in message.get("data", {})

    before = (await until(seen, is_best))["data"]["b"]
    c.venue.stop()
    seen.clear()
    c.venue.start()
    assert (await until(seen, is_best))["data"]["b"] == before
    await client.disconnect()


if __name__ == "__main__":
    steps.run(Context)
