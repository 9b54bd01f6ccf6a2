// Checks what a venue says of a batch market, without trusting it and without its state: see docs/light-client.md. All that is
// trusted is the 32 bytes of a block's hash. Written from that page, apart from the reader in Rust; the two share test vectors.

import { concat, equal } from "../bytes.ts";
import type { PoolName, PoolRule } from "../transactions.ts";
import { LightError, Reader, hash, impossible, key, notProven } from "./bytes.ts";
import {
  accountRoot,
  offerRoot,
  readAccountProof,
  readOfferProof,
  readTrieProof,
  trieProofBytesMax,
  trieRoot,
} from "./proofs.ts";

export { LightError } from "./bytes.ts";

const ASSETS_MAX = 4_096;
/** Pairs of one market: those of 256 assets that all trade with each other. */
const PAIRS_MAX = 256 * 255;
const AMOUNT_END = 1n << 63n;
const SEQUENCE_BITS = 38n;
const ACCOUNTS_MAX = 1 << 26;
const [WEIGHT_MAX, AMPLIFICATION_MAX] = [1_000, 1_000_000];
const LIGHT_HEADER_BYTES = 254;
const ROOTS_BYTES_MAX = 2 + 2 * 32 + (2 + 32) * 65_536;
const ACCOUNT_BYTES_MAX = 6 + 45 + 19 * ASSETS_MAX + 6 + 8 * 15 * 32;
const OFFER_BYTES_MAX = 3 + 16 + 6 + trieProofBytesMax(4) + trieProofBytesMax(24);
/** Bytes of each operation's fields, by its number. */
const OPERATION_BYTES: Record<number, number> = { 1: 32, 2: 26, 3: 34, 4: 16, 5: 12, 6: 12, 7: 35, 8: 30, 9: 22, 10: 32 };
const [POOL_BYTES, SHARES_BYTES] = [37, 8];
const POOL_STATEMENT_BYTES_MAX = 3 + POOL_BYTES + 6 + trieProofBytesMax(4) + trieProofBytesMax(24);
const OUTCOME_BYTES_MAX = 8 + 1 + 36 + 24 + 8 + 4 + 24;
/** Of the operations on pools. */
const POOL_OPERATIONS: ReadonlySet<number | undefined> = new Set([7, 8, 9]);

export interface Balance {
  available: bigint;
  reserved: bigint;
}

export interface AccountState {
  /** Its Ed25519 key, if it has one. */
  key: Uint8Array | null;
  /** The highest number that it used for a transaction. */
  last: bigint;
  /** By the ledger's asset. */
  balances: Map<number, Balance>;
}

/** Limits are the bits of a binary64. */
export interface OfferKey {
  limit: bigint;
  tie: bigint;
  account: number;
  sequence: bigint;
}

export interface Offer {
  amount: bigint;
  stated: bigint;
}

/** What a pool was; assets by their places in the market. */
export type Pool = PoolRule & {
  first: number;
  second: number;
  feePpm: number;
  /** Units of its first and of its second asset. */
  reserves: [first: bigint, second: bigint];
  /** All its shares. */
  shares: bigint;
};

export interface Trade {
  sold: bigint;
  /** The last offer that traded. */
  marginal: { limit: bigint; tie: bigint; id: bigint };
}

/** What a block did with a transaction, or with the offer that it created. */
export interface Outcome {
  /** What it asked, as its bytes have it from the operation on; null when the transaction is in another block. */
  operation: Uint8Array | null;
  traded: { sell: number; buy: number; sold: bigint; bought: bigint } | null;
  /** Units of the offer that came back. */
  returned: bigint | null;
  created: number | null;
  /** Units of a pool's first and second asset that the transaction gave it or took from it, and the shares for them. */
  pooled: { first: bigint; second: bigint; shares: bigint } | null;
}

function isPrice(bits: bigint): boolean {
  const exponent = Number(bits >> 52n) - 1_023;
  const most = (bits & ((1n << 52n) - 1n)) === 0n ? 126 : 125;
  return bits === 0n || (exponent >= -126 && exponent <= most);
}

/** A block whose light header and roots hash to what is trusted. */
export class LightBlock {
  readonly hash: Uint8Array;
  readonly market: number;
  readonly number: bigint;
  readonly parent: Uint8Array;
  readonly batchHash: Uint8Array;
  readonly transactionCount: number;
  readonly rules: Uint8Array;
  readonly gapPpb: number;
  readonly unservedPpb: number;
  readonly setAside: number;
  readonly certificate: Uint8Array;
  readonly assetCount: number;
  /** So many of the assets, from the first on, are currencies: two assets are a pair if at least one of them is. */
  readonly currencyCount: number;
  readonly #roots: { prices: Uint8Array; trades: Uint8Array; outcomes: Uint8Array; accounts: Uint8Array; offers: Uint8Array };

  /** Throws {@link LightError} when header and roots are those of another block, or of none. */
  constructor(trusted: Uint8Array, header: Uint8Array, roots: Uint8Array) {
    const r = Reader.of(header, 10, LIGHT_HEADER_BYTES, "a header");
    [this.market, this.number, this.parent, this.batchHash] = [r.u16(), r.u64(), r.take(32), r.take(32)];
    [this.transactionCount, this.rules] = [r.u32(), r.take(32)];
    [this.gapPpb, this.unservedPpb, this.setAside, this.certificate] = [r.u32(), r.u32(), r.u16(), r.take(32)];
    this.assetCount = r.u16();
    // None stands for all.
    const currencies = r.u16();
    this.currencyCount = currencies === 0 ? this.assetCount : currencies;
    const [prices, trades, outcomes] = [r.take(32), r.take(32), r.take(32)];
    const isShare = this.gapPpb <= 1e9 && this.unservedPpb <= 1e9;
    const isMarket = this.assetCount <= ASSETS_MAX && (currencies === 0 || currencies < this.assetCount);
    const pairs = this.currencyCount * (2 * this.assetCount - this.currencyCount - 1);
    r.must(isShare && isMarket && pairs <= PAIRS_MAX && this.setAside <= this.assetCount);
    r.end();
    const of = Reader.of(roots, 4, ROOTS_BYTES_MAX, "a block's roots");
    const [accounts, touched, markets] = [of.take(32), of.take(32), of.rest];
    let [offers, last]: [Uint8Array | null, number] = [null, -1];
    while (of.rest.length > 0) {
      const [market, root] = [of.u16(), of.take(32)];
      of.must(market > last);
      last = market;
      if (market === this.market) offers = root;
    }
    const found = hash("walras merkle 1 state root", accounts, touched, hash("walras batch 3 block header", header), markets);
    if (!equal(found, trusted)) {
      throw new LightError(3, "header and roots do not hash to the block that is trusted: ask for those of that block, or elsewhere");
    }
    if (offers === null) throw impossible();
    this.hash = trusted;
    this.#roots = { prices, trades, outcomes, accounts, offers };
  }

  /** The price of an asset as the bits of a binary64; null when it has none. */
  price(asset: number, statement: Uint8Array): bigint | null {
    if (asset >= this.assetCount) {
      throw new LightError(9, `the market has no asset ${asset}: its assets are numbered from 0, as its configuration names them`);
    }
    const value = this.#value(statement, 8, 8, key(BigInt(asset), 2), this.#roots.prices, "a statement about a price");
    if (value === null) return null;
    const bits = new Reader(value, "a price").u64();
    if (bits === 0n || !isPrice(bits)) throw impossible();
    return bits;
  }

  /** What a pair traded; null when it did not. */
  trade(sell: number, buy: number, statement: Uint8Array): Trade | null {
    const pair = key(BigInt(this.#pair(sell, buy)), 4);
    const value = this.#value(statement, 9, 32, pair, this.#roots.trades, "a statement about a trade");
    if (value === null) return null;
    const r = new Reader(value, "a trade");
    const [sold, limit, tie, id] = [r.u64(), r.u64(), r.u64(), r.u64()];
    if (sold === 0n || sold >= AMOUNT_END || !isPrice(limit)) throw impossible();
    return { sold, marginal: { limit, tie, id } };
  }

  /** What the block did with a transaction, or with the offer that it created; null when it did nothing under that number. */
  outcome(account: number, sequence: bigint, statement: Uint8Array): Outcome | null {
    const part = "a statement about an outcome";
    const name = nameOf(account, sequence);
    const r = Reader.of(statement, 7, 3 + OUTCOME_BYTES_MAX + trieProofBytesMax(8), part);
    const content = r.take(r.byte());
    const leaf = content.length === 0 ? null : hash("walras batch 1 outcome", content);
    if (!equal(trieRoot(readTrieProof(r.rest, 8, part), key(name, 8), leaf), this.#roots.outcomes)) throw notProven();
    return leaf === null ? null : possible(() => readOutcome(name, content));
  }

  /** What an account was when the block ended; null when there was no such account. */
  account(account: number, statement: Uint8Array): AccountState | null {
    const part = "a statement about an account";
    const r = Reader.of(statement, 5, ACCOUNT_BYTES_MAX, part);
    const content = r.take(r.u32());
    const claim = content.length === 0 ? null : content;
    if (!equal(accountRoot(readAccountProof(r.rest, part), account, claim), this.#roots.accounts)) throw notProven();
    return claim === null ? null : possible(() => readAccount(account, content));
  }

  /** The offer that stood under a key when the block ended; null when none did. */
  offer(sell: number, buy: number, of: OfferKey, statement: Uint8Array): Offer | null {
    const part = "a statement about an offer";
    const pair = this.#pair(sell, buy);
    const r = Reader.of(statement, 6, OFFER_BYTES_MAX, part);
    const value = readValue(r, 16);
    const place = concat([key(of.limit, 8), key(of.tie, 8), key(nameOf(of.account, of.sequence), 8)]);
    if (!equal(offerRoot(readOfferProof(r.rest, part), key(BigInt(pair), 4), place, value), this.#roots.offers)) throw notProven();
    if (value === null) return null;
    const content = new Reader(value, "an offer");
    const [amount, stated] = [content.u64(), content.u64()];
    if (amount === 0n || amount >= AMOUNT_END || !isPrice(stated)) throw impossible();
    return { amount, stated };
  }

  /** What a pool was when the block ended; null when there was no such pool. */
  pool(name: PoolName, statement: Uint8Array): Pool | null {
    const content = this.#poolEntry(name, concat([key(0n, 8), key(0n, 8)]), POOL_BYTES, statement);
    if (content === null) return null;
    return possible(() => readPool(content, (first, second) => this.#isPair(first, second)));
  }

  /** An account's shares of a pool when the block ended: none when it had none, or when there was no such pool. */
  poolShares(name: PoolName, account: number, statement: Uint8Array): bigint {
    const content = this.#poolEntry(name, concat([key(BigInt(account), 8), key(1n, 8)]), SHARES_BYTES, statement);
    if (content === null) return 0n;
    const shares = new Reader(content, "shares of a pool").u64();
    if (shares === 0n || shares >= AMOUNT_END) throw impossible();
    return shares;
  }

  #poolEntry({ account, sequence }: PoolName, rest: Uint8Array, length: number, statement: Uint8Array): Uint8Array | null {
    const part = "a statement about a pool";
    const name = nameOf(account, sequence);
    const r = Reader.of(statement, 12, POOL_STATEMENT_BYTES_MAX, part);
    const content = r.take(r.byte());
    r.must(content.length === 0 || content.length === length);
    const value = content.length === 0 ? null : content;
    const place = concat([key(name, 8), rest]);
    // Pools stand among the pairs under the number of the first asset with itself.
    if (!equal(offerRoot(readOfferProof(r.rest, part), key(0n, 4), place, value), this.#roots.offers)) throw notProven();
    return value;
  }

  #value(statement: Uint8Array, kind: number, length: number, place: Uint8Array, root: Uint8Array, part: string): Uint8Array | null {
    const r = Reader.of(statement, kind, 3 + length + trieProofBytesMax(place.length), part);
    const value = readValue(r, length);
    if (!equal(trieRoot(readTrieProof(r.rest, place.length, part), place, value), root)) throw notProven();
    return value;
  }

  #pair(sell: number, buy: number): number {
    if (!this.#isPair(sell, buy)) {
      const how = "its assets are numbered from 0, as its configuration names them, and one of a pair is a currency";
      throw new LightError(6, `the market has no pair ${sell}-${buy}: ${how}`);
    }
    const [assets, currencies] = [this.assetCount, this.currencyCount];
    return sell < currencies ? sell * assets + buy : currencies * assets + (sell - currencies) * currencies + buy;
  }

  #isPair(sell: number, buy: number): boolean {
    const areAssets = sell < this.assetCount && buy < this.assetCount;
    return areAssets && sell !== buy && (sell < this.currencyCount || buy < this.currencyCount);
  }
}

/** The number of a transaction, an offer or a pool. That of a name beyond the limits would be another one's. */
function nameOf(account: number, sequence: bigint): bigint {
  if (account < 0 || account >= ACCOUNTS_MAX || sequence >> SEQUENCE_BITS !== 0n) throw notProven();
  return (BigInt(account) << SEQUENCE_BITS) | sequence;
}

/** `0`, or `1` and the bytes. */
function readValue(r: Reader, length: number): Uint8Array | null {
  const flag = r.byte();
  r.must(flag <= 1);
  return flag === 1 ? r.take(length) : null;
}

/** What is proven and does not read as anything is impossible, not malformed. */
function possible<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof LightError ? impossible() : error;
  }
}

function amount(r: Reader): bigint {
  const units = r.u64();
  r.must(units < AMOUNT_END);
  return units;
}

function readOutcome(name: bigint, content: Uint8Array): Outcome {
  const r = new Reader(content, "an outcome");
  r.must(r.u64() === name);
  const parts = r.byte();
  r.must(parts > 0 && parts < 32);
  const has = (part: number): boolean => (parts & part) !== 0;
  let operation: Uint8Array | null = null;
  if (has(1)) {
    const length = OPERATION_BYTES[r.rest[0] ?? 0];
    r.must(length !== undefined);
    operation = r.take(1 + (length ?? 0));
  }
  const traded = has(2) ? { sell: r.u32(), buy: r.u32(), sold: amount(r), bought: amount(r) } : null;
  const returned = has(4) ? amount(r) : null;
  const created = has(8) ? r.u32() : null;
  const pooled = has(16) ? { first: amount(r), second: amount(r), shares: amount(r) } : null;
  r.must((operation?.[0] === 1) === (created !== null) && POOL_OPERATIONS.has(operation?.[0]) === (pooled !== null));
  r.end();
  return { operation, traded, returned, created, pooled };
}

function readPool(content: Uint8Array, isPair: (first: number, second: number) => boolean): Pool {
  const r = new Reader(content, "a pool");
  const [first, second, rule, parameters, feePpm] = [r.u16(), r.u16(), r.byte(), r.u32(), r.u32()];
  const [firstReserve, secondReserve, shares] = [amount(r), amount(r), amount(r)];
  r.end();
  r.must(isPair(first, second) && feePpm < 1_000_000);
  r.must(firstReserve > 0n && secondReserve > 0n && shares > 0n);
  return { ...readRule(r, rule, parameters), first, second, feePpm, reserves: [firstReserve, secondReserve], shares };
}

function readRule(r: Reader, rule: number, parameters: number): PoolRule {
  if (rule === 1) {
    const weights: [number, number] = [parameters & 0xffff, parameters >>> 16];
    r.must(weights.every((weight) => weight >= 1 && weight <= WEIGHT_MAX));
    return { rule: "weighted", weights };
  }
  if (rule === 2) {
    r.must(parameters >= 1 && parameters <= AMPLIFICATION_MAX);
    return { rule: "stable_swap", amplification: parameters };
  }
  r.must(rule === 0 && parameters === 0);
  return { rule: "constant_product" };
}

function readAccount(account: number, content: Uint8Array): AccountState {
  const r = new Reader(content, "an account");
  r.must(r.u32() === account);
  const flag = r.byte();
  r.must(flag <= 1);
  const own = flag === 1 ? r.take(32) : null;
  const last = r.u64();
  r.must(last < 1n << SEQUENCE_BITS);
  const balances = new Map<number, Balance>();
  const short = (length: number): bigint => {
    const bytes = r.take(length);
    r.must(length <= 8 && bytes[length - 1] !== 0);
    const units = bytes.reduceRight((number, byte) => (number << 8n) | BigInt(byte), 0n);
    r.must(units < AMOUNT_END);
    return units;
  };
  for (let before = -1; r.rest.length > 0; ) {
    const [asset, lengths] = [r.u16(), r.byte()];
    const [available, reserved] = [short(lengths & 15), short(lengths >> 4)];
    r.must(lengths !== 0 && asset > before && asset < ASSETS_MAX);
    before = asset;
    balances.set(asset, { available, reserved });
  }
  return { key: own, last, balances };
}

/**
 * The blocks from the newest, whose hash is trusted, back to the oldest: light header and roots of each. Trust goes back only: anybody
 * can put a block on top of another.
 */
export function openChain(newest: Uint8Array, oldest: Uint8Array, blocks: [Uint8Array, Uint8Array][]): LightBlock[] {
  const chain: LightBlock[] = [];
  for (const [header, roots] of blocks) {
    const after = chain.at(-1);
    const block = new LightBlock(after?.parent ?? newest, header, roots);
    if (after !== undefined && (block.market !== after.market || block.number !== after.number - 1n)) {
      throw new LightError(7, "the block is not the one right before: hand over each block from the newest back to the oldest");
    }
    chain.push(block);
  }
  const last = chain.at(-1);
  if (last === undefined || !equal(last.hash, oldest)) {
    throw new LightError(8, "the blocks go back to another block than the oldest asked for: hand over all of them, and none beyond");
  }
  return chain;
}
