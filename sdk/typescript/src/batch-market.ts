// One account's view of a batch market: reads, and transactions numbered, signed and sent until they are answered. docs/batch-markets.md
// says what such a market does.

import { Proofs } from "./batch-proofs.ts";
import { ANY_PRICE, costOf, limitOfDecimal } from "./batch-price.ts";
import { fromHex } from "./bytes.ts";
import { type Client } from "./client.ts";
import { type Exact, exactText, parseUnits } from "./decimal.ts";
import { BadAnswer, DecimalError, KeyError, NotConnected, OutcomeUnknown, Refused } from "./errors.ts";
import type { Asset, Batch, BatchBlock, BatchCollected, BatchDemand, Offer, Pool, PoolShare, TransactionOutcome } from "./schema/index.ts";
import { type Key, parseKey, publicKeyHex } from "./signing.ts";
import {
  type Operation, type PoolName, type PoolRule, type Terms, blocksOfTwoMinutes, encodeTransaction, lastOfBlocks, placeInChain,
  signTransaction,
} from "./transactions.ts";
import { isNotLeader, pause } from "./transport.ts";

/** Refusals after which a transaction is sent again under its number: it is in no batch yet. 50: the batch is full. */
const AGAIN: ReadonlySet<number> = new Set([50, 92, 105, 107, 110, 111, 112, 116]);
/** With one of these it may be in the log all the same. */
const UNCERTAIN: ReadonlySet<number> = new Set([110, 111, 116]);
/** After a retry: it was taken the first time, if the account's transactions have it. */
const TAKEN: ReadonlySet<number> = new Set([12, 27, 32]);
/** Refusals of an end: its block has passed, or an engine of an earlier version knows no ends. */
const [EXPIRED, NEEDS_LATER_VERSION] = [27, 39];
/** The block that collects is asked for again after this part of the time that a transaction counts. */
const STALE_PART = 12;
/** An account's numbers that one batch takes. */
const NUMBERS_MAX = 64;
const PATIENCE_MS = 60_000;
const [PAUSE_MS, PAUSE_MS_MAX] = [50, 1_000];
const [LOOK_MS_LEAST, LOOK_MS_MOST] = [10, 500];
const AMOUNT_END = 1n << 63n;

export interface BatchOptions {
  /** Signs the transactions: an Ed25519 key; the client's without it. */
  key?: Key | string;
  /** How long transactions without an answer are sent again. */
  patienceMs?: number;
  /**
   * How many blocks may have a transaction whose call has no `until`, the one that collects among them; as many as the market has in about
   * two minutes without it; `null`: any block may have it.
   */
  blocks?: number | null;
}

/** A transaction is in a batch and in the log. What its block does with it, {@link BatchMarket.wait} says. */
export interface Collected {
  /** Its number among the account's. */
  sequence: bigint;
  /** The block that its batch becomes. */
  block: bigint;
}

export interface Ends {
  /**
   * The last block that may have the transaction, such as one of {@link BatchMarket.lastBlock}; without it that of the market's `blocks`;
   * `null`: any block may have it.
   */
  until?: bigint | null;
}

/** What was known at this time of the block that collects. */
interface Head {
  collecting: bigint;
  intervalMs: number;
  atMs: number;
}

/**
 * Made by `Client.batch`. Amounts are exact, in whole units of their assets. It counts the account's numbers by itself: another program
 * that sends for the same account at the same time needs a range of its own.
 */
export class BatchMarket {
  readonly client: Client;
  readonly name: string;
  /** Its number at the venue. */
  readonly id: number;
  /** What is signed with each transaction, so that it counts in this market alone: 32 bytes in hex. */
  readonly domain: string;
  /** In the order in which proofs count them. */
  readonly assets: readonly string[];
  /** What blocks did, proven. */
  readonly proofs: Proofs;
  readonly #key: Key | null;
  readonly #patienceMs: number;
  readonly #blocks: number | null | undefined;
  readonly #known: ReadonlyMap<string, Asset>;
  #head: Head;
  #next: bigint | null = null;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(client: Client, batch: Batch, assets: Asset[], { key, patienceMs = PATIENCE_MS, blocks }: BatchOptions) {
    [this.client, this.name, this.id, this.domain, this.assets] = [client, batch.name, batch.market_id, batch.domain, batch.assets];
    this.#key = key === undefined ? client.key : typeof key === "string" ? parseKey(key) : key;
    if (blocks != null) lastOfBlocks(1n, blocks);
    [this.#patienceMs, this.#blocks, this.#head] = [patienceMs, blocks, headOf(batch)];
    this.#known = new Map(assets.map((asset) => [asset.symbol, asset]));
    this.proofs = new Proofs(client, batch);
  }

  static async open(client: Client, name: string, options: BatchOptions): Promise<BatchMarket> {
    const [batches, assets] = await Promise.all([client.batches(), client.assets()]);
    const found = batches.find((batch) => batch.name.toLowerCase() === name.toLowerCase());
    if (!found) {
      throw new RangeError(`the venue has no batch market ${name}: it has ${batches.map((batch) => batch.name).join(", ") || "none"}`);
    }
    return new BatchMarket(client, found, assets, options);
  }

  // What everybody sees.

  /** Phase, interval, fees, what it collects, its last block. */
  async status(): Promise<Batch> {
    const found = (await this.client.batches()).find(({ market_id }) => market_id === this.id);
    if (!found) throw new RangeError(`the venue has no batch market ${this.name} any more`);
    this.#head = headOf(found);
    return found;
  }

  /** The last blocks, newest first, with their prices, volumes and quality. */
  async blocks(limit?: number): Promise<BatchBlock[]> {
    return (await this.client.call("getBatchesBatchBlocks", { path: { batch: this.name }, query: { limit } })).blocks;
  }

  /** The last block's prices: what a whole unit of each asset is worth in the numeraire; `null` without one, none before a block. */
  async prices(): Promise<Record<string, string | null>> {
    return (await this.blocks(1))[0]?.prices ?? {};
  }

  /** Supply and demand of a pair around its last price. */
  demand(sell: string, buy: string, spanPpm?: number): Promise<BatchDemand> {
    return this.client.call("getBatchesBatchDemand", { path: { batch: this.name }, query: { sell, buy, span_ppm: spanPpm } });
  }

  pools(): Promise<Pool[]> {
    return this.client.pools(this.name);
  }

  // The account.

  /** The account's offers that stand in this market, oldest first. */
  async offers(): Promise<Offer[]> {
    return (await this.client.offers({ isFresh: true })).filter(({ batch }) => batch === this.name);
  }

  /** The account's shares of this market's pools, and what they are worth. */
  async shares(): Promise<PoolShare[]> {
    return (await this.client.shares({ isFresh: true })).filter(({ batch }) => batch === this.name);
  }

  /** What came of a transaction so far; `null` where it is none of the account's last 64, and none whose offer stands or ended late. */
  async outcome(sequence: bigint): Promise<TransactionOutcome | null> {
    const outcomes = await this.client.transactions({ sequence, isFresh: true });
    return outcomes.find((each) => each.batch === this.name && BigInt(each.sequence) === sequence) ?? null;
  }

  /**
   * What came of a transaction once its block is cleared, or the transaction dropped: `status` says which. Throws where that takes longer
   * than `timeoutMs`; it may still come.
   */
  async wait(sequence: bigint, timeoutMs = PATIENCE_MS): Promise<TransactionOutcome> {
    const endsMs = performance.now() + timeoutMs;
    for (;;) {
      const outcome = await this.outcome(sequence);
      if (outcome === null) {
        throw new RangeError(`no transaction ${sequence} is among the account's last 64: proofs.transaction reaches further back`);
      }
      if (outcome.status === "cleared" || outcome.status === "dropped") return outcome;
      if (performance.now() >= endsMs) {
        throw new Error(`transaction ${sequence} is ${outcome.status} after ${timeoutMs / 1_000} s: look again with outcome`);
      }
      await pause(Math.min(Math.max(this.#head.intervalMs / 4, LOOK_MS_LEAST), LOOK_MS_MOST));
    }
  }

  // Transactions.

  /**
   * The last of the next `blocks` blocks, as the venue says now: for `until`. The first of them is the one that collects. Without a number
   * they are as many as the market has in about two minutes.
   */
  async lastBlock(blocks?: number): Promise<bigint> {
    await this.status();
    return this.#lastOf(blocks);
  }

  /** An amount in smallest units. */
  units(asset: string, amount: Exact): bigint {
    const units = parseUnits(exactText("amount", amount), this.#asset(asset).decimals);
    if (units < 1n || units >= AMOUNT_END) throw new DecimalError("no_such_amount");
    return units;
  }

  /** Offers to sell an amount for at least `price` whole units of `buy` for each; for any price without it. */
  async sell(amount: Exact, sell: string, buy: string, { price, ...ends }: { price?: Exact } & Ends = {}): Promise<Collected> {
    const units = this.units(sell, amount);
    const [sold, bought] = [this.#asset(sell), this.#asset(buy)];
    const limit_bits = price === undefined ? ANY_PRICE : limitOfDecimal(exactText("price", price), sold.decimals, bought.decimals, units);
    return this.#one(
      { operation: "create_offer", market_id: this.id, sell: sold.asset_id, buy: bought.asset_id, amount: units, limit_bits },
      ends,
    );
  }

  /** Offers what `amount` costs at `price` whole units of `sell` for each, and asks for all of it; at a better price it brings more. */
  async buy(amount: Exact, buy: string, sell: string, { price, ...ends }: { price: Exact } & Ends): Promise<Collected> {
    const [sold, bought] = [this.#asset(sell), this.#asset(buy)];
    const { amount: units, limitBits } = costOf(price, this.units(buy, amount), sold.decimals, bought.decimals);
    return this.#one(
      { operation: "create_offer", market_id: this.id, sell: sold.asset_id, buy: bought.asset_id, amount: units, limit_bits: limitBits },
      ends,
    );
  }

  /** Cancels the offer that the transaction `sequence` created. Throws a `RangeError` where none of the account's stands in this market. */
  async cancel(sequence: bigint, ends: Ends = {}): Promise<Collected> {
    const offer = (await this.offers()).find((each) => BigInt(each.sequence) === sequence);
    if (!offer) throw new RangeError(`no offer ${sequence} of the account stands in ${this.name}: outcome says what came of it`);
    return this.#one({
      operation: "cancel_offer", market_id: this.id, sell: this.#asset(offer.sell).asset_id, buy: this.#asset(offer.buy).asset_id,
      limit_bits: BigInt(offer.limit_bits), tie: BigInt(offer.tie), sequence,
    }, ends);
  }

  async pay(to: number, amount: Exact, asset: string, ends: Ends = {}): Promise<Collected> {
    return this.#one({ operation: "payment", to, asset: this.#asset(asset).asset_id, amount: this.units(asset, amount) }, ends);
  }

  /** Makes units of an asset; by its issuer alone. */
  async issue(amount: Exact, asset: string, ends: Ends = {}): Promise<Collected> {
    return this.#one({ operation: "issue", asset: this.#asset(asset).asset_id, amount: this.units(asset, amount) }, ends);
  }

  /** Destroys units of an asset; by its issuer alone. */
  async burn(amount: Exact, asset: string, ends: Ends = {}): Promise<Collected> {
    return this.#one({ operation: "burn", asset: this.#asset(asset).asset_id, amount: this.units(asset, amount) }, ends);
  }

  /** Opens an account for a key, such as one of `newKey`, or its public half in hex. The account pays the market's fee for it, if any. */
  async createAccount(key: Key | string, ends: Ends = {}): Promise<Collected> {
    return this.#one({ operation: "create_account", key: await publicOf(key) }, ends);
  }

  /** Replaces the account's key once the block is cleared. From then on use `client.batch` with the new one. */
  async setKey(key: Key | string, ends: Ends = {}): Promise<Collected> {
    return this.#one({ operation: "set_key", key: await publicOf(key) }, ends);
  }

  /** Creates a pool of two assets, named by the account and the number of this transaction; docs/batch-markets.md has the rules. */
  async createPool(
    amounts: [first: Exact, second: Exact], assets: [first: string, second: string], rule: PoolRule = { rule: "constant_product" },
    { feePpm = 0, ...ends }: { feePpm?: number } & Ends = {},
  ): Promise<Collected> {
    const [first, second] = assets;
    return this.#one({
      operation: "create_pool", market_id: this.id, first: this.#asset(first).asset_id, second: this.#asset(second).asset_id, ...rule,
      fee_ppm: feePpm, amounts: [this.units(first, amounts[0]), this.units(second, amounts[1])],
    }, ends);
  }

  /** Adds to a pool, at most so much of each asset. */
  async deposit(pool: PoolName, amounts: [first: Exact, second: Exact], ends: Ends = {}): Promise<Collected> {
    const found = (await this.pools()).find((each) => isPool(each, pool));
    if (!found) throw new RangeError(`the market has no pool ${pool.account}:${pool.sequence}: see pools`);
    const units: [bigint, bigint] = [this.units(found.first, amounts[0]), this.units(found.second, amounts[1])];
    return this.#one({ operation: "deposit_to_pool", market_id: this.id, pool, amounts: units }, ends);
  }

  /** Gives shares of a pool back for their part of what it has; all that the account has without a number. */
  async withdraw(pool: PoolName, { shares, ...ends }: { shares?: bigint } & Ends = {}): Promise<Collected> {
    const own = shares ?? BigInt((await this.shares()).find((each) => isPool(each, pool))?.shares ?? "0");
    if (own === 0n) throw new RangeError(`the account has no shares of pool ${pool.account}:${pool.sequence}: see shares`);
    return this.#one({ operation: "withdraw_from_pool", market_id: this.id, pool, shares: own }, ends);
  }

  /**
   * Numbers, signs and sends up to 64 operations; for each, in their order, the block that collects it or its refusal. `joined`: a block
   * keeps all of them, or none. What is not answered is sent again, by any replica: a number is taken once, so that does no harm. Throws
   * `OutcomeUnknown` where no answer comes. Without `until`, a venue of an earlier version gets them without an end. Joined ones need
   * engine version 14.
   */
  async send(operations: readonly Operation[], options: { joined?: boolean } & Ends = {}): Promise<(Collected | Refused)[]> {
    if (operations.length < 1 || operations.length > NUMBERS_MAX) {
      throw new RangeError(`${operations.length} operations: give 1 to ${NUMBERS_MAX}, as many numbers as an account has in one batch`);
    }
    const sent = this.#last.then(async () => {
      const first = this.#next ?? (await this.nextSequence());
      const signed = await this.signed(first, operations, options);
      // Where it ends in an error, the venue says what the next number is.
      this.#next = null;
      const isChain = options.joined === true && operations.length > 1;
      const chain = isChain ? new Map(operations.map((each, place) => [first + BigInt(place), each])) : null;
      const results = await this.#answered(new Map(signed.map((each, place) => [first + BigInt(place), each])), { chain });
      if (options.until === undefined && this.#blocks !== null && !isChain) {
        await this.#sendWithOtherEnds(first, operations, results);
      }
      if (results.every((result) => !(result instanceof Refused))) this.#next = first + BigInt(operations.length);
      return results;
    });
    this.#last = sent.catch(() => {});
    return sent;
  }

  /** These operations as signed transactions, in hex, under the numbers from `first` on. A venue of an earlier version takes no ends. */
  async signed(
    first: bigint,
    operations: readonly Operation[],
    { joined = false, until }: { joined?: boolean } & Ends = {},
  ): Promise<string[]> {
    const last = until === undefined ? await this.#defaultEnd() : until;
    const count = joined ? operations.length : 1;
    return Promise.all(operations.map((operation, place) => {
      const terms = { chain: placeInChain(place, count), ...(last !== null && { until: last }) };
      return this.#signed(first + BigInt(place), operation, terms);
    }));
  }

  async #signed(number: bigint, operation: Operation, terms: Terms): Promise<string> {
    if (this.#key === null) throw new KeyError("not_ed25519");
    return signTransaction(this.#key, this.domain, encodeTransaction(await this.client.accountId(), number, operation, terms));
  }

  /** The number after all that the account has used or that are collected, as the venue says. */
  async nextSequence(): Promise<bigint> {
    return BigInt((await this.client.account({ isFresh: true })).next_sequence);
  }

  #asset(symbol: string): Asset {
    const asset = this.#known.get(symbol);
    if (!asset) throw new RangeError(`the venue has no asset ${symbol}: it has ${[...this.#known.keys()].join(", ")}`);
    return asset;
  }

  async #one(operation: Operation, ends: Ends): Promise<Collected> {
    const [result] = await this.send([operation], ends);
    if (result === undefined || result instanceof Refused) throw result ?? new TypeError("no result");
    return result;
  }

  #lastOf(blocks?: number | null): bigint {
    return lastOfBlocks(this.#head.collecting, blocks ?? blocksOfTwoMinutes(this.#head.intervalMs));
  }

  /**
   * The end of what has no `until`, counted from the block that collected lately. A market closes at most one block in an interval, so that
   * one is behind by a small part of the blocks. Where it is behind by more, the venue refuses the end.
   */
  async #defaultEnd(): Promise<bigint | null> {
    if (this.#blocks === null) return null;
    const { intervalMs, atMs } = this.#head;
    const countsMs = (this.#blocks ?? blocksOfTwoMinutes(intervalMs)) * intervalMs;
    // A venue that does not answer now may take the transaction later.
    if ((performance.now() - atMs) * STALE_PART > countsMs) await this.status().catch(() => {});
    return this.#lastOf(this.#blocks);
  }

  /**
   * Sends again what was refused for the end that it has by default: with a later one, or with none to a venue of an earlier version. A
   * number is taken once, so this does no harm. Not for joined transactions: a batch may have some of them, and drops those without the
   * others.
   */
  async #sendWithOtherEnds(first: bigint, operations: readonly Operation[], results: (Collected | Refused)[]): Promise<void> {
    for (const code of [EXPIRED, NEEDS_LATER_VERSION]) {
      const places = [...results.keys()].filter((place) => isRefused(results[place], code));
      if (places.length === 0) continue;
      const until = code === EXPIRED ? await this.lastBlock(this.#blocks ?? undefined).catch(() => undefined) : null;
      if (until === undefined) continue;
      const signed = places.map(async (place): Promise<[bigint, string]> => {
        const number = first + BigInt(place);
        return [number, await this.#signed(number, operations[place] as Operation, until === null ? {} : { until })];
      });
      const again = await this.#answered(new Map(await Promise.all(signed)), { mayBeTaken: true });
      places.forEach((place, each) => (results[place] = again[each] as Collected | Refused));
    }
  }

  /**
   * What may be sent again of joined transactions: only for the block that has some of them, and nothing where one is refused. `null` where
   * all of them may.
   */
  async #restOfChain(
    chain: Map<bigint, Operation>, done: Map<bigint, Collected | Refused>, waiting: Iterable<bigint>,
  ): Promise<Map<bigint, string> | null> {
    const blocks = [...done.values()].flatMap((result) => (result instanceof Refused ? [] : [result.block]));
    if (blocks.length < done.size) return new Map();
    if (blocks.length === 0) return null;
    const until = blocks.reduce((least, block) => (block < least ? block : least));
    const numbers = [...chain.keys()];
    const signed = [...waiting].map(async (number): Promise<[bigint, string]> => {
      const terms = { until, chain: placeInChain(numbers.indexOf(number), numbers.length) };
      return [number, await this.#signed(number, chain.get(number) as Operation, terms)];
    });
    return new Map(await Promise.all(signed));
  }

  /**
   * Sends what has no answer again, by any replica. `mayBeTaken`: something under these numbers was sent before. `chain`: all of them are
   * joined.
   */
  async #answered(
    waiting: Map<bigint, string>,
    { mayBeTaken = false, chain = null }: { mayBeTaken?: boolean; chain?: Map<bigint, Operation> | null } = {},
  ): Promise<(Collected | Refused)[]> {
    const all = [...waiting.keys()];
    const done = new Map<bigint, Collected | Refused>();
    const endsMs = performance.now() + this.#patienceMs;
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
      const { url, transport } = this.client;
      let why: Error | null = null;
      const refusedNow = new Map<bigint, Refused>();
      try {
        const results = await this.client.sendTransactions(this.name, [...waiting.values()]);
        if (results.length !== waiting.size) {
          throw new OutcomeUnknown(`${results.length} results for ${waiting.size} transactions: is this the address of a venue?`);
        }
        for (const [place, sequence] of [...waiting.keys()].entries()) {
          const result = await this.#result(sequence, results[place] as BatchCollected | Refused, mayBeTaken);
          if (result instanceof Refused && AGAIN.has(result.code)) {
            why = result;
            refusedNow.set(sequence, result);
          } else {
            done.set(sequence, result);
            waiting.delete(sequence);
          }
        }
      } catch (error) {
        const isLost = error instanceof OutcomeUnknown || error instanceof BadAnswer;
        if (!isLost && !(error instanceof NotConnected) && !(error instanceof Refused && AGAIN.has(error.code))) throw error;
        mayBeTaken ||= isLost;
        why = error as Error;
      }
      if (why === null) return all.map((sequence) => done.get(sequence) as Collected | Refused);
      // Where a look at the account's transactions failed, all that wait are sent again as they are.
      const isAnswered = refusedNow.size === waiting.size;
      const rest = chain !== null && isAnswered ? await this.#restOfChain(chain, done, refusedNow.keys()) : null;
      if (rest !== null) {
        if (rest.size === 0) return all.map((sequence) => done.get(sequence) ?? (refusedNow.get(sequence) as Refused));
        waiting = rest;
      }
      if (why instanceof Refused && UNCERTAIN.has(why.code)) mayBeTaken = true;
      if (!(why instanceof Refused) || UNCERTAIN.has(why.code)) transport.leave(url, isNotLeader(why) ? why.leader?.url : null);
      if (performance.now() + pauseMs >= endsMs) {
        throw new OutcomeUnknown(
          `no answer within ${this.#patienceMs / 1_000} s (${why.message}) to transactions ${[...waiting.keys()].join(", ")}: ` +
          "look at the account's transactions before sending others",
        );
      }
      await pause(pauseMs);
    }
  }

  async #result(sequence: bigint, result: BatchCollected | Refused, mayBeTaken: boolean): Promise<Collected | Refused> {
    if (!(result instanceof Refused)) {
      const collected = { sequence: BigInt(result.sequence), block: BigInt(result.block) };
      if (collected.block > this.#head.collecting) this.#head.collecting = collected.block;
      return collected;
    }
    if (mayBeTaken && TAKEN.has(result.code)) {
      const outcome = await this.outcome(sequence);
      if (outcome) return { sequence, block: BigInt(outcome.block) };
    }
    return result;
  }
}

function isRefused(result: Collected | Refused | undefined, code: number): boolean {
  return result instanceof Refused && result.code === code;
}

function headOf({ collecting_block, interval_ms }: Batch): Head {
  return { collecting: BigInt(collecting_block), intervalMs: interval_ms, atMs: performance.now() };
}

function isPool(row: { account_id: number; sequence: string }, { account, sequence }: PoolName): boolean {
  return row.account_id === account && BigInt(row.sequence) === sequence;
}

/** Of a key, or of its public half in hex. */
async function publicOf(key: Key | string): Promise<string> {
  if (typeof key !== "string") return publicKeyHex(key);
  if (fromHex(key).length !== 32) throw new RangeError("a public key is 32 bytes in hex: 64 digits");
  return key;
}
