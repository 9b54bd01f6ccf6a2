// Single-key shortcuts. They do nothing while typing, and can be turned off (in the help), as people who speak to their computer need.

import { Signal } from "../base/signal.ts";

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

export const SHORTCUTS: Shortcut[] = [
  { keys: "?", does: "This help", action: "help" },
  { keys: "V", does: "Order book, batch, fair access", action: "view" },
  { keys: "B", does: "Buy: to the ticket's size", inBatch: "Choose the asset to buy", action: "buy" },
  { keys: "S", does: "Sell: to the ticket's size", inBatch: "Choose the asset to sell", action: "sell" },
  { keys: "P", does: "Ticket's price (↑ ↓ one tick)", inBatch: "Offer's limit (↑ ↓ last digit)", action: "price" },
  { keys: "Z", does: "Ticket's size (↑ ↓ one lot)", inBatch: "Offer's amount", action: "size" },
  { keys: "L", does: "Ladder (↑ ↓ price, Enter takes it)", inBatch: "Prices (← → asset to sell)", action: "book" },
  { keys: "O", does: "Open orders", inBatch: "Your offers", action: "orders" },
  { keys: "X", does: "Cancel all open orders", inBatch: "Cancel all offers", action: "cancelAll" },
  { keys: "I", does: "Choose the instrument", inBatch: "Choose the batch market", action: "instrument" },
  { keys: "K", does: "API key", action: "key" },
  { keys: "Esc", does: "Leave a field, close a dialog" },
  { keys: "T", does: "Colours: auto, light, dark", action: "theme" },
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
