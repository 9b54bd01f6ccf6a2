// What became of an offer, in words.

import type { OfferFill, OfferUpdate } from "walras";
import { quotient, trimZeros } from "../base/decimal.ts";
import { capital, group, sentence } from "../base/format.ts";
import { t } from "../texts/index.ts";
import type { Said } from "./outcome.ts";

/** By the venue's number and advice, as a refusal is. */
export function describeDrop({ sequence, reason }: OfferUpdate): Said {
  const why = reason === undefined ? "" : t.offers.droppedFor(reason.code, t.drops[reason.code]?.name ?? sentence(reason.name));
  const advice = (reason && t.drops[reason.code]?.advice) ?? reason?.message ?? t.offers.nothingDone;
  return {
    tone: "bad",
    title: t.offers.dropped(sequence, why),
    text: capital(/[.!?。]$/.test(advice) ? advice : `${advice}${t.offers.stop}`),
  };
}

export function describeFill(fill: OfferFill): string {
  const rate = quotient(fill.bought, fill.sold, 6);
  return t.offers.fill(
    `${group(trimZeros(fill.sold))} ${fill.sell}`,
    `${group(trimZeros(fill.bought))} ${fill.buy}`,
    group(fill.block),
    group(rate),
  );
}
