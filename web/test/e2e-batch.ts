// The batch view in a real browser. Against the fake venue blocks come when the test says so; against a real one (WALRAS_URL) as they come,
// and offers are made only if the address carries an Ed25519 key. WALRAS_HAS_ALL says that the venue has batch markets and such a key:
// then nothing is left out.

import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import type { Browser, Page } from "playwright-core";
import { assertFits, blur, open, retype, step, text, until, type Watched } from "./browser.ts";
import type { Running } from "./fake-venue.ts";
import { assertTabStopsVisible } from "./keyboard.ts";

const WIDE = { width: 1440, height: 900 };

/** A browser of before 2025. As text: what is made of a function of this file needs helpers that the page lacks. */
const NO_ED25519 = `
  const { importKey } = SubtleCrypto.prototype;
  SubtleCrypto.prototype.importKey = function (...args) {
    if (args[2].name === "Ed25519") return Promise.reject(new DOMException("Unrecognized name", "NotSupportedError"));
    return importKey.apply(this, args);
  };
`;

interface Stage {
  browser: Browser;
  fake: Running | null;
  address: string;
}

export async function batchSteps(browser: Browser, fake: Running | null, address: string): Promise<void> {
  const stage = { browser, fake, address };
  const hasAll = process.env["WALRAS_HAS_ALL"] !== undefined;
  if (!fake && !hasAll && !(await hasBatches(address))) return console.log("--  the venue has no batch market: its view is not tried");
  await step("batch: sees all prices without a key, and they move", () => seesPrices(stage));
  if (hasAll || /#demo=ed_/.test(address)) {
    await step("batch: offers, stands, trades, cancels by keyboard", () => offers(stage));
    await step("batch: opens a pool, adds to it, takes out of it", () => pools(stage));
  }
  if (fake) {
    await step("batch: says what stands in the way of an offer", () => refusesWithAdvice(stage, fake));
    await step("batch: says when blocks go wrong one after the other", () => goesWrong(stage, fake));
    await step("batch: survives a lost connection", () => survives(stage, fake));
    await step("batch: has no tab where the venue has none", () => isAbsent(stage, fake));
  }
  await step("batch: reads well in dark, and at 400 pixels", () => looks(stage));
}

async function seesPrices(stage: Stage): Promise<void> {
  const watched = await open(stage.browser, stage.address.replace(/#.*/, ""), WIDE);
  const { page } = watched;
  await page.locator("#tab-batch").click();
  await isShown(page);
  assert.match(page.url(), /#batch$/);
  assert.equal(await page.locator("#view-book").isVisible(), false);
  assert.equal(await page.locator("#tab-batch").getAttribute("aria-current"), "page");
  assert.match(await text(page, "#offer-hint"), /Ed25519 key/);
  assert.equal(await page.locator("#offer-submit").isDisabled(), true, "no offer without a key");

  const before = { prices: await prices(page), block: await text(page, "#batch-block") };
  assert.ok(
    before.prices.length > 2 && before.prices.every((price) => /^\d/.test(price) || price.startsWith("No cycle")), String(before.prices),
  );
  await nextBlock(stage, page);
  await until("prices moved", async () => (await prices(page)).join() !== before.prices.join());
  assert.notEqual(await text(page, "#batch-block"), before.block);
  await until(
    "the block is listed first",
    async () => (await text(page, "#batch-block")).replace("№", "").trim() === (await text(page, "#blocks-table tbody td")),
  );
  await page.waitForFunction(() => /^Block .+Walras$/.test(document.title));

  // Another pair, by its prices: arrow keys choose what is sold.
  await blur(page);
  await page.keyboard.press("l");
  const sold = (): Promise<string> => page.locator("#curves-sell").inputValue();
  const first = await sold();
  await page.keyboard.press("ArrowRight");
  await until("the pair changed", async () => (await sold()) !== first);
  await crosses(page);
  const bought = (): Promise<string> => page.locator("#curves-buy").inputValue();
  const [was, forWhat] = [await sold(), await bought()];
  await page.locator("#curves-swap").click();
  await until("the pair is turned around", async () => (await sold()) === forWhat && (await bought()) === was);
  await crosses(page);
  if (stage.fake) await crossesInFact(stage, page);

  await blur(page);
  await toBook(page);
  assert.equal(await page.locator("#view-batch").isVisible(), false);
  await page.keyboard.press("v");
  await isShown(page);
  await page.reload();
  await isShown(page);
  await assertTabStopsVisible(
    page, [/Skip to your offer/, /Order book/, /^a Batch/, /Sell [A-Z]+/, /Asset that is sold/, /Turn the pair/, /limit/i, /Blocks/i],
  );
  await watched.assertClean();
  await page.context().close();
}

/** By keyboard: V goes through all views; a venue with fair access has three. */
async function toBook(page: Page): Promise<void> {
  const shown = (): Promise<string> => text(page, "#views a[aria-current]");
  while ((await shown()) !== "Order book") {
    const before = await shown();
    await page.locator("body").press("v");
    await until("another view is shown", async () => (await shown()) !== before);
  }
  await page.locator("#view-book").locator("#book").waitFor();
}

async function offers(stage: Stage): Promise<void> {
  const watched = await open(stage.browser, stage.address, WIDE);
  const { page } = watched;
  await page.locator("#tab-batch").waitFor();
  await page.keyboard.press("v");
  await isShown(page);
  await canOffer(page);
  assert.ok(!page.url().includes("demo="), "the key is taken out of the address");
  const sell = await page.locator("#offer-sell").inputValue();
  await crosses(page);
  const rate = Number((await page.locator("#offer-limit").inputValue()).replace(/\s/g, ""));
  assert.ok(rate > 0, "the limit is suggested");

  // What an earlier run left goes first.
  if ((await page.locator("#offers-table tbody tr").count()) > 0) {
    await page.keyboard.press("x");
    await until("older offers are gone", async () => (await page.locator("#offers-table tbody tr").count()) === 0);
  }
  const newestFill = (): Promise<string> => page.locator("#offer-fills-table tbody").evaluate(
    (body) => body.querySelector("tr")?.textContent ?? "",
  );

  // Far from the price it is collected, then stands.
  await enter(page, "100", (rate * 1.05).toPrecision(5));
  assert.match(await text(page, "#offer-prospect"), /waits until|^$/);
  if (stage.fake) {
    await until("it is listed as collected", async () => /in block/.test(await text(page, "#offers-table tbody tr")));
    await watched.shoot("batch-collected");
  }
  await nextBlock(stage, page);
  await until("it stands", async () => /since/.test(await text(page, "#offers-table tbody tr")));
  await until("the ticket says so", async () => /It stands/.test(await text(page, "#offer-answer")));
  assert.match(await text(page, "#offers-table tbody tr"), new RegExp(`100\\s${sell}`));

  // What is shown of it hashes to the block's state root, which is whole in the title.
  if (stage.fake) await isChecked(stage.fake, page, sell);

  // Below the price it trades in the next block, at the block's price and not its own.
  await enter(page, "50", (rate * 0.98).toPrecision(5));
  await nextBlock(stage, page);
  await until("it traded", async () => /^Traded/.test(await text(page, "#offer-answer")));
  await until("the trade is listed", async () => new RegExp(`▼ 50\\s${sell}`).test(await newestFill()));
  const got = Number((await text(page, "#offer-fills-table tbody td:nth-child(4)")).replace(/\s/g, ""));
  assert.ok(got > rate * 0.995, `it got the block's rate, ${got}, not its limit`);
  assert.match(await text(page, "#live-polite"), /Sold 50 /);
  assert.equal(await page.locator("#offers-table tbody tr").count(), 1);

  // At any price.
  await blur(page);
  await page.locator("input[name=offer-price][value=any]").check();
  await page.locator("#offer-limit").waitFor({ state: "hidden" });
  await page.fill("#offer-amount", "10");
  await page.keyboard.press("Enter");
  await answers(page, /Collected/);
  await nextBlock(stage, page);
  await until("it traded too", async () => new RegExp(`▼ 10\\s${sell}`).test(await newestFill()));

  // A wrong field is found before anything is signed; the limit's key brings the field back.
  await enter(page, "10", "1.2.3", /Not sent/);
  assert.equal(await page.locator("#offer-limit").getAttribute("aria-invalid"), "true");
  // More than there is: it is not signed. What there is goes elsewhere meanwhile: the batch leaves it out, and says why.
  if (stage.fake) {
    await enter(page, "99999999", String(rate), /Not sent/);
    await enter(page, "60000", (rate * 1.05).toPrecision(5));
    stage.fake.venue.spend("EUR", 10_000_000n);
    await nextBlock(stage, page);
    stage.fake.venue.spend("EUR", -10_000_000n);
    await page.locator(".notice[data-tone=bad]").waitFor();
    assert.match(await text(page, ".notice[data-tone=bad]"), /Transaction \d+ left out \(18: Overdraft\).+spend more/);
  }

  // Two more; one is cancelled by its button, the focus goes on to the next, X cancels what is left.
  for (const _ of [1, 2]) await enter(page, "20", (rate * 1.05).toPrecision(5));
  await nextBlock(stage, page);
  await until(
    "three stand",
    async () => (await page.locator("#offers-table tbody tr").allTextContents()).filter((row) => /since/.test(row)).length === 3,
  );
  await blur(page);
  await page.keyboard.press("o");
  await page.keyboard.press("Enter");
  if (stage.fake) await until("its cancel is collected", async () => /cancel in/.test(await text(page, "#offers-table tbody tr")));
  if (stage.fake) await watched.shoot("batch-light-1440");
  await nextBlock(stage, page);
  await until("it is gone", async () => (await page.locator("#offers-table tbody tr").count()) === 2);
  assert.match(await page.evaluate(() => document.activeElement?.textContent ?? ""), /^Cancel$/);
  await blur(page);
  await page.keyboard.press("x");
  if (stage.fake) {
    await until(
      "the cancels are collected",
      async () => (await page.locator("#offers-table tbody tr").allTextContents()).every((row) => /cancel in/.test(row)),
    );
  }
  await nextBlock(stage, page);
  await until("all are gone", async () => (await page.locator("#offers-table tbody tr").count()) === 0);

  await page.keyboard.press("?");
  await page.locator("#help[open]").waitFor();
  assert.match(await text(page, "#help"), /nobody is first/);
  await watched.shoot("batch-help");
  await watched.assertClean();
  await page.context().close();
}

/** Opens a pool of the chosen pair, adds to it, takes all of it out again. */
async function pools(stage: Stage): Promise<void> {
  const watched = await open(stage.browser, stage.address, WIDE);
  const { page } = watched;
  await page.locator("#tab-batch").click();
  await isShown(page);
  await canOffer(page);
  const [first, second] = [await page.locator("#offer-sell").inputValue(), await page.locator("#offer-buy").inputValue()];
  await crosses(page);
  const rate = Number((await page.locator("#offer-limit").inputValue()).replace(/\s/g, ""));
  await page.locator("#pools-show").click();
  await page.locator("#pool-form").waitFor();
  assert.equal(await page.locator("#curves").isVisible(), false);
  if (stage.fake) await seesPools(watched);
  const rows = (): Promise<string[]> => page.locator("#pools-table tbody tr").allTextContents();
  const before = (await rows()).length;
  const ready = (): Promise<void> => until("it can be sent", async () => !(await page.locator("#pool-submit").isDisabled()));
  const says = (expected: RegExp): Promise<void> =>
    until(`the ticket says ${expected}`, async () => expected.test(await text(page, "#pool-answer")));
  const done = async (): Promise<void> => {
    await says(/Collected|Done/);
    await nextBlock(stage, page);
    await says(/^Done in block/);
  };

  // Nothing is signed that is wrong here; then a pool is opened by keyboard.
  await ready();
  await page.fill("#pool-first", "200");
  // Of a pool of 60 : 40, whose price is then the market's.
  await page.fill("#pool-second", String(Math.round((200 * rate * 40) / 60)));
  await page.fill("#pool-fee", "10.5");
  await page.keyboard.press("Enter");
  await says(/Not sent.*0 to 10 %/);
  await page.fill("#pool-fee", "0.25");
  await page.selectOption("#pool-rule", "weighted");
  await page.fill("#pool-weights", "60 : 40");
  assert.match(await text(page, "#pool-form .sum"), /It gives\d[\d\s]* shares/);
  await page.keyboard.press("Enter");
  await done();
  await until("the pool is listed", async () => (await rows()).length === before + 1);
  const row = page.locator("#pools-table tbody tr", { hasText: "weighted 60 : 40" }).last();
  const own = async (column: number): Promise<string> => plain(await row.locator(`td:nth-child(${column})`).innerText());
  await until("it is one's own, whole", async () => /^100 %( ✓)?$/.test((await own(4)).split("\n")[0] ?? ""));
  // The light client checks the shares against the root in the feed, after the next block perhaps.
  await until("the shares are checked", async () => {
    if (/^100 % ✓$/.test((await own(4)).split("\n")[0] ?? "")) return true;
    if (stage.fake) await makeBlock(stage.fake);
    return false;
  });
  assert.match((await row.getAttribute("title")) ?? "", /✓ Checked: it was so after block/);
  assert.match(await own(1), new RegExp(`^${first} / ${second}$`));
  assert.equal(await own(3), "weighted 60 : 40\n0.25 %");

  // Typing one amount fills in the other by the ratio; the part stays whole.
  await row.locator("[data-action=deposit]").click();
  await until("the field has the focus", async () => page.evaluate(() => document.activeElement?.id === "pool-first"));
  await page.keyboard.type("50");
  await until("the other amount is suggested", async () => Number(await page.locator("#pool-second").inputValue()) > 0);
  await page.keyboard.press("Enter");
  await done();
  const amounts = async (column: number): Promise<number[]> =>
    (await own(column)).split("\n").slice(-2).map((line) => Number(line.replace(/[^\d.]/g, "")));
  await until("it has more", async () => ((await amounts(2))[0] ?? 0) > 201);
  // What one owns is asked for apart from the list, and may come a moment later.
  if (stage.fake) await until("all of it is one's own", async () => isDeepStrictEqual(await amounts(2), await amounts(4)));
  await watched.shoot("batch-pools");
  await row.locator("[data-action=withdraw]").click();
  await ready();
  await page.fill("#pool-shares", "999999999999");
  await page.keyboard.press("Enter");
  await says(/Not sent.*take out no more/);
  if (stage.fake) await leavesOut(stage.fake, page, says);
  await row.locator("[data-action=withdraw]").click();
  await page.locator("#pool-form .shares button").last().click();
  await page.locator("#pool-submit").click();
  await done();
  await until("it is gone", async () => (await rows()).length === before);

  await page.locator("#pools-hide").click();
  await page.locator("#curves").waitFor();
  assert.equal(await page.locator("#pool").isVisible(), false);
  await page.locator("#pools-show").click();
  await blur(page);
  await page.keyboard.press("z");
  await until("the offer's key leads back to it", async () => page.evaluate(() => document.activeElement?.id === "offer-amount"));
  await watched.assertClean();
  await page.context().close();
}

/** Other accounts' pools: each rule in words, and no part of one's own. */
async function seesPools({ page }: Watched): Promise<void> {
  await until("pools are listed", async () => (await page.locator("#pools-table tbody tr").count()) === 3);
  const shown = await page.locator("#pools-table tbody tr").evaluateAll((all) =>
    all.map((row) => [...(row as HTMLTableRowElement).cells].map(({ innerText }) => innerText)));
  assert.deepEqual(shown.map((cells) => [cells[0], cells[2], cells[3]].map((cell) => plain(cell ?? ""))), [
    ["EUR / USD", "constant product\n0.3 %", "–"], ["BTC / USD", "weighted 80 : 20\n0.1 %", "–"],
    ["EUR / CHF", "stable swap, A = 200\n0.01 %", "–"],
  ]);
  assert.match(shown[0]?.[1] ?? "", /^924\s000.00 EUR\n1\s000\s876.80 USD$/u);
  assert.match(await text(page, "#pools-title"), /\(3\)/);
  assert.equal(await page.locator("#pools-table [data-action=withdraw]").first().isVisible(), false, "nothing to take out");
}

/** With plain spaces. */
function plain(shown: string): string {
  return shown.replaceAll("\u00a0", " ");
}

/** The balance is spent elsewhere after the deposit was signed: the batch leaves the deposit out, and the ticket says why. */
async function leavesOut(fake: Running, page: Page, says: (expected: RegExp) => Promise<void>): Promise<void> {
  await page.locator("#pools-table tbody tr", { hasText: "EUR / CHF" }).locator("[data-action=deposit]").click();
  await page.fill("#pool-first", "1000");
  await page.keyboard.press("Enter");
  await says(/Not sent/);
  fake.venue.spend("CHF", -1_000_000n);
  fake.venue.sessions.forEach((session) => session.onPrivate(1, {}));
  await until("there is enough", async () => /You have[^C]*EUR10\s000.00 CHF/.test(await text(page, "#pool-form .sum")));
  await page.fill("#pool-first", "1001");
  await page.locator("#pool-submit").click();
  await says(/Collected/);
  fake.venue.spend("CHF", 1_000_000n);
  await makeBlock(fake);
  await says(/left out \(18/);
  await page.locator(".notice[data-tone=bad] button").first().click();
}

/** The light client checks the offer and the balance against the root in the feed, and finds out a venue that errs. */
async function isChecked(fake: Running, page: Page, asset: string): Promise<void> {
  const { batch } = fake.venue;
  const held = (): Promise<string> => text(page, `.component[data-asset="${asset}"] .held`);
  // After another block the page asks again.
  const says = (what: string, holds: () => Promise<boolean>): Promise<void> => until(what, async () => {
    if (await holds()) return true;
    await makeBlock(fake);
    return false;
  });
  await says("the offer is checked", async () => /✓$/.test(await text(page, "#offers-table tbody tr td:nth-child(4)")));
  await says("the balance is checked", async () => /✓$/.test(await held()));
  assert.match(await text(page, "#proof-words"), /state root, last that of block [\d\s]+: [0-9a-f]{8}…[0-9a-f]{8}\. The root comes from/u);
  const root = /[0-9a-f]{64}$/.exec((await page.locator("#proof-words").getAttribute("title")) ?? "")?.[0];
  assert.ok(batch.blocks.some(({ state_root }) => state_root === root), "it is the root of a block in the feed");
  batch.miscounts = 1n;
  await says("what differs from the proof is marked", async () => /⚠$/.test(await held()));
  await until("the words say so", async () => /^⚠ means: the venue's own proof differs/.test(await text(page, "#proof-words")));
  batch.miscounts = 0n;
  await says("it is checked again", async () => /✓$/.test(await held()));
}

/** Each way in which an offer cannot be signed here, and what the page says of it. */
async function refusesWithAdvice(stage: Stage, fake: Running): Promise<void> {
  const { batch } = fake.venue;
  const key = batch.transactionKey;
  const says = async (address: string, expected: RegExp, options: { init?: string; errors?: RegExp } = {}): Promise<void> => {
    const watched = await open(stage.browser, address, { ...WIDE, ...(options.init ? { init: options.init } : {}) });
    await watched.page.locator("#tab-batch").click();
    await until(`the page says ${expected}`, async () => expected.test(await text(watched.page, "#offer-hint")));
    assert.equal(await watched.page.locator("#offer-submit").isDisabled(), true);
    await watched.assertClean(options.errors);
    await watched.page.context().close();
  };
  await says(fake.demoAddress, /This key can look, not offer.*Ed25519/);
  await says(fake.edAddress, /This browser cannot sign offers.*Chrome 137/, { init: NO_ED25519 });
  batch.transactionKey = null;
  await says(fake.edAddress, new RegExp(`no transaction key yet.*account 1.*${key}`));
  batch.transactionKey = "11".repeat(32);
  await says(fake.edAddress, /signs with another key/);
  batch.transactionKey = key;

  batch.phase = "closed";
  const watched = await open(stage.browser, fake.edAddress, WIDE);
  await watched.page.locator("#tab-batch").click();
  await until(
    "the page says that the market is closed", async () => /The market is closed/.test(await text(watched.page, "#offer-submit")),
  );
  assert.match(await text(watched.page, "#batch-phase"), /Closed/);
  batch.phase = "open";
  await watched.assertClean();
  await watched.page.context().close();
}

async function survives(stage: Stage, fake: Running): Promise<void> {
  const watched = await open(stage.browser, stage.address, WIDE);
  const { page } = watched;
  await page.locator("#tab-batch").click();
  await canOffer(page);
  for (const session of fake.venue.sessions) session.close(4008);
  await page.locator("#connection[data-state=waiting]").waitFor();
  await makeBlock(fake);
  const { block } = fake.venue.batch.blocks.at(-1) ?? { block: "" };
  await until("the missed block is there", async () => (await text(page, "#batch-block")).replace(/\D/g, "") === block);
  await canOffer(page);
  await watched.assertClean();
  await page.context().close();
}

async function isAbsent(stage: Stage, fake: Running): Promise<void> {
  fake.venue.hasBatches = false;
  const watched = await open(stage.browser, `${fake.address}/#batch`, WIDE);
  const { page } = watched;
  await page.locator("#book-table tbody tr").first().waitFor({ state: "attached" });
  assert.equal(await page.locator("#tab-batch").isVisible(), false);
  await page.keyboard.press("v");
  await page.locator("#account-head").waitFor();
  assert.equal(await page.locator("#view-batch").isVisible(), false);
  await page.keyboard.press("v");
  await page.locator("#book").waitFor();
  // That the address has nothing is how the page learns it; the browser logs it.
  await watched.assertClean(/404/);
  await page.context().close();
  fake.venue.hasBatches = true;
}

async function looks(stage: Stage): Promise<void> {
  const shots: [string, Parameters<typeof open>[2]][] = [
    ["batch-dark-1440", { ...WIDE, dark: true }], ["batch-light-1920", { width: 1920, height: 1080 }],
    ["batch-dark-1100", { width: 1100, height: 900, dark: true }],
    ["batch-light-800", { width: 800, height: 900 }], ["batch-light-400", { width: 400, height: 860 }],
    ["batch-dark-400", { width: 400, height: 860, dark: true }],
  ];
  for (const [name, size] of shots) {
    const watched: Watched = await open(stage.browser, stage.address, size);
    await watched.page.locator("#tab-batch").click();
    await isShown(watched.page);
    stage.fake?.venue.batch.botSteps(60);
    await nextBlock(stage, watched.page);
    await crosses(watched.page);
    await watched.shoot(name);
    await assertFits(watched.page, name, size);
    await watched.assertClean();
    await watched.page.context().close();
  }
}

async function hasBatches(address: string): Promise<boolean> {
  const response = await fetch(new URL("/v1/batches", address));
  return response.ok && ((await response.json()) as { batches: unknown[] }).batches.length > 0;
}

async function isShown(page: Page): Promise<void> {
  await page.locator("#view-batch").locator("#curves").waitFor();
  await page.waitForFunction(() => /\d/.test(document.querySelector("#batch-block")?.textContent ?? ""));
  await page.locator("#curves-plot canvas").waitFor();
}

async function canOffer(page: Page): Promise<void> {
  await page.waitForFunction(() => !(document.querySelector("#offer-submit") as HTMLButtonElement).disabled);
}

async function prices(page: Page): Promise<string[]> {
  return page.locator(".component .worth").evaluateAll((all) => all.map((each) => each.getAttribute("title") ?? ""));
}

/** Two blocks may be chance, three are said, in each width and without a word cut; nothing cleared is said before what was set aside. */
async function goesWrong({ browser, address }: Stage, fake: Running): Promise<void> {
  const { batch } = fake.venue;
  for (const size of [WIDE, { width: 390, height: 844 }]) {
    const watched = await open(browser, address, size);
    const { page } = watched;
    await page.locator("#tab-batch").click();
    await isShown(page);
    const says = async (idle: number, aside: number, expected: RegExp): Promise<void> => {
      [batch.idleBlocks, batch.asideBlocks] = [idle, aside];
      await until(`it says ${expected}`, async () => {
        if (expected.test(await text(page, "#batch-block-words"))) return true;
        await makeBlock(fake);
        return false;
      });
    };
    await says(0, 3, /^Some assets were set aside in each of the last 3 blocks: their offers wait, ask the operator$/);
    const cut = await page.locator("#batch-block-words").evaluate((words) => words.scrollWidth > words.clientWidth + 1);
    assert.equal(cut, false);
    await assertFits(page, "blocks that go wrong", size);
    await watched.shoot(`batch-aside-${size.width}`);
    if (size === WIDE) await says(4, 5, /^Nothing could be cleared in the last 4 blocks/);
    else await says(0, 2, /one set of prices$/);
    await watched.assertClean();
    await page.context().close();
  }
  [batch.idleBlocks, batch.asideBlocks] = [0, 0];
}

async function makeBlock(fake: Running): Promise<void> {
  fake.venue.batch.botSteps(60);
  if (fake.venue.batch.collected === 0) fake.venue.batch.collected = 1;
  fake.venue.closeBatch();
  fake.venue.clearBatch();
}

/** The page shows a block that it did not show before. */
async function nextBlock(stage: Stage, page: Page): Promise<void> {
  const before = await text(page, "#batch-block");
  if (stage.fake) await makeBlock(stage.fake);
  await until("another block is shown", async () => (await text(page, "#batch-block")) !== before);
}

/** The chosen pair's curves have come, and the words above them compare demand and supply at the price. */
async function crosses(page: Page): Promise<void> {
  const pair = `${await page.locator("#curves-sell").inputValue()} ${await page.locator("#curves-buy").inputValue()}`;
  await page.locator(`#curves-plot[data-pair="${pair}"]`).waitFor();
  assert.match(await text(page, "#curves-words"), /^At [\d\s.]+ (.+ wanted, .+ offered|nobody near it|the last block cleared)/);
}

/** The fake's curves meet near the price: then the two amounts at the price are nearly equal, and the page's words say those. */
async function crossesInFact({ fake }: Stage, page: Page): Promise<void> {
  const [sell, buy] = [await page.locator("#curves-sell").inputValue(), await page.locator("#curves-buy").inputValue()];
  const { points, price } = (await (await fetch(`${fake?.address}/v1/batches/main/demand?sell=${sell}&buy=${buy}`)).json()) as
    { points: { price: string; supply: string; demand: string }[]; price: string };
  const crossing = points.find(({ supply, demand }) => Number(supply) >= Number(demand));
  assert.ok(crossing && Math.abs(Number(crossing.price) / Number(price) - 1) < 0.005, "the curves cross at the price");
  const said = async (side: "buy" | "sell"): Promise<number> => Number((await text(page, `#curves-words .${side}`)).replace(/[^\d.]/g, ""));
  const middle = points[(points.length - 1) / 2];
  assert.ok(Math.abs(Number(middle?.demand) / (await said("buy")) - 1) < 0.01, "what is wanted at the price");
  assert.ok(Math.abs(Number(middle?.supply) / (await said("sell")) - 1) < 0.01, "what is offered at the price");
}

/** By keyboard: amount, limit, Enter. */
async function enter(page: Page, amount: string, limit: string, answer = /Collected/): Promise<void> {
  await blur(page);
  await page.keyboard.press("z");
  await retype(page, amount);
  await blur(page);
  await page.keyboard.press("p");
  await retype(page, limit);
  await page.locator("#offer-answer").evaluate((box) => box.replaceChildren());
  await page.keyboard.press("Enter");
  await answers(page, answer);
}

async function answers(page: Page, answer: RegExp): Promise<void> {
  // The block may come before the answer is read.
  await until(`the ticket answers ${answer}`, async () => {
    const now = await text(page, "#offer-answer");
    return answer.test(now) || (answer.source === "Collected" && /Traded|It stands/.test(now));
  });
}
