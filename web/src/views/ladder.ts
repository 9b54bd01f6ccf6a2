// The order book ladder: a canvas for the eye, a slider for the keyboard, a hidden table for screen readers.

import { type BookLevel, formatUnits, parseUnits, pathSymbol, type Side } from "walras";
import { toMultiple, trimZeros } from "../base/decimal.ts";
import { byId, h } from "../base/dom.ts";
import { group, showUnits, typed } from "../base/format.ts";
import { atMostEvery, oncePerFrame } from "../base/signal.ts";
import { grouped } from "../state/book.ts";
import type { Market } from "../state/market.ts";
import type { Venue } from "../state/venue.ts";
import { t } from "../texts/index.ts";
import { type LadderPicture, type LadderRow, paintLadder, rowAt, rowsPerSide } from "./ladder-paint.ts";
import { setCells, table } from "./rows.ts";
import { palette } from "./theme.ts";

const STEPS = [1n, 5n, 10n, 50n, 100n, 500n, 1000n];
const TABLE_LEVELS = 10;
const TABLE_EVERY_MS = 500;

/** `onPrice` gets the price that was clicked or chosen by keyboard; `focusSize` when the user means to go on to the ticket. */
export function ladderView(venue: Venue, onPrice: (price: bigint, focusSize: boolean) => void): { focus(): void } {
  const host = byId("ladder");
  const canvas = h("canvas", { "aria-hidden": "true" });
  const slider = h("div.ladder", {
    id: "ladder-slider", tabindex: 0, role: "slider", "aria-orientation": "vertical",
    "aria-label": t.book.slider,
    "aria-valuemin": 0, "aria-valuemax": 1, "aria-valuenow": 0,
  }, canvas);
  host.replaceWith(slider);
  const mirror = table(t.book.caption, [
    { name: t.book.side },
    { name: t.book.price, numeric: true },
    { name: t.book.size, numeric: true },
    { name: t.book.orders, numeric: true },
    { name: t.book.yours, numeric: true },
  ]);
  mirror.element.id = "book-table";
  byId("book").append(h("div.sr", {}, mirror.element));
  const stepSelect = h("select", { id: "book-step", "aria-label": t.book.stepLabel });
  byId("book-tools").append(h("label.compact", {}, t.book.step, stepSelect));

  let step = 1n;
  let chosen: { side: Side; price: bigint } | null = null;
  let hovered: LadderPicture["hovered"] = null;
  let width = 0;
  let height = 0;
  let shown: { bids: LadderRow[]; asks: LadderRow[] } = { bids: [], asks: [] };

  const draw = oncePerFrame(() => {
    const market = venue.market.value;
    const context = canvas.getContext("2d");
    if (!market || !context || width === 0) return;
    const perSide = rowsPerSide(height);
    const own = ownSizes(venue, market, step);
    shown = {
      bids: rowsOf(market, "buy", step, perSide, own),
      asks: rowsOf(market, "sell", step, perSide, own),
    };
    const ratio = devicePixelRatio;
    const wide = Math.round(width * ratio);
    const high = Math.round(height * ratio);
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    paintLadder(context, width, height, { ...pictureOf(market, shown, perSide), chosen, hovered }, palette.value);
    writeTable();
  });

  const writeTable = atMostEvery(TABLE_EVERY_MS, () => {
    const market = venue.market.value;
    if (!market) return;
    const { priceDecimals, sizeDecimals } = market.units;
    const listed = (list: LadderRow[]): LadderRow[] => list.filter((row, index) => index < TABLE_LEVELS || row.own > 0n);
    const rows = [...listed(shown.asks).reverse(), ...listed(shown.bids)];
    while (mirror.body.rows.length > rows.length) mirror.body.deleteRow(-1);
    rows.forEach((row, index) => {
      let line = mirror.body.rows[index];
      if (!line) {
        line = h("tr", {}, h("td"), h("td"), h("td"), h("td"), h("td"));
        mirror.body.append(line);
      }
      line.dataset["side"] = row.side;
      setCells(line, [
        row.side === "buy" ? t.book.bid : t.book.ask,
        typed(formatUnits(row.level.price, priceDecimals)),
        typed(formatUnits(row.level.size, sizeDecimals)),
        String(row.level.orderCount),
        row.own === 0n ? "" : typed(formatUnits(row.own, sizeDecimals)),
      ]);
    });
  });

  const choose = (row: LadderRow | undefined): void => {
    if (!row) return;
    chosen = { side: row.side, price: row.level.price };
    const market = venue.market.value;
    const list = [...shown.asks].reverse().concat(shown.bids);
    slider.setAttribute("aria-valuemax", String(list.length - 1));
    slider.setAttribute("aria-valuenow", String(list.length - 1 - list.indexOf(row)));
    if (market) slider.setAttribute("aria-valuetext", spoken(market, row));
    draw();
  };
  const move = (by: number): void => {
    const list = [...shown.asks].reverse().concat(shown.bids);
    const at = list.findIndex((row) => row.side === chosen?.side && row.level.price === chosen.price);
    const start = at >= 0 ? at + by : by > 0 ? shown.asks.length : shown.asks.length - 1;
    choose(list[Math.max(0, Math.min(list.length - 1, start))]);
  };
  slider.addEventListener("keydown", (event) => {
    const { key } = event;
    if (key === "ArrowUp" || key === "ArrowRight") move(-1);
    else if (key === "ArrowDown" || key === "ArrowLeft") move(1);
    else if (key === "PageUp") move(-5);
    else if (key === "PageDown") move(5);
    else if (key === "Home") choose(shown.asks[0]);
    else if (key === "End") choose(shown.bids[0]);
    else if ((key === "Enter" || key === " ") && chosen) onPrice(chosen.price, true);
    else return;
    event.preventDefault();
  });
  slider.addEventListener("focus", () => {
    if (!chosen && slider.matches(":focus-visible")) choose(shown.bids[0] ?? shown.asks[0]);
  });
  slider.addEventListener("blur", () => {
    chosen = null;
    draw();
  });
  canvas.addEventListener("click", (event) => {
    const at = rowAt(event.offsetY, rowsPerSide(height));
    const row = at ? (at.side === "buy" ? shown.bids : shown.asks)[at.index] : undefined;
    choose(row);
    if (row) onPrice(row.level.price, false);
  });

  canvas.addEventListener("pointermove", (event) => {
    const at = rowAt(event.offsetY, rowsPerSide(height));
    if (at?.side === hovered?.side && at?.index === hovered?.index) return;
    hovered = at;
    draw();
  });
  canvas.addEventListener("pointerleave", () => {
    hovered = null;
    draw();
  });

  stepSelect.addEventListener("change", () => {
    step = BigInt(stepSelect.value);
    draw();
  });
  new ResizeObserver(([entry]) => {
    width = entry?.contentRect.width ?? 0;
    height = entry?.contentRect.height ?? 0;
    draw();
  }).observe(slider);
  palette.watch(draw);
  venue.account.orders.watch(draw);
  venue.connection.watch(draw);
  venue.market.watch((market) => {
    if (!market) return;
    const { tick, priceDecimals } = market.units;
    step = tick;
    chosen = null;
    stepSelect.replaceChildren(...STEPS.map((times) =>
      h("option", { value: String(tick * times) }, group(trimZeros(formatUnits(tick * times, priceDecimals))))));
    market.bookChanged.watch(draw);
    draw();
  });
  return { focus: () => slider.focus() };
}

function rowsOf(market: Market, side: Side, step: bigint, count: number, own: Map<string, bigint>): LadderRow[] {
  let total = 0n;
  return grouped(market.book.side(side), side, step, count).map((level: BookLevel) => {
    total += level.size;
    return { side, level, total, own: own.get(`${side} ${level.price}`) ?? 0n };
  });
}

function ownSizes(venue: Venue, market: Market, step: bigint): Map<string, bigint> {
  const { priceDecimals, sizeDecimals } = market.units;
  const sizes = new Map<string, bigint>();
  for (const order of venue.account.orders.value.values()) {
    if (pathSymbol(order.instrument) !== pathSymbol(market.symbol) || order.price === null) continue;
    const price = toMultiple(parseUnits(order.price, priceDecimals), step, order.side === "buy" ? "down" : "up");
    const key = `${order.side} ${price}`;
    sizes.set(key, (sizes.get(key) ?? 0n) + parseUnits(order.open, sizeDecimals));
  }
  return sizes;
}

function pictureOf(
  market: Market,
  rows: { bids: LadderRow[]; asks: LadderRow[] },
  perSide: number,
): Omit<LadderPicture, "chosen" | "hovered"> {
  const { priceDecimals, sizeDecimals } = market.units;
  const bid = market.book.bestBid();
  const ask = market.book.bestAsk();
  return {
    ...rows,
    rowsPerSide: perSide,
    isLive: market.book.isLive,
    middleText: middleText(market, bid, ask),
    priceText: (price) => showUnits(price, priceDecimals),
    sizeText: (size) => showUnits(size, sizeDecimals),
  };
}

function middleText(
  { book: { indicative }, phase, units: { priceDecimals } }: Market,
  bid: BookLevel | undefined,
  ask: BookLevel | undefined,
): string {
  if (!bid && !ask) return t.book.empty;
  if (!bid || !ask) return t.book.oneSide;
  // Before an auction's uncross the sides overlap.
  if (indicative && phase !== "continuous") return t.book.indicative(showUnits(indicative.price, priceDecimals));
  if (bid.price >= ask.price) return t.book.overlap(showUnits(bid.price - ask.price, priceDecimals));
  return t.book.spread(showUnits(ask.price - bid.price, priceDecimals));
}

function spoken(market: Market, row: LadderRow): string {
  const { priceDecimals, sizeDecimals } = market.units;
  const size = (lots: bigint): string => typed(formatUnits(lots, sizeDecimals));
  const own = row.own === 0n ? "" : t.book.spokenOwn(size(row.own));
  return (
    t.book.spoken(
      row.side === "buy" ? t.book.bid : t.book.ask,
      typed(formatUnits(row.level.price, priceDecimals)),
      size(row.level.size),
      row.level.orderCount,
    ) + own
  );
}
