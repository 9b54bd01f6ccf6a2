// Everything that became of one's orders, and every trade: to look through, to narrow, and to take away as a file.

import type { Fill, OpenOrder } from "../../api/types.ts";
import { parseUnits, trimZeros } from "../../base/decimal.ts";
import { byId, h, setText } from "../../base/dom.ts";
import { csv, download, isoTime } from "../../base/csv.ts";
import { group, showDayTime, showUnits, zoneName } from "../../base/format.ts";
import { atMostEvery } from "../../base/signal.ts";
import { eventText, type OrderEvent } from "../../state/order-history.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { roleName, sideText } from "../../texts/names.ts";
import { Rows, setCells, table } from "../rows.ts";
import { shownView } from "../view-tabs.ts";

const DRAW_EVERY_MS = 250;
const ROWS_SHOWN = 500;

const words = t.account;

export function tradeHistoryView(venue: Venue): void {
  const numeric = true;
  const { element, body } = table(words.tradesList, [
    { name: words.time(zoneName()) },
    { name: words.instrument },
    { name: words.side },
    { name: words.price, numeric },
    { name: words.size, numeric },
    { name: words.valueHead, numeric },
    { name: words.fee, numeric },
    { name: words.role },
  ]);
  element.id = "trades-table";
  const search = h("input", { type: "text", id: "trades-search", "aria-label": words.search, placeholder: words.searchPlaceholder, autocomplete: "off", spellcheck: "false", oninput: () => draw() });
  const side = h("select", { id: "trades-side", "aria-label": words.side, onchange: () => draw() },
    h("option", { value: "" }, words.both), h("option", { value: "buy" }, t.sides.buy), h("option", { value: "sell" }, t.sides.sell));
  const found = h("span.muted", { id: "trades-found" });
  const save = h("button", { type: "button", id: "trades-save", title: words.exportTitle(words.tradesList), onclick: () => download("walras-trades.csv", tradesCsv(wanted(), venue)) }, words.export);
  byId("trades-tools").append(found, search, h("span.compact", {}, side), save);
  const empty = h("p.empty", {}, words.tradesNone);
  const more = h("p.empty", { hidden: true });
  byId("trades-body").append(element, empty, more);
  const rows = new Rows<Fill>(body, (fill) => {
    const row = h("tr", { title: `${words.order} ${fill.order_id}, ${fill.trade_id}` }, h("td"), h("td"), h("td", { class: fill.side }), h("td.num"), h("td.num"), h("td.num"), h("td.num"), h("td"));
    const units = venue.units(fill.instrument);
    const quote = units?.instrument.quote ?? "";
    const value = units ? showUnits(units.value(parseUnits(fill.price, units.priceDecimals), parseUnits(fill.size, units.sizeDecimals)), units.quoteDecimals) : "–";
    setCells(row, [
      showDayTime(fill.time_ns),
      fill.instrument,
      sideText(fill.side),
      group(fill.price),
      group(trimZeros(fill.size, 2)),
      `${value} ${quote}`.trim(),
      `${group(trimZeros(fill.fee, 2))} ${quote}`.trim(),
      roleName(fill.role),
    ]);
    return row;
  }, () => {});
  const wanted = (): Fill[] => {
    const text = search.value.trim().toUpperCase();
    return venue.account.fills.value.filter((fill) => fill.instrument.toUpperCase().includes(text) && (side.value === "" || fill.side === side.value));
  };
  const draw = (): void => {
    if (shownView.value !== "account") return;
    const [list, all] = [wanted(), venue.account.fills.value.length];
    rows.show(list.slice(0, ROWS_SHOWN), (fill) => `${fill.instrument} ${fill.trade_id} ${fill.order_id}`);
    element.hidden = list.length === 0;
    empty.hidden = all > 0;
    more.hidden = list.length <= ROWS_SHOWN;
    setText(more, words.moreTrades(String(ROWS_SHOWN)));
    setText(found, all === 0 ? "" : words.tradesFound(group(String(list.length)), group(String(all))));
    save.disabled = list.length === 0;
  };
  venue.account.fills.watch(atMostEvery(DRAW_EVERY_MS, draw));
  shownView.watch(draw);
  draw();
}

/** Oldest last, as they are listed; quantities in the venue's own text. */
export function tradesCsv(fills: Fill[], venue: Pick<Venue, "instrument">): string {
  return csv(["time_utc", "instrument", "side", "price", "size", "fee", "fee_asset", "role", "trade_id", "order_id", "client_order_id"], fills.map((fill) =>
    [isoTime(fill.time_ns), fill.instrument, fill.side, fill.price, fill.size, fill.fee, venue.instrument(fill.instrument)?.quote ?? "", fill.role, fill.trade_id, fill.order_id, fill.client_order_id]));
}

interface Line {
  key: string;
  timeNs: string | null;
  side: "buy" | "sell";
  text: string;
  what: string;
  instrument: string;
}

export function orderHistoryView(venue: Venue): void {
  const { element, body } = table(words.orders, [
    { name: words.time(zoneName()) },
    { name: words.instrument },
    { name: words.order },
    { name: words.what },
  ]);
  element.id = "all-orders-table";
  const save = h("button", { type: "button", id: "all-orders-save", title: words.exportTitle(words.orders), onclick: () => download("walras-orders.csv", ordersCsv([...venue.account.orders.value.values()], venue.account.history.events.value)) }, words.export);
  byId("all-orders-tools").append(save);
  const note = h("p.empty");
  byId("all-orders-body").append(element, note);
  const rows = new Rows<Line>(body, ({ side }) => h("tr", {}, h("td"), h("td"), h("td", { class: side }), h("td.what")), (row, line) =>
    setCells(row, [line.timeNs === null ? "–" : showDayTime(line.timeNs), line.instrument, line.text, line.what]));
  const draw = (): void => {
    if (shownView.value !== "account") return;
    const open = [...venue.account.orders.value.values()].reverse().map(openLine);
    const events = venue.account.history.events.value.map(eventLine);
    rows.show([...open, ...events], ({ key }) => key);
    element.hidden = open.length + events.length === 0;
    setText(note, open.length + events.length === 0 ? words.ordersNone : words.ordersWords);
    save.disabled = open.length + events.length === 0;
  };
  const soon = atMostEvery(DRAW_EVERY_MS, draw);
  venue.account.orders.watch(soon);
  venue.account.history.events.watch(soon);
  shownView.watch(draw);
  draw();
}

function openLine(order: OpenOrder): Line {
  const { instrument, side, price, trigger, open, type, client_order_id: id } = order;
  return { key: `open ${instrument} ${id}`, timeNs: order.entered_at_ns ?? null, side, instrument, what: words.openNow, text: eventText({ instrument, side, kind: type, size: open, price, trigger }) };
}

function eventLine(event: OrderEvent): Line {
  return { key: `event ${event.number}`, timeNs: event.timeNs.toString(), side: event.side, instrument: event.instrument, what: event.what, text: eventText(event) };
}

export function ordersCsv(open: OpenOrder[], events: OrderEvent[]): string {
  const head = ["time_utc", "instrument", "side", "type", "price", "trigger", "size", "state", "order_id", "client_order_id"];
  return csv(head, [
    ...open.map((order) => [order.entered_at_ns == null ? "" : isoTime(order.entered_at_ns), order.instrument, order.side, order.type, order.price ?? "", order.trigger ?? "", order.open, "open", order.order_id, order.client_order_id]),
    ...events.map((event) => [isoTime(event.timeNs.toString()), event.instrument, event.side, event.kind ?? "", event.price ?? "", event.trigger ?? "", event.size, event.what, "", ""]),
  ]);
}

