// One's own open orders: cancel, amend in place, cancel all; and the history of one's orders.

import { type Changes, type Order, pathSymbol } from "walras";
import { client } from "../api/client.ts";
import { trimZeros } from "../base/decimal.ts";
import { byId, h, setText } from "../base/dom.ts";
import { group, showDay, showDayTime, showTime, typed, ungroup, zoneName } from "../base/format.ts";
import { oncePerFrame } from "../base/signal.ts";
import { orderKey } from "../state/account.ts";
import { type HistoryLine, newestLines } from "../state/order-history.ts";
import { changeOf, linesOf } from "../state/order-line.ts";
import { describeError } from "../state/outcome.ts";
import type { Venue } from "../state/venue.ts";
import { t } from "../texts/index.ts";
import { kindName, sideText } from "../texts/names.ts";
import { Choice } from "./form.ts";
import { Older } from "./older.ts";
import type { OpenOrderDetail } from "./order-detail.ts";
import { Rows, keepFocus, nameButton, setCells, table } from "./rows.ts";

const said = t.orders;

export function ordersView(venue: Venue, openDetail: OpenOrderDetail): void {
  const { element, body } = table(said.caption, [
    { name: said.order },
    { name: said.price, numeric: true },
    { name: said.open, numeric: true },
    { name: said.stands },
    { name: said.actions, silent: true },
  ]);
  element.id = "orders-table";
  const empty = h("p.empty", {}, said.none);
  const cancelAll = h("button", { type: "button", id: "cancel-all", onclick: () => void cancelEverything(venue) }, said.cancelAll);
  const shown = new Choice<"open" | "history">("orders-shown", said.which, [["open", said.open], ["history", said.history]], "light");
  byId("orders-tools").append(shown.element, cancelAll);
  const history = historyTable(venue, openDetail);
  byId("orders-body").append(element, empty, history.element);
  /** Keys of orders that are being amended. */
  const editing = new Set<string>();

  const rows = new Rows<Order>(body, (order) => {
    const key = orderKey(order);
    const row = h(
      "tr",
      { title: said.rowTitle(order.instrument, order.order_id, order.time_in_force?.toUpperCase() ?? "") },
      h("td", { class: order.side }, nameButton(t.orderDetail.open, () => openDetail(order.instrument, order.order_id))),
      h("td.num"),
      h("td.num"),
      h("td"),
      h("td.act"),
    );
    const setEditing = (on: boolean): void => {
      if (on) editing.add(key);
      else editing.delete(key);
      const current = venue.account.orders.value.get(key);
      if (current) fill(row, current, on, setEditing, venue);
      row.querySelector<HTMLElement>(on ? "input" : "td.act button")?.focus();
    };
    fill(row, order, false, setEditing, venue);
    return row;
  }, (row, order) => {
    if (!editing.has(orderKey(order))) setCells(row, texts(order, venue));
  });

  const draw = oncePerFrame(() => {
    const orders = [...venue.account.orders.value.values()].reverse();
    for (const key of editing) if (!venue.account.orders.value.has(key)) editing.delete(key);
    keepFocus(body, cancelAll, () => rows.show(orders, orderKey));
    const isHistory = shown.value === "history";
    history.element.hidden = !isHistory;
    element.hidden = isHistory || orders.length === 0;
    empty.hidden = isHistory || orders.length > 0;
    cancelAll.disabled = orders.length === 0;
    setText(byId("orders-title"), isHistory ? said.historyTitle : said.title(orders.length));
    if (isHistory) history.draw();
  });
  shown.element.addEventListener("change", draw);
  venue.account.orders.watch(draw);
  venue.account.history.events.watch(draw);
  venue.account.closed.watch(draw);
  draw();
}

/** What the page sees of orders as it happens, and the orders that have ended, as the venue lists them. */
function historyTable(venue: Venue, openDetail: OpenOrderDetail): { element: HTMLElement; draw: () => void } {
  const { account } = venue;
  const { element, body } = table(said.historyCaption(zoneName()), [{ name: said.time }, { name: said.order }, { name: said.what }]);
  element.id = "history-table";
  const words = h("p.empty", { id: "history-words" }, said.historyNone);
  const rows = new Rows<HistoryLine>(body, (line) => {
    const title = `${line.instrument}, ${showDayTime(line.timeNs)} ${zoneName()}`;
    const { instrument, orderId } = line;
    const name = orderId === null ? null : nameButton(t.orderDetail.open, () => openDetail(instrument, orderId));
    const row = h("tr", { title }, h("td"), h("td", { class: line.side }, name), h("td.what"));
    setCells(row, [showWhen(line.timeNs), line.text, line.what]);
    return row;
  }, () => {});
  const draw = (): void => {
    const { lines, known } = newestLines(account.history.events.value, account.closed.value, older.rows);
    rows.show(lines, ({ key }) => key);
    element.hidden = lines.length === 0;
    words.hidden = lines.length > 0;
    older.show(known);
  };
  const older = new Older("history-older", account.pastOrders, byId("orders-body"), draw);
  return { element: h("div", {}, words, element, older.element), draw };
}

/** Today's events have the time alone. */
function showWhen(timeNs: string): string {
  return showDay(timeNs) === showDay(client.venueTimeNs().toString()) ? showTime(timeNs) : showDayTime(timeNs);
}

function texts(order: Order, venue: Venue): string[] {
  // Of an order that waits for its trigger nobody sees anything.
  const isPart = order.shown !== undefined && order.shown !== order.open && order.trigger == null;
  const shown = isPart ? said.shown(group(trimZeros(order.shown))) : "";
  const trigger = order.trigger === null || order.trigger === undefined ? "" : said.trigger(kindName(order.type), group(order.trigger));
  const trail =
    order.trail == null
      ? order.trail_ppm == null
        ? ""
        : said.trails(`${order.trail_ppm / 10_000} %`)
      : said.trails(group(order.trail));
  const [base = order.instrument] = order.instrument.split(/[/-]/);
  return [
    `${sideText(order.side)} ${base}${trigger}${trail}${shown}${linkedText(order, venue)}${order.is_held === true ? said.held : ""}`,
    order.price === null ? said.market : group(order.price),
    group(order.open),
    order.time_in_force?.toUpperCase() ?? "",
  ];
}

/** With which order it is linked, by where that one stands. */
function linkedText(order: Order, venue: Venue): string {
  if (order.linked_order_id == null) return "";
  const partner = [...venue.account.orders.value.values()].find((other) => other.order_id === order.linked_order_id);
  const at = partner?.price ?? partner?.trigger;
  return at == null ? said.linked : said.linkedWith(kindName(partner?.type ?? ""), group(at));
}

function fill(row: HTMLTableRowElement, order: Order, editing: boolean, setEditing: (on: boolean) => void, venue: Venue): void {
  type Cell = HTMLTableCellElement;
  const [, first, , , actions] = row.cells as unknown as [Cell, Cell, Cell, Cell, Cell];
  // While it is amended one cell takes the room of all but the order's name.
  first.colSpan = editing ? 4 : 1;
  for (const cell of [...row.cells].slice(2)) cell.hidden = editing;
  setCells(row, texts(order, venue));
  const bare = said.named(said.nameSides[order.side], typed(order.open), order.instrument);
  const name = order.price === null ? bare : said.namedAt(bare, typed(order.price));
  if (!editing) {
    actions.replaceChildren(
      h("button", { type: "button", "aria-label": said.amendLabel(name), onclick: () => setEditing(true) }, said.amend),
      h("button", { type: "button", "aria-label": said.cancelLabel(name), onclick: () => void cancel(venue, order) }, said.cancel),
    );
    return;
  }
  const quantity = (value: string, label: string): HTMLInputElement =>
    h("input", { type: "text", inputmode: "decimal", value: typed(value), "aria-label": label });
  const prices = linesOf(order).filter(({ isMovable }) => isMovable).map((line) => {
    const isTrigger = line.field === "trigger";
    const input = quantity(line.at, isTrigger ? said.newTrigger(name) : said.newPrice(name));
    return { line, label: isTrigger ? t.ticket.fields.trigger : said.price, input };
  });
  const size = quantity(order.open, said.newSize(name));
  const save = async (): Promise<void> => {
    const changes: Changes = {};
    for (const { line, input } of prices) {
      const at = ungroup(input.value);
      if (at !== line.at) Object.assign(changes, changeOf(line, at));
    }
    const newSize = ungroup(size.value);
    if (newSize !== order.open) changes.size = newSize;
    if (Object.keys(changes).length === 0) return setEditing(false);
    try {
      await venue.stream.amend(order.instrument, order.client_order_id, changes);
      setEditing(false);
    } catch (error) {
      venue.say({ tone: "bad", ...describeError(error as Error) });
    }
  };
  for (const input of [...prices.map(({ input }) => input), size]) {
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") void save();
      else if (event.key === "Escape") setEditing(false);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }
  actions.replaceChildren();
  first.replaceChildren(h("div.amend", {},
    ...prices.map(({ label, input }) => h("label", {}, label, input)), h("label", {}, said.open, size),
    h("span.buttons", {},
      h("button", { type: "button", "aria-label": said.saveLabel(name), onclick: () => void save() }, said.save),
      h("button", { type: "button", "aria-label": said.keepLabel(name), onclick: () => setEditing(false) }, said.keep))));
}

async function cancel(venue: Venue, order: Order): Promise<void> {
  try {
    await venue.stream.cancel(order.instrument, order.client_order_id);
  } catch (error) {
    venue.say({ tone: "bad", ...describeError(error as Error) });
  }
}

/** A mass cancel goes to one instrument: one for each that has orders. */
export async function cancelEverything(venue: Venue): Promise<void> {
  const instruments = new Set([...venue.account.orders.value.values()].map((order) => pathSymbol(order.instrument)));
  try {
    await Promise.all([...instruments].map((instrument) => venue.stream.massCancel({ instrument })));
  } catch (error) {
    venue.say({ tone: "bad", ...describeError(error as Error) });
  }
}
