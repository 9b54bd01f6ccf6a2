// All of the batch view's model: the markets, the chosen one, one's own offers, and whether this page can sign for the account.

import {
  type Account, type Asset, type Balance, type Batch, type Client, encodeTransaction, formatUnits, isEd25519, type Key, KeyError,
  type OfferFill, type Operation, publicKeyHex, signTransaction, type Stream, type Subscription, type Terms, type WsAccount, type WsBatch,
  type WsDemand,
} from "walras";
import { client } from "../api/client.ts";
import { Signal, atMostEvery } from "../base/signal.ts";
import { errorText } from "../texts/error-text.ts";
import { t } from "../texts/index.ts";
import { BatchMarket, type Pair } from "./batch-market.ts";
import { describeDrop } from "./offer-outcome.ts";
import type { Said } from "./outcome.ts";
import { type OwnOffer, OwnOffers, type Sent } from "./own-offers.ts";
import { PoolDesk } from "./pool-desk.ts";
import { ProofDesk } from "./proof-desk.ts";
import { postWithTerms } from "./transaction-terms.ts";

const INFO_EVERY_MS = 5_000;

/** Whether offers can be signed here, or what stands in the way. */
export type Signer =
  | { state: "no_key" | "hmac" | "signing_in" }
  | { state: "unable" | "failed"; why: string }
  | { state: "no_account_key" | "other_account_key"; publicKey: string; accountId: number }
  | { state: "ready"; key: Key; own: Client; accountId: number };

type WithoutMarket<Each> = Each extends { market_id: number } ? Omit<Each, "market_id"> : never;
/** An operation without its market: the desk adds the chosen one. */
export type InMarket = WithoutMarket<Operation>;

export class BatchDesk {
  readonly list = new Signal<Batch[]>([]);
  readonly market = new Signal<BatchMarket | null>(null);
  readonly offers = new OwnOffers();
  readonly pools = new PoolDesk(this);
  readonly proofs: ProofDesk;
  readonly signer = new Signal<Signer>({ state: "no_key" });
  /** New fills of offers, as they come. */
  readonly filled = new Signal<OfferFill[]>([]);
  readonly #stream: Stream;
  readonly #say: (said: Said) => void;
  #assets: Asset[] = [];
  /** Of the account whose key the page has. */
  #own: Client | null = null;
  #shown = false;
  #demandOf: Subscription | null = null;
  #nextSequence = 0n;
  readonly #refreshInfo = atMostEvery(INFO_EVERY_MS, () => void this.#loadInfo());

  constructor(stream: Stream, say: (said: Said) => void, balances: () => Map<string, Balance>) {
    this.proofs = new ProofDesk(this, balances);
    this.#stream = stream;
    this.#say = say;
  }

  start(batches: Batch[], assets: Asset[]): void {
    this.#assets = assets;
    this.list.value = batches;
    if (batches[0]) this.choose(batches[0].name);
  }

  choose(name: string): void {
    const info = this.list.value.find((batch) => batch.name === name);
    if (!info || info.name === this.market.value?.name) return;
    this.#follow(false);
    const market = new BatchMarket(info, performance.now());
    market.pair.watch(() => this.#followDemand(this.#shown));
    this.market.value = market;
    this.proofs.clear();
    this.#follow(this.#shown);
  }

  /** The feed is followed while somebody looks at it. */
  set shown(shown: boolean) {
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#follow(shown);
  }

  apply(message: WsBatch | WsDemand | WsAccount): void {
    if (message.type === "account") return this.#applyAccount(message);
    const market = this.market.value;
    if (!market) return;
    if (message.type === "batch") {
      if (message.batch !== market.name) return;
      market.apply(message, performance.now());
      const newest = message.blocks.at(-1);
      if (newest) this.offers.settled(market.name, newest.block);
      const closed = message.closed_block ?? newest?.block;
      if (closed !== undefined) this.offers.closed(market.name, closed);
      if (newest) this.pools.onBlock(newest.block);
      if (newest && this.#shown) this.proofs.onBlock();
      this.#refreshInfo();
    } else {
      const { sell, buy } = market.pair.value;
      if (message.sell === sell && message.buy === buy) market.demand.value = message;
    }
  }

  setOwn(own: Client | null): void {
    this.#own = own;
    this.#nextSequence = 0n;
    this.offers.clear();
    this.pools.setOwn(own);
    this.proofs.clear();
    const key = own?.key ?? null;
    this.signer.value = { state: key === null ? "no_key" : isEd25519(key) ? "signing_in" : "hmac" };
  }

  /** This browser cannot sign with the key. */
  onKeyUnusable(error: KeyError): void {
    this.signer.value = { state: "unable", why: errorText(error) };
  }

  onRefused(): void {
    if (this.signer.value.state !== "no_key") this.signer.value = { state: "no_key" };
  }

  /** The venue knows the key: whose transactions it signs, and the number of the next one. */
  async onSignedIn(): Promise<void> {
    const own = this.#own;
    const key = own?.key ?? null;
    if (own) this.pools.onSignedIn();
    if (!own || !key || !isEd25519(key) || this.list.value.length === 0) return;
    try {
      const [account, publicKey] = await Promise.all([own.account(), publicKeyHex(key)]);
      if (own !== this.#own) return;
      this.#learnSequence(account);
      const { transaction_key: ours, account_id: accountId } = account;
      if (ours === publicKey) this.signer.value = { state: "ready", key, own, accountId };
      else this.signer.value = { state: ours === null ? "no_account_key" : "other_account_key", publicKey, accountId };
    } catch (error) {
      this.signer.value = { state: error instanceof KeyError ? "unable" : "failed", why: errorText(error) };
    }
  }

  /** Signs and hands in an offer. Returns the block that it is collected for. */
  async offer(pair: Pair, amount: bigint, limitBits: bigint, statedPrice: string): Promise<Sent> {
    const { sell, buy } = pair;
    const draft = { sell, buy, amount: formatUnits(amount, this.asset(sell).decimals), stated_price: statedPrice };
    const [sold, bought] = [this.asset(sell).asset_id, this.asset(buy).asset_id];
    return this.send({ operation: "create_offer", sell: sold, buy: bought, amount, limit_bits: limitBits }, { makes: draft });
  }

  async cancel(offer: OwnOffer): Promise<Sent | null> {
    const place = offer.standing;
    if (!place) return null;
    return this.send({
      operation: "cancel_offer", sell: this.asset(offer.sell).asset_id, buy: this.asset(offer.buy).asset_id,
      limit_bits: BigInt(place.limit_bits), tie: BigInt(place.tie), sequence: BigInt(offer.sequence),
    }, { cancels: offer.key });
  }

  decimals(asset: string): number {
    return this.#assets.find(({ symbol }) => symbol === asset)?.decimals ?? 0;
  }

  asset(symbol: string): Asset {
    const asset = this.#assets.find((each) => each.symbol === symbol);
    if (!asset) throw new Error(t.offer.noAsset(symbol));
    return asset;
  }

  /** Signs and hands in a transaction of the chosen market. Returns the block that it is collected for. */
  async send(asked: InMarket, asks: Sent["asks"]): Promise<Sent> {
    const market = this.market.value;
    const signer = this.signer.value;
    if (!market || signer.state !== "ready") throw new Error(t.offer.cannotSign);
    const { market_id, name, domain } = market.info.value;
    const sequence = this.#nextSequence;
    this.#nextSequence += 1n;
    const sign = (terms: Terms): Promise<string> =>
      signTransaction(signer.key, domain, encodeTransaction(signer.accountId, sequence, { ...asked, market_id } as Operation, terms));
    try {
      const { block } = await postWithTerms(name, { until: market.lastBlock() }, sign);
      const sent: Sent = { batch: name, sequence: sequence.toString(), block, asks };
      this.offers.collected(sent);
      return sent;
    } catch (error) {
      // It may have been the number: another tab signs for the account too.
      await this.#reloadSequence(signer.own);
      throw error;
    }
  }

  async #reloadSequence(own: Client): Promise<void> {
    try {
      this.#learnSequence(await own.account());
    } catch {
      // The user sees what the transaction met; the number is requested again after the next refusal.
    }
  }

  /** Numbers only go up: some of one's own may be collected and not yet counted. */
  #learnSequence({ next_sequence }: Account): void {
    const next = BigInt(next_sequence);
    if (next > this.#nextSequence) this.#nextSequence = next;
  }

  #applyAccount(message: WsAccount): void {
    const { fills, ended } = this.offers.apply(message);
    if (message.kind === "update" && fills.length > 0) this.filled.value = fills;
    for (const update of ended) this.#say(describeDrop(update));
  }

  #follow(on: boolean): void {
    const market = this.market.value;
    if (!market) return;
    const subscription: Subscription = { channel: "batch", batch: market.name };
    if (on) this.#stream.follow(subscription);
    else this.#stream.unsubscribe(subscription);
    this.#followDemand(on);
    this.pools.follow(on ? market.name : null);
    if (on) this.#refreshInfo();
  }

  #followDemand(on: boolean): void {
    const market = this.market.value;
    if (!market) return;
    if (this.#demandOf) this.#stream.unsubscribe(this.#demandOf);
    this.#demandOf = on ? { channel: "demand", batch: market.name, ...market.pair.value } : null;
    if (this.#demandOf) this.#stream.follow(this.#demandOf);
  }

  /** What the feed does not tell: the phase, how many offers stand. */
  async #loadInfo(): Promise<void> {
    if (!this.#shown) return;
    try {
      this.list.value = await client.batches();
      const market = this.market.value;
      const info = this.list.value.find(({ name }) => name === market?.name);
      if (market && info) market.info.value = info;
    } catch {
      // The masthead shows the connection's own state, and the next message asks again.
    }
  }
}

