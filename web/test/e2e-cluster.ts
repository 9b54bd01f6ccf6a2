// The view of fair access in the page that is in the program, against a cluster on this machine that has it, while orders come through its
// sessions. WALRAS_PROGRAM names the program; otherwise it is the debug build.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClusterView } from "walras";
import { launch, until } from "./browser.ts";
import { fairSteps } from "./e2e-fair.ts";
import { endsWithTest, exitOf, printed, programFile, withinMs } from "../../sdk/typescript/test/process.ts";

const START_MS = 120_000;
const STOP_MS = 60_000;
const REPLICAS = "3";
/** Commands a second, few enough for a debug build on a machine that does other things too. */
const RATE = "400";
const LOAD_SECONDS = "600";

/** Where the replica is that leads, any of them: it alone holds orders, and has the times of doing so. */
async function leaderOf(address: string): Promise<string> {
  let http: string | null | undefined;
  await until("a replica leads", async () => {
    const { leader, replicas } = (await (await fetch(new URL("/v1/cluster", address))).json()) as ClusterView;
    http = replicas.find(({ replica }) => replica === leader)?.http;
    return typeof http === "string";
  });
  return `http://${http}/`;
}

const program = programFile();
const folder = mkdtempSync(join(tmpdir(), "walras-e2e-"));
const log = join(folder, "cluster.log");
const cluster = spawn(program, [
  "cluster", "local", "--fair-access", "--memory", "--unthrottled", "--replicas", REPLICAS, "--dir", join(folder, "cluster"),
], { stdio: ["ignore", "pipe", openSync(log, "w")] });
let passed = false;
endsWithTest(cluster);
try {
  const first = await withinMs(
    START_MS, "the cluster prints its addresses", printed(cluster, /^replica 1: (http:\/\/127\.0\.0\.1:\d+\/) /),
  );
  const address = await leaderOf(first);
  console.log(`--  ${address} leads ${REPLICAS} replicas of ${program}`);
  const load = spawn(program, [
    "--url", address.replace(/\/$/, ""), "--key-file", join(folder, "cluster", "operator.key"),
    "bench", "--cluster", "--offered", RATE, "--seconds", LOAD_SECONDS,
  ], { stdio: ["ignore", "ignore", openSync(log, "a")] });
  endsWithTest(load);
  const browser = await launch();
  try {
    process.env["WALRAS_URL"] = address;
    process.env["WALRAS_HAS_FAIR"] = "yes";
    await fairSteps(browser, null, address);
  } finally {
    await browser.close();
    load.kill("SIGKILL");
    await exitOf(load);
  }
  cluster.kill("SIGINT");
  await withinMs(STOP_MS, "the cluster stops after SIGINT", exitOf(cluster));
  assert.deepEqual([cluster.exitCode, cluster.signalCode], [0, null], "Ctrl-C is a clean stop");
  passed = true;
} finally {
  if (cluster.exitCode === null && cluster.signalCode === null) cluster.kill("SIGTERM");
  await exitOf(cluster);
  if (!passed) console.error(`What the cluster said:\n${readFileSync(log, "utf8")}`);
  rmSync(folder, { recursive: true, force: true });
}
