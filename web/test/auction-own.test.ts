import assert from "node:assert/strict";
import test from "node:test";
import { AuctionHistory, ownOutcome, ownWords } from "../src/state/auction.ts";
import { Units } from "../src/state/market.ts";
import { instrument } from "./whole.ts";

const units = new Units(instrument({ lot_size: "0.0001", size_decimals: 4, taker_fee_ppm: 0, phase: "pre_open" }), []);

test("one's orders beyond the price trade whole, those at it share, those that wait or are too far do not", () => {
  const order = (side: "buy" | "sell", price: string | null, open: string, trigger: string | null = null) =>
    ({ side, price, open, trigger });
  const outcome = ownOutcome([
    order("buy", "101.00", "1.0000"), order("buy", "100.00", "2.0000"), order("buy", "99.99", "4.0000"), order("buy", null, "8.0000"),
    order("buy", null, "16.0000", "105.00"),
    order("buy", "110.00", "32.0000", "105.00"), order("sell", "99.00", "0.5000"), order("sell", "100.00", "0.2500"),
    order("sell", "100.01", "9.0000"),
  ], 10_000n, units);
  assert.deepEqual(outcome, { bought: 90_000n, sold: 5_000n, maybeBought: 20_000n, maybeSold: 2_500n });
  const words = ownWords(outcome, units).replace(/\s/gu, " ");
  assert.match(words, /^You would buy 9 BTC\. You would sell 0\.5 BTC\. At exactly that price you would buy up to 2 BTC/);
  assert.equal(ownWords(ownOutcome([], 10_000n, units), units), "");
});

test("the path of the price keeps what changed, and begins again", () => {
  const history = new AuctionHistory();
  history.add({ price: 5n, volume: 1n, imbalance: 0n }, 1);
  history.add({ price: 5n, volume: 1n, imbalance: 0n }, 2);
  history.add({ price: 6n, volume: 1n, imbalance: 0n }, 3);
  assert.deepEqual(history.moments.map(({ atMs }) => atMs), [1, 3]);
  history.add(null, 4);
  assert.equal(history.moments.length, 0);
});
