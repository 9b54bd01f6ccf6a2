// Which price of an open order can be changed: its limit, or the trigger of a stop without one. Pure.

import type { Order } from "walras";

export interface OrderLine {
  field: "price" | "trigger";
  at: string;
}

/** `null` where nothing can: a trailing stop's trigger follows the market, and an order known from an update alone may lack its terms. */
export function lineOf({ type, price, trigger }: Pick<Order, "type" | "price" | "trigger">): OrderLine | null {
  if (price != null) return { field: "price", at: price };
  return trigger == null || isTrailing(type) ? null : { field: "trigger", at: trigger };
}

export function changeOf({ field }: OrderLine, at: string): { price: string } | { trigger: string } {
  return field === "price" ? { price: at } : { trigger: at };
}

export function isTrailing(type: Order["type"]): boolean {
  return type.startsWith("trailing");
}
