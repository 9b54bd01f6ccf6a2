"""Walras: an exchange in the process.

:class:`Venue` is the matching engine of a venue, with its ledger, risk limits, phases and auctions, one order at a time or from arrays.
:class:`Client` and :class:`AsyncClient` speak with a running venue. :mod:`walras.backtest` plays recorded days with a strategy in them,
:mod:`walras.agents` a market of traders, :mod:`walras.gym` makes an environment of it.
:func:`clear` clears a batch of offers among any number of assets at one price each, and checks the result in integers. :mod:`walras.light`
checks what a venue says of its batch markets without trusting it; :mod:`walras.batch` sends them offers and payments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union

from walras import commands
from walras._arrays import EVENT_KINDS, KINDS, POST_ONLY, SELF_TRADE, SIDES, TIMES, frame
from walras._clear import Clearing, Offer, Quality, clear
from walras._entry import Answer, FrameAnswer, OrderEntry, Report, SessionEnded, WindowFull
from walras._native import Event, Key, Outcome, Trade, order_number
from walras._orders import AsyncStreamSession, CommandNumber, StreamSession
from walras._plain_entry import PlainOrderEntry
from walras._rest import AsyncClient, AsyncSession, Client, Exit, Exits, OrderName, OrderTerms, OutcomeUnknown, Session
from walras._stream import AsyncStream, BookCopy, BookOrder, Connected, OrdersCopy, Stream
from walras._venue import Asset, Balance, Book, Exact, Instrument, Level, OpenOrder, Position, Refused, Run, Uncross, Venue

if TYPE_CHECKING:
    import numpy as np

    from walras._stream import StreamMessage as StreamMessage

    ORDER_DTYPE: np.dtype[Any]
    OUTCOME_DTYPE: np.dtype[Any]
    TRADE_DTYPE: np.dtype[Any]
    EVENT_DTYPE: np.dtype[Any]
    BEST_DTYPE: np.dtype[Any]

__all__ = [
    "Answer",
    "Asset",
    "AsyncClient",
    "AsyncSession",
    "AsyncStream",
    "AsyncStreamSession",
    "BEST_DTYPE",
    "Balance",
    "Book",
    "BookCopy",
    "BookOrder",
    "Clearing",
    "Client",
    "CommandNumber",
    "Connected",
    "EVENT_DTYPE",
    "EVENT_KINDS",
    "Event",
    "Exact",
    "Exit",
    "Exits",
    "FrameAnswer",
    "Instrument",
    "KINDS",
    "Key",
    "Level",
    "ORDER_DTYPE",
    "OUTCOME_DTYPE",
    "Offer",
    "OpenOrder",
    "OrderEntry",
    "OrderName",
    "OrderTerms",
    "OrdersCopy",
    "Outcome",
    "OutcomeUnknown",
    "POST_ONLY",
    "PlainOrderEntry",
    "Position",
    "Quality",
    "Refused",
    "Report",
    "Run",
    "SELF_TRADE",
    "SIDES",
    "Session",
    "SessionEnded",
    "Stream",
    "StreamMessage",
    "StreamSession",
    "TIMES",
    "TRADE_DTYPE",
    "Trade",
    "Uncross",
    "Venue",
    "WindowFull",
    "clear",
    "commands",
    "frame",
    "order_number",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # numpy is imported by those who use arrays only.
    if name.endswith("_DTYPE"):
        from walras import _arrays

        if name.removesuffix("_DTYPE") in _arrays._FIELDS:
            return _arrays.dtype(name.removesuffix("_DTYPE"))
    if name == "StreamMessage":
        # For annotations; the types of messages are imported by those who look at them only.
        from walras import _stream, schema

        return Union[_stream.Connected, schema.SocketMessage]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
