// Reading bytes that anybody may have written, and hashing them: see docs/light-client.md.

import { blake3Keyed } from "../blake3.ts";
import { concat, fromHex } from "../bytes.ts";

/** Nothing is proven. `code` says why and stays the same over versions; docs/light-client.md lists them. */
export class LightError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.name = "LightError";
    this.code = code;
  }
}

export const malformed = (part: string): LightError => new LightError(2, `the bytes are not ${part}: ask for it again, or elsewhere`);

export const notProven = (): LightError =>
  new LightError(4, "the statement is not proven in this block: compare what is asked and which block, then ask elsewhere");

export const impossible = (): LightError =>
  new LightError(5, "what is proven cannot be so: the block's proposer errs, so do not trust it");

/** BLAKE3 in keyed mode; the key is the name, filled with spaces. */
export function hash(name: string, ...parts: Uint8Array[]): Uint8Array {
  const key = new TextEncoder().encode(name.padEnd(32, " "));
  return blake3Keyed(key, concat(parts));
}

/** What a venue says in hex, of this part of a proof. */
export function unhex(text: string, part: string): Uint8Array<ArrayBuffer> {
  try {
    return fromHex(text);
  } catch {
    throw malformed(part);
  }
}

export function u32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

/** A number with its highest byte first, as in the keys of proofs. */
export function key(value: bigint, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let at = length - 1, rest = value; at >= 0; at -= 1, rest >>= 8n) {
    bytes[at] = Number(rest & 255n);
  }
  return bytes;
}

/** What is left to be read of a part. */
export class Reader {
  rest: Uint8Array;
  readonly part: string;

  constructor(bytes: Uint8Array, part: string) {
    this.rest = bytes;
    this.part = part;
  }

  /** Of what follows version and kind; no more bytes than any valid one has. */
  static of(bytes: Uint8Array, kind: number, bytesMax: number, part: string): Reader {
    const reader = new Reader(bytes, part);
    reader.must(bytes.length <= bytesMax);
    const version = reader.byte();
    if (version !== 1) {
      throw new LightError(1, `the bytes of ${part} have version ${version}, unknown here: update this program`);
    }
    reader.must(reader.byte() === kind);
    return reader;
  }

  must(holds: boolean): void {
    if (!holds) throw malformed(this.part);
  }

  take(length: number): Uint8Array {
    this.must(length <= this.rest.length);
    const taken = this.rest.subarray(0, length);
    this.rest = this.rest.subarray(length);
    return taken;
  }

  byte(): number {
    return this.take(1)[0] ?? 0;
  }

  u16(): number {
    const [low = 0, high = 0] = this.take(2);
    return low | (high << 8);
  }

  u32(): number {
    const bytes = this.take(4);
    return new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  }

  u64(): bigint {
    const bytes = this.take(8);
    return new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true);
  }

  /** How many follow, of so many bytes each. */
  count(most: number, bytesEach: number): number {
    const count = this.u32();
    this.must(count <= most && count <= Math.floor(this.rest.length / bytesEach));
    return count;
  }

  end(): void {
    this.must(this.rest.length === 0);
  }
}
