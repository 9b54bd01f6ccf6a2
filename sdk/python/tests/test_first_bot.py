"""The bot of docs/first-bot.md trades on a demo, survives the venue's restart, and leaves nothing behind."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

BOT = pathlib.Path(__file__).parents[3] / "docs" / "first-bot.py"
PROGRAM = os.environ.get("WALRAS_PROGRAM")
PATIENCE_S = 60
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")

pytestmark = pytest.mark.skipif(not PROGRAM, reason="needs the program: `make bot-test` sets WALRAS_PROGRAM")


@contextmanager
def demo(data: pathlib.Path, listen: str) -> Iterator[str]:
    """A venue with order flow; its address."""
    assert PROGRAM
    log = data.with_suffix(".log")
    with log.open("w+") as out:
        command = [PROGRAM, "demo", "--data", str(data), "--listen", listen, "--file", "synthetic", "--speed", "5"]
        venue = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        try:
            wait_until("the demo prints its address", lambda: ADDRESS.search(log.read_text()) is not None)
            found = ADDRESS.search(log.read_text())
            assert found
            yield found[0]
        finally:
            venue.send_signal(signal.SIGINT)
            venue.wait(PATIENCE_S)


def wait_until(what: str, is_so: Callable[[], bool]) -> None:
    begun = time.monotonic()
    while not is_so():
        assert time.monotonic() - begun < PATIENCE_S, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.05)


def open_orders(url: str, key: pathlib.Path) -> list[object]:
    assert PROGRAM
    command = [PROGRAM, "--url", url, "--key-file", str(key), "--json", "account", "orders"]
    shown = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    orders: list[object] = shown["orders"]
    return orders


def test_bot(tmp_path: pathlib.Path) -> None:
    data, said = tmp_path / "venue", tmp_path / "bot.log"
    with said.open("w") as out:
        bot = None
        try:
            with demo(data, "127.0.0.1:0") as url:
                key = data / "trader.key"
                command = [sys.executable, "-u", str(BOT), "--url", url, "--key", str(key), "--instrument", "WAL-USD"]
                # A shell starts what runs in its background with the interrupt ignored, and children inherit that.
                hears = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
                bot = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, preexec_fn=hears)
                wait_until("the bot quotes both sides", lambda: len(open_orders(url, key)) == 2)
            wait_until("the bot sees that the venue is gone", lambda: "connection lost" in said.read_text())
            with demo(data, url.removeprefix("http://")) as url:
                wait_until("the bot signs in again", lambda: said.read_text().count("signed in") == 2)
                wait_until("and quotes again", lambda: len(open_orders(url, key)) == 2)
                bot.send_signal(signal.SIGINT)
                assert bot.wait(PATIENCE_S) == 0
                assert open_orders(url, key) == []
        finally:
            if bot and bot.poll() is None:
                bot.kill()
                bot.wait()
    text = said.read_text()
    assert "orders cancelled" in text and "refused" not in text, text
