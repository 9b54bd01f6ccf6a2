// The model at the venue's two ends, HTTP and one WebSocket, which the test answers: the list of instruments, and how orders are sent.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import type { Asset, Instrument, ListedInstrument, OrderRequest, WsInstruments } from "walras";
import { orderKey } from "../src/state/account.ts";
import { Venue } from "../src/state/venue.ts";
import { FakeSocket, Sockets, settle, socket } from "../../sdk/typescript/test/fake-socket.ts";
import * as whole from "./whole.ts";

const { fetch } = globalThis;
const webSocket = Object.getOwnPropertyDescriptor(globalThis, "WebSocket");
const asset = (symbol: string, decimals: number): Asset => ({ asset_id: decimals, symbol, decimals, supply: "0" });
const BTC = whole.instrument({ last_price: "5.00" });
const ETH = whole.instrument({ instrument_id: 1, symbol: "ETH/USD", base: "ETH" });
const XAU = whole.instrument({ instrument_id: 2, symbol: "XAU/USD", base: "XAU" });
const SUBSCRIBES = { op: "subscribe", channel: "instruments" };

/** What HTTP answers, and what it was asked. */
let assets: Asset[] | null;
let listed: Instrument[];
let asked: string[];
let venue: Venue;

beforeEach(() => {
  FakeSocket.all.length = 0;
  [assets, listed, asked] = [[asset("USD", 2), asset("BTC", 8), asset("ETH", 8)], [BTC], []];
  globalThis.fetch = (async (url: string, { method }: RequestInit) => {
    const { pathname } = new URL(url);
    asked.push(`${method} ${pathname}`);
    if (pathname === "/v1/assets" && assets === null) throw new TypeError("no answer");
    const answers: Record<string, object> = {
      "/v1/assets": { assets }, "/v1/instruments": { instruments: listed }, "/v1/batches": { batches: [] },
      "/v1/time": { time_ns: `${Date.now()}000000` }, "/v1/cluster": whole.cluster(),
    };
    return new Response(JSON.stringify(answers[pathname] ?? {}));
  }) as unknown as typeof fetch;
  Object.defineProperty(globalThis, "WebSocket", { value: Sockets, configurable: true, writable: true });
});

afterEach(() => {
  venue.stream.close();
  globalThis.fetch = fetch;
  if (webSocket) Object.defineProperty(globalThis, "WebSocket", webSocket);
  else Reflect.deleteProperty(globalThis, "WebSocket");
});

async function started(): Promise<FakeSocket> {
  venue = new Venue();
  await venue.start(null);
  const first = await socket(1);
  first.open();
  return first;
}

let feedSeq = 0;
function message(kind: WsInstruments["kind"], instruments: Instrument[]): WsInstruments {
  const withoutPrices = instruments.map(({ last_price: _, ...each }): ListedInstrument => each);
  return { type: "instruments", kind, feed_seq: String(++feedSeq), log_index: "7", instruments: withoutPrices };
}

const symbols = (): string[] => venue.instruments.value.map(({ symbol }) => symbol);
const open = (): string | undefined => venue.market.value?.symbol;
const count = (list: object[], wanted: object): number => list.filter((each) => JSON.stringify(each) === JSON.stringify(wanted)).length;

test("new instruments and phases come by the stream, and the list is asked for once", async () => {
  const first = await started();
  assert.equal(count(first.asked, SUBSCRIBES), 1);
  first.say(message("snapshot", [BTC]));
  assert.equal(venue.instrument("BTC-USD")?.last_price, "5.00", "the channel has no last prices");
  let watched = 0;
  venue.instruments.watch(() => (watched += 1));
  const ticker = { op: "subscribe", channel: "ticker", instrument: "ETH-USD" };
  assert.equal(count(first.asked, ticker), 0);
  first.say(message("update", [ETH]));
  assert.deepEqual([symbols(), venue.instrument("ETH/USD")?.last_price, watched], [["BTC/USD", "ETH/USD"], null, 1]);
  assert.equal(count(first.asked, ticker), 1, "its prices are followed");
  first.say(message("update", [{ ...BTC, phase: "halt", phase_cause: "price_band" }]));
  assert.deepEqual(symbols(), ["BTC/USD", "ETH/USD"]);
  venue.choose("ETH/USD");
  venue.choose("BTC/USD");
  assert.deepEqual([venue.market.value?.phase, venue.market.value?.isHaltedByBand], ["halt", true], "without a ticker");
  first.say(message("snapshot", [{ ...ETH, phase: "closed" }]));
  assert.deepEqual([symbols(), venue.instrument("ETH/USD")?.phase], [["ETH/USD"], "closed"], "a snapshot replaces the list");
  assert.equal(asked.filter((request) => request === "GET /v1/instruments").length, 1);
});

test("an instrument of a new asset is listed once the asset is known, after however many attempts", async (context) => {
  const first = await started();
  first.say(message("snapshot", [BTC]));
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const known = assets ?? [];
  assets = null;
  first.say(message("update", [{ ...BTC, phase: "closed" }, XAU]));
  assert.deepEqual([symbols(), venue.instrument("BTC/USD")?.phase], [["BTC/USD"], "closed"], "others do not wait for it");
  for (const [attempt, answer] of [null, [...known, asset("XAU", 3)]].entries()) {
    assets = answer;
    context.mock.timers.tick(1_000);
    await settle();
    assert.equal(count(first.asked, SUBSCRIBES), attempt + 2, "the list comes again");
    assert.deepEqual(symbols(), ["BTC/USD"]);
    first.say(message("snapshot", [BTC, XAU]));
  }
  assert.deepEqual([symbols(), venue.decimals("XAU")], [["BTC/USD", "XAU/USD"], 3]);
});

test("a venue's first instrument is opened when it is defined", async () => {
  listed = [];
  const first = await started();
  first.say(message("snapshot", []));
  assert.equal(open(), undefined);
  first.say(message("update", [ETH, BTC]));
  assert.equal(open(), "ETH/USD");
  assert.equal(count(first.asked, { op: "subscribe", channel: "book", instrument: "ETH-USD" }), 1);
  const market = venue.market.value;
  first.say(message("update", [{ ...ETH, phase: "closed" }]));
  assert.equal(venue.market.value, market, "and stays open with its book");
});

test("an order with exits goes over the stream, and its exits are known before the answer", async () => {
  const first = await started();
  venue.setKey({ id: "hm_test", secret: "c2VjcmV0" });
  while (first.sent.at(-1)?.op !== "auth") await settle();
  first.answer({ type: "authenticated", key: "hm_test", account_id: 3 });
  await settle();
  const entry = { instrument: "BTC-USD", client_order_id: "in-1", side: "buy", type: "limit", size: "1.000", price: "10.00" } as const;
  const order: OrderRequest = { ...entry, take_profit: { trigger: "12.00" }, stop_loss: { trigger: "9.00", price: "8.90" } };
  const answered = venue.enter("BTC/USD", order);
  const { op, id: _, ...sent } = first.sent.at(-1) as unknown as OrderRequest & { op: string; id: string };
  const [profit, loss] = [sent.take_profit?.client_order_id, sent.stop_loss?.client_order_id];
  assert.ok(profit && loss && profit !== loss, "exits have names, by which the news of them is known");
  assert.deepEqual([op, sent], ["order", {
    ...entry,
    take_profit: { trigger: "12.00", client_order_id: profit }, stop_loss: { trigger: "9.00", price: "8.90", client_order_id: loss },
  }]);
  const exit = whole.orderUpdate({ order_id: "92", client_order_id: profit, side: "sell", status: "waiting_trigger" });
  first.say({ type: "account", kind: "update", order_updates: [exit] });
  const known = venue.account.orders.value.get(orderKey({ instrument: "BTC/USD", client_order_id: profit }));
  assert.deepEqual([known?.exit_of, known?.is_held], ["in-1", true]);
  first.answer({ type: "reply", ...whole.orderAnswer({ client_order_id: "in-1" }) });
  assert.equal((await answered).client_order_id, "in-1");
  assert.deepEqual(asked.filter((request) => !request.startsWith("GET ")), [], "nothing is sent by HTTP");
});
