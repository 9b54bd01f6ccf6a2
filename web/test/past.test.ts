import assert from "node:assert/strict";
import { test } from "node:test";
import type { Fill, OrderState, Page } from "walras";
import { Account } from "../src/state/account.ts";
import { linesOf, newestLines, type OrderEvent } from "../src/state/order-history.ts";
import { Past } from "../src/state/past.ts";
import * as whole from "./whole.ts";
import { Random } from "../../sdk/typescript/test/random.ts";

const fill = (id: number): Fill =>
  whole.fill({ trade_id: String(id), order_id: "1", time_ns: String(1_000 + id), price: "1.00", size: "1" });
const closed = (id: number, endedNs: number, more: Partial<OrderState> = {}): OrderState => whole.orderState({
  order_id: String(id), client_order_id: String(id), original_size: "2.0", filled: "2.0", average_price: "9.50",
  ended_at_ns: String(endedNs), ...more,
});

/** A venue that has `ids`, oldest first, and gives `size` at a time, and every third time none though there are more. */
function server(ids: number[], size: number): { ask: (cursor: string | null) => Promise<Page<Fill>>; asked: (string | null)[] } {
  const asked: (string | null)[] = [];
  return {
    asked,
    ask(cursor) {
      asked.push(cursor);
      const end = cursor === null ? ids.length : Number(cursor);
      if (asked.length % 3 === 0) return Promise.resolve({ items: [], next: String(end), complete: true });
      const begin = Math.max(0, end - size);
      const items = ids.slice(begin, end).reverse().map(fill);
      return Promise.resolve({ items, next: begin === 0 ? null : String(begin), complete: true });
    },
  };
}

test("pages are asked for one by one, through empty ones, to the end", async () => {
  const account = new Account(() => 0n);
  const { ask, asked } = server([1, 2, 3, 4, 5, 6, 7], 2);
  const past = account.pastFills;
  past.start(ask);
  const ids = (): string => account.fills.value.map(({ trade_id }) => trade_id).join();
  await past.more();
  assert.deepEqual([ids(), past.state], ["7,6", "more"]);
  await Promise.all([past.more(), past.more()]);
  assert.deepEqual([ids(), asked.length], ["7,6,5,4", 2], "two at once ask once");
  await past.more();
  assert.equal(ids(), "7,6,5,4,3,2", "a page with nothing in it is no end");
  await past.all();
  assert.deepEqual([ids(), past.state], ["7,6,5,4,3,2,1", "end"]);
  const before = asked.length;
  await past.all();
  assert.equal(asked.length, before, "what is whole is not asked for again");
});

test("what came while nobody was connected is filled in, back to what is known", async () => {
  const ids = [1, 2, 3, 4, 5];
  const account = new Account(() => 0n);
  const { ask } = server(ids, 2);
  account.pastFills.start(ask);
  await account.pastFills.catchUp();
  account.addFills([fill(12)]);
  ids.push(6, 7, 8, 9, 10, 11, 12);
  await account.pastFills.catchUp();
  assert.equal(account.fills.value[0]?.trade_id, "12");
  await account.pastFills.all();
  const all = account.fills.value.map(({ trade_id }) => Number(trade_id));
  assert.deepEqual([...all].sort((a, b) => b - a), all, "newest first");
  assert.equal(new Set(all).size, all.length, "each once");
});

test("a failure is reported, and the next try continues from there", async () => {
  const kept: number[] = [];
  let fails = true;
  const past = new Past<number>(String, (items) => kept.push(...items), () => kept.length >= 3);
  past.start(async (cursor) => {
    if (cursor !== null && fails) throw new Error("no route");
    return { items: [kept.length], next: "x", complete: true };
  });
  await past.more();
  await past.all();
  assert.deepEqual([past.state, past.error, kept], ["failed", "no route", [0]]);
  fails = false;
  await past.all();
  assert.deepEqual([past.state, kept], ["full", [0, 1, 2]], "it stops where no more is kept");
});

test("another account's answer is not taken", async () => {
  const account = new Account(() => 0n);
  let answer: (page: Page<Fill>) => void = () => {};
  account.pastFills.start(() => new Promise((resolve) => (answer = resolve)));
  const asked = account.pastFills.more();
  account.clear("no_key");
  answer({ items: [fill(1)], next: null, complete: true });
  await asked;
  assert.deepEqual([account.fills.value, account.pastFills.state], [[], "unasked"]);
});

test("trades are in order, each once, in whatever pieces they come", () => {
  const random = new Random(3);
  for (let round = 0; round < 200; round += 1) {
    const account = new Account(() => 0n);
    const ids = Array.from({ length: 30 }, (_, at) => at);
    for (let piece = 0; piece < 20; piece += 1) {
      const from = random.below(30);
      account.addFills(ids.slice(from, from + random.below(8)).map(fill));
    }
    account.addFills(ids.map(fill));
    assert.deepEqual(account.fills.value.map(({ trade_id }) => Number(trade_id)), ids.toReversed());
  }
});

const event = (number: number, what: string, timeNs: bigint, ends: string | null): OrderEvent => ({
  number, timeNs, instrument: "BTC/USD", side: "buy", kind: "limit", size: "2.0", price: "10.00", trigger: null, what, ends,
  orderId: ends, isRefusal: false,
});

test("rows that are not drawn yet are counted, of the venue's records and of what the page saw", () => {
  const events = [event(3, "Amended", 40n, null), event(2, "Placed", 30n, null), event(1, "Placed", 20n, null)];
  const orders = [closed(9, 35), closed(8, 25), closed(7, 15)];
  const shown = (most: number): [string[], number] => {
    const { lines, known } = newestLines(events, orders, most);
    return [lines.map(({ timeNs }) => timeNs), known];
  };
  assert.deepEqual(shown(4), [["40", "35", "30", "25"], 6]);
  assert.deepEqual(shown(2), [["40", "35"], 6]);
  assert.deepEqual(shown(200), [["40", "35", "30", "25", "20", "15"], 6]);
});

test("the history has the venue's record of an order's end in place of what the page saw of it", () => {
  const events = [
    event(4, "Filled", 60n, "8"), event(3, "Filled", 50n, "7"), event(2, "Amended", 40n, null), event(1, "Placed", 20n, null),
  ];
  const orders = [
    closed(7, 51), closed(6, 30, { status: "cancelled", filled: "0.5", reason: "linked" }),
    closed(5, 10, { status: "cancelled", filled: "0", average_price: null, reason: "requested" }),
  ];
  const lines = linesOf(events, orders);
  assert.deepEqual(lines.map(({ what, text }) => `${text}: ${what}`), [
    "▲ Buy 2 BTC at 10.00: Filled", "▲ Buy 2 BTC at 10.00: Filled at 9.50 on average", "▲ Buy 2 BTC at 10.00: Amended",
    "▲ Buy 2 BTC at 10.00: Cancelled: linked; 0.5 traded at 9.50 on average", "▲ Buy 2 BTC at 10.00: Placed",
    "▲ Buy 2 BTC at 10.00: Cancelled",
  ]);
  assert.deepEqual([...lines].sort((a, b) => Number(b.timeNs) - Number(a.timeNs)), lines);
  assert.equal(new Set(lines.map(({ key }) => key)).size, lines.length);
});
