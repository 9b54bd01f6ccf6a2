// From what was typed into the ticket to an order the venue can take, or to what is wrong with each field. Pure.

import {
  type Display, divide, formatUnits, type OrderRequest, type OrderType, parseUnits, type PostOnly, type SelfTrade,
  type Side, type TimeInForce,
} from "walras";
import { trimZeros } from "../base/decimal.ts";
import { showUnits, signed, typed, ungroup } from "../base/format.ts";
import { errorText } from "../texts/error-text.ts";
import { t } from "../texts/index.ts";
import { checkExits, type ExitFields, takesExits } from "./bracket.ts";
import { type Units } from "./market.ts";

export interface TicketFields extends ExitFields {
  side: Side;
  kind: OrderType;
  price: string;
  trigger: string;
  /** The distance of a trailing stop. */
  trail?: string;
  size: string;
  timeInForce: TimeInForce;
  minutes: string;
  postOnly: PostOnly;
  display: Display;
  peak: string;
  minSize: string;
  selfTrade: SelfTrade;
  /** The client order id of the order with which it is to be linked; empty for none. */
  ocoWith?: string;
}

export type FieldName = "price" | "trigger" | "trail" | "size" | "minutes" | "peak" | "minSize" | keyof ExitFields;
export type Faults = Partial<Record<FieldName, string>>;

export interface Checked {
  faults: Faults;
  /** What to think of before sending; nothing is refused for it here. */
  warnings: Faults;
  /** `null` while there are faults. */
  order: Omit<OrderRequest, "instrument" | "client_order_id"> | null;
  /** What the order would cost or bring at its limit price, when it has one. */
  value: bigint | null;
  size: bigint | null;
  price: bigint | null;
}

export const hasPrice = (kind: OrderType): boolean => kind === "limit" || kind.endsWith("_limit");
export const takesProfit = (kind: OrderType): boolean => kind === "take_profit" || kind === "take_profit_limit";
export const hasTrigger = (kind: OrderType): boolean => takesProfit(kind) || kind === "stop" || kind === "stop_limit";

export const trails = (kind: OrderType): boolean => kind === "trailing_stop" || kind === "trailing_stop_limit";

/** A limit so much worse than the last trade may be a slip of the finger: it is asked for twice. */
const FAR_PPM = 50_000n;

/** Which times in force go with an order kind: what trades at market cannot rest. */
export function timesInForce(kind: OrderType): TimeInForce[] {
  return kind === "market" ? ["ioc", "fok"] : ["gtc", "day", "gtt", "ioc", "fok"];
}

const canRest = (fields: TicketFields): boolean =>
  hasPrice(fields.kind) && fields.timeInForce !== "ioc" && fields.timeInForce !== "fok";

/** `lastPrice` is that of the last trade, where there was one. */
export function checkTicket(fields: TicketFields, units: Units, venueTimeNs: bigint, lastPrice: bigint | null = null): Checked {
  const faults: Faults = {};
  const warnings: Faults = {};
  const { kind } = fields;
  const price = hasPrice(kind) ? quantity(fields.price, units.priceDecimals, units.tick, "price", "tick", faults) : null;
  const trigger = hasTrigger(kind) ? quantity(fields.trigger, units.priceDecimals, units.tick, "trigger", "tick", faults) : null;
  const trail = trails(kind) ? quantity(fields.trail ?? "", units.priceDecimals, units.tick, "trail", "tick", faults) : null;
  if (trigger !== null && lastPrice !== null && isTriggered(fields.side, kind, trigger, lastPrice)) {
    const where = lastPrice === trigger ? "at" : lastPrice > trigger ? "above" : "below";
    warnings.trigger = t.ticket.triggered[takesProfit(kind) ? "takeProfit" : "stop"][where](showUnits(lastPrice, units.priceDecimals));
  }
  if (price !== null && lastPrice !== null) {
    const worsePpm = worseBy(fields.side, price, lastPrice);
    if (worsePpm >= FAR_PPM) {
      const [percent, last] = [signed(formatUnits(worsePpm / 1_000n, 1)), showUnits(lastPrice, units.priceDecimals)];
      warnings.price = fields.side === "buy" ? t.ticket.farAbove(percent, last) : t.ticket.farBelow(percent, last);
    }
  }
  const size = quantity(fields.size, units.sizeDecimals, units.lot, "size", "lot", faults);
  const order: Omit<OrderRequest, "instrument" | "client_order_id"> = {
    side: fields.side,
    type: kind,
    size: size === null ? "" : formatUnits(size, units.sizeDecimals),
    time_in_force: fields.timeInForce,
    self_trade: fields.selfTrade,
  };
  if (price !== null) order.price = formatUnits(price, units.priceDecimals);
  if (trigger !== null) order.trigger = formatUnits(trigger, units.priceDecimals);
  if (trail !== null) order.trail = formatUnits(trail, units.priceDecimals);
  if (fields.timeInForce === "gtt") {
    const minutes = whole(fields.minutes, "minutes", faults);
    if (minutes !== null) order.expire_time_ns = (venueTimeNs + minutes * 60_000_000_000n).toString();
  }
  if (kind === "limit" && canRest(fields) && fields.postOnly !== "off") order.post_only = fields.postOnly;
  if (fields.ocoWith) {
    order.oco_with = fields.ocoWith;
    // The venue links a limit order that takes nothing.
    if (kind === "limit" && order.post_only === undefined) order.post_only = "reject";
  }
  if (canRest(fields) && fields.display !== "full") {
    order.display = fields.display;
    if (fields.display === "iceberg") {
      const peak = quantity(fields.peak, units.sizeDecimals, units.lot, "peak", "lot", faults);
      if (peak !== null) order.peak = formatUnits(peak, units.sizeDecimals);
      if (peak !== null && size !== null && peak >= size) faults.peak = t.ticket.peakTooLarge;
    }
  }
  if (fields.minSize.trim() !== "") {
    const minSize = quantity(fields.minSize, units.sizeDecimals, units.lot, "minSize", "lot", faults);
    if (minSize !== null) order.min_size = formatUnits(minSize, units.sizeDecimals);
    if (minSize !== null && size !== null && minSize > size) faults.minSize = t.ticket.minTooLarge;
  }
  if (takesExits(kind)) Object.assign(order, checkExits(fields, units, price, lastPrice, faults, warnings));
  const value = price !== null && size !== null ? units.value(price, size) : null;
  return { faults, warnings, order: Object.keys(faults).length === 0 ? order : null, value, size, price };
}

/** By how many parts per million a limit is worse than the last trade: a buy above it, a sell below it. */
function worseBy(side: Side, price: bigint, lastPrice: bigint): bigint {
  return ((side === "buy" ? price - lastPrice : lastPrice - price) * 1_000_000n) / lastPrice;
}

/** Whether a limit is so much worse than the last trade that it is asked about. */
export function isFar(side: Side, price: bigint, lastPrice: bigint): boolean {
  return worseBy(side, price, lastPrice) >= FAR_PPM;
}

/**
 * The size that an amount of the quote asset comes to at `price`, in whole lots and never more: text of the base asset. Throws with advice.
 */
export function sizeOfValue(text: string, units: Units, price: bigint | null): string {
  const amount = parseUnits(ungroup(text), units.quoteDecimals);
  if (amount <= 0n) throw new Error(t.ticket.aboveZero);
  if (price === null || price <= 0n) throw new Error(t.ticket.needsPrice(units.instrument.quote));
  const perLot = units.value(price, units.lot);
  let lots = perLot === 0n ? 0n : amount / perLot;
  // One lot's value is rounded up, that of many together less often: there may be room for more.
  while (perLot > 0n && units.value(price, (lots + 1n) * units.lot) <= amount) lots += 1n;
  if (lots === 0n) throw new Error(t.ticket.lessThanLot(typed(formatUnits(units.lot, units.sizeDecimals)), units.instrument.base));
  return trimZeros(formatUnits(lots * units.lot, units.sizeDecimals));
}

/** Whether a stop with this trigger is set off by a trade at `price`: a buy from below, a sell from above. */
export function isTriggered(side: Side, kind: OrderType, trigger: bigint, price: bigint): boolean {
  return (side === "buy") !== takesProfit(kind) ? price >= trigger : price <= trigger;
}

/** The largest whole number of lots that `funds` (smallest units of what is spent) cover, at `price` for a buy, fee included. */
export function largestSize(side: Side, funds: bigint, fundsDecimals: number, price: bigint | null, units: Units): bigint {
  if (side === "sell") {
    const size = fundsDecimals >= units.sizeDecimals
      ? funds / 10n ** BigInt(fundsDecimals - units.sizeDecimals)
      : funds * 10n ** BigInt(units.sizeDecimals - fundsDecimals);
    return size - (size % units.lot);
  }
  if (price === null || price <= 0n) return 0n;
  const perLot = units.value(price, units.lot);
  if (perLot === 0n) return 0n;
  const feePpm = BigInt(Math.max(units.instrument.maker_fee_ppm, units.instrument.taker_fee_ppm, 0));
  let lots = (funds * 1_000_000n) / (perLot * (1_000_000n + feePpm));
  // The fee is rounded up, so the estimate may be one lot too many.
  while (lots > 0n && cost(units, price, lots) > funds) lots -= 1n;
  return lots * units.lot;
}

function cost(units: Units, price: bigint, lots: bigint): bigint {
  const value = units.value(price, lots * units.lot);
  return value + units.feeReserve(value);
}

/** The next tick or lot up or down from what is typed, as it is typed; from nothing, one step. */
export function stepped(text: string, decimals: number, step: bigint, by: bigint): string {
  let units = 0n;
  try {
    units = text.trim() === "" ? 0n : parseUnits(ungroup(text), decimals);
  } catch {
    return text;
  }
  const next = divide(units, step, by > 0n ? "down" : "up") * step + by * step;
  return typed(formatUnits(next < step ? step : next, decimals));
}

export function quantity(
  text: string, decimals: number, step: bigint, field: FieldName, stepName: "tick" | "lot", faults: Faults,
): bigint | null {
  if (text.trim() === "") {
    faults[field] = t.ticket.fillIn;
    return null;
  }
  try {
    const units = parseUnits(ungroup(text), decimals);
    if (units <= 0n) throw new Error(t.ticket.aboveZero);
    if (units % step !== 0n)
      throw new Error((stepName === "tick" ? t.ticket.wholeTicks : t.ticket.wholeLots)(typed(formatUnits(step, decimals))));
    return units;
  } catch (error) {
    faults[field] = errorText(error);
    return null;
  }
}

function whole(text: string, field: FieldName, faults: Faults): bigint | null {
  try {
    const value = parseUnits(ungroup(text), 0);
    if (value <= 0n) throw new Error(t.ticket.aboveZero);
    return value;
  } catch (error) {
    faults[field] = errorText(error);
    return null;
  }
}
