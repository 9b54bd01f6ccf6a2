import assert from "node:assert/strict";
import test from "node:test";
import type { Subscription, WsTicker } from "walras";
import { FOLLOWED_MAX, Tickers } from "../src/state/tickers.ts";
import * as whole from "./whole.ts";

const symbolOf = (index: number): string => `A${index}/USD`;
const instruments = Array.from({ length: 2 * FOLLOWED_MAX }, (_, index) =>
  whole.instrument({ instrument_id: index, symbol: symbolOf(index), last_price: "5.00" }));
const subscription = (index: number): Subscription => ({ channel: "ticker", instrument: `A${index}-USD` });
const ofFirst = (count: number): Subscription[] => Array.from({ length: count }, (_, index) => subscription(index));

function started(): Tickers {
  const tickers = new Tickers();
  tickers.list(instruments);
  return tickers;
}

test("what the user wants is followed, however many others there are, and never more than the venue takes", () => {
  const tickers = started();
  const wanted = [FOLLOWED_MAX + 5, FOLLOWED_MAX];
  assert.deepEqual(tickers.follow([...wanted.map(symbolOf), "GONE/USD"]), {
    begin: [...wanted.map(subscription), ...ofFirst(FOLLOWED_MAX - 2)], end: [],
  });
  assert.deepEqual(tickers.follow(wanted.map(symbolOf)), { begin: [], end: [] }, "what is followed is not asked for again");
  // One more takes the place of one that nobody asked for.
  const left = FOLLOWED_MAX - 3;
  tickers.take({ instrument: symbolOf(left), last_price: "6.00", change_ppm: null } as unknown as WsTicker);
  const more = [FOLLOWED_MAX + 9, ...wanted];
  assert.deepEqual(tickers.follow(more.map(symbolOf)), { begin: [subscription(FOLLOWED_MAX + 9)], end: [subscription(left)] });
  assert.equal(tickers.all.value.has(symbolOf(left)), false, "an old ticker does not stand for a new one");
  const old = instruments[left];
  assert.equal(old && tickers.lastPrice(old), "6.00", "its price is not that of the start again");
  tickers.take({ instrument: symbolOf(left), last_price: "7.00", change_ppm: null } as unknown as WsTicker);
  assert.equal(tickers.all.value.has(symbolOf(left)), false, "nor does one that was on its way");
  const all = instruments.map(({ symbol }) => symbol);
  const { begin, end } = tickers.follow(all);
  assert.equal(begin.length, end.length, "starring all of them does not follow more");
});

test("a venue of few markets has all of them followed at once", () => {
  const tickers = new Tickers();
  tickers.list(instruments.slice(0, 3));
  assert.deepEqual(tickers.follow([]), { begin: ofFirst(3), end: [] });
  assert.deepEqual(tickers.follow([symbolOf(2)]), { begin: [], end: [] });
});

test("a market without a ticker has the price that the venue listed, and no change", () => {
  const tickers = started();
  tickers.follow([]);
  const [instrument] = instruments;
  assert.ok(instrument);
  assert.deepEqual([tickers.lastPrice(instrument), tickers.changePpm(instrument)], ["5.00", null]);
  const ticker = { instrument: "A0-USD", last_price: "6.00" };
  tickers.take({ ...ticker, change_ppm: null } as unknown as WsTicker);
  assert.deepEqual([tickers.lastPrice(instrument), tickers.changePpm(instrument)], ["6.00", null]);
  tickers.take({ ...ticker, change_ppm: "-2500" } as unknown as WsTicker);
  assert.equal(tickers.changePpm(instrument), -2_500);
});
