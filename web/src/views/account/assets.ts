// What one has, asset by asset with its value; and what the trades of each instrument earned.

import { divide, formatUnits } from "walras";
import { trimZeros } from "../../base/decimal.ts";
import { byId, h, setText } from "../../base/dom.ts";
import { group, showUnits, signed } from "../../base/format.ts";
import { atMostEvery } from "../../base/signal.ts";
import { type Earned, chosenAsset, countedIn, earned, type Holding, holdings, ratesOf } from "../../state/valuation.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { Rows, setCells, table } from "../rows.ts";
import { shownView } from "../view-tabs.ts";
import { showSigned } from "./head.ts";

const DRAW_EVERY_MS = 500;

export function assetsView(venue: Venue): void {
  const words = t.account;
  const numeric = true;
  const { element, body } = table(words.assets, [
    { name: words.asset }, { name: words.total, numeric }, { name: words.reserved, numeric }, { name: words.worth, numeric }, { name: words.share, numeric },
  ]);
  element.id = "assets-table";
  byId("assets-body").append(element);
  let context = { asset: "", decimals: 0, total: 0n };
  const rows = new Rows<Holding>(body, () => h("tr", {}, h("td"), h("td.num"), h("td.num"), h("td.num"), h("td.num.share-cell", {}, h("span.share-bar", { "aria-hidden": "true" }, h("i")), h("span"))), (row, holding) => {
    const own = venue.decimals(holding.asset);
    const amount = (units: bigint): string => group(trimZeros(formatUnits(units, own), 2));
    const { asset, decimals, total } = context;
    setCells(row, [holding.asset, amount(holding.available + holding.reserved), amount(holding.reserved), holding.value === null ? "–" : showUnits(holding.value, decimals)]);
    row.title = `${words.available}: ${group(formatUnits(holding.available, own))} ${holding.asset}${holding.value === null ? "" : `; ${words.worth}: ${showUnits(holding.value, decimals)} ${asset}`}`;
    const permille = holding.value === null || total <= 0n ? null : Number(divide(holding.value * 1_000n, total, "down"));
    const [bar, text] = row.cells[4]?.children ?? [];
    if (bar instanceof HTMLElement && bar.firstElementChild instanceof HTMLElement) bar.firstElementChild.style.width = `${(permille ?? 0) / 10}%`;
    if (text) setText(text, permille === null ? "–" : `${signed((permille / 10).toFixed(1))}\u00a0%`);
  });

  const profit = table(words.profit, [
    { name: words.instrument }, { name: words.net, numeric }, { name: words.cost, numeric }, { name: words.last, numeric }, { name: words.realised, numeric }, { name: words.unrealised, numeric }, { name: words.profitAll, numeric },
  ]);
  profit.element.id = "profit-table";
  const none = h("p.empty", {}, words.profitNone);
  const note = h("span.muted", { id: "profit-words" });
  byId("profit-tools").append(note);
  byId("profit-body").append(profit.element, none);
  const results = new Rows<Earned>(profit.body, () => h("tr", {}, h("td"), ...Array.from({ length: 6 }, () => h("td.num"))), showResult);

  const draw = (): void => {
    if (shownView.value !== "account") return;
    const asset = chosenAsset(venue);
    const rates = ratesOf(venue);
    // In the venue's order: by value they would change places while they are read.
    const list = holdings(venue, asset, rates);
    context = { asset, decimals: venue.decimals(asset), total: list.reduce((sum, { value }) => sum + (value ?? 0n), 0n) };
    element.hidden = list.length === 0;
    rows.show(list, (holding) => holding.asset);
    const made = earned(venue, asset, rates);
    results.show(made, ({ result }) => result.instrument);
    profit.element.hidden = made.length === 0;
    none.hidden = made.length > 0;
    setText(note, made.length === 0 ? "" : words.profitWords(venue.account.fills.value.length));
  };
  const soon = atMostEvery(DRAW_EVERY_MS, draw);
  for (const signal of [venue.account.balances, venue.account.fills, venue.tickers.all]) (signal as { watch(act: () => void): unknown }).watch(soon);
  countedIn.watch(draw);
  shownView.watch(draw);
  draw();
}

function showResult(row: HTMLTableRowElement, { result, scale, quote, base, last, unrealised, profit }: Earned): void {
  const net = result.net < 0n ? -result.net : result.net;
  // Of one whole unit, cut down to the price's decimals.
  const average = net === 0n ? null : divide(result.cost * 10n ** BigInt(scale.sizeDecimals + scale.priceDecimals), result.net * 10n ** BigInt(scale.quoteDecimals), "down");
  setCells(row, [
    result.instrument, `${result.net > 0n ? "+" : ""}${group(trimZeros(formatUnits(result.net, scale.sizeDecimals), 2))}`,
    average === null ? "–" : showUnits(average, scale.priceDecimals), last === null ? "–" : group(last),
  ]);
  const signed: [number, bigint | null][] = [[4, result.realised], [5, unrealised], [6, profit]];
  for (const [index, units] of signed) {
    const cell = row.cells[index];
    if (!cell) continue;
    if (units === null) setText(cell, "–");
    else showSigned(cell, units, scale.quoteDecimals, "");
  }
  row.title = `${result.instrument}: ${result.trades} × ${base}, ${quote}; ${t.account.fees}: ${showUnits(result.fees, scale.quoteDecimals)} ${quote}`;
}
