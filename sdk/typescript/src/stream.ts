// The WebSocket: subscriptions that survive reconnects, commands with replies, books checked by number and checksum, other feeds
// by number, a watchdog against silent links.

import { Backoff } from "./backoff.ts";
import { BookCopy } from "./book.ts";
import type { Client } from "./client.ts";
import { type Command, type CommandAnswer, pathSymbol } from "./commands.ts";
import { KeyError, NotConnected, OutcomeUnknown, Refused } from "./errors.ts";
import { type Carrier, type CommandNumber, Orders } from "./orders.ts";
import type {
  Interval, ManyResult, SocketMessage, SocketRequest, WsAuthenticated, WsBook, WsCancelsOnDisconnect, WsError, WsReports, WsSubscribed,
} from "./schema/index.ts";
import type { Session } from "./session.ts";
import { type Key, freshNonce, sign } from "./signing.ts";
import { isNotLeader, isStale } from "./transport.ts";

/** `waiting`: the connection is lost, and the next one comes after a pause. */
export type StreamState = "connecting" | "live" | "waiting";

/** A channel with what it needs; docs/websocket.md lists them. `reports` needs `signIn` first. */
export type Subscription =
  | { channel: "book" | "book_orders" | "trades" | "ticker"; instrument: string }
  | { channel: "candles"; instrument: string; interval: Interval }
  | { channel: "batch"; batch: string }
  | { channel: "demand"; batch: string; sell: string; buy: string }
  | { channel: "status" | "instruments" }
  | { channel: "reports"; after?: string };

/** A connection is there. The first message of each channel replaces what was there before. */
export interface Connected {
  type: "connected";
  /** How often the stream connected. */
  count: number;
}

/** What a stream hands out: the messages of its channels. */
export type StreamMessage = Connected | Extract<SocketMessage, { type: ChannelName }>;
type ChannelName =
  | "book" | "book_orders" | "trades" | "candles" | "ticker" | "instruments" | "status" | "account" | "reports" | "batch" | "demand";

export interface StreamHandlers {
  onState?(state: StreamState, retryInMs: number): void;
  /** Without it, messages wait for `for await`. */
  onMessage?(message: StreamMessage): void;
  /** The key was refused, or this runtime cannot sign with it. */
  onSignInFailed?(error: Refused | KeyError): void;
  /** A subscription was refused on a later connection, or a message could not be read. Without it, `for await` throws. */
  onError?(error: Error): void;
}

/** As much of a WebSocket as a stream uses. */
export interface Socket {
  readonly readyState: number;
  send(text: string): void;
  close(): void;
  onopen: ((event: never) => unknown) | null;
  onmessage: ((event: never) => unknown) | null;
  onclose: ((event: never) => unknown) | null;
  onerror: ((event: never) => unknown) | null;
}
export type SocketConstructor = new (url: string) => Socket;

interface Pending {
  resolve(answer: SocketMessage): void;
  reject(error: Error): void;
}

interface Subscribed {
  wire: Subscription;
  waiters: { resolve(answer: WsSubscribed): void; reject(error: Error): void }[];
}

interface Kept {
  book: BookCopy;
  subscription: Subscription;
}

type WithoutId<Each> = Each extends unknown ? Omit<Each, "id"> : never;
type Request = WithoutId<SocketRequest>;

const OPEN = 1;
const PING_EVERY_MS = 5_000;
const SILENCE_MS = 12_000;
const STEADY_MS = 5_000;
const SIGN_IN_ATTEMPTS = 3;
const SIGN_IN_PAUSE_MS = 1_000;
/** Refusals of a key that end by themselves: throttled, starting, overloaded. */
const PASSING: ReadonlySet<number> = new Set([107, 110, 112]);
const UNAUTHENTICATED = 102;
/** Longest that a timer of the runtime can be. */
const TIMER_MS_MAX = 2 ** 31 - 1;
/** Messages that wait to be read; a reader that is further behind loses its connection and takes snapshots again. */
const MESSAGES_MAX = 1 << 16;

/** Made by `Client.stream`. */
export class Stream extends Orders implements Carrier, AsyncIterable<StreamMessage> {
  readonly client: Client;
  readonly #handlers: StreamHandlers;
  readonly #Socket: SocketConstructor;
  readonly #subscriptions = new Map<string, Subscribed>();
  readonly #pending = new Map<string, Pending>();
  readonly #books = new Map<string, Kept>();
  /** The last number of each feed of the connection. */
  readonly #feedSeqs = new Map<string, bigint>();
  readonly #backoff = new Backoff();
  /** Called when something of the connection changed. */
  #changed: (() => void)[] = [];
  #socket: Socket | null = null;
  /** The address of the connection. */
  #url = "";
  #key: Key | null = null;
  #signedInAs: WsAuthenticated | null = null;
  #isSigningIn = false;
  #refused: { key: Key; error: Error } | null = null;
  #nextId = 1;
  #heardMs = 0;
  #openedMs = Infinity;
  #count = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #retrySignIn: ReturnType<typeof setTimeout> | undefined;
  #watchdog: ReturnType<typeof setInterval> | undefined;
  #isClosed = false;
  #failure: Error | null = null;
  #waiting: StreamMessage[] = [];
  #isRead = false;
  readonly #reconnectNow = (): void => {
    if (this.#socket === null && !this.#isClosed) this.#connect();
  };

  constructor(client: Client, handlers: StreamHandlers = {}, WebSocket: SocketConstructor | undefined = undefined) {
    super();
    const found = WebSocket ?? (globalThis as { WebSocket?: SocketConstructor }).WebSocket;
    if (found === undefined) {
      throw new TypeError(
        "no WebSocket here: use Node 22, start Node 20 with --experimental-websocket, or give the client one, such as that of the " +
          "package ws",
      );
    }
    [this.client, this.#handlers, this.#Socket] = [client, handlers, found];
  }

  /** Connects, and from now on connects again whenever the connection is lost. Returns when it is there. */
  async open(): Promise<this> {
    if (this.#watchdog === undefined) {
      this.#watchdog = setInterval(() => this.#watch(), PING_EVERY_MS);
      globalThis.addEventListener?.("online", this.#reconnectNow);
      this.#connect();
    }
    await this.#until(() => this.#isOpen());
    return this;
  }

  /** Ends the connection and the stream. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#watchdog);
    clearTimeout(this.#retry);
    clearTimeout(this.#retrySignIn);
    globalThis.removeEventListener?.("online", this.#reconnectNow);
    const socket = this.#socket;
    this.#lose();
    for (const { waiters } of this.#subscriptions.values()) waiters.splice(0).forEach(({ reject }) => reject(closed()));
    socket?.close();
    this.#notify();
  }

  /** How often it connected. */
  get connectionCount(): number {
    return this.#count;
  }

  /**
   * Signs in with the client's key, or another one, on this and every later connection: the account's channel begins, and commands may be
   * sent. With another key than before, on a new connection.
   */
  async signIn(key: Key = this.client.neededKey()): Promise<WsAuthenticated> {
    const isAnother = this.#key !== null && this.#key.id !== key.id;
    [this.#key, this.#refused] = [key, null];
    if (isAnother) this.#replace();
    if (this.#isOpen() && this.#signedInAs === null) void this.#authenticate();
    return this.#signedIn(key);
  }

  /** Forgets the key: the connection is replaced by one that has not signed in. */
  signOut(): void {
    if (this.#key === null) return;
    this.#key = null;
    this.#replace();
  }

  /**
   * Subscribes to a channel, now and on every later connection; answered when the venue has taken it. `reports` go on after the last one
   * that came. A subscription that the venue refuses is dropped.
   */
  subscribe(subscription: Subscription): Promise<WsSubscribed> {
    return new Promise((resolve, reject) => this.#add(subscription, { resolve, reject }));
  }

  /** As `subscribe`, for who does not wait: a refusal is an `onError`. */
  follow(subscription: Subscription): void {
    this.#add(subscription);
  }

  #add(subscription: Subscription, ...waiters: Subscribed["waiters"]): void {
    if (this.#isClosed) return waiters.forEach(({ reject }) => reject(closed()));
    const name = nameOf(subscription);
    const subscribed = this.#subscriptions.get(name) ?? { wire: subscription, waiters: [] };
    subscribed.wire = subscription;
    subscribed.waiters.push(...waiters);
    this.#subscriptions.set(name, subscribed);
    this.#send(subscribed);
  }

  unsubscribe(subscription: Subscription): void {
    const name = nameOf(subscription);
    const subscribed = this.#subscriptions.get(name);
    if (!subscribed) return;
    this.#subscriptions.delete(name);
    subscribed.waiters
      .splice(0)
      .forEach(({ reject }) => reject(new NotConnected("unsubscribed before the venue had taken the subscription")));
    if (subscription.channel === "book") this.#books.delete(pathSymbol(subscription.instrument));
    this.#notify();
    if (this.#isOpen()) this.#ask({ op: "unsubscribe", ...subscription }).catch(() => {});
  }

  /** Takes a new snapshot: after a gap. */
  renew(subscription: Subscription): void {
    const subscribed = this.#subscriptions.get(nameOf(subscription));
    if (subscribed) this.#send(subscribed);
  }

  /**
   * A copy of a book that the stream keeps, in whole units of the instrument's decimals. Each message is held against its number and its
   * checksum; where they do not fit, the stream takes a new snapshot, and `isLive` is false until it is there. Returns when the first one
   * is.
   */
  async book(instrument: string): Promise<BookCopy> {
    const { symbol, price_decimals, size_decimals } = await this.client.instrument(instrument);
    const name = pathSymbol(symbol);
    const kept: Kept = this.#books.get(name)
      ?? { book: new BookCopy(price_decimals, size_decimals), subscription: { channel: "book", instrument: name } };
    if (!this.#books.has(name)) {
      this.#books.set(name, kept);
      await this.subscribe(kept.subscription).catch((error: unknown) => {
        this.#books.delete(name);
        throw error;
      });
    }
    const isGone = (): boolean => this.#books.get(name) !== kept;
    await this.#until(() => kept.book.isLive || isGone());
    if (isGone()) throw new NotConnected("unsubscribed before the book was there");
    return kept.book;
  }

  /**
   * Has all orders of the account cancelled when this connection ends; `null` has them stay after all. The session is one of the account,
   * which says by being opened again that the account is back (docs/websocket.md).
   */
  async cancelOnDisconnect(session: Session | null): Promise<WsCancelsOnDisconnect> {
    return await this.#ask({ op: "cancel_on_disconnect", ...(session && { session: session.id }) }) as WsCancelsOnDisconnect;
  }

  async carry(command: Command, number: CommandNumber | null): Promise<CommandAnswer> {
    const { type: _, id: __, ...answer } = await this.#ask({ ...command, ...number }) as SocketMessage & { type: "reply" };
    return answer as CommandAnswer;
  }

  async carryMany(commands: readonly Command[], number: CommandNumber | null): Promise<ManyResult[]> {
    const answer = await this.#ask({ op: "many", commands: [...commands], ...number }) as SocketMessage & { type: "replies" };
    return answer.results;
  }

  protected one(command: Command): Promise<CommandAnswer> {
    return this.carry(command, null);
  }

  protected several(commands: readonly Command[]): Promise<ManyResult[]> {
    return this.carryMany(commands, null);
  }

  /** Waits, for so long, until it is connected and signed in. */
  async untilSignedIn(ms: number): Promise<void> {
    if (this.#key === null && !this.#isClosed) throw new TypeError("the stream has not signed in: call signIn first");
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      this.#notify();
    }, Math.min(Math.max(0, ms), TIMER_MS_MAX));
    await this.#until(() => this.#signedInAs !== null || isLate).finally(() => clearTimeout(timer));
    if (this.#signedInAs === null) throw new NotConnected();
  }

  /**
   * After a command was refused for want of a leader, or of a signature that one has seen: signs in again, at another replica if there is
   * one.
   */
  recover(error: Error): void {
    if (!this.#isOpen()) return;
    if (isNotLeader(error)) this.client.transport.leave(this.#url);
    else if (!(error instanceof Refused && error.code === UNAUTHENTICATED)) return;
    this.#replace();
  }

  /**
   * Messages as they come, from the first on. It ends when the stream is closed, and throws where a key or a subscription is refused on a
   * later connection. A reader that is 65,536 messages behind loses them: then `connected` comes again, snapshots, and reports from the
   * first that it has not read.
   */
  async *[Symbol.asyncIterator](): AsyncIterator<StreamMessage> {
    this.#isRead = true;
    try {
      for (;;) {
        const message = this.#waiting.shift();
        if (message !== undefined) yield message;
        else if (this.#failure !== null) throw this.#failure;
        else if (this.#isClosed) return;
        else await new Promise<void>((resolve) => this.#changed.push(resolve));
      }
    } finally {
      this.#isRead = false;
    }
  }

  #connect(): void {
    clearTimeout(this.#retry);
    this.#handlers.onState?.("connecting", 0);
    const url = this.#url = this.client.url;
    const socket = new this.#Socket(`${url.replace(/^http/, "ws")}/v1/ws`);
    [this.#socket, this.#heardMs] = [socket, performance.now()];
    socket.onopen = () => {
      if (this.#socket === socket) this.#opened();
    };
    socket.onmessage = ({ data }: { data: string }) => {
      if (this.#socket !== socket) return;
      this.#heardMs = performance.now();
      this.#receive(data);
    };
    // `close` follows.
    socket.onerror = () => {};
    socket.onclose = () => {
      if (this.#socket === socket) this.#closed();
    };
  }

  #opened(): void {
    this.#heardMs = performance.now();
    this.#openedMs = performance.now();
    this.#count += 1;
    this.#handlers.onState?.("live", 0);
    this.#hand({ type: "connected", count: this.#count });
    for (const subscribed of this.#subscriptions.values()) this.#send(subscribed);
    void this.#authenticate();
    this.#notify();
  }

  #closed(): void {
    this.#lose();
    // Only a connection that held counts as a success: one that is dropped at once must not be retried at once forever.
    if (performance.now() - this.#openedMs > STEADY_MS) this.#backoff.reset();
    else this.client.transport.leave(this.#url);
    this.#connectIn(this.#backoff.next());
  }

  #connectIn(waitMs: number): void {
    this.#openedMs = Infinity;
    this.#retry = setTimeout(this.#reconnectNow, waitMs);
    this.#handlers.onState?.("waiting", waitMs);
    this.#notify();
  }

  /** What was on this connection alone is gone. */
  #lose(): void {
    this.#socket = null;
    [this.#signedInAs, this.#isSigningIn] = [null, false];
    for (const { book } of this.#books.values()) book.forget();
    this.#feedSeqs.clear();
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of pending) {
      reject(new OutcomeUnknown("the connection was lost before the answer: look at the account's orders and fills"));
    }
  }

  /** A dead link may never report its closing: leave it, and act as if it had. */
  #drop(): void {
    const socket = this.#socket;
    if (!socket) return;
    this.#closed();
    socket.close();
  }

  /** Takes another connection at once, since nothing is wrong with the venue. */
  #replace(): void {
    const socket = this.#socket;
    if (!socket) return;
    this.#lose();
    this.#connectIn(0);
    socket.close();
  }

  async #authenticate(): Promise<void> {
    const [key, socket] = [this.#key, this.#socket];
    if (key === null || this.#isSigningIn || !this.#isOpen()) return;
    const isOurs = (): boolean => this.#socket === socket && this.#key === key;
    this.#isSigningIn = true;
    let again = false;
    try {
      const answer = await this.#sendAuth(key, isOurs);
      if (!isOurs()) return;
      this.#signedInAs = answer;
      for (const subscribed of this.#subscriptions.values()) if (isPrivate(subscribed.wire)) this.#send(subscribed);
    } catch (error) {
      // A connection that was lost, or got another key, signs in by itself.
      if (!isOurs()) return;
      again = !(error instanceof KeyError || error instanceof Refused && !PASSING.has(error.code));
      if (!again) this.#refuse(key, error as KeyError | Refused);
    } finally {
      if (this.#socket === socket) this.#isSigningIn = false;
      if (again) this.#retrySignIn = setTimeout(() => void this.#authenticate(), SIGN_IN_PAUSE_MS);
      this.#notify();
    }
  }

  #refuse(key: Key, error: KeyError | Refused): void {
    this.#refused = { key, error };
    if (this.#handlers.onSignInFailed) this.#handlers.onSignInFailed(error);
    else this.#fail(error);
  }

  async #sendAuth(key: Key, isOurs: () => boolean): Promise<WsAuthenticated> {
    const { transport } = this.client;
    await transport.synchronise();
    for (let attempt = 1; ; attempt += 1) {
      const signed = await sign(key, "WS", "/v1/ws", "", transport.stamps.next().toString(), freshNonce());
      if (!isOurs()) throw new NotConnected();
      try {
        return await this.#ask({ op: "auth", ...signed }) as WsAuthenticated;
      } catch (error) {
        if (!isStale(error) || attempt === SIGN_IN_ATTEMPTS) throw error;
        await transport.prepareNextStamp();
      }
    }
  }

  async #signedIn(key: Key): Promise<WsAuthenticated> {
    const answered = (): WsAuthenticated | Error | null => {
      if (this.#refused?.key === key) return this.#refused.error;
      if (this.#key !== key) return new NotConnected("signed out, or in with another key, before the venue had taken this one");
      return this.#signedInAs;
    };
    await this.#until(() => answered() !== null);
    const answer = answered();
    if (answer === null || answer instanceof Error) throw answer ?? new NotConnected();
    return answer;
  }

  #isOpen(): boolean {
    return this.#socket?.readyState === OPEN;
  }

  /** Asks for a channel, where the connection takes it by now. */
  #send(subscribed: Subscribed): void {
    if (!this.#isOpen() || (isPrivate(subscribed.wire) && this.#signedInAs === null)) return;
    this.#ask({ op: "subscribe", ...subscribed.wire }).then(
      (answer) => {
        const { after } = answer as WsSubscribed;
        // A connection that is lost before the first report goes on from here.
        if (after !== undefined && subscribed.wire.channel === "reports") {
          subscribed.wire = { channel: "reports", after: subscribed.wire.after ?? after };
        }
        subscribed.waiters.splice(0).forEach(({ resolve }) => resolve(answer as WsSubscribed));
      },
      (error: Error) => {
        // A lost connection asks again on the next one.
        if (!(error instanceof Refused)) return;
        const name = nameOf(subscribed.wire);
        if (this.#subscriptions.get(name) === subscribed) this.#subscriptions.delete(name);
        const waiters = subscribed.waiters.splice(0);
        waiters.forEach(({ reject }) => reject(error));
        if (waiters.length === 0) this.#report(error);
      },
    );
  }

  #ask(request: Request): Promise<SocketMessage> {
    const socket = this.#socket;
    if (this.#isClosed) return Promise.reject(closed());
    if (!socket || !this.#isOpen()) return Promise.reject(new NotConnected());
    const id = String(this.#nextId++);
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      socket.send(JSON.stringify({ ...request, id }));
    });
  }

  #receive(text: string): void {
    try {
      const message = JSON.parse(text) as SocketMessage;
      if (this.#isAnswer(message)) return;
      // Docs say that this does not happen within a connection: take the snapshots again.
      if (!this.#isNext(message)) return this.#drop();
      switch (message.type) {
        case "book":
          this.#applyBook(message);
          break;
        case "reports":
          this.#noteReports(message);
          break;
        case "error":
          return this.#report(refusal(message));
        case "subscribed":
        case "unsubscribed":
        case "pong":
        case "authenticated":
        case "cancel_on_disconnect":
        case "reply":
        case "replies":
          return;
      }
      this.#hand(message);
    } catch (error) {
      this.#report(error as Error);
    }
  }

  #isAnswer(message: SocketMessage): boolean {
    const id = "id" in message ? message.id : undefined;
    const pending = id === undefined ? undefined : this.#pending.get(id);
    if (id === undefined || !pending) return false;
    this.#pending.delete(id);
    if (message.type === "error") pending.reject(refusal(message));
    else pending.resolve(message);
    return true;
  }

  /** Whether none of its feed is missing before it; 1 begins the count. A book's copy looks at its own numbers. */
  #isNext(message: SocketMessage): boolean {
    const [feed, feedSeq] = feedOf(message);
    if (feedSeq === null) return true;
    const last = this.#feedSeqs.get(feed);
    this.#feedSeqs.set(feed, feedSeq);
    return last === undefined || feedSeq === last + 1n || feedSeq === 1n;
  }

  #applyBook(message: WsBook): void {
    const kept = this.#books.get(pathSymbol(message.instrument));
    if (!kept) return;
    const wasLive = kept.book.isLive;
    const applied = kept.book.apply(message);
    if (applied === "gap" || applied === "differs") this.renew(kept.subscription);
    if (kept.book.isLive && !wasLive) this.#notify();
  }

  /** A later connection goes on after these. */
  #noteReports({ reports }: WsReports): void {
    const last = reports.at(-1);
    const subscribed = this.#subscriptions.get("reports");
    if (last && subscribed?.wire.channel === "reports") subscribed.wire = { channel: "reports", after: last.report_seq };
  }

  #hand(message: StreamMessage): void {
    if (this.#handlers.onMessage) return this.#handlers.onMessage(message);
    if (this.#waiting.length >= MESSAGES_MAX) {
      // Nobody reads: only the newest are kept. A reader that is this far behind begins again.
      if (this.#isRead) {
        this.#forgetUnread(message);
        this.#drop();
        return;
      }
      this.#waiting.shift();
    }
    this.#waiting.push(message);
    this.#notify();
  }

  /** Of reports none is left out: a later connection goes on with the first that nobody has read. */
  #forgetUnread(newest: StreamMessage): void {
    const [first] = [...this.#waiting, newest].flatMap((message) => (message.type === "reports" ? message.reports : []));
    this.#waiting = [];
    const subscribed = this.#subscriptions.get("reports");
    if (first && subscribed) subscribed.wire = { channel: "reports", after: String(BigInt(first.report_seq) - 1n) };
  }

  #report(error: Error): void {
    if (this.#handlers.onError) this.#handlers.onError(error);
    else this.#fail(error);
  }

  /** `for await` throws. */
  #fail(error: Error): void {
    if (this.#handlers.onMessage) return;
    this.#failure ??= error;
    this.#notify();
  }

  #notify(): void {
    const waiting = this.#changed;
    this.#changed = [];
    for (const resolve of waiting) resolve();
  }

  async #until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      if (this.#isClosed) throw closed();
      await new Promise<void>((resolve) => this.#changed.push(resolve));
    }
  }

  #watch(): void {
    // A host without power says nothing to who connects either.
    if (performance.now() - this.#heardMs >= SILENCE_MS) this.#drop();
    else if (this.#isOpen()) this.#ask({ op: "ping" }).catch(() => {});
  }
}

function isPrivate({ channel }: Subscription): boolean {
  return channel === "reports";
}

function nameOf(subscription: Subscription): string {
  if (subscription.channel === "reports") return "reports";
  const { channel, instrument = "", interval = "", batch = "", sell = "", buy = "" } = subscription as Record<string, string>;
  return [channel, pathSymbol(instrument), interval, batch, sell, buy].join(" ");
}

/** The feed that a message is of, and its number there. Earlier venues number the channel `book` alone. */
function feedOf(message: SocketMessage): [feed: string, feedSeq: bigint | null] {
  const fields = message as unknown as Partial<Record<string, string>>;
  const { type, feed_seq, instrument = "", interval = "", batch = "", sell = "", buy = "" } = fields;
  return [[type, instrument, interval, batch, sell, buy].join(" "), feed_seq === undefined || type === "book" ? null : BigInt(feed_seq)];
}

function refusal({ error, log_index }: WsError): Refused {
  return new Refused(error, log_index);
}

function closed(): NotConnected {
  return new NotConnected("the stream is closed: open another one");
}
