import assert from "node:assert/strict";
import { test } from "node:test";
import { divide } from "walras";
import { Random } from "../../sdk/typescript/test/random.ts";
import { changePpm, decimalsOf, quotient, rescale, significant, toMultiple, trimZeros } from "../src/base/decimal.ts";

test("multiples are rounded as asked, for either sign", () => {
  const random = new Random(2);
  for (let round = 0; round < 2_000; round += 1) {
    const [a, b] = [BigInt(random.below(2_001) - 1_000), BigInt(1 + random.below(50))];
    assert.equal(toMultiple(a, b, "down"), divide(a, b, "down") * b);
    assert.equal(toMultiple(a, b, "up"), divide(a, b, "up") * b);
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

test("quotients, significant digits, changes", () => {
  assert.equal(quotient("1.0832", "0.0065", 6), "166.646");
  assert.equal(quotient("1", "30711.25", 6), "0.0000325613");
  assert.equal(quotient("30711.25", "1", 6), "30711.2");
  assert.equal(quotient("1234567", "1", 6), "1234567");
  assert.throws(() => quotient("1", "0", 6), /above zero/);
  assert.equal(significant("0.0067093123", 6), "0.00670931");
  assert.equal(significant("100", 2), "100");
  assert.equal(changePpm("1.0000", "1.0001"), 100);
  assert.equal(changePpm("2", "1.999998"), -1);
  assert.equal(changePpm("1", "1"), 0);
});
