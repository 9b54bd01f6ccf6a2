"""A venue on this machine for programs that speak the Binance dialect: a market that is open, and two funded accounts with keys."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pathlib
import secrets
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PATIENCE_S = 30


def wait_until(what: str, is_so: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Waits for a condition."""
    begun = time.monotonic()
    while not is_so():
        if time.monotonic() - begun > patience_s:
            raise TimeoutError(f"not within {patience_s} s: {what}")
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Operator:
    """The operator's side, in the venue's own API."""

    def __init__(self, url: str, key_file: pathlib.Path) -> None:
        self.url = url
        self.key, seed = key_file.read_text().strip().split(".")
        self.secret = Ed25519PrivateKey.from_private_bytes(base64.urlsafe_b64decode(seed + "=" * (-len(seed) % 4)))

    def post(self, path: str, body: dict[str, object]) -> dict[str, object]:
        data = json.dumps(body).encode()
        stamp, nonce = str(time.time_ns()), secrets.token_hex(8)
        signed = "\n".join(["walras-v1", "POST", path, stamp, nonce, hashlib.sha256(data).hexdigest()])
        headers = {
            "Walras-Key": self.key,
            "Walras-Timestamp": stamp,
            "Walras-Nonce": nonce,
            "Walras-Signature": base64url(self.secret.sign(signed.encode())),
            "Content-Type": "application/json",
        }
        request = urllib.request.Request(self.url + path, data, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError as e:
            raise RuntimeError(f"{path}: {e.read().decode()}") from e


@dataclass
class Account:
    """An account and its keys in the dialect."""

    account_id: int
    api_key: str
    secret: str
    ed25519_key: str
    ed25519_pem: str
    rsa_key: str
    rsa_pem: str


@dataclass
class Venue:
    """A running venue."""

    program: str
    folder: pathlib.Path
    port: int = 0
    facade_port: int = 0
    taker: Account = field(init=False)
    maker: Account = field(init=False)
    process: subprocess.Popen[bytes] | None = None

    @property
    def rest(self) -> str:
        return f"http://127.0.0.1:{self.facade_port}"

    @property
    def ws(self) -> str:
        return f"ws://127.0.0.1:{self.facade_port}"

    def operator(self) -> Operator:
        return Operator(f"http://127.0.0.1:{self.port}", self.folder / "operator.key")

    def start(self) -> None:
        """Starts it, or starts it again with the same addresses."""
        config = self.folder.with_suffix(".toml")
        if self.process is None:
            self.port, self.facade_port = free_port(), free_port()
            text = (
                f'[http]\nlisten = "127.0.0.1:{self.port}"\n'
                f'[binance]\nlisten = "127.0.0.1:{self.facade_port}"\n'
                f'[order_entry]\nlisten = "127.0.0.1:0"\n[log]\nsegment_bytes = 4194304\n'
            )
            config.write_text(text)
        with self.folder.with_suffix(".log").open("ab") as log:
            command = [self.program, "serve", "--config", str(config), "--data", str(self.folder)]
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

        def is_up() -> bool:
            assert self.process is not None
            if self.process.poll() is not None:
                raise RuntimeError(self.folder.with_suffix(".log").read_text())
            try:
                with urllib.request.urlopen(f"{self.rest}/api/v3/ping", timeout=1):
                    pass
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=1):
                    return True
            except OSError:
                return False

        wait_until("the venue serves", is_up)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(PATIENCE_S)

    def account(self, number: int) -> Account:
        operator = self.operator()
        account_id = operator.post("/v1/admin/accounts", {})["account_id"]
        for transfer, (asset, amount) in enumerate([("BTC", "100"), ("USD", "5000000")]):
            body: dict[str, object] = {"account_id": account_id, "asset": asset, "amount": amount, "transfer_id": str(transfer + 1)}
            operator.post("/v1/admin/deposits", body)
        permissions = ["read", "trade"]
        made = operator.post("/v1/admin/keys", {"account_id": account_id, "permissions": permissions})
        api_key, secret = str(made["key"]).split(".")
        own = Ed25519PrivateKey.generate()
        public = own.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        named = f"ed_client{number}"
        body = {"account_id": account_id, "permissions": permissions, "key_id": named, "public_key": base64url(public)}
        operator.post("/v1/admin/keys", body)
        pem = own.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
        own_rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        rsa_public = own_rsa.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        rsa_named = f"rs_client{number}"
        body = {"account_id": account_id, "permissions": permissions, "key_id": rsa_named, "public_key": rsa_public.decode()}
        operator.post("/v1/admin/keys", body)
        rsa_pem = own_rsa.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
        return Account(int(str(account_id)), api_key, secret, named, pem, rsa_named, rsa_pem)

    def open_market(self) -> None:
        operator = self.operator()
        for symbol, decimals in [("BTC", 8), ("USD", 6)]:
            operator.post("/v1/admin/assets", {"symbol": symbol, "decimals": decimals})
        instrument: dict[str, object] = {
            "symbol": "BTC/USD", "base": "BTC", "quote": "USD", "tick_size": "0.01", "lot_size": "0.0001",
            "reference_price": "30000", "maker_fee_ppm": 100, "taker_fee_ppm": 200,
        }
        operator.post("/v1/admin/instruments", instrument)
        operator.post("/v1/admin/phases", {"instrument": "BTC/USD", "phase": "continuous"})
        self.taker, self.maker = self.account(0), self.account(1)


@contextmanager
def venue() -> Iterator[Venue]:
    """A venue with an open market, for as long as it is needed."""
    program = os.environ.get("WALRAS_PROGRAM", "target/debug/walras")
    with tempfile.TemporaryDirectory() as folder:
        running = Venue(program, pathlib.Path(folder) / "venue")
        try:
            running.start()
            running.open_market()
            yield running
        finally:
            running.stop()
