// A fake batch market: prices wander, bots send transactions, and every batch clears all offers at one price for each asset. The bots'
// offers are invented as curves; one's own are real: signed, filtered, reserved, and traded when the prices reach their limit.

import {
  type Batch, type BatchBlock, bitsOfRatio, boughtAtLeast, formatUnits, type Offer, type OfferFill, type OfferUpdate, partsOf,
  type TransactionOutcome, type WsDemand,
} from "walras";
import { significant, trimZeros } from "../../src/base/decimal.ts";
import { FakeReject } from "./matching.ts";
import { FakePools } from "./pools.ts";
import { Prover } from "../../../sdk/typescript/test/prover.ts";
import { Random } from "../../../sdk/typescript/test/random.ts";
import { type FakeTransaction, readTransaction, signatureHolds } from "./transaction.ts";
import { batch, batchBlock } from "../whole.ts";

const HISTORY_BLOCKS = 120;
const COMMISSION_EXPONENT = 15;
const NET = 1 - 2 ** -COMMISSION_EXPONENT;
const POINTS = 41;
const SPAN = 0.02;
const SEQUENCE_WINDOW = 64n;

/** Worth of a whole unit in the first asset, and how much it wanders in a block. */
export const BATCH_ASSETS: { symbol: string; decimals: number; worth: number; wander: number }[] = [
  { symbol: "USD", decimals: 2, worth: 1, wander: 0 },
  { symbol: "EUR", decimals: 2, worth: 1.0832, wander: 4e-6 },
  { symbol: "GBP", decimals: 2, worth: 1.2714, wander: 5e-6 },
  { symbol: "CHF", decimals: 2, worth: 1.1189, wander: 4e-6 },
  { symbol: "JPY", decimals: 0, worth: 0.006712, wander: 6e-6 },
  { symbol: "SEK", decimals: 2, worth: 0.09514, wander: 8e-6 },
  { symbol: "XAU", decimals: 4, worth: 2418.6, wander: 2e-5 },
  { symbol: "XAG", decimals: 3, worth: 28.914, wander: 4e-5 },
  { symbol: "BTC", decimals: 8, worth: 30711.25, wander: 6e-5 },
  { symbol: "ETH", decimals: 8, worth: 1872.4, wander: 7e-5 },
];

const DROPS = {
  offer: {
    code: 10, name: "UnknownOffer",
    message: "no offer of the account stands there under that key: look at its report, it may have traded",
  },
  overdraft: {
    code: 18, name: "Overdraft",
    message: "the account's transactions spend more than it had available when the block began: spend less, or deposit before",
  },
};

interface Standing {
  sequence: bigint;
  sell: number;
  buy: number;
  stated: bigint;
  left: bigint;
  limit: bigint;
  tie: bigint;
  block: bigint;
}

/** What the venue around it keeps: balances, and its listeners. */
export interface BatchHost {
  assetId(symbol: string): number;
  available(symbol: string): bigint;
  add(symbol: string, units: bigint): void;
  /** The account's balances, by ascending asset. `offered` is what its standing offers reserve. */
  holdings(offered: (symbol: string) => bigint): { asset: number; available: bigint; reserved: bigint }[];
  tell(account: number, news: { offer_updates?: OfferUpdate[]; offer_fills?: OfferFill[] }): void;
  nextLogIndex(): bigint;
}

export class FakeBatch {
  readonly domain = "5a".repeat(32);
  /** The public key of the one account, in hex; `null` when it has none. */
  transactionKey: string | null;
  phase: Batch["phase"] = "open";
  intervalMs = 500;
  collected = 0;
  nextSequence = 1n;
  readonly blocks: BatchBlock[] = [];
  readonly fills: OfferFill[] = [];
  readonly pools: FakePools;
  /** Newest first. */
  readonly outcomes: TransactionOutcome[] = [];
  readonly #host: BatchHost;
  readonly #account: number;
  readonly #random = new Random(23);
  readonly #worth = new Map(BATCH_ASSETS.map(({ symbol, worth }) => [symbol, worth]));
  readonly #drift = new Map<string, number>();
  /** Proves the state after the last block. */
  prover: Prover | null = null;
  /** Blocks in a row in which nothing could be cleared, and in which assets were set aside. */
  idleBlocks = 0;
  asideBlocks = 0;
  /** Added to the balances that are proven: a venue that errs. */
  miscounts = 0n;
  /** What the account had when the last block was cleared. */
  #proven = "";
  #closed: { block: bigint; transactions: number; dropped: number } | null = null;
  #pending: FakeTransaction[] = [];
  #standing: Standing[] = [];
  #block = 4_096n;

  constructor(host: BatchHost, account: number, transactionKey: string) {
    this.#host = host;
    this.#account = account;
    this.transactionKey = transactionKey;
    this.pools = new FakePools({
      symbol: (assetId) => this.#symbol(assetId), decimals: decimalsOf,
      spendable: (symbol) => host.available(symbol) - this.reserved(symbol), add: (symbol, units) => host.add(symbol, units),
    });
    for (let past = HISTORY_BLOCKS; past > 0; past -= 1) {
      this.botSteps(60);
      this.close();
      this.clear(BigInt(Date.now() - past * this.intervalMs) * 1_000_000n);
    }
  }

  get closedBlock(): string | null {
    return this.#closed === null ? null : String(this.#closed.block);
  }

  /** Anybody's transactions, from 0 to `most` of them. */
  botSteps(most: number): void {
    if (this.phase === "open") this.collected += this.#random.below(most + 1);
  }

  info(): Batch {
    return batch({
      assets: BATCH_ASSETS.map(({ symbol }) => symbol), currencies: BATCH_ASSETS.map(({ symbol }) => symbol),
      interval_ms: this.intervalMs, commission_exponent: COMMISSION_EXPONENT, phase: this.phase,
      domain: this.domain, collected: this.collected, collecting_block: String(this.#block + 1n), closed_block: this.closedBlock,
      idle_blocks: this.idleBlocks, aside_blocks: this.asideBlocks, last_block: this.blocks.at(-1) ?? null,
      standing_offers: String(18_240 + this.#random.below(400) + this.#standing.length),
    });
  }

  submit(hex: string): { account_id: number; sequence: string; block: string } {
    if (this.phase === "closed") {
      throw new FakeReject(75, "BatchMarketNotOpen", "The batch market is not open: wait until the operator opens it.");
    }
    const transaction = readTransaction(hex);
    if (transaction.account !== this.#account) throw new FakeReject(3, "UnknownAccount", "There is no such account: create it first.");
    if (this.transactionKey === null || !signatureHolds(this.transactionKey, this.domain, hex)) {
      throw new FakeReject(
        76, "TransactionSignatureInvalid", "The signature is not the account's over these bytes: check the key and the venue's domain.",
      );
    }
    const { sequence } = transaction;
    const isInWindow = sequence >= this.nextSequence && sequence < this.nextSequence + SEQUENCE_WINDOW;
    if (!isInWindow || this.#pending.some((other) => other.sequence === sequence)) {
      throw new FakeReject(
        77, "SequenceOutOfWindow", "The number is not among the 64 that follow the account's last one: use the next one.",
      );
    }
    const block = this.#block + 1n;
    if (transaction.until !== null && transaction.until < block) {
      const says = "The good-till time, or the last block that may have the transaction, has passed: give a later one.";
      throw new FakeReject(27, "AlreadyExpired", says);
    }
    this.#pending.push(transaction);
    this.collected += 1;
    return { account_id: transaction.account, sequence: String(sequence), block: String(block) };
  }

  /** The set of transactions is fixed: new offers stand, what is cancelled is gone. */
  close(): void {
    if (this.#closed || this.collected === 0) return;
    this.#block += 1n;
    const block = this.#block;
    const pending = this.#pending.sort((a, b) => Number(a.sequence - b.sequence));
    const updates: OfferUpdate[] = [];
    let dropped = 0;
    for (const transaction of pending) {
      const update = this.#enter(transaction, block);
      if (update?.status === "dropped") dropped += 1;
      if (update) updates.push(update);
      this.#note(transaction.sequence, block, update);
      if (transaction.sequence >= this.nextSequence) this.nextSequence = transaction.sequence + 1n;
    }
    this.#closed = { block, transactions: this.collected, dropped: dropped + (this.#random.next() < 0.2 ? 1 : 0) };
    this.collected = 0;
    this.#pending = [];
    if (pending.length > 0) this.#host.tell(this.#account, { offer_updates: updates });
  }

  /** Prices for the closed batch: everybody trades at them, or not at all. */
  clear(timeNs: bigint): void {
    const closed = this.#closed;
    if (!closed) return;
    this.#closed = null;
    for (const outcome of this.outcomes) if (outcome.status === "kept") outcome.status = "cleared";
    for (const { symbol, wander } of BATCH_ASSETS) {
      const drift = (this.#drift.get(symbol) ?? 0) * 0.97 + (this.#random.next() - 0.5) * wander;
      this.#drift.set(symbol, drift);
      this.#worth.set(symbol, (this.#worth.get(symbol) ?? 1) * Math.exp(drift + (this.#random.next() - 0.5) * wander));
    }
    const trading = this.#trade(closed.block, timeNs);
    const share = (least: number, most: number): number => Math.round(closed.transactions * (least + this.#random.next() * (most - least)));
    const volumes: Record<string, string> = {};
    let turnover = 0;
    for (const { symbol, decimals } of BATCH_ASSETS) {
      const value = 4_000 * (closed.transactions + 5) * this.#random.exponential(0.3);
      turnover += value;
      volumes[symbol] = (value / (this.#worth.get(symbol) ?? 1)).toFixed(decimals);
    }
    this.prover = this.#provable(closed);
    const root = Buffer.from(this.prover.block.hash).toString("hex");
    const block = batchBlock({
      block: String(closed.block), time_ns: String(timeNs), log_index: String(this.#host.nextLogIndex()),
      transactions: closed.transactions, dropped: closed.dropped,
      offers_traded: share(0.3, 0.7) + trading, pairs_traded: 62 + this.#random.below(28),
      gap_ppb: 20 + Math.round(this.#random.exponential(70)), state_root: root,
      prices: Object.fromEntries(BATCH_ASSETS.map(({ symbol }) => [symbol, this.price(symbol)])), volumes, turnover: turnover.toFixed(2),
    });
    this.blocks.push(block);
    if (this.blocks.length > 1_000) this.blocks.shift();
  }

  price(symbol: string): string {
    return significant((this.#worth.get(symbol) ?? 1).toFixed(14), 8);
  }

  /**
   * What the bots want and offer of a pair: straight enough, crossing near the price; some of the difference goes by way of other assets.
   */
  demand(sell: string, buy: string): Omit<WsDemand, "type"> {
    const rate = (this.#worth.get(sell) ?? 1) / (this.#worth.get(buy) ?? 1);
    if (sell === buy || !this.#worth.has(sell) || !this.#worth.has(buy)) {
      throw new FakeReject(109, "NotFound", "There is no such pair in the market.");
    }
    const shape = new Random(sell.charCodeAt(0) * 977 + buy.charCodeAt(1) * 131 + sell.charCodeAt(2));
    const size = (1.5e6 / (this.#worth.get(sell) ?? 1)) * (0.5 + shape.next());
    const [steep, lean] = [25 + 30 * shape.next(), (shape.next() - 0.5) * 0.1];
    const wave = shape.next() * 6;
    const decimals = BATCH_ASSETS.find(({ symbol }) => symbol === sell)?.decimals ?? 2;
    const points = Array.from({ length: POINTS }, (_, index) => {
      const away = -SPAN + (2 * SPAN * index) / (POINTS - 1);
      const bend = 0.05 * Math.sin(wave + away * 260) + Number(this.#block % 16n) * 0.001;
      const supply = size / (1 + Math.exp(-steep * 3 * (away + lean / 40))) * (1 + bend * 0.3);
      const demand = size / (1 + Math.exp(steep * 3 * (away + lean / 40))) * (1 - bend * 0.3);
      return { price: significant((rate * (1 + away)).toFixed(14), 8), supply: supply.toFixed(decimals), demand: demand.toFixed(decimals) };
    });
    return { batch: "main", sell, buy, price: significant(rate.toFixed(14), 8), points };
  }

  offers(): Offer[] {
    return this.#standing.map((offer) => this.#wire(offer));
  }

  reserved(symbol: string): bigint {
    return this.#standing.filter(({ sell }) => sell === this.#host.assetId(symbol)).reduce((sum, { left }) => sum + left, 0n);
  }

  /** The update that the account gets: for a transaction on a pool only where it was dropped. */
  #enter({ account, sequence, asked }: FakeTransaction, block: bigint): OfferUpdate | null {
    const head = { batch: "main", sequence: String(sequence) };
    switch (asked.operation) {
      case "cancel_offer": {
        const index = this.#standing.findIndex(({ sequence: number, limit, tie }) =>
          number === asked.sequence && limit === asked.limit_bits && tie === asked.tie);
        const [offer] = index < 0 ? [] : this.#standing.splice(index, 1);
        if (!offer) return { ...head, status: "dropped", reason: DROPS.offer };
        return { ...this.#wire(offer), status: "cancelled" };
      }
      case "create_offer": {
        const symbol = this.#symbol(asked.sell);
        const spendable = this.#host.available(symbol) - this.reserved(symbol);
        if (asked.amount > spendable) return { ...head, status: "dropped", reason: DROPS.overdraft };
        // The limit that whole units can honour: what the whole amount must buy, over the amount.
        const bought = boughtAtLeast(asked.limit_bits, asked.amount);
        const limit = bought === 0n ? 0n : bitsOfRatio(bought, asked.amount, "up") ?? asked.limit_bits;
        const tie = (BigInt.asUintN(64, sequence * 0x9e37_79b9_7f4a_7c15n) ^ block) | (1n << 63n);
        const { sell, buy, amount: left, limit_bits: stated } = asked;
        const offer: Standing = { sequence, sell, buy, left, stated, limit, tie, block };
        this.#standing.push(offer);
        return { ...this.#wire(offer), status: "open" };
      }
      case "create_pool":
      case "deposit_to_pool":
      case "withdraw_from_pool": {
        const reason = this.pools.enter(account, sequence, asked);
        return reason === null ? null : { ...head, status: "dropped", reason };
      }
      default:
        throw new FakeReject(100, "Malformed", "The fake venue knows no such operation.");
    }
  }

  #provable({ block, transactions }: { block: bigint; transactions: number }): Prover {
    this.#proven = this.#holdingsText();
    const balances = this.#holdings().map((each) => ({ ...each, available: each.available + this.miscounts }));
    const publicKey = this.transactionKey === null ? null : Buffer.from(this.transactionKey, "hex");
    const accounts = [
      { account: 0, publicKey: null, last: 0n, balances: [] },
      { account: this.#account, publicKey, last: this.nextSequence - 1n, balances },
    ];
    const offers = this.#standing.map(({ sell, buy, limit, tie, sequence, left, stated }) => (
      { pair: this.pairOf(this.#symbol(sell), this.#symbol(buy)), limit, tie, account: this.#account, sequence, amount: left, stated }));
    const parent = this.prover?.block.hash ?? new Uint8Array(32);
    const pools = this.pools.proven((symbol) => BATCH_ASSETS.findIndex((asset) => asset.symbol === symbol));
    return new Prover({ market: 0, number: block, parent, transactions, assets: BATCH_ASSETS.length }, accounts, offers, pools);
  }

  #holdings(): ReturnType<BatchHost["holdings"]> {
    return this.#host.holdings((symbol) => this.reserved(symbol));
  }

  #holdingsText(): string {
    return this.#holdings().map(({ asset, available, reserved }) => `${asset} ${available} ${reserved}`).join();
  }

  /** A pair's number in proofs. */
  pairOf(sell: string, buy: string): number {
    const at = (symbol: string): number => BATCH_ASSETS.findIndex((asset) => asset.symbol === symbol);
    return at(sell) * BATCH_ASSETS.length + at(buy);
  }

  /** What a light client reads. Nothing can be proven while a batch is closed, nor an account whose balances have moved since the block. */
  proof(what: "account" | "offer" | "shares", query: URLSearchParams): object {
    const { prover } = this;
    const last = this.blocks.at(-1);
    const of = (name: string): bigint => BigInt(query.get(name) ?? "0");
    const place = { limit: of("limit_bits"), tie: of("tie"), account: Number(of("account_id")), sequence: of("sequence") };
    const pair = this.pairOf(query.get("sell") ?? "", query.get("buy") ?? "");
    const hasMoved = what === "account" && this.#holdingsText() !== this.#proven;
    const canProve = this.#closed === null && !hasMoved;
    const statement = what === "account" ? prover?.account(this.#account)
      : what === "shares" ? prover?.pool(place.account, place.sequence, this.#account) : prover?.offer({ pair, ...place });
    if (!canProve || !prover || !last || !statement) {
      throw new FakeReject(109, "NotFound", "That cannot be proven now: ask again after the next block.");
    }
    const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
    return { block: last.block, light_header: hex(prover.block.header), light_roots: hex(prover.block.roots), statement: hex(statement) };
  }

  #note(sequence: bigint, block: bigint, update: OfferUpdate | null): void {
    const isDropped = update?.status === "dropped";
    this.outcomes.unshift({
      batch: "main", sequence: String(sequence), block: String(block), status: isDropped ? "dropped" : "kept",
      ...(update?.reason ? { reason: update.reason } : {}),
    });
    this.outcomes.splice(64);
  }

  #trade(block: bigint, timeNs: bigint): number {
    const updates: OfferUpdate[] = [];
    const fills: OfferFill[] = [];
    for (const offer of [...this.#standing]) {
      const [sell, buy] = [this.#symbol(offer.sell), this.#symbol(offer.buy)];
      const [from, to] = [decimalsOf(sell), decimalsOf(buy)];
      const rate = ((this.#worth.get(sell) ?? 1) / (this.#worth.get(buy) ?? 1)) * NET * 10 ** (to - from);
      const bought = BigInt(Math.floor(Number(offer.left) * rate));
      if (bought < boughtAtLeast(offer.limit, offer.left)) continue;
      this.#host.add(sell, -offer.left);
      this.#host.add(buy, bought);
      const sold = formatUnits(offer.left, from);
      const fill = {
        batch: "main", sequence: String(offer.sequence), block: String(block), sell, buy, sold, bought: formatUnits(bought, to),
        time_ns: String(timeNs),
      };
      fills.push(fill);
      this.fills.push(fill);
      offer.left = 0n;
      this.#standing.splice(this.#standing.indexOf(offer), 1);
      updates.push({ ...this.#wire(offer), status: "traded", sold, bought: fill.bought });
    }
    if (fills.length > 0) this.#host.tell(this.#account, { offer_updates: updates, offer_fills: fills });
    return fills.length;
  }

  #wire(offer: Standing): Offer {
    const [sell, buy] = [this.#symbol(offer.sell), this.#symbol(offer.buy)];
    const [m, e] = partsOf(offer.stated);
    const stated = Number(m) * 2 ** Number(e) * 10 ** (decimalsOf(sell) - decimalsOf(buy));
    return {
      batch: "main", sequence: String(offer.sequence), sell, buy, amount: formatUnits(offer.left, decimalsOf(sell)),
      stated_price: trimZeros(significant(stated.toFixed(14), 12)),
      stated_bits: String(offer.stated), limit_bits: String(offer.limit), tie: String(offer.tie), block: String(offer.block),
    };
  }

  #symbol(assetId: number): string {
    const asset = BATCH_ASSETS.find(({ symbol }) => this.#host.assetId(symbol) === assetId);
    if (!asset) throw new FakeReject(1, "UnknownAsset", "There is no such asset: list the venue's assets.");
    return asset.symbol;
  }
}

function decimalsOf(symbol: string): number {
  return BATCH_ASSETS.find((asset) => asset.symbol === symbol)?.decimals ?? 0;
}
