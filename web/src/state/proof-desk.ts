// Checks, after blocks of a batch market, what the venue shows of the account, with the client's light client: one's offers, balances and
// shares of pools hash to the block's state root, and each block names the one before it. The root is the one in the feed's block, so the
// check shows that the venue does not contradict itself. To trust the venue less, compare the root with another replica's.

import {
  type Balance, type BatchBlock, type BatchOfferProof, type Client, equal, light, parseUnits, type PoolShare, Refused,
} from "walras";
import { client } from "../api/client.ts";
import { Signal, atMostEvery } from "../base/signal.ts";
import type { BatchDesk } from "./batch-desk.ts";
import type { BatchMarket } from "./batch-market.ts";
import type { OwnOffer } from "./own-offers.ts";
import { poolKey } from "./pool-desk.ts";

const CHECK_EVERY_MS = 2_000;
/** Offers checked after one block. */
const OFFERS_AT_ONCE = 16;
const POOLS_AT_ONCE = 8;
/** An offer, or a share of a pool, that was checked is checked again after so many blocks. */
const AGAIN_AFTER_BLOCKS = 60n;

export type Mark = { state: "checked" | "differs"; block: string } | null;

export class ProofDesk {
  readonly changed = new Signal<ProofDesk>(this);
  /** The last block with a proof that was checked. */
  last: { block: string; root: string } | null = null;
  /** The venue's last proof does not hold. `code` is the light client's, `why` its English message. */
  broken: { block: string; code: number; why: string } | null = null;
  readonly #desk: BatchDesk;
  readonly #balances: () => Map<string, Balance>;
  /** By subject: what was shown when it was checked, and against which block. */
  readonly #marks = new Map<string, { shown: string; state: "checked" | "differs"; block: string }>();
  /** What differed once: an update may be on its way. */
  readonly #doubts = new Map<string, string>();
  #isRunning = false;
  readonly #soon = atMostEvery(CHECK_EVERY_MS, () => void this.check());

  constructor(desk: BatchDesk, balances: () => Map<string, Balance>) {
    this.#desk = desk;
    this.#balances = balances;
  }

  onBlock(): void {
    this.#soon();
  }

  clear(): void {
    this.#marks.clear();
    this.#doubts.clear();
    [this.last, this.broken] = [null, null];
    this.changed.touch();
  }

  /** `null` where the offer has changed since it was checked. */
  ofOffer(offer: OwnOffer): Mark {
    return this.#mark(`offer ${offer.key}`, this.#shownOffer(offer));
  }

  ofBalance(asset: string): Mark {
    const balance = this.#balances().get(asset);
    return balance ? this.#mark(`balance ${asset}`, this.#shownBalance(balance)) : null;
  }

  /** One's shares of a pool. */
  ofShare(share: PoolShare): Mark {
    return this.#mark(`shares ${poolKey(share)}`, share.shares);
  }

  /** Whether anything shown now differs from the venue's own proof. */
  isContradicted(): boolean {
    const market = this.#desk.market.value;
    const offers = market ? this.#desk.offers.list(market.name).map((offer) => this.ofOffer(offer)) : [];
    const balances = [...this.#balances().keys()].map((asset) => this.ofBalance(asset));
    const shares = market ? this.#sharesIn(market).map((share) => this.ofShare(share)) : [];
    return [...offers, ...balances, ...shares].some((mark) => mark?.state === "differs");
  }

  #mark(subject: string, shown: string | null): Mark {
    const mark = this.#marks.get(subject);
    return mark && mark.shown === shown ? { state: mark.state, block: mark.block } : null;
  }

  /** Asks for proofs and compares them with what is shown. */
  async check(): Promise<void> {
    const { market: { value: market }, signer: { value: signer } } = this.#desk;
    if (this.#isRunning || !market || signer.state !== "ready") return;
    this.#isRunning = true;
    try {
      const before = new Map(this.#balances());
      const path = { batch: market.name, account_id: signer.accountId };
      const proof = await provable(signer.own.call("getBatchesBatchProofsAccountAccountId", { path }));
      if (proof) this.#checkBalances(market, signer.accountId, proof, before);
      const due = this.#desk.offers
        .list(market.name)
        .filter((offer) => offer.standing !== null && this.#isDue(this.ofOffer(offer), market));
      for (const offer of due.slice(0, OFFERS_AT_ONCE)) await this.#checkOffer(market, signer.accountId, offer);
      const shares = this.#sharesIn(market).filter((share) => this.#isDue(this.ofShare(share), market));
      for (const share of shares.slice(0, POOLS_AT_ONCE)) await this.#checkShare(market, signer.own, signer.accountId, share);
    } catch (error) {
      if (!(error instanceof light.LightError) || this.#desk.market.value !== market) return;
      this.broken = { block: market.last?.block ?? "", code: error.code, why: error.message };
    } finally {
      this.#isRunning = false;
      this.changed.touch();
    }
  }

  #sharesIn(market: BatchMarket): PoolShare[] {
    return [...this.#desk.pools.shares.value.values()].filter(({ batch }) => batch === market.name);
  }

  #isDue(mark: Mark, market: BatchMarket): boolean {
    return mark?.state !== "checked" || BigInt(market.last?.block ?? "0") > BigInt(mark.block) + AGAIN_AFTER_BLOCKS;
  }

  #checkBalances(market: BatchMarket, accountId: number, proof: BatchOfferProof, before: Map<string, Balance>): void {
    const block = this.#open(market, proof);
    if (!block) return;
    const account = block.account(accountId, light.unhex(proof.statement, "a statement"));
    for (const asset of market.info.value.assets) {
      const [was, is] = [before.get(asset), this.#balances().get(asset)];
      if (!was || !is) continue;
      const proven = account?.balances.get(this.#desk.asset(asset).asset_id);
      const units = `${proven?.available ?? 0n} ${proven?.reserved ?? 0n}`;
      this.#judge(`balance ${asset}`, this.#shownBalance(was), this.#shownBalance(is), units, proof.block);
    }
  }

  async #checkOffer(market: BatchMarket, account: number, offer: OwnOffer): Promise<void> {
    const { standing } = offer;
    if (!standing) return;
    const before = this.#shownOffer(offer);
    const { sequence, sell, buy, limit_bits, tie } = standing;
    const query = { account_id: account, sequence, sell, buy, limit_bits, tie };
    const proof = await provable(client.call("getBatchesBatchProofsOffer", { path: { batch: market.name }, query }));
    const block = proof && this.#open(market, proof);
    if (!proof || !block) return;
    const place = { limit: BigInt(standing.limit_bits), tie: BigInt(standing.tie), account, sequence: BigInt(standing.sequence) };
    const { assets } = market.info.value;
    const proven = block.offer(
      assets.indexOf(standing.sell),
      assets.indexOf(standing.buy),
      place,
      light.unhex(proof.statement, "a statement"),
    );
    const now = this.#desk.offers.list(market.name).find(({ key }) => key === offer.key);
    const units = proven === null ? "" : `${standing.limit_bits} ${proven.amount}`;
    this.#judge(`offer ${offer.key}`, before, now ? this.#shownOffer(now) : null, units, proof.block);
  }

  async #checkShare(market: BatchMarket, own: Client, account: number, share: PoolShare): Promise<void> {
    const { account_id, sequence } = share;
    const proof = await provable(
      own.call("getBatchesBatchProofsShares", { path: { batch: market.name }, query: { account_id, sequence } }),
    );
    const block = proof && this.#open(market, proof);
    if (!proof || !block) return;
    const pool = { account: account_id, sequence: BigInt(sequence) };
    const proven = block.poolShares(pool, account, light.unhex(proof.statement, "a statement"));
    const now = this.#desk.pools.shares.value.get(poolKey(share));
    this.#judge(`shares ${poolKey(share)}`, share.shares, now?.shares ?? null, String(proven), proof.block);
  }

  /** The block of a proof, checked against its root in the feed; `null` where the feed has no such block, or the user left the market. */
  #open(market: BatchMarket, proof: BatchOfferProof): light.LightBlock | null {
    const blocks = market.blocks.value;
    const rootOf = (number: bigint): string | undefined => blocks.find(({ block }: BatchBlock) => BigInt(block) === number)?.state_root;
    const root = rootOf(BigInt(proof.block));
    if (root === undefined || this.#desk.market.value !== market) return null;
    const block = new light.LightBlock(
      light.unhex(root, "a block's hash"), light.unhex(proof.light_header, "a header"), light.unhex(proof.light_roots, "a block's roots"),
    );
    const parent = rootOf(block.number - 1n);
    const isAsked = block.number === BigInt(proof.block) && block.market === market.info.value.market_id;
    if (!isAsked) throw new light.LightError(3, "another block than it says");
    const follows = parent === undefined || equal(block.parent, light.unhex(parent, "a block's hash"));
    if (!follows) throw new light.LightError(7, "the block does not follow the one before it");
    [this.last, this.broken] = [{ block: proof.block, root }, null];
    return block;
  }

  /** Skips what changed while the venue was asked. What differs once is compared again first: an update may be on its way. */
  #judge(subject: string, before: string | null, now: string | null, proven: string, block: string): void {
    if (before === null || before !== now) return;
    if (proven === now) {
      this.#doubts.delete(subject);
      this.#marks.set(subject, { shown: now, state: "checked", block });
    } else if (this.#doubts.get(subject) === now) {
      this.#marks.set(subject, { shown: now, state: "differs", block });
    } else {
      this.#doubts.set(subject, now);
    }
  }

  #shownBalance({ asset, available, reserved }: Balance): string {
    const decimals = this.#desk.decimals(asset);
    return `${parseUnits(available, decimals)} ${parseUnits(reserved, decimals)}`;
  }

  #shownOffer({ standing }: OwnOffer): string | null {
    return standing && `${standing.limit_bits} ${parseUnits(standing.amount, this.#desk.decimals(standing.sell))}`;
  }
}

/** `null` where the venue cannot prove it now. */
async function provable(proof: Promise<BatchOfferProof>): Promise<BatchOfferProof | null> {
  try {
    return await proof;
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}
