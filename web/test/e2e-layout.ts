// Where things lie on the page: nothing is cut, covered, pushed out of sight, or moves while it is read. Boxes are compared, not pictures.
// Against the fake venue only, each step against one of its own, since most of them change it.

import assert from "node:assert/strict";
import type { Browser, Page } from "playwright-core";
import { assertFits, blur, choose, open, retype, step, text, until, type Watched } from "./browser.ts";
import { FakeFair } from "./fake/fair.ts";
import { forgetsUnknownSizes, noSizes, resizesByKeyboard, resizesByPointer, resizesToLimits } from "./e2e-sizes.ts";
import { type Running, startFakeVenue } from "./fake-venue.ts";
import { fill } from "./whole.ts";

export interface Size {
  width: number;
  height: number;
}

const WIDE: Size = { width: 1440, height: 900 };
const SIZES: Size[] = [WIDE, { width: 1280, height: 720 }, { width: 390, height: 844 }];
const SHIFT_MOST = 0.1;
const SHIFT_MS = 3_000;

/** Sums up what moves without being asked to, as browsers do for the Web Vitals. */
export const COUNTS_SHIFTS = `
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
`;

declare global {
  interface Window {
    shifted: number;
  }
}

type Act = (watched: Watched, fake: Running, size: Size) => Promise<void>;

export async function layoutSteps(browser: Browser): Promise<void> {
  type Options = { batch?: boolean; steps?: number; init?: string; errors?: RegExp; before?: (fake: Running) => void };
  const at = (name: string, sizes: Size[], act: Act, options: Options = {}): Promise<void> =>
    step(`layout: ${name}`, async () => {
      for (const size of sizes) {
        const fake = await startFakeVenue(0, options.steps ?? 0);
        options.before?.(fake);
        try {
          const watched = await open(browser, fake.edAddress, { ...size, ...(options.init === undefined ? {} : { init: options.init }) });
          await isReady(watched.page);
          if (options.batch === true) await showBatch(watched.page);
          await act(watched, fake, size);
          await watched.assertClean(options.errors);
          await watched.page.context().close();
        } finally {
          await fake.close();
        }
      }
    });
  await at("a button that can do nothing looks so, also under the pointer", [WIDE], looksDisabled);
  await at("an order is amended in a row that is not cut", SIZES, amendsInSight);
  await at("what became of orders is in their history", SIZES, remembersOrders);
  await at("fills show all columns with figures of real sizes", SIZES, fillsInSight, { before: tradeMuch });
  await at("the ticket stays whole after an answer, and opens its other fields in sight", [WIDE], ticketInSight);
  await at("the chart's figures lie on nothing else", SIZES, readoutApart);
  await at(
    "an empty side is called empty, and the day's figures say which day",
    [...SIZES, { width: 1100, height: 900 }, { width: 768, height: 1024 }], saysWhatIsThere,
  );
  await at("a stop that would not wait is warned of at its field", [WIDE], warnsOfStops);
  await at("an order far from the market is asked for twice", [WIDE], asksTwice);
  await at("no price in the batch view is cut, nor a column of its blocks", SIZES, batchInSight, { batch: true });
  await at(
    "a notice covers nothing that it speaks of, and a ticket forgets what is over", [WIDE, { width: 1280, height: 720 }], speaksInPlace,
    { batch: true },
  );
  await at("the batch ticket looks at what there is before it signs", [WIDE], looksBeforeItSigns, { batch: true });
  await at("an auction shows where the curves cross, in words too", SIZES, showsAuction);
  await at(
    "what a view is about is said whole", [WIDE, { width: 1280, height: 720 }, { width: 1100, height: 900 }], saysWhatItIs,
    { before: (fake) => { fake.venue.fair = new FakeFair(); } },
  );
  await at("a panel is resized by pointer, and the next page has its size", SIZES.slice(0, 2), resizesByPointer, { steps: 20 });
  await at("a panel is resized by keyboard, and reset", [...SIZES.slice(0, 2), { width: 768, height: 1024 }], resizesByKeyboard);
  await at(
    "nothing is cut where panels are as large or small as can be", [...SIZES.slice(0, 2), { width: 768, height: 1024 }],
    async (watched, fake, size) => {
      await rests(watched.page, await lowBid(watched.page), "0.0200");
      await resizesToLimits(watched, fake, size);
    },
    { before: tradeMuch },
  );
  await at("on a phone there is no size to choose", SIZES.slice(2), noSizes);
  await at("a size that cannot be is not taken, and a narrow window keeps what it can", [WIDE], forgetsUnknownSizes, {
    init: `localStorage.setItem("walras.panel-sizes", JSON.stringify({ "standard.wide.book": 3000, "standard.wide.ticket": 50 }));`,
  });
  const shifting = { init: COUNTS_SHIFTS, steps: 20 };
  const screens = [...SIZES, { width: 768, height: 1024 }];
  await at("nothing moves while the book is read", screens, standsStill, shifting);
  await at("nothing moves while starred markets are watched", screens, watchesStill, {
    ...shifting, init: `${COUNTS_SHIFTS} localStorage.setItem("walras.favourites", JSON.stringify(["ETH/USD", "BTC/USD"]));`,
  });
  await at("nothing moves while panels have sizes that were chosen", SIZES.slice(0, 2), standsStill, {
    ...shifting,
    init: `${COUNTS_SHIFTS} localStorage.setItem("walras.panel-sizes", JSON.stringify({
      "standard.wide.book": 310, "standard.wide.depth-row": 220, "standard.three.side": 330, "standard.three.chart-row": 420,
    }));`,
  });
  await at("nothing moves while blocks are read", screens, standsStill, { ...shifting, batch: true });
  const machines = (fake: Running): void => {
    const fair = new FakeFair();
    [fair.gateways, fair.lostGateway, fair.layers] = [20, 47, [3, 20]];
    fake.venue.fair = fair;
  };
  const many = { ...shifting, before: machines };
  await at("all tabs are next to the bar or above it", [1060, 1199, 1200, 1280].map((width) => ({ width, height: 800 })), tabsApart, many);
  await at("nothing moves while delays are read", screens, standsStillOn("fair", "#fair-delay"), many);
  await at("nothing moves while machines are watched", screens, standsStillOn("network", "#network-window"), many);
}

async function looksDisabled({ page }: Watched, { venue }: Running): Promise<void> {
  for (const side of ["buy", "sell"]) {
    venue.isDown = false;
    await canSubmit(page);
    await choose(page, `input[name=side][value=${side}]`);
    await page.locator("#submit").hover();
    const enabled = await colourOf(page, "#submit");
    venue.isDown = true;
    for (const session of venue.sessions) session.close(4008);
    await page.waitForFunction(() => (document.querySelector("#submit") as HTMLButtonElement).disabled);
    const disabled = await colourOf(page, "#submit");
    assert.notEqual(disabled, enabled, `${side}: the pointer is on it, and it can do nothing`);
    assert.equal(disabled, await page.evaluate(() => {
      const probe = document.createElement("i");
      probe.style.backgroundColor = "var(--hair)";
      document.body.append(probe);
      const { backgroundColor } = getComputedStyle(probe);
      probe.remove();
      return backgroundColor;
    }));
  }
}

async function amendsInSight({ page, shoot }: Watched, _: Running, { width }: Size): Promise<void> {
  await rests(page, await lowBid(page), "0.0200");
  await assertWithin(page, "#orders-table td:not([hidden]), #orders-table tbody button", "#orders-body");
  await page.locator("#orders-table tbody button:not(.name)").first().click();
  const row = page.locator("#orders-table tbody tr").first();
  await assertWithin(page, "#orders-table tbody input, #orders-table tbody button", "#orders-body");
  assert.deepEqual(await row.locator("button:not(.name)").allTextContents(), ["Save", "Keep"]);
  const lines = await row.locator("td").first().evaluate(
    (cell) => cell.getClientRects()[0]!.height / Number.parseFloat(getComputedStyle(cell).lineHeight),
  );
  if (width >= 1060) assert.ok(lines < 5, `the order's row is ${lines.toFixed(1)} lines high`);
  const label = await row.locator("td").first().evaluate((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
  });
  assert.ok(label <= 2, `the order's name takes ${label} lines`);
  for (const input of await row.locator("input").all()) {
    assert.ok(await input.evaluate((field: HTMLInputElement) => field.scrollWidth <= field.clientWidth), "what is typed is in sight");
  }
  await shoot(`amend-${width}`);
  await page.keyboard.press("Escape");
  assert.deepEqual(await row.locator("button:not(.name)").allTextContents(), ["Amend", "Cancel"]);
  assert.equal(await row.locator("td:visible").count(), width > 480 ? 5 : 4);
}

async function remembersOrders({ page, shoot }: Watched, _: Running, { width }: Size): Promise<void> {
  await rests(page, await lowBid(page), "0.02");
  await page.locator("#orders-table tbody button", { hasText: "Cancel" }).click();
  await page.waitForFunction(() => document.querySelectorAll("#orders-table tbody tr").length === 0);
  await enter(page, "b", "999999");
  await page.locator("#ticket-answer[data-tone=bad]").waitFor();
  await choose(page, "input[name=orders-shown][value=history]");
  await until("all three are listed", async () => (await page.locator("#history-table tbody tr").count()) === 3);
  const events = (await page.locator("#history-table td.what").allTextContents()).join("; ");
  assert.equal(events, "Refused, no. 60: insufficient funds; Cancelled; Placed");
  await until("there are no older ones", async () => /These are all/.test(await text(page, "#orders-body .older")));
  assert.match(await text(page, "#orders-title"), /history/);
  await assertNotCut(page, "#history-table td, #history-table th", "#orders-body");
  await assertNotCut(page, "#orders-tools > *", "#orders");
  await shoot(`history-${width}`);
  await choose(page, "input[name=orders-shown][value=open]");
  await page.locator("#history-table").waitFor({ state: "hidden" });
}

export function tradeMuch({ venue }: Running): void {
  const fills = [
    ["50005.00", "0.0200", "0.400040", "taker"], ["49999.99", "12.3456", "246.911951", "maker"],
    ["100123.45", "3.5000", "140.172830", "auction"],
  ] as const;
  fills.forEach(([price, size, fee, role], index) => venue.addFill(fill({
    trade_id: `9000${index}`, order_id: `8000${index}`, client_order_id: String(index), time_ns: `${Date.now()}000000`,
    side: index === 1 ? "sell" : "buy", price, size, fee, role,
  })));
}

async function fillsInSight({ page, shoot }: Watched, _: Running, { width }: Size): Promise<void> {
  await page.waitForFunction(() => document.querySelectorAll("#fills-table tbody tr").length === 3);
  await assertNotCut(page, "#fills-table th, #fills-table td", "#fills-body");
  const rows = (await page.locator("#fills-table tbody tr").allTextContents()).join("\n");
  assert.match(rows, /taker/);
  assert.match(rows, /▲ Buy 50.005\.00/u, "the side is a word for those who do not see the mark");
  assert.match(await page.locator("#fills-table tbody").innerHTML(), /fee 246\.911951 USD/, "the exact fee is in the row's title");
  await shoot(`fills-${width}`);
}

async function ticketInSight({ page, shoot }: Watched): Promise<void> {
  await rests(page, await lowBid(page), "0.02");
  const overflow = (): Promise<number> => page.locator("#ticket-body").evaluate((body) => body.scrollHeight - body.clientHeight);
  assert.ok((await overflow()) <= 1, "after an answer the ticket does not scroll");
  await enter(page, "b", "999999999");
  await page.locator("#ticket-answer[data-tone=bad]").waitFor();
  assert.ok((await overflow()) <= 1, `nor after a long one: ${await overflow()} px`);
  await page.locator("#more summary").click();
  await page.locator("#post-only").waitFor();
  const places = (): Promise<{ foot: number; bottoms: number[] }> => page.evaluate(() => ({
    foot: document.querySelector(".ticket .foot")!.getBoundingClientRect().top,
    bottoms: [...document.querySelectorAll("#more .field:not([hidden])")].map((row) => row.getBoundingClientRect().bottom),
  }));
  // The ticket scrolls to them, which takes a moment.
  await until("at least three of the fields are in sight", async () => {
    const { foot, bottoms } = await places();
    return bottoms.filter((bottom) => bottom <= foot + 1).length >= Math.min(3, bottoms.length);
  });
  await assertNotCut(page, "input[name=side], #submit", "#ticket");
  const holdings = await page.locator("#holdings-body").evaluate((body) => body.clientHeight);
  assert.ok(holdings > 40, "some of what one has is in sight all the same");
  await shoot("ticket-more");
}

async function readoutApart({ page }: Watched): Promise<void> {
  await page.waitForFunction(() => /O .*C /.test(document.querySelector("#candle-readout")?.textContent ?? ""));
  await assertApart(page, "#candle-readout", "#chart-plot");
  await assertApart(page, "#candle-readout", "#chart .panel-head");
  // What is in sight of it is in sight whole.
  const cut = await page.locator("#candle-readout").evaluate((line) => {
    const box = line.getBoundingClientRect();
    return [...line.children].map((part) => part.getBoundingClientRect()).filter(
      (part) => part.top < box.bottom - 2 && (part.right > box.right + 1 || part.bottom > box.bottom + 1),
    ).length;
  });
  assert.equal(cut, 0);
  assert.match(
    (await page.locator("#candle-readout span").allTextContents()).join(" "),
    /^\d\d:\d\d:\d\d UTC O [\d\s.]+ H [\d\s.]+ L [\d\s.]+ C [\d\s.]+ [\d.]+ BTC$/u,
  );
}

async function saysWhatIsThere({ page, shoot }: Watched, { venue }: Running, { width }: Size): Promise<void> {
  assert.match(await text(page, "#change"), /% today \(UTC\)$/);
  const figure = async (id: string): Promise<number> => Number((await text(page, id)).replace(/[^\d.]/g, ""));
  const [high, low, last] = [await figure("#day-high"), await figure("#day-low"), await figure("#last-price")];
  assert.ok(low > 0 && low <= last && last <= high, `${low} to ${high}, last ${last}`);
  const facts = await page.locator("#quote .facts dt").allTextContents();
  assert.deepEqual(facts.slice(3), ["High today", "Low today", "Volume today", "Turnover today"]);
  for (const fact of await page.locator("#quote .facts :is(dt, dd)").all()) {
    assert.ok(await fact.isVisible(), `"${await fact.textContent()}" is not shown at ${width} px`);
  }
  const [volume, turnover] = [await figure("#day-volume"), await figure("#day-turnover")];
  assert.ok(turnover >= volume * low * 0.999 && turnover <= volume * high * 1.001, `${volume} for ${turnover} is within the day's prices`);
  await assertNotCut(page, "#quote .facts dt, #quote .facts dd, #quote .price", "#quote");
  await assertApart(page, "#change", "#quote .facts");
  await assertApart(page, "#last-price", "#quote .facts");
  await assertApart(page, "#quote .facts", ".balance-line");
  assert.deepEqual(await overlaps(page, "#quote .facts > div"), [], "one of the day's figures lies on another");
  venue.market("BTC-USD").empty("sell");
  await until("the asks are gone", async () => /none/.test(await text(page, "#best-ask")));
  const words = await text(page, ".balance-line .words");
  assert.match(words, /^\d.* BTC wanted.*one side is empty.*nothing for sale$/u);
  assert.doesNotMatch(words, /even/);
  const [bar, whole] = await page.evaluate(
    () => [".balance-line .bar .b", ".balance-line .bar-room"].map((each) => document.querySelector(each)!.getBoundingClientRect().width),
  );
  assert.ok((bar ?? 0) > 0.95 * (whole ?? 1), "the bar is demand's");
  await assertNotCut(page, ".balance-line .words span", "#quote");
  await shoot(`one-side-${width}`);
}

async function saysWhatItIs({ page }: Watched): Promise<void> {
  await page.locator("#tab-fair").waitFor();
  for (const view of ["book", "batch", "account", "fair"]) {
    await page.locator(`#tab-${view}`).click();
    await page.locator(`#view-${view}`).waitFor();
    const { words, hidden } = await page.locator(".motto").evaluate(
      (line) => ({ words: line.textContent, hidden: line.scrollHeight - line.clientHeight }),
    );
    assert.ok(hidden <= 1, `${view}: ${hidden} px of "${words}" are cut off`);
  }
}

async function tabsApart({ page }: Watched): Promise<void> {
  await page.locator("#tab-network").waitFor();
  const boxes = await page.evaluate(() => ["#tab-network", "#venue-bar"].map((selector) => {
    const { right, bottom, left, top } = document.querySelector(selector)!.getBoundingClientRect();
    return { right, bottom, left, top };
  }));
  const [tab, bar] = boxes;
  assert.ok(tab && bar && (tab.right <= bar.left || tab.bottom <= bar.top), JSON.stringify(boxes));
}

async function warnsOfStops({ page, shoot }: Watched): Promise<void> {
  const last = Number((await text(page, "#last-price")).replace(/[^\d.]/g, ""));
  await page.locator("#kind").selectOption("stop");
  await page.fill("#ticket-trigger", (last - 100).toFixed(2));
  await page.locator("#ticket-trigger-fault.warning").waitFor();
  assert.match(await text(page, "#ticket-trigger-fault"), /The last trade, .*, is already above this trigger/);
  assert.equal(await page.locator("#ticket-trigger").getAttribute("aria-invalid"), null, "it is no fault");
  await shoot("stop-warning");
  await page.fill("#ticket-trigger", (last + 100).toFixed(2));
  await page.locator("#ticket-trigger-fault").waitFor({ state: "hidden" });
}

async function asksTwice({ page, shoot }: Watched, { venue }: Running): Promise<void> {
  const last = Number((await text(page, "#last-price")).replace(/[^\d.]/g, ""));
  const orders = (): number => venue.market("BTC-USD").book.ordersOf(1).length;
  const sold = async (price: number): Promise<void> => {
    await page.fill("#ticket-price", price.toFixed(2));
    await enter(page, "s", "0.01");
  };
  await sold(last / 2);
  await until(
    "it is asked about",
    async () => /^Not sent yet.*(49|50)\.\d % below the last trade.*press again/.test(await text(page, "#ticket-answer")),
  );
  assert.match(await text(page, "#ticket-price-fault.warning"), /below the last trade/);
  await shoot("far-order");
  // Another one is asked about again, and a press on the same sends it.
  await sold(last / 4);
  await until("it is asked about again", async () => /7[45]\.\d % below/.test(await text(page, "#ticket-answer")));
  assert.equal(orders(), 0);
  await page.keyboard.press("Enter");
  await until("it is sent", async () => /^Filled/.test(await text(page, "#ticket-answer")));
}

async function batchInSight({ page, shoot }: Watched, { venue }: Running, { width }: Size): Promise<void> {
  // A rare pair's price is long, and so are the figures of a large block.
  venue.batch.botSteps(200_000);
  venue.closeBatch();
  venue.clearBatch();
  const { block } = venue.batch.blocks.at(-1) ?? { block: "" };
  await until("the block is shown", async () => (await text(page, "#batch-block")).replace(/\D/g, "") === block);
  await assertNotCut(page, ".component .worth", ".component");
  const prices = await page.locator(".component .worth").allTextContents();
  assert.ok(prices.every((price) => !/…|\.\.\./.test(price)), prices.join(" "));
  await assertNotCut(page, "#blocks-table th, #blocks-table td", "#blocks-body");
  const heads = await page.locator("#blocks-table th:visible").allTextContents();
  assert.ok(heads.includes("Age") && heads.includes("Unserved, ppb"), heads.join());
  await shoot(`batch-${width}`);
}

async function speaksInPlace({ page, shoot }: Watched, { venue }: Running, { width }: Size): Promise<void> {
  const rate = await suggestedRate(page);
  await offer(page, "50", (rate * 1.05).toPrecision(5));
  await until("it is collected", async () => /^Collected/.test(await text(page, "#offer-answer")));
  makeBlock(venue);
  await until("it stands", async () => /^It stands/.test(await text(page, "#offer-answer")));
  await page.locator("#offers-table tbody button").first().click();
  await until("its cancel is collected", async () => /cancel in/.test(await text(page, "#offers-table tbody tr")));
  makeBlock(venue);
  await page.waitForFunction(() => document.querySelectorAll("#offers-table tbody tr").length === 0);
  await until("the ticket does not speak of it any more", async () => (await text(page, "#offer-answer")) === "");

  // The money goes elsewhere between the signature and the block.
  await offer(page, "500", (rate * 1.05).toPrecision(5));
  await until("it is collected", async () => /^Collected/.test(await text(page, "#offer-answer")));
  venue.spend("EUR", 12_480_000n);
  makeBlock(venue);
  await page.locator(".notice[data-tone=bad]").waitFor();
  assert.match(await text(page, ".notice"), /Transaction \d+ left out \(18: Overdraft\)/);
  await page.evaluate(() => scrollTo(0, 0));
  const kept = ["#offers", "#offer", "#blocks", "#curves", "#offer-fills", "#vector", "#connection", "#key-button", "#views"];
  for (const panel of width >= 1440 ? [...kept, "#batch-block"] : kept) await assertApart(page, ".notice", panel);
  await until("the ticket does not speak of it any more", async () => (await text(page, "#offer-answer")) === "");
  await shoot(`notice-batch-${width}`);

  await page.locator("#tab-book").click();
  await page.locator("#book").waitFor();
  const panels = ["#orders", "#ticket", "#book", "#fills", "#holdings", "#tape", "#connection"];
  for (const panel of width >= 1440 ? [...panels, "#last-price"] : panels) await assertApart(page, ".notice", panel);
  await page.locator(".notice button").click();
  // The order's ticket forgets too.
  await rests(page, await lowBid(page), "0.02");
  await page.locator("#orders-table tbody button", { hasText: "Cancel" }).first().click();
  await until("the ticket does not speak of the order any more", async () => (await text(page, "#ticket-answer")) === "");
}

async function looksBeforeItSigns({ page, shoot }: Watched, { venue }: Running): Promise<void> {
  const rate = await suggestedRate(page);
  const limit = (rate * 1.05).toPrecision(5);
  await offer(page, "1000000000", limit);
  await page.locator("#offer-amount[aria-invalid=true]").waitFor();
  assert.match(await text(page, "#offer-answer"), /Not sent.*You have 125.000\.00 EUR\. Offer no more: an overdraft drops all/u);
  assert.equal(venue.batch.collected, 0, "nothing was handed in");
  await shoot("batch-overdraft");
  // Two that are good by themselves, and too much together.
  await offer(page, "100000", limit);
  await until("the first is collected", async () => /^Collected/.test(await text(page, "#offer-answer")));
  await offer(page, "100000", limit);
  await until(
    "the second is not signed",
    async () => /Not sent.*You have 25.000\.00 EUR, after the 100.000\.00 EUR/u.test(await text(page, "#offer-answer")),
  );
  assert.match(await text(page, "#offer-body .sum"), /You have25.000\.00 EURCollected100.000\.00 EUR/u);
  assert.equal(venue.batch.collected, 1);
  await page.locator("#offer-body .shares button").last().click();
  assert.equal(await page.inputValue("#offer-amount"), "25000", "all that is left");
  makeBlock(venue);
  await until("it stands", async () => /since/.test(await text(page, "#offers-table tbody tr")));
  await until(
    "what stands is reserved, and counted once", async () => /You have25.000\.00 EUR$/u.test(await text(page, "#offer-body .sum")),
  );
}

async function showsAuction({ page, shoot }: Watched, { venue }: Running, { width }: Size): Promise<void> {
  assert.equal(await page.locator("#indicative").isVisible(), false, "while trading goes on there is none");
  const market = venue.market("BTC-USD");
  market.setPhase("pre_open");
  const last = Number((await text(page, "#last-price")).replace(/[^\d.]/g, ""));
  const [high, low] = [(last + 30).toFixed(2), (last - 30).toFixed(2)];
  await until("the phase is known", async () => /Pre-open/.test(await text(page, "#phase")));
  await until("nothing crosses yet", async () => /^Nothing would trade/.test(await text(page, "#indicative")));
  await rests(page, high, "1", "b");
  await rests(page, low, "2", "s");
  const now = market.indicative();
  assert.ok(now);
  const grouped = now.price.replace(/\B(?=(\d{3})+\.)/, "\u00a0");
  await until(
    "the indicative price is shown",
    async () => (await text(page, "#indicative")).startsWith(`Indicative price ${grouped} if the auction ended now: `),
  );
  const left = Number(now.imbalance);
  assert.match(
    await text(page, "#indicative"),
    left === 0 ? /nothing would be left over/ : left > 0 ? /more would be wanted/ : /more would be for sale/,
  );
  assert.match(await text(page, "#indicative"), new RegExp(` ${Number(now.volume)}.BTC would trade`.replace(".BTC", "\\sBTC"), "u"));
  assert.match((await page.locator("#depth-plot").getAttribute("aria-label")) ?? "", /Indicative price/);
  const bare = async (id: string): Promise<string> => (await text(page, id)).replace(/\s/gu, " ");
  assert.equal(await bare("#auction-volume"), `${Number(now.volume)} BTC`);
  assert.equal(await bare("#auction-imbalance"), left === 0 ? "none" : `${Math.abs(left)} BTC ${left > 0 ? "wanted" : "for sale"}`);
  await until("own orders are counted", async () => (await bare("#auction-own")) === "You would buy 1 BTC. You would sell 2 BTC.");
  assert.ok(((await page.locator(".way").getAttribute("points")) ?? "").split(" ").length >= 3, "the way of the price is drawn");
  await assertNotCut(page, "#auction dd, #auction .own", "#depth");
  await assertNotCut(page, "#indicative", "#depth");
  const plot = await page.locator("#depth-plot").evaluate((host) => host.clientHeight);
  assert.ok(plot > 90, `the curves have room: ${plot} px`);
  await shoot(`auction-${width}`);
  await assertFits(page, `an auction at ${width}`, { width });
  market.setPhase("continuous");
  await until("trading goes on", async () => !(await page.locator("#indicative").isVisible()));
  market.setPhase("halt", "price_band");
  await until("the page says why trading is halted", async () => (await text(page, "#phase")) === "Halted by the price band: only cancels");
  market.setPhase("halt");
  await until("the operator halts it", async () => (await text(page, "#phase")) === "Halted: only cancels");
}

/** Not from the first moment that something is seen, and not while the market moves on. */
export async function standsStill({ page }: Watched): Promise<void> {
  await page.reload();
  await page.waitForFunction((ms) => performance.now() > ms, SHIFT_MS);
  const shifted = await page.evaluate(() => window.shifted);
  assert.ok(shifted < SHIFT_MOST, `layout shift of ${shifted.toFixed(3)} in ${SHIFT_MS / 1000} s`);
}

async function watchesStill(watched: Watched): Promise<void> {
  await standsStill(watched);
  const shown = await watched.page.locator("#watch-body button").allTextContents();
  assert.equal(shown.length, 2);
  for (const entry of shown) assert.match(entry, /\d\s%/u);
}

/** The same on the view of this tab, whose figures have come by then. */
function standsStillOn(view: string, figure: string): Act {
  return async (watched) => {
    const { page } = watched;
    await page.locator(`#tab-${view}`).click();
    await page.locator(`#view-${view}`).waitFor();
    await standsStill(watched);
    assert.ok(await page.locator(`#view-${view}`).isVisible());
    assert.match(await text(page, figure), /\d/);
  };
}

async function isReady(page: Page): Promise<void> {
  await page.locator("#connection[data-state=live]").waitFor();
  await canSubmit(page);
  await page.waitForFunction(() => document.querySelectorAll("#book-table tbody tr").length > 5);
  await page.locator("#depth-plot canvas").first().waitFor();
}

export async function canSubmit(page: Page): Promise<void> {
  await page.waitForFunction(() => !(document.querySelector("#submit") as HTMLButtonElement).disabled);
}

async function showBatch(page: Page): Promise<void> {
  await page.locator("#tab-batch").click();
  await page.waitForFunction(() => !(document.querySelector("#offer-submit") as HTMLButtonElement).disabled);
  await page.locator("#curves-plot canvas").waitFor();
  await until("the balance has come", async () => /EUR$/.test(await text(page, "#offer-body .sum")));
}

export function makeBlock(venue: Running["venue"]): void {
  if (venue.batch.collected === 0) venue.batch.collected = 1;
  venue.closeBatch();
  venue.clearBatch();
}

async function suggestedRate(page: Page): Promise<number> {
  await until("a limit is suggested", async () => (await page.inputValue("#offer-limit")) !== "");
  return Number((await page.inputValue("#offer-limit")).replace(/\s/g, ""));
}

async function offer(page: Page, amount: string, limit: string): Promise<void> {
  await page.fill("#offer-amount", amount);
  await page.fill("#offer-limit", limit);
  await page.locator("#offer-answer").evaluate((box) => box.replaceChildren());
  await page.locator("#offer-limit").press("Enter");
}

async function lowBid(page: Page): Promise<string> {
  return page.locator("#book-table tbody tr").evaluateAll((rows) => {
    const bids = (rows as HTMLTableRowElement[]).filter((row) => row.cells[0]?.textContent === "Bid");
    return bids.at(-1)?.cells[1]?.textContent ?? "";
  });
}

async function enter(page: Page, side: "b" | "s", size: string): Promise<void> {
  await blur(page);
  await page.keyboard.press(side);
  await retype(page, size);
  await page.keyboard.press("Enter");
}

/** An order that stands, by keyboard. */
async function rests(page: Page, price: string, size: string, side: "b" | "s" = "b"): Promise<void> {
  const before = await page.locator("#orders-table tbody tr").count();
  await page.fill("#ticket-price", price);
  await enter(page, side, size);
  await until("the order is listed", async () => (await page.locator("#orders-table tbody tr").count()) === before + 1);
  await until("the ticket says so", async () => /Standing in the book/.test(await text(page, "#ticket-answer")));
}

function colourOf(page: Page, selector: string): Promise<string> {
  return page.locator(selector).evaluate((element) => getComputedStyle(element).backgroundColor);
}

/** Each lies within the box that it belongs to, sideways, and holds what is written in it. */
export async function assertNotCut(page: Page, selector: string, within: string): Promise<void> {
  const cut = await page.locator(selector).evaluateAll((elements, outer) => elements.flatMap((element) => {
    const box = element.getBoundingClientRect();
    const room = element.closest(outer)?.getBoundingClientRect();
    if (box.width === 0 || !room) return [];
    const range = document.createRange();
    range.selectNodeContents(element);
    const written = range.getBoundingClientRect();
    const left = Math.min(box.left, written.width > 0 ? written.left : box.left);
    const right = Math.max(box.right, written.width > 0 ? written.right : box.right);
    return left >= room.left - 1 && right <= room.right + 1 && element.scrollWidth <= element.clientWidth + 1 ? [] : [
      `${element.textContent} ${Math.round(box.left)}..${Math.round(written.right)} in ${Math.round(room.left)}..${Math.round(room.right)}`,
    ];
  }), within);
  assert.deepEqual(cut, [], `cut off in ${within}`);
}

/** Each lies within another box, and that is in sight. */
export async function assertWithin(page: Page, selector: string, outer: string): Promise<void> {
  await assertNotCut(page, selector, outer);
  const { scrollWidth, clientWidth } = await page.locator(outer).evaluate(
    (box) => ({ scrollWidth: box.scrollWidth, clientWidth: box.clientWidth }),
  );
  assert.ok(scrollWidth <= clientWidth + 1, `${outer} scrolls sideways`);
}

/** Which of these lie on one another, by what is written in them. */
async function overlaps(page: Page, selector: string): Promise<string[]> {
  return page.locator(selector).evaluateAll((elements) => elements.flatMap((one, at) => elements.slice(at + 1).flatMap((other) => {
    const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
    const [wide, high] = [Math.min(a.right, b.right) - Math.max(a.left, b.left), Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)];
    return wide > 1 && high > 1 ? [`${one.textContent} and ${other.textContent}`] : [];
  })));
}

export async function assertApart(page: Page, one: string, other: string): Promise<void> {
  const [a, b] = await Promise.all([one, other].map((each) => page.locator(each).first().boundingBox()));
  assert.ok(a, `${one} is shown`);
  if (!b) return;
  const aside = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
  const overlap = aside > 0 && Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y) > 0;
  assert.ok(!overlap, `${one} ${JSON.stringify(a)} lies on ${other} ${JSON.stringify(b)}`);
}
