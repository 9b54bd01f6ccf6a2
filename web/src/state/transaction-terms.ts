// Hands transactions in with an end, where the rules in force at the venue know ends.

import { type BatchCollected, OutcomeUnknown, Refused, type Terms } from "walras";
import { client } from "../api/client.ts";
import { TransactionOutcomeUnknown } from "../texts/error-text.ts";

/** What a venue says whose engine has an earlier version. */
const NEEDS_LATER_VERSION = 39;

/** Hands a transaction in that `sign` makes with these terms; without them where the rules in force at the venue do not know any yet. */
export async function postWithTerms(batch: string, terms: Terms, sign: (terms: Terms) => Promise<string>): Promise<BatchCollected> {
  try {
    return await post(batch, await sign(terms));
  } catch (error) {
    if (!(error instanceof Refused) || error.code !== NEEDS_LATER_VERSION) throw error;
    return post(batch, await sign({}));
  }
}

async function post(batch: string, signed: string): Promise<BatchCollected> {
  try {
    const [result] = await client.sendTransactions(batch, [signed]);
    if (result === undefined || result instanceof Refused) throw result ?? new OutcomeUnknown();
    return result;
  } catch (error) {
    throw error instanceof OutcomeUnknown ? new TransactionOutcomeUnknown() : error;
  }
}
