import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../src/client.ts";
import { ClockSetBack, Refused } from "../src/errors.ts";
import { Stamps } from "../src/stamps.ts";

const SECOND = 1_000_000_000n;
const KEY = { id: "hm_a", secret: "c2VjcmV0" };

test("stamps follow the venue's clock and never precede its first", () => {
  let nowMs = 10_000;
  const stamps = new Stamps(() => nowMs);
  assert.equal(stamps.next(), 10n * SECOND);
  stamps.learnTime(70n * SECOND, 10n * SECOND);
  assert.deepEqual([stamps.next(), stamps.waitMs()], [70n * SECOND, 0]);
  stamps.learnStart(71n * SECOND);
  assert.deepEqual([stamps.next(), stamps.waitMs()], [71n * SECOND, 0], "taken at once: it is no more than a second ahead");
  assert.equal(stamps.venueTimeNs(), 70n * SECOND);
  stamps.learnStart(72n * SECOND + 1n);
  assert.equal(stamps.waitMs(), 1_001);
  nowMs += 5_000;
  assert.deepEqual([stamps.next(), stamps.waitMs()], [75n * SECOND, 0]);
});

/** A client of a venue that takes stamps from `fromNs` on, and what that was sent. */
function clientOf(fromNs: bigint): { client: Client; sent: string[]; stamps: bigint[] } {
  const sent: string[] = [];
  const stamps: bigint[] = [];
  const answer = (path: string, headers: Record<string, string>): [number, object] => {
    if (path === "/v1/time") return [200, { time_ns: `${Date.now()}000000` }];
    if (path === "/v1/status") return [200, { accepts_timestamps_from_ns: String(fromNs) }];
    const stamp = BigInt(headers["Walras-Timestamp"] ?? "0");
    stamps.push(stamp);
    if (stamp >= fromNs) return [200, { positions: [] }];
    return [401, { error: { code: 105, name: "TimestampStale", message: "too far" } }];
  };
  const fetch = (async (url: string, init: { headers: Record<string, string> }) => {
    const { pathname } = new URL(url);
    sent.push(pathname);
    const [status, body] = answer(pathname, init.headers);
    return new Response(JSON.stringify(body), { status });
  }) as unknown as typeof globalThis.fetch;
  return { client: new Client({ key: KEY, fetch }), sent, stamps };
}

test("a stale timestamp is replaced once, by the first that the venue accepts", async () => {
  const fromNs = BigInt(Date.now()) * 1_000_000n + SECOND;
  const { client, sent, stamps } = clientOf(fromNs);
  assert.deepEqual(await client.positions(), []);
  assert.deepEqual(sent, ["/v1/account", "/v1/status", "/v1/time", "/v1/account"]);
  assert.equal(stamps[1], fromNs);
});

test("a venue that takes nothing for long is not waited for, and the error says how long", async () => {
  const { client, sent } = clientOf(BigInt(Date.now()) * 1_000_000n + 3_600n * SECOND);
  await assert.rejects(client.positions(), (error: Error) => {
    assert.ok(error instanceof Refused && error instanceof ClockSetBack && error.code === 105);
    assert.match(error.message, /try again in (3599|3600) s/);
    return true;
  });
  assert.deepEqual(sent, ["/v1/account", "/v1/status", "/v1/time"]);
});
