// The head of the account view: what the account is worth in the asset that one counts in, and what its trades earned.

import { byId, h, setText } from "../../base/dom.ts";
import { group, showUnits } from "../../base/format.ts";
import { atMostEvery } from "../../base/signal.ts";
import { convert } from "../../state/portfolio.ts";
import { chosenAsset, countable, countedIn, earned, holdings, ratesOf } from "../../state/valuation.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { language, LANGUAGE_TAGS } from "../../texts/language.ts";
import { shownView } from "../view-tabs.ts";

const DRAW_EVERY_MS = 500;
const LISTS = new Intl.ListFormat(LANGUAGE_TAGS[language], { type: "unit", style: "short" });

export function accountHeadView(venue: Venue, openKey: () => void): void {
  const words = t.account;
  const value = h("span.last", { id: "account-value" }, "–");
  const under = h("span.change.muted", { id: "account-value-words" });
  const facts = {
    realised: h("dd", { id: "account-realised" }), unrealised: h("dd", { id: "account-unrealised" }),
    fees: h("dd", { id: "account-fees" }), trades: h("dd", { id: "account-trades" }),
  };
  const fact = (name: string, element: HTMLElement, title: string): HTMLElement => h("div", { title }, h("dt", {}, name), element);
  const select = h("select", { id: "counted-in", onchange: () => {
    countedIn.value = select.value;
  } });
  const missing = h("p.fair-words", { id: "account-missing" });
  const hint = h("p.empty", { hidden: true }, words.noKey, h("button", { type: "button", onclick: openKey }, words.useKey));
  byId("account-head").append(
    h("div.picker", {}, h("span.who", {}, words.value), h("label.compact.sub", {}, words.in, select)),
    h("div.price", {}, value, under),
    h("dl.facts", {},
      fact(words.realised, facts.realised, words.realisedTitle), fact(words.unrealised, facts.unrealised, words.unrealisedTitle),
      fact(words.fees, facts.fees, words.feesTitle), fact(words.trades, facts.trades, words.tradesTitle)),
    missing, hint,
  );
  const draw = (): void => {
    if (shownView.value !== "account") return;
    const asset = chosenAsset(venue);
    const assets = countable(venue);
    if (select.options.length !== assets.length) select.replaceChildren(...assets.map((each) => h("option", { value: each }, each)));
    if (select.value !== asset) select.value = asset;
    hint.hidden = venue.account.state.value === "signed_in";
    if (asset === "" || venue.account.state.value !== "signed_in") return;
    const decimals = venue.decimals(asset);
    const rates = ratesOf(venue);
    const list = holdings(venue, asset, rates);
    const total = list.reduce((sum, each) => sum + (each.value ?? 0n), 0n);
    setText(value, showUnits(total, decimals));
    setText(under, words.valueWords(asset));
    const unpriced = list.filter((each) => each.value === null && each.available + each.reserved > 0n).map((each) => each.asset);
    setText(missing, unpriced.length === 0 ? "" : words.noPrice(LISTS.format(unpriced)));
    const results = earned(venue);
    const sum = (of: (each: (typeof results)[number]) => bigint | null): bigint =>
      results.reduce((all, each) => all + (convert(of(each) ?? 0n, each.quote, asset, rates) ?? 0n), 0n);
    showSigned(facts.realised, sum(({ result }) => result.realised), decimals, asset);
    showSigned(facts.unrealised, sum((each) => each.unrealised), decimals, asset);
    setText(facts.fees, `${showUnits(sum(({ result }) => result.fees), decimals)} ${asset}`);
    setText(facts.trades, group(String(venue.account.fills.value.length)));
    document.title = `${showUnits(total, decimals)} ${asset} · Walras`;
  };
  const soon = atMostEvery(DRAW_EVERY_MS, draw);
  const { balances, fills, state } = venue.account;
  for (const signal of [balances, fills, state, venue.tickers.all, venue.desk.list]) {
    (signal as { watch(act: () => void): unknown }).watch(soon);
  }
  countedIn.watch(draw);
  shownView.watch(draw);
  draw();
}

/** With its sign, and in the colour that goes with it. */
export function showSigned(element: HTMLElement, units: bigint, decimals: number, asset: string): void {
  setText(element, `${units > 0n ? "+" : ""}${showUnits(units, decimals)}${asset === "" ? "" : ` ${asset}`}`);
  element.classList.toggle("buy", units > 0n);
  element.classList.toggle("sell", units < 0n);
}
