// The light client says what the vectors say, which a test in Rust takes from a venue's state.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { LightBlock, LightError, openChain } from "../src/light/block.ts";
import type { AccountState, Offer, Outcome, Trade } from "../src/light/block.ts";

const VECTORS = new URL("../../core/batch/tests/golden/light-client.txt", import.meta.url);

const unhex = (text: string): Uint8Array => (text === "-" ? new Uint8Array() : new Uint8Array(Buffer.from(text, "hex")));
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

interface Served {
  hash: Uint8Array;
  header: Uint8Array;
  roots: Uint8Array;
}

function accountText(account: AccountState | null): string {
  if (account === null) return "absent";
  const balances = [...account.balances].map(([asset, { available, reserved }]) => `${asset}:${available}:${reserved}`);
  return `${account.key === null ? "-" : hex(account.key)} ${account.last} ${balances.join(",") || "-"}`;
}

const offerText = (offer: Offer | null): string => (offer === null ? "absent" : `${offer.amount} ${offer.stated}`);

const tradeText = (trade: Trade | null): string =>
  trade === null ? "absent" : `${trade.sold} ${trade.marginal.limit} ${trade.marginal.tie} ${trade.marginal.id}`;

function outcomeText(outcome: Outcome | null): string {
  if (outcome === null) return "absent";
  const { operation, traded, returned, created } = outcome;
  const text = traded === null ? "-" : `${traded.sell}:${traded.buy}:${traded.sold}:${traded.bought}`;
  return `${operation === null ? "-" : hex(operation)} ${text} ${returned ?? "-"} ${created ?? "-"}`;
}

/** What the client says to a line, and what it should. */
function said(words: string[], served: Map<string, Served>): [string, string] {
  const word = (at: number): string => words[at] ?? "";
  const block = (): LightBlock => {
    const { hash, header, roots } = served.get(word(1)) as Served;
    return new LightBlock(hash, header, roots);
  };
  const expected = (from: number): string => words.slice(from).join(" ");
  switch (words[0]) {
    case "light": {
      const of = served.get(word(1)) as Served;
      of.header = unhex(word(2));
      assert.equal(block().number, BigInt(word(1)));
      return ["ok", expected(3)];
    }
    case "bad-block":
      new LightBlock(unhex(word(1)), unhex(word(2)), unhex(word(3)));
      return ["ok", expected(4)];
    case "price":
      return [String(block().price(Number(word(2)), unhex(word(3))) ?? "absent"), expected(4)];
    case "trade":
      return [tradeText(block().trade(Number(word(2)), Number(word(3)), unhex(word(4)))), expected(5)];
    case "outcome":
      return [outcomeText(block().outcome(Number(word(2)), BigInt(word(3)), unhex(word(4)))), expected(5)];
    case "account":
      return [accountText(block().account(Number(word(2)), unhex(word(3)))), expected(4)];
    case "offer": {
      const [limit, tie, id] = [BigInt(word(4)), BigInt(word(5)), BigInt(word(6))];
      const key = { limit, tie, account: Number(id >> 38n), sequence: id & ((1n << 38n) - 1n) };
      return [offerText(block().offer(Number(word(2)), Number(word(3)), key, unhex(word(7)))), expected(8)];
    }
    default: {
      const of = (number: string): Served => served.get(number) as Served;
      const links = word(3).split(",").filter((number) => number !== "-");
      openChain(of(word(1)).hash, of(word(2)).hash, links.map((number) => [of(number).header, of(number).roots]));
      return ["ok", expected(4)];
    }
  }
}

test("the vectors", () => {
  const served = new Map<string, Served>();
  const kinds = new Map<string, number>();
  // A full header, kind 11, is read by other programs.
  const isFull = (words: string[]): boolean => words[0] === "bad-block" && words[2]?.startsWith("010b") === true;
  for (const line of readFileSync(VECTORS, "utf8").split("\n")) {
    const words = line.split(" ");
    if (line === "" || line.startsWith("#") || isFull(words)) continue;
    if (words[0] === "block") {
      served.set(words[1] ?? "", { hash: unhex(words[2] ?? ""), header: unhex(words[3] ?? ""), roots: unhex(words[4] ?? "") });
      continue;
    }
    const code = words.at(-2) === "error" ? Number(words.at(-1)) : null;
    if (code === null) {
      const [answer, expected] = said(words, served);
      assert.equal(answer, expected, line);
    } else {
      assert.throws(() => said(words, served), (error) => error instanceof LightError && error.code === code, line);
    }
    kinds.set(`${words[0]} ${code ?? ""}`, 1);
  }
  assert.equal(served.size, 3);
  assert.ok(kinds.size >= 28, [...kinds.keys()].join(", "));
});

test("a changed bit anywhere proves nothing", () => {
  const lines = readFileSync(VECTORS, "utf8").split("\n").map((line) => line.split(" "));
  const block = lines.find((words) => words[0] === "block" && words[1] === "3") ?? [];
  const light = lines.find((words) => words[0] === "light" && words[1] === "3") ?? [];
  const outcome = lines.find((words) => words[0] === "outcome" && words[1] === "3" && words[5] !== "error" && words[5] !== "absent") ?? [];
  const [hash, header, roots] = [unhex(block[2] ?? ""), unhex(light[2] ?? ""), unhex(block[4] ?? "")];
  const opened = new LightBlock(hash, header, roots);
  const statement = unhex(outcome[4] ?? "");
  const ask = (): Outcome | null => opened.outcome(Number(outcome[2]), BigInt(outcome[3] ?? ""), statement);
  assert.ok(ask());
  for (const [bytes, read] of [[header, () => new LightBlock(hash, header, roots)], [statement, ask]] as const) {
    for (let at = 0; at < bytes.length; at += 1) {
      bytes[at] = (bytes[at] ?? 0) ^ 4;
      assert.throws(read, LightError);
      bytes[at] = (bytes[at] ?? 0) ^ 4;
    }
  }
});
