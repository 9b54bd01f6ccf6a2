// What became of one's orders since the page was opened: placed, amended, traded in part, filled, cancelled, refused. It is what the
// page saw, and no more: what the venue knows of orders that ended before is not asked for.

import type { OpenOrder, OrderKind, OrderUpdate, Side } from "../api/types.ts";
import { trimZeros } from "../base/decimal.ts";
import { group } from "../base/format.ts";
import { Signal } from "../base/signal.ts";
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
  kind: OrderKind | undefined;
  /** Of the order, as it stood then. */
  size: string;
  price: string | null;
  trigger: string | null;
  what: string;
}

/** As much of an order as was asked for. */
export type AskedOrder = Pick<OpenOrder, "instrument" | "side"> & { type: OrderKind; size: string; price?: string; trigger?: string };

export class OrderHistory {
  /** Newest first. */
  readonly events = new Signal<OrderEvent[]>([]);
  #count = 0;

  /** `before` is the order as it was known, `hasTraded` whether news of its trades came with the update. */
  onUpdate(before: OpenOrder | undefined, update: OrderUpdate, hasTraded: boolean, timeNs: bigint): void {
    const after = { ...before, ...update };
    const { instrument, side, open } = after;
    if (side === undefined || open === undefined) return;
    const what = whatHappened(before, update, hasTraded);
    if (what === null) return;
    // What has ended has nothing open: the size is what was open before.
    const size = /[1-9]/.test(open) ? open : before?.open ?? "";
    this.#add({ timeNs, instrument, side, kind: after.type, size, price: after.price ?? null, trigger: after.trigger ?? null, what });
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
    });
  }

  clear(): void {
    this.events.value = [];
  }

  #add(event: Omit<OrderEvent, "number">): void {
    this.events.value = [{ number: (this.#count += 1), ...event }, ...this.events.value].slice(0, EVENTS_KEPT);
  }
}

function whatHappened(before: OpenOrder | undefined, update: OrderUpdate, hasTraded: boolean): string | null {
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
      ? [t.history.from(before.price === null ? t.orders.market : group(before.price))]
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
export function eventText({ instrument, side, kind, size, price, trigger }: Pick<OrderEvent, "instrument" | "side" | "kind" | "size" | "price" | "trigger">): string {
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
