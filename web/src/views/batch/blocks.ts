// The latest blocks: each one batch, cleared at one set of prices.

import type { BatchBlock } from "walras";
import { client } from "../../api/client.ts";
import { byId, h, setText } from "../../base/dom.ts";
import { group, showAge, showTime } from "../../base/format.ts";
import { atMostEvery } from "../../base/signal.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { setCells, Slots, table } from "../rows.ts";
import { shownView } from "../view-tabs.ts";

const ROWS_SHOWN = 60;
const DRAW_EVERY_MS = 200;
const AGE_EVERY_MS = 1_000;

export function blocksView(venue: Venue): void {
  const { desk } = venue;
  const words = t.blocks;
  const { element, body } = table(words.caption, [
    { name: words.block },
    { name: words.age, numeric: true },
    { name: words.collected, numeric: true },
    { name: words.traded, numeric: true },
    { name: words.pairs, numeric: true },
    { name: words.gap, numeric: true },
    { name: words.unserved, numeric: true },
  ]);
  element.id = "blocks-table";
  const empty = h("p.empty", {}, words.none);
  byId("blocks-body").append(element, empty);
  const make = (): HTMLTableRowElement =>
    h("tr", {}, h("td"), h("td.num.muted"), h("td.num"), h("td.num"), h("td.num"), h("td.num"), h("td.num"));
  const rows = new Slots<BatchBlock>(body, make, (row, block) => {
    row.title = words.rowTitle(showTime(block.time_ns, true), group(block.log_index), block.dropped, block.set_aside, block.state_root);
    setCells(row, [
      group(block.block), ageOf(venue, block), group(String(block.transactions)), group(String(block.offers_traded)),
      group(String(block.pairs_traded)), group(String(block.gap_ppb)), group(String(block.unserved_ppb)),
    ]);
  });
  const draw = atMostEvery(DRAW_EVERY_MS, () => {
    if (shownView.value !== "batch") return;
    const blocks = desk.market.value?.blocks.value ?? [];
    rows.show(blocks.slice(0, ROWS_SHOWN), ({ block }) => block);
    element.hidden = blocks.length === 0;
    empty.hidden = blocks.length > 0;
    setText(byId("blocks-title"), blocks.length === 0 ? words.title : words.latest);
  });
  setInterval(draw, AGE_EVERY_MS);
  shownView.watch(draw);
  desk.market.watch((market) => {
    market?.blocks.watch(draw);
    draw();
  });
}

/** By the venue's log, whose clock need not be this computer's. */
function ageOf(venue: Venue, block: BatchBlock): string {
  const status = venue.status.value?.time_ns;
  const now = client.venueTimeNs();
  // A replayed day has a time of its own: then the log's clock is the only one to measure by.
  const logNow = status !== undefined && now - BigInt(status) > 60_000_000_000n ? BigInt(status) : now;
  return showAge(Number((logNow - BigInt(block.time_ns)) / 1_000_000n));
}
