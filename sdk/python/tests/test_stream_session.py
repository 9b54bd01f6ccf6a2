"""Commands under a session's numbers over the WebSocket, against a server that loses answers, refuses, and carries each number out once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest
import websockets
import websockets.asyncio.server as server

import walras
from venue_process import run
from walras import _orders, _stream, commands

KEY = "hm_demo.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
SESSION = 42


def error(code: int, **more: Any) -> dict[str, Any]:
    return {"type": "error", "error": {"code": code, "name": f"Reason{code}", "message": "do this"}, **more}


class FakeVenue:
    """Takes commands as planned: ``lose`` carries one out and ends the connection without an answer; ``close`` closes it and carries
    nothing out; ``doubt`` carries several out and knows of the first alone; ``say`` sends messages and no answer; a number refuses;
    others are answered."""

    def __init__(self, plan: list[str | int | dict[str, Any]]) -> None:
        self.plan = plan
        #: What came, without ids; what was carried out, by number; how many connections signed in.
        self.asked: list[dict[str, Any]] = []
        self.done: dict[tuple[str, str], str] = {}
        self.carried_out: list[dict[str, Any]] = []
        self.logons = 0

    async def serve(self, socket: server.ServerConnection) -> None:
        """One connection, to its end."""
        with suppress(websockets.ConnectionClosed):
            await self._serve(socket)

    async def _serve(self, socket: server.ServerConnection) -> None:
        async for text in socket:
            asked = json.loads(text)
            named = {"id": asked.pop("id")}
            if asked["op"] == "auth":
                self.logons += 1
                fate = self.plan.pop(0) if self.plan and isinstance(self.plan[0], str) and self.plan[0].startswith("auth ") else ""
                if fate == "auth close":
                    await socket.close()
                    return
                answer = error(int(str(fate).split()[1])) if fate else {"type": "authenticated", "key": "hm_demo", "account_id": 3}
                await socket.send(json.dumps(answer | named))
                continue
            self.asked.append(asked)
            fate = self.plan.pop(0) if self.plan else "answer"
            if isinstance(fate, int):
                await socket.send(json.dumps(error(fate) | named))
            elif isinstance(fate, dict) and "say" in fate:
                for message in fate["say"]:
                    await socket.send(json.dumps(message))
            elif isinstance(fate, dict):
                await socket.send(json.dumps(fate | named))
            elif fate == "hang":
                continue
            elif fate == "close":
                await socket.close()
                return
            else:
                replies = self.answer(asked)
                if fate == "lose":
                    socket.transport.abort()
                    return
                if fate == "doubt":
                    replies["results"][1:] = [error(116)] * (len(replies["results"]) - 1)
                await socket.send(json.dumps(replies | named))

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["op"] == "many":
            numbers = [self._number(asked, place) for place in range(len(asked["commands"]))]
            return {"type": "replies", "results": [{"answer": self._one(one, at)} for one, at in zip(asked["commands"], numbers)]}
        return {"type": "reply", **self._one(asked, self._number(asked, 0))}

    @staticmethod
    def _number(asked: dict[str, Any], place: int) -> tuple[str, str] | None:
        return (asked["session"], str(int(asked["session_seq"]) + place)) if "session" in asked else None

    def _one(self, command: dict[str, Any], number: tuple[str, str] | None) -> dict[str, Any]:
        if number is not None and number in self.done:
            return {"repeated": True, "session": number[0], "session_seq": number[1], "log_index": self.done[number]}
        self.carried_out.append(command)
        index = str(len(self.carried_out))
        if number is None:
            return {"status": "resting", "log_index": index}
        self.done[number] = index
        return {"status": "resting", "log_index": index, "session": number[0], "session_seq": number[1], "repeated": False}

    def numbers(self) -> list[str]:
        return [asked["session_seq"] for asked in self.asked if "session_seq" in asked]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (_stream, _orders):
        monkeypatch.setattr(module, "_PAUSE_S", 0.01)


@asynccontextmanager
async def streaming(plan: list[str | int | dict[str, Any]], patience_s: float = 20.0) -> AsyncIterator[tuple[FakeVenue, Any, Any]]:
    """A venue, a stream that has signed in there, and its session."""
    venue = FakeVenue(plan)
    async with server.serve(venue.serve, "127.0.0.1", 0, max_size=16_384) as listening:
        (port,) = [each.getsockname()[1] for each in listening.sockets]
        client: Any = walras.Client(f"http://127.0.0.1:{port}", KEY)
        # The session is opened by HTTP, which this server does not speak.
        client.session = lambda token, patience_s: SimpleNamespace(token=7, session_id=SESSION, next_seq=1, patience_s=patience_s)
        async with walras.AsyncStream(client) as stream:
            await stream.sign_in()
            yield venue, stream, await stream.session(patience_s=patience_s)


def test_a_lost_answer_is_asked_for_again_and_the_command_is_carried_out_once() -> None:
    async def play() -> None:
        async with streaming(["answer", "lose", "answer", "lose", "lose"]) as (venue, stream, session):
            assert (await session.submit("BTC-USD", "buy", 1, 100, client_order_id="a"))["status"] == "resting"
            known = await session.cancel("BTC-USD", "a")
            assert (known["repeated"], known["session_seq"]) == (True, "2") and "status" not in known
            assert (await session.mass_cancel(side="buy"))["repeated"] is True
            # Each was sent again on a new connection, on which the stream had signed in.
            assert venue.numbers() == ["1", "2", "2", "3", "3", "3"] and venue.logons == stream.connection_count == 4
            assert [one["op"] for one in venue.carried_out] == ["order", "cancel", "mass_cancel"]
            assert venue.asked[0]["session"] == str(SESSION) and session.next_seq == 4

    run(play())


def test_several_commands_have_consecutive_numbers() -> None:
    async def play() -> None:
        several = [commands.order("BTC-USD", "buy", 1, 100 + number, client_order_id=f"n{number}") for number in range(3)]
        async with streaming(["lose"]) as (venue, stream, session):
            answers = await session.many(several)
            assert [(answer["repeated"], answer["session_seq"]) for answer in answers] == [(True, "1"), (True, "2"), (True, "3")]
            assert venue.numbers() == ["1", "1"] and len(venue.carried_out) == 3 and session.next_seq == 4
            # One was rejected and has used its number up, one found no place and has not.
            logged, thrown = {**error(4), "log_index": "9"}, error(107)
            venue.plan.append({"type": "replies", "results": [{"answer": {"session_seq": "4"}}, logged, thrown]})
            _, rejected, throttled = await session.many(several)
            assert (rejected.code, rejected.log_index, throttled.code, throttled.log_index) == (4, 9, 107, None)
            assert session.next_seq == 6
            # Without a number they are sent once.
            assert [answer["status"] for answer in await stream.many(several)] == ["resting"] * 3
            venue.plan.append("lose")
            with pytest.raises(walras.OutcomeUnknown):
                await stream.many(several)
            assert len(venue.carried_out) == 9

    run(play())


def test_of_several_commands_those_in_doubt_are_asked_for_again() -> None:
    several = [commands.order("BTC-USD", "buy", 1, 100 + number, client_order_id=f"n{number}") for number in range(3)]

    async def play() -> None:
        async with streaming(["doubt"]) as (venue, _, session):
            answers = await session.many(several)
            assert [(answer["repeated"], answer["session_seq"]) for answer in answers] == [(False, "1"), (True, "2"), (True, "3")]
            # Over another connection, to where another replica leads.
            assert (venue.numbers(), venue.logons) == (["1", "1"], 2) and len(venue.carried_out) == 3 and session.next_seq == 4
        async with streaming(["doubt"], patience_s=0.0) as (venue, _, session):
            with pytest.raises(walras.OutcomeUnknown, match="Reason116"):
                await session.many(several)
            with pytest.raises(walras.OutcomeUnknown, match="open another session"):
                await session.cancel("BTC-USD", "n0")
            assert len(venue.asked) == 1

    run(play())


def test_a_rejection_in_the_log_uses_its_number_and_any_other_does_not() -> None:
    async def play() -> None:
        async with streaming([{**error(60), "log_index": "5"}, 113, "answer"]) as (venue, _, session):
            with pytest.raises(walras.Refused, match="Reason60") as caught:
                await session.submit("BTC-USD", "buy", 1, 100)
            assert caught.value.log_index == 5 and session.next_seq == 2
            with pytest.raises(walras.Refused, match="Reason113"):
                await session.submit("BTC-USD", "buy", 1, 100)
            await session.submit("BTC-USD", "buy", 1, 100)
            assert venue.numbers() == ["1", "2", "2"] and session.next_seq == 3

    run(play())


@pytest.mark.parametrize(("code", "logons"), [(116, 2), (102, 2), (107, 1)])
def test_what_the_venue_cannot_take_now_is_sent_again(code: int, logons: int) -> None:
    async def play() -> None:
        async with streaming([code]) as (venue, _, session):
            assert (await session.amend("BTC-USD", 1, size=2))["status"] == "resting"
            # Where another replica leads, over another connection.
            assert (venue.numbers(), venue.logons) == (["1", "1"], logons)

    run(play())


def test_commands_of_a_session_go_one_after_the_other() -> None:
    async def play() -> None:
        async with streaming([107, "lose"]) as (venue, _, session):
            await asyncio.gather(*(session.cancel("BTC-USD", name) for name in range(3)))
            assert venue.numbers() == ["1", "1", "1", "2", "3"] and [one["client_order_id"] for one in venue.carried_out] == ["0", "1", "2"]

    run(play())


@pytest.mark.parametrize("how", ["patience", "cancelled"])
def test_a_session_whose_last_outcome_is_unknown_sends_nothing_more(how: str) -> None:
    async def play() -> None:
        plan: list[Any] = ["lose" if how == "patience" else "hang"]
        async with streaming(plan, patience_s=0.0 if how == "patience" else 20.0) as (venue, _, session):
            if how == "patience":
                with pytest.raises(walras.OutcomeUnknown, match="no answer within"):
                    await session.submit("BTC-USD", "buy", 1, 100)
            else:
                # Its caller waits no longer: nobody knows whether the number is used.
                sending = asyncio.create_task(session.submit("BTC-USD", "buy", 1, 100))
                while not venue.asked:
                    await asyncio.sleep(0.001)
                sending.cancel()
            with pytest.raises(walras.OutcomeUnknown, match="open another session"):
                await session.cancel("BTC-USD", 1)
            assert len(venue.asked) == 1

    run(play())


def test_a_caller_that_counts_by_itself() -> None:
    async def play() -> None:
        async with streaming(["lose"]) as (venue, stream, _):
            with pytest.raises(walras.OutcomeUnknown, match="connection was lost"):
                await stream.numbered(SESSION, 9).submit("BTC-USD", "buy", 1, 100, client_order_id="a")
            await stream.until_signed_in(20.0)
            again = await stream.numbered(SESSION, 9).submit("BTC-USD", "buy", 1, 100, client_order_id="a")
            assert again["repeated"] and len(venue.carried_out) == 1
            assert [answer["repeated"] for answer in await stream.numbered(SESSION, 9).many([commands.mass_cancel()] * 2)] == [True, False]

    run(play())


def test_exits_go_with_an_order_without_a_number() -> None:
    async def play() -> None:
        exits: walras.Exits = {"take_profit": {"trigger": 110}, "stop_loss": {"trigger": "90", "price": "89"}}
        entry = commands.order("BTC-USD", "buy", 1, 100, exits=exits)
        async with streaming([]) as (venue, stream, session):
            await stream.submit("BTC-USD", "buy", 1, 100, exits=exits)
            await stream.many([commands.mass_cancel(), entry])
            assert venue.asked == [entry, {"op": "many", "commands": [{"op": "mass_cancel"}, entry]}]
            assert entry["take_profit"] == {"trigger": "110"} and entry["stop_loss"] == {"trigger": "90", "price": "89"}
            for numbered in (session, stream.numbered(SESSION, 9)):
                with pytest.raises(ValueError, match="take_profit: a session sends no exits"):
                    await numbered.submit("BTC-USD", "buy", 1, 100, exits=exits)
                with pytest.raises(ValueError, match="take_profit: a session sends no exits"):
                    await numbered.many([commands.mass_cancel(), entry])
            # Nothing was sent, and the session goes on.
            await session.submit("BTC-USD", "buy", 1, 100)
            assert venue.numbers() == ["1"]

    run(play())


def test_a_message_that_is_too_large_is_not_sent_again() -> None:
    async def play() -> None:
        async with streaming([]) as (venue, stream, session):
            many = [commands.order("BTC-USD", "buy", 1, 100, client_order_id=f"{number:036}", tif="gtc") for number in range(100)]
            with pytest.raises(ValueError, match="larger than the venue reads: send fewer commands at once"):
                await session.many(many)
            assert session.next_seq == 1 and venue.asked == []
            # On the next connection it goes on.
            await session.many(many[:50])
            assert session.next_seq == 51 and stream.connection_count == 2

    run(play())


def test_a_key_that_is_refused_ends_the_stream_and_one_that_is_throttled_does_not() -> None:
    async def play() -> None:
        async with streaming(["lose", "auth 107", "answer"]) as (venue, stream, session):
            assert (await session.cancel("BTC-USD", 1))["repeated"] is True
            assert venue.logons == 3 and not stream.is_ended
            venue.plan += ["lose", "auth 111"]
            with pytest.raises(walras.OutcomeUnknown, match="Reason111"):
                await session.cancel("BTC-USD", 2)
            assert stream.is_ended
        # Nothing was sent: the number is still the next one.
        async with streaming(["lose", "auth 104"]) as (venue, stream, session):
            with pytest.raises(walras.OutcomeUnknown):
                await stream.cancel("BTC-USD", 1)
            with pytest.raises(ConnectionError, match="the stream has ended: Reason104"):
                await session.cancel("BTC-USD", 2)
            assert session.next_seq == 1 and len(venue.asked) == 1

    run(play())


@pytest.mark.parametrize("unanswered", ["auth close", "close"])
def test_a_connection_that_closes_before_it_answers_the_first_questions_is_replaced(unanswered: str) -> None:
    async def play() -> None:
        async with streaming(["answer", "lose", unanswered]) as (venue, stream, session):
            await stream.subscribe("ticker", instrument="BTC-USD")
            answer = await asyncio.wait_for(session.cancel("BTC-USD", 1), 15)
            assert answer["repeated"] is True and venue.logons == stream.connection_count == 3

    run(play())


def test_a_message_that_is_missing_has_the_stream_connect_again() -> None:
    async def play() -> None:
        def ticker(instrument: str, **more: str) -> dict[str, Any]:
            return {"type": "ticker", "instrument": instrument, **more}

        # Each of these is sent in answer to a subscription, without its id: the last one comes with the gap before it.
        said = [ticker("A", feed_seq="1"), ticker("B", feed_seq="7"), ticker("A", feed_seq="2"), ticker("A"), ticker("A", feed_seq="4")]
        async with streaming([{"say": said}]) as (venue, stream, _):
            subscribing = asyncio.create_task(stream.subscribe("ticker", instrument="A"))
            heard: list[Any] = []
            async for message in stream:
                heard.append(message)
                if message["type"] == "connected" and message["count"] == 2:
                    break
            with suppress(walras.OutcomeUnknown):
                await subscribing
            numbers = [(one["instrument"], one.get("feed_seq")) for one in heard if one["type"] == "ticker"]
            assert numbers == [("A", "1"), ("B", "7"), ("A", "2"), ("A", None)]

    run(play())


def test_a_stream_that_nobody_waits_for_any_more_tries_no_longer() -> None:
    async def play() -> None:
        # Nobody listens there.
        stream = walras.AsyncStream(walras.Client("http://127.0.0.1:1"))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(stream.start(), 0.05)
        assert stream.is_ended

    run(play())


def test_a_reader_that_is_too_far_behind_goes_on_with_the_first_report_that_it_has_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_stream, "_MESSAGES_MAX", 8)
    reports = [{"type": "reports", "reports": [{"report_seq": str(number)} for number in numbers]} for numbers in ((18, 19), (20,))]

    async def play() -> None:
        # The last of them finds no room.
        said = [reports[0], *[{"type": "status"}] * 7, reports[1]]
        async with streaming(["answer", {"say": said}]) as (venue, stream, _):
            await stream.subscribe("reports", after="17")
            reading = stream.__aiter__()
            assert (await reading.__anext__())["type"] == "connected"
            with pytest.raises(walras.OutcomeUnknown):
                await stream.subscribe("status")
            message = await asyncio.wait_for(reading.__anext__(), 15)
            assert (message["type"], message["count"]) == ("connected", 2)
            assert venue.asked[-1] == {"op": "subscribe", "channel": "reports", "after": "17"}
            await reading.aclose()

    run(play())


def test_reports_go_on_where_they_began_though_none_came_before_the_connection_was_lost() -> None:
    async def play() -> None:
        async with streaming([{"type": "subscribed", "channel": "reports", "after": "17"}]) as (venue, stream, _):
            await stream.subscribe("reports")
            await stream._socket.close()
            while len(venue.asked) < 2:
                await asyncio.sleep(0.001)
            assert venue.asked == [{"op": "subscribe", "channel": "reports"}, {"op": "subscribe", "channel": "reports", "after": "17"}]

    run(play())


def test_where_nobody_reads_the_newest_messages_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_stream, "_MESSAGES_MAX", 16)
    said = [{"type": "status", "feed_seq": str(number)} for number in range(1, 41)]

    def waiting(stream: walras.Stream) -> list[int]:
        messages: list[Any] = list(stream._messages.queue)
        return [int(message["feed_seq"]) for message in messages if message["type"] == "status"]

    def use(client: Any, venue: FakeVenue) -> None:
        with walras.Stream(client) as stream:
            # A few at a time, for its thread to carry them on.
            for last in range(8, 41, 8):
                venue.plan.append({"say": said[last - 8 : last]})
                asyncio.run_coroutine_threadsafe(stream._inner.subscribe("status"), stream._thread.loop)
                ends = time.monotonic() + 15
                while last not in waiting(stream) and time.monotonic() < ends:
                    time.sleep(0.001)
            assert waiting(stream) == list(range(25, 41)) and stream._inner.connection_count == 1

    async def play() -> None:
        async with streaming([]) as (venue, stream, _):
            await asyncio.to_thread(use, stream._client, venue)
            # A stream of asyncio that nobody reads keeps its connection, too.
            venue.plan.append({"say": said})
            subscribing = asyncio.create_task(stream.subscribe("status"))
            while 40 not in stream._feed_seqs.values():
                await asyncio.sleep(0.001)
            assert stream._messages.qsize() == 16 and stream.connection_count == 1
            subscribing.cancel()

    run(play())


def test_without_asyncio() -> None:
    def use(client: Any, venue: FakeVenue) -> None:
        stream = walras.Stream(client)
        with pytest.raises(ConnectionError, match="not open"):
            stream.sign_in()
        with stream:
            with pytest.raises(ValueError, match="call sign_in first"):
                stream.session().cancel("BTC-USD", 1)
            stream.sign_in()
            session = stream.session()
            assert (session.token, session.session_id, session.next_seq) == (7, SESSION, 1)
            venue.plan += ["lose", "answer", "lose"]
            assert session.submit("BTC-USD", "buy", 1, 100, client_order_id="a")["repeated"] is True
            assert session.amend("BTC-USD", "a", price=101)["repeated"] is True
            assert session.cancel("BTC-USD", "a")["log_index"] == "3" and session.mass_cancel()["log_index"] == "4"
            (first,) = session.many([commands.cancel("BTC-USD", "b")])
            assert not isinstance(first, walras.Refused) and first["log_index"] == "5" and session.next_seq == 6
            assert stream.numbered(SESSION, 1).submit("BTC-USD", "buy", 1, 100)["repeated"] is True
            (plain,) = stream.many([commands.mass_cancel()])
            assert not isinstance(plain, walras.Refused) and plain["log_index"] == "6"
            assert [one["op"] for one in venue.carried_out] == ["order", "amend", "cancel", "mass_cancel", "cancel", "mass_cancel"]
        with pytest.raises(ConnectionError, match="not open"):
            stream.mass_cancel()

    async def play() -> None:
        async with streaming([]) as (venue, stream, _):
            await asyncio.to_thread(use, stream._client, venue)

    run(play())


def test_refusals_survive_pickling() -> None:
    import pickle

    refused = pickle.loads(pickle.dumps(walras.Refused(4, "UnknownOrder", "look at open orders", 9)))
    assert (refused.code, refused.log_index, str(refused)) == (4, 9, "UnknownOrder (4): look at open orders")
