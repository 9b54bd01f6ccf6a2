// A Chromium for the end-to-end test, and a page in it that keeps account of everything that must not happen.

import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, type Page, chromium } from "playwright-core";

export const WAIT_MS = 20_000;
const shots = (): string => join(import.meta.dirname, process.env["WALRAS_URL"] === undefined ? "shots" : "shots/real");

declare global {
  interface Window {
    refusedByPolicy: string[];
  }
}

export function launch(): Promise<Browser> {
  const named = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
  const places = named.includes("/") ? [named] : (process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, named));
  const executablePath = places.find((place) => existsSync(place));
  assert.ok(executablePath, `No Chromium at ${named}: install Debian's package \`chromium\`, or name one in CHROMIUM.`);
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

/**
 * With WALRAS_KEEP_GOING the steps after one that failed are tried too, and the run fails at its end. WALRAS_STEPS chooses steps by name.
 */
export async function step(name: string, act: () => Promise<void>): Promise<void> {
  const chosen = process.env["WALRAS_STEPS"];
  if (chosen !== undefined && !new RegExp(chosen).test(name)) return;
  const started = performance.now();
  try {
    await act();
  } catch (error) {
    if (process.env["WALRAS_KEEP_GOING"] === undefined) throw error;
    console.log(`not ok  ${name}: ${(error as Error).stack}`);
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
