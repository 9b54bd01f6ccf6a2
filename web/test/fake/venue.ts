// A venue in one process that speaks the API, for developing and testing the page without the real one: no durability, one account.

import {
  type Fill, formatUnits, type Instrument, type Order, type OrderRequest, type OrderState, type OrderWaits, parseUnits,
} from "walras";
import { DEMO_ACCOUNT, ED_PUBLIC_HEX } from "./auth.ts";
import { BATCH_ASSETS, FakeBatch } from "./batch.ts";
import { FakeFair } from "./fair.ts";
import { FakeMarket } from "./market.ts";
import { type FakeOrder, FakeReject, type FakeTrade } from "./matching.ts";
import type { Session } from "./session.ts";
import * as whole from "../whole.ts";

const HISTORY_STEPS = 24_000;
const HISTORY_STEP_NS = 100_000_000n;
const QUOTE_DECIMALS = 2;

const ASSETS = [
  { asset_id: 0, symbol: "USD", decimals: QUOTE_DECIMALS, supply: "1000000000.00" },
  { asset_id: 1, symbol: "BTC", decimals: 8, supply: "21000.00000000" },
  { asset_id: 2, symbol: "ETH", decimals: 8, supply: "120000.00000000" },
  ...BATCH_ASSETS.filter(({ symbol }) => !["USD", "BTC", "ETH"].includes(symbol)).map(
    ({ symbol, decimals }, index) => ({ asset_id: 3 + index, symbol, decimals, supply: "0" }),
  ),
];

function instrument(id: number, base: string, lot: string, sizeDecimals: number): Instrument {
  return whole.instrument({ instrument_id: id, symbol: `${base}/USD`, base, lot_size: lot, size_decimals: sizeDecimals });
}

type Changes = Record<"price" | "trigger" | "size", string | undefined>;

export class FakeVenue {
  readonly assets = ASSETS;
  readonly markets = [
    new FakeMarket(instrument(0, "BTC", "0.0001", 4), 7, 3_071_125, 60),
    new FakeMarket(instrument(1, "ETH", "0.001", 3), 11, 187_240, 12),
  ];
  readonly sessions = new Set<Session>();
  readonly batch: FakeBatch;
  /** A venue without batch markets, as older ones are. */
  hasBatches = true;
  /** `null` for a venue without fair access, as one of one machine is. */
  fair: FakeFair | null = null;
  /** Where each order waited; `null` for a replica that took none of them. */
  waits: OrderWaits | null = null;
  /** Every connection is closed at once. */
  isDown = false;
  logIndex = 0n;
  trades = 0n;
  readonly #available = new Map([
    ["USD", 25_000_000n], ["BTC", 500_000_000n], ["ETH", 4_000_000_000n], ["EUR", 12_500_000n], ["JPY", 4_000_000n], ["XAU", 250_000n],
  ]);
  readonly #fills: Fill[] = [];
  readonly #closed: OrderState[] = [];
  /** Size and time of each order when it entered. */
  readonly #entered = new Map<bigint, { size: bigint; timeNs: bigint }>();
  readonly #started = nowNs();
  /** First stamp that is taken. */
  acceptsTimestampsFromNs = this.#started;
  #timeNs = this.#started - BigInt(HISTORY_STEPS) * HISTORY_STEP_NS;

  constructor() {
    this.batch = new FakeBatch({
      assetId: (symbol) => ASSETS.find((asset) => asset.symbol === symbol)?.asset_id ?? -1,
      available: (symbol) => (this.#available.get(symbol) ?? 0n) - this.#orderReserve(DEMO_ACCOUNT, symbol),
      holdings: (offered) => [...this.#available].map(([symbol, total]) => {
        const reserved = this.#orderReserve(DEMO_ACCOUNT, symbol) + offered(symbol);
        return { asset: ASSETS.find((asset) => asset.symbol === symbol)?.asset_id ?? -1, available: total - reserved, reserved };
      }).sort((a, b) => a.asset - b.asset),
      add: (symbol, units) => this.#available.set(symbol, (this.#available.get(symbol) ?? 0n) + units),
      tell: (account, news) => {
        for (const session of this.sessions) session.onPrivate(account, news);
      },
      nextLogIndex: () => (this.logIndex += 1n),
    }, DEMO_ACCOUNT, ED_PUBLIC_HEX);
    for (const market of this.markets) {
      market.book.onTrade = (trade) => this.#onTrade(market, trade);
      market.book.onOrder = (order, status) => this.#onOrder(market, order, status);
    }
    for (let step = 0; step < HISTORY_STEPS; step += 1) {
      this.#timeNs += HISTORY_STEP_NS;
      for (const market of this.markets) market.botStep(this.#timeNs, () => (this.logIndex += 1n));
    }
  }

  /** Forgets, as a restart does, what was signed: from now on takes only stamps that it cannot have taken before. */
  forgetNonces(): void {
    this.acceptsTimestampsFromNs = nowNs() + 1_000_000_000n;
  }

  /** Lets the bots act `steps` times, now. */
  botSteps(steps: number): void {
    for (let step = 0; step < steps; step += 1) {
      for (const market of this.markets) market.botStep(nowNs(), () => (this.logIndex += 1n));
    }
  }

  /** Somebody else sells this many of base, whatever the price. */
  sellAtMarket(name: string, size: number): void {
    this.market(name).sellAtMarket(size, nowNs(), (this.logIndex += 1n));
  }

  market(name: string | undefined): FakeMarket {
    const market = this.markets.find(({ instrument: { symbol } }) => symbol.replace("/", "-") === name?.replace("/", "-"));
    if (!market) throw new FakeReject(2, "UnknownInstrument", "No such instrument: list the venue's instruments and use an id from there.");
    return market;
  }

  status(): object {
    const seconds = Number((nowNs() - this.#started) / 1_000_000_000n);
    return {
      venue: "Fake venue", version: "0.1.0", commit: "", started_at_ns: String(this.#started),
      accepts_timestamps_from_ns: String(this.acceptsTimestampsFromNs), log_index: String(this.logIndex), time_ns: String(nowNs()),
      ready: true, storage: "ok", fair_access: this.fair !== null, instruments: this.markets.length, accounts: 2,
      commands_total: String(this.logIndex), trades_total: String(this.trades),
      demo: { speed: "10x", source: "a generated day", progress_permille: Math.min(1000, 372 + seconds) },
    };
  }

  balances(account: number): object[] {
    return [...this.#available].map(([asset, total]) => {
      const decimals = ASSETS.find(({ symbol }) => symbol === asset)?.decimals ?? 0;
      const reserved = this.#reserved(account, asset);
      return { asset, available: formatUnits(total - reserved, decimals), reserved: formatUnits(reserved, decimals) };
    });
  }

  positions(account: number): object[] {
    return this.markets.map(({ instrument: { symbol, size_decimals }, book }) => {
      const net = this.#fills.filter((fill) => fill.instrument === symbol)
        .reduce((sum, fill) => sum + parseUnits(fill.size, size_decimals) * (fill.side === "buy" ? 1n : -1n), 0n);
      return { instrument: symbol, position: formatUnits(net, size_decimals), open_orders: book.ordersOf(account).length };
    });
  }

  accountSnapshot(account: number): object {
    return {
      balances: this.balances(account),
      orders: this.markets.flatMap((market) => market.book.ordersOf(account).map((order) => wireOrder(market, order))), fills: [],
      ...(this.hasBatches ? { offers: this.batch.offers() } : {}),
    };
  }

  /** The batch closes; `clearBatch` prices it. */
  closeBatch(): void {
    this.batch.close();
    for (const session of this.sessions) session.publishBatch(false);
  }

  clearBatch(): void {
    const closed = this.batch.closedBlock !== null;
    this.batch.clear(nowNs());
    if (closed) for (const session of this.sessions) session.publishBatch(true);
  }

  /** Goes elsewhere, and no page hears of it before the account's next news. */
  spend(asset: string, units: bigint): void {
    this.#available.set(asset, (this.#available.get(asset) ?? 0n) - units);
  }

  /** As if it had been traded before. */
  addFill(fill: Fill): void {
    this.#fills.push(fill);
  }

  /** An order that ended before. */
  addClosed(order: OrderState): void {
    this.#closed.push(order);
  }

  fills(query: URLSearchParams): object {
    const { items, ...end } = page(this.#fills, query);
    return { fills: items, ...end };
  }

  closedOrders(query: URLSearchParams): object {
    const { items, ...end } = page(this.#closed, query);
    return { orders: items, ...end };
  }

  /** One order by the venue's id, open or ended. */
  orderState(account: number, market: FakeMarket, orderId: string): OrderState {
    const waits = this.waits === null ? {} : { waits: this.waits };
    const { instrument: { symbol }, priceDecimals, sizeDecimals } = market;
    const ended = this.#closed.find((order) => order.instrument === symbol && order.order_id === orderId);
    if (ended) return { ...ended, open: "0", ...waits };
    const order = market.book.ordersOf(account).find((each) => String(each.orderId) === orderId);
    if (!order) throw new FakeReject(109, "NotFound", "No order of this account has that id.");
    const { size, timeNs } = this.#entered.get(order.orderId) ?? { size: order.open, timeNs: nowNs() };
    const { filled, value, fee } = this.#tradedOf(market, order);
    const { exit_of: _, is_held: __, ...now } = wireOrder(market, order);
    return whole.orderState({
      ...now, original_size: formatUnits(size, sizeDecimals), filled: formatUnits(filled, sizeDecimals),
      average_price: filled === 0n ? null : formatUnits(value / filled, priceDecimals), fee: formatUnits(fee, QUOTE_DECIMALS),
      entered_at_ns: String(timeNs), ended_at_ns: null, status: filled === 0n ? "resting" : "partially_filled", ...waits,
    });
  }

  order(account: number, market: FakeMarket, request: OrderRequest): object {
    const { priceDecimals, sizeDecimals } = market;
    const lot = parseUnits(market.instrument.lot_size, sizeDecimals);
    const size = parse(request.size, sizeDecimals, 114, "SizeNotOnLot");
    if (size <= 0n || size % lot !== 0n) throw new FakeReject(114, "SizeNotOnLot", "The size is not a whole number of lots.");
    const order: FakeOrder = {
      orderId: (this.logIndex += 1n), clientOrderId: request.client_order_id ?? String(this.logIndex), account, side: request.side,
      kind: request.type, price: request.price === undefined ? null : parse(request.price, priceDecimals, 113, "PriceNotOnTick"),
      trigger: request.trigger === undefined ? null : parse(request.trigger, priceDecimals, 113, "PriceNotOnTick"),
      open: size, peak: request.peak === undefined ? null : parse(request.peak, sizeDecimals, 23, "DisplayInvalid"),
      hidden: request.display === "hidden", timeInForce: request.time_in_force ?? "gtc",
    };
    this.#checkFunds(account, market, order);
    this.#entered.set(order.orderId, { size, timeNs: nowNs() });
    const partner = request.oco_with === undefined ? undefined : findOrder(market, account, request.oco_with);
    if (partner?.linked) {
      throw new FakeReject(93, "LinkInvalid", "The order cannot be linked with that one: name an open one that has no partner.");
    }
    const minSize = request.min_size === undefined ? 0n : parse(request.min_size, sizeDecimals, 24, "MinSizeInvalid");
    const { status, trades } = market.book.submit(order, request.post_only ?? "off", minSize, nowNs());
    if (partner && order.open > 0n) {
      if (trades.length > 0) market.book.cancel(partner);
      else [order.linked, partner.linked] = [partner, order];
    }
    return {
      log_index: String(this.logIndex), time_ns: String(nowNs()), order_id: String(order.orderId), client_order_id: order.clientOrderId,
      status,
      open: formatUnits(order.open, sizeDecimals),
      fills: trades.map((trade) => ({
        trade_id: String(trade.tradeId), price: formatUnits(trade.price, priceDecimals), size: formatUnits(trade.size, sizeDecimals),
        fee: formatUnits(feeOf(market, trade), QUOTE_DECIMALS),
      })),
    };
  }

  /** An order with its exits: all are entered, or none. */
  bracket(account: number, asked: OrderRequest): object {
    const market = this.market(asked.instrument);
    const name = asked.client_order_id ?? String(this.logIndex + 1n);
    const request = { ...asked, client_order_id: name };
    const entered: FakeOrder[] = [];
    try {
      for (const [kind, exit] of [["take_profit", request.take_profit], ["stop", request.stop_loss]] as const) {
        if (exit === undefined) continue;
        const { priceDecimals, sizeDecimals } = market;
        const trigger = parse(exit.trigger, priceDecimals, 113, "PriceNotOnTick");
        const order: FakeOrder = {
          orderId: (this.logIndex += 1n), clientOrderId: exit.client_order_id ?? String(this.logIndex), account,
          side: request.side === "buy" ? "sell" : "buy", kind: exit.price === undefined ? kind : `${kind}_limit`,
          price: exit.price === undefined ? null : parse(exit.price, priceDecimals, 113, "PriceNotOnTick"),
          trigger, open: parse(request.size, sizeDecimals, 114, "SizeNotOnLot"),
          peak: null, hidden: false, timeInForce: "gtc", exitOf: name, isHeld: true,
        };
        refuseTouched(market, order, trigger);
        market.book.submit(order, "off", 0n, nowNs());
        entered.push(order);
      }
      return this.order(account, market, request);
    } catch (error) {
      for (const exit of entered) if (exit.open > 0n) market.book.cancel(exit);
      throw error;
    }
  }

  cancel(account: number, market: FakeMarket, clientOrderId: string): object {
    market.book.cancel(findOrder(market, account, clientOrderId));
    return { log_index: String((this.logIndex += 1n)), time_ns: String(nowNs()), status: "cancelled" };
  }

  amend(account: number, market: FakeMarket, clientOrderId: string, asked: Changes): object {
    const { price, trigger, size } = asked;
    const order = findOrder(market, account, clientOrderId);
    if (trigger !== undefined) {
      if (order.trigger === null) throw new FakeReject(29, "AmendInvalid", "Only a stop that waits has a trigger.");
      const at = parse(trigger, market.priceDecimals, 113, "PriceNotOnTick");
      refuseTouched(market, order, at);
      order.trigger = at;
    }
    market.book.amend(
      order, price === undefined ? null : parse(price, market.priceDecimals, 113, "PriceNotOnTick"),
      size === undefined ? null : parse(size, market.sizeDecimals, 114, "SizeNotOnLot"), nowNs(),
    );
    return {
      log_index: String((this.logIndex += 1n)), time_ns: String(nowNs()), status: "resting",
      open: formatUnits(order.open, market.sizeDecimals), fills: [],
    };
  }

  massCancel(account: number, market: FakeMarket): object {
    const orders = market.book.ordersOf(account);
    for (const order of orders) market.book.cancel(order);
    const { symbol } = market.instrument;
    return {
      log_index: String((this.logIndex += 1n)), time_ns: String(nowNs()),
      cancelled: orders.map(({ orderId, clientOrderId }) => ({
        instrument: symbol, order_id: String(orderId), client_order_id: clientOrderId,
      })),
    };
  }

  #onTrade(market: FakeMarket, trade: FakeTrade): void {
    this.trades += 1n;
    const wire = market.record(trade);
    for (const session of this.sessions) session.onTrade(market, wire);
    for (const [order, role] of [[trade.maker, "maker"], [trade.taker, "taker"]] as const) {
      if (order.account === 0) continue;
      const fee = role === "taker" ? feeOf(market, trade) : 0n;
      this.#settle(market, order, trade, fee);
      const fill = whole.fill({
        instrument: market.instrument.symbol, trade_id: wire.trade_id, order_id: String(order.orderId),
        client_order_id: order.clientOrderId,
        time_ns: wire.time_ns, side: order.side, price: wire.price, size: wire.size, fee: formatUnits(fee, QUOTE_DECIMALS), role,
      });
      this.#fills.push(fill);
      for (const session of this.sessions) session.onPrivate(order.account, { ...fill });
    }
  }

  #onOrder(market: FakeMarket, order: FakeOrder, status: string): void {
    if (order.account === 0) return;
    if (status === "filled" || status === "cancelled") this.#close(market, order, status);
    // As of the venue: only lists name entries.
    const { exit_of: _, is_held: __, ...news } = wireOrder(market, order);
    for (const session of this.sessions) session.onPrivate(order.account, { ...news, linked_order_id: null, status });
  }

  #close(market: FakeMarket, order: FakeOrder, status: "filled" | "cancelled"): void {
    const { priceDecimals, sizeDecimals } = market;
    const { filled, value, fee } = this.#tradedOf(market, order);
    const { size, timeNs } = this.#entered.get(order.orderId) ?? { size: filled, timeNs: nowNs() };
    const { exit_of: _, is_held: __, ...last } = wireOrder(market, order);
    this.#closed.push(whole.orderState({
      ...last, original_size: formatUnits(size, sizeDecimals),
      filled: formatUnits(filled, sizeDecimals), average_price: filled === 0n ? null : formatUnits(value / filled, priceDecimals),
      fee: formatUnits(fee, QUOTE_DECIMALS), entered_at_ns: String(timeNs), ended_at_ns: String(nowNs()), status,
      cancelled: formatUnits(size - filled, sizeDecimals), reason: status === "filled" ? null : "requested",
    }));
  }

  /** Of an order, in units: what it has traded, its value in price times size, and its fees. */
  #tradedOf(
    { instrument: { symbol }, priceDecimals, sizeDecimals }: FakeMarket,
    order: FakeOrder,
  ): { filled: bigint; value: bigint; fee: bigint } {
    const own = this.#fills.filter((fill) => fill.instrument === symbol && fill.order_id === String(order.orderId));
    return {
      filled: own.reduce((sum, fill) => sum + parseUnits(fill.size, sizeDecimals), 0n),
      value: own.reduce((sum, fill) => sum + parseUnits(fill.price, priceDecimals) * parseUnits(fill.size, sizeDecimals), 0n),
      fee: own.reduce((sum, fill) => sum + parseUnits(fill.fee, QUOTE_DECIMALS), 0n),
    };
  }

  #settle(market: FakeMarket, order: FakeOrder, trade: FakeTrade, fee: bigint): void {
    const { base } = market.instrument;
    const sign = order.side === "buy" ? 1n : -1n;
    const baseUnits = trade.size * 10n ** BigInt(8 - market.sizeDecimals);
    this.#available.set(base, (this.#available.get(base) ?? 0n) + sign * baseUnits);
    this.#available.set("USD", (this.#available.get("USD") ?? 0n) - sign * valueOf(market, trade.price, trade.size) - fee);
  }

  #reserved(account: number, asset: string): bigint {
    return this.#orderReserve(account, asset) + this.batch.reserved(asset);
  }

  #orderReserve(account: number, asset: string): bigint {
    let total = 0n;
    for (const market of this.markets) {
      for (const order of market.book.ordersOf(account)) {
        // One of a pair reserves.
        if (order.isHeld === true || (order.linked !== undefined && order.linked.orderId < order.orderId)) continue;
        const price = order.price ?? order.trigger ?? 0n;
        if (order.side === "buy" && asset === "USD") total += valueOf(market, price, order.open);
        if (order.side === "sell" && asset === market.instrument.base) total += order.open * 10n ** BigInt(8 - market.sizeDecimals);
      }
    }
    return total;
  }

  #checkFunds(account: number, market: FakeMarket, order: FakeOrder): void {
    const asset = order.side === "buy" ? "USD" : market.instrument.base;
    const price = order.price ?? market.book.side("sell")[0]?.price ?? 0n;
    const need = order.side === "buy" ? valueOf(market, price, order.open) : order.open * 10n ** BigInt(8 - market.sizeDecimals);
    if (need > (this.#available.get(asset) ?? 0n) - this.#reserved(account, asset)) {
      throw new FakeReject(
        60, "InsufficientFunds",
        "The available balance does not cover the order's value and fee, or the withdrawal: ask for less, cancel orders that reserve the " +
          "asset, or deposit.",
      );
    }
  }
}

/** Newest first. A cursor is how many older ones there are: that number stays as new ones come. */
function page<T>(all: T[], query: URLSearchParams): { items: T[]; next: string | null; complete: boolean } {
  const end = Number(query.get("cursor") ?? all.length);
  const begin = Math.max(0, end - Number(query.get("limit") ?? "100"));
  return { items: all.slice(begin, end).reverse(), next: begin === 0 ? null : String(begin), complete: true };
}

function nowNs(): bigint {
  return BigInt(Date.now()) * 1_000_000n;
}

function valueOf(market: FakeMarket, price: bigint, size: bigint): bigint {
  return (price * size) / 10n ** BigInt(market.sizeDecimals);
}

function feeOf(market: FakeMarket, trade: FakeTrade): bigint {
  return (valueOf(market, trade.price, trade.size) * BigInt(market.instrument.taker_fee_ppm)) / 1_000_000n;
}

function parse(text: string, decimals: number, code: number, reason: string): bigint {
  try {
    return parseUnits(text, decimals);
  } catch {
    throw new FakeReject(code, reason, "The number does not fit the instrument's steps.");
  }
}

/** A stop that the last trade has set off would not wait. */
function refuseTouched(market: FakeMarket, { side, kind }: Pick<FakeOrder, "side" | "kind">, trigger: bigint): void {
  const last = market.instrument.last_price;
  const rises = (side === "buy") !== kind.startsWith("take_profit");
  if (last !== null && (rises ? parseUnits(last, market.priceDecimals) >= trigger : parseUnits(last, market.priceDecimals) <= trigger)) {
    throw new FakeReject(90, "StopWouldTrigger", "The last trade has touched the trigger, so the order would not wait.");
  }
}

function findOrder(market: FakeMarket, account: number, clientOrderId: string): FakeOrder {
  const order = market.book.find(account, clientOrderId);
  if (!order) {
    throw new FakeReject(
      4, "UnknownOrder", "No open order of this account has that client_order_id: it was filled, cancelled, or never accepted.",
    );
  }
  return order;
}

function wireOrder(market: FakeMarket, order: FakeOrder): Order {
  const price = (units: bigint | null): string | null => (units === null ? null : formatUnits(units, market.priceDecimals));
  const shown = order.hidden ? 0n : order.peak !== null && order.peak < order.open ? order.peak : order.open;
  return whole.order({
    instrument: market.instrument.symbol, order_id: String(order.orderId), client_order_id: order.clientOrderId, side: order.side,
    type: order.kind,
    price: price(order.price), trigger: price(order.trigger), open: formatUnits(order.open, market.sizeDecimals),
    shown: formatUnits(shown, market.sizeDecimals), time_in_force: order.timeInForce,
    linked_order_id: order.linked === undefined ? null : String(order.linked.orderId),
    ...(order.exitOf === undefined ? {} : { exit_of: order.exitOf, is_held: order.isHeld === true }),
  });
}
