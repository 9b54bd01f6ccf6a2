// A proof counts for the block that was asked for, and for no other one.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Proofs } from "../src/batch-proofs.ts";
import type { Client } from "../src/client.ts";
import { LightError } from "../src/light/block.ts";
import type { Batch } from "../src/schema/index.ts";

const VECTORS = new URL("../../../core/batch/tests/golden/light-client.txt", import.meta.url);

test("a proof of another block than the one asked for proves nothing", async () => {
  const lines = readFileSync(VECTORS, "utf8").split("\n").map((line) => line.split(" "));
  const found = (...words: string[]): string[] => lines.find((line) => words.every((word, at) => line[at] === word)) ?? [];
  const [, , state, , light_roots] = found("block", "3");
  const statement = found("price", "3", "0")[3];
  const answer = { block: "3", roots: { state }, light_header: found("light", "3")[2], light_roots, price_statement: statement };
  const client = { call: () => Promise.resolve(answer), accountId: () => Promise.resolve(0) } as unknown as Client;
  const proofs = new Proofs(client, { name: "main", market_id: 7, assets: ["A", "B", "C"] } as Batch);
  for (const proven of [await proofs.price("A"), await proofs.price("A", { block: 3n })]) assert.equal(proven.block.number, 3n);
  const asked = { block: 2n };
  for (const proof of [proofs.price("A", asked), proofs.trade("A", "B", asked), proofs.transaction(3n, asked)]) {
    await assert.rejects(proof, (error: Error) => error instanceof LightError && error.code === 3 && /asked for/.test(error.message));
  }
});
