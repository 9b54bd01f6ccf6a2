// What became of an offer, in words.

import type { OfferFill, OfferUpdate } from "../api/batch-types.ts";
import { quotient, trimZeros } from "../base/decimal.ts";
import { capital, group, sentence } from "../base/format.ts";
import type { Said } from "./outcome.ts";

/** By the venue's number and advice, as a refusal is. */
export function describeDrop({ sequence, reason }: OfferUpdate): Said {
  const why = reason === undefined ? "" : ` (${reason.code}: ${sentence(reason.name)})`;
  const advice = reason?.message ?? "nothing of it was done.";
  return { tone: "bad", title: `Transaction ${sequence} left out${why}`, text: capital(/[.!?]$/.test(advice) ? advice : `${advice}.`) };
}

export function describeFill(fill: OfferFill): string {
  const rate = quotient(fill.bought, fill.sold, 6);
  return `Sold ${group(trimZeros(fill.sold))} ${fill.sell} for ${group(trimZeros(fill.bought))} ${fill.buy} in block ${group(fill.block)}, at ${group(rate)}`;
}
