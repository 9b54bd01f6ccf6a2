// What is changed where an order's line is dragged, or its row amended.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Order } from "walras";
import { changeOf, labelled, linesOf } from "../src/state/order-line.ts";
import { order } from "./whole.ts";

/** What can be changed, and in brackets what cannot. */
const lines = (type: Order["type"], price: string | null, trigger: string | null): string[] =>
  linesOf(order({ type, price, trigger })).map(({ field, at, isMovable }) => (isMovable ? `${field} ${at}` : `(${field} ${at})`));

test("an order is moved by its limit, by its trigger, or by either", () => {
  assert.deepEqual(lines("limit", "10.00", null), ["price 10.00"]);
  assert.deepEqual(lines("stop", null, "9.50"), ["trigger 9.50"]);
  assert.deepEqual(lines("take_profit", null, "11.00"), ["trigger 11.00"]);
  assert.deepEqual(lines("stop_limit", "10.00", "9.50"), ["trigger 9.50", "price 10.00"]);
  assert.deepEqual(lines("take_profit_limit", "10.90", "11.00"), ["trigger 11.00", "price 10.90"]);
});

test("the trigger of a trailing stop is not moved, and an order without any price has no line", () => {
  assert.deepEqual(lines("trailing_stop", null, "9.50"), ["(trigger 9.50)"]);
  assert.deepEqual(lines("trailing_stop_limit", "10.00", "9.50"), ["(trigger 9.50)", "price 10.00"]);
  assert.deepEqual(lines("market", null, null), []);
  const { type: _, price: __, trigger: ___, ...rest } = order();
  assert.deepEqual(linesOf(rest as Order), [], "an update alone does not say what an order's terms are");
});

test("what is asked of the venue is the one that changes", () => {
  assert.deepEqual(changeOf({ field: "price" }, "9.00"), { price: "9.00" });
  assert.deepEqual(changeOf({ field: "trigger" }, "9.00"), { trigger: "9.00" });
});

test("of an order with a trigger it is said which price is meant", () => {
  assert.equal(labelled("▼ 1", "trigger", order({ trigger: "9.50" })), "▼ 1 (trigger)");
  assert.equal(labelled("▼ 1", "price", order({ trigger: "9.50" })), "▼ 1 (limit)");
  assert.equal(labelled("▼ 1", "price", order()), "▼ 1");
});
