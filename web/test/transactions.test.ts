import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { encodeTransaction, type Place, type Terms, toHex } from "walras";
import { postWithTerms } from "../src/state/transaction-terms.ts";
import { TransactionOutcomeUnknown } from "../src/texts/error-text.ts";
import { readTransaction, signatureHolds } from "./fake/transaction.ts";

interface Vector {
  public_key: string;
  domain: string;
  transactions: {
    name: string;
    account_id: number;
    sequence: string;
    until: string | null;
    chain: Place | null;
    joined: boolean;
    transaction: string;
    signed: string;
  }[];
}

const vector = JSON.parse(readFileSync(new URL("../../sdk/typescript/test/transaction-vector.json", import.meta.url), "utf8")) as Vector;

for (const { name, account_id, sequence, until, chain, joined, transaction, signed } of vector.transactions) {
  test(`the fake venue reads and verifies: ${name}`, () => {
    const read = readTransaction(signed);
    assert.deepEqual([read.account, read.sequence, read.until], [account_id, BigInt(sequence), until === null ? null : BigInt(until)]);
    const terms = { chain, joined, ...(read.until !== null && { until: read.until }) };
    assert.equal(toHex(encodeTransaction(read.account, read.sequence, read.asked, terms)), transaction);
    assert.ok(signatureHolds(vector.public_key, vector.domain, signed));
    assert.ok(!signatureHolds(vector.public_key, "00".repeat(32), signed), "a signature for one venue is none for another");
    const forged = signed.replace(/^../, "aa");
    assert.ok(!signatureHolds(vector.public_key, vector.domain, forged), "nor for another account's transaction");
  });
}

const signs = (terms: Terms): Promise<string> => Promise.resolve(terms.until === undefined ? "plain" : "until");

test("a venue of an earlier version gets the transaction without terms", async (t) => {
  const { fetch } = globalThis;
  t.after(() => {
    globalThis.fetch = fetch;
  });
  const sent: string[] = [];
  const answers = (code: number) => [
    { results: [{ error: { code, name: "", message: "" } }] },
    { results: [{ account_id: 1, sequence: "1", block: "2" }] },
  ];
  for (const [code, expected] of [[39, ["until", "plain"]], [27, ["until"]]] as const) {
    const bodies = answers(code);
    sent.length = 0;
    globalThis.fetch = (_, init) => {
      sent.push(...(JSON.parse(String(init?.body)) as { transactions: string[] }).transactions);
      return Promise.resolve(new Response(JSON.stringify(bodies.shift()), { status: 200 }));
    };
    const block = await postWithTerms("main", { until: 9n }, signs).then((answer) => answer.block, () => null);
    assert.deepEqual([sent, block], [expected, code === 39 ? "2" : null]);
  }
});

test("a transaction without an answer may have been taken", async (t) => {
  const { fetch } = globalThis;
  t.after(() => {
    globalThis.fetch = fetch;
  });
  globalThis.fetch = () => Promise.reject(new TypeError("Failed to fetch"));
  await assert.rejects(postWithTerms("main", {}, signs), TransactionOutcomeUnknown);
  globalThis.fetch = () => Promise.resolve(Response.json({ results: [] }));
  await assert.rejects(postWithTerms("main", {}, signs), TransactionOutcomeUnknown);
});
