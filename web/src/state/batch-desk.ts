// All of the batch view's model: the markets, the chosen one, one's own offers, and whether this page can sign for the account.

import type { AccountInfo, Batch, BatchMessage, DemandMessage, OfferFill } from "../api/batch-types.ts";
import { fetchAccount, fetchBatches, postWithTerms } from "../api/rest.ts";
import { type Key, KeyError, isEd25519, publicKeyHex } from "../api/signing.ts";
import type { Subscription, VenueSocket } from "../api/socket.ts";
import { type CancelOffer, type CreateOffer, type Terms, encodeTransaction, signTransaction } from "../api/transactions.ts";
import type { AccountMessage, Asset } from "../api/types.ts";
import { formatUnits } from "../base/decimal.ts";
import { Signal, atMostEvery } from "../base/signal.ts";
import { t } from "../texts/index.ts";
import { BatchMarket, type Pair } from "./batch-market.ts";
import { describeDrop } from "./offer-outcome.ts";
import type { Said } from "./outcome.ts";
import { type OwnOffer, OwnOffers, type Sent } from "./own-offers.ts";

const INFO_EVERY_MS = 5_000;
/** So long a transaction counts at most: what the venue dropped, nobody can hand in again later. */
const COUNTS_MS = 120_000;

/** Whether offers can be signed here, or what stands in the way. */
export type Signer =
  | { state: "no_key" | "hmac" | "signing_in" }
  | { state: "unable" | "failed"; why: string }
  | { state: "no_account_key" | "other_account_key"; publicKey: string; accountId: number }
  | { state: "ready"; key: Key; accountId: number };

export class BatchDesk {
  readonly list = new Signal<Batch[]>([]);
  readonly market = new Signal<BatchMarket | null>(null);
  readonly offers = new OwnOffers();
  readonly signer = new Signal<Signer>({ state: "no_key" });
  /** New fills of offers, as they come. */
  readonly filled = new Signal<OfferFill[]>([]);
  readonly #socket: VenueSocket;
  readonly #say: (said: Said) => void;
  #assets: Asset[] = [];
  #key: Key | null = null;
  #shown = false;
  #demandOf: Subscription | null = null;
  #nextSequence = 0n;
  readonly #refreshInfo = atMostEvery(INFO_EVERY_MS, () => void this.#loadInfo());

  constructor(socket: VenueSocket, say: (said: Said) => void) {
    this.#socket = socket;
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
    this.#follow(this.#shown);
  }

  /** The feed is followed while somebody looks at it. */
  set shown(shown: boolean) {
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#follow(shown);
  }

  apply(message: BatchMessage | DemandMessage | AccountMessage): void {
    if (message.type === "account") return this.#applyAccount(message);
    const market = this.market.value;
    if (!market) return;
    if (message.type === "batch") {
      if (message.batch !== market.name) return;
      market.apply(message, performance.now());
      const newest = message.blocks.at(-1);
      if (newest) this.offers.settled(market.name, newest.block);
      this.#refreshInfo();
    } else {
      const { sell, buy } = market.pair.value;
      if (message.sell === sell && message.buy === buy) market.demand.value = message;
    }
  }

  setKey(key: Key | null): void {
    this.#key = key;
    this.#nextSequence = 0n;
    this.offers.clear();
    this.signer.value = { state: key === null ? "no_key" : isEd25519(key) ? "signing_in" : "hmac" };
  }

  /** This browser cannot sign with the key. */
  onKeyUnusable(error: KeyError): void {
    this.signer.value = { state: "unable", why: error.message };
  }

  onRefused(): void {
    if (this.signer.value.state !== "no_key") this.signer.value = { state: "no_key" };
  }

  /** The venue knows the key: whose transactions it signs, and the number of the next one. */
  async onSignedIn(): Promise<void> {
    const key = this.#key;
    if (!key || !isEd25519(key) || this.list.value.length === 0) return;
    try {
      const [account, publicKey] = await Promise.all([fetchAccount(key), publicKeyHex(key)]);
      if (key !== this.#key) return;
      this.#learnSequence(account);
      const ours = account.transaction_key ?? null;
      const accountId = account.account_id;
      if (ours === publicKey) this.signer.value = { state: "ready", key, accountId };
      else this.signer.value = { state: ours === null ? "no_account_key" : "other_account_key", publicKey, accountId };
    } catch (error) {
      this.signer.value = error instanceof KeyError ? { state: "unable", why: error.message } : { state: "failed", why: (error as Error).message };
    }
  }

  /** Signs and hands in an offer. Returns the block that it is collected for. */
  async offer(pair: Pair, amount: bigint, limitBits: bigint, statedPrice: string): Promise<Sent> {
    const { sell, buy } = pair;
    const draft = { sell, buy, amount: formatUnits(amount, this.#asset(sell).decimals), stated_price: statedPrice };
    const asked: Omit<CreateOffer, "market_id"> = {
      operation: "create_offer", sell: this.#asset(sell).asset_id, buy: this.#asset(buy).asset_id, amount, limit_bits: limitBits,
    };
    return this.#send(asked, { makes: draft });
  }

  async cancel(offer: OwnOffer): Promise<Sent | null> {
    const place = offer.standing;
    if (!place) return null;
    const asked: Omit<CancelOffer, "market_id"> = {
      operation: "cancel_offer", sell: this.#asset(offer.sell).asset_id, buy: this.#asset(offer.buy).asset_id,
      limit_bits: BigInt(place.limit_bits), tie: BigInt(place.tie), sequence: BigInt(offer.sequence),
    };
    return this.#send(asked, { cancels: offer.key });
  }

  decimals(asset: string): number {
    return this.#assets.find(({ symbol }) => symbol === asset)?.decimals ?? 0;
  }

  async #send(asked: Omit<CreateOffer, "market_id"> | Omit<CancelOffer, "market_id">, asks: Sent["asks"]): Promise<Sent> {
    const market = this.market.value;
    const signer = this.signer.value;
    if (!market || signer.state !== "ready") throw new Error(t.offer.cannotSign);
    const { market_id, name, domain } = market.info.value;
    const sequence = this.#nextSequence;
    this.#nextSequence += 1n;
    const sign = (terms: Terms): Promise<string> =>
      signTransaction(signer.key, domain, encodeTransaction(signer.accountId, sequence, { ...asked, market_id }, terms));
    try {
      const { block } = await postWithTerms(name, { until: market.lastBlockWithin(COUNTS_MS) }, sign);
      const sent: Sent = { batch: name, sequence: sequence.toString(), block, asks };
      this.offers.collected(sent);
      return sent;
    } catch (error) {
      // It may have been the number: another tab signs for the account too.
      await this.#reloadSequence(signer.key);
      throw error;
    }
  }

  async #reloadSequence(key: Key): Promise<void> {
    try {
      this.#learnSequence(await fetchAccount(key));
    } catch {
      // The user sees what the transaction met; the number is requested again after the next refusal.
    }
  }

  /** Numbers only go up: some of one's own may be collected and not yet counted. */
  #learnSequence({ next_sequence }: AccountInfo): void {
    const next = BigInt(next_sequence ?? "0");
    if (next > this.#nextSequence) this.#nextSequence = next;
  }

  #applyAccount(message: AccountMessage): void {
    const { fills, ended } = this.offers.apply(message);
    if (message.kind === "update" && fills.length > 0) this.filled.value = fills;
    for (const update of ended) this.#say(describeDrop(update));
  }

  #follow(on: boolean): void {
    const market = this.market.value;
    if (!market) return;
    const subscription: Subscription = { channel: "batch", batch: market.name };
    if (on) this.#socket.subscribe(subscription);
    else this.#socket.unsubscribe(subscription);
    this.#followDemand(on);
    if (on) this.#refreshInfo();
  }

  #followDemand(on: boolean): void {
    const market = this.market.value;
    if (!market) return;
    if (this.#demandOf) this.#socket.unsubscribe(this.#demandOf);
    this.#demandOf = on ? { channel: "demand", batch: market.name, ...market.pair.value } : null;
    if (this.#demandOf) this.#socket.subscribe(this.#demandOf);
  }

  /** What the feed does not tell: the phase, how many offers stand. */
  async #loadInfo(): Promise<void> {
    if (!this.#shown) return;
    try {
      this.list.value = await fetchBatches();
      const market = this.market.value;
      const info = this.list.value.find(({ name }) => name === market?.name);
      if (market && info) market.info.value = info;
    } catch {
      // The masthead shows the connection's own state, and the next message asks again.
    }
  }

  #asset(symbol: string): Asset {
    const asset = this.#assets.find((each) => each.symbol === symbol);
    if (!asset) throw new Error(t.offer.noAsset(symbol));
    return asset;
  }
}

