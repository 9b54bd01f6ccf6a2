// Linked orders, placed by the ticket; and the histories of orders and trades, back to the first. Each step has a fake venue of its own.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import type { Browser, Page } from "playwright-core";
import type { OrderState, OrderWaits } from "walras";
import { choose, open, step, text, until, type Watched } from "./browser.ts";
import { assertNotCut } from "./e2e-layout.ts";
import { FakeFair } from "./fake/fair.ts";
import { type Running, startFakeVenue } from "./fake-venue.ts";
import { fill, orderState } from "./whole.ts";

interface Size {
  width: number;
  height: number;
}

type Act = (watched: Watched, fake: Running, size: Size) => Promise<void>;

const WIDE: Size = { width: 1440, height: 900 };
const SIZES: Size[] = [WIDE, { width: 1280, height: 720 }, { width: 390, height: 844 }];
const TRADES = 2_345;
const ORDERS = 1_234;
const BEGAN_S = 1_700_000_000;

export async function historySteps(browser: Browser): Promise<void> {
  const at = (name: string, sizes: Size[], act: Act, before?: (fake: Running) => void): Promise<void> =>
    step(`histories: ${name}`, async () => {
      for (const size of sizes) {
        const fake = await startFakeVenue(0, 0);
        before?.(fake);
        try {
          const watched = await open(browser, fake.edAddress, size);
          await watched.page.waitForFunction(() => !(document.querySelector("#submit") as HTMLButtonElement).disabled);
          await act(watched, fake, size);
          await watched.assertClean();
          await watched.page.context().close();
        } finally {
          await fake.close();
        }
      }
    });
  await at("of two linked orders one cancels the other", SIZES, linksOrders);
  await at("trades are listed and saved back to the first", [WIDE], goesBackInTrades, liveLong);
  await at("orders that ended are listed and saved back to the first", SIZES, goesBackInOrders, liveLong);
  await at("an order's details say what became of it and where it waited", SIZES, showsDetails, ({ venue }) => {
    venue.fair = new FakeFair();
    venue.waits = WAITS;
  });
}

const WAITS: OrderWaits = {
  leaf_ns: null, gateway_ns: 21_400, sequencer_ns: 312_000, log_ns: 540_600, decided_ns: 852_600, report_ns: 26_000, total_ns: 900_000,
  late_ns: 0,
};

/** From the list of open orders by keyboard, then from the history, then from the account; and where the replica knows less. */
async function showsDetails({ page, shoot, assertClean }: Watched, { venue }: Running, { width }: Size): Promise<void> {
  const market = venue.market("BTC-USD");
  venue.order(1, market, { instrument: "BTC-USD", client_order_id: "777", side: "buy", type: "limit", size: "0.0200", price: "100.00" });
  venue.sessions.forEach((session) => session.publish());
  const named = page.locator("#orders-table td button.name");
  await until("it is listed", async () => (await named.count()) === 1);
  await assertNotCut(page, "#orders-table td", "#orders-body");
  const dialog = page.locator("#order-detail");
  const stages = (): Promise<string[]> =>
    dialog.locator("#order-waits tbody tr").evaluateAll((rows) => rows.map((row) => (row as HTMLElement).dataset["stage"] ?? ""));
  const state = async (): Promise<string> => (await dialog.locator(".order-facts").textContent()) ?? "";
  const closed = async (): Promise<void> => {
    await page.keyboard.press("Escape");
    await until("it is closed", async () => !(await dialog.isVisible()));
  };
  await named.focus();
  await page.keyboard.press("Enter");
  await until("the venue has said it", async () => (await stages()).length > 0);
  assert.deepEqual(await stages(), ["gateway", "sequencer", "log", "report", "total"]);
  assert.match(await state(), /Standing in the book.*0 of 0\.02/u);
  const times = await dialog.locator("#order-waits td.num").allTextContents();
  assert.deepEqual(times.map((time) => time.replace(/\s/gu, " ")), ["21.4 µs", "312 µs", "541 µs", "26 µs", "900 µs"]);
  // On one line of time each bar begins where the one before ends.
  const bars = await dialog.locator("#order-waits .wait-cell i").evaluateAll((all) =>
    all.map((bar) => bar.getBoundingClientRect()).map(({ left, right }) => [left, right] as const));
  for (const [index, [left]] of bars.slice(1).entries()) {
    assert.ok(Math.abs(left - (bars[index]?.[1] ?? 0)) < 2, `bar ${index + 1} at ${left}: ${bars}`);
  }
  assert.equal(await dialog.locator("#order-late").count(), 0);
  await assertNotCut(page, "#order-detail td, #order-detail dd", "#order-detail");
  await shoot(`order-detail-${width}`);
  await closed();
  assert.equal(await page.evaluate(() => document.activeElement?.className), "name", "the focus is back");
  // It was late, and the clocks do not agree.
  venue.waits = { ...WAITS, sequencer_ns: null, log_ns: null, late_ns: 40_000 };
  await named.click();
  await until("the venue has said it again", async () => (await stages()).length === 4);
  assert.deepEqual(await stages(), ["gateway", "decided", "report", "total"]);
  assert.match((await dialog.locator("#order-late").textContent()) ?? "", /40\sµs/u);
  await closed();
  // It ends, at a replica that took another one's orders.
  venue.waits = null;
  venue.massCancel(1, market);
  venue.sessions.forEach((session) => session.publish());
  await choose(page, "input[name=orders-shown][value=history]");
  await page.locator("#history-table td button.name").first().click();
  await until("it says that it does not know", async () => (await dialog.locator("#order-waits-none").count()) === 1);
  assert.match(await state(), /Cancelled/);
  await closed();
  await choose(page, "input[name=orders-shown][value=open]");
  await page.locator("#tab-account").click();
  await page.locator("#all-orders-table td button.name").first().click();
  await until("the account's list opens it too", async () => /Cancelled/.test(await state()));
  await closed();
  // Without fair access nothing is said of waits.
  venue.fair = null;
  await page.reload();
  await page.locator("#tab-account").click();
  await page.locator("#all-orders-table td button.name").first().click();
  await until("it is shown", async () => /Cancelled/.test(await state()));
  assert.equal(await dialog.locator("h3").count(), 0);
  await closed();
  await assertClean();
}

/** More than the venue lists at once. */
function liveLong({ venue }: Running): void {
  for (let index = 0; index < TRADES; index += 1) {
    const id = String(index + 1);
    venue.addFill(fill({
      trade_id: id, order_id: id, client_order_id: id, time_ns: `${BEGAN_S + index}000000000`, side: index % 2 === 0 ? "buy" : "sell",
      price: "30000.00", size: "0.0100", fee: "0.12", role: "taker",
    }));
  }
  for (let index = 0; index < ORDERS; index += 1) venue.addClosed(closedOrder(index));
}

function closedOrder(index: number): OrderState {
  const id = String(index + 1);
  const both = orderState({
    order_id: id, client_order_id: id, price: "30000.00", original_size: "0.0100", entered_at_ns: `${BEGAN_S + index}000000000`,
    ended_at_ns: `${BEGAN_S + index}500000000`,
  });
  if (index % 3 === 0) {
    return { ...both, filled: "0.0100", average_price: "29999.50", fee: "0.12", status: "filled", cancelled: "0", reason: null };
  }
  const reason = index % 3 === 1 ? "requested" : "linked";
  return { ...both, filled: "0.0000", average_price: null, fee: "0.00", status: "cancelled", cancelled: "0.0100", reason };
}

async function linksOrders({ page, shoot }: Watched, { venue }: Running, { width }: Size): Promise<void> {
  const { book, instrument } = venue.market("BTC-USD");
  const last = Number(instrument.last_price);
  const rows = async (): Promise<string[]> =>
    (await page.locator("#orders-table tbody tr td:first-child").allTextContents()).map((row) => row.replace(/\s/gu, " "));
  const answers = (expected: RegExp): Promise<void> =>
    until(`the ticket says ${expected}`, async () => expected.test(await text(page, "#ticket-answer")));
  /** A limit order to buy below the market, linked with a stop order to buy above it. */
  const linked = async (limit: string): Promise<void> => {
    await page.locator("#kind").selectOption("limit");
    await page.fill("#ticket-price", limit);
    await page.fill("#ticket-size", "0.02");
    await page.locator("#ticket-size").press("Enter");
    await answers(/^Standing/);
    await until("it is listed", async () => (await rows()).length === 1);
    await page.locator("#kind").selectOption("stop");
    await page.fill("#ticket-trigger", (last + 2_000).toFixed(2));
    await page.fill("#ticket-size", "0.02");
    if ((await page.locator("#more[open]").count()) === 0) await page.locator("#more summary").click();
    await until("the limit order may be chosen", async () => (await page.locator("#oco option").count()) === 2);
    await page.locator("#oco").selectOption({ index: 1 });
    await page.locator("#ticket-size").press("Enter");
    await answers(/^Waiting/);
    await until("each names the other", async () => {
      const listed = await rows();
      const count = (pattern: RegExp): number => listed.filter((row) => pattern.test(row)).length;
      return listed.length === 2 && count(/, OCO with stop at/) === 1 && count(/, OCO with limit at/) === 1;
    });
  };
  await linked((last - 2_000).toFixed(2));
  assert.equal(book.ordersOf(1).filter((order) => order.linked !== undefined).length, 2, "the venue has them linked");
  await assertNotCut(page, "#orders-table td", "#orders-body");
  await shoot(`oco-${width}`);
  // The venue lists them as linked, too.
  await page.reload();
  await until("they are listed again", async () => (await rows()).filter((row) => /, OCO with (stop|limit) at/.test(row)).length === 2);
  // Cancelling one cancels the other.
  await page.locator("#orders-table tbody button", { hasText: "Cancel" }).first().click();
  await until("both are gone", async () => (await rows()).length === 0 && book.ordersOf(1).length === 0);
  await page.waitForFunction(() => !(document.querySelector("#submit") as HTMLButtonElement).disabled);
  // So does a trade of one.
  await linked((Number((await text(page, "#best-bid")).replace(/\s/gu, "")) + 0.01).toFixed(2));
  venue.sellAtMarket("BTC-USD", 0.01);
  await until("the stop is gone", async () => (await rows()).length === 1 && !/OCO/.test((await rows())[0] ?? ""));
  assert.deepEqual(book.ordersOf(1).map(({ open, linked: partner }) => [open, partner]), [[100n, undefined]]);
}

async function goesBackInTrades({ page, shoot }: Watched): Promise<void> {
  await page.locator("#tab-account").click();
  const rows = (): Promise<number> => page.locator("#trades-table tbody tr").count();
  const loaded = async (): Promise<string> => (await text(page, "#account-trades")).replace(/\D/gu, "");
  await until("the latest are listed", async () => (await rows()) === 200 && (await loaded()) === "1000");
  // Without scrolling there as a pointer has to: scrolling draws more by itself.
  await page.locator("#trades-older").dispatchEvent("click");
  await until("more of them are drawn", async () => (await rows()) === 400);
  await until("the first trade is reached", async () => {
    await page.locator("#trades-body").evaluate((box) => box.scrollTo(0, box.scrollHeight));
    return (await rows()) === TRADES;
  });
  await until("the list says that there are no more", async () => /These are all/.test(await text(page, "#trades-body .older")));
  assert.equal(await page.locator("#trades-older").isVisible(), false);
  await until("all are counted", async () => /^2\s345$/u.test(await text(page, "#account-trades")));
  await shoot("histories-trades");
  await page.reload();
  await until("the latest are listed again", async () => (await rows()) === 200);
  const lines = (await saved(page, "#trades-save")).trimEnd().split("\r\n");
  assert.equal(lines.length, TRADES + 1, "the file has all, whatever is listed");
  assert.match(lines.at(-1) ?? "", /^2023-11-14T22:13:20\.000000000Z,BTC\/USD,buy,30000\.00,0\.0100,.*,1,1,1$/);
  assert.equal(new Set(lines).size, lines.length);
}

async function goesBackInOrders({ page, shoot }: Watched, { venue }: Running, { width }: Size): Promise<void> {
  await choose(page, "input[name=orders-shown][value=history]");
  await until("those that ended are listed", async () => (await page.locator("#history-table tbody tr").count()) === 200);
  await assertNotCut(page, "#history-table td", "#orders-body");
  await shoot(`histories-book-${width}`);
  await choose(page, "input[name=orders-shown][value=open]");
  await page.locator("#tab-account").click();
  const rows = (): Promise<number> => page.locator("#all-orders-table tbody tr").count();
  await until("the latest are listed", async () => (await rows()) === 200);
  const [first, second] = await page.locator("#all-orders-table tbody tr").allTextContents();
  assert.match(first ?? "", /Filled at 29\s999\.50 on average$/u);
  assert.match(second ?? "", /Buy 0\.01 BTC at 30\s000\.00Cancelled/u);
  await shoot(`histories-orders-${width}`);
  const lines = (await saved(page, "#all-orders-save")).trimEnd().split("\r\n");
  assert.equal(lines.length, ORDERS + 1);
  assert.equal(lines.at(-1), [
    "2023-11-14T22:13:20.500000000Z", "BTC/USD", "buy", "limit", "30000.00", "", "0.0100", "filled", "1", "1", "0.0100", "29999.50", "0.12",
    "USD", "", "2023-11-14T22:13:20.000000000Z",
  ].join());
  // An order that ends now is at the top, once, as the venue records it.
  const market = venue.market("BTC-USD");
  venue.order(1, market, { instrument: "BTC-USD", client_order_id: "777", side: "buy", type: "limit", size: "0.0200", price: "100.00" });
  venue.massCancel(1, market);
  venue.sessions.forEach((session) => session.publish());
  const table = page.locator("#all-orders-table tbody tr");
  await until("it is listed", async () => /at 100\.00/.test((await table.first().textContent()) ?? ""));
  await until("its end is listed once", async () => {
    const own = await table.filter({ hasText: "at 100.00" }).allTextContents();
    return own.filter((row) => /Cancelled/.test(row)).length === 1;
  });
  await page.locator("#all-orders-older").click();
  await until("more are drawn", async () => (await rows()) > 300);
}

async function saved(page: Page, button: string): Promise<string> {
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator(button).click()]);
  return readFile(await download.path(), "utf8");
}
