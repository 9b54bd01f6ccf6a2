// The client against a cluster of three: at replicas that do not lead, and while the leader changes.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { Client } from "../../src/client.ts";
import { Refused } from "../../src/errors.ts";
import { endsWithTest, exitOf, programFile, withinMs } from "../process.ts";
import { setUp, until } from "./venue.ts";

const [REPLICAS, START_MS, STOP_MS] = [3, 120_000, 60_000];
const BUY = { instrument: "BTC-USD", side: "buy", size: "0.01" } as const;
const folder = mkdtempSync(join(tmpdir(), "walras-cluster-"));
let cluster: ChildProcess;
/** By the replicas' numbers, from 1. */
let urls: string[] = [];
let key = "";

before(async () => {
  const args = ["cluster", "local", "--memory", "--unthrottled", "--replicas", String(REPLICAS), "--dir", join(folder, "cluster")];
  cluster = spawn(programFile(), args, { stdio: ["ignore", "pipe", openSync(join(folder, "log"), "w")] });
  endsWithTest(cluster);
  urls = await withinMs(START_MS, "the cluster prints its addresses", addresses());
  const admin = new Client({ url: urls, key: operatorKey() });
  await until("a replica leads", async () => (await leader()) > 0);
  ({ keys: [key = ""] } = await setUp(admin));
});
after(async () => {
  if (cluster.exitCode === null && cluster.signalCode === null) cluster.kill("SIGINT");
  await withinMs(STOP_MS, "the cluster stops", exitOf(cluster));
  rmSync(folder, { recursive: true, force: true });
});

async function addresses(): Promise<string[]> {
  const found: string[] = [];
  for await (const line of createInterface({ input: cluster.stdout as NodeJS.ReadableStream })) {
    const [, number, url] = /^replica (\d+): (http:\/\/127\.0\.0\.1:\d+)/.exec(line) ?? [];
    if (url !== undefined) found[Number(number) - 1] = url;
    if (found.filter(Boolean).length === REPLICAS) return found;
  }
  throw new Error(`the cluster ended: ${readFileSync(join(folder, "log"), "utf8")}`);
}

function operatorKey(): string {
  return readFileSync(join(folder, "cluster", "operator.key"), "ascii");
}

/** Who leads, as the leader itself says; 0 while nobody does. */
async function leader(): Promise<number> {
  const views = await Promise.all(urls.map((url) => new Client({ url }).call("getCluster", {})));
  return views.find(({ takes_commands }) => takes_commands)?.replica ?? 0;
}

async function handOver(): Promise<void> {
  const from = await leader();
  const to = (from % REPLICAS) + 1;
  await new Client({ url: urls[from - 1] ?? "", key: operatorKey() }).call("postAdminClusterTransfer", { body: { replica: to } });
  await until("another replica leads", async () => ![0, from].includes(await leader()));
}

test("a command at a replica that does not lead goes to the one that does, and is taken once", async () => {
  const leads = await leader();
  const others = urls.filter((_, at) => at !== leads - 1);
  const client = new Client({ url: [...others, urls[leads - 1] ?? ""], key });
  assert.equal((await client.submit({ ...BUY, price: "10000", client_order_id: "one" })).status, "resting");
  assert.equal(client.url, urls[leads - 1]);
  const alone = new Client({ url: others[0] ?? "", key });
  await assert.rejects(
    alone.submit({ ...BUY, price: "10001" }),
    (error: Error) => error instanceof Refused && error.code === 116 && error.leader?.replica === leads,
  );
  // Reads are answered by every replica, and see what was acknowledged.
  assert.deepEqual((await alone.openOrders(undefined, { isFresh: true })).map(({ client_order_id }) => client_order_id), ["one"]);
  await client.massCancel();
});

test("sessions send each command once while the leader changes, by HTTP and over the WebSocket", async () => {
  const client = new Client({ url: urls, key });
  const stream = await client.stream({ onMessage: () => {} }).open();
  try {
    await stream.signIn();
    const sessions = [await client.session(), await client.session({ stream })];
    const sent = [0, 0];
    let isOver = false;
    const sending = sessions.map(async (session, which) => {
      for (; !isOver; sent[which] = (sent[which] ?? 0) + 1) {
        await session.submit({ ...BUY, price: "10000", client_order_id: `${which}-${sent[which] ?? 0}` });
      }
    });
    /** Until each session has had some more answers, or one has failed. */
    const goesOn = async (): Promise<void> => {
      const before = [...sent];
      await Promise.race([
        Promise.all(sending),
        until("both sessions go on", () => sent.every((count, which) => count > (before[which] ?? 0) + 5)),
      ]);
    };
    await goesOn();
    for (const _ of [1, 2, 3]) {
      await handOver();
      await goesOn();
    }
    isOver = true;
    await Promise.all(sending);
    assert.deepEqual(sessions.map(({ nextSeq }) => Number(nextSeq)), sent.map((count) => count + 1));
    const open = (await client.openOrders(undefined, { isFresh: true })).map(({ client_order_id }) => client_order_id);
    assert.deepEqual(
      open.sort(),
      sent.flatMap((count, which) => Array.from({ length: count }, (_, number) => `${which}-${number}`)).sort(),
    );
  } finally {
    stream.close();
  }
});
