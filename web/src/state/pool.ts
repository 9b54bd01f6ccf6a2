// From what was typed to what is asked of a pool, or to what is wrong with each field. Pure. Amounts are computed as the venue does it
// (docs/batch-markets.md, "Pools"), from the reserves after the last block; a block that comes first may change those a little.

import { divide, formatUnits, parseUnits, type Pool, type PoolRule, type PoolShare } from "walras";
import { min, trimZeros } from "../base/decimal.ts";
import { group, showPercent, ungroup } from "../base/format.ts";
import { errorText } from "../texts/error-text.ts";
import { t } from "../texts/index.ts";
import type { InMarket } from "./batch-desk.ts";
import { type Spendable, overdraft } from "./offer.ts";

const AMOUNT_MAX = (1n << 63n) - 1n;
/** Fewest units of each asset that a pool begins with. */
const RESERVE_LEAST = 1_000n;
const WEIGHT_MOST = 1_000n;
const AMPLIFICATION_MOST = 1_000_000n;
/** A percentage with four digits is a whole number of parts per million. */
const FEE_DIGITS = 4;
const FEE_PPM_MOST = 100_000n;

export type PoolAction = "create" | "deposit" | "withdraw";
export type FieldName = "firstAmount" | "secondAmount" | "weights" | "amplification" | "fee" | "shares";
export type PoolFields = Record<FieldName, string> & { rule: Pool["rule"] };
export type PoolFaults = Partial<Record<FieldName, string>>;

/** One of the two assets: its ledger number, decimals, and what the account may still give of it. */
export interface Side {
  asset: string;
  id: number;
  decimals: number;
  spendable: Spendable | null;
}

export interface CheckedPool {
  faults: PoolFaults;
  /** `null` while something is wrong. */
  operation: InMarket | null;
  /** At most so much leaves the account. */
  gives: { asset: string; amount: string }[];
  /** Units that go into the pool or come out of it, first and second, and the shares for them. */
  moves: { amounts: [bigint, bigint]; shares: bigint } | null;
}

export type Sides = readonly [Side, Side];

/** The cost of opening a pool, and what the account may still give of its asset. */
export type Opening = Pick<Side, "asset" | "decimals" | "spendable"> & { amount: string };

export function checkCreate(fields: PoolFields, sides: Sides, opening: Opening | null): CheckedPool {
  const faults: PoolFaults = {};
  const cost = opening === null ? 0n : parseUnits(opening.amount, opening.decimals);
  const [first, second] = amounts(fields, sides, faults, (side) => ({
    least: RESERVE_LEAST, besides: opening?.asset === side.asset ? cost : 0n,
  }));
  if (opening?.spendable && cost > opening.spendable.free) {
    const { free } = opening.spendable;
    faults.firstAmount ??= t.pools.openingCosts(shown(cost, opening), shown(free > 0n ? free : 0n, opening));
  }
  const rule = ruleOf(fields, faults);
  const feePpm = read(fields.fee, faults, "fee", (text) => {
    const ppm = parseUnits(text, FEE_DIGITS);
    if (ppm < 0n || ppm > FEE_PPM_MOST) throw new Error(t.pools.feeRange);
    return ppm;
  });
  if (sides[0].asset === sides[1].asset) faults.secondAmount = t.pools.twoAssets;
  if (first === null || second === null || rule === null || feePpm === null || Object.keys(faults).length > 0) return refused(faults);
  const both: [bigint, bigint] = [first, second];
  const fee = opening === null ? [] : [{ asset: opening.asset, amount: opening.amount }];
  return {
    faults, gives: [...gives(sides, both), ...fee], moves: { amounts: both, shares: min(first, second) },
    operation: { operation: "create_pool", first: sides[0].id, second: sides[1].id, ...rule, fee_ppm: Number(feePpm), amounts: both },
  };
}

export function checkDeposit(fields: PoolFields, sides: Sides, pool: Pool): CheckedPool {
  const faults: PoolFaults = {};
  const both = amounts(fields, sides, faults, () => ({ least: 1n, besides: 0n }));
  const [first, second] = both;
  if (first === null || second === null) return refused(faults);
  const moves = boughtBy(pool, sides, [first, second]);
  if (moves === null) return refused({ ...faults, firstAmount: t.pools.tooLittle });
  return {
    faults, gives: gives(sides, [first, second]), moves,
    operation: { operation: "deposit_to_pool", pool: nameOf(pool), amounts: [first, second] },
  };
}

export function checkWithdraw(fields: PoolFields, sides: Sides, pool: Pool, own: PoolShare | undefined): CheckedPool {
  const faults: PoolFaults = {};
  const shares = read(fields.shares, faults, "shares", (text) => {
    const parsed = parseUnits(text, 0);
    if (parsed <= 0n) throw new Error(t.offer.aboveZero);
    if (parsed > BigInt(own?.shares ?? "0")) throw new Error(t.pools.moreThanShares(group(own?.shares ?? "0")));
    return parsed;
  });
  if (shares === null) return refused(faults);
  return {
    faults, gives: [], moves: { amounts: worthOf(pool, sides, shares), shares },
    operation: { operation: "withdraw_from_pool", pool: nameOf(pool), shares },
  };
}

/** The most shares that these amounts buy, and their cost, rounded up; `null` where they buy none. */
export function boughtBy(pool: Pool, sides: Sides, amounts: [bigint, bigint]): CheckedPool["moves"] {
  const all = BigInt(pool.shares);
  const [first, second] = reservesOf(pool, sides);
  if (first <= 0n || second <= 0n || all <= 0n) return null;
  const shares = min((amounts[0] * all) / first, (amounts[1] * all) / second);
  if (shares <= 0n || shares > AMOUNT_MAX) return null;
  return { shares, amounts: [divide(first * shares, all, "up"), divide(second * shares, all, "up")] };
}

/** What these shares are worth in each asset, rounded down. */
export function worthOf(pool: Pool, sides: Sides, shares: bigint): [bigint, bigint] {
  const all = BigInt(pool.shares);
  const [first, second] = reservesOf(pool, sides);
  return all <= 0n ? [0n, 0n] : [(first * shares) / all, (second * shares) / all];
}

/** The other asset's amount at the ratio of the reserves, rounded up: a deposit takes all of both, but for the rounding. */
export function partnerOf(pool: Pool, sides: Sides, given: 0 | 1, amount: bigint): bigint | null {
  const reserves = reservesOf(pool, sides);
  const [own, other] = given === 0 ? reserves : [reserves[1], reserves[0]];
  return own <= 0n ? null : divide(amount * other, own, "up");
}

/** Parts per million of the pool, rounded down. */
export function partPpm(shares: string | bigint, all: string | bigint): number {
  const whole = BigInt(all);
  return whole <= 0n ? 0 : Number((BigInt(shares) * 1_000_000n) / whole);
}

/** A part of a pool, rounded down: only all of it is "100 %", and only nothing is "0 %". */
export function partText(shares: string | bigint, all: string | bigint): string {
  const ppm = partPpm(shares, all);
  return ppm === 0 && BigInt(shares) > 0n ? `< ${showPercent(1)}` : showPercent(ppm);
}

function reservesOf({ reserves }: Pool, sides: Sides): [bigint, bigint] {
  return [parseUnits(reserves[0], sides[0].decimals), parseUnits(reserves[1], sides[1].decimals)];
}

function nameOf({ account_id, sequence }: Pool): { account: number; sequence: bigint } {
  return { account: account_id, sequence: BigInt(sequence) };
}

function amounts(
  fields: PoolFields, sides: Sides, faults: PoolFaults, bounds: (side: Side) => { least: bigint; besides: bigint },
): [bigint | null, bigint | null] {
  const of = (name: "firstAmount" | "secondAmount", side: Side): bigint | null => read(fields[name], faults, name, (text) => {
    const { least, besides } = bounds(side);
    const parsed = parseUnits(text, side.decimals);
    if (parsed <= 0n) throw new Error(t.offer.aboveZero);
    if (parsed > AMOUNT_MAX) throw new Error(t.offer.tooMuch);
    if (parsed < least) throw new Error(t.pools.beginsWith(shown(least, side)));
    const { spendable } = side;
    if (spendable !== null && parsed + besides > spendable.free) {
      throw new Error(overdraft({ ...spendable, free: spendable.free - besides }, side.decimals));
    }
    return parsed;
  });
  return [of("firstAmount", sides[0]), of("secondAmount", sides[1])];
}

function ruleOf(fields: PoolFields, faults: PoolFaults): PoolRule | null {
  switch (fields.rule) {
    case "constant_product":
      return { rule: "constant_product" };
    case "weighted": {
      const weights = read(fields.weights, faults, "weights", (text) => {
        const both = text.split(":").map((part) => parseUnits(part, 0));
        const [first, second] = both;
        if (both.length !== 2 || first === undefined || second === undefined) throw new Error(t.pools.weightsShape);
        if ([first, second].some((weight) => weight < 1n || weight > WEIGHT_MOST)) throw new Error(t.pools.weightsRange);
        return [Number(first), Number(second)] as [number, number];
      });
      return weights === null ? null : { rule: "weighted", weights };
    }
    case "stable_swap": {
      const amplification = read(fields.amplification, faults, "amplification", (text) => {
        const parsed = parseUnits(text, 0);
        if (parsed < 1n || parsed > AMPLIFICATION_MOST) throw new Error(t.pools.amplificationRange);
        return Number(parsed);
      });
      return amplification === null ? null : { rule: "stable_swap", amplification };
    }
  }
}

function gives(sides: Sides, amounts: [bigint, bigint]): CheckedPool["gives"] {
  return sides.map(({ asset, decimals }, at) => ({ asset, amount: formatUnits(amounts[at] ?? 0n, decimals) }));
}

function shown(units: bigint, { asset, decimals }: Pick<Side, "asset" | "decimals">): string {
  return `${group(trimZeros(formatUnits(units, decimals)))} ${asset}`;
}

function refused(faults: PoolFaults): CheckedPool {
  return { faults, operation: null, gives: [], moves: null };
}

function read<T>(text: string, faults: PoolFaults, field: FieldName, parse: (text: string) => T): T | null {
  if (text.trim() === "") {
    faults[field] = t.offer.fillIn;
    return null;
  }
  try {
    return parse(ungroup(text));
  } catch (error) {
    faults[field] = errorText(error);
    return null;
  }
}
