// All of one's orders and trades, back to the first: to look through, to filter, and to save as a file.

import { type Fill, type Order, type OrderState, parseUnits } from "walras";
import { trimZeros } from "../../base/decimal.ts";
import { byId, h, setText } from "../../base/dom.ts";
import { csv, download, isoTime } from "../../base/csv.ts";
import { group, showDayTime, showUnits, zoneName } from "../../base/format.ts";
import { atMostEvery } from "../../base/signal.ts";
import type { Units } from "../../state/market.ts";
import { eventText, newestLines, type OrderEvent } from "../../state/order-history.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { roleName, sideText } from "../../texts/names.ts";
import { Older, saveAll } from "../older.ts";
import type { OpenOrderDetail } from "../order-detail.ts";
import { Rows, nameButton, setCells, table } from "../rows.ts";
import { shownView } from "../view-tabs.ts";

const DRAW_EVERY_MS = 250;

const words = t.account;

export function tradeHistoryView(venue: Venue): void {
  const numeric = true;
  const past = venue.account.pastFills;
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
  const search = h("input", {
    type: "text", id: "trades-search", "aria-label": words.search, placeholder: words.searchPlaceholder, autocomplete: "off",
    spellcheck: "false", oninput: () => draw(),
  });
  const side = h("select", { id: "trades-side", "aria-label": words.side, onchange: () => draw() },
    h("option", { value: "" }, words.both), h("option", { value: "buy" }, t.sides.buy), h("option", { value: "sell" }, t.sides.sell));
  const found = h("span.muted", { id: "trades-found" });
  const save = h("button", { type: "button", id: "trades-save", title: words.exportTitle(words.tradesList), onclick: () => saveAll(
    save, past, () => venue.account.fills.value.length, () => download("walras-trades.csv", tradesCsv(wanted(), venue)),
    (notice) => venue.say(notice),
  ) }, words.export);
  byId("trades-tools").append(found, search, h("span.compact", {}, side), save);
  const empty = h("p.empty", {}, words.tradesNone);
  const older = new Older("trades-older", past, byId("trades-body"), () => draw());
  byId("trades-body").append(element, empty, older.element);
  const rows = new Rows<Fill>(body, (fill) => {
    const row = h("tr", { title: `${words.order} ${fill.order_id}, ${fill.trade_id}` },
      h("td"), h("td"), h("td", { class: fill.side }), h("td.num"), h("td.num"), h("td.num"), h("td.num"), h("td"));
    const units = venue.units(fill.instrument);
    const quote = units?.instrument.quote ?? "";
    const value = units ? valueOf(fill, units) : "–";
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
    return venue.account.fills.value.filter((fill) =>
      fill.instrument.toUpperCase().includes(text) && (side.value === "" || fill.side === side.value));
  };
  const draw = (): void => {
    if (shownView.value !== "account") return;
    const [list, all] = [wanted(), venue.account.fills.value.length];
    rows.show(list.slice(0, older.rows), (fill) => `${fill.instrument} ${fill.trade_id} ${fill.order_id}`);
    element.hidden = list.length === 0;
    empty.hidden = all > 0;
    older.show(list.length);
    setText(found, all === 0 ? "" : words.tradesFound(group(String(list.length)), group(String(all))));
    save.disabled = list.length === 0;
  };
  venue.account.fills.watch(atMostEvery(DRAW_EVERY_MS, draw));
  shownView.watch(draw);
  draw();
}

/** What a trade was worth, in the quote asset. */
function valueOf({ price, size }: Fill, units: Units): string {
  const value = units.value(parseUnits(price, units.priceDecimals), parseUnits(size, units.sizeDecimals));
  return showUnits(value, units.quoteDecimals);
}

/** Oldest last, as they are listed; quantities in the venue's own text. */
export function tradesCsv(fills: Fill[], venue: Pick<Venue, "instrument">): string {
  const heads = [
    "time_utc", "instrument", "side", "price", "size", "fee", "fee_asset", "role", "trade_id", "order_id", "client_order_id",
  ];
  return csv(heads, fills.map((fill) => [
    isoTime(fill.time_ns), fill.instrument, fill.side, fill.price, fill.size, fill.fee, venue.instrument(fill.instrument)?.quote ?? "",
    fill.role, fill.trade_id, fill.order_id, fill.client_order_id,
  ]));
}

interface Line {
  key: string;
  timeNs: string | null;
  side: "buy" | "sell";
  text: string;
  what: string;
  instrument: string;
  orderId: string | null;
}

export function orderHistoryView(venue: Venue, openDetail: OpenOrderDetail): void {
  const { account } = venue;
  const past = account.pastOrders;
  const { element, body } = table(words.orders, [
    { name: words.time(zoneName()) },
    { name: words.instrument },
    { name: words.order },
    { name: words.what },
  ]);
  element.id = "all-orders-table";
  const file = (): string => ordersCsv([...account.orders.value.values()], account.closed.value, account.history.events.value);
  const save = h("button", { type: "button", id: "all-orders-save", title: words.exportTitle(words.orders), onclick: () => saveAll(
    save, past, () => account.closed.value.length, () => download("walras-orders.csv", file()), (notice) => venue.say(notice),
  ) }, words.export);
  byId("all-orders-tools").append(save);
  const empty = h("p.empty", {}, words.ordersNone);
  const older = new Older("all-orders-older", past, byId("all-orders-body"), () => draw());
  byId("all-orders-body").append(element, empty, older.element);
  const rows = new Rows<Line>(body, ({ side, instrument, orderId }) => {
    const name = orderId === null ? null : nameButton(t.orderDetail.open, () => openDetail(instrument, orderId));
    return h("tr", {}, h("td"), h("td"), h("td", { class: side }, name), h("td.what"));
  }, (row, line) =>
    setCells(row, [line.timeNs === null ? "–" : showDayTime(line.timeNs), line.instrument, line.text, line.what]));
  const draw = (): void => {
    if (shownView.value !== "account") return;
    const open = [...account.orders.value.values()].reverse().map(openLine);
    const { lines, known } = newestLines(account.history.events.value, account.closed.value, older.rows);
    rows.show([...open, ...lines], ({ key }) => key);
    const count = open.length + lines.length;
    element.hidden = count === 0;
    empty.hidden = count > 0;
    older.show(known);
    save.disabled = count === 0;
  };
  const soon = atMostEvery(DRAW_EVERY_MS, draw);
  account.orders.watch(soon);
  account.closed.watch(soon);
  account.history.events.watch(soon);
  shownView.watch(draw);
  draw();
}

function openLine(order: Order): Line {
  const { instrument, side, price, trigger, open, type, client_order_id: id, order_id: orderId } = order;
  return {
    key: `open ${instrument} ${id}`, timeNs: order.entered_at_ns ?? null, side, instrument, orderId, what: words.openNow,
    text: eventText({ instrument, side, kind: type, size: open, price, trigger }),
  };
}

const ORDERS_HEAD = [
  "time_utc", "instrument", "side", "type", "price", "trigger", "size", "state", "order_id", "client_order_id", "filled", "average_price",
  "fee", "fee_asset", "reason", "entered_utc",
];

/** Open orders, orders that have ended, and refusals: of those the file has what this page saw since it was opened. */
export function ordersCsv(open: Order[], closed: OrderState[], events: OrderEvent[]): string {
  const time = (timeNs: string | null | undefined): string => (timeNs == null ? "" : isoTime(timeNs));
  const none = ["", "", "", "", ""];
  return csv(ORDERS_HEAD, [
    ...open.map((order) => [
      time(order.entered_at_ns), order.instrument, order.side, order.type, order.price ?? "", order.trigger ?? "", order.open, "open",
      order.order_id, order.client_order_id, ...none, time(order.entered_at_ns),
    ]),
    ...closed.map((order) => [
      time(order.ended_at_ns), order.instrument, order.side, order.type ?? "", order.price ?? "", order.trigger ?? "",
      order.original_size ?? "", order.status, order.order_id, order.client_order_id,
      order.filled ?? "", order.average_price ?? "", order.fee ?? "", order.fee_asset,
      order.reason ?? "", time(order.entered_at_ns),
    ]),
    ...events.filter(({ isRefusal }) => isRefusal).map((event) => [
      isoTime(event.timeNs.toString()), event.instrument, event.side, event.kind ?? "", event.price ?? "", event.trigger ?? "",
      event.size, "refused", "", "", "", "", "", "", event.what, "",
    ]),
  ]);
}
