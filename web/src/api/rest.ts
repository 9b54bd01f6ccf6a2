// The few things the page asks for by plain HTTP: lists that do not change, the account's history on arrival, the figures of fair access,
// and orders with exits, which the venue enters together only there.

import type { AccountInfo, Batch, TransactionResult } from "./batch-types.ts";
import type { Cluster, FairAccess, Latency, NodeClock } from "./fair-types.ts";
import { type Key, freshNonce, sign } from "./signing.ts";
import { Stamps } from "./stamps.ts";
import { t } from "../texts/index.ts";
import type { Terms } from "./transactions.ts";
import {
  type ApiErrorBody, type Asset, type Fill, type Instrument, type OrderReply, type OrderRequest, OutcomeUnknown, type Position,
  Refusal, type Status,
} from "./types.ts";

/** Longest that a request waits until the venue takes its stamp. */
const WAIT_MS_MAX = 2_000;
/** What a venue says whose engine has an earlier version. */
const NEEDS_LATER_VERSION = 39;

const stamps = new Stamps();

/** Nanoseconds since the epoch by the venue's clock, as far as the page knows it. */
export function venueTimeNs(): bigint {
  return stamps.venueTimeNs();
}

/** What to sign a request with now. */
export function nextStamp(): string {
  return stamps.next().toString();
}

/** Learns how far this computer's clock is from the venue's: stamps more than 5 s behind or 1 s ahead are refused. */
export async function synchroniseClock(): Promise<void> {
  const sent = stamps.ownTimeNs();
  const { time_ns } = await get<{ time_ns: string }>("/v1/time");
  stamps.learnTime(BigInt(time_ns), (sent + stamps.ownTimeNs()) / 2n);
}

/**
 * After a stamp was refused as stale: makes the next one a stamp that the venue takes, waiting a little if need be. The refused request
 * was not taken, so it may be signed and sent once more.
 */
export async function prepareNextStamp(): Promise<void> {
  stamps.learnStart(BigInt((await get<Status>("/v1/status")).accepts_timestamps_from_ns));
  await synchroniseClock();
  const waitMs = stamps.waitMs();
  if (waitMs > WAIT_MS_MAX) {
    const seconds = Math.ceil(waitMs / 1_000);
    throw new Refusal({
      code: 105, name: STALE,
      message: t.errors.clockBack(String(seconds)),
    });
  }
  if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
}

/** Whether a request was refused for its stamp alone. */
export function isStale(error: unknown): error is Refusal {
  return error instanceof Refusal && error.reason === STALE;
}

const STALE = "TimestampStale";
const NOT_FOUND = "NotFound";

export async function fetchAssets(): Promise<Asset[]> {
  return (await get<{ assets: Asset[] }>("/v1/assets")).assets;
}

export async function fetchInstruments(): Promise<Instrument[]> {
  return (await get<{ instruments: Instrument[] }>("/v1/instruments")).instruments;
}

export async function fetchPositions(key: Key): Promise<Position[]> {
  return (await getSigned<{ positions: Position[] }>("/v1/account", key)).positions;
}

export async function fetchFills(key: Key): Promise<Fill[]> {
  return (await getSigned<{ fills: Fill[] }>("/v1/fills?limit=1000", key)).fills;
}

/** None where the venue is older than batch markets. */
export async function fetchBatches(): Promise<Batch[]> {
  try {
    return (await get<{ batches: Batch[] }>("/v1/batches")).batches;
  } catch (error) {
    if (error instanceof Refusal && error.reason === NOT_FOUND) return [];
    throw error;
  }
}

/** Only a venue with fair access has it, and then a cluster too. */
export function fetchFairAccess(): Promise<FairAccess> {
  return get<FairAccess>("/v1/fair-access");
}

export function fetchCluster(): Promise<Cluster> {
  return get<Cluster>("/v1/cluster");
}

export function fetchLatency(): Promise<Latency> {
  return get<Latency>("/v1/latency");
}

/** Only where something other than the computer's clock stamps. */
export function fetchClock(): Promise<NodeClock> {
  return get<NodeClock>("/v1/clock");
}

export async function fetchAccount(key: Key): Promise<AccountInfo> {
  return getSigned<AccountInfo>("/v1/account", key);
}

/** Hands in one signed transaction, in hex: its signature says whose it is. The block is the one that it is collected for. */
/** Hands a transaction in that `sign` makes with these terms; without them where the rules in force at the venue do not know any yet. */
export async function postWithTerms(
  batch: string, terms: Terms, sign: (terms: Terms) => Promise<string>,
): Promise<{ sequence: string; block: string }> {
  try {
    return await postTransaction(batch, await sign(terms));
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== NEEDS_LATER_VERSION) throw error;
    return postTransaction(batch, await sign({}));
  }
}

export async function postTransaction(batch: string, signed: string): Promise<{ sequence: string; block: string }> {
  const path = `/v1/batches/${encodeURIComponent(batch)}/transactions`;
  let response: Response;
  try {
    response = await fetch(path, {
      method: "POST", headers: { Accept: "application/json", "Content-Type": "application/json" }, body: JSON.stringify({ transactions: [signed] }),
    });
  } catch {
    throw new OutcomeUnknown(t.errors.outcomeUnknownOffer);
  }
  const { results: [result] } = await read<{ results: TransactionResult[] }>(path, response);
  if (!result) throw new Error(t.errors.noResult(path));
  if ("error" in result) throw new Refusal(result.error);
  return result;
}

/** Enters an order with its exits: all of them, or none. */
export function postOrder(key: Key, order: OrderRequest): Promise<OrderReply> {
  const path = "/v1/orders";
  const body = JSON.stringify(order);
  return signedOnce(async () => {
    const headers = { ...(await signedHeaders(key, "POST", path, body)), "Content-Type": "application/json" };
    let response: Response;
    try {
      response = await fetch(path, { method: "POST", headers, body });
    } catch {
      throw new OutcomeUnknown();
    }
    return read<OrderReply>(path, response);
  });
}

function getSigned<T>(path: string, key: Key): Promise<T> {
  return signedOnce(() => get<T>(path, key));
}

/** Signs once more where the stamp alone was refused. */
async function signedOnce<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!isStale(error)) throw error;
    await prepareNextStamp();
    return ask();
  }
}

async function signedHeaders(key: Key, method: string, path: string, body: string): Promise<Record<string, string>> {
  const signed = await sign(key, method, path, body, nextStamp(), freshNonce());
  return {
    Accept: "application/json",
    "Walras-Key": signed.key,
    "Walras-Timestamp": signed.timestamp,
    "Walras-Nonce": signed.nonce,
    "Walras-Signature": signed.signature,
  };
}

async function get<T>(path: string, key?: Key): Promise<T> {
  const headers = key ? await signedHeaders(key, "GET", path, "") : { Accept: "application/json" };
  return read(path, await fetch(path, { headers, cache: "no-store" }));
}

async function read<T>(path: string, response: Response): Promise<T> {
  const body = (await response.json().catch(() => null)) as (T & { error?: ApiErrorBody }) | null;
  if (response.ok && body !== null) return body;
  if (body?.error) throw new Refusal(body.error);
  throw new Error(t.errors.noReason(path, response.status));
}
