// One's own offers in the batch, with cancel, and what they traded.

import type { OfferFill } from "walras";
import { changePpm, quotient, trimZeros } from "../../base/decimal.ts";
import { byId, h, setText } from "../../base/dom.ts";
import { group, showChange, showTime, typed } from "../../base/format.ts";
import { oncePerFrame } from "../../base/signal.ts";
import type { BatchMarket } from "../../state/batch-market.ts";
import { describeError } from "../../state/outcome.ts";
import { type OwnOffer, fillKey } from "../../state/own-offers.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { Rows, keepFocus, setCells, table } from "../rows.ts";
import { drawProof, markOf, markTitle } from "./proof-words.ts";

const said = t.offers;
const FILLS_SHOWN = 100;

export function offersView(venue: Venue): void {
  const { desk } = venue;
  const { element, body } = table(said.caption, [
    { name: said.sells },
    { name: said.least, numeric: true },
    { name: said.away, numeric: true },
    { name: said.stands },
    { name: said.actions, silent: true },
  ]);
  element.id = "offers-table";
  const empty = h("p.empty", {}, said.none);
  const cancelAll = h("button", { type: "button", id: "cancel-offers", onclick: () => void cancelOffers(venue) }, said.cancelAll);
  byId("offers-tools").append(cancelAll);
  const proof = h("p.empty.small", { id: "proof-words" });
  byId("offers-body").append(element, empty, proof);
  const rows = new Rows<OwnOffer>(body, (offer) => h("tr", { title: said.rowTitle(offer.sequence) },
    h("td.sell"), h("td.num"), h("td.num"), h("td"), h("td.act", {}, h("button", {
      type: "button", "aria-label": said.cancelLabel(typed(offer.amount), offer.sell, offer.buy),
      onclick: () => void cancel(venue, offer.key),
    }, said.cancel))), (row, offer) => {
    const market = desk.market.value;
    setCells(row, [
      `▼ ${group(trimZeros(offer.amount))} ${offer.sell}`,
      /[1-9]/.test(offer.stated_price) ? `${group(trimZeros(offer.stated_price))} ${offer.buy}` : said.any(offer.buy),
      market ? away(market, offer) : "", `${stateWords(offer)}${markOf(desk.proofs.ofOffer(offer))}`,
    ]);
    row.title = `${said.rowTitle(offer.sequence)}${markTitle(desk.proofs.ofOffer(offer))}`;
    const button = row.querySelector("button");
    // Not `disabled` while its cancel is on the way: that would drop the keyboard's focus.
    if (button) button.hidden = offer.state === "collected";
    button?.setAttribute("aria-disabled", String(offer.state === "cancelling"));
  });
  const draw = oncePerFrame(() => {
    const market = desk.market.value;
    const offers = market ? desk.offers.list(market.name) : [];
    keepFocus(body, cancelAll, () => rows.show(offers, ({ key }) => key));
    element.hidden = offers.length === 0;
    empty.hidden = offers.length > 0;
    drawProof(proof, desk.proofs);
    cancelAll.disabled = !offers.some(({ state }) => state === "standing");
    setText(byId("offers-title"), said.title(offers.length));
  });
  desk.offers.changed.watch(draw);
  desk.proofs.changed.watch(draw);
  desk.market.watch((market) => {
    market?.blocks.watch(draw);
    draw();
  });
}

export function offerFillsView(venue: Venue): void {
  const { element, body } = table(said.fillsCaption, [
    { name: said.block }, { name: said.sold, numeric: true }, { name: said.bought, numeric: true }, { name: said.rate, numeric: true },
  ]);
  element.id = "offer-fills-table";
  const empty = h("p.empty", {}, said.fillsNone);
  byId("offer-fills-body").append(element, empty);
  let fresh = false;
  const rows = new Rows<OfferFill>(body, (fill) => {
    const row = h(
      "tr",
      { class: fresh ? "new" : null, title: said.fillTitle(showTime(fill.time_ns, true), fill.sequence) },
      h("td"),
      h("td.num.sell"),
      h("td.num.buy"),
      h("td.num"),
    );
    setCells(row, [
      group(fill.block), `▼ ${group(trimZeros(fill.sold))} ${fill.sell}`, `▲ ${group(trimZeros(fill.bought))} ${fill.buy}`, rateOf(fill),
    ]);
    return row;
  }, () => {});
  const draw = oncePerFrame(() => {
    const fills = venue.desk.offers.fills.value;
    rows.show(fills.slice(0, FILLS_SHOWN), fillKey);
    fresh = true;
    element.hidden = fills.length === 0;
    empty.hidden = fills.length > 0;
  });
  venue.desk.offers.fills.watch(draw);
  draw();
}

/** One transaction for each offer: they are collected together, whatever their order. */
export async function cancelOffers(venue: Venue): Promise<void> {
  const { desk } = venue;
  const market = desk.market.value;
  if (!market) return;
  const keys = desk.offers.list(market.name).filter(({ state }) => state === "standing").map(({ key }) => key);
  await Promise.all(keys.map((key) => cancel(venue, key)));
}

async function cancel(venue: Venue, key: string): Promise<void> {
  const { desk } = venue;
  const market = desk.market.value;
  const offer = market && desk.offers.list(market.name).find((each) => each.key === key);
  if (!offer || offer.state !== "standing") return;
  try {
    await desk.cancel(offer);
  } catch (error) {
    venue.say({ tone: "bad", ...describeError(error as Error) });
  }
}

function stateWords(offer: OwnOffer): string {
  return said.states[offer.state](group(offer.block));
}

/** How much the rate must rise until the offer trades. */
function away(market: BatchMarket, offer: OwnOffer): string {
  const rate = market.rate(offer, 8);
  if (rate === null || !/[1-9]/.test(offer.stated_price)) return "";
  return showChange(changePpm(rate, offer.stated_price));
}

function rateOf(fill: OfferFill): string {
  return /[1-9]/.test(fill.sold) && /[1-9]/.test(fill.bought) ? group(quotient(fill.bought, fill.sold, 6)) : "–";
}
