// What an account is worth and what its trades earned, in whole smallest units. Pure. Every rounding is named and goes down.


import { divide, type Fill, parseUnits } from "walras";

/** One whole unit of `base` for `price` of `quote`, exact: `numerator / denominator` of quote's smallest units for one of base's. */
export interface Rate {
  base: string;
  quote: string;
  numerator: bigint;
  denominator: bigint;
}

/** The rate of a price in text: "30534.29" USD (2 decimals) for a BTC (8 decimals). */
export function rateOf(base: string, quote: string, price: string, decimals: (asset: string) => number): Rate {
  const places = price.split(".")[1]?.length ?? 0;
  const numerator = parseUnits(price, places) * 10n ** BigInt(decimals(quote));
  return { base, quote, numerator, denominator: 10n ** BigInt(places + decimals(base)) };
}

type Step = [other: string, numerator: bigint, denominator: bigint];

/**
 * What `units` of an asset come to in another at these rates, by the fewest conversions and two at most, rounded down; `null` where no
 * rates lead there.
 */
export function convert(units: bigint, from: string, to: string, rates: Rate[]): bigint | null {
  if (from === to) return units;
  const steps = (asset: string): Step[] => rates.flatMap(({ base, quote, numerator, denominator }): Step[] =>
    base === asset && numerator > 0n ? [[quote, numerator, denominator]]
    : quote === asset && numerator > 0n ? [[base, denominator, numerator]] : []);
  for (const [other, a, b] of steps(from)) if (other === to) return divide(units * a, b, "down");
  for (const [middle, a, b] of steps(from)) {
    for (const [other, c, d] of steps(middle)) if (other === to) return divide(units * a * c, b * d, "down");
  }
  return null;
}

/** What the trades of one instrument came to, in smallest units: sizes of the base asset, money of the quote asset. */
export interface Result {
  instrument: string;
  trades: number;
  /** Bought less sold. */
  net: bigint;
  /** What the net position cost, fees not counted; below zero for what was sold short. */
  cost: bigint;
  /** Earned by what was bought and sold again (or the other way), fees not counted. */
  realised: bigint;
  fees: bigint;
  bought: bigint;
  sold: bigint;
}

export interface Scale {
  priceDecimals: number;
  sizeDecimals: number;
  quoteDecimals: number;
}

/**
 * Profit by average cost: what is sold takes its share of what the position cost, rounded down, and the rest stays with the rest. So
 * `realised - cost` is always exactly what the sales brought less what the purchases cost. `fills` are those of one instrument, in any
 * order.
 */
export function resultOf(instrument: string, fills: Fill[], scale: Scale): Result {
  const result: Result = { instrument, trades: 0, net: 0n, cost: 0n, realised: 0n, fees: 0n, bought: 0n, sold: 0n };
  const inOrder = [...fills].sort((a, b) =>
    compare(BigInt(a.time_ns), BigInt(b.time_ns)) || compare(BigInt(a.trade_id), BigInt(b.trade_id)));
  for (const fill of inOrder) {
    const size = parseUnits(fill.size, scale.sizeDecimals);
    const price = parseUnits(fill.price, scale.priceDecimals);
    const value = scaled(price * size, scale.priceDecimals + scale.sizeDecimals, scale.quoteDecimals);
    const signed = fill.side === "buy" ? size : -size;
    result.trades += 1;
    result.fees += parseUnits(fill.fee, scale.quoteDecimals);
    if (fill.side === "buy") result.bought += value;
    else result.sold += value;
    take(result, signed, fill.side === "buy" ? value : -value);
  }
  return result;
}

/** What the position would bring at `price` less what it cost, rounded down. */
export function unrealised({ net, cost }: Result, price: bigint, scale: Scale): bigint {
  return scaled(net * price, scale.priceDecimals + scale.sizeDecimals, scale.quoteDecimals) - cost;
}

/** What one instrument's trades came to, in its quote asset; `unrealised` is `null` where there is no last price. */
export interface Part {
  base: string;
  quote: string;
  result: Pick<Result, "realised" | "fees">;
  unrealised: bigint | null;
}

/** What the trades in an asset earned, in the asset that is counted in; `null` where no price leads there. */
export interface AssetResult {
  asset: string;
  realised: bigint | null;
  unrealised: bigint | null;
  fees: bigint | null;
  /** Realised and unrealised, less fees. */
  profit: bigint | null;
}

/**
 * By base asset, in the order of the parts: what an instrument's trades earned counts for the asset that they bought or sold, converted
 * `to` another at these rates, each figure rounded down. What the quote asset's own price did meanwhile is in none of them.
 */
export function resultsByAsset(parts: Part[], to: string, rates: Rate[]): AssetResult[] {
  return [...new Set(parts.map(({ base }) => base))].map((asset) => {
    const own = parts.filter(({ base }) => base === asset);
    const sum = (of: (part: Part) => bigint | null): bigint | null => added(own.map((part) => {
      const units = of(part);
      return units === null ? null : convert(units, part.quote, to, rates);
    }));
    const [realised, fees] = [sum(({ result }) => result.realised), sum(({ result }) => result.fees)];
    const open = sum((part) => part.unrealised);
    return { asset, realised, unrealised: open, fees, profit: added([realised, open, fees === null ? null : -fees]) };
  });
}

/** `null` where one of them is not known: part of a sum is no sum. */
function added(values: (bigint | null)[]): bigint | null {
  return values.reduce((sum, value) => (sum === null || value === null ? null : sum + value), 0n);
}

function take(result: Result, signed: bigint, value: bigint): void {
  const closes = result.net !== 0n && result.net > 0n !== signed > 0n;
  if (!closes) {
    result.net += signed;
    result.cost += value;
    return;
  }
  const part = magnitude(signed) < magnitude(result.net) ? magnitude(signed) : magnitude(result.net);
  const costPart = divide(result.cost * part, magnitude(result.net), "down");
  // Of a trade that turns the position around only a part closes it; the rest of its value opens the other side.
  const valuePart = divide(value * part, magnitude(signed), "down");
  result.realised += -valuePart - costPart;
  result.cost -= costPart;
  result.net += signed > 0n ? part : -part;
  const rest = magnitude(signed) - part;
  if (rest > 0n) {
    result.net = signed > 0n ? rest : -rest;
    result.cost = value - valuePart;
  }
}

function scaled(value: bigint, from: number, to: number): bigint {
  return to >= from ? value * 10n ** BigInt(to - from) : divide(value, 10n ** BigInt(from - to), "down");
}

function magnitude(value: bigint): bigint {
  return value < 0n ? -value : value;
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
