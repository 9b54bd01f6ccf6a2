"""The client's end of order entry without sockets: the bytes of docs/order-entry.md, and the signatures of
sdk/typescript/test/signing-vector.json."""

from __future__ import annotations

import json
import pathlib
import re

import pytest

from walras import _native

REPOSITORY = pathlib.Path(__file__).parents[3]
DOCUMENT = REPOSITORY / "docs" / "order-entry.md"
VECTORS = REPOSITORY / "sdk" / "typescript" / "test" / "signing-vector.json"
LOGON_NS = 1_700_000_000_123_456_789


def example(name: str) -> bytes:
    (text,) = re.findall(rf"```text {name}\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    return bytes.fromhex(text)


def session(reports: int | None = 5) -> _native.Session:
    key = _native.Key("hm_demo.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8")
    return _native.Session(["127.0.0.1:7272"], key, 7, True, reports, 1_024, 10**10, LOGON_NS)


def test_a_session_speaks_as_documented() -> None:
    client = session()
    assert client.wish(LOGON_NS) == "127.0.0.1:7272"
    client.on_connecting()
    with pytest.raises(ValueError, match="32 random bytes"):
        client.on_connected(LOGON_NS, b"short")
    client.on_connected(LOGON_NS, bytes(range(64, 96)))
    assert client.on_bytes(LOGON_NS, example("welcome")) == []
    assert client.take_output() == example("logon")
    with pytest.raises(RuntimeError, match="not logged on yet"):
        client.submit_cancel(LOGON_NS, 3, 0, 77)
    # As it comes over a network: in pieces.
    said = example("logged-on")
    events = [event for byte in said for event in client.on_bytes(LOGON_NS, bytes([byte]))]
    assert [event[:2] for event in events] == [("logged_on", 42)] and client.is_logged_on
    assert client.submit_order(LOGON_NS, 3, 0, "buy", 5, 100, 77) == 1
    assert client.take_output() == example("order") + example("seal") and client.take_output() == b""
    assert client.unanswered_count == 1
    assert client.on_bytes(LOGON_NS, example("answer")) == [("answer", 1, 43, LOGON_NS, 0, None)]
    assert client.unanswered_count == 0
    assert client.log_out() == [] and client.take_output()


def test_what_the_venue_did_not_say_ends_the_session() -> None:
    client = session(None)
    client.on_connecting()
    client.on_connected(LOGON_NS, bytes(range(64, 96)))
    ((name, _, _, _, _, why),) = client.on_bytes(LOGON_NS, b"\xff" * 64)
    assert name == "ended" and "does not know" in why
    assert client.wish(LOGON_NS) == ""
    with pytest.raises(RuntimeError, match="has ended"):
        client.submit_cancel(LOGON_NS, 3, 0, 77)
    with pytest.raises(ValueError, match="at least one replica"):
        _native.Session([], _native.Key("hm_demo.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"), 7, True, None, 1, 1, 1)


def test_signatures() -> None:
    known = json.loads(VECTORS.read_text())
    key = _native.Key(f"{known['key']}.{known['secret_base64url']}\n")
    assert key.id == known["key"] and known["secret_base64url"] not in repr(key)
    assert len(known["vectors"]) >= 2
    for vector in known["vectors"]:
        signature = key.sign(vector["method"], vector["path"], vector["body"].encode(), int(vector["timestamp"]), vector["nonce"])
        assert signature == vector["signature"]
    with pytest.raises(ValueError, match="key"):
        _native.Key("nonsense")


def test_reasons_have_names() -> None:
    reason = _native.reject_reason(60)
    assert reason is not None and reason[0] == "InsufficientFunds" and _native.reject_reason(9_999) is None
