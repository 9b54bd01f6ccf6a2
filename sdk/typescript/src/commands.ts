// Commands as JSON. One is sent by itself, up to 100 of them in one request or message.

import { type Exact, exactText } from "./decimal.ts";
import type {
  ExitRequest, MassCancelAnswer, OneAmend, OneCancel, OneMassCancel, OneOrder, OrderAnswer, OrderRequest, RepeatedAnswer, Side,
} from "./schema/index.ts";

export type Command = OneOrder | OneCancel | OneAmend | OneMassCancel;
export type CommandAnswer = OrderAnswer | MassCancelAnswer | RepeatedAnswer;

/** Your name for an order: a number below 2^64, or a text of 1 to 36 characters (docs/rest.md, "Names of orders"). */
export type OrderName = string | number | bigint;

type QuantityField = "size" | "price" | "trigger" | "trail" | "peak" | "min_size";
type NameField = "client_order_id" | "oco_with" | "exit_of";
type ExitField = "take_profit" | "stop_loss";

/**
 * An order, with the fields of `OrderRequest` in openapi.yaml. Without a `type` it is a limit order if it has a price, else a market order;
 * with a `trigger` a stop, with a `trail` or `trail_ppm` a trailing stop, and with a price too one with a limit. A take-profit needs its
 * `type`.
 */
export type NewOrder =
  & Omit<OrderRequest, "type" | QuantityField | NameField | ExitField | "expire_time_ns">
  & { type?: OrderRequest["type"]; size: Exact; expire_time_ns?: Exact }
  & { [Field in Exclude<QuantityField, "size">]?: Exact }
  & { [Field in NameField]?: OrderName };

/** What closes an order as it fills: entered with it or not at all, and sent without a session's number. */
export interface Exits {
  take_profit?: Exit;
  stop_loss?: Exit;
}

export interface Exit {
  trigger: Exact;
  price?: Exact;
  client_order_id?: OrderName;
}

/** What of an order changes: size down keeps its place in the queue, anything else loses it. */
export interface Changes {
  price?: Exact;
  trigger?: Exact;
  size?: Exact;
}

export interface Which {
  instrument?: string;
  side?: Side;
}

const QUANTITIES: readonly QuantityField[] = ["size", "price", "trigger", "trail", "peak", "min_size"];
const NAMES: readonly NameField[] = ["client_order_id", "oco_with", "exit_of"];

export function order({ take_profit, stop_loss, ...asked }: NewOrder & Exits): OneOrder {
  const texts: Record<string, string> = {};
  for (const field of QUANTITIES) {
    const value = asked[field];
    if (value !== undefined) texts[field] = exactText(field, value);
  }
  for (const field of NAMES) {
    const value = asked[field];
    if (value !== undefined) texts[field] = nameText(field, value);
  }
  if (asked.expire_time_ns !== undefined) texts["expire_time_ns"] = exactText("expire_time_ns", asked.expire_time_ns);
  return {
    op: "order", ...asked, ...texts, type: asked.type ?? kindOf(asked),
    ...(take_profit && { take_profit: exit("take_profit", take_profit) }), ...(stop_loss && { stop_loss: exit("stop_loss", stop_loss) }),
  } as OneOrder;
}

/** Exits have no numbers: a session cannot send them with their order. */
export function checkNumbered(commands: readonly Command[]): void {
  for (const command of commands) {
    for (const field of ["take_profit", "stop_loss"] as const) {
      if (command.op === "order" && command[field] !== undefined) {
        throw new TypeError(
          `${field}: a session sends no exits with an order: send them before it, with exit_of, or all without the session`,
        );
      }
    }
  }
}

function kindOf({ price, trigger, trail, trail_ppm }: NewOrder): OrderRequest["type"] {
  const isTrailing = trail !== undefined || trail_ppm !== undefined;
  if (isTrailing) return price === undefined ? "trailing_stop" : "trailing_stop_limit";
  if (trigger !== undefined) return price === undefined ? "stop" : "stop_limit";
  return price === undefined ? "market" : "limit";
}

export function exit(what: string, { trigger, price, client_order_id }: Exit): ExitRequest {
  return {
    trigger: exactText(`${what}.trigger`, trigger),
    ...(price !== undefined && { price: exactText(`${what}.price`, price) }),
    ...(client_order_id !== undefined && { client_order_id: nameText(`${what}.client_order_id`, client_order_id) }),
  };
}

export function cancel(instrument: string, name: OrderName): OneCancel {
  return { op: "cancel", instrument, client_order_id: nameText("client_order_id", name) };
}

export function amend(instrument: string, name: OrderName, { price, trigger, size }: Changes): OneAmend {
  return {
    op: "amend", instrument, client_order_id: nameText("client_order_id", name),
    ...(price !== undefined && { price: exactText("price", price) }),
    ...(trigger !== undefined && { trigger: exactText("trigger", trigger) }),
    ...(size !== undefined && { size: exactText("size", size) }),
  };
}

/** All open orders, or those of one instrument or side. */
export function massCancel({ instrument, side }: Which = {}): OneMassCancel {
  return { op: "mass_cancel", ...(instrument !== undefined && { instrument }), ...(side !== undefined && { side }) };
}

/** An order's name as the venue reads it. */
export function nameText(what: string, name: OrderName): string {
  const isName = typeof name === "string" || typeof name === "bigint" || Number.isSafeInteger(name);
  if (!isName) throw new TypeError(`${what}: ${String(name)} names no order: give a text, a whole number or a bigint`);
  return String(name);
}

/** `BTC/USD` in paths and subscriptions is `BTC-USD`. */
export function pathSymbol(symbol: string): string {
  return symbol.replaceAll("/", "-");
}
