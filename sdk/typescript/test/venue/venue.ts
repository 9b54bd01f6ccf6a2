// A venue in a process of its own, with two accounts that trade, and a proxy that loses answers.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type Server, type Socket, connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "../../src/client.ts";
import { parseKey, publicKeyHex } from "../../src/signing.ts";
import { endsWithTest, exitOf, programFile, withinMs } from "../process.ts";

const PATIENCE_MS = 60_000;
const THROTTLE = ["requests_per_second", "burst", "source_requests_per_second", "source_burst"]
  .map((name) => `${name} = 1000000`)
  .join("\n");

export class Venue {
  readonly folder = mkdtempSync(join(tmpdir(), "walras-sdk-"));
  /** The lines of the accounts' keys: the first one's is of Ed25519, the second one's of HMAC. */
  readonly keys: string[] = [];
  readonly accounts: number[] = [];
  /** Further sections of the configuration. */
  more = "";
  url = "";
  #listen = "127.0.0.1:0";
  #process: ChildProcess | null = null;

  /** Starts it, at its address of before if it had one. */
  async start(): Promise<void> {
    const config = join(this.folder, "venue.toml");
    writeFileSync(config, `[order_entry]\nlisten = "127.0.0.1:0"\n[throttle]\n${THROTTLE}\n${this.more}`);
    const log = join(this.folder, `log.${performance.now()}`);
    const out = openSync(log, "w");
    const child = spawn(programFile(), ["serve", "--config", config, "--data", join(this.folder, "data"), "--listen", this.#listen], {
      stdio: ["ignore", out, out],
    });
    endsWithTest(child);
    this.#process = child;
    const opened = (): string | undefined => /open at http:\/\/([\d.:]+)\//.exec(readFileSync(log, "utf8"))?.[1];
    await until("the venue prints its address", () => {
      if (child.exitCode !== null) throw new Error(`the venue ended: ${readFileSync(log, "utf8")}`);
      return opened() !== undefined;
    });
    this.#listen = opened() ?? "";
    this.url = `http://${this.#listen}`;
  }

  get admin(): Client {
    return new Client({ url: this.url, key: readFileSync(join(this.folder, "data", "operator.key"), "ascii") });
  }

  async setUp(bothSign = false): Promise<void> {
    const { keys, accounts } = await setUp(this.admin, bothSign);
    this.keys.push(...keys);
    this.accounts.push(...accounts);
  }

  /** Of the first account, or the second. */
  client(account = 0): Client {
    return new Client({ url: this.url, key: this.keys[account] ?? "" });
  }

  async stop(signal: NodeJS.Signals = "SIGINT"): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await withinMs(PATIENCE_MS, "the venue stops", exitOf(child));
  }

  async end(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Makes assets, an instrument, and two accounts with funds and keys. Both sign batch transactions where `bothSign`. */
export async function setUp(admin: Client, bothSign = false): Promise<{ keys: string[]; accounts: number[] }> {
  const [keys, accounts]: [string[], number[]] = [[], []];
  for (const [symbol, decimals] of [["BTC", 8], ["USD", 4]] as const) await admin.call("postAdminAssets", { body: { symbol, decimals } });
  await admin.call("postAdminInstruments", {
    body: {
      symbol: "BTC/USD", base: "BTC", quote: "USD", tick_size: "0.5", lot_size: "0.01", reference_price: "30000", collar_ppm: 1_000_000,
      band_ppm: 1_000_000,
    },
  });
  await admin.call("postAdminPhases", { body: { instrument: "BTC/USD", phase: "continuous" } });
  for (const algorithm of ["ed25519", bothSign ? "ed25519" : "hmac-sha256"] as const) {
    const { account_id } = await admin.call("postAdminAccounts", { body: {} });
    for (const [place, asset] of ["BTC", "USD"].entries()) {
      await admin.call("postAdminDeposits", { body: { account_id, asset, amount: "1000000", transfer_id: String(place + 1) } });
    }
    const { key } = await admin.call("postAdminKeys", { body: { permissions: ["read", "trade"], account_id, algorithm } });
    if (key === undefined) throw new Error("the venue shows no key");
    if (algorithm === "ed25519") await admin.call("postAdminAccountKeys", { body: { account_id, key: await publicKeyHex(parseKey(key)) } });
    keys.push(key);
    accounts.push(account_id);
  }
  return { keys, accounts };
}

/** Looks again until it is so. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const endsMs = performance.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (performance.now() > endsMs) throw new Error(`waited ${PATIENCE_MS / 1_000} s in vain until ${what}`);
    await pause(10);
  }
}

/** What becomes of a request: it arrives and its answer too, only it arrives, or not even that. */
export type Fate = "pass" | "drop answer" | "drop request";

/** Passes connections on. The plan is for requests with `marker` in their first line; other traffic passes, that of WebSockets too. */
export class LossyProxy {
  readonly plan: Fate[] = [];
  lost = 0;
  readonly #server: Server;
  readonly #open = new Set<Socket>();

  private constructor(to: { host: string; port: number }, marker: string) {
    this.#server = createServer((client) => {
      const venue = connect(to);
      for (const socket of [client, venue]) {
        this.#open.add(socket);
        socket.on("close", () => this.#open.delete(socket));
        socket.on("error", () => {});
      }
      let isDropping = false;
      client.on("data", (data) => {
        const line = data.toString("latin1").split("\r\n", 1)[0] ?? "";
        const fate = line.includes(marker) ? (this.plan.shift() ?? "pass") : "pass";
        if (fate !== "pass") this.lost += 1;
        if (fate === "drop request") return client.destroy();
        isDropping ||= fate === "drop answer";
        venue.write(data);
      });
      venue.on("data", (data) => (isDropping ? client.destroy() : client.write(data)));
      client.on("close", () => venue.end());
      venue.on("close", () => client.end());
    });
  }

  static async start(url: string, marker = "session_seq="): Promise<LossyProxy> {
    const { hostname, port } = new URL(url);
    const proxy = new LossyProxy({ host: hostname, port: Number(port) }, marker);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Breaks all connections, without a word. */
  cut(): void {
    for (const socket of this.#open) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
