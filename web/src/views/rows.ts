// Table bodies that keep their rows: a row is made once per key and then updated, so focus and half-typed input survive.

import { h, setText } from "../base/dom.ts";
import { prefersLessMotion } from "./theme.ts";

export class Rows<T> {
  readonly #body: HTMLTableSectionElement;
  readonly #make: (item: T) => HTMLTableRowElement;
  readonly #update: (row: HTMLTableRowElement, item: T) => void;
  readonly #rows = new Map<string, HTMLTableRowElement>();

  constructor(
    body: HTMLTableSectionElement,
    make: (item: T) => HTMLTableRowElement,
    update: (row: HTMLTableRowElement, item: T) => void,
  ) {
    this.#body = body;
    this.#make = make;
    this.#update = update;
  }

  show(items: Iterable<T>, keyOf: (item: T) => string): void {
    const wanted = new Map([...items].map((item) => [keyOf(item), item]));
    // What goes, goes first: so that what stays need not be moved, which would take the focus from it.
    for (const [key, row] of this.#rows) {
      if (!wanted.has(key)) {
        row.remove();
        this.#rows.delete(key);
      }
    }
    let at: ChildNode | null = this.#body.firstChild;
    for (const [key, item] of wanted) {
      let row = this.#rows.get(key);
      if (!row) {
        row = this.#make(item);
        this.#rows.set(key, row);
      }
      this.#update(row, item);
      if (row === at) at = at.nextSibling;
      else this.#body.insertBefore(row, at);
    }
  }
}

/** A table body whose rows stand still and change what they show: for lists that move on all the time and have nothing to type into. */
export class Slots<T> {
  readonly #body: HTMLTableSectionElement;
  readonly #make: () => HTMLTableRowElement;
  readonly #fill: (row: HTMLTableRowElement, item: T) => void;
  readonly #slots: { row: HTMLTableRowElement; key: string }[] = [];

  constructor(body: HTMLTableSectionElement, make: () => HTMLTableRowElement, fill: (row: HTMLTableRowElement, item: T) => void) {
    this.#body = body;
    this.#make = make;
    this.#fill = fill;
  }

  /** Newest first. Calls `arrived` for the rows of those that were not there before, unless there were none at all. */
  show(items: T[], keyOf: (item: T) => string, arrived: (row: HTMLTableRowElement) => void = () => {}): void {
    const before = new Set(this.#slots.map(({ key }) => key));
    items.forEach((item, index) => {
      let slot = this.#slots[index];
      if (!slot) {
        slot = { row: this.#make(), key: "" };
        this.#slots.push(slot);
        this.#body.append(slot.row);
      }
      slot.key = keyOf(item);
      this.#fill(slot.row, item);
      if (before.size > 0 && !before.has(slot.key)) arrived(slot.row);
    });
    for (const { row } of this.#slots.splice(items.length)) row.remove();
  }
}

/** Lights a row up for a moment, unless less motion is wanted. */
export function flash(row: HTMLTableRowElement, colour: string): void {
  if (prefersLessMotion()) return;
  const faint = colour.replace(/^rgb\((.*)\)$/, "rgba($1, 0.5)");
  row.animate([{ backgroundColor: faint }, { backgroundColor: "transparent" }], { duration: ARRIVE_MS, easing: "ease-out" });
}

const ARRIVE_MS = 900;

export interface Column {
  name: string;
  numeric?: boolean;
  /** For columns that need no visible head, such as actions. */
  silent?: boolean;
}

export function table(caption: string, columns: Column[]): { element: HTMLTableElement; body: HTMLTableSectionElement } {
  const body = h("tbody");
  const heads = columns.map(({ name, numeric, silent }) =>
    h("th", { scope: "col", class: numeric ? "num" : null }, silent ? h("span.sr", {}, name) : name),
  );
  const element = h("table", {}, h("caption.sr", {}, caption), h("thead", {}, h("tr", {}, ...heads)), body);
  return { element, body };
}

/**
 * Sets the text of the row's cells from the first on, or of the buttons that name what the row is of; leaves the cells after them alone.
 */
export function setCells(row: HTMLTableRowElement, texts: string[]): void {
  texts.forEach((text, index) => {
    const cell = row.cells[index];
    const name = cell?.firstElementChild;
    if (cell) setText(name?.className === NAME ? name : cell, text);
  });
}

const NAME = "name";

/** A button that is the text of its cell (see `setCells`), and says more of what its row is of. */
export function nameButton(title: string, open: () => void): HTMLButtonElement {
  return h(`button.${NAME}`, { type: "button", title, "aria-haspopup": "dialog", onclick: open });
}

/** When the row with the focus goes away, the focus goes to the row in its place, not to the top of the page. */
export function keepFocus(body: HTMLTableSectionElement, otherwise: HTMLElement, change: () => void): void {
  const active = document.activeElement;
  const row = active?.closest("tr");
  const index = row && body.contains(row) ? [...body.rows].indexOf(row) : -1;
  const column = row && active ? [...row.querySelectorAll("button, input")].indexOf(active) : -1;
  change();
  if (index < 0 || document.activeElement === active) return;
  const next = body.rows[Math.min(index, body.rows.length - 1)];
  const control = next?.querySelectorAll<HTMLElement>("button, input")[column] ?? next?.querySelector<HTMLElement>("button");
  (control ?? otherwise.closest<HTMLElement>("section") ?? otherwise).focus();
}
