// The gateways: whose clocks stamp, whose stamps count, and what the leader found of the orders that came by each.

import { byId, h, setText } from "../../base/dom.ts";
import { group, showShare, showSpan } from "../../base/format.ts";
import { type GatewayRow, gatewayRows, sharePpm } from "../../state/fair-access.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { Rows, table } from "../rows.ts";
import { CLOCK_WORDS } from "./head.ts";

const words = t.fair;

export function gatewaysView(venue: Venue): void {
  const { fair: desk } = venue;
  const { element, body } = table(words.gateways, [
    { name: words.gateway },
    { name: words.link },
    { name: words.clockHead },
    { name: words.stamps },
    { name: words.orders, numeric: true },
    { name: words.lateHead, numeric: true },
    { name: words.unfairHead, numeric: true },
    { name: words.copies, numeric: true },
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
    setText(byId("gateways-words"), led ? "" : words.counted);
  });
}

function update(tr: HTMLTableRowElement, row: GatewayRow): void {
  const { id, isHere, leads, figures, isLinked, trouble } = row;
  const [name, role] = tr.cells[0]?.children ?? [];
  const place = [...(isHere ? [words.here] : []), ...(leads ? [words.leadsPlace] : [])].join(", ");
  if (name) setText(name, String(id));
  if (role) setText(role, place === "" ? "" : ` ${place}`);
  const share = (part: number): string => {
    const ppm = sharePpm(part, figures?.held ?? 0);
    return ppm === null ? "–" : showShare(ppm);
  };
  const cells = [
    isLinked ? words.linked : words.notLinked, clockWords(row), words.stampsOf[row.stamps],
    ...(figures
      ? [group(String(figures.held)), share(figures.late), share(figures.overtaken), copies(figures.duplicates, figures.differing)]
      : ["–", "–", "–", "–"]),
  ];
  cells.forEach((text, index) => {
    const cell = tr.cells[index + 1];
    if (cell) setText(cell, text);
  });
  tr.cells[1]?.classList.toggle("sell", !isLinked);
  tr.cells[3]?.classList.toggle("sell", row.stamps === "outlier");
  tr.title = [
    ...(trouble === null ? [] : [trouble]),
    ...(figures
      ? [
          words.ofItsOrders(
            figures.late,
            showSpan(figures.late_ns_max),
            figures.overtaken,
            showShare(figures.overtaken_recent_ppm),
          ),
          ...(figures.unstamped > 0 ? [words.unstamped(figures.unstamped)] : []),
        ]
      : []),
  ].join("; ");
}

function clockWords({ clock, isHere }: GatewayRow): string {
  if (clock === null) return isHere ? "–" : words.ownPage;
  if ("excluded" in clock) return words.excluded(clock.excluded);
  if ("offNs" in clock) return words.offBy(showSpan(clock.offNs));
  return `${CLOCK_WORDS[clock.status]}${clock.boundNs === null ? "" : `, ± ${showSpan(clock.boundNs)}`}`;
}

/** Copies of the same are as meant; something else under its number is a breach. */
function copies(duplicates: number, differing: number): string {
  return differing === 0 ? group(String(duplicates)) : words.differed(group(String(duplicates)), group(String(differing)));
}
