// What became of one's orders: those that have ended, as the venue lists them, back to the first; and what the page sees as it happens
// (placed, amended, traded in part, refused). The venue's record of an order's end replaces what the page saw of it.

import type { Order, OrderState, OrderType, OrderUpdate, Side } from "walras";
import { trimZeros } from "../base/decimal.ts";
import { group } from "../base/format.ts";
import { Signal } from "../base/signal.ts";
import { hasEnded } from "./order-end.ts";
import { isTrailing, labelled } from "./order-line.ts";
import { t } from "../texts/index.ts";
import { cancelName, kindName, reasonName, sideText } from "../texts/names.ts";

const EVENTS_KEPT = 200;
const ENDS: Record<string, string> = { filled: t.history.filled, expired: t.history.expired, rejected: t.history.rejected };

export interface OrderEvent {
  /** Counts up. */
  number: number;
  /** By the venue's clock, when the page heard of it. */
  timeNs: bigint;
  instrument: string;
  side: Side;
  kind: OrderType | undefined;
  /** Of the order, as it stood then. */
  size: string;
  price: string | null;
  trigger: string | null;
  what: string;
  /** The id of the order that ends with it: the venue has a record of that end. */
  ends: string | null;
  /** The order's id; `null` of one that was refused. */
  orderId: string | null;
  /** The venue keeps no record of refusals. */
  isRefusal: boolean;
}

/** A line of the history. */
export interface HistoryLine {
  key: string;
  timeNs: string;
  instrument: string;
  side: Side;
  text: string;
  what: string;
  /** `null` of an order that was refused: the venue knows no more of it. */
  orderId: string | null;
}

/** As much of an order as was asked for. */
export type AskedOrder = Pick<Order, "instrument" | "side"> & { type: OrderType; size: string; price?: string; trigger?: string };

export class OrderHistory {
  /** Newest first. */
  readonly events = new Signal<OrderEvent[]>([]);
  #count = 0;

  /** `before` is the order as it was known, `hasTraded` whether news of its trades came with the update. */
  onUpdate(before: Order | undefined, update: OrderUpdate, hasTraded: boolean, timeNs: bigint): void {
    const after = { ...before, ...update };
    const { instrument, side, open } = after;
    if (side === undefined || open === undefined) return;
    const what = whatHappened(before, update, hasTraded);
    if (what === null) return;
    // What has ended has nothing open: the size is what was open before.
    const size = /[1-9]/.test(open) ? open : before?.open ?? "";
    const ends = hasEnded({ status: update.status, open }) ? (after.order_id ?? null) : null;
    this.#add({
      timeNs, instrument, side, kind: after.type, size, price: after.price ?? null, trigger: after.trigger ?? null, what, ends,
      orderId: after.order_id ?? null, isRefusal: false,
    });
  }

  onRefused({ instrument, side, type, size, price, trigger }: AskedOrder, code: number, reason: string, timeNs: bigint): void {
    this.#add({
      timeNs,
      instrument,
      side,
      kind: type,
      size,
      price: price ?? null,
      trigger: trigger ?? null,
      what: t.history.refused(code, reasonName(code, reason)),
      ends: null,
      orderId: null,
      isRefusal: true,
    });
  }

  clear(): void {
    this.events.value = [];
  }

  #add(event: Omit<OrderEvent, "number">): void {
    this.events.value = [{ number: (this.#count += 1), ...event }, ...this.events.value].slice(0, EVENTS_KEPT);
  }
}

/** The newest lines, at most `most`, and how many lines are known in all. */
export function newestLines(events: OrderEvent[], closed: OrderState[], most: number): { lines: HistoryLine[]; known: number } {
  const ended = closed.slice(0, most);
  const lines = linesOf(events, ended);
  return { lines: lines.slice(0, most), known: closed.length - ended.length + lines.length };
}

/** Events and orders that have ended, newest first. */
export function linesOf(events: OrderEvent[], closed: OrderState[]): HistoryLine[] {
  const recorded = new Map(closed.map((order) => [`${order.instrument} ${order.order_id}`, order]));
  const seen = events
    .filter(({ instrument, ends }) => ends === null || !recorded.has(`${instrument} ${ends}`))
    .map((event) => eventLine(beforeItsEnd(event, recorded.get(`${event.instrument} ${event.orderId}`))))
    // By time; those of one time stay as they came.
    .sort((a, b) => Number(BigInt(b.timeNs) - BigInt(a.timeNs)));
  const lines: HistoryLine[] = [];
  // Both lists are in order: this merges them.
  for (const order of closed) {
    const line = closedLine(order);
    for (let first = seen[0]; first && BigInt(first.timeNs) >= BigInt(line.timeNs); first = seen[0]) lines.push(...seen.splice(0, 1));
    lines.push(line);
  }
  return [...lines, ...seen];
}

/** The page's estimate of the venue's clock may run ahead of it, and an event that the page saw would be newer than the order's end. */
function beforeItsEnd(event: OrderEvent, order: OrderState | undefined): OrderEvent {
  const endNs = BigInt(order?.ended_at_ns ?? event.timeNs + 1n);
  return event.timeNs < endNs ? event : { ...event, timeNs: endNs - 1n };
}

function eventLine(event: OrderEvent): HistoryLine {
  const { instrument, side, what, orderId } = event;
  return { key: `event ${event.number}`, timeNs: event.timeNs.toString(), side, instrument, what, orderId, text: eventText(event) };
}

function closedLine(order: OrderState): HistoryLine {
  const { instrument, side, price, trigger } = order;
  const size = order.original_size ?? "";
  const text = eventText({ instrument, side, kind: order.type ?? undefined, size, price, trigger });
  const { order_id: orderId, ended_at_ns: endedNs } = order;
  return { key: `closed ${instrument} ${orderId}`, timeNs: endedNs ?? "0", instrument, side, text, what: endOf(order), orderId };
}

/** How an order ended, and what it traded before. */
export function endOf({ status, reason, filled, average_price }: OrderState): string {
  const traded = filled !== null && average_price !== null && /[1-9]/.test(filled);
  const at = traded ? group(average_price) : "";
  if (status === "filled") return traded ? t.history.filledAt(at) : t.history.filled;
  const end = reason === null || reason === "requested" ? t.history.cancelled : t.history.cancelledFor(cancelName(reason));
  return traded ? t.history.partlyFilled(end, group(trimZeros(filled)), at) : end;
}

function whatHappened(before: Order | undefined, update: OrderUpdate, hasTraded: boolean): string | null {
  if (update.status === "cancelled") {
    const { reason } = update;
    return reason === undefined || reason === "requested" ? t.history.cancelled : t.history.cancelledFor(cancelName(reason));
  }
  const end = ENDS[update.status] ?? (update.open !== undefined && !/[1-9]/.test(update.open) ? t.history.filled : undefined);
  if (end !== undefined) return end;
  if (before === undefined) return hasTraded ? t.history.placedTraded : t.history.placed;
  if (hasTraded) return t.history.traded(group(trimZeros(update.open ?? before.open)));
  const changes = [
    ...(update.price !== undefined && update.price !== before.price
      ? [labelled(t.history.from(before.price === null ? t.orders.market : group(before.price)), "price", before)]
      : []),
    // That of a trailing stop moves by itself.
    ...(update.trigger != null && before.trigger != null && update.trigger !== before.trigger && !isTrailing(before.type)
      ? [labelled(t.history.from(group(before.trigger)), "trigger", before)]
      : []),
    ...(update.open !== undefined && trimZeros(update.open) !== trimZeros(before.open)
      ? [t.history.from(group(trimZeros(before.open)))]
      : []),
  ];
  if (changes.length > 0) return t.history.amended(changes.join(", "));
  const isTriggered = before.trigger !== null && update.trigger === null;
  return isTriggered ||
    (update.status === "resting" && before.type.startsWith("stop") && update.type !== undefined && update.type !== before.type)
    ? t.history.triggered
    : null;
}

/** What was asked for, in a line. */
export function eventText(
  { instrument, side, kind, size, price, trigger }: Pick<OrderEvent, "instrument" | "side" | "kind" | "size" | "price" | "trigger">,
): string {
  const [base = instrument] = instrument.split(/[/-]/);
  const order = `${sideText(side)} ${size === "" ? "" : `${group(trimZeros(size))} `}${base}`;
  const placed =
    price !== null
      ? t.history.atPrice(order, group(price))
      : kind === undefined || kind === "limit"
        ? order
        : t.history.atMarket(order);
  return `${placed}${trigger === null || kind === undefined ? "" : t.history.trigger(kindName(kind), group(trigger))}`;
}
