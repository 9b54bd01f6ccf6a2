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
 * A choice that grows entry by entry. The venue's pages in other tabs keep the same one, so each takes over what another has kept:
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

/** Of sizes those that can be chosen. */
export function sizes(kept: unknown): PanelSizes | null {
  if (typeof kept !== "object" || kept === null) return null;
  const values = new Map<string, unknown>(Object.entries(kept));
  const isSize = (value: unknown): boolean => Number.isInteger(value) && Number(value) > 0 && Number(value) <= SIZE_PX_MAX;
  return Object.fromEntries(SIZE_KEYS.filter((key) => isSize(values.get(key))).map((key) => [key, values.get(key)]));
}

export const flag = (kept: unknown): boolean | null => (typeof kept === "boolean" ? kept : null);

/** Times of day as UTC, as the venue's day goes, or as this computer's clock shows them. */
export const timeZone = new Setting<"utc" | "local">("time-zone", "utc", oneOf("utc", "local"));
/** Which orders are asked for twice: those far from the market, all, or none. */
export const confirmations = new Setting<"far" | "all" | "off">("confirmations", "far", oneOf("far", "all", "off"));
export const soundOn = new Setting<boolean>("sound", false, flag);
export const ARRANGEMENTS = ["standard", "chart", "book"] as const;
export type Arrangement = (typeof ARRANGEMENTS)[number];
/** Which panel of the order book's view has the most room. */
export const layout = new Setting<Arrangement>("layout", "standard", oneOf(...ARRANGEMENTS));
/** The panels of that view which can be hidden. The book and the ticket are always shown. */
export const PANELS = ["watch", "chart", "depth", "tape", "orders", "fills", "holdings"] as const;
export type Panel = (typeof PANELS)[number];
export const hiddenPanels = new Setting<Panel[]>("hidden-panels", [], (kept) =>
  (Array.isArray(kept) ? PANELS.filter((panel) => kept.includes(panel)) : null));
/** The grids of that view, by how many columns the window has room for. On a phone there is one column, and no size to choose. */
export const COLUMNS = ["two", "three", "wide"] as const;
export type Columns = (typeof COLUMNS)[number];
/** What can be resized: four widths, and the heights of rows by the panel that leads the row. */
export const SIZE_NAMES = [
  "book", "tape", "fills", "side", "watch-row", "chart-row", "depth-row", "tape-row", "orders-row", "fills-row",
] as const;
export type SizeName = (typeof SIZE_NAMES)[number];
export type SizeKey = `${Arrangement}.${Columns}.${SizeName}`;
/** In pixels. What is not listed has the size that the style sheet gives. */
export type PanelSizes = Partial<Record<SizeKey, number>>;
const SIZE_KEYS = ARRANGEMENTS.flatMap((arrangement) =>
  COLUMNS.flatMap((columns) => SIZE_NAMES.map((name): SizeKey => `${arrangement}.${columns}.${name}`)));
const SIZE_PX_MAX = 8_192;
export const panelSizes = new SharedSetting<PanelSizes>("panel-sizes", {}, sizes);
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
