// One's own orders as lines on the chart, which can be dragged to another price or trigger, and one's fills as marks.

import {
  createSeriesMarkers, type IChartApi, type IPriceLine, type ISeriesApi, LineStyle, type SeriesMarker, type UTCTimestamp,
} from "lightweight-charts";
import { formatUnits, type Order, parseUnits, pathSymbol } from "walras";
import { trimZeros } from "../base/decimal.ts";
import { h, setText } from "../base/dom.ts";
import { group } from "../base/format.ts";
import { confirmations } from "../base/settings.ts";
import { atMostEvery } from "../base/signal.ts";
import { orderKey } from "../state/account.ts";
import type { Market } from "../state/market.ts";
import { changeOf, labelled, linesOf, type OrderLine } from "../state/order-line.ts";
import { describeError } from "../state/outcome.ts";
import { isFar } from "../state/ticket.ts";
import type { Venue } from "../state/venue.ts";
import { t } from "../texts/index.ts";
import { sideText } from "../texts/names.ts";
import { studies } from "./chart-studies.ts";
import { palette } from "./theme.ts";

const NEAR_PX = 6;
const MARKS_MAX = 200;
const DRAW_EVERY_MS = 200;

/** How the chart is scrolled while no order is dragged. All are named: what is left out keeps the value that it had during the drag. */
export const SCROLL = { horzTouchDrag: true, vertTouchDrag: false, mouseWheel: true, pressedMouseMove: true };

/** Of the candles that are shown, in seconds. */
interface Times {
  interval: number;
  known: ReadonlySet<number>;
}

interface OwnLine {
  drawn: IPriceLine;
  order: Order;
  line: OrderLine;
  /** Where it is drawn: also while it is dragged. */
  price: number;
}

export function drawOwn(
  venue: Venue,
  host: HTMLElement,
  chart: IChartApi,
  series: ISeriesApi<"Candlestick">,
  times: () => Times,
): () => void {
  const lines = new Map<string, OwnLine>();
  const marks = createSeriesMarkers<UTCTimestamp>(series as never, []);
  let dragged: { own: OwnLine; units: bigint } | null = null;
  const ask = moveDialog();

  const drawNow = (): void => {
    const market = venue.market.value;
    const shown = new Map<string, [order: Order, line: OrderLine]>();
    if (market && studies.value.own) {
      for (const order of venue.account.orders.value.values()) {
        if (pathSymbol(order.instrument) !== pathSymbol(market.symbol)) continue;
        for (const line of linesOf(order)) shown.set(`${orderKey(order)} ${line.field}`, [order, line]);
      }
    }
    for (const [key, own] of lines) {
      if (shown.has(key)) continue;
      if (dragged?.own === own) release();
      series.removePriceLine(own.drawn);
      lines.delete(key);
    }
    for (const [key, [order, line]] of shown) drawLine(key, order, line);
    marks.setMarkers(market && studies.value.own ? marksOf(venue, market, times()) : []);
    host.dataset["ownLines"] = String(lines.size);
    host.dataset["ownMarks"] = String(marks.markers().length);
  };
  const drawLine = (key: string, order: Order, line: OrderLine): void => {
    const price = Number(line.at);
    const colours = palette.value;
    const isBuy = order.side === "buy";
    const options = {
      price, color: isBuy ? colours.bid : colours.ask, lineWidth: 1 as const,
      lineStyle: line.field === "trigger" ? LineStyle.Dotted : LineStyle.Dashed,
      axisLabelVisible: true, axisLabelColor: colours.own, axisLabelTextColor: colours.onOwn,
      title: labelled(`${isBuy ? "▲" : "▼"} ${group(trimZeros(order.open))}`, line.field, order),
    };
    const known = lines.get(key);
    if (!known) {
      lines.set(key, { drawn: series.createPriceLine(options), order, line, price });
      return;
    }
    [known.order, known.line] = [order, line];
    if (dragged?.own === known) return;
    known.drawn.applyOptions(options);
    known.price = price;
  };
  const draw = atMostEvery(DRAW_EVERY_MS, drawNow);

  /** Of two lines at one price the first: the trigger before its order's limit. */
  const near = (event: PointerEvent): OwnLine | null => {
    const box = host.getBoundingClientRect();
    const y = event.clientY - box.top;
    let found: OwnLine | null = null;
    let nearest = NEAR_PX + 1;
    for (const own of lines.values()) {
      const at = own.line.isMovable ? series.priceToCoordinate(own.price) : null;
      if (at === null || Math.abs(at - y) >= nearest) continue;
      [found, nearest] = [own, Math.abs(at - y)];
    }
    return found;
  };
  const priceAt = (event: PointerEvent, market: Market): bigint | null => {
    const price = series.coordinateToPrice(event.clientY - host.getBoundingClientRect().top);
    if (price === null) return null;
    const { tick, priceDecimals } = market.units;
    // To the nearest tick: where the pointer is is a gesture, what is sent is the text of a whole number of ticks.
    const ticks = BigInt(Math.max(1, Math.round(price / Number(formatUnits(tick, priceDecimals)))));
    return ticks * tick;
  };
  host.addEventListener("pointerdown", (event) => {
    const market = venue.market.value;
    const own = event.button === 0 ? near(event) : null;
    if (!own || !market) return;
    dragged = { own, units: parseUnits(own.line.at, market.units.priceDecimals) };
    chart.applyOptions({ handleScroll: false, handleScale: false });
    host.setPointerCapture(event.pointerId);
    event.preventDefault();
    event.stopPropagation();
  }, true);
  host.addEventListener("pointermove", (event) => {
    const market = venue.market.value;
    if (!dragged || !market) {
      host.classList.toggle("grabbable", near(event) !== null);
      return;
    }
    const units = priceAt(event, market);
    if (units === null) return;
    dragged.units = units;
    const text = formatUnits(units, market.units.priceDecimals);
    const { drawn, order, line } = dragged.own;
    dragged.own.price = Number(text);
    drawn.applyOptions({ price: Number(text), title: labelled(t.chart.dragged(group(text)), line.field, order) });
  }, true);
  const release = (): void => {
    dragged = null;
    chart.applyOptions({ handleScroll: { ...SCROLL }, handleScale: true });
  };
  const drop = (isKept: boolean): void => {
    const market = venue.market.value;
    if (!dragged) return;
    const { own, units } = dragged;
    release();
    if (isKept && market) void move(market, own, formatUnits(units, market.units.priceDecimals));
    drawNow();
  };
  host.addEventListener("pointerup", () => drop(true), true);
  host.addEventListener("pointercancel", () => drop(false), true);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") drop(false);
  });

  const move = async (market: Market, { order, line }: OwnLine, price: string): Promise<void> => {
    const units = parseUnits(price, market.units.priceDecimals);
    if (parseUnits(line.at, market.units.priceDecimals) === units) return;
    const bare = `${sideText(order.side)} ${group(trimZeros(order.open))} ${market.units.instrument.base}`;
    const name = labelled(bare, line.field, order);
    const last = market.lastPrice();
    // A trigger that the last trade touches is refused by the venue; one far from it only waits.
    const far = line.field === "price" && last !== null && isFar(order.side, units, parseUnits(last, market.units.priceDecimals));
    const asks = confirmations.value === "all" || (confirmations.value === "far" && far);
    if (asks && !(await ask(t.chart.sure(name, group(price))))) return drawNow();
    try {
      await venue.stream.amend(order.instrument, order.client_order_id, changeOf(line, price));
      venue.say({ tone: "good", title: t.chart.moved, text: t.chart.movedText(name, group(line.at), group(price)) });
    } catch (error) {
      venue.say({ tone: "bad", ...describeError(error as Error) });
    }
    drawNow();
  };

  venue.account.orders.watch(draw);
  venue.account.fills.watch(draw);
  studies.watch(drawNow);
  palette.watch(drawNow);
  return draw;
}

function marksOf(venue: Venue, market: Market, { interval, known }: Times): SeriesMarker<UTCTimestamp>[] {
  const colours = palette.value;
  const fills = venue.account.fills.value.filter((fill) => pathSymbol(fill.instrument) === pathSymbol(market.symbol));
  const found = fills.slice(0, MARKS_MAX).flatMap((fill): SeriesMarker<UTCTimestamp>[] => {
    const seconds = Number(BigInt(fill.time_ns) / 1_000_000_000n);
    const time = seconds - (seconds % interval);
    if (!known.has(time)) return [];
    const isBuy = fill.side === "buy";
    return [{
      time: time as UTCTimestamp, position: isBuy ? "belowBar" : "aboveBar", shape: isBuy ? "arrowUp" : "arrowDown",
      color: isBuy ? colours.bid : colours.ask, size: 1,
    }];
  });
  return found.sort((a, b) => a.time - b.time);
}

/** Asks whether an order is to be moved. */
function moveDialog(): (question: string) => Promise<boolean> {
  const words = h("p", { id: "move-words" });
  const move = h("button.primary", { value: "move", type: "submit" }, t.chart.move);
  const dialog = h("dialog", { id: "move", "aria-labelledby": "move-words" },
    h("form", { method: "dialog" }, words, h("div.row", {}, move, h("button.plain", { value: "keep", type: "submit" }, t.chart.keep))));
  document.body.prepend(dialog);
  return (question) => new Promise((resolve) => {
    setText(words, question);
    dialog.returnValue = "keep";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "move"), { once: true });
    dialog.showModal();
    move.focus();
  });
}
