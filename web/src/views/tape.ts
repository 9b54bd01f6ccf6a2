// The trade tape: what was dealt, newest first.

import type { Trade } from "../api/types.ts";
import { parseUnits } from "../base/decimal.ts";
import { byId, h, setText } from "../base/dom.ts";
import { showTime, showUnits } from "../base/format.ts";
import { oncePerFrame } from "../base/signal.ts";
import { slug, type Venue } from "../state/venue.ts";
import { Rows, setCells, table } from "./rows.ts";

const ROWS_SHOWN = 60;

export function tapeView(venue: Venue): void {
  const { element, body } = table("Latest trades, newest first; times in UTC", [
    { name: "Time (UTC)" }, { name: "Price", numeric: true }, { name: "Size", numeric: true },
  ]);
  const note = h("span.muted");
  setText(note, "▲ buyer took, ▼ seller took");
  byId("tape-tools").append(note);
  byId("tape-body").append(element);
  let fresh = false;
  let mine = new Set<string>();
  const rows = new Rows<Trade>(body, (trade) => {
    const row = h("tr", { class: fresh ? "new" : null }, h("td"), h("td.num", { class: `num ${trade.taker_side ?? ""}` }), h("td.num"));
    const units = venue.market.value?.units;
    const mark = trade.taker_side === "buy" ? "▲" : trade.taker_side === "sell" ? "▼" : "◆";
    if (units) {
      setCells(row, [
        showTime(trade.time_ns, true),
        `${mark} ${showUnits(parseUnits(trade.price, units.priceDecimals), units.priceDecimals)}`,
        showUnits(parseUnits(trade.size, units.sizeDecimals), units.sizeDecimals),
      ]);
    }
    return row;
  }, (row, trade) => row.classList.toggle("mine", mine.has(trade.trade_id)));

  const draw = oncePerFrame(() => {
    const market = venue.market.value;
    if (!market) return;
    mine = new Set(venue.account.fills.value
      .filter((fill) => slug(fill.instrument) === slug(market.symbol)).map((fill) => fill.trade_id));
    rows.show(market.trades.value.slice(0, ROWS_SHOWN), (trade) => `${market.symbol} ${trade.trade_id}`);
    fresh = market.trades.value.length > 0;
  });
  venue.account.fills.watch(draw);
  venue.market.watch((market) => {
    if (!market) return;
    fresh = false;
    market.trades.watch(draw);
    draw();
  });
}
