import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../src/client.ts";
import { cancel, massCancel, order } from "../src/commands.ts";
import { OutcomeUnknown, Refused } from "../src/errors.ts";
import { type Asked, HttpVenue, type Planned, refused } from "./http-venue.ts";

const KEY = "hm_test.c2VjcmV0";
const ORDER = { instrument: "BTC-USD", side: "buy", size: "1", price: "5" } as const;
const OPENED: Planned = [200, { session: "42", token: "7", next_seq: "5", remembered_from: "1" }];

/** A session at a venue that answers its commands as planned, then with their numbers. */
async function play(
  plan: Planned[],
  act: (session: Awaited<ReturnType<Client["session"]>>, venue: HttpVenue) => Promise<void>,
  patienceMs = 5_000,
): Promise<void> {
  const venue = await HttpVenue.start(({ path }: Asked) => {
    if (path === "/v1/sessions") return OPENED;
    if (path === "/v1/status") return [200, { accepts_timestamps_from_ns: "0" }];
    if (path === "/v1/time") return [200, { time_ns: `${Date.now()}000000` }];
    return plan.shift() ?? [200, { session_seq: seqOf(path), repeated: false }];
  });
  try {
    await act(await new Client({ url: venue.url, key: KEY }).session({ token: 7n, patienceMs }), venue);
  } finally {
    await venue.close();
  }
}

const seqOf = (path: string): string => new URL(path, "http://x").searchParams.get("session_seq") ?? "";
const numbers = (venue: HttpVenue): string[] =>
  venue.asked.filter(({ path }) => path.includes("session_seq")).map(({ path }) => seqOf(path));

test("commands have consecutive numbers, one after the other", () => play([], async (session, venue) => {
  assert.deepEqual([session.id, session.token, session.nextSeq], ["42", "7", 5n]);
  const answers = await Promise.all([session.submit(ORDER), session.cancel("BTC-USD", "a"), session.massCancel(), session.cancelAfter(0)]);
  assert.deepEqual(numbers(venue), ["5", "6", "7", "8"]);
  assert.equal((answers[0] as { session_seq: string }).session_seq, "5");
  assert.deepEqual(venue.lines.slice(1), [
    "POST /v1/orders?session=42&session_seq=5", "DELETE /v1/orders/BTC-USD/a?session=42&session_seq=6",
    "DELETE /v1/orders?session=42&session_seq=7", "POST /v1/cancel-after?session=42&session_seq=8",
  ]);
}));

test("a session sends no exits with an order, and no number is used for them", () => play([], async (session, venue) => {
  const entry = { ...ORDER, take_profit: { trigger: "6" } };
  await assert.rejects(session.submit(entry), /TypeError: take_profit: a session sends no exits/);
  await assert.rejects(session.many([massCancel(), order(entry)]), /TypeError: take_profit/);
  await session.submit(ORDER);
  assert.deepEqual(numbers(venue), ["5"]);
}));

test("what has no answer is sent again under its number until it has one", () => play(
  ["drop", [502, "nothing"], [429, refused(107, "Throttled")], [503, refused(110, "VenueNotReady")], [401, refused(105, "TimestampStale")]],
  async (session, venue) => {
    await session.submit(ORDER);
    assert.deepEqual(numbers(venue), ["5", "5", "5", "5", "5", "5"]);
    assert.equal(session.nextSeq, 6n);
  },
));

test("a rejection that is in the log uses its number up, another refusal does not", () => play(
  [[409, { ...refused(60, "InsufficientFunds"), session: "42", session_seq: "5", log_index: "99" }], [400, refused(113, "PriceNotOnTick")]],
  async (session, venue) => {
    await assert.rejects(session.submit(ORDER), (error: Error) => error instanceof Refused && error.logIndex === "99");
    await assert.rejects(session.submit(ORDER), (error: Error) => error instanceof Refused && error.logIndex === null);
    await session.submit(ORDER);
    assert.deepEqual(numbers(venue), ["5", "6", "6"]);
  },
));

test("of many commands those use a number that the log has", () => play(
  [[200, { results: [{ answer: { session_seq: "5" } }, { ...refused(4, "UnknownOrder"), log_index: "9" }, refused(107, "Throttled")] }]],
  async (session, venue) => {
    const results = await session.many([massCancel(), cancel("BTC-USD", "x"), cancel("BTC-USD", "y")]);
    assert.deepEqual(results.map((result) => (result instanceof Refused ? result.code : 0)), [0, 4, 107]);
    await session.submit(ORDER);
    assert.deepEqual(numbers(venue), ["5", "7"]);
  },
));

test("of many commands those whose outcome is in doubt are asked for again, under their numbers", async () => {
  const doubt = refused(116, "NotLeader");
  const first: Planned = [200, { results: [{ answer: { session_seq: "5", repeated: false } }, doubt, doubt] }];
  const [one, two] = ["5", "6"].map((session_seq) => ({ answer: { session_seq, repeated: true } }));
  const again: Planned = [200, { results: [one, two, { ...refused(4, "UnknownOrder"), log_index: "9" }] }];
  const commands = [massCancel(), massCancel(), cancel("BTC-USD", "x")];
  await play([first, again], async (session, venue) => {
    const said = (await session.many(commands)).map((result) => (result instanceof Refused ? result.code : result.repeated));
    assert.deepEqual(said, [false, true, 4]);
    assert.deepEqual([numbers(venue), session.nextSeq], [["5", "5"], 8n]);
  });
  await play(Array.from({ length: 100 }, () => first), async (session) => {
    await assert.rejects(session.many(commands), OutcomeUnknown);
    await assert.rejects(session.submit(ORDER), /open another session/);
  }, 300);
});

const ALL_LOST = Array.from({ length: 100 }, (): Planned => "drop");

test("a session whose last outcome is unknown sends nothing more", () => play(ALL_LOST, async (session, venue) => {
  const waiting = session.cancel("BTC-USD", "a");
  await assert.rejects(session.submit(ORDER), OutcomeUnknown);
  await assert.rejects(waiting, OutcomeUnknown);
  const sent = venue.asked.length;
  await assert.rejects(session.submit(ORDER), /open another session/);
  assert.equal(venue.asked.length, sent);
}, 300));
