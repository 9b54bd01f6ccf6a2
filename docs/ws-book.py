"""Keeps a book over the WebSocket and prints its best levels: python3 ws-book.py ws://HOST:PORT INSTRUMENT (docs/websocket.md).
Needs the package websockets, which also connects again when the connection ends."""
import asyncio, json, sys

import websockets

URL, INSTRUMENT = sys.argv[1:]


async def read(socket):
    await socket.send(json.dumps({"op": "subscribe", "channel": "book", "instrument": INSTRUMENT}))
    book, seq = {"bids": {}, "asks": {}}, 0
    async for text in socket:
        message = json.loads(text)
        if message["type"] == "error":
            sys.exit(text)
        if message["type"] == "book":
            seq += 1
            if int(message["feed_seq"]) != seq:
                return  # a gap: begin again
            for side, levels in book.items():
                sizes = {price: size for price, size, *_ in message[side]}
                changed = sizes if message["kind"] == "snapshot" else {**levels, **sizes}
                book[side] = {price: size for price, size in changed.items() if float(size)}
            print(max(book["bids"], key=float, default="-"), min(book["asks"], key=float, default="-"), flush=True)


async def main():
    async for socket in websockets.connect(f"{URL}/v1/ws"):
        try:
            await read(socket)
        except websockets.ConnectionClosed:
            pass

asyncio.run(main())
