// The fields of an offer: how much of what, for what, and for how much at least. offer.ts gives them life.

import { h, setText } from "../../base/dom.ts";
import type { OfferFields } from "../../state/offer.ts";
import { assetSelect } from "./asset-select.ts";

interface Field {
  row: HTMLElement;
  input: HTMLInputElement;
  fault: HTMLElement;
}

export class OfferForm {
  readonly element: HTMLFormElement;
  readonly sell: HTMLSelectElement;
  readonly buy: HTMLSelectElement;
  readonly amount: Field;
  readonly limit: Field;
  readonly limitUnit = h("span.unit-line.muted");
  readonly shares = h("div.shares", { role: "group", "aria-label": "Amount as a share of what is available" });
  readonly sum = h("dl.sum");
  readonly prospect = h("p.prospect", { id: "offer-prospect" });
  readonly submit = h("button.submit.sell", { type: "submit", id: "offer-submit" });
  readonly answer = h("div.answer", { id: "offer-answer", role: "status", "aria-live": "assertive" });
  readonly #price: HTMLElement;

  constructor(chooseSell: (asset: string) => void, chooseBuy: (asset: string) => void) {
    this.sell = assetSelect("offer-sell", "Asset to sell", chooseSell);
    this.buy = assetSelect("offer-buy", "Asset to buy", chooseBuy);
    this.amount = field("amount", "Sell", this.sell);
    this.limit = field("limit", "At least", h("span.unit", { "aria-hidden": "true" }));
    this.#price = h("div.choice.prices", { role: "radiogroup", "aria-label": "Price" },
      ...([["limit", "At a limit"], ["any", "Any price"]] as const).map(([value, words], index) =>
        h("label", {}, h("input", { type: "radio", name: "offer-price", value, checked: index === 0 }), h("span", {}, words))));
    this.element = h("form.ticket.offer", { novalidate: true, autocomplete: "off", "aria-labelledby": "offer-title" },
      this.amount.row, this.shares,
      h("div.field", {}, h("label", { for: "offer-buy" }, "For"), this.buy),
      this.#price, this.limit.row, this.limitUnit, this.sum, this.prospect, h("div.foot", {}, this.submit, this.answer));
  }

  get price(): OfferFields["price"] {
    return this.#price.querySelector<HTMLInputElement>("input:checked")?.value === "any" ? "any" : "limit";
  }

  set price(price: OfferFields["price"]) {
    const input = this.#price.querySelector<HTMLInputElement>(`input[value="${price}"]`);
    if (input) input.checked = true;
  }

  fields(): OfferFields {
    return { amount: this.amount.input.value, limit: this.limit.input.value, price: this.price };
  }

  showFault(name: "amount" | "limit", text: string): void {
    const { input, fault } = this[name];
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

function field(name: "amount" | "limit", label: string, beside: HTMLElement): Field {
  const id = `offer-${name}`;
  const input = h("input", { type: "text", inputmode: "decimal", id, name, spellcheck: "false", autocomplete: "off", "aria-describedby": `${id}-fault` });
  const fault = h("span.fault", { id: `${id}-fault`, hidden: true });
  const row = h("div.field", {}, h("label", { for: id }, label), h(`div.${beside.matches("select") ? "with-select" : "with-unit"}`, {}, input, beside), fault);
  return { row, input, fault };
}
