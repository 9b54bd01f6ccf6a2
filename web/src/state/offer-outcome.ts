// What became of an offer, in words.

import type { OfferFill, OfferUpdate } from "../api/batch-types.ts";
import { quotient, trimZeros } from "../base/decimal.ts";
import { capital, group, words } from "../base/format.ts";
import type { Said } from "./outcome.ts";

/** Why a batch left a transaction out, by the API's name of the reason. */
const DROPS: Record<string, string> = {
  unknown_account: "There is no such account: create it in an earlier block.",
  suspended: "The account is suspended: ask the operator.",
  sequence_twice: "Two transactions of the account have one number: does another page sign for it? Send it again.",
  sequence_out_of_window: "Its number is not among the 64 that follow the account's last one: reload the page and send it again.",
  unfillable: "The limit times the amount is more than an amount can be: lower the limit.",
  unknown_offer: "No offer of yours stands there any more: it may have traded.",
  cancelled_twice: "Two transactions cancel one offer: one is enough.",
  overdraft: "Together your transactions spend more than you had when the block began: spend less.",
};

export function describeDrop(update: OfferUpdate): Said {
  const reason = words(update.reason ?? "").replaceAll(" ", "_").toLowerCase();
  return {
    tone: "bad", title: `The batch left your transaction ${update.sequence} out`,
    text: DROPS[reason] ?? (reason === "" ? "Nothing of it was done." : `${capital(words(reason))}.`),
  };
}

export function describeFill(fill: OfferFill): string {
  const rate = quotient(fill.bought, fill.sold, 6);
  return `Sold ${group(trimZeros(fill.sold))} ${fill.sell} for ${group(trimZeros(fill.bought))} ${fill.buy} in block ${group(fill.block)}, at ${group(rate)}`;
}
