import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  ANY_PRICE, BITS_MAX, BITS_MIN, bitsOfRatio, boughtAtLeast, costOf, limitOfDecimal, partsOf, priceOfBits,
} from "../src/batch-price.ts";
import { divide } from "../src/decimal.ts";
import { DecimalError } from "../src/errors.ts";
import { Random } from "./random.ts";

interface Vector {
  limits: {
    text: string;
    sell_decimals: number;
    buy_decimals: number;
    bits: string | null;
    bought_at_least: [amount: string, bought: string | null][];
  }[];
}

const AMOUNT_MAX = (1n << 63n) - 1n;
const { limits } = JSON.parse(readFileSync(new URL("./transaction-vector.json", import.meta.url), "utf8")) as Vector;

for (const { text, sell_decimals: sell, buy_decimals: buy, bits, bought_at_least: bought } of limits) {
  test(`a limit of ${text} with ${sell} and ${buy} decimals is what Rust makes of it`, () => {
    if (bits === null) return assert.throws(() => limitOfDecimal(text, sell, buy, null), DecimalError);
    assert.equal(limitOfDecimal(text, sell, buy, null), BigInt(bits));
    for (const [amount, expected] of bought) {
      const least = boughtAtLeast(BigInt(bits), BigInt(amount));
      assert.equal(least > AMOUNT_MAX ? null : least.toString(), expected, amount);
    }
  });
}

test("the bits are a double's, and rounding up is the next double only where the ratio is no double", () => {
  const view = new DataView(new ArrayBuffer(8));
  const asDouble = (bits: bigint): number => (view.setBigUint64(0, bits), view.getFloat64(0));
  const random = new Random(5);
  for (let round = 0; round < 5_000; round += 1) {
    const numerator = BigInt(1 + Math.floor(random.next() * 2 ** (1 + random.below(52)))) << BigInt(random.below(60));
    const denominator = BigInt(1 + Math.floor(random.next() * 2 ** (1 + random.below(52)))) << BigInt(random.below(60));
    const [down, up] = [bitsOfRatio(numerator, denominator, "down"), bitsOfRatio(numerator, denominator, "up")];
    assert.ok(down !== null && up !== null);
    const exact = compare(down, numerator, denominator) === 0;
    assert.equal(up - down, exact ? 0n : 1n);
    assert.ok(compare(down, numerator, denominator) <= 0 && compare(up, numerator, denominator) >= 0);
    const [m, e] = partsOf(up);
    assert.ok(m >= 1n << 52n && m < 1n << 53n);
    assert.equal(asDouble(up), Number(m) * 2 ** Number(e));
    assert.equal(priceOfBits(up), asDouble(up));
  }
});

/** What was typed, as a ratio of smallest units. */
function ratioOf(text: string, sell: number, buy: number): [numerator: bigint, denominator: bigint] {
  return [BigInt(text.replace(".", "")) * 10n ** BigInt(buy), 10n ** BigInt((text.split(".")[1] ?? "").length + sell)];
}

test("a limit asks for what was typed, in whole units: no unit less, and no unit more", () => {
  const random = new Random(6);
  let exact = 0;
  for (let round = 0; round < 4_000; round += 1) {
    const [sell, buy] = [random.below(9), random.below(9)];
    // Few digits and round amounts too: there what was typed comes to a whole number of units, which a limit above it would exceed.
    const text =
      round % 2 === 0
        ? `${random.below(100_000)}.${String(random.below(1_000_000)).padStart(6, "0")}`
        : `${random.below(100)}.${random.below(1_000)}`;
    if (!/[1-9]/.test(text)) continue;
    const amount = BigInt(1 + random.below(1_000_000)) * 10n ** BigInt(random.below(6));
    const [numerator, denominator] = ratioOf(text, sell, buy);
    const bits = limitOfDecimal(text, sell, buy, amount);
    const [least, typed] = [boughtAtLeast(bits, amount), divide(numerator * amount, denominator, "up")];
    // Beyond 2^52 units neighbouring prices are whole units apart.
    if (typed < 1n << 52n) assert.equal(least, typed, `${text} of ${amount}`);
    else assert.ok(least >= typed && least - typed <= typed >> 51n, `${text} of ${amount}: ${least} for ${typed}`);
    if ((numerator * amount) % denominator === 0n && compare(bits, numerator, denominator) < 0) exact += 1;
    const unknown = limitOfDecimal(text, sell, buy, null);
    assert.ok(compare(unknown, numerator, denominator) >= 0, `${text}: of an amount that is not known, never below what was typed`);
  }
  assert.ok(exact > 100, `whole numbers of units were among them: ${exact}`);
});

test("where an amount is so large that the price below asks for less, the limit is the price above", () => {
  const amount = (1n << 62n) + 1n;
  const [numerator, denominator] = ratioOf("1.1", 0, 0);
  const typed = divide(numerator * amount, denominator, "up");
  const bits = limitOfDecimal("1.1", 0, 0, amount);
  assert.ok(boughtAtLeast(bits - 1n, amount) < typed && boughtAtLeast(bits, amount) >= typed);
  assert.ok(compare(bits, numerator, denominator) > 0);
});

test("the range ends where Rust's does", () => {
  assert.equal(bitsOfRatio(1n << 126n, 1n, "up"), BITS_MAX);
  assert.equal(bitsOfRatio(1n, 1n << 126n, "up"), BITS_MIN);
  assert.equal(bitsOfRatio((1n << 126n) + 1n, 1n, "up"), null);
  assert.equal(bitsOfRatio((1n << 126n) + 1n, 1n, "down"), BITS_MAX);
  assert.equal(bitsOfRatio(1n, (1n << 126n) + 1n, "down"), null);
  assert.equal(bitsOfRatio(1n, 1n << 3_000n, "up"), null);
  assert.equal(bitsOfRatio(1n << 3_000n, 1n, "up"), null);
  assert.equal(boughtAtLeast(ANY_PRICE, 5n), 0n);
});

test("what is no limit says what to write", () => {
  for (const text of ["", ".", "1,5", "1e3", "-1", "0x1", "1.2.3"]) {
    assert.throws(() => limitOfDecimal(text, 2, 2, 1n), /plain number/, text);
  }
  assert.throws(() => limitOfDecimal("0.00", 2, 2, 1n), /to take any price, give none/);
  assert.throws(() => limitOfDecimal(`1${"0".repeat(60)}`, 2, 2, 1n), (error: DecimalError) => error.problem === "no_such_price");
});

test("what an amount costs at most brings all of it, and a unit less would not be enough", () => {
  const random = new Random(8);
  for (let round = 0; round < 2_000; round += 1) {
    const [sell, buy] = [random.below(9), random.below(9)];
    const price = `${random.below(1_000)}.${1 + random.below(1_000_000)}`;
    const bought = BigInt(1 + random.below(1_000_000)) * 10n ** BigInt(random.below(4));
    const [numerator, denominator] = [
      BigInt(price.replace(".", "")) * 10n ** BigInt(sell),
      10n ** BigInt((price.split(".")[1] ?? "").length + buy),
    ];
    const expected = divide(numerator * bought, denominator, "up");
    if (expected > AMOUNT_MAX) {
      assert.throws(() => costOf(price, bought, sell, buy), DecimalError);
      continue;
    }
    const { amount, limitBits } = costOf(price, bought, sell, buy);
    assert.equal(amount, expected);
    const least = boughtAtLeast(limitBits, amount);
    // Beyond 2^52 units neighbouring prices are whole units apart.
    assert.ok(amount < 1n << 52n ? least === bought : least >= bought, `${bought} at ${price}: ${least}`);
  }
  assert.deepEqual(costOf("1.10", 5_000n, 2, 2).amount, 5_500n);
  assert.throws(() => costOf("1", 1n << 63n, 2, 2), (error: DecimalError) => error.problem === "no_such_amount");
  assert.throws(() => costOf(1.1 as unknown as string, 1n, 2, 2), TypeError);
});

/** Minus one, zero or one: the price of these bits against a ratio, exactly. */
function compare(bits: bigint, numerator: bigint, denominator: bigint): number {
  const [m, e] = partsOf(bits);
  const [left, right] = e >= 0n ? [(m << e) * denominator, numerator] : [m * denominator, numerator << -e];
  return left < right ? -1 : left > right ? 1 : 0;
}
