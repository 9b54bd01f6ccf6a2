// The picture: leaf gateways, replicas, relays, receivers, in the order in which an order and what comes of it pass them.

import type { RelayTree } from "walras";
import { byId, h, setText, svg } from "../../base/dom.ts";
import { group, showSpan } from "../../base/format.ts";
import { headsOf, nameOf, type Node, outWords, pictureOf, relaysOut, treesOf } from "../../state/network.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { shownView } from "../view-tabs.ts";

/** Under this width it goes from top to bottom. */
const WIDE_PX = 640;
const EDGE_PX = 26;
const HEAD_PX = 34;

interface Place {
  x: number;
  y: number;
}

const words = t.network;

export function treeView(venue: Venue): void {
  const host = byId("tree-host");
  const note = h("span");
  const choice = h("select", { id: "tree-choice", "aria-label": words.treeChoice });
  const chooser = h("label.compact", { title: words.treeChoiceTitle, hidden: true }, choice);
  byId("tree-words").append(note, chooser);
  const out = h("p.sell", { id: "tree-out", role: "status", hidden: true });
  host.before(out);
  choice.addEventListener("change", () => {
    venue.network.shownTree.value = choice.selectedIndex;
  });
  let size = "";
  let drawn = "";
  const draw = (): void => {
    const look = venue.network.look.value;
    if (shownView.value !== "network" || !look) return;
    const { gateways = [] } = look.cluster;
    const trees = treesOf(look.cluster);
    const shown = trees[venue.network.shownTree.value] ? venue.network.shownTree.value : 0;
    const tree = trees[shown] ?? null;
    chooser.hidden = trees.length < 2;
    showChoice(choice, trees, shown);
    const copies = tree === null ? 0 : tree.hedge + 1;
    setText(note, tree === null ? words.noTree : copies === 1 ? words.onePath : words.paths(String(copies)));
    const whoIsOut = tree === null ? "" : outWords(tree);
    setText(out, whoIsOut);
    out.hidden = whoIsOut === "";
    // Without a size while the table of relays is shown.
    const { clientWidth: width, clientHeight: height } = host;
    if (width === 0) return;
    const picture = pictureOf(look.cluster, tree);
    const state = JSON.stringify([picture, width, height]);
    if (state === drawn) return;
    drawn = state;
    const isWide = width >= WIDE_PX;
    const places = new Map<string, Place>();
    const [along, across] = isWide ? [width, height] : [height, width];
    const parts: SVGElement[] = [];
    const heads = headsOf(picture);
    picture.columns.forEach((column, index) => {
      // Gateways, replicas, layers: evenly from one edge to the other.
      const at = EDGE_PX + 24 + ((along - 2 * EDGE_PX - 48) * index) / Math.max(1, picture.columns.length - 1);
      const room = across - HEAD_PX - EDGE_PX;
      const rows = Math.min(column.length, Math.max(1, Math.floor(room / 18)));
      const lanes = Math.ceil(column.length / rows);
      column.forEach((node, place) => {
        const lane = Math.floor(place / rows);
        const inLane = Math.min(rows, column.length - lane * rows);
        const major = at + (lane - (lanes - 1) / 2) * 20;
        const minor = HEAD_PX + (room * ((place % rows) + 0.5)) / inLane;
        places.set(node.id, isWide ? { x: major, y: minor } : { x: minor, y: major });
      });
      const anchors = ["start", "middle", "end"];
      const [x, y] = isWide ? [index === 0 ? 0 : index === picture.columns.length - 1 ? width : at, 14] : [4, at - 26];
      const anchor = !isWide ? "start" : anchors.at(index === 0 ? 0 : index === picture.columns.length - 1 ? 2 : 1) ?? "middle";
      const text = svg("text", { x, y, class: "tree-head", "text-anchor": anchor });
      text.textContent = heads[index] ?? "";
      parts.push(text);
    });
    const lines = picture.edges.map(({ from, to, kind, isUp }) => {
      const [a, b] = [places.get(from), places.get(to)];
      if (!a || !b) return null;
      const [cx, cy] = isWide ? [(a.x + b.x) / 2, 0] : [0, (a.y + b.y) / 2];
      const bend = kind === "cluster"
        ? (isWide ? `Q${a.x - 34} ${(a.y + b.y) / 2}` : `Q${(a.x + b.x) / 2} ${a.y - 30}`)
        : isWide ? `C${cx} ${a.y} ${cx} ${b.y}` : `C${a.x} ${cy} ${b.x} ${cy}`;
      return svg("path", { d: `M${a.x} ${a.y}${bend} ${b.x} ${b.y}`, class: `edge ${kind}${isUp ? "" : " down"}` });
    });
    const nodes = picture.columns.flat().flatMap((node) => nodeParts(node, places.get(node.id) ?? { x: 0, y: 0 }, isWide));
    const label = spoken(gateways.length, look.cluster.replicas.length, tree?.layers ?? []);
    const image = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
      ...lines, ...nodes, ...parts);
    host.replaceChildren(image);
  };
  new ResizeObserver(() => {
    const now = `${host.clientWidth} ${host.clientHeight}`;
    if (now === size) return;
    size = now;
    draw();
  }).observe(host);
  venue.network.look.watch(draw);
  venue.network.shownTree.watch(draw);
  shownView.watch(draw);
}

/** The trees by their numbers. One with relays that are out says so, also while another one is drawn. */
function showChoice(choice: HTMLSelectElement, trees: RelayTree[], shown: number): void {
  trees.forEach((tree, at) => {
    if (!choice.options[at]) choice.append(h("option", { value: String(at) }));
    const [option, out] = [choice.options[at], relaysOut(tree).length];
    if (option) setText(option, out === 0 ? words.treeOf(String(tree.tree)) : words.treeOut(String(tree.tree), String(out)));
  });
  while (choice.options.length > trees.length) choice.remove(choice.options.length - 1);
  if (choice.selectedIndex !== shown) choice.selectedIndex = shown;
}

/** What is up is filled, what is not is a ring with a stroke through it: shape says it before colour. */
function nodeParts(node: Node, { x, y }: Place, isWide: boolean): SVGElement[] {
  const r = node.kind === "replica" ? (node.leads ? 11 : 8) : node.kind === "relay" ? 6 : 4;
  const classes = `node ${node.kind}${node.isUp ? "" : " down"}${node.leads ? " leads" : ""}`;
  const circle = svg("circle", { cx: x, cy: y, r, class: classes });
  const title = svg("title");
  const trouble = node.out === null ? words.notLinked : words.outBecause[node.out];
  const more = node.stands > 1 ? `, ${words.count(String(node.stands - 1))}` : "";
  title.textContent = `${nameOf(node)}${node.isUp ? "" : `: ${trouble}`}${saidOf(node)}${more}`;
  circle.append(title);
  const parts: SVGElement[] = [circle];
  if (!node.isUp) parts.push(svg("path", { d: `M${x - r} ${y + r}L${x + r} ${y - r}`, class: "stroke" }));
  const isNamed = node.kind === "replica" || (node.kind === "gateway" && isWide) || node.stands > 1;
  if (isNamed) {
    const isGateway = node.kind === "gateway";
    const [left, top] = isGateway ? [x - 9, y + 4] : [x, y + r + 13];
    const text = svg("text", { x: left, y: top, class: "tree-label", "text-anchor": isGateway ? "end" : "middle" });
    text.textContent = node.kind === "replica"
      ? [node.label, ...(node.leads ? [words.leads] : []), ...(node.isHere ? [words.here] : [])].join(", ")
      : `${isGateway ? node.label : ""}${node.stands > 1 ? ` +${node.stands - 1}` : ""}`;
    parts.push(text);
  }
  return parts;
}

/** What a relay says of itself, in words. */
function saidOf({ said }: Node): string {
  if (!said?.answers) return "";
  const count = (value: number | null): string => group(String(value ?? 0));
  return `: ${words.relaySaid(count(said.packets), count(said.by_hedge), count(said.lost), showSpan(said.transit_ns_p50 ?? 0))}`;
}

function spoken(gateways: number, replicas: number, layers: number[]): string {
  const layer = (count: number, at: number): string =>
    (at === layers.length - 1 ? `${words.receivers} ${count}` : words.relays(String(at), String(count)));
  const tree = layers.length === 0 ? words.noTree : layers.map(layer).join(", ");
  return words.spoken(gateways === 0 ? words.noGateways : `${words.leafGateways} ${gateways}`, `${words.replicasHead} ${replicas}`, tree);
}
