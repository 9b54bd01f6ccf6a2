// From what was typed to an offer that the venue can collect, or to what is wrong with each field. Pure.

import { ANY_PRICE, boughtAtLeast, formatUnits, limitOfDecimal, parseUnits } from "walras";
import { decimalsOf, quotient, significant, trimZeros } from "../base/decimal.ts";
import { group, typed, ungroup } from "../base/format.ts";
import { errorText } from "../texts/error-text.ts";
import { t } from "../texts/index.ts";

const AMOUNT_MAX = (1n << 63n) - 1n;
const RATE_DIGITS = 6;
const SUGGESTED_DIGITS = 5;

export interface OfferFields {
  amount: string;
  limit: string;
  price: "limit" | "any";
}

export interface OfferUnits {
  sellDecimals: number;
  buyDecimals: number;
}

export interface CheckedOffer {
  faults: { amount?: string; limit?: string };
  amount: bigint | null;
  limitBits: bigint | null;
  /** Smallest units that the whole amount buys at the limit: never less. */
  least: bigint | null;
}

/** What an account may still offer of an asset, in its smallest units. */
export interface Spendable {
  asset: string;
  free: bigint;
  /** What its transactions that are collected and not yet settled offer already; none of it is in `free`. */
  collected: bigint;
}

/**
 * What of an asset is not spoken for: a balance's available part leaves out orders and standing offers, but not what is collected for a
 * block that is still to come.
 */
export function spendableOf(asset: string, available: string | undefined, collected: string[], decimals: number): Spendable | null {
  if (available === undefined) return null;
  const promised = collected.reduce((sum, amount) => sum + parseUnits(amount, decimals), 0n);
  return { asset, free: parseUnits(available, decimals) - promised, collected: promised };
}

/** Without `spendable`, as before the balances came, the amount is not held against anything. */
export function checkOffer(fields: OfferFields, units: OfferUnits, spendable: Spendable | null = null): CheckedOffer {
  const faults: CheckedOffer["faults"] = {};
  const amount = quantity(fields.amount, faults, "amount", (text) => {
    const parsed = parseUnits(text, units.sellDecimals);
    if (parsed <= 0n) throw new Error(t.offer.aboveZero);
    if (parsed > AMOUNT_MAX) throw new Error(t.offer.tooMuch);
    if (spendable !== null && parsed > spendable.free) throw new Error(overdraft(spendable, units.sellDecimals));
    return parsed;
  });
  const limitBits = fields.price === "any" ? ANY_PRICE
    : quantity(fields.limit, faults, "limit", (text) => limitOfDecimal(text, units.sellDecimals, units.buyDecimals, amount));
  let least = amount !== null && limitBits !== null ? boughtAtLeast(limitBits, amount) : null;
  if (least !== null && least > AMOUNT_MAX) {
    faults.limit = t.offer.limitTooMuch;
    least = null;
  }
  return { faults, amount, limitBits, least };
}

export function overdraft({ asset, free, collected }: Spendable, decimals: number): string {
  const shown = (units: bigint): string => `${group(trimZeros(formatUnits(units, decimals), 2))} ${asset}`;
  const left = shown(free > 0n ? free : 0n);
  return collected === 0n ? t.offer.overdraft(left) : t.offer.overdraftCollected(left, shown(collected));
}

/**
 * What `amount` smallest units buy at prices `sellPrice` and `buyPrice` (of whole units, in the numeraire) after the commission, rounded
 * down as the venue does. Prices are shown to eight digits, so this is what to expect, not a promise.
 */
export function expectedAt(
  amount: bigint,
  sellPrice: string,
  buyPrice: string,
  commissionExponent: number | null,
  units: OfferUnits,
): bigint {
  const places = Math.max(decimalsOf(sellPrice), decimalsOf(buyPrice));
  const [worth, cost] = [parseUnits(sellPrice, places), parseUnits(buyPrice, places)];
  if (cost <= 0n) return 0n;
  const [part, whole] = keptOf(commissionExponent, 1n);
  return (amount * worth * part * 10n ** BigInt(units.buyDecimals)) / (cost * whole * 10n ** BigInt(units.sellDecimals));
}

/**
 * A limit to begin with: what an offer gets at these prices, less the commission once more, cut to five digits. So it trades where the
 * prices stay, though the limit's bits and what it must bring are rounded up.
 */
export function suggestedLimit(sellPrice: string, buyPrice: string, commissionExponent: number | null): string {
  const [part, whole] = keptOf(commissionExponent, 2n);
  const places = decimalsOf(sellPrice) + 20;
  const net = (parseUnits(sellPrice, places) * part) / whole;
  return quotient(formatUnits(net, places), buyPrice, SUGGESTED_DIGITS);
}

/** What is left after so many commissions of 2^-exponent, as a fraction; all of it in a market without one. */
function keptOf(commissionExponent: number | null, times: bigint): [part: bigint, whole: bigint] {
  if (commissionExponent === null) return [1n, 1n];
  const whole = 1n << BigInt(commissionExponent);
  return [whole - times, whole];
}

/** The next step up or down in the rate's last shown digit. */
export function steppedRate(text: string, by: bigint): string {
  try {
    const plain = ungroup(text);
    const places = decimalsOf(significant(plain, RATE_DIGITS));
    const whole = plain.split(".")[0]?.replace(/^0+/, "") ?? "";
    const kept = Math.max(places, RATE_DIGITS - 1 - Math.max(0, whole.length - 1));
    const next = parseUnits(significant(plain, RATE_DIGITS), kept) + by;
    return next <= 0n ? text : typed(formatUnits(next, kept));
  } catch {
    return text;
  }
}

function quantity(text: string, faults: CheckedOffer["faults"], field: "amount" | "limit", read: (text: string) => bigint): bigint | null {
  if (text.trim() === "") {
    faults[field] = t.offer.fillIn;
    return null;
  }
  try {
    return read(ungroup(text));
  } catch (error) {
    faults[field] = errorText(error);
    return null;
  }
}
