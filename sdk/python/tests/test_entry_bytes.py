"""The client's end of order entry without sockets: the bytes of docs/order-entry.md, and the signatures of
sdk/typescript/test/signing-vector.json."""

from __future__ import annotations

import asyncio
import hashlib
import json
import pathlib
import re
from typing import Any, cast

import pytest

import walras
from walras import _entry, _native

REPOSITORY = pathlib.Path(__file__).parents[3]
DOCUMENT = REPOSITORY / "docs" / "order-entry.md"
VECTORS = REPOSITORY / "sdk" / "typescript" / "test" / "signing-vector.json"
KEY = "hm_demo.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
LOGON_NS = 1_700_000_000_123_456_789


def example(name: str) -> bytes:
    (text,) = re.findall(rf"```text {name}\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    return bytes.fromhex(text)


def session(reports: int | None = 5) -> _native.Session:
    return _native.Session(["127.0.0.1:7272"], _native.Key(KEY), 7, True, reports, 1_024, 10**10, LOGON_NS)


def test_sessions_that_begin_at_the_same_time_name_their_orders_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: LOGON_NS)

    async def names() -> list[int]:
        return [_entry.OrderEntry("127.0.0.1:7272", KEY, account=3)._names for _ in range(2)]

    one, other = asyncio.run(names())
    assert abs(one - other) > 1_000_000


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
    # A side that is none is not taken for both.
    with pytest.raises(ValueError, match="side: 2 is none"):
        client.submit_mass_cancel(LOGON_NS, 3, None, 2)
    assert client.unanswered_count == 0
    assert client.log_out() == [] and client.take_output()


def test_an_order_goes_under_the_number_of_its_text() -> None:
    client = session()
    client.on_connecting()
    client.on_connected(LOGON_NS, bytes(range(64, 96)))
    client.on_bytes(LOGON_NS, example("welcome"))
    client.on_bytes(LOGON_NS, example("logged-on"))
    client.take_output()
    # The rule of docs/order-entry.md.
    number = int.from_bytes(hashlib.sha256(b"abc-1").digest()[:8], "big") >> 1 | 1 << 63
    assert walras.order_number("abc-1") == number and walras.order_number("17") == walras.order_number(17) == 17
    called = number.to_bytes(8, "little")
    client.submit_order(LOGON_NS, 3, 0, "buy", 5, 100, "abc-1")
    named = client.take_output()
    # Behind length, kind and session_seq of the frame.
    assert named[13:14] == b"\x0d" and named[22:30] == called and b"\x05abc-1" in named
    client.submit_order(LOGON_NS, 3, 0, "sell", 5, 110, "out", exit_of="abc-1")
    linked = client.take_output()
    assert linked[13:14] == b"\x1c" and linked[30:38] == called and b"\x01\x03out" in linked
    client.submit_cancel(LOGON_NS, 3, 0, "abc-1")
    assert client.take_output()[22:30] == called
    client.submit_amend(LOGON_NS, 3, 0, "abc-1", size_lots=4)
    assert client.take_output()[22:30] == called
    client.submit_cancel_after(LOGON_NS, 3, 5_000)
    assert client.take_output()[13:26] == b"\x0e" + (3).to_bytes(4, "little") + (5_000).to_bytes(8, "little")
    for wrong in ("", "two words", "18446744073709551616"):
        with pytest.raises(ValueError, match="names no order"):
            client.submit_cancel(LOGON_NS, 3, 0, wrong)
    with pytest.raises(TypeError):
        client.submit_cancel(LOGON_NS, 3, 0, 1.5)  # type: ignore[arg-type]
    assert client.unanswered_count == 5


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
        _native.Session([], _native.Key(KEY), 7, True, None, 1, 1, 1)


def test_a_host_that_says_nothing_is_left_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_entry, "_CONNECT_S", 0.02)
    asked: set[int] = set()

    async def silent(_protocol: object, _host: str, port: int, ssl: object) -> None:
        asked.add(port)
        await asyncio.Event().wait()

    async def play() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", silent)
        entry = walras.OrderEntry(["127.0.0.1:1", "127.0.0.1:2"], KEY, account=3)
        with pytest.raises(TimeoutError, match="no logon within 1 s"):
            await entry.start(timeout_s=1)

    asyncio.run(play())
    assert asked == {1, 2}


def test_a_report_that_is_there_is_received_without_time_to_wait() -> None:
    entry = walras.PlainOrderEntry("127.0.0.1:1", KEY, account=3)

    async def made() -> walras.OrderEntry:
        return entry._make()

    entry._thread.start()
    try:
        entry._inner = entry._thread.wait(made())
        report = walras.Report(1, 2, 3, cast(Any, None))
        entry._inner._reports.append(report)
        assert entry.receive(timeout_s=0) == report
        with pytest.raises(TimeoutError, match="no report within 0 s"):
            entry.receive(timeout_s=0)
    finally:
        entry._thread.stop()


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
