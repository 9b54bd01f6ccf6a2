// What an account asks of a batch market, as the bytes that it signs: docs/batch-transactions.md, version 1. The page makes offers and
// cancels. test/transaction-vector.json, made by the Rust that reads them, holds worked examples.

import { type Key, signBytes, toHex } from "./signing.ts";

const PURPOSE = "walras batch transaction";
const VERSION = 1;
const TAG = { create_offer: 2, cancel_offer: 3 } as const;
const UNTIL = 0x80;
const JOINED = 0x40;

export interface CreateOffer {
  operation: "create_offer";
  market_id: number;
  sell: number;
  buy: number;
  amount: bigint;
  /** Of smallest units; 0 for any price. */
  limit_bits: bigint;
}

export interface CancelOffer {
  operation: "cancel_offer";
  market_id: number;
  sell: number;
  buy: number;
  /** The effective limit, tie-break and number that the venue reported of the offer. */
  limit_bits: bigint;
  tie: bigint;
  sequence: bigint;
}

export interface Terms {
  /** The last block that may have the transaction; any without it. */
  until?: bigint;
  /** Whether it is kept only together with the account's transaction of the next number. */
  joined?: boolean;
}

export function encodeTransaction(
  account: number, sequence: bigint, asked: CreateOffer | CancelOffer, { until, joined = false }: Terms = {},
): Uint8Array<ArrayBuffer> {
  const fieldsAt = until === undefined ? 13 : 18;
  const bytes = new Uint8Array(fieldsAt + (asked.operation === "create_offer" ? 26 : 34));
  const head = new DataView(bytes.buffer);
  head.setUint32(0, account, true);
  head.setBigUint64(4, sequence, true);
  head.setUint8(12, TAG[asked.operation] | (until === undefined ? 0 : UNTIL) | (joined ? JOINED : 0));
  if (until !== undefined) {
    head.setUint32(13, Number(until & 0xffff_ffffn), true);
    head.setUint8(17, Number(until >> 32n));
  }
  const fields = new DataView(bytes.buffer, fieldsAt);
  fields.setUint16(0, asked.market_id, true);
  fields.setUint32(2, asked.sell, true);
  fields.setUint32(6, asked.buy, true);
  if (asked.operation === "create_offer") {
    fields.setBigUint64(10, asked.amount, true);
    fields.setBigUint64(18, asked.limit_bits, true);
  } else {
    fields.setBigUint64(10, asked.limit_bits, true);
    fields.setBigUint64(18, asked.tie, true);
    fields.setBigUint64(26, asked.sequence, true);
  }
  return bytes;
}

/** What is signed of a transaction: never its bytes alone, so that a signature for one venue is none for another. */
export function signedMessage(domainHex: string, transaction: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.from([...new TextEncoder().encode(PURPOSE), VERSION & 0xff, VERSION >> 8, ...fromHex(domainHex), ...transaction]);
}

/** The transaction and its signature in hex, as the venue takes it. */
export async function signTransaction(key: Key, domainHex: string, transaction: Uint8Array): Promise<string> {
  const signature = await signBytes(key, signedMessage(domainHex, transaction));
  return toHex(Uint8Array.from([...transaction, ...signature]).buffer);
}

export function fromHex(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}
