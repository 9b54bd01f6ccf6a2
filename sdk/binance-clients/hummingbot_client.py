"""hummingbot's connector for Binance, as it is, with other base URLs: the part of the bot that its strategies trade by."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from hummingbot.connector.exchange.binance import binance_constants
from hummingbot.connector.exchange.binance.binance_exchange import BinanceExchange
from hummingbot.core.data_type.common import OrderType
from hummingbot.core.data_type.in_flight_order import InFlightOrder, OrderState

from steps import Steps
from venue import Account, Venue

steps = Steps("hummingbot", "hummingbot")
PAIR = "BTC-USD"


def connector(account: Account) -> BinanceExchange:
    return BinanceExchange(account.api_key, account.secret, trading_pairs=[PAIR])


class Context:
    def __init__(self, running: Venue) -> None:
        # Without a place for the domain, which is a country's at Binance.
        binance_constants.REST_URL = f"{running.rest}/api/"
        binance_constants.WSS_URL = f"{running.ws}/ws"
        binance_constants.WSS_API_URL = f"{running.ws}/ws-api/v3"
        self.venue = running
        self.taker, self.maker = connector(running.taker), connector(running.maker)

    async def until(self, what: str, is_so: Callable[[], bool], patience_s: float = 25) -> None:
        """Waits, while the connectors' clocks tick as the bot has them tick."""
        begun = time.monotonic()
        while not is_so():
            assert time.monotonic() - begun < patience_s, f"not within {patience_s} s: {what}"
            for each in (self.taker, self.maker):
                each.tick(time.time())
            await asyncio.sleep(0.05)

    async def close(self) -> None:
        for each in (self.taker, self.maker):
            await each.stop_network()


def order_of(client: BinanceExchange, name: str) -> InFlightOrder | None:
    """An order that the connector tracks, or tracked; `None` before it has begun to."""
    return client._order_tracker.fetch_order(client_order_id=name)


def is_in(client: BinanceExchange, name: str, state: OrderState) -> bool:
    order = order_of(client, name)
    return order is not None and order.current_state is state


@steps.step
async def connects(c: Context) -> None:
    for each in (c.taker, c.maker):
        await each.start_network()
    await c.until("both are ready", lambda: c.taker.ready and c.maker.ready)
    assert (await c.taker.check_network()).name == "CONNECTED"


@steps.step
def rules(c: Context) -> None:
    rule = c.taker.trading_rules[PAIR]
    assert (rule.min_price_increment, rule.min_base_amount_increment) == (Decimal("0.01"), Decimal("0.0001")), rule


@steps.step
def balances(c: Context) -> None:
    assert c.taker.get_balance("BTC") == 100 and c.taker.available_balances["USD"] == 5_000_000, c.taker.get_all_balances()


@steps.step
async def quotes(c: Context) -> None:
    ask = c.maker.sell(PAIR, Decimal("0.5"), OrderType.LIMIT_MAKER, Decimal("30100"))
    bid = c.maker.buy(PAIR, Decimal("0.5"), OrderType.LIMIT, Decimal("29900"))
    await c.until("both stand", lambda: all(is_in(c.maker, name, OrderState.OPEN) for name in (ask, bid)))
    # By the stream, on top of the snapshot.
    await c.until("the book shows them", lambda: (c.taker.get_price(PAIR, True), c.taker.get_price(PAIR, False)) == (30100, 29900))


@steps.step
async def fills(c: Context) -> None:
    name = c.taker.buy(PAIR, Decimal("0.2"), OrderType.MARKET)
    await c.until("it is filled", lambda: is_in(c.taker, name, OrderState.FILLED))
    order = order_of(c.taker, name)
    assert order is not None
    (fill,) = order.order_fills.values()
    assert (fill.fill_price, fill.fill_base_amount, fill.fee.flat_fees[0].token) == (30100, Decimal("0.2"), "USD"), fill
    traded = lambda: [each.executed_amount_base for each in c.maker.in_flight_orders.values()]  # noqa: E731
    await c.until("its maker hears of it", lambda: Decimal("0.2") in traded())


@steps.step
async def balances_follow(c: Context) -> None:
    # What was bought comes by the account's stream; fees are in quote.
    await c.until("the balance has changed", lambda: c.taker.get_balance("BTC") == Decimal("100.2"))
    assert c.taker.get_balance("USD") < 5_000_000 - 6_020


@steps.step
async def cancels(c: Context) -> None:
    name = c.taker.buy(PAIR, Decimal("0.1"), OrderType.LIMIT, Decimal("29000"))
    await c.until("it stands", lambda: is_in(c.taker, name, OrderState.OPEN))
    c.taker.cancel(PAIR, name)
    await c.until("it is cancelled", lambda: is_in(c.taker, name, OrderState.CANCELED))


@steps.step
async def what_is_refused_fails(c: Context) -> None:
    name = c.taker.buy(PAIR, Decimal("9000"), OrderType.LIMIT, Decimal("29000"))
    await c.until("it has failed", lambda: is_in(c.taker, name, OrderState.FAILED))


@steps.step
async def polls_what_the_stream_says(c: Context) -> None:
    """By REST, as the bot does where its stream is silent."""
    name = c.taker.sell(PAIR, Decimal("0.1"), OrderType.LIMIT, Decimal("29900"))
    await c.until("it is filled", lambda: is_in(c.taker, name, OrderState.FILLED))
    order = order_of(c.taker, name)
    assert order is not None
    update = await c.taker._request_order_status(order)
    trades = await c.taker._all_trade_updates_for_order(order)
    assert update.new_state is OrderState.FILLED and [trade.fill_price for trade in trades] == [29900], (update, trades)
    prices: Any = await c.taker.get_last_traded_prices([PAIR])
    assert prices == {PAIR: 29900.0}, prices


@steps.step
async def cancels_all(c: Context) -> None:
    cancelled = await c.maker.cancel_all(10)
    assert len(cancelled) == 2 and all(each.success for each in cancelled), cancelled
    assert not c.maker.in_flight_orders


if __name__ == "__main__":
    steps.run(Context)
