// The book of one instrument as the feed has it: a snapshot, then updates with contiguous numbers, each with the checksum of the best
// levels. Levels are kept sorted, best first; prices and sizes are whole numbers of the instrument's smallest shown unit.

import { crc32 } from "./crc32.ts";
import { formatUnits, parseUnits } from "./decimal.ts";
import type { Indicative, Level, Side, WsBook } from "./schema/index.ts";

export interface BookLevel {
  price: bigint;
  size: bigint;
  orderCount: number;
}

/** As the venue has it, in the book's units. */
export interface Indication {
  price: bigint;
  volume: bigint;
  /** Above zero of buyers, below zero of sellers. */
  imbalance: bigint;
}

/**
 * What came of a message. After a `gap` something was missed, and where it `differs` the copy's best levels are not the venue's: either way
 * a new snapshot is needed, and until then updates are `ignored`.
 */
export type Applied = "applied" | "gap" | "differs" | "ignored";

/** Levels of a side that the checksum covers. */
const CHECKED_LEVELS = 10;

/** An instrument's book, kept by the messages of the channel `book`. */
export class BookCopy {
  readonly priceDecimals: number;
  readonly sizeDecimals: number;
  logIndex = "0";
  /** Best first: bids from high to low, asks from low to high. */
  readonly bids: BookLevel[] = [];
  readonly asks: BookLevel[] = [];
  /** What an auction would do if it ended now; `null` where nothing would trade or none collects, `undefined` before a snapshot. */
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

  /** Throws where a snapshot contradicts itself, which another one would not mend. */
  apply(message: WsBook): Applied {
    const feedSeq = BigInt(message.feed_seq);
    if (message.kind === "snapshot") {
      this.bids.length = 0;
      this.asks.length = 0;
    } else if (this.#feedSeq === null) {
      return "ignored";
    } else if (feedSeq !== this.#feedSeq + 1n) {
      this.#feedSeq = null;
      return "gap";
    }
    this.#feedSeq = feedSeq;
    this.logIndex = message.log_index;
    this.indicative = this.#indication(message.indicative);
    for (const level of message.bids) this.#set("buy", level);
    for (const level of message.asks) this.#set("sell", level);
    if (message.checksum === this.checksum()) return "applied";
    this.#feedSeq = null;
    if (message.kind === "snapshot") {
      throw new Error(`the snapshot of ${message.instrument} has not the checksum that it says: the venue errs`);
    }
    return "differs";
  }

  /** The CRC-32 of the ten best levels of each side, as the venue computes it. */
  checksum(): number {
    const best = [...this.bids.slice(0, CHECKED_LEVELS), ...this.asks.slice(0, CHECKED_LEVELS)];
    return crc32(
      best.map(({ price, size }) => `${formatUnits(price, this.priceDecimals)}:${formatUnits(size, this.sizeDecimals)}`).join(":"),
    );
  }

  /** After a lost connection the next message is a snapshot of a new count. */
  forget(): void {
    this.#feedSeq = null;
  }

  side(side: Side): BookLevel[] {
    return side === "buy" ? this.bids : this.asks;
  }

  bestBid(): BookLevel | undefined {
    return this.bids[0];
  }

  bestAsk(): BookLevel | undefined {
    return this.asks[0];
  }

  #indication(wire: Indicative | null): Indication | null {
    return wire && {
      price: parseUnits(wire.price, this.priceDecimals), volume: parseUnits(wire.volume, this.sizeDecimals),
      imbalance: parseUnits(wire.imbalance, this.sizeDecimals),
    };
  }

  #set(side: Side, [priceText, sizeText, orderCount]: Level): void {
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
function findIndex(levels: BookLevel[], side: Side, price: bigint): number {
  let low = 0;
  let high = levels.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const at = (levels[middle] as BookLevel).price;
    const before = side === "buy" ? at > price : at < price;
    if (before) low = middle + 1;
    else high = middle;
  }
  return low;
}
