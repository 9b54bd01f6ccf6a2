import assert from "node:assert/strict";
import { test } from "node:test";
import type { BatchBlock, Offer, WsAccount, WsBatch } from "walras";
import { ASSETS_SHOWN_MAX, BatchMarket, pairCount, shownAssets, stageOf } from "../src/state/batch-market.ts";
import { checkOffer, expectedAt, spendableOf, suggestedLimit, steppedRate } from "../src/state/offer.ts";
import { describeDrop } from "../src/state/offer-outcome.ts";
import { OwnOffers, type Sent } from "../src/state/own-offers.ts";
import { batch, batchBlock } from "./whole.ts";

const UNITS = { sellDecimals: 2, buyDecimals: 2 };
const offer = (sequence: string, amount = "10.00"): Offer => ({
  batch: "main", sequence, sell: "EUR", buy: "USD", amount, stated_price: "1.08", stated_bits: "1", limit_bits: "2", tie: "3", block: "16",
});
const sent = (sequence: string, block = "16"): Sent => ({
  batch: "main", sequence, block, asks: { makes: { sell: "EUR", buy: "USD", amount: "10.00", stated_price: "1.08" } },
});
const update = (more: Partial<WsAccount>): WsAccount => ({ type: "account", kind: "update", ...more });
const states = (offers: OwnOffers): string[] => offers.list("main").map(({ sequence, state, amount }) => `${sequence} ${state} ${amount}`);

test("an offer is collected, stands, trades in part, and is gone", () => {
  const offers = new OwnOffers();
  offers.collected(sent("7"));
  assert.deepEqual(states(offers), ["7 collected 10.00"]);
  assert.equal(offers.collectedFor("main", "16"), 1);
  offers.apply(update({ offer_updates: [{ ...offer("7"), status: "open" }] }));
  assert.deepEqual(states(offers), ["7 standing 10.00"]);
  assert.equal(offers.collectedFor("main", "16"), 0);
  const fill = { batch: "main", sequence: "7", block: "16", sell: "EUR", buy: "USD", sold: "4.00", bought: "4.33", time_ns: "1" };
  const first = offers.apply(
    update({ offer_updates: [{ batch: "main", sequence: "7", status: "traded", amount: "6.00", limit_bits: "5" }], offer_fills: [fill] }),
  );
  assert.deepEqual(
    offers.list("main").map(({ standing }) => [standing?.limit_bits, standing?.tie]), [["5", "3"]],
    "what is left is cancelled by the limit that it has now",
  );
  assert.deepEqual([states(offers), first.fills], [["7 standing 6.00"], [fill]]);
  assert.deepEqual(offers.apply(update({ offer_fills: [fill] })).fills, [], "reported twice, it is one fill");
  offers.apply(update({ offer_updates: [{ batch: "main", sequence: "7", status: "traded", amount: "0.00" }] }));
  assert.deepEqual(states(offers), []);
});

test("a cancel shows while it is collected, and ends with its offer or by being dropped", () => {
  const offers = new OwnOffers();
  offers.apply({ type: "account", kind: "snapshot", offers: [offer("7"), offer("8")] });
  offers.collected({ batch: "main", sequence: "9", block: "17", asks: { cancels: "main 7" } });
  offers.collected({ batch: "main", sequence: "10", block: "17", asks: { cancels: "main 8" } });
  assert.deepEqual(states(offers), ["8 cancelling 10.00", "7 cancelling 10.00"]);
  const { ended } = offers.apply(update({ offer_updates: [
    { ...offer("7"), status: "cancelled" },
    {
      batch: "main", sequence: "10", status: "dropped",
      reason: { code: 10, name: "UnknownOffer", message: "no such offer: it may have traded" },
    },
  ] }));
  assert.deepEqual(states(offers), ["8 standing 10.00"]);
  const said = ended.map(describeDrop);
  assert.deepEqual(
    said, [{ tone: "bad", title: "Transaction 10 left out (10: Unknown offer)", text: "No such offer: it may have traded." }],
  );
});

test("news that never came does not leave an offer collected forever", () => {
  const offers = new OwnOffers();
  offers.collected(sent("7", "16"));
  offers.settled("main", "16");
  assert.deepEqual(states(offers), ["7 collected 10.00"], "its own block's news may still be under way");
  offers.settled("main", "17");
  assert.deepEqual(states(offers), []);
});

test("another market's offers are not listed", () => {
  const offers = new OwnOffers();
  offers.apply({ type: "account", kind: "snapshot", offers: [{ ...offer("7"), batch: "other" }] });
  assert.deepEqual(states(offers), []);
});

test("an offer is checked field by field", () => {
  const typed = (amount: string, limit: string, price: "limit" | "any" = "limit") => checkOffer({ amount, limit, price }, UNITS);
  assert.deepEqual(typed("1 000", "1.0832").faults, {});
  assert.equal(typed("1000", "1.25").least, 125_000n);
  assert.equal(typed("1000", "1.0832").least, 108_320n, "1.0832 is no binary fraction, and asks for no cent more than it comes to");
  assert.equal(typed("0.01", "1.0832").least, 2n, "a cent must bring two: one would be less than the limit");
  assert.equal(typed("1000", "", "any").limitBits, 0n);
  assert.match(typed("", "").faults.amount ?? "", /Fill/);
  assert.match(typed("0", "1").faults.amount ?? "", /above zero/);
  assert.match(typed("1.001", "1").faults.amount ?? "", /2 digits/);
  assert.match(typed("92233720368547758.08", "1").faults.amount ?? "", /more than an amount/);
  assert.match(typed("92233720368547758", "2").faults.limit ?? "", /lower one/);
  assert.match(typed("1", "1,08").faults.limit ?? "", /plain number/);
  assert.match(typed("1", "0").faults.limit ?? "", /Any price/);
});

test("an offer is held against what is left of the balance and what is collected already", () => {
  const offers = new OwnOffers();
  const left = (asset = "EUR", available: string | undefined = "9259.00") => spendableOf(asset, available, offers.collectedOf(asset), 2);
  const fault = (amount: string, spendable = left()): string | undefined =>
    checkOffer({ amount, limit: "1", price: "limit" }, UNITS, spendable).faults.amount?.replaceAll("\u00a0", " ");
  assert.equal(fault("9259"), undefined);
  assert.equal(fault("9259.01"), "You have 9 259.00 EUR. Offer no more: an overdraft drops all your transactions in the block.");
  assert.match(fault("1000000000") ?? "", /Offer no more/);
  // Two that are collected promise 20: no balance says so before their block.
  offers.collected(sent("7"));
  offers.collected({ ...sent("8", "17"), batch: "other" });
  offers.collected({ batch: "main", sequence: "9", block: "17", asks: { cancels: "main 5" } });
  assert.deepEqual(left(), { asset: "EUR", free: 923_900n, collected: 2_000n });
  assert.equal(left("USD")?.collected, 0n, "of another asset nothing is promised");
  assert.equal(fault("9239"), undefined);
  assert.equal(
    fault("9239.01"),
    "You have 9 239.00 EUR, after the 20.00 EUR that the next block has collected already. " +
      "Offer no more: an overdraft drops all your transactions in the block.",
  );
  // What stands is reserved in the balance, and counted there.
  offers.apply(update({ offer_updates: [{ ...offer("7"), status: "open" }] }));
  assert.equal(left("EUR", "9249.00")?.free, 923_900n);
  // The balance shrank meanwhile below what is promised.
  assert.match(fault("0.01", left("EUR", "5.00")) ?? "", /You have 0\.00 EUR, after the 10\.00 EUR/);
  assert.equal(
    fault("1000000000", spendableOf("EUR", undefined, ["1"], 2)), undefined, "before the balances came nothing is held against anything",
  );
});

test("what the last prices would bring is after the commission, rounded down", () => {
  assert.equal(expectedAt(100_000n, "1.0832", "1", 15, UNITS), 108_316n);
  assert.equal(expectedAt(100_000n, "1.0832", "1", null, UNITS), 108_320n, "a market without a commission");
  assert.equal(expectedAt(100n, "1", "0.006712", 15, { sellDecimals: 2, buyDecimals: 0 }), 148n);
  assert.equal(suggestedLimit("1.0832", "1", null), "1.0832");
  const rate = suggestedLimit("1.0832", "1", 15);
  assert.equal(rate, "1.0831");
  const { least } = checkOffer({ amount: "1000", limit: rate, price: "limit" }, UNITS);
  assert.ok(least !== null && least <= 108_316n, "the suggested limit trades at these prices");
});

test("arrow keys step the limit in the last digit that is shown", () => {
  assert.equal(steppedRate("1.08316", 1n), "1.08317");
  assert.equal(steppedRate("1.08", -10n), "1.07990");
  assert.equal(steppedRate("30711.2", 1n), "30711.3");
  assert.equal(steppedRate("0.00670931", 1n), "0.00670932");
  assert.equal(steppedRate("nonsense", 1n), "nonsense");
});

const block = (number: string, eur: string | null): BatchBlock =>
  batchBlock({ block: number, prices: { USD: "1", EUR: eur, JPY: "0.005" } });
const info = batch();
const batchMessage = (more: Partial<WsBatch>): WsBatch =>
  ({
    type: "batch", kind: "update", batch: "main", phase: "open", interval_ms: 2_000, assets: ["USD", "EUR", "JPY"], collected: 0,
    closed_block: null, blocks: [], ...more,
  });

test("a market keeps its blocks newest first, and its last known prices", () => {
  const market = new BatchMarket(info, 0);
  assert.deepEqual(market.pair.value, { sell: "EUR", buy: "USD" });
  assert.equal(market.nextBlock, null);
  market.apply(batchMessage({ kind: "snapshot", blocks: [block("1", "1.08"), block("2", "1.09")] }), 0);
  market.apply(batchMessage({ blocks: [block("3", null)] }), 0);
  market.apply(batchMessage({ blocks: [block("3", null)] }), 0);
  assert.deepEqual(market.blocks.value.map((each) => each.block), ["3", "2", "1"]);
  assert.deepEqual([market.price("EUR"), market.movePpm("EUR"), market.movePpm("JPY")], ["1.09", null, 0]);
  assert.deepEqual(market.history("EUR", 9), [1.08, 1.09]);
  assert.equal(market.rate({ sell: "EUR", buy: "JPY" }), "218");
  market.apply(batchMessage({ closed_block: "4" }), 0);
  assert.equal(market.nextBlock, "5");
});

test("the pair turns around when one picks what the other side has", () => {
  const market = new BatchMarket(info, 0);
  market.choose({ sell: "USD" });
  assert.deepEqual(market.pair.value, { sell: "USD", buy: "EUR" });
  market.choose({ buy: "JPY" });
  market.choose({ buy: "USD" });
  assert.deepEqual(market.pair.value, { sell: "JPY", buy: "USD" });
});

test("two stocks are no pair: what was not chosen becomes a currency", () => {
  const market = new BatchMarket(batch({ assets: ["USD", "EUR", "AAPL", "MSFT"], currencies: ["USD", "EUR"] }), 0);
  assert.equal(pairCount(market.info.value), 10);
  assert.deepEqual(market.pair.value, { sell: "EUR", buy: "USD" });
  market.choose({ buy: "AAPL" });
  assert.deepEqual(market.pair.value, { sell: "EUR", buy: "AAPL" });
  market.choose({ buy: "MSFT" });
  assert.deepEqual(market.pair.value, { sell: "EUR", buy: "MSFT" });
  market.choose({ sell: "AAPL" });
  assert.deepEqual(market.pair.value, { sell: "AAPL", buy: "EUR" });
  market.choose({ buy: "AAPL" });
  assert.deepEqual(market.pair.value, { sell: "EUR", buy: "AAPL" });
  assert.equal(pairCount(info), 6, "all pairs exist where all assets are currencies");
});

test("of a thousand assets those are shown that are looked for", () => {
  const assets = Array.from({ length: 1_000 }, (_, at) => `S${at}`);
  const usual = shownAssets(assets, "", ["S999", "S500"]);
  assert.deepEqual([usual.length, usual[0], usual.at(-2), usual.at(-1)], [ASSETS_SHOWN_MAX, "S0", "S500", "S999"]);
  assert.deepEqual(
    shownAssets(assets, " s99", ["S500"]), ["S99", "S990", "S991", "S992", "S993", "S994", "S995", "S996", "S997", "S998", "S999"],
  );
  assert.deepEqual(shownAssets(assets, "X", ["S1"]), []);
  assert.deepEqual(shownAssets(["A", "B"], "X", []), ["A", "B"], "a few assets are all shown");
});

test("the stages of a batch follow its closes", () => {
  const market = new BatchMarket(info, 1_000);
  assert.deepEqual(stageOf(market, 1_125), { name: "collects", leftMs: 375, part: 0.25 });
  assert.deepEqual(stageOf(market, 1_500), { name: "waits" });
  market.apply(batchMessage({ collected: 2 }), 1_600);
  assert.deepEqual(stageOf(market, 1_600), { name: "due" });
  market.apply(batchMessage({ closed_block: "1" }), 1_700);
  assert.equal(stageOf(market, 1_800).name, "collects");
  assert.deepEqual(stageOf(market, 2_300), { name: "prices", block: "1" });
  market.apply(batchMessage({ blocks: [block("1", "1")] }), 2_400);
  assert.deepEqual(stageOf(market, 2_300), { name: "waits" }, "the clearing of a closed batch begins no new one");
  market.info.value = { ...info, phase: "closed" };
  assert.deepEqual(stageOf(market, 2_400), { name: "closed" });
});
