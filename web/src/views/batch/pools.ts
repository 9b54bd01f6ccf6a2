// The pools of the market: the reserves of each, the rule it trades by, and one's own part. While they are shown, they replace the curves
// and the ticket for offers.

import type { Pool } from "walras";
import { trimZeros } from "../../base/decimal.ts";
import { byId, h, setText } from "../../base/dom.ts";
import { group, showPercent } from "../../base/format.ts";
import { oncePerFrame, Signal } from "../../base/signal.ts";
import { partText } from "../../state/pool.ts";
import { poolKey } from "../../state/pool-desk.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { keepFocus, Rows, setCells, table } from "../rows.ts";
import { markOf, markTitle } from "./proof-words.ts";

const said = t.pools;

/** Whether pools are shown, or curves and offers. */
export const poolsShown = new Signal(false);

/** Opens the ticket for a pool of the list. */
export type Choose = (action: "deposit" | "withdraw", pool: Pool) => void;

export function poolsView(venue: Venue, choose: Choose): void {
  const { desk } = venue;
  const numeric = true;
  const { element, body } = table(said.caption, [
    { name: said.pair }, { name: said.reserves, numeric }, { name: said.rule }, { name: said.yours, numeric },
    { name: said.actions, silent: true },
  ]);
  element.id = "pools-table";
  const empty = h("p.empty");
  byId("pools-tools").append(h("span.muted", {}, said.note));
  byId("pools-body").append(element, empty);
  toggles();
  const rows = new Rows<Pool>(body, (pool) => {
    const ask = (action: "deposit" | "withdraw"): void => {
      const now = desk.pools.list.value?.find((each) => poolKey(each) === poolKey(pool));
      if (now) choose(action, now);
    };
    const button = (words: string, label: string, action: "deposit" | "withdraw"): HTMLElement =>
      h("button", { type: "button", "aria-label": label, "data-action": action, onclick: () => ask(action) }, words);
    return h("tr", { "data-pool": poolKey(pool) },
      h("td"), h("td.num", { "data-label": said.reserves }), h("td"), h("td.num", { "data-label": said.yours }),
      h("td.act", {},
        button(said.add, said.addLabel(pairName(pool)), "deposit"), button(said.takeOut, said.takeOutLabel(pairName(pool)), "withdraw")));
  }, (row, pool) => {
    const own = desk.pools.shares.value.get(poolKey(pool));
    const mark = own ? desk.proofs.ofShare(own) : null;
    row.title = `${said.rowTitle(pool.account_id, pool.sequence)}${markTitle(mark)}`;
    setCells(row, [
      pairName(pool), bothOf(pool, pool.reserves), `${ruleName(pool)}\n${showPercent(pool.fee_ppm)}`,
      own ? `${partText(own.shares, own.all_shares)}${markOf(mark)}\n${bothOf(pool, own.worth)}` : "–",
    ]);
    const takeOut = row.querySelector<HTMLElement>("[data-action=withdraw]");
    if (takeOut) takeOut.hidden = own === undefined;
  });
  const draw = oncePerFrame(() => {
    const list = desk.pools.list.value;
    keepFocus(body, byId("pools"), () => rows.show(list ?? [], poolKey));
    element.hidden = list === null || list.length === 0;
    empty.hidden = !element.hidden;
    setText(empty, list === null ? said.unknown : said.none);
    setText(byId("pools-title"), said.title(list?.length ?? 0));
  });
  desk.pools.list.watch(draw);
  desk.pools.shares.watch(draw);
  desk.proofs.changed.watch(draw);
  draw();
}

/** Two buttons that switch between pools and offers, each in the head of its own panel. */
function toggles(): void {
  const show = h("button", { type: "button", id: "pools-show", title: said.showTitle, onclick: () => turn(true, hide) }, said.show);
  const hide = h("button", { type: "button", id: "pools-hide", title: said.hideTitle, onclick: () => turn(false, show) }, said.hide);
  const turn = (on: boolean, other: HTMLElement): void => {
    poolsShown.value = on;
    other.focus();
  };
  byId("offer-tools").append(show);
  byId("pool-tools").append(hide);
  const draw = (on: boolean): void => {
    for (const id of ["pools", "pool"]) byId(id).hidden = !on;
    for (const id of ["curves", "offer"]) byId(id).hidden = on;
  };
  poolsShown.watch(draw);
  draw(poolsShown.value);
}

export function pairName({ first, second }: Pick<Pool, "first" | "second">): string {
  return `${first} / ${second}`;
}

export function ruleName({ rule, weights, amplification }: Pool): string {
  if (weights) return said.weighted(weights[0], weights[1]);
  return amplification === undefined ? said.rules[rule] : said.stableSwap(group(String(amplification)));
}

/** One amount a line: CSS keeps the line break. */
function bothOf({ first, second }: Pool, [one, other]: [string, string]): string {
  return `${group(trimZeros(one, 2))} ${first}\n${group(trimZeros(other, 2))} ${second}`;
}
