// What one's trades earned: by instrument, in its quote asset, or by asset next to what one has of it, in the asset that is counted in.

import { divide, formatUnits } from "walras";
import { trimZeros } from "../../base/decimal.ts";
import { byId, h, setText } from "../../base/dom.ts";
import { group, showUnits } from "../../base/format.ts";
import { atMostEvery } from "../../base/signal.ts";
import { resultsByAsset } from "../../state/portfolio.ts";
import { type AssetLine, assetLines, chosenAsset, countedIn, type Earned, earned, holdings, ratesOf } from "../../state/valuation.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { Choice } from "../form.ts";
import { Rows, setCells, table } from "../rows.ts";
import { shownView } from "../view-tabs.ts";
import { showSigned } from "./head.ts";

const DRAW_EVERY_MS = 500;
const words = t.account;

export function profitView(venue: Venue): void {
  const numeric = true;
  const instruments = table(words.profit, [
    { name: words.instrument }, { name: words.net, numeric }, { name: words.cost, numeric }, { name: words.last, numeric },
    { name: words.realised, numeric }, { name: words.unrealised, numeric }, { name: words.profitAll, numeric },
  ]);
  instruments.element.id = "profit-table";
  const assets = table(words.assetProfit, [
    { name: words.asset }, { name: words.worth, numeric }, { name: words.realised, numeric }, { name: words.unrealised, numeric },
    { name: words.fees, numeric }, { name: words.profitAll, numeric },
  ]);
  assets.element.id = "asset-profit-table";
  const about = h("p.panel-words", { id: "asset-profit-words" });
  const none = h("p.empty", {}, words.profitNone);
  const note = h("span.muted", { id: "profit-words" });
  const choices = [["instrument", words.byInstrument], ["asset", words.byAsset]] as const;
  const by = new Choice<"instrument" | "asset">("profit-by", words.profitBy, choices, "light");
  byId("profit-tools").append(note, by.element);
  byId("profit-body").append(instruments.element, about, assets.element, none);
  const figures = (count: number): HTMLElement[] => Array.from({ length: count }, () => h("td.num"));
  const results = new Rows<Earned>(instruments.body, () => h("tr", {}, h("td"), ...figures(6)), showResult);
  let counted = { asset: "", decimals: 0 };
  const lines = new Rows<AssetLine>(assets.body, () => h("tr", {}, h("td"), ...figures(5)), (row, line) => showLine(row, line, counted));

  const draw = (): void => {
    if (shownView.value !== "account") return;
    const made = earned(venue);
    const byAsset = by.value === "asset";
    instruments.element.hidden = byAsset || made.length === 0;
    assets.element.hidden = about.hidden = !byAsset || made.length === 0;
    none.hidden = made.length > 0;
    setText(note, made.length === 0 ? "" : words.profitWords(venue.account.fills.value.length));
    if (!byAsset) return results.show(made, ({ result }) => result.instrument);
    const asset = chosenAsset(venue);
    const rates = ratesOf(venue);
    counted = { asset, decimals: venue.decimals(asset) };
    setText(about, words.assetProfitWords(asset));
    lines.show(assetLines(holdings(venue, asset, rates), resultsByAsset(made, asset, rates)), (line) => line.asset);
  };
  const soon = atMostEvery(DRAW_EVERY_MS, draw);
  const { balances, fills } = venue.account;
  for (const signal of [balances, fills, venue.tickers.all]) (signal as { watch(act: () => void): unknown }).watch(soon);
  by.element.addEventListener("change", draw);
  countedIn.watch(draw);
  shownView.watch(draw);
  draw();
}

function showResult(row: HTMLTableRowElement, { result, scale, quote, last, unrealised, profit }: Earned): void {
  // Of one whole unit, cut down to the price's decimals.
  const [upper, lower] = [10n ** BigInt(scale.sizeDecimals + scale.priceDecimals), 10n ** BigInt(scale.quoteDecimals)];
  const average = result.net === 0n ? null : divide(result.cost * upper, result.net * lower, "down");
  setCells(row, [
    result.instrument, `${result.net > 0n ? "+" : ""}${group(trimZeros(formatUnits(result.net, scale.sizeDecimals), 2))}`,
    average === null ? "–" : showUnits(average, scale.priceDecimals), last === null ? "–" : group(last),
  ]);
  showSums(row, [[4, result.realised], [5, unrealised], [6, profit]], scale.quoteDecimals);
  const fees = `${showUnits(result.fees, scale.quoteDecimals)} ${quote}`;
  row.title = `${result.instrument}; ${words.tradesList}: ${group(String(result.trades))}; ${words.fees}: ${fees}`;
}

function showLine(row: HTMLTableRowElement, { asset, value, result }: AssetLine, counted: { asset: string; decimals: number }): void {
  const { decimals } = counted;
  const amount = (units: bigint | null | undefined): string => (units == null ? "–" : showUnits(units, decimals));
  setCells(row, [asset, amount(value)]);
  const [realised, unrealised, fees] = [result?.realised ?? null, result?.unrealised ?? null, result?.fees ?? null];
  showSums(row, [[2, realised], [3, unrealised], [5, result?.profit ?? null]], decimals);
  const cell = row.cells[4];
  if (cell) setText(cell, amount(fees));
  const named = (name: string, units: bigint | null): string => `${name}: ${amount(units)} ${counted.asset}`;
  const said = [named(words.realised, realised), named(words.unrealised, unrealised), named(words.fees, fees)].join("; ");
  row.title = result === null ? "" : `${asset}: ${said}`;
}

/** Gains and losses in these cells; a dash for what is not known. */
function showSums(row: HTMLTableRowElement, sums: [cell: number, units: bigint | null][], decimals: number): void {
  for (const [index, units] of sums) {
    const cell = row.cells[index];
    if (!cell) continue;
    if (units !== null) showSigned(cell, units, decimals, "");
    else {
      setText(cell, "–");
      cell.classList.remove("buy", "sell");
    }
  }
}
