// What is private: balances, positions, open orders, fills. The venue's messages are the truth; nothing here is guessed ahead.

import type { Balance, Fill, Order, OrderState, OrderUpdate, Position, WsAccount } from "walras";
import { Signal } from "../base/signal.ts";
import { hasEnded } from "./order-end.ts";
import { OrderHistory } from "./order-history.ts";
import { Past } from "./past.ts";

/** With this many loaded no older ones are asked for; profit counts from the oldest that is loaded. */
export const PAST_KEPT = 200_000;
/** Linked orders of which not both are known. */
const PAIRS_MAX = 64;

export type SignedIn = "no_key" | "signing_in" | "signed_in" | "refused";

export class Account {
  readonly state = new Signal<SignedIn>("no_key");
  keyId = "";
  readonly balances = new Signal<Map<string, Balance>>(new Map());
  readonly positions = new Signal<Map<string, Position>>(new Map());
  /** By instrument and client order id. */
  readonly orders = new Signal<Map<string, Order>>(new Map());
  /** Newest first. */
  readonly fills = new Signal<Fill[]>([]);
  /** Whether the latest past fills have been loaded, or failed to load. */
  readonly hasPastFills = new Signal(false);
  /** Orders that have ended, newest first. */
  readonly closed = new Signal<OrderState[]>([]);
  /** The venue's lists of both, page by page. */
  readonly pastFills = new Past<Fill>(fillKey, (fills) => this.addFills(fills).length, () => this.fills.value.length >= PAST_KEPT);
  readonly pastOrders = new Past<OrderState>(closedKey, (orders) => this.#addClosed(orders), () => this.closed.value.length >= PAST_KEPT);
  readonly history = new OrderHistory();
  /** Keys of orders that were linked, of which not both are known yet. */
  #pairs: string[][] = [];
  readonly #nowNs: () => bigint;
  readonly #fillKeys = new Set<string>();
  readonly #closedKeys = new Set<string>();
  /** The entries of exits that were sent and not heard of yet, by the exits' keys: what the venue says as it goes names no entries. */
  readonly #expected = new Map<string, string>();

  constructor(nowNs: () => bigint) {
    this.#nowNs = nowNs;
  }

  /** Returns the fills that are new. */
  apply(message: WsAccount): Fill[] {
    const fresh = message.kind === "snapshot";
    if (message.balances) {
      const balances = fresh ? new Map<string, Balance>() : this.balances.value;
      for (const balance of message.balances) balances.set(balance.asset, balance);
      this.balances.value = balances;
    }
    if (message.positions) this.applyPositions(message.positions, fresh);
    if (message.orders || message.order_updates) this.#applyOrders(message, fresh);
    return message.fills ? this.addFills(message.fills) : [];
  }

  applyPositions(list: Position[], fresh: boolean): void {
    const positions = fresh ? new Map<string, Position>() : this.positions.value;
    for (const position of list) positions.set(position.instrument, position);
    this.positions.value = positions;
  }

  /** Adds what is not known yet, whichever way it came, and returns what was new. */
  addFills(fills: Fill[]): Fill[] {
    const added = fills.filter((fill) => isNew(this.#fillKeys, fillKey(fill)));
    if (added.length > 0) this.fills.value = merged(this.fills.value, added, byTradeNewestFirst);
    return added;
  }

  #addClosed(orders: OrderState[]): number {
    const added = orders.filter((order) => isNew(this.#closedKeys, closedKey(order)));
    if (added.length > 0) this.closed.value = merged(this.closed.value, added, byEndNewestFirst);
    return added.length;
  }

  /** Two orders of which one cancels the other, by what the venue answered: its messages name partners only in snapshots. */
  link(instrument: string, ids: [string, string]): void {
    this.#pairs.push(ids.map((client_order_id) => orderKey({ instrument, client_order_id })));
    if (this.#pairs.length > PAIRS_MAX) this.#pairs.shift();
    const orders = this.orders.value;
    this.#linkPairs(orders);
    this.orders.value = orders;
  }

  /** The answer may be here before the news of the order. */
  #linkPairs(orders: Map<string, Order>): void {
    this.#pairs = this.#pairs.filter(([first = "", second = ""]) => {
      const [one, other] = [orders.get(first), orders.get(second)];
      if (!one || !other) return true;
      one.linked_order_id = other.order_id;
      other.linked_order_id = one.order_id;
      return false;
    });
  }

  /** Exits that are about to be sent, of the entry of that client order id. */
  expectExits(instrument: string, entry: string, ids: string[]): void {
    for (const client_order_id of ids) this.#expected.set(orderKey({ instrument, client_order_id }), entry);
  }

  clear(state: SignedIn): void {
    this.#expected.clear();
    this.balances.value = new Map();
    this.positions.value = new Map();
    this.orders.value = new Map();
    this.#fillKeys.clear();
    this.#closedKeys.clear();
    this.fills.value = [];
    this.closed.value = [];
    for (const past of [this.pastFills, this.pastOrders]) past.start(null);
    this.hasPastFills.value = false;
    this.history.clear();
    this.state.value = state;
  }

  #applyOrders(message: WsAccount, fresh: boolean): void {
    const orders = fresh ? new Map<string, Order>() : this.orders.value;
    for (const order of message.orders ?? []) orders.set(orderKey(order), order);
    const traded = new Set(message.fills?.map(orderKey));
    for (const update of message.order_updates ?? []) {
      this.history.onUpdate(orders.get(orderKey(update)), update, traded.has(orderKey(update)), this.#nowNs());
      const key = orderKey(update);
      const wasHeld = orders.get(key)?.is_held;
      applyUpdate(orders, update);
      const order = orders.get(key);
      const entry = this.#expected.get(key);
      this.#expected.delete(key);
      if (order && entry !== undefined) {
        order.exit_of = entry;
        order.is_held = order.linked_order_id == null && !traded.has(orderKey({ ...update, client_order_id: entry }));
      } else if (order && wasHeld) {
        // Nothing but what its entry has filled changes an exit that is held.
        order.is_held = false;
      } else if (!order) freeExits(orders, update);
      if (order?.is_held === false) pair(exitsOf(orders, { ...order, client_order_id: order.exit_of ?? "" }));
    }
    this.#linkPairs(orders);
    this.orders.value = orders;
  }
}

/** An order leaves the list when the venue says that it ended, or that nothing of it is open. */
function applyUpdate(orders: Map<string, Order>, update: OrderUpdate): void {
  const key = orderKey(update);
  const { status, reason: _, ...changes } = update;
  const known = orders.get(key);
  if (!known && (changes.side === undefined || changes.open === undefined)) return;
  const next = { ...known, ...changes } as Order;
  // A pair stays one until one of them is gone; not all news of them names the other.
  if (changes.linked_order_id == null && known?.linked_order_id != null) next.linked_order_id = known.linked_order_id;
  if (!hasEnded({ status, open: next.open })) {
    orders.set(key, next);
    // The earlier order of a pair has no update of its own when the later one enters.
    if (changes.linked_order_id != null) link(orders, changes.linked_order_id, next.order_id);
  } else if (orders.delete(key)) part(orders, next.linked_order_id);
}

/** The order with which the one that is gone was linked stands by itself, if it stands. */
function part(orders: Map<string, Order>, orderId: string | null | undefined): void {
  if (orderId != null) link(orders, orderId, null);
}

/** Exits whose entry is gone are orders like any others. */
function freeExits(orders: Map<string, Order>, entry: { instrument: string; client_order_id: string }): void {
  const exits = exitsOf(orders, entry);
  pair(exits);
  for (const order of exits) {
    delete order.exit_of;
    delete order.is_held;
  }
}

function exitsOf(orders: Map<string, Order>, entry: { instrument: string; client_order_id: string }): Order[] {
  return [...orders.values()].filter((order) => order.exit_of === entry.client_order_id && order.instrument === entry.instrument);
}

/** Two exits that stand for something cancel each other: the venue's news of them does not say so. */
function pair(exits: Order[]): void {
  const [one, other] = exits;
  if (!one || !other) return;
  one.linked_order_id = other.order_id;
  other.linked_order_id = one.order_id;
}

function link(orders: Map<string, Order>, orderId: string, other: string | null): void {
  for (const order of orders.values()) if (order.order_id === orderId) order.linked_order_id = other;
}

export function orderKey(order: { instrument: string; client_order_id: string }): string {
  return `${order.instrument} ${order.client_order_id}`;
}

function fillKey(fill: Fill): string {
  return `${fill.instrument} ${fill.trade_id} ${fill.order_id}`;
}

function closedKey({ instrument, order_id }: { instrument: string; order_id: string }): string {
  return `${instrument} ${order_id}`;
}

function isNew(known: Set<string>, key: string): boolean {
  const before = known.size;
  return known.add(key).size > before;
}

function byTradeNewestFirst(a: Fill, b: Fill): number {
  return compareTexts(b.time_ns, a.time_ns) || compareTexts(b.trade_id, a.trade_id);
}

function byEndNewestFirst(a: OrderState, b: OrderState): number {
  return compareTexts(b.ended_at_ns ?? "", a.ended_at_ns ?? "") || compareTexts(b.order_id, a.order_id);
}

/** Both lists in `order`. What comes is mostly newer than all that is known, or older: then it is put in front, or behind. */
function merged<T>(known: T[], added: T[], order: (a: T, b: T) => number): T[] {
  const fresh = [...added].sort(order);
  const [first, last, newest, oldest] = [fresh[0], fresh.at(-1), known[0], known.at(-1)];
  if (first === undefined || last === undefined) return known;
  if (newest === undefined || oldest === undefined || order(last, newest) < 0) return [...fresh, ...known];
  if (order(oldest, first) < 0) return [...known, ...fresh];
  return [...fresh, ...known].sort(order);
}

/** Orders strings of digits as numbers. */
function compareTexts(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}
