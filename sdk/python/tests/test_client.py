"""The clients against a venue of their own: orders over HTTP, the WebSocket and binary order entry, through lost answers and a restart."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from decimal import Decimal

import pytest

import walras
from venue_process import PATIENCE_S, PROGRAM, LossyProxy, Venue, run, until

pytestmark = pytest.mark.skipif(not PROGRAM, reason="needs the program: `make bot-test` sets WALRAS_PROGRAM")


@pytest.fixture(scope="module")
def venue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Venue]:
    with Venue(tmp_path_factory.mktemp("venue")).running() as venue:
        yield venue


@pytest.fixture(autouse=True)
def empty_book(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    venue: Venue = request.getfixturevalue("venue")
    for key in venue.keys:
        with walras.Client(venue.url, key) as client:
            client.mass_cancel()


def test_orders_over_http(venue: Venue) -> None:
    alice, bob = (walras.Client(venue.url, key) for key in venue.keys)
    assert alice.status()["ready"] and [row["symbol"] for row in alice.instruments()] == ["BTC/USD"]
    rested = alice.submit("BTC-USD", "sell", "0.5", Decimal("30000.5"), client_order_id=7)
    assert (rested["status"], rested["client_order_id"], rested["open"]) == ("resting", "7", "0.50")
    assert [order["client_order_id"] for order in alice.open_orders(fresh=True)] == ["7"]
    taken = bob.submit("BTC/USD", "buy", "0.2", 30_001, tif="ioc")
    assert taken["status"] == "filled" and taken["fills"][0]["price"] == "30000.5"
    amended = alice.amend("BTC-USD", 7, size="0.1")
    assert amended["open"] == "0.10" and alice.book("BTC/USD")["asks"] == [["30000.5", "0.10", 1]]
    assert alice.cancel("BTC-USD", 7)["status"] == "cancelled"
    with pytest.raises(walras.Refused, match="UnknownOrder") as caught:
        alice.cancel("BTC-USD", 7)
    assert caught.value.code == 4
    assert bob.fills()[0]["size"] == "0.20" and alice.trades("BTC-USD")[0]["price"] == "30000.5"
    positions = {row["instrument"]: row["position"] for row in bob.account(fresh=True)["positions"]}
    assert Decimal(positions["BTC/USD"]) == Decimal("0.2")
    with pytest.raises(TypeError, match="no exact number"):
        alice.submit("BTC-USD", "buy", 0.5, "30000")  # type: ignore[arg-type]
    with pytest.raises(walras.Refused, match="NotOnTick|PriceNotOnTick"):
        alice.submit("BTC-USD", "buy", "0.5", "30000.3")
    with pytest.raises(walras.Refused) as caught:
        walras.Client(venue.url, venue.keys[0][:-4] + "AAAA").account()
    assert caught.value.code == 104
    with pytest.raises(ValueError, match="needs a key"):
        walras.Client(venue.url).account()


def test_one_of_several_addresses_is_enough(venue: Venue) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        closed = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    client = walras.Client([closed, venue.url], venue.keys[0])
    assert client.status()["ready"] and client.url == venue.url
    with pytest.raises(ConnectionError):
        walras.Client(closed).status()
    with pytest.raises(ValueError, match="no address of a venue"):
        walras.Client("127.0.0.1:7070")


def test_a_lost_answer_is_unknown_and_with_a_session_found(venue: Venue) -> None:
    proxy = LossyProxy(venue.url.removeprefix("http://"), ["drop answer", "drop request", "pass", "drop answer", "drop request", "drop answer"])
    try:
        client = walras.Client(proxy.url, venue.keys[0], timeout_s=5)
        session = client.session()
        for number in range(4):
            # The price says which it is; a copy would be refused as a duplicate name, or stand twice.
            answer = session.submit("BTC-USD", "buy", "0.01", 20_000 + number, client_order_id=100 + number)
            assert int(answer["session_seq"]) == number + 1
        assert proxy.lost == 5
        with pytest.raises(walras.Refused, match="UnknownOrder"):
            session.cancel("BTC-USD", 999)
        assert session.next_seq == 6, "a rejection uses its number up"
        with pytest.raises(walras.Refused, match="NotOnTick|PriceNotOnTick"):
            session.submit("BTC-USD", "buy", "0.01", "20000.1")
        assert session.next_seq == 6, "what the gateway refuses does not"
        session.cancel("BTC-USD", 100)
        prices = sorted(Decimal(order["price"]) for order in client.open_orders(fresh=True))
        assert prices == [20_001, 20_002, 20_003]
        # The same token is the same session, which knows where it is.
        assert client.session(session.token).next_seq == session.next_seq == 7
        proxy.plan.append("drop answer")
        with pytest.raises(walras.OutcomeUnknown, match="no answer within"):
            client.session(session.token, patience_s=0).submit("BTC-USD", "buy", "0.01", 20_010)
    finally:
        proxy.close()


def test_the_stream_resumes(venue: Venue) -> None:
    async def play() -> None:
        async with walras.AsyncClient(venue.url, venue.keys[0]) as client, client.stream() as stream:
            await stream.subscribe("book", instrument="BTC-USD")
            await stream.sign_in()
            answer = await stream.submit("BTC-USD", "sell", "0.3", "31000", client_order_id=8)
            assert answer["status"] == "resting"
            await until("the book shows it", lambda: stream.books["BTC/USD"].best_ask == 31_000)
            with pytest.raises(walras.Refused, match="UnknownOrder"):
                await stream.cancel("BTC-USD", 12_345)
            seen = []
            # A connection that breaks without a word.
            stream._socket.transport.abort()
            async for message in stream:
                seen.append(message)
                if message["type"] == "connected" and message["count"] == 2:
                    break
            assert {"book", "account"} <= {message["type"] for message in seen}
            await stream.amend("BTC-USD", 8, size="0.2")
            await until("the new book shows it", lambda: stream.books["BTC/USD"].asks == {Decimal(31_000): Decimal("0.2")})
            await stream.mass_cancel("BTC-USD")
            await until("it is gone", lambda: stream.books["BTC/USD"].asks == {})

    run(play())


def test_the_stream_without_asyncio(venue: Venue) -> None:
    client = walras.Client(venue.url, venue.keys[1])
    with client.stream() as stream:
        stream.subscribe("trades", instrument="BTC-USD")
        stream.sign_in()
        stream.submit("BTC-USD", "buy", "0.1", "29000", client_order_id=9)
        kinds: set[str] = set()
        while not {"connected", "trades", "account"} <= kinds:
            kinds.add(stream.receive(PATIENCE_S)["type"])
        assert stream.cancel("BTC-USD", 9)["status"] == "cancelled"
    with pytest.raises(walras.Refused, match="SignatureInvalid"), walras.Client(venue.url, venue.keys[0][:-4] + "AAAA").stream() as stream:
        stream.sign_in()


def test_binary_order_entry(venue: Venue) -> None:
    async def play() -> None:
        client = walras.AsyncClient(venue.url, venue.keys[0])
        async with await client.order_entry(venue.addresses[1], reports=-1) as entry:
            answer = await entry.submit("BTC-USD", "sell", "0.5", "30500.5", 77, post_only="reject")
            assert answer.code == 0 and answer.log_index > 0
            async with await walras.AsyncClient(venue.url, venue.keys[1]).order_entry(venue.addresses[1]) as other:
                await other.submit("BTC/USD", "buy", "0.2", "30500.5", tif="ioc")
            reports = []
            async for report in entry.reports():
                reports.append(report)
                if report.event.kind == "filled":
                    break
            assert [report.report_seq for report in reports] == list(range(reports[0].report_seq, reports[0].report_seq + len(reports)))
            filled = reports[-1].event
            assert (filled.client_order_id, filled.price_ticks, filled.size_lots, filled.role) == (77, 61_001, 20, "maker")
            assert reports[0].event.kind == "accepted" and reports[0].log_index == answer.log_index
            await entry.amend("BTC-USD", 77, size="0.1")
            await entry.cancel("BTC-USD", 77)
            with pytest.raises(walras.Refused, match="UnknownOrder"):
                await entry.cancel("BTC-USD", 77)
            with pytest.raises(ValueError, match="whole number of steps of 0.5"):
                await entry.submit("BTC-USD", "buy", "0.5", "30500.3")
            with pytest.raises(KeyError, match="no such instrument"):
                await entry.submit("ETH-USD", "buy", "0.5", "30500")
            assert (await entry.send_mass_cancel()).code == 0
        with pytest.raises(walras.SessionEnded):
            entry.send(0, "buy", 1, 1)
        with pytest.raises(walras.SessionEnded, match="SignatureInvalid|104"):
            await walras.OrderEntry(venue.addresses[1], venue.keys[0][:-4] + "AAAA", account=0).start()

    run(play())


def test_order_entry_applies_each_order_once_when_connections_break(venue: Venue) -> None:
    async def play() -> None:
        client = walras.AsyncClient(venue.url, venue.keys[0])
        entry = await client.order_entry(venue.addresses[1], window=256)
        async with entry:
            answers = []
            for number in range(3_000):
                await entry.room()
                # A name of its own each: one that was applied twice would be refused as a duplicate.
                answers.append(entry.send(0, "buy", 1, 1 + number % 50, number + 1))
                if number % 500 == 250:
                    assert entry._transport is not None
                    entry._transport.abort()
            done = await asyncio.gather(*answers)
            assert [answer.session_seq for answer in done] == list(range(1, 3_001)) and {answer.code for answer in done} == {0}
            indexes = [answer.log_index for answer in done]
            assert indexes == sorted(set(indexes)) and entry.logon_count > 3
        orders = await client.open_orders(fresh=True)
        assert sorted(int(order["client_order_id"]) for order in orders) == list(range(1, 3_001))

    run(play())


def test_order_entry_outlives_a_crash_of_the_venue(venue: Venue) -> None:
    async def play() -> None:
        client = walras.AsyncClient(venue.url, venue.keys[0])
        async with await client.order_entry(venue.addresses[1], window=64) as entry:
            answers = []

            async def send() -> None:
                for number in range(2_000):
                    await entry.room()
                    answers.append(entry.send(0, "buy", 1, 1 + number % 50, number + 1))

            sending = asyncio.create_task(send())
            await until("orders are answered", lambda: sum(answer.done() for answer in answers) > 200)
            await asyncio.to_thread(venue.kill)
            await asyncio.to_thread(venue.start)
            await sending
            done = await asyncio.gather(*answers)
            assert {answer.code for answer in done} == {0} and entry.logon_count == 2
        orders = await client.open_orders(fresh=True)
        assert sorted(int(order["client_order_id"]) for order in orders) == list(range(1, 2_001))

    run(play())
