import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 as crc32OfNode } from "node:zlib";
import { BookCopy, type BookLevel } from "../src/book.ts";
import { crc32 } from "../src/crc32.ts";
import { formatUnits, parseUnits } from "../src/decimal.ts";
import type { Level, Side, WsBook } from "../src/schema/index.ts";
import { Random } from "./random.ts";

/** A message with the checksum of the levels after it, computed as plainly as can be. */
function message(book: BookCopy, kind: "snapshot" | "update", feedSeq: number, bids: Level[], asks: Level[]): WsBook {
  const text = (text: string, decimals: number): string => formatUnits(parseUnits(text, decimals), decimals);
  const best = (before: BookLevel[], changes: Level[], order: 1 | -1): string[] => {
    const levels = new Map(before.map(({ price, size }) => [formatUnits(price, 2), formatUnits(size, 4)]));
    if (kind === "snapshot") levels.clear();
    for (const [price, size] of changes) levels.set(text(price, 2), text(size, 4));
    const left = [...levels].filter(([, size]) => Number(size) > 0).sort(([one], [other]) => order * (Number(one) - Number(other)));
    return left.slice(0, 10).map(([price, size]) => `${price}:${size}`);
  };
  const checksum = crc32OfNode([...best(book.bids, bids, -1), ...best(book.asks, asks, 1)].join(":"));
  return {
    type: "book", instrument: "BTC/USD", kind, feed_seq: String(feedSeq), log_index: String(feedSeq * 10), bids, asks, checksum,
    indicative: null,
  };
}

function show(book: BookCopy): [string, string, number][][] {
  return [book.bids, book.asks].map((levels) =>
    levels.map(({ price, size, orderCount }) => [formatUnits(price, 2), formatUnits(size, 4), orderCount]));
}

test("a snapshot replaces, an update sets, zero removes", () => {
  const book = new BookCopy(2, 4);
  assert.equal(book.apply(message(book, "snapshot", 7, [["99.00", "1", 1], ["98.5", "2", 3]], [["100.00", "4", 2]])), "applied");
  const changed = message(book, "update", 8, [["99.25", "0.5", 1], ["98.50", "0", 0]], [["100.00", "3.5", 1], ["101", "1", 1]]);
  assert.equal(book.apply(changed), "applied");
  assert.deepEqual(show(book), [[["99.25", "0.5000", 1], ["99.00", "1.0000", 1]], [["100.00", "3.5000", 1], ["101.00", "1.0000", 1]]]);
  assert.equal(book.logIndex, "80");
  assert.equal(book.apply(message(book, "snapshot", 1, [["50", "1", 1]], [])), "applied");
  assert.deepEqual(show(book), [[["50.00", "1.0000", 1]], []]);
});

test("a gap is found, and nothing is taken until the next snapshot", () => {
  const book = new BookCopy(2, 4);
  assert.equal(book.apply(message(book, "update", 1, [["1", "1", 1]], [])), "ignored");
  book.apply(message(book, "snapshot", 5, [["99", "1", 1]], []));
  assert.equal(book.apply(message(book, "update", 7, [["99", "9", 1]], [])), "gap");
  assert.equal(book.isLive, false);
  assert.equal(book.apply(message(book, "update", 8, [["99", "8", 1]], [])), "ignored");
  assert.deepEqual(show(book), [[["99.00", "1.0000", 1]], []]);
  assert.equal(book.apply(message(book, "snapshot", 1, [["97", "2", 1]], [])), "applied");
  assert.equal(book.apply(message(book, "update", 2, [["97", "3", 1]], [])), "applied");
  assert.deepEqual(show(book), [[["97.00", "3.0000", 1]], []]);
});

test("a repeated update is a gap too, never applied twice", () => {
  const book = new BookCopy(2, 4);
  book.apply(message(book, "snapshot", 5, [], []));
  book.apply(message(book, "update", 6, [["99", "1", 1]], []));
  assert.equal(book.apply(message(book, "update", 6, [["99", "1", 1]], [])), "gap");
});

test("after a lost connection only a snapshot counts", () => {
  const book = new BookCopy(2, 4);
  book.apply(message(book, "snapshot", 5, [], []));
  book.forget();
  assert.equal(book.apply(message(book, "update", 6, [["99", "1", 1]], [])), "ignored");
});

test("any run of updates leaves the same book as a plain map, sorted, best first", () => {
  const random = new Random(3);
  const book = new BookCopy(2, 4);
  const naive: Record<Side, Map<bigint, bigint>> = { buy: new Map(), sell: new Map() };
  book.apply(message(book, "snapshot", 0, [], []));
  for (let seq = 1; seq <= 3_000; seq += 1) {
    const side: Side = random.below(2) === 0 ? "buy" : "sell";
    const price = BigInt(9_000 + random.below(60));
    const size = BigInt(random.below(4));
    if (size === 0n) naive[side].delete(price);
    else naive[side].set(price, size);
    const level: Level = [formatUnits(price, 2), formatUnits(size, 4), 1];
    book.apply(message(book, "update", seq, side === "buy" ? [level] : [], side === "sell" ? [level] : []));
    for (const each of ["buy", "sell"] as const) {
      const expected = [...naive[each]].sort(([a], [b]) => (a < b ? -1 : 1));
      if (each === "buy") expected.reverse();
      assert.deepEqual(book.side(each).map(({ price: at, size: much }) => [at, much]), expected);
    }
  }
});

test("the checksum is that of the document's example, and CRC-32 that of zip", () => {
  // docs/websocket.md.
  assert.equal(crc32("49950.00:0.5000:49900.00:2.0000:50010.00:1.2500"), 1_479_423_218);
  const random = new Random(4);
  for (let round = 0; round < 200; round += 1) {
    const text = Array.from({ length: random.below(300) }, () => String.fromCharCode(32 + random.below(95))).join("");
    assert.equal(crc32(text), crc32OfNode(text));
  }
  const book = new BookCopy(2, 2);
  book.apply({
    type: "book", instrument: "X", kind: "snapshot", feed_seq: "1", log_index: "1",
    bids: [["49950.00", "0.50", 1], ["49900.00", "2.00", 3]], asks: [["50010.00", "1.25", 1]],
    checksum: crc32OfNode("49950.00:0.50:49900.00:2.00:50010.00:1.25"), indicative: null,
  });
  assert.ok(book.isLive);
});

test("only the ten best levels of a side are in the checksum", () => {
  const book = new BookCopy(0, 0);
  const bids = Array.from({ length: 12 }, (_, at): Level => [String(100 - at), "1", 1]);
  const best = Array.from({ length: 10 }, (_, at) => `${100 - at}:1`).join(":");
  const snapshot: WsBook = {
    type: "book", instrument: "X", kind: "snapshot", feed_seq: "1", log_index: "1", bids, asks: [], checksum: crc32OfNode(best),
    indicative: null,
  };
  assert.equal(book.apply(snapshot), "applied");
  assert.equal(book.apply({ ...snapshot, kind: "update", feed_seq: "2", bids: [["89", "7", 1]] }), "applied", "the twelfth is not covered");
  assert.equal(book.apply({ ...snapshot, kind: "update", feed_seq: "3", bids: [["91", "7", 1]] }), "differs", "the tenth is");
  assert.equal(book.isLive, false);
  assert.equal(book.apply({ ...snapshot, kind: "update", feed_seq: "4", bids: [] }), "ignored");
  assert.equal(book.apply({ ...snapshot, feed_seq: "5" }), "applied");
  assert.throws(() => book.apply({ ...snapshot, feed_seq: "6", checksum: 1 }), /the venue errs/);
  assert.equal(book.isLive, false);
});

test("what an auction would do is kept in whole units", () => {
  const book = new BookCopy(2, 4);
  const snapshot = message(book, "snapshot", 1, [], []);
  book.apply({ ...snapshot, indicative: { price: "99.50", volume: "3", imbalance: "-0.5" } });
  assert.deepEqual(book.indicative, { price: 9_950n, volume: 30_000n, imbalance: -5_000n });
  book.apply({ ...snapshot, kind: "update", feed_seq: "2" });
  assert.equal(book.indicative, null);
});
