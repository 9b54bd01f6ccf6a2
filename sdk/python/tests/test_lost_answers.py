"""Sessions and addresses of the HTTP client, against a server whose answers are planned here."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import walras
from walras import commands

KEY = "hm_demo.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"


@contextmanager
def planned(plan: list[Any]) -> Iterator[tuple[str, list[str]]]:
    """The address of a venue that opens session 42 and answers commands as planned, and the paths of those."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            answer = {"session": "42", "next_seq": "5"}
            if self.path != "/v1/sessions":
                asked.append(self.path)
                answer = plan.pop(0)
            content = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def error(code: int, **more: str) -> dict[str, Any]:
    return {"error": {"code": code, "name": f"Reason{code}", "message": "do this"}, **more}


def test_of_several_commands_those_in_doubt_are_sent_again_under_their_numbers() -> None:
    def answer(number: int, repeated: bool) -> dict[str, Any]:
        return {"answer": {"session_seq": str(number), "repeated": repeated}}

    # The leader changed while the second and the third were written.
    first = {"results": [answer(5, False), error(116), error(116)]}
    again = {"results": [answer(5, True), answer(6, True), error(4, log_index="9")]}
    several = [commands.mass_cancel(), commands.mass_cancel(), commands.cancel("BTC-USD", "x")]
    with planned([first, again]) as (url, asked):
        session = walras.Client(url, KEY).session()
        results: list[Any] = list(session.many(several))
        assert [result["repeated"] for result in results[:2]] == [False, True]
        assert isinstance(results[2], walras.Refused) and (results[2].code, results[2].log_index) == (4, 9)
        assert asked == ["/v1/orders/batch?session=42&session_seq=5"] * 2 and session.next_seq == 8
    with planned([first]) as (url, _), pytest.raises(walras.OutcomeUnknown, match="Reason116"):
        walras.Client(url, KEY).session(patience_s=0).many(several)


def test_a_session_sends_no_exits_with_an_order() -> None:
    with planned([{"answer": {}}]) as (url, asked):
        session = walras.Client(url, KEY).session(7)
        entry = commands.order("BTC-USD", "buy", 1, 100, exits={"stop_loss": {"trigger": 90}})
        with pytest.raises(ValueError, match="stop_loss: a session sends no exits"):
            session.submit("BTC-USD", "buy", 1, 100, exits={"stop_loss": {"trigger": 90}})
        with pytest.raises(ValueError, match="stop_loss: a session sends no exits"):
            session.many([commands.mass_cancel(), entry])
        session.submit("BTC-USD", "buy", 1, 100)
        # Nothing was sent, and no number is used.
        assert asked == ["/v1/orders?session=42&session_seq=5"]


def test_a_session_whose_last_outcome_is_unknown_sends_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with planned([{"results": [error(116)]}, {"status": "resting"}]) as (url, asked):
        session = walras.Client(url, KEY).session(patience_s=0)
        with pytest.raises(walras.OutcomeUnknown, match="Reason116"):
            session.many([commands.mass_cancel()])
        with pytest.raises(walras.OutcomeUnknown, match="an earlier command"):
            session.mass_cancel()
        assert len(asked) == 1
        # Ctrl-C while an answer is waited for.
        stopped = walras.Client(url, KEY).session()
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(stopped._transport, "send", interrupted)
            stopped.mass_cancel()
        with pytest.raises(walras.OutcomeUnknown, match="an earlier command"):
            stopped.mass_cancel()
        assert len(asked) == 1


def test_where_none_of_many_addresses_answers_that_is_said() -> None:
    closed = []
    for _ in range(5):
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            closed.append(f"http://127.0.0.1:{nobody.getsockname()[1]}")
    client = walras.Client(closed, KEY)
    with pytest.raises(ConnectionError, match="refused"):
        client.status()
    with pytest.raises(ConnectionError, match="refused"):
        client.mass_cancel()
