// The client against a venue of its own: orders over HTTP and the WebSocket, through lost answers, cut connections and a crash.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { Client, type Page } from "../../src/client.ts";
import { amend, cancel, massCancel, order } from "../../src/commands.ts";
import { OutcomeUnknown, Refused } from "../../src/errors.ts";
import type { OrderAnswer, OrderState, Report } from "../../src/schema/index.ts";
import type { StreamMessage } from "../../src/stream.ts";
import { LossyProxy, Venue, until } from "./venue.ts";

const venue = new Venue();
before(async () => {
  await venue.start();
  await venue.setUp();
});
after(() => venue.end());
afterEach(async () => {
  for (const account of [0, 1]) await venue.client(account).massCancel();
});

const isRefused = (reason: RegExp) => (error: Error): boolean => error instanceof Refused && reason.test(error.reason);
const SELL = { instrument: "BTC-USD", side: "sell" } as const;
const BUY = { instrument: "BTC/USD", side: "buy" } as const;

test("orders over HTTP", async () => {
  const [alice, bob] = [venue.client(0), venue.client(1)];
  assert.equal((await alice.status()).ready, true);
  assert.deepEqual((await alice.instruments()).map(({ symbol }) => symbol), ["BTC/USD"]);
  const rested = await alice.submit({ ...SELL, size: "0.5", price: "30000.5", client_order_id: 7 });
  assert.deepEqual([rested.status, rested.client_order_id, rested.open], ["resting", "7", "0.50"]);
  assert.deepEqual((await alice.openOrders(undefined, { isFresh: true })).map(({ client_order_id }) => client_order_id), ["7"]);
  const taken = await bob.submit({ ...BUY, size: "0.2", price: 30_001n, time_in_force: "ioc" });
  assert.deepEqual([taken.status, taken.fills[0]?.price], ["filled", "30000.5"]);
  assert.equal((await alice.amend("BTC-USD", 7, { size: "0.1" })).open, "0.10");
  assert.deepEqual((await alice.book("BTC/USD", { isFresh: true })).asks, [["30000.5", "0.10", 1]]);
  assert.equal((await alice.cancel("BTC-USD", 7)).status, "cancelled");
  await assert.rejects(
    alice.cancel("BTC-USD", 7),
    (error: Error) => isRefused(/UnknownOrder/)(error) && (error as Refused).code === 4 && (error as Refused).text !== "",
  );
  assert.equal((await bob.fills({ limit: 1 }))[0]?.size, "0.20");
  assert.equal((await alice.trades("BTC-USD"))[0]?.price, "30000.5");
  assert.ok((await alice.candles("BTC/USD", { interval: "1m" })).length > 0);
  assert.equal(Number((await bob.positions({ isFresh: true })).find(({ instrument }) => instrument === "BTC/USD")?.position), 0.2);
  assert.ok((await bob.balances()).some(({ asset }) => asset === "BTC"));
  await assert.rejects(alice.submit({ ...BUY, size: "0.5", price: "30000.3" }), isRefused(/PriceNotOnTick/));
  await assert.rejects(
    new Client({ url: venue.url, key: `${(venue.keys[0] ?? "").slice(0, -4)}AAAA` }).account(),
    isRefused(/SignatureInvalid/),
  );
});

test("an order is named by a text and found after its end", async () => {
  const [alice, bob] = [venue.client(0), venue.client(1)];
  const name = "ask/one?%(1)!*~";
  assert.equal((await alice.submit({ ...SELL, size: "0.5", price: "30000.5", client_order_id: name })).client_order_id, name);
  await bob.submit({ ...BUY, size: "0.2", price: "30001", time_in_force: "ioc" });
  await alice.amend("BTC-USD", name, { size: "0.1" });
  assert.equal((await alice.order("BTC-USD", name, { isFresh: true })).status, "partially_filled");
  await alice.cancel("BTC-USD", name);
  const ended = await alice.order("BTC-USD", name, { isFresh: true });
  assert.deepEqual([ended.filled, ended.average_price, ended.status], ["0.20", "30000.5", "cancelled"]);
  assert.equal((await alice.order("BTC-USD", ended.order_id, { by: "order_id" })).client_order_id, name);
  const [closed] = await alice.closedOrders({ client_order_id: name });
  assert.deepEqual(closed, { ...ended, log_index: closed?.log_index });
  await assert.rejects(alice.order("BTC-USD", "never-sent"), isRefused(/NotFound/));
  // Names that no address can have.
  for (const odd of [".", ".."]) {
    await alice.submit({ ...SELL, size: "0.01", price: "40000", client_order_id: odd });
    assert.equal((await alice.amend("BTC-USD", odd, { price: "40001" })).price, "40001.0");
    assert.equal((await alice.cancel("BTC-USD", odd)).status, "cancelled");
  }
});

test("an order with its exits, a stop, and one that is replaced", async () => {
  const alice = venue.client(0);
  const entered = await alice.submit({
    ...BUY, size: "0.1", price: "20000", client_order_id: "in", take_profit: { trigger: "40000" },
    stop_loss: { trigger: "19000", price: "18999" },
  });
  assert.ok(entered.take_profit && entered.stop_loss);
  assert.equal((await alice.openOrders("BTC/USD", { isFresh: true })).filter(({ exit_of }) => exit_of !== undefined).length, 2);
  assert.equal((await alice.submit({ ...BUY, size: "0.1", trigger: "50000", client_order_id: "stop" })).status, "waiting_trigger");
  const { cancelled, placed } = await alice.replace("BTC-USD", "in", { ...BUY, size: "0.1", price: "20001", client_order_id: "in-2" });
  assert.deepEqual([(cancelled as OrderAnswer).status, (placed as OrderAnswer).status], ["cancelled", "resting"]);
  const again = await alice.replace("BTC-USD", "in", { ...BUY, size: "0.1", price: "20002", client_order_id: "in-3" });
  assert.ok(again.cancelled instanceof Refused && (again.placed as OrderAnswer).status === "resting");
});

test("exits of an order over the WebSocket, and of one of several", async () => {
  const alice = venue.client(0);
  const exits = { take_profit: { trigger: "40000" }, stop_loss: { trigger: "19000" } };
  const stream = await alice.stream().open();
  await stream.signIn();
  const entered = await stream.submit({ ...BUY, size: "0.1", price: "20000", client_order_id: "ws-in", ...exits });
  assert.ok(entered.take_profit && entered.stop_loss);
  const { cancelled, placed } = await stream.replace("BTC-USD", "ws-in", { ...BUY, size: "0.1", price: "20001", ...exits });
  assert.equal((cancelled as OrderAnswer).status, "cancelled");
  assert.ok((placed as OrderAnswer).take_profit && (placed as OrderAnswer).stop_loss);
  stream.close();
  assert.equal((await alice.openOrders("BTC/USD", { isFresh: true })).filter(({ exit_of }) => exit_of !== undefined).length, 2);
});

test("all that ended is read page by page, and reports have no gaps", async () => {
  const client = venue.client(0);
  const begin = (await client.reports()).last;
  const names = Array.from({ length: 150 }, (_, number) => `page-${number}`);
  for (const from of [0, 50, 100]) {
    const made = await client.many(
      names.slice(from, from + 50).map((client_order_id) => order({ ...BUY, size: "0.01", price: "20000", client_order_id })),
    );
    assert.ok(made.every((answer) => !(answer instanceof Refused) && (answer as OrderAnswer).status === "resting"));
  }
  await client.many(names.slice(0, 100).map((name) => cancel("BTC-USD", name)));
  await client.many([massCancel({ instrument: "BTC-USD" })]);
  assert.equal(new Set((await client.closedOrders({ limit: 149 })).map(({ order_id }) => order_id)).size, 149);
  assert.deepEqual(new Set((await client.closedOrders({ limit: 150 })).map(({ client_order_id }) => client_order_id)), new Set(names));
  // The last fifty ended in one entry, which these pages cut.
  const newest = await client.closedOrders({ limit: 150 });
  const begun = BigInt(newest.at(-1)?.log_index ?? "") - 1n;
  const oldest: OrderState[] = [];
  for (let cursor: string | null = null; ;) {
    const page: Page<OrderState> = await client.closedOrderPage({ after: begun, limit: 40, cursor });
    oldest.push(...page.items);
    if (page.next === null) break;
    cursor = page.next;
  }
  assert.deepEqual(oldest, newest.toReversed());
  assert.deepEqual(await client.closedOrders({ after: newest[0]?.log_index ?? "" }), []);
  await assert.rejects(client.fills({ after: 0n }), isRefused(/Malformed/));
  const { reports } = await client.reports(begin);
  assert.deepEqual(reports.map(({ report_seq }) => BigInt(report_seq)), reports.map((_, at) => BigInt(begin) + BigInt(at + 1)));
  assert.ok(reports.length >= 256 - 1);
});

test("a dead program's orders are cancelled", async () => {
  const client = venue.client(0);
  await client.submit({ ...BUY, size: "0.01", price: "20000", client_order_id: "left" });
  assert.notEqual((await client.cancelAfter(60_000)).cancels_at_ns, null);
  assert.equal((await client.cancelAfter(0)).cancels_at_ns, null);
  await client.cancelAfter(200);
  await until("the switch fires", async () => (await client.openOrders(undefined, { isFresh: true })).length === 0);
  assert.equal((await client.order("BTC-USD", "left")).status, "cancelled");
});

test("what a session sends takes effect once, however often answers are lost", async () => {
  const proxy = await LossyProxy.start(venue.url);
  try {
    const client = new Client({ url: proxy.url, key: venue.keys[0] ?? "", timeoutMs: 5_000 });
    const session = await client.session();
    proxy.plan.push("drop answer", "drop request", "pass", "drop answer", "drop request", "drop answer", "pass");
    for (const number of [0, 1, 2, 3]) {
      const answer = await session.submit({ ...BUY, size: "0.01", price: String(20_000 + number), client_order_id: `once-${number}` });
      assert.equal(answer.session_seq, String(number + 1));
    }
    assert.equal(proxy.lost, 5);
    await assert.rejects(session.cancel("BTC-USD", "unknown"), isRefused(/UnknownOrder/));
    assert.equal(session.nextSeq, 6n, "a rejection uses its number up");
    await assert.rejects(session.submit({ ...BUY, size: "0.01", price: "20000.1" }), isRefused(/PriceNotOnTick/));
    assert.equal(session.nextSeq, 6n, "what the gateway refuses does not");
    proxy.plan.push("drop answer", "drop request", "drop answer");
    const some = [0, 1].map((number) => order({ ...BUY, size: "0.01", price: "21000", client_order_id: `many-${number}` }));
    const results = await session.many([...some, cancel("BTC-USD", "unknown"), amend("BTC-USD", "once-1", { size: "0.02" })]);
    assert.deepEqual(results.map((result) => (result instanceof Refused ? result.code : result.session_seq)), ["6", "7", 4, "9"]);
    assert.deepEqual([session.nextSeq, proxy.lost], [10n, 8]);
    const open = await client.openOrders(undefined, { isFresh: true });
    assert.deepEqual(open.map(({ price, open: left }) => `${price} ${left}`).sort(), [
      "20000.0 0.01", "20001.0 0.02", "20002.0 0.01", "20003.0 0.01", "21000.0 0.01", "21000.0 0.01",
    ]);
    assert.equal((await client.session({ token: session.token })).nextSeq, 10n, "the same token is the same session");
    proxy.plan.push("drop answer");
    await assert.rejects(
      (await client.session({ token: session.token, patienceMs: 0 })).submit({ ...BUY, size: "0.01", price: "20010" }),
      OutcomeUnknown,
    );
  } finally {
    await proxy.close();
  }
});

test("the stream resumes: subscriptions, the account, reports and a checked book", async () => {
  const proxy = await LossyProxy.start(venue.url);
  const client = new Client({ url: proxy.url, key: venue.keys[0] ?? "" });
  const messages: StreamMessage[] = [];
  const errors: Error[] = [];
  const stream = await client.stream({ onMessage: (message) => messages.push(message), onError: (error) => errors.push(error) }).open();
  try {
    const { last } = await client.reports();
    const book = await stream.book("BTC-USD");
    assert.equal((await stream.signIn()).account_id, venue.accounts[0]);
    await stream.subscribe({ channel: "reports", after: last });
    for (const channel of ["trades", "ticker"] as const) await stream.subscribe({ channel, instrument: "BTC/USD" });
    await assert.rejects(stream.subscribe({ channel: "ticker", instrument: "NO-SUCH" }), isRefused(/UnknownInstrument/));
    assert.equal((await stream.submit({ ...SELL, size: "0.3", price: "31000", client_order_id: 8 })).status, "resting");
    await until("the book shows it", () => book.bestAsk()?.price === 310_000n);
    await assert.rejects(stream.cancel("BTC-USD", 12_345), isRefused(/UnknownOrder/));
    proxy.cut();
    await until("it is connected again, and signed in", () => messages.filter(({ type }) => type === "connected").length === 2);
    await stream.untilSignedIn(60_000);
    await venue.client(1).submit({ ...BUY, size: "0.1", price: "31000", time_in_force: "ioc" });
    await stream.amend("BTC-USD", 8, { size: "0.1" });
    await until("the new book shows it", () => book.isLive && book.asks.length === 1 && book.bestAsk()?.size === 10n);
    const [placed, left] = await stream.many([order({ ...SELL, size: "0.2", price: "32000" }), massCancel()]);
    assert.ok(!(placed instanceof Refused) && !(left instanceof Refused));
    await until("it is gone", () => book.isLive && book.asks.length === 0);
    const reports = (): Report[] => messages.flatMap((message) => (message.type === "reports" ? message.reports : []));
    await until("all reports came", () => reports().filter(({ event }) => event === "cancelled").length === 2);
    const numbers = reports().map(({ report_seq }) => report_seq);
    const expected = numbers.map((_, at) => String(BigInt(last) + BigInt(at + 1)));
    assert.deepEqual(numbers, expected, "each once and in order, over both connections");
    assert.ok(reports().some(({ event }) => event === "filled"));
    assert.ok(messages.some(({ type }) => type === "trades") && messages.some(({ type }) => type === "ticker"));
    assert.equal(messages.filter((message) => message.type === "account" && message.kind === "snapshot").length, 2);
    assert.deepEqual(errors, []);
  } finally {
    stream.close();
    await proxy.close();
  }
});

test("the list of instruments follows their phases", async () => {
  const stream = await venue.client(0).stream().open();
  await stream.subscribe({ channel: "instruments" });
  const phases: string[] = [];
  for await (const message of stream) {
    if (message.type !== "instruments") continue;
    for (const { phase, phase_cause } of message.instruments) phases.push(`${phase} by ${phase_cause}`);
    if (message.kind === "snapshot") await venue.admin.call("postAdminPhases", { body: { instrument: "BTC/USD", phase: "halt" } });
    if (phases.at(-1) === "halt by operator") break;
  }
  await venue.admin.call("postAdminPhases", { body: { instrument: "BTC/USD", phase: "continuous" } });
  assert.equal(phases[0], "continuous by operator");
  stream.close();
});

test("messages are read one after the other", async () => {
  const stream = await venue.client(1).stream().open();
  await stream.subscribe({ channel: "trades", instrument: "BTC-USD" });
  await stream.signIn();
  await stream.submit({ ...BUY, size: "0.1", price: "29000", client_order_id: 9 });
  const kinds = new Set<string>();
  for await (const { type } of stream) {
    kinds.add(type);
    if (["connected", "trades", "account"].every((kind) => kinds.has(kind))) break;
  }
  assert.equal((await stream.cancel("BTC-USD", 9)).status, "cancelled");
  stream.close();
  const wrong = await new Client({ url: venue.url, key: `${(venue.keys[0] ?? "").slice(0, -4)}AAAA` }).stream().open();
  await assert.rejects(wrong.signIn(), isRefused(/SignatureInvalid/));
  wrong.close();
});

test("orders go when the connection does, if that is wished for", async () => {
  const client = venue.client(0);
  const stream = await client.stream().open();
  await stream.signIn();
  const session = await client.session();
  await stream.cancelOnDisconnect(session);
  await stream.submit({ ...BUY, size: "0.1", price: "20000" });
  stream.close();
  await until("its orders are cancelled", async () => (await client.openOrders(undefined, { isFresh: true })).length === 0);
});

test("a session over the WebSocket sends each order once, through cut connections and a crash", async () => {
  const proxy = await LossyProxy.start(venue.url);
  const client = new Client({ url: proxy.url, key: venue.keys[0] ?? "" });
  const stream = await client.stream({ onMessage: () => {} }).open();
  try {
    await stream.signIn();
    const session = await client.session({ stream });
    const answers: Promise<unknown>[] = [];
    for (let number = 0; number < 300; number += 1) {
      answers.push(session.submit({ ...BUY, size: "0.01", price: String(10_000 + number), client_order_id: `n-${number}` }));
    }
    const isAnswered = async (number: number): Promise<unknown> => answers[number];
    await isAnswered(50);
    proxy.cut();
    await isAnswered(120);
    await venue.stop("SIGKILL");
    await venue.start();
    await isAnswered(200);
    proxy.cut();
    await Promise.all(answers);
    assert.equal(session.nextSeq, 301n);
    assert.ok(stream.connectionCount >= 4);
    const open = await client.openOrders(undefined, { isFresh: true });
    assert.deepEqual(
      open.map(({ client_order_id }) => client_order_id).sort(),
      Array.from({ length: 300 }, (_, number) => `n-${number}`).sort(),
    );
  } finally {
    stream.close();
    await proxy.close();
  }
});
