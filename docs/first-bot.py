"""A small market maker for Walras: docs/first-bot.md explains it."""

import argparse
import asyncio
import base64
import hashlib
import hmac
import itertools
import json
import secrets
import time
import urllib.request
from decimal import Decimal

import websockets
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Key:
    """One line of a key file: `<key id>.<secret>`."""

    def __init__(self, path: str) -> None:
        try:
            with open(path, encoding="ascii") as file:
                self.id, _, secret = file.read().strip().partition(".")
        except OSError as error:
            raise SystemExit(f"--key: {error}; the demo writes .walras/demo/trader.key in the folder where it was started") from None
        self.secret = base64.urlsafe_b64decode(secret + "=" * (-len(secret) % 4))

    def signature(self, method: str, path: str, timestamp: int, nonce: str, body: bytes = b"") -> str:
        text = "\n".join(["walras-v1", method, path, str(timestamp), nonce, hashlib.sha256(body).hexdigest()]).encode()
        if self.id.startswith("hm_"):
            return unpadded(hmac.digest(self.secret, text, "sha256"))
        return unpadded(Ed25519PrivateKey.from_private_bytes(self.secret).sign(text))


class Bot:
    def __init__(self, args: argparse.Namespace, key: Key) -> None:
        self.url, self.key, self.instrument = args.url, key, args.instrument
        self.size, self.half_spread, self.position_max = Decimal(args.size), args.spread_ticks, Decimal(args.position_max)
        self.ids = itertools.count(time.time_ns())
        rows = self.get("/v1/instruments")["instruments"]
        named = {row["symbol"].replace("/", "-"): row for row in rows}
        if self.instrument.replace("/", "-") not in named:
            raise SystemExit(f"--instrument: the venue has no {self.instrument}, but {', '.join(named) or 'none at all'}")
        self.spec = named[self.instrument.replace("/", "-")]
        self.tick = Decimal(self.spec["tick_size"])

    def get(self, path: str) -> dict:
        with urllib.request.urlopen(self.url + path, timeout=5) as answer:
            return json.load(answer)

    def stamp(self) -> int:
        """A timestamp that the venue takes, also right after its start."""
        return max(time.time_ns(), int(self.get("/v1/status")["accepts_timestamps_from_ns"]))

    async def sign_in(self, socket: websockets.ClientConnection) -> None:
        while True:
            timestamp, nonce = await asyncio.to_thread(self.stamp), secrets.token_urlsafe(12)
            signature = self.key.signature("WS", "/v1/ws", timestamp, nonce)
            fields = {"key": self.key.id, "timestamp": str(timestamp), "nonce": nonce, "signature": signature}
            await socket.send(json.dumps({"op": "auth", **fields}))
            answer = json.loads(await socket.recv())
            if answer["type"] == "authenticated":
                return
            if answer["error"]["code"] != 105:
                raise SystemExit(f"could not sign in: {answer['error']}")
            await asyncio.sleep(1)

    async def session(self) -> None:
        """One connection, from signing in to its end."""
        address = self.url.replace("http", "ws", 1) + "/v1/ws"
        # The library answers the venue's pings, sends its own, and ends a connection on which nothing comes back.
        async with websockets.connect(address, ping_interval=10, ping_timeout=20, max_size=None) as socket:
            await self.sign_in(socket)
            await socket.send(json.dumps({"op": "subscribe", "channel": "book", "instrument": self.instrument}))
            self.socket, self.levels, self.open, self.position = socket, {"bids": {}, "asks": {}}, None, Decimal(0)
            print("signed in")
            try:
                async for text in socket:
                    message = json.loads(text)
                    if message["type"] == "book":
                        self.on_book(message)
                    elif message["type"] == "account":
                        self.on_account(message)
                    elif message["type"] == "error" and message["error"]["code"] == 4:
                        continue  # It was filled while the cancel was on its way; the account's channel says so.
                    elif message["type"] == "error":
                        print("refused:", message.get("id"), message["error"]["name"], message["error"].get("detail", ""))
                    else:
                        continue
                    await self.quote()
            except asyncio.CancelledError:
                # Ctrl-C: leave nothing in the book.
                await socket.send(json.dumps({"op": "mass_cancel", "id": "bye", "instrument": self.instrument}))
                while json.loads(await socket.recv()).get("id") != "bye":
                    pass
                print("orders cancelled")
                raise

    def on_book(self, message: dict) -> None:
        for side in ("bids", "asks"):
            if message["kind"] == "snapshot":
                self.levels[side].clear()
            for price, size, _ in message[side]:
                if size == "0":
                    self.levels[side].pop(Decimal(price), None)
                else:
                    self.levels[side][Decimal(price)] = Decimal(size)

    def on_account(self, message: dict) -> None:
        if message["kind"] == "snapshot":
            self.open = {}
        for order in message.get("orders", []) + message.get("order_updates", []):
            if order["instrument"] != self.spec["symbol"]:
                continue
            if order["status"] in ("filled", "cancelled"):
                self.open.pop(order["client_order_id"], None)
            else:
                self.open[order["client_order_id"]] = (order["side"], Decimal(order["price"] or 0))
        for fill in message["fills"] if message["kind"] == "update" else []:
            print(f"{fill['side']} {fill['size']} at {fill['price']}, fee {fill['fee']}")
        rows = (row for row in message["positions"] if row["instrument"] == self.spec["symbol"])
        self.position = Decimal(next(rows, {"position": "0"})["position"])

    async def quote(self) -> None:
        bids, asks = self.levels["bids"], self.levels["asks"]
        if self.open is None or not bids or not asks:
            return
        middle = (max(bids) + min(asks)) / 2 // self.tick * self.tick
        offset = self.half_spread * self.tick
        wanted = {"buy": middle - offset, "sell": middle + offset}
        if self.position >= self.position_max:
            del wanted["buy"]
        if self.position <= -self.position_max:
            del wanted["sell"]
        for client_id, (side, price) in list(self.open.items()):
            if side in wanted and abs(price - wanted[side]) <= offset / 2:
                del wanted[side]
            else:
                await self.send("cancel", client_order_id=client_id)
                del self.open[client_id]
        for side, price in wanted.items():
            client_id = str(next(self.ids))
            self.open[client_id] = (side, price)
            terms = {"side": side, "type": "limit", "post_only": "reject", "size": str(self.size), "price": str(price)}
            await self.send("order", client_order_id=client_id, **terms)

    async def send(self, op: str, **fields: str) -> None:
        await self.socket.send(json.dumps({"op": op, "id": fields["client_order_id"], "instrument": self.instrument, **fields}))


async def main(args: argparse.Namespace) -> None:
    pause, bot, key = 0.5, None, Key(args.key)
    while True:
        try:
            bot = bot or await asyncio.to_thread(Bot, args, key)
            begun = time.monotonic()
            await bot.session()
            why = "the venue closed it"
        except (OSError, websockets.WebSocketException) as error:
            why = str(error) or type(error).__name__
        # A connection that held for a while was a success.
        pause = 0.5 if bot and time.monotonic() - begun > 30 else min(2 * pause, 10)
        print(f"connection lost ({why}): next try in {pause} s")
        await asyncio.sleep(pause)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", default="http://127.0.0.1:7070")
    parser.add_argument("--key", required=True, help="file of a trading key")
    parser.add_argument("--instrument", default="WAL-USD")
    parser.add_argument("--size", default="5")
    parser.add_argument("--spread-ticks", type=int, default=4, help="distance of each quote from the middle")
    parser.add_argument("--position-max", default="100", help="stop buying, or selling, at this position")
    try:
        asyncio.run(main(parser.parse_args()))
    except KeyboardInterrupt:
        pass
