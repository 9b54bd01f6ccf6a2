// The tickers of all instruments, for the list of markets, alerts and what an account is worth.

import { type Instrument, pathSymbol, type Subscription, type WsTicker } from "walras";
import { Signal } from "../base/signal.ts";

/** Beyond these only the prices that the venue listed at the start are known. */
export const FOLLOWED_MAX = 200;

export class Tickers {
  /** By symbol. */
  readonly all = new Signal<Map<string, WsTicker>>(new Map());
  #instruments: Instrument[] = [];

  /** What to subscribe to. */
  start(instruments: Instrument[]): Subscription[] {
    this.#instruments = instruments;
    return instruments.slice(0, FOLLOWED_MAX).map(({ symbol }) => ({ channel: "ticker", instrument: pathSymbol(symbol) }));
  }

  take(message: WsTicker): void {
    // By the venue's own spelling, which a message may give with another separator.
    const symbol = this.#instruments.find((instrument) => pathSymbol(instrument.symbol) === pathSymbol(message.instrument))?.symbol;
    if (symbol === undefined) return;
    this.all.value.set(symbol, message);
    this.all.touch();
  }

  lastPrice(instrument: Instrument): string | null {
    return this.all.value.get(instrument.symbol)?.last_price ?? instrument.last_price;
  }
}
