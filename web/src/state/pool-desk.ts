// The pools of the chosen batch market and the account's shares of them, as the venue lists them: loaded after blocks while the batch view
// is shown.

import type { Client, Pool, PoolShare } from "walras";
import { client } from "../api/client.ts";
import { Signal, atMostEvery } from "../base/signal.ts";
import type { BatchDesk } from "./batch-desk.ts";
import { describeDrop } from "./offer-outcome.ts";
import type { Said } from "./outcome.ts";
import type { Sent } from "./own-offers.ts";
import type { CheckedPool } from "./pool.ts";

const LOAD_EVERY_MS = 1_000;

export class PoolDesk {
  /** `null` until it is loaded. */
  readonly list = new Signal<Pool[] | null>(null);
  /** By the pool's key. */
  readonly shares = new Signal<Map<string, PoolShare>>(new Map());
  /** The last outcome of a transaction sent from here. `why` is set where the batch left it out. */
  readonly ended = new Signal<{ sequence: string; block: string; why: Said | null } | null>(null);
  readonly #desk: BatchDesk;
  readonly #sent: Sent[] = [];
  #own: Client | null = null;
  #canAsk = false;
  #batch: string | null = null;
  readonly #load = atMostEvery(LOAD_EVERY_MS, () => void this.#reload());

  constructor(desk: BatchDesk) {
    this.#desk = desk;
  }

  setOwn(own: Client | null): void {
    this.#own = own;
    this.#canAsk = false;
    this.#sent.length = 0;
    this.shares.value = new Map();
  }

  onSignedIn(): void {
    this.#canAsk = true;
    this.#load();
  }

  /** The market whose pools are shown; `null` for none. */
  follow(batch: string | null): void {
    if (batch !== null && batch !== this.#batch) this.list.value = null;
    this.#batch = batch;
    this.#load();
  }

  onBlock(block: string): void {
    this.#load();
    if (this.#sent.some((sent) => BigInt(sent.block) <= BigInt(block))) void this.#askOutcomes(block);
  }

  async send({ operation, gives }: CheckedPool): Promise<Sent | null> {
    if (operation === null) return null;
    const sent = await this.#desk.send(operation, { gives });
    this.#sent.push(sent);
    // The block may have come before the answer.
    const last = this.#desk.market.value?.last?.block;
    if (last !== undefined) this.onBlock(last);
    return sent;
  }

  async #reload(): Promise<void> {
    const [batch, own] = [this.#batch, this.#own];
    if (batch === null) return;
    try {
      const pools = await client.pools(batch);
      if (batch === this.#batch) this.list.value = pools;
      if (own === null || !this.#canAsk) return;
      // Without pools here there are no shares here: the request is saved unless shares are shown.
      const shares = pools.length === 0 && this.shares.value.size === 0 ? [] : await own.shares();
      if (own === this.#own) this.shares.value = new Map(shares.map((share) => [poolKey(share), share]));
    } catch {
      // The masthead shows the connection's own state, and the next block asks again.
    }
  }

  async #askOutcomes(block: string): Promise<void> {
    const own = this.#own;
    if (own === null) return;
    const due = this.#sent.filter((sent) => BigInt(sent.block) <= BigInt(block));
    try {
      const outcomes = await own.transactions();
      for (const sent of due) {
        const of = outcomes.find((each) => each.batch === sent.batch && each.sequence === sent.sequence);
        // Waiting for one that the venue has forgotten is of no use.
        const isOver = of === undefined || of.status === "cleared" || of.status === "dropped";
        const at = this.#sent.indexOf(sent);
        if (!isOver || at < 0) continue;
        this.#sent.splice(at, 1);
        if (of === undefined) continue;
        const why = of.status === "dropped" ? describeDrop({ ...of, status: "dropped" }) : null;
        this.ended.value = { sequence: sent.sequence, block: of.block, why };
      }
      this.#load();
    } catch {
      // The next block asks again.
    }
  }
}

export function poolKey(pool: Pick<Pool, "batch" | "account_id" | "sequence">): string {
  return `${pool.batch} ${pool.account_id}:${pool.sequence}`;
}
