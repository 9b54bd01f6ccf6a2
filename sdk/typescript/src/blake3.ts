// BLAKE3 in keyed mode, 32 bytes of output: what proofs of batch markets are hashed with. Written from the paper (O'Connor, Aumasson,
// Neves, Wilcox-O'Hearn: "BLAKE3: one function, fast everywhere", 2021), so that the package needs no other; its test compares it with
// @noble/hashes.

const IV = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a] as const;
const PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8] as const;
const [BLOCK_BYTES, CHUNK_BYTES] = [64, 1_024];
const [CHUNK_START, CHUNK_END, PARENT, ROOT, KEYED] = [1, 2, 4, 8, 16];
const ROUNDS = 7;

/** The hash of `bytes` under a key of 32 bytes. */
export function blake3Keyed(key: Uint8Array, bytes: Uint8Array): Uint8Array {
  if (key.length !== 32) throw new RangeError(`a key of ${key.length} bytes: BLAKE3 takes 32`);
  const words = hashOf(wordsOf(key, 8), bytes, 0, true);
  const hash = new Uint8Array(32);
  const view = new DataView(hash.buffer);
  words.forEach((word, at) => view.setUint32(4 * at, word, true));
  return hash;
}

/** The chaining value of a subtree that begins with this chunk. */
function hashOf(key: Uint32Array, bytes: Uint8Array, firstChunk: number, isRoot: boolean): Uint32Array {
  if (bytes.length <= CHUNK_BYTES) return chunkHash(key, bytes, firstChunk, isRoot);
  const chunks = Math.ceil(bytes.length / CHUNK_BYTES);
  // The left subtree is the largest whole one that leaves something for the right.
  const left = 2 ** (31 - Math.clz32(chunks - 1));
  const block = new Uint32Array(16);
  block.set(hashOf(key, bytes.subarray(0, left * CHUNK_BYTES), firstChunk, false));
  block.set(hashOf(key, bytes.subarray(left * CHUNK_BYTES), firstChunk + left, false), 8);
  return compress(key, block, 0, BLOCK_BYTES, PARENT | KEYED | (isRoot ? ROOT : 0));
}

function chunkHash(key: Uint32Array, bytes: Uint8Array, chunk: number, isRoot: boolean): Uint32Array {
  const blocks = Math.max(1, Math.ceil(bytes.length / BLOCK_BYTES));
  let value = key;
  for (let at = 0; at < blocks; at += 1) {
    const block = bytes.subarray(at * BLOCK_BYTES, (at + 1) * BLOCK_BYTES);
    const isLast = at === blocks - 1;
    const flags = KEYED | (at === 0 ? CHUNK_START : 0) | (isLast ? CHUNK_END | (isRoot ? ROOT : 0) : 0);
    value = compress(value, wordsOf(block, 16), chunk, block.length, flags);
  }
  return value;
}

/** Little endian, filled with zeros. */
function wordsOf(bytes: Uint8Array, count: number): Uint32Array {
  const words = new Uint32Array(count);
  bytes.forEach((byte, at) => {
    words[at >> 2] = (words[at >> 2] ?? 0) | (byte << (8 * (at & 3)));
  });
  return words;
}

function compress(value: Uint32Array, block: Uint32Array, counter: number, length: number, flags: number): Uint32Array {
  const v = new Uint32Array(16);
  v.set(value);
  v.set([...IV, counter, Math.floor(counter / 2 ** 32), length, flags], 8);
  let m = block;
  for (let round = 0; round < ROUNDS; round += 1) {
    const w = m;
    const word = (at: number): number => w[at] ?? 0;
    mix(v, 0, 4, 8, 12, word(0), word(1));
    mix(v, 1, 5, 9, 13, word(2), word(3));
    mix(v, 2, 6, 10, 14, word(4), word(5));
    mix(v, 3, 7, 11, 15, word(6), word(7));
    mix(v, 0, 5, 10, 15, word(8), word(9));
    mix(v, 1, 6, 11, 12, word(10), word(11));
    mix(v, 2, 7, 8, 13, word(12), word(13));
    mix(v, 3, 4, 9, 14, word(14), word(15));
    m = Uint32Array.from(PERMUTATION, word);
  }
  return v.slice(0, 8).map((half, at) => half ^ (v[at + 8] ?? 0));
}

/** The quarter round; the array cuts sums to 32 bits. */
function mix(v: Uint32Array, a: number, b: number, c: number, d: number, x: number, y: number): void {
  const at = (place: number): number => v[place] ?? 0;
  v[a] = at(a) + at(b) + x;
  v[d] = rotated(at(d) ^ at(a), 16);
  v[c] = at(c) + at(d);
  v[b] = rotated(at(b) ^ at(c), 12);
  v[a] = at(a) + at(b) + y;
  v[d] = rotated(at(d) ^ at(a), 8);
  v[c] = at(c) + at(d);
  v[b] = rotated(at(b) ^ at(c), 7);
}

function rotated(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}
