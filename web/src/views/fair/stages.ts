// Where the time goes: how long each stage takes, from the median to one of a thousand, on one scale for all.

import type { StageName, StageTimes } from "../../api/fair-types.ts";
import { byId, h, setText, svg } from "../../base/dom.ts";
import { group, showSpan } from "../../base/format.ts";
import type { Venue } from "../../state/venue.ts";
import { Rows, table } from "../rows.ts";

const STAGES: Record<StageName, [name: string, words: string]> = {
  receive: ["Receive", "read, checked, stamped here"],
  transit: ["Transit", "from the stamp to the leader"],
  hold: ["Hold", "for orders stamped earlier"],
  log: ["Log", "until a majority holds it"],
  apply: ["Apply", "behind those before it"],
  answer: ["Answer", "until it is on its way back"],
  order: ["Whole order", "where it came in"],
  request: ["Whole request", "over HTTP or WebSocket"],
  publish: ["Publish", "market data, to this replica"],
  release: ["Release", "held until its time"],
};

/** The scale, in powers of ten of a nanosecond: what is shorter or longer stands at its end. */
const [LEAST, MOST] = [3, 8];
const SCALE_WORDS = "1 µs to 100 ms";
const [WIDTH, HEIGHT] = [112, 16];

export function stagesView(venue: Venue): void {
  const { fair: desk } = venue;
  const { element, body } = table("How long each stage takes", [
    { name: "Stage" }, { name: SCALE_WORDS }, { name: "Median", numeric: true }, { name: "99 %", numeric: true }, { name: "99.9 %", numeric: true },
  ]);
  element.id = "stages-table";
  byId("stages-body").append(element);
  const rows = new Rows<StageTimes>(body, ({ stage }) => {
    const [name, words] = STAGES[stage] ?? [stage, ""];
    return h("tr", { "data-stage": stage }, h("td.stage", {}, h("b", {}, name), h("span.muted", {}, words)), h("td.span-cell", {}, picture()), h("td.num"), h("td.num"), h("td.num"));
  }, update);
  desk.look.watch((look) => {
    if (!look) return;
    const { stages, timed_one_of, recent_s } = look.latency;
    rows.show(stages, ({ stage }) => stage);
    setText(byId("stages-words"), stages.length === 0
      ? "Nothing has come here yet."
      : `Times of the last ${recent_s} s at most. Of a session's orders one in ${timed_one_of} is timed. The bar goes from the median to 99 of 100, the line on to 999 of 1,000.`);
  });
}

function update(tr: HTMLTableRowElement, { p50_ns, p90_ns, p99_ns, p999_ns, ns_max, count, recent }: StageTimes): void {
  const show = (ns: number | null): string => (ns === null ? "–" : showSpan(ns));
  [p50_ns, p99_ns, p999_ns].forEach((ns, index) => {
    const cell = tr.cells[index + 2];
    if (cell) setText(cell, show(ns));
  });
  tr.title = `${group(String(recent))} recently, ${group(String(count))} in all; 90 of 100 within ${show(p90_ns)}, the longest ${show(ns_max)}`;
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
  const ticks = Array.from({ length: MOST - LEAST + 1 }, (_, power) => svg("line", { class: "tick", x1: (power / (MOST - LEAST)) * WIDTH, x2: (power / (MOST - LEAST)) * WIDTH, y1: 0, y2: HEIGHT }));
  return svg("svg", { class: "span", viewBox: `-1 0 ${WIDTH + 2} ${HEIGHT}`, "aria-hidden": "true" }, ...ticks,
    svg("rect", { class: "bar", y: 5, height: 6 }), svg("rect", { class: "line", y: 7.25, height: 1.5 }), svg("rect", { class: "dot", y: 2, height: 12 }));
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
