// How a request proves whose it is: an HMAC-SHA256 over a short text, by the browser's own SubtleCrypto.
// test/signing-vector.json holds a worked example that the server's tests check too.

export interface Key {
  /** Public part, begins with `hm_`. */
  readonly id: string;
  /** Secret part, base64url without padding; its decoded bytes are the HMAC key. */
  readonly secret: string;
}

export interface Signed {
  key: string;
  timestamp: string;
  nonce: string;
  signature: string;
}

/** A key that cannot be used, and what to do. */
export class KeyError extends Error {}

export function parseKey(text: string): Key {
  const match = /^\s*(?:.*#demo=)?((hm|ed)_[A-Za-z0-9_-]*)\.([A-Za-z0-9_-]+)\s*$/.exec(text);
  if (!match) {
    throw new KeyError("A key looks like hm_name.secret: copy it whole, as the venue printed it, or its address with #demo=.");
  }
  if (match[2] === "ed") {
    throw new KeyError("This page signs with HMAC keys (hm_...): create one, Ed25519 keys (ed_...) are for programs.");
  }
  const secret = match[3] as string;
  if (secret.length % 4 === 1) throw new KeyError("The secret is cut short: copy the key whole.");
  return { id: match[1] as string, secret };
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
  const secret = await crypto.subtle.importKey(
    "raw",
    fromBase64Url(key.secret),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["sign"],
  );
  const text = utf8.encode(signedText(method, path, timestamp, nonce, toHex(bodyHash)));
  const signature = await crypto.subtle.sign("HMAC", secret, text);
  return { key: key.id, timestamp, nonce, signature: toBase64Url(new Uint8Array(signature)) };
}

export function freshNonce(): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(18)));
}

export function toHex(bytes: ArrayBuffer): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function toBase64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}
