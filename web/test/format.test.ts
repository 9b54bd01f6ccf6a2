import assert from "node:assert/strict";
import { test } from "node:test";
import { parseUnits } from "walras";
import { group, sentence, showChange, showPercent, showShort, showTime, ungroup, words } from "../src/base/format.ts";

const plain = (text: string): string => text.replaceAll("\u00a0", " ");

test("digits are grouped in threes before the point only", () => {
  assert.equal(plain(group("1234567.12345")), "1 234 567.12345");
  assert.equal(plain(group("999")), "999");
  assert.equal(plain(group("-1000")), "−1 000");
});

test("what is shown can be typed back", () => {
  for (const text of ["0", "12", "1234.50", "-1234567.5", "1000000"]) assert.equal(ungroup(group(text)), text);
  assert.equal(ungroup("1’234 567.5"), "1234567.5");
  assert.throws(() => parseUnits(ungroup("30,5"), 2), "a comma is never guessed at");
});

test("changes carry a sign, and zero neither", () => {
  assert.equal(plain(showChange(12_345)), "+1.23 %");
  assert.equal(plain(showChange(-2_800)), "−0.28 %");
  assert.equal(plain(showChange(0)), "±0.00 %");
});

test("a percentage keeps every digit", () => {
  const shown = [[0, "0 %"], [1, "0.0001 %"], [12_500, "1.25 %"], [99_999, "9.9999 %"], [999_999, "99.9999 %"], [1e6, "100 %"]] as const;
  for (const [ppm, expected] of shown) assert.equal(plain(showPercent(ppm)), expected);
});

test("cut digits are said to be cut", () => {
  assert.equal(showShort("1.2345", 3), "≈1.234");
  assert.equal(showShort("1.2340", 3), "1.234");
  assert.equal(showShort("5", 3), "5");
});

test("times are UTC, from nanoseconds that exceed a float", () => {
  assert.equal(showTime("1700000000123456789"), "22:13:20");
  assert.equal(showTime("1700000000123456789", true), "22:13:20.123");
});

test("names become words", () => {
  assert.equal(words("stop_limit"), "stop limit");
  assert.equal(sentence("PriceOutsideCollar"), "Price outside collar");
});
