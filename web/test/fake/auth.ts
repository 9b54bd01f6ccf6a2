// The venue's side of signing, by node's own crypto, independent of the page's code.

import { createHash, createHmac, createPrivateKey, createPublicKey, verify as verifySignature } from "node:crypto";
import { FakeReject } from "./matching.ts";

export const DEMO_KEY_ID = "hm_0123456789abcdef01234567";
export const DEMO_SECRET = Buffer.from("the fake venue's demo secret 32b").toString("base64url");
export const DEMO_ACCOUNT = 1;
/** The same account's Ed25519 key: for requests and for transactions. */
export const ED_KEY_ID = "ed_0123456789abcdef01234567";
export const ED_SECRET = Buffer.alloc(32, 3).toString("base64url");
const ED_PUBLIC = createPublicKey(createPrivateKey({
  key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), Buffer.from(ED_SECRET, "base64url")]), format: "der",
  type: "pkcs8",
}));
export const ED_PUBLIC_HEX = ED_PUBLIC.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");

function signedText(method: string, path: string, timestamp: string, nonce: string, body: string): string {
  const bodyHash = createHash("sha256").update(body).digest("hex");
  return `walras-v1\n${method}\n${path}\n${timestamp}\n${nonce}\n${bodyHash}`;
}

/** The account of a well-signed request; a reject otherwise. */
export function verify(
  signed: { key?: string; timestamp?: string; nonce?: string; signature?: string }, method: string, path: string, body: string,
  takesFromNs: bigint,
): number {
  if (signed.key !== DEMO_KEY_ID && signed.key !== ED_KEY_ID) {
    throw new FakeReject(103, "UnknownKey", "No such API key: create one, or check the key id.");
  }
  const stampNs = BigInt(signed.timestamp ?? "0");
  const ageNs = BigInt(Date.now()) * 1_000_000n - stampNs;
  if (ageNs > 5_000_000_000n || ageNs < -1_000_000_000n || stampNs < takesFromNs) {
    throw new FakeReject(
      105, "TimestampStale", "The request's timestamp is too far from the gateway's clock: synchronise the clock and send again.",
    );
  }
  const text = signedText(method, path, signed.timestamp ?? "", signed.nonce ?? "", body);
  const holds = signed.key === ED_KEY_ID
    ? verifySignature(null, Buffer.from(text), ED_PUBLIC, Buffer.from(signed.signature ?? "", "base64url"))
    : signed.signature === createHmac("sha256", Buffer.from(DEMO_SECRET, "base64url")).update(text).digest("base64url");
  if (!holds) {
    throw new FakeReject(104, "SignatureInvalid", "The signature does not match the request: check the secret and the exact bytes signed.");
  }
  return DEMO_ACCOUNT;
}
