import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fromHex, toBase64Url, toHex } from "../src/bytes.ts";
import { KeyError } from "../src/errors.ts";
import { type Key, parseKey, publicKeyHex } from "../src/signing.ts";
import { type Operation, type Place, encodeTransaction, placeInChain, signTransaction, signedMessage } from "../src/transactions.ts";

interface Vector {
  seed: string;
  public_key: string;
  domain: string;
  transactions: {
    name: string; account_id: number; sequence: string; until: string | null; chain: Place | null; joined: boolean;
    operation: Operation["operation"]; fields: Record<string, unknown>;
    transaction: string; message: string; signed: string;
  }[];
}

const vector = JSON.parse(readFileSync(new URL("./transaction-vector.json", import.meta.url), "utf8")) as Vector;
const key: Key = { id: "ed_vector", secret: toBase64Url(fromHex(vector.seed)) };

/** Quantities and 64-bit numbers are text in the vector. */
function withBigints(fields: Record<string, unknown>): Record<string, unknown> {
  const isBig = new Set(["amount", "amounts", "limit_bits", "tie", "sequence", "shares"]);
  const read = (name: string, value: unknown): unknown => {
    if (Array.isArray(value)) return value.map((each) => read(name, each));
    if (typeof value === "object" && value !== null) return withBigints(value as Record<string, unknown>);
    return isBig.has(name) ? BigInt(value as string) : value;
  };
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, read(name, value)]));
}

test("all operations are held against Rust", () => {
  const all: Record<Operation["operation"], true> = {
    create_account: true, create_offer: true, cancel_offer: true, payment: true, issue: true, burn: true, create_pool: true,
    deposit_to_pool: true, withdraw_from_pool: true, set_key: true,
  };
  assert.deepEqual(new Set(vector.transactions.map(({ operation }) => operation)), new Set(Object.keys(all)));
});

test("what a field cannot hold is an error, not other bytes", () => {
  const payment = { operation: "payment", to: 1, asset: 0, amount: 5n } as const;
  for (const wrong of [{ to: 1 << 31 }, { to: 2 ** 32 }, { asset: 0.5 }, { asset: Number.NaN }, { amount: -1n }, { amount: 1n << 64n }]) {
    assert.throws(() => encodeTransaction(1, 1n, { ...payment, ...wrong }), RangeError, String(Object.values(wrong)));
  }
  assert.throws(() => encodeTransaction(1, 1n, { operation: "set_key", key: "11".repeat(31) }), /32 bytes in hex/);
});

test("a place in a chain is said by itself", () => {
  assert.deepEqual([placeInChain(0, 1), ...[0, 1, 2].map((place) => placeInChain(place, 3))], [null, "first", "middle", "last"]);
  const payment = { operation: "payment", to: 1, asset: 0, amount: 5n } as const;
  assert.throws(() => encodeTransaction(1, 1n, payment, { chain: "first", joined: true }), RangeError);
});

for (const { name, account_id, sequence, until, chain, joined, operation, fields, transaction, message, signed } of vector.transactions) {
  const asked = { operation, ...withBigints(fields) } as Operation;

  test(`the client encodes and signs as Rust reads: ${name}`, async () => {
    const terms = { ...(until === null ? {} : { until: BigInt(until) }), chain, joined };
    const bytes = encodeTransaction(account_id, BigInt(sequence), asked, terms);
    assert.equal(toHex(bytes), transaction);
    assert.equal(toHex(signedMessage(vector.domain, bytes)), message);
    assert.equal(await signTransaction(key, vector.domain, bytes), signed);
  });
}

test("the public half of a key is what Rust derives", async () => {
  assert.equal(await publicKeyHex(key), vector.public_key);
});

test("a key of another kind signs no transaction", async () => {
  const bytes = encodeTransaction(1, 1n, { operation: "payment", to: 1, asset: 0, amount: 5n });
  await assert.rejects(
    signTransaction({ id: "hm_a", secret: "c2VjcmV0" }, vector.domain, bytes),
    (error: KeyError) => error.problem === "not_ed25519",
  );
  await assert.rejects(signTransaction(key, "00", bytes), /32 bytes/);
  await assert.rejects(signTransaction(key, "zz".repeat(32), bytes), /not hexadecimal/);
});

test("where the runtime has no Ed25519 the error says which do", async () => {
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
