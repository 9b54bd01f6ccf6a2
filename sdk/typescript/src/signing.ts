// How a request proves whose it is: an HMAC-SHA256 or an Ed25519 signature over a short text, by SubtleCrypto, which browsers and Node
// have. test/signing-vector.json holds worked examples that the venue's tests check too. What batch markets want signed: transactions.ts.

import { fromBase64Url, toBase64Url, toHex } from "./bytes.ts";
import { KeyError } from "./errors.ts";

export interface Key {
  /** Public part, begins with `hm_` (HMAC-SHA256) or `ed_` (Ed25519). */
  readonly id: string;
  /** Secret part, base64url without padding: the HMAC key's bytes, or the 32 of the Ed25519 seed. */
  readonly secret: string;
}

export interface Signed {
  key: string;
  timestamp: string;
  nonce: string;
  signature: string;
}

const SEED_BYTES = 32;
/** What PKCS #8 (RFC 8410) writes before the 32 bytes of an Ed25519 seed: SubtleCrypto takes the seed in no other form but this and JWK. */
const PKCS8_HEAD = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

export function isEd25519(key: Key): boolean {
  return key.id.startsWith("ed_");
}

/** The key of a key file's line, `<id>.<secret>`, or of an address that ends in `#demo=` and one. Throws a {@link KeyError}. */
export function parseKey(text: string): Key {
  const match = /^\s*(?:.*#demo=)?((?:hm|ed)_[A-Za-z0-9_-]*)\.([A-Za-z0-9_-]+)\s*$/.exec(text);
  if (!match) throw new KeyError("shape");
  const key = { id: match[1] as string, secret: match[2] as string };
  if (key.secret.length % 4 === 1) throw new KeyError("cut");
  if (isEd25519(key) && fromBase64Url(key.secret).length !== SEED_BYTES) throw new KeyError("length");
  return key;
}

/** A new Ed25519 key. `keyLine` of it is what a key file holds; `publicKeyHex` of it is for others. */
export function newKey(): Key {
  return {
    id: `ed_${toBase64Url(crypto.getRandomValues(new Uint8Array(12)))}`,
    secret: toBase64Url(crypto.getRandomValues(new Uint8Array(SEED_BYTES))),
  };
}

/** The line of a key file. */
export function keyLine({ id, secret }: Key): string {
  return `${id}.${secret}`;
}

export function signedText(method: string, path: string, timestamp: string, nonce: string, bodyHashHex: string): string {
  return `walras-v1\n${method}\n${path}\n${timestamp}\n${nonce}\n${bodyHashHex}`;
}

export async function sign(
  key: Key,
  method: string,
  path: string,
  body: string,
  timestamp: string,
  nonce: string,
): Promise<Signed> {
  const utf8 = new TextEncoder();
  const bodyHash = await crypto.subtle.digest("SHA-256", utf8.encode(body));
  const text = utf8.encode(signedText(method, path, timestamp, nonce, toHex(new Uint8Array(bodyHash))));
  return { key: key.id, timestamp, nonce, signature: toBase64Url(await signBytes(key, text)) };
}

/** The key's signature over these bytes. Throws a {@link KeyError} where the runtime cannot make one. */
export async function signBytes(key: Key, bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const secret = isEd25519(key) ? await importSeed(key, false) : await crypto.subtle.importKey(
    "raw", fromBase64Url(key.secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"],
  );
  return new Uint8Array(await crypto.subtle.sign(secret.algorithm.name, secret, bytes));
}

/** The public half of an Ed25519 key, in hex. Throws a {@link KeyError} where the runtime cannot compute it. */
export async function publicKeyHex(key: Key): Promise<string> {
  if (!isEd25519(key)) throw new KeyError("not_ed25519");
  const { x } = await crypto.subtle.exportKey("jwk", await importSeed(key, true));
  return toHex(fromBase64Url(x ?? ""));
}

async function importSeed(key: Key, extractable: boolean): Promise<CryptoKey> {
  try {
    const seed = Uint8Array.from([...PKCS8_HEAD, ...fromBase64Url(key.secret)]);
    return await crypto.subtle.importKey("pkcs8", seed, { name: "Ed25519" }, extractable, ["sign"]);
  } catch {
    throw new KeyError("no_ed25519");
  }
}

export function freshNonce(): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(18)));
}
