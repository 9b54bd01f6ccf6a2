// Panels of the order book's view are resized: by pointer and by keyboard, within limits at which nothing is cut, and kept.

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { assertFits, assertNothingCut, until, type Watched } from "./browser.ts";
import { assertNotCut, canSubmit, type Size } from "./e2e-layout.ts";
import type { Running } from "./fake-venue.ts";

type Axis = "x" | "y";

interface Bounds {
  now: number;
  least: number;
  most: number;
}

const TABLES = ["tape", "orders", "fills", "holdings"];

export async function resizesByPointer(watched: Watched, _: Running, { width }: Size): Promise<void> {
  const { page, shoot } = watched;
  await boundsOf(page, "book");
  const before = await widthOf(page, "book");
  const ladder = await paperOf(page, "#ladder-slider canvas");
  await drag(page, "book", "x", 20);
  await until("the book is wider", async () => Math.abs((await widthOf(page, "book")) - before - 20) <= 1);
  await until("its ladder is drawn as wide", async () => (await paperOf(page, "#ladder-slider canvas")).width === ladder.width + 20);
  assert.equal((await boundsOf(page, "book")).now, Math.round(before + 20), "the separator says so");

  const isWide = width >= 1360;
  const row = isWide ? "depth-row" : "chart-row";
  const plot = isWide ? "#depth-plot canvas" : "#chart-plot canvas";
  const [high, painted] = [(await boundsOf(page, row)).now, (await paperOf(page, plot)).height];
  await drag(page, row, "y", isWide ? -40 : 40);
  await until("the row is higher", async () => (await boundsOf(page, row)).now === high + 40);
  await until("its plot is drawn as high", async () => (await paperOf(page, plot)).height >= painted + 38);
  await fillsHost(page, "#chart-plot");
  await fillsHost(page, "#depth-plot");
  await assertFits(page, "other sizes", { width });
  await shoot(`sizes-${width}`);

  await page.reload();
  await canSubmit(page);
  await until("the next page has the width", async () => Math.abs((await widthOf(page, "book")) - before - 20) <= 1);
  assert.equal((await boundsOf(page, row)).now, high + 40, "and the height");
  // A press that moves nothing chooses nothing.
  const kept = await keptSizes(page);
  await page.locator("#separator-side").click();
  assert.deepEqual(await keptSizes(page), kept);
  await page.locator("#separator-book").dblclick();
  await until("a double click resets it", async () => Math.abs((await widthOf(page, "book")) - before) <= 1);
  assert.equal((await boundsOf(page, row)).now, high + 40, "and no other");

  // Another arrangement has sizes of its own, and the settings reset all.
  await choosesLayout(page, "chart");
  assert.equal((await keptSizes(page)).length, 1);
  const other = await boundsOf(page, "side");
  await drag(page, "side", "x", -16);
  await until("the ticket is wider", async () => (await boundsOf(page, "side")).now === other.now + 16);
  await choosesLayout(page, "standard");
  await until("the first has its own again", async () => (await boundsOf(page, "side")).now === other.now);
  await page.locator("#settings-button").press("Enter");
  await page.locator("#layout-reset").press("Enter");
  await page.keyboard.press("Escape");
  await until("all are reset", async () => (await boundsOf(page, row)).now === high);
  assert.deepEqual(await keptSizes(page), []);
}

export async function resizesByKeyboard({ page }: Watched, _: Running, { width }: Size): Promise<void> {
  const names = await separators(page);
  assert.ok(names.includes("book") && names.length >= 2, names.join());
  for (const name of names) {
    const separator = page.locator(`#separator-${name}`);
    const { now, least, most } = await boundsOf(page, name);
    assert.ok(least <= now && now <= most && least > 0, `${name}: ${least} to ${most}, ${now}`);
    assert.match((await separator.getAttribute("aria-label")) ?? "", name.endsWith("-row") ? /^Height: ./ : /^Width: ./);
    const axis: Axis = (await separator.getAttribute("aria-orientation")) === "vertical" ? "x" : "y";
    const panel = (await separator.getAttribute("aria-controls")) ?? "";
    assert.ok(await page.locator(`#${panel}`).isVisible(), `${name} controls #${panel}, which is shown`);
    const [less, more] = axis === "x" ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
    // Whichever way it can grow.
    for (const key of [more, less]) {
      await separator.press(key);
      await until(`${name} is measured`, async () => (await boundsOf(page, name)).now === (await sizeOf(page, axis, panel)));
      const { now: then } = await boundsOf(page, name);
      assert.ok(Math.abs(then - now) <= 16 && then >= least && then <= most, `${name}: ${then} after ${key}`);
      await separator.press("Home");
      await until(`${name} is reset`, async () => (await boundsOf(page, name)).now === now);
    }
    assert.ok(await separator.evaluate((element) => element === document.activeElement), `${name} keeps the focus`);
  }
  assert.deepEqual(await keptSizes(page), []);
  await assertFits(page, "the sizes of the style sheet", { width });
}

/** Each panel in turn as large as it can be, and as small; the tables then have all their columns in sight. */
export async function resizesToLimits({ page, shoot }: Watched, _: Running, { width }: Size): Promise<void> {
  await page.waitForFunction(() => document.querySelectorAll("#fills-table tbody tr").length === 3);
  // The window's own sizes may cut a table's last column; the limits never do.
  const cutBefore = await cutTables(page);
  for (const name of await separators(page)) {
    const axis: Axis = name.endsWith("-row") ? "y" : "x";
    for (const by of [-2_000, 2_000]) {
      await drag(page, name, axis, by);
      const { now, least, most } = await boundsOf(page, name);
      assert.ok(Math.abs(now - least) <= 1 || Math.abs(now - most) <= 1, `${name}: ${now} is at neither ${least} nor ${most}`);
      assert.deepEqual((await cutTables(page)).filter((table) => !cutBefore.includes(table)), [], `${name} at ${now} px`);
      await assertNothingCut(page, `${name} at ${now} px`);
      await assertNotCut(page, ".panel-tools > :not(.menu)", ".panel");
      await assertFits(page, `${name} at ${now} px`, { width });
      for (const plot of ["#chart-plot", "#depth-plot", "#ladder-slider"]) {
        const height = await page.locator(plot).evaluate((host) => host.clientHeight);
        assert.ok(height >= 40, `${name} at ${now} px: ${plot} is ${height} px high`);
      }
    }
    await shoot(`sizes-${name}-${width}`);
    await page.locator(`#separator-${name}`).press("Home");
  }
}

export async function noSizes({ page }: Watched): Promise<void> {
  assert.deepEqual(await separators(page), []);
}

export async function forgetsUnknownSizes({ page }: Watched): Promise<void> {
  // Wider than the window: the other columns keep their minima.
  await assertFits(page, "a size that is too large", { width: 1440 });
  const { now, most } = await boundsOf(page, "book");
  assert.ok(now <= most && now < 400, `${now} of ${most} px`);
  await page.setViewportSize({ width: 1360, height: 900 });
  await until("the window is narrower", async () => (await page.evaluate(() => innerWidth)) === 1_360);
  await assertFits(page, "at 1,360 px", { width: 1_440 });
  await page.setViewportSize({ width: 1280, height: 900 });
  await until("there are three columns", async () => (await separators(page)).includes("chart-row"));
  assert.equal(await widthOf(page, "book"), 288, "in which nothing was chosen");
  await assertFits(page, "at 1,280 px", { width: 1_280 });
}

function separators(page: Page): Promise<string[]> {
  return page.locator("#panels [role=separator]").evaluateAll((all) => all.map(({ id }) => id.replace("separator-", "")));
}

/** What a separator says of its size, once it is measured. */
async function boundsOf(page: Page, name: string): Promise<Bounds> {
  const separator = page.locator(`#separator-${name}`);
  await until(`${name} is measured`, async () => (await separator.getAttribute("aria-valuenow")) !== null);
  // Measured again in the next frame.
  await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
  return separator.evaluate((element) => ({
    now: Number(element.getAttribute("aria-valuenow")), least: Number(element.getAttribute("aria-valuemin")),
    most: Number(element.getAttribute("aria-valuemax")),
  }));
}

async function drag(page: Page, name: string, axis: Axis, by: number): Promise<void> {
  const separator = page.locator(`#separator-${name}`);
  await separator.scrollIntoViewIfNeeded();
  const box = await separator.boundingBox();
  assert.ok(box, `${name} is shown`);
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  for (const part of [0.5, 1]) await page.mouse.move(x + (axis === "x" ? by * part : 0), y + (axis === "y" ? by * part : 0));
  await page.mouse.up();
}

async function widthOf(page: Page, panel: string): Promise<number> {
  return page.locator(`#${panel}`).evaluate((element) => element.getBoundingClientRect().width);
}

/** As laid out: of the panel that a separator names. */
async function sizeOf(page: Page, axis: Axis, panel: string): Promise<number> {
  const box = await page.locator(`#${panel}`).boundingBox();
  return Math.round((axis === "x" ? box?.width : box?.height) ?? 0);
}

/** Of a canvas, in pixels of the page. */
async function paperOf(page: Page, canvas: string): Promise<{ width: number; height: number }> {
  return page.locator(canvas).first().evaluate((element) => {
    const { width, height } = element as HTMLCanvasElement;
    return { width: Math.round(width / devicePixelRatio), height: Math.round(height / devicePixelRatio) };
  });
}

/** What is drawn in it ends where it ends. */
async function fillsHost(page: Page, host: string): Promise<void> {
  await until(`${host} is drawn at its size`, () => page.locator(host).evaluate((element) => {
    const room = element.getBoundingClientRect();
    const boxes = [...element.querySelectorAll("canvas")].map((canvas) => canvas.getBoundingClientRect());
    const far = Math.max(...boxes.map(({ right }) => right));
    const low = Math.max(...boxes.map(({ bottom }) => bottom));
    return Math.abs(far - room.right) <= 2 && Math.abs(low - room.bottom) <= 2;
  }));
}

async function cutTables(page: Page): Promise<string[]> {
  return page.evaluate((ids) => ids.filter((id) => {
    const body = document.getElementById(`${id}-body`);
    return body !== null && body.scrollWidth > body.clientWidth + 1;
  }), TABLES);
}

async function keptSizes(page: Page): Promise<string[]> {
  return page.evaluate(() => Object.keys(JSON.parse(localStorage.getItem("walras.panel-sizes") ?? "{}") as object));
}

async function choosesLayout(page: Page, name: string): Promise<void> {
  await page.locator("#settings-button").press("Enter");
  await page.locator("#setting-layout").selectOption(name);
  await page.keyboard.press("Escape");
  await page.waitForFunction((layout) => document.documentElement.dataset["layout"] === layout, name);
}
