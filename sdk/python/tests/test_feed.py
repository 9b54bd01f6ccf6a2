"""Readers of the binary feed against a venue of their own: from the start, late, and past lost datagrams."""

from __future__ import annotations

import pathlib
import socket
import sys
import time
from collections.abc import Iterator
from decimal import Decimal

import pytest

import walras
from venue_process import PATIENCE_S, PROGRAM, Venue, run
from walras import feed

needs_program = pytest.mark.skipif(not PROGRAM, reason="needs the program: `make bot-test` sets WALRAS_PROGRAM")
KEY = "07" * 32


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class FeedVenue(Venue):
    """A venue with a tree of two receivers and no relay."""

    def __init__(self, folder: pathlib.Path) -> None:
        super().__init__(folder)
        self.receivers = [f"127.0.0.1:{free_port()}" for _ in range(2)]
        self.ask = f"127.0.0.1:{free_port()}"
        self.tree = folder / "tree.toml"
        layer = ", ".join(f'"{receiver}"' for receiver in self.receivers)
        self.tree.write_text(f'tree = 3\nkey_file = "tree.key"\nlayers = [[{layer}]]\n')
        (folder / "tree.key").write_text(KEY)
        self.more = (
            f'[feed]\ntree = "{self.tree}"\nrequests = "{self.ask}"\nsource = "127.0.0.1:0"\n'
            "snapshot_rotation_ms = 50\nheartbeat_ms = 20\n"
        )


@pytest.fixture
def venue(tmp_path: pathlib.Path) -> Iterator[FeedVenue]:
    with FeedVenue(tmp_path).running() as venue:
        yield venue


def test_a_trees_file_is_read_with_tomli_where_python_has_no_reader(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tomllib

    tree = tmp_path / "tree.toml"
    tree.write_text('tree = 3\nkey_file = "tree.key"\n')
    (tmp_path / "tree.key").write_text(KEY)
    assert feed.tree_of(tree) == (3, bytes.fromhex(KEY))
    # None stands for a module that is not there.
    monkeypatch.setitem(sys.modules, "tomllib", None)
    monkeypatch.setitem(sys.modules, "tomli", tomllib)
    assert feed.tree_of(tree) == (3, bytes.fromhex(KEY))
    monkeypatch.setitem(sys.modules, "tomli", None)
    with pytest.raises(RuntimeError, match="pip install tomli"):
        feed.tree_of(tree)


Levels = list[tuple[int, int, int]]


def read_until(reader: feed.Feed, channel: int, expected: tuple[Levels, Levels]) -> list[feed.Message]:
    seen = []
    while reader.levels(channel) != expected or not reader.is_live(channel):
        seen += reader.receive(PATIENCE_S)
    return seen


@needs_program
def test_books_from_the_start_and_late(venue: FeedVenue) -> None:
    orders, levels, best = feed.by_order(0), feed.by_level(0), feed.top(0)
    with feed.Feed(venue.receivers[0], venue.tree, [orders, levels, best], ask=venue.ask, from_the_start=True) as reader:
        alice, bob = (walras.Client(venue.url, key) for key in venue.keys)
        for number in range(3):
            alice.submit("BTC-USD", "buy", "0.5", 29_990 - number)
        alice.submit("BTC-USD", "sell", "0.4", "30000.5")
        bob.submit("BTC-USD", "buy", "0.1", "30000.5")
        # A tick is 0.5, a lot 0.01.
        bids = [(59_980, 50, 1), (59_978, 50, 1), (59_976, 50, 1)]
        seen = read_until(reader, orders, (bids, [(60_001, 30, 1)]))
        traded = [message for message in seen if message.channel == orders and message.name == "Traded"]
        assert [(message.fields["price"], message.fields["size"]) for message in traded] == [(60_001, 10)]
        added = [message.fields["side"] for message in seen if message.channel == orders and message.name == "OrderAdded"]
        assert added == ["buy", "buy", "buy", "sell"]
        read_until(reader, levels, (bids, [(60_001, 30, 1)]))
        read_until(reader, best, (bids[:1], [(60_001, 30, 1)]))
        standing = reader.orders(orders)
        assert standing is not None and [(order.buys, order.price, order.shown) for order in standing] == [
            (True, 59_980, 50), (True, 59_978, 50), (True, 59_976, 50), (False, 60_001, 30),
        ]
        assert reader.error(orders) is None and reader.counts(orders)["forged"] == 0
        with pytest.raises(ValueError, match="only the view by order"):
            reader.orders(levels)
    # Somebody who comes later has the same book.
    with feed.Feed(venue.receivers[1], venue.tree, [orders], ask=venue.ask) as late:
        taken = read_until(late, orders, (bids, [(60_001, 30, 1)]))
        assert [message.name for message in taken] == ["SnapshotTaken"]
        alice.mass_cancel()
        read_until(late, orders, ([], []))


@needs_program
def test_lost_datagrams_are_asked_for(venue: FeedVenue) -> None:
    channel = feed.by_level(0)
    client = walras.Client(venue.url, venue.keys[0])
    with feed.Feed(venue.receivers[0], venue.tree, [channel], ask=venue.ask, from_the_start=True) as reader:
        whole, counted = reader.datagram, 0

        def lossy(data: bytes, now_ns: int | None = None) -> list[feed.Message]:
            nonlocal counted
            counted += 1
            return [] if counted % 3 == 0 else whole(data, now_ns)

        reader.datagram = lossy  # type: ignore[method-assign]
        for number in range(40):
            client.submit("BTC-USD", "buy", "0.01", 20_000 + number)
        expected = [(40_000 + 2 * number, 1, 1) for number in reversed(range(40))]
        messages = read_until(reader, channel, (expected, []))
        assert [message.fields["price"] for message in messages if message.name == "LevelChanged"] == [row[0] for row in reversed(expected)]
        assert reader.counts(channel)["asked"] > 0


@needs_program
def test_without_an_address_to_ask_a_snapshot_closes_a_gap(venue: FeedVenue) -> None:
    channel = feed.by_level(0)
    client = walras.Client(venue.url, venue.keys[0])
    number, key = feed.tree_of(venue.tree)
    watcher = feed.Reader([channel], key, tree=number)
    lost: list[bytes] = []
    with feed.Feed(venue.receivers[0], venue.tree, [channel], from_the_start=True) as reader:
        whole = reader.datagram

        def lossy(data: bytes, now_ns: int | None = None) -> list[feed.Message]:
            """Loses the datagram that has the second order's level, and its copies."""
            if 40_002 in [message.fields.get("price") for message in watcher.datagram(data, now_ns)]:
                lost.append(data)
            return [] if data in lost else whole(data, now_ns)

        reader.datagram = lossy  # type: ignore[method-assign]
        client.submit("BTC-USD", "buy", "0.01", 20_000)
        read_until(reader, channel, ([(40_000, 1, 1)], []))
        client.submit("BTC-USD", "buy", "0.01", 20_001)
        messages = read_until(reader, channel, ([(40_002, 1, 1), (40_000, 1, 1)], []))
        assert len(lost) == 1 and "SnapshotTaken" in [message.name for message in messages]
        assert reader.counts(channel)["asked"] == 0


@needs_program
def test_asyncio(venue: FeedVenue) -> None:
    async def play() -> None:
        channel = feed.top(0)
        client = walras.AsyncClient(venue.url, venue.keys[0])
        # Before the reader listens: else its first snapshot may be of before the order.
        await client.submit("BTC-USD", "buy", "0.5", Decimal("29000.5"))
        with feed.AsyncFeed(venue.receivers[0], venue.tree, [channel], ask=venue.ask) as reader:
            async for message in reader:
                if message.name == "SnapshotTaken":
                    assert reader.levels(channel) == ([(58_001, 50, 1)], [])
                    await client.submit("BTC-USD", "buy", "0.1", Decimal("29001"))
                if message.name == "TopChanged":
                    assert message.fields["ask"] is None and message.fields["bid"] == 58_002 and message.fields["bid_shown"] == 10
                    break

    run(play())


def test_requests_carry_the_time_of_day() -> None:
    lines = (pathlib.Path(__file__).parents[3] / "docs" / "market-data-packets.tsv").read_text(encoding="ascii").splitlines()
    packets = {name: bytes.fromhex(data) for name, data, _ in (line.split("\t") for line in lines[1:])}
    reader = feed.Reader([feed.by_order(5)], bytes(range(32)), tree=1, from_the_start=True)
    assert reader.datagram(packets["heartbeat"], now_ns=1_000) == []
    (request,) = reader.requests(now_ns=1_000_000_000)
    assert abs(int.from_bytes(request[28:36], "little") - time.time_ns()) < 10**10


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(ValueError, match="32 expected"):
        feed.Reader([feed.by_order(0)], b"short")
    with pytest.raises(ValueError, match="no market has it"):
        feed.Reader([5], b"k" * 32)
    with pytest.raises(ValueError, match="1 to 64"):
        feed.Reader([], b"k" * 32, trees=0)
    reader = feed.Reader([feed.by_order(0)], b"k" * 32)
    assert reader.datagram(b"") == [] and reader.datagram(b"x" * 100) == []
    assert reader.counts(feed.by_order(0))["forged"] == 2 and reader.levels(feed.by_order(0)) is None
    with pytest.raises(KeyError, match="is not read here"):
        reader.levels(feed.by_order(1))
    with pytest.raises(ValueError, match="is no address"):
        feed.Feed("7501", (0, b"k" * 32), [])
