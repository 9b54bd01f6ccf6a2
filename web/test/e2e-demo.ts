// The page that is in the program, used in a real browser against `walras demo`: a process of its own, on a port of its own, in a folder of
// its own. What e2e.ts does with the fake venue it does here with the real one. WALRAS_PROGRAM names the program; otherwise it is the debug
// build.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Instrument } from "walras";
import { launch } from "./browser.ts";
import { auctionStep } from "./e2e-auction.ts";
import { endsWithTest, exitOf, printed, programFile, withinMs } from "../../sdk/typescript/test/process.ts";

const START_MS = 60_000;
const STOP_MS = 60_000;
/** Slow enough that an order placed some ticks away from the best price is still there when the test looks for it. */
const SPEED = "2";
/** In whole shares, which is what the demo trades; half of it is whole too. */
const SIZE = "20";

/** As the operator does, from the command line. */
async function toPhase(address: string, phase: string): Promise<void> {
  const url = address.replace(/\/#.*/, "");
  const { instruments } = (await (await fetch(`${url}/v1/instruments`)).json()) as { instruments: Instrument[] };
  const command = spawn(
    program, ["--url", url, "--key-file", join(folder, "venue", "operator.key"), "admin", "phase", instruments[0]?.symbol ?? "", phase],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  await withinMs(STOP_MS, `the operator moves the instrument to ${phase}`, exitOf(command));
  assert.equal(command.exitCode, 0, "walras admin phase");
}

const program = programFile();
const folder = mkdtempSync(join(tmpdir(), "walras-e2e-"));
const log = join(folder, "venue.log");
const venue = spawn(program, [
  "demo", "--data", join(folder, "venue"), "--listen", "127.0.0.1:0", "--file", "synthetic", "--speed", SPEED,
], { stdio: ["ignore", "pipe", openSync(log, "w")] });
endsWithTest(venue);
let passed = false;
try {
  // What the demo prints for the user who opens its page.
  const address = await withinMs(START_MS, "the demo prints its address", printed(venue, /^Open (http:\/\/127\.0\.0\.1:\d+\/#demo=\S+)$/));
  console.log(`--  ${address.replace(/#.*/, "")} is ${program}`);
  const test = spawn(process.execPath, ["--import", "tsx", join(import.meta.dirname, "e2e.ts")], {
    stdio: "inherit",
    env: { ...process.env, WALRAS_URL: address, WALRAS_SIZE: SIZE, WALRAS_HAS_ALL: "yes" },
  });
  const [code] = (await once(test, "exit")) as [number | null];
  assert.equal(code, 0, "the page's test against the demo");
  process.env["WALRAS_URL"] = address;
  const browser = await launch();
  try {
    await auctionStep(browser, address, SIZE, () => toPhase(address, "closing_auction"));
  } finally {
    await browser.close();
  }
  venue.kill("SIGINT");
  await withinMs(STOP_MS, "the demo stops after SIGINT", exitOf(venue));
  assert.deepEqual([venue.exitCode, venue.signalCode], [0, null], "Ctrl-C is a clean stop");
  passed = true;
} finally {
  if (venue.exitCode === null && venue.signalCode === null) venue.kill("SIGKILL");
  await exitOf(venue);
  if (!passed) console.error(`What the venue said:\n${readFileSync(log, "utf8")}`);
  rmSync(folder, { recursive: true, force: true });
}
