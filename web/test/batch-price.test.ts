import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ANY_PRICE, BITS_MAX, BITS_MIN, bitsOfRatio, boughtAtLeast, limitOfDecimal, partsOf } from "../src/base/batch-price.ts";
import { DecimalError, changePpm, quotient, significant } from "../src/base/decimal.ts";
import { Random } from "./fake/random.ts";

interface Vector {
  limits: { text: string; sell_decimals: number; buy_decimals: number; bits: string | null; bought_at_least: [amount: string, bought: string | null][] }[];
}

const AMOUNT_MAX = (1n << 63n) - 1n;
const { limits } = JSON.parse(readFileSync(new URL("./transaction-vector.json", import.meta.url), "utf8")) as Vector;

for (const { text, sell_decimals: sell, buy_decimals: buy, bits, bought_at_least: bought } of limits) {
  test(`a limit of ${text} with ${sell} and ${buy} decimals is what Rust makes of it`, () => {
    if (bits === null) return assert.throws(() => limitOfDecimal(text, sell, buy), DecimalError);
    assert.equal(limitOfDecimal(text, sell, buy), BigInt(bits));
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
  }
});

test("what a limit must bring is never less than what was typed, and less by one would be", () => {
  const random = new Random(6);
  for (let round = 0; round < 2_000; round += 1) {
    const [sell, buy] = [random.below(9), random.below(9)];
    const text = `${random.below(100_000)}.${String(random.below(1_000_000)).padStart(6, "0")}`;
    if (!/[1-9]/.test(text)) continue;
    const bits = limitOfDecimal(text, sell, buy);
    const amount = BigInt(1 + random.below(1_000_000_000));
    const scale = 10n ** BigInt(6 + sell);
    const typed = BigInt(text.replace(".", "")) * 10n ** BigInt(buy) * amount;
    const least = boughtAtLeast(bits, amount);
    assert.ok(least * scale >= typed, `${text}: at least what was typed`);
    assert.ok(compare(bits - 1n, BigInt(text.replace(".", "")) * 10n ** BigInt(buy), scale) < 0, `${text}: a lower limit would be worse than typed`);
  }
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
  for (const text of ["", ".", "1,5", "1e3", "-1", "0x1", "1.2.3"]) assert.throws(() => limitOfDecimal(text, 2, 2), /plain number/, text);
  assert.throws(() => limitOfDecimal("0.00", 2, 2), /Any price/);
});

test("quotients, significant digits, changes", () => {
  assert.equal(quotient("1.0832", "0.0065", 6), "166.646");
  assert.equal(quotient("1", "30711.25", 6), "0.0000325613");
  assert.equal(quotient("30711.25", "1", 6), "30711.2");
  assert.equal(quotient("1234567", "1", 6), "1234567");
  assert.equal(significant("0.0067093123", 6), "0.00670931");
  assert.equal(significant("100", 2), "100");
  assert.equal(changePpm("1.0000", "1.0001"), 100);
  assert.equal(changePpm("2", "1.999998"), -1);
  assert.equal(changePpm("1", "1"), 0);
});

/** Minus one, zero or one: the price of these bits against a ratio, exactly. */
function compare(bits: bigint, numerator: bigint, denominator: bigint): number {
  const [m, e] = partsOf(bits);
  const [left, right] = e >= 0n ? [(m << e) * denominator, numerator] : [m * denominator, numerator << -e];
  return left < right ? -1 : left > right ? 1 : 0;
}
