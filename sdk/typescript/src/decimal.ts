// Exact decimal arithmetic: a quantity is a whole number of its smallest unit (a bigint) plus the number of decimals of that unit, kept by
// the owner of the quantity. Nothing here is a float.

import { DecimalError } from "./errors.ts";

/** What the client takes for a quantity: its text, or a whole number. A `number` is no exact decimal. */
export type Exact = string | bigint;

export type Rounding = "down" | "up";

const PATTERN = /^(-?)(\d*)(?:\.(\d*))?$/;

/** "61234.5" with 2 decimals is 6123450n. Digits beyond `decimals` must be zeros. */
export function parseUnits(text: string, decimals: number): bigint {
  const match = PATTERN.exec(text.trim());
  const whole = match?.[2] ?? "";
  const fraction = match?.[3] ?? "";
  if (!match || whole + fraction === "") throw new DecimalError("not_a_number");
  if (/[1-9]/.test(fraction.slice(decimals))) {
    throw decimals === 0 ? new DecimalError("not_whole") : new DecimalError("too_many_digits", decimals);
  }
  const units = BigInt(whole + fraction.slice(0, decimals).padEnd(decimals, "0") || "0");
  return match[1] === "-" ? -units : units;
}

/** 6123450n with 2 decimals is "61234.50". */
export function formatUnits(units: bigint, decimals: number): string {
  const sign = units < 0n ? "-" : "";
  const digits = (units < 0n ? -units : units).toString().padStart(decimals + 1, "0");
  if (decimals === 0) return sign + digits;
  return `${sign}${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}

/** Quotient towards minus infinity ("down") or plus infinity ("up"). */
export function divide(numerator: bigint, denominator: bigint, rounding: Rounding): bigint {
  const quotient = numerator / denominator;
  if (quotient * denominator === numerator) return quotient;
  const negative = numerator < 0n !== denominator < 0n;
  if (rounding === "down") return negative ? quotient - 1n : quotient;
  return negative ? quotient : quotient + 1n;
}

/** A quantity as the venue reads it. Throws a `TypeError` for a `number`, which programs without types may give. */
export function exactText(what: string, value: Exact): string {
  if (typeof value !== "string" && typeof value !== "bigint") {
    throw new TypeError(`${what}: ${String(value)} is a ${typeof value}, and no exact number: give a text such as "0.5", or a bigint`);
  }
  return String(value);
}
