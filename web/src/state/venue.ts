// The page's one model: connection, venue, the chosen market, the account, the desk for batches, fair access, and what has been said to the user.

import { fetchAssets, fetchBatches, fetchFills, fetchInstruments, fetchPositions, postOrder, venueTimeNs } from "../api/rest.ts";
import type { Key } from "../api/signing.ts";
import { type ConnectionState, type Subscription, VenueSocket } from "../api/socket.ts";
import type {
  Asset, ExitRequest, Fill, Instrument, Interval, OrderReply, OrderRequest, Refusal, ServerMessage, Status,
} from "../api/types.ts";
import { Signal, atMostEvery } from "../base/signal.ts";
import { t } from "../texts/index.ts";
import { Account } from "./account.ts";
import { BatchDesk } from "./batch-desk.ts";
import { FairDesk } from "./fair-access.ts";
import { freshClientOrderId } from "./client-order-id.ts";
import { Market, Units } from "./market.ts";
import { NetworkDesk } from "./network.ts";
import { type Said, describeEnd, refusalText } from "./outcome.ts";
import { Tickers } from "./tickers.ts";

const POSITIONS_EVERY_MS = 1_000;

export class Venue {
  readonly connection = new Signal<{ state: ConnectionState; retryInMs: number }>({ state: "connecting", retryInMs: 0 });
  readonly status = new Signal<Status | null>(null);
  readonly instruments = new Signal<Instrument[]>([]);
  readonly market = new Signal<Market | null>(null);
  readonly account = new Account(venueTimeNs);
  readonly notice = new Signal<Said | null>(null);
  /** New fills, as they come. */
  readonly filled = new Signal<Fill[]>([]);
  readonly socket: VenueSocket;
  readonly desk: BatchDesk;
  readonly fair = new FairDesk();
  readonly network = new NetworkDesk(() => this.fair.isOn.value);
  readonly tickers = new Tickers();
  #assets: Asset[] = [];
  #key: Key | null = null;
  readonly #refreshPositions = atMostEvery(POSITIONS_EVERY_MS, () => void this.#loadPositions());

  constructor(url: string) {
    this.socket = new VenueSocket(url, {
      onState: (state, retryInMs) => this.#onState(state, retryInMs),
      onMessage: (message) => this.#onMessage(message),
      onAuthenticated: (refusal) => this.#onAuthenticated(refusal),
      onKeyUnusable: (error) => {
        this.account.clear("refused");
        this.desk.onKeyUnusable(error);
        this.say({ tone: "bad", title: t.notices.keyHere, text: error.message });
      },
      onUnreadable: (error) =>
        this.say({ tone: "bad", title: t.notices.disagree, text: t.notices.disagreeText(error.message) }),
    });
    this.desk = new BatchDesk(this.socket, (said) => this.say(said));
  }

  say(notice: Said): void {
    this.notice.value = notice;
  }

  /** Loads what does not change, then connects. Throws when the venue is not there. */
  async start(preferred: string | null): Promise<void> {
    const [assets, instruments, batches] = await Promise.all([fetchAssets(), fetchInstruments(), fetchBatches()]);
    this.#assets = assets;
    this.desk.start(batches, assets);
    this.instruments.value = instruments;
    for (const subscription of this.tickers.start(instruments, slug)) this.socket.subscribe(subscription);
    this.socket.subscribe({ channel: "status" });
    this.socket.connect();
    void this.network.lookOnce();
    const first = instruments.find((instrument) => slug(instrument.symbol) === preferred) ?? instruments[0];
    if (first) this.choose(first.symbol);
    else if (batches.length === 0) this.say({ tone: "plain", title: t.notices.nothingTraded, text: t.notices.nothingTradedText });
  }

  decimals(asset: string): number {
    return this.#assets.find(({ symbol }) => symbol === asset)?.decimals ?? 0;
  }

  instrument(name: string): Instrument | undefined {
    return this.instruments.value.find(({ symbol }) => symbol === name || slug(symbol) === slug(name));
  }

  units(symbol: string): Units | null {
    const instrument = this.instrument(symbol);
    return instrument ? new Units(instrument, this.#assets) : null;
  }

  choose(symbol: string): void {
    const units = this.units(symbol);
    if (!units) return;
    const before = this.market.value;
    if (before) for (const subscription of subscriptionsOf(before)) this.socket.unsubscribe(subscription);
    const market = new Market(units);
    if (before) market.interval = before.interval;
    market.ticker.value = this.tickers.all.value.get(symbol) ?? null;
    this.market.value = market;
    for (const subscription of subscriptionsOf(market)) this.socket.subscribe(subscription);
    // An instrument beyond those that are followed all the time.
    if (market.ticker.value === null) this.socket.subscribe({ channel: "ticker", instrument: slug(symbol) });
  }

  chooseInterval(interval: Interval): void {
    const market = this.market.value;
    if (!market || market.interval === interval) return;
    this.socket.unsubscribe({ channel: "candles", instrument: slug(market.symbol), interval: market.interval });
    market.interval = interval;
    market.candles.value = null;
    this.socket.subscribe({ channel: "candles", instrument: slug(market.symbol), interval });
  }

  setKey(key: Key | null): void {
    this.#key = key;
    this.account.keyId = key?.id ?? "";
    this.account.clear(key ? "signing_in" : "no_key");
    this.desk.setKey(key);
    this.socket.setKey(key);
  }

  /** Sends an order, with its exits where it has any. */
  async enter(symbol: string, order: OrderRequest): Promise<OrderReply> {
    const { take_profit: profit, stop_loss: loss } = order;
    const key = this.#key;
    if (key === null || !(profit || loss)) return (await this.socket.request("order", { ...order })) as unknown as OrderReply;
    const named = (exit: ExitRequest): ExitRequest => ({ ...exit, client_order_id: freshClientOrderId() });
    const exits = { ...(profit && { take_profit: named(profit) }), ...(loss && { stop_loss: named(loss) }) };
    this.account.expectExits(symbol, order.client_order_id, Object.values(exits).map(({ client_order_id }) => client_order_id ?? ""));
    return postOrder(key, { ...order, ...exits });
  }

  #onState(state: ConnectionState, retryInMs: number): void {
    if (state !== "live") this.market.value?.book.forget();
    if (state !== "live" && this.#key && this.account.state.value === "signed_in") this.account.state.value = "signing_in";
    this.connection.value = { state, retryInMs };
  }

  #onAuthenticated(refusal: Refusal | null): void {
    if (refusal) {
      this.account.clear("refused");
      this.desk.onRefused();
      this.say({ tone: "bad", title: t.notices.keyRefused(refusal.code), text: refusalText(refusal) });
      return;
    }
    this.account.state.value = "signed_in";
    const key = this.#key;
    if (!key) return;
    this.#refreshPositions();
    void this.desk.onSignedIn();
    fetchFills(key)
      .then((fills) => this.account.addFills(fills))
      .catch((error: Error) => this.say({ tone: "bad", title: t.notices.fillsFailed, text: error.message }))
      .finally(() => {
        this.account.hasPastFills.value = true;
      });
  }

  async #loadPositions(): Promise<void> {
    if (!this.#key || this.account.state.value !== "signed_in") return;
    try {
      this.account.applyPositions(await fetchPositions(this.#key), true);
    } catch (error) {
      this.say({ tone: "bad", title: t.notices.positionsFailed, text: (error as Error).message });
    }
  }

  #onMessage(message: ServerMessage): void {
    const market = this.market.value;
    switch (message.type) {
      case "status":
        this.status.value = message;
        if (this.fair.isOn.value !== (message.fair_access ?? false)) this.fair.isOn.value = message.fair_access ?? false;
        return;
      case "account": {
        const fills = this.account.apply(message);
        this.desk.apply(message);
        if (message.kind === "update" && fills.length > 0) this.filled.value = fills;
        for (const update of message.order_updates ?? []) {
          const said = describeEnd(update);
          if (said) this.say(said);
        }
        if (!message.positions && (fills.length > 0 || message.order_updates)) this.#refreshPositions();
        return;
      }
      case "batch":
      case "demand":
        this.desk.apply(message);
        return;
      case "book":
        if (!market || slug(market.symbol) !== slug(message.instrument)) return;
        if (market.book.apply(message) === "gap") {
          this.socket.resubscribe({ channel: "book", instrument: slug(market.symbol) });
        }
        market.bookChanged.touch();
        return;
      case "trades":
        if (market && slug(market.symbol) === slug(message.instrument)) market.applyTrades(message);
        return;
      case "candles":
        if (market && slug(market.symbol) === slug(message.instrument)) market.applyCandles(message);
        return;
      case "ticker":
        this.tickers.take(message);
        if (market && slug(market.symbol) === slug(message.instrument)) market.ticker.value = message;
        return;
      default:
        return;
    }
  }
}

function subscriptionsOf(market: Market): Subscription[] {
  const instrument = slug(market.symbol);
  return [
    { channel: "book", instrument },
    { channel: "trades", instrument },
    { channel: "candles", instrument, interval: market.interval },
  ];
}

/** `BTC/USD` in addresses and subscriptions is `BTC-USD`. */
export function slug(symbol: string): string {
  return symbol.replaceAll("/", "-");
}
