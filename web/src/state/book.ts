// The book of one instrument as the feed tells it: a snapshot, then updates with contiguous numbers. Levels are kept sorted, best
// first; prices and sizes are whole numbers of the instrument's smallest shown unit.

import { parseUnits, toMultiple } from "../base/decimal.ts";
import type { BookMessage, Indicative, Side, WireLevel } from "../api/types.ts";

export interface Level {
  price: bigint;
  size: bigint;
  orderCount: number;
}

/** As the venue tells it, in the book's units. */
export interface Indication {
  price: bigint;
  volume: bigint;
  /** Above zero of buyers, below zero of sellers. */
  imbalance: bigint;
}

/** What came of a message: `gap` means that something was missed and a new snapshot must be asked for. */
export type Applied = "applied" | "gap" | "ignored";

export class Book {
  readonly priceDecimals: number;
  readonly sizeDecimals: number;
  logIndex = "0";
  /** Best first: bids from high to low, asks from low to high. */
  readonly bids: Level[] = [];
  readonly asks: Level[] = [];
  /** What an auction would do if it ended now; `null` where nothing would trade or none collects, `undefined` where the venue does not say. */
  indicative: Indication | null | undefined = undefined;
  /** `null` until a snapshot came, and again after a gap. */
  #feedSeq: bigint | null = null;

  constructor(priceDecimals: number, sizeDecimals: number) {
    this.priceDecimals = priceDecimals;
    this.sizeDecimals = sizeDecimals;
  }

  get isLive(): boolean {
    return this.#feedSeq !== null;
  }

  apply(message: BookMessage): Applied {
    const feedSeq = BigInt(message.feed_seq);
    if (message.kind === "snapshot") {
      this.bids.length = 0;
      this.asks.length = 0;
      this.indicative = undefined;
    } else if (this.#feedSeq === null) {
      return "ignored";
    } else if (feedSeq !== this.#feedSeq + 1n) {
      this.#feedSeq = null;
      return "gap";
    }
    this.#feedSeq = feedSeq;
    this.logIndex = message.log_index;
    if (message.indicative !== undefined) this.indicative = this.#indication(message.indicative);
    for (const level of message.bids) this.#set("buy", level);
    for (const level of message.asks) this.#set("sell", level);
    return "applied";
  }

  /** After a lost connection the next message is a snapshot of a new count. */
  forget(): void {
    this.#feedSeq = null;
  }

  side(side: Side): Level[] {
    return side === "buy" ? this.bids : this.asks;
  }

  bestBid(): Level | undefined {
    return this.bids[0];
  }

  bestAsk(): Level | undefined {
    return this.asks[0];
  }

  #indication(wire: Indicative | null): Indication | null {
    return wire && {
      price: parseUnits(wire.price, this.priceDecimals), volume: parseUnits(wire.volume, this.sizeDecimals), imbalance: parseUnits(wire.imbalance, this.sizeDecimals),
    };
  }

  #set(side: Side, [priceText, sizeText, orderCount]: WireLevel): void {
    const price = parseUnits(priceText, this.priceDecimals);
    const size = parseUnits(sizeText, this.sizeDecimals);
    const levels = this.side(side);
    const index = findIndex(levels, side, price);
    const here = levels[index];
    const found = here !== undefined && here.price === price;
    if (size === 0n) {
      if (found) levels.splice(index, 1);
    } else if (found) {
      here.size = size;
      here.orderCount = orderCount;
    } else {
      levels.splice(index, 0, { price, size, orderCount });
    }
  }
}

/** Where `price` is, or would be inserted. */
function findIndex(levels: Level[], side: Side, price: bigint): number {
  let low = 0;
  let high = levels.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const at = (levels[middle] as Level).price;
    const before = side === "buy" ? at > price : at < price;
    if (before) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first `count` levels after joining prices into steps of `step`: bids join downwards, asks upwards, away from the other side. */
export function grouped(levels: Level[], side: Side, step: bigint, count: number): Level[] {
  const rows: Level[] = [];
  for (const level of levels) {
    const price = toMultiple(level.price, step, side === "buy" ? "down" : "up");
    const last = rows.at(-1);
    if (last?.price === price) {
      last.size += level.size;
      last.orderCount += level.orderCount;
    } else if (rows.length === count) break;
    else rows.push({ price, size: level.size, orderCount: level.orderCount });
  }
  return rows;
}

/** Total size of the levels no further than `ppm` parts per million from `middle`. */
export function sizeWithin(levels: Level[], middle: bigint, ppm: bigint): bigint {
  const reach = (middle * ppm) / 1_000_000n;
  let total = 0n;
  for (const { price, size } of levels) {
    const distance = price > middle ? price - middle : middle - price;
    if (distance > reach) break;
    total += size;
  }
  return total;
}
