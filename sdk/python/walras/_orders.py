"""What every way to send commands over the WebSocket has: the stream itself, one number of a session, and a session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from walras import commands
from walras._loop import LoopThread
from walras._rest import (
    _AGAIN,
    _NOT_LEADER,
    _PAUSE_S,
    _PAUSE_S_MAX,
    IS_LOST,
    Json,
    OrderName,
    OrderTerms,
    OutcomeUnknown,
    Session,
    check_numbered,
    in_doubt,
    merged,
    refusal,
    uses_number,
)
from walras._venue import Exact, Refused

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from walras import schema
    from walras._stream import AsyncStream

#: The answer to an order, to a mass cancel, and to one of several commands.
One = TypeVar("One")
Mass = TypeVar("Mass")
Each = TypeVar("Each")
T = TypeVar("T")

#: A replica that did not lead when the stream signed in there takes no commands of it.
UNAUTHENTICATED = 102
#: After one of these, the stream takes another connection.
ELSEWHERE = {_NOT_LEADER, UNAUTHENTICATED}


class CommandNumber(NamedTuple):
    """The number of a session's command: with it the command takes effect once, however often it is sent (docs/rest.md, "Once")."""

    #: The session, as :attr:`walras.Session.session_id`.
    session: int
    session_seq: int

    def fields(self) -> Json:
        """As a message has it."""
        return {"session": str(self.session), "session_seq": str(self.session_seq)}


class AsyncOrders(Generic[One, Mass, Each]):
    """Commands for asyncio. A refusal raises :class:`walras.Refused`."""

    async def _one(self, command: Json) -> Any:
        raise NotImplementedError

    async def _several(self, commands: Sequence[Mapping[str, object]]) -> list[schema.ManyResult]:
        raise NotImplementedError

    async def submit(self, instrument: str, side: str, size: Exact, price: Exact | None = None, **terms: Unpack[OrderTerms]) -> One:
        """Enters an order, as ``Client.submit``."""
        answer: One = await self._one(commands.order(instrument, side, size, price, **terms))
        return answer

    async def cancel(self, instrument: str, client_order_id: OrderName) -> One:
        """Cancels an order."""
        answer: One = await self._one(commands.cancel(instrument, client_order_id))
        return answer

    async def amend(
        self,
        instrument: str,
        client_order_id: OrderName,
        *,
        price: Exact | None = None,
        trigger: Exact | None = None,
        size: Exact | None = None,
    ) -> One:
        """Changes price, trigger or open size of an order."""
        answer: One = await self._one(commands.amend(instrument, client_order_id, price=price, trigger=trigger, size=size))
        return answer

    async def mass_cancel(self, instrument: str | None = None, side: str | None = None) -> Mass:
        """Cancels all open orders, or those of one instrument or side."""
        answer: Mass = await self._one(commands.mass_cancel(instrument, side))
        return answer

    async def many(self, commands: Sequence[Mapping[str, object]]) -> list[Each | Refused]:
        """Up to 100 commands in one message, carried out in their order; :mod:`walras.commands` makes them.

        Returned are, in the same places, the answer of each, or its refusal, which is not raised: the others go on. Of an order with
        ``exits`` all is entered, or nothing. The venue reads
        messages of 16 KiB unless it is configured otherwise (``websocket.message_bytes_max``).
        """
        results: list[Any] = list(await self._several(commands))
        return [result["answer"] if "answer" in result else refusal(result) for result in results]


class NumberedOrders(
    AsyncOrders[
        "schema.WsReply | schema.WsRepeatedReply",
        "schema.WsMassCancelReply | schema.WsRepeatedReply",
        "schema.OrderAnswer | schema.MassCancelAnswer | schema.RepeatedAnswer",
    ]
):
    """Commands under a number each. Made by :meth:`AsyncStream.numbered`, where its caller counts, and :meth:`AsyncStream.session`.

    One that was carried out before under its number is answered with ``repeated`` true. Orders have no ``exits``, which have no numbers.
    """


class OneNumber(NumberedOrders):
    """One command, or several with consecutive numbers, under a number that the caller gives; sent once."""

    def __init__(self, stream: AsyncStream, number: CommandNumber) -> None:
        self._stream, self.number = stream, number

    async def _one(self, command: Json) -> Any:
        check_numbered([command])
        return await self._stream.carry(command, self.number)

    async def _several(self, commands: Sequence[Mapping[str, object]]) -> list[schema.ManyResult]:
        check_numbered(commands)
        return await self._stream.carry_many(commands, self.number)


class AsyncStreamSession(NumberedOrders):
    """A session whose commands go over a stream, one at a time, each under the next number. A command whose answer is lost is sent again on
    the next connection, and takes effect once. Made by :meth:`AsyncStream.session`, for this program alone.

    :class:`walras.OutcomeUnknown` where no answer comes within ``patience_s``: the session takes no more commands then.
    """

    def __init__(self, stream: AsyncStream, session: Session) -> None:
        self._stream = stream
        self.token, self.session_id, self.patience_s = session.token, session.session_id, session.patience_s
        #: The number of the next command.
        self.next_seq = session.next_seq
        self._turn = asyncio.Lock()
        self._is_lost = False

    async def _one(self, command: Json) -> Any:
        check_numbered([command])
        return await self._numbered(lambda number: self._stream.carry(command, number), lambda _: 1)

    async def _several(self, commands: Sequence[Mapping[str, object]]) -> list[schema.ManyResult]:
        check_numbered(commands)
        known: list[schema.ManyResult] = []

        async def send(number: CommandNumber) -> list[schema.ManyResult]:
            known[:] = merged(known, await self._stream.carry_many(commands, number))
            if (doubt := in_doubt(known)) is not None:
                raise doubt
            return known

        # Those that the venue has no place for use no number.
        return await self._numbered(send, lambda results: sum(map(uses_number, results)))

    async def _numbered(self, send: Callable[[CommandNumber], Awaitable[T]], used: Callable[[T], int]) -> T:
        async with self._turn:
            if self._is_lost:
                raise OutcomeUnknown(IS_LOST)
            number = CommandNumber(self.session_id, self.next_seq)
            # A caller that stops waiting does not know whether the number is used either.
            self._is_lost = True
            try:
                answer = await self._until_answered(lambda: send(number))
            except Refused as refused:
                self.next_seq += refused.log_index is not None
                self._is_lost = False
                raise
            except (ConnectionError, TypeError, ValueError):
                # It was not sent, or not read.
                self._is_lost = False
                raise
            self.next_seq += used(answer)
            self._is_lost = False
            return answer

    async def _until_answered(self, send: Callable[[], Awaitable[T]]) -> T:
        """Sends it again until there is an answer: it is the same command under the same number."""
        ends, pause_s, is_sent = time.monotonic() + self.patience_s, _PAUSE_S, False
        while True:
            why: Exception
            try:
                await self._stream.until_signed_in(ends - time.monotonic())
                is_sent = True
                return await send()
            except Refused as refused:
                # A rejection that is in the log is an answer.
                if refused.log_index is not None or refused.code not in _AGAIN | {UNAUTHENTICATED}:
                    raise
                why = refused
            except (ConnectionError, OutcomeUnknown) as lost:
                why = lost
            if time.monotonic() >= ends or self._stream.is_ended:
                if not is_sent:
                    raise why
                raise OutcomeUnknown(
                    f"no answer within {self.patience_s} s ({why}): use this session no more, and look at orders and fills"
                ) from why
            if isinstance(why, Refused) and why.code in ELSEWHERE:
                await self._stream.reconnect()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)


class PlainOrders(Generic[One, Mass, Each]):
    """:class:`AsyncOrders` without asyncio."""

    _orders: AsyncOrders[One, Mass, Each]
    _thread: LoopThread

    def submit(self, instrument: str, side: str, size: Exact, price: Exact | None = None, **terms: Unpack[OrderTerms]) -> One:
        """Enters an order, as ``Client.submit``."""
        return self._thread.wait(self._orders.submit(instrument, side, size, price, **terms))

    def cancel(self, instrument: str, client_order_id: OrderName) -> One:
        """Cancels an order."""
        return self._thread.wait(self._orders.cancel(instrument, client_order_id))

    def amend(
        self,
        instrument: str,
        client_order_id: OrderName,
        *,
        price: Exact | None = None,
        trigger: Exact | None = None,
        size: Exact | None = None,
    ) -> One:
        """Changes price, trigger or open size of an order."""
        return self._thread.wait(self._orders.amend(instrument, client_order_id, price=price, trigger=trigger, size=size))

    def mass_cancel(self, instrument: str | None = None, side: str | None = None) -> Mass:
        """Cancels all open orders, or those of one instrument or side."""
        return self._thread.wait(self._orders.mass_cancel(instrument, side))

    def many(self, commands: Sequence[Mapping[str, object]]) -> list[Each | Refused]:
        """As :meth:`AsyncStream.many`."""
        return self._thread.wait(self._orders.many(commands))


class PlainNumberedOrders(
    PlainOrders[
        "schema.WsReply | schema.WsRepeatedReply",
        "schema.WsMassCancelReply | schema.WsRepeatedReply",
        "schema.OrderAnswer | schema.MassCancelAnswer | schema.RepeatedAnswer",
    ]
):
    """:class:`NumberedOrders` without asyncio: made by :meth:`Stream.numbered`."""

    def __init__(self, orders: NumberedOrders, thread: LoopThread) -> None:
        self._orders, self._thread = orders, thread


class StreamSession(PlainNumberedOrders):
    """:class:`AsyncStreamSession` without asyncio: made by :meth:`Stream.session`. Safe to use from several threads."""

    def __init__(self, session: AsyncStreamSession, thread: LoopThread) -> None:
        super().__init__(session, thread)
        self.token, self.session_id, self.patience_s = session.token, session.session_id, session.patience_s
        self._session = session

    @property
    def next_seq(self) -> int:
        """The number of the next command."""
        return self._session.next_seq
