"""The clients against a venue of their own: orders over HTTP, the WebSocket and binary order entry, through lost answers and a restart."""

from __future__ import annotations

import asyncio
import concurrent.futures
import pathlib
import socket
from collections.abc import Callable, Iterator
from decimal import Decimal

import pytest

import walras
from walras import _stream, commands
from venue_process import PATIENCE_S, PROGRAM, LossyProxy, LossySocket, Venue, run, until, wait_until

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
    by_order = alice.book_orders("BTC/USD", 5, fresh=True)
    assert by_order["asks"] == [[rested["order_id"], "30000.5", "0.10"]] and not by_order["has_more_asks"]
    ticker = alice.ticker("BTC-USD")
    assert (ticker["last_price"], ticker["best_ask"], ticker["best_ask_size"]) == ("30000.5", "30000.5", "0.10")
    assert alice.auction("BTC-USD")["phase"] == "continuous" and alice.auction("BTC-USD")["indicative"] is None
    assert alice.cancel("BTC-USD", 7)["status"] == "cancelled"
    with pytest.raises(walras.Refused, match="UnknownOrder") as caught:
        alice.cancel("BTC-USD", 7)
    assert caught.value.code == 4
    trade_id = int(bob.fills()[0]["trade_id"])
    assert bob.fills(instrument="BTC-USD", after=trade_id - 1) == bob.fills(1) and bob.fills(instrument="BTC-USD", after=trade_id) == []
    with pytest.raises(walras.Refused, match="Malformed"):
        bob.fills(after=0)
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


def test_an_order_is_named_by_a_text_and_found_after_its_end(venue: Venue) -> None:
    alice, bob = (walras.Client(venue.url, key) for key in venue.keys)
    name = "ask/one?%"
    rested = alice.submit("BTC-USD", "sell", "0.5", "30000.5", client_order_id=name)
    assert rested["client_order_id"] == name
    bob.submit("BTC/USD", "buy", "0.2", 30_001, tif="ioc")
    alice.amend("BTC-USD", name, size="0.1")
    assert alice.order("BTC-USD", name, fresh=True)["status"] == "partially_filled"
    alice.cancel("BTC-USD", name)
    ended = alice.order("BTC-USD", name, fresh=True)
    assert (ended["filled"], ended["average_price"], ended["status"]) == ("0.20", "30000.5", "cancelled")
    assert alice.order("BTC-USD", ended["order_id"], by="order_id")["client_order_id"] == name
    (closed,) = alice.closed_orders(client_order_id=name)
    assert closed == {**ended, "log_index": closed["log_index"]}
    with pytest.raises(walras.Refused, match="NotFound"):
        alice.order("BTC-USD", "never-sent")
    with pytest.raises(TypeError, match="names no order"):
        alice.cancel("BTC-USD", 1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="instruments: known are"):
        alice.fills(instruments="BTC-USD")


def test_all_that_ended_is_read_page_by_page(venue: Venue) -> None:
    client = walras.Client(venue.url, venue.keys[0])
    names = [f"page-{number}" for number in range(150)]
    before = client.reports(0, 256)
    for some in (names[:50], names[50:100], names[100:]):
        made = client.many([commands.order("BTC-USD", "buy", "0.01", "20000", client_order_id=name) for name in some])
        assert all(isinstance(answer, dict) and "status" in answer and answer["status"] == "resting" for answer in made)
    answers = client.many([commands.cancel("BTC-USD", name) for name in names[:100]])
    assert all(isinstance(answer, dict) and "status" in answer and answer["status"] == "cancelled" for answer in answers)
    client.many([commands.mass_cancel("BTC-USD")])
    # The venue gives a hundred at a time unless asked for more.
    most = client.closed_orders(149)
    assert len({order["order_id"] for order in most}) == 149
    assert {order["client_order_id"] for order in client.closed_orders(150)} == set(names)
    # The last fifty ended in one entry.
    first = client.closed_orders(150)[-1]
    assert client.closed_orders(1_000, after=int(first["log_index"]) - 1) == client.closed_orders(150)[::-1]
    assert client.closed_orders(1_000, after=int(most[0]["log_index"])) == []
    with pytest.raises(walras.Refused, match="Malformed"):
        client.closed_orders(after="first")
    seen = client.reports(int(before[-1]["report_seq"]), 256)
    assert [int(report["report_seq"]) for report in seen] == list(range(int(seen[0]["report_seq"]), int(seen[0]["report_seq"]) + len(seen)))


def test_the_past_is_read_from_the_archive(tmp_path: pathlib.Path) -> None:
    made = Venue(tmp_path)
    made.more = f'[archive]\nfolder = "{tmp_path / "archive"}"\n'
    with made.running():
        alice, bob = (walras.Client(made.url, key) for key in made.keys)
        prices = [Decimal(30_000), Decimal("30000.5"), Decimal(30_001)]
        for price in prices:
            alice.submit("BTC-USD", "sell", "0.1", price)
            bob.submit("BTC-USD", "buy", "0.1", price, tif="ioc")
        wait_until("the archive has all trades", lambda: len(alice.past_trades("BTC/USD")) == 3, made.process)
        trades = alice.past_trades("BTC-USD")
        assert [Decimal(trade["price"]) for trade in trades] == prices
        assert [trade["trade_id"] for trade in trades] == [trade["trade_id"] for trade in alice.trades("BTC-USD")][::-1]
        assert alice.past_trades("BTC-USD", 2) == trades[:2]
        second = int(trades[1]["time_ns"])
        assert alice.past_trades("BTC-USD", since=second) == trades[1:] and alice.past_trades("BTC-USD", until=second) == trades[:1]
        day = alice.past_days()["days"][-1]
        assert not day["closed"]
        with pytest.raises(walras.Refused, match="no picture of this book"):
            alice.past_book("BTC-USD", at=0)

        async def read() -> None:
            client = walras.AsyncClient(made.url)
            assert await client.past_trades("BTC-USD") == trades and (await client.past_days())["days"][-1] == day
            with pytest.raises(walras.Refused, match="no picture of this book"):
                await client.past_book("BTC-USD", 0)

        run(read())


def test_many_commands_under_numbers_take_effect_once(venue: Venue) -> None:
    proxy = LossyProxy(venue.url.removeprefix("http://"), ["drop answer", "drop request", "drop answer"])
    try:
        session = walras.Client(proxy.url, venue.keys[0], timeout_s=5).session()
        some = [commands.order("BTC-USD", "buy", "0.01", 20_000 + number, client_order_id=f"once-{number}") for number in range(3)]
        placed = session.many([*some, commands.cancel("BTC-USD", "unknown"), commands.amend("BTC-USD", "once-1", size="0.02")])
        refused = placed.pop(3)
        assert isinstance(refused, walras.Refused) and refused.code == 4
        assert [answer["session_seq"] for answer in placed if isinstance(answer, dict)] == ["1", "2", "3", "5"]
        assert session.next_seq == 6 and proxy.lost == 3
        assert sorted(order["open"] for order in session.open_orders(fresh=True)) == ["0.01", "0.01", "0.02"]
        assert session.cancel("BTC-USD", "once-1")["session_seq"] == "6"
    finally:
        proxy.close()


def test_a_dead_programs_orders_are_cancelled(venue: Venue) -> None:
    client = walras.Client(venue.url, venue.keys[0])
    client.submit("BTC-USD", "buy", "0.01", "20000", client_order_id="left")
    assert client.cancel_after(60)["cancels_at_ns"] is not None
    assert client.cancel_after(0)["cancels_at_ns"] is None
    client.cancel_after(0.2)

    async def wait() -> None:
        await until("the switch fires", lambda: client.open_orders(fresh=True) == [])

    run(wait())
    assert client.order("BTC-USD", "left")["status"] == "cancelled"


def test_reports_go_on_where_they_were(venue: Venue) -> None:
    async def play() -> None:
        async with walras.AsyncClient(venue.url, venue.keys[0]) as client, client.stream() as stream:
            last = (await client.reports(0, 256))[-1:]
            begin = int(last[0]["report_seq"]) if last else 0
            await stream.sign_in()
            await stream.subscribe("reports", after=str(begin))
            await stream.submit("BTC-USD", "sell", "0.3", "31000", client_order_id="one")
            stream._socket.transport.abort()
            numbers: list[int] = []
            other = walras.Client(venue.url, venue.keys[0])
            async for message in stream:
                if message["type"] == "connected" and message["count"] == 2:
                    other.submit("BTC-USD", "sell", "0.3", "31001", client_order_id="two")
                if message["type"] == "reports":
                    numbers += [int(report["report_seq"]) for report in message["reports"]]
                    if any(report.get("client_order_id") == "two" for report in message["reports"]):
                        break
            assert numbers == list(range(begin + 1, begin + 1 + len(numbers))), "each once, and in order"

    run(play())


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
        prices = sorted(Decimal(order["price"] or 0) for order in client.open_orders(fresh=True))
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


def test_commands_under_numbers_over_the_websocket_take_effect_once(venue: Venue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_stream, "_PAUSE_S", 0.02)
    proxy = LossySocket(venue.url.removeprefix("http://"), ["drop answer", "drop request", "drop answer", "pass", "pass", "drop answer"])

    async def play() -> None:
        async with walras.AsyncClient(proxy.url, venue.keys[0]) as client, client.stream() as stream:
            await stream.sign_in()
            session = await stream.session()
            for number, is_repeated in ((0, True), (1, False)):
                answer = await session.submit("BTC-USD", "buy", "0.01", 20_000 + number, client_order_id=f"ws-{number}")
                assert (answer["session_seq"], answer["repeated"]) == (str(number + 1), is_repeated)
            some = [commands.order("BTC-USD", "buy", "0.01", 20_010 + number, client_order_id=f"many-{number}") for number in range(3)]
            several = await session.many([*some, commands.cancel("BTC-USD", "unknown"), commands.amend("BTC-USD", "many-1", size="0.02")])
            assert proxy.lost == 4 and stream.connection_count == 5 and session.next_seq == 8
            refused = several.pop(3)
            assert isinstance(refused, walras.Refused) and (refused.code, refused.log_index is not None) == (4, True)
            assert [answer["session_seq"] for answer in several if isinstance(answer, dict)] == ["3", "4", "5", "7"]
            with pytest.raises(walras.Refused, match="UnknownOrder") as caught:
                await session.cancel("BTC-USD", "unknown")
            assert caught.value.log_index is not None and session.next_seq == 9
            orders = {order["client_order_id"]: order["open"] for order in await client.open_orders(fresh=True)}
            assert orders == {"ws-0": "0.01", "ws-1": "0.01", "many-0": "0.01", "many-1": "0.02", "many-2": "0.01"}
            # A number that its caller gives, twice.
            first, again = [await stream.numbered(session.session_id, 9).amend("BTC-USD", "ws-0", size="0.03") for _ in range(2)]
            assert (first["repeated"], again["repeated"], first["log_index"]) == (False, True, again["log_index"])

    try:
        run(play())
        # And without asyncio.
        proxy.plan.append("drop answer")
        with walras.Client(proxy.url, venue.keys[0]).stream() as stream:
            stream.sign_in()
            session = stream.session()
            assert session.mass_cancel("BTC-USD")["repeated"] is True and proxy.lost == 5
            assert walras.Client(venue.url, venue.keys[0]).open_orders(fresh=True) == []
    finally:
        proxy.close()


def test_a_book_by_order_is_followed(venue: Venue) -> None:
    async def play() -> None:
        async with walras.AsyncClient(venue.url, venue.keys[0]) as client, client.stream() as stream:
            await stream.subscribe("book_orders", instrument="BTC-USD")
            names = [str((await client.submit("BTC-USD", "buy", "0.3", "29000", client_order_id=n))["order_id"]) for n in (1, 2, 3)]
            await client.amend("BTC-USD", 1, size="0.4")
            await client.amend("BTC-USD", 2, size="0.1")

            def shown() -> list[tuple[str, Decimal]]:
                book = stream.order_books.get("BTC/USD", walras.OrdersCopy())
                return [(str(order.order_id), order.size) for order in book.bids]

            # What grows loses its place, what shrinks keeps it.
            expected = [(names[1], Decimal("0.1")), (names[2], Decimal("0.3")), (names[0], Decimal("0.4"))]
            await until("the copy shows it", lambda: shown() == expected)
            bids = (await client.book_orders("BTC-USD", fresh=True))["bids"]
            assert [(order_id, Decimal(size)) for order_id, _, size in bids] == expected

    run(play())


def test_an_order_goes_with_its_exits(venue: Venue) -> None:
    client = walras.Client(venue.url, venue.keys[0])
    take_profit: walras.Exit = {"trigger": "40000", "client_order_id": "tp"}
    exits: walras.Exits = {"take_profit": take_profit, "stop_loss": {"trigger": "19000", "price": "18999"}}
    entered = client.submit("BTC-USD", "buy", "0.1", "20000", client_order_id="in", exits=exits)
    assert entered["status"] == "resting" and entered["take_profit"]["client_order_id"] == "tp"
    assert len([order for order in client.open_orders(fresh=True) if "exit_of" in order]) == 2
    again = [commands.cancel("BTC-USD", "in"), commands.order("BTC-USD", "buy", "0.1", "20001", client_order_id="in-2", exits=exits)]
    cancelled, placed = client.many(again)
    assert isinstance(cancelled, dict) and isinstance(placed, dict) and "stop_loss" in placed
    with client.stream() as stream:
        stream.sign_in()
        assert stream.cancel("BTC-USD", "in-2")["status"] == "cancelled" and client.open_orders(fresh=True) == []
        over_socket = stream.submit("BTC-USD", "buy", "0.1", "20000", client_order_id="in-3", exits=exits)
        assert over_socket["take_profit"]["client_order_id"] == "tp"
    assert len(client.open_orders(fresh=True)) == 3


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


def test_the_list_of_instruments_is_followed(venue: Venue) -> None:
    operator = walras.Client(venue.url, venue.folder / "data" / "operator.key")
    with walras.Client(venue.url).stream() as stream:
        stream.subscribe("instruments")
        phases: list[str] = []

        def follow(phase: str) -> None:
            while phases[-1:] != [phase]:
                message = stream.receive(PATIENCE_S)
                if message["type"] == "instruments":
                    phases.extend(row["phase"] for row in message["instruments"] if row["phase_cause"] == "operator")

        follow("continuous")
        for phase in ("halt", "continuous"):
            operator.request("POST", "/v1/admin/phases", {"instrument": "BTC/USD", "phase": phase})
            follow(phase)
    operator.close()


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
            named = await entry.submit("BTC-USD", "buy", "0.1", "29000", "bid-7")
            shown = await client.order("BTC-USD", "bid-7", fresh=True)
            assert (shown["client_order_id"], shown["order_id"]) == ("bid-7", str(named.log_index))
            assert (await entry.cancel("BTC-USD", "bid-7")).code == 0
            while (heard := await entry.report()) is not None and heard.log_index < named.log_index:
                pass
            assert heard is not None and heard.event.client_order_id == walras.order_number("bid-7")
            assert (await entry.send_cancel_after(60)).code == 0
            assert (await client.request("GET", "/v1/cancel-after"))["cancels_at_ns"] is not None
            assert (await entry.send_cancel_after(0)).code == 0
        with pytest.raises(walras.SessionEnded):
            entry.send(0, "buy", 1, 1)
        with pytest.raises(walras.SessionEnded, match="SignatureInvalid|104"):
            await walras.OrderEntry(venue.addresses[1], venue.keys[0][:-4] + "AAAA", account=0).start()

    run(play())


def test_binary_order_entry_without_asyncio(venue: Venue) -> None:
    client, other = (walras.Client(venue.url, key) for key in venue.keys)
    with client.order_entry(venue.addresses[1], reports=-1, window=8) as entry:
        answer = entry.submit("BTC-USD", "sell", "0.5", "30500.5", 77, post_only="reject")
        assert answer.code == 0 and answer.log_index > 0 and entry.is_logged_on
        with other.order_entry(venue.addresses[1]) as taker:
            taker.submit("BTC/USD", "buy", "0.2", "30500.5", tif="ioc")
        reports: list[walras.Report] = []
        while not reports or reports[-1].event.kind != "filled":
            reports.append(entry.receive(PATIENCE_S))
        assert reports[0].event.kind == "accepted" and (reports[-1].event.client_order_id, reports[-1].event.role) == (77, "maker")
        with pytest.raises(TimeoutError, match=r"no report within 0\.01 s"):
            entry.receive(timeout_s=0.01)
        entry.amend("BTC-USD", 77, size="0.1")
        entry.cancel("BTC-USD", 77)
        with pytest.raises(walras.Refused, match="UnknownOrder"):
            entry.cancel("BTC-USD", 77)
        with pytest.raises(ValueError, match="whole number of steps of 0.5"):
            entry.submit("BTC-USD", "buy", "0.5", "30500.3")
        for report in entry.reports():
            reports.append(report)
            if report.event.kind == "cancelled":
                break
        numbers = [report.report_seq for report in reports]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        answers, inner = [], entry._entry

        def break_connection() -> None:
            assert inner._transport is not None
            inner._transport.abort()

        # A window is full after 8: more wait for room. A connection breaks meanwhile.
        for number in range(200):
            answers.append(entry.send(0, "buy", 1, 1 + number % 50, number + 1))
            if number == 100:
                entry._thread.loop.call_soon_threadsafe(break_connection)
        done = [answer.result(PATIENCE_S) for answer in answers]
        assert {answer.code for answer in done} == {0} and entry.logon_count == 2
        assert [answer.session_seq for answer in done] == list(range(done[0].session_seq, done[0].session_seq + 200))
        assert sorted(int(order["client_order_id"]) for order in client.open_orders(fresh=True)) == list(range(1, 201))
        refused = [entry.send_cancel(0, 999).result(PATIENCE_S), entry.send_amend(0, 999, size_lots=1).result(PATIENCE_S)]
        assert [answer.code for answer in refused] == [4, 4]
        said: concurrent.futures.Future[str] = concurrent.futures.Future()

        def in_its_thread() -> None:
            with pytest.raises(RuntimeError) as caught:
                entry.cancel("BTC-USD", 1)
            said.set_result(str(caught.value))

        entry._thread.loop.call_soon_threadsafe(in_its_thread)
        assert "call it in another one" in said.result(PATIENCE_S)
        assert entry.send_mass_cancel(0).result(PATIENCE_S).code == 0 and entry.unanswered_count == 0
    calls: list[Callable[[], object]] = [lambda: entry.send(0, "buy", 1, 1), lambda: entry.receive(), lambda: entry.is_logged_on]
    for call in calls:
        with pytest.raises(ConnectionError, match="not open"):
            call()
    assert list(entry.reports()) == []
    with pytest.raises(walras.SessionEnded, match="SignatureInvalid|104"):
        walras.PlainOrderEntry(venue.addresses[1], venue.keys[0][:-4] + "AAAA", account=0).start()
    with pytest.raises(ValueError, match="needs a key"):
        walras.Client(venue.url).order_entry(venue.addresses[1])


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
