// A Chromium for the end-to-end test, and a page in it that keeps account of everything that must not happen.

import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, type Page, chromium } from "playwright-core";

export const WAIT_MS = 20_000;
/** The best first: the whole browser draws a window around each page, and took 182 s of processor for steps that took 111 without. */
const CHROMIUMS = ["chromium-headless-shell", "chromium"];
const shots = (): string => join(import.meta.dirname, process.env["WALRAS_URL"] === undefined ? "shots" : "shots/real");

declare global {
  interface Window {
    refusedByPolicy: string[];
  }
}

export function launch(): Promise<Browser> {
  const named = process.env["CHROMIUM"] === undefined ? CHROMIUMS : [process.env["CHROMIUM"]];
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const places = named.flatMap((name) => name.includes("/") ? [name] : folders.map((folder) => join(folder, name)));
  const executablePath = places.find((place) => existsSync(place));
  assert.ok(executablePath, `No ${named.join(" or ")}: install Debian's package \`${CHROMIUMS[0]}\`, or name a Chromium in CHROMIUM.`);
  return chromium.launch({
    executablePath,
    args: [
      "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync",
    ],
  });
}

export interface Watched {
  page: Page;
  /** Fails if anything was refused by the policy, thrown, logged as an error, or asked of another host. `expected` errors may be. */
  assertClean(expected?: RegExp): Promise<void>;
  /** Keeps a picture of the whole page, for people to look at, where WALRAS_SHOTS is set: each takes time. */
  shoot(name: string): Promise<void>;
}

export async function open(
  browser: Browser,
  address: string,
  options: { width: number; height: number; dark?: boolean; init?: string; timezone?: string; locale?: string },
): Promise<Watched> {
  const context = await browser.newContext({
    viewport: { width: options.width, height: options.height },
    colorScheme: options.dark ? "dark" : "light",
    reducedMotion: "reduce",
    ...(options.timezone === undefined ? {} : { timezoneId: options.timezone }),
    ...(options.locale === undefined ? {} : { locale: options.locale }),
  });
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const errors: string[] = [];
  const origin = new URL(address).origin;
  page.on("console", (message) => {
    // Not every block can be proven at every moment; the page asks again after the next one.
    const isProof = /^Failed to load resource.* (404|409) /.test(message.text()) && message.location().url.includes("/proofs/");
    if (!isProof && (message.type() === "error" || message.type() === "warning")) errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(String(error.stack ?? error)));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) errors.push(`asked another host: ${request.url()}`);
  });
  await page.addInitScript(() => {
    window.refusedByPolicy = [];
    addEventListener("securitypolicyviolation", (event) => {
      window.refusedByPolicy.push(`${event.violatedDirective} ${event.sourceFile}:${event.lineNumber}:${event.columnNumber}`);
    });
  });
  if (options.init) await page.addInitScript({ content: options.init });
  const response = await page.goto(address);
  assert.equal(response?.headers()["content-security-policy"], "default-src 'self'", "the page's content security policy");
  return {
    page,
    async assertClean(expected) {
      assert.deepEqual(await page.evaluate(() => window.refusedByPolicy), [], "refused by the content security policy");
      assert.deepEqual(
        errors.filter((error) => !expected?.test(error)),
        [],
        "errors in the console",
      );
    },
    async shoot(name) {
      if (process.env["WALRAS_SHOTS"] === undefined) return;
      mkdirSync(shots(), { recursive: true });
      // Without `caret: "initial"` the driver hides the caret by a style element of its own, which the policy rightly refuses.
      await page.screenshot({ path: join(shots(), `${name}.png`), caret: "initial", fullPage: true });
    },
  };
}

/** Nothing scrolls sideways, and on a desktop's screen nothing downward. */
export async function assertFits(page: Page, name: string, { width }: { width: number }): Promise<void> {
  const [aside, below] = await page.evaluate(() => {
    const { scrollWidth, clientWidth, scrollHeight, clientHeight } = document.documentElement;
    return [scrollWidth - clientWidth, scrollHeight - clientHeight] as const;
  });
  assert.equal(aside, 0, `${name} scrolls sideways`);
  if (width >= 1440) assert.equal(below, 0, `${name} scrolls down`);
}

/** No text leaves the box that shows it or the window, none is cut by its own control, and none in a head lies on another. */
export async function assertNothingCut(page: Page, name: string): Promise<void> {
  // What tsx calls on functions that have a name: in the page there is no such thing.
  await page.evaluate("globalThis.__name = (named) => named");
  const faults = await page.evaluate(() => {
    const found: string[] = [];
    const shown = (element: Element): boolean =>
      element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
      !element.closest(".sr, option, .skip, svg, canvas");
    const short = (words: string): string => words.trim().replace(/\s+/gu, " ").slice(0, 60);
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const heads: { words: string; box: DOMRect; head: Element }[] = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const parent = node.parentElement;
      // On a phone the gateways' columns scroll sideways.
      if (
        !parent ||
        (node.textContent ?? "").trim() === "" ||
        !shown(parent) ||
        (innerWidth < 600 && parent.closest("#gateways-body"))
      )
        continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const box of range.getClientRects()) {
        if (box.width < 1) continue;
        const words = short(node.textContent ?? "");
        const where = `${parent.closest("[id]")?.id}: "${words}"`;
        if (!document.querySelector("dialog[open]") && (box.left < -1 || box.right > innerWidth + 1))
          found.push(`${where} leaves the window`);
        for (let outer: Element | null = parent; outer; outer = outer.parentElement) {
          const { overflowX, overflowY, position } = getComputedStyle(outer);
          const room = outer.getBoundingClientRect();
          // In what scrolls downward only the width counts; what scrolls sideways is meant to.
          if (
            overflowX === "hidden" ||
            overflowX === "clip" ||
            (overflowX === "auto" && overflowY === "auto" && outer.scrollWidth > outer.clientWidth + 1)
          ) {
            if (box.left < room.left - 1 || box.right > room.right + 1)
              found.push(`${where} is cut at the side by ${outer.id || outer.className}`);
          }
          if (overflowY === "hidden" || overflowY === "clip") {
            if (
              (box.top < room.top - 3 && box.bottom > room.top + 3) ||
              (box.bottom > room.bottom + 3 && box.top < room.bottom - 3)
            )
              found.push(`${where} is cut below by ${outer.id || outer.className}`);
          }
          if (position === "fixed") break;
        }
        const head = parent.closest(".masthead, #quote, .panel-head, #batch-head, .fair-head, thead tr, .shares, .choice, .ticket .foot");
        if (head) heads.push({ words, box, head });
      }
      if (
        parent.matches("button, th, .choice span") &&
        (parent.scrollWidth > parent.clientWidth + 1 || parent.scrollHeight > parent.clientHeight + 3) &&
        parent.clientWidth > 0
      ) {
        found.push(`${parent.closest("[id]")?.id}: "${short(parent.textContent ?? "")}" runs out of its ${parent.localName}`);
      }
    }
    heads.forEach((one, index) => {
      for (const other of heads.slice(index + 1)) {
        if (one.head !== other.head) continue;
        const [wide, high] = [
          Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left),
          Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top),
        ];
        if (wide > 1 && high > 4) found.push(`"${one.words}" lies on "${other.words}"`);
      }
    });
    const pen = document.createElement("canvas").getContext("2d")!;
    for (const select of document.querySelectorAll("select")) {
      if (!shown(select)) continue;
      const style = getComputedStyle(select);
      pen.font = style.font;
      const words = select.selectedOptions[0]?.textContent ?? "";
      const room = select.clientWidth - Number.parseFloat(style.paddingLeft) - Number.parseFloat(style.paddingRight);
      if (pen.measureText(words).width > room + 2) found.push(`${select.id}: "${words}" is wider than its ${Math.round(room)} px`);
    }
    return [...new Set(found)];
  });
  assert.deepEqual(faults, [], name);
}

/** Where set, steps that come are put here instead of being taken. */
let collected: (() => Promise<void>)[] | null = null;

/**
 * With WALRAS_KEEP_GOING the steps after one that failed are tried too, and the run fails at its end. WALRAS_STEPS chooses steps by name.
 */
export async function step(name: string, act: () => Promise<void>): Promise<void> {
  const chosen = process.env["WALRAS_STEPS"];
  if (chosen !== undefined && !new RegExp(chosen).test(name)) return;
  if (collected === null) await take(name, act);
  else collected.push(() => take(name, act));
}

/**
 * Takes `inOrder` and all steps of `parts`, `streams` at a time. Each step of `parts` must have a page and a venue of its own. Pages wait
 * much of their time, so one step at a time would leave processors idle.
 */
export async function atATime(streams: number, inOrder: () => Promise<void>, parts: (() => Promise<void>)[]): Promise<void> {
  const steps: (() => Promise<void>)[] = [];
  collected = steps;
  for (const part of parts) await part();
  collected = null;
  steps.unshift(inOrder);
  await Promise.all(Array.from({ length: streams }, async () => {
    for (let next = steps.shift(); next !== undefined; next = steps.shift()) await next();
  }));
}

async function take(name: string, act: () => Promise<void>): Promise<void> {
  const started = performance.now();
  try {
    await act();
  } catch (error) {
    console.log(`not ok  ${name}: ${(error as Error).stack}`);
    if (process.env["WALRAS_KEEP_GOING"] === undefined) throw error;
    process.exitCode = 1;
    return;
  }
  console.log(`ok  ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
}

export async function text(page: Page, selector: string): Promise<string> {
  return (await page.locator(selector).first().textContent()) ?? "";
}

export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + WAIT_MS;
  while (!(await holds())) {
    assert.ok(performance.now() < end, `waited ${WAIT_MS / 1000} s in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/**
 * By keyboard: the page may move between where a button is seen and the click. The key is pressed again until the button is chosen,
 * because a busy browser may give the focus of a page that still loads to another element between the two.
 */
export async function choose(page: Page, input: string): Promise<void> {
  await until(`${input} is chosen`, async () => {
    if (await page.locator(input).isChecked()) return true;
    await page.locator(input).press("Space");
    return false;
  });
}

export async function retype(page: Page, words: string): Promise<void> {
  await page.keyboard.press("Control+A");
  await page.keyboard.type(words);
}

/** Leaves the field, as Escape does in the page. */
export async function blur(page: Page): Promise<void> {
  await page.keyboard.press("Escape");
}
