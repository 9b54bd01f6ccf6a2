// The list of markets: found by name, the starred ones first, with the day's figures. It takes the place of a select of instruments.

import { type Instrument, pathSymbol } from "walras";
import { byId, h, setText } from "../base/dom.ts";
import { group, showChange, showShort } from "../base/format.ts";
import { favourites } from "../base/settings.ts";
import { atMostEvery } from "../base/signal.ts";
import type { Venue } from "../state/venue.ts";
import { t } from "../texts/index.ts";
import { Rows, table } from "./rows.ts";

const DRAW_EVERY_MS = 250;

const words = t.markets;

/** Opens the list. */
export function marketsDialog(venue: Venue): () => void {
  const search = h("input", {
    type: "text", id: "markets-search", role: "combobox", autocomplete: "off", spellcheck: "false", placeholder: words.searchPlaceholder,
    "aria-label": words.search, "aria-controls": "markets-table", "aria-expanded": true, "aria-autocomplete": "list",
  });
  const numeric = true;
  const { element, body } = table(words.title, [
    { name: t.headings["watch-title"], silent: true }, { name: words.instrument }, { name: words.last, numeric },
    { name: words.change, numeric }, { name: words.high, numeric }, { name: words.low, numeric }, { name: words.volume, numeric },
  ]);
  element.id = "markets-table";
  element.setAttribute("role", "grid");
  const none = h("p.empty", {}, words.none);
  const dialog = h("dialog.markets", { id: "markets", "aria-labelledby": "markets-title" },
    h("h2", { id: "markets-title" }, words.title), search,
    h("div.scroll", {}, element, none), h("p.muted.small", {}, words.words),
    h("form", { method: "dialog" }, h("div.row", {}, h("button.plain", { type: "submit" }, words.close))));
  document.body.prepend(dialog);
  /** The symbol that Enter opens. */
  let active: string | null = null;

  const found = (): Instrument[] => {
    const parts = search.value.toUpperCase().split(/[\s/-]+/).filter(Boolean);
    const list = venue.instruments.value.filter(({ symbol }) => parts.every((part) => symbol.toUpperCase().includes(part)));
    const kept = (symbol: string): number => (favourites.value.includes(symbol) ? 0 : 1);
    return list.toSorted((a, b) => kept(a.symbol) - kept(b.symbol));
  };
  const choose = (symbol: string): void => {
    dialog.close();
    location.hash = pathSymbol(symbol);
  };
  const rows = new Rows<Instrument>(body, ({ symbol }) => {
    const star = h("button.icon.star", { type: "button", onclick: (event) => {
      event.stopPropagation();
      const others = favourites.value.filter((other) => other !== symbol);
      favourites.value = favourites.value.includes(symbol) ? others : [...others, symbol];
    } });
    const name = h("button.plain", { type: "button" }, symbol);
    return h("tr", { id: `market-${pathSymbol(symbol)}`, onclick: () => choose(symbol) },
      h("td", {}, star), h("td", {}, name), h("td.num"), h("td.num"), h("td.num"), h("td.num"), h("td.num"));
  }, (row, instrument) => {
    const { symbol, base } = instrument;
    const ticker = venue.tickers.all.value.get(symbol);
    const star = row.querySelector(".star");
    const isKept = favourites.value.includes(symbol);
    if (star) {
      setText(star, isKept ? "★" : "☆");
      star.setAttribute("aria-label", isKept ? words.unstar(symbol) : words.star(symbol));
      star.setAttribute("aria-pressed", String(isKept));
    }
    const ppm = venue.tickers.changePpm(instrument);
    const price = (text: string | null | undefined): string => (text == null ? "–" : group(text));
    const texts = [
      price(venue.tickers.lastPrice(instrument)), ppm === null ? "–" : showChange(ppm), price(ticker?.high), price(ticker?.low),
      ticker ? `${showShort(ticker.volume, 2)} ${base}` : "–",
    ];
    texts.forEach((text, index) => {
      const cell = row.cells[index + 2];
      if (cell) setText(cell, text);
    });
    row.cells[3]?.classList.toggle("buy", ppm !== null && ppm > 0);
    row.cells[3]?.classList.toggle("sell", ppm !== null && ppm < 0);
    row.classList.toggle("chosen", symbol === active);
    row.setAttribute("aria-selected", String(symbol === active));
  });
  const draw = (): void => {
    if (!dialog.open) return;
    const list = found();
    if (!list.some(({ symbol }) => symbol === active)) active = list[0]?.symbol ?? null;
    rows.show(list, ({ symbol }) => symbol);
    element.hidden = list.length === 0;
    none.hidden = list.length > 0;
    if (active === null) search.removeAttribute("aria-activedescendant");
    else search.setAttribute("aria-activedescendant", `market-${pathSymbol(active)}`);
  };
  search.addEventListener("input", () => {
    active = null;
    draw();
  });
  search.addEventListener("keydown", (event) => {
    const list = found();
    const at = list.findIndex(({ symbol }) => symbol === active);
    if (event.key === "ArrowDown") active = list[Math.min(list.length - 1, at + 1)]?.symbol ?? null;
    else if (event.key === "ArrowUp") active = list[Math.max(0, at - 1)]?.symbol ?? null;
    else if (event.key === "Enter" && active !== null) return event.preventDefault(), choose(active);
    else return;
    event.preventDefault();
    draw();
    if (active !== null) byId(`market-${pathSymbol(active)}`).scrollIntoView({ block: "nearest" });
  });
  favourites.watch(draw);
  venue.instruments.watch(draw);
  venue.tickers.all.watch(atMostEvery(DRAW_EVERY_MS, draw));
  return () => {
    search.value = "";
    active = venue.market.value?.symbol ?? null;
    if (!dialog.open) dialog.showModal();
    draw();
    search.focus();
  };
}
