// The venue's JSON, as its openapi.yaml documents it. Quantities are decimal strings, times and 64-bit ids strings of digits.

import type { BatchMessage, DemandMessage, Offer, OfferFill, OfferUpdate } from "./batch-types.ts";
import { t } from "../texts/index.ts";

export type Side = "buy" | "sell";
export type OrderKind =
  | "limit"
  | "market"
  | "stop"
  | "stop_limit"
  | "take_profit"
  | "take_profit_limit"
  | "trailing_stop"
  | "trailing_stop_limit";
export type TimeInForce = "gtc" | "day" | "gtt" | "ioc" | "fok";
export type PostOnly = "off" | "reject" | "reprice";
export type Display = "full" | "iceberg" | "hidden";
export type SelfTrade = "cancel_newest" | "cancel_oldest" | "cancel_both" | "decrement" | "allow";
export type Phase = "closed" | "pre_open" | "opening_auction" | "continuous" | "halt" | "closing_auction";

export interface Asset {
  asset_id: number;
  symbol: string;
  decimals: number;
}

export interface Instrument {
  instrument_id: number;
  symbol: string;
  base: string;
  quote: string;
  tick_size: string;
  lot_size: string;
  price_decimals: number;
  size_decimals: number;
  maker_fee_ppm: number;
  taker_fee_ppm: number;
  phase: Phase;
  reference_price: string | null;
  last_price: string | null;
}

export interface DemoStatus {
  /** "10x", or "max". */
  speed: string;
  source: string;
  progress_permille: number;
}

export interface Status {
  venue: string;
  version: string;
  commit: string;
  started_at_ns: string;
  /** First stamp that signed requests may have. */
  accepts_timestamps_from_ns: string;
  log_index: string;
  time_ns: string;
  ready: boolean;
  storage: "ok" | "full" | "no_descriptors";
  /** Orders or market data wait so that nobody is early by being near. Older venues do not say. */
  fair_access?: boolean;
  commands_total: string | number;
  trades_total: string | number;
  demo: DemoStatus | null;
}

/** Price, absolute size ("0" removes), number of orders. */
export type WireLevel = [price: string, size: string, orderCount: number];

/** What an auction would do if it ended now. */
export interface Indicative {
  price: string;
  volume: string;
  /** Size at that price that would be left over: above zero of buyers, below zero of sellers. */
  imbalance: string;
}

export interface BookMessage {
  type: "book";
  instrument: string;
  kind: "snapshot" | "update";
  feed_seq: string;
  log_index: string;
  bids: WireLevel[];
  asks: WireLevel[];
  /** While orders are collected for an auction; `null` where nothing would trade. Older venues do not say. */
  indicative?: Indicative | null;
}

export interface Trade {
  trade_id: string;
  time_ns: string;
  price: string;
  size: string;
  taker_side: Side | null;
}

export interface TradesMessage {
  type: "trades";
  instrument: string;
  kind: "snapshot" | "update";
  trades: Trade[];
}

export type Interval = "1s" | "10s" | "1m" | "5m" | "1h";

export interface Candle {
  time_s: number | string;
  open: string;
  high: string;
  low: string;
  close: string;
  volume: string;
}

export interface CandlesMessage {
  type: "candles";
  instrument: string;
  interval: Interval;
  kind: "snapshot" | "update";
  candles: Candle[];
}

export interface TickerMessage {
  type: "ticker";
  instrument: string;
  last_price: string | null;
  change_ppm: number | string | null;
  /** Of the UTC day, before whose first trade there are none. Older venues do not say. */
  high?: string | null;
  low?: string | null;
  best_bid: string | null;
  best_ask: string | null;
  volume: string;
  phase: Phase;
}

export interface StatusMessage extends Status {
  type: "status";
}

export interface Balance {
  asset: string;
  available: string;
  reserved: string;
}

export interface Position {
  instrument: string;
  position: string;
  open_orders: number;
}

export interface OpenOrder {
  instrument: string;
  order_id: string;
  client_order_id: string;
  side: Side;
  type: OrderKind;
  price: string | null;
  trigger: string | null;
  /** The distance of a trailing stop, in quote or in millionths of the price. */
  trail?: string | null;
  trail_ppm?: number | null;
  open: string;
  shown: string;
  time_in_force: TimeInForce;
  display?: Display;
  /** The order with which it is linked: one cancels the other. */
  linked_order_id?: string | null;
  /** Of an exit, the client order id of its entry while that is open or to come, and whether nothing of that has traded. */
  exit_of?: string;
  is_held?: boolean;
  /** What was asked when it entered, what it has traded since and at what price, and when it entered: unless it changed since. */
  original_size?: string | null;
  filled?: string | null;
  average_price?: string | null;
  entered_at_ns?: string | null;
}

/** What became of an order: its new state, or some of it, and a status. */
export interface OrderUpdate extends Partial<OpenOrder> {
  instrument: string;
  client_order_id: string;
  status: string;
  /** Why it was cancelled. */
  reason?: string;
}

export interface Fill {
  instrument: string;
  trade_id: string;
  order_id: string;
  client_order_id: string;
  time_ns: string;
  side: Side;
  price: string;
  size: string;
  fee: string;
  role: "maker" | "taker" | "auction";
}

export interface AccountMessage {
  type: "account";
  /** After a snapshot that has more come messages with the rest of its orders and offers. */
  kind: "snapshot" | "more" | "update";
  has_more?: boolean;
  balances?: Balance[];
  positions?: Position[];
  orders?: OpenOrder[];
  order_updates?: OrderUpdate[];
  fills?: Fill[];
  offers?: Offer[];
  offer_updates?: OfferUpdate[];
  offer_fills?: OfferFill[];
}

export interface ApiErrorBody {
  code: number;
  name: string;
  message: string;
  detail?: string;
}

export interface OrderRequest {
  instrument: string;
  client_order_id: string;
  side: Side;
  size: string;
  type: OrderKind;
  price?: string;
  trigger?: string;
  trail?: string;
  time_in_force?: TimeInForce;
  expire_time_ns?: string;
  post_only?: PostOnly;
  display?: Display;
  peak?: string;
  min_size?: string;
  self_trade?: SelfTrade;
  /** The open order with which it is linked. */
  oco_with?: string;
  /** What closes it as it fills: sent by HTTP, entered with it or not at all. */
  take_profit?: ExitRequest;
  stop_loss?: ExitRequest;
}

export interface ExitRequest {
  client_order_id?: string;
  trigger: string;
  price?: string;
}

export interface OrderReply {
  log_index: string;
  time_ns: string;
  order_id: string;
  client_order_id: string;
  status: string;
  open: string;
  /** Why what was not traded is cancelled. */
  reason?: string;
  fills: { trade_id: string; price: string; size: string; fee: string }[];
}

export interface ReplyMessage {
  type: "reply";
  id: string;
  [field: string]: unknown;
}

export interface ErrorMessage {
  type: "error";
  id?: string;
  error: ApiErrorBody;
}

export type ServerMessage =
  | BookMessage
  | TradesMessage
  | CandlesMessage
  | TickerMessage
  | StatusMessage
  | AccountMessage
  | BatchMessage
  | DemandMessage
  | ReplyMessage
  | ErrorMessage
  | { type: "subscribed" | "unsubscribed" | "authenticated" | "pong" };

/** A request that the venue refused, by its stable number and with its advice. */
export class Refusal extends Error {
  readonly code: number;
  readonly reason: string;
  readonly detail: string;

  constructor(body: ApiErrorBody) {
    super(body.message);
    this.code = body.code;
    this.reason = body.name;
    this.detail = body.detail ?? "";
  }
}

/** The connection went away before the answer came: the request may or may not have been taken. */
export class OutcomeUnknown extends Error {
  constructor(message = t.errors.outcomeUnknown) {
    super(message);
  }
}
