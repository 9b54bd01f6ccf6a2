// Where orders wait, stage by stage in proportion; and who passes orders on: replicas, whose stamps are judged, and leaf gateways below
// them.

import type { StageTimes } from "walras";
import { byId, h, setText } from "../../base/dom.ts";
import { group, showShare, showSpan } from "../../base/format.ts";
import { sharePpm } from "../../state/fair-access.ts";
import type { NetworkLook } from "../../state/network.ts";
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

interface Passer {
  key: string;
  name: string;
  isLinked: boolean;
  below: string;
  sessions: string;
  orders: string;
  overtaken: string;
  trouble: string | null;
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
  const gateways = table(words.name, [
    { name: words.name }, { name: words.link }, { name: words.below }, { name: words.sessions, numeric }, { name: words.orders, numeric },
    { name: words.overtaken, numeric },
  ]);
  gateways.element.id = "leaves-table";
  byId("leaves-body").append(gateways.element);
  setText(byId("leaves-words"), words.leavesWords);
  const makePasser = (): HTMLTableRowElement =>
    h("tr", {}, h("td"), h("td"), h("td"), h("td.num"), h("td.num"), h("td.num", { title: words.overtakenTitle }));
  const rows = new Rows<Passer>(gateways.body, makePasser, (row, { name, isLinked, below, sessions, orders, overtaken, trouble }) => {
    setCells(row, [name, isLinked ? words.linked : words.notLinked, below, sessions, orders, overtaken]);
    row.cells[1]?.classList.toggle("sell", !isLinked);
    row.title = trouble ?? "";
  });
  const draw = (): void => {
    const look = venue.network.look.value;
    if (!look || shownView.value !== "network") return;
    const list = waitsOf(look);
    stages.show(list, ({ stage }) => stage);
    waits.element.hidden = list.length === 0;
    none.hidden = list.length > 0;
    rows.show(passersOf(look), ({ key }) => key);
    byId("leaves-words").hidden = (look.cluster.gateways ?? []).length === 0;
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

function passersOf({ cluster, fair }: NetworkLook): Passer[] {
  const figures = new Map((fair?.sequencer?.gateways ?? []).map((each) => [each.gateway, each]));
  const replicas = cluster.replicas.map(({ replica, is_linked, trouble }) => {
    const judged = figures.get(replica);
    const share = judged && sharePpm(judged.overtaken, judged.held);
    return {
      key: `replica ${replica}`, name: words.isReplica(String(replica)), isLinked: is_linked, below: "–", sessions: "–", trouble,
      orders: judged ? group(String(judged.held)) : "–", overtaken: share == null ? "–" : showShare(share),
    };
  });
  const leaves = (cluster.gateways ?? []).map(({ gateway, is_linked, stands_below, sessions, trouble }) => ({
    key: `gateway ${gateway}`,
    name: String(gateway),
    isLinked: is_linked,
    below: stands_below ? words.belowHere : is_linked ? words.belowOther : "–",
    sessions: stands_below ? group(String(sessions)) : "–",
    orders: "–",
    overtaken: "–",
    trouble,
  }));
  return [...replicas, ...leaves];
}
