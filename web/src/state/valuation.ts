// What the account is worth in one asset, line by line, at the last prices of all markets that the page follows.

import { type Fill, parseUnits } from "walras";
import type { Venue } from "./venue.ts";
import { type AssetResult, convert, type Rate, rateOf, type Result, resultOf, type Scale, unrealised } from "./portfolio.ts";
import { isText, Setting } from "../base/settings.ts";

export const countedIn = new Setting<string>("counted-in", "", (kept) => (isText(kept) ? kept : null));

export interface Holding {
  asset: string;
  available: bigint;
  reserved: bigint;
  /** In the asset that is counted in; `null` where no price leads there. */
  value: bigint | null;
}

/** Of one instrument, in its quote asset. */
export interface Earned {
  result: Result;
  scale: Scale;
  quote: string;
  base: string;
  last: string | null;
  unrealised: bigint | null;
  /** Realised and unrealised, less fees. */
  profit: bigint | null;
}

/** What one has of an asset, or none of any more, and what the trades in it earned, if there were any. */
export interface AssetLine {
  asset: string;
  value: bigint | null;
  result: AssetResult | null;
}

/** The assets that values can be counted in: those that something is priced in. */
export function countable(venue: Venue): string[] {
  const quotes = venue.instruments.value.map(({ quote }) => quote);
  const numeraires = venue.desk.list.value.flatMap(({ numeraire }) => numeraire ?? []);
  return [...new Set([...quotes, ...numeraires])];
}

export function chosenAsset(venue: Venue): string {
  const assets = countable(venue);
  return assets.includes(countedIn.value) ? countedIn.value : (assets[0] ?? "");
}

export function ratesOf(venue: Venue): Rate[] {
  const decimals = (asset: string): number => venue.decimals(asset);
  const ofBooks = venue.instruments.value.flatMap((instrument) => {
    const price = venue.tickers.lastPrice(instrument);
    return price === null ? [] : [rateOf(instrument.base, instrument.quote, price, decimals)];
  });
  const batch = venue.desk.market.value;
  const numeraire = batch?.info.value.numeraire ?? "";
  const ofBatch = (batch?.info.value.assets ?? []).filter((asset) => asset !== numeraire).flatMap((asset) => {
    const price = batch?.price(asset);
    return price == null ? [] : [rateOf(asset, numeraire, price, decimals)];
  });
  return [...ofBooks, ...ofBatch];
}

export function holdings(venue: Venue, asset: string, rates: Rate[]): Holding[] {
  return [...venue.account.balances.value.values()].map((balance) => {
    const decimals = venue.decimals(balance.asset);
    const [available, reserved] = [parseUnits(balance.available, decimals), parseUnits(balance.reserved, decimals)];
    return { asset: balance.asset, available, reserved, value: convert(available + reserved, balance.asset, asset, rates) };
  });
}

export function earned(venue: Venue): Earned[] {
  const byInstrument = new Map<string, Fill[]>();
  for (const fill of venue.account.fills.value) {
    const known = byInstrument.get(fill.instrument);
    if (known) known.push(fill);
    else byInstrument.set(fill.instrument, [fill]);
  }
  return [...byInstrument].flatMap(([symbol, fills]) => {
    const units = venue.units(symbol);
    if (!units) return [];
    const { instrument, priceDecimals, sizeDecimals, quoteDecimals } = units;
    const scale = { priceDecimals, sizeDecimals, quoteDecimals };
    const result = resultOf(instrument.symbol, fills, scale);
    const last = venue.tickers.lastPrice(instrument);
    const open = result.net === 0n ? 0n : last === null ? null : unrealised(result, parseUnits(last, priceDecimals), scale);
    const profit = open === null ? null : result.realised + open - result.fees;
    return [{ result, scale, quote: instrument.quote, base: instrument.base, last, unrealised: open, profit }];
  });
}

/** All that is held, then what was traded and is not held any more. */
export function assetLines(held: Holding[], results: AssetResult[]): AssetLine[] {
  const resultOfAsset = new Map(results.map((result) => [result.asset, result]));
  const lines = held.map(({ asset, value }) => ({ asset, value, result: resultOfAsset.get(asset) ?? null }));
  const known = new Set(held.map(({ asset }) => asset));
  return [...lines, ...results.filter(({ asset }) => !known.has(asset)).map((result) => ({ asset: result.asset, value: 0n, result }))];
}
