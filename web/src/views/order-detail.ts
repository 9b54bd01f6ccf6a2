// One order: what became of it, and where it waited on its way in. Asked of the venue when it is opened.

import type { OrderState } from "walras";
import { trimZeros } from "../base/decimal.ts";
import { h, setText } from "../base/dom.ts";
import { group, showDayTime, showSpan, zoneName } from "../base/format.ts";
import { waitStages } from "../state/order-detail.ts";
import { endOf, eventText } from "../state/order-history.ts";
import { describeError } from "../state/outcome.ts";
import type { Venue } from "../state/venue.ts";
import { t } from "../texts/index.ts";
import { table } from "./rows.ts";

/** Opens the details of an order, by the symbol of its instrument and the venue's id. */
export type OpenOrderDetail = (instrument: string, orderId: string) => void;

const words = t.orderDetail;
/** What is shorter still shows where it is. */
const BAR_LEAST_PERCENT = 0.75;

export function orderDialog(venue: Venue): OpenOrderDetail {
  const title = h("h2", { id: "order-detail-title" });
  const body = h("div", { id: "order-detail-body" });
  const dialog = h("dialog", { id: "order-detail", "aria-labelledby": "order-detail-title" }, title, body,
    h("form", { method: "dialog" }, h("div.row", {}, h("button.primary", { type: "submit" }, words.close))));
  document.body.prepend(dialog);
  /** Which question was asked last: answers to others come too late. */
  let asked = 0;
  return (instrument, orderId) => {
    asked += 1;
    const mine = asked;
    const show = (...parts: Node[]): void => {
      if (mine === asked) body.replaceChildren(...parts);
    };
    setText(title, words.title(orderId));
    show(h("p.muted", {}, words.loading));
    if (!dialog.open) dialog.showModal();
    venue.order(instrument, orderId).then(
      (order) => show(...detail(order, venue.fair.isOn.value)),
      (error: Error) => show(h("p", { role: "alert" }, describeError(error).text)),
    );
  };
}

function detail(order: OrderState, isFair: boolean): Node[] {
  const { instrument, side, price, trigger, original_size: size, filled, average_price: average, fee, fee_asset: asset } = order;
  const when = (timeNs: string | null): string => (timeNs === null ? "" : `${showDayTime(timeNs)} ${zoneName()}`);
  const traded = filled !== null && /[1-9]/.test(filled);
  const facts: [name: string, value: string][] = [
    [words.state, order.ended_at_ns === null ? openState(order) : endOf(order)],
    [words.filled, size === null || filled === null ? "" : words.of(group(trimZeros(filled)), group(trimZeros(size)))],
    [words.average, traded && average !== null ? group(average) : ""],
    [words.fee, traded && fee !== null ? `${group(trimZeros(fee, 2))} ${asset}` : ""],
    [words.entered, when(order.entered_at_ns)],
    [words.ended, when(order.ended_at_ns)],
  ];
  const shown = facts.filter(([, value]) => value !== "");
  return [
    h("p", {},
      h(`b.${side}`, {}, eventText({ instrument, side, kind: order.type ?? undefined, size: size ?? "", price, trigger })),
      ` · ${instrument}`),
    h("dl.order-facts", {}, ...shown.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    ...(isFair || order.waits !== undefined ? waits(order) : []),
  ];
}

function openState({ status }: OrderState): string {
  return status === "partially_filled" ? t.outcome.partly : status === "waiting_trigger" ? t.outcome.waiting : t.outcome.standing;
}

function waits({ waits }: OrderState): Node[] {
  const head = h("h3", {}, words.waited);
  if (waits === undefined) return [head, h("p.muted", { id: "order-waits-none" }, words.unknown)];
  const { element, body } = table(words.waited, [
    { name: words.stage }, { name: words.line, silent: true }, { name: words.time, numeric: true },
  ]);
  element.id = "order-waits";
  for (const { stage, ns, from, part } of waitStages(waits)) {
    const bar = h("i");
    const width = Math.max(BAR_LEAST_PERCENT, part * 100);
    bar.style.width = `${width}%`;
    bar.style.marginLeft = `${Math.min(from * 100, 100 - width)}%`;
    const { name, words: about } = words.stages[stage];
    body.append(h("tr", { "data-stage": stage },
      h("td.stage", {}, h("b", {}, name), h("span.muted", {}, about)), h("td.wait-cell", {}, bar), h("td.num", {}, showSpan(ns))));
  }
  if (waits.total_ns !== null) {
    body.append(h("tr", { "data-stage": "total" },
      h("td.stage", {}, h("b", {}, words.total)), h("td"), h("td.num", {}, h("b", {}, showSpan(waits.total_ns)))));
  }
  const late = waits.late_ns > 0 ? h("p.sell", { id: "order-late" }, words.late(showSpan(waits.late_ns))) : null;
  return [head, ...(late ? [late] : []), element, h("p.muted.small", {}, words.about)];
}
