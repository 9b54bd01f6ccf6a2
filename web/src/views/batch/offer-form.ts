// The fields of an offer: how much of what, for what, and for how much at least. offer.ts gives them life.

import { h } from "../../base/dom.ts";
import type { OfferFields } from "../../state/offer.ts";
import { t } from "../../texts/index.ts";
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
  readonly #price = new Choice<OfferFields["price"]>(
    "offer-price", t.offer.price, [["limit", t.offer.prices.limit], ["any", t.offer.prices.any]], "prices",
  );

  constructor({ chooseSell, chooseBuy, takeShare }: OfferActions) {
    this.sell = assetSelect("offer-sell", t.offer.sellAsset, chooseSell);
    this.buy = assetSelect("offer-buy", t.offer.buyAsset, chooseBuy);
    this.fields = {
      amount: field("offer-amount", "amount", t.offer.sell, this.sell),
      limit: unitField("offer-limit", "limit", t.offer.limit),
    };
    this.element = h("form.ticket.offer", { novalidate: true, autocomplete: "off", "aria-labelledby": "offer-title" },
      this.fields.amount.row, shareButtons(t.offer.shares, takeShare),
      labelled("offer-buy", t.offer.for, this.buy),
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
