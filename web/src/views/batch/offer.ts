// The ticket for an offer: says what it will do before it is signed, signs it here, and says what the venue answered and what came of it.

import { formatUnits } from "walras";
import { trimZeros } from "../../base/decimal.ts";
import { byId, h, setText } from "../../base/dom.ts";
import { group, showChange, showUnits, typed, ungroup } from "../../base/format.ts";
import { oncePerFrame } from "../../base/signal.ts";
import type { Signer } from "../../state/batch-desk.ts";
import type { BatchMarket, Pair } from "../../state/batch-market.ts";
import {
  type CheckedOffer, type OfferUnits, type Spendable, checkOffer, expectedAt, spendableOf, suggestedLimit, steppedRate,
} from "../../state/offer.ts";
import { describeFill } from "../../state/offer-outcome.ts";
import { describeError } from "../../state/outcome.ts";
import { offerKey } from "../../state/own-offers.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { focusFault, onArrows, showFaults, showSum } from "../form.ts";
import { fillAssets } from "./asset-select.ts";
import { OfferForm } from "./offer-form.ts";
import { typedLimit } from "./typed-limit.ts";

const said = t.offer;

export interface OfferControls {
  focus(field: "amount" | "limit" | "sell" | "buy"): void;
}

export function offerView(venue: Venue, openKey: () => void): OfferControls {
  const { desk } = venue;
  const form = new OfferForm({
    chooseSell: (asset) => desk.market.value?.choose({ sell: asset }),
    chooseBuy: (asset) => desk.market.value?.choose({ buy: asset }),
    takeShare: (percent) => {
      const sell = desk.market.value?.pair.value.sell ?? "";
      const free = spendable(sell)?.free ?? 0n;
      amount.input.value = typed(trimZeros(formatUnits(free > 0n ? (free * percent) / 100n : 0n, desk.decimals(sell))));
      draw();
    },
  });
  const { amount, limit } = form.fields;
  const hint = h("div.hint", { id: "offer-hint" });
  byId("offer-body").append(hint, form.element);
  let attempted = false;
  let sending = false;
  /** The limit follows the price until somebody types one. */
  let isSuggested = true;
  /** The offer that the answer is about, until its end is known. */
  let answered: { batch: string; key: string } | null = null;

  const unitsOf = ({ sell, buy }: Pair): OfferUnits => ({ sellDecimals: desk.decimals(sell), buyDecimals: desk.decimals(buy) });
  const spendable = (asset: string): Spendable | null =>
    spendableOf(asset, venue.account.balances.value.get(asset)?.available, desk.offers.collectedOf(asset), desk.decimals(asset));
  const check = (market: BatchMarket): CheckedOffer => {
    const pair = market.pair.value;
    return checkOffer(form.typed(), unitsOf(pair), spendable(pair.sell));
  };

  const draw = oncePerFrame(() => {
    const market = desk.market.value;
    if (!market) return;
    const { assets, phase } = market.info.value;
    const pair = market.pair.value;
    fillAssets(form.sell, assets, pair.sell);
    fillAssets(form.buy, assets, pair.buy);
    setText(limit.unit, pair.buy);
    suggest(market);
    limit.row.hidden = form.price === "any";
    const checked = check(market);
    showFaults(form.fields, checked.faults, attempted);
    setText(form.limitUnit, form.price === "any" ? said.anyUnit(pair.buy) : said.limitUnit(pair.buy, pair.sell));
    const shownLimit = Number(ungroup(limit.input.value));
    const marked = form.price === "limit" && !isSuggested && checked.limitBits !== null && shownLimit > 0 ? shownLimit : null;
    if (typedLimit.value !== marked) typedLimit.value = marked;
    drawSum(market, checked);
    const { signer: { value: signer } } = desk;
    hint.hidden = signer.state === "ready";
    drawHint(hint, signer, openKey, () => void desk.onSignedIn());
    form.submit.setAttribute("aria-busy", String(sending));
    form.submit.disabled = signer.state !== "ready" || venue.connection.value.state !== "live" || phase === "closed";
    setText(form.submit, sending ? said.signing : phase === "closed" ? said.closed : submitWords(pair, checked, unitsOf(pair)));
  });

  const suggest = (market: BatchMarket): void => {
    if (!isSuggested || document.activeElement === limit.input) return;
    const { sell, buy } = market.pair.value;
    const [worth, cost] = [market.price(sell), market.price(buy)];
    limit.input.value = worth === null || cost === null ? "" : typed(suggestedLimit(worth, cost, market.info.value.commission_exponent));
  };

  const drawSum = (market: BatchMarket, { amount: sold, least }: CheckedOffer): void => {
    const pair = market.pair.value;
    const units = unitsOf(pair);
    const has = spendable(pair.sell);
    const amountOf = (much: bigint): string => `${group(trimZeros(formatUnits(much, units.sellDecimals), 2))} ${pair.sell}`;
    const [worth, cost] = [market.price(pair.sell), market.price(pair.buy)];
    const expected = sold === null || worth === null || cost === null ? null
      : expectedAt(sold, worth, cost, market.info.value.commission_exponent, units);
    const lines: [string, string][] = [
      [said.brings, least === null || form.price === "any" ? "–" : `${showUnits(least, units.buyDecimals)} ${pair.buy}`],
      [said.atLast, expected === null ? "–" : `${showUnits(expected, units.buyDecimals)} ${pair.buy}`],
      [said.have, has === null ? "–" : amountOf(has.free)],
      ...(has === null || has.collected === 0n ? [] : [[said.collected, amountOf(has.collected)] as [string, string]]),
    ];
    setText(form.prospect, prospect(expected, least, pair));
    showSum(form.sum, lines);
  };

  const send = async (market: BatchMarket): Promise<void> => {
    const { amount: sold, limitBits, faults } = check(market);
    attempted = sold === null || limitBits === null || Object.keys(faults).length > 0;
    if (sold === null || limitBits === null || attempted) {
      draw();
      const first = focusFault(form.fields, faults);
      answered = null;
      return form.answer.say(
        "bad",
        said.notSent,
        first ? `${first === "amount" ? said.sell : said.limit}: ${faults[first]}` : said.fillBoth,
      );
    }
    sending = true;
    draw();
    const pair = market.pair.value;
    try {
      const stated = form.price === "any" ? "0" : ungroup(limit.input.value);
      const sent = await desk.offer(pair, sold, limitBits, stated);
      answered = { batch: sent.batch, key: offerKey(sent) };
      form.answer.say("good", said.collectedFor(group(sent.block)), said.collectedText(group(sent.sequence)));
      followUp();
      amount.input.value = "";
      attempted = false;
    } catch (error) {
      const { title, text } = describeError(error as Error);
      answered = null;
      form.answer.say("bad", title, text);
    } finally {
      sending = false;
      draw();
    }
  };

  form.element.addEventListener("submit", (event) => {
    event.preventDefault();
    const market = desk.market.value;
    if (market && !sending && !form.submit.disabled) void send(market);
  });
  form.element.addEventListener("input", (event) => {
    if (event.target === limit.input) isSuggested = limit.input.value.trim() === "";
    draw();
  });
  form.element.addEventListener("change", () => draw());
  limit.input.addEventListener("blur", () => draw());
  onArrows(limit.input, (by) => {
    limit.input.value = steppedRate(limit.input.value, by);
    isSuggested = false;
    draw();
  });

  /** What became of the offer that the answer is about, as far as it is known: the news may be here before the answer to the request. */
  const followUp = (): void => {
    if (answered === null) return;
    const { batch, key } = answered;
    const fill = desk.offers.fills.value.find((each) => offerKey(each) === key);
    if (fill) {
      form.answer.say("good", said.traded, `${describeFill(fill)}.`);
      // What comes of the rest, if there is any, is in the list.
      answered = null;
      return;
    }
    const offer = desk.offers.list(batch).find((each) => each.key === key);
    if (offer === undefined) {
      // Cancelled on request, or left out, which a notice says. If it traded, the fill comes next.
      form.answer.clear();
    } else if (offer.state === "standing") {
      form.answer.say("good", said.stands, said.standsText(`${group(trimZeros(offer.amount))} ${offer.sell}`, group(offer.block)));
    }
  };
  desk.filled.watch(followUp);
  desk.offers.changed.watch(() => {
    followUp();
    draw();
  });
  desk.signer.watch(draw);
  venue.account.balances.watch(draw);
  venue.connection.watch(draw);
  desk.market.watch((market) => {
    if (!market) return;
    market.pair.watch(() => {
      isSuggested = true;
      for (const { input } of [amount, limit]) input.value = "";
      attempted = false;
      draw();
    });
    market.blocks.watch(draw);
    market.info.watch(draw);
    draw();
  });
  draw();

  return {
    focus(field) {
      if (field === "sell" || field === "buy") return form[field].focus();
      if (field === "limit" && form.price === "any") form.price = "limit";
      draw();
      limit.row.hidden = form.price === "any";
      const { input } = form.fields[field];
      input.focus();
      input.select();
    },
  };
}

function prospect(expected: bigint | null, least: bigint | null, { sell, buy }: Pair): string {
  if (expected === null || least === null) return "";
  if (expected >= least) return said.wouldTrade;
  if (expected === 0n) return said.wouldWait;
  return said.waitsUntil(sell, showChange(Number(((least - expected) * 1_000_000n) / expected)).replace(/^[+±]/, ""), buy);
}

function submitWords({ sell, buy }: Pair, { amount }: CheckedOffer, { sellDecimals }: OfferUnits): string {
  const much = amount === null ? "" : `${group(trimZeros(formatUnits(amount, sellDecimals)))} `;
  return said.submit(`${much}${sell}`, buy);
}

/** Says what stands in the way of signing, with what to do about it. */
export function drawHint(hint: HTMLElement, signer: Signer, openKey: () => void, again: () => void): void {
  const kind = `${signer.state} ${"why" in signer ? signer.why : ""}`;
  if (hint.dataset["kind"] === kind) return;
  hint.dataset["kind"] = kind;
  const useKey = (words: string): HTMLElement => h("button", { type: "button", onclick: openKey }, words);
  hint.replaceChildren(...hintOf(signer, useKey, again));
}

function hintOf(signer: Signer, useKey: (words: string) => HTMLElement, again: () => void): Node[] {
  const words = (...children: (Node | string)[]): Node => h("p.empty", {}, ...children);
  switch (signer.state) {
    case "no_key":
      return [words(said.needsKey, useKey(said.useKey))];
    case "hmac":
      return [words(h("b", {}, said.hmacName),
        said.hmac,
        h("code", {}, "walras admin key --algorithm ed25519"), said.hmacEnd, useKey(said.useOtherKey))];
    case "signing_in":
      return [words(said.asking)];
    case "unable":
      return [words(h("b", {}, said.unableName), signer.why, useKey(said.useOtherKey))];
    case "failed":
      return [words(h("b", {}, said.failedName), signer.why, h("button", { type: "button", onclick: again }, said.again))];
    case "no_account_key":
      return [words(h("b", {}, said.noAccountKeyName), said.noAccountKey(String(signer.accountId)),
        h("code.key", {}, signer.publicKey), h("button", { type: "button", onclick: again }, said.again))];
    case "other_account_key":
      return [words(h("b", {}, said.otherKeyName), said.otherKey, useKey(said.useOtherKey))];
    case "ready":
      return [];
  }
}
