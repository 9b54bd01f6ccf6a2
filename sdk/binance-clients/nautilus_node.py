"""A whole trading node of nautilus_trader with a strategy.

The first argument is its settings in JSON. What the strategy receives goes to the file ``out`` of the settings, one line of JSON each.
"""

from __future__ import annotations

import asyncio
import json
import sys
from decimal import Decimal
from typing import Any

from nautilus_trader.adapters.binance import BINANCE
from nautilus_trader.adapters.binance.common.enums import BinanceAccountType
from nautilus_trader.adapters.binance.config import BinanceDataClientConfig, BinanceExecClientConfig
from nautilus_trader.adapters.binance.factories import BinanceLiveDataClientFactory, BinanceLiveExecClientFactory
from nautilus_trader.config import InstrumentProviderConfig, LiveExecEngineConfig, LoggingConfig, TradingNodeConfig
from nautilus_trader.live.node import TradingNode
from nautilus_trader.model.enums import OrderSide
from nautilus_trader.model.identifiers import InstrumentId, TraderId
from nautilus_trader.trading.strategy import Strategy

INSTRUMENT = InstrumentId.from_str("BTCUSD.BINANCE")


class Once(Strategy):
    """A resting order, which it cancels, and a market order."""

    def __init__(self, out: Any, done: Any) -> None:
        super().__init__()
        self.out, self.done = out, done
        self.is_seen = {"quote": False, "trade": False}

    def say(self, what: str, **more: Any) -> None:
        print(json.dumps({"what": what} | {name: str(value) for name, value in more.items()}), file=self.out, flush=True)

    def on_start(self) -> None:
        instrument = self.cache.instrument(INSTRUMENT)
        self.say("started", tick=instrument.price_increment, lot=instrument.size_increment)
        for order in self.cache.orders(venue=INSTRUMENT.venue):
            self.say("known", id=order.client_order_id, status=order.status_string(), filled=order.filled_qty)
        account = self.portfolio.account(INSTRUMENT.venue)
        self.say("account", usd=account.balance_total(instrument.quote_currency).as_decimal())
        self.subscribe_quote_ticks(INSTRUMENT)
        self.subscribe_trade_ticks(INSTRUMENT)
        order = self.order_factory.limit(
            INSTRUMENT, OrderSide.BUY, instrument.make_qty(Decimal("0.2")), instrument.make_price(Decimal("29000"))
        )
        self.submit_order(order)

    def on_quote_tick(self, tick: Any) -> None:
        if not self.is_seen["quote"]:
            self.is_seen["quote"] = True
            self.say("quote", bid=tick.bid_price, ask=tick.ask_price)

    def on_trade_tick(self, tick: Any) -> None:
        if not self.is_seen["trade"]:
            self.is_seen["trade"] = True
            self.say("trade", price=tick.price, size=tick.size)

    def on_order_accepted(self, event: Any) -> None:
        order = self.cache.order(event.client_order_id)
        self.say("accepted", price=getattr(order, "price", None))
        if order.has_price:
            self.cancel_order(order)

    def on_order_canceled(self, event: Any) -> None:
        self.say("cancelled")
        instrument = self.cache.instrument(INSTRUMENT)
        self.submit_order(self.order_factory.market(INSTRUMENT, OrderSide.BUY, instrument.make_qty(Decimal("0.1"))))

    def on_order_filled(self, event: Any) -> None:
        self.say("filled", price=event.last_px, size=event.last_qty, side=event.order_side)
        self.clock.set_time_alert_ns("end", self.clock.timestamp_ns() + 2_000_000_000, lambda _: self.done())

    def on_order_rejected(self, event: Any) -> None:
        self.say("rejected", why=event.reason)

    def on_order_denied(self, event: Any) -> None:
        self.say("denied", why=event.reason)


def main() -> None:
    settings = json.loads(sys.argv[1])
    shared = {
        "api_key": settings["api_key"],
        "api_secret": settings["secret"],
        "account_type": BinanceAccountType.SPOT,
        "base_url_http": settings["rest"],
        "base_url_ws": settings["ws"],
        "instrument_provider": InstrumentProviderConfig(load_all=True),
    }
    config = TradingNodeConfig(
        trader_id=TraderId("WALRAS-001"),
        logging=LoggingConfig(log_level="INFO", log_colors=False),
        exec_engine=LiveExecEngineConfig(reconciliation=True, reconciliation_startup_delay_secs=0.1),
        data_clients={BINANCE: BinanceDataClientConfig(**shared)},
        exec_clients={BINANCE: BinanceExecClientConfig(**shared)},
        timeout_connection=20.0,
        timeout_reconciliation=10.0,
        timeout_portfolio=10.0,
        timeout_disconnection=5.0,
        timeout_post_stop=1.0,
    )
    node = TradingNode(config=config)
    with open(settings["out"], "a", encoding="utf-8") as out:
        loop = asyncio.get_event_loop()
        node.trader.add_strategy(Once(out, lambda: loop.call_soon_threadsafe(node.stop)))
        node.add_data_client_factory(BINANCE, BinanceLiveDataClientFactory)
        node.add_exec_client_factory(BINANCE, BinanceLiveExecClientFactory)
        node.build()
        try:
            node.run()
        finally:
            node.dispose()


if __name__ == "__main__":
    main()
