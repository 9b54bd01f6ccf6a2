// What each relay of the chosen tree says of itself, as a table in place of the picture: no mouse is needed to read it.

import { byId, h, setText } from "../../base/dom.ts";
import { type RelayLine, relayLines, treesOf } from "../../state/network.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { Choice } from "../form.ts";
import { Rows, table } from "../rows.ts";
import { shownView } from "../view-tabs.ts";

const words = t.network;

export function relaysView(venue: Venue): void {
  const numeric = true;
  const { element, body } = table(words.relaysTable, [
    { name: words.relayPlace }, { name: words.relayPackets, numeric }, { name: words.relayHedges, numeric },
    { name: words.relayLost, numeric }, { name: words.relayTransit, numeric },
  ]);
  element.id = "relays-table";
  const about = h("p.panel-words", {}, words.relaysWords);
  const none = h("p.empty", {}, words.relaysNone);
  const [picture, scroll] = [byId("tree-host"), byId("relays-body")];
  scroll.append(about, element, none);
  const choices = [["picture", words.picture], ["table", words.table]] as const;
  const form = new Choice<"picture" | "table">("tree-shown", words.treeShown, choices, "light");
  form.element.hidden = true;
  byId("tree-words").append(form.element);
  const makeRow = (): HTMLTableRowElement =>
    h("tr", {}, h("td", {}, h("span"), h("span.sell")), h("td.num"), h("td.num"), h("td.num"), h("td.num"));
  const rows = new Rows<RelayLine>(body, makeRow, showLine);
  const draw = (): void => {
    const look = venue.network.look.value;
    if (shownView.value !== "network" || !look) return;
    const trees = treesOf(look.cluster);
    const tree = trees[venue.network.shownTree.value] ?? trees[0];
    form.element.hidden = tree === undefined;
    const isTable = tree !== undefined && form.value === "table";
    picture.hidden = isTable;
    scroll.hidden = !isTable;
    if (!isTable) return;
    const lines = relayLines(tree);
    rows.show(lines, ({ key }) => key);
    about.hidden = element.hidden = lines.length === 0;
    none.hidden = lines.length > 0;
  };
  form.element.addEventListener("change", draw);
  venue.network.look.watch(draw);
  venue.network.shownTree.watch(draw);
  shownView.watch(draw);
}

function showLine(row: HTMLTableRowElement, { place, trouble, packets, hedges, lost, transit }: RelayLine): void {
  const [first, ...figures] = row.cells;
  const [name, why] = first?.children ?? [];
  if (name) setText(name, place);
  if (why) setText(why, trouble);
  [packets, hedges, lost, transit].forEach((figure, at) => {
    const cell = figures[at];
    if (cell) setText(cell, figure);
  });
}
