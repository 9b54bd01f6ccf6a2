// The page in each of its languages: everything that it can show is looked at for text that is cut, runs out of its box or over another
// text. Against the fake venue. What the texts say is not repeated here: they come from the catalogues.

import assert from "node:assert/strict";
import type { Browser } from "playwright-core";
import { de } from "../src/texts/de/index.ts";
import { en } from "../src/texts/en/index.ts";
import type { Texts } from "../src/texts/index.ts";
import { type Language, LANGUAGE_TAGS } from "../src/texts/language.ts";
import { zh } from "../src/texts/zh/index.ts";
import { assertFits, assertNothingCut, choose, open, step, text, until, type Watched } from "./browser.ts";
import { assertApart, assertWithin, canSubmit, COUNTS_SHIFTS, makeBlock, standsStill, tradeMuch } from "./e2e-layout.ts";
import { FakeFair } from "./fake/fair.ts";
import { type Running, startFakeVenue } from "./fake-venue.ts";
import { fill } from "./whole.ts";

const SIZES = [{ width: 1440, height: 900 }, { width: 1280, height: 720 }, { width: 390, height: 844 }];
const SPOKEN: [Language, locale: string, Texts][] = [["en", "en-GB", en], ["zh", "zh-CN", zh], ["de", "de-DE", de]];

interface Tour extends Watched {
  texts: Texts;
  fake: Running;
  size: { width: number; height: number };
  /** Fails where something is cut, and takes a picture. */
  look(what: string): Promise<void>;
}

export async function languageSteps(browser: Browser): Promise<void> {
  for (const [language, locale, texts] of SPOKEN) {
    // Between a phone and a wide screen the longest words show what all would: German's.
    for (const size of SIZES.filter((one) => one.width !== 1280 || language === "de")) {
      const at = (
        name: string,
        act: (tour: Tour) => Promise<void>,
        options: { steps?: number; init?: string; before?: (fake: Running) => void } = {},
      ): Promise<void> =>
        step(`language: ${language} at ${size.width}: ${name}`, async () => {
          const fake = await startFakeVenue(0, options.steps ?? 0);
          fake.venue.fair = new FakeFair();
          [fake.venue.fair.gateways, fake.venue.fair.lostGateway, fake.venue.fair.layers] = [6, 47, [3, 20]];
          fake.venue.fair.parallelLayers = [[2, 20]];
          options.before?.(fake);
          try {
            const watched = await open(browser, fake.edAddress, {
              ...size,
              locale,
              ...(options.init === undefined ? {} : { init: options.init }),
            });
            const { page } = watched;
            await page.locator("#connection[data-state=live]").waitFor();
            await canSubmit(page);
            await act({
              ...watched,
              texts,
              fake,
              size,
              look: async (what) => {
                // Pictures first: they show what the rest finds.
                await watched.shoot(`${language}-${what}-${size.width}`);
                await assertNothingCut(page, `${language} at ${size.width}: ${what}`);
                await assertFits(page, what, { width: Math.min(size.width, 1_439) });
              },
            });
            await watched.assertClean();
            await page.context().close();
          } finally {
            await fake.close();
          }
        });
      await at("the order book, its ticket and its dialogs", showsBook, { before: tradeMuch });
      await at("batches, account and machines", showsOthers, {
        before: ({ venue }) => venue.addFill(fill({ price: "30000.00", size: "0.0100", fee: "0.12", role: "taker" })),
      });
      // English is among the layout tests.
      if (language !== "en") await at("nothing moves while it is read", standsStill, { init: COUNTS_SHIFTS, steps: 20 });
    }
  }
  await step("language: a choice is kept, and the browser's language is followed until there is one", () => keepsChoice(browser));
}

async function showsBook({ page, texts, fake, size, look }: Tour): Promise<void> {
  assert.equal(await text(page, "#book-title"), texts.headings["book-title"]);
  await until("fills are listed", async () => (await page.locator("#fills-table tbody tr").count()) === 3);
  await page.waitForFunction(() => document.querySelectorAll("#book-table tbody tr").length > 5);
  await look("book");
  await page.locator("#watch-choose").click();
  for (const star of await page.locator("#markets .star").all()) await star.click();
  await page.keyboard.press("Escape");
  const watched = page.locator("#watch-body button");
  await until("both markets are watched", async () => (await watched.allTextContents()).filter((entry) => /\d/.test(entry)).length === 2);
  await look("watch");

  // A stop below the market, an order that stands, one that is refused, one that is far away.
  const price = await page.locator("#book-table tbody tr").last().locator("td").nth(1).textContent() ?? "";
  await page.fill("#ticket-price", price);
  await page.fill("#ticket-size", decimal("0.02", texts));
  await page.locator("#ticket-size").press("Enter");
  await until("the ticket says that it stands", async () => (await text(page, "#ticket-answer")).startsWith(texts.outcome.standing));
  await until("it is listed", async () => (await page.locator("#orders-table tbody tr").count()) === 1);
  assert.equal(
    await page
      .locator("#orders-table td.num")
      .first()
      .evaluate((cell) => (cell.textContent ?? "").replace(/\s/gu, "")),
    price,
    "what is shown is what can be typed",
  );
  await page.fill("#ticket-size", "999999");
  await page.locator("#ticket-size").press("Enter");
  await page.locator("#ticket-answer[data-tone=bad]").waitFor();
  const refused = texts.outcome.refused(60, texts.reasons[60]?.name ?? "Insufficient funds");
  assert.ok((await text(page, "#ticket-answer")).startsWith(refused), `${await text(page, "#ticket-answer")} begins with ${refused}`);
  await look("refused");
  await page.fill("#ticket-price", decimal("1.5", texts));
  await page.fill("#ticket-size", texts === de ? "0.5" : "0,5");
  await page.locator("#ticket-size-fault").waitFor();
  assert.equal(await text(page, "#ticket-size-fault"), texts.errors.plainNumber);
  await page.locator("#exits summary").click();
  for (const name of ["takeProfit", "stopLimit"]) await page.fill(`#ticket-${name}`, decimal("1.25", texts));
  await until("the field says what is wrong", async () => (await text(page, "#ticket-stopLimit-fault")) === texts.ticket.exits.limitAlone);
  await look("exits");
  for (const name of ["takeProfit", "stopLimit"]) await page.fill(`#ticket-${name}`, "");
  await page.locator("#exits summary").click();
  await page.locator("#more summary").click();
  await page.locator("#tif").selectOption("gtt");
  await page.locator("#display").selectOption("iceberg");
  for (const kind of await page
    .locator("#kind option")
    .evaluateAll((options) => options.map((option) => (option as HTMLOptionElement).value))) {
    await page.locator("#kind").selectOption(kind);
    if (/^(stop|take)/.test(kind)) await page.fill("#ticket-trigger", decimal("1.25", texts));
    if (/^trailing/.test(kind)) await page.fill("#ticket-trail", decimal("0.25", texts));
    await assertNothingCut(page, `ticket for ${kind}`);
  }
  await look("ticket-more");

  await page.locator("#orders-table tbody button").first().click();
  await assertWithin(page, "#orders-table tbody input, #orders-table tbody button", "#orders-body");
  await look("amend");
  await page.keyboard.press("Escape");
  await page.locator("#orders-table tbody button").last().click();
  await until("it is cancelled", async () => (await page.locator("#orders-table tbody tr").count()) === 0);
  await choose(page, "input[name=orders-shown][value=history]");
  await until("its history is listed", async () => (await page.locator("#history-table tbody tr").count()) === 3);
  await look("history");

  for (const [button, dialog] of [
    ["#settings-button", "#settings"],
    ["#alerts-button", "#alerts"],
    ["#help-button", "#help"],
    ["#instrument", "#markets"],
    ["#key-button", "dialog[open]"],
  ] as const) {
    await page.locator(button).click();
    await page.locator(dialog).and(page.locator("[open]")).waitFor();
    await look(`dialog-${button.slice(1)}`);
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.querySelector("dialog[open]") === null);
  }
  await page.locator("#studies summary").click();
  for (const study of ["average", "exponential", "vwap", "rsi"]) await page.locator(`#study-${study}`).check();
  await look("indicators");
  await page.locator("#studies summary").click();

  const market = fake.venue.market("BTC-USD");
  market.empty("sell");
  await until("the asks are gone", async () => (await text(page, "#best-ask")) === texts.quote.none);
  await until("the words follow", async () => (await text(page, ".balance-line .words")).includes(texts.weight.nothingOffered));
  await assertApart(page, "#change", "#quote .facts");
  await look("one-side");
  market.setPhase("pre_open");
  await until("the phase is known", async () => (await text(page, "#phase")) === texts.quote.phases.pre_open);
  for (const [side, far] of [["buy", 30], ["sell", -30]] as const) {
    await page.locator("#kind").selectOption("limit");
    await page.locator("#tif").selectOption("gtc");
    await page.locator("#display").selectOption("full");
    await choose(page, `input[name=side][value=${side}]`);
    const last = Number((await text(page, "#last-price")).replace(/\s/gu, "").replace(",", "."));
    await page.fill("#ticket-price", decimal((last + far).toFixed(2), texts));
    await page.fill("#ticket-size", "1");
    await page.locator("#ticket-size").press("Enter");
    await until("it stands", async () => (await text(page, "#ticket-answer")).startsWith(texts.outcome.standing));
    await page.locator("#ticket-answer").evaluate((box) => box.replaceChildren());
  }
  await until("the indicative price is shown", async () => /\d/.test(await text(page, "#indicative b")));
  await until("own orders are counted", async () => (await text(page, "#auction-own")) !== "");
  await look("auction");
  await assertFits(page, "the order book", size);
}

async function showsOthers({ page, texts, fake, size, look }: Tour): Promise<void> {
  await page.locator("#tab-batch").click();
  await page.waitForFunction(() => !(document.querySelector("#offer-submit") as HTMLButtonElement).disabled);
  const { venue } = fake;
  venue.batch.botSteps(200_000);
  makeBlock(venue);
  await until("a limit is suggested", async () => (await page.inputValue("#offer-limit")) !== "");
  await page.fill("#offer-amount", "1000000000");
  await page.locator("#offer-limit").press("Enter");
  await page.locator("#offer-amount[aria-invalid=true]").waitFor();
  await look("batch-overdraft");
  const rate = Number((await page.inputValue("#offer-limit")).replace(/\s/gu, "").replace(",", "."));
  await page.fill("#offer-limit", decimal((rate * 1.05).toPrecision(5), texts));
  await page.fill("#offer-amount", "50");
  await page.locator("#offer-limit").press("Enter");
  await until("it is collected", async () => (await page.locator("#offers-table tbody tr").count()) === 1);
  await look("batch-collected");
  makeBlock(venue);
  await until("it stands", async () => (await text(page, "#offer-answer")).startsWith(texts.offer.stands));
  await look("batch");
  await assertFits(page, "batches", size);
  await page.locator("#pools-show").click();
  await until("pools are listed", async () => (await page.locator("#pools-table tbody tr").count()) === 3);
  await page.locator("#pool-rule").selectOption("weighted");
  await page.fill("#pool-fee", "99");
  await until("the field says what is wrong", async () => (await text(page, "#pool-fee-fault")) === texts.pools.feeRange);
  await look("pools");
  await assertFits(page, "pools", size);
  const aside = await page.locator("#pools-body").evaluate((box) => box.scrollWidth - box.clientWidth);
  assert.ok(aside <= 1, `the pools are ${aside} px too wide`);
  await page.locator("#pools-hide").click();
  for (const view of ["account", "fair", "network"]) {
    await page.locator(`#tab-${view}`).click();
    await page.locator(`#view-${view}`).waitFor();
    if (view === "account") await page.locator("#assets-table tbody tr").first().waitFor();
    if (view === "fair") await page.locator("#stages-table tbody tr").first().waitFor();
    if (view === "network") await page.locator("#tree-host .node").first().waitFor();
    await look(view);
    if (view === "account") {
      await choose(page, "input[name=profit-by][value=asset]");
      await until("profit is listed by asset", async () => (await page.locator("#asset-profit-table tbody tr").count()) > 0);
      await look("account-by-asset");
    }
    await assertFits(page, view, size);
  }
  await page.locator("#tree-choice").selectOption({ index: 1 });
  await choose(page, "input[name=tree-shown][value=table]");
  await until("the relays are listed", async () => (await page.locator("#relays-table tbody tr").count()) === 2);
  await look("relays");
  await assertFits(page, "relays", size);
}

async function keepsChoice(browser: Browser): Promise<void> {
  const fake = await startFakeVenue(0, 0);
  try {
    const watched = await open(browser, fake.edAddress, { width: 1440, height: 900, locale: "fr-FR" });
    const { page } = watched;
    const speaks = (language: Language, texts: Texts): Promise<void> =>
      until(
        `the page speaks ${language}`,
        async () =>
          (await text(page, "#book-title")) === texts.headings["book-title"] &&
          (await page.locator("html").getAttribute("lang")) === LANGUAGE_TAGS[language],
      );
    const choose = async (choice: string): Promise<void> => {
      await page.locator("#settings-button").click();
      await Promise.all([page.waitForEvent("load"), page.locator("#setting-language").selectOption(choice)]);
      await page.locator("#connection[data-state=live]").waitFor();
    };
    await canSubmit(page);
    await speaks("en", en);
    for (const [language, , texts] of SPOKEN.toReversed()) {
      await choose(language);
      await speaks(language, texts);
      await page.reload();
      await speaks(language, texts);
      await canSubmit(page);
      // With these few views there is room for what each is about.
      for (const view of ["account", "batch", "book"] as const) {
        await page.locator(`#tab-${view}`).click();
        await page.locator(`#view-${view}`).waitFor();
        const { words, hidden } = await page
          .locator(".motto")
          .evaluate((line) => ({ words: line.textContent, hidden: line.scrollHeight - line.clientHeight }));
        assert.equal(words, texts.views[view].motto);
        assert.ok(hidden <= 1, `${language}: ${hidden} px of "${words}" are cut off`);
      }
    }
    await choose("de");
    await choose("auto");
    await speaks("en", en);
    await watched.assertClean();
    await page.context().close();
  } finally {
    await fake.close();
  }
}

/** As it is typed in the language. */
function decimal(plain: string, texts: Texts): string {
  return texts === de ? plain.replace(".", ",") : plain;
}
