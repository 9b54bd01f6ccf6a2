// The price format of batch markets, without a float: the bits of a positive binary64 as a whole number, `m * 2^e` with 53 bits of m,
// from 2^-126 to 2^126; 0 is the limit that any price honours. The Rust side is core/types/src/batch_price.rs, and
// test/transaction-vector.json, made there, holds what both must agree on.

import { type Exact, type Rounding, divide, exactText } from "./decimal.ts";
import { DecimalError } from "./errors.ts";

const FRACTION_BITS = 52n;
const EXPONENT_BIAS = 1023n + FRACTION_BITS;
const FRACTION_END = 1n << FRACTION_BITS;
const AMOUNT_END = 1n << 63n;

export const ANY_PRICE = 0n;
export const BITS_MIN = (1023n - 126n) << FRACTION_BITS;
export const BITS_MAX = (1023n + 126n) << FRACTION_BITS;

/** The price `numerator / denominator` (both above zero), rounded as said; `null` when that is out of range. */
export function bitsOfRatio(numerator: bigint, denominator: bigint, rounding: Rounding): bigint | null {
  // Scaled until the quotient has 53 or 54 bits: one too many is cut off below, and what is cut off counts in the rounding.
  const by = FRACTION_BITS + 1n + lengthInBits(denominator) - lengthInBits(numerator);
  const scaled = by >= 0n ? numerator << by : numerator;
  const divisor = by >= 0n ? denominator : denominator << -by;
  let quotient = scaled / divisor;
  let exponent = -by;
  let hasMore = quotient * divisor !== scaled;
  if (quotient >= FRACTION_END << 1n) {
    hasMore ||= (quotient & 1n) === 1n;
    quotient >>= 1n;
    exponent += 1n;
  }
  if (hasMore && rounding === "up") quotient += 1n;
  if (quotient === FRACTION_END << 1n) {
    quotient >>= 1n;
    exponent += 1n;
  }
  const biased = exponent + EXPONENT_BIAS;
  if (biased < 1n) return null;
  const bits = (biased << FRACTION_BITS) | (quotient & (FRACTION_END - 1n));
  return bits < BITS_MIN || bits > BITS_MAX ? null : bits;
}

/** `[m, e]` of the price `m * 2^e`. */
export function partsOf(bits: bigint): [m: bigint, e: bigint] {
  if (bits === ANY_PRICE) return [0n, 0n];
  return [(bits & (FRACTION_END - 1n)) | FRACTION_END, (bits >> FRACTION_BITS) - EXPONENT_BIAS];
}

/** The least whole number of smallest units that `sold` of them must buy to honour the limit. */
export function boughtAtLeast(bits: bigint, sold: bigint): bigint {
  const [m, e] = partsOf(bits);
  const product = m * sold;
  if (e >= 0n) return product << e;
  return product === 0n ? 0n : ((product - 1n) >> -e) + 1n;
}

/** The price of these bits, for people: the nearest float. */
export function priceOfBits(bits: bigint): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, bits);
  return view.getFloat64(0);
}

/**
 * What somebody typed, "whole units bought for a whole unit sold", as the limit of an offer to sell `amount` smallest units (`null` while
 * that is not known). What counts at the venue is what the whole amount must bring, in whole units: never less than what was typed comes
 * to, and no unit more where that can be helped. So the price next below what was typed does where that asks for as much; otherwise it is
 * the one above. Throws a `DecimalError`.
 */
export function limitOfDecimal(text: string, sellDecimals: number, buyDecimals: number, amount: bigint | null): bigint {
  const [numerator, denominator] = ratioOfDecimal(text);
  return limitOfRatio(numerator * 10n ** BigInt(buyDecimals), denominator * 10n ** BigInt(sellDecimals), amount);
}

/**
 * What `bought` smallest units cost at most where a whole one of them costs `price` of what is sold, and the limit at which so much brings
 * all of them. Throws a `DecimalError`.
 */
export function costOf(price: Exact, bought: bigint, sellDecimals: number, buyDecimals: number): { amount: bigint; limitBits: bigint } {
  const [numerator, denominator] = ratioOfDecimal(exactText("price", price));
  const amount = divide(numerator * 10n ** BigInt(sellDecimals) * bought, denominator * 10n ** BigInt(buyDecimals), "up");
  if (amount < 1n || amount >= AMOUNT_END || bought < 1n || bought >= AMOUNT_END) throw new DecimalError("no_such_amount");
  return { amount, limitBits: limitOfRatio(bought, amount, amount) };
}

function ratioOfDecimal(text: string): [numerator: bigint, denominator: bigint] {
  const match = /^(\d*)(?:\.(\d*))?$/.exec(text.trim());
  const [, whole = "", fraction = ""] = match ?? [];
  if (!match || whole + fraction === "") throw new DecimalError("not_a_number");
  const digits = BigInt(whole + fraction);
  if (digits === 0n) throw new DecimalError("limit_not_above_zero");
  return [digits, 10n ** BigInt(fraction.length)];
}

/** Of smallest units bought for one sold. */
function limitOfRatio(numerator: bigint, denominator: bigint, amount: bigint | null): bigint {
  const below = amount === null ? null : bitsOfRatio(numerator, denominator, "down");
  const isAsMuch = amount !== null && below !== null && boughtAtLeast(below, amount) === divide(numerator * amount, denominator, "up");
  const bits = isAsMuch ? below : bitsOfRatio(numerator, denominator, "up");
  if (bits === null) throw new DecimalError("no_such_price");
  return bits;
}

function lengthInBits(value: bigint): bigint {
  return BigInt(value.toString(2).length);
}
