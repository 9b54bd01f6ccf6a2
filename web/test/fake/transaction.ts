// The venue's side of signed transactions, by node's own crypto and independent of the page's code.

import { createPublicKey, verify } from "node:crypto";
import { FakeReject } from "./matching.ts";

export interface FakeTransaction {
  account: number;
  sequence: bigint;
  operation: "create_offer" | "cancel_offer";
  market: number;
  sell: number;
  buy: number;
  amount: bigint;
  limit: bigint;
  stated: bigint;
  tie: bigint;
  /** The number of the offer that a cancel names. */
  cancelled: bigint;
  /** The last block that may have it. */
  until: bigint | null;
}

const SIGNATURE_BYTES = 64;
const SPKI_HEAD = "302a300506032b6570032100";

export function readTransaction(hex: string): FakeTransaction {
  const signed = Buffer.from(hex, "hex");
  const hasEnd = ((signed[12] ?? 0) & 0x80) !== 0;
  const until = hasEnd && signed.length >= 18 ? BigInt(signed.readUIntLE(13, 5)) : null;
  // Without the end the rest lies where it lies in a transaction that has none.
  const bytes = hasEnd ? Buffer.concat([signed.subarray(0, 13), signed.subarray(18)]) : signed;
  const tag = (bytes[12] ?? 0) & 0x3f;
  const expected = { 2: 39, 3: 47 }[tag];
  if (!/^([0-9a-f]{2})+$/.test(hex) || expected === undefined || bytes.length !== expected + SIGNATURE_BYTES) {
    throw new FakeReject(100, "Malformed", "That is no signed transaction: see docs/batch-transactions.md.");
  }
  const isOffer = tag === 2;
  const limit = bytes.readBigUInt64LE(isOffer ? 31 : 23);
  return {
    account: bytes.readUInt32LE(0), sequence: bytes.readBigUInt64LE(4), operation: isOffer ? "create_offer" : "cancel_offer", market: bytes.readUInt16LE(13),
    sell: bytes.readUInt32LE(15), buy: bytes.readUInt32LE(19), amount: isOffer ? bytes.readBigUInt64LE(23) : 0n, limit, stated: limit,
    tie: isOffer ? 0n : bytes.readBigUInt64LE(31), cancelled: isOffer ? 0n : bytes.readBigUInt64LE(39), until,
  };
}

export function signatureHolds(publicKeyHex: string, domainHex: string, signedHex: string): boolean {
  const bytes = Buffer.from(signedHex, "hex");
  const transaction = bytes.subarray(0, -SIGNATURE_BYTES);
  const message = Buffer.concat([Buffer.from("walras batch transaction"), Buffer.from([1, 0]), Buffer.from(domainHex, "hex"), transaction]);
  const key = createPublicKey({ key: Buffer.from(SPKI_HEAD + publicKeyHex, "hex"), format: "der", type: "spki" });
  return verify(null, message, key, bytes.subarray(-SIGNATURE_BYTES));
}
