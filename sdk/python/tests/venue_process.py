"""A venue in a process of its own for the tests of clients, and a proxy that loses answers."""

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
from contextlib import contextmanager
from typing import TypeVar

import walras

PROGRAM = os.environ.get("WALRAS_PROGRAM")
PATIENCE_S = 60
AnyVenue = TypeVar("AnyVenue", bound="Venue")


class Venue:
    """A venue, the keys of two accounts, and where it listens."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder, self.addresses = folder, ("127.0.0.1:0", "127.0.0.1:0")
        #: Further sections of the configuration.
        self.more = ""

    def start(self) -> None:
        assert PROGRAM
        http, entry = self.addresses
        config = self.folder / "venue.toml"
        throttle = "\n".join(f"{name} = 1000000" for name in ("requests_per_second", "burst", "source_requests_per_second", "source_burst"))
        config.write_text(f'[order_entry]\nlisten = "{entry}"\n[throttle]\n{throttle}\n{self.more}')
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

    @contextmanager
    def running(self: AnyVenue) -> Iterator[AnyVenue]:
        """Started and set up; stopped in the end."""
        self.start()
        try:
            self.set_up()
            yield self
        finally:
            self.stop()

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
        instrument = {
            "symbol": "BTC/USD",
            "base": "BTC",
            "quote": "USD",
            "tick_size": "0.5",
            "lot_size": "0.01",
            "reference_price": "30000",
            "collar_ppm": 1_000_000,
            "band_ppm": 1_000_000,
        }
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


def run(what: Awaitable[None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(what, PATIENCE_S)

    asyncio.run(bounded())


class _Proxy:
    """Passes connections on. By its plan it loses some of what they carry, and counts that."""

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

    def _serve(self, client: socket.socket) -> None:
        raise NotImplementedError

    def _venue(self) -> socket.socket:
        return socket.create_connection((self.target[0], int(self.target[1])))

    def _fate(self) -> str:
        return self.plan.pop(0) if self.plan else "pass"

    def close(self) -> None:
        self.listener.close()


class LossyProxy(_Proxy):
    """Of some requests it passes on the request and drops the answer, of others it drops the request. The plan is for requests with
    ``marker`` in their first line."""

    def __init__(self, target: str, plan: list[str], marker: bytes = b"session_seq=") -> None:
        self.marker = marker
        super().__init__(target, plan)

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
        with client, self._venue() as venue:
            while request := self._message(client):
                fate = self._fate() if self.marker in request.split(b"\r\n", 1)[0] else "pass"
                if fate == "drop request":
                    self.lost += 1
                    return
                venue.sendall(request)
                answer = self._message(venue)
                if fate == "drop answer":
                    self.lost += 1
                    return
                client.sendall(answer)


class LossySocket(_Proxy):
    """Of the commands with a session's number over a WebSocket it drops, by its plan, the request or the answer, and the connection with
    it."""

    MARKER = b'"session_seq"'

    def _serve(self, client: socket.socket) -> None:
        drops_answer = threading.Event()
        with client, self._venue() as venue:
            back = threading.Thread(target=self._pass_back, args=(venue, client, drops_answer), daemon=True)
            back.start()
            try:
                while data := client.recv(65_536):
                    fate = self._fate() if self.MARKER in _unmasked(data) else "pass"
                    if fate == "drop request":
                        self.lost += 1
                        break
                    if fate == "drop answer":
                        drops_answer.set()
                    venue.sendall(data)
            except OSError:
                pass
            _end(client, venue)
            back.join(PATIENCE_S)

    def _pass_back(self, venue: socket.socket, client: socket.socket, drops_answer: threading.Event) -> None:
        try:
            while data := venue.recv(65_536):
                if drops_answer.is_set() and self.MARKER in data:
                    self.lost += 1
                    break
                client.sendall(data)
        except OSError:
            pass
        _end(client, venue)


def _end(*connections: socket.socket) -> None:
    """For both sides at once, and for who reads them here."""
    for connection in connections:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def _unmasked(frames: bytes) -> bytes:
    """What a client's frames say, of a WebSocket that compresses nothing; empty where they are none."""
    said = b""
    while len(frames) >= 6 and frames[1] & 0x80:
        length, begin = frames[1] & 0x7F, 2
        if length >= 126:
            begin = 4 if length == 126 else 10
            length = int.from_bytes(frames[2:begin], "big")
        mask, body = frames[begin : begin + 4], frames[begin + 4 : begin + 4 + length]
        said += bytes(byte ^ mask[place % 4] for place, byte in enumerate(body))
        frames = frames[begin + 4 + length :]
    return said
