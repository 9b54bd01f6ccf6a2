import assert from "node:assert/strict";
import { test } from "node:test";
import { BadAnswer, ClockSetBack, DecimalError, KeyError, NotConnected, OutcomeUnknown, Refused } from "walras";
import { TransactionOutcomeUnknown, errorText } from "../src/texts/error-text.ts";

test("each kind of error says in the page's words what to do", () => {
  for (const [error, expected] of [
    [new KeyError("shape"), /^A key looks like/], [new KeyError("cut"), /cut short/], [new KeyError("length"), /43 characters/],
    [new KeyError("no_ed25519"), /Chrome 137/], [new KeyError("not_ed25519"), /begins with ed_/],
    [new DecimalError("not_a_number"), /plain number/], [new DecimalError("not_whole"), /whole number/],
    [new DecimalError("too_many_digits", 3), /at most 3 digits/], [new DecimalError("limit_not_above_zero"), /Any price/],
    [new DecimalError("no_such_price"), /nearer/], [new DecimalError("no_such_amount"), /smallest units/],
    [new NotConnected(), /nothing was sent/], [new OutcomeUnknown(), /open orders/], [new TransactionOutcomeUnknown(), /your offers/],
    [new BadAnswer("/v1/x", 502), /\/v1\/x with status 502/], [new BadAnswer("/v1/x", 200), /has no result/],
    [new ClockSetBack(3_100), /sign in again in 4 s/], [new Error("something else"), /^something else$/],
  ] as [Error, RegExp][]) assert.match(errorText(error), expected);
  assert.equal(errorText(new Refused({ code: 9_999, name: "New", message: "Do this.", detail: "price: 5" })), "Do this. price: 5");
});
