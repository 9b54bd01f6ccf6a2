// The tickers of all instruments, for the list of markets, the watch list, alerts and what an account is worth.

import { type Instrument, pathSymbol, type Subscription, type WsTicker } from "walras";
import { Signal } from "../base/signal.ts";

/**
 * A venue lets a connection have 64 subscriptions where nothing else is configured, and the page has others. Of the markets beyond these
 * only old prices are known: the last one that was seen, or the one that the venue listed at the start.
 */
export const FOLLOWED_MAX = 48;

export class Tickers {
  /** By symbol. */
  readonly all = new Signal<Map<string, WsTicker>>(new Map());
  #instruments: Instrument[] = [];
  #followed: string[] = [];
  /** The last prices of markets that were followed, as they were left. */
  readonly #seen = new Map<string, string>();

  /** What the venue has. `follow` begins with what is new. */
  list(instruments: Instrument[]): void {
    this.#instruments = instruments;
  }

  /** What to subscribe to and what to leave, so that the `first` are followed, and as many others as there is room for. */
  follow(first: readonly string[]): { begin: Subscription[]; end: Subscription[] } {
    const known = new Set(this.#instruments.map(({ symbol }) => symbol));
    const wanted = [...new Set([...first, ...this.#followed, ...known])].filter((symbol) => known.has(symbol)).slice(0, FOLLOWED_MAX);
    const begin = wanted.filter((symbol) => !this.#followed.includes(symbol));
    const end = this.#followed.filter((symbol) => !wanted.includes(symbol));
    this.#followed = wanted;
    for (const symbol of end) {
      const last = this.all.value.get(symbol)?.last_price;
      if (last != null) this.#seen.set(symbol, last);
      this.all.value.delete(symbol);
    }
    return { begin: begin.map(subscriptionTo), end: end.map(subscriptionTo) };
  }

  take(message: WsTicker): void {
    // By the venue's own spelling, which a message may give with another separator. One may still come of a market that was left.
    const symbol = this.#followed.find((followed) => pathSymbol(followed) === pathSymbol(message.instrument));
    if (symbol === undefined) return;
    this.all.value.set(symbol, message);
    this.all.touch();
  }

  lastPrice({ symbol, last_price: listed }: Instrument): string | null {
    return this.all.value.get(symbol)?.last_price ?? this.#seen.get(symbol) ?? listed;
  }

  /** The change of the day in parts per million. */
  changePpm({ symbol }: Instrument): number | null {
    const ppm = this.all.value.get(symbol)?.change_ppm;
    return ppm == null ? null : Number(ppm);
  }
}

function subscriptionTo(symbol: string): Subscription {
  return { channel: "ticker", instrument: pathSymbol(symbol) };
}
