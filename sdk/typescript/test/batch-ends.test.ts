// Which last block the clients of a batch market give their transactions, against answers that are planned here.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type BatchMarket, type BatchOptions, type Collected } from "../src/batch-market.ts";
import { fromHex } from "../src/bytes.ts";
import { Client } from "../src/client.ts";
import { Refused } from "../src/errors.ts";
import { keyLine, newKey } from "../src/signing.ts";
import { type Operation, blocksOfTwoMinutes, lastOfBlocks } from "../src/transactions.ts";
import { HttpVenue, refused } from "./http-venue.ts";

const INTERVAL_MS = 500;
/** Of two minutes: the one that collects, and two each second. */
const BLOCKS = 241n;
const PAYMENT: Operation = { operation: "payment", to: 3, asset: 0, amount: 5n };
const [DUPLICATE, EXPIRED, NEEDS_LATER_VERSION, BATCH_FULL] = [12, 27, 39, 50];

interface Sent {
  sequence: bigint;
  until: bigint | null;
  /** Where it stands in a chain. */
  place: string | undefined;
}

const PLACES: Readonly<Record<number, string>> = { 0x50: "first", 0x70: "middle", 0x30: "last" };

function read(signed: string): Sent {
  const bytes = fromHex(signed);
  const view = new DataView(bytes.buffer);
  const tag = view.getUint8(12);
  const until = (tag & 0x80) === 0 ? null : BigInt(view.getUint32(13, true)) + (BigInt(view.getUint8(17)) << 32n);
  return { sequence: view.getBigUint64(4, true), until, place: PLACES[tag & 0x70] };
}

/** A venue that takes what its rules allow. */
class Planned {
  collecting = 7n;
  intervalMs = INTERVAL_MS;
  /** An engine of an earlier version takes no terms. */
  takesTerms = true;
  /** What is refused whatever its terms are: 12 as a retry of something that was collected. */
  refuses = new Map<bigint, number>();
  /** So many it takes, then its batch is full; the next request finds `later` collecting. */
  room = Number.POSITIVE_INFINITY;
  later = 0n;
  /** Where no request is answered. */
  isDown = false;
  asks = 0;
  readonly sent: Sent[][] = [];

  batches(): object {
    this.asks += 1;
    return {
      batches: [{
        name: "main", market_id: 0, domain: "09".repeat(32), assets: ["USD"], interval_ms: this.intervalMs,
        collecting_block: String(this.collecting),
      }],
    };
  }

  results(transactions: string[]): object {
    const sent = transactions.map(read);
    this.sent.push(sent);
    const results = sent.map((each) => this.#result(each));
    if (this.room <= 0) [this.room, this.collecting] = [Number.POSITIVE_INFINITY, this.later];
    return { results };
  }

  #result({ sequence, until, place }: Sent): object {
    const code = this.refuses.get(sequence);
    if (code !== undefined) return refused(code, "Refused");
    if (!this.takesTerms && (until !== null || place !== undefined)) return refused(NEEDS_LATER_VERSION, "NeedsLaterVersion");
    if (until !== null && until < this.collecting) return refused(EXPIRED, "AlreadyExpired");
    if (this.room <= 0) return refused(BATCH_FULL, "BatchFull");
    this.room -= 1;
    return { account_id: 2, sequence: String(sequence), block: String(this.collecting) };
  }

  get untils(): (bigint | null)[] {
    return this.sent.flat().map(({ until }) => until);
  }
}

async function market(t: TestContext, options: BatchOptions = {}): Promise<[Planned, BatchMarket]> {
  const planned = new Planned();
  const venue = await HttpVenue.start(({ path, body }) => {
    if (path === "/v1/batches") return planned.isDown ? "drop" : [200, planned.batches()];
    if (path === "/v1/assets") return [200, { assets: [{ symbol: "USD", asset_id: 0, decimals: 2 }] }];
    if (path.startsWith("/v1/account")) return [200, { account_id: 2, next_sequence: "1" }];
    if (path.startsWith("/v1/transactions")) return [200, { transactions: [] }];
    return [200, planned.results((JSON.parse(body) as { transactions: string[] }).transactions)];
  });
  t.after(() => venue.close());
  return [planned, await new Client({ url: venue.url, key: keyLine(newKey()) }).batch("main", options)];
}

test("two minutes are as many blocks as begin in them, and the one that collects", () => {
  for (const [intervalMs, blocks] of [[500, 241], [50, 2_401], [1, 120_001], [0, 120_001], [700, 173], [120_000, 2], [86_400_000, 2]]) {
    assert.equal(blocksOfTwoMinutes(intervalMs as number), blocks, `${intervalMs} ms`);
  }
  assert.equal(lastOfBlocks(7n, 1), 7n);
  for (const wrong of [0, -1, 1.5, Number.NaN]) assert.throws(() => lastOfBlocks(7n, wrong), RangeError);
});

test("a transaction ends after about two minutes unless its call says another block, or none", async (t) => {
  const [planned, main] = await market(t);
  await main.pay(3, "1", "USD");
  await main.pay(3, "1", "USD", { until: 9n });
  await main.pay(3, "1", "USD", { until: null });
  await main.sell("1", "USD", "USD", { until: await main.lastBlock(3) });
  await main.send([PAYMENT, PAYMENT], { joined: true });
  assert.deepEqual(planned.untils, [6n + BLOCKS, 9n, null, 9n, 6n + BLOCKS, 6n + BLOCKS]);
  assert.deepEqual(planned.sent.at(-1)?.map(({ place }) => place), ["first", "last"]);
  assert.equal(await main.lastBlock(), 6n + BLOCKS);
  await assert.rejects(main.lastBlock(0), RangeError);
});

test("a market may say another number of blocks, or none, for all of its transactions", async (t) => {
  const [planned, main] = await market(t, { blocks: 20 });
  await main.pay(3, "1", "USD");
  await main.pay(3, "1", "USD", { until: null });
  const [without, plain] = await market(t, { blocks: null });
  await plain.pay(3, "1", "USD");
  await plain.pay(3, "1", "USD", { until: 9n });
  assert.deepEqual([planned.untils, without.untils], [[26n, null], [null, 9n]]);
  await assert.rejects(market(t, { blocks: 0 }), RangeError);
});

test("the block that collects is known from answers, and asked for when that is old", async (t) => {
  const [planned, main] = await market(t);
  planned.collecting = 100n;
  await main.pay(3, "1", "USD");
  await main.pay(3, "1", "USD");
  assert.deepEqual([planned.asks, planned.untils], [1, [6n + BLOCKS, 99n + BLOCKS]]);
  // A venue that cannot say it now gets what is known.
  const { now } = performance;
  t.after(() => { performance.now = now; });
  performance.now = () => now.call(performance) + 11_000;
  planned.isDown = true;
  planned.collecting = 150n;
  await main.pay(3, "1", "USD");
  planned.isDown = false;
  planned.collecting = 200n;
  await main.pay(3, "1", "USD");
  await main.pay(3, "1", "USD");
  assert.deepEqual([planned.asks, planned.untils.slice(2)], [2, [99n + BLOCKS, 199n + BLOCKS, 199n + BLOCKS]]);
});

test("an end that has passed is given again once, under the same number", async (t) => {
  const [planned, main] = await market(t);
  planned.collecting = 1_000n;
  const results = await main.send([PAYMENT, PAYMENT]);
  assert.deepEqual(results.map((result) => (result as Collected).block), [1_000n, 1_000n]);
  assert.deepEqual(planned.sent.map((each) => each.map(({ sequence }) => sequence)), [[1n, 2n], [1n, 2n]]);
  assert.deepEqual(planned.untils, [6n + BLOCKS, 6n + BLOCKS, 999n + BLOCKS, 999n + BLOCKS]);
  // Not where the call says the end, and never some of those that count together.
  await assert.rejects(main.pay(3, "1", "USD", { until: 999n }), (error: Error) => error instanceof Refused && error.code === EXPIRED);
  planned.collecting = 2_000n;
  const joined = await main.send([PAYMENT, PAYMENT], { joined: true });
  assert.deepEqual(joined.map((result) => (result as Refused).code), [EXPIRED, EXPIRED]);
  assert.equal(planned.sent.length, 4);
});

test("a venue of an earlier version gets transactions without an end, where nobody asked for one", async (t) => {
  const [planned, main] = await market(t);
  planned.takesTerms = false;
  planned.refuses.set(2n, DUPLICATE);
  const [first, second, third] = await main.send([PAYMENT, PAYMENT, PAYMENT]);
  assert.deepEqual([(first as Collected).sequence, (second as Refused).code, (third as Collected).sequence], [1n, DUPLICATE, 3n]);
  assert.deepEqual(planned.sent.map((each) => each.map(({ sequence }) => sequence)), [[1n, 2n, 3n], [1n, 3n]]);
  assert.deepEqual(planned.untils.slice(3), [null, null]);
  for (const ends of [{ until: 50n }, { until: 50n, joined: true }, { joined: true }]) {
    const results = await main.send([PAYMENT, PAYMENT], ends);
    assert.equal((results[0] as Refused).code, NEEDS_LATER_VERSION, "what was asked for is not left out");
  }
  assert.equal(planned.sent.length, 5);
});

test("a chain of which a block has a part is sent again for that block alone", async (t) => {
  for (const [later, codes] of [[7n, [0, 0, 0]], [8n, [0, EXPIRED, EXPIRED]]] as const) {
    const [planned, main] = await market(t);
    [planned.room, planned.later] = [1, later];
    const results = await main.send([PAYMENT, PAYMENT, PAYMENT], { joined: true });
    assert.deepEqual(results.map((result) => (result instanceof Refused ? result.code : 0)), codes);
    assert.deepEqual(planned.sent.map((each) => each.map(({ sequence, place, until }) => [sequence, place, until])), [
      [[1n, "first", 6n + BLOCKS], [2n, "middle", 6n + BLOCKS], [3n, "last", 6n + BLOCKS]], [[2n, "middle", 7n], [3n, "last", 7n]],
    ]);
  }
  // None of it is in a block: all of it is sent again. One is refused: none of it is.
  const [planned, main] = await market(t);
  [planned.room, planned.later] = [0, 8n];
  assert.deepEqual((await main.send([PAYMENT, PAYMENT], { joined: true })).map((result) => (result as Collected).block), [8n, 8n]);
  assert.deepEqual(planned.untils, Array<bigint>(4).fill(6n + BLOCKS));
  const [wrong, other] = await market(t);
  [wrong.room, wrong.later] = [0, 8n];
  wrong.refuses.set(1n, DUPLICATE);
  const codes = (await other.send([PAYMENT, PAYMENT], { joined: true })).map((result) => (result as Refused).code);
  assert.deepEqual(codes, [DUPLICATE, BATCH_FULL]);
  assert.equal(wrong.sent.length, 1);
});
