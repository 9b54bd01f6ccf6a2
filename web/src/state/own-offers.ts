// One's own offers: what the venue collected, what stands, what traded. As with orders, nothing is here that the venue did not say.

import type { Offer, OfferFill, OfferUpdate, WsAccount } from "walras";
import { Signal } from "../base/signal.ts";

const FILLS_KEPT = 200;

/** A transaction that is collected: its outcome comes with its block. */
export interface Sent {
  batch: string;
  sequence: string;
  block: string;
  /** The offer that it makes, the key of the offer that it cancels, or what it gives to a pool. */
  asks: { makes: OfferDraft } | { cancels: string } | { gives: { asset: string; amount: string }[] };
}

export interface OfferDraft {
  sell: string;
  buy: string;
  amount: string;
  stated_price: string;
}

export interface OwnOffer extends OfferDraft {
  key: string;
  batch: string;
  sequence: string;
  /** `collected` has no place in the market yet; `cancelling` has a cancel collected. */
  state: "collected" | "standing" | "cancelling";
  /** The block that it is collected for, that it stands since, that its cancel is collected for. */
  block: string;
  standing: Offer | null;
}

export class OwnOffers {
  readonly changed = new Signal<OwnOffers>(this);
  /** Newest first. */
  readonly fills = new Signal<OfferFill[]>([]);
  readonly #standing = new Map<string, Offer>();
  readonly #sent = new Map<string, Sent>();

  /** Newest first: those collected, then those that stand. */
  list(batch: string): OwnOffer[] {
    const cancels = new Map<string, Sent>();
    const offers: OwnOffer[] = [];
    for (const [key, sent] of this.#sent) {
      if ("cancels" in sent.asks) cancels.set(sent.asks.cancels, sent);
      else if ("makes" in sent.asks && !this.#standing.has(key)) {
        const { batch: of, sequence, block } = sent;
        offers.push({ ...sent.asks.makes, key, batch: of, sequence, state: "collected", block, standing: null });
      }
    }
    for (const [key, offer] of this.#standing) {
      const cancel = cancels.get(key);
      offers.push({ ...offer, key, state: cancel ? "cancelling" : "standing", block: cancel?.block ?? offer.block, standing: offer });
    }
    return offers.filter((offer) => offer.batch === batch).sort((a, b) => Number(BigInt(b.sequence) - BigInt(a.sequence)));
  }

  /** Amounts of `asset` that are collected, in whichever market, and have had no outcome yet: no balance is less by them. */
  collectedOf(asset: string): string[] {
    return [...this.#sent.values()].flatMap(({ asks }) => {
      if ("gives" in asks) return asks.gives.filter((each) => each.asset === asset).map(({ amount }) => amount);
      return "makes" in asks && asks.makes.sell === asset ? [asks.makes.amount] : [];
    });
  }

  /** How many transactions of one's own are collected for a batch's next block. */
  collectedFor(batch: string, block: string | null): number {
    return [...this.#sent.values()].filter((sent) => sent.batch === batch && sent.block === block).length;
  }

  collected(sent: Sent): void {
    // The news of its block may have come before the answer to the request.
    if (!this.#standing.has(offerKey(sent)) && !this.fills.value.some((fill) => offerKey(fill) === offerKey(sent))) {
      this.#sent.set(offerKey(sent), sent);
      this.changed.touch();
    }
  }

  /** Returns what to tell the user of. */
  apply(message: WsAccount): { fills: OfferFill[]; ended: OfferUpdate[] } {
    if (message.kind === "snapshot") this.#standing.clear();
    for (const offer of message.offers ?? []) this.#standing.set(offerKey(offer), offer);
    const ended: OfferUpdate[] = [];
    for (const update of message.offer_updates ?? []) {
      if (update.status === "dropped") ended.push(update);
      this.#update(update);
    }
    const fills = this.#addFills(message.offer_fills ?? []);
    if (message.offers || message.offer_updates) this.changed.touch();
    return { fills, ended };
  }

  /** A block was cleared: whatever was collected for an earlier one has had its outcome. */
  settled(batch: string, block: string): void {
    let changed = false;
    for (const [key, sent] of this.#sent) {
      if (sent.batch === batch && BigInt(sent.block) < BigInt(block)) changed = this.#sent.delete(key) || changed;
    }
    if (changed) this.changed.touch();
  }

  /** A batch has closed: from now on balances are less by what its transactions give to pools. These have no other update. */
  closed(batch: string, block: string): void {
    let changed = false;
    for (const [key, sent] of this.#sent) {
      if (sent.batch === batch && "gives" in sent.asks && BigInt(sent.block) <= BigInt(block)) changed = this.#sent.delete(key) || changed;
    }
    if (changed) this.changed.touch();
  }

  clear(): void {
    this.#standing.clear();
    this.#sent.clear();
    this.fills.value = [];
    this.changed.touch();
  }

  #update(update: OfferUpdate): void {
    const key = offerKey(update);
    const { status, reason: _, sold: __, bought: ___, ...changes } = update;
    this.#sent.delete(key);
    for (const [sentKey, sent] of this.#sent) {
      const cancels = "cancels" in sent.asks && sent.asks.cancels === key;
      if (cancels && (status === "cancelled" || !isLeft(update.amount))) this.#sent.delete(sentKey);
    }
    const known = this.#standing.get(key);
    if (status === "cancelled" || status === "dropped" || !isLeft(changes.amount ?? known?.amount)) this.#standing.delete(key);
    else if (known || (changes.sell !== undefined && changes.tie !== undefined)) this.#standing.set(key, { ...known, ...changes } as Offer);
  }

  #addFills(fills: OfferFill[]): OfferFill[] {
    const known = new Set(this.fills.value.map(fillKey));
    const added = fills.filter((fill) => !known.has(fillKey(fill)));
    if (added.length > 0) {
      const all = [...added.toReversed(), ...this.fills.value].sort((a, b) => Number(BigInt(b.time_ns) - BigInt(a.time_ns)));
      this.fills.value = all.slice(0, FILLS_KEPT);
    }
    return added;
  }
}

export function offerKey(offer: { batch: string; sequence: string }): string {
  return `${offer.batch} ${offer.sequence}`;
}

export function fillKey(fill: OfferFill): string {
  return `${offerKey(fill)} ${fill.block}`;
}

function isLeft(amount: string | undefined): boolean {
  return amount === undefined || /[1-9]/.test(amount);
}
