// Which way the weight of the book leans, where there are two sides to compare, and in words.

import type { BookCopy, Side } from "walras";
import { showUnits, signed } from "../base/format.ts";
import { t } from "../texts/index.ts";
import { sizeWithin } from "./book.ts";
import type { Units } from "./market.ts";

/** How far from the middle both sides are compared, in parts per million. */
export const REACH_PPM = 5_000n;
const REACH = signed("0.5 %");

/** Which way the weight of the book leans, as far as `ppm` parts per million from where the two sides meet. */
export type Weight =
  | { state: "empty" }
  /** Nothing stands on the other side, so there is nothing to compare with. Size near the best price of the one that has orders. */
  | { state: "one_side"; side: Side; size: bigint }
  | { state: "both"; demand: bigint; supply: bigint };

export function weightOf(book: BookCopy, ppm: bigint): Weight {
  const [bid, ask] = [book.bestBid(), book.bestAsk()];
  if (bid && ask) {
    const middle = (bid.price + ask.price) / 2n;
    return { state: "both", demand: sizeWithin(book.bids, middle, ppm), supply: sizeWithin(book.asks, middle, ppm) };
  }
  if (bid) return { state: "one_side", side: "buy", size: sizeWithin(book.bids, bid.price, ppm) };
  if (ask) return { state: "one_side", side: "sell", size: sizeWithin(book.asks, ask.price, ppm) };
  return { state: "empty" };
}

interface WeightWords {
  /** Of the bar that is demand's; `null` where there is nothing to weigh. */
  percent: number | null;
  wanted: string;
  middle: string;
  offered: string;
}

export function weightWords(weight: Weight, { instrument: { base }, sizeDecimals }: Units): WeightWords {
  const wanted = (size: bigint): string => t.weight.wanted(`${showUnits(size, sizeDecimals)} ${base}`);
  const offered = (size: bigint): string => t.weight.offered(`${showUnits(size, sizeDecimals)} ${base}`);
  switch (weight.state) {
    case "empty":
      return { percent: null, wanted: t.weight.nothingWanted, middle: t.weight.empty, offered: t.weight.nothingOffered };
    case "one_side":
      return weight.side === "buy"
        ? { percent: 100, wanted: wanted(weight.size), middle: t.weight.bidsOnly(REACH), offered: t.weight.nothingOffered }
        : { percent: 0, wanted: t.weight.nothingWanted, middle: t.weight.asksOnly(REACH), offered: offered(weight.size) };
    case "both": {
      const total = weight.demand + weight.supply;
      const percent = total === 0n ? 50 : Number((weight.demand * 1000n) / total) / 10;
      return { percent, wanted: wanted(weight.demand), middle: t.weight.both(REACH, leanWords(percent)), offered: offered(weight.supply) };
    }
  }
}

function leanWords(percent: number): string {
  if (percent > 55) return t.weight.moreDemand;
  if (percent < 45) return t.weight.moreSupply;
  return t.weight.even;
}
