// What one has, asset by asset with its value.

import { divide, formatUnits } from "walras";
import { trimZeros } from "../../base/decimal.ts";
import { byId, h, setText } from "../../base/dom.ts";
import { group, showUnits, signed } from "../../base/format.ts";
import { atMostEvery } from "../../base/signal.ts";
import { chosenAsset, countedIn, type Holding, holdings, ratesOf } from "../../state/valuation.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { Rows, setCells, table } from "../rows.ts";
import { shownView } from "../view-tabs.ts";

const DRAW_EVERY_MS = 500;

export function assetsView(venue: Venue): void {
  const words = t.account;
  const numeric = true;
  const { element, body } = table(words.assets, [
    { name: words.asset }, { name: words.total, numeric }, { name: words.reserved, numeric }, { name: words.worth, numeric },
    { name: words.share, numeric },
  ]);
  element.id = "assets-table";
  byId("assets-body").append(element);
  let context = { asset: "", decimals: 0, total: 0n };
  const shareCell = (): HTMLElement =>
    h("td.num.share-cell", {}, h("span.share-bar", { "aria-hidden": "true" }, h("i")), h("span"));
  const makeRow = (): HTMLTableRowElement => h("tr", {}, h("td"), h("td.num"), h("td.num"), h("td.num"), shareCell());
  const rows = new Rows<Holding>(body, makeRow, (row, holding) => {
    const own = venue.decimals(holding.asset);
    const amount = (units: bigint): string => group(trimZeros(formatUnits(units, own), 2));
    const { asset, decimals, total } = context;
    const value = holding.value === null ? null : showUnits(holding.value, decimals);
    setCells(row, [holding.asset, amount(holding.available + holding.reserved), amount(holding.reserved), value ?? "–"]);
    const available = `${words.available}: ${group(formatUnits(holding.available, own))} ${holding.asset}`;
    row.title = value === null ? available : `${available}; ${words.worth}: ${value} ${asset}`;
    const permille = holding.value === null || total <= 0n ? null : Number(divide(holding.value * 1_000n, total, "down"));
    const [bar, text] = row.cells[4]?.children ?? [];
    const filled = bar?.firstElementChild;
    if (filled instanceof HTMLElement) filled.style.width = `${(permille ?? 0) / 10}%`;
    if (text) setText(text, permille === null ? "–" : `${signed((permille / 10).toFixed(1))}\u00a0%`);
  });

  const draw = (): void => {
    if (shownView.value !== "account") return;
    const asset = chosenAsset(venue);
    const rates = ratesOf(venue);
    // In the venue's order: by value they would change places while they are read.
    const list = holdings(venue, asset, rates);
    context = { asset, decimals: venue.decimals(asset), total: list.reduce((sum, { value }) => sum + (value ?? 0n), 0n) };
    element.hidden = list.length === 0;
    rows.show(list, (holding) => holding.asset);
  };
  const soon = atMostEvery(DRAW_EVERY_MS, draw);
  for (const signal of [venue.account.balances, venue.tickers.all]) (signal as { watch(act: () => void): unknown }).watch(soon);
  countedIn.watch(draw);
  shownView.watch(draw);
  draw();
}
