// A running venue over HTTP, and the way to its WebSocket, sessions and batch markets.

import { BatchMarket, type BatchOptions } from "./batch-market.ts";
import {
  type Command, type CommandAnswer, type OrderName, nameText, pathSymbol,
} from "./commands.ts";
import { Refused } from "./errors.ts";
import { type Carrier, type CommandNumber, Orders, answerOf } from "./orders.ts";
import type * as schema from "./schema/index.ts";
import { OPERATIONS, type Operations } from "./schema/operations.ts";
import { Session, type SessionOptions } from "./session.ts";
import { type Key, parseKey } from "./signing.ts";
import { type SocketConstructor, Stream, type StreamHandlers } from "./stream.ts";
import { Transport } from "./transport.ts";

const TIMEOUT_MS = 10_000;
/** Rows that the venue gives in a page at most. */
const PAGE_ROWS_MAX = 1_000;
const REPORTS_MAX = 256;
const DEFAULT_URL = "http://127.0.0.1:7070";

export interface ClientOptions {
  /** The venue's address, or those of its replicas, of which one that answers is used. */
  url?: string | readonly string[];
  /** The line of a key file, or a key of `parseKey`. Without one only public requests work. */
  key?: Key | string | null;
  /** The number of the key's account; the venue is asked where it is needed. */
  account?: number;
  /** How long an answer is waited for. */
  timeoutMs?: number;
  fetch?: typeof fetch;
  /** Where the runtime has no WebSocket: such as that of the package `ws`. */
  WebSocket?: SocketConstructor;
}

/** A page of a list, newest first; with {@link Past.after} oldest first. */
export interface Page<Row> {
  items: Row[];
  /** The next page's cursor; `null` when there is no more. */
  next: string | null;
  /** False where there may have been older ones, after what was asked for, that the venue no longer has. */
  complete: boolean;
}

/** Which rows of a history; times in nanoseconds, `since` included and `until` not. */
export interface Past {
  instrument?: string;
  order_id?: string | bigint;
  client_order_id?: OrderName;
  since?: string | bigint;
  until?: string | bigint;
  /**
   * Those after this number, oldest first; 0 for all. Of fills it is a `trade_id` of the `instrument`, which has to be given; of orders
   * the `log_index` at which one ended. Several may have one number, and a full list may end among them: {@link Page.next} goes on there.
   */
  after?: string | bigint;
}

export interface PageOf extends Past {
  /** How many, to 1,000. */
  limit?: number;
  cursor?: string | null;
}

/** Reads that see everything that was acknowledged before, by whichever replica. */
export interface Freshness {
  isFresh?: boolean;
}

type Part<Name extends "path" | "query" | "body", Fields> =
  Fields extends undefined ? { [Each in Name]?: undefined }
  : Record<never, never> extends Fields ? { [Each in Name]?: MayBeUndefined<Fields> }
  : { [Each in Name]: MayBeUndefined<Fields> };
type MayBeUndefined<Fields> = {
  [Field in keyof Fields]: Fields[Field] | (Record<never, never> extends Pick<Fields, Field> ? undefined : never);
};
/** What an operation of REST takes: its parameters in the path and in the query, and its body. */
export type Input<Name extends keyof Operations> =
  & Part<"path", Operations[Name]["path"]> & Part<"query", Operations[Name]["query"]> & Part<"body", Operations[Name]["body"]>;
export type Answer<Name extends keyof Operations> = Operations[Name]["answer"];

/**
 * A running venue. Answers are the JSON objects of openapi.yaml: quantities in them are exact text. A refusal throws `Refused`, with the
 * venue's number and words. A command whose answer is lost throws `OutcomeUnknown`; a {@link Client.session} sends it again instead.
 */
export class Client extends Orders implements Carrier {
  readonly key: Key | null;
  /** Shared by the clients of `withKey`. */
  readonly transport: Transport;
  readonly #socket: SocketConstructor | undefined;
  #account: number | undefined;
  #instruments: Promise<schema.Instrument[]> | null = null;

  constructor(
    { url = DEFAULT_URL, key = null, account, timeoutMs = TIMEOUT_MS, fetch, WebSocket }: ClientOptions = {},
    transport?: Transport,
  ) {
    super();
    this.key = typeof key === "string" ? parseKey(key) : key;
    this.#account = account;
    // Looked up at each request, so that a page or a test may replace the global one.
    const ask: typeof globalThis.fetch = fetch ?? ((...args) => globalThis.fetch(...args));
    this.transport = transport ?? new Transport({ urls: typeof url === "string" ? [url] : url, timeoutMs, fetch: ask });
    this.#socket = WebSocket;
  }

  /** The same venue for another account. */
  withKey(key: Key | string | null, account?: number): Client {
    return new Client({ key, ...(account !== undefined && { account }), ...(this.#socket && { WebSocket: this.#socket }) }, this.transport);
  }

  /** The address that is used now. */
  get url(): string {
    return this.transport.url;
  }

  /** Nanoseconds since the epoch by the venue's clock, as far as it is known. */
  venueTimeNs(): bigint {
    return this.transport.stamps.venueTimeNs();
  }

  /** Any operation of REST by its `operationId` in openapi.yaml, those of operators too. */
  call<Name extends keyof Operations>(name: Name, input: Input<Name>, { isFresh = false }: Freshness = {}): Promise<Answer<Name>> {
    return this.#call(name, input as Parts, isFresh);
  }

  async #call<Name extends keyof Operations>(name: Name, { path = {}, query = {}, body }: Parts, isFresh = false): Promise<Answer<Name>> {
    const { method, path: template, isSigned } = OPERATIONS[name];
    if (isSigned) this.neededKey();
    const filled = template.replaceAll(/\{(\w+)\}/g, (_, field: string) => segment(field, path[field]));
    const asked = `${filled}${queryText(query)}`;
    return this.transport.ask<Answer<Name>>({ method, path: asked, body, key: isSigned ? this.key : null, isFresh });
  }

  // The venue and its markets.

  status(): Promise<schema.Status> {
    return this.call("getStatus", {});
  }

  async assets(): Promise<schema.Asset[]> {
    return (await this.call("getAssets", {})).assets;
  }

  async instruments(): Promise<schema.Instrument[]> {
    return (await this.call("getInstruments", {})).instruments;
  }

  /** One of the instruments: `BTC/USD`, or `BTC-USD`. Asked for once. */
  async instrument(name: string): Promise<schema.Instrument> {
    const listed = this.#instruments ??= this.instruments();
    try {
      const found = (await listed).find(({ symbol }) => pathSymbol(symbol) === pathSymbol(name));
      if (found) return found;
    } catch (error) {
      this.#instruments = null;
      throw error;
    }
    this.#instruments = null;
    throw new RangeError(`the venue has no instrument ${name}: it has ${(await listed).map(({ symbol }) => symbol).join(", ") || "none"}`);
  }

  /** The book, best price first: levels are price, size and count of orders. */
  book(instrument: string, { depth, isFresh }: { depth?: number } & Freshness = {}): Promise<schema.Book> {
    return this.#call("getInstrumentsInstrumentBook", { path: { instrument }, query: { depth } }, isFresh);
  }

  /** The book by order, up to 500 of each side, in the order in which they stand: an order is its number, its price and what it shows. */
  bookOrders(instrument: string, { limit, isFresh }: { limit?: number } & Freshness = {}): Promise<schema.BookOrders> {
    return this.#call("getInstrumentsInstrumentBookOrders", { path: { instrument }, query: { limit } }, isFresh);
  }

  /** The phase, what an auction would trade now, and how the latest one ended. */
  auction(instrument: string, { isFresh }: Freshness = {}): Promise<schema.Auction> {
    return this.#call("getInstrumentsInstrumentAuction", { path: { instrument } }, isFresh);
  }

  /** An instrument at a glance: last price, best prices and sizes, figures of the UTC day, phase. */
  ticker(instrument: string, { isFresh }: Freshness = {}): Promise<schema.Ticker> {
    return this.#call("getInstrumentsInstrumentTicker", { path: { instrument } }, isFresh);
  }

  /** The last trades, newest first; with `before` those with a smaller id. */
  async trades(instrument: string, { limit, before }: { limit?: number; before?: string | bigint } = {}): Promise<schema.Trade[]> {
    return (await this.#call("getInstrumentsInstrumentTrades", { path: { instrument }, query: { limit, before } })).trades;
  }

  /** The last candles, oldest first. */
  async candles(instrument: string, { interval, limit }: { interval?: schema.Interval; limit?: number } = {}): Promise<schema.Candle[]> {
    return (await this.call("getInstrumentsInstrumentCandles", { path: { instrument }, query: { interval, limit } })).candles;
  }

  /** A page of the archive's trades, oldest first; times in nanoseconds. */
  pastTrades(
    instrument: string,
    { from, to, limit, cursor }: { from?: string | bigint; to?: string | bigint; limit?: number; cursor?: string } = {},
  ): Promise<schema.PastTrades> {
    return this.#call("getHistoryTrades", { query: { instrument, from, to, limit, cursor } });
  }

  /** The archive's last picture of a book at a time, in nanoseconds; the last of all without one. */
  pastBook(instrument: string, at?: string | bigint): Promise<schema.PastBook> {
    return this.#call("getHistoryBooks", { query: { instrument, at } });
  }

  /** The archive's days, oldest first, and how far it is. */
  pastDays(): Promise<schema.PastDays> {
    return this.call("getHistoryDays", {});
  }

  // The account.

  /** The key's account: its number, status, balances and positions. */
  account({ isFresh = false }: Freshness = {}): Promise<schema.Account> {
    return this.call("getAccount", {}, { isFresh });
  }

  /** The number of the key's account. */
  async accountId(): Promise<number> {
    return this.#account ??= (await this.account()).account_id;
  }

  async balances(options: Freshness = {}): Promise<schema.Balance[]> {
    return (await this.account(options)).balances;
  }

  async positions(options: Freshness = {}): Promise<schema.Position[]> {
    return (await this.account(options)).positions;
  }

  /** All open orders, page by page. */
  async openOrders(instrument?: string, { isFresh = false }: Freshness = {}): Promise<schema.Order[]> {
    return allOf(async (cursor) => {
      const { orders, next } = await this.call("listOpenOrders", { query: { instrument, cursor } }, { isFresh });
      return { items: orders, next };
    });
  }

  /** One order, open or ended: what it filled, at what average price, when, and why it ended. `by: "order_id"` looks for the venue's id. */
  async order(
    instrument: string,
    name: OrderName,
    { by, isFresh = false }: { by?: "client_order_id" | "order_id" } & Freshness = {},
  ): Promise<schema.OrderState> {
    const client_order_id = nameText("client_order_id", name);
    return this.call("getOrder", { path: { instrument, client_order_id }, query: { by } }, { isFresh });
  }

  /** A page of the account's trades, newest first; with `after` oldest first. */
  async fillPage(which: PageOf = {}): Promise<Page<schema.Fill>> {
    const { fills, ...rest } = await this.call("listFills", { query: pageQuery(which) });
    return { items: fills, ...rest };
  }

  /** A page of the account's orders that have ended, newest first or with `after` oldest first: what each filled and why it ended. */
  async closedOrderPage(which: PageOf = {}): Promise<Page<schema.OrderState>> {
    const { orders, ...rest } = await this.call("listClosedOrders", { query: pageQuery(which) });
    return { items: orders, ...rest };
  }

  /** The account's last trades, newest first, of as many pages as it takes; with `after` the first ones after that, oldest first. */
  fills({ limit = 100, ...which }: Past & { limit?: number } = {}): Promise<schema.Fill[]> {
    return allOf(
      (cursor, rows) => this.fillPage({ ...which, limit: Math.min(limit - rows, PAGE_ROWS_MAX), cursor: cursor ?? null }),
      limit,
    );
  }

  /** The account's orders that have ended, likewise. */
  closedOrders({ limit = 100, ...which }: Past & { limit?: number } = {}): Promise<schema.OrderState[]> {
    return allOf(
      (cursor, rows) => this.closedOrderPage({ ...which, limit: Math.min(limit - rows, PAGE_ROWS_MAX), cursor: cursor ?? null }),
      limit,
    );
  }

  /**
   * The account's numbered reports after a number, oldest first, up to 256; without one none, and only the `last` number. Their numbers
   * have no gaps: ask again after the last one.
   */
  reports(after?: string | bigint, limit = REPORTS_MAX): Promise<schema.Reports> {
    return this.#call("listReports", { query: { after, limit } });
  }

  // Commands. `submit`, `cancel`, `amend`, `massCancel`, `many` and `replace` are those of `Orders`.

  /**
   * Dead man's switch: the venue cancels all orders of the account after this time, unless it is sent again before. 0 switches it off.
   * `cancels_at_ns` of the answer is the time.
   */
  cancelAfter(timeoutMs: number): Promise<schema.CancelAfter> {
    return this.call("cancelAfter", { body: { timeout_ms: timeoutMs } });
  }

  protected one(command: Command): Promise<CommandAnswer> {
    return this.carry(command, null);
  }

  protected several(commands: readonly Command[]): Promise<schema.ManyResult[]> {
    return this.carryMany(commands, null);
  }

  async carry(command: Command, number: CommandNumber | null): Promise<CommandAnswer> {
    const query = number ?? {};
    switch (command.op) {
      case "order": {
        const { op: _, ...body } = command;
        return this.call("placeOrder", { query, body });
      }
      case "mass_cancel":
        return this.call("cancelAll", { query: { ...query, instrument: command.instrument, side: command.side } });
      case "cancel":
      case "amend": {
        const { op, instrument, client_order_id, ...body } = command;
        // No address can have such a name: it would be taken for a folder.
        if (isFolder(client_order_id)) return this.#alone(command, number);
        const path = { instrument, client_order_id };
        return op === "cancel" ? this.call("cancelOrder", { path, query }) : this.call("amendOrder", { path, query, body });
      }
    }
  }

  async carryMany(commands: readonly Command[], number: CommandNumber | null): Promise<schema.ManyResult[]> {
    return (await this.call("sendMany", { query: number ?? {}, body: { commands: [...commands] } })).results;
  }

  async #alone(command: Command, number: CommandNumber | null): Promise<CommandAnswer> {
    const [result = {}] = await this.carryMany([command], number);
    const answer = answerOf(result);
    if (answer instanceof Refused) throw answer;
    return answer;
  }

  /** Opens the session of a token, or finds it. Use one token per program. */
  openSession(token: string | bigint): Promise<schema.Session> {
    return this.#call("openSession", { body: { token: String(token) } });
  }

  /**
   * A session, whose commands take effect once however often their answers are lost: sent again under their numbers, to any replica, until
   * they are answered. For this program alone.
   */
  session(options: SessionOptions = {}): Promise<Session> {
    return Session.open(this, options);
  }

  /** The WebSocket: live market data, the account's own events, and orders. `open()` connects it. */
  stream(handlers: StreamHandlers = {}): Stream {
    return new Stream(this, handlers, this.#socket);
  }

  // Batch markets.

  async batches(): Promise<schema.Batch[]> {
    return (await this.call("getBatches", {})).batches;
  }

  /**
   * A batch market: its prices, and this account's offers, payments and pools in it. Transactions are signed with the client's key unless
   * another is given.
   */
  batch(name: string, options: BatchOptions = {}): Promise<BatchMarket> {
    return BatchMarket.open(this, name, options);
  }

  async pools(batch: string): Promise<schema.Pool[]> {
    return (await this.call("getBatchesBatchPools", { path: { batch } })).pools;
  }

  /** The account's shares of pools of all markets, and what they are worth. */
  async shares({ isFresh = false }: Freshness = {}): Promise<schema.PoolShare[]> {
    return (await this.call("getShares", {}, { isFresh })).shares;
  }

  /** The account's offers that stand in all markets, oldest first, page by page. */
  async offers({ isFresh = false }: Freshness = {}): Promise<schema.Offer[]> {
    return allOf(async (cursor) => {
      const { offers, next } = await this.call("getOffers", { query: { cursor } }, { isFresh });
      return { items: offers, next };
    });
  }

  /**
   * What came of the account's last transactions in all markets, the one collected last first; or of the one with this number, also of an
   * older one whose offer stands or ended late.
   */
  async transactions({
    limit,
    sequence,
    isFresh = false,
  }: { limit?: number; sequence?: bigint } & Freshness = {}): Promise<schema.TransactionOutcome[]> {
    const query = { limit, sequence: sequence?.toString() };
    return (await this.call("getTransactions", { query }, { isFresh })).transactions;
  }

  /**
   * Hands in signed transactions, in hex: their signatures name the account. For each, in their order, the block that collects it, or its
   * refusal.
   */
  async sendTransactions(batch: string, signed: readonly string[]): Promise<(schema.BatchCollected | Refused)[]> {
    const { results } = await this.call("postBatchesBatchTransactions", { path: { batch }, body: { transactions: [...signed] } });
    return results.map((result) => ("error" in result ? new Refused(result.error) : result));
  }

  /** The key, where one is needed. */
  neededKey(): Key {
    if (this.key === null) throw new TypeError("this needs a key: give the client the line of a key file");
    return this.key;
  }
}

interface Parts {
  path?: Record<string, string | number | bigint> | undefined;
  query?: Record<string, string | number | bigint | null | undefined> | undefined;
  body?: object | undefined;
}

function segment(field: string, value: string | number | bigint | undefined): string {
  if (value === undefined) throw new TypeError(`${field} is missing`);
  const text = field === "instrument" ? pathSymbol(String(value)) : String(value);
  if (isFolder(text)) throw new RangeError(`${field}: no address can have "${text}" in it; look for it in lists`);
  return encodeURIComponent(text);
}

function isFolder(text: string): boolean {
  return text === "." || text === "..";
}

function queryText(query: NonNullable<Parts["query"]>): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined || value === null ? [] : [[name, String(value)]]));
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

function pageQuery({
  order_id, client_order_id, since, until, after, cursor, instrument, limit,
}: PageOf): NonNullable<Input<"listFills">["query"]> {
  return {
    instrument, limit, cursor: cursor ?? undefined, order_id: digits(order_id), since: digits(since), until: digits(until),
    after: digits(after),
    client_order_id: client_order_id === undefined ? undefined : nameText("client_order_id", client_order_id),
  };
}

function digits(value: string | bigint | undefined): string | undefined {
  return value === undefined ? undefined : String(value);
}

/** The rows of pages, until there are so many. A page may be short, or empty, and still have a next one. */
async function allOf<Row>(
  page: (cursor: string | undefined, rows: number) => Promise<{ items: Row[]; next: string | null }>,
  limit = Infinity,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (let cursor: string | undefined; rows.length < limit;) {
    const { items, next } = await page(cursor, rows.length);
    rows.push(...items);
    if (next === null) break;
    cursor = next;
  }
  return rows;
}
