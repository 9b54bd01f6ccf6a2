import assert from "node:assert/strict";
import { test } from "node:test";
import { fetchPositions } from "../src/api/rest.ts";
import { Stamps } from "../src/api/stamps.ts";
import { Refusal } from "../src/api/types.ts";

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

/** A venue that takes stamps from `fromNs` on, and what it was sent. */
function venue(fromNs: bigint): { sent: string[]; stamps: bigint[] } {
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
  globalThis.fetch = (async (path: string, init: { headers: Record<string, string> }) => {
    sent.push(path);
    const [status, body] = answer(path, init.headers);
    return new Response(JSON.stringify(body), { status });
  }) as unknown as typeof fetch;
  return { sent, stamps };
}

test("a stale timestamp is replaced once, by the first that the venue accepts", async () => {
  const fromNs = BigInt(Date.now()) * 1_000_000n + SECOND;
  const { sent, stamps } = venue(fromNs);
  assert.deepEqual(await fetchPositions(KEY), []);
  assert.deepEqual(sent, ["/v1/account", "/v1/status", "/v1/time", "/v1/account"]);
  assert.equal(stamps[1], fromNs);
});

test("a venue that takes nothing for long is not waited for, and says how long", async () => {
  const { sent } = venue(BigInt(Date.now()) * 1_000_000n + 3_600n * SECOND);
  await assert.rejects(fetchPositions(KEY), (error: Error) => {
    assert.ok(error instanceof Refusal && error.code === 105);
    assert.match(error.message, /sign in again in (3599|3600) s/);
    return true;
  });
  assert.deepEqual(sent, ["/v1/account", "/v1/status", "/v1/time"]);
});
