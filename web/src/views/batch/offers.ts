// One's own offers in the batch, with cancel, and what they traded.

import type { OfferFill } from "../../api/batch-types.ts";
import { changePpm, quotient, trimZeros } from "../../base/decimal.ts";
import { byId, h, setText } from "../../base/dom.ts";
import { group, showChange, showTime } from "../../base/format.ts";
import { oncePerFrame } from "../../base/signal.ts";
import type { BatchMarket } from "../../state/batch-market.ts";
import { describeError } from "../../state/outcome.ts";
import { type OwnOffer, fillKey } from "../../state/own-offers.ts";
import type { Venue } from "../../state/venue.ts";
import { Rows, keepFocus, setCells, table } from "../rows.ts";

const FILLS_SHOWN = 100;

export function offersView(venue: Venue): void {
  const { desk } = venue;
  const { element, body } = table("Your offers", [
    { name: "Sells" }, { name: "For at least", numeric: true }, { name: "Away", numeric: true }, { name: "Stands" }, { name: "Actions", silent: true },
  ]);
  element.id = "offers-table";
  const empty = h("p.empty", {}, "None. What does not trade in the next block stands here, in every block that follows, until it does or you cancel it.");
  const cancelAll = h("button", { type: "button", id: "cancel-offers", onclick: () => void cancelOffers(venue) }, "Cancel all");
  byId("offers-tools").append(cancelAll);
  byId("offers-body").append(element, empty);
  const rows = new Rows<OwnOffer>(body, (offer) => h("tr", { title: `Transaction ${offer.sequence}` },
    h("td.sell"), h("td.num"), h("td.num"), h("td"), h("td.act", {}, h("button", {
      type: "button", "aria-label": `Cancel: sell ${offer.amount} ${offer.sell} for ${offer.buy}`,
      onclick: () => void cancel(venue, offer.key),
    }, "Cancel"))), (row, offer) => {
    const market = desk.market.value;
    setCells(row, [
      `▼ ${group(trimZeros(offer.amount))} ${offer.sell}`,
      /[1-9]/.test(offer.stated_price) ? `${group(trimZeros(offer.stated_price))} ${offer.buy}` : `any ${offer.buy}`,
      market ? away(market, offer) : "", stateWords(offer),
    ]);
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
    cancelAll.disabled = !offers.some(({ state }) => state === "standing");
    setText(byId("offers-title"), offers.length === 0 ? "Your offers" : `Your offers (${offers.length})`);
  });
  desk.offers.changed.watch(draw);
  desk.market.watch((market) => {
    market?.blocks.watch(draw);
    draw();
  });
}

export function offerFillsView(venue: Venue): void {
  const { element, body } = table("Your trades in batches, newest first; times in UTC", [
    { name: "Block" }, { name: "Sold", numeric: true }, { name: "Bought", numeric: true }, { name: "Rate", numeric: true },
  ]);
  element.id = "offer-fills-table";
  const empty = h("p.empty", {}, "None yet. All who trade a pair in one block trade at one rate.");
  byId("offer-fills-body").append(element, empty);
  let fresh = false;
  const rows = new Rows<OfferFill>(body, (fill) => {
    const row = h("tr", { class: fresh ? "new" : null, title: `${showTime(fill.time_ns, true)} UTC, your transaction ${fill.sequence}` }, h("td"), h("td.num.sell"), h("td.num.buy"), h("td.num"));
    setCells(row, [group(fill.block), `▼ ${group(trimZeros(fill.sold))} ${fill.sell}`, `▲ ${group(trimZeros(fill.bought))} ${fill.buy}`, rateOf(fill)]);
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
  const block = group(offer.block);
  return { collected: `in block ${block}`, standing: `since ${block}`, cancelling: `cancel in ${block}` }[offer.state];
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
