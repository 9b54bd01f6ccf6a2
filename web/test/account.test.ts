import assert from "node:assert/strict";
import { test } from "node:test";
import type { Fill, Order, OrderUpdate } from "walras";
import { Account } from "../src/state/account.ts";
import { eventText, linesOf } from "../src/state/order-history.ts";
import * as whole from "./whole.ts";

const order = (id: string, open = "1.0"): Order => whole.order({ order_id: `9${id}`, client_order_id: id, open, shown: open });
const fill = (trade: string, timeNs = "1700000000000000000"): Fill => whole.fill({ trade_id: trade, time_ns: timeNs });
const open = (account: Account): string[] => [...account.orders.value.values()].map((each) => `${each.client_order_id}:${each.open}`);

test("orders come, change and go as the venue says", () => {
  const account = new Account(() => 7n);
  account.apply({ type: "account", kind: "snapshot", orders: [order("1")], balances: [] });
  account.apply({ type: "account", kind: "update", order_updates: [{ ...order("2"), status: "resting" }] });
  account.apply({ type: "account", kind: "update", order_updates: [whole.orderUpdate({ open: "0.4", status: "partially_filled" })] });
  assert.deepEqual(open(account), ["1:0.4", "2:1.0"]);
  assert.equal(account.orders.value.get("BTC/USD 1")?.price, "10.00");
  account.apply({
    type: "account", kind: "update", order_updates: [{ ...order("1", "0.0"), status: "filled" }, { ...order("2"), status: "cancelled" }],
  });
  assert.deepEqual(open(account), []);
});

test("orders that were linked name each other once both are known", () => {
  const account = new Account(() => 7n);
  account.apply({ type: "account", kind: "snapshot", orders: [order("1")] });
  account.link("BTC/USD", ["2", "1"]);
  assert.deepEqual([...account.orders.value.values()].map((each) => each.linked_order_id), [null]);
  account.apply({ type: "account", kind: "update", order_updates: [{ ...order("2"), status: "resting" }] });
  assert.deepEqual([...account.orders.value.values()].map((each) => each.linked_order_id), ["92", "91"]);
});

test("two linked orders name each other until one is gone", () => {
  const account = new Account(() => 7n);
  const partners = (): (string | null | undefined)[] => [...account.orders.value.values()].map((each) => each.linked_order_id);
  account.apply({
    type: "account",
    kind: "snapshot",
    orders: [order("1"), order("2"), { ...order("3"), linked_order_id: "94" }, { ...order("4"), linked_order_id: "93" }],
  });
  account.link("BTC/USD", ["2", "1"]);
  assert.deepEqual(partners(), ["92", "91", "94", "93"]);
  account.apply({
    type: "account",
    kind: "update",
    order_updates: [
      { ...order("3", "0"), status: "filled" },
      { ...order("1", "0"), status: "cancelled", reason: "linked" },
    ],
  });
  assert.deepEqual(partners(), [null, null]);
});

test("an order with nothing open is gone whatever its status", () => {
  const account = new Account(() => 7n);
  account.apply({ type: "account", kind: "update", order_updates: [{ ...order("3", "0.000"), status: "partially_filled" }] });
  assert.deepEqual(open(account), []);
});

test("a snapshot after a reconnect replaces what was known", () => {
  const account = new Account(() => 7n);
  account.apply({ type: "account", kind: "snapshot", orders: [order("1")], balances: [{ asset: "USD", available: "1", reserved: "0" }] });
  account.apply({ type: "account", kind: "snapshot", orders: [order("2")], balances: [{ asset: "BTC", available: "1", reserved: "0" }] });
  assert.deepEqual(open(account), ["2:1.0"]);
  assert.deepEqual([...account.balances.value.keys()], ["BTC"]);
});

test("more of a snapshot adds to it, and an update between its parts stays", () => {
  const account = new Account(() => 7n);
  account.apply({
    type: "account", kind: "snapshot", has_more: true, orders: [order("1")], balances: [{ asset: "USD", available: "1", reserved: "0" }],
  });
  account.apply({ type: "account", kind: "update", order_updates: [{ ...order("1", "0.3"), status: "partially_filled" }] });
  account.apply({ type: "account", kind: "more", has_more: false, orders: [order("2")], offers: [] });
  assert.deepEqual(open(account), ["1:0.3", "2:1.0"]);
  assert.deepEqual([...account.balances.value.keys()], ["USD"]);
});

test("a fill is counted once, whichever ways it comes, newest first by number", () => {
  const account = new Account(() => 7n);
  assert.equal(account.addFills([fill("9"), fill("10")]).length, 2);
  assert.equal(account.apply({ type: "account", kind: "update", fills: [fill("10"), fill("11", "1700000000000000001")] }).length, 1);
  assert.deepEqual(account.fills.value.map(({ trade_id }) => trade_id), ["11", "10", "9"]);
});

test("what became of orders is remembered, as it came, newest first", () => {
  const account = new Account(() => 7n);
  account.apply({ type: "account", kind: "snapshot", orders: [order("1")], balances: [] });
  const update = (...order_updates: OrderUpdate[]): void => void account.apply({ type: "account", kind: "update", order_updates });
  update({ ...order("2"), status: "resting" });
  update(whole.orderUpdate({ price: "9.50", open: "0.8" }));
  update(whole.orderUpdate({ price: "9.50", open: "0.8" }));
  account.apply({ type: "account", kind: "update", fills: [fill("9")], order_updates: [whole.orderUpdate({ open: "0.3" })] });
  update({ ...order("1", "0"), price: "9.50", status: "filled" }, { ...order("2", "0"), status: "cancelled", reason: "requested" });
  update({ ...order("3", "0"), side: "sell", type: "market", price: null, status: "cancelled", reason: "self_trade" });
  account.history.onRefused(
    { instrument: "BTC/USD", side: "buy", type: "stop_limit", size: "2.50", price: "11.00", trigger: "10.50" }, 60, "InsufficientFunds",
    7n,
  );
  const lines = account.history.events.value.map((event) => `${eventText(event)}: ${event.what}`);
  assert.deepEqual(lines, [
    "▲ Buy 2.5 BTC at 11.00, stop limit at 10.50: Refused, no. 60: insufficient funds", "▼ Sell BTC at market: Cancelled: self trade",
    "▲ Buy 1 BTC at 10.00: Cancelled", "▲ Buy 0.3 BTC at 9.50: Filled",
    "▲ Buy 0.3 BTC at 9.50: Traded in part, 0.3 left", "▲ Buy 0.8 BTC at 9.50: Amended from 10.00, from 1", "▲ Buy 1 BTC at 10.00: Placed",
  ]);
  account.clear("no_key");
  assert.deepEqual(account.history.events.value, []);
});

test("no order ends before it is placed, though the page's clock runs ahead of the venue's", () => {
  let nowNs = 20n;
  const account = new Account(() => nowNs);
  account.apply({ type: "account", kind: "snapshot", orders: [], balances: [] });
  const update = (order_update: OrderUpdate): void => void account.apply({ type: "account", kind: "update", order_updates: [order_update] });
  for (const id of ["1", "2"]) {
    update({ ...order(id), status: "resting" });
    nowNs += 1n;
    update({ ...order(id, "0"), status: "cancelled", reason: "requested" });
  }
  const ends: [string, string][] = [["92", "15"], ["91", "12"]];
  const closed = ends.map(([order_id, ended_at_ns]) => whole.orderState({ order_id, ended_at_ns, status: "cancelled", filled: null }));
  const lines = linesOf(account.history.events.value, closed).map(({ orderId, timeNs, what }) => `${orderId} ${timeNs} ${what}`);
  assert.deepEqual(lines, ["92 15 Cancelled", "92 14 Placed", "91 12 Cancelled", "91 11 Placed"]);
});

test("another trigger is an amendment, but that of a trailing stop moves by itself", () => {
  const account = new Account(() => 7n);
  const stop = (id: string, type: Order["type"]): Order => ({ ...order(id), side: "sell", type, price: null, trigger: "9.00" });
  const orders = [stop("1", "stop"), stop("2", "trailing_stop"), { ...stop("3", "stop_limit"), price: "8.90" }];
  account.apply({ type: "account", kind: "snapshot", orders, balances: [] });
  account.apply({
    type: "account", kind: "update", order_updates: [
      { ...stop("1", "stop"), trigger: "8.50", status: "waiting_trigger" },
      { ...stop("2", "trailing_stop"), trigger: "9.50", status: "waiting_trigger" },
      { ...stop("3", "stop_limit"), price: "8.40", trigger: "8.50", status: "waiting_trigger" },
    ],
  });
  const whats = account.history.events.value.map(({ what }) => what);
  assert.deepEqual(whats, ["Amended from 8.90 (limit), from 9.00 (trigger)", "Amended from 9.00 (trigger)"]);
  assert.deepEqual([...account.orders.value.values()].map(({ trigger }) => trigger), ["8.50", "9.50", "8.50"]);
});

test("exits wait for their entry until it trades, and are by themselves once it is gone", () => {
  const account = new Account(() => 7n);
  const exit = (id: string, open = "1.0"): Order => ({ ...order(id, open), side: "sell", type: "stop", price: null, trigger: "9.00" });
  const sells = () => [...account.orders.value.values()].filter(({ side }) => side === "sell");
  const held = (): unknown[] => sells().map((each) => [each.exit_of, each.is_held]);
  const update = (...order_updates: OrderUpdate[]): void => void account.apply({ type: "account", kind: "update", order_updates });
  account.apply({ type: "account", kind: "snapshot", orders: [{ ...exit("5"), exit_of: "6", is_held: true }] });
  account.expectExits("BTC/USD", "3", ["1"]);
  update({ ...exit("1"), status: "waiting_trigger" }, { ...order("3"), status: "resting" });
  assert.deepEqual(held(), [["6", true], ["3", true]]);
  update({ ...exit("1", "0.4"), status: "waiting_trigger" }, { ...order("3", "0.6"), status: "partially_filled" });
  assert.deepEqual(held(), [["6", true], ["3", false]]);
  update({ ...exit("1"), status: "waiting_trigger" }, { ...order("3", "0.0"), status: "filled" });
  assert.deepEqual(held(), [["6", true], [undefined, undefined]]);
  // A pair whose entry was filled at once: the venue does not say that one cancels the other.
  account.expectExits("BTC/USD", "9", ["7", "8"]);
  update(
    { ...exit("7"), linked_order_id: null, status: "waiting_trigger" },
    { ...exit("8"), linked_order_id: null, status: "waiting_trigger" },
    { ...order("9", "0.0"), status: "filled" },
  );
  assert.deepEqual(held().slice(2), [[undefined, undefined], [undefined, undefined]]);
  assert.deepEqual([...account.orders.value.values()].slice(-2).map((each) => each.linked_order_id), ["98", "97"]);
});
