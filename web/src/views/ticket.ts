// The order ticket: says what an order will do before it is sent, and what the venue answered after.

import { venueTimeNs } from "../api/rest.ts";
import type { OrderReply, Side } from "../api/types.ts";
import { formatUnits, parseUnits, trimZeros } from "../base/decimal.ts";
import { byId, h, setText } from "../base/dom.ts";
import { group, showUnits } from "../base/format.ts";
import { oncePerFrame } from "../base/signal.ts";
import { freshClientOrderId } from "../state/client-order-id.ts";
import type { Market } from "../state/market.ts";
import { describeError, describeReply } from "../state/outcome.ts";
import { type Checked, checkTicket, type FieldName, hasPrice, hasTrigger, largestSize, stepped, timesInForce } from "../state/ticket.ts";
import { slug, type Venue } from "../state/venue.ts";
import { TicketForm } from "./ticket-form.ts";

export interface TicketControls {
  setPrice(price: bigint, focusSize: boolean): void;
  setSide(side: Side): void;
  focus(field: "price" | "size" | "side"): void;
}

export function ticketView(venue: Venue, openKey: () => void): TicketControls {
  const form = new TicketForm();
  const keyHint = h("p.empty", {}, "To trade, this page needs an API key of the venue; watching needs none. The demo prints an address that carries one.",
    h("button", { type: "button", onclick: openKey }, "Use a key"));
  byId("ticket-body").append(keyHint, form.element);
  let attempted = false;
  let sending = false;

  const check = (market: Market): Checked => checkTicket(form.fields(), market.units, orderClockNs(venue));

  const draw = oncePerFrame(() => {
    const market = venue.market.value;
    if (!market) return;
    const { kind, side } = form;
    const { instrument } = market.units;
    const signedIn = venue.account.state.value !== "no_key";
    keyHint.hidden = signedIn;
    form.price.row.hidden = !hasPrice(kind);
    form.trigger.row.hidden = !hasTrigger(kind);
    const allowed = timesInForce(kind);
    for (const option of form.timeInForce.options) {
      const takes = allowed.some((name) => name === option.value);
      option.disabled = !takes;
      option.hidden = !takes;
    }
    if (!allowed.some((name) => name === form.timeInForce.value)) form.timeInForce.value = allowed[0] ?? "gtc";
    const { timeInForce, display } = form.fields();
    const rests = hasPrice(kind) && timeInForce !== "ioc" && timeInForce !== "fok";
    form.minutes.row.hidden = timeInForce !== "gtt";
    form.postOnly.disabled = kind !== "limit" || !rests;
    form.display.disabled = !rests;
    form.peak.row.hidden = !rests || display !== "iceberg";

    for (const name of ["price", "trigger"] as const) setText(form[name].unit, instrument.quote);
    for (const name of ["size", "peak", "minSize"] as const) setText(form[name].unit, instrument.base);
    setText(form.minutes.unit, "min");

    const checked = check(market);
    for (const name of Object.keys(form.all()) as FieldName[]) {
      const fault = checked.faults[name] ?? "";
      const typed = form.all()[name].input.value.trim() !== "";
      form.showFault(name, attempted || (typed && fault !== "") ? fault : "");
    }
    drawSum(venue, market, form, checked);
    form.submit.className = `submit ${side}`;
    // Not `disabled` while sending: that would drop the keyboard's focus.
    form.submit.setAttribute("aria-busy", String(sending));
    form.submit.disabled = venue.account.state.value !== "signed_in" || venue.connection.value.state !== "live";
    setText(form.submit, sending ? "Sending" : submitWords(market, form, checked));
  });

  const send = async (market: Market): Promise<void> => {
    const { order, faults } = check(market);
    attempted = order === null;
    if (!order) {
      draw();
      const first = (Object.keys(form.all()) as FieldName[]).find((name) => faults[name] !== undefined);
      if (first) form.all()[first].input.focus();
      const count = Object.keys(faults).length;
      return form.say("bad", "Not sent", count === 1 && first ? `${capitalField(first)}: ${faults[first]}` : `${count} fields need a look.`);
    }
    sending = true;
    draw();
    try {
      const reply = await venue.socket.request("order", { instrument: slug(market.symbol), client_order_id: freshClientOrderId(), ...order });
      const answer = describeReply(market.units, order.side, order.size, reply as unknown as OrderReply);
      form.say(answer.tone, answer.title, answer.text);
    } catch (error) {
      const { title, text } = describeError(error as Error);
      form.say("bad", title, text);
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
  for (const [name, field] of Object.entries(form.all())) {
    field.input.addEventListener("keydown", (event) => {
      const market = venue.market.value;
      if (!market || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
      event.preventDefault();
      const isPrice = name === "price" || name === "trigger";
      const { units } = market;
      const [decimals, step] = name === "minutes" ? [0, 1n] : isPrice ? [units.priceDecimals, units.tick] : [units.sizeDecimals, units.lot];
      const by = (event.key === "ArrowUp" ? 1n : -1n) * (event.shiftKey ? 10n : 1n);
      field.input.value = stepped(field.input.value, decimals, step, by);
      draw();
    });
  }
  for (const percent of [25n, 50n, 75n, 100n]) {
    const button = h("button", { type: "button", "aria-label": `${percent} percent of what is available`, onclick: () => {
      const market = venue.market.value;
      if (!market) return;
      const most = mostAffordable(venue, market, form);
      const lots = (most * percent) / 100n / market.units.lot;
      form.size.input.value = lots > 0n ? trimZeros(formatUnits(lots * market.units.lot, market.units.sizeDecimals)) : "0";
      draw();
    } }, `${percent} %`);
    form.shares.append(button);
  }

  venue.account.state.watch(draw);
  venue.account.balances.watch(draw);
  venue.connection.watch(draw);
  venue.market.watch((market) => {
    if (!market) return;
    form.price.input.value = "";
    form.trigger.input.value = "";
    form.size.input.value = "";
    attempted = false;
    market.bookChanged.watch(() => {
      // The first book offers a starting price; from then on the price is the user's.
      if (form.price.input.value === "" && document.activeElement !== form.price.input && !form.price.input.dataset["touched"]) {
        const level = form.side === "buy" ? market.book.bestBid() : market.book.bestAsk();
        if (level) form.price.input.value = formatUnits(level.price, market.units.priceDecimals);
        form.price.input.dataset["touched"] = "yes";
      }
      if (!hasPrice(form.kind)) draw();
    });
    delete form.price.input.dataset["touched"];
    draw();
  });
  draw();

  return {
    setPrice(price, focusSize) {
      const market = venue.market.value;
      if (!market) return;
      const text = formatUnits(price, market.units.priceDecimals);
      if (form.kind === "market") form.kind = "limit";
      if (form.kind === "stop") form.trigger.input.value = text;
      else form.price.input.value = text;
      draw();
      if (focusSize) form.size.input.focus();
    },
    setSide(side) {
      form.side = side;
      draw();
      form.size.input.focus();
      form.size.input.select();
    },
    focus(field) {
      if (field === "side") return form.focusSide();
      const input = field === "price" ? (hasPrice(form.kind) ? form.price : form.trigger).input : form.size.input;
      input.focus();
      input.select();
    },
  };
}

/** The clock that orders expire by is the log's, which in a replayed day is not this computer's. */
function orderClockNs(venue: Venue): bigint {
  const logTime = venue.status.value?.time_ns;
  return logTime === undefined ? venueTimeNs() : BigInt(logTime);
}

function drawSum(venue: Venue, market: Market, form: TicketForm, checked: Checked): void {
  const { instrument, quoteDecimals } = market.units;
  const spends = form.side === "buy" ? instrument.quote : instrument.base;
  const available = venue.account.balances.value.get(spends)?.available;
  const lines: [string, string][] = [];
  if (checked.value !== null) {
    lines.push([form.side === "buy" ? "Costs at most" : "Brings at least", `${showUnits(checked.value, quoteDecimals)} ${instrument.quote}`]);
    lines.push(["Fee at most", `${showUnits(market.units.feeReserve(checked.value), quoteDecimals)} ${instrument.quote}`]);
  } else if (form.kind === "market" && checked.size !== null) {
    lines.push(["Trades at", "the best prices there are, within the collar"]);
  } else {
    lines.push([form.side === "buy" ? "Costs at most" : "Brings at least", "–"], ["Fee at most", "–"]);
  }
  lines.push(["You have", available === undefined ? "–" : `${group(trimZeros(available, 2))} ${spends}`]);
  form.sum.replaceChildren(...lines.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function mostAffordable(venue: Venue, market: Market, form: TicketForm): bigint {
  const { units } = market;
  const asset = form.side === "buy" ? units.instrument.quote : units.instrument.base;
  const balance = venue.account.balances.value.get(asset);
  if (!balance) return 0n;
  const decimals = venue.decimals(asset);
  const opposite = market.book.bestAsk()?.price ?? null;
  const price = hasPrice(form.kind) ? checkTicket(form.fields(), units, 0n).price : opposite;
  return largestSize(form.side, parseUnits(balance.available, decimals), decimals, price, units);
}

function submitWords(market: Market, form: TicketForm, checked: Checked): string {
  const verb = form.side === "buy" ? "Buy" : "Sell";
  const { instrument, priceDecimals, sizeDecimals } = market.units;
  if (checked.size === null) return `${verb} ${instrument.base}`;
  const size = group(trimZeros(formatUnits(checked.size, sizeDecimals)));
  const at = checked.price === null ? (form.kind === "limit" ? "" : " at market") : ` at ${showUnits(checked.price, priceDecimals)}`;
  const once = hasTrigger(form.kind) && form.trigger.input.value.trim() !== "" ? `, once ${group(form.trigger.input.value.trim())} trades` : "";
  return `${verb} ${size} ${instrument.base}${at}${once}`;
}

function capitalField(name: FieldName): string {
  return name === "minSize" ? "At least" : name.charAt(0).toUpperCase() + name.slice(1);
}
