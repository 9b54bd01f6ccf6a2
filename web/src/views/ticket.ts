// The order ticket: says what an order will do before it is sent, and what the venue answered after.

import { formatUnits, parseUnits, pathSymbol, Refused, type Side } from "walras";
import { client } from "../api/client.ts";
import { trimZeros } from "../base/decimal.ts";
import { byId, h, setText } from "../base/dom.ts";
import { group, showUnits, typed, ungroup } from "../base/format.ts";
import { confirmations, sizeUnit } from "../base/settings.ts";
import { oncePerFrame } from "../base/signal.ts";
import { orderKey } from "../state/account.ts";
import { freshClientOrderId } from "../state/client-order-id.ts";
import type { Market } from "../state/market.ts";
import { exitsText, takesExits } from "../state/bracket.ts";
import { describeError, describeReply } from "../state/outcome.ts";
import {
  type Checked,
  checkTicket,
  hasPrice,
  hasTrigger,
  largestSize,
  sizeOfValue,
  stepped,
  type TicketFields,
  timesInForce,
  trails,
} from "../state/ticket.ts";
import type { Venue } from "../state/venue.ts";
import { errorText } from "../texts/error-text.ts";
import { t } from "../texts/index.ts";
import { kindName } from "../texts/names.ts";
import { focusFault, onArrows, showFaults, showSum } from "./form.ts";
import { TicketForm } from "./ticket-form.ts";

const PRICES = new Set<string>(["price", "trigger", "trail", "takeProfit", "stopLoss", "stopLimit"]);

/** What an order's answer says of one that goes on to stand. */
const STANDING = new Set(["resting", "partially_filled", "waiting_trigger"]);

export interface TicketControls {
  setPrice(price: bigint, focusSize: boolean): void;
  setSide(side: Side): void;
  focus(field: "price" | "size" | "side"): void;
}

export function ticketView(venue: Venue, openKey: () => void): TicketControls {
  const form = new TicketForm((percent) => {
    const market = venue.market.value;
    if (!market) return;
    const lots = (mostAffordable(venue, market, form) * percent) / 100n / market.units.lot;
    size.input.value = sizeText(market, form, lots * market.units.lot);
    draw();
  }, () => {
    const market = venue.market.value;
    if (!market) return;
    const before = check(market).size;
    sizeUnit.value = sizeUnit.value === "base" ? "quote" : "base";
    size.input.value = before === null ? "" : sizeText(market, form, before);
    size.input.focus();
    draw();
  });
  const { price, trigger, trail, size, minutes, peak, minSize, takeProfit, stopLoss, stopLimit } = form.fields;
  const keyHint = h("p.empty", {}, t.ticket.needsKey,
    h("button", { type: "button", onclick: openKey }, t.ticket.useKey));
  byId("ticket-body").append(keyHint, form.element);
  let attempted = false;
  let sending = false;
  /** The order, far from the market, that the next press sends; another one is asked about again. */
  let confirmed: string | null = null;
  /** The order that the answer is about, once it was seen to stand: when it stands no more, the answer is out of date. */
  let answered: { key: string; wasSeen: boolean } | null = null;

  const check = (market: Market): Checked => {
    const { fields, fault } = typedInBase(market, form);
    const checked = checkTicket(fields, market.units, orderClockNs(venue), lastPriceOf(market));
    return fault === null ? checked : { ...checked, order: null, faults: { ...checked.faults, size: fault } };
  };

  const draw = oncePerFrame(() => {
    const market = venue.market.value;
    if (!market) return;
    const { kind, side } = form;
    const { instrument } = market.units;
    const signedIn = venue.account.state.value !== "no_key";
    keyHint.hidden = signedIn;
    price.row.hidden = !hasPrice(kind);
    trigger.row.hidden = !hasTrigger(kind);
    trail.row.hidden = !trails(kind);
    const allowed = timesInForce(kind);
    for (const option of form.timeInForce.options) {
      const takes = allowed.some((name) => name === option.value);
      option.disabled = !takes;
      option.hidden = !takes;
    }
    if (!allowed.some((name) => name === form.timeInForce.value)) form.timeInForce.value = allowed[0] ?? "gtc";
    const { timeInForce, display } = form.typed();
    const rests = hasPrice(kind) && timeInForce !== "ioc" && timeInForce !== "fok";
    minutes.row.hidden = timeInForce !== "gtt";
    form.postOnly.disabled = kind !== "limit" || !rests;
    form.display.disabled = !rests;
    peak.row.hidden = !rests || display !== "iceberg";
    offerPartners(venue, market, form);

    form.exits.hidden = !takesExits(kind);
    for (const { unit } of [price, trigger, trail, takeProfit, stopLoss, stopLimit]) setText(unit, instrument.quote);
    for (const { unit } of [peak, minSize]) setText(unit, instrument.base);
    const { base, quote } = instrument;
    const [now, other] = sizeUnit.value === "quote" ? [quote, base] : [base, quote];
    setText(form.unitButton, now);
    form.unitButton.setAttribute("aria-label", t.ticket.sizeIn(now, other));
    form.unitButton.title = t.ticket.turnUnit(other);
    setText(minutes.unit, t.ticket.minutes);

    const checked = check(market);
    setText(form.exitsHead, form.exits.hasAttribute("open") ? t.ticket.exits.title : exitsHead(checked));
    showFaults(form.fields, checked.faults, attempted, checked.warnings);
    drawSum(venue, market, form, checked);
    form.submit.className = `submit ${side}`;
    // Not `disabled` while sending: that would drop the keyboard's focus.
    form.submit.setAttribute("aria-busy", String(sending));
    form.submit.disabled = venue.account.state.value !== "signed_in" || venue.connection.value.state !== "live";
    setText(form.submit, sending ? t.ticket.sending : submitWords(market, form, checked));
  });

  const send = async (market: Market): Promise<void> => {
    const { order, faults, warnings } = check(market);
    attempted = order === null;
    if (!order) {
      draw();
      const first = focusFault(form.fields, faults);
      const count = Object.keys(faults).length;
      answered = null;
      return form.answer.say(
        "bad",
        t.ticket.notSent,
        count === 1 && first ? `${t.ticket.fields[first]}: ${faults[first]}` : t.ticket.faults(count),
      );
    }
    const exits = exitsText(order);
    const placed = [submitWords(market, form, check(market)), exits].filter((part) => part !== null).join(t.ticket.exits.comma);
    const asked = JSON.stringify([market.symbol, order]);
    answered = null;
    const asks = confirmations.value === "all" || (confirmations.value === "far" && warnings.price !== undefined);
    if (asks && confirmed !== asked) {
      confirmed = asked;
      const what = [warnings.price, exits === null && warnings.price ? undefined : `${placed}.`].filter(Boolean).join(" ");
      return form.answer.say("bad", t.ticket.notSentYet, t.ticket.pressAgain(what));
    }
    confirmed = null;
    sending = true;
    draw();
    try {
      const name = freshClientOrderId();
      const reply = await venue.enter(market.symbol, { instrument: pathSymbol(market.symbol), client_order_id: name, ...order });
      const answer = describeReply(market.units, order.side, order.size, reply);
      const standing = exits === null || reply.status === "cancelled" && reply.fills.length === 0 ? "" : ` ${t.ticket.exits.placed(exits)}`;
      form.answer.say(answer.tone, answer.title, `${answer.text}${standing}`);
      if (STANDING.has(reply.status) && order.oco_with !== undefined) venue.account.link(market.symbol, [name, order.oco_with]);
      if (STANDING.has(reply.status)) answered = { key: orderKey({ instrument: market.symbol, client_order_id: name }), wasSeen: false };
      followUp();
    } catch (error) {
      const { title, text } = describeError(error as Error);
      if (error instanceof Refused) {
        venue.account.history.onRefused({ instrument: market.symbol, ...order }, error.code, error.reason, client.venueTimeNs());
      }
      form.answer.say("bad", title, text);
    } finally {
      sending = false;
      draw();
    }
  };

  form.element.addEventListener("submit", (event) => {
    event.preventDefault();
    const market = venue.market.value;
    if (market && !sending && !form.submit.disabled) void send(market);
  });
  form.element.addEventListener("input", () => draw());
  form.element.addEventListener("change", () => draw());
  form.exits.addEventListener("toggle", () => draw());
  for (const [name, { input }] of Object.entries(form.fields)) {
    onArrows(input, (by) => {
      const market = venue.market.value;
      if (!market) return;
      const isPrice = PRICES.has(name);
      const { units } = market;
      const wholeQuote: [number, bigint] = [units.quoteDecimals, 10n ** BigInt(units.quoteDecimals)];
      const [decimals, step] = name === "minutes" ? [0, 1n]
        : name === "size" && sizeUnit.value === "quote" ? wholeQuote
        : isPrice ? [units.priceDecimals, units.tick]
        : [units.sizeDecimals, units.lot];
      input.value = stepped(input.value, decimals, step, by);
      draw();
    });
  }

  const followUp = (): void => {
    if (answered === null) return;
    if (venue.account.orders.value.has(answered.key)) {
      answered.wasSeen = true;
    } else if (answered.wasSeen) {
      form.answer.clear();
      answered = null;
    }
  };
  venue.account.orders.watch(followUp);
  venue.account.orders.watch(draw);
  venue.account.state.watch(draw);
  venue.account.balances.watch(draw);
  venue.connection.watch(draw);
  venue.market.watch((market) => {
    if (!market) return;
    for (const { input } of [price, trigger, trail, size, takeProfit, stopLoss, stopLimit]) input.value = "";
    attempted = false;
    market.bookChanged.watch(() => {
      // The first book offers a starting price; from then on the price is the user's.
      if (price.input.value === "" && document.activeElement !== price.input && !price.input.dataset["touched"]) {
        const level = form.side === "buy" ? market.book.bestBid() : market.book.bestAsk();
        if (level) price.input.value = typed(formatUnits(level.price, market.units.priceDecimals));
        price.input.dataset["touched"] = "yes";
      }
      if (!hasPrice(form.kind)) draw();
    });
    market.trades.watch(() => {
      if (hasTrigger(form.kind)) draw();
    });
    delete price.input.dataset["touched"];
    draw();
  });
  draw();

  return {
    setPrice(units, focusSize) {
      const market = venue.market.value;
      if (!market) return;
      const text = typed(formatUnits(units, market.units.priceDecimals));
      if (form.kind === "market") form.kind = "limit";
      (hasPrice(form.kind) ? price : trigger).input.value = text;
      draw();
      if (focusSize) size.input.focus();
    },
    setSide(side) {
      form.side = side;
      draw();
      size.input.focus();
      size.input.select();
    },
    focus(field) {
      if (field === "side") return form.focusSide();
      const { input } = field === "size" ? size : hasPrice(form.kind) ? price : trails(form.kind) ? trail : trigger;
      input.focus();
      input.select();
    },
  };
}

/** The clock that orders expire by is the log's, which in a replayed day is not this computer's. */
function orderClockNs(venue: Venue): bigint {
  const logTime = venue.status.value?.time_ns;
  return logTime === undefined ? client.venueTimeNs() : BigInt(logTime);
}

/** The open orders with which an order of this side may be linked: those that have no partner. */
function offerPartners(venue: Venue, market: Market, form: TicketForm): void {
  const { oco } = form;
  const may = [...venue.account.orders.value.values()].filter((order) =>
    pathSymbol(order.instrument) === pathSymbol(market.symbol) && order.side === form.side && order.linked_order_id == null);
  const options: [string, string][] = may.map((order) => {
    const at = order.price ?? order.trigger;
    const name = `${kindName(order.type)} ${group(trimZeros(order.open))}`;
    return [order.client_order_id, at === null ? name : t.ticket.ocoAt(name, group(at))];
  });
  const wanted = JSON.stringify(options);
  if (oco.dataset["options"] !== wanted) {
    const before = oco.value;
    oco.replaceChildren(...[["", t.ticket.ocoNone], ...options].map(([value, text]) => h("option", { value }, text)));
    oco.value = options.some(([value]) => value === before) ? before : "";
    oco.dataset["options"] = wanted;
  }
  oco.disabled = form.kind === "market" || options.length === 0;
}

function lastPriceOf(market: Market): bigint | null {
  const price = market.lastPrice();
  return price === null ? null : parseUnits(price, market.units.priceDecimals);
}

function drawSum(venue: Venue, market: Market, form: TicketForm, checked: Checked): void {
  const { instrument, quoteDecimals } = market.units;
  const spends = form.side === "buy" ? instrument.quote : instrument.base;
  const available = venue.account.balances.value.get(spends)?.available;
  const lines: [string, string][] = [];
  if (sizeUnit.value === "quote") {
    const size = checked.size === null ? null : group(trimZeros(formatUnits(checked.size, market.units.sizeDecimals)));
    lines.push([t.ticket.comesTo, size === null ? "–" : `${size} ${instrument.base}`]);
  }
  if (checked.value !== null) {
    lines.push([form.side === "buy" ? t.ticket.costs : t.ticket.brings, `${showUnits(checked.value, quoteDecimals)} ${instrument.quote}`]);
    lines.push([t.ticket.fee, `${showUnits(market.units.feeReserve(checked.value), quoteDecimals)} ${instrument.quote}`]);
  } else if (form.kind === "market" && checked.size !== null) {
    lines.push([t.ticket.tradesAt, t.ticket.tradesAtBest]);
  } else {
    lines.push([form.side === "buy" ? t.ticket.costs : t.ticket.brings, "–"], [t.ticket.fee, "–"]);
  }
  lines.push([t.ticket.have, available === undefined ? "–" : `${group(trimZeros(available, 2))} ${spends}`]);
  showSum(form.sum, lines);
}

/** The price that a size in the quote asset is reckoned at: the limit, the trigger, or the best price on the other side. */
function reckonedAt(market: Market, form: TicketForm): bigint | null {
  const best = (form.side === "buy" ? market.book.bestAsk() : market.book.bestBid())?.price ?? lastPriceOf(market);
  const typed = hasPrice(form.kind) ? form.fields.price : hasTrigger(form.kind) ? form.fields.trigger : null;
  if (typed === null) return best;
  try {
    return parseUnits(ungroup(typed.input.value), market.units.priceDecimals);
  } catch {
    return null;
  }
}

/** What was typed, its size in the base asset; or what is wrong with a size in the quote asset. */
function typedInBase(market: Market, form: TicketForm): { fields: TicketFields; fault: string | null } {
  const fields = form.typed();
  if (sizeUnit.value === "base" || fields.size.trim() === "") return { fields, fault: null };
  try {
    // A plain decimal becomes what is typed.
    return { fields: { ...fields, size: typed(sizeOfValue(fields.size, market.units, reckonedAt(market, form))) }, fault: null };
  } catch (error) {
    return { fields: { ...fields, size: "" }, fault: errorText(error) };
  }
}

/** A size as the field takes it: in the base asset, or its value in the quote asset. */
function sizeText(market: Market, form: TicketForm, size: bigint): string {
  const { units } = market;
  const price = reckonedAt(market, form);
  if (size <= 0n) return "0";
  if (sizeUnit.value === "base") return typed(trimZeros(formatUnits(size, units.sizeDecimals)));
  return price === null ? "" : typed(formatUnits(units.value(price, size), units.quoteDecimals));
}

function mostAffordable(venue: Venue, market: Market, form: TicketForm): bigint {
  const { units } = market;
  const asset = form.side === "buy" ? units.instrument.quote : units.instrument.base;
  const balance = venue.account.balances.value.get(asset);
  if (!balance) return 0n;
  const decimals = venue.decimals(asset);
  const opposite = market.book.bestAsk()?.price ?? null;
  const price = hasPrice(form.kind) ? checkTicket(form.typed(), units, 0n).price : opposite;
  return largestSize(form.side, parseUnits(balance.available, decimals), decimals, price, units);
}

/** What the order's exits are, while they may be folded. */
function exitsHead({ order }: Checked): string {
  const exits = order === null ? null : exitsText(order);
  return exits === null ? t.ticket.exits.title : t.ticket.exits.titled(exits);
}

function submitWords(market: Market, form: TicketForm, checked: Checked): string {
  const verb = form.side === "buy" ? t.ticket.buy : t.ticket.sell;
  const { instrument, priceDecimals, sizeDecimals } = market.units;
  if (checked.size === null) return verb(instrument.base);
  const size = group(trimZeros(formatUnits(checked.size, sizeDecimals)));
  const order = verb(`${size} ${instrument.base}`);
  const placed =
    checked.price !== null
      ? t.ticket.atPrice(order, showUnits(checked.price, priceDecimals))
      : form.kind === "limit"
        ? order
        : t.ticket.atMarket(order);
  const distance = ungroup(form.fields.trail.input.value);
  if (trails(form.kind)) return distance === "" ? placed : t.ticket.trailing(placed, group(distance));
  const trigger = ungroup(form.fields.trigger.input.value);
  return hasTrigger(form.kind) && trigger !== "" ? t.ticket.onceTraded(placed, group(trigger)) : placed;
}
