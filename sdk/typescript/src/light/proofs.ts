// Proofs of what tries and account trees hold: the root that each leads to.

import { concat } from "../bytes.ts";
import { Reader, hash, notProven, u32 } from "./bytes.ts";

/** What hashes to a root, with the claim that there is this value under a key, or none. */
type Value = Uint8Array | null;

interface Step {
  depth: number;
  digit: number;
  head: Uint8Array;
  before: Uint8Array[];
  after: Uint8Array[];
}

export interface TrieProof {
  keyBytes: number;
  count: number;
  /** What the way leads to: the claimed entry, nothing, or another entry. */
  end: "entry" | "nothing" | Uint8Array;
  way: Step[];
}

/** No proof has more bytes, by the bytes of a key. */
export function trieProofBytesMax(keyBytes: number): number {
  const entry = keyBytes + 1 + 255;
  return 9 + entry + 2 * keyBytes * (6 + 16 * entry);
}

function bits(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) count += 1;
  return count;
}

function readEntry(r: Reader, keyBytes: number): Uint8Array {
  r.must(r.rest.length > keyBytes);
  return r.take(keyBytes + 1 + (r.rest[keyBytes] ?? 0));
}

function readStep(r: Reader, keyBytes: number, isLast: boolean, end: TrieProof["end"], above: number): Step {
  const [depth, digit] = [r.byte(), r.byte()];
  const masks = r.take(4);
  const mask = (at: number): number => (masks[at] ?? 0) | ((masks[at + 1] ?? 0) << 8);
  const [children, inner] = [mask(0), mask(2)];
  r.must(depth < 2 * keyBytes && digit < 16 && bits(children) >= 2 && (inner & ~children) === 0);
  const step: Step = { depth, digit, head: concat([Uint8Array.of(keyBytes, depth), masks]), before: [], after: [] };
  for (let child = 0; child < 16; child += 1) {
    if (child === digit || ((children >> child) & 1) === 0) continue;
    const sibling = (inner >> child) & 1 ? r.take(32) : readEntry(r, keyBytes);
    (child < digit ? step.before : step.after).push(sibling);
  }
  const [isChild, isInner] = [((children >> digit) & 1) === 1, ((inner >> digit) & 1) === 1];
  r.must(depth > above);
  r.must(isLast ? (end === "nothing" ? !isChild : isChild && !isInner) : isInner);
  return step;
}

/** What it returns need not be true: `trieRoot` says of which trie it would be. */
export function readTrieProof(bytes: Uint8Array, keyBytes: number, part: string): TrieProof {
  const r = Reader.of(bytes, 1, bytes.length, part);
  r.must(r.byte() === keyBytes);
  const count = r.u32();
  const kind = r.byte();
  r.must(kind <= 2);
  const end = kind === 0 ? "entry" : kind === 1 ? "nothing" : readEntry(r, keyBytes);
  const steps = r.byte();
  const way: Step[] = [];
  for (let left = steps - 1; left >= 0; left -= 1) {
    way.push(readStep(r, keyBytes, left === 0, end, way.at(-1)?.depth ?? -1));
  }
  r.must(count === 0 ? way.length === 0 && end === "nothing" : count === 1 ? way.length === 0 && end !== "nothing" : way.length > 0);
  r.end();
  return { keyBytes, count, end, way };
}

/** The root of the trie in which the claim about a key holds, by this proof. */
export function trieRoot(proof: TrieProof, key: Uint8Array, value: Value): Uint8Array {
  let below: Uint8Array;
  if (value !== null) {
    if (proof.end !== "entry") throw notProven();
    below = concat([key, Uint8Array.of(value.length), value]);
  } else if (proof.end === "nothing") {
    below = new Uint8Array();
  } else {
    if (proof.end === "entry" || key.every((byte, at) => byte === proof.end[at])) throw notProven();
    below = proof.end;
  }
  for (const step of proof.way.toReversed()) {
    const byte = key[step.depth >> 1] ?? 0;
    if ((step.depth % 2 === 0 ? byte >> 4 : byte & 15) !== step.digit) throw notProven();
    below = hash("walras merkle 1 trie node", step.head, ...step.before, below, ...step.after);
  }
  return hash("walras merkle 1 trie root", Uint8Array.of(proof.keyBytes), u32(proof.count), below);
}

export interface OfferProof {
  pair: TrieProof;
  offer: TrieProof | null;
}

export function readOfferProof(bytes: Uint8Array, part: string): OfferProof {
  const r = Reader.of(bytes, 3, bytes.length, part);
  const pair = readTrieProof(r.take(r.u32()), 4, part);
  const offer = r.rest.length === 0 ? null : readTrieProof(r.rest, 24, part);
  r.must(offer === null || offer.count > 0);
  return { pair, offer };
}

/** The root of a market's offers in which the claim about one holds. */
export function offerRoot(proof: OfferProof, pair: Uint8Array, key: Uint8Array, value: Value): Uint8Array {
  if (proof.offer === null && value !== null) throw notProven();
  return trieRoot(proof.pair, pair, proof.offer === null ? null : trieRoot(proof.offer, key, value));
}

export interface AccountProof {
  count: number;
  hashes: Uint8Array[];
}

const FAN_OUT = 16;

export function readAccountProof(bytes: Uint8Array, part: string): AccountProof {
  const r = Reader.of(bytes, 2, bytes.length, part);
  const count = r.u32();
  r.must(r.rest.length % 32 === 0 && r.rest.length / 32 <= 8 * (FAN_OUT - 1));
  const hashes: Uint8Array[] = [];
  while (r.rest.length > 0) hashes.push(r.take(32));
  return { count, hashes };
}

/** The root of the accounts among which one has this content, or among which it is not. */
export function accountRoot(proof: AccountProof, account: number, content: Value): Uint8Array {
  const root = (...top: Uint8Array[]): Uint8Array => hash("walras merkle 1 account root", u32(proof.count), ...top);
  if (content === null) {
    if (account < proof.count || proof.hashes.length !== (proof.count > 0 ? 1 : 0)) throw notProven();
    return root(...proof.hashes);
  }
  if (account >= proof.count) throw notProven();
  let [node, at, rest] = [hash("walras merkle 1 account leaf", content), account, proof.hashes];
  for (let length = proof.count; length > 1; length = Math.ceil(length / FAN_OUT)) {
    const first = at - (at % FAN_OUT);
    const siblings = Math.min(FAN_OUT, length - first) - 1;
    if (rest.length < siblings) throw notProven();
    const place = at - first;
    node = hash("walras merkle 1 account node", ...rest.slice(0, place), node, ...rest.slice(place, siblings));
    rest = rest.slice(siblings);
    at = Math.floor(at / FAN_OUT);
  }
  if (rest.length > 0) throw notProven();
  return root(node);
}
