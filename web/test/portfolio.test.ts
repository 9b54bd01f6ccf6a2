import assert from "node:assert/strict";
import test from "node:test";
import type { Fill } from "walras";
import { csv, isoTime } from "../src/base/csv.ts";
import * as whole from "./whole.ts";
import { convert, type Part, rateOf, resultOf, resultsByAsset, unrealised } from "../src/state/portfolio.ts";
import { assetLines } from "../src/state/valuation.ts";

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
  const result = resultOf(
    "BTC/USD", [fill("buy", "1.0000", "100.00"), fill("sell", "3.0000", "110.00"), fill("buy", "1.0000", "90.00")], SCALE,
  );
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
    const fills = Array.from(
      { length: 1 + next(30) },
      () => fill(
        next(2) === 0 ? "buy" : "sell", `${next(3)}.${String(1 + next(9_999)).padStart(4, "0")}`,
        `${1 + next(500)}.${String(next(100)).padStart(2, "0")}`,
      ),
    );
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

const part = (base: string, quote: string, realised: bigint, open: bigint | null, fees: bigint): Part =>
  ({ base, quote, result: { realised, fees }, unrealised: open });

test("an instrument's profit counts for its base asset, in the asset that is counted in", () => {
  const decimals = (asset: string): number => ({ USD: 2, EUR: 2, BTC: 8, ETH: 8 })[asset] ?? 0;
  const rates = [rateOf("BTC", "USD", "30000.00", decimals), rateOf("EUR", "USD", "1.10", decimals)];
  const parts = [
    part("BTC", "USD", 150_000n, -20_000n, 3_000n), part("ETH", "BTC", 1_000_000n, -400_000n, 10_000n),
    part("BTC", "EUR", 10_000n, 0n, 101n),
  ];
  const [btc, eth, ...others] = resultsByAsset(parts, "USD", rates);
  // 1 500 and 110 USD; -200; 30 and 1.11, which is rounded down.
  assert.deepEqual(btc, { asset: "BTC", realised: 161_000n, unrealised: -20_000n, fees: 3_111n, profit: 137_889n });
  // 0.01, -0.004 and 0.0001 BTC.
  assert.deepEqual(eth, { asset: "ETH", realised: 30_000n, unrealised: -12_000n, fees: 300n, profit: 17_700n });
  assert.deepEqual(others, [], "nothing counts for an asset that things were only priced in");
});

test("profit by asset adds up to the profit of all instruments", () => {
  const parts = [part("BTC", "USD", 7n, 5n, 1n), part("ETH", "USD", -9n, 4n, 0n), part("BTC", "USD", 2n, 0n, -3n)];
  const all = resultsByAsset(parts, "USD", []).reduce((sum, { profit }) => sum + (profit ?? 0n), 0n);
  assert.equal(all, parts.reduce((sum, { result, unrealised: open }) => sum + result.realised + (open ?? 0n) - result.fees, 0n));
});

test("where one price is missing an asset's profit is not known, rather than part of it", () => {
  const parts = [part("BTC", "USD", 100n, null, 1n), part("BTC", "EUR", 100n, 0n, 1n), part("XAU", "CHF", 100n, 0n, 1n)];
  const rates = [rateOf("EUR", "USD", "1.00", () => 2)];
  assert.deepEqual(resultsByAsset(parts, "USD", rates), [
    { asset: "BTC", realised: 200n, unrealised: null, fees: 2n, profit: null },
    { asset: "XAU", realised: null, unrealised: null, fees: null, profit: null },
  ]);
});

test("what is held is listed in the venue's order, also untraded, and after it what was traded and is gone", () => {
  const held = ["USD", "BTC"].map((asset) => ({ asset, available: 1n, reserved: 0n, value: 1n }));
  const results = resultsByAsset([part("ETH", "USD", 3n, 0n, 0n), part("BTC", "USD", 2n, 0n, 0n)], "USD", []);
  const lines = assetLines(held, results);
  const shown = lines.map(({ asset, value, result }) => [asset, value, result?.profit]);
  assert.deepEqual(shown, [["USD", 1n, undefined], ["BTC", 1n, 2n], ["ETH", 0n, 3n]]);
});

test("tables are exact text, quoted where they must be", () => {
  assert.equal(csv(["a", "b"], [["1.10", 'say "x", y']]), 'a,b\r\n1.10,"say ""x"", y"\r\n');
  assert.equal(isoTime("1795391836819745417"), "2026-11-22T23:57:16.819745417Z");
});
