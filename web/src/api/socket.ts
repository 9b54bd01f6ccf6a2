// The live connection: subscriptions that survive reconnects, requests with replies, a watchdog against silent links.

import { isStale, nextStamp, prepareNextStamp, synchroniseClock } from "./rest.ts";
import { type Key, KeyError, freshNonce, sign } from "./signing.ts";
import { type ErrorMessage, type Interval, OutcomeUnknown, Refusal, type ReplyMessage, type ServerMessage } from "./types.ts";
import { Backoff } from "./backoff.ts";
import { t } from "../texts/index.ts";

export type ConnectionState = "connecting" | "live" | "waiting";

export interface Subscription {
  channel: "book" | "trades" | "candles" | "ticker" | "status" | "batch" | "demand";
  instrument?: string;
  interval?: Interval;
  batch?: string;
  sell?: string;
  buy?: string;
}

export interface SocketEvents {
  onState(state: ConnectionState, retryInMs: number): void;
  onMessage(message: ServerMessage): void;
  /** The key was taken (`null`), or why not. */
  onAuthenticated(refusal: Refusal | null): void;
  /** This browser cannot sign with the key. */
  onKeyUnusable(error: KeyError): void;
  /** A message that the page cannot read: a bug on one side. */
  onUnreadable(error: Error): void;
}

interface Pending {
  resolve(reply: ReplyMessage): void;
  reject(error: Error): void;
}

const PING_EVERY_MS = 5_000;
const SILENCE_MS = 12_000;
const STEADY_MS = 5_000;

export class VenueSocket {
  readonly #url: string;
  readonly #events: SocketEvents;
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #pending = new Map<string, Pending>();
  readonly #backoff = new Backoff();
  #socket: WebSocket | null = null;
  #key: Key | null = null;
  #nextId = 1;
  #heardMs = 0;
  #openedMs = Infinity;
  #authRetried = false;

  constructor(url: string, events: SocketEvents) {
    this.#url = url;
    this.#events = events;
    setInterval(() => this.#watch(), PING_EVERY_MS);
    addEventListener("online", () => this.#reconnectNow());
  }

  connect(): void {
    this.#events.onState("connecting", 0);
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    socket.onopen = () => {
      this.#heardMs = performance.now();
      this.#openedMs = performance.now();
      this.#events.onState("live", 0);
      for (const subscription of this.#subscriptions.values()) this.#send({ op: "subscribe", ...subscription });
      this.#authRetried = false;
      void this.#authenticate();
    };
    socket.onmessage = (event) => {
      this.#heardMs = performance.now();
      this.#receive(event.data as string);
    };
    socket.onclose = () => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      for (const pending of this.#pending.values()) pending.reject(new OutcomeUnknown());
      this.#pending.clear();
      // Only a connection that held counts as a success: one that is dropped at once must not be retried at once forever.
      if (performance.now() - this.#openedMs > STEADY_MS) this.#backoff.reset();
      this.#openedMs = Infinity;
      const waitMs = this.#backoff.next();
      this.#events.onState("waiting", waitMs);
      setTimeout(() => {
        if (this.#socket === null) this.connect();
      }, waitMs);
    };
  }

  subscribe(subscription: Subscription): void {
    this.#subscriptions.set(keyOf(subscription), subscription);
    this.#send({ op: "subscribe", ...subscription });
  }

  unsubscribe(subscription: Subscription): void {
    if (this.#subscriptions.delete(keyOf(subscription))) this.#send({ op: "unsubscribe", ...subscription });
  }

  /** Asks for a new snapshot: after a gap. */
  resubscribe(subscription: Subscription): void {
    this.#send({ op: "unsubscribe", ...subscription });
    this.#send({ op: "subscribe", ...subscription });
  }

  /** Signs in with `key`. Signing out, or another account, takes a new connection. */
  setKey(key: Key | null): void {
    const change = this.#key !== null && (key === null || key.id !== this.#key.id);
    this.#key = key;
    if (change) this.#socket?.close();
    else void this.#authenticate();
  }

  /** One operation, answered by the venue's reply or a `Refusal`. */
  request(op: "order" | "cancel" | "amend" | "mass_cancel", body: object): Promise<ReplyMessage> {
    if (this.#socket?.readyState !== WebSocket.OPEN) {
      return Promise.reject(new Error(t.errors.notConnected));
    }
    const id = String(this.#nextId++);
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#send({ op, id, ...body });
    });
  }

  async #authenticate(prepare = synchroniseClock): Promise<void> {
    const key = this.#key;
    const socket = this.#socket;
    if (!key || socket?.readyState !== WebSocket.OPEN) return;
    try {
      await prepare();
      const signed = await sign(key, "WS", "/v1/ws", "", nextStamp(), freshNonce());
      if (this.#socket === socket) this.#send({ op: "auth", ...signed });
    } catch (error) {
      if (isStale(error)) this.#events.onAuthenticated(error);
      else if (error instanceof KeyError) this.#events.onKeyUnusable(error);
      else this.#events.onUnreadable(error as Error);
    }
  }

  #receive(text: string): void {
    try {
      const message = JSON.parse(text) as ServerMessage;
      if (message.type === "reply") this.#settle(message.id, (pending) => pending.resolve(message));
      else if (message.type === "error") this.#refused(message);
      else {
        if (message.type === "account" && message.kind === "snapshot") this.#events.onAuthenticated(null);
        this.#events.onMessage(message);
      }
    } catch (error) {
      this.#events.onUnreadable(error as Error);
    }
  }

  #refused(message: ErrorMessage): void {
    const refusal = new Refusal(message.error);
    if (message.id !== undefined) {
      this.#settle(message.id, (pending) => pending.reject(refusal));
    } else if (refusal.code >= 102 && refusal.code <= 108) {
      if (isStale(refusal) && !this.#authRetried) {
        this.#authRetried = true;
        void this.#authenticate(prepareNextStamp);
      } else this.#events.onAuthenticated(refusal);
    } else this.#events.onUnreadable(refusal);
  }

  #settle(id: string, act: (pending: Pending) => void): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (pending) act(pending);
  }

  #send(message: object): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #watch(): void {
    const socket = this.#socket;
    if (socket?.readyState !== WebSocket.OPEN) return;
    if (performance.now() - this.#heardMs < SILENCE_MS) {
      this.#send({ op: "ping" });
      return;
    }
    // A dead link may never report its closing: leave it and act as if it had.
    socket.close();
    socket.onclose?.(new CloseEvent("close"));
  }

  #reconnectNow(): void {
    if (this.#socket === null) this.connect();
  }
}

function keyOf({ channel, instrument, interval, batch, sell, buy }: Subscription): string {
  return [channel, instrument, interval, batch, sell, buy].map((part) => part ?? "").join(" ");
}
