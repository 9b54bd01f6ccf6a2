import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Client } from "../src/client.ts";
import { massCancel, order } from "../src/commands.ts";
import { KeyError, NotConnected, OutcomeUnknown, Refused } from "../src/errors.ts";
import type { Level, WsBook } from "../src/schema/index.ts";
import { BookCopy } from "../src/book.ts";
import { type Stream, type StreamHandlers, type StreamMessage } from "../src/stream.ts";
import { FakeSocket, Sockets, settle, socket } from "./fake-socket.ts";

const KEY = "hm_test.c2VjcmV0";
const ORDER = { instrument: "BTC-USD", side: "buy", size: "1", price: "5" } as const;
const STALE = { code: 105, name: "TimestampStale", message: "too far" };
const INSTRUMENT = { symbol: "BTC/USD", price_decimals: 2, size_decimals: 1 };

beforeEach(() => {
  FakeSocket.all.length = 0;
});

/** Of a venue whose HTTP answers what a stream asks of it. */
function clientOf(urls: string | string[] = "http://venue"): Client {
  const answers: Record<string, object> = {
    "/v1/time": { time_ns: `${Date.now()}000000` }, "/v1/status": { accepts_timestamps_from_ns: "5" },
    "/v1/instruments": { instruments: [INSTRUMENT] }, "/v1/sessions": { session: "42", token: "7", next_seq: "1", remembered_from: "1" },
  };
  const fetch = (async (url: string) => new Response(JSON.stringify(answers[new URL(url).pathname]))) as unknown as typeof globalThis.fetch;
  return new Client({ url: urls, key: KEY, fetch, WebSocket: Sockets });
}

/** A stream that is connected, and what it handed out. */
async function opened(
  handlers: StreamHandlers = {},
  client = clientOf(),
): Promise<{ stream: Stream; first: FakeSocket; messages: StreamMessage[] }> {
  const messages: StreamMessage[] = [];
  const stream = client.stream({ onMessage: (message) => messages.push(message), ...handlers });
  const open = stream.open();
  const first = await socket(1);
  first.open();
  await open;
  return { stream, first, messages };
}

/** Signs in at a socket. */
async function signsIn(at: FakeSocket): Promise<void> {
  while (at.sent.at(-1)?.op !== "auth") await settle();
  at.answer({ type: "authenticated", key: "hm_test", account_id: 3 });
  await settle();
}

function bookMessage(kind: WsBook["kind"], feed_seq: string, bids: Level[], checksum: number): WsBook {
  return { type: "book", instrument: "BTC/USD", kind, feed_seq, log_index: feed_seq, bids, asks: [], checksum, indicative: null };
}

/** The checksum of these bids alone. */
function checksumOf(bids: Level[]): number {
  const copy = new BookCopy(2, 1);
  assert.throws(() => copy.apply(bookMessage("snapshot", "1", bids, -1)));
  return copy.checksum();
}

test("subscriptions are taken before there is a connection, and again on each one", async () => {
  const states: string[] = [];
  const stream = clientOf().stream({ onState: (state) => states.push(state) });
  const book = stream.subscribe({ channel: "book", instrument: "BTC-USD" });
  const status = stream.subscribe({ channel: "status" });
  const open = stream.open();
  const first = await socket(1);
  assert.equal(first.url, "ws://venue/v1/ws");
  first.open();
  await open;
  assert.deepEqual(first.asked, [{ op: "subscribe", channel: "book", instrument: "BTC-USD" }, { op: "subscribe", channel: "status" }]);
  first.answer({ type: "subscribed", channel: "book", instrument: "BTC/USD" }, first.sent[0]);
  assert.equal((await book).channel, "book");
  first.end();
  const second = await socket(2);
  second.open();
  await settle();
  assert.deepEqual(second.asked, first.asked);
  second.answer({ type: "subscribed", channel: "status" });
  assert.equal((await status).channel, "status", "answered on a later connection");
  stream.unsubscribe({ channel: "book", instrument: "BTC/USD" });
  assert.deepEqual(second.asked.at(-1), { op: "unsubscribe", channel: "book", instrument: "BTC/USD" });
  second.end();
  const third = await socket(3);
  third.open();
  assert.deepEqual(third.asked, [{ op: "subscribe", channel: "status" }]);
  assert.deepEqual(states, ["connecting", "live", "waiting", "connecting", "live", "waiting", "connecting", "live"]);
  assert.equal(stream.connectionCount, 3);
  stream.close();
});

test("a subscription that is refused is dropped, and says why", async () => {
  const errors: Error[] = [];
  const { stream, first } = await opened({ onError: (error) => errors.push(error) });
  const wrong = stream.subscribe({ channel: "ticker", instrument: "X" });
  first.answer({ type: "error", error: { code: 2, name: "UnknownInstrument", message: "no such" } });
  await assert.rejects(wrong, (error: Error) => error instanceof Refused && error.code === 2);
  const later = stream.subscribe({ channel: "status" });
  first.answer({ type: "subscribed", channel: "status" });
  await later;
  first.end();
  const second = await socket(2);
  second.open();
  assert.deepEqual(second.asked, [{ op: "subscribe", channel: "status" }]);
  second.answer({ type: "error", error: { code: 108, name: "Forbidden", message: "no" } });
  await settle();
  assert.deepEqual(errors.map((error) => error instanceof Refused && error.code), [108]);
  stream.close();
});

test("reports go on where they began, though none came before the connection was lost", async () => {
  const { stream, first } = await opened();
  const reports = stream.subscribe({ channel: "reports" });
  const signedIn = stream.signIn();
  await signsIn(first);
  await signedIn;
  first.answer({ type: "subscribed", channel: "reports", after: "17" });
  await reports;
  first.end();
  const second = await socket(2);
  second.open();
  await signsIn(second);
  assert.deepEqual(second.asked.at(-1), { op: "subscribe", channel: "reports", after: "17" });
  stream.close();
});

test("it signs in on every connection, again where the stamp is stale, and reports go on after the last", async () => {
  const { stream, first, messages } = await opened();
  const reports = stream.subscribe({ channel: "reports", after: "17" });
  const signedIn = stream.signIn();
  while (first.sent.length === 0) await settle();
  assert.deepEqual(first.sent.map(({ op }) => op), ["auth"], "reports wait for the key");
  first.answer({ type: "error", error: STALE });
  while (first.sent.length === 1) await settle();
  await signsIn(first);
  assert.equal((await signedIn).account_id, 3);
  assert.deepEqual(first.asked.at(-1), { op: "subscribe", channel: "reports", after: "17" });
  first.answer({ type: "subscribed", channel: "reports", after: "17" });
  await reports;
  first.say({ type: "reports", last: "19", reports: [{ report_seq: "18" }, { report_seq: "19" }] });
  first.end();
  const second = await socket(2);
  second.open();
  await signsIn(second);
  assert.deepEqual(second.asked.at(-1), { op: "subscribe", channel: "reports", after: "19" });
  assert.deepEqual(messages.map(({ type }) => type), ["connected", "reports", "connected"]);
  stream.signOut();
  const third = await socket(3);
  third.open();
  await settle();
  assert.deepEqual(third.asked, [], "signed out, nothing private is asked for");
  stream.close();
});

test("a key that is refused says why, and is tried again on the next connection", async () => {
  const failures: Error[] = [];
  const { stream, first } = await opened({ onSignInFailed: (error) => failures.push(error) });
  const signedIn = stream.signIn();
  while (first.sent.length === 0) await settle();
  first.answer({ type: "error", error: { code: 103, name: "UnknownKey", message: "check it" } });
  await assert.rejects(signedIn, (error: Error) => error instanceof Refused && error.code === 103);
  assert.equal(failures.length, 1);
  first.end();
  const second = await socket(2);
  second.open();
  await signsIn(second);
  await stream.untilSignedIn(0);
  stream.close();
});

test("a key that this runtime cannot sign with is no lost connection", async () => {
  const { importKey } = crypto.subtle;
  crypto.subtle.importKey = () => Promise.reject(new DOMException("no", "NotSupportedError"));
  try {
    const { stream } = await opened();
    await assert.rejects(stream.signIn({ id: "ed_a", secret: Buffer.alloc(32).toString("base64url") }), KeyError);
    stream.close();
  } finally {
    crypto.subtle.importKey = importKey;
  }
});

test("without a key there is nothing to sign in with, and a closed stream asks nothing more", async () => {
  const bare = new Client({ WebSocket: Sockets }).stream();
  await assert.rejects(bare.signIn(), /needs a key/);
  const { stream, first } = await opened();
  const signedIn = stream.signIn();
  stream.close();
  await assert.rejects(signedIn, NotConnected);
  await settle();
  assert.deepEqual(first.sent, []);
  await assert.rejects(stream.subscribe({ channel: "status" }), /closed/);
});

test("another key takes another connection", async () => {
  const { stream, first } = await opened();
  const one = stream.signIn();
  await signsIn(first);
  await one;
  const other = stream.signIn({ id: "hm_other", secret: "c2VjcmV0" });
  assert.equal(first.readyState, 3);
  const second = await socket(2);
  second.open();
  await signsIn(second);
  assert.equal((second.asked[0] as { key: string }).key, "hm_other");
  await other;
  stream.close();
});

test("commands have answers, refusals, or an unknown outcome", async () => {
  const { stream, first } = await opened();
  const placed = stream.submit({ ...ORDER, client_order_id: 7 });
  assert.deepEqual(first.asked, [{ op: "order", ...ORDER, client_order_id: "7", type: "limit" }]);
  first.answer({ type: "reply", status: "resting", log_index: "5" });
  assert.deepEqual(await placed, { status: "resting", log_index: "5" });
  const gone = stream.cancel("BTC-USD", "x");
  first.answer({ type: "error", error: { code: 4, name: "UnknownOrder", message: "no" }, log_index: "6" });
  await assert.rejects(gone, (error: Error) => error instanceof Refused && error.logIndex === "6");
  const many = stream.many([order(ORDER), massCancel()]);
  first.answer({ type: "replies", results: [{ answer: { status: "resting" } }, { error: { code: 1, name: "A", message: "b" } }] });
  assert.equal((await many).length, 2);
  const entered = stream.submit({ ...ORDER, take_profit: { trigger: 6n }, stop_loss: { trigger: "4", price: "3" } });
  const exits = { take_profit: { trigger: "6" }, stop_loss: { trigger: "4", price: "3" } };
  assert.deepEqual(first.asked.at(-1), { op: "order", ...ORDER, type: "limit", ...exits });
  const named = { order_id: "7", client_order_id: "8" };
  first.answer({ type: "reply", status: "resting", take_profit: named, stop_loss: named });
  assert.deepEqual((await entered).take_profit, named);
  const replaced = stream.replace("BTC-USD", "x", { ...ORDER, take_profit: { trigger: 6n } });
  assert.deepEqual((first.asked.at(-1) as unknown as { commands: object[] }).commands[1], {
    op: "order", ...ORDER, type: "limit", take_profit: exits.take_profit,
  });
  first.answer({ type: "replies", results: [{ answer: { status: "cancelled" } }, { answer: { status: "resting" } }] });
  await replaced;
  const lost = stream.amend("BTC-USD", 7, { size: "1" });
  first.end();
  await assert.rejects(lost, OutcomeUnknown);
  await assert.rejects(stream.submit(ORDER), NotConnected);
  stream.close();
  await assert.rejects(stream.submit(ORDER), /closed/);
});

test("a session's commands are sent again on the next connection, under their numbers", async () => {
  const client = clientOf();
  const { stream, first } = await opened({}, client);
  const signedIn = stream.signIn();
  await signsIn(first);
  await signedIn;
  const session = await client.session({ stream, token: 7n });
  const [one, two] = [session.submit(ORDER), session.cancel("BTC-USD", "x")];
  await settle();
  assert.deepEqual(first.asked.slice(1), [{ op: "order", ...ORDER, type: "limit", session: "42", session_seq: "1" }], "one at a time");
  first.end();
  const second = await socket(2);
  second.open();
  await signsIn(second);
  while (second.sent.at(-1)?.op !== "order") await settle();
  assert.deepEqual(second.asked.at(-1), first.asked[1]);
  second.answer({ type: "reply", repeated: true, session: "42", session_seq: "1", log_index: "9" });
  assert.deepEqual(await one, { repeated: true, session: "42", session_seq: "1", log_index: "9" });
  while (second.sent.at(-1)?.op !== "cancel") await settle();
  assert.deepEqual(second.asked.at(-1), { op: "cancel", instrument: "BTC-USD", client_order_id: "x", session: "42", session_seq: "2" });
  // At a replica that did not lead when it signed in: once more there, then.
  second.answer({ type: "error", error: { code: 102, name: "Unauthenticated", message: "sign in again" } });
  const third = await socket(3);
  third.open();
  await signsIn(third);
  while (third.sent.at(-1)?.op !== "cancel") await settle();
  third.answer({ type: "reply", status: "cancelled", session_seq: "2" });
  assert.equal((await two as { status: string }).status, "cancelled");
  const watched = stream.cancelOnDisconnect(session);
  assert.deepEqual(third.asked.at(-1), { op: "cancel_on_disconnect", session: "42" });
  third.answer({ type: "cancel_on_disconnect", session: "42" });
  assert.equal((await watched).session, "42");
  stream.close();
});

test("a book is kept by number and checksum, and taken again where either does not fit", async () => {
  const errors: Error[] = [];
  const { stream, first } = await opened({ onError: (error) => errors.push(error) });
  const asked = stream.book("BTC/USD");
  while (first.sent.length === 0) await settle();
  assert.deepEqual(first.asked, [{ op: "subscribe", channel: "book", instrument: "BTC-USD" }]);
  first.answer({ type: "subscribed", channel: "book", instrument: "BTC/USD" });
  const [one, two]: Level[][] = [[["5.00", "1.0", 1]], [["5.00", "1.0", 1], ["5.25", "2.0", 1]]];
  first.say(bookMessage("snapshot", "1", one as Level[], checksumOf(one as Level[])));
  const book = await asked;
  first.say(bookMessage("update", "2", [["5.25", "2.0", 1]], checksumOf(two as Level[])));
  assert.deepEqual([book.bestBid()?.price, book.isLive, await stream.book("BTC-USD")], [525n, true, book]);
  // A gap.
  first.say(bookMessage("update", "4", [], 0));
  assert.deepEqual([book.isLive, first.asked.length], [false, 2]);
  first.say(bookMessage("snapshot", "5", one as Level[], checksumOf(one as Level[])));
  assert.deepEqual([book.isLive, book.bids.length], [true, 1]);
  // Another checksum.
  first.say(bookMessage("update", "6", [], 7));
  assert.deepEqual([book.isLive, first.asked.length], [false, 3]);
  first.say(bookMessage("snapshot", "7", one as Level[], checksumOf(one as Level[])));
  assert.equal(book.isLive, true);
  first.end();
  assert.equal(book.isLive, false, "a lost connection has no book");
  const second = await socket(2);
  second.open();
  second.say(bookMessage("snapshot", "1", two as Level[], checksumOf(two as Level[])));
  assert.deepEqual([book.isLive, book.bids.length, errors], [true, 2, []]);
  second.say(bookMessage("snapshot", "2", two as Level[], 1));
  assert.match(errors[0]?.message ?? "", /the venue errs/);
  stream.close();
});

test("the list of instruments is handed out, and asked for on each connection", async () => {
  const { stream, first, messages } = await opened();
  const subscribed = stream.subscribe({ channel: "instruments" });
  assert.deepEqual(first.asked, [{ op: "subscribe", channel: "instruments" }]);
  first.answer({ type: "subscribed", channel: "instruments" });
  await subscribed;
  const listed = { symbol: "BTC/USD", phase: "halt", phase_cause: "price_band" };
  first.say({ type: "instruments", kind: "snapshot", feed_seq: "1", log_index: "7", instruments: [listed] });
  await settle();
  const heard = messages.flatMap((message) => (message.type === "instruments" ? message.instruments : []));
  assert.deepEqual(heard.map(({ phase, phase_cause }) => [phase, phase_cause]), [["halt", "price_band"]]);
  first.say({ type: "instruments", kind: "update", feed_seq: "3", log_index: "9", instruments: [] });
  const second = await socket(2);
  second.open();
  await settle();
  assert.deepEqual(second.asked, first.asked);
  stream.close();
});

test("a message that is missing has the stream connect again", async () => {
  const { stream, first, messages } = await opened();
  const ticker = (instrument: string, feed_seq?: string): object => ({ type: "ticker", instrument, feed_seq });
  const said = [ticker("A", "1"), ticker("B", "7"), ticker("A", "2"), ticker("A"), ticker("A", "3"), ticker("A", "1")];
  said.forEach((each) => first.say(each));
  await settle();
  assert.deepEqual([messages.length, FakeSocket.all.length], [7, 1]);
  first.say(ticker("A", "3"));
  const second = await socket(2);
  second.open();
  second.say(ticker("A", "9"));
  await settle();
  assert.deepEqual([messages.length, stream.connectionCount], [9, 2], "what came behind the gap is not handed out");
  stream.close();
});

test("messages wait to be read; what is refused ends the reading, and so does closing", async () => {
  const client = clientOf();
  const stream = client.stream();
  const open = stream.open();
  const first = await socket(1);
  first.open();
  await open;
  const read: string[] = [];
  const reading = (async () => {
    for await (const message of stream) read.push(message.type);
  })();
  first.say({ type: "trades", instrument: "X", kind: "update", trades: [] });
  first.say({ type: "pong", time_ns: "1" });
  first.say({ type: "status" });
  await settle();
  assert.deepEqual(read, ["connected", "trades", "status"]);
  stream.close();
  await reading;
  const other = clientOf().stream();
  const otherOpen = other.open();
  const second = await socket(2);
  second.open();
  await otherOpen;
  const failing = (async () => {
    for await (const _ of other);
  })();
  second.say({ type: "error", error: { code: 109, name: "NotFound", message: "gone" } });
  await assert.rejects(failing, (error: Error) => error instanceof Refused && error.code === 109);
  other.close();
});

test("a reader that is too far behind goes on with the first report that it has not read", async () => {
  const stream = clientOf().stream();
  const open = stream.open();
  const first = await socket(1);
  first.open();
  await open;
  const reader = stream[Symbol.asyncIterator]();
  assert.equal((await reader.next()).value.type, "connected");
  const reports = stream.subscribe({ channel: "reports", after: "17" });
  const signedIn = stream.signIn();
  await signsIn(first);
  await signedIn;
  first.answer({ type: "subscribed", channel: "reports", after: "17" });
  await reports;
  first.say({ type: "reports", last: "19", reports: [{ report_seq: "18" }, { report_seq: "19" }] });
  for (let count = 0; count < 65_536; count += 1) first.say({ type: "status" });
  assert.equal(first.readyState, 3, "the last one found no room");
  const second = await socket(2);
  second.open();
  await signsIn(second);
  assert.deepEqual(second.asked.at(-1), { op: "subscribe", channel: "reports", after: "17" });
  assert.equal((await reader.next()).value.type, "connected");
  stream.close();
});

test("a lost connection goes on at another replica", async () => {
  const stream = clientOf(["http://a", "https://b"]).stream();
  const open = stream.open();
  (await socket(1)).end();
  const second = await socket(2);
  assert.deepEqual(FakeSocket.all.map(({ url }) => url), ["ws://a/v1/ws", "wss://b/v1/ws"]);
  second.open();
  await open;
  stream.close();
});

test("a connection that never opens is given up", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval", "setTimeout"] });
  const { now } = performance;
  t.after(() => { performance.now = now; });
  let laterMs = 0;
  performance.now = () => now.call(performance) + laterMs;
  const stream = clientOf(["http://a", "http://b"]).stream();
  const open = stream.open();
  const first = await socket(1);
  t.mock.timers.tick(5_000);
  assert.equal(first.readyState, 0);
  laterMs = 13_000;
  t.mock.timers.tick(5_000);
  assert.equal(first.readyState, 3);
  t.mock.timers.tick(10_000);
  const second = await socket(2);
  assert.equal(second.url, "ws://b/v1/ws");
  second.open();
  await open;
  stream.close();
});

test("a book that does not come any more is not waited for", async () => {
  const { stream, first } = await opened();
  const asks = async (): Promise<Promise<BookCopy>[]> => {
    const book = stream.book("BTC/USD");
    while (first.sent.at(-1)?.op !== "subscribe") await settle();
    first.answer({ type: "subscribed", channel: "book", instrument: "BTC/USD" });
    await settle();
    return [book];
  };
  const [one] = await asks();
  stream.unsubscribe({ channel: "book", instrument: "BTC-USD" });
  await assert.rejects(one as Promise<BookCopy>, /unsubscribed/);
  const [other] = await asks();
  stream.close();
  await assert.rejects(other as Promise<BookCopy>, /closed/);
});

test("without a WebSocket the error says what to do", () => {
  const scope = globalThis as { WebSocket?: unknown };
  const { WebSocket } = scope;
  delete scope.WebSocket;
  try {
    assert.throws(() => new Client().stream(), /Node 22/);
  } finally {
    scope.WebSocket = WebSocket;
  }
});
