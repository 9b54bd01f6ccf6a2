import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fromBase64Url, toBase64Url } from "../src/bytes.ts";
import { KeyError } from "../src/errors.ts";
import { freshNonce, keyLine, newKey, parseKey, publicKeyHex, sign, signedText } from "../src/signing.ts";

interface Vectors {
  key: string;
  secret_base64url: string;
  vectors: {
    name: string; method: string; path: string; body: string; timestamp: string; nonce: string;
    body_sha256_hex: string; signed_text: string; signature: string;
  }[];
}

const { key, secret_base64url: secret, vectors } = JSON.parse(
  readFileSync(new URL("./signing-vector.json", import.meta.url), "utf8"),
) as Vectors;

for (const vector of vectors) {
  const { name, method, path, body, timestamp, nonce } = vector;
  test(`the client signs as the vector says: ${name}`, async () => {
    assert.equal(signedText(method, path, timestamp, nonce, vector.body_sha256_hex), vector.signed_text);
    const signed = await sign({ id: key, secret }, method, path, body, timestamp, nonce);
    assert.deepEqual(signed, { key, timestamp, nonce, signature: vector.signature });
  });
  test(`the vector is what node's crypto computes: ${name}`, () => {
    assert.equal(createHash("sha256").update(body).digest("hex"), vector.body_sha256_hex);
    const signature = createHmac("sha256", Buffer.from(secret, "base64url")).update(vector.signed_text).digest("base64url");
    assert.equal(signature, vector.signature);
  });
}

test("base64url round-trips every byte", () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
  for (let length = 0; length <= 256; length += 1) {
    const part = bytes.slice(0, length);
    assert.equal(toBase64Url(part), Buffer.from(part).toString("base64url"));
    assert.deepEqual(fromBase64Url(toBase64Url(part)), part);
  }
});

test("nonces are fresh and within the 64 characters that the venue takes", () => {
  const nonces = new Set(Array.from({ length: 1000 }, freshNonce));
  assert.equal(nonces.size, 1000);
  for (const nonce of nonces) assert.match(nonce, /^[A-Za-z0-9_-]{1,64}$/);
});

test("a key is read from itself or from the demo's address", () => {
  const expected = { id: "hm_demo", secret: "c2VjcmV0" };
  assert.deepEqual(parseKey(" hm_demo.c2VjcmV0 \n"), expected);
  assert.deepEqual(parseKey("http://127.0.0.1:7070/#demo=hm_demo.c2VjcmV0"), expected);
});

test("an unusable key says what is wrong and what to do", () => {
  for (const [text, problem] of [
    ["", "shape"], ["hm_demo", "shape"], ["hm_demo.", "shape"], ["xx_demo.c2VjcmV0", "shape"], ["hm_demo.c2VjcmV0=", "shape"],
    ["hm_demo.abcde", "cut"], ["ed_demo.c2VjcmV0", "length"],
  ] as const) {
    assert.throws(() => parseKey(text), (error) => error instanceof KeyError && error.problem === problem && /:/.test(error.message), text);
  }
});

test("a new key is another one each time, and is read from its line", async () => {
  const [one, other] = [newKey(), newKey()];
  assert.notEqual(keyLine(one), keyLine(other));
  assert.deepEqual(parseKey(keyLine(one)), one);
  assert.match(await publicKeyHex(one), /^[0-9a-f]{64}$/);
  await assert.rejects(publicKeyHex({ id: "hm_a", secret: "c2VjcmV0" }), KeyError);
});
