// What is private: balances, positions, open orders, fills. The venue's messages are the truth; nothing here is guessed ahead.

import type { AccountMessage, Balance, Fill, OpenOrder, OrderUpdate, Position } from "../api/types.ts";
import { Signal } from "../base/signal.ts";
import { OrderHistory } from "./order-history.ts";

/** Beyond these the oldest go, and profit counts from the first that stays. */
const FILLS_KEPT = 5_000;
const ENDED = new Set(["filled", "cancelled", "expired", "rejected"]);

export type SignedIn = "no_key" | "signing_in" | "signed_in" | "refused";

export class Account {
  readonly state = new Signal<SignedIn>("no_key");
  keyId = "";
  readonly balances = new Signal<Map<string, Balance>>(new Map());
  readonly positions = new Signal<Map<string, Position>>(new Map());
  /** By instrument and client order id. */
  readonly orders = new Signal<Map<string, OpenOrder>>(new Map());
  /** Newest first. */
  readonly fills = new Signal<Fill[]>([]);
  /** The past ones are among them, as far as the venue lists them. */
  readonly hasPastFills = new Signal(false);
  readonly history = new OrderHistory();
  readonly #nowNs: () => bigint;
  /** The entries of exits that were sent and not heard of yet, by the exits' keys: what the venue says as it goes names no entries. */
  readonly #expected = new Map<string, string>();

  constructor(nowNs: () => bigint) {
    this.#nowNs = nowNs;
  }

  /** Returns the fills that are new. */
  apply(message: AccountMessage): Fill[] {
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

  /** Adds what is not known yet, whichever way it came, keeps the newest, and returns what was new. */
  addFills(fills: Fill[]): Fill[] {
    const known = new Set(this.fills.value.map(fillKey));
    const added = fills.filter((fill) => !known.has(fillKey(fill)));
    if (added.length === 0) return [];
    const all = [...this.fills.value, ...added];
    all.sort((a, b) => compareTexts(b.time_ns, a.time_ns) || compareTexts(b.trade_id, a.trade_id));
    this.fills.value = all.slice(0, FILLS_KEPT);
    return added;
  }

  /** Two orders of which one cancels the other, by what the venue answered: its messages name partners only in snapshots. */
  link(instrument: string, ids: [string, string]): void {
    const orders = this.orders.value;
    const pair = ids.map((client_order_id) => orders.get(orderKey({ instrument, client_order_id })));
    const [one, other] = pair;
    if (!one || !other) return;
    one.linked_order_id = other.order_id;
    other.linked_order_id = one.order_id;
    this.orders.value = orders;
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
    this.fills.value = [];
    this.hasPastFills.value = false;
    this.history.clear();
    this.state.value = state;
  }

  #applyOrders(message: AccountMessage, fresh: boolean): void {
    const orders = fresh ? new Map<string, OpenOrder>() : this.orders.value;
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
    this.orders.value = orders;
  }
}

/** An order leaves the list when the venue says that it ended, or that nothing of it is open. */
function applyUpdate(orders: Map<string, OpenOrder>, update: OrderUpdate): void {
  const key = orderKey(update);
  const { status, reason: _, ...changes } = update;
  const known = orders.get(key);
  if (!known && (changes.side === undefined || changes.open === undefined)) return;
  const next = { ...known, ...changes } as OpenOrder;
  // A pair stays one until one of them is gone; not all news of them names the other.
  if (changes.linked_order_id == null && known?.linked_order_id != null) next.linked_order_id = known.linked_order_id;
  const ended = ENDED.has(status) || !/[1-9]/.test(next.open);
  if (!ended) {
    orders.set(key, next);
    // The earlier order of a pair has no update of its own when the later one enters.
    if (changes.linked_order_id != null) link(orders, changes.linked_order_id, next.order_id);
  } else if (orders.delete(key)) part(orders, next.linked_order_id);
}

/** The order with which the one that is gone was linked stands by itself, if it stands. */
function part(orders: Map<string, OpenOrder>, orderId: string | null | undefined): void {
  if (orderId != null) link(orders, orderId, null);
}

/** Exits whose entry is gone are orders like any others. */
function freeExits(orders: Map<string, OpenOrder>, entry: { instrument: string; client_order_id: string }): void {
  const exits = exitsOf(orders, entry);
  pair(exits);
  for (const order of exits) {
    delete order.exit_of;
    delete order.is_held;
  }
}

function exitsOf(orders: Map<string, OpenOrder>, entry: { instrument: string; client_order_id: string }): OpenOrder[] {
  return [...orders.values()].filter((order) => order.exit_of === entry.client_order_id && order.instrument === entry.instrument);
}

/** Two exits that stand for something cancel each other: the venue's news of them does not say so. */
function pair(exits: OpenOrder[]): void {
  const [one, other] = exits;
  if (!one || !other) return;
  one.linked_order_id = other.order_id;
  other.linked_order_id = one.order_id;
}

function link(orders: Map<string, OpenOrder>, orderId: string, other: string | null): void {
  for (const order of orders.values()) if (order.order_id === orderId) order.linked_order_id = other;
}

export function orderKey(order: { instrument: string; client_order_id: string }): string {
  return `${order.instrument} ${order.client_order_id}`;
}

function fillKey(fill: Fill): string {
  return `${fill.instrument} ${fill.trade_id} ${fill.order_id}`;
}

/** Orders strings of digits as numbers. */
function compareTexts(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}
