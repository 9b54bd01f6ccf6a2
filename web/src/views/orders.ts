// One's own open orders: cancel, amend in place, cancel all; and what became of those before.

import type { OpenOrder } from "../api/types.ts";
import { trimZeros } from "../base/decimal.ts";
import { byId, h, setText } from "../base/dom.ts";
import { group, showTime, ungroup, words, zoneName } from "../base/format.ts";
import { oncePerFrame } from "../base/signal.ts";
import { orderKey } from "../state/account.ts";
import { eventText, type OrderEvent } from "../state/order-history.ts";
import { describeError } from "../state/outcome.ts";
import { slug, type Venue } from "../state/venue.ts";
import { Choice } from "./form.ts";
import { Rows, keepFocus, setCells, sideText, table } from "./rows.ts";

export function ordersView(venue: Venue): void {
  const { element, body } = table("Your open orders", [
    { name: "Order" }, { name: "Price", numeric: true }, { name: "Open", numeric: true }, { name: "Stands" }, { name: "Actions", silent: true },
  ]);
  element.id = "orders-table";
  const empty = h("p.empty", {}, "None. A limit order that does not trade at once stands here until it does, or until you cancel it.");
  const cancelAll = h("button", { type: "button", id: "cancel-all", onclick: () => void cancelEverything(venue) }, "Cancel all");
  const shown = new Choice<"open" | "history">("orders-shown", "Which orders", [["open", "Open"], ["history", "History"]], "light");
  byId("orders-tools").append(shown.element, cancelAll);
  const history = historyTable(venue);
  byId("orders-body").append(element, empty, history.element);
  /** Keys of orders that are being amended. */
  const editing = new Set<string>();

  const rows = new Rows<OpenOrder>(body, (order) => {
    const key = orderKey(order);
    const row = h("tr", { title: `${order.instrument}, order ${order.order_id}, ${order.time_in_force?.toUpperCase() ?? ""}` }, h("td", { class: order.side }), h("td.num"), h("td.num"), h("td"), h("td.act"));
    const setEditing = (on: boolean): void => {
      if (on) editing.add(key);
      else editing.delete(key);
      const current = venue.account.orders.value.get(key);
      if (current) fill(row, current, on, setEditing, venue);
      row.querySelector<HTMLElement>(on ? "input" : "button")?.focus();
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
    const count = orders.length === 0 ? "" : ` (${orders.length})`;
    setText(byId("orders-title"), isHistory ? "Your order history" : `Your open orders${count}`);
    if (isHistory) history.draw();
  });
  shown.element.addEventListener("change", draw);
  venue.account.orders.watch(draw);
  venue.account.history.events.watch(draw);
  draw();
}

/** What the page saw, said so: the venue lists open orders only. */
function historyTable(venue: Venue): { element: HTMLElement; draw: () => void } {
  const { element, body } = table(`What became of your orders, newest first; times in ${zoneName()}`, [{ name: "Time" }, { name: "Order" }, { name: "What became of it" }]);
  element.id = "history-table";
  const words = h("p.empty", { id: "history-words" });
  const rows = new Rows<OrderEvent>(body, (event) => {
    const row = h("tr", { title: `${event.instrument}, ${showTime(event.timeNs.toString(), true)} ${zoneName()}` }, h("td"), h("td", { class: event.side }), h("td.what"));
    setCells(row, [showTime(event.timeNs.toString()), eventText(event), event.what]);
    return row;
  }, () => {});
  return {
    element: h("div", {}, words, element),
    draw: () => {
      const events = venue.account.history.events.value;
      rows.show(events, ({ number }) => String(number));
      element.hidden = events.length === 0;
      setText(words, events.length === 0 ? "Nothing yet since this page was opened. What came before is not here." : "Seen by this page since it was opened; what came before is not here.");
    },
  };
}

function texts(order: OpenOrder, venue: Venue): string[] {
  const shown = order.shown !== undefined && order.shown !== order.open ? `, ${group(trimZeros(order.shown))} shown` : "";
  const trigger = order.trigger === null || order.trigger === undefined ? "" : `, ${words(order.type)} at ${group(order.trigger)}`;
  const trail = order.trail == null ? order.trail_ppm == null ? "" : `, trails by ${order.trail_ppm / 10_000} %` : `, trails by ${group(order.trail)}`;
  const [base = order.instrument] = order.instrument.split(/[/-]/);
  return [
    `${sideText(order.side)} ${base}${trigger}${trail}${shown}${linkedText(order, venue)}`, order.price === null ? "market" : group(order.price), group(order.open),
    order.time_in_force?.toUpperCase() ?? "",
  ];
}

/** With which order it is linked, by where that one stands. */
function linkedText(order: OpenOrder, venue: Venue): string {
  if (order.linked_order_id == null) return "";
  const partner = [...venue.account.orders.value.values()].find((other) => other.order_id === order.linked_order_id);
  const at = partner?.price ?? partner?.trigger;
  return at == null ? ", OCO" : `, OCO with ${words(partner?.type ?? "")} at ${group(at)}`;
}

function fill(row: HTMLTableRowElement, order: OpenOrder, editing: boolean, setEditing: (on: boolean) => void, venue: Venue): void {
  const [, first, , , actions] = row.cells as unknown as [HTMLTableCellElement, HTMLTableCellElement, HTMLTableCellElement, HTMLTableCellElement, HTMLTableCellElement];
  // While it is amended one cell takes the room of all but the order's name.
  first.colSpan = editing ? 4 : 1;
  for (const cell of [...row.cells].slice(2)) cell.hidden = editing;
  setCells(row, texts(order, venue));
  const name = `${order.side} ${order.open} ${order.instrument}${order.price === null ? "" : ` at ${order.price}`}`;
  if (!editing) {
    actions.replaceChildren(
      h("button", { type: "button", "aria-label": `Amend: ${name}`, onclick: () => setEditing(true) }, "Amend"),
      h("button", { type: "button", "aria-label": `Cancel: ${name}`, onclick: () => void cancel(venue, order) }, "Cancel"),
    );
    return;
  }
  const price = order.price === null ? null : h("input", { type: "text", inputmode: "decimal", value: order.price, "aria-label": `New price of: ${name}` });
  const size = h("input", { type: "text", inputmode: "decimal", value: order.open, "aria-label": `New open size of: ${name}` });
  const save = async (): Promise<void> => {
    const changes: { price?: string; size?: string } = {};
    const newPrice = price ? ungroup(price.value) : null;
    const newSize = ungroup(size.value);
    if (newPrice !== null && newPrice !== order.price) changes.price = newPrice;
    if (newSize !== order.open) changes.size = newSize;
    if (changes.price === undefined && changes.size === undefined) return setEditing(false);
    try {
      await venue.socket.request("amend", { instrument: slug(order.instrument), client_order_id: order.client_order_id, ...changes });
      setEditing(false);
    } catch (error) {
      venue.say({ tone: "bad", ...describeError(error as Error) });
    }
  };
  for (const input of [price, size]) {
    input?.addEventListener("keydown", (event) => {
      if (event.key === "Enter") void save();
      else if (event.key === "Escape") setEditing(false);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }
  actions.replaceChildren();
  first.replaceChildren(h("div.amend", {},
    price && h("label", {}, "Price", price), h("label", {}, "Open", size),
    h("span.buttons", {},
      h("button", { type: "button", "aria-label": `Save: ${name}`, onclick: () => void save() }, "Save"),
      h("button", { type: "button", "aria-label": `Leave as it is: ${name}`, onclick: () => setEditing(false) }, "Keep"))));
}

async function cancel(venue: Venue, order: OpenOrder): Promise<void> {
  try {
    await venue.socket.request("cancel", { instrument: slug(order.instrument), client_order_id: order.client_order_id });
  } catch (error) {
    venue.say({ tone: "bad", ...describeError(error as Error) });
  }
}

/** A mass cancel goes to one instrument: one for each that has orders. */
export async function cancelEverything(venue: Venue): Promise<void> {
  const instruments = new Set([...venue.account.orders.value.values()].map((order) => slug(order.instrument)));
  try {
    await Promise.all([...instruments].map((instrument) => venue.socket.request("mass_cancel", { instrument })));
  } catch (error) {
    venue.say({ tone: "bad", ...describeError(error as Error) });
  }
}
