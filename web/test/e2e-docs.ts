// The readers of the API's two descriptions, which the venue serves at /docs and /docs/websocket: against a real venue, for the fake one
// has neither.

import assert from "node:assert/strict";
import type { Browser, Page } from "playwright-core";
import { assertFits, open, step, text, until, type Watched } from "./browser.ts";

const WIDE = [{ width: 1440, height: 900 }, { width: 1440, height: 900, dark: true }];
const NARROW = [{ width: 390, height: 844 }, { width: 390, height: 844, dark: true }];

export async function docsSteps(browser: Browser, address: string): Promise<void> {
  type Act = (watched: Watched, origin: URL) => Promise<string>;
  const at = (name: string, path: string, sizes: typeof WIDE, act: Act): Promise<void> => step(`docs: ${name}`, async () => {
    for (const size of sizes) {
      const url = new URL(path, address.replace(/#.*/, ""));
      const watched = await open(browser, url.href, size);
      const shown = await act(watched, url);
      // A long page scrolls down; nothing is wider than the window, though blocks are open.
      await assertFits(watched.page, `${path} at ${size.width}`, { width: 390 });
      await watched.page.locator("details.block").evaluateAll((all, shown) => {
        for (const block of all) (block as HTMLDetailsElement).open = block.id === shown;
      }, shown);
      await watched.shoot(`docs-${path.split("/").at(-1)}-${size.dark ? "dark-" : ""}${size.width}`);
      await watched.assertClean();
      await watched.page.context().close();
    }
  });
  await at("the WebSocket's channels, messages, examples and fields", "/docs/websocket", [...WIDE, ...NARROW], readsSocket);
  await at("the operations of REST with their examples", "/docs", [...WIDE.slice(0, 1), ...NARROW.slice(1)], readsRest);
}

/** Returns the block to be photographed open. */
async function readsSocket({ page }: Watched, origin: URL): Promise<string> {
  const blocks = page.locator("details.block");
  await until("the messages are listed", async () => (await blocks.count()) > 20);
  assert.equal(await text(page, "#address"), `ws://${origin.host}/v1/ws`);
  const channels = await page.locator("table.channels tbody td:first-child").allTextContents();
  const expected = [
    "book", "book_orders", "trades", "candles", "ticker", "instruments", "batch", "demand", "status", "reports", "account",
  ];
  for (const channel of expected) {
    assert.ok(channels.includes(channel), channel);
  }
  assert.equal(await page.locator("h2", { hasText: "What a client sends" }).count(), 1);
  // By keyboard a message opens: its examples are JSON, and its fields are there with what they name.
  await page.locator("#order > summary").focus();
  await page.keyboard.press("Enter");
  const order = page.locator("#order");
  await order.locator("pre.example").first().waitFor();
  for (const example of await order.locator("pre.example").allTextContents()) {
    assert.equal((JSON.parse(example) as { op: string }).op, "order");
  }
  const fields = await order.locator("table.fields tbody tr td:first-child").allTextContents();
  assert.ok(["op", "instrument", "side", "client_order_id optional"].every((field) => fields.includes(field)), fields.join());
  await order.locator("a", { hasText: /^TimeInForce$/ }).first().click();
  await until("what it names is in sight", () => inSight(page, "order.TimeInForce"));
  const named = order.locator("section.schema").filter({ has: page.locator("h4", { hasText: /^TimeInForce$/ }) });
  assert.match(await named.innerText(), /"gtc" \| "day"/);
  // A channel leads to its message; an address opens a message, also what it names.
  await page.locator("table.channels a", { hasText: /^book$/ }).click();
  await until("the book is open", async () => (await page.locator("#book pre.example").count()) === 2);
  await page.goto(`${origin.href}#reports.OrderWaits`);
  await until("a field of a field of a message is in sight", () => inSight(page, "reports.OrderWaits"));
  // Every message opens, with an example.
  const ids = await blocks.evaluateAll((all) => all.map((block) => {
    (block as HTMLDetailsElement).open = true;
    return block.id;
  }));
  for (const id of ids) await until(`${id} has an example`, async () => (await page.locator(`[id="${id}"] pre.example`).count()) > 0);
  await find(page, "cancel instrument", ["cancel", "massCancel"], blocks);
  return "order";
}

async function readsRest({ page }: Watched): Promise<string> {
  const blocks = page.locator("details.block");
  await until("the operations are listed", async () => (await blocks.count()) > 50);
  const ids = await blocks.evaluateAll((all) => all.map((block) => {
    (block as HTMLDetailsElement).open = true;
    return block.id;
  }));
  assert.equal(new Set(ids).size, ids.length, "each has an address of its own");
  await until("they are open", async () => (await page.locator("pre.example").count()) > 40);
  const placed = page.locator("#placeOrder");
  const [body = "", answer = ""] = await placed.locator("pre.example").allTextContents();
  assert.equal((JSON.parse(body) as { side: string }).side, "buy");
  assert.ok((JSON.parse(answer) as { order_id: string }).order_id.length > 0, "the answer's example is shown");
  const fields = await page.locator("#getOrder table.fields td:first-child code").allTextContents();
  assert.ok(["by", "average_price", "waits", "sequencer_ns"].every((field) => fields.includes(field)), fields.join());
  await page.locator("#placeOrder > summary").click();
  await find(page, "cancel-after", ["cancelAfter", "getCancelAfter"], blocks);
  return "placeOrder";
}

/** What is found is shown, all else is not. */
async function find(page: Page, words: string, among: string[], blocks: ReturnType<Page["locator"]>): Promise<void> {
  await page.fill("#find", words);
  const shown = async (): Promise<string[]> =>
    blocks.evaluateAll((all) => all.filter((block) => !(block as HTMLElement).hidden).map(({ id }) => id));
  await until("few are shown", async () => (await shown()).length < 10);
  const found = await shown();
  assert.ok(among.every((id) => found.includes(id)), found.join());
  assert.match(await text(page, "#found"), new RegExp(`^${found.length} of \\d+$`));
  await page.fill("#find", "");
  await until("all are shown again", async () => (await shown()).length > 20);
}

function inSight(page: Page, id: string): Promise<boolean> {
  return page.evaluate((id) => {
    const box = document.getElementById(id)?.getBoundingClientRect();
    return box !== undefined && box.top >= -1 && box.top < innerHeight;
  }, id);
}
