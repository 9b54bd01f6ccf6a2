// The prices of an open order, each a line on the chart, and which of them can be changed. Pure.

import type { Order } from "walras";
import { t } from "../texts/index.ts";

type Priced = Pick<Order, "type" | "price" | "trigger">;

export interface OrderLine {
  field: "price" | "trigger";
  at: string;
  /** Whether its owner can change it: the trigger of a trailing stop follows the market. */
  isMovable: boolean;
}

/** Trigger, then limit, as in the ticket. An order known from an update alone may lack both. */
export function linesOf({ type, price, trigger }: Priced): OrderLine[] {
  const lines: OrderLine[] = [];
  if (trigger != null) lines.push({ field: "trigger", at: trigger, isMovable: !isTrailing(type) });
  if (price != null) lines.push({ field: "price", at: price, isMovable: true });
  return lines;
}

export function changeOf({ field }: Pick<OrderLine, "field">, at: string): { price: string } | { trigger: string } {
  return field === "price" ? { price: at } : { trigger: at };
}

/** `text`, which is about one price of an order, with that price's name where the order has a trigger. */
export function labelled(text: string, field: OrderLine["field"], { trigger }: Pick<Order, "trigger">): string {
  return trigger == null ? text : t.orders.labelled[field](text);
}

export function isTrailing(type: Order["type"]): boolean {
  return type.startsWith("trailing");
}
