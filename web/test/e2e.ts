// The page in a real browser, used by keyboard only: against the fake venue, or against the venue at WALRAS_URL (an address with
// its #demo= fragment). Every wait is for a condition.

import assert from "node:assert/strict";
import type { Browser, Page } from "playwright-core";
import { assertFits, atATime, blur, launch, open, retype, step, text, until, type Watched } from "./browser.ts";
import { batchSteps } from "./e2e-batch.ts";
import { docsSteps } from "./e2e-docs.ts";
import { fairSteps } from "./e2e-fair.ts";
import { historySteps } from "./e2e-histories.ts";
import { languageSteps } from "./e2e-languages.ts";
import { layoutSteps } from "./e2e-layout.ts";
import { networkSteps } from "./e2e-network.ts";
import { traderSteps } from "./e2e-trader.ts";
import { type Running, startFakeVenue } from "./fake-venue.ts";
import { assertTabStopsVisible } from "./keyboard.ts";

interface Row {
  side: string;
  price: string;
  size: string;
  own: string;
}

const outside = process.env["WALRAS_URL"];
// Without bots the fake book moves only by the test's own orders, so that exact sizes can be asserted.
const fake: Running | null = outside === undefined ? await startFakeVenue(0, 0) : null;
const address = outside ?? fake?.demoAddress ?? "";
const size = process.env["WALRAS_SIZE"] ?? "0.02";
const browser: Browser = await launch();
try {
  if (fake) {
    const parts = [layoutSteps, historySteps, networkSteps, languageSteps, traderSteps];
    await atATime(3, () => inOrder(fake), parts.map((part) => () => part(browser)));
  } else {
    await inOrder(null);
    await docsSteps(browser, address);
  }
} finally {
  await browser.close();
  await fake?.close();
}

/** The steps that go on with the venue that those before them have left. */
async function inOrder(fake: Running | null): Promise<void> {
  await step("sees the market without a key", seesMarket);
  await step("trades by keyboard, sees the fill and the book move", trades);
  await step("keeps a starred market in sight, and the panels that were chosen", keepsScreen);
  if (fake) await step("says when a resting order trades", () => tellsOfFills(fake));
  if (fake) await step("survives a lost update and a lost connection", () => survives(fake));
  await step("reads well in dark, and at 400 pixels", looks);
  await batchSteps(browser, fake, fake?.edAddress ?? address);
  await fairSteps(browser, fake, address);
}

async function seesMarket(): Promise<void> {
  const watched = await open(browser, address.replace(/#.*/, ""), { width: 1440, height: 900 });
  const { page } = watched;
  await isLive(page);
  assert.match(await text(page, "#last-price"), /\d/);
  assert.match(await page.title(), /Walras/);
  await page.waitForFunction(
    () => /^Demo day (×[\d.]+|at full speed|over)$/.test(document.querySelector("#demo-words")?.textContent ?? ""),
  );
  await until("trades are on the tape", async () => (await page.locator("#tape-body tbody tr").count()) > 0);
  assert.equal(await page.locator("#submit").isDisabled(), true, "no order without a key");
  assert.equal(await page.getByText("To trade, this page needs an API key").isVisible(), true);
  await page.keyboard.press("k");
  await page.keyboard.type("not a key");
  await page.keyboard.press("Enter");
  await page.getByText("A key looks like").waitFor();
  await page.keyboard.press("Escape");
  await assertTabStopsVisible(
    page,
    [
      /Skip/, /Instrument/, /steps of/, /Price in the order book/, /Indicators/, /interval|10s/i, /Alerts/, /Settings/, /Buy/, /Price/,
      /Size/,
    ],
  );
  await blur(page);
  await page.keyboard.press("t");
  await page.locator("html[data-theme=light]").waitFor();
  await page.keyboard.press("t");
  await page.locator("html[data-theme=dark]").waitFor();
  if (fake) {
    const asks = await book(page);
    await page.keyboard.press("i");
    await page.locator("#markets[open]").waitFor();
    await page.keyboard.type("eth");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.title.includes("ETH/USD"));
    await isLive(page);
    await until("the book is the other instrument's", async () => Number((await book(page))[0]?.price) < Number(asks[0]?.price) / 2);
    assert.match(page.url(), /#ETH-USD$/);
  }
  await watched.shoot("dark-no-key");
  await watched.assertClean();
  await page.context().close();
}

async function trades(): Promise<void> {
  const watched = await open(browser, address, { width: 1440, height: 900 });
  const { page } = watched;
  await isLive(page);
  await isSignedIn(page);
  assert.ok(!page.url().includes("demo="), "the key is taken out of the address");
  await page.locator("#balances-table tbody tr").first().waitFor();

  if ((await page.locator("#orders-table tbody tr").count()) > 0) {
    await page.keyboard.press("x");
    await page.waitForFunction(() => document.querySelectorAll("#orders-table tbody tr").length === 0);
  }
  await takesFromTheBook(page);
  await restsAmendsCancels(page);

  // A reject says its number and what to do.
  await enterOrder(page, "b", await beyondAsks(page), "999999");
  await page.locator("#ticket-answer[data-tone=bad]").waitFor();
  assert.match(await text(page, "#ticket-answer"), /Refused, no\. \d+: [A-Z].+[a-z]/);
  // A wrong field is found before anything is sent.
  await enterOrder(page, "b", "1.2.3", size);
  await page.locator("#ticket-price[aria-invalid=true]").waitFor();
  assert.match(await text(page, "#ticket-answer"), /Not sent/);

  // Two orders, cancelled all at once.
  const low = await deepestBid(page);
  for (const _ of [1, 2]) await enterAndAwait(page, "b", low, size, /Standing in the book/);
  await page.waitForFunction(() => document.querySelectorAll("#orders-table tbody tr").length === 2);
  await cancelsOneKeepsFocus(page);
  await enterAndAwait(page, "b", low, size, /Standing in the book/);
  await clicksLadder(page);
  await watched.shoot("light-1440");
  await blur(page);
  await page.keyboard.press("x");
  await page.waitForFunction(() => document.querySelectorAll("#orders-table tbody tr").length === 0);

  await page.keyboard.press("?");
  await page.locator("#help[open]").waitFor();
  await watched.shoot("light-help");
  await page.keyboard.press("Escape");
  await watched.assertClean();
  await page.context().close();
}

async function takesFromTheBook(page: Page): Promise<void> {
  const before = await book(page);
  const best = before.filter(({ side }) => side === "Ask").at(-1);
  assert.ok(best, "somebody sells");
  const newestFill = (): Promise<string> => page.locator("#fills-table tbody").evaluate((body) => body.querySelector("tr")?.title ?? "");
  const fillBefore = await newestFill();
  await enterAndAwait(page, "b", await beyondAsks(page), size, /^Filled/);
  await until("the fill is listed", async () => (await newestFill()) !== fillBefore);
  await page.locator("#tape-body tr.mine").first().waitFor();
  await until("the book moved", async () => JSON.stringify(await book(page)) !== JSON.stringify(before));
  assert.match(await text(page, "#live-polite"), /Bought/);
  if (fake) {
    const after = (await book(page)).find(({ price, side }) => price === best.price && side === "Ask");
    const left = Number(best.size) - Number(size);
    if (left > 0) assert.equal(Number(after?.size).toFixed(4), left.toFixed(4), "the best ask shrank by what was bought");
    else assert.equal(after, undefined, "the best ask was taken whole");
  }
}

async function restsAmendsCancels(page: Page): Promise<void> {
  // The price comes from the ladder, by arrow keys.
  await blur(page);
  await page.keyboard.press("l");
  await page.keyboard.press("End");
  for (let key = 0; key < 8; key += 1) await page.keyboard.press("ArrowDown");
  const spoken = await page.locator("#ladder-slider").getAttribute("aria-valuetext");
  const price = /^Bid ([\d.]+), size/.exec(spoken ?? "")?.[1];
  assert.ok(price, `the ladder speaks a bid: ${spoken}`);
  await page.keyboard.press("Enter");
  assert.equal(await page.inputValue("#ticket-price"), price);
  await retype(page, size);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /Standing in the book/.test(document.querySelector("#ticket-answer")?.textContent ?? ""));
  await page.locator("#orders-table tbody tr").first().waitFor();
  await until("the ladder marks it as one's own", async () => (await book(page)).some((row) => row.price === price && Number(row.own) > 0));

  // Amend: half the size, in place.
  const half = String(Number(size) / 2);
  await blur(page);
  await page.keyboard.press("o");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  await retype(page, half);
  await page.keyboard.press("Enter");
  await until(
    "the order shrank",
    async () => Number((await text(page, "#orders-table tbody tr td:nth-child(3)")).replace(/\s/g, "")) === Number(half),
  );

  // Cancel: the button next to it.
  await blur(page);
  await page.keyboard.press("o");
  await page.keyboard.press("Tab");
  assert.match(await page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? ""), /^Cancel: buy/);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll("#orders-table tbody tr").length === 0);
  await until("the ladder's mark is gone", async () => (await book(page)).every((row) => row.own === ""));
}

/** Of two orders one is cancelled; the focus stays on the button of the one that moves into its place. */
async function cancelsOneKeepsFocus(page: Page): Promise<void> {
  await blur(page);
  await page.keyboard.press("o");
  await page.keyboard.press("Tab");
  const focused = (): Promise<string> => page.evaluate(() => document.activeElement?.closest("tr")?.title ?? "");
  const first = await focused();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll("#orders-table tbody tr").length === 1);
  const next = await focused();
  assert.ok(next !== "" && next !== first, `the focus went on to the next order: ${next}`);
  assert.match(await page.evaluate(() => document.activeElement?.textContent ?? ""), /^Cancel$/);
}

/** The one thing done by mouse: a click on a price takes it into the ticket. */
async function clicksLadder(page: Page): Promise<void> {
  const ladder = page.locator("#ladder-slider");
  const box = await ladder.boundingBox();
  assert.ok(box);
  await page.fill("#ticket-price", "");
  await ladder.click({ position: { x: box.width / 2, y: box.height * 0.62 } });
  const taken = Number(await page.inputValue("#ticket-price"));
  const best = Number((await text(page, "#best-bid")).replace(/\s/g, ""));
  assert.ok(taken > 0 && taken < best * 1.01, `a bid was clicked, the ticket has ${taken}`);
}

async function keepsScreen(): Promise<void> {
  const watched = await open(browser, address.replace(/#.*/, ""), { width: 1440, height: 900 });
  const { page } = watched;
  await isLive(page);
  const symbol = await text(page, "#instrument");
  await page.keyboard.press("i");
  await page.locator("#markets tr.chosen .star").click();
  await page.keyboard.press("Escape");
  // The two are drawn one after the other, so they are compared until they agree.
  const agrees = async (): Promise<boolean> => {
    const [entry = "", last = "", change = ""] = await page.evaluate(() => ["#watch-body button", "#last-price", "#change"]
      .map((selector) => (document.querySelector(selector)?.textContent ?? "").replace(/\s/gu, "")));
    return /\d/.test(last) && entry === `${symbol}${last}${change.replace(/^[▲▼]/u, "")}`;
  };
  await until("its price and change are those at the head of the page", agrees);
  await page.locator("#settings-button").press("Enter");
  await page.locator("#show-tape").press("Space");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#tape").isVisible(), false);
  await page.reload();
  await isLive(page);
  await until("the market is still starred", agrees);
  assert.equal(await page.locator("#tape").isVisible(), false, "and the trades are still hidden");
  await assertFits(page, "the chosen panels", { width: 1440 });
  await watched.assertClean();
  await page.context().close();
}

async function tellsOfFills(running: Running): Promise<void> {
  const watched = await open(browser, address, { width: 1440, height: 900 });
  const { page } = watched;
  await isLive(page);
  await isSignedIn(page);
  const best = (await book(page)).find(({ side }) => side === "Bid");
  const price = (Number(best?.price) + 0.01).toFixed(2);
  await enterAndAwait(page, "b", price, "0.3", /Standing in the book/);
  await until("the ladder marks it", async () => (await book(page)).some((row) => row.price === price && Number(row.own) === 0.3));
  running.venue.sellAtMarket("BTC-USD", 0.1);
  await page.locator(".notice").waitFor();
  assert.match(await text(page, ".notice"), /Your order traded.*Bought 0\.1 /);
  assert.match(await text(page, "#live-polite"), /Bought 0\.1 /);
  await until("what is left is shown", async () => (await book(page)).some((row) => row.price === price && Number(row.own) === 0.2));
  await watched.shoot("light-notice");
  await blur(page);
  await page.keyboard.press("x");
  await page.waitForFunction(() => document.querySelectorAll("#orders-table tbody tr").length === 0);
  await watched.assertClean();
  await page.context().close();
}

async function survives(running: Running): Promise<void> {
  const watched = await open(browser, address, { width: 1440, height: 900 });
  const { page } = watched;
  await isLive(page);
  await isSignedIn(page);
  for (const session of running.venue.sessions) session.loseOneBookUpdate = true;
  running.venue.botSteps(20);
  await until("the update was lost", async () => [...running.venue.sessions].every((session) => !session.loseOneBookUpdate));
  running.venue.botSteps(20);
  await until("the page asked for a new snapshot and agrees again", () => agrees(page, running));

  // As after a restart: the page signs in again with the first stamp that is taken.
  running.venue.forgetNonces();
  for (const session of running.venue.sessions) session.close(4008);
  await page.locator("#connection[data-state=waiting]").waitFor();
  running.venue.botSteps(20);
  await isLive(page);
  await isSignedIn(page);
  await until("the book is fresh again", () => agrees(page, running));
  await watched.assertClean();
  await page.context().close();
}

async function agrees(page: Page, running: Running): Promise<boolean> {
  const shown = await book(page);
  const { book: truth, priceDecimals } = running.venue.market("BTC-USD");
  const best = [...truth.depth("buy")].slice(0, 10).map(([price, level]) => `${price} ${level.size}`);
  const bids = shown.filter(({ side }) => side === "Bid")
    .map(({ price, size: much }) => `${Math.round(Number(price) * 10 ** priceDecimals)} ${Math.round(Number(much) * 1e4)}`);
  return JSON.stringify(best) === JSON.stringify(bids);
}

async function looks(): Promise<void> {
  const shots: [string, Parameters<typeof open>[2]][] = [
    ["dark-1440", { width: 1440, height: 900, dark: true }], ["light-1920", { width: 1920, height: 1080 }],
    ["dark-1100", { width: 1100, height: 900, dark: true }], ["light-400", { width: 400, height: 860 }],
    ["dark-400", { width: 400, height: 860, dark: true }],
  ];
  for (const [name, size] of shots) {
    const watched: Watched = await open(browser, address, size);
    await isLive(watched.page);
    await isSignedIn(watched.page);
    await watched.shoot(name);
    await assertFits(watched.page, name, size);
    await watched.assertClean();
    await watched.page.context().close();
  }
}

async function isLive(page: Page): Promise<void> {
  await page.locator("#connection[data-state=live]").waitFor();
  await page.waitForFunction(() => document.querySelectorAll("#book-table tbody tr").length > 5);
  await page.waitForFunction(() => /\d/.test(document.querySelector("#best-bid")?.textContent ?? ""));
  await page.locator("#chart-plot canvas").first().waitFor();
  await page.locator("#depth-plot canvas").first().waitFor();
}

async function isSignedIn(page: Page): Promise<void> {
  await page.waitForFunction(() => !(document.querySelector("#submit") as HTMLButtonElement).disabled);
}

async function book(page: Page): Promise<Row[]> {
  return page.locator("#book-table tbody tr").evaluateAll((rows) => rows.map((row) => {
    const [side = "", price = "", size = "", , own = ""] = [...(row as HTMLTableRowElement).cells].map((cell) => cell.textContent ?? "");
    return { side, price, size, own };
  }));
}

/** A price that takes whatever is listed, and some more in case the market moves meanwhile. */
async function beyondAsks(page: Page): Promise<string> {
  const worst = (await book(page)).find(({ side }) => side === "Ask")?.price ?? "";
  const tick = Number((await text(page, "#book-step option")).replace(/\s/g, ""));
  return (Number(worst) + 50 * tick).toFixed(worst.split(".")[1]?.length ?? 0);
}

async function deepestBid(page: Page): Promise<string> {
  return (await book(page)).filter(({ side }) => side === "Bid").at(-1)?.price ?? "";
}

/** By keyboard: side, price, size, Enter. */
async function enterOrder(page: Page, side: "b" | "s", price: string, much: string): Promise<void> {
  await blur(page);
  await page.keyboard.press(side);
  await retype(page, much);
  await blur(page);
  await page.keyboard.press("p");
  await retype(page, price);
  await page.keyboard.press("Enter");
}

async function enterAndAwait(page: Page, side: "b" | "s", price: string, much: string, answer: RegExp): Promise<void> {
  const before = await text(page, "#ticket-answer");
  await enterOrder(page, side, price, much);
  await until(`the ticket answers ${answer}`, async () => {
    const now = await text(page, "#ticket-answer");
    return now !== before && answer.test(now);
  });
}
