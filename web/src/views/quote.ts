// The head of the page: which instrument, its price in large figures, and which way the weight of the book leans.

import { parseUnits, type Phase } from "walras";
import { byId, h, setText } from "../base/dom.ts";
import { group, showChange, showShort, showUnits } from "../base/format.ts";
import { atMostEvery, oncePerFrame } from "../base/signal.ts";
import { REACH_PPM, weightOf, weightWords } from "../state/weight.ts";
import type { Venue } from "../state/venue.ts";
import { t } from "../texts/index.ts";
import { shownView } from "./view-tabs.ts";

const PHASES: Record<Phase, string> = t.quote.phases;

/** Of the day's figures. */
const DAY_WORDS = t.quote.day;
const TITLE_EVERY_MS = 1_000;

export function quoteView(venue: Venue, openMarkets: () => void): void {
  const picker = h("button.instrument", { type: "button", id: "instrument", "aria-haspopup": "dialog", onclick: openMarkets });
  const phase = h("span.phase", { id: "phase" });
  const last = h("span.last", { id: "last-price" }, "–");
  const lastWords = h("span.sr");
  const change = h("span.change", { id: "change", title: t.quote.changeTitle(DAY_WORDS) });
  const bid = h("dd.buy", { id: "best-bid" });
  const ask = h("dd.sell", { id: "best-ask" });
  const spread = h("dd", { id: "spread" });
  const high = h("dd", { id: "day-high" });
  const low = h("dd", { id: "day-low" });
  const volume = h("dd", { id: "day-volume" });
  const turnover = h("dd", { id: "day-turnover" });
  const bids = h("i.b");
  const asks = h("i.a");
  const bar = h("div.bar", { "aria-hidden": "true" }, bids, asks);
  const wanted = h("span.buy");
  const lean = h("span.mid");
  const offered = h("span.sell");
  const fact = (name: string, value: HTMLElement): HTMLElement => h("div", {}, h("dt", {}, name), value);
  const ofDay = (name: string, value: HTMLElement): HTMLElement => h("div", { title: DAY_WORDS }, h("dt", {}, name), value);
  byId("quote").append(
    h("div.picker", {}, picker, h("span.sub", {}, phase)),
    h("div.price", {}, last, lastWords, change),
    h("dl.facts", {}, fact(t.quote.bestBid, bid), fact(t.quote.bestAsk, ask), fact(t.quote.spread, spread),
      ofDay(t.quote.high, high), ofDay(t.quote.low, low), ofDay(t.quote.volume, volume), ofDay(t.quote.turnover, turnover)),
    h("div.balance-line", {},
      h("div.bar-room", {}, bar),
      h("div.words", {}, wanted, lean, offered)),
  );

  const drawTitle = atMostEvery(TITLE_EVERY_MS, () => {
    if (shownView.value !== "book") return;
    const market = venue.market.value;
    const price = market?.lastPrice();
    document.title = market && price ? `${group(price)} ${market.symbol} · Walras` : "Walras";
  });

  const draw = oncePerFrame(() => {
    const market = venue.market.value;
    if (!market) return;
    const { units, book } = market;
    const { instrument, priceDecimals } = units;
    const ticker = market.ticker.value;
    const price = market.lastPrice();
    if (picker.textContent !== market.symbol) {
      setText(picker, market.symbol);
      picker.setAttribute("aria-label", t.markets.open(market.symbol));
    }
    setText(last, price === null ? t.quote.noTrade : showUnits(parseUnits(price, priceDecimals), priceDecimals));
    setText(lastWords, t.quote.per(instrument.quote, instrument.base));
    const ppm = ticker?.change_ppm == null ? null : Number(ticker.change_ppm);
    change.replaceChildren(
      ...(ppm === null ? [] : [`${ppm > 0 ? "▲ " : ppm < 0 ? "▼ " : ""}${showChange(ppm)}`, h("span.muted", {}, t.quote.today)]),
    );
    change.className = `change ${ppm === null || ppm === 0 ? "" : ppm > 0 ? "buy" : "sell"}`;
    const now = market.phase;
    phase.dataset["phase"] = now;
    setText(phase, market.isHaltedByBand ? t.quote.haltedByBand : PHASES[now] ?? now);

    const best = { bid: book.bestBid(), ask: book.bestAsk() };
    setText(bid, best.bid ? showUnits(best.bid.price, priceDecimals) : t.quote.none);
    setText(ask, best.ask ? showUnits(best.ask.price, priceDecimals) : t.quote.none);
    // While orders collect for an auction the sides overlap.
    const apart = best.bid && best.ask ? best.ask.price - best.bid.price : 0n;
    setText(spread, apart > 0n ? showUnits(apart, priceDecimals) : "–");
    const day = (price: string | null | undefined): string =>
      (price == null ? "–" : showUnits(parseUnits(price, priceDecimals), priceDecimals));
    setText(high, day(ticker?.high));
    setText(low, day(ticker?.low));
    setText(volume, ticker ? `${showShort(ticker.volume, 3)} ${instrument.base}` : "–");
    const worth = ticker?.turnover;
    // Below a thousand three decimals: a turnover of half a bitcoin would read 0.
    setText(turnover, worth === undefined ? "–" : `${showShort(worth, worth.indexOf(".") > 3 ? 0 : 3)} ${instrument.quote}`);
    turnover.title = worth === undefined ? "" : `${group(worth)} ${instrument.quote}`;

    const said = weightWords(weightOf(book, REACH_PPM), units);
    bar.hidden = said.percent === null;
    bids.style.flex = `0 0 ${said.percent ?? 0}%`;
    setText(wanted, said.wanted);
    setText(offered, said.offered);
    setText(lean, said.middle);
    drawTitle();
  });
  shownView.watch(drawTitle);
  venue.market.watch((market) => {
    if (!market) return;
    market.bookChanged.watch(draw);
    market.trades.watch(draw);
    market.ticker.watch(draw);
    draw();
  });
}
