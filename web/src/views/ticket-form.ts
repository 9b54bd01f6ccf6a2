// The ticket's fields: what can be typed and chosen. ticket.ts gives them life.

import type { Display, OrderKind, PostOnly, SelfTrade, Side, TimeInForce } from "../api/types.ts";
import { h } from "../base/dom.ts";
import type { FieldName, TicketFields } from "../state/ticket.ts";
import { Answer, Choice, labelled, shareButtons, type UnitField, unitField } from "./form.ts";

export const TIME_WORDS: Record<TimeInForce, string> = {
  gtc: "Until cancelled (GTC)",
  day: "Until the close (DAY)",
  gtt: "For some minutes (GTT)",
  ioc: "At once, rest cancelled (IOC)",
  fok: "At once, all or nothing (FOK)",
};

const KINDS: [OrderKind, string][] = [
  ["limit", "Limit"], ["market", "Market"], ["stop", "Stop"], ["stop_limit", "Stop limit"],
  ["take_profit", "Take profit"], ["take_profit_limit", "Take profit limit"],
  ["trailing_stop", "Trailing stop"], ["trailing_stop_limit", "Trailing stop limit"],
];
const POST_ONLY: [PostOnly, string][] = [["off", "May take at once"], ["reject", "Never take: reject"], ["reprice", "Never take: reprice"]];
const DISPLAY: [Display, string][] = [["full", "All of it"], ["iceberg", "A peak at a time (iceberg)"], ["hidden", "Nothing (hidden)"]];
const SELF_TRADE: [SelfTrade, string][] = [
  ["cancel_newest", "Cancel the new order"], ["cancel_oldest", "Cancel the old order"], ["cancel_both", "Cancel both"],
  ["decrement", "Shrink both"], ["allow", "Let them trade"],
];

export class TicketForm {
  readonly element: HTMLFormElement;
  /** In the order in which they stand. */
  readonly fields: Record<FieldName, UnitField> = {
    trigger: ticketField("trigger", "Trigger"),
    trail: ticketField("trail", "Distance"),
    price: ticketField("price", "Price"),
    size: ticketField("size", "Size"),
    minutes: ticketField("minutes", "Minutes"),
    peak: ticketField("peak", "Peak"),
    minSize: ticketField("minSize", "At least"),
  };
  readonly timeInForce = select("tif", Object.entries(TIME_WORDS) as [TimeInForce, string][]);
  readonly postOnly = select("post-only", POST_ONLY);
  readonly display = select("display", DISPLAY);
  readonly selfTrade = select("self-trade", SELF_TRADE);
  /** Open orders with which the order may be linked. */
  readonly oco = select("oco", [["", "No other order"]]);
  /** Of the size: the base asset or the quote asset; pressed, the other one. */
  readonly unitButton = h("button.unit", { type: "button", id: "size-unit" });
  readonly sum = h("dl.sum");
  readonly submit = h("button.submit", { type: "submit", id: "submit" });
  readonly answer = new Answer("ticket-answer");
  readonly #side = new Choice<Side>("side", "Side", [["buy", "Buy"], ["sell", "Sell"]], "sides");
  readonly #kind = select("kind", KINDS);

  constructor(takeShare: (percent: bigint) => void, turnUnit: () => void) {
    const { trigger, trail, price, size, minutes, peak, minSize } = this.fields;
    this.unitButton.addEventListener("click", turnUnit);
    size.unit.replaceWith(this.unitButton);
    this.element = h("form.ticket", { novalidate: true, autocomplete: "off", "aria-labelledby": "ticket-title" },
      this.#side.element, labelled("kind", "Order", this.#kind),
      trigger.row, trail.row, price.row, size.row, shareButtons("Size as a share of what is available", takeShare),
      labelled("tif", "Stands", this.timeInForce), minutes.row,
      h("details", { id: "more" }, h("summary", {}, "More: post-only, iceberg, minimum, self-trade, one cancels the other"),
        h("div.inner", {}, labelled("post-only", "Taking", this.postOnly), labelled("display", "Shown", this.display),
          peak.row, minSize.row, labelled("self-trade", "Self-trade", this.selfTrade), labelled("oco", "One cancels", this.oco))),
      this.sum, h("div.foot", {}, this.submit, this.answer.element));
  }

  get side(): Side {
    return this.#side.value;
  }

  set side(side: Side) {
    this.#side.value = side;
  }

  get kind(): OrderKind {
    return this.#kind.value as OrderKind;
  }

  set kind(kind: OrderKind) {
    this.#kind.value = kind;
  }

  focusSide(): void {
    this.#side.focus();
  }

  typed(): TicketFields {
    const { price, trigger, trail, size, minutes, peak, minSize } = this.fields;
    return {
      side: this.side,
      kind: this.kind,
      price: price.input.value,
      trigger: trigger.input.value,
      trail: trail.input.value,
      size: size.input.value,
      timeInForce: this.timeInForce.value as TimeInForce,
      minutes: minutes.input.value,
      postOnly: this.postOnly.value as PostOnly,
      display: this.display.value as Display,
      peak: peak.input.value,
      minSize: minSize.input.value,
      selfTrade: this.selfTrade.value as SelfTrade,
      ocoWith: this.oco.value,
    };
  }
}

function ticketField(name: FieldName, label: string): UnitField {
  return unitField(`ticket-${name}`, name, label);
}

function select<T extends string>(id: string, options: [T, string][]): HTMLSelectElement {
  return h("select", { id }, ...options.map(([value, words]) => h("option", { value }, words)));
}
