// Where the time goes: how long each stage takes, from the median to one of a thousand, on one scale for all.

import type { StageTimes } from "walras";
import { byId, h, setText, svg } from "../../base/dom.ts";
import { group, showSpan, signed } from "../../base/format.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { Rows, table } from "../rows.ts";

const STAGES: Record<StageTimes["stage"], { name: string; words: string }> = t.fair.stages;

/** The scale, in powers of ten of a nanosecond: what is shorter or longer stands at its end. */
const [LEAST, MOST] = [3, 8];
const [WIDTH, HEIGHT] = [112, 16];

export function stagesView(venue: Venue): void {
  const { fair: desk } = venue;
  const { element, body } = table(t.fair.stagesCaption, [
    { name: t.fair.stage },
    { name: t.fair.scale },
    { name: t.fair.median, numeric: true },
    { name: "99 %", numeric: true },
    { name: signed("99.9 %"), numeric: true },
  ]);
  element.id = "stages-table";
  byId("stages-body").append(element);
  const rows = new Rows<StageTimes>(body, ({ stage }) => {
    const { name, words } = STAGES[stage] ?? { name: stage, words: "" };
    return h("tr", { "data-stage": stage }, h("td.stage", {}, h("b", {}, name), h("span.muted", {}, words)),
      h("td.span-cell", {}, picture()), h("td.num"), h("td.num"), h("td.num"));
  }, update);
  desk.look.watch((look) => {
    if (!look) return;
    const { stages, timed_one_of, recent_s } = look.latency;
    rows.show(stages, ({ stage }) => stage);
    setText(byId("stages-words"), stages.length === 0
      ? t.fair.stagesNone
      : t.fair.stagesWords(String(recent_s), String(timed_one_of)));
  });
}

function update(tr: HTMLTableRowElement, { p50_ns, p90_ns, p99_ns, p999_ns, ns_max, count, recent }: StageTimes): void {
  const show = (ns: number | null): string => (ns === null ? "–" : showSpan(ns));
  [p50_ns, p99_ns, p999_ns].forEach((ns, index) => {
    const cell = tr.cells[index + 2];
    if (cell) setText(cell, show(ns));
  });
  tr.title = t.fair.stageTitle(group(String(recent)), group(String(count)), show(p90_ns), show(ns_max));
  const image = tr.querySelector("svg");
  if (!image) return;
  image.toggleAttribute("hidden", p50_ns === null);
  if (p50_ns === null || p99_ns === null || p999_ns === null) return;
  const [bar, line, dot] = image.querySelectorAll("rect");
  const [from, to, end] = [place(p50_ns), place(p99_ns), place(p999_ns)];
  setSpan(bar, from, to);
  setSpan(line, to, end);
  setSpan(dot, from - 1, from + 1);
}

function picture(): SVGElement {
  const ticks = Array.from({ length: MOST - LEAST + 1 }, (_, power) => {
    const x = (power / (MOST - LEAST)) * WIDTH;
    return svg("line", { class: "tick", x1: x, x2: x, y1: 0, y2: HEIGHT });
  });
  return svg("svg", { class: "span", viewBox: `-1 0 ${WIDTH + 2} ${HEIGHT}`, "aria-hidden": "true" },
    ...ticks,
    svg("rect", { class: "bar", y: 5, height: 6 }),
    svg("rect", { class: "line", y: 7.25, height: 1.5 }),
    svg("rect", { class: "dot", y: 2, height: 12 }));
}

/** Where a time stands on the scale. */
export function place(ns: number): number {
  const power = Math.log10(Math.max(ns, 1));
  return (Math.max(0, Math.min(1, (power - LEAST) / (MOST - LEAST)))) * WIDTH;
}

function setSpan(rect: SVGRectElement | undefined, from: number, to: number): void {
  rect?.setAttribute("x", from.toFixed(2));
  rect?.setAttribute("width", Math.max(0.75, to - from).toFixed(2));
}
