// The page in German: its numbers have a comma, and a point that somebody types is refused, not guessed at.

import assert from "node:assert/strict";
import { test } from "node:test";

const kept = new Map([["walras.language", '"de"']]);
Object.defineProperty(globalThis, "localStorage", {
  configurable: true,
  value: { getItem: (name: string) => kept.get(name) ?? null, setItem: (name: string, text: string) => void kept.set(name, text) },
});

const { group, showChange, showDay, showDayTime, showShare, showSpan, showTime, typed, ungroup } = await import("../src/base/format.ts");
const { checkOffer, steppedRate } = await import("../src/state/offer.ts");
const { describeError } = await import("../src/state/outcome.ts");
const { sizeOfValue, stepped } = await import("../src/state/ticket.ts");
const { Units } = await import("../src/state/market.ts");
const { parseUnits, Refused } = await import("walras");
const { errorText } = await import("../src/texts/error-text.ts");
const { t } = await import("../src/texts/index.ts");

const plain = (text: string): string => text.replaceAll("\u00a0", " ");

test("the kept language is the page's", () => {
  assert.equal(t.ticket.kinds.stop_limit, "Stop-Limit");
  assert.equal(t.headings["book-title"], "Orderbuch");
});

test("figures have a comma, and what is shown can be typed back", () => {
  assert.equal(plain(group("1234567.5")), "1 234 567,5");
  assert.equal(plain(showChange(-2_800)), "−0,28 %");
  assert.equal(plain(showSpan(1_240_000)), "1,24 ms");
  assert.equal(plain(showShare(8_300)), "0,83 %");
  for (const text of ["0", "12", "1234.50", "-1234567.5", "1000000"]) {
    assert.equal(ungroup(group(text)), text);
    assert.equal(ungroup(typed(text)), text);
  }
});

test("a point is never guessed at", () => {
  for (const text of ["1.5", "1.000", "1.000,50", "1,5,0"]) {
    assert.throws(() => parseUnits(ungroup(text), 2), (error) => /höchstens ein Komma/.test(errorText(error)), text);
  }
  assert.equal(parseUnits(ungroup("1 000,5"), 2), 100_050n);
});

test("days and times are written as in German", () => {
  assert.equal(showDay("1700000000123456789"), "14.11.2023");
  assert.equal(showDayTime("1700000000123456789"), "14.11.2023 22:13:20");
  assert.equal(showTime("1700000000123456789", true), "22:13:20,123");
});

test("the tickets read and write commas", () => {
  assert.equal(stepped("10,5", 2, 50n, 1n), "11,00");
  assert.equal(steppedRate("1,0832", 1n), "1,08321");
  const { amount, limitBits, faults } = checkOffer({ amount: "0,5", limit: "1,25", price: "limit" }, { sellDecimals: 2, buyDecimals: 2 });
  assert.equal(amount, 50n);
  assert.ok(limitBits !== null && limitBits > 0n, JSON.stringify(faults));
  const asset = (symbol: string, decimals: number): never => ({ symbol, decimals }) as never;
  const instrument = {
    symbol: "BTC/USD",
    base: "BTC",
    quote: "USD",
    tick_size: "0.01",
    lot_size: "0.0001",
    price_decimals: 2,
    size_decimals: 4,
    maker_fee_ppm: 0,
    taker_fee_ppm: 0,
  };
  const units = new Units(instrument as never, [asset("BTC", 8), asset("USD", 2)]);
  assert.equal(sizeOfValue("100,50", units, 10_000n), "1.005", "a plain decimal, for what comes after");
});

test("a known reason is in German, an unknown one in the venue's words, and its details as they came", () => {
  const known = describeError(
    new Refused({
      code: 60,
      name: "InsufficientFunds",
      message: "The available balance does not cover it.",
      detail: "needs 5 USD",
    }),
  );
  assert.equal(known.title, "Abgelehnt, Nr. 60: Guthaben reicht nicht");
  assert.match(known.text, /^Das verfügbare Guthaben deckt .* needs 5 USD$/);
  const unknown = describeError(new Refused({ code: 9_999, name: "SomethingNew", message: "Do this instead." }));
  assert.deepEqual(unknown, { title: "Abgelehnt, Nr. 9999: Something new", text: "Do this instead." });
});
