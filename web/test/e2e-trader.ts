// What a trader has on the one screen: the account with its histories, the list of markets, the chart's lines, and settings that are kept.
// Against the fake venue, each step against one of its own.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import type { Browser, Page } from "playwright-core";
import { formatUnits } from "walras";
import { type Arrangement, type Panel, PANELS } from "../src/base/settings.ts";
import { assertFits, blur, choose, open, retype, step, text, until, type Watched } from "./browser.ts";
import { assertNotCut, assertWithin, COUNTS_SHIFTS } from "./e2e-layout.ts";
import { type Running, startFakeVenue } from "./fake-venue.ts";
import { fill } from "./whole.ts";

interface Size {
  width: number;
  height: number;
}

const WIDE: Size = { width: 1440, height: 900 };
const SIZES: Size[] = [WIDE, { width: 1280, height: 720 }, { width: 390, height: 844 }];
const SHIFT_MOST = 0.1;
const SHIFT_MS = 3_000;

/** Counts tones in place of playing them. */
const COUNTS_TONES = `
  window.tones = 0;
  const nothing = () => {};
  const ramps = { setValueAtTime: nothing, linearRampToValueAtTime: nothing, exponentialRampToValueAtTime: nothing };
  window.AudioContext = class {
    state = "running";
    currentTime = 0;
    createGain() {
      window.tones += 1;
      return { gain: ramps, connect: nothing };
    }
    createOscillator() {
      return { frequency: {}, connect: nothing, start: nothing, stop: nothing };
    }
  };
`;

declare global {
  interface Window {
    tones: number;
  }
}

export async function traderSteps(browser: Browser): Promise<void> {
  type Options = { init?: string; timezone?: string; steps?: number; errors?: RegExp; before?: (fake: Running) => void };
  type Act = (watched: Watched, fake: Running, size: Size) => Promise<void>;
  const at = (name: string, sizes: Size[], act: Act, options: Options = {}): Promise<void> =>
    step(`trader: ${name}`, async () => {
      for (const size of sizes) {
        const fake = await startFakeVenue(0, options.steps ?? 0);
        options.before?.(fake);
        try {
          const { init, timezone } = options;
          const watched = await open(
            browser, fake.edAddress,
            { ...size, ...(init === undefined ? {} : { init }), ...(timezone === undefined ? {} : { timezone }) },
          );
          await isReady(watched.page);
          await act(watched, fake, size);
          await watched.assertClean(options.errors);
          await watched.page.context().close();
        } finally {
          await fake.close();
        }
      }
    });
  await at("the account is worth what it holds, and trades earned what they did", SIZES, showsAccount, { before: tradeBefore });
  await at("trades and orders are narrowed, and saved as they are", [WIDE], savesHistories, { before: tradeBefore });
  await at("a market is found by its name, and kept at the top", SIZES, findsMarkets);
  await at("starred markets stay in sight with their prices", SIZES, watchesMarkets);
  await at("indicators are drawn, read out, and kept", [WIDE], drawsIndicators);
  await at("an order is dragged to another price on the chart", [WIDE], dragsOrders);
  await at("a stop without a limit is dragged to another trigger on the chart, and a trailing one is not", [WIDE], dragsStops);
  await at("trigger and limit of a stop-limit are dragged, each by its line", [WIDE], dragsStopLimits);
  await at("a size is given in the quote asset", [WIDE], sizesInQuote);
  await at(
    "every order is asked about where that is chosen", [WIDE], asksAlways,
    { init: 'localStorage.setItem("walras.confirmations", JSON.stringify("all"))' },
  );
  await at("an order has a take-profit and a stop-loss", SIZES, entersBracket, { init: COUNTS_SHIFTS, errors: /409 \(Conflict\)/ });
  await at("an alert is shown once", [WIDE], alerts);
  await at("trades and alerts are heard where that is chosen", [WIDE], playsTones, { init: COUNTS_TONES });
  await at("panels and their arrangement are kept, and reset", [WIDE, { width: 390, height: 844 }], keepsLayout);
  await at(
    "in every arrangement each panel has its room", [...SIZES, { width: 768, height: 1024 }, { width: 1920, height: 1080 }], hasRoom,
  );
  await at("an auction is shown also where its panel is hidden", [WIDE], showsHiddenAuction, {
    init: 'localStorage.setItem("walras.hidden-panels", JSON.stringify(["depth", "chart"]))',
  });
  await at(
    "times are this computer's where that is chosen", [WIDE], localTimes,
    { init: 'localStorage.setItem("walras.time-zone", JSON.stringify("local"))', timezone: "Asia/Kolkata" },
  );
  await at("nothing moves while the account is read", SIZES, standsStill, { init: COUNTS_SHIFTS, steps: 20, before: tradeBefore });
}

function tradeBefore({ venue }: Running): void {
  const fills = [
    ["buy", "30000.00", "1.0000", "12.00"], ["buy", "31000.00", "1.0000", "12.40"], ["sell", "32000.00", "1.0000", "12.80"],
  ] as const;
  fills.forEach(([side, price, size, fee], index) => venue.addFill(fill({
    trade_id: `9000${index}`, order_id: `8000${index}`, client_order_id: String(index), time_ns: `${1_700_000_000 + index}123456789`, side,
    price, size, fee, role: "taker",
  })));
  venue.addFill(fill({
    instrument: "ETH/USD", order_id: "2", client_order_id: "9", time_ns: "1700000009000000000", side: "sell", price: "2000.00",
    size: "1.500", fee: "0.00",
  }));
}

async function showsAccount({ page, shoot }: Watched, { venue }: Running, { width, height }: Size): Promise<void> {
  await page.locator("#tab-account").click();
  await until("the trades are there", async () => (await text(page, "#account-trades")) === "4");
  // 30 500 each: the one that was sold earned 1 500.
  assert.equal(await text(page, "#account-realised"), "+1\u00a0500.00 USD");
  assert.equal(await text(page, "#account-fees"), "37.20 USD");
  const last = async (symbol: string): Promise<bigint> => BigInt((venue.market(symbol).instrument.last_price ?? "").replace(".", ""));
  const [btc, eth] = [await last("BTC-USD"), await last("ETH-USD")];
  const unrealised = (btc - 3_050_000n) + (200_000n * 15n - eth * 15n) / 10n;
  await until("the open positions are at the last price", async () => cents(await text(page, "#account-unrealised")) === unrealised);
  // 250 000 USD, 5 BTC, 40 ETH, and what the batch market has prices for.
  assert.ok(cents(await text(page, "#account-value")) > 25_000_000n + 5n * btc + 40n * eth);
  const rows = await page.locator("#assets-table tbody tr").allTextContents();
  assert.equal(rows.length, 6);
  const sum = (await page.locator("#assets-table tbody tr td:nth-child(4)").allTextContents()).map(cents).reduce((a, b) => a + b);
  assert.equal(sum, cents(await text(page, "#account-value")), "the lines add up to the value");
  await page.selectOption("#counted-in", { index: 0 });
  await choose(page, "input[name=profit-by][value=asset]");
  const lines = page.locator("#asset-profit-table tbody tr");
  await until("all assets are listed", async () => (await lines.count()) === 6);
  assert.equal(await page.locator("#profit-table").isVisible(), false);
  const line = async (asset: string): Promise<string[]> => {
    const name = page.locator("td:first-child", { hasText: new RegExp(`^${asset}$`) });
    return lines.filter({ has: name }).locator("td").allTextContents();
  };
  assert.equal((await line("BTC"))[2], "+1\u00a0500.00", "what was realised in BTC/USD is of BTC");
  assert.deepEqual((await line("USD")).slice(2), ["–", "–", "–", "–"], "nothing counts for what things are priced in");
  const total = async (fact: string): Promise<bigint> => cents(await text(page, `#account-${fact}`));
  const profits = (await lines.locator("td:nth-child(6)").allTextContents()).map(cents).reduce((a, b) => a + b);
  assert.equal(profits, (await total("realised")) + (await total("unrealised")) - (await total("fees")), "the lines add up to the profit");
  assert.match(await text(page, "#asset-profit-words"), /^In USD, at the last prices\. .* base asset/);
  await assertWithin(page, "#asset-profit-table th, #asset-profit-table td", "#profit-body");
  await choose(page, "input[name=profit-by][value=instrument]");
  assert.equal(await page.locator("#profit-table").isVisible(), true);
  for (const scroll of ["#assets-body", "#profit-body", "#all-orders-body", "#trades-body"]) {
    const aside = await page.locator(scroll).evaluate((box) => box.scrollWidth - box.clientWidth);
    assert.ok(aside <= 1, `${scroll} at ${width} is ${aside} px too wide`);
  }
  await assertFits(page, `the account at ${width}`, { width });
  assert.ok(height > 0);
  await shoot(`account-${width}`);
}

async function savesHistories({ page }: Watched): Promise<void> {
  await page.locator("#tab-account").click();
  await until("the trades are listed", async () => (await page.locator("#trades-table tbody tr").count()) === 4);
  await page.fill("#trades-search", "eth");
  assert.equal(await page.locator("#trades-table tbody tr").count(), 1);
  assert.equal(await text(page, "#trades-found"), "1 of 4");
  await page.fill("#trades-search", "");
  await page.selectOption("#trades-side", "sell");
  assert.equal(await page.locator("#trades-table tbody tr").count(), 2);
  const file = await saved(page, "#trades-save");
  assert.equal(file, [
    "time_utc,instrument,side,price,size,fee,fee_asset,role,trade_id,order_id,client_order_id",
    "2023-11-14T22:13:29.000000000Z,ETH/USD,sell,2000.00,1.500,0.00,USD,maker,1,2,9",
    "2023-11-14T22:13:22.123456789Z,BTC/USD,sell,32000.00,1.0000,12.80,USD,taker,90002,80002,2", "",
  ].join("\r\n"));
  await page.locator("#tab-book").click();
  await rests(page, "30000", "0.02");
  await page.locator("#tab-account").click();
  await page.locator("#all-orders-table tbody tr").first().waitFor();
  assert.match(await text(page, "#all-orders-table tbody"), /BTC\/USD▲ Buy 0\.02 BTC at 30\s000\.00Open/u);
  assert.match(await saved(page, "#all-orders-save"), /BTC\/USD,buy,limit,30000\.00,,0\.0200,open,\d+,\d+/);
}

async function findsMarkets({ page, shoot }: Watched, _: Running, { width }: Size): Promise<void> {
  await page.locator("#instrument").click();
  await until(
    "both are listed with the day's figures",
    async () => (await page.locator("#markets-table tbody tr").allTextContents()).every((row) => /\d %/u.test(row.replace(/\s/gu, " "))),
  );
  await page.locator("#market-ETH-USD .star").click();
  assert.deepEqual(await page.locator("#markets-table tbody tr td:nth-child(2)").allTextContents(), ["ETH/USD", "BTC/USD"]);
  const aside = await page.locator("#markets").evaluate((box) => box.scrollWidth - box.clientWidth);
  assert.ok(aside <= 1, `the list is ${aside} px too wide`);
  await shoot(`markets-${width}`);
  await page.fill("#markets-search", "xyz");
  await page.getByText("No instrument has that in its name.").waitFor();
  await page.fill("#markets-search", "us et");
  await page.locator("#markets-search").press("Enter");
  await page.waitForFunction(() => document.querySelector("#instrument")?.textContent === "ETH/USD");
  assert.match(page.url(), /#ETH-USD$/);
  await page.reload();
  await isReady(page);
  await blur(page);
  await page.keyboard.press("i");
  assert.deepEqual(await page.locator("#markets-table tbody tr td:nth-child(2)").allTextContents(), ["ETH/USD", "BTC/USD"], "kept");
  await page.keyboard.press("Escape");
}

async function watchesMarkets({ page, shoot }: Watched, { venue }: Running, { width, height }: Size): Promise<void> {
  assert.match(await text(page, "#watch-body .empty"), /★ in the list of markets/);
  await assertNotCut(page, "#watch-body .empty", "#watch");
  await shoot(`watch-empty-${width}`);
  await page.locator("#watch-choose").click();
  for (const name of ["ETH-USD", "BTC-USD"]) await page.locator(`#market-${name} .star`).click();
  await page.keyboard.press("Escape");
  const entries = page.locator("#watch-body button");
  const showsAll = async (): Promise<boolean> => {
    const shown = (await entries.allTextContents()).map((entry) => entry.replace(/\s/gu, ""));
    return shown.length === 2 && ["ETH-USD", "BTC-USD"].every((name, at) => {
      const { symbol, last_price: last } = venue.market(name).instrument;
      const entry = shown[at] ?? "";
      return entry.startsWith(`${symbol}${last}`) && /[+−±]\d+\.\d\d%today\(UTC\)$/u.test(entry);
    });
  };
  await until("both are listed as they were starred, with price and change", showsAll);
  assert.equal(await page.locator("#watch-body .empty").isVisible(), false);
  // The market that is not shown moves.
  const before = venue.market("ETH-USD").instrument.last_price;
  venue.sellAtMarket("ETH-USD", 40);
  assert.notEqual(venue.market("ETH-USD").instrument.last_price, before);
  await until("the new price is shown", showsAll);
  await page.evaluate(() => scrollTo(0, 0));
  const box = await page.locator("#watch").boundingBox();
  assert.ok(box && box.y >= 0 && box.y + box.height <= height, `in sight without scrolling: ${JSON.stringify(box)}`);
  await assertWithin(page, "#watch-body button, #watch-body button > :not(.sr), #watch-choose", "#watch");
  await assertWithin(page, "#watch-body button", "#watch-body");
  await assertFits(page, `the watch list at ${width}`, { width });
  await shoot(`watch-${width}`);
  const isOpen = (symbol: string): Promise<void> => until(`${symbol} is open`, async () =>
    (await text(page, "#instrument")) === symbol && (await text(page, "#watch-body [aria-current]")).startsWith(symbol));
  await isOpen("BTC/USD");
  await page.locator("#watched-ETH-USD").click();
  await isOpen("ETH/USD");
  assert.match(page.url(), /#ETH-USD$/);
  await page.locator("#watched-BTC-USD").press("Enter");
  await isOpen("BTC/USD");
  await page.reload();
  await isReady(page);
  await until("they are kept", showsAll);
  // It is one list in all tabs of the browser.
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.locator("#watched-BTC-USD").waitFor();
  await other.locator("#watch-choose").click();
  await other.locator("#market-ETH-USD .star").click();
  await until(
    "one is taken off", async () => (await entries.allTextContents()).join().startsWith("BTC/USD") && (await entries.count()) === 1,
  );
  await other.close();
}

const INDICATORS = new RegExp([
  /Average 10 [\d\s.]+/u, /Exponential 50 [\d\s.]+/u, /Bollinger 20 [\d\s.]+ \/ [\d\s.]+ \/ [\d\s.]+/u, /VWAP [\d\s.]+/u,
  /RSI 14 \d+\.\d/u, /MACD [−\d\s.]+ \/ [−\d\s.]+/u, /ATR 14 [\d\s.]+$/u,
].map(({ source }) => source).join("; "), "u");

async function drawsIndicators({ page, shoot }: Watched): Promise<void> {
  await page.locator("#studies summary").click();
  for (const name of ["average", "exponential", "bollinger", "vwap", "rsi", "macd", "atr"]) await page.locator(`#study-${name}`).check();
  await page.fill("#study-average-period", "10");
  await page.locator("#study-average-period").press("Enter");
  const shown = (): Promise<string> => page.locator("#candle-readout").evaluate(
    (line) => [...line.children].map((part) => part.textContent).join("; "),
  );
  await until("their values are read out", async () => INDICATORS.test(await shown()));
  const panes = (): Promise<number> =>
    page.locator("#chart-plot table tr").evaluateAll((rows) => rows.filter((row) => row.querySelector("canvas")).length);
  const before = await panes();
  await blur(page);
  assert.equal(await page.locator("#studies").getAttribute("open"), null, "Escape closes the menu");
  await shoot("indicators");
  // A pane goes with its indicator.
  await page.locator("#studies summary").click();
  await page.locator("#study-macd").uncheck();
  await until("its pane is gone", async () => (await panes()) < before);
  await page.locator("#study-macd").check();
  await page.reload();
  await isReady(page);
  await until("they are kept", async () => /Average 10 .*VWAP .*RSI 14/u.test(await shown()));
}

async function dragsOrders({ page, shoot }: Watched, { venue }: Running): Promise<void> {
  await rests(page, await lowestBid(page), "0.02");
  await page.locator('#chart-plot[data-own-lines="1"]').waitFor();
  const order = venue.market("BTC-USD").book.ordersOf(1)[0];
  assert.ok(order?.price);
  const before = order.price;
  let { x, y } = await findLine(page);
  await page.mouse.down();
  await page.mouse.move(x, y + 12, { steps: 3 });
  await shoot("dragging");
  await page.mouse.up();
  await until("the venue has the new price", async () => (venue.market("BTC-USD").book.ordersOf(1)[0]?.price ?? before) < before);
  await page.getByText("Your order was moved").waitFor();
  // Escape lets it be.
  const after = venue.market("BTC-USD").book.ordersOf(1)[0]?.price;
  ({ x, y } = await findLine(page));
  await page.mouse.down();
  await page.mouse.move(x, y - 20, { steps: 3 });
  await page.keyboard.press("Escape");
  await page.mouse.up();
  assert.equal(venue.market("BTC-USD").book.ordersOf(1)[0]?.price, after);
  await scrollsChart(page);
  await page.fill("#ticket-price", "40000");
  await enter(page, "b", "0.01");
  await page.keyboard.press("Enter");
  await until("the trade is marked on the chart", async () => (await page.locator("#chart-plot").getAttribute("data-own-marks")) === "1");
}

async function dragsStops({ page }: Watched, { venue }: Running): Promise<void> {
  const { book } = venue.market("BTC-USD");
  const stop = (): bigint => book.ordersOf(1)[0]?.trigger ?? 0n;
  await page.locator("#kind").selectOption("stop");
  await page.fill("#ticket-trigger", await lowestBid(page));
  await enter(page, "s", "0.02");
  await page.locator('#chart-plot[data-own-lines="1"]').waitFor();
  const before = stop();
  assert.ok(before > 0n);
  await dragLine(page, "above");
  await until("the venue has the new trigger", async () => stop() < before);
  assert.equal(book.ordersOf(1)[0]?.price, null, "it has no limit as before");
  await page.getByText("Your order was moved").waitFor();
  // By keyboard, in the order's row.
  await page.locator("#orders-table tbody button", { hasText: "Amend" }).click();
  const field = page.locator("#orders-table tbody input").first();
  assert.match((await field.getAttribute("aria-label")) ?? "", /^New trigger of: /);
  await field.fill(formatUnits(before, 2));
  await field.press("Enter");
  await until("the trigger is where it was", async () => stop() === before);
  await choose(page, "input[name=orders-shown][value=history]");
  const amended = page.locator("#history-table td.what", { hasText: "Amended from" });
  await until("both are in the history", async () => (await amended.count()) === 2);
  await choose(page, "input[name=orders-shown][value=open]");
  // The trigger of a trailing stop follows the price by itself: its line is no grip.
  const own = book.ordersOf(1)[0];
  assert.ok(own);
  own.kind = "trailing_stop";
  book.onOrder(own, "waiting_trigger");
  await until("it is listed as trailing", async () => /trailing/.test(await text(page, "#orders-table tbody tr")));
  assert.equal(await lineAt(page), null);
}

async function dragsStopLimits({ page, shoot }: Watched, { venue }: Running): Promise<void> {
  const { book } = venue.market("BTC-USD");
  const own = (): { trigger: bigint; price: bigint } => {
    const [order] = book.ordersOf(1);
    return { trigger: order?.trigger ?? 0n, price: order?.price ?? 0n };
  };
  const bids = await bidsOf(page);
  await page.locator("#kind").selectOption("stop_limit");
  await page.fill("#ticket-trigger", bids[Math.floor(bids.length / 2)] ?? "");
  await page.fill("#ticket-price", bids.at(-1) ?? "");
  await enter(page, "s", "0.02");
  await page.locator('#chart-plot[data-own-lines="2"]').waitFor();
  const before = own();
  assert.ok(before.trigger > before.price && before.price > 0n);
  await shoot("stop-limit-lines");
  await dragLine(page, "above");
  await until("the venue has the new trigger", async () => own().trigger < before.trigger);
  assert.equal(own().price, before.price, "the limit is where it was");
  await page.getByText("(trigger): from").waitFor();
  // By keyboard, in the order's row.
  await page.locator("#orders-table tbody button", { hasText: "Amend" }).click();
  assert.deepEqual(await page.locator("#orders-table .amend label").allTextContents(), ["Trigger", "Price", "Open"]);
  const field = page.locator("#orders-table tbody input").first();
  await field.fill(formatUnits(before.trigger, 2));
  await field.press("Enter");
  await until("the trigger is where it was", async () => own().trigger === before.trigger);
  await dragLine(page, "below");
  await until("the venue has the new limit", async () => own().price < before.price);
  assert.equal(own().trigger, before.trigger, "the trigger is where it was");
  await page.getByText("(limit): from").waitFor();
  await choose(page, "input[name=orders-shown][value=history]");
  await until("the history says which price was amended", async () => {
    const whats = (await page.locator("#history-table td.what").allTextContents()).filter((what) => what.startsWith("Amended from"));
    return whats.map((what) => /\((\w+)\)$/.exec(what)?.[1]).join() === "limit,trigger,trigger";
  });
}

/** Earlier candles come into sight where the chart is dragged by no line. */
async function scrollsChart(page: Page): Promise<void> {
  const box = await page.locator("#chart-plot").boundingBox();
  assert.ok(box);
  const [x, y] = [box.x + 200, box.y + 20];
  const readAt = async (): Promise<string> => {
    await page.mouse.move(x, y);
    return text(page, "#candle-readout span");
  };
  await page.mouse.move(0, 0);
  const newest = await text(page, "#candle-readout span");
  await until("the candle at the pointer is read out", async () => (await readAt()) !== newest);
  const before = await readAt();
  await page.mouse.down();
  await page.mouse.move(x + 80, y, { steps: 4 });
  await page.mouse.up();
  await until("another candle is there", async () => (await readAt()) !== before);
}

async function bidsOf(page: Page): Promise<string[]> {
  const bids = page.locator("#book-table tbody tr[data-side=buy]");
  return bids.evaluateAll((rows) => rows.map((row) => (row as HTMLTableRowElement).cells[1]?.textContent ?? ""));
}

async function lowestBid(page: Page): Promise<string> {
  return (await bidsOf(page)).at(-1) ?? "";
}

type From = "above" | "below";

/** Drags the first line from there on to a lower price. */
async function dragLine(page: Page, from: From): Promise<void> {
  const { x, y } = await findLine(page, from);
  await page.mouse.down();
  await page.mouse.move(x, y + 12, { steps: 3 });
  await page.mouse.up();
}

/** Where an order's line lies on the chart: the pointer becomes a grip there. The scale follows the price, so it is looked for again. */
async function findLine(page: Page, from: From = "above"): Promise<{ x: number; y: number }> {
  const found: { x: number; y: number }[] = [];
  await until("an order's line is found on the chart", async () => {
    const at = await lineAt(page, from);
    if (at !== null) found.push(at);
    return at !== null;
  });
  const [line] = found;
  assert.ok(line);
  return line;
}

async function lineAt(page: Page, from: From = "above"): Promise<{ x: number; y: number } | null> {
  const box = await page.locator("#chart-plot").boundingBox();
  assert.ok(box);
  const x = box.x + 200;
  for (let down = 4; down < box.height; down += 4) {
    const y = box.y + (from === "above" ? down : box.height - down);
    await page.mouse.move(x, y);
    if (await page.locator("#chart-plot").evaluate((plot) => plot.classList.contains("grabbable"))) return { x, y };
  }
  return null;
}

async function sizesInQuote({ page, shoot }: Watched): Promise<void> {
  await page.fill("#ticket-price", "30000");
  await page.locator("#size-unit").click();
  await until("the unit is turned", async () => (await text(page, "#size-unit")) === "USD");
  await page.fill("#ticket-size", "1000");
  await until(
    "it is reckoned in lots",
    async () => /That is0\.0333 BTCCosts at most999\.00 USD/.test((await text(page, ".ticket .sum")).replace(/\s/gu, " ")),
  );
  await until("the button says so", async () => /^Buy 0\.0333 BTC at/.test((await text(page, "#submit")).replace(/\s/gu, " ")));
  await shoot("size-in-quote");
  await page.fill("#ticket-size", "2.99");
  await until("it is too little", async () => /less than one lot, 0\.0001 BTC/.test(await text(page, "#ticket-size-fault")));
  await page.fill("#ticket-size", "3");
  await page.locator("#ticket-size").press("Enter");
  await until("it stands", async () => /Standing in the book.*0\.0001 BTC/.test((await text(page, "#ticket-answer")).replace(/\s/gu, " ")));
  await page.locator("#size-unit").click();
  await until("the same size is given in the other unit", async () => (await page.inputValue("#ticket-size")) === "0.0001");
}

async function asksAlways({ page }: Watched, { venue }: Running): Promise<void> {
  const bid = (await text(page, "#best-bid")).replace(/\s/gu, "");
  await page.fill("#ticket-price", bid);
  await enter(page, "b", "0.01");
  await until(
    "it is asked about",
    async () => /^Not sent yet.*Buy 0\.01 BTC at.*press again/u.test((await text(page, "#ticket-answer")).replace(/\s/gu, " ")),
  );
  assert.equal(venue.market("BTC-USD").book.ordersOf(1).length, 0);
  // With exits it is another order, and they are asked about with it.
  await page.locator("#exits summary").click();
  await page.fill("#ticket-stopLoss", "20000");
  await page.locator("#ticket-stopLoss").press("Enter");
  await until("all of it is asked about", async () =>
    /Buy 0\.01 BTC at [\d .]+, stop-loss at 20 000\.00\. If/u.test((await text(page, "#ticket-answer")).replace(/\s/gu, " ")));
  assert.equal(venue.market("BTC-USD").book.ordersOf(1).length, 0);
  await page.keyboard.press("Enter");
  await until("it stands", async () => /^Standing/.test(await text(page, "#ticket-answer")));
  assert.equal(venue.market("BTC-USD").book.ordersOf(1).length, 2);
}

async function entersBracket({ page, shoot }: Watched, { venue }: Running, { width }: Size): Promise<void> {
  const { book, instrument } = venue.market("BTC-USD");
  const answer = async (): Promise<string> => (await text(page, "#ticket-answer")).replace(/\s/gu, " ");
  const rows = async (): Promise<string[]> =>
    (await page.locator("#orders-table tbody tr td:first-child").allTextContents()).map((row) => row.replace(/\s/gu, " "));
  const last = Number(instrument.last_price);
  const bid = (Number((await text(page, "#best-bid")).replace(/\s/gu, "")) + 0.01).toFixed(2);
  await page.fill("#ticket-price", bid);
  await page.fill("#ticket-size", "0.02");
  await page.locator("#exits summary").click();
  await page.fill("#ticket-takeProfit", (last - 1_000).toFixed(2));
  await page.fill("#ticket-stopLimit", (last - 1_010).toFixed(2));
  await until("the field says what is wrong", async () => /above its price/.test(await text(page, "#ticket-takeProfit-fault")));
  await until("and so does the other", async () => /needs a stop-loss/.test(await text(page, "#ticket-stopLimit-fault")));
  await shoot(`bracket-faults-${width}`);
  // A trigger that the last trade has touched is the venue's to refuse, and then nothing is left.
  await page.locator("#kind").selectOption("market");
  await page.fill("#ticket-takeProfit", (last + 1_000).toFixed(2));
  await page.fill("#ticket-stopLoss", (last + 1).toFixed(2));
  await until("it is warned of", async () => /the venue refuses such a stop/.test(await text(page, "#ticket-stopLoss-fault")));
  await page.locator("#ticket-stopLoss").press("Enter");
  await until("it is refused", async () => /^Refused, no\. 90/.test(await answer()));
  assert.equal(book.ordersOf(1).length, 0);

  await page.locator("#kind").selectOption("limit");
  await page.locator("#tif").selectOption("gtc");
  await page.fill("#ticket-stopLoss", (last - 1_000).toFixed(2));
  await page.locator("#ticket-stopLoss").press("Enter");
  await until("it stands with its exits", async () =>
    /^Standing.*its exits follow: take-profit at [\d .]+, stop-loss at [\d .]+, limit [\d .]+\.$/.test(await answer()));
  await until("all three are listed", async () => (await rows()).length === 3);
  assert.equal((await rows()).filter((row) => /, waits for its entry$/.test(row)).length, 2, (await rows()).join("\n"));
  await shoot(`bracket-open-${width}`);
  await page.locator("#exits summary").click();
  await until("its head says what is folded", async () =>
    /^Exits: take-profit at [\d .]+, stop-loss at [\d .]+, limit/.test((await text(page, "#exits summary")).replace(/\s/gu, " ")));
  await assertFits(page, `a bracket at ${width}`, { width });
  await assertWithin(page, "#exits summary", "#ticket-body");
  await shoot(`bracket-held-${width}`);
  assert.ok((await page.evaluate(() => window.shifted)) < SHIFT_MOST);
  // Known again, from the list.
  await page.reload();
  await isReady(page);
  await until("they are listed again", async () => (await rows()).filter((row) => /waits for its entry/.test(row)).length === 2);
  // Filled in part, then wholly: the exits follow, then stand by themselves, and one cancels the other.
  venue.sellAtMarket("BTC-USD", 0.01);
  await until("they are linked", async () =>
    (await rows()).length === 3 && (await rows()).filter((row) => /, OCO with /.test(row)).length === 2);
  assert.deepEqual(book.stops.map(({ open }) => open), [100n, 100n]);
  venue.sellAtMarket("BTC-USD", 0.01);
  await until("they stand by themselves", async () =>
    (await rows()).length === 2 && (await rows()).every((row) => /, OCO with /.test(row)));
  await shoot(`bracket-active-${width}`);
  await page.locator("#orders-table tbody button").last().click();
  await until("both are gone", async () => (await rows()).length === 0 && book.ordersOf(1).length === 0);

  await page.locator("#kind").selectOption("market");
  await page.fill("#ticket-size", "0.01");
  await page.locator("#exits summary").click();
  await page.fill("#ticket-stopLoss", (last - 1_000).toFixed(2));
  await page.locator("#ticket-stopLoss").press("Enter");
  await until("it is filled", async () => /^Filled.*stop-loss at [\d .]+\.$/.test(await answer()));
  await until("its exit stands", async () => (await rows()).length === 1 && /stop at [\d .]+$/.test((await rows())[0] ?? ""));
}

async function alerts({ page, shoot }: Watched, { venue }: Running): Promise<void> {
  const last = Number((await text(page, "#last-price")).replace(/\s/gu, ""));
  await page.locator("#alerts-button").click();
  await page.fill("#alert-price", "1,5");
  await page.locator("#alert-add").click();
  assert.match(await text(page, "#alert-fault"), /plain number/);
  await page.fill("#alert-price", (last - 1).toFixed(2));
  await page.locator("#alert-add").click();
  await until("it is listed", async () => /BTC\/USD falls to/.test(await text(page, "#alerts-list")));
  await shoot("alerts");
  await page.keyboard.press("Escape");
  venue.sellAtMarket("BTC-USD", 12);
  await page.locator(".notice", { hasText: "Price alert" }).waitFor();
  assert.match((await text(page, ".notice")).replace(/\s/gu, " "), /Price alertBTC\/USD falls to .*: last trade /);
  await page.locator("#alerts-button").click();
  assert.match(await text(page, "#alerts-list"), /None set/);
}

async function playsTones({ page }: Watched, { venue }: Running): Promise<void> {
  const { book } = venue.market("BTC-USD");
  const tones = (): Promise<number> => page.evaluate(() => window.tones);
  const setting = page.locator("#setting-sound");
  const figure = async (id: string): Promise<number> => Number((await text(page, id)).replace(/\s/gu, ""));
  // One's own order at the top of the book, and somebody who sells to it.
  const trade = async (): Promise<void> => {
    await rests(page, ((await figure("#best-bid")) + 0.01).toFixed(2), "0.02");
    await until("it stands in the book", async () => book.ordersOf(1).length === 1);
    venue.sellAtMarket("BTC-USD", 0.02);
    await page.locator(".notice", { hasText: "Your order traded" }).waitFor();
    await page.locator(".notice button").click();
  };
  await trade();
  assert.equal(await tones(), 0, "nothing is heard that was not chosen");
  await page.locator("#settings-button").click();
  assert.equal(await setting.isChecked(), false);
  await setting.check();
  assert.equal(await tones(), 1, "what is chosen is heard at once");
  await page.keyboard.press("Escape");
  await trade();
  await until("the trade is heard", async () => (await tones()) === 2);
  await page.locator("#alerts-button").click();
  await page.fill("#alert-price", ((await figure("#last-price")) - 1).toFixed(2));
  await page.locator("#alert-add").click();
  await page.keyboard.press("Escape");
  venue.sellAtMarket("BTC-USD", 12);
  await until("the alert is heard", async () => (await tones()) === 3);
  await page.reload();
  await isReady(page);
  await page.locator("#settings-button").click();
  assert.equal(await setting.isChecked(), true, "it is kept");
  await setting.uncheck();
  await page.keyboard.press("Escape");
  await trade();
  assert.equal(await tones(), 0);
}

async function keepsLayout({ page, shoot }: Watched, _: Running, { width }: Size): Promise<void> {
  const areShown = async (hidden: Panel[]): Promise<void> => {
    for (const panel of PANELS) assert.equal(await page.locator(`#${panel}`).isVisible(), !hidden.includes(panel), panel);
    for (const panel of ["book", "ticket"]) assert.ok(await page.locator(`#${panel}`).isVisible(), panel);
  };
  const reload = async (): Promise<void> => {
    await page.reload();
    await isReady(page);
  };
  await areShown([]);
  await page.locator("#settings-button").press("Enter");
  await page.selectOption("#setting-layout", "chart");
  for (const panel of ["tape", "watch"]) await page.locator(`#show-${panel}`).press("Space");
  await shoot(`settings-${width}`);
  await page.keyboard.press("Escape");
  await areShown(["tape", "watch"]);
  await assertFits(page, `the large chart at ${width}`, { width });
  await shoot(`layout-chart-${width}`);
  await reload();
  await areShown(["tape", "watch"]);
  await page.locator("html[data-layout=chart]").waitFor();
  await page.locator("#settings-button").press("Enter");
  assert.equal(await page.inputValue("#setting-layout"), "chart");
  assert.equal(await page.locator("#show-tape").isChecked(), false);
  await page.locator("#layout-reset").press("Enter");
  assert.equal(await page.inputValue("#setting-layout"), "standard");
  assert.equal(await page.locator("#settings .checks input:checked").count(), PANELS.length);
  await page.keyboard.press("Escape");
  await areShown([]);
  await reload();
  await areShown([]);
  await page.locator("html[data-layout=standard]").waitFor();
}

async function hasRoom({ page, shoot }: Watched, _: Running, { width }: Size): Promise<void> {
  const hiddenSets: Panel[][] = [
    [], ["tape"], ["depth", "tape", "watch"], ["chart", "depth", "holdings"], ["chart", "depth", "orders", "fills"], [...PANELS],
  ];
  for (const arrangement of ["standard", "chart", "book"] satisfies Arrangement[]) {
    for (const hidden of hiddenSets) {
      const name = `${arrangement} without ${hidden.join(" ") || "nothing"} at ${width}`;
      await arrange(page, arrangement, hidden);
      assert.deepEqual(await crowded(page), [], name);
      await assertFits(page, name, { width });
      if (hidden.length === 0) await shoot(`layout-${arrangement}-${width}`);
    }
  }
}

/** By script: five windows times eighteen arrangements are hundreds of clicks, and another step tests those. */
async function arrange(page: Page, arrangement: Arrangement, hidden: Panel[]): Promise<void> {
  await page.evaluate(async ([arrangement, hidden]) => {
    const layout = document.querySelector<HTMLSelectElement>("#setting-layout")!;
    layout.value = arrangement;
    layout.dispatchEvent(new Event("change"));
    for (const box of document.querySelectorAll<HTMLInputElement>("#settings input[id^=show-]")) {
      if (box.checked === (hidden as string[]).includes(box.value)) box.click();
    }
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  }, [arrangement, hidden] as const);
}

/** Panels that lie on one another or on the foot, leave the window, or have no room for what they show. */
function crowded(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const boxes = [...document.querySelectorAll("#panels .panel, footer")].filter((panel) => panel.checkVisibility())
      .map((panel) => ({ id: panel.id || panel.localName, box: panel.getBoundingClientRect() }));
    const faults = boxes.filter(({ box }) => box.left < -1 || box.right > innerWidth + 1).map(({ id }) => `${id} leaves the window`);
    boxes.forEach((one, at) => {
      for (const { id, box } of boxes.slice(at + 1)) {
        const wide = Math.min(one.box.right, box.right) - Math.max(one.box.left, box.left);
        const high = Math.min(one.box.bottom, box.bottom) - Math.max(one.box.top, box.top);
        if (wide > 1 && high > 1) faults.push(`${one.id} lies on ${id}`);
      }
    });
    const rooms = {
      "ladder-slider": 240, "chart-plot": 80, "depth-plot": 60, "tape-body": 80, "watch-body": 24, "orders-body": 24, "fills-body": 24,
    };
    for (const [id, least] of Object.entries(rooms)) {
      const room = document.getElementById(id);
      if (!room?.checkVisibility()) continue;
      const { width, height } = room.getBoundingClientRect();
      if (height < least || width < 200) faults.push(`${id} has ${Math.round(width)} × ${Math.round(height)} px`);
    }
    return faults;
  });
}

async function showsHiddenAuction({ page }: Watched, { venue }: Running): Promise<void> {
  const isShown = (panel: Panel): Promise<boolean> => page.locator(`#${panel}`).isVisible();
  assert.deepEqual([await isShown("depth"), await isShown("chart")], [false, false]);
  venue.market("BTC-USD").setPhase("pre_open");
  await until("the auction is shown", () => isShown("depth"));
  assert.match(await text(page, "#indicative"), /^(Nothing would trade|Indicative price)/);
  await page.locator("#depth-plot canvas").waitFor();
  assert.equal(await isShown("chart"), false);
  venue.market("BTC-USD").setPhase("continuous");
  await until("it is hidden again", async () => !(await isShown("depth")));
}

async function localTimes({ page }: Watched): Promise<void> {
  assert.match(await text(page, "#tape-body thead"), /Time \(UTC\+5:30\)/);
  assert.match((await page.locator("#candle-readout").textContent()) ?? "", /UTC\+5:30/);
  const [hours, minutes] = (await text(page, "#tape-body tbody td")).split(":").map(Number);
  const now = new Date(Date.now() + 5.5 * 3_600_000);
  const away = Math.abs((hours ?? 0) * 60 + (minutes ?? 0) - now.getUTCHours() * 60 - now.getUTCMinutes());
  assert.ok(Math.min(away, 1_440 - away) <= 5, `the newest trade was ${away} minutes from now`);
}

async function standsStill({ page }: Watched): Promise<void> {
  await page.locator("#tab-account").click();
  await page.reload();
  await page.waitForFunction((ms) => performance.now() > ms, SHIFT_MS);
  const shifted = await page.evaluate(() => window.shifted);
  assert.ok(shifted < SHIFT_MOST, `layout shift of ${shifted.toFixed(3)} in ${SHIFT_MS / 1000} s`);
}

async function saved(page: Page, button: string): Promise<string> {
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator(button).click()]);
  return readFile(await download.path(), "utf8");
}

async function isReady(page: Page): Promise<void> {
  await page.locator("#connection[data-state=live]").waitFor();
  await page.waitForFunction(() => !(document.querySelector("#submit") as HTMLButtonElement).disabled);
  await page.waitForFunction(() => document.querySelectorAll("#book-table tbody tr").length > 5);
}

async function enter(page: Page, side: "b" | "s", size: string): Promise<void> {
  await blur(page);
  await page.keyboard.press(side);
  await retype(page, size);
  await page.keyboard.press("Enter");
}

async function rests(page: Page, price: string, size: string): Promise<void> {
  await page.fill("#ticket-price", price);
  await enter(page, "b", size);
  await until("the ticket says that it stands", async () => /Standing in the book/.test(await text(page, "#ticket-answer")));
}

/** "+1 500.00 USD" is 150000n. */
function cents(shown: string): bigint {
  return BigInt(shown.replace("\u2212", "-").replace(/[^\d-]/g, ""));
}
