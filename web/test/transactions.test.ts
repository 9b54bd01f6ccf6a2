import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { postWithTerms } from "../src/api/rest.ts";
import { type Key, KeyError, parseKey, publicKeyHex, toBase64Url, toHex } from "../src/api/signing.ts";
import {
  type CancelOffer, type CreateOffer, type Terms, encodeTransaction, fromHex, signTransaction, signedMessage,
} from "../src/api/transactions.ts";
import { readTransaction, signatureHolds } from "./fake/transaction.ts";

interface Vector {
  seed: string;
  public_key: string;
  domain: string;
  transactions: {
    name: string; account_id: number; sequence: string; until: string | null; joined: boolean;
    operation: "create_offer" | "cancel_offer"; fields: Record<string, string | number>;
    transaction: string; message: string; signed: string;
  }[];
}

const vector = JSON.parse(readFileSync(new URL("./transaction-vector.json", import.meta.url), "utf8")) as Vector;
const key: Key = { id: "ed_vector", secret: toBase64Url(fromHex(vector.seed)) };

for (const { name, account_id, sequence, until, joined, operation, fields, transaction, message, signed } of vector.transactions) {
  const big = (field: string): bigint => BigInt(fields[field] ?? 0);
  const common = { market_id: Number(fields["market_id"]), sell: Number(fields["sell"]), buy: Number(fields["buy"]), limit_bits: big("limit_bits") };
  const asked: CreateOffer | CancelOffer = operation === "create_offer" ? { operation, ...common, amount: big("amount") }
    : { operation, ...common, tie: big("tie"), sequence: big("sequence") };

  test(`the page encodes and signs as Rust reads: ${name}`, async () => {
    const bytes = encodeTransaction(account_id, BigInt(sequence), asked, { ...(until === null ? {} : { until: BigInt(until) }), joined });
    assert.equal(toHex(bytes.buffer), transaction);
    assert.equal(toHex(signedMessage(vector.domain, bytes).buffer), message);
    assert.equal(await signTransaction(key, vector.domain, bytes), signed);
  });
  test(`the fake venue reads and verifies: ${name}`, () => {
    const read = readTransaction(signed);
    const expected = [account_id, BigInt(sequence), until === null ? null : BigInt(until), operation, big("limit_bits")];
    assert.deepEqual([read.account, read.sequence, read.until, read.operation, read.limit], expected);
    assert.ok(signatureHolds(vector.public_key, vector.domain, signed));
    assert.ok(!signatureHolds(vector.public_key, "00".repeat(32), signed), "a signature for one venue is none for another");
    const forged = signed.replace(/^../, "aa");
    assert.ok(!signatureHolds(vector.public_key, vector.domain, forged), "nor for another account's transaction");
  });
}

test("a venue of an earlier version gets the transaction without terms", async () => {
  const { fetch } = globalThis;
  const sent: string[] = [];
  const answers = (code: number) => [
    { results: [{ error: { code, name: "", message: "" } }] },
    { results: [{ sequence: "1", block: "2" }] },
  ];
  const sign = (terms: Terms): Promise<string> => Promise.resolve(terms.until === undefined ? "plain" : "until");
  try {
    for (const [code, expected] of [[39, ["until", "plain"]], [27, ["until"]]] as const) {
      const bodies = answers(code);
      sent.length = 0;
      globalThis.fetch = (_, init) => {
        sent.push(...(JSON.parse(String(init?.body)) as { transactions: string[] }).transactions);
        return Promise.resolve(new Response(JSON.stringify(bodies.shift()), { status: 200 }));
      };
      const block = await postWithTerms("main", { until: 9n }, sign).then((answer) => answer.block, () => null);
      assert.deepEqual([sent, block], [expected, code === 39 ? "2" : null]);
    }
  } finally {
    globalThis.fetch = fetch;
  }
});

test("the public half of a key is what Rust derives", async () => {
  assert.equal(await publicKeyHex(key), vector.public_key);
});

test("where the browser has no Ed25519 the error says which do", async () => {
  const { importKey } = crypto.subtle;
  crypto.subtle.importKey = () => Promise.reject(new DOMException("no", "NotSupportedError"));
  try {
    await assert.rejects(() => publicKeyHex(key), (error) => error instanceof KeyError && /Chrome 137/.test(error.message));
  } finally {
    crypto.subtle.importKey = importKey;
  }
});

test("an Ed25519 key is read whole or refused", () => {
  assert.deepEqual(parseKey(`ed_vector.${key.secret}`), key);
  assert.throws(() => parseKey("ed_vector.c2VjcmV0"), /43 characters/);
});
