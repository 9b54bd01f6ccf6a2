// An auction of a real venue as the page shows it: the operator lets orders collect, and one that crosses makes an indicative price.

import assert from "node:assert/strict";
import type { Browser } from "playwright-core";
import { blur, open, retype, step, text, until } from "./browser.ts";

const WIDE = { width: 1440, height: 900 };
/** Further than the demo's prices move in a day, and within its collar. */
const ABOVE = 1.01;

/** `collect` moves the instrument into an auction; it stays there. */
export function auctionStep(browser: Browser, address: string, size: string, collect: () => Promise<void>): Promise<void> {
  return step("an auction shows its indicative price", async () => {
    const watched = await open(browser, address, WIDE);
    const { page } = watched;
    await page.waitForFunction(() => !(document.querySelector("#submit") as HTMLButtonElement).disabled);
    await until("the market is there", async () => /\d/.test(await text(page, "#best-ask")) && /\d/.test(await text(page, "#last-price")));
    assert.equal(await page.locator("#indicative").isVisible(), false, "while trading goes on there is none");
    const last = await text(page, "#last-price");
    await collect();
    await until("orders collect", async () => /orders collect/.test(await text(page, "#phase")));
    await page.fill("#ticket-price", (Number(last.replace(/\s/g, "")) * ABOVE).toFixed(last.split(".")[1]?.length ?? 0));
    await blur(page);
    await page.keyboard.press("b");
    await retype(page, size);
    await page.keyboard.press("Enter");
    await until("the order stands", async () => /^Standing in the book/.test(await text(page, "#ticket-answer")));
    await until(
      "an indicative price is shown",
      async () => /^Indicative price [\d\s.]+ if the auction ended now: [\d\s.]+ \S+ would trade, /u.test(await text(page, "#indicative")),
    );
    await watched.shoot("auction");
    await watched.assertClean();
    await page.context().close();
  });
}
