import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { type TestContext, test } from "node:test";
import { Client, type ClientOptions } from "../src/client.ts";
import { amend, cancel, order } from "../src/commands.ts";
import { BadAnswer, KeyError, NotConnected, OutcomeUnknown, Refused } from "../src/errors.ts";
import type { NewOrder } from "../src/index.ts";
import { type Asked, HttpVenue, type Planned, refused } from "./http-venue.ts";

const SECRET = Buffer.from("a secret of thirty-two bytes ...").toString("base64url");
const KEY = `hm_test.${SECRET}`;
const BUY: NewOrder = { instrument: "BTC/USD", side: "buy", size: "0.5", price: "49950", client_order_id: "bid-7" };

/** A venue for one test, and a client of it. */
async function venueOf(
  t: TestContext,
  answer: (asked: Asked) => Planned,
  options: ClientOptions = {},
): Promise<{ venue: HttpVenue; client: Client }> {
  const venue = await HttpVenue.start(answer);
  t.after(() => venue.close());
  return { venue, client: new Client({ url: venue.url, key: KEY, ...options }) };
}

/** What `Walras-Signature` must be, by node's own crypto. */
function signatureOf({ method, path, headers, body }: Asked): string {
  const hash = createHash("sha256").update(body).digest("hex");
  const text = ["walras-v1", method, path, headers["walras-timestamp"], headers["walras-nonce"], hash].join("\n");
  return createHmac("sha256", Buffer.from(SECRET, "base64url")).update(text).digest("base64url");
}

test("what is asked is signed as it is sent, whatever is in names and queries", async (t) => {
  const { venue, client } = await venueOf(t, () => [200, { orders: [], fills: [], next: null, complete: true }]);
  await client.order("BTC/USD", "a/b ?%#+(1)", { by: "order_id", isFresh: true });
  await client.submit(BUY);
  await client.amend("BTC-USD", "bid~7!*", { size: "0.1" });
  await client.cancel("BTC-USD", 7);
  await client.massCancel({ instrument: "BTC/USD", side: "sell" });
  await client.closedOrders({ client_order_id: "a&b=c+d(é)", since: 5n, limit: 3 });
  await client.cancelAfter(5_000);
  assert.deepEqual(venue.lines, [
    "GET /v1/orders/BTC-USD/a%2Fb%20%3F%25%23%2B(1)?by=order_id", "POST /v1/orders", "PATCH /v1/orders/BTC-USD/bid~7!*",
    "DELETE /v1/orders/BTC-USD/7", "DELETE /v1/orders?instrument=BTC%2FUSD&side=sell",
    "GET /v1/orders/closed?limit=3&since=5&client_order_id=a%26b%3Dc%2Bd%28%C3%A9%29", "POST /v1/cancel-after",
  ]);
  for (const asked of venue.asked) {
    assert.deepEqual([asked.headers["walras-key"], asked.headers["walras-signature"]], ["hm_test", signatureOf(asked)], asked.path);
  }
  assert.equal(venue.asked[0]?.headers["walras-consistency"], "linearizable");
  assert.deepEqual(venue.asked.slice(1, 3).map(({ body }) => JSON.parse(body) as unknown), [
    { instrument: "BTC/USD", side: "buy", size: "0.5", price: "49950", client_order_id: "bid-7", type: "limit" }, { size: "0.1" },
  ]);
  assert.equal(new Set(venue.asked.map(({ headers }) => headers["walras-nonce"])).size, venue.asked.length);
});

test("public requests are not signed, and need no key", async (t) => {
  const { venue, client } = await venueOf(t, () => [200, { trades: [], candles: [] }], { key: null });
  await client.trades("BTC/USD", { limit: 5, before: 9n });
  await client.candles("BTC/USD", { interval: "1m" });
  await client.book("BTC/USD", { depth: 1 });
  await client.pastTrades("BTC/USD", { from: 1n });
  assert.deepEqual(venue.lines, [
    "GET /v1/instruments/BTC-USD/trades?limit=5&before=9", "GET /v1/instruments/BTC-USD/candles?interval=1m",
    "GET /v1/instruments/BTC-USD/book?depth=1", "GET /v1/history/trades?instrument=BTC%2FUSD&from=1",
  ]);
  assert.ok(venue.asked.every(({ headers }) => headers["walras-key"] === undefined));
  await assert.rejects(client.account(), /needs a key/);
  await assert.rejects(client.submit(BUY), /needs a key/);
  assert.equal(venue.asked.length, 4, "nothing was sent");
});

test("a refusal has the venue's number, words and detail", async (t) => {
  const error = refused(31, "SomeReason", { detail: "price: 1 to 5", leader: { replica: 2, url: "http://b" } });
  const { client } = await venueOf(t, () => [409, { ...error, session: "1", session_seq: "2", log_index: "77" }]);
  await assert.rejects(client.submit(BUY), (thrown: Error) => {
    assert.ok(thrown instanceof Refused);
    assert.deepEqual(
      [thrown.code, thrown.reason, thrown.text, thrown.detail, thrown.leader?.replica, thrown.logIndex],
      [31, "SomeReason", "what to do", "price: 1 to 5", 2, "77"],
    );
    assert.equal(String(thrown), "Refused: 31 SomeReason: what to do (price: 1 to 5)");
    return true;
  });
});

test("a command without an answer is not sent again, a read is", async (t) => {
  const { venue, client } = await venueOf(t, () => "drop");
  await assert.rejects(client.submit(BUY), OutcomeUnknown);
  assert.deepEqual(venue.lines, ["POST /v1/orders"]);
  await assert.rejects(client.status(), NotConnected);
  assert.deepEqual(venue.lines.slice(1), ["GET /v1/status", "GET /v1/status"]);
});

test("the answer of another program is no answer, and of a command the outcome is unknown", async (t) => {
  const { client } = await venueOf(t, () => [502, "<html>Bad gateway</html>"]);
  await assert.rejects(
    client.status(),
    (error: Error) => error instanceof BadAnswer && error.status === 502 && error.path === "/v1/status",
  );
  await assert.rejects(client.submit(BUY), OutcomeUnknown);
  const { client: odd } = await venueOf(t, () => [200, "[1"]);
  await assert.rejects(odd.status(), BadAnswer);
});

test("an answer is waited for so long and no longer", async (t) => {
  const { client } = await venueOf(t, () => [200, {}], {
    timeoutMs: 50,
    fetch: (_, init) =>
      new Promise((_resolve, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal?.reason as Error))),
  });
  await assert.rejects(client.submit(BUY), OutcomeUnknown);
});

test("of several replicas one that answers and leads is used", async (t) => {
  const { venue: leader } = await venueOf(t, () => [200, { status: "resting" }]);
  const { venue: other } = await venueOf(t, () => [421, refused(116, "NotLeader", { leader: { replica: 1, url: `${leader.url}/` } })]);
  const gone = await HttpVenue.start(() => "drop");
  const nobody = gone.url;
  await gone.close();
  const client = new Client({ url: [nobody, other.url, leader.url], key: KEY });
  assert.equal((await client.submit(BUY)).status, "resting");
  // fetch itself sends a request that is answered by 421 once more.
  assert.deepEqual([new Set(other.lines), leader.lines, client.url], [new Set(["POST /v1/orders"]), ["POST /v1/orders"], leader.url]);
  await client.withKey("hm_other.c2VjcmV0").submit(BUY);
  assert.equal(leader.asked[1]?.headers["walras-key"], "hm_other", "another account's client knows the replica too");
  const alone = new Client({ url: other.url, key: KEY });
  await assert.rejects(alone.submit(BUY), (error: Error) => error instanceof Refused && error.code === 116);
});

test("a copy that fetch sent by itself is distinguished from a command that was taken", async (t) => {
  const { venue: leader } = await venueOf(t, () => [200, { status: "resting" }]);
  let takesCommands = false;
  const seen = new Set<string>();
  const { venue: other } = await venueOf(t, ({ path, headers }) => {
    const nonce = String(headers["walras-nonce"]);
    if (path === "/v1/cluster") {
      return [200, { takes_commands: takesCommands, leader: 2, replicas: [{ replica: 2, http: leader.url.replace("http://", "") }] }];
    }
    if (seen.has(nonce)) return [401, refused(106, "NonceReused")];
    seen.add(nonce);
    return [421, refused(116, "NotLeader")];
  });
  const client = new Client({ url: [other.url, "http://127.0.0.1:1", leader.url], key: KEY });
  assert.equal((await client.submit(BUY)).status, "resting");
  assert.equal(client.url, leader.url);
  const alone = new Client({ url: other.url, key: KEY });
  await assert.rejects(
    alone.submit(BUY),
    (error: Error) => error instanceof Refused && error.code === 116 && error.leader?.url === leader.url,
  );
  takesCommands = true;
  await assert.rejects(alone.submit(BUY), OutcomeUnknown);
});

test("lists are read page by page, also where a page is short or empty", async (t) => {
  const pages = new Map([["", ["a", "b"]], ["1", []], ["2", ["c"]], ["3", ["d", "e"]]]);
  const { venue, client } = await venueOf(t, ({ path }) => {
    const at = new URL(path, "http://x").searchParams.get("cursor") ?? "";
    const rows = (pages.get(at) ?? []).map((trade_id) => ({ trade_id }));
    const next = at === "3" ? null : String(Number(at || "0") + 1);
    const name = path.startsWith("/v1/fills") ? "fills" : path.startsWith("/v1/offers") ? "offers" : "orders";
    return [200, { [name]: rows, next, complete: false }];
  });
  assert.deepEqual((await client.fills({ limit: 4 })).map(({ trade_id }) => trade_id), ["a", "b", "c", "d", "e"]);
  assert.deepEqual(venue.lines.map((line) => /limit=(\d+)/.exec(line)?.[1]), ["4", "2", "2", "1"]);
  assert.equal((await client.openOrders("BTC-USD")).length, 5);
  assert.equal((await client.offers()).length, 5);
  assert.deepEqual(await client.fillPage({ cursor: "3", limit: 10 }), {
    items: [{ trade_id: "d" }, { trade_id: "e" }], next: null, complete: false,
  });
  venue.asked.length = 0;
  await client.closedOrders({ limit: 3_000 });
  assert.match(venue.lines[0] ?? "", /limit=1000/);
  venue.asked.length = 0;
  assert.equal((await client.fills({ instrument: "BTC-USD", after: 17n, limit: 4 })).length, 5);
  assert.deepEqual(venue.lines.map((line) => /instrument=BTC-USD&.*&after=17(&|$)/.test(line)), [true, true, true, true]);
});

/** What each command of a request with many asks for. */
const opsOf = (body: string): string[] => (JSON.parse(body) as { commands: { op: string }[] }).commands.map(({ op }) => op);

test("of many commands each has its answer or its refusal", async (t) => {
  const { venue, client } = await venueOf(t, ({ body }) => [200, {
    results: opsOf(body).map((op) => (op === "cancel" ? refused(4, "UnknownOrder") : { answer: { status: op } })),
  }]);
  const [placed, gone, changed] = await client.many([order(BUY), cancel("BTC-USD", "x"), amend("BTC-USD", "y", { price: "1" })]);
  assert.ok(gone instanceof Refused && gone.code === 4);
  assert.deepEqual([placed, changed], [{ status: "order" }, { status: "amend" }]);
  assert.deepEqual(venue.lines, ["POST /v1/orders/batch"]);
  const { cancelled, placed: other } = await client.replace("BTC-USD", "bid-6", BUY);
  assert.ok(cancelled instanceof Refused);
  assert.deepEqual(other, { status: "order" });
  assert.deepEqual(opsOf(venue.asked[1]?.body ?? ""), ["cancel", "order"]);
  // No address can have these names in it.
  await assert.rejects(client.cancel("BTC-USD", ".."), (error: Error) => error instanceof Refused && error.code === 4);
  assert.deepEqual(await client.amend("BTC-USD", ".", { size: "1" }), { status: "amend" });
  assert.deepEqual(venue.lines.slice(2), ["POST /v1/orders/batch", "POST /v1/orders/batch"]);
  await assert.rejects(client.order("BTC-USD", ".."), /no address can have/);
});

test("an order goes with its exits, by itself and among several", async (t) => {
  const { venue, client } = await venueOf(t, ({ path }) => [
    200, path === "/v1/orders" ? { status: "resting" } : { results: [{ answer: {} }] },
  ]);
  const asked = { ...BUY, take_profit: { trigger: 55_000n }, stop_loss: { trigger: "48000", price: "47900", client_order_id: 3 } };
  const sent = {
    instrument: "BTC/USD", side: "buy", size: "0.5", price: "49950", client_order_id: "bid-7", type: "limit",
    take_profit: { trigger: "55000" }, stop_loss: { trigger: "48000", price: "47900", client_order_id: "3" },
  };
  await client.submit(asked);
  await client.many([order(asked)]);
  assert.deepEqual(venue.asked.map(({ body }) => JSON.parse(body) as unknown), [sent, { commands: [{ op: "order", ...sent }] }]);
});

test("instruments are asked for once, and an unknown one is named with those that there are", async (t) => {
  const { venue, client } = await venueOf(t, () => [200, { instruments: [{ symbol: "BTC/USD" }] }]);
  assert.deepEqual([(await client.instrument("BTC-USD")).symbol, (await client.instrument("BTC/USD")).symbol], ["BTC/USD", "BTC/USD"]);
  assert.equal(venue.asked.length, 1);
  await assert.rejects(client.instrument("ETH-USD"), /it has BTC\/USD/);
});

test("any operation of the description can be called", async (t) => {
  const { venue, client } = await venueOf(t, () => [200, {
    results: [{ account_id: 1, sequence: "2", block: "3" }, refused(50, "BatchFull")],
  }]);
  await client.call("deleteAdminKeysKeyId", { path: { key_id: "a/b" } });
  await client.call("postAdminPhases", { body: { instrument: "BTC/USD", phase: "halt" } });
  const results = await client.sendTransactions("main", ["00", "11"]);
  assert.deepEqual(venue.lines, ["DELETE /v1/admin/keys/a%2Fb", "POST /v1/admin/phases", "POST /v1/batches/main/transactions"]);
  assert.equal(venue.asked[2]?.headers["walras-key"], undefined, "its signatures say whose transactions they are");
  assert.deepEqual(results[0], { account_id: 1, sequence: "2", block: "3" });
  assert.ok(results[1] instanceof Refused);
});

test("addresses and keys that cannot be used are refused at once", () => {
  for (const url of ["127.0.0.1:7070", "ftp://a", "", []]) assert.throws(() => new Client({ url }), RangeError, String(url));
  assert.throws(() => new Client({ key: "nonsense" }), KeyError);
  assert.equal(new Client({ url: "http://127.0.0.1:7070/" }).url, "http://127.0.0.1:7070");
});
