// What the page's tickets are made of: fields that say what is wrong with them, choices, shares of what one has, an answer.

import { h, setText } from "../base/dom.ts";
import { t } from "../texts/index.ts";

export interface Field {
  row: HTMLElement;
  input: HTMLInputElement;
  fault: HTMLElement;
}

/** A field with its unit next to it. */
export interface UnitField extends Field {
  unit: HTMLElement;
}

export function field(id: string, name: string, label: string, beside: HTMLElement): Field {
  const input = h("input", {
    type: "text", inputmode: "decimal", id, name, spellcheck: "false", autocomplete: "off", "aria-describedby": `${id}-fault`,
  });
  const fault = h("span.fault", { id: `${id}-fault`, hidden: true });
  const pair = h(`div.${beside.matches("select") ? "with-select" : "with-unit"}`, {}, input, beside);
  return { row: h("div.field", {}, h("label", { for: id }, label), pair, fault), input, fault };
}

export function unitField(id: string, name: string, label: string): UnitField {
  const unit = h("span.unit", { "aria-hidden": "true" });
  return { ...field(id, name, label, unit), unit };
}

export function labelled(id: string, label: string, control: HTMLSelectElement): HTMLElement {
  return h("div.field", {}, h("label", { for: id }, label), control);
}

/** Tells each field's fault, else what to think of: of an empty field only once sending was `attempted`. */
export function showFaults<Name extends string>(
  fields: Record<Name, Field>, faults: Partial<Record<Name, string>>, attempted: boolean, warnings: Partial<Record<Name, string>> = {},
): void {
  for (const name of Object.keys(fields) as Name[]) {
    const { input, fault } = fields[name];
    const isTold = attempted || input.value.trim() !== "";
    const wrong = isTold ? faults[name] : undefined;
    const warning = isTold ? warnings[name] : undefined;
    setText(fault, wrong ?? (warning === undefined ? "" : `⚠ ${warning}`));
    fault.hidden = wrong === undefined && warning === undefined;
    fault.classList.toggle("warning", wrong === undefined);
    if (wrong === undefined) input.removeAttribute("aria-invalid");
    else input.setAttribute("aria-invalid", "true");
  }
}

/** Goes to the first field that has a fault, in the order of `fields`; says which. */
export function focusFault<Name extends string>(
  fields: Record<Name, Field>, faults: Partial<Record<Name, string>>,
): Name | undefined {
  const first = (Object.keys(fields) as Name[]).find((name) => faults[name] !== undefined);
  if (first !== undefined) {
    fields[first].input.closest("details")?.setAttribute("open", "");
    fields[first].input.focus();
  }
  return first;
}

/** Calls with 1 or -1 at an arrow key, with 10 or -10 while Shift is held. */
export function onArrows(input: HTMLInputElement, step: (by: bigint) => void): void {
  input.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    event.preventDefault();
    step((event.key === "ArrowUp" ? 1n : -1n) * (event.shiftKey ? 10n : 1n));
  });
}

/** One of a few, all in sight. The first is chosen. */
export class Choice<T extends string> {
  readonly element: HTMLElement;

  constructor(name: string, label: string, options: readonly (readonly [value: T, words: string])[], style: string) {
    this.element = h("div", { class: `choice ${style}`, role: "radiogroup", "aria-label": label },
      ...options.map(([value, words], index) =>
        h("label", {}, h("input", { type: "radio", name, value, checked: index === 0 }), h("span", {}, words))));
  }

  get value(): T {
    return this.#chosen()?.value as T;
  }

  set value(value: T) {
    const input = this.element.querySelector<HTMLInputElement>(`input[value="${value}"]`);
    if (input) input.checked = true;
  }

  focus(): void {
    this.#chosen()?.focus();
  }

  #chosen(): HTMLInputElement | null {
    return this.element.querySelector<HTMLInputElement>("input:checked");
  }
}

/** Buttons that take a quarter, half, three quarters or all of what is available. */
export function shareButtons(label: string, take: (percent: bigint) => void): HTMLElement {
  return h("div.shares", { role: "group", "aria-label": label }, ...[25n, 50n, 75n, 100n].map((percent) =>
    h("button", { type: "button", "aria-label": t.ticket.share(String(percent)), onclick: () => take(percent) }, `${percent} %`)));
}

/** What an order or offer comes to, line by line. */
export function showSum(sum: HTMLElement, lines: [name: string, value: string][]): void {
  sum.replaceChildren(...lines.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

export type Tone = "good" | "bad" | "plain";

/** Where a ticket says what came of it. */
export class Answer {
  readonly element: HTMLElement;

  constructor(id: string) {
    this.element = h("div.answer", { id, role: "status", "aria-live": "assertive" });
  }

  say(tone: Tone, title: string, text: string): void {
    this.element.dataset["tone"] = tone;
    this.element.replaceChildren(h("b", {}, title), text);
  }

  /** What it spoke of is over. */
  clear(): void {
    delete this.element.dataset["tone"];
    this.element.replaceChildren();
  }

  get text(): string {
    return this.element.textContent ?? "";
  }
}
