// Single-key shortcuts. They do nothing while typing, and can be turned off (in the help), as people who speak to their computer need.

import { Signal } from "../base/signal.ts";
import { t } from "../texts/index.ts";

type Action = "help" | "buy" | "sell" | "price" | "size" | "book" | "orders" | "instrument" | "cancelAll" | "theme" | "key" | "view";

/** What a view has none of does nothing there. */
export type ShortcutActions = Partial<Record<Action, () => void>>;

export interface Shortcut {
  keys: string;
  does: string;
  /** What it does in the batch view, where that is something else. */
  inBatch?: string;
  action?: Action;
}

const words = t.shortcuts;

export const SHORTCUTS: Shortcut[] = [
  { keys: "?", does: words.help, action: "help" },
  { keys: "V", does: words.view, action: "view" },
  { keys: "B", does: words.buy, inBatch: words.buyBatch, action: "buy" },
  { keys: "S", does: words.sell, inBatch: words.sellBatch, action: "sell" },
  { keys: "P", does: words.price, inBatch: words.priceBatch, action: "price" },
  { keys: "Z", does: words.size, inBatch: words.sizeBatch, action: "size" },
  { keys: "L", does: words.book, inBatch: words.bookBatch, action: "book" },
  { keys: "O", does: words.orders, inBatch: words.ordersBatch, action: "orders" },
  { keys: "X", does: words.cancelAll, inBatch: words.cancelAllBatch, action: "cancelAll" },
  { keys: "I", does: words.instrument, inBatch: words.instrumentBatch, action: "instrument" },
  { keys: "K", does: words.key, action: "key" },
  { keys: "Esc", does: words.escape },
  { keys: "T", does: words.theme, action: "theme" },
];

const STORED = "walras.shortcuts";
export const shortcutsOn = new Signal(localStorage.getItem(STORED) !== "off");

export function startShortcuts(actionsNow: () => ShortcutActions): void {
  shortcutsOn.watch((on) => localStorage.setItem(STORED, on ? "on" : "off"));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]")) return;
    // Escape leaves a field, so that the shortcuts work again.
    if (event.key === "Escape") (document.activeElement as HTMLElement | null)?.blur();
    if (isTyping(event.target)) return;
    const shortcut = SHORTCUTS.find(({ keys }) => keys === event.key.toUpperCase());
    if (!shortcut?.action || (!shortcutsOn.value && shortcut.action !== "help")) return;
    const act = actionsNow()[shortcut.action];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return target.type !== "radio" && target.type !== "checkbox";
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
