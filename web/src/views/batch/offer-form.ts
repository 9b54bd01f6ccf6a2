// The fields of an offer: how much of what, for what, and for how much at least. offer.ts gives them life.

import { h } from "../../base/dom.ts";
import type { OfferFields } from "../../state/offer.ts";
import { Answer, Choice, type Field, field, labelled, shareButtons, type UnitField, unitField } from "../form.ts";
import { assetSelect } from "./asset-select.ts";

export interface OfferActions {
  chooseSell: (asset: string) => void;
  chooseBuy: (asset: string) => void;
  takeShare: (percent: bigint) => void;
}

export class OfferForm {
  readonly element: HTMLFormElement;
  readonly sell: HTMLSelectElement;
  readonly buy: HTMLSelectElement;
  readonly fields: { amount: Field; limit: UnitField };
  readonly limitUnit = h("span.unit-line.muted");
  readonly sum = h("dl.sum");
  readonly prospect = h("p.prospect", { id: "offer-prospect" });
  readonly submit = h("button.submit.sell", { type: "submit", id: "offer-submit" });
  readonly answer = new Answer("offer-answer");
  readonly #price = new Choice<OfferFields["price"]>("offer-price", "Price", [["limit", "At a limit"], ["any", "Any price"]], "prices");

  constructor({ chooseSell, chooseBuy, takeShare }: OfferActions) {
    this.sell = assetSelect("offer-sell", "Asset to sell", chooseSell);
    this.buy = assetSelect("offer-buy", "Asset to buy", chooseBuy);
    this.fields = { amount: field("offer-amount", "amount", "Sell", this.sell), limit: unitField("offer-limit", "limit", "At least") };
    this.element = h("form.ticket.offer", { novalidate: true, autocomplete: "off", "aria-labelledby": "offer-title" },
      this.fields.amount.row, shareButtons("Amount as a share of what is available", takeShare),
      labelled("offer-buy", "For", this.buy),
      this.#price.element, this.fields.limit.row, this.limitUnit, this.sum, this.prospect,
      h("div.foot", {}, this.submit, this.answer.element));
  }

  get price(): OfferFields["price"] {
    return this.#price.value;
  }

  set price(price: OfferFields["price"]) {
    this.#price.value = price;
  }

  typed(): OfferFields {
    return { amount: this.fields.amount.input.value, limit: this.fields.limit.input.value, price: this.price };
  }
}
