// Demand and supply: how much could be sold down to a price, and bought up to it. The two curves of a market, as they stand. While orders
// collect for an auction they cross, and the picture shows where.

import uPlot from "uplot";
import { type BookLevel, pathSymbol } from "walras";
import { toNumber } from "../base/decimal.ts";
import { byId, h, setText } from "../base/dom.ts";
import { group, showUnits, signed } from "../base/format.ts";
import { atMostEvery, Signal } from "../base/signal.ts";
import { AuctionHistory, crossingCurves, indicativeWords, ownOutcome, ownWords } from "../state/auction.ts";
import type { Market } from "../state/market.ts";
import type { Venue } from "../state/venue.ts";
import { t } from "../texts/index.ts";
import { auctionPanel } from "./auction-panel.ts";
import { curveOptions, HostedPlot, marksOn, type PlotOptions } from "./plot.ts";
import { type Palette, palette } from "./theme.ts";

const DRAW_EVERY_MS = 120;
const LEVELS_SHOWN = 400;

type Curves = [prices: number[], demand: (number | null)[], supply: (number | null)[]];

interface Pointed {
  price: number;
  demand: number | null;
  supply: number | null;
}

/** Returns whether orders collect for an auction. */
export function depthView(venue: Venue): Signal<boolean> {
  const collects = new Signal(false);
  const host = byId("depth-plot");
  const readout = h("span.muted", { id: "depth-readout" });
  byId("depth-tools").append(readout);
  const onCursor = (at: Pointed): void => {
    const market = venue.market.value;
    if (!market) return;
    const { base, price_decimals: decimals } = market.units.instrument;
    const size = (much: number | null, words: string): string[] => (much === null ? [] : [`${group(much.toFixed(3))} ${base} ${words}`]);
    setText(
      readout,
      `${group(at.price.toFixed(decimals))}: ${[...size(at.demand, t.depth.wanted), ...size(at.supply, t.depth.offered)].join(", ")}`,
    );
  };
  const words = byId("indicative");
  const panel = auctionPanel(byId("auction"));
  let history = new AuctionHistory();
  const drawMarks = (drawn: uPlot): void => markIndicative(drawn, venue.market.value, palette.value);
  const plot = new HostedPlot(host, (colours) => ({ options: options(colours, onCursor, drawMarks), data: curvesOf(venue.market.value) }));

  const show = (): void => {
    const market = venue.market.value;
    if (!market) return;
    plot.show(curvesOf(market));
    const said = indicativeWords(market.book, market.phase, market.units);
    words.hidden = said === null;
    if (collects.value !== (said !== null)) collects.value = said !== null;
    if (said) words.replaceChildren(...(said.price === "" ? [said.words] : [h("b", {}, t.depth.indicative(said.price)), ` ${said.words}`]));
    const { indicative } = market.book;
    history.add(said === null ? null : indicative, Date.now());
    const own = [...venue.account.orders.value.values()].filter(({ instrument }) => pathSymbol(instrument) === pathSymbol(market.symbol));
    const { units } = market;
    panel.show(said === null || !indicative ? null
      : { indicative, units, history, own: ownWords(ownOutcome(own, indicative.price, units), units) });
    if (plot.isIdle) setText(readout, t.depth.within(market.units.instrument.base));
    host.setAttribute("aria-label", said === null ? spoken(market) : `${spoken(market)} ${words.textContent ?? ""}`);
  };
  const draw = atMostEvery(DRAW_EVERY_MS, show);
  venue.account.orders.watch(draw);
  venue.market.watch((market) => {
    if (!market) return;
    market.bookChanged.watch(draw);
    market.ticker.watch(draw);
    history = new AuctionHistory();
    show();
  });
  return collects;
}

/** Both sides to the same distance from the middle, so that the picture leans only when the market does. */
function curvesOf(market: Market | null): Curves {
  if (!market) return [[], [], []];
  const { book, units } = market;
  const crossing = crossingCurves(book);
  if (crossing) {
    const size = (lots: bigint): number => toNumber(lots, units.sizeDecimals);
    return [crossing.prices.map((price) => toNumber(price, units.priceDecimals)), crossing.demand.map(size), crossing.supply.map(size)];
  }
  const bids = book.bids.slice(0, LEVELS_SHOWN);
  const asks = book.asks.slice(0, LEVELS_SHOWN);
  const [bid, ask] = [bids[0] ?? asks[0], asks[0] ?? bids[0]];
  if (!bid || !ask) return [[], [], []];
  const middle = (bid.price + ask.price) / 2n;
  const away = ({ price }: BookLevel): bigint => (price > middle ? price - middle : middle - price);
  // Of the sides that have orders, the one that reaches less far.
  const reaches = [bids.at(-1), asks.at(-1)].flatMap((level) => (level ? [away(level)] : []));
  const reach = reaches.reduce((a, b) => (a < b ? a : b));
  const near = (level: BookLevel): boolean => away(level) <= reach;
  const prices: number[] = [];
  const demand: (number | null)[] = [];
  const supply: (number | null)[] = [];
  const points = (levels: BookLevel[]): [number, number][] => {
    let total = 0n;
    return levels.filter(near).map((level) => {
      total += level.size;
      return [toNumber(level.price, units.priceDecimals), toNumber(total, units.sizeDecimals)];
    });
  };
  for (const [price, total] of points(bids).reverse()) {
    prices.push(price);
    demand.push(total);
    supply.push(null);
  }
  for (const [price, total] of points(asks)) {
    prices.push(price);
    demand.push(null);
    supply.push(total);
  }
  return [prices, demand, supply];
}

/** The price at which an auction would end now, and how much would trade there. */
function markIndicative(plot: uPlot, market: Market | null, colours: Palette): void {
  const indicative = market?.book.indicative;
  if (!market || !indicative || market.phase === "continuous" || (plot.data[0]?.length ?? 0) === 0) return;
  const { priceDecimals, sizeDecimals } = market.units;
  const price = toNumber(indicative.price, priceDecimals);
  const marks = marksOn(plot, colours);
  plot.ctx.save();
  marks.rule(price, colours.ink, []);
  marks.flag(price, showUnits(indicative.price, priceDecimals), colours.ink, colours.paper, true);
  marks.dot(price, toNumber(indicative.volume, sizeDecimals), colours.ink);
  plot.ctx.restore();
}

function options(colours: Palette, onCursor: (at: Pointed) => void, drawMarks: (plot: uPlot) => void): PlotOptions {
  const stepped = (align: 1 | -1): uPlot.Series.PathBuilder => (uPlot.paths.stepped as uPlot.Series.SteppedPathBuilderFactory)({ align });
  const label = (tick: number): string => group(String(Math.round(tick * 1e6) / 1e6));
  const style = {
    padding: [6, 6, 0, 0] as uPlot.Padding, room: 1.08, amountsWidth: 46, lineWidth: 2, fillStrength: 0.16,
    wanted: stepped(-1), offered: stepped(1), price: label, amount: label,
  };
  const setCursor = (plot: uPlot): void => {
    const index = plot.cursor.idx;
    if (index == null) return;
    const price = plot.data[0]?.[index];
    const demand = plot.data[1]?.[index] ?? null;
    if (price !== undefined) onCursor({ price, demand, supply: plot.data[2]?.[index] ?? null });
  };
  return { ...curveOptions(colours, style), hooks: { setCursor: [setCursor], draw: [drawMarks] } };
}

function spoken(market: Market): string {
  const { base } = market.units.instrument;
  const total = (levels: BookLevel[]): string =>
    `${signed(toNumber(levels.reduce((sum, level) => sum + level.size, 0n), market.units.sizeDecimals).toFixed(2))} ${base}`;
  return t.depth.spoken(total(market.book.bids), total(market.book.asks));
}
