// What an auction has come to so far: volume, imbalance to one side or the other, one's own part, and the way that the price took.

import { type BookCopy, formatUnits } from "walras";
import { abs, trimZeros } from "../base/decimal.ts";
import { h, setText, svg } from "../base/dom.ts";
import { group, showUnits } from "../base/format.ts";
import type { AuctionHistory } from "../state/auction.ts";
import type { Units } from "../state/market.ts";
import { t } from "../texts/index.ts";

const [WIDTH, HEIGHT] = [220, 30];

interface Shown {
  indicative: NonNullable<BookCopy["indicative"]>;
  units: Units;
  history: AuctionHistory;
  own: string;
}

export function auctionPanel(host: HTMLElement): { show(shown: Shown | null): void } {
  const words = t.auction;
  const volume = h("dd", { id: "auction-volume" });
  const imbalance = h("dd", { id: "auction-imbalance" });
  const [wanted, offered] = [h("i"), h("i")];
  const bar = h("div.lean", { "aria-hidden": "true" }, h("span.b", {}, wanted), h("span.a", {}, offered));
  const line = svg("polyline", { class: "way" });
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", preserveAspectRatio: "none" }, line);
  const own = h("p.own", { id: "auction-own" });
  host.append(h("dl", {}, h("div", {}, h("dt", {}, words.volume), volume), h("div", {}, h("dt", {}, words.imbalance), imbalance)), bar,
    h("div.way-host", { title: words.history }, picture), own);
  return {
    show(shown) {
      host.hidden = shown === null;
      if (!shown) return;
      const { indicative, units, history } = shown;
      const { sizeDecimals, priceDecimals, instrument: { base } } = units;
      const size = (lots: bigint): string => `${group(trimZeros(formatUnits(lots, sizeDecimals)))} ${base}`;
      setText(volume, size(indicative.volume));
      const over = indicative.imbalance;
      setText(imbalance, over === 0n ? words.none : over > 0n ? words.wanted(size(over)) : words.offered(size(abs(over))));
      imbalance.className = over > 0n ? "buy" : over < 0n ? "sell" : "";
      // Of all that one side has at that price, how much is left over.
      const all = indicative.volume + abs(over);
      const percent = all === 0n ? 0 : Number((abs(over) * 1_000n) / all) / 10;
      wanted.style.width = `${over > 0n ? percent : 0}%`;
      offered.style.width = `${over < 0n ? percent : 0}%`;
      setText(own, shown.own);
      const { low, high, points } = wayOf(history, Date.now());
      line.setAttribute("points", points);
      picture.setAttribute("aria-label", words.historyWords(showUnits(low, priceDecimals), showUnits(high, priceDecimals)));
    },
  };
}

/** In steps: a price holds until the next one. */
function wayOf({ moments }: AuctionHistory, nowMs: number): { low: bigint; high: bigint; points: string } {
  const prices = moments.map(({ price }) => price);
  const low = prices.reduce((a, b) => (b < a ? b : a), prices[0] ?? 0n);
  const high = prices.reduce((a, b) => (b > a ? b : a), prices[0] ?? 0n);
  const fromMs = moments[0]?.atMs ?? nowMs;
  const spanMs = Math.max(1, nowMs - fromMs);
  const yOf = (price: bigint): string => {
    const part = low === high ? null : Number(price - low) / Number(high - low);
    return (part === null ? HEIGHT / 2 : HEIGHT - 3 - part * (HEIGHT - 6)).toFixed(1);
  };
  const points = moments.flatMap(({ atMs, price }, at) => {
    const x = (((atMs - fromMs) / spanMs) * WIDTH).toFixed(1);
    return [`${x},${yOf(moments[at - 1]?.price ?? price)}`, `${x},${yOf(price)}`];
  });
  return { low, high, points: [...points, `${WIDTH},${yOf(prices.at(-1) ?? 0n)}`].join(" ") };
}
