// Demand and supply of the chosen pair around the price at which the last block cleared. The two need not cross exactly there: in a
// batch of many assets what one pair lacks may come by way of others, and the words above the curves say how much did.

import uPlot from "uplot";
import type { BatchDemand, BatchPoint } from "walras";
import { quotient } from "../../base/decimal.ts";
import { byId, h } from "../../base/dom.ts";
import { group } from "../../base/format.ts";
import { oncePerFrame } from "../../base/signal.ts";
import type { Pair } from "../../state/batch-market.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { curveOptions, HostedPlot, marksOn, type PlotOptions } from "../plot.ts";
import { type Palette, palette } from "../theme.ts";
import { assetSelect, fillAssets } from "./asset-select.ts";
import { typedLimit } from "./typed-limit.ts";

const said = t.curves;
const PRICE_DIGITS = 6;
/** Of the largest amount shown: less than this at the price is what a cleared block leaves. */
const LEFT_SHARE_MOST = 0.05;

export function curvesView(venue: Venue): void {
  const { desk } = venue;
  const host = byId("curves-plot");
  const words = byId("curves-words");
  const sell = assetSelect("curves-sell", said.sell, (asset) => desk.market.value?.choose({ sell: asset }));
  const buy = assetSelect("curves-buy", said.buy, (asset) => desk.market.value?.choose({ buy: asset }));
  const swap = h("button.icon", { type: "button", id: "curves-swap", "aria-label": said.swap, onclick: () => {
    const market = desk.market.value;
    if (market) market.choose({ sell: market.pair.value.buy });
  } }, "⇄");
  byId("curves-tools").append(h("div.pair", {}, h("label.compact", {}, said.of, sell), swap, h("label.compact", {}, said.in, buy)));
  const demandNow = (): BatchDemand | null => desk.market.value?.demand.value ?? null;
  const plot = new HostedPlot(host, (colours) => ({ options: options(colours, demandNow), data: curvesOf(demandNow()) }));

  const draw = oncePerFrame(() => {
    const market = desk.market.value;
    if (!market) return;
    const { assets } = market.info.value;
    const pair = market.pair.value;
    fillAssets(sell, assets, pair.sell);
    fillAssets(buy, assets, pair.buy);
    const demand = market.demand.value;
    plot.show(curvesOf(demand));
    host.dataset["pair"] = demand ? `${pair.sell} ${pair.buy}` : "";
    words.replaceChildren(...wordsOf(demand, pair));
    host.setAttribute("aria-label", words.textContent ?? "");
  });
  typedLimit.watch(draw);
  desk.market.watch((market) => {
    if (!market) return;
    market.demand.watch(draw);
    market.pair.watch(draw);
    draw();
  });
}

function curvesOf(demand: BatchDemand | null): uPlot.AlignedData {
  const points = demand?.points ?? [];
  return [
    points.map(({ price }) => Number(price)), points.map((point) => Number(point.demand)), points.map((point) => Number(point.supply)),
  ];
}

/** For pixels: demand and supply at a price, on the lines between the points. */
function at(points: BatchPoint[], price: number): { demand: number; supply: number } | null {
  const after = points.findIndex((point) => Number(point.price) >= price);
  const [left, right] = [points[Math.max(0, after - 1)], points[after]];
  if (!left || !right) return null;
  const span = Number(right.price) - Number(left.price);
  const part = span === 0 ? 0 : (price - Number(left.price)) / span;
  const between = (a: string, b: string): number => Number(a) + part * (Number(b) - Number(a));
  return { demand: between(left.demand, right.demand), supply: between(left.supply, right.supply) };
}

function wordsOf(demand: BatchDemand | null, pair: Pair): Node[] {
  if (!demand) return [document.createTextNode(said.coming(pair.sell, pair.buy))];
  if (demand.price === null) return [document.createTextNode(said.noPrice(pair.sell, pair.buy))];
  const here = at(demand.points, Number(demand.price));
  const price = h("b", {}, said.at(group(quotient(demand.price, "1", PRICE_DIGITS))));
  if (!here) return [price];
  const amount = (value: number): string => group(value >= 100 ? Math.round(value).toString() : String(Number(value.toPrecision(3))));
  const side = (name: "buy" | "sell", words: string): Node => h(`span.${name}`, {}, words);
  const plain = (words: string): Node => document.createTextNode(words);
  const ends = { demand: Number(demand.points[0]?.demand), supply: Number(demand.points.at(-1)?.supply) };
  if (ends.demand === 0 && ends.supply === 0) return [price, plain(said.nobody(pair.sell, pair.buy))];
  // Once a block has cleared, what stands is what its prices left: little of it would trade within the pair.
  if (Math.min(here.demand, here.supply) < LEFT_SHARE_MOST * Math.max(ends.demand, ends.supply)) {
    return [
      price, plain(said.left), side("buy", said.leftWanted(amount(ends.demand), pair.sell)), plain(said.leftBetween),
      side("sell", said.leftOffered(amount(ends.supply))), plain(said.leftEnd),
    ];
  }
  const rest = Math.abs(here.demand - here.supply);
  const balance =
    rest <= 0.01 * Math.max(here.demand, here.supply) ? said.balance : here.supply > here.demand ? said.restSold : said.restComes;
  return [
    price,
    plain(" "),
    side("buy", said.wantedAt(amount(here.demand), pair.sell)),
    plain(", "),
    side("sell", said.offeredAt(amount(here.supply))),
    plain(`. ${balance}`),
  ];
}

function options(colours: Palette, demandNow: () => BatchDemand | null): PlotOptions {
  const price = (tick: number): string => group(String(Number(tick.toPrecision(7))));
  const linear = (uPlot.paths.linear as uPlot.Series.LinearPathBuilderFactory)();
  const style = {
    // Room at the top for the flags, and a fill on which text of the same colour stays readable.
    padding: [26, 6, 0, 0] as uPlot.Padding, room: 1.06, amountsWidth: 56, lineWidth: 2.5, fillStrength: 0.1,
    wanted: linear, offered: linear, price, amount: (tick: number) => (tick >= 1e6 ? said.million(price(tick / 1e6)) : price(tick)),
  };
  return { ...curveOptions(colours, style), hooks: { draw: [(plot) => drawMarks(plot, demandNow(), palette.value)] } };
}

/** The price, the point on it where the curves meet, the names of the curves, and the limit that is being typed. */
function drawMarks(plot: uPlot, demand: BatchDemand | null, colours: Palette): void {
  if (!demand || demand.points.length < 2) return;
  const { ctx, bbox } = plot;
  const scale = devicePixelRatio;
  const marks = marksOn(plot, colours);
  ctx.save();
  ctx.font = `700 ${11 * scale}px ${colours.face}`;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  ctx.fillStyle = colours.bid;
  ctx.fillText(said.wanted, bbox.left + 6 * scale, plot.valToPos(Number(demand.points[0]?.demand), "y", true) + 26 * scale);
  ctx.textAlign = "right";
  ctx.fillStyle = colours.ask;
  ctx.fillText(
    said.offered,
    bbox.left + bbox.width - 6 * scale,
    plot.valToPos(Number(demand.points.at(-1)?.supply), "y", true) + 30 * scale,
  );
  const limit = typedLimit.value;
  const { min = 0, max = 0 } = plot.scales["x"] ?? {};
  if (limit !== null && limit >= (min ?? 0) && limit <= (max ?? 0)) {
    marks.rule(limit, colours.ink, [2, 3]);
    marks.flag(limit, said.yourLimit, colours.own, colours.onOwn, true);
  }
  if (demand.price !== null) {
    const price = Number(demand.price);
    const here = at(demand.points, price);
    marks.rule(price, colours.ink, []);
    marks.flag(price, group(quotient(demand.price, "1", PRICE_DIGITS)), colours.ink, colours.paper, false);
    if (here) marks.dot(price, Math.min(here.demand, here.supply), colours.ink);
  }
  ctx.restore();
}
