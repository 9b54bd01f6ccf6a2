import assert from "node:assert/strict";
import { test } from "node:test";
import { blake3 } from "@noble/hashes/blake3.js";
import { blake3Keyed } from "../src/blake3.ts";
import { Random } from "./random.ts";

const random = new Random(9);
const bytesOf = (length: number): Uint8Array => Uint8Array.from({ length }, () => random.below(256));

test("it is BLAKE3 at every length around blocks and chunks, and at large ones", () => {
  const lengths = [
    0, 1, 2, 3, 4, 5, 63, 64, 65, 127, 128, 129, 1_023, 1_024, 1_025, 2_047, 2_048, 2_049, 3_072, 3_073, 4_096, 5_121, 8_193, 16_385,
    31_745, 100_003,
  ];
  for (const length of [...lengths, ...Array.from({ length: 200 }, () => random.below(9_000))]) {
    const [key, bytes] = [bytesOf(32), bytesOf(length)];
    assert.deepEqual(blake3Keyed(key, bytes), blake3(bytes, { key }), String(length));
  }
});

test("a key has 32 bytes", () => {
  assert.throws(() => blake3Keyed(new Uint8Array(31), new Uint8Array()), RangeError);
});
