// The price vector: one component for each asset, all in units of the numeraire. From it comes the rate of every pair, so no two disagree.

import { byId, h, setText, svg } from "../../base/dom.ts";
import { significant } from "../../base/decimal.ts";
import { group, showShort, showSmallChange, typed } from "../../base/format.ts";
import { oncePerFrame } from "../../base/signal.ts";
import { ASSETS_SHOWN_MAX, type BatchMarket, shownAssets } from "../../state/batch-market.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { markOf, markTitle } from "./proof-words.ts";

const said = t.vector;

/** As many as fit; all of them are in the tooltip. */
const PRICE_DIGITS = 6;
/** Below it the four digits that are shown would be zeros. */
const SHOWN_PPM_LEAST = 0.5;
const COMPONENT_PX_LEAST = 122;
const SPARK_BLOCKS = 60;
const SPARK_WIDTH = 100;
const SPARK_HEIGHT = 24;

interface Component {
  element: HTMLElement;
  input: HTMLInputElement;
  role: HTMLElement;
  price: HTMLElement;
  move: HTMLElement;
  line: SVGPolylineElement;
  volume: HTMLElement;
  held: HTMLElement;
}

export function vectorView(venue: Venue): void {
  const { desk } = venue;
  const host = byId("components");
  host.setAttribute("role", "radiogroup");
  host.setAttribute("aria-label", said.label);
  const note = h("span.muted", { id: "vector-note" });
  const search = h("input", {
    type: "search", id: "vector-search", placeholder: said.search, "aria-label": said.search, autocomplete: "off",
  });
  search.hidden = true;
  search.addEventListener("input", () => {
    if (desk.market.value) rebuild(desk.market.value);
  });
  byId("vector-tools").append(search, note);
  let components = new Map<string, Component>();

  const holds = (asset: string): boolean => {
    const balance = venue.account.balances.value.get(asset);
    return balance !== undefined && /[1-9]/.test(balance.available + balance.reserved);
  };
  const rebuild = (market: BatchMarket): void => {
    const { assets } = market.info.value;
    search.hidden = assets.length <= ASSETS_SHOWN_MAX;
    const { sell, buy } = market.pair.value;
    const shown = shownAssets(assets, search.value, [sell, buy, ...assets.filter(holds)]);
    components = new Map(shown.map((asset) => [asset, component(asset, () => market.choose({ sell: asset }))]));
    host.replaceChildren(...[...components.values()].map(({ element }) => element));
    arrange();
    draw();
  };
  const draw = oncePerFrame(() => {
    const market = desk.market.value;
    if (!market) return;
    const { numeraire } = market.info.value;
    const { sell, buy } = market.pair.value;
    const all = market.info.value.assets.length;
    setText(note, `${components.size < all ? said.some(components.size, all) : ""}${said.note(numeraire ?? "")}`);
    // What is chosen elsewhere is shown here too.
    if (search.value === "" && !(components.has(sell) && components.has(buy))) return rebuild(market);
    for (const [asset, parts] of components) {
      const role = asset === sell ? "sell" : asset === buy ? "buy" : "";
      parts.element.dataset["role"] = role;
      parts.input.checked = asset === sell;
      setText(parts.role, role === "" ? "" : role === "sell" ? said.youSell : said.youBuy);
      const price = market.price(asset);
      const shown = price === null ? said.noPrice : group(significant(price, PRICE_DIGITS));
      setText(parts.price, shown);
      parts.price.style.setProperty("--digits", String(shown.length));
      parts.price.title = price === null ? said.noPriceTitle : typed(price);
      const exact = market.movePpm(asset);
      const ppm = exact !== null && Math.abs(exact) < SHOWN_PPM_LEAST ? 0 : exact;
      const isUnit = asset === numeraire;
      setText(parts.move, isUnit ? said.unit : ppm === null ? "–" : `${ppm > 0 ? "▲ " : ppm < 0 ? "▼ " : ""}${showSmallChange(ppm)}`);
      parts.move.className = `move ${isUnit || ppm === null || ppm === 0 ? "muted" : ppm > 0 ? "buy" : "sell"}`;
      parts.line.setAttribute("points", points(market.history(asset, SPARK_BLOCKS)));
      const volume = market.last?.volumes[asset];
      setText(parts.volume, volume === undefined ? "" : said.sold(showShort(volume, 2).replace("≈", "")));
      const balance = venue.account.balances.value.get(asset);
      const isHeld = holds(asset);
      parts.held.hidden = !isHeld;
      if (balance && isHeld) {
        const mark = desk.proofs.ofBalance(asset);
        setText(parts.held, `${said.yours(showShort(balance.available, 2).replace("≈", ""))}${markOf(mark)}`);
        parts.held.title = markTitle(mark).trim();
      }
    }
  });

  // As many columns as fit, or some fewer where that fills the last row better.
  const arrange = (): void => {
    const count = Math.max(1, components.size);
    const most = Math.min(count, Math.max(2, Math.floor(host.clientWidth / COMPONENT_PX_LEAST)));
    const gaps = (columns: number): number => Math.ceil(count / columns) * columns - count;
    let best = most;
    for (let columns = most - 1; columns >= most / 2; columns -= 1) if (gaps(columns) < gaps(best)) best = columns;
    host.style.gridTemplateColumns = `repeat(${best}, minmax(0, 1fr))`;
  };
  new ResizeObserver(arrange).observe(host);
  venue.account.balances.watch(draw);
  desk.proofs.changed.watch(draw);
  desk.market.watch((market) => {
    if (!market) return;
    search.value = "";
    market.blocks.watch(draw);
    market.pair.watch(draw);
    rebuild(market);
  });
}

function component(asset: string, choose: () => void): Component {
  const input = h("input", { type: "radio", name: "vector", value: asset, "aria-label": said.sell(asset), onchange: choose });
  const role = h("span.role");
  const price = h("span.worth");
  const move = h("span.move");
  const volume = h("span.volume.muted");
  const held = h("span.held");
  const line = svg("polyline", { fill: "none", "vector-effect": "non-scaling-stroke" });
  const spark = svg("svg", {
    class: "spark", viewBox: `0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true",
  }, line);
  const element = h("label.component", { "data-asset": asset }, input,
    h("span.box", {}, h("span.top", {}, h("b.symbol", {}, asset), role), price, move, spark, h("span.foot", {}, volume, held)));
  return { element, input, role, price, move, line, volume, held };
}

/** Over the whole box, from lowest to highest; a price that never moved lies in the middle. */
function points(prices: number[]): string {
  const [low, high] = [Math.min(...prices), Math.max(...prices)];
  const x = (index: number): number => (prices.length < 2 ? 0 : (index / (prices.length - 1)) * SPARK_WIDTH);
  const y = (price: number): number =>
    (high === low ? SPARK_HEIGHT / 2 : SPARK_HEIGHT - 1 - ((price - low) / (high - low)) * (SPARK_HEIGHT - 2));
  if (prices.length === 1) return `0,${SPARK_HEIGHT / 2} ${SPARK_WIDTH},${SPARK_HEIGHT / 2}`;
  return prices.map((price, index) => `${x(index).toFixed(1)},${y(price).toFixed(1)}`).join(" ");
}
