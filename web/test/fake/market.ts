// One fake instrument: the book in wire units, its trades, candles, and bots that keep it moving.

import {
  type Candle, formatUnits, type IndicativeUncross, type Instrument, type Interval, type Level, parseUnits, type Phase, type PhaseCause,
  type Side, type Trade,
} from "walras";
import { FakeBook, type FakeOrder, type FakeTrade } from "./matching.ts";
import { Random } from "../../../sdk/typescript/test/random.ts";

const SECONDS: Record<Interval, number> = { "1s": 1, "10s": 10, "1m": 60, "5m": 300, "1h": 3600 };
const BOT = 0;
const BOT_ORDERS_MAX = 420;

export class FakeMarket {
  readonly instrument: Instrument;
  readonly book = new FakeBook();
  /** Oldest first. */
  readonly trades: Trade[] = [];
  readonly candles = new Map<Interval, Candle[]>(Object.keys(SECONDS).map((interval) => [interval as Interval, []]));
  readonly #random: Random;
  readonly #spread: number;
  #fair: number;
  #drift = 0;
  #volume = 0n;
  /** Price times size, exact. */
  #turnover = 0n;
  #first: bigint | null = null;
  #high = 0n;
  #low = 0n;

  constructor(instrument: Instrument, seed: number, fairTicks: number, spreadTicks: number) {
    this.instrument = instrument;
    this.#random = new Random(seed);
    this.#fair = fairTicks;
    this.#spread = spreadTicks;
  }

  get priceDecimals(): number {
    return this.instrument.price_decimals;
  }

  get sizeDecimals(): number {
    return this.instrument.size_decimals;
  }

  record(trade: FakeTrade): Trade {
    const price = formatUnits(trade.price, this.priceDecimals);
    const size = formatUnits(trade.size, this.sizeDecimals);
    if (this.#first === null || trade.price > this.#high) this.#high = trade.price;
    if (this.#first === null || trade.price < this.#low) this.#low = trade.price;
    this.#first ??= trade.price;
    this.#volume += trade.size;
    this.#turnover += trade.price * trade.size;
    this.instrument.last_price = price;
    for (const [interval, candles] of this.candles) this.#candle(candles, SECONDS[interval], trade, price);
    const wire: Trade = { trade_id: String(trade.tradeId), time_ns: String(trade.timeNs), price, size, taker_side: trade.takerSide };
    this.trades.push(wire);
    if (this.trades.length > 500) this.trades.shift();
    return wire;
  }

  ticker(): object {
    const best = (side: Side): string | null => {
      const price = this.book.side(side)[0]?.price ?? null;
      return price === null ? null : formatUnits(price, this.priceDecimals);
    };
    const last = this.instrument.last_price;
    const change = last === null || this.#first === null ? null
      : Number(((parseUnits(last, this.priceDecimals) - this.#first) * 1_000_000n) / this.#first);
    return {
      instrument: this.instrument.symbol, last_price: last, change_ppm: change,
      high: this.#first === null ? null : formatUnits(this.#high, this.priceDecimals),
      low: this.#first === null ? null : formatUnits(this.#low, this.priceDecimals),
      best_bid: best("buy"), best_ask: best("sell"),
      volume: formatUnits(this.#volume, this.sizeDecimals), turnover: formatUnits(this.#turnover, this.priceDecimals + this.sizeDecimals),
      phase: this.instrument.phase, phase_cause: this.instrument.phase_cause,
    };
  }

  /** From here on orders collect for an auction, or trade again, or nothing trades. */
  setPhase(phase: Phase, cause: PhaseCause = "operator"): void {
    [this.instrument.phase, this.instrument.phase_cause] = [phase, cause];
    this.book.collects = phase !== "continuous" && phase !== "halt";
  }

  /** What the auction would do now; nothing while none collects. */
  indicative(): IndicativeUncross | null {
    const found = this.book.collects ? this.book.indicative() : null;
    return found && {
      price: formatUnits(found.price, this.priceDecimals), volume: formatUnits(found.volume, this.sizeDecimals),
      imbalance: formatUnits(found.imbalance, this.sizeDecimals),
    };
  }

  /** All of these orders go. */
  empty(side: Side): void {
    for (const order of [...this.book.side(side)]) this.book.cancel(order);
  }

  levels(side: Side): Map<string, Level> {
    const levels = new Map<string, Level>();
    for (const [price, { size, count }] of this.book.depth(side)) {
      const text = formatUnits(price, this.priceDecimals);
      levels.set(text, [text, formatUnits(size, this.sizeDecimals), count]);
    }
    return levels;
  }

  /** One act of one bot: quote near the fair price, take back a quote, or take from the book. */
  botStep(timeNs: bigint, nextId: () => bigint): void {
    const random = this.#random;
    this.#drift = this.#drift * 0.995 + (random.next() - 0.5) * this.#spread * 0.02;
    this.#fair += this.#drift + (random.next() - 0.5) * this.#spread * 0.35;
    const bots = [...this.book.bids, ...this.book.asks].filter((order) => order.account === BOT);
    const act = random.next();
    const side: Side = random.next() < 0.5 + this.#drift / this.#spread ? "buy" : "sell";
    if (act < 0.3 && bots.length > 60 || bots.length > BOT_ORDERS_MAX) {
      // The farther from the fair price, the likelier it is taken back.
      const candidates = [0, 1, 2].map(() => bots[random.below(bots.length)] as FakeOrder);
      candidates.sort((a, b) => this.#distance(b) - this.#distance(a));
      this.book.cancel(candidates[0] as FakeOrder);
    } else if (act < 0.4) {
      this.#submit(side, null, random.exponential(0.25), timeNs, nextId());
    } else {
      const away = this.#spread * (0.5 + random.exponential(random.next() < 0.5 ? 3 : 14));
      const price = BigInt(Math.max(1, Math.round(this.#fair + (side === "buy" ? -away : away))));
      this.#submit(side, price, 0.02 + random.exponential(0.3 + away / this.#spread / 20), timeNs, nextId());
    }
  }

  sellAtMarket(size: number, timeNs: bigint, orderId: bigint): void {
    this.#submit("sell", null, size, timeNs, orderId);
  }

  #distance(order: FakeOrder): number {
    return Math.abs(Number(order.price ?? 0n) - this.#fair);
  }

  #submit(side: Side, price: bigint | null, size: number, timeNs: bigint, orderId: bigint): void {
    const lots = BigInt(Math.max(1, Math.round(size * 1000))) * 10n ** BigInt(Math.max(0, this.sizeDecimals - 3));
    this.book.submit({
      orderId, clientOrderId: String(orderId), account: BOT, side, kind: price === null ? "market" : "limit", price, trigger: null,
      open: lots,
      peak: null, hidden: false, timeInForce: price === null ? "ioc" : "gtc",
    }, "off", 0n, timeNs);
  }

  #candle(candles: Candle[], seconds: number, trade: FakeTrade, price: string): void {
    const time = Number(trade.timeNs / 1_000_000_000n / BigInt(seconds)) * seconds;
    const last = candles.at(-1);
    if (!last || last.time_s !== time) {
      candles.push({
        time_s: time, open: price, high: price, low: price, close: price, volume: formatUnits(trade.size, this.sizeDecimals),
      });
      if (candles.length > 500) candles.shift();
      return;
    }
    if (Number(price) > Number(last.high)) last.high = price;
    if (Number(price) < Number(last.low)) last.low = price;
    last.close = price;
    last.volume = formatUnits(parseUnits(last.volume, this.sizeDecimals) + trade.size, this.sizeDecimals);
  }
}
