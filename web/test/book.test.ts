import assert from "node:assert/strict";
import { test } from "node:test";
import type { BookLevel, Side } from "walras";
import { grouped, sizeWithin } from "../src/state/book.ts";

const level = (price: bigint, size: bigint, orderCount: number): BookLevel => ({ price, size, orderCount });

test("joined steps round away from the other side and keep all size", () => {
  const levels: Record<Side, BookLevel[]> = {
    buy: [level(9_999n, 10_000n, 1), level(9_991n, 20_000n, 1), level(9_980n, 40_000n, 2)],
    sell: [level(10_001n, 10_000n, 1), level(10_010n, 20_000n, 1), level(10_011n, 40_000n, 1)],
  };
  const rows = (side: Side): [bigint, bigint, number][] =>
    grouped(levels[side], side, 10n, 10).map(({ price, size, orderCount }) => [price, size, orderCount]);
  assert.deepEqual(rows("buy"), [[9_990n, 30_000n, 2], [9_980n, 40_000n, 2]]);
  assert.deepEqual(rows("sell"), [[10_010n, 30_000n, 2], [10_020n, 40_000n, 1]]);
  assert.equal(grouped(levels.buy, "buy", 10n, 1).length, 1);
});

test("size within reach of the middle", () => {
  const bids = [level(9_950n, 10_000n, 1), level(9_900n, 20_000n, 1), level(9_899n, 40_000n, 1)];
  assert.equal(sizeWithin(bids, 10_000n, 10_000n), 30_000n);
  assert.equal(sizeWithin(bids, 10_000n, 0n), 0n);
});
