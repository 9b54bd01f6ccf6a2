import assert from "node:assert/strict";
import { test } from "node:test";
import { BookCopy, formatUnits, type Indicative, type IndicativeUncross, type Level, type Phase, type WsBook } from "walras";
import { crossingCurves, indicativeWords } from "../src/state/auction.ts";
import { Units } from "../src/state/market.ts";
import { REACH_PPM, weightOf, weightWords } from "../src/state/weight.ts";
import * as whole from "./whole.ts";

const units = new Units(whole.instrument({ lot_size: "0.0001", size_decimals: 4 }), []);
/** Its checksum is what the book finds. */
const snapshot = (book: BookCopy, bids: Level[], asks: Level[], indicative: Indicative): void => {
  const message: WsBook = {
    type: "book", instrument: "BTC/USD", kind: "snapshot", feed_seq: "1", log_index: "1", bids, asks, checksum: -1, indicative,
  };
  assert.throws(() => book.apply(message));
  book.apply({ ...message, checksum: book.checksum() });
};
const bookOf = (bids: Level[], asks: Level[], indicative: Indicative = null): BookCopy => {
  const book = new BookCopy(2, 4);
  snapshot(book, bids, asks, indicative);
  return book;
};
const plain = (text: string): string => text.replaceAll("\u00a0", " ");
const said = (bids: Level[], asks: Level[]): (string | number | null)[] => {
  const { percent, wanted, middle, offered } = weightWords(weightOf(bookOf(bids, asks), REACH_PPM), units);
  return [percent, wanted, middle, offered].map((each) => (typeof each === "string" ? plain(each) : each));
};

test("two sides are compared around their middle", () => {
  assert.deepEqual(
    said([["99.90", "3", 1], ["90.00", "50", 1]], [["100.10", "1", 1]]),
    [75, "3.0000 BTC wanted", "within 0.5 % of the middle: more demand than supply", "1.0000 BTC for sale"],
  );
});

test("with one side empty nothing is called even: what stands is said of the other", () => {
  assert.deepEqual(
    said([["100.00", "1.5", 1], ["99.80", "1", 2], ["90", "7", 1]], []),
    [100, "2.5000 BTC wanted", "within 0.5 % of the best bid; one side is empty", "nothing for sale"],
  );
  assert.deepEqual(
    said([], [["100.00", "1.5", 1]]), [0, "nothing wanted", "within 0.5 % of the best ask; one side is empty", "1.5000 BTC for sale"],
  );
  assert.deepEqual(said([], []), [null, "nothing wanted", "the book is empty", "nothing for sale"]);
});

test("while orders collect, the curves cross: each counts all who would trade at a price", () => {
  const book = bookOf(
    [["50100.00", "1", 1], ["49950.00", "2", 1], ["40000.00", "9", 1]],
    [["49900.00", "2", 1], ["50050.00", "3", 1], ["60000.00", "9", 1]],
  );
  const curves = crossingCurves(book);
  const rows = curves?.prices.map(
    (price, index) => [formatUnits(price, 2), formatUnits(curves.demand[index] ?? 0n, 4), formatUnits(curves.supply[index] ?? 0n, 4)],
  );
  // What is far beyond the overlap is left out of the picture; its size is not left out of the sums.
  assert.deepEqual(
    rows,
    [
      ["49900.00", "3.0000", "2.0000"], ["49950.00", "3.0000", "2.0000"], ["50050.00", "1.0000", "5.0000"],
      ["50100.00", "1.0000", "5.0000"],
    ],
  );
  assert.equal(crossingCurves(bookOf([["99.00", "1", 1]], [["100.00", "1", 1]])), null);
  assert.equal(crossingCurves(bookOf([["99.00", "1", 1]], [])), null);
  assert.deepEqual(
    crossingCurves(bookOf([["99.00", "1", 1], ["98.00", "1", 1]], [["99.00", "2", 1]]))?.prices, [9_800n, 9_900n],
    "of one price alone there would be no picture",
  );
});

test("the indicative price, volume and imbalance are put into words", () => {
  const wordsOf = (book: BookCopy, phase: Phase): string | null => {
    const said = indicativeWords(book, phase, units);
    return said && plain(`${said.price} ${said.words}`.trim());
  };
  const words = (indicative: Indicative, phase: Phase = "pre_open"): string | null => wordsOf(bookOf([], [], indicative), phase);
  const at = (imbalance: string): IndicativeUncross => ({ price: "49950.00", volume: "1.0", imbalance });
  assert.equal(words(at("-1.0")), "49 950.00 if the auction ended now: 1 BTC would trade, 1 BTC more would be for sale at that price.");
  assert.equal(words(at("0.25")), "49 950.00 if the auction ended now: 1 BTC would trade, 0.25 BTC more would be wanted at that price.");
  assert.equal(words(at("0")), "49 950.00 if the auction ended now: 1 BTC would trade, nothing would be left over.");
  assert.equal(words(null), "Nothing would trade if the auction ended now: no bid reaches an ask.");
  // A halt collects or not, which the venue knows; trading and a closed market have no auction; without a snapshot nothing is known.
  assert.equal(words(null, "halt"), null);
  assert.match(words(at("0"), "halt") ?? "", /^49 950/);
  for (const phase of ["continuous", "closed"] as const) assert.equal(words(at("0"), phase), null);
  assert.equal(wordsOf(new BookCopy(2, 4), "pre_open"), null);
});

test("an indicative price holds no longer than the book", () => {
  const book = bookOf([["99", "1", 1]], [["98", "1", 1]], { price: "98.50", volume: "1", imbalance: "0" });
  assert.equal(book.indicative?.price, 9_850n);
  snapshot(book, [], [], null);
  assert.equal(book.indicative, null);
});
