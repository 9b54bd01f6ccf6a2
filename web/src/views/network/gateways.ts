// Where orders wait, stage by stage in proportion; and who passes orders on: replicas, whose stamps are judged, and leaf gateways below
// them, in a table of their own.

import type { StageTimes } from "walras";
import { byId, h, setText } from "../../base/dom.ts";
import { showSpan } from "../../base/format.ts";
import { type LeafLine, leafLines, type NetworkLook, type ReplicaLine, replicaLines } from "../../state/network.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { Rows, setCells, table } from "../rows.ts";
import { shownView } from "../view-tabs.ts";

const words = t.network;
const WAYS = Object.entries(words.ways) as [StageTimes["stage"], string][];

interface Wait {
  stage: string;
  name: string;
  medianNs: number;
  slowNs: number;
  /** Of the longest median, for the bar. */
  part: number;
}

export function leavesView(venue: Venue): void {
  const numeric = true;
  const waits = table(words.stage, [
    { name: words.stage },
    { name: words.share, silent: true },
    { name: words.median, numeric },
    { name: "99 %", numeric },
  ]);
  waits.element.id = "waits-table";
  const none = h("p.empty", {}, words.waitsNone);
  byId("waits-body").append(waits.element, none);
  const makeWait = (): HTMLTableRowElement => h("tr", {}, h("td"), h("td.wait-cell", {}, h("i")), h("td.num"), h("td.num"));
  const stages = new Rows<Wait>(waits.body, makeWait, (row, { name, medianNs, slowNs, part }) => {
    const [first, bar, median, slow] = row.cells;
    if (first) setText(first, name);
    if (bar?.firstElementChild instanceof HTMLElement) bar.firstElementChild.style.width = `${Math.max(1, part * 100)}%`;
    if (median) setText(median, showSpan(medianNs));
    if (slow) setText(slow, showSpan(slowNs));
  });
  const replicas = table(words.replicasHead, [
    { name: words.replicaName }, { name: words.link }, { name: words.orders, numeric }, { name: words.overtaken, numeric },
  ]);
  replicas.element.id = "replicas-table";
  const leaves = table(words.leafGateways, [
    { name: words.leafName }, { name: words.link }, { name: words.below }, { name: words.sessions, numeric },
  ]);
  leaves.element.id = "leaves-table";
  byId("leaves-body").append(replicas.element, leaves.element);
  setText(byId("leaves-words"), words.leavesWords);
  const makeReplica = (): HTMLTableRowElement =>
    h("tr", {}, h("td"), h("td"), h("td.num"), h("td.num", { title: words.overtakenTitle }));
  const replicaRows = new Rows<ReplicaLine>(replicas.body, makeReplica, (row, line) => {
    fill(row, line, [line.orders, line.overtaken]);
  });
  const makeLeaf = (): HTMLTableRowElement => h("tr", {}, h("td"), h("td"), h("td"), h("td.num"));
  const leafRows = new Rows<LeafLine>(leaves.body, makeLeaf, (row, line) => {
    fill(row, line, [line.below, line.sessions]);
  });
  const draw = (): void => {
    const look = venue.network.look.value;
    if (!look || shownView.value !== "network") return;
    const list = waitsOf(look);
    stages.show(list, ({ stage }) => stage);
    waits.element.hidden = list.length === 0;
    none.hidden = list.length > 0;
    replicaRows.show(replicaLines(look), ({ key }) => key);
    const lines = leafLines(look.cluster);
    leafRows.show(lines, ({ key }) => key);
    for (const element of [leaves.element, byId("leaves-words")]) element.hidden = lines.length === 0;
  };
  venue.network.look.watch(draw);
  shownView.watch(draw);
}

function waitsOf({ latency }: NetworkLook): Wait[] {
  const known = WAYS.flatMap(([stage, name]) => {
    const times = latency?.stages.find((each) => each.stage === stage);
    return times?.p50_ns == null ? [] : [{ stage, name, medianNs: times.p50_ns, slowNs: times.p99_ns ?? times.p50_ns }];
  });
  const longest = Math.max(1, ...known.map(({ medianNs }) => medianNs));
  return known.map((wait) => ({ ...wait, part: wait.medianNs / longest }));
}

/** Who it is and whether it is linked, and then what only its kind has. */
function fill(row: HTMLTableRowElement, { name, isLinked, trouble }: ReplicaLine | LeafLine, more: string[]): void {
  setCells(row, [name, isLinked ? words.linked : words.notLinked, ...more]);
  row.cells[1]?.classList.toggle("sell", !isLinked);
  row.title = trouble ?? "";
}
