"""Walras: an exchange in the process.

:class:`Venue` is the matching engine of a venue, with its ledger, risk limits, phases and auctions, one order at a time or from arrays.
:func:`clear` clears a batch of offers among any number of assets at one price each, and checks the result in integers. :mod:`walras.light`
checks what a venue says of its batch markets without trusting it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from walras._arrays import EVENT_KINDS, KINDS, POST_ONLY, SELF_TRADE, SIDES, TIMES
from walras._clear import Clearing, Offer, Quality, clear
from walras._native import Event, Outcome, Trade
from walras._venue import Asset, Balance, Book, Exact, Instrument, Level, OpenOrder, Position, Refused, Run, Uncross, Venue

if TYPE_CHECKING:
    import numpy as np

    ORDER_DTYPE: np.dtype[Any]
    OUTCOME_DTYPE: np.dtype[Any]
    TRADE_DTYPE: np.dtype[Any]
    EVENT_DTYPE: np.dtype[Any]
    BEST_DTYPE: np.dtype[Any]

__all__ = [
    "BEST_DTYPE",
    "EVENT_DTYPE",
    "EVENT_KINDS",
    "KINDS",
    "ORDER_DTYPE",
    "OUTCOME_DTYPE",
    "POST_ONLY",
    "SELF_TRADE",
    "SIDES",
    "TIMES",
    "TRADE_DTYPE",
    "Asset",
    "Balance",
    "Book",
    "Clearing",
    "Event",
    "Exact",
    "Instrument",
    "Level",
    "Offer",
    "OpenOrder",
    "Outcome",
    "Position",
    "Quality",
    "Refused",
    "Run",
    "Trade",
    "Uncross",
    "Venue",
    "clear",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # numpy is imported by those who use arrays only.
    if name.endswith("_DTYPE"):
        from walras import _arrays

        if name.removesuffix("_DTYPE") in _arrays._FIELDS:
            return _arrays.dtype(name.removesuffix("_DTYPE"))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
