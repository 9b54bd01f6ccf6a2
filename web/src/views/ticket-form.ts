// The ticket's fields: what can be typed and chosen. ticket.ts gives them life.

import type { Display, OrderType, PostOnly, SelfTrade, Side, TimeInForce } from "walras";
import { h } from "../base/dom.ts";
import type { FieldName, TicketFields } from "../state/ticket.ts";
import { t } from "../texts/index.ts";
import { Answer, Choice, labelled, shareButtons, type UnitField, unitField } from "./form.ts";

const said = t.ticket;
const KINDS: Record<OrderType, string> = said.kinds;
const TIMES: Record<TimeInForce, string> = said.times;
const POST_ONLY: Record<PostOnly, string> = said.postOnly;
const DISPLAY: Record<Display, string> = said.display;
const SELF_TRADE: Record<SelfTrade, string> = said.selfTrade;

export class TicketForm {
  readonly element: HTMLFormElement;
  /** In the order in which they stand. */
  readonly fields: Record<FieldName, UnitField> = {
    trigger: ticketField("trigger", said.fields.trigger),
    trail: ticketField("trail", said.fields.trail),
    price: ticketField("price", said.fields.price),
    size: ticketField("size", said.fields.size),
    minutes: ticketField("minutes", said.fields.minutes),
    peak: ticketField("peak", said.fields.peak),
    minSize: ticketField("minSize", said.fields.minSize),
    takeProfit: ticketField("takeProfit", said.fields.takeProfit),
    stopLoss: ticketField("stopLoss", said.fields.stopLoss),
    stopLimit: ticketField("stopLimit", said.fields.stopLimit),
  };
  readonly timeInForce = select("tif", listed(TIMES));
  readonly postOnly = select("post-only", listed(POST_ONLY));
  readonly display = select("display", listed(DISPLAY));
  readonly selfTrade = select("self-trade", listed(SELF_TRADE));
  /** Open orders with which the order may be linked. */
  readonly oco = select("oco", [["", said.ocoNone]]);
  /** Of the size: the base asset or the quote asset; pressed, the other one. */
  readonly unitButton = h("button.unit", { type: "button", id: "size-unit" });
  /** What closes the order again; its head says what is asked for while it is folded. */
  readonly exitsHead = h("summary", {}, said.exits.title);
  readonly exits: HTMLElement;
  readonly sum = h("dl.sum");
  readonly submit = h("button.submit", { type: "submit", id: "submit" });
  readonly answer = new Answer("ticket-answer");
  readonly #side = new Choice<Side>("side", said.side, [["buy", t.sides.buy], ["sell", t.sides.sell]], "sides");
  readonly #kind = select("kind", listed(KINDS));

  constructor(takeShare: (percent: bigint) => void, turnUnit: () => void) {
    const { trigger, trail, price, size, minutes, peak, minSize, takeProfit, stopLoss, stopLimit } = this.fields;
    this.unitButton.addEventListener("click", turnUnit);
    size.unit.replaceWith(this.unitButton);
    this.exits = h("details", { id: "exits" }, this.exitsHead,
      h("div.inner", {}, takeProfit.row, stopLoss.row, stopLimit.row));
    this.element = h("form.ticket", { novalidate: true, autocomplete: "off", "aria-labelledby": "ticket-title" },
      this.#side.element, labelled("kind", said.kind, this.#kind),
      trigger.row, trail.row, price.row, size.row, shareButtons(said.shares, takeShare),
      labelled("tif", said.stands, this.timeInForce), minutes.row, this.exits,
      h("details", { id: "more" }, h("summary", {}, said.more),
        h("div.inner", {}, labelled("post-only", said.taking, this.postOnly), labelled("display", said.shown, this.display),
          peak.row, minSize.row, labelled("self-trade", said.selfTradeLabel, this.selfTrade), labelled("oco", said.oco, this.oco))),
      this.sum, h("div.foot", {}, this.submit, this.answer.element));
  }

  get side(): Side {
    return this.#side.value;
  }

  set side(side: Side) {
    this.#side.value = side;
  }

  get kind(): OrderType {
    return this.#kind.value as OrderType;
  }

  set kind(kind: OrderType) {
    this.#kind.value = kind;
  }

  focusSide(): void {
    this.#side.focus();
  }

  typed(): TicketFields {
    const { price, trigger, trail, size, minutes, peak, minSize, takeProfit, stopLoss, stopLimit } = this.fields;
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
      takeProfit: takeProfit.input.value,
      stopLoss: stopLoss.input.value,
      stopLimit: stopLimit.input.value,
    };
  }
}

function ticketField(name: FieldName, label: string): UnitField {
  return unitField(`ticket-${name}`, name, label);
}

function listed<T extends string>(options: Record<T, string>): [T, string][] {
  return Object.entries(options) as [T, string][];
}

function select<T extends string>(id: string, options: [T, string][]): HTMLSelectElement {
  return h("select", { id }, ...options.map(([value, words]) => h("option", { value }, words)));
}
