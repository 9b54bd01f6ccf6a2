// A price-time book in ticks and lots, enough of one for the page to talk to: slow and plain. The real one is the venue's.

import type { OrderType, PostOnly, Side, TimeInForce } from "walras";
import { cancelBracket, cancelPartners, freeExits, releaseExits } from "./brackets.ts";

export interface FakeOrder {
  orderId: bigint;
  clientOrderId: string;
  account: number;
  side: Side;
  kind: OrderType;
  price: bigint | null;
  trigger: bigint | null;
  open: bigint;
  peak: bigint | null;
  hidden: boolean;
  timeInForce: TimeInForce;
  /** What it has traded. */
  filled?: bigint;
  /** The client order id of its entry, of an exit; and whether nothing of that has traded. */
  exitOf?: string;
  isHeld?: boolean;
  /** One cancels the other. */
  linked?: FakeOrder;
}

export interface FakeTrade {
  tradeId: bigint;
  timeNs: bigint;
  price: bigint;
  size: bigint;
  takerSide: Side;
  maker: FakeOrder;
  taker: FakeOrder;
}

export interface Submitted {
  status: "resting" | "filled" | "partially_filled" | "cancelled" | "waiting_trigger";
  trades: FakeTrade[];
}

export class FakeReject extends Error {
  readonly code: number;
  readonly reason: string;

  constructor(code: number, reason: string, message: string) {
    super(message);
    this.code = code;
    this.reason = reason;
  }
}

export class FakeBook {
  /** Sorted: best first, then first come. */
  readonly bids: FakeOrder[] = [];
  readonly asks: FakeOrder[] = [];
  readonly stops: FakeOrder[] = [];
  /** Called for every trade and for every order whose state changed, in order. */
  onTrade: (trade: FakeTrade) => void = () => {};
  onOrder: (order: FakeOrder, status: string) => void = () => {};
  /** Orders collect for an auction: nothing is matched. */
  collects = false;
  #nextTrade = 1n;

  side(side: Side): FakeOrder[] {
    return side === "buy" ? this.bids : this.asks;
  }

  find(account: number, clientOrderId: string): FakeOrder | undefined {
    return [...this.bids, ...this.asks, ...this.stops].find((order) => order.account === account && order.clientOrderId === clientOrderId);
  }

  ordersOf(account: number): FakeOrder[] {
    return [...this.bids, ...this.asks, ...this.stops].filter((order) => order.account === account);
  }

  submit(order: FakeOrder, postOnly: PostOnly, minSize: bigint, timeNs: bigint): Submitted {
    if (order.trigger !== null) {
      this.stops.push(order);
      this.onOrder(order, "waiting_trigger");
      return { status: "waiting_trigger", trades: [] };
    }
    const result = this.#enter(order, postOnly, minSize, timeNs);
    releaseExits(this, result.trades);
    cancelPartners(this, result.trades);
    if (order.open === 0n || result.status === "cancelled") freeExits(this, order);
    this.#trigger(timeNs);
    return result;
  }

  cancel(order: FakeOrder, status = "cancelled"): void {
    for (const list of [this.bids, this.asks, this.stops]) {
      const index = list.indexOf(order);
      if (index >= 0) list.splice(index, 1);
    }
    order.open = 0n;
    this.onOrder(order, status);
    cancelBracket(this, order);
  }

  amend(order: FakeOrder, price: bigint | null, size: bigint | null, timeNs: bigint): void {
    const keepsPlace = (price === null || price === order.price) && size !== null && size <= order.open;
    if (size !== null) order.open = size;
    if (keepsPlace || order.trigger !== null) {
      if (price !== null) order.price = price;
      return this.onOrder(order, "resting");
    }
    const list = this.side(order.side);
    list.splice(list.indexOf(order), 1);
    if (price !== null) order.price = price;
    const { trades } = this.#enter(order, "off", 0n, timeNs);
    releaseExits(this, trades);
    cancelPartners(this, trades);
    if (order.open === 0n) freeExits(this, order);
    this.#trigger(timeNs);
  }

  /** Shown size and number of orders by price, best first. */
  depth(side: Side): Map<bigint, { size: bigint; count: number }> {
    const levels = new Map<bigint, { size: bigint; count: number }>();
    for (const order of this.side(side)) {
      if (order.hidden || order.price === null) continue;
      const level = levels.get(order.price) ?? { size: 0n, count: 0 };
      level.size += order.peak !== null && order.peak < order.open ? order.peak : order.open;
      level.count += 1;
      levels.set(order.price, level);
    }
    return levels;
  }

  #enter(order: FakeOrder, postOnly: PostOnly, minSize: bigint, timeNs: bigint): Submitted {
    const fillable = this.#fillable(order);
    if (postOnly !== "off" && fillable > 0n) {
      if (postOnly === "reject") {
        throw new FakeReject(43, "PostOnlyWouldTrade", "The order would trade at once: lower a bid, raise an ask, or allow it to take.");
      }
      const best = this.side(order.side === "buy" ? "sell" : "buy")[0]?.price ?? 0n;
      order.price = order.side === "buy" ? best - 1n : best + 1n;
    }
    if (order.timeInForce === "fok" && fillable < order.open) {
      throw new FakeReject(
        44, "FillOrKillUnfillable",
        "The book cannot fill the whole order now: lower its size, give it a better price, or use immediate-or-cancel to take what " +
          "there is.",
      );
    }
    if (minSize > fillable) {
      throw new FakeReject(
        45, "MinSizeUnfillable",
        "The book cannot fill the minimum size now: lower it, give the order a better price, or leave the minimum out.",
      );
    }
    const trades = this.#match(order, timeNs);
    if (order.open === 0n) return this.#done(order, "filled", trades);
    if (order.price === null || order.timeInForce === "ioc") return this.#done(order, "cancelled", trades);
    const list = this.side(order.side);
    const price = order.price;
    const behind = list.findIndex((other) => (order.side === "buy" ? (other.price ?? 0n) < price : (other.price ?? 0n) > price));
    list.splice(behind < 0 ? list.length : behind, 0, order);
    return this.#done(order, trades.length > 0 ? "partially_filled" : "resting", trades);
  }

  #done(order: FakeOrder, status: Submitted["status"], trades: FakeTrade[]): Submitted {
    this.onOrder(order, status);
    return { status, trades };
  }

  /** Where an auction would end now: as much volume as can be, then as little left over, then the lower price. */
  indicative(): { price: bigint; volume: bigint; imbalance: bigint } | null {
    let best: { price: bigint; volume: bigint; imbalance: bigint } | null = null;
    const total = (orders: FakeOrder[], counts: (price: bigint) => boolean): bigint =>
      orders.reduce((sum, { price: at, open }) => (at !== null && counts(at) ? sum + open : sum), 0n);
    for (const { price } of [...this.bids, ...this.asks].toSorted((a, b) => Number((a.price ?? 0n) - (b.price ?? 0n)))) {
      if (price === null) continue;
      const [demand, supply] = [total(this.bids, (at) => at >= price), total(this.asks, (at) => at <= price)];
      const found = { price, volume: demand < supply ? demand : supply, imbalance: demand - supply };
      const left = (of: { imbalance: bigint }): bigint => (of.imbalance < 0n ? -of.imbalance : of.imbalance);
      if (found.volume === 0n) continue;
      if (best === null || found.volume > best.volume || (found.volume === best.volume && left(found) < left(best))) best = found;
    }
    return best;
  }

  #fillable(order: FakeOrder): bigint {
    if (this.collects) return 0n;
    let total = 0n;
    for (const maker of this.side(order.side === "buy" ? "sell" : "buy")) {
      if (total >= order.open || !accepts(order, maker)) break;
      total += maker.open;
    }
    return total < order.open ? total : order.open;
  }

  #match(taker: FakeOrder, timeNs: bigint): FakeTrade[] {
    const trades: FakeTrade[] = [];
    if (this.collects) return trades;
    const makers = this.side(taker.side === "buy" ? "sell" : "buy");
    for (let maker = makers[0]; taker.open > 0n && maker && accepts(taker, maker); maker = makers[0]) {
      const size = maker.open < taker.open ? maker.open : taker.open;
      maker.open -= size;
      taker.open -= size;
      for (const order of [maker, taker]) order.filled = (order.filled ?? 0n) + size;
      const trade = { tradeId: this.#nextTrade++, timeNs, price: maker.price as bigint, size, takerSide: taker.side, maker, taker };
      trades.push(trade);
      this.onTrade(trade);
      if (maker.open === 0n) makers.shift();
      this.onOrder(maker, maker.open === 0n ? "filled" : "partially_filled");
      this.#last = trade.price;
    }
    return trades;
  }

  #last: bigint | null = null;

  #trigger(timeNs: bigint): void {
    for (;;) {
      const last = this.#last;
      if (last === null) return;
      const index = this.stops.findIndex(({ side, kind, trigger, isHeld }) => {
        if (isHeld === true) return false;
        const at = trigger ?? last;
        return (side === "buy") !== kind.startsWith("take_profit") ? last >= at : last <= at;
      });
      const stop = index < 0 ? undefined : this.stops.splice(index, 1)[0];
      if (!stop) return;
      stop.trigger = null;
      stop.kind = stop.price === null ? "market" : "limit";
      cancelBracket(this, stop);
      releaseExits(this, this.#enter(stop, "off", 0n, timeNs).trades);
    }
  }
}

function accepts(taker: FakeOrder, maker: FakeOrder): boolean {
  if (taker.price === null || maker.price === null) return true;
  return taker.side === "buy" ? maker.price <= taker.price : maker.price >= taker.price;
}
