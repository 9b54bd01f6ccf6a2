import assert from "node:assert/strict";
import { test } from "node:test";
import { DecimalError, decimalsOf, divide, formatUnits, parseUnits, rescale, toMultiple, trimZeros } from "../src/base/decimal.ts";
import { Random } from "./fake/random.ts";

test("decimals become whole units and back", () => {
  for (const [text, decimals, units] of [
    ["61234.5", 2, 6_123_450n], ["0.00000001", 8, 1n], [".5", 1, 5n], ["5.", 2, 500n], ["-0.25", 2, -25n], ["007", 0, 7n], ["1.2300", 2, 123n],
    ["9223372036.854775807", 9, 9_223_372_036_854_775_807n],
  ] as const) {
    assert.equal(parseUnits(text, decimals), units, text);
  }
  assert.equal(formatUnits(6_123_450n, 2), "61234.50");
  assert.equal(formatUnits(1n, 8), "0.00000001");
  assert.equal(formatUnits(-25n, 2), "-0.25");
  assert.equal(formatUnits(7n, 0), "7");
});

test("what is not a number, or is finer than the unit, is refused with advice", () => {
  for (const text of ["", ".", "-", "1e5", "1,5", "0x10", "1.2.3", "NaN", "1 2", "+1"]) {
    assert.throws(() => parseUnits(text, 2), DecimalError, text);
  }
  assert.throws(() => parseUnits("0.001", 2), /at most 2 digits/);
  assert.throws(() => parseUnits("1.5", 0), /whole number/);
});

test("every quantity round-trips, beyond what a float holds", () => {
  const random = new Random(1);
  for (let round = 0; round < 2_000; round += 1) {
    const digits = 1 + random.below(30);
    const units = BigInt(Array.from({ length: digits }, () => random.below(10)).join("")) * (random.below(2) === 0 ? 1n : -1n);
    const decimals = random.below(19);
    assert.equal(parseUnits(formatUnits(units, decimals), decimals), units);
  }
});

test("division rounds as asked, for either sign", () => {
  const random = new Random(2);
  for (let round = 0; round < 2_000; round += 1) {
    const a = BigInt(random.below(2_001) - 1_000);
    const b = BigInt(1 + random.below(50));
    const down = divide(a, b, "down");
    const up = divide(a, b, "up");
    assert.ok(down * b <= a && (down + 1n) * b > a);
    assert.ok(up * b >= a && (up - 1n) * b < a);
    assert.equal(toMultiple(a, b, "down"), down * b);
  }
});

test("rescaling is exact upwards and rounds as asked downwards", () => {
  assert.equal(rescale(123n, 2, 5, "down"), 123_000n);
  assert.equal(rescale(123_456n, 5, 2, "down"), 123n);
  assert.equal(rescale(123_456n, 5, 2, "up"), 124n);
});

test("trailing zeros", () => {
  assert.equal(trimZeros("1.500"), "1.5");
  assert.equal(trimZeros("100"), "100");
  assert.equal(trimZeros("100.00"), "100");
  assert.equal(trimZeros("5.02000000", 2), "5.02");
  assert.equal(trimZeros("40.00000000", 2), "40.00");
  assert.equal(trimZeros("7.0", 2), "7.0");
  assert.equal(trimZeros("7", 2), "7");
  assert.equal(decimalsOf("0.0100"), 2);
  assert.equal(decimalsOf("5"), 0);
});
