// The trade tape: what was dealt, newest first.

import { parseUnits, pathSymbol, type Trade } from "walras";
import { byId, h, setText } from "../base/dom.ts";
import { showTime, showUnits, zoneName } from "../base/format.ts";
import { oncePerFrame } from "../base/signal.ts";
import type { Venue } from "../state/venue.ts";
import { t } from "../texts/index.ts";
import { flash, setCells, Slots, table } from "./rows.ts";
import { palette } from "./theme.ts";

const ROWS_SHOWN = 60;

export function tapeView(venue: Venue): void {
  const { element, body } = table(t.tape.caption(zoneName()), [
    { name: t.tape.time(zoneName()) }, { name: t.tape.price, numeric: true }, { name: t.tape.size, numeric: true },
  ]);
  const note = h("span.muted");
  setText(note, t.tape.takers);
  byId("tape-tools").append(note);
  byId("tape-body").append(element);
  let shown = "";
  let mine = new Set<string>();
  const rows = new Slots<Trade>(body, () => h("tr", {}, h("td"), h("td.num"), h("td.num")), (row, trade) => {
    const units = venue.market.value?.units;
    if (!units) return;
    const mark = trade.taker_side === "buy" ? "▲" : trade.taker_side === "sell" ? "▼" : "◆";
    setCells(row, [
      showTime(trade.time_ns, true),
      `${mark} ${showUnits(parseUnits(trade.price, units.priceDecimals), units.priceDecimals)}`,
      showUnits(parseUnits(trade.size, units.sizeDecimals), units.sizeDecimals),
    ]);
    const price = row.cells[1];
    if (price) price.className = `num ${trade.taker_side ?? ""}`;
    row.classList.toggle("mine", mine.has(trade.trade_id));
  });

  const draw = oncePerFrame(() => {
    const market = venue.market.value;
    if (!market) return;
    mine = new Set(venue.account.fills.value
      .filter((fill) => pathSymbol(fill.instrument) === pathSymbol(market.symbol)).map((fill) => fill.trade_id));
    const arrived = shown === market.symbol ? (row: HTMLTableRowElement) => flash(row, palette.value.hair) : undefined;
    rows.show(market.trades.value.slice(0, ROWS_SHOWN), (trade) => trade.trade_id, arrived);
    shown = market.symbol;
  });
  venue.account.fills.watch(draw);
  venue.market.watch((market) => {
    if (!market) return;
    market.trades.watch(draw);
    draw();
  });
}
