// What an auction would do with the orders that it has collected: the curves that cross, and what the venue says of where they do.

import { type BookCopy, type BookLevel, formatUnits, type Order, parseUnits, type Phase } from "walras";
import { abs, trimZeros } from "../base/decimal.ts";
import { group, showUnits } from "../base/format.ts";
import { t } from "../texts/index.ts";
import type { Units } from "./market.ts";

/** Phases in which orders collect, whatever comes of them. A halt may collect too, which only the venue knows. */
const COLLECTING = new Set<Phase>(["pre_open", "opening_auction", "closing_auction"]);

/** At each price, from low to high: what is wanted there or dearer, and what is for sale there or cheaper. */
export interface Curves {
  prices: bigint[];
  demand: bigint[];
  supply: bigint[];
}

/** Both curves around where they cross, as far again to each side; `null` where no bid reaches an ask. */
export function crossingCurves(book: BookCopy): Curves | null {
  const [bid, ask] = [book.bestBid(), book.bestAsk()];
  if (!bid || !ask || bid.price < ask.price) return null;
  const overlap = bid.price - ask.price;
  const isNear = ({ price }: BookLevel): boolean => price >= ask.price - overlap && price <= bid.price + overlap;
  // Of one price only there is no picture: then all of the book is one.
  const isShown = overlap === 0n ? () => true : isNear;
  const prices = [...new Set([...book.bids, ...book.asks].filter(isShown).map(({ price }) => price))].sort((a, b) => (a < b ? -1 : 1));
  const sum = (levels: BookLevel[], counts: (price: bigint) => boolean): bigint =>
    levels.reduce((total, { price, size }) => (counts(price) ? total + size : total), 0n);
  return {
    prices,
    demand: prices.map((at) => sum(book.bids, (price) => price >= at)),
    supply: prices.map((at) => sum(book.asks, (price) => price <= at)),
  };
}

/** What an auction would do if it ended now, in words: the price and what follows it; `null` where no auction collects. */
export function indicativeWords(book: BookCopy, phase: Phase, units: Units): { price: string; words: string } | null {
  const { indicative } = book;
  const { instrument: { base }, priceDecimals, sizeDecimals } = units;
  if (indicative === undefined || phase === "continuous" || phase === "closed") return null;
  if (indicative === null) return COLLECTING.has(phase) ? { price: "", words: t.auction.nothing } : null;
  const { price, volume, imbalance } = indicative;
  const size = (lots: bigint): string => `${group(trimZeros(formatUnits(lots, sizeDecimals)))} ${base}`;
  const rest = size(abs(imbalance));
  const left = imbalance === 0n ? t.auction.leftNone : imbalance > 0n ? t.auction.leftWanted(rest) : t.auction.leftOffered(rest);
  return { price: showUnits(price, priceDecimals), words: t.auction.outcome(size(volume), left) };
}

/** What an auction would do to one's own orders, in lots: what trades whole, and what stands at the price itself and shares the rest. */
export interface OwnOutcome {
  bought: bigint;
  sold: bigint;
  maybeBought: bigint;
  maybeSold: bigint;
}

export function ownOutcome(orders: Iterable<Pick<Order, "side" | "price" | "trigger" | "open">>, price: bigint, units: Units): OwnOutcome {
  const outcome: OwnOutcome = { bought: 0n, sold: 0n, maybeBought: 0n, maybeSold: 0n };
  for (const order of orders) {
    // One that waits for its trigger is not in the auction.
    if (order.trigger !== null) continue;
    const size = parseUnits(order.open, units.sizeDecimals);
    const limit = order.price === null ? null : parseUnits(order.price, units.priceDecimals);
    const isBuy = order.side === "buy";
    if (limit === null || (isBuy ? limit > price : limit < price)) {
      if (isBuy) outcome.bought += size;
      else outcome.sold += size;
    } else if (limit === price) {
      if (isBuy) outcome.maybeBought += size;
      else outcome.maybeSold += size;
    }
  }
  return outcome;
}

/** The same in words; empty where none of one's orders would trade. */
export function ownWords({ bought, sold, maybeBought, maybeSold }: OwnOutcome, { sizeDecimals, instrument: { base } }: Units): string {
  const size = (lots: bigint): string => `${group(trimZeros(formatUnits(lots, sizeDecimals)))} ${base}`;
  return [
    ...(bought > 0n ? [t.auction.bought(size(bought))] : []), ...(sold > 0n ? [t.auction.sold(size(sold))] : []),
    ...(maybeBought > 0n ? [t.auction.maybeBought(size(maybeBought))] : []),
    ...(maybeSold > 0n ? [t.auction.maybeSold(size(maybeSold))] : []),
  ].join(" ");
}

export interface AuctionMoment {
  atMs: number;
  price: bigint;
  volume: bigint;
  imbalance: bigint;
}

const MOMENTS_KEPT = 400;

/** How price, volume and imbalance came to what they are, since the page saw orders collect. */
export class AuctionHistory {
  readonly moments: AuctionMoment[] = [];

  /** `null` begins again: nothing collects, or nothing would trade. */
  add(indicative: BookCopy["indicative"], atMs: number): void {
    if (!indicative) {
      this.moments.length = 0;
      return;
    }
    const last = this.moments.at(-1);
    const { price, volume, imbalance } = indicative;
    if (last && last.price === price && last.volume === volume && last.imbalance === imbalance) return;
    this.moments.push({ atMs, price, volume, imbalance });
    if (this.moments.length > MOMENTS_KEPT) this.moments.shift();
  }
}
