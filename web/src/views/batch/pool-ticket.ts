// The ticket for pools: opens one, adds to one, takes out of one. It shows the amounts before they are signed, signs in the browser, and
// shows the venue's answer and the outcome in the block.

import { formatUnits, parseUnits, type Pool } from "walras";
import { trimZeros } from "../../base/decimal.ts";
import { byId, h, setText } from "../../base/dom.ts";
import { group, showPercent, typed, ungroup } from "../../base/format.ts";
import { oncePerFrame } from "../../base/signal.ts";
import { type BatchMarket, pairAfter } from "../../state/batch-market.ts";
import { spendableOf } from "../../state/offer.ts";
import { describeError } from "../../state/outcome.ts";
import {
  type CheckedPool, checkCreate, checkDeposit, checkWithdraw, type FieldName, partnerOf, partText, type PoolAction, type Side, type Sides,
} from "../../state/pool.ts";
import { poolKey } from "../../state/pool-desk.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { type Field, focusFault, showFaults, showSum } from "../form.ts";
import { drawHint } from "./offer.ts";
import { fieldsOf, PoolForm } from "./pool-form.ts";
import { type Choose, pairName, poolsShown } from "./pools.ts";

const said = t.pools;

export function poolTicketView(venue: Venue, openKey: () => void): Choose {
  const { desk } = venue;
  let chosen = "";
  /** The assets of a new pool. */
  let pair: [string, string] | null = null;
  let attempted = false;
  let sending = false;
  /** The transaction that the answer is about, until its block. */
  let answered: string | null = null;

  const form = new PoolForm({
    act: () => start(),
    choosePool: (key) => {
      chosen = key;
      start();
    },
    chooseAssets: () => {
      const [first, second] = form.assets;
      const market = desk.market.value;
      const [one, other] = pair ?? (market ? namesNow(market) : ["", ""]);
      const change = first.value === one ? { buy: second.value } : { sell: first.value };
      if (market) {
        const { sell, buy } = pairAfter(market.info.value, { sell: one, buy: other }, change);
        pair = [sell, buy];
      }
      draw();
    },
    chooseRule: () => draw(),
    takeShare: (percent) => {
      const own = BigInt(desk.pools.shares.value.get(chosen)?.shares ?? "0");
      form.fields.shares.input.value = String((own * percent) / 100n);
      draw();
    },
  });
  const hint = h("div.hint", { id: "pool-hint" });
  byId("pool-body").append(hint, form.element);

  const poolOf = (): Pool | undefined => desk.pools.list.value?.find((pool) => poolKey(pool) === chosen);
  const sideOf = (asset: string): Side => {
    const decimals = desk.decimals(asset);
    const { value: balances } = venue.account.balances;
    // Balances list what the account has: once they are here, an asset that is missing is zero.
    const available = balances.get(asset)?.available ?? (balances.size > 0 ? "0" : undefined);
    const spendable = spendableOf(asset, available, desk.offers.collectedOf(asset), decimals);
    return { asset, decimals, id: desk.asset(asset).asset_id, spendable };
  };
  const sidesOf = ([first, second]: [string, string]): Sides => [sideOf(first), sideOf(second)];
  const namesNow = (market: BatchMarket): [string, string] => {
    const pool = poolOf();
    if (form.action !== "create" && pool) return [pool.first, pool.second];
    const { sell, buy } = market.pair.value;
    return pair ?? [sell, buy];
  };
  const check = (market: BatchMarket, sides: Sides): CheckedPool => {
    const pool = poolOf();
    if (form.action === "create") {
      const fee = market.info.value.account_fee_next;
      return checkCreate(form.typed(), sides, fee && { ...sideOf(fee.asset), amount: fee.amount });
    }
    if (!pool) return { faults: {}, operation: null, gives: [], moves: null };
    return form.action === "deposit" ? checkDeposit(form.typed(), sides, pool)
      : checkWithdraw(form.typed(), sides, pool, desk.pools.shares.value.get(chosen));
  };

  /** Another action or pool: what was typed was for the former one. */
  const start = (): void => {
    for (const name of ["firstAmount", "secondAmount", "shares"] as const) form.fields[name].input.value = "";
    attempted = false;
    draw();
  };

  const draw = oncePerFrame(() => {
    const market = desk.market.value;
    if (!market || !poolsShown.value) return;
    const mayChoose = (pool: Pool): boolean => form.action !== "withdraw" || desk.pools.shares.value.has(poolKey(pool));
    fillPools(form.pool, (desk.pools.list.value ?? []).filter(mayChoose), chosen);
    chosen = form.pool.value;
    const names = namesNow(market);
    const sides = sidesOf(names);
    form.show(market.info.value.assets, names);
    const checked = check(market, sides);
    showFaults(shownFields(form), checked.faults, attempted);
    const own = desk.pools.shares.value.get(chosen)?.shares;
    showSum(form.sum, sumOf(form.action, checked, sides, poolOf(), own, market.info.value.account_fee_next));
    const hasPool = form.action === "create" || poolOf() !== undefined;
    const hints: Record<PoolAction, string> = { create: said.createHint, deposit: said.depositHint, withdraw: said.withdrawHint };
    const noneToChoose = form.action === "withdraw" && desk.pools.list.value?.length ? said.noShares : said.noPool;
    setText(form.hint, hasPool ? hints[form.action] : noneToChoose);
    const signer = desk.signer.value;
    hint.hidden = signer.state === "ready";
    drawHint(hint, signer, openKey, () => void desk.onSignedIn());
    const { phase } = market.info.value;
    form.submit.setAttribute("aria-busy", String(sending));
    form.submit.disabled = signer.state !== "ready" || venue.connection.value.state !== "live" || phase === "closed" || !hasPool;
    const words: Record<PoolAction, (pair: string) => string> = {
      create: said.submitCreate, deposit: said.submitDeposit, withdraw: said.submitWithdraw,
    };
    setText(form.submit, sending ? t.offer.signing : phase === "closed" ? t.offer.closed : words[form.action](names.join(" / ")));
  });

  const send = async (market: BatchMarket): Promise<void> => {
    const checked = check(market, sidesOf(namesNow(market)));
    attempted = checked.operation === null;
    answered = null;
    if (checked.operation === null) {
      draw();
      const first = focusFault(shownFields(form), checked.faults);
      return form.answer.say("bad", t.offer.notSent, first ? (checked.faults[first] ?? "") : t.offer.fillBoth);
    }
    sending = true;
    draw();
    try {
      const sent = await desk.pools.send(checked);
      if (sent) {
        answered = sent.sequence;
        form.answer.say("good", t.offer.collectedFor(group(sent.block)), said.collectedText(group(sent.sequence)));
        start();
      }
    } catch (error) {
      const { title, text } = describeError(error as Error);
      form.answer.say("bad", title, text);
    } finally {
      sending = false;
      draw();
    }
  };

  form.element.addEventListener("submit", (event) => {
    event.preventDefault();
    const market = desk.market.value;
    if (market && !sending && !form.submit.disabled) void send(market);
  });
  form.element.addEventListener("input", (event) => {
    const pool = poolOf();
    if (form.action === "deposit" && pool) suggestPartner(form, pool, sidesOf([pool.first, pool.second]), event.target);
    draw();
  });
  desk.pools.ended.watch((ended) => {
    if (ended === null || ended.sequence !== answered) return;
    answered = null;
    if (ended.why === null) form.answer.say("good", said.done(group(ended.block)), said.doneText(group(ended.sequence)));
    else form.answer.say("bad", ended.why.title, ended.why.text);
  });
  const shown: { watch(watcher: () => void): unknown }[] = [
    desk.pools.list, desk.pools.shares, desk.signer, desk.offers.changed, venue.account.balances, venue.connection, poolsShown,
  ];
  for (const signal of shown) signal.watch(draw);
  desk.market.watch((market) => {
    pair = null;
    market?.info.watch(draw);
    market?.pair.watch(draw);
    draw();
  });
  draw();

  return (action, pool) => {
    form.action = action;
    chosen = poolKey(pool);
    fillPools(form.pool, [pool], chosen);
    start();
    requestAnimationFrame(() => form.fields[action === "deposit" ? "firstAmount" : "shares"].input.focus());
  };
}

/** The fields of the chosen action: faults of the others do not matter. */
function shownFields(form: PoolForm): Record<FieldName, Field> {
  return Object.fromEntries(fieldsOf(form.action, form.rule).map((name) => [name, form.fields[name]])) as Record<FieldName, Field>;
}

/** Typing one amount fills in the other by the ratio of the reserves. */
function suggestPartner(form: PoolForm, pool: Pool, sides: Sides, written: EventTarget | null): void {
  const { firstAmount, secondAmount } = form.fields;
  const at = written === firstAmount.input ? 0 : written === secondAmount.input ? 1 : null;
  if (at === null) return;
  const [from, to] = at === 0 ? [firstAmount, secondAmount] : [secondAmount, firstAmount];
  try {
    const units = partnerOf(pool, sides, at, parseUnits(ungroup(from.input.value), sides[at].decimals));
    if (units !== null) to.input.value = typed(trimZeros(formatUnits(units, sides[at === 0 ? 1 : 0].decimals)));
  } catch {
    // Its field shows the fault.
  }
}

function fillPools(select: HTMLSelectElement, pools: Pool[], chosen: string): void {
  const name = (pool: Pool): string => said.poolOption(pairName(pool), showPercent(pool.fee_ppm), `${pool.account_id}:${pool.sequence}`);
  const keys = pools.map(poolKey);
  if ([...select.options].map(({ value }) => value).join(" ") !== keys.join(" ")) {
    select.replaceChildren(...pools.map((pool) => h("option", { value: poolKey(pool) }, name(pool))));
  }
  const wanted = keys.includes(chosen) ? chosen : (keys[0] ?? "");
  if (select.value !== wanted) select.value = wanted;
}

function sumOf(
  action: PoolAction, { moves }: CheckedPool, sides: Sides, pool: Pool | undefined, own: string | undefined,
  fee: { amount: string; asset: string } | null,
): [string, string][] {
  const amount = (at: 0 | 1): string => {
    const side = sides[at];
    return moves === null ? "–" : `${group(trimZeros(formatUnits(moves.amounts[at], side.decimals), 2))} ${side.asset}`;
  };
  const have = ({ asset, decimals, spendable }: Side): string =>
    spendable === null ? "–" : `${group(trimZeros(formatUnits(spendable.free, decimals), 2))} ${asset}`;
  const shares = moves === null ? "–" : said.sharesOf(group(String(moves.shares)));
  if (action === "withdraw") return [[said.brings, amount(0)], ["", amount(1)]];
  const lines: [string, string][] = [[t.offer.have, have(sides[0])], ["", have(sides[1])]];
  if (action === "create") {
    const opening: [string, string][] = fee === null ? [] : [[said.opening, `${group(trimZeros(fee.amount))} ${fee.asset}`]];
    return [...lines, [said.gives, shares], ...opening];
  }
  const after = moves === null || !pool ? "–" : partText(BigInt(own ?? "0") + moves.shares, BigInt(pool.shares) + moves.shares);
  return [...lines, [said.takesAtMost, amount(0)], ["", amount(1)], [said.gives, shares], [said.yourPart, after]];
}
