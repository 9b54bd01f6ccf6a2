// The fields of the ticket for pools. pool-ticket.ts gives them life.

import { h } from "../../base/dom.ts";
import type { FieldName, PoolAction, PoolFields } from "../../state/pool.ts";
import { t } from "../../texts/index.ts";
import { Answer, Choice, type Field, field, labelled, shareButtons, unitField } from "../form.ts";
import { assetSelect, fillAssets } from "./asset-select.ts";

const said = t.pools;

export interface PoolFormActions {
  act: () => void;
  choosePool: (key: string) => void;
  chooseAssets: () => void;
  chooseRule: () => void;
  takeShare: (percent: bigint) => void;
}

/** The fields of an action and a rule. */
export function fieldsOf(action: PoolAction, rule: PoolFields["rule"]): FieldName[] {
  if (action === "withdraw") return ["shares"];
  if (action === "deposit") return ["firstAmount", "secondAmount"];
  const ofRule: Record<PoolFields["rule"], FieldName[]> = { constant_product: [], weighted: ["weights"], stable_swap: ["amplification"] };
  return ["firstAmount", "secondAmount", ...ofRule[rule], "fee"];
}

export class PoolForm {
  readonly element: HTMLFormElement;
  readonly pool: HTMLSelectElement;
  readonly poolRow: HTMLElement;
  readonly assets: [HTMLSelectElement, HTMLSelectElement];
  readonly ruleRow: HTMLElement;
  readonly shareRow: HTMLElement;
  readonly fields: Record<FieldName, Field>;
  readonly sum = h("dl.sum");
  readonly hint = h("p.prospect.small");
  readonly submit = h("button.submit.sell", { type: "submit", id: "pool-submit" });
  readonly answer = new Answer("pool-answer");
  readonly #rule: HTMLSelectElement;
  readonly #action: Choice<PoolAction>;

  constructor({ act, choosePool, chooseAssets, chooseRule, takeShare }: PoolFormActions) {
    const { create, deposit, withdraw } = said.actionNames;
    const actions = [["create", create], ["deposit", deposit], ["withdraw", withdraw]] as const;
    this.#action = new Choice<PoolAction>("pool-action", said.action, actions, "prices");
    this.#action.element.addEventListener("change", act);
    this.pool = h("select", { id: "pool-pool" });
    this.pool.addEventListener("change", () => choosePool(this.pool.value));
    this.poolRow = labelled("pool-pool", said.pool, this.pool);
    this.assets = [
      assetSelect("pool-first-asset", said.firstAsset, chooseAssets), assetSelect("pool-second-asset", said.secondAsset, chooseAssets),
    ];
    this.#rule = h("select", { id: "pool-rule" }, ...Object.entries(said.rules).map(([value, name]) => h("option", { value }, name)));
    this.#rule.addEventListener("change", chooseRule);
    this.ruleRow = labelled("pool-rule", said.ruleName, this.#rule);
    const fee = unitField("pool-fee", "fee", said.feeName);
    fee.unit.textContent = "%";
    this.fields = {
      firstAmount: field("pool-first", "first", said.first, this.assets[0]),
      secondAmount: field("pool-second", "second", said.second, this.assets[1]),
      weights: unitField("pool-weights", "weights", said.weights),
      amplification: unitField("pool-amplification", "amplification", said.amplification),
      fee, shares: unitField("pool-shares", "shares", said.shares),
    };
    this.fields.weights.input.value = "50 : 50";
    this.fields.amplification.input.value = "100";
    this.shareRow = shareButtons(said.parts, takeShare);
    const { firstAmount, secondAmount, weights, amplification, shares } = this.fields;
    this.element = h("form.ticket.offer", { novalidate: true, autocomplete: "off", "aria-labelledby": "pool-title", id: "pool-form" },
      this.#action.element, this.poolRow, firstAmount.row, secondAmount.row, this.ruleRow, weights.row, amplification.row,
      this.fields.fee.row, shares.row, this.shareRow, this.sum, this.hint, h("div.foot", {}, this.submit, this.answer.element));
  }

  get action(): PoolAction {
    return this.#action.value;
  }

  set action(action: PoolAction) {
    this.#action.value = action;
  }

  /** Shows the fields of the action. Assets can be chosen for a new pool only. */
  show(assets: string[], pair: [string, string]): void {
    const shown = new Set(fieldsOf(this.action, this.rule));
    for (const [name, { row }] of Object.entries(this.fields)) row.hidden = !shown.has(name as FieldName);
    this.poolRow.hidden = this.action === "create";
    this.ruleRow.hidden = this.action !== "create";
    this.shareRow.hidden = this.action !== "withdraw";
    this.assets.forEach((select, at) => {
      fillAssets(select, this.action === "create" ? assets : [pair[at] ?? ""], pair[at] ?? "");
      select.disabled = this.action !== "create";
    });
  }

  get rule(): PoolFields["rule"] {
    return this.#rule.value as PoolFields["rule"];
  }

  typed(): PoolFields {
    const of = (name: FieldName): string => this.fields[name].input.value;
    return {
      rule: this.rule, firstAmount: of("firstAmount"), secondAmount: of("secondAmount"), weights: of("weights"),
      amplification: of("amplification"), fee: of("fee"), shares: of("shares"),
    };
  }
}
