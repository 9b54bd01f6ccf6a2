// The head of the batch view: the last block, and the batch that collects. Its transactions lie scattered, because they have no order.

import { byId, h, setText } from "../../base/dom.ts";
import { group, showShort, signed } from "../../base/format.ts";
import { atMostEvery, oncePerFrame } from "../../base/signal.ts";
import { type BatchMarket, type Stage, pairCount, stageOf } from "../../state/batch-market.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { palette } from "../theme.ts";
import { shownView } from "../view-tabs.ts";

const words = t.batch;
const TITLE_EVERY_MS = 1_000;
const DOT_PX = 4;
const EDGE_PX = 5;
const DOTS_MAX = 1_200;
/** Batches shorter than this are over before a countdown can be read. */
const COUNTED_MS_LEAST = 3_000;

export function batchHeadView(venue: Venue): void {
  const { desk } = venue;
  const select = h("select", { id: "batch", "aria-label": words.market });
  const phase = h("span.phase", { id: "batch-phase" });
  const block = h("span.last", { id: "batch-block" }, "–");
  const under = h("span.change.muted", { id: "batch-block-words" });
  const facts = {
    turnover: h("dd", { id: "batch-turnover" }), offers: h("dd"), pairs: h("dd"), gap: h("dd", { id: "batch-gap" }),
    unserved: h("dd", { id: "batch-unserved" }), standing: h("dd"),
  };
  const fact = (name: string, value: HTMLElement, title: string): HTMLElement => h("div", { title }, h("dt", {}, name), value);
  const canvas = h("canvas", { "aria-hidden": "true" });
  const bar = h("i");
  const collects = h("span", { id: "batch-collects" });
  const middle = h("span.mid");
  const closes = h("span", { id: "batch-closes" });
  byId("batch-head").append(
    h("div.picker", {}, select, h("span.sub", {}, phase)),
    h("div.price", {}, h("span", {}, h("span.sr", {}, words.lastBlock), block), under),
    h("dl.facts", {},
      fact(words.turnover, facts.turnover, words.turnoverTitle),
      fact(words.offersTraded, facts.offers, words.offersTradedTitle),
      fact(words.pairs, facts.pairs, words.pairsTitle),
      fact(words.gap, facts.gap, words.gapTitle),
      fact(words.unserved, facts.unserved, words.unservedTitle),
      fact(words.standing, facts.standing, words.standingTitle)),
    h("div.collecting", {}, h("div.scatter", {}, canvas), h("div.clock", { "aria-hidden": "true" }, bar),
      h("div.words", {}, collects, middle, closes)),
  );
  select.addEventListener("change", () => desk.choose(select.value));

  const drawTitle = atMostEvery(TITLE_EVERY_MS, () => {
    const last = desk.market.value?.last;
    if (shownView.value === "batch") document.title = last ? `${words.title(group(last.block))} · Walras` : "Walras";
  });
  const draw = oncePerFrame(() => {
    const market = desk.market.value;
    if (!market) return;
    const { last } = market;
    const { numeraire, standing_offers } = market.info.value;
    if (select.options.length !== desk.list.value.length) {
      select.replaceChildren(...desk.list.value.map(({ name }) => h("option", { value: name }, name)));
    }
    select.value = market.name;
    select.disabled = desk.list.value.length < 2;
    setText(block, last ? words.number(group(last.block)) : words.noBlock);
    setText(under, lastWords(market));
    setText(facts.turnover, last ? `${showShort(last.turnover, 0).replace("≈", "")} ${numeraire ?? ""}` : "–");
    setText(facts.offers, last ? group(String(last.offers_traded)) : "–");
    setText(facts.pairs, last ? words.of(group(String(last.pairs_traded)), group(String(pairCount(market.info.value)))) : "–");
    setText(facts.gap, last ? `${group(String(last.gap_ppb))} ppb` : "–");
    setText(
      facts.unserved,
      last ? `${group(String(last.unserved_ppb))} ppb${last.set_aside > 0 ? words.setAside(last.set_aside) : ""}` : "–",
    );
    setText(facts.standing, group(standing_offers));
    setText(middle, last ? words.faint(group(last.block)) : words.scattered);
    drawTitle();
    drawStage(market);
    paint(canvas, market, desk.offers.collectedFor(market.name, market.nextBlock));
  });
  const drawStage = (market: BatchMarket): void => {
    const stage = stageOf(market, performance.now());
    const { collected } = market.cycle.value;
    const next = market.nextBlock;
    setText(collects, next === null ? words.collectedFirst(collected) : words.collected(collected, group(next)));
    phase.dataset["phase"] = stage.name === "closed" ? "closed" : "open";
    setText(phase, stage.name === "closed" ? words.closed : words.open);
    setText(closes, stageWords(stage, market.info.value.interval_ms));
    bar.style.transform = `scaleX(${stage.name === "collects" ? stage.part : stage.name === "closed" ? 0 : 1})`;
  };
  const animate = (): void => {
    if (shownView.value !== "batch") return;
    const market = desk.market.value;
    if (market) drawStage(market);
    requestAnimationFrame(animate);
  };

  shownView.watch((view) => {
    if (view !== "batch") return;
    draw();
    animate();
  });
  new ResizeObserver(draw).observe(canvas);
  palette.watch(draw);
  desk.list.watch(draw);
  desk.offers.changed.watch(draw);
  desk.market.watch((market) => {
    market?.blocks.watch(draw);
    market?.cycle.watch(draw);
    market?.info.watch(draw);
    draw();
  });
}

/** So many blocks in a row are no chance. */
const ROW_LEAST = 3;

/** What there is to say of the last blocks: in a venue where all is well, of the last one. */
function lastWords({ last, info: { value: { assets, idle_blocks, aside_blocks } } }: BatchMarket): string {
  if (idle_blocks >= ROW_LEAST) return words.idle(idle_blocks);
  // Older venues do not say.
  if ((aside_blocks ?? 0) >= ROW_LEAST) return words.aside(aside_blocks);
  return last ? words.cleared(last.transactions, assets.length) : "";
}

function stageWords(stage: Stage, intervalMs: number): string {
  const every = words.every(signed(String(intervalMs < 1_000 ? intervalMs / 1_000 : Math.round(intervalMs / 100) / 10)));
  switch (stage.name) {
    case "closed":
      return words.operatorOpens;
    case "waits":
      return words.closesWithFirst;
    case "prices":
      return words.priced(group(stage.block));
    case "due":
      return intervalMs < COUNTED_MS_LEAST ? every : words.closesNow;
    case "collects":
      return intervalMs < COUNTED_MS_LEAST ? every : words.closesIn(signed((stage.leftMs / 1_000).toFixed(1)));
  }
}

/**
 * One square for each transaction (for several, when there are very many), where the hash of block and number puts it; own ones in yellow.
 */
function paint(canvas: HTMLCanvasElement, market: BatchMarket, own: number): void {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (width === 0 || height === 0) return;
  const scale = devicePixelRatio;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = canvas.getContext("2d");
  if (!context) return;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  const placesOf = (block: string | null, count: number): [x: number, y: number][] => {
    const seed = Number(BigInt(block ?? "0") & 0xffff_ffffn);
    return Array.from({ length: Math.min(count, DOTS_MAX) }, (_, index) => [
      EDGE_PX + scatter(seed, 2 * index) * (width - DOT_PX - 2 * EDGE_PX),
      EDGE_PX + scatter(seed, 2 * index + 1) * (height - DOT_PX - 2 * EDGE_PX),
    ]);
  };
  const { ink, hair, own: yellow } = palette.value;
  const squares = (places: [number, number][], colour: string, grown: number): void => {
    context.fillStyle = colour;
    for (const [x, y] of places) context.fillRect(x - grown, y - grown, DOT_PX + 2 * grown, DOT_PX + 2 * grown);
  };
  const { last, nextBlock, cycle: { value: { collected } } } = market;
  squares(placesOf(last?.block ?? null, last?.transactions ?? 0), hair, 0);
  const places = placesOf(nextBlock, collected);
  squares(places.slice(own), ink, 0);
  squares(places.slice(0, own), ink, 4);
  squares(places.slice(0, own), yellow, 3);
}

/** A number in [0, 1) that looks random and is the same each time. */
function scatter(seed: number, index: number): number {
  let z = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(index + 1, 0xc2b2ae35)) >>> 0;
  z = Math.imul(z ^ (z >>> 15), 0x2c1b3c6d);
  z = Math.imul(z ^ (z >>> 12), 0x297a2d39);
  return ((z ^ (z >>> 15)) >>> 0) / 4_294_967_296;
}
