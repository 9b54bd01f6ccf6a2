// Demand and supply: how much could be sold down to a price, and bought up to it. The two curves of a market, as they stand.

import uPlot from "uplot";
import { toNumber } from "../base/decimal.ts";
import { byId, h, setText } from "../base/dom.ts";
import { group } from "../base/format.ts";
import { atMostEvery } from "../base/signal.ts";
import type { Level } from "../state/book.ts";
import type { Market } from "../state/market.ts";
import type { Venue } from "../state/venue.ts";
import { type Palette, palette } from "./theme.ts";

const DRAW_EVERY_MS = 120;
const LEVELS_SHOWN = 400;

type Curves = [prices: number[], demand: (number | null)[], supply: (number | null)[]];

export function depthView(venue: Venue): void {
  const host = byId("depth-plot");
  const readout = h("span.muted", { id: "depth-readout" });
  byId("depth-tools").append(readout);
  host.setAttribute("role", "img");
  let plot: uPlot | null = null;

  const draw = atMostEvery(DRAW_EVERY_MS, () => {
    const market = venue.market.value;
    if (!market || !plot) return;
    const curves = curvesOf(market);
    plot.setData(curves);
    const idle = plot.cursor.idx === null || plot.cursor.idx === undefined;
    if (idle) setText(readout, `${market.units.instrument.base} within reach of each price`);
    host.setAttribute("aria-label", spoken(market));
  });
  const rebuild = (): void => {
    plot?.destroy();
    plot = null;
    const market = venue.market.value;
    if (!market || host.clientWidth === 0) return;
    const { base } = market.units.instrument;
    plot = new uPlot(options(host, palette.value, (at) => {
      if (at !== null) setText(readout, `${group(at.price.toFixed(market.units.instrument.price_decimals))}: ${group(at.size.toFixed(3))} ${base} ${at.side}`);
    }), curvesOf(market), host);
    draw();
  };
  let size = "";
  new ResizeObserver(() => {
    const now = `${host.clientWidth} ${host.clientHeight}`;
    if (now === size || host.clientWidth === 0) return;
    size = now;
    if (plot) plot.setSize({ width: host.clientWidth, height: host.clientHeight });
    else rebuild();
  }).observe(host);
  palette.watch(rebuild);
  venue.market.watch((market) => {
    if (!market) return;
    market.bookChanged.watch(draw);
    rebuild();
  });
}

/** Both sides to the same distance from the middle, so that the picture leans only when the market does. */
function curvesOf(market: Market): Curves {
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

function options(
  host: HTMLElement,
  colours: Palette,
  onCursor: (at: { price: number; size: number; side: string } | null) => void,
): uPlot.Options {
  const stepped = (align: 1 | -1): uPlot.Series.PathBuilder => (uPlot.paths.stepped as uPlot.Series.SteppedPathBuilderFactory)({ align });
  const axis = { stroke: colours.muted, font: `11px ${colours.face}`, ticks: { show: false }, border: { show: false } };
  return {
    width: host.clientWidth,
    height: host.clientHeight,
    legend: { show: false },
    padding: [6, 6, 0, 0],
    scales: { x: { time: false }, y: { range: (_, _min, max) => [0, (Number.isFinite(max) ? max : 1) * 1.08] } },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    axes: [
      { ...axis, size: 22, gap: 4, grid: { show: false }, values: (_, ticks) => ticks.map((tick) => group(String(Math.round(tick * 1e6) / 1e6))) },
      { ...axis, size: 46, gap: 4, side: 1, grid: { stroke: colours.hair, width: 1 }, values: (_, ticks) => ticks.map((tick) => group(String(Math.round(tick * 1e6) / 1e6))) },
    ],
    series: [
      {},
      { stroke: colours.bid, width: 2, fill: faded(colours.bid), paths: stepped(-1), points: { show: false } },
      { stroke: colours.ask, width: 2, fill: faded(colours.ask), paths: stepped(1), points: { show: false } },
    ],
    hooks: {
      setCursor: [(plot) => {
        const index = plot.cursor.idx;
        if (index === null || index === undefined) return onCursor(null);
        const price = plot.data[0]?.[index];
        const demand = plot.data[1]?.[index] ?? null;
        const size = demand ?? plot.data[2]?.[index] ?? null;
        if (price !== undefined && size !== null) onCursor({ price, size, side: demand === null ? "for sale" : "wanted" });
      }],
    },
  };
}

/** The colour at a sixth of its strength. */
function faded(colour: string): string {
  return colour.replace(/^rgb\((.*)\)$/, "rgba($1, 0.16)");
}

function spoken(market: Market): string {
  const total = (levels: Level[]): string =>
    toNumber(levels.reduce((sum, level) => sum + level.size, 0n), market.units.sizeDecimals).toFixed(2);
  const { base } = market.units.instrument;
  return `Depth chart: ${total(market.book.bids)} ${base} wanted and ${total(market.book.asks)} ${base} for sale in the book.`;
}
