// Proofs of what blocks of a batch market did: asked of the venue, checked here against a block's hash.

import type { Client } from "./client.ts";
import { fromHex } from "./bytes.ts";
import { LightError, malformed, unhex } from "./light/bytes.ts";
import { type AccountState, LightBlock, type Offer, type Outcome, type Pool, type Trade } from "./light/block.ts";
import type { Batch, Offer as StandingOffer } from "./schema/index.ts";
import type { PoolName } from "./transactions.ts";

/** A block's hash from a source that you trust, or what gives it for a block's number. Without one the venue's own word is taken. */
export type Trusted = Uint8Array | ((block: bigint) => Uint8Array | Promise<Uint8Array>);

/** What a statement proves of a block. Where no hash was given to trust, compare `block.hash` with what other sources say of this block. */
export interface Proven<Value> {
  block: LightBlock;
  value: Value;
}

export interface Asked {
  /** The block's number. */
  block?: bigint;
  trusted?: Trusted;
}

interface Answer {
  block: string;
  light_header: string;
  light_roots: string;
  roots: { state: string };
}

/** `proofs` of a `BatchMarket`. Each throws a `LightError` where nothing is proven. */
export class Proofs {
  readonly #client: Client;
  readonly #batch: string;
  readonly #marketId: number;
  readonly #assets: readonly string[];

  constructor(client: Client, { name, market_id, assets }: Batch) {
    [this.#client, this.#batch, this.#marketId, this.#assets] = [client, name, market_id, assets];
  }

  /** What the venue says is the hash of a block: for others to compare with, or to trust. */
  async blockHash(block: bigint): Promise<Uint8Array> {
    const { roots } = await this.#client.call("getBatchesBatchBlocksBlockHeader", { path: { batch: this.#batch, block: String(block) } });
    return fromHex(roots.state);
  }

  /** The bits of the valuation of an asset in a block, or in the last one; only ratios of two mean something. `null` where it has none. */
  async price(asset: string, { block, trusted }: Asked = {}): Promise<Proven<bigint | null>> {
    const answer = await this.#client.call("getBatchesBatchProofsBlock", {
      path: { batch: this.#batch },
      query: { block: text(block), asset },
    });
    const opened = await this.#open(answer, trusted, block);
    return { block: opened, value: opened.price(this.#index(asset), statement(answer.price_statement)) };
  }

  /** What a pair traded in a block, or in the last one; `null` for nothing. */
  async trade(sell: string, buy: string, { block, trusted }: Asked = {}): Promise<Proven<Trade | null>> {
    const answer = await this.#client.call("getBatchesBatchProofsBlock", {
      path: { batch: this.#batch },
      query: { block: text(block), sell, buy },
    });
    const opened = await this.#open(answer, trusted, block);
    return { block: opened, value: opened.trade(this.#index(sell), this.#index(buy), statement(answer.trade_statement)) };
  }

  /** What a block did with a transaction of the account, or with the offer that it created: without `block` the newest that did. */
  async transaction(sequence: bigint, { block, trusted }: Asked = {}): Promise<Proven<Outcome | null>> {
    const path = { batch: this.#batch, sequence: String(sequence) };
    const [account, answer] = await Promise.all([
      this.#client.accountId(), this.#client.call("getBatchesBatchProofsTransactionSequence", { path, query: { block: text(block) } }),
    ]);
    const opened = await this.#open(answer, trusted, block);
    return { block: opened, value: opened.outcome(account, sequence, statement(answer.statement)) };
  }

  /**
   * The account after the last block, or that there is none of another number. A venue proves it as long as it is as that block left it:
   * `Refused` (109) says to ask again after the next block.
   */
  async account({ account, trusted }: { account?: number; trusted?: Trusted } = {}): Promise<Proven<AccountState | null>> {
    const account_id = account ?? (await this.#client.accountId());
    const answer = await this.#client.call("getBatchesBatchProofsAccountAccountId", { path: { batch: this.#batch, account_id } });
    const opened = await this.#open(answer, trusted);
    return { block: opened, value: opened.account(account_id, statement(answer.statement)) };
  }

  /** Whether an offer, a row of `offers`, stood after the last block; `null` where it did not. */
  async offer(of: StandingOffer, { account, trusted }: { account?: number; trusted?: Trusted } = {}): Promise<Proven<Offer | null>> {
    const account_id = account ?? (await this.#client.accountId());
    const { sequence, sell, buy, limit_bits, tie } = of;
    const query = { account_id, sequence, sell, buy, limit_bits, tie };
    const answer = await this.#client.call("getBatchesBatchProofsOffer", { path: { batch: this.#batch }, query });
    const opened = await this.#open(answer, trusted);
    const key = { limit: BigInt(limit_bits), tie: BigInt(tie), account: account_id, sequence: BigInt(sequence) };
    return { block: opened, value: opened.offer(this.#index(sell), this.#index(buy), key, statement(answer.statement)) };
  }

  /** What a pool had after the last block; `null` where there was none. */
  async pool(pool: PoolName, { trusted }: { trusted?: Trusted } = {}): Promise<Proven<Pool | null>> {
    const query = { account_id: pool.account, sequence: String(pool.sequence) };
    const answer = await this.#client.call("getBatchesBatchProofsPool", { path: { batch: this.#batch }, query });
    const opened = await this.#open(answer, trusted);
    return { block: opened, value: opened.pool(pool, statement(answer.statement)) };
  }

  /** The account's shares of a pool after the last block. */
  async shares(pool: PoolName, { trusted }: { trusted?: Trusted } = {}): Promise<Proven<bigint>> {
    const query = { account_id: pool.account, sequence: String(pool.sequence) };
    const [account, answer] = await Promise.all([
      this.#client.accountId(), this.#client.call("getBatchesBatchProofsShares", { path: { batch: this.#batch }, query }),
    ]);
    const opened = await this.#open(answer, trusted);
    return { block: opened, value: opened.poolShares(pool, account, statement(answer.statement)) };
  }

  async #open(answer: Answer, trusted: Trusted | undefined, asked?: bigint): Promise<LightBlock> {
    const number = BigInt(answer.block);
    const hash =
      trusted === undefined ? unhex(answer.roots.state, "a block's hash") : typeof trusted === "function" ? await trusted(number) : trusted;
    const block = new LightBlock(hash, unhex(answer.light_header, "a header"), unhex(answer.light_roots, "a block's roots"));
    if (block.market !== this.#marketId || block.number !== number || (asked !== undefined && block.number !== asked)) {
      throw new LightError(3, `the venue shows block ${block.number} of market ${block.market}, not what was asked for`);
    }
    return block;
  }

  #index(asset: string): number {
    const index = this.#assets.indexOf(asset);
    if (index < 0) throw new RangeError(`the market has no asset ${asset}: it has ${this.#assets.join(", ")}`);
    return index;
  }
}

function text(block: bigint | undefined): string | undefined {
  return block === undefined ? undefined : String(block);
}

function statement(hex: string | undefined): Uint8Array {
  if (hex === undefined) throw malformed("a statement");
  return unhex(hex, "a statement");
}
