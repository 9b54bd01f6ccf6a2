// The light client says what the vectors say, which a test in Rust takes from a venue's state.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { LightBlock, LightError, openChain } from "../src/light/block.ts";
import type { AccountState, Offer, Outcome, Trade } from "../src/light/block.ts";
import { Prover } from "./prover.ts";

const VECTORS = new URL("../../../core/batch/tests/golden/light-client.txt", import.meta.url);

const unhex = (text: string): Uint8Array => (text === "-" ? new Uint8Array() : new Uint8Array(Buffer.from(text, "hex")));
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const isCode = (code: number) => (error: unknown): boolean => error instanceof LightError && error.code === code;

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
      assert.throws(() => said(words, served), isCode(code), line);
    }
    kinds.set(`${words[0]} ${code ?? ""}`, 1);
  }
  assert.equal(served.size, 4);
  const counts = [3, 4].map((number) => {
    const { hash, header, roots } = served.get(String(number)) as Served;
    const { assetCount, currencyCount } = new LightBlock(hash, header, roots);
    return [assetCount, currencyCount];
  });
  assert.deepEqual(counts, [[3, 3], [5, 2]]);
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
  // No account has that number, though the name of its transaction would have the same key.
  assert.throws(() => opened.outcome(Number(outcome[2]) + 2 ** 26, BigInt(outcome[3] ?? ""), statement), isCode(4));
  for (const [bytes, read] of [[header, () => new LightBlock(hash, header, roots)], [statement, ask]] as const) {
    for (let at = 0; at < bytes.length; at += 1) {
      bytes[at] = (bytes[at] ?? 0) ^ 4;
      assert.throws(read, LightError);
      bytes[at] = (bytes[at] ?? 0) ^ 4;
    }
  }
});

test("what the test's prover proves reads as the venue's own proofs do", () => {
  const parent = new Uint8Array(32).fill(7);
  const key = new Uint8Array(32).fill(9);
  const balances = [
    { asset: 0, available: 0n, reserved: 300n }, { asset: 5, available: 1n << 40n, reserved: 0n },
    { asset: 9, available: 0n, reserved: 0n },
  ];
  const accounts = [0, 1, 2].map((account) => (
    { account, publicKey: account === 1 ? key : null, last: 5n, balances: account === 1 ? balances : [] }));
  for (const count of [0, 1, 2, 17, 60]) {
    const offers = Array.from({ length: count }, (_, at) => ({
      pair: at % 3 === 0 ? 1 : 3 + (at % 5), limit: BigInt(at % 4), tie: BigInt(at) << 60n, account: at % 2, sequence: BigInt(at + 1),
      amount: BigInt(at + 1), stated: 0n,
    }));
    const prover = new Prover({ market: 3, number: 8n, parent, transactions: 2, assets: 10 }, accounts, offers);
    const block = new LightBlock(prover.block.hash, prover.block.header, prover.block.roots);
    assert.deepEqual([block.market, block.number, block.parent], [3, 8n, parent]);
    const own = block.account(1, prover.account(1));
    assert.deepEqual(own?.key, key);
    assert.deepEqual([...(own?.balances ?? [])], [[0, { available: 0n, reserved: 300n }], [5, { available: 1n << 40n, reserved: 0n }]]);
    for (const offer of offers) {
      const statement = prover.offer(offer);
      assert.ok(statement);
      assert.equal(block.offer(Math.floor(offer.pair / 10), offer.pair % 10, offer, statement)?.amount, offer.amount);
      for (const wrong of [{ ...offer, sequence: 99n }, { ...offer, account: offer.account + 2 ** 26 }]) {
        assert.throws(() => block.offer(Math.floor(offer.pair / 10), offer.pair % 10, wrong, statement), isCode(4));
      }
    }
  }
});

test("a pool, its shares, and that there are none", () => {
  const pools = [1n, 2n, 300n].map((sequence) => ({
    account: 7, sequence, first: 2, second: 0, feePpm: 3_000, reserves: [5n * sequence, 1n << 50n] as [bigint, bigint], shares: 1n << 40n,
    providers: [{ account: 7, shares: 11n }, { account: 9, shares: sequence }],
  }));
  const prover = new Prover({ market: 3, number: 8n, parent: new Uint8Array(32), transactions: 0, assets: 4 }, [], [], pools);
  const block = new LightBlock(prover.block.hash, prover.block.header, prover.block.roots);
  const shown = (statement: Uint8Array | null): Uint8Array => {
    assert.ok(statement);
    return statement;
  };
  const name = { account: 7, sequence: 2n };
  const statement = shown(prover.pool(7, 2n));
  assert.deepEqual(block.pool(name, statement), {
    rule: "constant_product", first: 2, second: 0, feePpm: 3_000, reserves: [10n, 1n << 50n], shares: 1n << 40n,
  });
  const shares = shown(prover.pool(7, 300n, 9));
  assert.equal(block.poolShares({ account: 7, sequence: 300n }, 9, shares), 300n);
  // Of another pool, of another provider, under a number that would be another account's, and one thing for another.
  assert.throws(() => block.pool({ account: 7, sequence: 1n }, statement), isCode(4));
  assert.throws(() => block.poolShares({ account: 7, sequence: 300n }, 7, shares), isCode(4));
  assert.throws(() => block.pool({ account: 7, sequence: 1n << 38n }, statement), isCode(4));
  assert.throws(() => block.pool({ account: 7 + 2 ** 26, sequence: 2n }, statement), isCode(4));
  assert.throws(() => block.poolShares({ account: 7 + 2 ** 26, sequence: 300n }, 9, shares), isCode(4));
  assert.throws(() => block.pool({ account: 7, sequence: 300n }, shares), isCode(2));
  for (let at = 0; at < statement.length; at += 1) {
    statement[at] = (statement[at] ?? 0) ^ 4;
    assert.throws(() => block.pool(name, statement), LightError);
    statement[at] = (statement[at] ?? 0) ^ 4;
  }
  // An empty trie of pools: the pair's own proof says that there is nothing under it.
  const without = new Prover({ market: 3, number: 8n, parent: new Uint8Array(32), transactions: 0, assets: 4 }, [], []);
  const bare = new LightBlock(without.block.hash, without.block.header, without.block.roots);
  const absent = Uint8Array.of(1, 12, 0, 1, 3, 9, 0, 0, 0, 1, 1, 4, 0, 0, 0, 0, 1, 0);
  assert.equal(bare.pool(name, absent), null);
  assert.equal(bare.poolShares(name, 7, absent), 0n);
  assert.throws(() => block.pool(name, absent), isCode(4));
});

test("shares of pools are proven by the account and the pool's name, and of no other", () => {
  const pools = Array.from({ length: 9 }, (_, at) => {
    const providers = Array.from({ length: at }, (_, provider) => ({ account: provider * 5, shares: BigInt(at * 100 + provider + 1) }));
    return {
      account: at % 3, sequence: BigInt(at + 1) << 30n, first: 1, second: 2, feePpm: 0, reserves: [10n, 20n] as [bigint, bigint],
      shares: providers.reduce((sum, { shares }) => sum + shares, 0n), providers,
    };
  });
  const offer = { pair: 7, limit: 3n, tie: 9n, account: 1, sequence: 6n, amount: 5n, stated: 0n };
  const head = { market: 3, number: 8n, parent: new Uint8Array(32), transactions: 2, assets: 10 };
  const accounts = [0, 1].map((account) => ({ account, publicKey: null, last: 5n, balances: [] }));
  const prover = new Prover(head, accounts, [offer], pools);
  const block = new LightBlock(prover.block.hash, prover.block.header, prover.block.roots);
  let checked = 0;
  for (const pool of pools) {
    for (const { account: provider, shares } of pool.providers) {
      const statement = prover.pool(pool.account, pool.sequence, provider) ?? new Uint8Array();
      assert.equal(block.poolShares(pool, provider, statement), shares);
      assert.throws(() => block.poolShares(pool, provider + 1, statement), isCode(4));
      assert.throws(() => block.poolShares({ ...pool, sequence: pool.sequence + 1n }, provider, statement), isCode(4));
      assert.throws(() => block.poolShares({ ...pool, sequence: pool.sequence + (1n << 38n) }, provider, statement), isCode(4));
      assert.throws(() => block.poolShares(pool, provider, statement.subarray(0, -1)), isCode(2));
      checked += 1;
    }
  }
  assert.equal(checked, 36);
  // Offers are still proven next to them, and a changed bit proves nothing.
  assert.equal(block.offer(0, 7, offer, prover.offer(offer) ?? new Uint8Array())?.amount, 5n);
  const [last] = pools.slice(-1);
  assert.ok(last);
  const statement = Uint8Array.from(prover.pool(last.account, last.sequence, 10) ?? []);
  for (let at = 0; at < statement.length; at += 1) {
    statement[at] = (statement[at] ?? 0) ^ 4;
    assert.throws(() => block.poolShares(last, 10, statement), LightError);
    statement[at] = (statement[at] ?? 0) ^ 4;
  }
  assert.equal(block.poolShares(last, 10, statement), 803n);
  // That there are none is a claim of its own, and one of another length is none.
  assert.throws(() => block.poolShares(last, 10, Uint8Array.from([1, 12, 0, ...statement.subarray(11)])), isCode(4));
  assert.throws(() => block.poolShares(last, 10, Uint8Array.from([1, 12, 7, ...statement.subarray(4)])), isCode(2));
});

test("a pool that no market can have is proven and impossible", () => {
  const reserves: [bigint, bigint] = [1n, 1n];
  const sound = { account: 1, sequence: 1n, first: 0, second: 1, feePpm: 0, reserves, shares: 1n, providers: [] };
  const empty: [bigint, bigint] = [0n, 1n];
  const header = { market: 0, number: 1n, parent: new Uint8Array(32), transactions: 0, assets: 4 };
  for (const wrong of [{ second: 0 }, { first: 4 }, { feePpm: 1_000_000 }, { reserves: empty }, { shares: 0n }, { shares: 1n << 63n }]) {
    const prover = new Prover(header, [], [], [{ ...sound, ...wrong }]);
    const block = new LightBlock(prover.block.hash, prover.block.header, prover.block.roots);
    const statement = prover.pool(1, 1n);
    assert.ok(statement);
    assert.throws(
      () => block.pool({ account: 1, sequence: 1n }, statement),
      (error: LightError) => error.code === 5,
      JSON.stringify(wrong, String),
    );
  }
});
