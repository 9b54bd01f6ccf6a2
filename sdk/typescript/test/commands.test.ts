import assert from "node:assert/strict";
import { test } from "node:test";
import { amend, cancel, checkNumbered, exit, massCancel, nameText, type NewOrder, order, pathSymbol } from "../src/commands.ts";

const base = { instrument: "BTC-USD", side: "buy", size: "0.5" } as const;

test("an order's type follows from what it has", () => {
  for (const [more, type] of [
    [{}, "market"], [{ price: "1" }, "limit"], [{ trigger: "1" }, "stop"], [{ trigger: "1", price: "2" }, "stop_limit"],
    [{ trail: "1" }, "trailing_stop"], [{ trail_ppm: 5 }, "trailing_stop"], [{ trail: 1n, price: "3" }, "trailing_stop_limit"],
    [{ trigger: "1", type: "take_profit" }, "take_profit"],
  ] as [Partial<NewOrder>, string][]) {
    assert.equal(order({ ...base, ...more }).type, type, type);
  }
});

test("quantities and names become text, and other fields stay", () => {
  const terms = { ...base, price: "49950", oco_with: "a b", post_only: "reject", time_in_force: "gtt" } as const;
  assert.deepEqual(order({ ...terms, size: 2n, client_order_id: 7, expire_time_ns: 5n }), {
    op: "order", ...terms, type: "limit", size: "2", client_order_id: "7", expire_time_ns: "5",
  });
  assert.deepEqual(amend("BTC-USD", 7n, { size: "0.1" }), { op: "amend", instrument: "BTC-USD", client_order_id: "7", size: "0.1" });
  assert.deepEqual(cancel("BTC/USD", "bid"), { op: "cancel", instrument: "BTC/USD", client_order_id: "bid" });
  assert.deepEqual([massCancel(), massCancel({ side: "sell" })], [{ op: "mass_cancel" }, { op: "mass_cancel", side: "sell" }]);
  assert.deepEqual(exit("stop_loss", { trigger: "5", price: 4n, client_order_id: 9 }), { trigger: "5", price: "4", client_order_id: "9" });
  assert.equal(pathSymbol("BTC/USD"), "BTC-USD");
});

test("an order has its exits, which no number goes with", () => {
  const entry = order({ ...base, take_profit: { trigger: 55_000n }, stop_loss: { trigger: "48000", price: "47900", client_order_id: 3 } });
  assert.deepEqual(entry, {
    op: "order", ...base, type: "market", take_profit: { trigger: "55000" },
    stop_loss: { trigger: "48000", price: "47900", client_order_id: "3" },
  });
  assert.throws(() => checkNumbered([massCancel(), entry]), /TypeError: take_profit: a session sends no exits/);
  assert.throws(() => checkNumbered([order({ ...base, stop_loss: { trigger: "1" } })]), /TypeError: stop_loss/);
  assert.doesNotThrow(() => checkNumbered([order(base), cancel("BTC/USD", "bid")]));
});

test("floats and what names no order are refused before anything is sent", () => {
  assert.throws(() => order({ ...base, size: 0.5 as unknown as string }), /TypeError: size/);
  assert.throws(() => order({ ...base, price: 1 as unknown as string }), /TypeError: price/);
  assert.throws(() => order({ ...base, take_profit: { trigger: 1 as unknown as string } }), /TypeError: take_profit\.trigger/);
  for (const wrong of [1.5, Number.NaN, 2 ** 53, null, {}]) {
    assert.throws(() => nameText("client_order_id", wrong as number), /names no order/);
  }
});
