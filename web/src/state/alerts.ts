// Alerts that the user set: a price that an instrument reaches. Each is shown once, and only while the page is open: the venue knows
// nothing of them.

import { parseUnits } from "walras";
import { isText, SharedSetting } from "../base/settings.ts";
import { abs, decimalsOf } from "../base/decimal.ts";

export interface Alert {
  symbol: string;
  price: string;
  /** From which side the price has to come. */
  when: "rises" | "falls";
}

export const ALERTS_MAX = 50;

export const alerts = new SharedSetting<Alert[]>("alerts", [], (kept) => (Array.isArray(kept) && kept.every(isAlert) ? kept : null));

function isAlert(kept: unknown): kept is Alert {
  const { symbol, price, when } = (kept ?? {}) as Partial<Record<keyof Alert, unknown>>;
  return isText(symbol) && isText(price) && /^\d+(\.\d+)?$/.test(price) && (when === "rises" || when === "falls");
}

/** Adds one, for when the price comes from where it is now. What is wrong with it, or `null`. */
export function addAlert(symbol: string, price: string, last: string | null): "none" | "there" | "many" | null {
  if (last === null) return "none";
  const side = compare(price, last);
  if (side === 0) return "there";
  if (alerts.value.length >= ALERTS_MAX) return "many";
  const alert: Alert = { symbol, price, when: side > 0 ? "rises" : "falls" };
  const others = alerts.value.filter((other) => other.symbol !== symbol || compare(other.price, price) !== 0);
  alerts.value = [...others, alert];
  return null;
}

export function removeAlert(alert: Alert): void {
  alerts.value = alerts.value.filter((other) => other !== alert);
}

/** Takes those out that this price sets off. */
export function reached(symbol: string, last: string): Alert[] {
  const found = alerts.value.filter((alert) => {
    const side = alert.symbol === symbol ? compare(last, alert.price) : null;
    return side !== null && (alert.when === "rises" ? side >= 0 : side <= 0);
  });
  if (found.length > 0) alerts.value = alerts.value.filter((alert) => !found.includes(alert));
  return found;
}

function compare(a: string, b: string): number {
  const places = Math.max(decimalsOf(a), decimalsOf(b));
  const difference = parseUnits(a, places) - parseUnits(b, places);
  return difference === 0n ? 0 : difference === abs(difference) ? 1 : -1;
}
