// Everything public about the chosen instrument: its units, book, trades, candles and ticker.

import {
  type Asset, BookCopy, type Candle, divide, type Instrument, type Interval, parseUnits, type Phase, type Trade, type WsCandles,
  type WsTicker, type WsTrades,
} from "walras";
import { decimalsOf, rescale } from "../base/decimal.ts";
import { oneOf, Setting } from "../base/settings.ts";
import { Signal } from "../base/signal.ts";

const TRADES_KEPT = 200;

/** Of the candles. */
export const keptInterval = new Setting<Interval>("interval", "10s", oneOf("1s", "10s", "1m", "5m", "1h"));

/** The instrument's units, read once. */
export class Units {
  readonly instrument: Instrument;
  readonly priceDecimals: number;
  readonly sizeDecimals: number;
  readonly quoteDecimals: number;
  readonly tick: bigint;
  readonly lot: bigint;

  constructor(instrument: Instrument, assets: Asset[]) {
    this.instrument = instrument;
    this.priceDecimals = Math.max(instrument.price_decimals, decimalsOf(instrument.tick_size));
    this.sizeDecimals = Math.max(instrument.size_decimals, decimalsOf(instrument.lot_size));
    this.quoteDecimals = assets.find((asset) => asset.symbol === instrument.quote)?.decimals ?? this.priceDecimals;
    this.tick = parseUnits(instrument.tick_size, this.priceDecimals);
    this.lot = parseUnits(instrument.lot_size, this.sizeDecimals);
  }

  /** What `size` at `price` is worth, in the quote asset's smallest unit. Exact for whole ticks and lots. */
  value(price: bigint, size: bigint): bigint {
    return rescale(price * size, this.priceDecimals + this.sizeDecimals, this.quoteDecimals, "up");
  }

  /** The most that a trade of this value may cost in fees: what the venue reserves in addition to the value. */
  feeReserve(value: bigint): bigint {
    const worst = Math.max(this.instrument.maker_fee_ppm, this.instrument.taker_fee_ppm, 0);
    return divide(value * BigInt(worst), 1_000_000n, "up");
  }
}

export class Market {
  readonly units: Units;
  readonly book: BookCopy;
  readonly bookChanged: Signal<BookCopy>;
  /** Newest first. */
  readonly trades = new Signal<Trade[]>([]);
  /** Oldest first, one interval. `null` while the chosen interval has not arrived. */
  readonly candles = new Signal<{ kind: "snapshot" | "update"; candles: Candle[] } | null>(null);
  readonly ticker = new Signal<WsTicker | null>(null);
  interval: Interval = keptInterval.value;

  constructor(units: Units) {
    this.units = units;
    this.book = new BookCopy(units.priceDecimals, units.sizeDecimals);
    this.bookChanged = new Signal(this.book);
  }

  get symbol(): string {
    return this.units.instrument.symbol;
  }

  lastPrice(): string | null {
    return this.trades.value[0]?.price ?? this.ticker.value?.last_price ?? this.units.instrument.last_price;
  }

  /** As the ticker says, which follows it. */
  get phase(): Phase {
    return (this.ticker.value ?? this.units.instrument).phase;
  }

  get isHaltedByBand(): boolean {
    const { phase, phase_cause } = this.ticker.value ?? this.units.instrument;
    return phase === "halt" && phase_cause === "price_band";
  }

  applyTrades(message: WsTrades): void {
    if (message.kind === "snapshot") {
      this.trades.value = message.trades.slice(0, TRADES_KEPT);
      return;
    }
    const newest = message.trades.toReversed();
    this.trades.value = [...newest, ...this.trades.value].slice(0, TRADES_KEPT);
  }

  applyCandles(message: WsCandles): void {
    if (message.interval !== this.interval) return;
    this.candles.value = { kind: message.kind, candles: message.candles };
  }
}
