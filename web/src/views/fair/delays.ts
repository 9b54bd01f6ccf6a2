// Delays and what they buy, over the last minutes: above how long things wait, below the share that was unfair all the same, and its
// target.

import type uPlot from "uplot";
import { byId, h } from "../../base/dom.ts";
import { showShare, showSpan, showTime, signed } from "../../base/format.ts";
import type { FairLook, Measure } from "../../state/fair-access.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { HostedPlot, lineOptions } from "../plot.ts";
import type { Palette } from "../theme.ts";
import { shownView } from "../view-tabs.ts";

interface Line {
  host: string;
  measure: Measure;
  /** What it is, for those who do not see it. */
  words: string;
  /** The least that the axis reaches to, so that noise does not look like news. */
  reachLeast: number;
  show(value: number): string;
  /** A figure of the axis. */
  tick(value: number): string;
  target(look: FairLook): number | null;
}

const none = (): null => null;
const tickShare = (ppm: number): string => `${signed(String(Number((ppm / 10_000).toPrecision(3))))}\u00a0%`;
const SPANS = { reachLeast: 20_000, show: showSpan, tick: showSpan, target: none };
const SHARES = { reachLeast: 1_000, show: showShare, tick: tickShare };
const { lines } = t.fair;
const LINES: Line[] = [
  { host: "orders-delay", measure: "delayNs", words: lines.delayNs, ...SPANS },
  {
    host: "orders-unfair", measure: "unfairPpm", words: lines.unfairPpm, ...SHARES,
    target: ({ fair }) => fair.sequencer?.target_ppm ?? null,
  },
  { host: "data-delay", measure: "releaseNs", words: lines.releaseNs, ...SPANS },
  { host: "data-late", measure: "latePpm", words: lines.latePpm, ...SHARES, target: ({ fair }) => fair.release?.target_ppm ?? null },
];

export function delaysView(venue: Venue): void {
  const { fair: desk } = venue;
  const draws = LINES.map((line) => {
    const name = h("p.plot-name");
    const host = h("div.plot", { id: `${line.host}-plot` });
    byId(line.host).append(name, host);
    const target = (): number | null => (desk.look.value ? line.target(desk.look.value) : null);
    const data = (): uPlot.AlignedData => {
      const [seconds, values] = desk.history.series(line.measure);
      const level = target();
      return [seconds, values, seconds.map(() => level)];
    };
    const plot = new HostedPlot(host, (colours) => ({ options: options(colours, line, target), data: data() }));
    return (): void => {
      plot.show(data());
      const now = desk.history.series(line.measure)[1].at(-1) ?? null;
      const level = target();
      const words = [
        now === null ? t.fair.nothingNow : t.fair.valueNow(line.show(now)),
        ...(level === null ? [] : [t.fair.target(line.show(level))]),
      ].join("; ");
      name.replaceChildren(h("b", {}, line.words), ` ${words}`);
      host.setAttribute("aria-label", t.fair.plot(line.words, words));
    };
  });
  const draw = (): void => {
    const fair = desk.look.value?.fair;
    if (shownView.value !== "fair" || !fair) return;
    byId("fair-orders").hidden = fair.sequencer === null;
    byId("fair-data").hidden = fair.release === null;
    for (const each of draws) each();
  };
  desk.look.watch(draw);
  shownView.watch(draw);
}

function options(colours: Palette, { tick, reachLeast }: Line, target: () => number | null): ReturnType<typeof lineOptions> {
  return lineOptions(colours, {
    reach: (high) => Math.max(reachLeast, high, (target() ?? 0) * 1.5) * 1.1,
    value: tick, time: (seconds) => showTime(`${Math.round(seconds)}000000000`),
  });
}
