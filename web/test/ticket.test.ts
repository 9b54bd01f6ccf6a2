import assert from "node:assert/strict";
import { test } from "node:test";
import { Backoff, parseUnits } from "walras";
import { exitsText } from "../src/state/bracket.ts";
import { Units } from "../src/state/market.ts";
import { type TicketFields, checkTicket, largestSize, stepped } from "../src/state/ticket.ts";
import { freshClientOrderId } from "../src/state/client-order-id.ts";
import * as whole from "./whole.ts";
import { Random } from "../../sdk/typescript/test/random.ts";

const instrument = whole.instrument({ tick_size: "0.25", maker_fee_ppm: -50 });
const units = new Units(instrument, [
  { asset_id: 0, symbol: "USD", decimals: 5, supply: "1" },
  { asset_id: 1, symbol: "BTC", decimals: 8, supply: "1" },
]);
const fields: TicketFields = {
  side: "buy", kind: "limit", price: "30 711.25", trigger: "", size: "0.5", timeInForce: "gtc", minutes: "", postOnly: "off",
  display: "full",
  peak: "", minSize: "", selfTrade: "cancel_newest",
};

test("a plain limit order", () => {
  const checked = checkTicket(fields, units, 0n);
  assert.deepEqual(checked.order, {
    side: "buy", type: "limit", price: "30711.25", size: "0.500", time_in_force: "gtc", self_trade: "cancel_newest",
  });
  assert.equal(checked.value, parseUnits("15355.625", 5));
  assert.equal(units.feeReserve(checked.value ?? 0n), parseUnits("6.14225", 5));
});

test("what does not go with the kind is not sent", () => {
  const { order } = checkTicket(
    { ...fields, kind: "market", timeInForce: "ioc", postOnly: "reject", display: "iceberg", peak: "0.1" }, units, 0n,
  );
  assert.deepEqual(order, { side: "buy", type: "market", size: "0.500", time_in_force: "ioc", self_trade: "cancel_newest" });
});

test("stop-limit with good-till time, iceberg and minimum", () => {
  const { order } = checkTicket({
    ...fields, kind: "stop_limit", trigger: "31000", timeInForce: "gtt", minutes: "10", display: "iceberg", peak: "0.1", minSize: "0.2",
  }, units, 1_700_000_000_000_000_000n);
  assert.equal(order?.trigger, "31000.00");
  assert.equal(order?.expire_time_ns, "1700000600000000000");
  assert.equal(order?.display, "iceberg");
  assert.equal(order?.peak, "0.100");
  assert.equal(order?.min_size, "0.200");
  assert.equal(order?.post_only, undefined);
});

test("a trailing stop has a distance instead of a trigger", () => {
  const stop = checkTicket({ ...fields, kind: "trailing_stop", side: "sell", trigger: "31000", trail: "150" }, units, 0n, 3_000_000n);
  assert.deepEqual(
    [stop.order?.type, stop.order?.trail, stop.order?.trigger, stop.order?.price],
    ["trailing_stop", "150.00", undefined, undefined],
  );
  const limit = checkTicket({ ...fields, kind: "trailing_stop_limit", trail: "0.25" }, units, 0n);
  assert.deepEqual([limit.order?.trail, limit.order?.price !== undefined], ["0.25", true]);
  assert.equal(checkTicket({ ...fields, kind: "trailing_stop" }, units, 0n).order, null);
  assert.equal(checkTicket({ ...fields, kind: "trailing_stop", trail: "0.001" }, units, 0n).order, null);
});

test("a take-profit has a trigger on the other side of the market than a stop", () => {
  const check = (kind: "take_profit" | "take_profit_limit", side: "buy" | "sell", trigger: string) =>
    checkTicket({ ...fields, kind, side, trigger }, units, 0n, 3_000_000n);
  const sell = check("take_profit", "sell", "31000");
  assert.deepEqual(
    [sell.order?.type, sell.order?.trigger, sell.order?.price, sell.warnings.trigger],
    ["take_profit", "31000.00", undefined, undefined],
  );
  assert.match(
    check("take_profit", "sell", "29000").warnings.trigger ?? "", /already above this trigger: the venue refuses such a take-profit/,
  );
  assert.match(check("take_profit_limit", "buy", "31000").warnings.trigger ?? "", /already below this trigger/);
  const buy = check("take_profit_limit", "buy", "29000");
  assert.deepEqual([buy.order?.trigger, buy.order?.price !== undefined, buy.warnings.trigger], ["29000.00", true, undefined]);
});

test("an order that is linked names the other one, and a limit order takes nothing then", () => {
  assert.deepEqual(checkTicket({ ...fields, ocoWith: "77" }, units, 0n).order, {
    side: "buy",
    type: "limit",
    price: "30711.25",
    size: "0.500",
    time_in_force: "gtc",
    self_trade: "cancel_newest",
    oco_with: "77",
    post_only: "reject",
  });
  const stop = checkTicket({ ...fields, kind: "stop", trigger: "31000", ocoWith: "77" }, units, 0n).order;
  assert.deepEqual([stop?.oco_with, stop?.post_only], ["77", undefined]);
  assert.equal(checkTicket({ ...fields, ocoWith: "" }, units, 0n).order?.oco_with, undefined);
});

test("each field says what is wrong with it, and nothing is sent", () => {
  const wrong = checkTicket(
    { ...fields, price: "30711.30", size: "0", timeInForce: "gtt", minutes: "x", display: "iceberg", peak: "", minSize: "0.0001" }, units,
    0n,
  );
  assert.equal(wrong.order, null);
  assert.deepEqual(Object.keys(wrong.faults).sort(), ["minSize", "minutes", "peak", "price", "size"]);
  assert.match(wrong.faults.price ?? "", /0\.25/);
  assert.match(checkTicket({ ...fields, display: "iceberg", peak: "0.5" }, units, 0n).faults.peak ?? "", /less than/);
});

test("a stop that the last trade has set off already is warned of, and left to the venue to refuse", () => {
  const warned = (side: "buy" | "sell", trigger: string, last: bigint | null): string | undefined => {
    const { warnings, faults, order } = checkTicket({ ...fields, side, kind: "stop", trigger }, units, 0n, last);
    assert.ok(order !== null && Object.keys(faults).length === 0);
    return warnings.trigger?.replaceAll("\u00a0", " ");
  };
  assert.equal(
    warned("buy", "48000", 5_000_500n), "The last trade, 50 005.00, is already above this trigger: the venue refuses such a stop.",
  );
  assert.equal(warned("buy", "50005", 5_000_500n), "The last trade, 50 005.00, is already at this trigger: the venue refuses such a stop.");
  assert.equal(warned("buy", "50005.25", 5_000_500n), undefined);
  assert.match(warned("sell", "51000", 5_000_500n) ?? "", /already below this trigger/);
  assert.equal(warned("sell", "50004.75", 5_000_500n), undefined);
  assert.equal(warned("sell", "51000", null), undefined, "where nothing was traded nothing sets it off");
  assert.equal(
    checkTicket({ ...fields, trigger: "48000" }, units, 0n, 5_000_500n).warnings.trigger, undefined, "a limit order has no trigger",
  );
});

test("a limit far on the wrong side of the last trade is warned of, one far on the right side is not", () => {
  const warned = (side: "buy" | "sell", price: string, last: bigint | null): string | undefined => checkTicket(
    { ...fields, side, price }, units, 0n, last,
  ).warnings.price;
  assert.equal(warned("buy", "105.00", 10_000n), "That is 5.0 % above the last trade, 100.00.");
  assert.equal(warned("buy", "104.75", 10_000n), undefined);
  assert.equal(warned("sell", "49.00", 10_000n), "That is 51.0 % below the last trade, 100.00.");
  assert.equal(warned("buy", "1.00", 10_000n), undefined, "a bid that waits far below costs nothing");
  assert.equal(warned("sell", "900.00", 10_000n), undefined);
  assert.equal(warned("buy", "900.00", null), undefined, "where nothing was traded nothing is far");
});

test("the largest affordable size is affordable, and one lot more is not", () => {
  const random = new Random(5);
  for (let round = 0; round < 500; round += 1) {
    const price = BigInt(1 + random.below(10_000)) * units.tick;
    const funds = BigInt(random.below(1_000_000_000));
    const cost = (size: bigint): bigint => units.value(price, size) + units.feeReserve(units.value(price, size));
    const size = largestSize("buy", funds, 5, price, units);
    assert.equal(size % units.lot, 0n);
    assert.ok(cost(size) <= funds);
    assert.ok(cost(size + units.lot) > funds);
  }
  assert.equal(largestSize("sell", 123_456_789n, 8, null, units), 1_234n);
  assert.equal(largestSize("buy", 1_000n, 5, null, units), 0n);
});

test("arrow keys go from tick to tick and never to zero", () => {
  assert.equal(stepped("30711.25", 2, 25n, 1n), "30711.50");
  assert.equal(stepped("30711.30", 2, 25n, 1n), "30711.50");
  assert.equal(stepped("30711.30", 2, 25n, -1n), "30711.25");
  assert.equal(stepped("0.25", 2, 25n, -1n), "0.25");
  assert.equal(stepped("", 2, 25n, 1n), "0.25");
  assert.equal(stepped("abc", 2, 25n, 1n), "abc");
});

test("client order ids fit 64 bits and follow the clock", () => {
  const early = BigInt(freshClientOrderId(1_700_000_000_000));
  const late = BigInt(freshClientOrderId(1_700_000_000_001));
  assert.ok(early < late && late < 1n << 64n);
});

test("waiting grows to a limit and starts over", () => {
  const backoff = new Backoff(() => 1);
  const waits = Array.from({ length: 8 }, () => backoff.next());
  assert.deepEqual(waits, [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
  backoff.reset();
  assert.equal(backoff.next(), 250);
  assert.equal(new Backoff(() => 0).next(), 125);
});

test("a limit or market order may have exits, each on its side of the price", () => {
  const check = (more: Partial<TicketFields>) => checkTicket({ ...fields, ...more }, units, 0n, 3_080_000n);
  const whole = check({ takeProfit: "32 000", stopLoss: "29000", stopLimit: "28990.25" });
  assert.deepEqual([whole.faults, whole.warnings], [{}, {}]);
  assert.deepEqual(whole.order?.take_profit, { trigger: "32000.00" });
  assert.deepEqual(whole.order?.stop_loss, { trigger: "29000.00", price: "28990.25" });
  assert.match(exitsText(whole.order ?? {}) ?? "", /^take-profit at 32\s000\.00, stop-loss at 29\s000\.00, limit 28\s990\.25$/u);
  assert.equal(exitsText(check({}).order ?? {}), null);
  const market = check({ kind: "market", timeInForce: "ioc", side: "sell", stopLoss: "31000" });
  assert.deepEqual([market.order?.stop_loss, market.order?.take_profit], [{ trigger: "31000.00" }, undefined]);
  assert.equal(check({ kind: "stop", trigger: "31000", takeProfit: "1" }).order?.take_profit, undefined, "a stop has none");
});

test("a wrong exit says so at its field", () => {
  const check = (more: Partial<TicketFields>) => checkTicket({ ...fields, ...more }, units, 0n, 3_080_000n);
  assert.match(check({ takeProfit: "30711.25" }).faults.takeProfit ?? "", /above its price, 30\s711\.25: raise it/u);
  assert.match(check({ stopLoss: "30800" }).faults.stopLoss ?? "", /below its price, 30\s711\.25: lower it/u);
  assert.match(check({ side: "sell", takeProfit: "31000" }).faults.takeProfit ?? "", /below its price/);
  assert.match(check({ side: "sell", stopLoss: "30000" }).faults.stopLoss ?? "", /above its price/);
  assert.match(check({ stopLoss: "29000.1" }).faults.stopLoss ?? "", /0\.25/);
  assert.match(check({ stopLimit: "29000" }).faults.stopLimit ?? "", /needs a stop-loss/);
  assert.match(check({ takeProfit: "32000", ocoWith: "7" }).faults.takeProfit ?? "", /cannot also be linked/);
  assert.equal(check({ stopLimit: "29000" }).order, null);
  // What only the venue can decide is warned of.
  assert.match(
    check({ takeProfit: "30750" }).warnings.takeProfit ?? "", /already above this trigger: the venue refuses such a take-profit/,
  );
  assert.match(check({ stopLoss: "29000", stopLimit: "29500" }).warnings.stopLimit ?? "", /above the stop-loss/);
  const market = check({ kind: "market", timeInForce: "ioc", stopLoss: "30900" });
  assert.match(market.warnings.stopLoss ?? "", /already below this trigger/);
});
