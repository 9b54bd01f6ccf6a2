// A list that the venue has in pages, newest first: one's trades, one's orders that have ended. Older pages are loaded when asked for.

import type { Page } from "walras";
import { Signal } from "../base/signal.ts";
import { errorText } from "../texts/error-text.ts";

/** Takes in a page. Returns how many of its items were new. */
export type Keep<T> = (items: T[]) => number;

type Ask<T> = (cursor: string | null) => Promise<Page<T>>;

type State =
  /** Nothing has been asked for. */
  | "unasked" | "loading" | "more" | "end" | "failed"
  /** The venue has more, but the page keeps no more. */
  | "full";

export class Past<T> {
  readonly changed = new Signal<Past<T>>(this);
  state: State = "unasked";
  isComplete = true;
  error = "";
  readonly #keyOf: (item: T) => string;
  readonly #keep: Keep<T>;
  readonly #isFull: () => boolean;
  /** The newest item loaded: all older ones are in pages that are loaded or to come. */
  #newest: string | null = null;
  #ask: Ask<T> | null = null;
  #cursor: string | null = null;
  #running: Promise<void> | null = null;
  #isCatchingUp = false;

  constructor(keyOf: (item: T) => string, keep: Keep<T>, isFull: () => boolean) {
    this.#keyOf = keyOf;
    this.#keep = keep;
    this.#isFull = isFull;
  }

  /** Begins again, with another account's list or none. */
  start(ask: Ask<T> | null): void {
    this.#ask = ask;
    this.#cursor = null;
    this.#newest = null;
    this.#running = null;
    this.isComplete = true;
    this.#set("unasked");
  }

  /** Loads the next page that has anything new. */
  more(): Promise<void> {
    if (this.state === "end" || this.state === "full" || this.#ask === null) return Promise.resolve();
    if (this.#running) return this.#running;
    const running = this.#more(this.#ask).finally(() => {
      // Another account's list may be loading by now.
      if (this.#running === running) this.#running = null;
    });
    this.#running = running;
    return running;
  }

  /** Loads everything. Stops where a request fails, or where the page keeps no more. */
  async all(): Promise<void> {
    const ask = this.#ask;
    do await this.more();
    while (this.state === "more" && this.#ask === ask);
  }

  /** Loads what is new since the last time: from the newest back to what is known. */
  async catchUp(): Promise<void> {
    // With nothing known there is nowhere to stop: load the first page.
    if (this.#newest === null && this.state !== "end") return this.more();
    const ask = this.#ask;
    if (ask === null || this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    try {
      let cursor: string | null = null;
      let newest: string | null = null;
      for (let reached = false; !reached;) {
        const page: Page<T> = await ask(cursor);
        if (ask !== this.#ask) return;
        this.#keep(page.items);
        const keys = page.items.map(this.#keyOf);
        newest ??= keys[0] ?? null;
        cursor = page.next;
        reached = cursor === null || this.#newest !== null && keys.includes(this.#newest);
      }
      this.#newest = newest ?? this.#newest;
      this.changed.touch();
    } finally {
      this.#isCatchingUp = false;
    }
  }

  async #more(ask: Ask<T>): Promise<void> {
    this.#set("loading");
    try {
      for (;;) {
        const page = await ask(this.#cursor);
        if (ask !== this.#ask) return;
        this.isComplete = page.complete;
        const [first] = page.items;
        if (first !== undefined) this.#newest ??= this.#keyOf(first);
        this.#cursor = page.next;
        const added = this.#keep(page.items);
        if (page.next === null) return this.#set("end");
        if (this.#isFull()) return this.#set("full");
        if (added > 0) return this.#set("more");
      }
    } catch (error) {
      if (ask !== this.#ask) return;
      this.error = errorText(error);
      this.#set("failed");
    }
  }

  #set(state: State): void {
    this.state = state;
    this.changed.touch();
  }
}
