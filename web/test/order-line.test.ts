// What is changed where an order's line is dragged, or its row amended.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Order } from "walras";
import { changeOf, lineOf, type OrderLine } from "../src/state/order-line.ts";
import { order } from "./whole.ts";

const of = (type: Order["type"], price: string | null, trigger: string | null): OrderLine | null => lineOf(order({ type, price, trigger }));

test("an order with a limit is moved by its price, a stop without one by its trigger", () => {
  assert.deepEqual(of("limit", "10.00", null), { field: "price", at: "10.00" });
  assert.deepEqual(of("stop_limit", "10.00", "9.50"), { field: "price", at: "10.00" });
  assert.deepEqual(of("trailing_stop_limit", "10.00", "9.50"), { field: "price", at: "10.00" });
  assert.deepEqual(of("stop", null, "9.50"), { field: "trigger", at: "9.50" });
  assert.deepEqual(of("take_profit", null, "11.00"), { field: "trigger", at: "11.00" });
});

test("nothing of a trailing stop without a limit is moved, nor of an order without any price", () => {
  assert.equal(of("trailing_stop", null, "9.50"), null);
  assert.equal(of("market", null, null), null);
  const { type: _, price: __, trigger: ___, ...rest } = order();
  assert.equal(lineOf(rest as Order), null, "an update alone does not say what an order's terms are");
});

test("what is asked of the venue is the one that changes", () => {
  assert.deepEqual(changeOf({ field: "price", at: "10.00" }, "9.00"), { price: "9.00" });
  assert.deepEqual(changeOf({ field: "trigger", at: "9.50" }, "9.00"), { trigger: "9.00" });
});
