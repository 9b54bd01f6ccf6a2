import assert from "node:assert/strict";
import test from "node:test";
import type { Fill } from "walras";
import { csv, isoTime } from "../src/base/csv.ts";
import * as whole from "./whole.ts";
import { convert, rateOf, resultOf, unrealised } from "../src/state/portfolio.ts";

const SCALE = { priceDecimals: 2, sizeDecimals: 4, quoteDecimals: 2 };
let count = 0;

function fill(side: "buy" | "sell", size: string, price: string, fee = "0.00"): Fill {
  count += 1;
  return whole.fill({ trade_id: String(count), time_ns: String(1_000 + count), side, price, size, fee, role: "taker" });
}

test("what is sold takes its share of the cost; profit adds up to the cent", () => {
  const fills = [fill("buy", "1.0000", "100.00", "0.10"), fill("buy", "2.0000", "130.00"), fill("sell", "1.0000", "150.00", "0.15")];
  const result = resultOf("BTC/USD", fills.toReversed(), SCALE);
  assert.equal(result.net, 20_000n);
  // 360 for three: the one that was sold cost 120.
  assert.deepEqual([result.realised, result.cost, result.fees, result.trades], [3_000n, 24_000n, 25n, 3]);
  assert.equal(unrealised(result, 14_000n, SCALE), 4_000n);
});

test("a trade that turns the position around closes one side and opens the other", () => {
  const result = resultOf("BTC/USD", [fill("buy", "1.0000", "100.00"), fill("sell", "3.0000", "110.00"), fill("buy", "1.0000", "90.00")], SCALE);
  assert.equal(result.net, -10_000n);
  // 10 on the one that was bought first, 20 on one of the two sold short.
  assert.equal(result.realised, 3_000n);
  assert.equal(result.cost, -11_000n);
  assert.equal(unrealised(result, 10_000n, SCALE), 1_000n);
});

test("whatever the trades, realised less cost is what sales brought less what purchases cost", () => {
  let state = 12345;
  const next = (below: number): number => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) % below;
  for (let round = 0; round < 200; round += 1) {
    const fills = Array.from({ length: 1 + next(30) }, () => fill(next(2) === 0 ? "buy" : "sell", `${next(3)}.${String(1 + next(9_999)).padStart(4, "0")}`, `${1 + next(500)}.${String(next(100)).padStart(2, "0")}`));
    const result = resultOf("BTC/USD", fills, SCALE);
    assert.equal(result.realised - result.cost, result.sold - result.bought);
    if (result.net === 0n) assert.equal(result.cost, 0n);
  }
});

test("an asset is valued by the fewest conversions, and not at all without a price", () => {
  const decimals = (asset: string): number => ({ USD: 2, BTC: 8, ETH: 8, JPY: 0 })[asset] ?? 0;
  const rates = [rateOf("BTC", "USD", "30000.50", decimals), rateOf("ETH", "BTC", "0.05", decimals), rateOf("USD", "JPY", "150", decimals)];
  assert.equal(convert(100_000_000n, "BTC", "USD", rates), 3_000_050n);
  assert.equal(convert(100_000_000n, "ETH", "USD", rates), 150_002n);
  assert.equal(convert(300n, "JPY", "USD", rates), 200n);
  assert.equal(convert(301n, "JPY", "USD", rates), 200n, "rounded down");
  assert.equal(convert(7n, "XAU", "USD", rates), null);
  assert.equal(convert(7n, "USD", "USD", []), 7n);
});

test("tables are exact text, quoted where they must be", () => {
  assert.equal(csv(["a", "b"], [["1.10", 'say "x", y']]), 'a,b\r\n1.10,"say ""x"", y"\r\n');
  assert.equal(isoTime("1795391836819745417"), "2026-11-22T23:57:16.819745417Z");
});
