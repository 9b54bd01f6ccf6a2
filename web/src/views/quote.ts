// The head of the page: which instrument, its price in large figures, and which way the weight of the book leans.

import type { Phase } from "../api/types.ts";
import { parseUnits } from "../base/decimal.ts";
import { byId, h, setText } from "../base/dom.ts";
import { group, showChange, showShort, showUnits } from "../base/format.ts";
import { atMostEvery, oncePerFrame } from "../base/signal.ts";
import { sizeWithin } from "../state/book.ts";
import type { Venue } from "../state/venue.ts";
import { shownView } from "./view-tabs.ts";

const PHASES: Record<Phase, string> = {
  closed: "Closed",
  pre_open: "Pre-open: orders collect",
  opening_auction: "Opening auction: orders collect",
  continuous: "Open: trading continuously",
  halt: "Halted: only cancels",
  closing_auction: "Closing auction: orders collect",
};

/** How far from the middle the weight of both sides is compared, in parts per million. */
const REACH_PPM = 5_000n;
const TITLE_EVERY_MS = 1_000;

export function quoteView(venue: Venue): void {
  const select = h("select", { id: "instrument", "aria-label": "Instrument" });
  const phase = h("span.phase", { id: "phase" });
  const last = h("span.last", { id: "last-price" }, "–");
  const lastWords = h("span.sr");
  const change = h("span.change", { id: "change" });
  const bid = h("dd.buy", { id: "best-bid" });
  const ask = h("dd.sell", { id: "best-ask" });
  const spread = h("dd");
  const volume = h("dd");
  const bids = h("i.b");
  const asks = h("i.a");
  const wanted = h("span.buy");
  const lean = h("span.mid");
  const offered = h("span.sell");
  const fact = (name: string, value: HTMLElement): HTMLElement => h("div", {}, h("dt", {}, name), value);
  byId("quote").append(
    h("div.picker", {}, select, h("span.sub", {}, phase)),
    h("div.price", {}, last, lastWords, change),
    h("dl.facts", {}, fact("Best bid", bid), fact("Best ask", ask), fact("Spread", spread), fact("Volume", volume)),
    h("div.balance-line", {},
      h("div.bar", { "aria-hidden": "true" }, bids, asks),
      h("div.words", {}, wanted, lean, offered)),
  );

  select.addEventListener("change", () => {
    venue.choose(select.value);
    history.replaceState(null, "", `#${select.value.replaceAll("/", "-")}`);
  });
  venue.instruments.watch((instruments) => {
    select.replaceChildren(...instruments.map(({ symbol }) => h("option", { value: symbol }, symbol)));
  });

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
    const { instrument, priceDecimals, sizeDecimals } = units;
    const ticker = market.ticker.value;
    const price = market.lastPrice();
    if (select.value !== market.symbol) select.value = market.symbol;
    setText(last, price === null ? "No trade yet" : showUnits(parseUnits(price, priceDecimals), priceDecimals));
    setText(lastWords, ` ${instrument.quote} per ${instrument.base}`);
    const ppm = ticker?.change_ppm == null ? null : Number(ticker.change_ppm);
    setText(change, ppm === null ? "" : `${ppm > 0 ? "▲ " : ppm < 0 ? "▼ " : ""}${showChange(ppm)}`);
    change.className = `change ${ppm === null || ppm === 0 ? "" : ppm > 0 ? "buy" : "sell"}`;
    const now = ticker?.phase ?? instrument.phase;
    phase.dataset["phase"] = now;
    setText(phase, PHASES[now] ?? now);

    const best = { bid: book.bestBid(), ask: book.bestAsk() };
    setText(bid, best.bid ? showUnits(best.bid.price, priceDecimals) : "none");
    setText(ask, best.ask ? showUnits(best.ask.price, priceDecimals) : "none");
    setText(spread, best.bid && best.ask ? showUnits(best.ask.price - best.bid.price, priceDecimals) : "–");
    setText(volume, ticker ? `${showShort(ticker.volume, 3)} ${instrument.base}` : "–");

    const middle = best.bid && best.ask ? (best.bid.price + best.ask.price) / 2n : null;
    const demand = middle === null ? 0n : sizeWithin(book.bids, middle, REACH_PPM);
    const supply = middle === null ? 0n : sizeWithin(book.asks, middle, REACH_PPM);
    const total = demand + supply;
    const percent = total === 0n ? 50 : Number((demand * 1000n) / total) / 10;
    bids.style.flex = `0 0 ${percent}%`;
    setText(wanted, `${showUnits(demand, sizeDecimals)} ${instrument.base} wanted`);
    setText(offered, `${showUnits(supply, sizeDecimals)} ${instrument.base} for sale`);
    setText(lean, `within 0.5 % of the middle: ${leanWords(percent)}`);
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

function leanWords(percent: number): string {
  if (percent > 55) return "more demand than supply";
  if (percent < 45) return "more supply than demand";
  return "demand and supply about even";
}
