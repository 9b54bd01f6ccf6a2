// The page's one model: connection, venue, the chosen market, the account, the desk for batches, fair access, and what has been said to
// the user.

import {
  type Asset, type Client, type ExitRequest, type Fill, type Instrument, type Interval, type Key, KeyError, type OrderAnswer,
  type OrderRequest, type OrderState, pathSymbol, type Refused, type Status, type Stream, type StreamMessage, type StreamState,
  type Subscription, type WsBook, type WsInstruments,
} from "walras";
import { client } from "../api/client.ts";
import { favourites } from "../base/settings.ts";
import { Signal, atMostEvery } from "../base/signal.ts";
import { errorText } from "../texts/error-text.ts";
import { t } from "../texts/index.ts";
import { Account } from "./account.ts";
import { alerts } from "./alerts.ts";
import { BatchDesk } from "./batch-desk.ts";
import { FairDesk } from "./fair-access.ts";
import { freshClientOrderId } from "./client-order-id.ts";
import { Market, Units } from "./market.ts";
import { NetworkDesk } from "./network.ts";
import { hasEnded } from "./order-end.ts";
import { type Said, describeEnd } from "./outcome.ts";
import { Tickers } from "./tickers.ts";

const POSITIONS_EVERY_MS = 1_000;
const CLOSED_EVERY_MS = 1_000;
const ASSETS_EVERY_MS = 1_000;
/** The venue's largest page. */
const PAGE_ROWS = 1_000;
const INSTRUMENTS: Subscription = { channel: "instruments" };

export class Venue {
  readonly connection = new Signal<{ state: StreamState; retryInMs: number }>({ state: "connecting", retryInMs: 0 });
  readonly status = new Signal<Status | null>(null);
  readonly instruments = new Signal<Instrument[]>([]);
  readonly market = new Signal<Market | null>(null);
  readonly account = new Account(() => client.venueTimeNs());
  readonly notice = new Signal<Said | null>(null);
  /** New fills, as they come. */
  readonly filled = new Signal<Fill[]>([]);
  readonly stream: Stream;
  readonly desk: BatchDesk;
  readonly fair = new FairDesk();
  readonly network = new NetworkDesk(() => (this.fair.isKnown ? this.fair.isOn.value : null));
  readonly tickers = new Tickers();
  #assets: Asset[] = [];
  /** Of the account that is signed in. */
  #own: Client | null = null;
  /** Loads the venue's records of orders that have ended since. Where that fails, the next end of an order asks again. */
  readonly #refreshClosed = atMostEvery(CLOSED_EVERY_MS, () => void this.account.pastOrders.catchUp().catch(() => {}));
  readonly #refreshPositions = atMostEvery(POSITIONS_EVERY_MS, () => void this.#loadPositions());
  readonly #refreshAssets = atMostEvery(ASSETS_EVERY_MS, () => void this.#loadAssets());

  constructor() {
    this.stream = client.stream({
      onState: (state, retryInMs) => this.#onState(state, retryInMs),
      onMessage: (message) => this.#onMessage(message),
      onSignInFailed: (error) => this.#onSignInFailed(error),
      // A message that the page cannot read: a bug on one side.
      onError: (error) => this.say({ tone: "bad", title: t.notices.disagree, text: t.notices.disagreeText(error.message) }),
    });
    this.desk = new BatchDesk(this.stream, (said) => this.say(said), () => this.account.balances.value);
  }

  say(notice: Said): void {
    this.notice.value = notice;
  }

  /** Loads what the page begins with, then connects. Throws when the venue is not there. */
  async start(preferred: string | null): Promise<void> {
    const [assets, instruments, batches] = await Promise.all([client.assets(), client.instruments(), client.batches()]);
    this.#assets = assets;
    this.desk.start(batches, assets);
    this.#list(instruments);
    favourites.watch(() => this.#followTickers());
    alerts.watch(() => this.#followTickers());
    this.stream.follow({ channel: "status" });
    this.stream.follow(INSTRUMENTS);
    void this.stream.open();
    void this.network.lookOnce();
    const first = instruments.find((instrument) => pathSymbol(instrument.symbol) === preferred) ?? instruments[0];
    if (first) this.choose(first.symbol);
    else if (batches.length === 0) this.say({ tone: "plain", title: t.notices.nothingTraded, text: t.notices.nothingTradedText });
  }

  decimals(asset: string): number {
    return this.#assets.find(({ symbol }) => symbol === asset)?.decimals ?? 0;
  }

  instrument(name: string): Instrument | undefined {
    return this.instruments.value.find(({ symbol }) => symbol === name || pathSymbol(symbol) === pathSymbol(name));
  }

  units(symbol: string): Units | null {
    const instrument = this.instrument(symbol);
    return instrument ? new Units(instrument, this.#assets) : null;
  }

  choose(symbol: string): void {
    const units = this.units(symbol);
    if (!units) return;
    const before = this.market.value;
    if (before) for (const subscription of subscriptionsOf(before)) this.stream.unsubscribe(subscription);
    const market = new Market(units);
    if (before) market.interval = before.interval;
    market.ticker.value = this.tickers.all.value.get(symbol) ?? null;
    this.market.value = market;
    for (const subscription of subscriptionsOf(market)) this.stream.follow(subscription);
    this.#followTickers();
  }

  chooseInterval(interval: Interval): void {
    const market = this.market.value;
    if (!market || market.interval === interval) return;
    this.stream.unsubscribe({ channel: "candles", instrument: pathSymbol(market.symbol), interval: market.interval });
    market.interval = interval;
    market.candles.value = null;
    this.stream.follow({ channel: "candles", instrument: pathSymbol(market.symbol), interval });
  }

  setKey(key: Key | null): void {
    const own = key && client.withKey(key);
    this.#own = own;
    this.account.keyId = key?.id ?? "";
    this.account.clear(key ? "signing_in" : "no_key");
    if (own) {
      this.account.pastFills.start((cursor) => own.fillPage({ cursor, limit: PAGE_ROWS }));
      this.account.pastOrders.start((cursor) => own.closedOrderPage({ cursor, limit: PAGE_ROWS }));
    }
    this.desk.setOwn(own);
    // What came of it is heard of on each connection.
    if (key) this.stream.signIn(key).catch(() => {});
    else this.stream.signOut();
  }

  /** Sends an order, with its exits where it has any. */
  async enter(symbol: string, order: OrderRequest): Promise<OrderAnswer> {
    const { take_profit: profit, stop_loss: loss, ...entry } = order;
    const named = (exit: ExitRequest): ExitRequest => ({ ...exit, client_order_id: freshClientOrderId() });
    const exits = { ...(profit && { take_profit: named(profit) }), ...(loss && { stop_loss: named(loss) }) };
    this.account.expectExits(symbol, order.client_order_id ?? "", Object.values(exits).map(({ client_order_id }) => client_order_id ?? ""));
    return this.stream.submit({ ...entry, ...exits });
  }

  /** All that the venue knows of one of the account's orders. */
  async order(symbol: string, orderId: string): Promise<OrderState> {
    if (this.#own === null) throw new Error(t.orderDetail.needsKey);
    return this.#own.order(pathSymbol(symbol), orderId, { by: "order_id" });
  }

  #list(instruments: Instrument[]): void {
    this.tickers.list(instruments);
    this.#followTickers();
    this.instruments.value = instruments;
  }

  /** Those of the open market and of markets that the user wants to see or to hear of come first. */
  #followTickers(): void {
    const open = this.market.value?.symbol ?? [];
    const { begin, end } = this.tickers.follow([open, favourites.value, alerts.value.map(({ symbol }) => symbol)].flat());
    for (const subscription of end) this.stream.unsubscribe(subscription);
    for (const subscription of begin) this.stream.follow(subscription);
  }

  #onState(state: StreamState, retryInMs: number): void {
    if (state !== "live") this.market.value?.book.forget();
    if (state !== "live" && this.#own && this.account.state.value === "signed_in") this.account.state.value = "signing_in";
    this.connection.value = { state, retryInMs };
  }

  #onSignInFailed(error: Refused | KeyError): void {
    this.account.clear("refused");
    if (error instanceof KeyError) this.desk.onKeyUnusable(error);
    else this.desk.onRefused();
    this.say({
      tone: "bad", title: error instanceof KeyError ? t.notices.keyHere : t.notices.keyRefused(error.code), text: errorText(error),
    });
  }

  /** The account's channel begins. */
  #onSignedIn(): void {
    this.account.state.value = "signed_in";
    if (!this.#own) return;
    this.#refreshPositions();
    void this.desk.onSignedIn();
    const failed = (error: Error): void => this.say({ tone: "bad", title: t.notices.fillsFailed, text: errorText(error) });
    this.account.pastFills.catchUp().catch(failed).finally(() => {
      if (this.account.pastFills.state === "failed") failed(new Error(this.account.pastFills.error));
      this.account.hasPastFills.value = true;
    });
    this.#refreshClosed();
  }

  async #loadPositions(): Promise<void> {
    if (!this.#own || this.account.state.value !== "signed_in") return;
    try {
      this.account.applyPositions(await this.#own.positions(), true);
    } catch (error) {
      this.say({ tone: "bad", title: t.notices.positionsFailed, text: errorText(error) });
    }
  }

  /** Then the list of instruments comes again, with those whose assets were not known. */
  async #loadAssets(): Promise<void> {
    // Where that fails, what comes asks again.
    this.#assets = await client.assets().catch(() => this.#assets);
    this.stream.renew(INSTRUMENTS);
  }

  /** An instrument is listed once its assets are known: amounts are read and written by their decimals. */
  #applyInstruments(message: WsInstruments): void {
    const assets = new Set(this.#assets.map(({ symbol }) => symbol));
    const readable = message.instruments.filter(({ base, quote }) => assets.has(base) && assets.has(quote));
    if (readable.length < message.instruments.length) this.#refreshAssets();
    // The channel has no last prices.
    const before = new Map(this.instruments.value.map((each) => [each.symbol, each]));
    const after = new Map(message.kind === "snapshot" ? [] : before);
    for (const each of readable) after.set(each.symbol, { ...each, last_price: before.get(each.symbol)?.last_price ?? null });
    const instruments = [...after.values()];
    this.#list(instruments);
    const [first] = instruments;
    if (this.market.value === null && first) this.choose(first.symbol);
  }

  /** After a gap, or where the copy is not the venue's book, a new snapshot is needed. */
  #applyBook(market: Market, message: WsBook): void {
    try {
      const applied = market.book.apply(message);
      if (applied === "gap" || applied === "differs") this.stream.renew({ channel: "book", instrument: pathSymbol(market.symbol) });
    } finally {
      market.bookChanged.touch();
    }
  }

  #onMessage(message: StreamMessage): void {
    const market = this.market.value;
    switch (message.type) {
      case "status":
        this.status.value = message;
        this.fair.isKnown = true;
        if (this.fair.isOn.value !== message.fair_access) this.fair.isOn.value = message.fair_access;
        return;
      case "instruments":
        this.#applyInstruments(message);
        return;
      case "account": {
        if (message.kind === "snapshot") this.#onSignedIn();
        const fills = this.account.apply(message);
        this.desk.apply(message);
        if (message.kind === "update" && fills.length > 0) this.filled.value = fills;
        for (const update of message.order_updates ?? []) {
          const said = describeEnd(update);
          if (said) this.say(said);
        }
        if (message.order_updates?.some(hasEnded)) this.#refreshClosed();
        if (!message.positions && (fills.length > 0 || message.order_updates)) this.#refreshPositions();
        return;
      }
      case "batch":
      case "demand":
        this.desk.apply(message);
        return;
      case "book":
        if (!market || pathSymbol(market.symbol) !== pathSymbol(message.instrument)) return;
        this.#applyBook(market, message);
        return;
      case "trades":
        if (market && pathSymbol(market.symbol) === pathSymbol(message.instrument)) market.applyTrades(message);
        return;
      case "candles":
        if (market && pathSymbol(market.symbol) === pathSymbol(message.instrument)) market.applyCandles(message);
        return;
      case "ticker":
        this.tickers.take(message);
        if (market && pathSymbol(market.symbol) === pathSymbol(message.instrument)) market.ticker.value = message;
        return;
      default:
        return;
    }
  }
}

function subscriptionsOf(market: Market): Subscription[] {
  const instrument = pathSymbol(market.symbol);
  return [
    { channel: "book", instrument },
    { channel: "trades", instrument },
    { channel: "candles", instrument, interval: market.interval },
  ];
}
