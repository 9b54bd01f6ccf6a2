// The bot of docs/first-bot.md, with the package as it is published: it trades on a demo, survives the venue's restart, and leaves nothing
// behind.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Client } from "../../src/client.ts";
import { installed } from "../installed.ts";
import { endsWithTest, exitOf, printed, programFile, withinMs } from "../process.ts";
import { until } from "./venue.ts";

const BOT = join(import.meta.dirname, "../../../../docs/first-bot.mjs");
const [START_MS, STOP_MS] = [60_000, 60_000];
const folder = mkdtempSync(join(tmpdir(), "walras-bot-"));
const programs = installed();
const running = new Set<ChildProcess>();
after(() => {
  for (const child of running) if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
  for (const each of [folder, programs]) rmSync(each, { recursive: true, force: true });
});

function run(command: string, args: string[], stdout: "pipe" | number): ChildProcess {
  const child = spawn(command, args, { stdio: ["ignore", stdout, openSync(join(folder, "errors.log"), "a")] });
  endsWithTest(child);
  running.add(child);
  return child;
}

/** A venue with order flow, and its address. */
async function demo(listen: string): Promise<{ venue: ChildProcess; url: string }> {
  const args = ["demo", "--data", join(folder, "venue"), "--listen", listen, "--file", "synthetic", "--speed", "5"];
  const venue = run(programFile(), args, "pipe");
  return { venue, url: await withinMs(START_MS, "the demo prints its address", printed(venue, /(http:\/\/127\.0\.0\.1:\d+)/)) };
}

async function end(child: ChildProcess): Promise<void> {
  child.kill("SIGINT");
  await withinMs(STOP_MS, "it ends after SIGINT", exitOf(child));
}

test("it quotes both sides, also after a restart of the venue, and cancels when it is stopped", async () => {
  copyFileSync(BOT, join(programs, "first-bot.mjs"));
  const first = await demo("127.0.0.1:0");
  const keyFile = join(folder, "venue", "trader.key");
  const client = new Client({ url: first.url, key: readFileSync(keyFile, "ascii") });
  const [{ symbol } = { symbol: "" }] = await client.instruments();
  const said = join(folder, "bot.log");
  const program = join(programs, "first-bot.mjs");
  const bot = run(process.execPath, ["--experimental-websocket", program, first.url, keyFile, symbol, "5"], openSync(said, "w"));
  const sides = async (): Promise<string> =>
    (await client.openOrders(undefined, { isFresh: true })).map(({ side }) => side).sort().join(" ");
  await until("the bot quotes both sides", async () => (await sides()) === "buy sell");
  await end(first.venue);
  const second = await demo(new URL(first.url).host);
  // Other names than before: it did not just leave its old orders.
  const names = async (): Promise<string[]> =>
    (await client.openOrders(undefined, { isFresh: true })).map(({ client_order_id }) => client_order_id);
  const left = new Set(await names());
  await until("it quotes again", async () => (await sides()) === "buy sell" && (await names()).every((name) => !left.has(name)));
  assert.equal(bot.exitCode, null);
  await end(bot);
  assert.equal(bot.exitCode, 0);
  assert.equal(await sides(), "");
  await end(second.venue);
  const text = readFileSync(said, "utf8");
  assert.match(text, /^signed in\n[^]*orders cancelled\n$/);
  assert.doesNotMatch(text, /Error|undefined/);
});
