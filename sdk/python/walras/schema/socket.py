"""What goes over the WebSocket (docs/websocket.md).

Written by tools/write_schema.py from edge/api/openapi.yaml and edge/api/asyncapi.yaml; a test compares them. Quantities are
decimal strings, times and 64-bit ids strings of digits.
"""

from __future__ import annotations

from typing import Literal, Optional, TypedDict, Union, final

from walras.schema.batches import BatchBlock, BatchPoint, Offer, OfferFill, OfferUpdate
from walras.schema.trading import (
    Balance, CancelReason, CancelledOrder, Candle, Demo, Display, ErrorBody, ExitAnswer, ExitRequest, Fill, Indicative,
    Interval, Kind, Level, ListedInstrument, ManyResult, OneAmend, OneCancel, OneMassCancel, OneOrder, Order,
    OrderEvent, OrderFill, OrderStatus, OrderType, OrderUpdate, Phase, PhaseCause, Position, PostOnly, Report,
    SelfTrade, Side, TimeInForce, Trade,
)

__all__ = [
    "SocketMessage", "SocketRequest", "WsAccount", "WsAddedOrder", "WsAmend", "WsAuth", "WsAuthenticated", "WsBatch",
    "WsBook", "WsBookOrders", "WsCancel", "WsCancelOnDisconnect", "WsCancelsOnDisconnect", "WsCandles", "WsDemand",
    "WsError", "WsInstruments", "WsMany", "WsMassCancel", "WsMassCancelReply", "WsMessage", "WsOrder", "WsPing",
    "WsPong", "WsRepeatedReply", "WsReplies", "WsReply", "WsReports", "WsRequest", "WsResizedOrder", "WsStatus",
    "WsSubscribe", "WsSubscribed", "WsTicker", "WsTrades",
]


class _WsBatch(TypedDict):
    type: Literal["batch"]
    kind: Kind
    batch: str
    phase: Literal["open", "closed"]
    #: From one close to the next.
    interval_ms: int
    #: Prices are in units of the first.
    assets: list[str]
    collected: int
    closed_block: Optional[str]
    blocks: list[BatchBlock]


@final
class WsBatch(_WsBatch, total=False):
    """The newest block last; up to 100 in a snapshot, and up to 10000 prices in all of them: of 1000 assets it has 10
    blocks.
    """

    feed_seq: str


class _WsDemand(TypedDict):
    type: Literal["demand"]
    batch: str
    sell: str
    buy: str
    price: Optional[str]
    points: list[BatchPoint]


@final
class WsDemand(_WsDemand, total=False):
    """At once and after each block."""

    feed_seq: str


class _WsSubscribe(TypedDict):
    op: Literal["subscribe", "unsubscribe"]
    channel: Literal[
        "book",
        "book_orders",
        "trades",
        "candles",
        "ticker",
        "instruments",
        "batch",
        "demand",
        "status",
        "reports",
    ]


@final
class WsSubscribe(_WsSubscribe, total=False):
    id: str
    #: Of reports: those after this number; only new ones without it.
    after: str
    instrument: str
    interval: Interval
    batch: str
    sell: str
    buy: str


class _WsPing(TypedDict):
    op: Literal["ping"]


@final
class WsPing(_WsPing, total=False):
    id: str


class _WsAuth(TypedDict):
    op: Literal["auth"]
    key: str
    timestamp: str
    nonce: str
    signature: str


@final
class WsAuth(_WsAuth, total=False):
    """As a signed request with method WS, path /v1/ws and no body."""

    id: str


class _WsOrder(TypedDict):
    op: Literal["order"]
    instrument: str
    side: Side
    size: str
    type: OrderType


@final
class WsOrder(_WsOrder, total=False):
    id: str
    session: str
    session_seq: str
    client_order_id: str
    price: str
    trigger: str
    #: The distance of a trailing stop in quote.
    trail: str
    #: The same in millionths of the price; one of the two.
    trail_ppm: int
    time_in_force: TimeInForce
    expire_time_ns: str
    post_only: PostOnly
    display: Display
    peak: str
    min_size: str
    self_trade: SelfTrade
    #: As in OrderRequest.
    oco_with: str
    #: As in OrderRequest.
    exit_of: str
    take_profit: ExitRequest
    stop_loss: ExitRequest


class _WsCancel(TypedDict):
    op: Literal["cancel"]
    instrument: str
    client_order_id: str


@final
class WsCancel(_WsCancel, total=False):
    id: str
    session: str
    session_seq: str


class _WsAmend(TypedDict):
    op: Literal["amend"]
    instrument: str
    client_order_id: str


@final
class WsAmend(_WsAmend, total=False):
    id: str
    session: str
    session_seq: str
    price: str
    trigger: str
    size: str


class _WsMassCancel(TypedDict):
    op: Literal["mass_cancel"]


@final
class WsMassCancel(_WsMassCancel, total=False):
    id: str
    session: str
    session_seq: str
    instrument: str
    side: Side


class _WsMany(TypedDict):
    op: Literal["many"]
    commands: list[Union[OneOrder, OneCancel, OneAmend, OneMassCancel]]


@final
class WsMany(_WsMany, total=False):
    """As POST /v1/orders/batch, answered by replies."""

    id: str
    session: str
    session_seq: str


class _WsCancelOnDisconnect(TypedDict):
    op: Literal["cancel_on_disconnect"]


@final
class WsCancelOnDisconnect(_WsCancelOnDisconnect, total=False):
    """With a session of the account, its orders are cancelled when this connection ends; without one, not any more.
    Opening the session again (POST /v1/sessions with its token) says that the account is back.
    """

    id: str
    session: str


class _WsSubscribed(TypedDict):
    type: Literal["subscribed", "unsubscribed"]
    channel: str


@final
class WsSubscribed(_WsSubscribed, total=False):
    #: That of the message which this answers, if it had one.
    id: str
    #: Of reports: the number after which they begin.
    after: str
    instrument: str
    interval: Interval
    batch: str
    sell: str
    buy: str


class _WsPong(TypedDict):
    type: Literal["pong"]
    time_ns: str


@final
class WsPong(_WsPong, total=False):
    #: That of the message which this answers, if it had one.
    id: str


class _WsAuthenticated(TypedDict):
    type: Literal["authenticated"]
    key: str
    account_id: Optional[int]


@final
class WsAuthenticated(_WsAuthenticated, total=False):
    #: That of the message which this answers, if it had one.
    id: str


class _WsError(TypedDict):
    type: Literal["error"]
    error: ErrorBody


@final
class WsError(_WsError, total=False):
    id: str
    #: With session_seq and log_index where a rejected command used its number up.
    session: str
    session_seq: str
    log_index: str


@final
class WsBook(TypedDict):
    """An update holds levels that changed, each with its new content, and what indicative is now. feed_seq is
    contiguous per connection and instrument.
    """

    type: Literal["book"]
    instrument: str
    kind: Kind
    feed_seq: str
    log_index: str
    bids: list[Level]
    asks: list[Level]
    #: CRC-32 of the ten best levels of each side after this message, see docs/websocket.md.
    checksum: int
    indicative: Indicative


#: The venue's number of an order, its side, its price, what it shows.
WsAddedOrder = list[str]

#: The venue's number of an order, and what it shows now.
WsResizedOrder = list[str]


class _WsBookOrders(TypedDict):
    type: Literal["book_orders"]
    instrument: str
    kind: Kind
    #: The entry of the log after which they stood so.
    log_index: str
    #: That of the message to which this one applies; null in a snapshot.
    previous_log_index: Optional[str]
    removed: list[str]
    resized: list[WsResizedOrder]
    added: list[WsAddedOrder]
    #: Whether bids stand behind the first 500.
    has_more_bids: bool
    #: Whether asks stand behind the first 500.
    has_more_asks: bool


@final
class WsBookOrders(_WsBookOrders, total=False):
    """The first 500 orders of each side. A snapshot has all of them as added. Of an update apply what was removed, then
    resized, then added: an added order stands behind all others of its price. An order that lost its place is
    removed and added.
    """

    feed_seq: str
    #: CRC-32 of the first ten orders of each side after this message, see docs/websocket.md.
    checksum: int


class _WsTrades(TypedDict):
    type: Literal["trades"]
    instrument: str
    kind: Kind
    trades: list[Trade]


@final
class WsTrades(_WsTrades, total=False):
    """Newest first in a snapshot, newest last in an update."""

    feed_seq: str


class _WsCandles(TypedDict):
    type: Literal["candles"]
    instrument: str
    interval: Interval
    kind: Kind
    candles: list[Candle]


@final
class WsCandles(_WsCandles, total=False):
    """Oldest first; an update holds the candles that changed."""

    feed_seq: str


class _WsTicker(TypedDict):
    type: Literal["ticker"]
    instrument: str
    last_price: Optional[str]
    #: How far the last price is above (below 0: below) the price of the day's first trade, in parts per million of
    #: that, rounded toward zero; 0 before the day's first trade.
    change_ppm: int
    #: Price of the day's first trade; null before it.
    open: Optional[str]
    #: Highest price of the day; null before its first trade.
    high: Optional[str]
    #: Lowest price of the day; null before its first trade.
    low: Optional[str]
    #: Price of the last trade before the day; null where there was none.
    previous_close: Optional[str]
    best_bid: Optional[str]
    #: What all orders at the best bid show, in the base asset.
    best_bid_size: Optional[str]
    best_ask: Optional[str]
    #: What all orders at the best ask show, in the base asset.
    best_ask_size: Optional[str]
    #: Traded since the day began, in the base asset.
    volume: str
    #: What that was worth: the sum of price times size, in the quote asset.
    turnover: str
    phase: Phase
    #: Why it is in this phase: the operator set it, or a trade would have left the price band. Null where the venue
    #: does not know: of a halt before it kept causes.
    phase_cause: Optional[PhaseCause]


@final
class WsTicker(_WsTicker, total=False):
    """An instrument at a glance. A day is one of UTC, by the venue's clock, and its figures begin at 00:00 UTC."""

    feed_seq: str


class _WsInstruments(TypedDict):
    type: Literal["instruments"]
    kind: Kind
    #: The entry of the log after which they were so.
    log_index: str
    instruments: list[ListedInstrument]


@final
class WsInstruments(_WsInstruments, total=False):
    """A snapshot has all instruments; an update has those that were defined, whose phase changed or whose auction
    ended, each whole and as it is now.
    """

    feed_seq: str


class _WsStatus(TypedDict):
    type: Literal["status"]
    venue: str
    version: str
    commit: str
    started_at_ns: str
    accepts_timestamps_from_ns: str
    log_index: str
    time_ns: str
    ready: bool
    storage: Literal["ok", "full", "no_descriptors"]
    fair_access: bool
    instruments: int
    accounts: int
    commands_total: int
    trades_total: int
    demo: Optional[Demo]


@final
class WsStatus(_WsStatus, total=False):
    feed_seq: str


class _WsAccount(TypedDict):
    type: Literal["account"]
    kind: Literal["snapshot", "more", "update"]


@final
class WsAccount(_WsAccount, total=False):
    """A snapshot has the first open orders and standing offers; while has_more is true a message of the kind more
    follows, with further ones and nothing else. order_updates and offer_updates are in an update; updates may come
    before the snapshot is whole.
    """

    feed_seq: str
    has_more: bool
    balances: list[Balance]
    positions: list[Position]
    fills: list[Fill]
    orders: list[Order]
    order_updates: list[OrderUpdate]
    offers: list[Offer]
    offer_updates: list[OfferUpdate]
    offer_fills: list[OfferFill]


class _WsReply(TypedDict):
    type: Literal["reply"]
    log_index: str
    time_ns: str
    order_id: Optional[str]
    client_order_id: str
    status: OrderStatus
    price: Optional[str]
    open: str
    fills: list[OrderFill]
    events: list[OrderEvent]


@final
class WsReply(_WsReply, total=False):
    id: str
    repeated: bool
    session: str
    session_seq: str
    reason: CancelReason
    take_profit: ExitAnswer
    stop_loss: ExitAnswer


class _WsMassCancelReply(TypedDict):
    type: Literal["reply"]
    log_index: str
    time_ns: str
    cancelled: list[CancelledOrder]


@final
class WsMassCancelReply(_WsMassCancelReply, total=False):
    id: str
    repeated: bool
    session: str
    session_seq: str


class _WsRepeatedReply(TypedDict):
    type: Literal["reply"]
    repeated: Literal[True]
    session: str
    session_seq: str
    log_index: str


@final
class WsRepeatedReply(_WsRepeatedReply, total=False):
    """Of a command that was sent before under the same number."""

    id: str
    client_order_id: str


class _WsReplies(TypedDict):
    type: Literal["replies"]
    results: list[ManyResult]


@final
class WsReplies(_WsReplies, total=False):
    id: str


@final
class WsReports(TypedDict):
    """Numbered reports, oldest first, without gaps."""

    type: Literal["reports"]
    reports: list[Report]
    last: str


class _WsCancelsOnDisconnect(TypedDict):
    type: Literal["cancel_on_disconnect"]
    session: Optional[str]


@final
class WsCancelsOnDisconnect(_WsCancelsOnDisconnect, total=False):
    id: str


WsRequest = Union[WsSubscribe, WsPing, WsAuth, WsOrder, WsCancel, WsAmend, WsMassCancel, WsMany, WsCancelOnDisconnect]

WsMessage = Union[
    WsSubscribed,
    WsPong,
    WsAuthenticated,
    WsError,
    WsBook,
    WsBookOrders,
    WsTrades,
    WsCandles,
    WsTicker,
    WsInstruments,
    WsStatus,
    WsAccount,
    WsBatch,
    WsDemand,
    WsReply,
    WsMassCancelReply,
    WsRepeatedReply,
    WsReplies,
    WsReports,
    WsCancelsOnDisconnect,
]

#: What a client sends over the WebSocket.
SocketRequest = Union[
    WsSubscribe,
    WsPing,
    WsAuth,
    WsOrder,
    WsCancel,
    WsAmend,
    WsMassCancel,
    WsMany,
    WsCancelOnDisconnect,
]

#: What the venue sends over it.
SocketMessage = Union[
    WsSubscribed,
    WsPong,
    WsCancelsOnDisconnect,
    WsAuthenticated,
    WsError,
    WsReply,
    WsMassCancelReply,
    WsRepeatedReply,
    WsReplies,
    WsBook,
    WsBookOrders,
    WsTrades,
    WsCandles,
    WsTicker,
    WsInstruments,
    WsStatus,
    WsAccount,
    WsReports,
    WsBatch,
    WsDemand,
]
