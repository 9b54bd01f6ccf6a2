"""Places an order once, whatever happens, and shows it: docs/rest.md. Arguments: URL, key file, instrument, name, side, size, price."""
import base64, hashlib, hmac, json, secrets, sys, time, urllib.error, urllib.parse, urllib.request

URL, KEY_FILE, INSTRUMENT, NAME, SIDE, SIZE, PRICE = sys.argv[1:]
KEY, _, SECRET = open(KEY_FILE, encoding="ascii").read().strip().partition(".")
SECRET = base64.urlsafe_b64decode(SECRET + "=" * (-len(SECRET) % 4))

def call(method, path, body=None):
    data = b"" if body is None else json.dumps(body).encode()
    while True:
        try:
            status = json.load(urllib.request.urlopen(URL + "/v1/status", timeout=5))
            stamp, nonce = str(max(time.time_ns(), int(status["accepts_timestamps_from_ns"]))), secrets.token_urlsafe(12)
            text = "\n".join(["walras-v1", method, path, stamp, nonce, hashlib.sha256(data).hexdigest()])
            signature = base64.urlsafe_b64encode(hmac.digest(SECRET, text.encode(), "sha256")).rstrip(b"=").decode()
            headers = {"Walras-Key": KEY, "Walras-Timestamp": stamp, "Walras-Nonce": nonce, "Walras-Signature": signature}
            request = urllib.request.Request(URL + path, data or None, headers, method=method)
            return json.load(urllib.request.urlopen(request, timeout=5))
        except urllib.error.HTTPError as refusal:
            error = json.load(refusal)["error"]
            if error["code"] != 105 and refusal.code not in (429, 503):  # a stale stamp, or the venue is busy or starts: again
                raise SystemExit(f"{error['code']} {error['message']} {error.get('detail', '')}")
        except OSError as lost:
            print("again:", lost, file=sys.stderr)
        time.sleep(0.5)  # an unanswered order is sent again under its number: it takes effect once

session = call("POST", "/v1/sessions", {"token": str(int.from_bytes(hashlib.sha256(NAME.encode()).digest()[:7]))})
order = {"instrument": INSTRUMENT, "client_order_id": NAME, "side": SIDE, "type": "limit", "size": SIZE, "price": PRICE}
call("POST", f"/v1/orders?session={session['session']}&session_seq=1", order)  # the session is of this name: its number 1, always
print(json.dumps(call("GET", f"/v1/orders/{INSTRUMENT}/{urllib.parse.quote(NAME, '')}")))
