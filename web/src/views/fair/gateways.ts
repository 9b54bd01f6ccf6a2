// The gateways: whose clocks stamp, whose stamps count, and what the leader found of the orders that came by each.

import { byId, h, setText } from "../../base/dom.ts";
import { group, showShare, showSpan } from "../../base/format.ts";
import { type GatewayRow, gatewayRows, sharePpm } from "../../state/fair-access.ts";
import type { Venue } from "../../state/venue.ts";
import { Rows, table } from "../rows.ts";
import { CLOCK_WORDS } from "./head.ts";

const STAMPS = { count: "Count", outlier: "Outlier: do not count", none: "None yet" };

export function gatewaysView(venue: Venue): void {
  const { fair: desk } = venue;
  const { element, body } = table("Gateways, and what came by each", [
    { name: "Gateway" }, { name: "Link" }, { name: "Clock" }, { name: "Stamps" }, { name: "Orders", numeric: true }, { name: "Late", numeric: true }, { name: "Unfair", numeric: true },
    { name: "Copies dropped", numeric: true },
  ]);
  element.id = "gateways-table";
  byId("gateways-body").append(element);
  const rows = new Rows<GatewayRow>(body, (row) => h("tr", {},
    h("td", {}, row.page ? h("a", { href: row.page }) : h("span"), h("span.muted")),
    h("td"), h("td"), h("td"), h("td.num"), h("td.num"), h("td.num"), h("td.num")), update);
  desk.look.watch((look) => {
    // A row is replaced when its page becomes known.
    if (look) rows.show(gatewayRows(look), ({ id, page }) => `${id} ${page ?? ""}`);
    const led = look?.fair.sequencer?.gateways.length;
    setText(byId("gateways-words"), led ? "" : "Orders are counted where they are sequenced.");
  });
}

function update(tr: HTMLTableRowElement, row: GatewayRow): void {
  const { id, isHere, leads, figures, isLinked, trouble } = row;
  const [name, role] = tr.cells[0]?.children ?? [];
  const place = [...(isHere ? ["here"] : []), ...(leads ? ["leads"] : [])].join(", ");
  if (name) setText(name, String(id));
  if (role) setText(role, place === "" ? "" : ` ${place}`);
  const share = (part: number): string => {
    const ppm = sharePpm(part, figures?.held ?? 0);
    return ppm === null ? "–" : showShare(ppm);
  };
  const cells = [
    isLinked ? "Linked" : "Not linked", clockWords(row), STAMPS[row.stamps],
    ...(figures ? [group(String(figures.held)), share(figures.late), share(figures.overtaken), copies(figures.duplicates, figures.differing)] : ["–", "–", "–", "–"]),
  ];
  cells.forEach((text, index) => {
    const cell = tr.cells[index + 1];
    if (cell) setText(cell, text);
  });
  tr.cells[1]?.classList.toggle("sell", !isLinked);
  tr.cells[3]?.classList.toggle("sell", row.stamps === "outlier");
  tr.title = [
    ...(trouble === null ? [] : [trouble]),
    ...(figures ? [`${group(String(figures.late))} of its orders came when their delay was over, the latest by ${showSpan(figures.late_ns_max)}; ${group(String(figures.overtaken))} left after one with a later stamp, ${showShare(figures.overtaken_recent_ppm)} of the last ones`,
      ...(figures.unstamped > 0 ? [`${group(String(figures.unstamped))} had no stamp that counts`] : [])] : []),
  ].join("; ");
}

function clockWords({ clock, isHere }: GatewayRow): string {
  if (clock === null) return isHere ? "–" : "Its own page tells";
  if ("excluded" in clock) return `Excluded: ${clock.excluded}`;
  if ("offNs" in clock) return `Recently off by ${showSpan(clock.offNs)}`;
  return `${CLOCK_WORDS[clock.status]}${clock.boundNs === null ? "" : `, ± ${showSpan(clock.boundNs)}`}`;
}

/** Copies of the same are as meant; something else under its number is a breach. */
function copies(duplicates: number, differing: number): string {
  return differing === 0 ? group(String(duplicates)) : `${group(String(duplicates))}, ${group(String(differing))} differed`;
}
