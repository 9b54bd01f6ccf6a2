// What the venue answered, in words: an order's outcome, a refusal, an order that ended without being asked to.

import { formatUnits, type OrderAnswer, type OrderUpdate, OutcomeUnknown, parseUnits, Refused, type Side } from "walras";
import { trimZeros } from "../base/decimal.ts";
import { capital, group, words } from "../base/format.ts";
import { t } from "../texts/index.ts";
import { errorText } from "../texts/error-text.ts";
import { known, reasonName } from "../texts/names.ts";
import type { Units } from "./market.ts";

export interface Said {
  tone: "good" | "bad" | "plain";
  title: string;
  text: string;
}

const ASKED_FOR = new Set(["requested", "mass_cancelled", "unfilled"]);

export function describeReply(units: Units, side: Side, size: string, reply: OrderAnswer): Said {
  const { sizeDecimals, instrument: { base } } = units;
  const fills = reply.fills ?? [];
  const filled = fills.reduce((sum, fill) => sum + parseUnits(fill.size, sizeDecimals), 0n);
  const [part, whole] = [group(trimZeros(formatUnits(filled, sizeDecimals))), `${group(trimZeros(size))} ${base}`];
  const what = side === "buy" ? t.outcome.bought(part, whole) : t.outcome.sold(part, whole);
  const [first, last] = [fills[0]?.price, fills.at(-1)?.price];
  const at =
    first === undefined || last === undefined
      ? ""
      : first === last
        ? t.outcome.at(group(first))
        : t.outcome.atFromTo(group(first), group(last));
  const entry = t.outcome.entry(group(reply.log_index));
  switch (reply.status) {
    case "filled":
      return { tone: "good", title: t.outcome.filled, text: `${what}${at}. ${entry}` };
    case "partially_filled":
      return { tone: "good", title: t.outcome.partly, text: `${what}${at}. ${entry}` };
    case "resting":
      return {
        tone: "good",
        title: t.outcome.standing,
        text: `${t.outcome.standingText(`${group(trimZeros(reply.open))} ${base}`)} ${entry}`,
      };
    case "waiting_trigger":
      return { tone: "good", title: t.outcome.waiting, text: entry };
    case "cancelled":
      return filled > 0n
        ? { tone: "good", title: t.outcome.partlyCancelled, text: `${what}${at}. ${reasonText(reply.reason)} ${entry}` }
        : { tone: "plain", title: t.outcome.cancelled, text: `${reasonText(reply.reason)} ${entry}` };
    default:
      return { tone: "plain", title: capital(words(reply.status)), text: entry };
  }
}

/** A refusal by its number with its advice; anything else in its own words. */
export function describeError(error: Error): { title: string; text: string } {
  if (error instanceof Refused) {
    return { title: t.outcome.refused(error.code, reasonName(error.code, error.reason)), text: errorText(error) };
  }
  return { title: error instanceof OutcomeUnknown ? t.outcome.noAnswer : t.outcome.notSent, text: errorText(error) };
}

/** What to say of an order that ended though its owner did not ask; `null` when there is nothing to say. */
export function describeEnd(update: OrderUpdate): Said | null {
  if (update.status !== "cancelled" || update.reason === undefined || ASKED_FOR.has(update.reason)) return null;
  const side = update.side === undefined ? "" : t.outcome.endedSides[update.side];
  return { tone: "bad", title: t.outcome.ended(side, update.instrument), text: reasonText(update.reason) };
}

function reasonText(reason: string | undefined): string {
  return known(t.outcome.reasons, reason ?? "unfilled") ?? `${capital(words(reason ?? ""))}.`;
}
