// HTTP to the venue's replicas, of which one that answers is used, and the time to sign requests by.

import { BadAnswer, ClockSetBack, NotConnected, OutcomeUnknown, Refused } from "./errors.ts";
import type { ClusterView, Error as Refusal, Status, Time } from "./schema/index.ts";
import { type Key, freshNonce, sign } from "./signing.ts";
import { Stamps } from "./stamps.ts";

/** Longest that a request waits until the venue takes its stamp. */
const STAMP_WAIT_MS_MAX = 2_000;
const TIMESTAMP_STALE = 105;
const NONCE_REUSED = 106;
const NOT_LEADER = 116;
const LEADER_PAUSE_MS = 50;
/** Causes of a failed request that say that nothing was sent. Browsers give none. */
const UNSENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

export interface TransportOptions {
  urls: readonly string[];
  timeoutMs: number;
  fetch: typeof fetch;
}

export interface Ask {
  method: string;
  path: string;
  body?: object | undefined;
  /** Signs the request. */
  key?: Key | null | undefined;
  /** Everything that was acknowledged before is seen, by whichever replica. */
  isFresh?: boolean | undefined;
}

function isCopy(error: unknown): error is Refused {
  return error instanceof Refused && error.code === NONCE_REUSED;
}

/** Whether a request was refused for its stamp alone: it was not taken, and may be signed again. */
export function isStale(error: unknown): error is Refused {
  return error instanceof Refused && error.code === TIMESTAMP_STALE && !(error instanceof ClockSetBack);
}

export function isNotLeader(error: unknown): error is Refused {
  return error instanceof Refused && error.code === NOT_LEADER;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export class Transport {
  readonly stamps = new Stamps();
  readonly #urls: readonly string[];
  readonly #timeoutMs: number;
  readonly #fetch: typeof fetch;
  #current = 0;

  constructor({ urls, timeoutMs, fetch }: TransportOptions) {
    this.#urls = urls.map((url) => checkedUrl(url));
    if (this.#urls.length === 0) throw new RangeError("no address: give the URL of a replica, such as http://127.0.0.1:7070");
    this.#timeoutMs = timeoutMs;
    this.#fetch = fetch;
  }

  /** The address that is used now. */
  get url(): string {
    return this.#urls[this.#current] ?? "";
  }

  get hasOthers(): boolean {
    return this.#urls.length > 1;
  }

  /** Goes on to another replica, to `leader` where that is one of ours, unless somebody did already. */
  leave(url: string, leader: string | null = null): void {
    if (this.url !== url) return;
    const to = leader === null ? -1 : this.#urls.indexOf(leader.replace(/\/+$/, ""));
    this.#current = to >= 0 ? to : (this.#current + 1) % this.#urls.length;
  }

  /**
   * One request, and its answer. A GET is sent again where its answer is lost, any other one only where it certainly was not taken: its
   * stamp was stale, another replica leads, or no replica could be reached.
   */
  async ask<Answer>(asked: Ask): Promise<Answer> {
    // Each replica has a start of its own.
    let restampsLeft = this.#urls.length;
    for (let attempt = 1; ; attempt += 1) {
      const { url } = this;
      const isLast = attempt >= 2 * this.#urls.length;
      try {
        return await this.once<Answer>(asked);
      } catch (thrown) {
        const error = isCopy(thrown) ? await this.#meantByCopy(asked) : thrown;
        if (isStale(error) && asked.key && restampsLeft > 0) {
          restampsLeft -= 1;
          await this.prepareNextStamp();
        } else if (isNotLeader(error) && this.hasOthers && !isLast) {
          this.leave(url, error.leader?.url);
          await pause(LEADER_PAUSE_MS);
        } else if (error instanceof NotConnected && !isLast) {
          this.leave(url);
        } else {
          throw error;
        }
      }
    }
  }

  /**
   * `fetch` by itself sends the same bytes once more, after a 421 (as its standard says) and after a connection that broke; then the venue
   * answers the copy, as one. So `NonceReused` means that another replica leads where this one takes no commands, and otherwise that the
   * answer is lost.
   */
  async #meantByCopy({ method, path }: Ask): Promise<Error> {
    if (method === "GET") return new NotConnected(`${this.url}${path}: the answer was lost`);
    const view = await this.once<ClusterView>({ method: "GET", path: "/v1/cluster" }).catch(() => null);
    if (view === null || view.takes_commands) {
      return new OutcomeUnknown(`${method} ${path}: the answer was lost: look whether it took effect before sending it again`);
    }
    const address = view.replicas.find(({ replica }) => replica === view.leader)?.http ?? null;
    const leader = view.leader === null || address === null ? null : { replica: view.leader, url: `http://${address}` };
    return new Refused({
      code: NOT_LEADER, name: "NotLeader", message: "another replica takes commands: send it there, or try again after the election",
      leader,
    });
  }

  /** One attempt. */
  async once<Answer>({ method, path, body, key, isFresh = false }: Ask): Promise<Answer> {
    const text = body === undefined ? "" : JSON.stringify(body);
    const headers: Record<string, string> = { Accept: "application/json" };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (isFresh) headers["Walras-Consistency"] = "linearizable";
    if (key) Object.assign(headers, await signedHeaders(key, method, path, text, this.stamps.next().toString()));
    const { url } = this;
    let response: Response;
    let found: unknown;
    try {
      response = await this.#fetch(url + path, {
        method, headers, cache: "no-store", signal: AbortSignal.timeout(this.#timeoutMs), ...(body !== undefined && { body: text }),
      });
      found = await response.json().catch((error: unknown) => {
        if (error instanceof SyntaxError) return null;
        throw error;
      });
    } catch (error) {
      throw lost(method, url + path, error);
    }
    return read<Answer>(method, path, response, found);
  }

  /** Learns how far this computer's clock is from the venue's, which takes stamps at most 5 s behind its own and 1 s ahead of it. */
  async synchronise(): Promise<void> {
    const sentNs = this.stamps.ownTimeNs();
    const { time_ns } = await this.once<Time>({ method: "GET", path: "/v1/time" });
    this.stamps.learnTime(BigInt(time_ns), (sentNs + this.stamps.ownTimeNs()) / 2n);
  }

  /** After a stamp was refused as stale: makes the next one a stamp that the venue takes, waiting a little if need be. */
  async prepareNextStamp(): Promise<void> {
    const { accepts_timestamps_from_ns } = await this.once<Status>({ method: "GET", path: "/v1/status" });
    this.stamps.learnStart(BigInt(accepts_timestamps_from_ns));
    await this.synchronise();
    const waitMs = this.stamps.waitMs();
    if (waitMs > STAMP_WAIT_MS_MAX) throw new ClockSetBack(waitMs);
    if (waitMs > 0) await pause(waitMs);
  }
}

function checkedUrl(url: string): string {
  if (!/^https?:\/\/[^/]/.test(url)) throw new RangeError(`"${url}" is no address of a venue: give one such as http://127.0.0.1:7070`);
  return url.replace(/\/+$/, "");
}

async function signedHeaders(key: Key, method: string, path: string, body: string, stamp: string): Promise<Record<string, string>> {
  const signed = await sign(key, method, path, body, stamp, freshNonce());
  return {
    "Walras-Key": signed.key, "Walras-Timestamp": signed.timestamp, "Walras-Nonce": signed.nonce, "Walras-Signature": signed.signature,
  };
}

/** No answer came. */
function lost(method: string, address: string, error: unknown): Error {
  const cause = (error as { cause?: { code?: string } }).cause?.code ?? "";
  const why = cause === "" ? (error as Error).message : cause;
  if (method === "GET" || UNSENT.has(cause)) {
    return new NotConnected(`${address}: no answer (${why}): is the venue running, and is this its address?`);
  }
  return new OutcomeUnknown(`${method} ${address}: no answer (${why}): look whether it took effect before sending it again`);
}

function read<Answer>(method: string, path: string, response: Response, found: unknown): Answer {
  const isObject = typeof found === "object" && found !== null;
  if (response.ok && isObject) return found as Answer;
  const refusal = isObject && "error" in found ? found as Refusal : null;
  if (refusal) throw new Refused(refusal.error, refusal.log_index);
  // Something between the venue and us answered: the venue may have taken the request.
  if (method !== "GET") {
    throw new OutcomeUnknown(`${method} ${path}: status ${response.status}, and no answer of a venue: look whether it took effect`);
  }
  throw new BadAnswer(path, response.status);
}
