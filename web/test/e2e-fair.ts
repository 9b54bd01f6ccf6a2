// The view of fair access in a real browser: against the fake venue, and against a real one (WALRAS_URL) where that has fair access.
// WALRAS_HAS_FAIR says that it has, and that orders came through its sessions: then nothing is left out.

import assert from "node:assert/strict";
import type { Browser, Page } from "playwright-core";
import { assertFits, blur, open, step, text, until } from "./browser.ts";
import type { Running } from "./fake-venue.ts";
import { FakeFair } from "./fake/fair.ts";
import { assertTabStopsVisible } from "./keyboard.ts";

const WIDE = { width: 1440, height: 900 };
/** Enough that the lines are lines. */
const SECONDS_SHOWN = 100;

/** Minutes in a moment: what waits for a second does not, and the clock goes on by as much. */
const HURRIES = `
  const { now } = Date;
  const wait = window.setTimeout;
  let skipped = 0;
  window.setTimeout = (act, ms, ...rest) => {
    if (ms === 1000) skipped += 1;
    return wait(act, ms === 1000 ? 1 : ms, ...rest);
  };
  Date.now = () => now() + 1000 * skipped;
`;

export async function fairSteps(browser: Browser, fake: Running | null, address: string): Promise<void> {
  const plain = address.replace(/#.*/, "");
  const hasAll = process.env["WALRAS_HAS_FAIR"] !== undefined;
  if (!fake && !hasAll && !(await hasFair(plain))) return console.log("--  the venue has no fair access: its view is not tried");
  if (fake) await step("fair access: has no tab where the venue has none", () => isAbsent(browser, plain));
  if (fake) fake.venue.fair = new FakeFair();
  await step("fair access: shows delays, shares, gateways and stages, and they move", () => shows(browser, fake, plain, hasAll));
  if (fake) {
    await step("fair access: shows the leader, outliers, and what is switched off", () => says(browser, fake, plain));
    await step("fair access: says when there is no answer", () => tellsOfSilence(browser, fake, plain));
  }
  await step("fair access: reads well in dark, and at 400 pixels", () => looks(browser, fake, plain));
  if (fake) fake.venue.fair = null;
}

async function hasFair(address: string): Promise<boolean> {
  const status = (await (await fetch(new URL("/v1/status", address))).json()) as { fair_access?: boolean };
  return status.fair_access === true;
}

async function isAbsent(browser: Browser, address: string): Promise<void> {
  const { page, assertClean } = await open(browser, `${address}#fair`, WIDE);
  await page.locator("#connection[data-state=live]").waitFor();
  await page.locator("#book").waitFor();
  await until("the status has come", async () => /\d/.test(await text(page, "#log-index")));
  assert.equal(await page.locator("#tab-fair").isVisible(), false);
  assert.equal(await page.locator("#view-fair").isVisible(), false);
  await page.keyboard.press("v");
  await page.keyboard.press("v");
  assert.equal(await page.locator("#view-fair").isVisible(), false);
  await assertClean();
  await page.context().close();
}

async function shows(browser: Browser, fake: Running | null, address: string, hasAll: boolean): Promise<void> {
  const watched = await open(browser, address, WIDE);
  const { page } = watched;
  await page.locator("#tab-fair").waitFor();
  // By keyboard through all views and back.
  const seen: string[] = [];
  let shown = await text(page, "#views a[aria-current]");
  for (let press = 0; press < 6; press += 1) {
    await page.keyboard.press("v");
    await until("another view is shown", async () => (await text(page, "#views a[aria-current]")) !== shown);
    shown = await text(page, "#views a[aria-current]");
    seen.push(shown);
    if (shown === "Order book") break;
  }
  assert.ok(seen.includes("Fair access") && seen.at(-1) === "Order book", seen.join());
  await page.locator("#tab-fair").click();
  await isShown(page);
  assert.match(page.url(), /#fair$/);
  assert.match(await text(page, "#fair-who"), /^Replica \d+$/);
  assert.match(await text(page, "#fair-clock"), /^Good, ± \d|^Too wide|^Unknown/);
  await page.waitForFunction(() => /Walras$/.test(document.title));

  const before = await text(page, "#fair-delay");
  if (fake) await until("d_s moves", async () => (await text(page, "#fair-delay")) !== before);
  const ofData = await page.locator("#fair-data").isVisible() ? ["data-delay", "data-late"] : [];
  for (const plot of ["orders-delay", "orders-unfair", ...ofData]) {
    await page.locator(`#${plot}-plot canvas`).waitFor();
    assert.match(await page.locator(`#${plot}-plot`).getAttribute("aria-label") ?? "", /over the last minutes: .*now/);
  }
  const stages = async (): Promise<string[]> => page.locator("#stages-table tbody tr").evaluateAll(
    (rows) => rows.map((row) => (row as HTMLElement).dataset["stage"] ?? ""),
  );
  if (fake || hasAll) {
    await until("the stages of an order are shown", async () => (await stages()).join().includes("transit,hold,log,apply"));
    assert.match(await text(page, "#stages-table tr[data-stage=hold] td:nth-child(3)"), /^\d[\d.]*\s(ns|µs|ms|s)$/);
    const [bar = "0", line = "0"] = await page.locator("#stages-table tr[data-stage=log] rect").evaluateAll(
      (rects) => rects.map((rect) => rect.getAttribute("width") ?? "0"),
    );
    assert.ok(Number(bar) > 0 && Number(line) > 0, "the bar is drawn");
    assert.ok((await page.locator("#gateways-table tbody tr").count()) >= 1);
  }
  await page.reload();
  await isShown(page);
  await assertTabStopsVisible(page, [/Skip to the delays/, /Order book/, /Fair access/, /stages/i, /gateways/i]);
  await blur(page);
  await page.keyboard.press("?");
  await page.locator("#help[open]").waitFor();
  assert.match(await text(page, "#help"), /the advantage of being near/);
  await page.keyboard.press("Escape");
  await watched.assertClean();
  await page.context().close();
}

async function says(browser: Browser, fake: Running, address: string): Promise<void> {
  const { fair } = fake.venue;
  assert.ok(fair);
  const watched = await open(browser, `${address}#fair`, WIDE);
  const { page } = watched;
  await isShown(page);
  assert.match(await text(page, "#fair-does"), /Leads: orders are sequenced here/);
  assert.match(await text(page, "#fair-unfair"), /% of 1\s%$/);
  const row = async (gateway: number): Promise<string> =>
    (await page.locator("#gateways-table tbody tr").nth(gateway - 1).textContent()) ?? "";
  assert.match(await row(1), /^1 here, leads.*Good, ± 18\.4\sµs.*Count/);
  assert.match(await row(2), /^2.*Recently off by 2\.31\sµs/);
  assert.equal(await page.locator("#gateways-table a").first().getAttribute("href"), "http://venue-2.example:7070/#fair");

  // The masthead stays one line with three views and a key of any length.
  const height = (): Promise<number> => page.locator(".masthead").evaluate((element) => element.clientHeight);
  const before = await height();
  await page.locator("#key-button").evaluate((button) => button.textContent = `Key hm_${"0123456789".repeat(5)}`);
  assert.equal(await height(), before);
  await assertFits(page, "the masthead with a long key", WIDE);

  fair.hasOutlier = true;
  await until(
    "a gateway's stamps do not count",
    async () => /Not linked.*Excluded: its edges do not close.*Outlier: do not count.*2 differed/.test(await row(3)),
  );
  // A replica ends: what nobody judges is not called 0 %.
  fair.silent = "not_judged";
  await until("nothing is judged", async () => /^Not judged: replica 3 is silent$/.test(await text(page, "#fair-late")));
  assert.match(await text(page, "#fair-words"), /Replica 3 is silent: its link is lost/);
  await assertFits(page, "with a silent replica", WIDE);
  fair.silent = "judged_without";
  await until("the others judge", async () => /% of 1\s%; replica 3 is silent$/.test(await text(page, "#fair-late")));
  fair.leader = 2;
  await until("another one leads", async () => /Gateway: passes orders on to replica 2/.test(await text(page, "#fair-does")));
  assert.match(await text(page, "#fair-words"), /from when this replica led last\. Now replica 2 sequences them/);
  assert.equal(await page.locator("#fair-words a").getAttribute("href"), "http://venue-2.example:7070/#fair");
  fair.hasRelease = fair.hasMesh = false;
  await until("market data is not held", async () => /Not at all/.test(await text(page, "#fair-release")));
  assert.match(await text(page, "#fair-words"), /fair_access\.release/);
  assert.equal(await page.locator("#fair-data").isVisible(), false);
  assert.match(await row(2), /See its own page/);
  await watched.assertClean();
  await page.context().close();
  fake.venue.fair = new FakeFair();
}

async function tellsOfSilence(browser: Browser, fake: Running, address: string): Promise<void> {
  const { fair } = fake.venue;
  const watched = await open(browser, `${address}#fair`, WIDE);
  const { page } = watched;
  await isShown(page);
  fake.venue.fair = null;
  await page.locator("#fair-trouble").waitFor();
  assert.match(await text(page, "#fair-trouble"), /these figures stand still: There is nothing at this address/);
  fake.venue.fair = fair;
  await page.locator("#fair-trouble").waitFor({ state: "hidden" });
  await watched.assertClean(/404/);
  await page.context().close();
}

async function looks(browser: Browser, fake: Running | null, address: string): Promise<void> {
  const shots: [string, Parameters<typeof open>[2]][] = [
    ["fair-light-1440", WIDE], ["fair-dark-1440", { ...WIDE, dark: true }], ["fair-light-900", { width: 900, height: 900 }],
    ["fair-dark-900", { width: 900, height: 900, dark: true }],
    ["fair-light-1920", { width: 1920, height: 1080 }], ["fair-light-400", { width: 400, height: 860 }],
  ];
  for (const [name, size] of shots) {
    const fair = new FakeFair();
    if (fake) fake.venue.fair = fair;
    const watched = await open(browser, `${address}#fair`, { ...size, ...(fake ? { init: HURRIES } : {}) });
    const { page } = watched;
    await isShown(page);
    if (fake) await until("some minutes are shown", async () => fair.steps >= SECONDS_SHOWN);
    await watched.shoot(name);
    await assertFits(page, name, size);
    await watched.assertClean();
    await page.context().close();
  }
}

async function isShown(page: Page): Promise<void> {
  await page.locator("#view-fair").locator("#stages-table").waitFor();
  await page.waitForFunction(() => /\d/.test(document.querySelector("#fair-delay")?.textContent ?? ""));
}
