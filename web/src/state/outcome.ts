// What the venue answered, in words: an order's outcome, a refusal, an order that ended without being asked to.

import { type OrderReply, type OrderUpdate, OutcomeUnknown, Refusal, type Side } from "../api/types.ts";
import { formatUnits, parseUnits, trimZeros } from "../base/decimal.ts";
import { capital, group, sentence, words } from "../base/format.ts";
import type { Units } from "./market.ts";

export interface Said {
  tone: "good" | "bad" | "plain";
  title: string;
  text: string;
}

/** Why something is gone that nobody asked to cancel, by the API's name of the reason. */
const REASONS: Record<string, string> = {
  unfilled: "Nothing more stood at a price that fits.",
  expired: "Its good-till time has come.",
  day_ended: "The trading day has ended.",
  self_trade: "It would have traded with an order of your own.",
  account_suspended: "The account is suspended: ask the operator.",
  trigger_refused: "It was triggered, but could not be taken then: the available balance or a limit did not allow it.",
  price_band: "It would have traded beyond the price band, so the instrument was halted first.",
  linked: "The order with which it was linked traded, triggered or is gone.",
};
const ASKED_FOR = new Set(["requested", "mass_cancelled", "unfilled"]);

export function describeReply(units: Units, side: Side, size: string, reply: OrderReply): Said {
  const { sizeDecimals, instrument: { base } } = units;
  const fills = reply.fills ?? [];
  const filled = fills.reduce((sum, fill) => sum + parseUnits(fill.size, sizeDecimals), 0n);
  const what = `${side === "buy" ? "Bought" : "Sold"} ${group(trimZeros(formatUnits(filled, sizeDecimals)))} of ${group(trimZeros(size))} ${base}`;
  const [first, last] = [fills[0]?.price, fills.at(-1)?.price];
  const at = first === undefined || last === undefined ? "" : first === last ? ` at ${group(first)}` : ` at ${group(first)} to ${group(last)}`;
  const entry = `Log entry ${group(reply.log_index)}.`;
  switch (reply.status) {
    case "filled":
      return { tone: "good", title: "Filled", text: `${what}${at}. ${entry}` };
    case "partially_filled":
      return { tone: "good", title: "Partly filled, the rest stands", text: `${what}${at}. ${entry}` };
    case "resting":
      return { tone: "good", title: "Standing in the book", text: `${group(trimZeros(reply.open))} ${base} wait for the other side. ${entry}` };
    case "waiting_trigger":
      return { tone: "good", title: "Waiting for its trigger", text: entry };
    case "cancelled":
      return filled > 0n
        ? { tone: "good", title: "Partly filled, the rest cancelled", text: `${what}${at}. ${reasonText(reply.reason)} ${entry}` }
        : { tone: "plain", title: "Cancelled without a trade", text: `${reasonText(reply.reason)} ${entry}` };
    default:
      return { tone: "plain", title: capital(words(reply.status)), text: entry };
  }
}

/** A refusal by its number with its advice; anything else in its own words. */
export function describeError(error: Error): { title: string; text: string } {
  if (error instanceof Refusal) {
    return { title: `Refused, no. ${error.code}: ${sentence(error.reason)}`, text: [error.message, error.detail].filter(Boolean).join(" ") };
  }
  return { title: error instanceof OutcomeUnknown ? "No answer" : "Not sent", text: error.message };
}

/** What to say of an order that ended though its owner did not ask; `null` when there is nothing to say. */
export function describeEnd(update: OrderUpdate): Said | null {
  if (update.status !== "cancelled" || update.reason === undefined || ASKED_FOR.has(update.reason)) return null;
  const side = update.side === undefined ? "" : ` ${update.side}`;
  return { tone: "bad", title: `Your${side} order in ${update.instrument} was cancelled`, text: reasonText(update.reason) };
}

function reasonText(reason: string | undefined): string {
  return REASONS[reason ?? "unfilled"] ?? `${capital(words(reason ?? ""))}.`;
}
