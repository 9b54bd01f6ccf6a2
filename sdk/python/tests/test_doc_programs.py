"""The short programs of the documents that need packages run as they are, each against a venue of its own."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import walras
from test_feed import FeedVenue
from venue_process import PATIENCE_S, PROGRAM, Venue

DOCS = pathlib.Path(__file__).parents[3] / "docs"

needs_program = pytest.mark.skipif(not PROGRAM, reason="needs the program: `make bot-test` sets WALRAS_PROGRAM")


class Running:
    """A program, and what it prints."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def lines(self) -> Iterator[str]:
        assert self.process.stdout is not None
        return (line.rstrip("\n") for line in self.process.stdout)

    def shows(self, wanted: str) -> None:
        """Reads until it prints this line."""
        seen = []
        for line in self.lines():
            seen.append(line)
            if line == wanted:
                return
        raise AssertionError(f"it ended without {wanted!r} after {seen}")


@contextmanager
def started(name: str, *args: object) -> Iterator[Running]:
    program = DOCS / name
    # What never comes is waited for so long.
    command = ["timeout", str(PATIENCE_S), sys.executable, str(program), *map(str, args)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield Running(process)
    finally:
        # Which `timeout` passes on.
        process.terminate()
        process.wait(PATIENCE_S)


@pytest.fixture
def venue(tmp_path: pathlib.Path) -> Iterator[Venue]:
    with Venue(tmp_path).running() as venue:
        yield venue


@needs_program
def test_ws_book(venue: Venue) -> None:
    client = walras.Client(venue.url, venue.keys[0])
    with started("ws-book.py", venue.url.replace("http", "ws"), "BTC-USD") as book:
        book.shows("- -")
        client.submit("BTC-USD", "buy", "0.5", "29999.5", client_order_id=1)
        client.submit("BTC-USD", "buy", "0.5", "29990", client_order_id=2)
        client.submit("BTC-USD", "sell", "0.5", "30010", client_order_id=3)
        book.shows("29999.5 30010.0")
        client.cancel("BTC-USD", 1)
        book.shows("29990.0 30010.0")
        venue.kill()
        venue.start()
        walras.Client(venue.url, venue.keys[0]).cancel("BTC-USD", 3)
        book.shows("29990.0 -")


@needs_program
def test_entry_order(venue: Venue, tmp_path: pathlib.Path) -> None:
    key = tmp_path / "bot.key"
    key.write_text(venue.keys[0])
    with started("entry-order.py", venue.url, venue.addresses[1], key, "BTC-USD", "buy", "0.5", "29000") as program:
        said = list(program.lines())
        assert program.process.wait(PATIENCE_S) == 0
    assert said[0].startswith("order ") and [line.split()[2] for line in said[1:]] == ["accepted", "cancelled"], said
    assert walras.Client(venue.url, venue.keys[0]).open_orders() == []


@needs_program
def test_feed_book(tmp_path: pathlib.Path) -> None:
    with FeedVenue(tmp_path).running() as venue:
        client = walras.Client(venue.url, venue.keys[0])
        client.submit("BTC-USD", "buy", "0.5", "29990", client_order_id=1)
        with started("feed-book.py", venue.receivers[0], venue.tree, venue.ask, 0) as book:
            # It begins late, from a snapshot. A tick is 0.5.
            book.shows("59980 -")
            client.submit("BTC-USD", "sell", "0.5", "30000.5", client_order_id=2)
            book.shows("59980 60001")
            client.cancel("BTC-USD", 1)
            book.shows("- 60001")
