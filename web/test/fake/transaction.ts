// The venue's side of signed transactions, by node's own crypto and independent of the page's code.

import { createPublicKey, verify } from "node:crypto";
import type { CreateOffer, Operation, PoolName, PoolRule } from "walras";
import { FakeReject } from "./matching.ts";

export interface FakeTransaction {
  account: number;
  sequence: bigint;
  /** The last block that may have it. */
  until: bigint | null;
  asked: Operation;
}

const SIGNATURE_BYTES = 64;
const SPKI_HEAD = "302a300506032b6570032100";
const HEAD_BYTES = 13;
/** Of each operation's fields, in the order of their numbers from 1 on. */
const FIELD_BYTES = [32, 26, 34, 16, 12, 12, 35, 30, 22, 32];

export function readTransaction(hex: string): FakeTransaction {
  const signed = Buffer.from(hex, "hex");
  const mark = signed[HEAD_BYTES - 1] ?? 0;
  const hasEnd = (mark & 0x80) !== 0;
  const at = HEAD_BYTES + (hasEnd ? 5 : 0);
  const fields = signed.subarray(at, -SIGNATURE_BYTES);
  if (!/^([0-9a-f]{2})+$/.test(hex) || fields.length !== FIELD_BYTES[(mark & 0x0f) - 1]) {
    throw new FakeReject(100, "Malformed", "That is no signed transaction: see docs/batch-transactions.md.");
  }
  const until = hasEnd ? BigInt(signed.readUIntLE(HEAD_BYTES, 5)) : null;
  return { account: signed.readUInt32LE(0), sequence: signed.readBigUInt64LE(4), until, asked: readFields(mark & 0x0f, fields) };
}

function readFields(tag: number, bytes: Buffer): Operation {
  const u32 = (at: number): number => bytes.readUInt32LE(at);
  const u64 = (at: number): bigint => bytes.readBigUInt64LE(at);
  const market_id = bytes.readUInt16LE(0);
  const pair = (): Pick<CreateOffer, "market_id" | "sell" | "buy"> => ({ market_id, sell: u32(2), buy: u32(6) });
  const pool = (): PoolName => ({ account: u32(2), sequence: u64(6) });
  switch (tag) {
    case 1:
    case 10:
      return { operation: tag === 1 ? "create_account" : "set_key", key: bytes.toString("hex") };
    case 2:
      return { operation: "create_offer", ...pair(), amount: u64(10), limit_bits: u64(18) };
    case 3:
      return { operation: "cancel_offer", ...pair(), limit_bits: u64(10), tie: u64(18), sequence: u64(26) };
    case 4:
      return { operation: "payment", to: u32(0), asset: u32(4), amount: u64(8) };
    case 5:
    case 6:
      return { operation: tag === 5 ? "issue" : "burn", asset: u32(0), amount: u64(4) };
    case 7:
      return {
        operation: "create_pool", market_id, first: u32(2), second: u32(6), ...readRule(bytes[10] ?? 0, u32(11)),
        fee_ppm: u32(15), amounts: [u64(19), u64(27)],
      };
    case 8:
      return { operation: "deposit_to_pool", market_id, pool: pool(), amounts: [u64(14), u64(22)] };
    default:
      return { operation: "withdraw_from_pool", market_id, pool: pool(), shares: u64(14) };
  }
}

function readRule(rule: number, parameters: number): PoolRule {
  if (rule === 0 && parameters === 0) return { rule: "constant_product" };
  if (rule === 1) return { rule: "weighted", weights: [parameters & 0xffff, parameters >>> 16] };
  if (rule === 2) return { rule: "stable_swap", amplification: parameters };
  throw new FakeReject(100, "Malformed", "That is no rule of pools.");
}

export function signatureHolds(publicKeyHex: string, domainHex: string, signedHex: string): boolean {
  const bytes = Buffer.from(signedHex, "hex");
  const transaction = bytes.subarray(0, -SIGNATURE_BYTES);
  const message = Buffer.concat([Buffer.from("walras batch transaction"), Buffer.from([1, 0]), Buffer.from(domainHex, "hex"), transaction]);
  const key = createPublicKey({ key: Buffer.from(SPKI_HEAD + publicKeyHex, "hex"), format: "der", type: "spki" });
  return verify(null, message, key, bytes.subarray(-SIGNATURE_BYTES));
}
