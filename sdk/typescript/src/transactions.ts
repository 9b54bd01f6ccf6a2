// What an account asks of a batch market, as the bytes that it signs: docs/batch-transactions.md, version 1. test/transaction-vector.json,
// made by the Rust that reads them, holds worked examples.

import { concat, fromHex, toHex } from "./bytes.ts";
import { KeyError } from "./errors.ts";
import { type Key, isEd25519, signBytes } from "./signing.ts";

const PURPOSE = "walras batch transaction";
const VERSION = 1;
const TAG = {
  create_account: 1, create_offer: 2, cancel_offer: 3, payment: 4, issue: 5, burn: 6, create_pool: 7, deposit_to_pool: 8,
  withdraw_from_pool: 9, set_key: 10,
} as const;
const UNTIL = 0x80;
const JOINED = 0x40;
const PLACE = { first: 0x50, middle: 0x70, last: 0x30 } as const;
/** A transaction whose sender says no end counts for about so long. */
const COUNTS_MS = 120_000;
const RULE = { constant_product: 0, weighted: 1, stable_swap: 2 } as const;

/** Opens an account with this Ed25519 public key, or replaces the sender's own key by it. */
export interface KeyOperation {
  operation: "create_account" | "set_key";
  /** 32 bytes in hex. */
  key: string;
}

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

export interface Payment {
  operation: "payment";
  to: number;
  asset: number;
  amount: bigint;
}

/** By the asset's issuer alone. */
export interface IssuedAmount {
  operation: "issue" | "burn";
  asset: number;
  amount: bigint;
}

/** Chooses the function of a pool's reserves that trading never lowers. */
export type PoolRule =
  | { rule: "constant_product" }
  | { rule: "weighted"; weights: [first: number, second: number] }
  | { rule: "stable_swap"; amplification: number };

export type CreatePool = PoolRule & {
  operation: "create_pool";
  market_id: number;
  first: number;
  second: number;
  fee_ppm: number;
  amounts: [first: bigint, second: bigint];
};

/** A pool's name: the transaction that created it. */
export interface PoolName {
  account: number;
  sequence: bigint;
}

export interface DepositToPool {
  operation: "deposit_to_pool";
  market_id: number;
  pool: PoolName;
  /** At most so much of each asset: as much as the ratio of the reserves allows. */
  amounts: [first: bigint, second: bigint];
}

export interface WithdrawFromPool {
  operation: "withdraw_from_pool";
  market_id: number;
  pool: PoolName;
  shares: bigint;
}

export type Operation =
  | KeyOperation | CreateOffer | CancelOffer | Payment | IssuedAmount | CreatePool | DepositToPool | WithdrawFromPool;

/** Where a transaction stands in a chain, of which a block keeps all or none. */
export type Place = keyof typeof PLACE;

export interface Terms {
  /** The last block that may have the transaction; any without it. */
  until?: bigint;
  /** Its place in a chain, whose transactions have numbers that follow each other. */
  chain?: Place | null;
  /**
   * Whether it is kept only together with the account's transaction of the next number, which may be kept alone; that is how engine
   * versions before 14 join transactions. Only outside of a chain.
   */
  joined?: boolean;
}

/** Where one of so many transactions stands in their chain, counted from 0; `null` for one alone. */
export function placeInChain(place: number, count: number): Place | null {
  if (count < 2) return null;
  if (place === 0) return "first";
  return place < count - 1 ? "middle" : "last";
}

/** How many blocks a market of this interval has in about two minutes: the one that collects, and as many as it may close in that time. */
export function blocksOfTwoMinutes(intervalMs: number): number {
  return Math.ceil(COUNTS_MS / Math.max(intervalMs, 1)) + 1;
}

/** The number of the last of so many blocks; the first one is `collecting`. */
export function lastOfBlocks(collecting: bigint, blocks: number): bigint {
  if (!Number.isSafeInteger(blocks) || blocks < 1) throw new RangeError(`${blocks} blocks: give a whole number from 1 on`);
  return collecting + BigInt(blocks) - 1n;
}

export function encodeTransaction(
  account: number, sequence: bigint, asked: Operation, { until, chain = null, joined = false }: Terms = {},
): Uint8Array<ArrayBuffer> {
  if (chain !== null && joined) throw new RangeError("a transaction of a chain is joined with that: leave out `joined`");
  const bytes = new Writer();
  bytes.u32(account);
  bytes.u64(sequence);
  bytes.u8(TAG[asked.operation] | (until === undefined ? 0 : UNTIL) | (joined ? JOINED : 0) | (chain === null ? 0 : PLACE[chain]));
  if (until !== undefined) {
    bytes.u32(Number(until & 0xffff_ffffn));
    bytes.u8(Number(until >> 32n));
  }
  writeFields(bytes, asked);
  return bytes.written();
}

function writeFields(bytes: Writer, asked: Operation): void {
  switch (asked.operation) {
    case "create_account":
    case "set_key":
      return bytes.key(asked.key);
    case "create_offer":
      writePair(bytes, asked);
      bytes.u64(asked.amount);
      return bytes.u64(asked.limit_bits);
    case "cancel_offer":
      writePair(bytes, asked);
      bytes.u64(asked.limit_bits);
      bytes.u64(asked.tie);
      return bytes.u64(asked.sequence);
    case "payment":
      bytes.u32(asked.to);
      bytes.u32(asked.asset);
      return bytes.u64(asked.amount);
    case "issue":
    case "burn":
      bytes.u32(asked.asset);
      return bytes.u64(asked.amount);
    case "create_pool":
      bytes.u16(asked.market_id);
      bytes.u32(asked.first);
      bytes.u32(asked.second);
      bytes.u8(RULE[asked.rule]);
      bytes.u32(ruleParameters(asked));
      bytes.u32(asked.fee_ppm);
      return asked.amounts.forEach((amount) => bytes.u64(amount));
    case "deposit_to_pool":
      writePool(bytes, asked);
      return asked.amounts.forEach((amount) => bytes.u64(amount));
    case "withdraw_from_pool":
      writePool(bytes, asked);
      return bytes.u64(asked.shares);
  }
}

function writePair(bytes: Writer, { market_id, sell, buy }: { market_id: number; sell: number; buy: number }): void {
  bytes.u16(market_id);
  bytes.u32(sell);
  bytes.u32(buy);
}

function writePool(bytes: Writer, { market_id, pool }: { market_id: number; pool: PoolName }): void {
  bytes.u16(market_id);
  bytes.u32(pool.account);
  bytes.u64(pool.sequence);
}

function ruleParameters(rule: PoolRule): number {
  switch (rule.rule) {
    case "constant_product":
      return 0;
    case "weighted":
      return rule.weights[0] + rule.weights[1] * 0x1_0000;
    case "stable_swap":
      return rule.amplification;
  }
}

/** Little endian. A number that its field cannot hold is an error: DataView would sign its low bits. */
class Writer {
  readonly #view = new DataView(new ArrayBuffer(64));
  #at = 0;

  u8(value: number): void {
    this.#view.setUint8(this.#room(value, 1), value);
  }

  u16(value: number): void {
    this.#view.setUint16(this.#room(value, 2), value, true);
  }

  u32(value: number): void {
    this.#view.setUint32(this.#room(value, 4), value, true);
  }

  u64(value: bigint): void {
    this.#view.setBigUint64(this.#room(value, 8), value, true);
  }

  key(hex: string): void {
    if (!/^[0-9a-f]{64}$/i.test(hex)) throw new RangeError("A public key is 32 bytes in hex: 64 digits.");
    for (const byte of fromHex(hex)) this.u8(byte);
  }

  written(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#view.buffer.slice(0, this.#at));
  }

  #room(value: number | bigint, bytes: number): number {
    const isWhole = typeof value === "bigint" || Number.isInteger(value);
    if (!isWhole || value < 0 || value >= 1n << BigInt(8 * bytes)) throw new RangeError(`${value} is no number of ${bytes} bytes.`);
    const at = this.#at;
    this.#at += bytes;
    return at;
  }
}

/** What is signed of a transaction: never its bytes alone, so that a signature for one venue is none for another. */
export function signedMessage(domainHex: string, transaction: Uint8Array): Uint8Array<ArrayBuffer> {
  const domain = fromHex(domainHex);
  if (domain.length !== 32) throw new RangeError(`a domain of ${domain.length} bytes: give the 32 bytes of the market's domain, in hex`);
  return concat([new TextEncoder().encode(PURPOSE), Uint8Array.of(VERSION & 0xff, VERSION >> 8), domain, transaction]);
}

/** The transaction and its signature in hex, as the venue takes it. Throws a {@link KeyError} where the key is not an Ed25519 key. */
export async function signTransaction(key: Key, domainHex: string, transaction: Uint8Array): Promise<string> {
  if (!isEd25519(key)) throw new KeyError("not_ed25519");
  const signature = await signBytes(key, signedMessage(domainHex, transaction));
  return toHex(concat([transaction, signature]));
}
