// One batch market as the feed tells it: its blocks, each with one price for every asset, and where the current batch is.

import { type Batch, type BatchBlock, type BatchDemand, type WsBatch, blocksOfTwoMinutes, lastOfBlocks } from "walras";
import { changePpm, quotient } from "../base/decimal.ts";
import { Signal } from "../base/signal.ts";

export const BLOCKS_KEPT = 240;

export interface Pair {
  sell: string;
  buy: string;
}

/** The assets that trade with all others: all of them, unless the market says otherwise. Older venues do not say. */
export function currenciesOf({ currencies, assets }: Batch): string[] {
  return currencies ?? assets;
}

/** Of a market with more assets, so many are shown at a time. */
export const ASSETS_SHOWN_MAX = 60;

/**
 * All assets, or of many those whose symbol has these letters, `first` before others where there is no room for all; in the market's order.
 */
export function shownAssets(assets: string[], letters: string, first: string[]): string[] {
  if (assets.length <= ASSETS_SHOWN_MAX) return assets;
  const sought = letters.trim().toUpperCase();
  const found = new Set([...first, ...assets].filter((asset) => asset.includes(sought)));
  const shown = new Set([...found].slice(0, ASSETS_SHOWN_MAX));
  return assets.filter((asset) => shown.has(asset));
}

/**
 * A pair after one of its assets was chosen: where that is the other one's, the pair turns around; where the two do not trade with each
 * other, the one that was not chosen becomes a currency.
 */
export function pairAfter(info: Batch, before: Pair, change: Partial<Pair>): Pair {
  const next = { ...before, ...change };
  if (next.sell === next.buy) {
    if (change.sell !== undefined) next.buy = before.sell;
    else next.sell = before.buy;
  }
  const currencies = currenciesOf(info);
  if (!currencies.includes(next.sell) && !currencies.includes(next.buy)) {
    const currency = currencies.find((asset) => asset === before.sell || asset === before.buy) ?? currencies[0] ?? next.buy;
    if (change.sell !== undefined) next.buy = currency;
    else next.sell = currency;
  }
  return next;
}

/** How many pairs a market has. */
export function pairCount(info: Batch): number {
  const [all, currencies] = [info.assets.length, currenciesOf(info).length];
  return currencies * (2 * all - currencies - 1);
}

export class BatchMarket {
  readonly info: Signal<Batch>;
  /** Newest first. */
  readonly blocks: Signal<BatchBlock[]>;
  readonly pair: Signal<Pair>;
  /** Of the chosen pair; `null` until it has come. */
  readonly demand = new Signal<BatchDemand | null>(null);
  /** Watched for what is collected and what is being priced. */
  readonly cycle: Signal<Cycle>;

  constructor(info: Batch, nowMs: number) {
    this.info = new Signal(info);
    this.blocks = new Signal(info.last_block ? [info.last_block] : []);
    const [first = "", second = first] = info.assets.filter((asset) => asset !== info.numeraire);
    const { numeraire } = info;
    this.pair = new Signal<Pair>({ sell: first, buy: numeraire !== null && info.assets.includes(numeraire) ? numeraire : second });
    this.cycle = new Signal({ collected: info.collected, closedBlock: info.closed_block, beganMs: nowMs });
  }

  get name(): string {
    return this.info.value.name;
  }

  get last(): BatchBlock | null {
    return this.blocks.value[0] ?? null;
  }

  /** The number of the block that is being collected for; `null` before the first. */
  get nextBlock(): string | null {
    const { closedBlock } = this.cycle.value;
    const before = closedBlock ?? this.last?.block ?? null;
    return before === null ? null : String(BigInt(before) + 1n);
  }

  apply(message: WsBatch, nowMs: number): void {
    const newest = message.blocks.toReversed();
    const known = message.kind === "snapshot" ? [] : this.blocks.value;
    const isNew = newest[0] !== undefined && newest[0].block !== this.last?.block;
    const before = this.cycle.value;
    // A batch begins when the one before it closes. Of one that was not seen to close, all that is known is that it has been cleared.
    const closes = message.closed_block !== null && message.closed_block !== before.closedBlock;
    const missedClose = isNew && before.closedBlock === null;
    const beganMs = closes || missedClose ? nowMs : before.beganMs;
    if (newest.length > 0 || message.kind === "snapshot") {
      const seen = new Set(newest.map(({ block }) => block));
      this.blocks.value = [...newest, ...known.filter(({ block }) => !seen.has(block))].slice(0, BLOCKS_KEPT);
    }
    this.cycle.value = { collected: message.collected, closedBlock: message.closed_block, beganMs };
  }

  /** The last block that may have a transaction signed now: what the venue dropped, nobody can send again later. */
  lastBlock(): bigint {
    const { collecting_block, interval_ms } = this.info.value;
    const afterLast = BigInt(this.last?.block ?? "0") + 1n;
    const collecting = BigInt(collecting_block) > afterLast ? BigInt(collecting_block) : afterLast;
    return lastOfBlocks(collecting, blocksOfTwoMinutes(interval_ms));
  }

  /** The last known price of an asset, newest first. */
  price(asset: string): string | null {
    for (const { prices } of this.blocks.value) {
      const price = prices?.[asset];
      if (price != null) return price;
    }
    return null;
  }

  /** Units of `buy` for a unit of `sell` at the last prices, before the commission. */
  rate({ sell, buy }: Pair, digits = 6): string | null {
    const [worth, cost] = [this.price(sell), this.price(buy)];
    return worth === null || cost === null ? null : quotient(worth, cost, digits);
  }

  /** How the price of an asset moved from the block before the last to the last; `null` where either has none. */
  movePpm(asset: string): number | null {
    const [now, before] = this.blocks.value.map(({ prices }) => prices?.[asset]);
    return now == null || before == null ? null : changePpm(before, now);
  }

  /** For pixels: the last `count` prices, oldest first. */
  history(asset: string, count: number): number[] {
    const prices: number[] = [];
    for (const block of this.blocks.value.slice(0, count)) {
      const price = block.prices?.[asset];
      if (price != null) prices.push(Number(price));
    }
    return prices.reverse();
  }

  /** What one sells for what: see {@link pairAfter}. */
  choose(change: Partial<Pair>): void {
    const before = this.pair.value;
    const next = pairAfter(this.info.value, before, change);
    if (next.sell === before.sell && next.buy === before.buy) return;
    this.demand.value = null;
    this.pair.value = next;
  }
}

export interface Cycle {
  collected: number;
  closedBlock: string | null;
  /** By this computer's monotonic clock: when the batch that collects now began. */
  beganMs: number;
}

/** Where a batch is. An empty one waits for its first transaction, however long. */
export type Stage =
  | { name: "collects"; leftMs: number; part: number }
  | { name: "due" }
  | { name: "waits" }
  | { name: "prices"; block: string }
  | { name: "closed" };

export function stageOf(market: BatchMarket, nowMs: number): Stage {
  const { phase, interval_ms } = market.info.value;
  const { collected, closedBlock, beganMs } = market.cycle.value;
  if (phase === "closed") return { name: "closed" };
  const leftMs = beganMs + interval_ms - nowMs;
  if (leftMs > 0) return { name: "collects", leftMs, part: 1 - leftMs / interval_ms };
  if (closedBlock !== null) return { name: "prices", block: closedBlock };
  return { name: collected === 0 ? "waits" : "due" };
}
