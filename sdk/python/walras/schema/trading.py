"""Instruments, books, orders, accounts and sessions (docs/rest.md).

Written by tools/write_schema.py from edge/api/openapi.yaml and edge/api/asyncapi.yaml; a test compares them. Quantities are
decimal strings, times and 64-bit ids strings of digits.
"""

from __future__ import annotations

from typing import Literal, Optional, TypedDict, Union, final

__all__ = [
    "Account", "AccountFeeRequest", "AccountStatus", "Allocation", "AmendRequest", "Asset", "Assets", "Auction",
    "Balance", "Book", "BookOrder", "BookOrders", "CancelAfter", "CancelAfterRequest", "CancelReason", "CancelledOrder",
    "Candle", "Candles", "ClosedOrders", "Demo", "Display", "Error", "ErrorBody", "ExitAnswer", "ExitRequest", "Fill",
    "Fills", "Indicative", "IndicativeUncross", "Instrument", "Instruments", "Interval", "Kind", "Leader", "Level",
    "ListedInstrument", "ManyAnswer", "ManyRequest", "ManyResult", "MassCancelAnswer", "MissingEntries", "OneAmend",
    "OneCancel", "OneMassCancel", "OneOrder", "Order", "OrderAnswer", "OrderEvent", "OrderFill", "OrderRequest",
    "OrderState", "OrderStatus", "OrderType", "OrderUpdate", "OrderWaits", "Orders", "PastBook", "PastDay", "PastDays",
    "PastFile", "PastTrade", "PastTrades", "Permission", "Phase", "PhaseCause", "Position", "PostOnly",
    "RepeatedAnswer", "Report", "Reports", "Role", "SelfTrade", "Session", "SessionRequest", "Sessions", "Side",
    "Status", "Ticker", "Time", "TimeInForce", "Trade", "Trades", "Uncross",
]

Side = Literal["buy", "sell"]

OrderType = Literal[
    "limit",
    "market",
    "stop",
    "stop_limit",
    "take_profit",
    "take_profit_limit",
    "trailing_stop",
    "trailing_stop_limit",
]

TimeInForce = Literal["gtc", "day", "gtt", "ioc", "fok"]

PostOnly = Literal["off", "reject", "reprice"]

Display = Literal["full", "iceberg", "hidden"]

SelfTrade = Literal["cancel_newest", "cancel_oldest", "cancel_both", "decrement", "allow"]

Phase = Literal["closed", "pre_open", "opening_auction", "continuous", "halt", "closing_auction"]

PhaseCause = Literal["operator", "price_band"]

Interval = Literal["1s", "10s", "1m", "5m", "1h"]

OrderStatus = Literal["resting", "filled", "partially_filled", "cancelled", "waiting_trigger"]

CancelReason = Literal[
    "requested",
    "mass_cancelled",
    "unfilled",
    "expired",
    "day_ended",
    "self_trade",
    "account_suspended",
    "trigger_refused",
    "price_band",
    "linked",
    "unfunded",
]

AccountStatus = Literal["active", "suspended"]

#: `transfer_relay`: to deliver another shard's transfers, and nothing else.
Permission = Literal["read", "trade", "operator", "transfer_relay"]

Role = Literal["maker", "taker", "auction"]

Kind = Literal["snapshot", "update"]


class _ErrorBody(TypedDict):
    #: The reject reason's number, which stays its own; docs/reject-reasons.md lists all.
    code: int
    #: The reason's name.
    name: str
    #: What is wrong and what to do.
    message: str


@final
class ErrorBody(_ErrorBody, total=False):
    #: Which field, and what would do.
    detail: str
    #: With 421, who leads; null where that is not known.
    leader: Optional[Leader]


@final
class Leader(TypedDict):
    replica: int
    url: str


class _Error(TypedDict):
    error: ErrorBody


@final
class Error(_Error, total=False):
    #: Of a rejected command that has a number, and has used it up: its session.
    session: str
    #: The number.
    session_seq: str
    #: Where the rejection stands in the log.
    log_index: str


@final
class Demo(TypedDict):
    speed: str
    source: str
    progress_permille: int


@final
class Status(TypedDict):
    venue: str
    version: str
    commit: str
    started_at_ns: str
    accepts_timestamps_from_ns: str
    log_index: str
    time_ns: str
    ready: bool
    storage: Literal["ok", "full", "no_descriptors"]
    #: Orders or market data wait here so that nobody is early by being near: see /v1/fair-access.
    fair_access: bool
    instruments: int
    accounts: int
    commands_total: int
    trades_total: int
    demo: Optional[Demo]


@final
class Time(TypedDict):
    time_ns: str


@final
class Asset(TypedDict):
    asset_id: int
    symbol: str
    decimals: int
    supply: str


@final
class Assets(TypedDict):
    assets: list[Asset]


class _Allocation(TypedDict):
    kind: Literal["price_time", "pro_rata", "top_pro_rata", "split"]


@final
class Allocation(_Allocation, total=False):
    min_size: str
    top_size_max: str
    fifo_percent: int


@final
class Uncross(TypedDict):
    #: The one price of its trades; null where nothing crossed.
    price: Optional[str]
    volume: str
    #: What was left over at the price, in base: above zero bid, below zero offered.
    imbalance: str


@final
class Instrument(TypedDict):
    instrument_id: int
    symbol: str
    base: str
    quote: str
    tick_size: str
    lot_size: str
    price_decimals: int
    size_decimals: int
    allocation: Allocation
    maker_fee_ppm: int
    taker_fee_ppm: int
    #: How far a limit may lie from the last trade's price, before any trade from the reference price, for a stop from
    #: its trigger.
    collar_ppm: int
    band_ppm: int
    phase: Phase
    #: Why it is in this phase: the operator set it, or a trade would have left the price band. Null where the venue
    #: does not know: of a halt before it kept causes.
    phase_cause: Optional[PhaseCause]
    reference_price: str
    last_price: Optional[str]
    #: How the latest auction ended; null where there was none.
    last_uncross: Optional[Uncross]


@final
class ListedInstrument(TypedDict):
    """An instrument as the channel instruments has it: as in GET /v1/instruments, without the last price, which the
    channel ticker has.
    """

    instrument_id: int
    symbol: str
    base: str
    quote: str
    tick_size: str
    lot_size: str
    price_decimals: int
    size_decimals: int
    allocation: Allocation
    maker_fee_ppm: int
    taker_fee_ppm: int
    #: How far a limit may lie from the last trade's price, before any trade from the reference price, for a stop from
    #: its trigger.
    collar_ppm: int
    band_ppm: int
    phase: Phase
    #: Why it is in this phase: the operator set it, or a trade would have left the price band. Null where the venue
    #: does not know: of a halt before it kept causes.
    phase_cause: Optional[PhaseCause]
    reference_price: str
    #: How the latest auction ended; null where there was none.
    last_uncross: Optional[Uncross]


@final
class Instruments(TypedDict):
    instruments: list[Instrument]


#: Price, size shown (0 when the level is gone), number of orders.
Level = list[Union[str, int]]


@final
class Book(TypedDict):
    instrument: str
    log_index: str
    bids: list[Level]
    asks: list[Level]
    indicative: Indicative


#: The venue's number of an order, its price, what it shows.
BookOrder = list[str]


@final
class BookOrders(TypedDict):
    instrument: str
    #: The entry of the log after which they stood so.
    log_index: str
    bids: list[BookOrder]
    asks: list[BookOrder]
    #: Whether bids stand behind these.
    has_more_bids: bool
    #: Whether asks stand behind these.
    has_more_asks: bool


@final
class Auction(TypedDict):
    instrument: str
    log_index: str
    phase: Phase
    #: Why it is in this phase: the operator set it, or a trade would have left the price band. Null where the venue
    #: does not know: of a halt before it kept causes.
    phase_cause: Optional[PhaseCause]
    #: The centre of the price band.
    reference_price: str
    indicative: Indicative
    #: How the latest auction ended; null where there was none.
    last_uncross: Optional[Uncross]


@final
class Ticker(TypedDict):
    """An instrument at a glance. A day is one of UTC, by the venue's clock, and its figures begin at 00:00 UTC."""

    instrument: str
    log_index: str
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
class IndicativeUncross(TypedDict):
    price: str
    #: In base.
    volume: str
    #: What would be left over at the price, in base: above zero bid, below zero offered.
    imbalance: str


@final
class Trade(TypedDict):
    trade_id: str
    time_ns: str
    price: str
    size: str
    taker_side: Optional[Side]


@final
class Trades(TypedDict):
    trades: list[Trade]


@final
class PastTrade(TypedDict):
    trade_id: str
    time_ns: str
    log_index: str
    price: str
    size: str
    taker_side: Optional[Side]


@final
class PastTrades(TypedDict):
    instrument: str
    trades: list[PastTrade]
    #: The next page's cursor; null when there is no more. A page that is not full may have one: so much was looked at.
    next: Optional[str]


@final
class PastBook(TypedDict):
    instrument: str
    #: It was so after this entry.
    log_index: str
    #: That entry's time.
    time_ns: str
    bids: list[Level]
    asks: list[Level]


@final
class PastFile(TypedDict):
    name: str
    bytes: int
    rows: int
    blake3: str


@final
class MissingEntries(TypedDict):
    first_log_index: str
    last_log_index: str


class _PastDay(TypedDict):
    day: str
    #: Whether it is whole; the other fields are those of a closed day.
    closed: bool


@final
class PastDay(_PastDay, total=False):
    #: Whether every entry of the day is in it.
    complete: bool
    #: Entries that are not.
    missing: list[MissingEntries]
    first_log_index: str
    last_log_index: str
    trades: int
    #: Pictures of books.
    books: int
    files: list[PastFile]
    #: Files that were not made, and why.
    notes: list[str]


@final
class PastDays(TypedDict):
    #: The last entry that is in the archive for good.
    log_index: str
    #: Entries found missing since the start.
    missing: str
    #: Whether it does not go on, for want of room perhaps: the market does.
    trouble: bool
    days: list[PastDay]


@final
class Candle(TypedDict):
    time_s: int
    open: str
    high: str
    low: str
    close: str
    volume: str


@final
class Candles(TypedDict):
    candles: list[Candle]


@final
class Balance(TypedDict):
    asset: str
    available: str
    reserved: str


@final
class Position(TypedDict):
    instrument: str
    position: str
    open_orders: int


@final
class Account(TypedDict):
    account_id: int
    status: AccountStatus
    balances: list[Balance]
    positions: list[Position]
    transaction_key: Optional[str]
    next_sequence: str


@final
class AccountFeeRequest(TypedDict):
    batch: str
    #: An amount and the symbol of any asset of the venue, such as `0.5 USD`; or `none`.
    account_fee: str


class _Order(TypedDict):
    instrument: str
    order_id: str
    client_order_id: str
    side: Side
    type: OrderType
    price: Optional[str]
    trigger: Optional[str]
    #: The distance of a trailing stop in quote. Its trigger is where it is now; null in updates, where the order has
    #: ended, and while the venue holds market data back.
    trail: Optional[str]
    #: The same in millionths of the price, of an order that came with that.
    trail_ppm: Optional[int]
    open: str
    shown: str
    time_in_force: TimeInForce
    expire_time_ns: Optional[str]
    post_only: PostOnly
    display: Display
    peak: Optional[str]
    self_trade: SelfTrade
    #: What was asked when it entered, whatever was amended since; null, as the three below, of an order that entered
    #: before the venue kept it.
    original_size: Optional[str]
    #: What it has traded.
    filled: Optional[str]
    #: The order with which it is linked: when one trades, triggers or leaves, the other is cancelled.
    linked_order_id: Optional[str]
    #: Of what it has traded, rounded down to a millionth of a tick; null where that is nothing.
    average_price: Optional[str]
    #: The log's time of its entry, in nanoseconds.
    entered_at_ns: Optional[str]
    status: OrderStatus


@final
class Order(_Order, total=False):
    #: Of an exit, the number of the client_order_id of its entry, while that is open or to come.
    exit_of: str
    #: Of such an exit, whether it stands for nothing yet: then no price triggers it, and it reserves nothing.
    is_held: bool


@final
class Orders(TypedDict):
    orders: list[Order]
    #: The next page's cursor; null when there is no more. A page that is not full may have one: so much was looked at.
    next: Optional[str]


class _OrderUpdate(TypedDict):
    instrument: str
    order_id: str
    client_order_id: str
    side: Side
    open: str
    shown: str
    status: OrderStatus


@final
class OrderUpdate(_OrderUpdate, total=False):
    type: OrderType
    price: Optional[str]
    trigger: Optional[str]
    #: The distance of a trailing stop in quote. Its trigger is where it is now; null in updates, where the order has
    #: ended, and while the venue holds market data back.
    trail: Optional[str]
    #: The same in millionths of the price, of an order that came with that.
    trail_ppm: Optional[int]
    time_in_force: TimeInForce
    expire_time_ns: Optional[str]
    post_only: PostOnly
    display: Display
    peak: Optional[str]
    self_trade: SelfTrade
    #: The order with which it is linked; of one that has ended, was.
    linked_order_id: Optional[str]
    reason: CancelReason


@final
class Fill(TypedDict):
    instrument: str
    trade_id: str
    order_id: str
    client_order_id: str
    time_ns: str
    side: Side
    price: str
    size: str
    #: Negative for a rebate.
    fee: str
    fee_asset: str
    role: Role


@final
class Fills(TypedDict):
    fills: list[Fill]
    #: The next page's cursor; null when there is no more. A page that is not full may have one: so much was looked at.
    next: Optional[str]
    #: False where older ones may be beyond reach, for the venue's memory has let go of some and it keeps no archive.
    #: With `after`: where some between that and the page may be.
    complete: bool


@final
class ClosedOrders(TypedDict):
    orders: list[OrderState]
    #: As in Fills.
    next: Optional[str]
    #: As in Fills.
    complete: bool


class _OrderState(TypedDict):
    instrument: str
    order_id: str
    client_order_id: str
    side: Side
    type: Optional[OrderType]
    price: Optional[str]
    trigger: Optional[str]
    #: The distance of a trailing stop in quote. Its trigger is where it is now; null in updates, where the order has
    #: ended, and while the venue holds market data back.
    trail: Optional[str]
    #: The same in millionths of the price, of an order that came with that.
    trail_ppm: Optional[int]
    #: What still stands of it.
    open: str
    shown: str
    time_in_force: Optional[TimeInForce]
    expire_time_ns: Optional[str]
    post_only: Optional[PostOnly]
    display: Optional[Display]
    peak: Optional[str]
    self_trade: Optional[SelfTrade]
    #: What was asked when it entered.
    original_size: Optional[str]
    filled: Optional[str]
    #: The order with which it is linked: when one trades, triggers or leaves, the other is cancelled.
    linked_order_id: Optional[str]
    average_price: Optional[str]
    #: What its trades paid; negative for rebates.
    fee: Optional[str]
    fee_asset: str
    entered_at_ns: Optional[str]
    #: When it entered, was amended or triggered, traded or ended last.
    changed_at_ns: Optional[str]
    #: Null of an open order.
    ended_at_ns: Optional[str]
    status: OrderStatus
    #: How much of it ended without a trade.
    cancelled: str
    #: Why it ended without a trade, if it did.
    reason: Optional[CancelReason]


@final
class OrderState(_OrderState, total=False):
    """An order, open or ended. What is null of type, time_in_force, post_only, display and self_trade is of an order
    that the venue made itself.
    """

    #: In lists of orders that have ended, the entry of the log in which it ended.
    log_index: str
    waits: OrderWaits


@final
class OrderWaits(TypedDict):
    """Where an order waited on its way in, in nanoseconds: of one order, and in reports of accepted ones. With fair
    access, at the replica that took the order, for the last 128 orders of an account; else it is absent.
    """

    #: From its stamp at a leaf gateway until it came to this replica; null if it came by none, or no stamp counted.
    leaf_ns: Optional[int]
    #: From its stamp, or from when it came from a leaf gateway, until it left for the leader; null if no stamp counted.
    gateway_ns: Optional[int]
    #: From then until its entry was made: on the way to the leader, and in its hold. Null, as log_ns, where the clocks
    #: of the two contradict each other.
    sequencer_ns: Optional[int]
    #: From then until its entry came back: a majority has it.
    log_ns: Optional[int]
    #: From when it left until its entry came back: sequencer_ns and log_ns together.
    decided_ns: int
    #: From then until its answer and report were handed to the connection; null until they are.
    report_ns: Optional[int]
    #: From its stamp until then.
    total_ns: Optional[int]
    #: By how much it came later than d_s; 0 if it was in time.
    late_ns: int


@final
class Reports(TypedDict):
    reports: list[Report]
    #: The account's last number.
    last: str


class _Report(TypedDict):
    #: From 1, without gaps, per account.
    report_seq: str
    log_index: str
    time_ns: str
    event: Literal[
        "accepted",
        "amended",
        "triggered",
        "filled",
        "reduced",
        "replenished",
        "cancelled",
        "rejected",
        "deposited",
        "withdrawn",
        "other",
    ]


@final
class Report(_Report, total=False):
    """What there is of its fields follows from event. A client_order_id is shown as its text while the venue remembers
    the order; order_id is always there. A rejection names the number that stands for a text.
    """

    instrument: str
    order_id: str
    client_order_id: str
    side: Side
    size: str
    price: Optional[str]
    #: What is left of the order; of a cancelled one, what did not trade.
    open: str
    shown: str
    priority: Literal["kept", "lost"]
    by: str
    reason: CancelReason
    trade_id: str
    fee: str
    fee_asset: str
    role: Role
    asset: str
    amount: str
    error: ErrorBody
    waits: OrderWaits


@final
class CancelAfterRequest(TypedDict):
    #: At most 86400000, a day; 0 switches it off.
    timeout_ms: int


@final
class CancelAfter(TypedDict):
    #: In the log's time; null where the switch is off.
    cancels_at_ns: Optional[str]


@final
class ManyRequest(TypedDict):
    commands: list[Union[OneOrder, OneCancel, OneAmend, OneMassCancel]]


@final
class ManyAnswer(TypedDict):
    results: list[ManyResult]


@final
class ManyResult(TypedDict, total=False):
    """Of the command at the same place: its answer, or its error; with session and log_index where a rejected command
    used its number up.
    """

    answer: Union[OrderAnswer, MassCancelAnswer, RepeatedAnswer]
    error: ErrorBody
    session: str
    session_seq: str
    log_index: str


class _OrderRequest(TypedDict):
    instrument: str
    side: Side
    size: str
    type: OrderType


@final
class OrderRequest(_OrderRequest, total=False):
    """client_order_id must be unique among the open orders of the account in the instrument; without it a random one is
    chosen, or with a session's number one that follows from that. A limit order needs price, a stop or take_profit
    trigger, a stop_limit or take_profit_limit both, a trailing_stop trail or trail_ppm, a trailing_stop_limit price
    as well; gtt needs expire_time_ns, an iceberg peak. time_in_force is gtc without it, for market orders ioc. The
    trigger of a buy stop or a sell take-profit must lie above the last price and that of a sell stop or a buy
    take-profit below it, in every phase (else 90 StopWouldTrigger); before the first trade any will do. Of a stop it
    also says how long it waits (ioc and fok ones until cancelled); once triggered, a stop_limit stands as it says,
    and nothing of a stop rests.
    """

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
    #: The client_order_id of an open order of the account in the instrument, of the same side and open size. From now
    #: on one cancels the other: when either trades, triggers or leaves. At least one of the two waits for a trigger; a
    #: limit order that is linked as it enters is post-only (93 LinkInvalid).
    oco_with: str
    #: The client_order_id of an order that is to come in the instrument, of the other side and the same size. This one
    #: is a stop or a take-profit, is held until something of that one has traded, and stands for what it has filled
    #: from then on. An order has two exits at most, which cancel each other (93 LinkInvalid).
    exit_of: str
    take_profit: ExitRequest
    stop_loss: ExitRequest


class _ExitRequest(TypedDict):
    trigger: str


@final
class ExitRequest(_ExitRequest, total=False):
    """An exit of the order, without a session's number: a take-profit or a stop of the other side and the same size,
    good till cancelled, with a limit where there is a price. It is entered before the order, with exit_of; where one
    of them is refused, nothing is left.
    """

    client_order_id: str
    price: str


@final
class ExitAnswer(TypedDict):
    order_id: str
    client_order_id: str


@final
class AmendRequest(TypedDict, total=False):
    """At least one of the three. A trigger is of a stop that waits, but not of a trailing one (29 AmendInvalid); one
    that the last trade touches is refused (90 StopWouldTrigger); a price is of any order but a stop without a limit.
    """

    price: str
    trigger: str
    size: str


@final
class OrderFill(TypedDict):
    trade_id: str
    price: str
    size: str
    fee: str
    fee_asset: str


class _OrderEvent(TypedDict):
    event: Literal["accepted", "amended", "traded", "reduced", "triggered", "cancelled"]
    order_id: str
    client_order_id: str


@final
class OrderEvent(_OrderEvent, total=False):
    priority: Literal["kept", "lost"]
    trade_id: str
    price: str
    size: str
    by: str
    reason: CancelReason


class _OrderAnswer(TypedDict):
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
class OrderAnswer(_OrderAnswer, total=False):
    reason: CancelReason
    take_profit: ExitAnswer
    stop_loss: ExitAnswer
    session: str
    session_seq: str
    #: With a number: false, since it was carried out just now.
    repeated: Literal[False]


class _RepeatedAnswer(TypedDict):
    log_index: str
    session: str
    session_seq: str
    repeated: Literal[True]


@final
class RepeatedAnswer(_RepeatedAnswer, total=False):
    """To a command that was carried out before under its number. What became of it, the account's orders and fills
    tell; the order_id of an order that was entered is the log_index.
    """

    client_order_id: str


@final
class SessionRequest(TypedDict):
    token: str


@final
class Session(TypedDict):
    """next_seq is the number of the next new command; commands before remembered_from are not remembered any more."""

    session: str
    token: str
    next_seq: str
    remembered_from: str


@final
class Sessions(TypedDict):
    sessions: list[Session]


@final
class CancelledOrder(TypedDict):
    instrument: str
    order_id: str
    client_order_id: str


class _MassCancelAnswer(TypedDict):
    log_index: str
    time_ns: str
    cancelled: list[CancelledOrder]


@final
class MassCancelAnswer(_MassCancelAnswer, total=False):
    session: str
    session_seq: str
    #: With a number: false, since it was carried out just now.
    repeated: Literal[False]


class _OneOrder(TypedDict):
    op: Literal["order"]
    instrument: str
    side: Side
    size: str
    type: OrderType


@final
class OneOrder(_OneOrder, total=False):
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


@final
class OneCancel(TypedDict):
    op: Literal["cancel"]
    instrument: str
    client_order_id: str


class _OneAmend(TypedDict):
    op: Literal["amend"]
    instrument: str
    client_order_id: str


@final
class OneAmend(_OneAmend, total=False):
    price: str
    trigger: str
    size: str


class _OneMassCancel(TypedDict):
    op: Literal["mass_cancel"]


@final
class OneMassCancel(_OneMassCancel, total=False):
    instrument: str
    side: Side


#: What an uncross would trade now: price, volume, and what would be left over at that price. Hidden orders and what
#: icebergs hold back count. Null in continuous trading, and when no bid reaches an offer. It follows each change of the
#: book, of a book of more than 4096 open orders less often.
Indicative = Optional[IndicativeUncross]
