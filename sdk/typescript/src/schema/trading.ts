// Written by `npm run generate` from edge/api/openapi.yaml and edge/api/asyncapi.yaml; a test compares them. Quantities are decimal
// strings, times and 64-bit ids strings of digits.

import type { OneAmend, OneCancel, OneMassCancel, OneOrder } from "./socket.ts";

export type Side = "buy" | "sell";

export type OrderType =
  | "limit" | "market" | "stop" | "stop_limit" | "take_profit" | "take_profit_limit" | "trailing_stop" | "trailing_stop_limit";

export type TimeInForce = "gtc" | "day" | "gtt" | "ioc" | "fok";

export type PostOnly = "off" | "reject" | "reprice";

export type Display = "full" | "iceberg" | "hidden";

export type SelfTrade = "cancel_newest" | "cancel_oldest" | "cancel_both" | "decrement" | "allow";

export type Phase = "closed" | "pre_open" | "opening_auction" | "continuous" | "halt" | "closing_auction";

export type PhaseCause = "operator" | "price_band";

export type Interval = "1s" | "10s" | "1m" | "5m" | "1h";

export type OrderStatus = "resting" | "filled" | "partially_filled" | "cancelled" | "waiting_trigger";

export type CancelReason =
  | "requested" | "mass_cancelled" | "unfilled" | "expired" | "day_ended" | "self_trade" | "account_suspended" | "trigger_refused"
  | "price_band" | "linked" | "unfunded";

export type AccountStatus = "active" | "suspended";

/** `transfer_relay`: to deliver another shard's transfers, and nothing else. */
export type Permission = "read" | "trade" | "operator" | "transfer_relay";

export type Role = "maker" | "taker" | "auction";

export type Kind = "snapshot" | "update";

export interface ErrorBody {
  /** The reject reason's number, which stays its own; docs/reject-reasons.md lists all. */
  code: number;
  /** The reason's name. */
  name: string;
  /** What is wrong and what to do. */
  message: string;
  /** Which field, and what would do. */
  detail?: string;
  /** With 421, who leads; null where that is not known. */
  leader?: null | Leader;
}

export interface Leader {
  replica: number;
  url: string;
}

export interface Error {
  error: ErrorBody;
  /** Of a rejected command that has a number, and has used it up: its session. */
  session?: string;
  /** The number. */
  session_seq?: string;
  /** Where the rejection stands in the log. */
  log_index?: string;
}

export interface Demo {
  speed: string;
  source: string;
  progress_permille: number;
}

export interface Status {
  venue: string;
  version: string;
  commit: string;
  started_at_ns: string;
  accepts_timestamps_from_ns: string;
  log_index: string;
  time_ns: string;
  ready: boolean;
  storage: "ok" | "full" | "no_descriptors";
  /** Orders or market data wait here so that nobody is early by being near: see /v1/fair-access. */
  fair_access: boolean;
  instruments: number;
  accounts: number;
  commands_total: number;
  trades_total: number;
  demo: Demo | null;
}

export interface Time {
  time_ns: string;
}

export interface Asset {
  asset_id: number;
  symbol: string;
  decimals: number;
  supply: string;
}

export interface Assets {
  assets: Asset[];
}

export interface Allocation {
  kind: "price_time" | "pro_rata" | "top_pro_rata" | "split";
  min_size?: string;
  top_size_max?: string;
  fifo_percent?: number;
}

export interface Uncross {
  /** The one price of its trades; null where nothing crossed. */
  price: string | null;
  volume: string;
  /** What was left over at the price, in base: above zero bid, below zero offered. */
  imbalance: string;
}

export interface Instrument extends ListedInstrument {
  last_price: string | null;
}

/**
 * An instrument as the channel instruments has it: as in GET /v1/instruments, without the last price, which the channel ticker has.
 */
export interface ListedInstrument {
  instrument_id: number;
  symbol: string;
  base: string;
  quote: string;
  tick_size: string;
  lot_size: string;
  price_decimals: number;
  size_decimals: number;
  allocation: Allocation;
  maker_fee_ppm: number;
  taker_fee_ppm: number;
  /**
   * How far a limit may lie from the last trade's price, before any trade from the reference price, for a stop from its trigger.
   */
  collar_ppm: number;
  band_ppm: number;
  phase: Phase;
  /**
   * Why it is in this phase: the operator set it, or a trade would have left the price band. Null where the venue does not know: of
   * a halt before it kept causes.
   */
  phase_cause: null | PhaseCause;
  reference_price: string;
  /** How the latest auction ended; null where there was none. */
  last_uncross: null | Uncross;
}

export interface Instruments {
  instruments: Instrument[];
}

/** Price, size shown (0 when the level is gone), number of orders. */
export type Level = [string, string, number];

export interface Book {
  instrument: string;
  log_index: string;
  bids: Level[];
  asks: Level[];
  indicative: Indicative;
}

/** The venue's number of an order, its price, what it shows. */
export type BookOrder = [string, string, string];

export interface BookOrders {
  instrument: string;
  /** The entry of the log after which they stood so. */
  log_index: string;
  bids: BookOrder[];
  asks: BookOrder[];
  /** Whether bids stand behind these. */
  has_more_bids: boolean;
  /** Whether asks stand behind these. */
  has_more_asks: boolean;
}

export interface Auction {
  instrument: string;
  log_index: string;
  phase: Phase;
  /**
   * Why it is in this phase: the operator set it, or a trade would have left the price band. Null where the venue does not know: of
   * a halt before it kept causes.
   */
  phase_cause: null | PhaseCause;
  /** The centre of the price band. */
  reference_price: string;
  indicative: Indicative;
  /** How the latest auction ended; null where there was none. */
  last_uncross: null | Uncross;
}

/** An instrument at a glance. A day is one of UTC, by the venue's clock, and its figures begin at 00:00 UTC. */
export interface Ticker {
  instrument: string;
  log_index: string;
  last_price: string | null;
  /**
   * How far the last price is above (below 0: below) the price of the day's first trade, in parts per million of that, rounded
   * toward zero; 0 before the day's first trade.
   */
  change_ppm: number;
  /** Price of the day's first trade; null before it. */
  open: string | null;
  /** Highest price of the day; null before its first trade. */
  high: string | null;
  /** Lowest price of the day; null before its first trade. */
  low: string | null;
  /** Price of the last trade before the day; null where there was none. */
  previous_close: string | null;
  best_bid: string | null;
  /** What all orders at the best bid show, in the base asset. */
  best_bid_size: string | null;
  best_ask: string | null;
  /** What all orders at the best ask show, in the base asset. */
  best_ask_size: string | null;
  /** Traded since the day began, in the base asset. */
  volume: string;
  /** What that was worth: the sum of price times size, in the quote asset. */
  turnover: string;
  phase: Phase;
  /**
   * Why it is in this phase: the operator set it, or a trade would have left the price band. Null where the venue does not know: of
   * a halt before it kept causes.
   */
  phase_cause: null | PhaseCause;
}

/**
 * What an uncross would trade now: price, volume, and what would be left over at that price. Hidden orders and what icebergs hold
 * back count. Null in continuous trading, and when no bid reaches an offer. It follows each change of the book, of a book of more
 * than 4096 open orders less often.
 */
export type Indicative = null | IndicativeUncross;

export interface IndicativeUncross {
  price: string;
  /** In base. */
  volume: string;
  /** What would be left over at the price, in base: above zero bid, below zero offered. */
  imbalance: string;
}

export interface Trade {
  trade_id: string;
  time_ns: string;
  price: string;
  size: string;
  taker_side: Side | null;
}

export interface Trades {
  trades: Trade[];
}

export interface PastTrade extends Trade {
  log_index: string;
}

export interface PastTrades {
  instrument: string;
  trades: PastTrade[];
  /** The next page's cursor; null when there is no more. A page that is not full may have one: so much was looked at. */
  next: string | null;
}

export interface PastBook {
  instrument: string;
  /** It was so after this entry. */
  log_index: string;
  /** That entry's time. */
  time_ns: string;
  bids: Level[];
  asks: Level[];
}

export interface PastFile {
  name: string;
  bytes: number;
  rows: number;
  blake3: string;
}

export interface MissingEntries {
  first_log_index: string;
  last_log_index: string;
}

export interface PastDay {
  day: string;
  /** Whether it is whole; the other fields are those of a closed day. */
  closed: boolean;
  /** Whether every entry of the day is in it. */
  complete?: boolean;
  /** Entries that are not. */
  missing?: MissingEntries[];
  first_log_index?: string;
  last_log_index?: string;
  trades?: number;
  /** Pictures of books. */
  books?: number;
  files?: PastFile[];
  /** Files that were not made, and why. */
  notes?: string[];
}

export interface PastDays {
  /** The last entry that is in the archive for good. */
  log_index: string;
  /** Entries found missing since the start. */
  missing: string;
  /** Whether it does not go on, for want of room perhaps: the market does. */
  trouble: boolean;
  days: PastDay[];
}

export interface Candle {
  time_s: number;
  open: string;
  high: string;
  low: string;
  close: string;
  volume: string;
}

export interface Candles {
  candles: Candle[];
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

export interface Account {
  account_id: number;
  status: AccountStatus;
  balances: Balance[];
  positions: Position[];
  transaction_key: string | null;
  next_sequence: string;
}

export interface AccountFeeRequest {
  batch: string;
  /** An amount and the symbol of any asset of the venue, such as `0.5 USD`; or `none`. */
  account_fee: string;
}

export interface Order {
  instrument: string;
  order_id: string;
  client_order_id: string;
  side: Side;
  type: OrderType;
  price: string | null;
  trigger: string | null;
  /**
   * The distance of a trailing stop in quote. Its trigger is where it is now; null in updates, where the order has ended, and while
   * the venue holds market data back.
   */
  trail: string | null;
  /** The same in millionths of the price, of an order that came with that. */
  trail_ppm: number | null;
  open: string;
  shown: string;
  time_in_force: TimeInForce;
  expire_time_ns: string | null;
  post_only: PostOnly;
  display: Display;
  peak: string | null;
  self_trade: SelfTrade;
  /**
   * What was asked when it entered, whatever was amended since; null, as the three below, of an order that entered before the venue
   * kept it.
   */
  original_size: string | null;
  /** What it has traded. */
  filled: string | null;
  /** The order with which it is linked: when one trades, triggers or leaves, the other is cancelled. */
  linked_order_id: string | null;
  /** Of an exit, the number of the client_order_id of its entry, while that is open or to come. */
  exit_of?: string;
  /** Of such an exit, whether it stands for nothing yet: then no price triggers it, and it reserves nothing. */
  is_held?: boolean;
  /** Of what it has traded, rounded down to a millionth of a tick; null where that is nothing. */
  average_price: string | null;
  /** The log's time of its entry, in nanoseconds. */
  entered_at_ns: string | null;
  status: OrderStatus;
}

export interface Orders {
  orders: Order[];
  /** The next page's cursor; null when there is no more. A page that is not full may have one: so much was looked at. */
  next: string | null;
}

export interface OrderUpdate {
  instrument: string;
  order_id: string;
  client_order_id: string;
  side: Side;
  open: string;
  shown: string;
  status: OrderStatus;
  type?: OrderType;
  price?: string | null;
  trigger?: string | null;
  /**
   * The distance of a trailing stop in quote. Its trigger is where it is now; null in updates, where the order has ended, and while
   * the venue holds market data back.
   */
  trail?: string | null;
  /** The same in millionths of the price, of an order that came with that. */
  trail_ppm?: number | null;
  time_in_force?: TimeInForce;
  expire_time_ns?: string | null;
  post_only?: PostOnly;
  display?: Display;
  peak?: string | null;
  self_trade?: SelfTrade;
  /** The order with which it is linked; of one that has ended, was. */
  linked_order_id?: string | null;
  reason?: CancelReason;
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
  /** Negative for a rebate. */
  fee: string;
  fee_asset: string;
  role: Role;
}

export interface Fills {
  fills: Fill[];
  /** The next page's cursor; null when there is no more. A page that is not full may have one: so much was looked at. */
  next: string | null;
  /**
   * False where older ones may be beyond reach, for the venue's memory has let go of some and it keeps no archive. With `after`:
   * where some between that and the page may be.
   */
  complete: boolean;
}

export interface ClosedOrders {
  orders: OrderState[];
  /** As in Fills. */
  next: string | null;
  /** As in Fills. */
  complete: boolean;
}

/**
 * An order, open or ended. What is null of type, time_in_force, post_only, display and self_trade is of an order that the venue
 * made itself.
 */
export interface OrderState {
  instrument: string;
  order_id: string;
  client_order_id: string;
  side: Side;
  type: OrderType | null;
  price: string | null;
  trigger: string | null;
  /**
   * The distance of a trailing stop in quote. Its trigger is where it is now; null in updates, where the order has ended, and while
   * the venue holds market data back.
   */
  trail: string | null;
  /** The same in millionths of the price, of an order that came with that. */
  trail_ppm: number | null;
  /** What still stands of it. */
  open: string;
  shown: string;
  time_in_force: TimeInForce | null;
  expire_time_ns: string | null;
  post_only: PostOnly | null;
  display: Display | null;
  peak: string | null;
  self_trade: SelfTrade | null;
  /** What was asked when it entered. */
  original_size: string | null;
  filled: string | null;
  /** The order with which it is linked: when one trades, triggers or leaves, the other is cancelled. */
  linked_order_id: string | null;
  average_price: string | null;
  /** What its trades paid; negative for rebates. */
  fee: string | null;
  fee_asset: string;
  entered_at_ns: string | null;
  /** When it entered, was amended or triggered, traded or ended last. */
  changed_at_ns: string | null;
  /** Null of an open order. */
  ended_at_ns: string | null;
  status: OrderStatus;
  /** How much of it ended without a trade. */
  cancelled: string;
  /** Why it ended without a trade, if it did. */
  reason: CancelReason | null;
  /** In lists of orders that have ended, the entry of the log in which it ended. */
  log_index?: string;
  waits?: OrderWaits;
}

/**
 * Where an order waited on its way in, in nanoseconds: of one order, and in reports of accepted ones. With fair access, at the
 * replica that took the order, for the last 128 orders of an account; else it is absent.
 */
export interface OrderWaits {
  /** From its stamp at a leaf gateway until it came to this replica; null if it came by none, or no stamp counted. */
  leaf_ns: number | null;
  /** From its stamp, or from when it came from a leaf gateway, until it left for the leader; null if no stamp counted. */
  gateway_ns: number | null;
  /**
   * From then until its entry was made: on the way to the leader, and in its hold. Null, as log_ns, where the clocks of the two
   * contradict each other.
   */
  sequencer_ns: number | null;
  /** From then until its entry came back: a majority has it. */
  log_ns: number | null;
  /** From when it left until its entry came back: sequencer_ns and log_ns together. */
  decided_ns: number;
  /** From then until its answer and report were handed to the connection; null until they are. */
  report_ns: number | null;
  /** From its stamp until then. */
  total_ns: number | null;
  /** By how much it came later than d_s; 0 if it was in time. */
  late_ns: number;
}

export interface Reports {
  reports: Report[];
  /** The account's last number. */
  last: string;
}

/**
 * What there is of its fields follows from event. A client_order_id is shown as its text while the venue remembers the order;
 * order_id is always there. A rejection names the number that stands for a text.
 */
export interface Report {
  /** From 1, without gaps, per account. */
  report_seq: string;
  log_index: string;
  time_ns: string;
  event:
    | "accepted" | "amended" | "triggered" | "filled" | "reduced" | "replenished" | "cancelled" | "rejected" | "deposited"
    | "withdrawn" | "other";
  instrument?: string;
  order_id?: string;
  client_order_id?: string;
  side?: Side;
  size?: string;
  price?: string | null;
  /** What is left of the order; of a cancelled one, what did not trade. */
  open?: string;
  shown?: string;
  priority?: "kept" | "lost";
  by?: string;
  reason?: CancelReason;
  trade_id?: string;
  fee?: string;
  fee_asset?: string;
  role?: Role;
  asset?: string;
  amount?: string;
  error?: ErrorBody;
  waits?: OrderWaits;
}

export interface CancelAfterRequest {
  /** At most 86400000, a day; 0 switches it off. */
  timeout_ms: number;
}

export interface CancelAfter {
  /** In the log's time; null where the switch is off. */
  cancels_at_ns: string | null;
}

export interface ManyRequest {
  commands: (OneOrder | OneCancel | OneAmend | OneMassCancel)[];
}

export interface ManyAnswer {
  results: ManyResult[];
}

/**
 * Of the command at the same place: its answer, or its error; with session and log_index where a rejected command used its number
 * up.
 */
export interface ManyResult {
  answer?: OrderAnswer | MassCancelAnswer | RepeatedAnswer;
  error?: ErrorBody;
  session?: string;
  session_seq?: string;
  log_index?: string;
}

/**
 * client_order_id must be unique among the open orders of the account in the instrument; without it a random one is chosen, or with
 * a session's number one that follows from that. A limit order needs price, a stop or take_profit trigger, a stop_limit or
 * take_profit_limit both, a trailing_stop trail or trail_ppm, a trailing_stop_limit price as well; gtt needs expire_time_ns, an
 * iceberg peak. time_in_force is gtc without it, for market orders ioc. The trigger of a buy stop or a sell take-profit must lie
 * above the last price and that of a sell stop or a buy take-profit below it, in every phase (else 90 StopWouldTrigger); before the
 * first trade any will do. Of a stop it also says how long it waits (ioc and fok ones until cancelled); once triggered, a
 * stop_limit stands as it says, and nothing of a stop rests.
 */
export interface OrderRequest {
  instrument: string;
  side: Side;
  size: string;
  type: OrderType;
  client_order_id?: string;
  price?: string;
  trigger?: string;
  /** The distance of a trailing stop in quote. */
  trail?: string;
  /** The same in millionths of the price; one of the two. */
  trail_ppm?: number;
  time_in_force?: TimeInForce;
  expire_time_ns?: string;
  post_only?: PostOnly;
  display?: Display;
  peak?: string;
  min_size?: string;
  self_trade?: SelfTrade;
  /**
   * The client_order_id of an open order of the account in the instrument, of the same side and open size. From now on one cancels
   * the other: when either trades, triggers or leaves. At least one of the two waits for a trigger; a limit order that is linked as
   * it enters is post-only (93 LinkInvalid).
   */
  oco_with?: string;
  /**
   * The client_order_id of an order that is to come in the instrument, of the other side and the same size. This one is a stop or a
   * take-profit, is held until something of that one has traded, and stands for what it has filled from then on. An order has two
   * exits at most, which cancel each other (93 LinkInvalid).
   */
  exit_of?: string;
  take_profit?: ExitRequest;
  stop_loss?: ExitRequest;
}

/**
 * An exit of the order, without a session's number: a take-profit or a stop of the other side and the same size, good till
 * cancelled, with a limit where there is a price. It is entered before the order, with exit_of; where one of them is refused,
 * nothing is left.
 */
export interface ExitRequest {
  client_order_id?: string;
  trigger: string;
  price?: string;
}

export interface ExitAnswer {
  order_id: string;
  client_order_id: string;
}

/**
 * At least one of the three. A trigger is of a stop that waits, but not of a trailing one (29 AmendInvalid); one that the last
 * trade touches is refused (90 StopWouldTrigger); a price is of any order but a stop without a limit.
 */
export interface AmendRequest {
  price?: string;
  trigger?: string;
  size?: string;
}

export interface OrderFill {
  trade_id: string;
  price: string;
  size: string;
  fee: string;
  fee_asset: string;
}

export interface OrderEvent {
  event: "accepted" | "amended" | "traded" | "reduced" | "triggered" | "cancelled";
  order_id: string;
  client_order_id: string;
  priority?: "kept" | "lost";
  trade_id?: string;
  price?: string;
  size?: string;
  by?: string;
  reason?: CancelReason;
}

export interface OrderAnswer {
  log_index: string;
  time_ns: string;
  order_id: string | null;
  client_order_id: string;
  status: OrderStatus;
  price: string | null;
  open: string;
  fills: OrderFill[];
  events: OrderEvent[];
  reason?: CancelReason;
  take_profit?: ExitAnswer;
  stop_loss?: ExitAnswer;
  session?: string;
  session_seq?: string;
  /** With a number: false, since it was carried out just now. */
  repeated?: false;
}

/**
 * To a command that was carried out before under its number. What became of it, the account's orders and fills tell; the order_id
 * of an order that was entered is the log_index.
 */
export interface RepeatedAnswer {
  log_index: string;
  session: string;
  session_seq: string;
  repeated: true;
  client_order_id?: string;
}

export interface SessionRequest {
  token: string;
}

/** next_seq is the number of the next new command; commands before remembered_from are not remembered any more. */
export interface Session {
  session: string;
  token: string;
  next_seq: string;
  remembered_from: string;
}

export interface Sessions {
  sessions: Session[];
}

export interface CancelledOrder {
  instrument: string;
  order_id: string;
  client_order_id: string;
}

export interface MassCancelAnswer {
  log_index: string;
  time_ns: string;
  cancelled: CancelledOrder[];
  session?: string;
  session_seq?: string;
  /** With a number: false, since it was carried out just now. */
  repeated?: false;
}
