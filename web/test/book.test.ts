import assert from "node:assert/strict";
import { test } from "node:test";
import type { BookMessage, Side, WireLevel } from "../src/api/types.ts";
import { formatUnits } from "../src/base/decimal.ts";
import { Book, grouped, sizeWithin } from "../src/state/book.ts";
import { Random } from "./fake/random.ts";

function message(kind: "snapshot" | "update", feedSeq: number, bids: WireLevel[], asks: WireLevel[]): BookMessage {
  return { type: "book", instrument: "BTC/USD", kind, feed_seq: String(feedSeq), log_index: String(feedSeq * 10), bids, asks };
}

function show(book: Book): [string, string, number][][] {
  return [book.bids, book.asks].map((levels) =>
    levels.map(({ price, size, orderCount }) => [formatUnits(price, 2), formatUnits(size, 4), orderCount]));
}

test("a snapshot replaces, an update sets, zero removes", () => {
  const book = new Book(2, 4);
  assert.equal(book.apply(message("snapshot", 7, [["99.00", "1", 1], ["98.5", "2", 3]], [["100.00", "4", 2]])), "applied");
  assert.equal(book.apply(message("update", 8, [["99.25", "0.5", 1], ["98.50", "0", 0]], [["100.00", "3.5", 1], ["101", "1", 1]])), "applied");
  assert.deepEqual(show(book), [[["99.25", "0.5000", 1], ["99.00", "1.0000", 1]], [["100.00", "3.5000", 1], ["101.00", "1.0000", 1]]]);
  assert.equal(book.logIndex, "80");
  assert.equal(book.apply(message("snapshot", 1, [["50", "1", 1]], [])), "applied");
  assert.deepEqual(show(book), [[["50.00", "1.0000", 1]], []]);
});

test("a gap is found, and nothing is taken until the next snapshot", () => {
  const book = new Book(2, 4);
  assert.equal(book.apply(message("update", 1, [["1", "1", 1]], [])), "ignored");
  book.apply(message("snapshot", 5, [["99", "1", 1]], []));
  assert.equal(book.apply(message("update", 7, [["99", "9", 1]], [])), "gap");
  assert.equal(book.isLive, false);
  assert.equal(book.apply(message("update", 8, [["99", "8", 1]], [])), "ignored");
  assert.deepEqual(show(book), [[["99.00", "1.0000", 1]], []]);
  assert.equal(book.apply(message("snapshot", 1, [["97", "2", 1]], [])), "applied");
  assert.equal(book.apply(message("update", 2, [["97", "3", 1]], [])), "applied");
  assert.deepEqual(show(book), [[["97.00", "3.0000", 1]], []]);
});

test("a repeated update is a gap too, never applied twice", () => {
  const book = new Book(2, 4);
  book.apply(message("snapshot", 5, [], []));
  book.apply(message("update", 6, [["99", "1", 1]], []));
  assert.equal(book.apply(message("update", 6, [["99", "1", 1]], [])), "gap");
});

test("after a lost connection only a snapshot counts", () => {
  const book = new Book(2, 4);
  book.apply(message("snapshot", 5, [], []));
  book.forget();
  assert.equal(book.apply(message("update", 6, [["99", "1", 1]], [])), "ignored");
});

test("any run of updates leaves the same book as a plain map, sorted, best first", () => {
  const random = new Random(3);
  const book = new Book(2, 4);
  const naive: Record<Side, Map<bigint, bigint>> = { buy: new Map(), sell: new Map() };
  book.apply(message("snapshot", 0, [], []));
  for (let seq = 1; seq <= 3_000; seq += 1) {
    const side: Side = random.below(2) === 0 ? "buy" : "sell";
    const price = BigInt(9_000 + random.below(60));
    const size = BigInt(random.below(4));
    if (size === 0n) naive[side].delete(price);
    else naive[side].set(price, size);
    const level: WireLevel = [formatUnits(price, 2), formatUnits(size, 4), 1];
    book.apply(message("update", seq, side === "buy" ? [level] : [], side === "sell" ? [level] : []));
    for (const each of ["buy", "sell"] as const) {
      const expected = [...naive[each]].sort(([a], [b]) => (a < b ? -1 : 1));
      if (each === "buy") expected.reverse();
      assert.deepEqual(book.side(each).map(({ price: at, size: much }) => [at, much]), expected);
    }
  }
});

test("joined steps round away from the other side and keep all size", () => {
  const book = new Book(2, 4);
  book.apply(message("snapshot", 1, [["99.99", "1", 1], ["99.91", "2", 1], ["99.80", "4", 2]], [["100.01", "1", 1], ["100.10", "2", 1], ["100.11", "4", 1]]));
  const rows = (side: Side): [bigint, bigint, number][] =>
    grouped(book.side(side), side, 10n, 10).map(({ price, size, orderCount }) => [price, size, orderCount]);
  assert.deepEqual(rows("buy"), [[9_990n, 30_000n, 2], [9_980n, 40_000n, 2]]);
  assert.deepEqual(rows("sell"), [[10_010n, 30_000n, 2], [10_020n, 40_000n, 1]]);
  assert.equal(grouped(book.bids, "buy", 10n, 1).length, 1);
});

test("size within reach of the middle", () => {
  const book = new Book(2, 4);
  book.apply(message("snapshot", 1, [["99.50", "1", 1], ["99.00", "2", 1], ["98.99", "4", 1]], []));
  assert.equal(sizeWithin(book.bids, 10_000n, 10_000n), 30_000n);
  assert.equal(sizeWithin(book.bids, 10_000n, 0n), 0n);
});
