"""freqtrade, unmodified, with another base URL: it buys and sells, keeps its stop order at the venue, and continues after a restart."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import ccxt

from steps import Steps
from venue import Account, Venue, wait_until

steps = Steps("freqtrade", "freqtrade")
MARKET = "BTC/USD"
#: The bot buys after a candle of a minute has ended; it looks once a second.
PATIENCE_S = 150

STRATEGY = '''
import pathlib
from freqtrade.strategy import IStrategy

class Once(IStrategy):
    """Buys when it can, and sells when there is a file."""
    INTERFACE_VERSION = 3
    timeframe = "1m"
    minimal_roi = {"0": 100}
    stoploss = -0.10
    startup_candle_count = 1
    process_only_new_candles = False
    order_types = {
        "entry": "limit", "exit": "limit", "emergency_exit": "market", "stoploss": "limit",
        "stoploss_on_exchange": True, "stoploss_on_exchange_interval": 5,
    }

    def populate_indicators(self, dataframe, metadata):
        return dataframe

    def populate_entry_trend(self, dataframe, metadata):
        if not pathlib.Path("FOLDER/sell").exists():
            dataframe.loc[dataframe.index[-1:], "enter_long"] = 1
        return dataframe

    def populate_exit_trend(self, dataframe, metadata):
        return dataframe

    def custom_exit(self, pair, trade, current_time, current_rate, current_profit, **more):
        return "asked to" if pathlib.Path("FOLDER/sell").exists() else None
'''


def settings(running: Venue, account: Account) -> dict[str, Any]:
    """The bot's configuration: all but `urls` is what its documents show."""
    rest = running.rest
    urls = {"api": {"public": f"{rest}/api/v3", "private": f"{rest}/api/v3", "sapi": f"{rest}/sapi/v1"}}
    own = {
        "urls": urls,
        "options": {"fetchMarkets": {"types": ["spot"]}, "fetchCurrencies": False, "fetchMargins": False},
    }
    pricing = {"price_side": "other", "use_order_book": True, "order_book_top": 1}
    return {
        "max_open_trades": 1,
        "stake_currency": "USD",
        "stake_amount": 3000,
        "dry_run": False,
        "trading_mode": "spot",
        "unfilledtimeout": {"entry": 10, "exit": 10, "unit": "minutes"},
        "entry_pricing": pricing,
        "exit_pricing": pricing,
        "exchange": {
            "name": "binance",
            "key": account.api_key,
            "secret": account.secret,
            "pair_whitelist": [MARKET],
            "enable_ws": False,
            "ccxt_config": own,
        },
        "pairlists": [{"method": "StaticPairList"}],
        "initial_state": "running",
        "internals": {"process_throttle_secs": 1},
    }


def exchange(running: Venue, account: Account) -> Any:
    options = {"defaultType": "spot", "fetchMarkets": {"types": ["spot"]}, "fetchCurrencies": False, "fetchMargins": False}
    made = ccxt.binance({"apiKey": account.api_key, "secret": account.secret, "enableRateLimit": False, "options": options})
    for name in ("public", "private"):
        made.urls["api"][name] = f"{running.rest}/api/v3"
    return made


class Context:
    def __init__(self, running: Venue) -> None:
        self.venue = running
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.scratch.name)
        self.log = self.folder / "bot.log"
        (self.folder / "config.json").write_text(json.dumps(settings(running, running.taker)))
        (self.folder / "once.py").write_text(STRATEGY.replace("FOLDER", str(self.folder)))
        subprocess.run([self._program(), "create-userdir", "--userdir", str(self.folder / "data")], check=True, capture_output=True)
        # Another program asks the venue what the bot's account did.
        self.taker, self.maker = exchange(running, running.taker), exchange(running, running.maker)
        self.bot: subprocess.Popen[bytes] | None = None
        # Somebody trades, so that there is a candle.
        self.maker.create_order(MARKET, "limit", "sell", 1, 30010)
        self.maker.create_order(MARKET, "limit", "buy", 1, 29990)
        self.taker.create_order(MARKET, "market", "buy", 0.01)
        self.taker.create_order(MARKET, "market", "sell", 0.01)
        self.before = len(self.taker.fetch_my_trades(MARKET))

    def _program(self) -> str:
        return str(pathlib.Path(sys.executable).with_name("freqtrade"))

    def start(self) -> None:
        command = [self._program(), "trade", "--config", str(self.folder / "config.json"), "--userdir", str(self.folder / "data")]
        command += ["--strategy", "Once", "--strategy-path", str(self.folder), "--db-url", f"sqlite:///{self.folder}/trades.sqlite"]
        with self.log.open("ab") as log:
            self.bot = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=os.environ | {"NO_COLOR": "1"})

    def stop(self) -> None:
        if self.bot is not None and self.bot.poll() is None:
            self.bot.send_signal(signal.SIGINT)
            self.bot.wait(60)

    def said(self, text: str) -> int:
        return self.log.read_text().count(text)

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        """Waits. A timeout shows the end of the bot's log."""

        def is_so_and_runs() -> bool:
            assert self.bot is not None and self.bot.poll() is None, f"the bot ended\n{self.log.read_text()[-4000:]}"
            return is_so()

        try:
            wait_until(what, is_so_and_runs, PATIENCE_S)
        except TimeoutError as e:
            raise TimeoutError(f"{e}\n{self.log.read_text()[-4000:]}") from e

    def trades(self) -> list[Any]:
        return list(self.taker.fetch_my_trades(MARKET))[self.before :]

    def close(self) -> None:
        self.stop()
        self.scratch.cleanup()


@steps.step
def starts(c: Context) -> None:
    c.start()
    c.wait("the bot runs", lambda: c.said("state='RUNNING'") > 0)


@steps.step
def buys(c: Context) -> None:
    c.wait("it has bought", lambda: len(c.trades()) > 0)
    (trade,) = c.trades()
    assert trade["side"] == "buy" and trade["price"] == 30010, trade
    assert abs(trade["cost"] - 3000) < 4, trade


@steps.step
def keeps_its_stop_at_the_venue(c: Context) -> None:
    c.wait("its stop stands", lambda: len(c.taker.fetch_open_orders(MARKET)) > 0)
    (stop,) = c.taker.fetch_open_orders(MARKET)
    assert stop["side"] == "sell" and stop["info"]["type"] == "STOP_LOSS_LIMIT", stop
    assert 26900 < Decimal(str(stop["stopPrice"])) < 27100, stop


@steps.step
def continues_after_a_restart(c: Context) -> None:
    c.stop()
    c.start()
    c.wait("it runs again", lambda: c.said("state='RUNNING'") > 1)
    c.wait("it looks after its trade", lambda: c.said("Found open trade") > 0 or c.said("open trades") > 1)
    assert len(c.trades()) == 1, "it bought nothing twice"


@steps.step
def sells(c: Context) -> None:
    (c.folder / "sell").touch()
    c.wait("it has sold", lambda: len(c.trades()) > 1)
    bought, sold = c.trades()
    assert sold["side"] == "sell" and sold["price"] == 29990 and sold["amount"] == bought["amount"], sold


@steps.step
def takes_its_stop_back(c: Context) -> None:
    c.wait("no order is left", lambda: not c.taker.fetch_open_orders(MARKET))


@steps.step
def is_refused_nothing(c: Context) -> None:
    lines = [line for line in c.log.read_text().splitlines() if " - ERROR - " in line or "InvalidOrder" in line or "BadRequest" in line]
    assert not lines, lines


if __name__ == "__main__":
    steps.run(Context)
