import assert from "node:assert/strict";
import { test } from "node:test";
import { divide, exactText, formatUnits, parseUnits } from "../src/decimal.ts";
import { DecimalError } from "../src/errors.ts";
import { Random } from "./random.ts";

test("decimals become whole units and back", () => {
  for (const [text, decimals, units] of [
    ["61234.5", 2, 6_123_450n], ["0.00000001", 8, 1n], [".5", 1, 5n], ["5.", 2, 500n], ["-0.25", 2, -25n], ["007", 0, 7n],
    ["1.2300", 2, 123n], ["9223372036.854775807", 9, 9_223_372_036_854_775_807n],
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
    assert.throws(() => parseUnits(text, 2), (error) => error instanceof DecimalError && error.problem === "not_a_number", text);
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
    const [down, up] = [divide(a, b, "down"), divide(a, b, "up")];
    assert.ok(down * b <= a && (down + 1n) * b > a);
    assert.ok(up * b >= a && (up - 1n) * b < a);
  }
});

test("a number is no exact quantity", () => {
  assert.deepEqual([exactText("size", "0.50"), exactText("size", 7n)], ["0.50", "7"]);
  for (const wrong of [0.5, 1, null, undefined, true]) {
    assert.throws(() => exactText("size", wrong as unknown as string), /^TypeError: size: .*give a text/);
  }
});
