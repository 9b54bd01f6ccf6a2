"""Keeps a book by FIX: python3 fix-book.py HOST:PORT KEYFILE SYMBOL. Prints the best bid and offer after each message."""
import socket, sys, time
address, (key, secret), symbol = sys.argv[1].split(":"), open(sys.argv[2]).read().strip().split("."), sys.argv[3]
venue, seq, book, message = socket.create_connection((address[0], int(address[1]))), 0, {"0": {}, "1": {}}, []

def send(kind, *fields):
    global seq
    seq, now = seq + 1, time.strftime("%Y%m%d-%H:%M:%S.000", time.gmtime())
    body = "".join(f"{field}\x01" for field in (f"35={kind}", f"34={seq}", "49=READER", f"52={now}", "56=WALRAS-MD", *fields))
    text = f"8=FIX.4.4\x019={len(body)}\x01{body}".encode()
    venue.sendall(text + b"10=%03d\x01" % (sum(text) % 256))

def fields(rest=b""):
    while received := venue.recv(1 << 16):
        *whole, rest = (rest + received).split(b"\x01")
        yield from (field.decode().split("=", 1) for field in whole)

send("A", "98=0", "108=30", "141=Y", f"553={key}", f"554={secret}")
send("V", "262=book", "263=1", "264=10", "265=1", "267=2", "269=0", "269=1", "146=1", f"55={symbol}")
for field in fields():
    message.append(field)
    if field[0] == "10":
        named, entry, parts, message = dict(message), {}, message, []
        kind = named["35"]
        _ = kind in ("5", "Y") and sys.exit(named["58"])
        _ = kind in ("0", "1") and send("0", *(f"112={value}" for tag, value in parts if tag == "112"))
        book = {"0": {}, "1": {}} if kind == "W" else book
        for tag, value in parts if kind in ("W", "X") else []:
            entry[tag] = value
            if tag == "290":  # The last field of an entry. A level that is gone (279=2) has no size.
                book[entry["269"]][entry["270"]] = entry["271"] if entry.get("279") != "2" else None
        best = [[float(price) for price, size in book[side].items() if size] for side in "01"]
        print(max(best[0], default="-"), min(best[1], default="-"), flush=True)
