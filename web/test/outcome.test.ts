import assert from "node:assert/strict";
import { test } from "node:test";
import { type CancelReason, type OrderAnswer, type OrderStatus, OutcomeUnknown, Refused } from "walras";
import { Units } from "../src/state/market.ts";
import { describeEnd, describeError, describeReply } from "../src/state/outcome.ts";
import { instrument, orderAnswer, orderUpdate } from "./whole.ts";

const units = new Units(instrument(), []);
/** A venue may have a reason that the page does not know yet. */
const reply = (status: OrderStatus, sizes: [string, string][], reason?: string): OrderAnswer => orderAnswer({
  status, fills: sizes.map(([size, price], index) => ({ trade_id: String(index), size, price, fee: "0", fee_asset: "USD" })),
  ...(reason === undefined ? {} : { reason: reason as CancelReason }),
});
const say = (answer: OrderAnswer): string => {
  const { tone, title, text } = describeReply(units, "buy", "0.500", answer);
  return `${tone}: ${title}. ${text}`;
};

test("an order's outcome is shown with exact sums", () => {
  assert.equal(
    say(reply("filled", [["0.100", "10.00"], ["0.200", "10.01"], ["0.200", "10.02"]])),
    "good: Filled. Bought 0.5 of 0.5 BTC at 10.00 to 10.02. Log entry 7.",
  );
  assert.equal(
    say(reply("partially_filled", [["0.300", "10.00"]])),
    "good: Partly filled, the rest stands. Bought 0.3 of 0.5 BTC at 10.00. Log entry 7.",
  );
  assert.equal(say(reply("resting", [])), "good: Standing in the book. 0.5 BTC wait for the other side. Log entry 7.");
  assert.equal(say(reply("waiting_trigger", [])), "good: Waiting for its trigger. Log entry 7.");
  assert.equal(
    say(reply("cancelled", [["0.1", "10.00"]], "unfilled")),
    "good: Partly filled, the rest cancelled. Bought 0.1 of 0.5 BTC at 10.00. No more orders stood at a price that it accepts. " +
      "Log entry 7.",
  );
  assert.equal(
    say(reply("cancelled", [], "self_trade")),
    "plain: Cancelled without a trade. It would have traded with an order of your own. Log entry 7.",
  );
  assert.equal(say(reply("cancelled", [], "some_new_reason")), "plain: Cancelled without a trade. Some new reason. Log entry 7.");
});

test("a refusal keeps its number, advice and detail", () => {
  const refusal = new Refused({ code: 48, name: "PriceOutsideCollar", message: "The limit price is too far.", detail: "price: 99" });
  assert.deepEqual(
    describeError(refusal), { title: "Refused, no. 48: Price outside collar", text: "The limit price is too far. price: 99" },
  );
  assert.equal(describeError(new OutcomeUnknown()).title, "No answer");
  assert.equal(describeError(new Error("x")).title, "Not sent");
});

test("only an end that nobody asked for is announced", () => {
  const end = (reason: CancelReason): string | undefined => describeEnd(orderUpdate({ side: "sell", status: "cancelled", reason }))?.title;
  assert.equal(end("expired"), "Your sell order in BTC/USD was cancelled");
  for (const asked of ["requested", "mass_cancelled", "unfilled"] as const) assert.equal(end(asked), undefined);
  assert.equal(describeEnd(orderUpdate({ status: "filled" })), null);
});
