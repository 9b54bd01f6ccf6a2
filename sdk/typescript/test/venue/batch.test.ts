// Batch markets of a venue of their own: offers, prices, pools, payments, keys, and proofs of what blocks did.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { boughtAtLeast, priceOfBits } from "../../src/batch-price.ts";
import type { BatchMarket, Collected } from "../../src/batch-market.ts";
import { toHex } from "../../src/bytes.ts";
import { Client } from "../../src/client.ts";
import { parseUnits } from "../../src/decimal.ts";
import { DecimalError, KeyError, Refused } from "../../src/errors.ts";
import { LightError } from "../../src/light/bytes.ts";
import type { StreamMessage } from "../../src/stream.ts";
import { newKey, parseKey, publicKeyHex } from "../../src/signing.ts";
import { LossyProxy, Venue, until } from "./venue.ts";

const venue = new Venue();
let markets = 0;
before(async () => {
  await venue.start();
  await venue.setUp(true);
});
after(() => venue.end());

/** A new market, as each of the two accounts sees it. */
async function market(): Promise<[alice: BatchMarket, bob: BatchMarket]> {
  markets += 1;
  const name = `m${markets}`;
  await venue.admin.call("postAdminBatches", { body: { name, assets: ["USD", "BTC"], interval_ms: 50 } });
  return [await venue.client(0).batch(name), await venue.client(1).batch(name)];
}

async function available(of: BatchMarket, asset: string): Promise<bigint> {
  const balance = (await of.client.balances({ isFresh: true })).find((row) => row.asset === asset);
  return parseUnits(balance?.available ?? "0", asset === "USD" ? 4 : 8);
}

const cleared = async (of: BatchMarket, sent: Promise<Collected>): Promise<string> => (await of.wait((await sent).sequence)).status;

test("offers trade at one price, and the block proves it", async () => {
  const [alice, bob] = await market();
  assert.deepEqual([alice.assets, await alice.prices(), await alice.offers()], [["USD", "BTC"], {}, []]);
  const had = await available(alice, "USD");
  const sold = await alice.sell("0.1", "BTC", "USD", { price: "29000" });
  const bought = await bob.buy("0.1", "BTC", "USD", { price: "30030" });
  assert.equal((await bob.wait(bought.sequence)).status, "cleared");
  const row = await alice.wait(sold.sequence);
  assert.equal(row.status, "cleared");
  const [units, dollars] = [parseUnits(row.sold ?? "", 8), parseUnits(row.bought ?? "", 4)];
  assert.ok(units > 9_000_000n && units <= 10_000_000n, row.sold);
  assert.equal(dollars, (await available(alice, "USD")) - had);
  const prices = await alice.prices();
  assert.equal(prices["USD"], "1");
  assert.ok(Number(prices["BTC"]) >= 29_000 && Number(prices["BTC"]) <= 30_031);

  // What is shown is proven too, of the block in which it traded.
  const traded = (await alice.blocks()).find(({ offers_traded }) => offers_traded === 2);
  assert.ok(traded);
  const block = BigInt(traded.block);
  const trusted = (number: bigint): Promise<Uint8Array> => bob.proofs.blockHash(number);
  const proven = await alice.proofs.transaction(sold.sequence, { block, trusted });
  assert.equal(toHex(proven.block.hash), traded.state_root);
  assert.deepEqual([proven.value?.traded?.sold, proven.value?.traded?.bought], [units, dollars]);
  const trade = (await alice.proofs.trade("BTC", "USD", { block, trusted: proven.block.hash })).value;
  assert.equal(trade?.sold, units);
  const btc = (await alice.proofs.price("BTC", { block, trusted })).value;
  const usd = (await alice.proofs.price("USD", { block, trusted })).value;
  assert.ok(btc !== null && usd !== null && Math.abs((priceOfBits(btc) / priceOfBits(usd)) * 1e4 / Number(prices["BTC"]) - 1) < 1e-6);
  assert.deepEqual([traded.price_bits["BTC"], traded.price_bits["USD"]], [String(btc), String(usd)]);
  await assert.rejects(
    alice.proofs.transaction(sold.sequence, { block, trusted: new Uint8Array(32) }),
    (error: Error) => error instanceof LightError && error.code === 3,
  );
  const state = (await alice.proofs.account({ trusted })).value;
  assert.equal(toHex(state?.key ?? new Uint8Array()), await publicKeyHex(parseKey(venue.keys[0] ?? "")));
  const asset = (await alice.client.assets()).find(({ symbol }) => symbol === "USD")?.asset_id ?? -1;
  assert.equal(state?.balances.get(asset)?.available, await available(alice, "USD"));
  assert.equal((await alice.proofs.account({ account: 1_000 })).value, null);
  await assert.rejects(
    alice.proofs.account({ account: venue.accounts[1] ?? -1 }),
    (error: Error) => error instanceof Refused && error.reason === "Forbidden",
  );
  assert.ok((await alice.demand("BTC", "USD")).points.length > 0);
});

test("an offer stands until it is cancelled", async () => {
  const [alice] = await market();
  const sent = await alice.sell(1n, "BTC", "USD", { price: "100000.01" });
  assert.equal(Number((await alice.wait(sent.sequence)).standing), 1);
  const [offer] = await alice.offers();
  assert.ok(offer);
  assert.deepEqual([offer.sequence, offer.stated_price], [String(sent.sequence), "100000.01"]);
  const stood = (await alice.proofs.offer(offer, { trusted: (block) => alice.proofs.blockHash(block) })).value;
  assert.deepEqual([stood?.amount, stood?.stated], [100_000_000n, BigInt(offer.stated_bits)]);
  assert.equal(boughtAtLeast(BigInt(offer.stated_bits), 100_000_000n), 1_000_000_100n, "what was typed, and no unit more");
  assert.equal(await cleared(alice, alice.cancel(sent.sequence)), "cleared");
  assert.deepEqual(await alice.offers(), []);
  assert.equal((await alice.proofs.offer(offer)).value, null);
  await assert.rejects(alice.cancel(sent.sequence), /no offer/);
});

test("payments, several operations at once, and what a block drops", async () => {
  const [alice, bob] = await market();
  const had = await available(bob, "USD");
  assert.equal(await cleared(alice, alice.pay(venue.accounts[1] ?? -1, "12.5", "USD")), "cleared");
  assert.equal((await available(bob, "USD")) - had, 125_000n);
  const payment = { operation: "payment", to: venue.accounts[1] ?? -1, asset: 1, amount: 5n } as const;
  const results = await alice.send([payment, payment], { joined: true });
  const numbers = results.map((result) => (result as Collected).sequence);
  assert.equal(numbers[1], (numbers[0] ?? 0n) + 1n);
  for (const number of numbers) assert.equal((await alice.wait(number)).status, "cleared");
  // More than it has: all that the account has in the batch is dropped, with a reason.
  const dropped = await alice.wait((await alice.pay(venue.accounts[1] ?? -1, "900000000", "USD")).sequence);
  assert.deepEqual([dropped.status, dropped.reason?.name], ["dropped", "Overdraft"]);
  await assert.rejects(alice.pay(999, "1", "USD"), Refused);
  await assert.rejects(
    alice.pay(1, "1", "USD", { until: 1n }),
    (error: Error) => error instanceof Refused && error.reason === "AlreadyExpired",
  );
  await assert.rejects(alice.pay(1, "0.00001", "USD"), DecimalError);
  await assert.rejects(alice.pay(1, "1", "EUR"), /no asset EUR/);
  await assert.rejects(alice.send([]), RangeError);
  await assert.rejects(venue.client(0).batch("nothing"), /no batch market nothing/);
  await assert.rejects(
    (await new Client({ url: venue.url, key: "hm_a.c2VjcmV0", account: 0 }).batch(alice.name)).signed(1n, [payment]),
    KeyError,
  );
});

test("a pool is created, used and proven", async () => {
  const [alice, bob] = await market();
  const created = await alice.createPool(["30000", "1"], ["USD", "BTC"], { rule: "weighted", weights: [1, 3] }, { feePpm: 3_000 });
  assert.equal((await alice.wait(created.sequence)).status, "cleared");
  const name = { account: venue.accounts[0] ?? -1, sequence: created.sequence };
  const [pool] = await alice.pools();
  assert.deepEqual([pool?.rule, pool?.weights, pool?.fee_ppm, pool?.sequence], ["weighted", [1, 3], 3_000, String(created.sequence)]);
  assert.equal(await cleared(bob, bob.deposit(name, ["300", "0.01"])), "cleared");
  const trusted = (block: bigint): Promise<Uint8Array> => bob.proofs.blockHash(block);
  const proven = (await alice.proofs.pool(name, { trusted })).value;
  const [now] = await alice.pools();
  assert.ok(proven && now && proven.rule === "weighted");
  assert.deepEqual([proven.weights, proven.feePpm, proven.first, proven.second], [[1, 3], 3_000, 0, 1]);
  assert.deepEqual(
    [proven.reserves[0], proven.reserves[1], proven.shares],
    [parseUnits(now.reserves[0], 4), parseUnits(now.reserves[1], 8), BigInt(now.shares)],
  );
  const [own] = await bob.shares();
  assert.ok(own && BigInt(own.shares) > 0n);
  assert.equal((await bob.proofs.shares(name, { trusted })).value, BigInt(own.shares));
  assert.equal((await alice.proofs.pool({ ...name, sequence: 999n }, { trusted })).value, null);
  assert.equal((await bob.proofs.shares({ ...name, sequence: 999n }, { trusted })).value, 0n);
  assert.equal(await cleared(bob, bob.withdraw(name)), "cleared");
  assert.deepEqual(await bob.shares(), []);
  assert.equal((await bob.proofs.shares(name, { trusted })).value, 0n);
  await assert.rejects(bob.withdraw(name), /no shares/);
  await assert.rejects(bob.deposit({ ...name, sequence: 999n }, ["1", "1"]), /no pool/);
});

test("an account is opened for a key, and takes another", async () => {
  const [alice] = await market();
  const [first, second] = [newKey(), newKey()];
  const opened = (await alice.wait((await alice.createAccount(first)).sequence));
  assert.equal(opened.status, "cleared");
  const outcome = (await alice.proofs.transaction(BigInt(opened.sequence))).value;
  const account_id = outcome?.created ?? -1;
  await venue.admin.call("postAdminDeposits", { body: { account_id, asset: "USD", amount: "100", transfer_id: "1" } });
  const { key } = await venue.admin.call("postAdminKeys", {
    body: { permissions: ["read", "trade"], account_id, algorithm: "hmac-sha256" },
  });
  const client = new Client({ url: venue.url, key: key ?? "" });
  const own = await client.batch(alice.name, { key: first });
  assert.equal(await cleared(own, own.setKey(second)), "cleared");
  await assert.rejects(own.pay(0, "1", "USD"), (error: Error) => error instanceof Refused && error.reason === "SignatureInvalid");
  const later = await client.batch(alice.name, { key: second });
  assert.equal(await cleared(later, later.pay(0, "1", "USD")), "cleared");
});

test("a transaction whose answer is lost is taken once", async () => {
  const [, bob] = await market();
  const proxy = await LossyProxy.start(venue.url, "/transactions ");
  try {
    const alice = await new Client({ url: proxy.url, key: venue.keys[0] ?? "" }).batch(bob.name);
    const had = await available(bob, "USD");
    proxy.plan.push("drop answer", "drop request", "drop answer");
    const sent = await alice.pay(venue.accounts[1] ?? -1, "1", "USD");
    assert.equal(proxy.lost, 3);
    assert.equal((await alice.wait(sent.sequence)).status, "cleared");
    assert.equal((await available(bob, "USD")) - had, 10_000n);
    const next = await alice.pay(venue.accounts[1] ?? -1, "1", "USD");
    assert.equal(next.sequence, sent.sequence + 1n);
    await alice.wait(next.sequence);
  } finally {
    await proxy.close();
  }
});

test("blocks and demand come over the WebSocket", async () => {
  const [alice] = await market();
  const messages: StreamMessage[] = [];
  const stream = await alice.client.stream({ onMessage: (message) => messages.push(message) }).open();
  try {
    await stream.subscribe({ channel: "batch", batch: alice.name });
    await stream.subscribe({ channel: "demand", batch: alice.name, sell: "BTC", buy: "USD" });
    await stream.signIn();
    const sent = await alice.sell("0.1", "BTC", "USD", { price: "90000" });
    const isBlock = (message: StreamMessage): boolean =>
      message.type === "batch" && message.blocks.some(({ block }) => BigInt(block) === sent.block);
    await until("the block comes", () => messages.some(isBlock));
    const isSent = ({ sequence }: { sequence: string }): boolean => sequence === String(sent.sequence);
    await until("the offer is reported", () =>
      messages.some((message) => message.type === "account" && message.offer_updates?.some(isSent) === true),
    );
    await until("demand comes", () => messages.some(({ type }) => type === "demand"));
  } finally {
    stream.close();
  }
});
