// One WebSocket client of the fake venue: what it subscribed to, what it got already.

import { crc32 } from "node:zlib";
import type { WebSocket } from "ws";
import type { Interval, Level, OrderRequest, Trade } from "walras";
import { verify } from "./auth.ts";
import type { FakeMarket } from "./market.ts";
import { FakeReject } from "./matching.ts";
import type { FakeVenue } from "./venue.ts";

type Message = Record<string, string | undefined> & { op: string };

interface BookFeed {
  seq: bigint;
  indicative: string;
  bids: Map<string, Level>;
  asks: Map<string, Level>;
}

export class Session {
  readonly #venue: FakeVenue;
  readonly #socket: WebSocket;
  readonly #books = new Map<FakeMarket, BookFeed>();
  readonly #trades = new Map<FakeMarket, Trade[]>();
  readonly #candles = new Map<FakeMarket, Set<Interval>>();
  /** As they were last sent. */
  readonly #tickers = new Map<FakeMarket, string>();
  /** Each instrument as it was last sent; `null` while nothing was asked for. */
  #instruments: Map<FakeMarket, string> | null = null;
  #batch = false;
  readonly #demands = new Map<string, [sell: string, buy: string]>();
  #status = false;
  #account: number | null = null;
  #privateNews: Record<string, unknown>[] = [];
  /** Set by a test: the next book update is lost on the way. */
  loseOneBookUpdate = false;

  constructor(venue: FakeVenue, socket: WebSocket) {
    this.#venue = venue;
    this.#socket = socket;
    socket.on("message", (data) => this.#receive(JSON.parse(String(data)) as Message));
  }

  close(code: number): void {
    this.#socket.close(code);
  }

  onTrade(market: FakeMarket, trade: Trade): void {
    this.#trades.get(market)?.push(trade);
  }

  /** Something happened to `account`. */
  onPrivate(account: number, news: Record<string, unknown>): void {
    if (account === this.#account) this.#privateNews.push(news);
  }

  /** Twenty times a second: what changed since the last time. */
  publish(): void {
    for (const [market, feed] of this.#books) this.#publishBook(market, feed);
    for (const [market, trades] of this.#trades) {
      if (trades.length === 0) continue;
      this.#send({ type: "trades", instrument: market.instrument.symbol, kind: "update", trades: trades.splice(0) });
      for (const interval of this.#candles.get(market) ?? []) {
        this.#send({
          type: "candles", instrument: market.instrument.symbol, interval, kind: "update",
          candles: market.candles.get(interval)?.slice(-1),
        });
      }
    }
    for (const [market, sent] of this.#tickers) {
      if (sent !== JSON.stringify(market.ticker())) this.#sendTicker(market);
    }
    if (this.#instruments) this.#publishInstruments(this.#instruments, "update");
    if (this.#privateNews.length > 0 && this.#account !== null) {
      const news = this.#privateNews.splice(0);
      this.#send({
        type: "account", kind: "update", balances: this.#venue.balances(this.#account),
        order_updates: news.filter((item) => "status" in item), fills: news.filter((item) => "role" in item),
        offer_updates: news.flatMap((item) => item["offer_updates"] ?? []), offer_fills: news.flatMap((item) => item["offer_fills"] ?? []),
      });
    }
  }

  /** What is collected, and with `cleared` the newest block. */
  publishBatch(cleared: boolean): void {
    const { batch } = this.#venue;
    if (this.#batch) {
      this.#send({
        type: "batch", kind: "update", batch: "main", collected: batch.collected, closed_block: batch.closedBlock,
        blocks: cleared ? batch.blocks.slice(-1) : [],
      });
    }
    if (cleared) for (const [sell, buy] of this.#demands.values()) this.#send({ type: "demand", ...batch.demand(sell, buy) });
  }

  publishStatus(): void {
    if (this.#status) this.#send({ type: "status", ...this.#venue.status() });
  }

  #publishInstruments(sent: Map<FakeMarket, string>, kind: string): void {
    const instruments = this.#venue.markets.flatMap((market) => {
      const { last_price: _, ...listed } = market.instrument;
      const text = JSON.stringify(listed);
      if (sent.get(market) === text) return [];
      sent.set(market, text);
      return [listed];
    });
    if (kind === "snapshot" || instruments.length > 0) {
      this.#send({ type: "instruments", kind, log_index: String(this.#venue.logIndex), instruments });
    }
  }

  #publishBook(market: FakeMarket, feed: BookFeed): void {
    const bids = changes(feed.bids, market.levels("buy"));
    const asks = changes(feed.asks, market.levels("sell"));
    const indicative = JSON.stringify(market.indicative());
    if (bids.length + asks.length === 0 && indicative === feed.indicative) return;
    feed.indicative = indicative;
    feed.bids = market.levels("buy");
    feed.asks = market.levels("sell");
    feed.seq += 1n;
    if (this.loseOneBookUpdate) {
      this.loseOneBookUpdate = false;
      return;
    }
    this.#sendBook(market, feed, "update", bids, asks);
  }

  #sendTicker(market: FakeMarket): void {
    const ticker = market.ticker();
    this.#tickers.set(market, JSON.stringify(ticker));
    this.#send({ type: "ticker", ...ticker });
  }

  #sendBook(market: FakeMarket, feed: BookFeed, kind: string, bids: Level[], asks: Level[]): void {
    this.#send({
      type: "book", instrument: market.instrument.symbol, kind, feed_seq: String(feed.seq), log_index: String(this.#venue.logIndex), bids,
      asks, checksum: checksumOf(feed), indicative: market.indicative(),
    });
  }

  #receive(message: Message): void {
    try {
      switch (message.op) {
        case "ping":
          return this.#send({ type: "pong", id: message["id"], time_ns: `${Date.now()}000000` });
        case "subscribe":
          return this.#subscribe(message);
        case "unsubscribe":
          return this.#unsubscribe(message);
        case "auth": {
          this.#account = verify(message as never, "WS", "/v1/ws", "", this.#venue.acceptsTimestampsFromNs);
          this.#send({ type: "authenticated", id: message["id"], key: message["key"], account_id: this.#account });
          return this.#send({ type: "account", kind: "snapshot", ...this.#venue.accountSnapshot(this.#account) });
        }
        default:
          return this.#send({ type: "reply", id: message["id"], ...this.#operate(message) });
      }
    } catch (error) {
      if (!(error instanceof FakeReject)) throw error;
      this.#send({ type: "error", id: message["id"], error: { code: error.code, name: error.reason, message: error.message } });
    }
  }

  #operate(message: Message): object {
    if (this.#account === null) {
      throw new FakeReject(102, "Unauthenticated", "No valid key and signature: sign the request as the API documents.");
    }
    if (message.op === "order") return this.#venue.bracket(this.#account, message as unknown as OrderRequest);
    const market = this.#venue.market(message["instrument"]);
    switch (message.op) {
      case "cancel":
        return this.#venue.cancel(this.#account, market, message["client_order_id"] ?? "");
      case "amend":
        return this.#venue.amend(this.#account, market, message["client_order_id"] ?? "", {
          price: message["price"], trigger: message["trigger"], size: message["size"],
        });
      case "mass_cancel":
        return this.#venue.massCancel(this.#account, market);
      default:
        throw new FakeReject(100, "Malformed", "The request does not parse: see the API's documented shape.");
    }
  }

  #subscribe(message: Message): void {
    this.#send({ type: "subscribed", id: message["id"], channel: message["channel"] });
    if (message["channel"] === "status") {
      this.#status = true;
      return this.publishStatus();
    }
    if (message["channel"] === "instruments") return this.#publishInstruments(this.#instruments = new Map(), "snapshot");
    if (message["channel"] === "batch" || message["channel"] === "demand") return this.#subscribeBatch(message);
    const market = this.#venue.market(message["instrument"]);
    const instrument = market.instrument.symbol;
    switch (message["channel"]) {
      case "book": {
        const feed = { seq: 1n, indicative: JSON.stringify(market.indicative()), bids: market.levels("buy"), asks: market.levels("sell") };
        this.#books.set(market, feed);
        return this.#sendBook(market, feed, "snapshot", [...feed.bids.values()], [...feed.asks.values()]);
      }
      case "trades":
        this.#trades.set(market, []);
        return this.#send({ type: "trades", instrument, kind: "snapshot", trades: market.trades.slice(-100).reverse() });
      case "candles": {
        const interval = (message["interval"] ?? "1s") as Interval;
        const intervals = this.#candles.get(market) ?? new Set();
        this.#candles.set(market, intervals.add(interval));
        return this.#send({ type: "candles", instrument, interval, kind: "snapshot", candles: market.candles.get(interval) });
      }
      case "ticker":
        return this.#sendTicker(market);
      default:
        throw new FakeReject(109, "NotFound", "There is nothing at this address.");
    }
  }

  #subscribeBatch(message: Message): void {
    const { batch } = this.#venue;
    if (message["channel"] === "batch") {
      this.#batch = true;
      return this.#send({
        type: "batch", kind: "snapshot", batch: "main", collected: batch.collected, closed_block: batch.closedBlock,
        blocks: batch.blocks.slice(-100),
      });
    }
    const [sell, buy] = [message["sell"] ?? "", message["buy"] ?? ""];
    const demand = batch.demand(sell, buy);
    this.#demands.set(`${sell} ${buy}`, [sell, buy]);
    this.#send({ type: "demand", ...demand });
  }

  #unsubscribe(message: Message): void {
    if (message["channel"] === "batch") this.#batch = false;
    if (message["channel"] === "demand") this.#demands.delete(`${message["sell"]} ${message["buy"]}`);
    if (message["channel"] === "batch" || message["channel"] === "demand") {
      return this.#send({ type: "unsubscribed", id: message["id"], channel: message["channel"] });
    }
    const market = this.#venue.market(message["instrument"]);
    if (message["channel"] === "book") this.#books.delete(market);
    if (message["channel"] === "trades") this.#trades.delete(market);
    if (message["channel"] === "candles") this.#candles.get(market)?.delete(message["interval"] as Interval);
    if (message["channel"] === "ticker") this.#tickers.delete(market);
    this.#send({ type: "unsubscribed", id: message["id"], channel: message["channel"] });
  }

  #send(message: object): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(message));
  }
}

/** Of the ten best levels of each side, as docs/websocket.md says. */
function checksumOf({ bids, asks }: BookFeed): number {
  const best = (levels: Map<string, Level>, order: 1 | -1): string[] =>
    [...levels.values()]
      .sort(([one], [other]) => order * (Number(one) - Number(other)))
      .slice(0, 10)
      .map(([price, size]) => `${price}:${size}`);
  return crc32([...best(bids, -1), ...best(asks, 1)].join(":"));
}

/** Levels of `now` that differ from `before`, and those gone, with size "0". */
function changes(before: Map<string, Level>, now: Map<string, Level>): Level[] {
  const list: Level[] = [];
  for (const [price, level] of now) {
    const old = before.get(price);
    if (!old || old[1] !== level[1] || old[2] !== level[2]) list.push(level);
  }
  for (const price of before.keys()) if (!now.has(price)) list.push([price, "0", 0]);
  return list;
}
