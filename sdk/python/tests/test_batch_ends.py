"""Which last block the clients of a batch market give their transactions, against a server whose answers are planned here."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Optional

import pytest

import walras
from venue_process import run
from walras import batch

INTERVAL_MS = 500
#: Of two minutes: the one that collects, and two each second.
BLOCKS = 241
PAYMENT = batch.Payment(to=3, asset=0, amount=5)
DUPLICATE, EXPIRED, NEEDS_LATER_VERSION, BATCH_FULL = 12, 27, 39, 50


#: How a transaction says where it stands in a chain.
PLACES = {0: None, 0x50: "first", 0x70: "middle", 0x30: "last"}


class Sent(NamedTuple):
    sequence: int
    until: Optional[int]
    place: Optional[str]


def read(signed: bytes) -> Sent:
    tag = signed[12]
    until = int.from_bytes(signed[13:18], "little") if tag & 0x80 else None
    return Sent(int.from_bytes(signed[4:12], "little"), until, PLACES[tag & 0x70])


class Planned:
    """A venue that takes what its rules allow."""

    def __init__(self) -> None:
        self.collecting = 7
        #: An engine of an earlier version takes no terms.
        self.takes_terms = True
        #: Numbers that are refused whatever their terms are.
        self.refuses: dict[int, int] = {}
        #: So many it takes, then its batch is full; the next request finds ``later`` collecting.
        self.room, self.later = 1_000_000, 0
        #: So many requests with transactions it takes without an answer, and so many looks at transactions it does not answer.
        self.lost_answers, self.lost_looks = 0, 0
        self.outcomes: list[dict[str, str]] = []
        #: Whether it says nothing about its markets, and how often it was asked.
        self.is_down, self.asks = False, 0
        self.sent: list[list[Sent]] = []

    @property
    def untils(self) -> list[int | None]:
        return [each.until for request in self.sent for each in request]

    def answer(self, path: str, body: Any) -> Any:
        """The answer to a request; ``None`` for none at all."""
        if path == "/v1/batches":
            self.asks += 1
            row = {"name": "main", "market_id": 0, "domain": "09" * 32, "assets": ["USD"]}
            row |= {"interval_ms": INTERVAL_MS, "collecting_block": str(self.collecting)}
            return None if self.is_down else {"batches": [row]}
        if path == "/v1/assets":
            return {"assets": [{"symbol": "USD", "asset_id": 0, "decimals": 2}]}
        if path.startswith("/v1/account"):
            return {"account_id": 2, "next_sequence": "1"}
        if path.startswith("/v1/transactions"):
            self.lost_looks -= 1
            return {"transactions": self.outcomes} if self.lost_looks < 0 else None
        sent = [read(bytes.fromhex(each)) for each in body["transactions"]]
        self.sent.append(sent)
        results = [self._result(each) for each in sent]
        if self.room <= 0:
            self.room, self.collecting = 1_000_000, self.later
        self.lost_answers -= 1
        return {"results": results} if self.lost_answers < 0 else None

    def _result(self, sent: Sent) -> Any:
        code = self.refuses.get(sent.sequence, 0)
        if not code and not self.takes_terms and (sent.until is not None or sent.place is not None):
            code = NEEDS_LATER_VERSION
        if not code and sent.until is not None and sent.until < self.collecting:
            code = EXPIRED
        if not code and self.room <= 0:
            code = BATCH_FULL
        if code:
            return {"error": {"code": code, "name": f"Reason{code}", "message": "do this"}}
        self.room -= 1
        return {"account_id": 2, "sequence": str(sent.sequence), "block": str(self.collecting)}


class Served:
    """A planned venue behind an address."""

    def __init__(self) -> None:
        planned = self.planned = Planned()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(None)

            def do_POST(self) -> None:
                self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def answer(self, body: Any) -> None:
                answer = planned.answer(self.path, body)
                if answer is not None:
                    content = json.dumps(answer).encode()
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def client(self) -> walras.Client:
        return walras.Client(f"http://127.0.0.1:{self.server.server_address[1]}", batch.new_key())

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served()
    yield served
    served.close()


def codes(results: list[batch.Collected | walras.Refused]) -> list[int | None]:
    return [result.code if isinstance(result, walras.Refused) else None for result in results]


def test_two_minutes_are_as_many_blocks_as_begin_in_them_and_the_one_that_collects() -> None:
    for interval_ms, blocks in ((500, 241), (50, 2_401), (1, 120_001), (0, 120_001), (700, 173), (120_000, 2), (86_400_000, 2)):
        assert batch.blocks_of_two_minutes(interval_ms) == blocks, interval_ms
    assert batch.last_of_blocks(7, 1) == 7
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="blocks"):
            batch.last_of_blocks(7, wrong)
    with pytest.raises(TypeError, match="blocks"):
        batch.last_of_blocks(7, 1.5)  # type: ignore[arg-type]


def test_a_transaction_ends_after_about_two_minutes_unless_its_call_says_another_block_or_none(served: Served) -> None:
    planned, main = served.planned, served.client().batch("main")
    main.pay(3, 1, "USD")
    main.pay(3, 1, "USD", until=9)
    main.pay(3, 1, "USD", until=None)
    main.sell(1, "USD", "USD", until=main.last_block(3))
    main.send(PAYMENT, PAYMENT, joined=True)
    assert planned.untils == [6 + BLOCKS, 9, None, 9, 6 + BLOCKS, 6 + BLOCKS]
    assert [each.place for each in planned.sent[-1]] == ["first", "last"]
    assert main.last_block() == 6 + BLOCKS
    with pytest.raises(ValueError, match="blocks"):
        main.last_block(0)
    with pytest.raises(TypeError, match="until"):
        main.pay(3, 1, "USD", until="soon")  # type: ignore[arg-type]


def test_a_market_may_say_another_number_of_blocks_or_none_for_all_of_its_transactions(served: Served) -> None:
    planned, client = served.planned, served.client()
    twenty, without = client.batch("main", blocks=20), client.batch("main", blocks=None)
    twenty.pay(3, 1, "USD")
    twenty.pay(3, 1, "USD", until=None)
    without.pay(3, 1, "USD")
    without.pay(3, 1, "USD", until=9)
    assert planned.untils == [26, None, None, 9]
    with pytest.raises(ValueError, match="blocks"):
        client.batch("main", blocks=0)

    async def play() -> None:
        market = await walras.AsyncClient(client.url, client.key).batch("main", blocks=20)
        await market.pay(3, 1, "USD")
        await market.pay(3, 1, "USD", until=await market.last_block())
        (signed,) = await market.signed(1, PAYMENT)
        assert read(signed).until == 26

    run(play())
    assert planned.untils[4:] == [26, 6 + BLOCKS]


def test_the_block_that_collects_is_known_from_answers_and_asked_for_when_that_is_old(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned, main = served.planned, served.client().batch("main")
    planned.collecting = 100
    main.pay(3, 1, "USD")
    main.pay(3, 1, "USD")
    assert (planned.asks, planned.untils) == (1, [6 + BLOCKS, 99 + BLOCKS])
    # A venue that cannot say it now gets what is known.
    monotonic = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + 11)
    planned.is_down, planned.collecting = True, 150
    main.pay(3, 1, "USD")
    planned.is_down, planned.collecting, planned.asks = False, 200, 0
    main.pay(3, 1, "USD")
    main.pay(3, 1, "USD")
    assert (planned.asks, planned.untils[2:]) == (1, [99 + BLOCKS, 199 + BLOCKS, 199 + BLOCKS])


def test_an_end_that_has_passed_is_given_again_once_under_the_same_number(served: Served) -> None:
    planned, main = served.planned, served.client().batch("main")
    planned.collecting = 1_000
    assert main.send(PAYMENT, PAYMENT) == [batch.Collected(1, 1_000), batch.Collected(2, 1_000)]
    assert [[each.sequence for each in request] for request in planned.sent] == [[1, 2], [1, 2]]
    assert planned.untils == [6 + BLOCKS, 6 + BLOCKS, 999 + BLOCKS, 999 + BLOCKS]
    # Not where the call says the end, and never some of those that count together.
    with pytest.raises(walras.Refused, match="Reason27"):
        main.pay(3, 1, "USD", until=999)
    planned.collecting = 2_000
    assert codes(main.send(PAYMENT, PAYMENT, joined=True)) == [EXPIRED, EXPIRED]
    assert len(planned.sent) == 4


def test_a_venue_of_an_earlier_version_gets_transactions_without_an_end_where_nobody_asked_for_one(served: Served) -> None:
    planned, main = served.planned, served.client().batch("main")
    planned.takes_terms = False
    planned.refuses[2] = DUPLICATE
    assert codes(main.send(PAYMENT, PAYMENT, PAYMENT)) == [None, DUPLICATE, None]
    assert [[each.sequence for each in request] for request in planned.sent] == [[1, 2, 3], [1, 3]]
    assert planned.untils[3:] == [None, None]
    for until, joined in ((50, False), (50, True)):
        assert codes(main.send(PAYMENT, PAYMENT, until=until, joined=joined))[0] == NEEDS_LATER_VERSION, "it is not left out"
    assert codes(main.send(PAYMENT, PAYMENT, joined=True))[0] == NEEDS_LATER_VERSION
    assert len(planned.sent) == 5


@pytest.mark.parametrize(("later", "expected"), [(7, [None, None, None]), (8, [None, EXPIRED, EXPIRED])])
def test_a_chain_of_which_a_block_has_a_part_is_sent_again_for_that_block_alone(
    served: Served, later: int, expected: list[int | None]
) -> None:
    planned, main = served.planned, served.client().batch("main")
    planned.room, planned.later = 1, later
    assert codes(main.send(PAYMENT, PAYMENT, PAYMENT, joined=True)) == expected
    first, again = planned.sent
    assert first == [Sent(1, 6 + BLOCKS, "first"), Sent(2, 6 + BLOCKS, "middle"), Sent(3, 6 + BLOCKS, "last")]
    assert again == [Sent(2, 7, "middle"), Sent(3, 7, "last")]


def test_a_chain_that_no_block_has_is_sent_again_as_it_is_and_not_at_all_where_one_is_refused(served: Served) -> None:
    planned, main = served.planned, served.client().batch("main")
    planned.room, planned.later = 0, 8
    assert main.send(PAYMENT, PAYMENT, joined=True) == [batch.Collected(1, 8), batch.Collected(2, 8)]
    assert planned.untils == [6 + BLOCKS] * 4
    planned, main = served.planned, served.client().batch("main")
    planned.room, planned.sent = 0, []
    planned.refuses[1] = DUPLICATE
    assert codes(main.send(PAYMENT, PAYMENT, joined=True)) == [DUPLICATE, BATCH_FULL]
    assert len(planned.sent) == 1


def test_what_was_taken_without_an_answer_is_looked_for_until_the_venue_says_it(served: Served) -> None:
    planned, main = served.planned, served.client().batch("main")
    planned.refuses[1] = DUPLICATE
    # As many looks as a client makes at once.
    planned.lost_answers, planned.lost_looks = 1, 2
    planned.outcomes = [{"sequence": "1", "batch": "main", "block": "7"}]
    assert main.send(PAYMENT) == [batch.Collected(1, 7)]
    assert [[sent.sequence for sent in request] for request in planned.sent] == [[1], [1], [1]]
