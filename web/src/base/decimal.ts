// What the page does with exact decimals beyond reading and writing them: a quantity is a whole number of its smallest unit (a bigint) plus
// the number of decimals of that unit, kept by the owner of the quantity. Money never passes through a float; `toNumber` is for pixels
// only.

import { divide, formatUnits, parseUnits, type Rounding } from "walras";
import { t } from "../texts/index.ts";

/** "0.5000" is "0.5", "12.000" is "12"; with `least` 2, "0.50" and "12.00". */
export function trimZeros(text: string, least = 0): string {
  const [whole = "", fraction] = text.split(".");
  if (fraction === undefined) return text;
  const kept = fraction.replace(/0+$/, "").padEnd(Math.min(least, fraction.length), "0");
  return kept === "" ? whole : `${whole}.${kept}`;
}

/** How many digits a decimal string has after its point, trailing zeros not counted. */
export function decimalsOf(text: string): number {
  const trimmed = trimZeros(text);
  const point = trimmed.indexOf(".");
  return point < 0 ? 0 : trimmed.length - point - 1;
}

/** Moves a quantity from one number of decimals to another. */
export function rescale(units: bigint, from: number, to: number, rounding: Rounding): bigint {
  if (to >= from) return units * 10n ** BigInt(to - from);
  return divide(units, 10n ** BigInt(from - to), rounding);
}

/** The largest multiple of `step` at or below ("down"), or the smallest at or above ("up"). */
export function toMultiple(units: bigint, step: bigint, rounding: Rounding): bigint {
  return divide(units, step, rounding) * step;
}

/** For pixels and axes only: the nearest float. */
export function toNumber(units: bigint, decimals: number): number {
  return Number(formatUnits(units, decimals));
}

export function abs(units: bigint): bigint {
  return units < 0n ? -units : units;
}

export function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

/** Cut (not rounded) after `digits` significant digits, but never within the whole part: "166.64615" to 6 is "166.646". */
export function significant(text: string, digits: number): string {
  const [whole = "0", fraction = ""] = text.split(".");
  const wholeDigits = whole.replace(/^0+/, "").length;
  const zeros = wholeDigits > 0 ? 0 : (/^0*/.exec(fraction)?.[0].length ?? 0);
  return trimZeros(`${whole}.${fraction.slice(0, Math.max(0, digits - wholeDigits) + zeros)}`);
}

/**
 * `numerator / denominator` of two positive decimal strings, cut after `digits` significant digits: "1.0832" over "0.0065" is "166.646".
 */
export function quotient(numerator: string, denominator: string, digits: number): string {
  const places = Math.max(decimalsOf(numerator), decimalsOf(denominator));
  const [a, b] = [parseUnits(numerator, places), parseUnits(denominator, places)];
  if (a <= 0n || b <= 0n) throw new Error(t.errors.bothAboveZero);
  const enough = digits + b.toString().length;
  return significant(formatUnits((a * 10n ** BigInt(enough)) / b, enough), digits);
}

/** By how much `now` is above (or below) `before`, both positive decimals: in parts per million, to the thousandth. */
export function changePpm(before: string, now: string): number {
  const places = Math.max(decimalsOf(before), decimalsOf(now));
  const [was, is] = [parseUnits(before, places), parseUnits(now, places)];
  return was <= 0n ? 0 : Number(((is - was) * 1_000_000_000n) / was) / 1_000;
}
