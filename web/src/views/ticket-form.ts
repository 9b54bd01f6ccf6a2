// The ticket's fields: what can be typed and chosen. ticket.ts gives them life.

import type { Display, OrderKind, PostOnly, SelfTrade, Side, TimeInForce } from "../api/types.ts";
import { h, setText } from "../base/dom.ts";
import type { FieldName, TicketFields } from "../state/ticket.ts";

export const TIME_WORDS: Record<TimeInForce, string> = {
  gtc: "Until cancelled (GTC)",
  day: "Until the close (DAY)",
  gtt: "For some minutes (GTT)",
  ioc: "At once, rest cancelled (IOC)",
  fok: "At once, all or nothing (FOK)",
};

const KINDS: [OrderKind, string][] = [["limit", "Limit"], ["market", "Market"], ["stop", "Stop"], ["stop_limit", "Stop limit"]];
const POST_ONLY: [PostOnly, string][] = [["off", "May take at once"], ["reject", "Never take: reject"], ["reprice", "Never take: reprice"]];
const DISPLAY: [Display, string][] = [["full", "All of it"], ["iceberg", "A peak at a time (iceberg)"], ["hidden", "Nothing (hidden)"]];
const SELF_TRADE: [SelfTrade, string][] = [
  ["cancel_newest", "Cancel the new order"], ["cancel_oldest", "Cancel the old order"], ["cancel_both", "Cancel both"],
  ["decrement", "Shrink both"], ["allow", "Let them trade"],
];

interface Field {
  row: HTMLElement;
  input: HTMLInputElement;
  unit: HTMLElement;
  fault: HTMLElement;
}

export class TicketForm {
  readonly element: HTMLFormElement;
  readonly price = field("price", "Price");
  readonly trigger = field("trigger", "Trigger");
  readonly size = field("size", "Size");
  readonly minutes = field("minutes", "Minutes");
  readonly peak = field("peak", "Peak");
  readonly minSize = field("minSize", "At least");
  readonly timeInForce = select("tif", Object.entries(TIME_WORDS) as [TimeInForce, string][]);
  readonly postOnly = select("post-only", POST_ONLY);
  readonly display = select("display", DISPLAY);
  readonly selfTrade = select("self-trade", SELF_TRADE);
  readonly shares = h("div.shares", { role: "group", "aria-label": "Size as a share of what is available" });
  readonly sum = h("dl.sum");
  readonly submit = h("button.submit", { type: "submit", id: "submit" });
  readonly answer = h("div.answer", { id: "ticket-answer", role: "status", "aria-live": "assertive" });
  readonly #sides: HTMLElement;
  readonly #kinds: HTMLElement;
  readonly postOnlyRow: HTMLElement;
  readonly displayRow: HTMLElement;

  constructor() {
    this.#sides = choice("side", "Side", [["buy", "Buy"], ["sell", "Sell"]], "sides");
    this.#kinds = choice("kind", "Order type", KINDS, "kinds");
    this.postOnlyRow = labelled("post-only", "Taking", this.postOnly);
    this.displayRow = labelled("display", "Shown", this.display);
    this.element = h("form.ticket", { novalidate: true, autocomplete: "off", "aria-labelledby": "ticket-title" },
      this.#sides, this.#kinds,
      this.trigger.row, this.price.row, this.size.row, this.shares,
      labelled("tif", "Stands", this.timeInForce), this.minutes.row,
      h("details", { id: "more" }, h("summary", {}, "More: post-only, iceberg, minimum, self-trade"),
        h("div.inner", {}, this.postOnlyRow, this.displayRow, this.peak.row, this.minSize.row, labelled("self-trade", "Self-trade", this.selfTrade))),
      this.sum, h("div.foot", {}, this.submit, this.answer));
  }

  get side(): Side {
    return checked(this.#sides) as Side;
  }

  set side(side: Side) {
    check(this.#sides, side);
  }

  get kind(): OrderKind {
    return checked(this.#kinds) as OrderKind;
  }

  set kind(kind: OrderKind) {
    check(this.#kinds, kind);
  }

  focusSide(): void {
    this.#sides.querySelector<HTMLInputElement>("input:checked")?.focus();
  }

  fields(): TicketFields {
    return {
      side: this.side,
      kind: this.kind,
      price: this.price.input.value,
      trigger: this.trigger.input.value,
      size: this.size.input.value,
      timeInForce: this.timeInForce.value as TimeInForce,
      minutes: this.minutes.input.value,
      postOnly: this.postOnly.value as PostOnly,
      display: this.display.value as Display,
      peak: this.peak.input.value,
      minSize: this.minSize.input.value,
      selfTrade: this.selfTrade.value as SelfTrade,
    };
  }

  all(): Record<FieldName, Field> {
    const { price, trigger, size, minutes, peak, minSize } = this;
    return { price, trigger, size, minutes, peak, minSize };
  }

  showFault(name: FieldName, text: string): void {
    const { input, fault } = this.all()[name];
    setText(fault, text);
    fault.hidden = text === "";
    if (text === "") input.removeAttribute("aria-invalid");
    else input.setAttribute("aria-invalid", "true");
  }

  say(tone: "good" | "bad" | "plain", title: string, text: string): void {
    this.answer.dataset["tone"] = tone;
    this.answer.replaceChildren(h("b", {}, title), text);
  }
}

function field(name: FieldName, label: string): Field {
  const id = `ticket-${name}`;
  const input = h("input", {
    type: "text", inputmode: "decimal", id, name, spellcheck: "false", autocomplete: "off", "aria-describedby": `${id}-fault`,
  });
  const unit = h("span.unit", { "aria-hidden": "true" });
  const fault = h("span.fault", { id: `${id}-fault`, hidden: true });
  const row = h("div.field", {}, h("label", { for: id }, label), h("div.with-unit", {}, input, unit), fault);
  return { row, input, unit, fault };
}

function labelled(id: string, label: string, control: HTMLSelectElement): HTMLElement {
  return h("div.field", {}, h("label", { for: id }, label), control);
}

function select<T extends string>(id: string, options: [T, string][]): HTMLSelectElement {
  return h("select", { id }, ...options.map(([value, words]) => h("option", { value }, words)));
}

function choice<T extends string>(name: string, label: string, options: [T, string][], style: string): HTMLElement {
  return h("div", { class: `choice ${style}`, role: "radiogroup", "aria-label": label },
    ...options.map(([value, words], index) =>
      h("label", {}, h("input", { type: "radio", name, value, checked: index === 0 }), h("span", {}, words))));
}

function checked(group: HTMLElement): string {
  return group.querySelector<HTMLInputElement>("input:checked")?.value ?? "";
}

function check(group: HTMLElement, value: string): void {
  const input = group.querySelector<HTMLInputElement>(`input[value="${value}"]`);
  if (input) input.checked = true;
}
