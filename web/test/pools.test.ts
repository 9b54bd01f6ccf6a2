import assert from "node:assert/strict";
import { test } from "node:test";
import { parseUnits, type Pool, type PoolShare } from "walras";
import { OwnOffers } from "../src/state/own-offers.ts";
import {
  boughtBy, checkCreate, checkDeposit, checkWithdraw, type Opening, type PoolFaults, type PoolFields,
  type Side, type Sides, partnerOf, partPpm, partText, worthOf,
} from "../src/state/pool.ts";
import { Random } from "../../sdk/typescript/test/random.ts";

const side = (asset: string, id: number, free: string | null, decimals = 2): Side => ({
  asset, id, decimals, spendable: free === null ? null : { asset, free: parseUnits(free, decimals), collected: 0n },
});
const SIDES: Sides = [side("EUR", 1, "500"), side("USD", 0, "1000")];
const POOL: Pool = {
  batch: "main", account_id: 7, sequence: "12", first: "EUR", second: "USD", rule: "constant_product", fee_ppm: 3_000,
  reserves: ["1000.00", "1083.20"], shares: "100000",
};
const OWN: PoolShare = {
  batch: "main", account_id: 7, sequence: "12", first: "EUR", second: "USD", shares: "250", all_shares: "100000", worth: ["2.50", "2.70"],
};
const fields = (more: Partial<PoolFields> = {}): PoolFields =>
  ({ rule: "constant_product", firstAmount: "", secondAmount: "", weights: "", amplification: "", fee: "", shares: "", ...more });

test("a new pool is what was typed, in smallest units and parts per million", () => {
  const typed = fields({ firstAmount: "100", secondAmount: "108.32", fee: "0.3" });
  const { operation, gives, moves, faults } = checkCreate(typed, SIDES, null);
  assert.deepEqual(faults, {});
  const amounts = [10_000n, 10_832n];
  assert.deepEqual(operation, { operation: "create_pool", first: 1, second: 0, rule: "constant_product", fee_ppm: 3_000, amounts });
  assert.deepEqual(gives, [{ asset: "EUR", amount: "100.00" }, { asset: "USD", amount: "108.32" }]);
  assert.equal(moves?.shares, 10_000n, "as many shares as the smaller amount has units");
  const weighted = checkCreate(fields({ ...typed, rule: "weighted", weights: "80 : 20" }), SIDES, null).operation;
  assert.deepEqual(weighted && "weights" in weighted ? weighted.weights : null, [80, 20]);
  const stable = checkCreate(fields({ ...typed, rule: "stable_swap", amplification: "200" }), SIDES, null).operation;
  assert.equal(stable && "amplification" in stable ? stable.amplification : null, 200);
});

test("each field of a new pool has its limits", () => {
  const typed = { firstAmount: "100", secondAmount: "100", fee: "0" };
  const checked = (more: Partial<PoolFields>, opening: Opening | null): PoolFaults =>
    checkCreate(fields({ ...typed, ...more }), SIDES, opening).faults;
  const faults = (more: Partial<PoolFields>): string[] => Object.keys(checked(more, null));
  assert.deepEqual(faults({}), []);
  assert.deepEqual(faults({ firstAmount: "10", secondAmount: "9.99" }), ["secondAmount"], "1000 units of each at least");
  assert.deepEqual(faults({ firstAmount: "500.01" }), ["firstAmount"], "more than there is");
  assert.deepEqual(faults({ firstAmount: "500" }), []);
  const opening = { ...SIDES[0], amount: "0.01" };
  assert.match(checked({ firstAmount: "500" }, opening).firstAmount ?? "", /499\.99 EUR/, "what opening costs is spent too");
  assert.deepEqual(checked({ firstAmount: "499.99" }, opening), {});
  const other = { ...side("CHF", 5, "3"), amount: "4" };
  assert.match(checked({}, other).firstAmount ?? "", /costs 4 CHF, and you have 3 CHF/, "a cost in a third asset is checked too");
  assert.deepEqual(checked({}, { ...other, amount: "3" }), {});
  assert.deepEqual(faults({ fee: "10" }), []);
  for (const fee of ["10.0001", "0.00001", ""]) assert.deepEqual(faults({ fee }), ["fee"], fee);
  for (const weights of ["", "80", "80 : 20 : 1", "0 : 1", "1 : 1001", "1.5 : 2", "a : b"]) {
    assert.deepEqual(faults({ rule: "weighted", weights }), ["weights"], weights);
  }
  for (const amplification of ["", "0", "1000001", "1.5"]) {
    assert.deepEqual(faults({ rule: "stable_swap", amplification }), ["amplification"]);
  }
  assert.deepEqual(faults({ rule: "constant_product", weights: "x", amplification: "x" }), [], "other rules' fields are not looked at");
  const one = [SIDES[0], SIDES[0]] as const;
  assert.deepEqual(Object.keys(checkCreate(fields(typed), one, null).faults), ["secondAmount"], "two assets");
});

test("a deposit takes what the ratio allows, never more than was named", () => {
  const random = new Random(5);
  for (let round = 0; round < 2_000; round += 1) {
    const units = (most: number): bigint => BigInt(1 + random.below(10 ** (1 + random.below(most))));
    const reserves: [bigint, bigint] = [1_000n + units(9), 1_000n + units(9)];
    const all = (reserves[0] < reserves[1] ? reserves[0] : reserves[1]) - BigInt(random.below(900));
    const text = (n: bigint): string => `${n / 100n}.${String(n % 100n).padStart(2, "0")}`;
    const pool = { ...POOL, reserves: [text(reserves[0]), text(reserves[1])] as [string, string], shares: String(all) };
    const named: [bigint, bigint] = [units(9), units(9)];
    const bought = boughtBy(pool, SIDES, named);
    // By definition: the most shares whose cost, rounded up, is within both amounts.
    const affords = (shares: bigint): boolean => reserves.every((reserve, at) => reserve * shares <= (named[at] ?? 0n) * all);
    if (bought === null) {
      assert.ok(!affords(1n));
      continue;
    }
    assert.ok(affords(bought.shares) && !affords(bought.shares + 1n));
    bought.amounts.forEach((cost, at) => assert.ok(cost <= (named[at] ?? 0n) && cost * all >= (reserves[at] ?? 0n) * bought.shares));
    // What they bring at once is no more than what they cost.
    const grown = { ...pool, reserves: [text(reserves[0] + bought.amounts[0]), text(reserves[1] + bought.amounts[1])] as [string, string] };
    const back = worthOf({ ...grown, shares: String(all + bought.shares) }, SIDES, bought.shares);
    back.forEach((brought, at) => assert.ok(brought <= (bought.amounts[at] ?? 0n)));
  }
});

test("the other amount of a deposit is suggested so that all of the first one is taken", () => {
  const second = partnerOf(POOL, SIDES, 0, 5_000n);
  assert.equal(second, 5_416n);
  assert.deepEqual(boughtBy(POOL, SIDES, [5_000n, second ?? 0n])?.amounts, [5_000n, 5_416n]);
  assert.equal(partnerOf(POOL, SIDES, 1, 5_416n), 5_000n);
});

test("a deposit and a withdrawal name the pool, and refuse what is too little or too much", () => {
  const deposit = checkDeposit(fields({ firstAmount: "50", secondAmount: "54.16" }), SIDES, POOL);
  assert.deepEqual(deposit.operation, { operation: "deposit_to_pool", pool: { account: 7, sequence: 12n }, amounts: [5_000n, 5_416n] });
  const big: Pool = { ...POOL, reserves: ["100000000.00", "108320000.00"], shares: "10" };
  assert.deepEqual(Object.keys(checkDeposit(fields({ firstAmount: "1", secondAmount: "1" }), SIDES, big).faults), ["firstAmount"]);
  const tooMuch = checkDeposit(fields({ firstAmount: "501", secondAmount: "1001" }), SIDES, POOL);
  assert.deepEqual(Object.keys(tooMuch.faults), ["firstAmount", "secondAmount"]);
  const withdraw = checkWithdraw(fields({ shares: "250" }), SIDES, POOL, OWN);
  assert.deepEqual(withdraw.operation, { operation: "withdraw_from_pool", pool: { account: 7, sequence: 12n }, shares: 250n });
  assert.deepEqual([withdraw.moves?.amounts, withdraw.gives], [[250n, 270n], []]);
  for (const shares of ["251", "0", "-1", "1.5", ""]) {
    assert.equal(checkWithdraw(fields({ shares }), SIDES, POOL, OWN).operation, null, shares);
  }
  assert.equal(checkWithdraw(fields({ shares: "1" }), SIDES, POOL, undefined).operation, null, "who has none takes none out");
  assert.equal(partPpm(OWN.shares, OWN.all_shares), 2_500);
});

test("a part of a pool is rounded down, and is nothing or all only where it is", () => {
  const shown = [["250", "0.25 %"], ["0", "0 %"], ["100000", "100 %"], ["99999", "99.999 %"], ["33333", "33.333 %"]] as const;
  for (const [shares, expected] of shown) assert.equal(partText(shares, "100000").replace("\u00a0", " "), expected);
  assert.equal(partText(1n, 10_000_000n).replace("\u00a0", " "), "< 0.0001 %");
  assert.equal(partText(9_999_999n, 10_000_000n).replace("\u00a0", " "), "99.9999 %");
});

test("what is on its way to a pool is not offered again, until the batch has closed", () => {
  const offers = new OwnOffers();
  const gives = [{ asset: "EUR", amount: "50.00" }, { asset: "USD", amount: "54.16" }];
  offers.collected({ batch: "main", sequence: "7", block: "16", asks: { gives } });
  assert.deepEqual([offers.collectedOf("EUR"), offers.collectedOf("USD"), offers.list("main")], [["50.00"], ["54.16"], []]);
  offers.closed("main", "15");
  assert.equal(offers.collectedFor("main", "16"), 1);
  offers.closed("main", "16");
  assert.deepEqual([offers.collectedOf("EUR"), offers.collectedFor("main", "16")], [[], 0]);
});
