// What an account asks of a batch market, as the bytes that it signs: docs/batch-transactions.md, version 1. The page makes offers and
// cancels. test/transaction-vector.json, made by the Rust that reads them, holds worked examples.

import { type Key, signBytes, toHex } from "./signing.ts";

const PURPOSE = "walras batch transaction";
const VERSION = 1;
const TAG = { create_offer: 2, cancel_offer: 3 } as const;

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

export function encodeTransaction(account: number, sequence: bigint, asked: CreateOffer | CancelOffer): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(asked.operation === "create_offer" ? 39 : 47);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, account, true);
  view.setBigUint64(4, sequence, true);
  view.setUint8(12, TAG[asked.operation]);
  view.setUint16(13, asked.market_id, true);
  view.setUint32(15, asked.sell, true);
  view.setUint32(19, asked.buy, true);
  if (asked.operation === "create_offer") {
    view.setBigUint64(23, asked.amount, true);
    view.setBigUint64(31, asked.limit_bits, true);
  } else {
    view.setBigUint64(23, asked.limit_bits, true);
    view.setBigUint64(31, asked.tie, true);
    view.setBigUint64(39, asked.sequence, true);
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
