import assert from "node:assert/strict";
import { test } from "node:test";
import { type Instrument, type OrderReply, OutcomeUnknown, Refusal } from "../src/api/types.ts";
import { Units } from "../src/state/market.ts";
import { describeEnd, describeError, describeReply } from "../src/state/outcome.ts";

const instrument: Instrument = {
  instrument_id: 0, symbol: "BTC/USD", base: "BTC", quote: "USD", tick_size: "0.01", lot_size: "0.001", price_decimals: 2, size_decimals: 3,
  maker_fee_ppm: 0, taker_fee_ppm: 400, phase: "continuous", reference_price: null, last_price: null,
};
const units = new Units(instrument, []);
const reply = (status: string, sizes: [string, string][], reason?: string): OrderReply => ({
  log_index: "7", time_ns: "1", order_id: "7", client_order_id: "1", status, open: "0.500",
  fills: sizes.map(([size, price], index) => ({ trade_id: String(index), size, price, fee: "0" })), ...(reason === undefined ? {} : { reason }),
});
const say = (answer: OrderReply): string => {
  const { tone, title, text } = describeReply(units, "buy", "0.500", answer);
  return `${tone}: ${title}. ${text}`;
};

test("an order's outcome is shown with exact sums", () => {
  assert.equal(say(reply("filled", [["0.100", "10.00"], ["0.200", "10.01"], ["0.200", "10.02"]])), "good: Filled. Bought 0.5 of 0.5 BTC at 10.00 to 10.02. Log entry 7.");
  assert.equal(say(reply("partially_filled", [["0.300", "10.00"]])), "good: Partly filled, the rest stands. Bought 0.3 of 0.5 BTC at 10.00. Log entry 7.");
  assert.equal(say(reply("resting", [])), "good: Standing in the book. 0.5 BTC wait for the other side. Log entry 7.");
  assert.equal(say(reply("waiting_trigger", [])), "good: Waiting for its trigger. Log entry 7.");
  assert.equal(say(reply("cancelled", [["0.1", "10.00"]], "unfilled")), "good: Partly filled, the rest cancelled. Bought 0.1 of 0.5 BTC at 10.00. Nothing more stood at a price that fits. Log entry 7.");
  assert.equal(say(reply("cancelled", [], "self_trade")), "plain: Cancelled without a trade. It would have traded with an order of your own. Log entry 7.");
  assert.equal(say(reply("cancelled", [], "some_new_reason")), "plain: Cancelled without a trade. Some new reason. Log entry 7.");
});

test("a refusal keeps its number, advice and detail", () => {
  const refusal = new Refusal({ code: 48, name: "PriceOutsideCollar", message: "The limit price is too far.", detail: "price: 99" });
  assert.deepEqual(describeError(refusal), { title: "Refused, no. 48: Price outside collar", text: "The limit price is too far. price: 99" });
  assert.equal(describeError(new OutcomeUnknown()).title, "No answer");
  assert.equal(describeError(new Error("x")).title, "Not sent");
});

test("only an end that nobody asked for is announced", () => {
  const end = (reason: string): string | undefined =>
    describeEnd({ instrument: "BTC/USD", client_order_id: "1", side: "sell", status: "cancelled", reason })?.title;
  assert.equal(end("expired"), "Your sell order in BTC/USD was cancelled");
  for (const asked of ["requested", "mass_cancelled", "unfilled"]) assert.equal(end(asked), undefined);
  assert.equal(describeEnd({ instrument: "BTC/USD", client_order_id: "1", status: "filled" }), null);
});
