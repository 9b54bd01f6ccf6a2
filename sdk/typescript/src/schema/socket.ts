// Written by `npm run generate` from edge/api/openapi.yaml and edge/api/asyncapi.yaml; a test compares them. Quantities are decimal
// strings, times and 64-bit ids strings of digits.

import type { BatchBlock, BatchDemand, Offer, OfferFill, OfferUpdate } from "./batches.ts";
import type {
  AmendRequest, Balance, Book, Candle, Error, Fill, Interval, Kind, ListedInstrument, ManyResult, MassCancelAnswer, Order,
  OrderAnswer, OrderRequest, OrderUpdate, Position, RepeatedAnswer, Report, Side, Status, Ticker, Trade,
} from "./trading.ts";

/** The newest block last; up to 100 in a snapshot, and up to 10000 prices in all of them: of 1000 assets it has 10 blocks. */
export interface WsBatch {
  type: "batch";
  kind: Kind;
  feed_seq?: string;
  batch: string;
  phase: "open" | "closed";
  /** From one close to the next. */
  interval_ms: number;
  /** Prices are in units of the first. */
  assets: string[];
  collected: number;
  closed_block: string | null;
  blocks: BatchBlock[];
}

/** At once and after each block. */
export interface WsDemand extends BatchDemand {
  type: "demand";
  feed_seq?: string;
  batch: string;
}

export interface WsSubscribe {
  op: "subscribe" | "unsubscribe";
  channel: "book" | "book_orders" | "trades" | "candles" | "ticker" | "instruments" | "batch" | "demand" | "status" | "reports";
  id?: string;
  /** Of reports: those after this number; only new ones without it. */
  after?: string;
  instrument?: string;
  interval?: Interval;
  batch?: string;
  sell?: string;
  buy?: string;
}

export interface WsPing {
  op: "ping";
  id?: string;
}

/** As a signed request with method WS, path /v1/ws and no body. */
export interface WsAuth {
  op: "auth";
  key: string;
  timestamp: string;
  nonce: string;
  signature: string;
  id?: string;
}

export interface OneOrder extends OrderRequest {
  op: "order";
}

export interface OneCancel {
  op: "cancel";
  instrument: string;
  client_order_id: string;
}

export interface OneAmend extends AmendRequest {
  op: "amend";
  instrument: string;
  client_order_id: string;
}

export interface OneMassCancel {
  op: "mass_cancel";
  instrument?: string;
  side?: Side;
}

export interface WsOrder extends OneOrder {
  id?: string;
  session?: string;
  session_seq?: string;
}

export interface WsCancel extends OneCancel {
  id?: string;
  session?: string;
  session_seq?: string;
}

export interface WsAmend extends OneAmend {
  id?: string;
  session?: string;
  session_seq?: string;
}

export interface WsMassCancel extends OneMassCancel {
  id?: string;
  session?: string;
  session_seq?: string;
}

/** As POST /v1/orders/batch, answered by replies. */
export interface WsMany {
  op: "many";
  id?: string;
  session?: string;
  session_seq?: string;
  commands: (OneOrder | OneCancel | OneAmend | OneMassCancel)[];
}

/**
 * With a session of the account, its orders are cancelled when this connection ends; without one, not any more. Opening the session
 * again (POST /v1/sessions with its token) says that the account is back.
 */
export interface WsCancelOnDisconnect {
  op: "cancel_on_disconnect";
  id?: string;
  session?: string;
}

export type WsRequest = WsSubscribe | WsPing | WsAuth | WsOrder | WsCancel | WsAmend | WsMassCancel | WsMany | WsCancelOnDisconnect;

export interface WsSubscribed {
  /** That of the message which this answers, if it had one. */
  id?: string;
  type: "subscribed" | "unsubscribed";
  channel: string;
  /** Of reports: the number after which they begin. */
  after?: string;
  instrument?: string;
  interval?: Interval;
  batch?: string;
  sell?: string;
  buy?: string;
}

export interface WsPong {
  /** That of the message which this answers, if it had one. */
  id?: string;
  type: "pong";
  time_ns: string;
}

export interface WsAuthenticated {
  /** That of the message which this answers, if it had one. */
  id?: string;
  type: "authenticated";
  key: string;
  account_id: number | null;
}

export interface WsError extends Error {
  type: "error";
  id?: string;
}

/**
 * An update holds levels that changed, each with its new content, and what indicative is now. feed_seq is contiguous per connection
 * and instrument.
 */
export interface WsBook extends Book {
  type: "book";
  kind: Kind;
  feed_seq: string;
  /** CRC-32 of the ten best levels of each side after this message, see docs/websocket.md. */
  checksum: number;
}

/** The venue's number of an order, its side, its price, what it shows. */
export type WsAddedOrder = [string, Side, string, string];

/** The venue's number of an order, and what it shows now. */
export type WsResizedOrder = [string, string];

/**
 * The first 500 orders of each side. A snapshot has all of them as added. Of an update apply what was removed, then resized, then
 * added: an added order stands behind all others of its price. An order that lost its place is removed and added.
 */
export interface WsBookOrders {
  type: "book_orders";
  instrument: string;
  kind: Kind;
  feed_seq?: string;
  /** The entry of the log after which they stood so. */
  log_index: string;
  /** That of the message to which this one applies; null in a snapshot. */
  previous_log_index: string | null;
  removed: string[];
  resized: WsResizedOrder[];
  added: WsAddedOrder[];
  /** CRC-32 of the first ten orders of each side after this message, see docs/websocket.md. */
  checksum?: number;
  /** Whether bids stand behind the first 500. */
  has_more_bids: boolean;
  /** Whether asks stand behind the first 500. */
  has_more_asks: boolean;
}

/** Newest first in a snapshot, newest last in an update. */
export interface WsTrades {
  type: "trades";
  instrument: string;
  kind: Kind;
  feed_seq?: string;
  trades: Trade[];
}

/** Oldest first; an update holds the candles that changed. */
export interface WsCandles {
  type: "candles";
  instrument: string;
  interval: Interval;
  kind: Kind;
  feed_seq?: string;
  candles: Candle[];
}

/** An instrument at a glance. A day is one of UTC, by the venue's clock, and its figures begin at 00:00 UTC. */
export interface WsTicker extends Omit<Ticker, "log_index"> {
  type: "ticker";
  feed_seq?: string;
}

/**
 * A snapshot has all instruments; an update has those that were defined, whose phase changed or whose auction ended, each whole and
 * as it is now.
 */
export interface WsInstruments {
  type: "instruments";
  kind: Kind;
  feed_seq?: string;
  /** The entry of the log after which they were so. */
  log_index: string;
  instruments: ListedInstrument[];
}

export interface WsStatus extends Status {
  type: "status";
  feed_seq?: string;
}

/**
 * A snapshot has the first open orders and standing offers; while has_more is true a message of the kind more follows, with further
 * ones and nothing else. order_updates and offer_updates are in an update; updates may come before the snapshot is whole.
 */
export interface WsAccount {
  type: "account";
  kind: "snapshot" | "more" | "update";
  feed_seq?: string;
  has_more?: boolean;
  balances?: Balance[];
  positions?: Position[];
  fills?: Fill[];
  orders?: Order[];
  order_updates?: OrderUpdate[];
  offers?: Offer[];
  offer_updates?: OfferUpdate[];
  offer_fills?: OfferFill[];
}

export interface WsReply extends Omit<OrderAnswer, "repeated"> {
  type: "reply";
  id?: string;
  repeated?: boolean;
}

export interface WsMassCancelReply extends Omit<MassCancelAnswer, "repeated"> {
  type: "reply";
  id?: string;
  repeated?: boolean;
}

/** Of a command that was sent before under the same number. */
export interface WsRepeatedReply extends RepeatedAnswer {
  type: "reply";
  id?: string;
}

export interface WsReplies {
  type: "replies";
  id?: string;
  results: ManyResult[];
}

/** Numbered reports, oldest first, without gaps. */
export interface WsReports {
  type: "reports";
  reports: Report[];
  last: string;
}

export interface WsCancelsOnDisconnect {
  type: "cancel_on_disconnect";
  id?: string;
  session: string | null;
}

export type WsMessage =
  | WsSubscribed | WsPong | WsAuthenticated | WsError | WsBook | WsBookOrders | WsTrades | WsCandles | WsTicker | WsInstruments
  | WsStatus | WsAccount | WsBatch | WsDemand | WsReply | WsMassCancelReply | WsRepeatedReply | WsReplies | WsReports
  | WsCancelsOnDisconnect;

/** What a client sends over the WebSocket. */
export type SocketRequest =
  | WsSubscribe
  | WsPing
  | WsAuth
  | WsOrder
  | WsCancel
  | WsAmend
  | WsMassCancel
  | WsMany
  | WsCancelOnDisconnect;

/** What the venue sends over it. */
export type SocketMessage =
  | WsSubscribed
  | WsPong
  | WsCancelsOnDisconnect
  | WsAuthenticated
  | WsError
  | WsReply
  | WsMassCancelReply
  | WsRepeatedReply
  | WsReplies
  | WsBook
  | WsBookOrders
  | WsTrades
  | WsCandles
  | WsTicker
  | WsInstruments
  | WsStatus
  | WsAccount
  | WsReports
  | WsBatch
  | WsDemand;
