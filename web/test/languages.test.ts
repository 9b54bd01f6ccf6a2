// The catalogues say the same things: every language has every text, and each text has the values that the English one has.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { de } from "../src/texts/de/index.ts";
import { en } from "../src/texts/en/index.ts";
import { pluralsOf } from "../src/texts/forms.ts";
import { t, type Texts } from "../src/texts/index.ts";
import { LANGUAGES, LANGUAGE_NAMES, LANGUAGE_TAGS, preferredOf } from "../src/texts/language.ts";
import { zh } from "../src/texts/zh/index.ts";

const OTHERS: Record<string, Texts> = { de, zh };
const read = (path: string): string => readFileSync(join(import.meta.dirname, "..", path), "utf8");

type Leaf = string | ((...values: never[]) => string);

/** Every text with where it stands, but for the reasons, which English has none of. */
function leaves(texts: object, path: string): [path: string, leaf: Leaf][] {
  return Object.entries(texts).flatMap(([name, value]): [string, Leaf][] => {
    const at = `${path}.${name}`;
    if (typeof value === "string" || typeof value === "function") return [[at, value as Leaf]];
    return (name === "reasons" || name === "drops") && path === "" ? [] : leaves(value as object, at);
  });
}

/** A text with a mark in place of each value, so that it is seen which values it shows. */
function marked(leaf: Leaf, count: number): string {
  return typeof leaf === "string"
    ? leaf
    : (leaf as unknown as (...values: string[]) => string)(...Array.from({ length: count }, (_, index) => `⟦${index}⟧`));
}

const marksIn = (text: string): string[] => [...new Set(text.match(/⟦\d⟧/g) ?? [])].sort();

/** Never called: the compiler refuses catalogues that are not whole. */
export function mistakes(): void {
  const { quote: _, ...rest } = en;
  // @ts-expect-error A catalogue that lacks a part.
  const lacking: Texts = rest;
  // @ts-expect-error One that lacks a text.
  const shorter: Texts = { ...en, sides: { buy: "Kauf", sell: "Verkauf" } };
  // @ts-expect-error One with a text that no language has.
  const longer: Texts = { ...en, roles: { ...en.roles, broker: "Makler" } };
  // @ts-expect-error A text that wants a value that English does not give.
  const wanting: Texts = { ...en, bar: { ...en.bar, key: (id: string, name: string) => `${id} ${name}` } };
  void [lacking, shorter, longer, wanting];
}

for (const [language, texts] of Object.entries(OTHERS)) {
  test(`${language} has every text, and no other`, () => {
    assert.deepEqual(leaves(texts, "").map(([path]) => path).sort(), leaves(en, "").map(([path]) => path).sort());
  });

  test(`${language} shows the values that English shows`, () => {
    const theirs = new Map(leaves(texts, ""));
    for (const [path, leaf] of leaves(en, "")) {
      const other = theirs.get(path) as Leaf;
      const count = typeof leaf === "function" ? leaf.length : 0;
      assert.ok(marked(other, count).trim() !== "", `${path} is empty`);
      assert.deepEqual(marksIn(marked(other, count)), marksIn(marked(leaf, count)), `${path}: ${marked(other, count)}`);
    }
  });

  test(`${language} is another language`, () => {
    const english = new Map(leaves(en, ""));
    const same = leaves(texts, "")
      .filter(([path, leaf]) => typeof leaf === "string" && leaf.length > 24 && leaf === english.get(path))
      .map(([path]) => path);
    assert.deepEqual(same, [], "texts that were left in English");
  });

  test(`${language} knows reasons of the venue's own list, with the venue's own limits`, () => {
    const listed = new Map(
      [...read("../docs/reject-reasons.md").matchAll(/^\| (\d+) \| `(\w+)` \| (.*) \|$/gm)].map(([, code, , advice]) => [
        Number(code),
        advice ?? "",
      ]),
    );
    assert.ok(listed.size > 50, "the list is read");
    for (const [code, { name, advice }] of Object.entries(texts.reasons)) {
      const english = listed.get(Number(code));
      assert.ok(english !== undefined, `${code} (${name}) is in docs/reject-reasons.md`);
      for (const [limit] of advice.matchAll(/\d{2,}/g))
        assert.ok(english.includes(limit), `${code} says ${limit}, the venue says: ${english}`);
    }
  });
}

test("the languages know the same reasons", () => {
  assert.deepEqual(Object.keys(de.drops), Object.keys(zh.drops));
  assert.deepEqual(Object.keys(de.reasons), Object.keys(zh.reasons));
});

test("the page's document says what the English catalogue says", () => {
  const html = read("index.html");
  for (const [id, text] of Object.entries(en.headings)) {
    const found = new RegExp(`id="${id}"[^>]*>([^<]*)<`).exec(html)?.[1];
    assert.equal(found, text, id);
  }
  for (const [id, label] of Object.entries(en.labels)) {
    const tag = new RegExp(`<[^>]*id="${id}"[^>]*>`).exec(html)?.[0] ?? "";
    assert.ok(tag.includes(`aria-label="${label}"`), `${id}: ${tag}`);
  }
  const titles = [...html.matchAll(/<h2 id="([\w-]+)"/g)].map(([, id]) => id as string);
  assert.ok(titles.length > 15);
  assert.deepEqual(titles.filter((id) => !(id in en.headings)), [], "headings that no catalogue has");
  assert.equal((html.match(/aria-label="/g) ?? []).length, Object.keys(en.labels).length, "every label is in the catalogues");
});

test("the first of the browser's languages that there is, else English", () => {
  assert.equal(preferredOf(["de-AT", "en"]), "de");
  assert.equal(preferredOf(["fr-FR", "zh-CN", "en"]), "zh");
  assert.equal(preferredOf(["zh-Hans-SG"]), "zh");
  assert.equal(preferredOf(["fr", "EN-GB", "de"]), "en");
  assert.equal(preferredOf(["deu"]), "en", "a longer name is another language");
  assert.equal(preferredOf([]), "en");
});

test("the help of the key that changes views names each of them, in their order", () => {
  for (const [language, { shortcuts, views }] of Object.entries({ en, ...OTHERS })) {
    const places = Object.values(views).map(({ tab }) => shortcuts.view.toLowerCase().indexOf(tab.toLowerCase()));
    assert.ok(!places.includes(-1), `${language}: ${shortcuts.view}`);
    assert.deepEqual(places, places.toSorted((a, b) => a - b), language);
  }
});

test("outside a browser the texts are English", () => {
  assert.equal(t, en);
  for (const language of LANGUAGES)
    assert.ok(LANGUAGE_NAMES[language] !== "" && Intl.getCanonicalLocales(LANGUAGE_TAGS[language]).length === 1);
});

test("words agree with their count", () => {
  assert.match(en.batch.cleared(1, 2), /^1 transaction, 2 assets/);
  assert.match(en.batch.cleared(1_200, 1), /^1\u00a0200 transactions, 1 asset,/u);
  assert.match(de.batch.cleared(1, 2), /^1 Transaktion, 2 Assets/);
  assert.match(de.batch.cleared(0, 1), /^0 Transaktionen, 1 Asset,/);
  assert.equal(de.fair.silent(1, "2"), "Replikat 2 schweigt");
  assert.equal(de.fair.silent(2, "2, 3"), "Replikate 2, 3 schweigen");
  assert.match(zh.batch.cleared(1, 2), /^1 笔交易，2 种资产/);
  assert.equal(en.ticket.faults(1), "1 field needs a look.");
  assert.equal(pluralsOf("de")(1, { other: "so" }), "so", "a language without a form for it uses the one it has");
});
