// The few things the page asks for by plain HTTP: lists that do not change, and the account's history on arrival.

import { type Key, freshNonce, sign } from "./signing.ts";
import { type ApiErrorBody, type Asset, type Fill, type Instrument, type Position, Refusal } from "./types.ts";

let clockOffsetNs = 0n;

/** Nanoseconds since the epoch by the venue's clock, as far as the page knows it. */
export function venueTimeNs(): bigint {
  return BigInt(Date.now()) * 1_000_000n + clockOffsetNs;
}

/** Learns how far this computer's clock is from the venue's: signatures are taken within 5 s only. */
export async function synchroniseClock(): Promise<void> {
  const sent = BigInt(Date.now());
  const { time_ns } = await get<{ time_ns: string }>("/v1/time");
  const middle = (sent + BigInt(Date.now())) / 2n;
  clockOffsetNs = BigInt(time_ns) - middle * 1_000_000n;
}

export async function fetchAssets(): Promise<Asset[]> {
  return (await get<{ assets: Asset[] }>("/v1/assets")).assets;
}

export async function fetchInstruments(): Promise<Instrument[]> {
  return (await get<{ instruments: Instrument[] }>("/v1/instruments")).instruments;
}

export async function fetchPositions(key: Key): Promise<Position[]> {
  return (await get<{ positions: Position[] }>("/v1/account", key)).positions;
}

export async function fetchFills(key: Key): Promise<Fill[]> {
  return (await get<{ fills: Fill[] }>("/v1/fills?limit=100", key)).fills;
}

async function get<T>(path: string, key?: Key): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (key) {
    const signed = await sign(key, "GET", path, "", venueTimeNs().toString(), freshNonce());
    headers["Walras-Key"] = signed.key;
    headers["Walras-Timestamp"] = signed.timestamp;
    headers["Walras-Nonce"] = signed.nonce;
    headers["Walras-Signature"] = signed.signature;
  }
  const response = await fetch(path, { headers, cache: "no-store" });
  const body = (await response.json().catch(() => null)) as (T & { error?: ApiErrorBody }) | null;
  if (response.ok && body !== null) return body;
  if (body?.error) throw new Refusal(body.error);
  throw new Error(`The venue answered ${path} with status ${response.status} and no reason: look at its log.`);
}
