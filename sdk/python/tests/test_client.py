"""The clients against a venue of their own: orders over HTTP, the WebSocket and binary order entry, through lost answers and a restart."""

from __future__ import annotations

import asyncio
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from decimal import Decimal

import pytest

import walras

PROGRAM = os.environ.get("WALRAS_PROGRAM")
PATIENCE_S = 60

pytestmark = pytest.mark.skipif(not PROGRAM, reason="needs the program: `make bot-test` sets WALRAS_PROGRAM")


class Venue:
    """A venue, the keys of two accounts, and where it listens."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder, self.addresses = folder, ("127.0.0.1:0", "127.0.0.1:0")

    def start(self) -> None:
        assert PROGRAM
        http, entry = self.addresses
        config = self.folder / "venue.toml"
        throttle = "\n".join(f"{name} = 1000000" for name in ("requests_per_second", "burst", "source_requests_per_second", "source_burst"))
        config.write_text(f'[order_entry]\nlisten = "{entry}"\n[throttle]\n{throttle}\n')
        log = self.folder / f"log.{time.monotonic_ns()}"
        command = [PROGRAM, "serve", "--config", str(config), "--data", str(self.folder / "data"), "--listen", http]
        with log.open("w") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        opened = re.compile(r"open at http://([\d.:]+)/, takes binary orders at ([\d.:]+)")
        wait_until("the venue prints its addresses", lambda: opened.search(log.read_text()) is not None, self.process)
        found = opened.search(log.read_text())
        assert found
        self.addresses = (found[1], found[2])
        self.url = f"http://{found[1]}"

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def set_up(self) -> None:
        admin = walras.Client(self.url, self.folder / "data" / "operator.key")
        for symbol, decimals in (("BTC", 8), ("USD", 4)):
            admin.request("POST", "/v1/admin/assets", {"symbol": symbol, "decimals": decimals})
        instrument = {"symbol": "BTC/USD", "base": "BTC", "quote": "USD", "tick_size": "0.5", "lot_size": "0.01", "reference_price": "30000", "collar_ppm": 1_000_000, "band_ppm": 1_000_000}
        admin.request("POST", "/v1/admin/instruments", instrument)
        admin.request("POST", "/v1/admin/phases", {"instrument": "BTC/USD", "phase": "continuous"})
        self.keys = []
        for algorithm in ("ed25519", "hmac-sha256"):
            account = admin.request("POST", "/v1/admin/accounts", {})["account_id"]
            for place, asset in enumerate(("BTC", "USD")):
                transfer = {"account_id": account, "asset": asset, "amount": "1000000", "transfer_id": str(place + 1)}
                admin.request("POST", "/v1/admin/deposits", transfer)
            wanted = {"permissions": ["read", "trade"], "account_id": account, "algorithm": algorithm}
            made = admin.request("POST", "/v1/admin/keys", wanted)
            self.keys.append(made["key"])
        admin.close()


def wait_until(what: str, is_so: Callable[[], bool], process: subprocess.Popen[bytes] | None = None) -> None:
    begun = time.monotonic()
    while not is_so():
        assert time.monotonic() - begun < PATIENCE_S, f"not within {PATIENCE_S} s: {what}"
        assert process is None or process.poll() is None, f"the venue ended before: {what}"
        time.sleep(0.02)


async def until(what: str, is_so: Callable[[], bool]) -> None:
    begun = time.monotonic()
    while not is_so():
        assert time.monotonic() - begun < PATIENCE_S, f"not within {PATIENCE_S} s: {what}"
        await asyncio.sleep(0.01)


@pytest.fixture(scope="module")
def venue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Venue]:
    venue = Venue(tmp_path_factory.mktemp("venue"))
    venue.start()
    try:
        venue.set_up()
        yield venue
    finally:
        venue.stop()


@pytest.fixture(autouse=True)
def empty_book(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    venue: Venue = request.getfixturevalue("venue")
    for key in venue.keys:
        with walras.Client(venue.url, key) as client:
            client.mass_cancel()


def run(what: Awaitable[None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(what, PATIENCE_S)

    asyncio.run(bounded())


class LossyProxy:
    """Passes connections on; of some requests it passes on the request and drops the answer, of others it drops the request."""

    def __init__(self, target: str, plan: list[str]) -> None:
        self.target, self.plan, self.lost = target.rsplit(":", 1), plan, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    @staticmethod
    def _message(source: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            part = source.recv(65_536)
            if not part:
                return b""
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        while length and len(body) < int(length[1]):
            body += source.recv(65_536)
        return head + b"\r\n\r\n" + body

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection((self.target[0], int(self.target[1]))) as venue:
            while request := self._message(client):
                is_command = b"session_seq=" in request.split(b"\r\n", 1)[0]
                fate = self.plan.pop(0) if is_command and self.plan else "pass"
                if fate == "drop request":
                    self.lost += 1
                    return
                venue.sendall(request)
                answer = self._message(venue)
                if fate == "drop answer":
                    self.lost += 1
                    return
                client.sendall(answer)

    def close(self) -> None:
        self.listener.close()


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
