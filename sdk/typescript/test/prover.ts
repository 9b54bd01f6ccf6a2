// A venue's proofs of a batch market's state, built after docs/light-client.md as plainly as can be: all trees from scratch for each block.

import { concat } from "../src/bytes.ts";
import { hash, key, u32 } from "../src/light/bytes.ts";

export interface ProvenAccount {
  account: number;
  publicKey: Uint8Array | null;
  last: bigint;
  /** By ascending asset. */
  balances: { asset: number; available: bigint; reserved: bigint }[];
}

export interface ProvenOffer {
  /** `sell * assets + buy` of the market's own assets. */
  pair: number;
  limit: bigint;
  tie: bigint;
  account: number;
  sequence: bigint;
  amount: bigint;
  stated: bigint;
}

/** A pool of constant product, and the shares of those who have any. */
export interface ProvenPool {
  account: number;
  sequence: bigint;
  first: number;
  second: number;
  feePpm: number;
  reserves: [bigint, bigint];
  shares: bigint;
  providers: { account: number; shares: bigint }[];
}

export interface ProvenBlock {
  header: Uint8Array;
  roots: Uint8Array;
  /** The state root. */
  hash: Uint8Array;
}

type Entry = [key: Uint8Array, value: Uint8Array];

const SEQUENCE_BITS = 38n;
const nothing = new Uint8Array(32);

const u16 = (value: number): Uint8Array => Uint8Array.of(value & 0xff, value >> 8);
const u64 = (value: bigint): Uint8Array => key(value, 8).reverse();
const digit = (of: Uint8Array, at: number): number => ((of[at >> 1] ?? 0) >> (at % 2 === 0 ? 4 : 0)) & 15;
const entryBytes = ([k, v]: Entry): Uint8Array => concat([k, Uint8Array.of(v.length), v]);

/** The first digit at which the keys differ. */
function depthOf(entries: Entry[]): number {
  const [first] = entries;
  if (!first) return 0;
  let depth = 0;
  while (entries.every(([k]) => digit(k, depth) === digit(first[0], depth))) depth += 1;
  return depth;
}

interface Node {
  depth: number;
  masks: Uint8Array;
  children: Map<number, { bytes: Uint8Array; entries: Entry[] }>;
}

function nodeOf(entries: Entry[]): Node {
  const depth = depthOf(entries);
  const children: Node["children"] = new Map();
  let [all, inner] = [0, 0];
  for (let at = 0; at < 16; at += 1) {
    const below = entries.filter(([k]) => digit(k, depth) === at);
    const [only] = below;
    if (!only) continue;
    all |= 1 << at;
    if (below.length > 1) inner |= 1 << at;
    children.set(at, { bytes: below.length > 1 ? nodeHash(below) : entryBytes(only), entries: below });
  }
  return { depth, masks: concat([u16(all), u16(inner)]), children };
}

function nodeHash(entries: Entry[]): Uint8Array {
  const { depth, masks, children } = nodeOf(entries);
  const keyBytes = entries[0]?.[0].length ?? 0;
  return hash("walras merkle 1 trie node", Uint8Array.of(keyBytes, depth), masks, ...[...children.values()].map(({ bytes }) => bytes));
}

export function rootOf(entries: Entry[], keyBytes: number): Uint8Array {
  const [only] = entries;
  const rest = !only ? new Uint8Array() : entries.length === 1 ? entryBytes(only) : nodeHash(entries);
  return hash("walras merkle 1 trie root", Uint8Array.of(keyBytes), u32(entries.length), rest);
}

/** For a key that is in the trie. */
function proofOf(entries: Entry[], wanted: Uint8Array): Uint8Array {
  const steps: Uint8Array[] = [];
  for (let below = entries; below.length > 1;) {
    const { depth, masks, children } = nodeOf(below);
    const at = digit(wanted, depth);
    steps.push(concat([Uint8Array.of(depth, at), masks, ...[...children].filter(([child]) => child !== at).map(([, { bytes }]) => bytes)]));
    below = children.get(at)?.entries ?? [];
  }
  return concat([Uint8Array.of(1, 1, wanted.length), u32(entries.length), Uint8Array.of(0, steps.length), ...steps]);
}

function accountBytes({ account, publicKey, last, balances }: ProvenAccount): Uint8Array {
  const short = (units: bigint): Uint8Array => {
    const bytes = u64(units);
    let length = 8;
    while (length > 0 && bytes[length - 1] === 0) length -= 1;
    return bytes.subarray(0, length);
  };
  const held = balances.filter(({ available, reserved }) => available > 0n || reserved > 0n).map(({ asset, available, reserved }) => {
    const [a, r] = [short(available), short(reserved)];
    return concat([u16(asset), Uint8Array.of(a.length | (r.length << 4)), a, r]);
  });
  return concat([u32(account), publicKey === null ? Uint8Array.of(0) : concat([Uint8Array.of(1), publicKey]), u64(last), ...held]);
}

interface BlockHead {
  market: number;
  number: bigint;
  parent: Uint8Array;
  transactions: number;
  assets: number;
}

/** The state after a block. Accounts are numbered from 0; at most 16. */
export class Prover {
  readonly block: ProvenBlock;
  readonly #accounts: Uint8Array[];
  readonly #pairs: Map<number, Entry[]>;

  constructor(head: BlockHead, accounts: ProvenAccount[], offers: ProvenOffer[], pools: ProvenPool[] = []) {
    this.#accounts = accounts.map(accountBytes);
    this.#pairs = new Map();
    for (const offer of offers) {
      const entries = this.#pairs.get(offer.pair) ?? [];
      entries.push([placeOf(offer), concat([u64(offer.amount), u64(offer.stated)])]);
      this.#pairs.set(offer.pair, entries);
    }
    const ofPools = pools.flatMap(poolEntries);
    if (ofPools.length > 0) this.#pairs.set(POOLS_PAIR, ofPools);
    const header = concat([
      Uint8Array.of(1, 10), u16(head.market), u64(head.number), head.parent, nothing, u32(head.transactions), nothing,
      u32(0), u32(0), u16(0), nothing, u32(head.assets), nothing, nothing, nothing,
    ]);
    const markets = concat([u16(head.market), rootOf(this.#pairEntries(), 4)]);
    const leaves = this.#leaves();
    const accountsRoot = hash("walras merkle 1 account root", u32(leaves.length), hash("walras merkle 1 account node", ...leaves));
    const roots = concat([Uint8Array.of(1, 4), accountsRoot, nothing, markets]);
    const root = hash("walras merkle 1 state root", accountsRoot, nothing, hash("walras batch 3 block header", header), markets);
    this.block = { header, roots, hash: root };
  }

  account(account: number): Uint8Array {
    const content = this.#accounts[account] ?? new Uint8Array();
    const siblings = this.#leaves().filter((_, at) => at !== account);
    return concat([Uint8Array.of(1, 5), u32(content.length), content, Uint8Array.of(1, 2), u32(this.#accounts.length), ...siblings]);
  }

  /** `null` where no such offer stands. */
  offer(of: Omit<ProvenOffer, "amount" | "stated">): Uint8Array | null {
    const found = this.#entry(of.pair, placeOf(of));
    return found && concat([Uint8Array.of(1, 6, 1), found.value, found.proof]);
  }

  /** `null` where there is no such pool, or the provider has no shares. */
  pool(account: number, sequence: bigint, provider: number | null = null): Uint8Array | null {
    const found = this.#entry(POOLS_PAIR, poolPlace({ account, sequence }, provider));
    return found && concat([Uint8Array.of(1, 12, found.value.length), found.value, found.proof]);
  }

  #entry(pair: number, place: Uint8Array): { value: Uint8Array; proof: Uint8Array } | null {
    const entries = this.#pairs.get(pair) ?? [];
    const value = entries.find(([k]) => k.every((byte, at) => byte === place[at]))?.[1];
    if (!value) return null;
    const pairProof = proofOf(this.#pairEntries(), key(BigInt(pair), 4));
    return { value, proof: concat([Uint8Array.of(1, 3), u32(pairProof.length), pairProof, proofOf(entries, place)]) };
  }

  #leaves(): Uint8Array[] {
    return this.#accounts.map((content) => hash("walras merkle 1 account leaf", content));
  }

  #pairEntries(): Entry[] {
    return [...this.#pairs].map(([pair, entries]) => [key(BigInt(pair), 4), rootOf(entries, 24)]);
  }
}

/** Pools stand among the pairs under the number of the first asset with itself. */
const POOLS_PAIR = 0;

function poolPlace({ account, sequence }: { account: number; sequence: bigint }, provider: number | null): Uint8Array {
  const name = key((BigInt(account) << SEQUENCE_BITS) | sequence, 8);
  return concat([name, key(BigInt(provider ?? 0), 8), key(provider === null ? 0n : 1n, 8)]);
}

function poolEntries(pool: ProvenPool): Entry[] {
  const { first, second, feePpm, reserves, shares, providers } = pool;
  const content = concat([u16(first), u16(second), Uint8Array.of(0), u32(0), u32(feePpm), ...reserves.map(u64), u64(shares)]);
  return [[poolPlace(pool, null), content], ...providers.map((each): Entry => [poolPlace(pool, each.account), u64(each.shares)])];
}

function placeOf({ limit, tie, account, sequence }: Pick<ProvenOffer, "limit" | "tie" | "account" | "sequence">): Uint8Array {
  return concat([key(limit, 8), key(tie, 8), key((BigInt(account) << SEQUENCE_BITS) | sequence, 8)]);
}
