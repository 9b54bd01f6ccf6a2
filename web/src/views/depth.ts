// Demand and supply: how much could be sold down to a price, and bought up to it. The two curves of a market, as they stand.

import uPlot from "uplot";
import { toNumber } from "../base/decimal.ts";
import { byId, h, setText } from "../base/dom.ts";
import { group } from "../base/format.ts";
import { atMostEvery } from "../base/signal.ts";
import type { Level } from "../state/book.ts";
import type { Market } from "../state/market.ts";
import type { Venue } from "../state/venue.ts";
import { curveOptions, HostedPlot, type PlotOptions } from "./plot.ts";
import type { Palette } from "./theme.ts";

const DRAW_EVERY_MS = 120;
const LEVELS_SHOWN = 400;

type Curves = [prices: number[], demand: (number | null)[], supply: (number | null)[]];

interface Pointed {
  price: number;
  size: number;
  side: string;
}

export function depthView(venue: Venue): void {
  const host = byId("depth-plot");
  const readout = h("span.muted", { id: "depth-readout" });
  byId("depth-tools").append(readout);
  const onCursor = (at: Pointed): void => {
    const market = venue.market.value;
    if (!market) return;
    const { base, price_decimals: decimals } = market.units.instrument;
    setText(readout, `${group(at.price.toFixed(decimals))}: ${group(at.size.toFixed(3))} ${base} ${at.side}`);
  };
  const plot = new HostedPlot(host, (colours) => ({ options: options(colours, onCursor), data: curvesOf(venue.market.value) }));

  const show = (): void => {
    const market = venue.market.value;
    if (!market) return;
    plot.show(curvesOf(market));
    if (plot.isIdle) setText(readout, `${market.units.instrument.base} within reach of each price`);
    host.setAttribute("aria-label", spoken(market));
  };
  const draw = atMostEvery(DRAW_EVERY_MS, show);
  venue.market.watch((market) => {
    if (!market) return;
    market.bookChanged.watch(draw);
    show();
  });
}

/** Both sides to the same distance from the middle, so that the picture leans only when the market does. */
function curvesOf(market: Market | null): Curves {
  if (!market) return [[], [], []];
  const { book, units } = market;
  const bids = book.bids.slice(0, LEVELS_SHOWN);
  const asks = book.asks.slice(0, LEVELS_SHOWN);
  const [bid, ask] = [bids[0], asks[0]];
  const [lowest, highest] = [bids.at(-1), asks.at(-1)];
  if (!bid || !ask || !lowest || !highest) return [[], [], []];
  const middle = (bid.price + ask.price) / 2n;
  const reachDown = middle - lowest.price;
  const reachUp = highest.price - middle;
  const reach = reachDown < reachUp ? reachDown : reachUp;
  const near = (level: Level): boolean => (level.price > middle ? level.price - middle : middle - level.price) <= reach;
  const prices: number[] = [];
  const demand: (number | null)[] = [];
  const supply: (number | null)[] = [];
  const points = (levels: Level[]): [number, number][] => {
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

function options(colours: Palette, onCursor: (at: Pointed) => void): PlotOptions {
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
    const size = demand ?? plot.data[2]?.[index] ?? null;
    if (price !== undefined && size !== null) onCursor({ price, size, side: demand === null ? "for sale" : "wanted" });
  };
  return { ...curveOptions(colours, style), hooks: { setCursor: [setCursor] } };
}

function spoken(market: Market): string {
  const total = (levels: Level[]): string =>
    toNumber(levels.reduce((sum, level) => sum + level.size, 0n), market.units.sizeDecimals).toFixed(2);
  const { base } = market.units.instrument;
  return `Depth chart: ${total(market.book.bids)} ${base} wanted and ${total(market.book.asks)} ${base} for sale in the book.`;
}
