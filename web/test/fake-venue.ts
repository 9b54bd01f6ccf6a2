// Serves the built page and the fake venue's API, under exactly the content security policy that the real venue sends.

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { WebSocketServer } from "ws";
import { DEMO_KEY_ID, DEMO_SECRET, ED_KEY_ID, ED_SECRET, verify } from "./fake/auth.ts";
import { FakeReject } from "./fake/matching.ts";
import { Session } from "./fake/session.ts";
import { FakeVenue } from "./fake/venue.ts";
import { cluster } from "./whole.ts";

export const POLICY = "default-src 'self'";
/** WALRAS_DIST names another build of the page. */
const DIST = process.env["WALRAS_DIST"] ?? join(import.meta.dirname, "../dist");
const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
};

export interface Running {
  address: string;
  demoAddress: string;
  /** The same account by its Ed25519 key, which can make offers too. */
  edAddress: string;
  venue: FakeVenue;
  close(): Promise<void>;
}

export async function startFakeVenue(port = 0, stepsPerSecond = 20): Promise<Running> {
  if (!existsSync(join(DIST, "index.html"))) throw new Error("There is no built page to serve: run `npm run build` first.");
  const venue = new FakeVenue();
  const server = createServer((request, response) => void answer(venue, request, response));
  const sockets = new WebSocketServer({ server, path: "/v1/ws" });
  sockets.on("connection", (socket) => {
    if (venue.isDown) return socket.close();
    const session = new Session(venue, socket);
    venue.sessions.add(session);
    socket.on("close", () => venue.sessions.delete(session));
  });
  const timers = stepsPerSecond === 0 ? [] : [
    setInterval(() => {
      venue.batch.botSteps(14);
      venue.sessions.forEach((session) => session.publishBatch(false));
    }, 50),
    setInterval(() => {
      venue.closeBatch();
      setTimeout(() => venue.clearBatch(), 90);
    }, venue.batch.intervalMs),
  ];
  timers.push(
    setInterval(() => venue.botSteps(Math.round(stepsPerSecond / 20)), 50),
    setInterval(() => venue.sessions.forEach((session) => session.publish()), 50),
    setInterval(() => venue.sessions.forEach((session) => session.publishStatus()), 1_000),
  );
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    address,
    edAddress: `${address}/#demo=${ED_KEY_ID}.${ED_SECRET}`,
    demoAddress: `${address}/#demo=${DEMO_KEY_ID}.${DEMO_SECRET}`,
    venue,
    close: async () => {
      timers.forEach(clearInterval);
      for (const client of sockets.clients) client.terminate();
      sockets.close();
      await closeServer(server);
    },
  };
}

async function answer(venue: FakeVenue, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = request.url ?? "/";
  try {
    const body = path.startsWith("/v1/") ? JSON.stringify(await api(venue, request, path)) : await readFile(fileOf(path));
    const type = path.startsWith("/v1/") ? "application/json" : (TYPES[extname(fileOf(path))] ?? "application/octet-stream");
    response.writeHead(200, { "Content-Type": type, "Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff" });
    response.end(body);
  } catch (error) {
    const reject = error instanceof FakeReject ? error : new FakeReject(109, "NotFound", "There is nothing at this address.");
    const status = reject.code === 109 ? 404 : reject.code < 100 ? 409 : 401;
    response.writeHead(status, { "Content-Type": "application/json", "Content-Security-Policy": POLICY });
    response.end(JSON.stringify({ error: { code: reject.code, name: reject.reason, message: reject.message } }));
  }
}

async function api(venue: FakeVenue, request: IncomingMessage, path: string): Promise<object> {
  const header = (name: string): string => String(request.headers[name] ?? "");
  const account = (): number => verify({
    key: header("walras-key"), timestamp: header("walras-timestamp"), nonce: header("walras-nonce"), signature: header("walras-signature"),
  }, request.method ?? "", path, "", venue.acceptsTimestampsFromNs);
  const one = /^\/v1\/orders\/([^/?]+)\/(\d+)\?by=order_id$/.exec(path);
  if (one) return venue.orderState(account(), venue.market(one[1] ?? ""), one[2] ?? "");
  if (path === "/v1/batches" && !venue.hasBatches) return { batches: [] };
  if (path.startsWith("/v1/batches")) return batches(venue, path, request.method === "POST" ? await bodyOf(request) : "");
  switch (path.split("?")[0]) {
    case "/v1/time":
      return { time_ns: `${Date.now()}000000` };
    case "/v1/status":
      return venue.status();
    case "/v1/fair-access":
      venue.fair?.step();
      return found(venue.fair?.fairAccess());
    case "/v1/cluster":
      return venue.fair?.cluster() ?? cluster();
    case "/v1/clock":
      return found(venue.fair?.clock());
    case "/v1/latency":
      return found(venue.fair?.latency());
    case "/v1/assets":
      return { assets: venue.assets };
    case "/v1/instruments":
      return { instruments: venue.markets.map(({ instrument }) => instrument) };
    case "/v1/account": {
      const id = account();
      return {
        account_id: id, status: "active", balances: venue.balances(id), positions: venue.positions(id),
        transaction_key: venue.batch.transactionKey, next_sequence: String(venue.batch.nextSequence),
      };
    }
    case "/v1/shares":
      return { shares: venue.batch.pools.sharesOf(account()) };
    case "/v1/transactions":
      account();
      return { transactions: venue.batch.outcomes };
    case "/v1/fills":
      account();
      return venue.fills(new URLSearchParams(path.split("?")[1]));
    case "/v1/orders/closed":
      account();
      return venue.closedOrders(new URLSearchParams(path.split("?")[1]));
    default:
      throw new FakeReject(109, "NotFound", "There is nothing at this address.");
  }
}

function found(answer: object | null | undefined): object {
  if (!answer) throw new FakeReject(109, "NotFound", "There is nothing at this address.");
  return answer;
}

function batches(venue: FakeVenue, path: string, body: string): object {
  const { batch } = venue;
  const [, , , name, what] = (path.split("?")[0] ?? "").split("/");
  const query = new URLSearchParams(path.split("?")[1]);
  if (name === undefined) return { batches: [batch.info()] };
  if (name === "main" && what === "blocks") return { blocks: batch.blocks.slice(-Number(query.get("limit") ?? "100")).reverse() };
  if (name === "main" && what === "proofs") {
    return batch.proof(/\/proofs\/(account|offer|shares)/.exec(path)?.[1] as "account" | "offer" | "shares", query);
  }
  if (name === "main" && what === "pools") return { pools: batch.pools.list() };
  if (name === "main" && what === "demand") return batch.demand(query.get("sell") ?? "", query.get("buy") ?? "");
  if (name === "main" && what === "transactions") {
    return { results: (JSON.parse(body) as { transactions: string[] }).transactions.map((hex) => submitted(venue, hex)) };
  }
  throw new FakeReject(109, "NotFound", "There is nothing at this address.");
}

function submitted(venue: FakeVenue, hex: string): object {
  try {
    const result = venue.batch.submit(hex);
    for (const session of venue.sessions) session.publishBatch(false);
    return result;
  } catch (error) {
    if (!(error instanceof FakeReject)) throw error;
    return { error: { code: error.code, name: error.reason, message: error.message } };
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

function fileOf(path: string): string {
  const clean = normalize(path.split(/[?#]/)[0] ?? "/");
  return join(DIST, clean === "/" ? "index.html" : clean);
}

function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
