// What the user has chosen, kept by the browser for this venue's address. What cannot be kept is forgotten with the page.

import { Signal } from "./signal.ts";

const PREFIX = "walras.";

/** A choice that outlives the page. What was kept is read by `parse`, which says `null` to what it does not know. */
export class Setting<T> extends Signal<T> {
  readonly #fallback: T;

  constructor(name: string, fallback: T, parse: (kept: unknown) => T | null) {
    super(read(name, fallback, parse));
    this.#fallback = fallback;
    this.watch((value) => write(name, value));
  }

  /** As if nothing had been chosen. */
  reset(): void {
    this.value = this.#fallback;
  }
}

/**
 * A list that grows choice by choice. The venue's pages in other tabs keep the same one, so each takes over what another has kept:
 * otherwise its own next choice would undo that.
 */
export class SharedSetting<T> extends Setting<T> {
  constructor(name: string, fallback: T, parse: (kept: unknown) => T | null) {
    super(name, fallback, parse);
    // Heard by all pages but the one that has kept it. Without a key, all that was kept is gone.
    globalThis.addEventListener?.("storage", ({ key }) => {
      if (key === PREFIX + name || key === null) this.value = read(name, fallback, parse);
    });
  }
}

export function oneOf<T extends string>(...values: T[]): (kept: unknown) => T | null {
  return (kept) => values.find((value) => value === kept) ?? null;
}

export function isText(kept: unknown): kept is string {
  return typeof kept === "string";
}

export function texts(kept: unknown): string[] | null {
  return Array.isArray(kept) && kept.every(isText) ? kept : null;
}

export const flag = (kept: unknown): boolean | null => (typeof kept === "boolean" ? kept : null);

/** Times of day as UTC, as the venue's day goes, or as this computer's clock shows them. */
export const timeZone = new Setting<"utc" | "local">("time-zone", "utc", oneOf("utc", "local"));
/** Which orders are asked for twice: those far from the market, all, or none. */
export const confirmations = new Setting<"far" | "all" | "off">("confirmations", "far", oneOf("far", "all", "off"));
export const soundOn = new Setting<boolean>("sound", false, flag);
export type Arrangement = "standard" | "chart" | "book";
/** Which panel of the order book's view has the most room. */
export const layout = new Setting<Arrangement>("layout", "standard", oneOf("standard", "chart", "book"));
/** The panels of that view which can be hidden. The book and the ticket are always shown. */
export const PANELS = ["watch", "chart", "depth", "tape", "orders", "fills", "holdings"] as const;
export type Panel = (typeof PANELS)[number];
export const hiddenPanels = new Setting<Panel[]>("hidden-panels", [], (kept) =>
  (Array.isArray(kept) ? PANELS.filter((panel) => kept.includes(panel)) : null));
/** The symbols of the starred markets, in the order in which they were starred. */
export const favourites = new SharedSetting<string[]>("favourites", [], texts);
export const sizeUnit = new Setting<"base" | "quote">("size-unit", "base", oneOf("base", "quote"));

function read<T>(name: string, fallback: T, parse: (kept: unknown) => T | null): T {
  try {
    const text = globalThis.localStorage?.getItem(PREFIX + name);
    return text == null ? fallback : parse(JSON.parse(text)) ?? fallback;
  } catch {
    return fallback;
  }
}

function write(name: string, value: unknown): void {
  try {
    globalThis.localStorage?.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // A browser that keeps nothing, or is full: the choice holds until the page is closed.
  }
}
