// What the client's errors say, in the page's language.

import {
  BadAnswer, ClockSetBack, DecimalError, type DecimalProblem, KeyError, type KeyProblem, NotConnected, OutcomeUnknown, Refused,
} from "walras";
import { t } from "./index.ts";

/** No answer came to a transaction of a batch market. */
export class TransactionOutcomeUnknown extends OutcomeUnknown {}

const KEY_TEXTS: Record<KeyProblem, string> = {
  shape: t.errors.keyShape, cut: t.errors.keyCut, length: t.errors.keyLength, no_ed25519: t.errors.noEd25519,
  not_ed25519: t.errors.notEd25519,
};

/** What is wrong, and what to do. What the page does not know is said in the error's own words. */
export function errorText(error: unknown): string {
  if (error instanceof ClockSetBack) return t.errors.clockBack(String(Math.ceil(error.waitMs / 1_000)));
  if (error instanceof Refused) return refusalText(error);
  if (error instanceof TransactionOutcomeUnknown) return t.errors.outcomeUnknownOffer;
  if (error instanceof OutcomeUnknown) return t.errors.outcomeUnknown;
  if (error instanceof NotConnected) return t.errors.notConnected;
  if (error instanceof BadAnswer) return error.status < 300 ? t.errors.noResult(error.path) : t.errors.noReason(error.path, error.status);
  if (error instanceof KeyError) return KEY_TEXTS[error.problem];
  if (error instanceof DecimalError) return decimalText(error.problem, error.digitsMax) ?? error.message;
  return (error as Error).message;
}

function decimalText(problem: DecimalProblem, digitsMax: number): string | null {
  switch (problem) {
    case "not_a_number":
      return t.errors.plainNumber;
    case "not_whole":
      return t.errors.wholeNumber;
    case "too_many_digits":
      return t.errors.digits(digitsMax);
    case "limit_not_above_zero":
      return t.errors.limitAboveZero;
    case "no_such_price":
      return t.errors.noSuchPrice;
    case "no_such_amount":
      return null;
  }
}

/**
 * The advice that goes with a refusal's number, in the page's language where it is known; what the venue says beyond it is shown as it
 * came.
 */
function refusalText({ code, text, detail }: Refused): string {
  return [t.reasons[code]?.advice ?? text, detail].filter(Boolean).join(" ");
}
