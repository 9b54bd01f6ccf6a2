// Lines over the candles: averages, VWAP, and RSI below. Computed in whole numbers (indicators/), floats for pixels only.

import { type IChartApi, type ISeriesApi, LineSeries, LineStyle, type UTCTimestamp } from "lightweight-charts";
import type { Candle } from "../api/types.ts";
import { parseUnits } from "../base/decimal.ts";
import { h } from "../base/dom.ts";
import { group, signed } from "../base/format.ts";
import { Setting } from "../base/settings.ts";
import { exponentialAverage, GUARD, type Line, relativeStrength, simpleAverage, volumeWeighted } from "../indicators/indicators.ts";
import type { Units } from "../state/market.ts";
import { t } from "../texts/index.ts";
import { type Palette, palette } from "./theme.ts";

type Name = "average" | "exponential" | "vwap" | "rsi";

interface Study {
  on: boolean;
  /** In candles; VWAP has none. */
  period: number;
}

type Studies = Record<Name, Study> & { own: boolean };

const NAMES: Name[] = ["average", "exponential", "vwap", "rsi"];
const PERIOD_MAX = 400;
const FIRST: Studies = { average: { on: false, period: 20 }, exponential: { on: false, period: 50 }, vwap: { on: false, period: 0 }, rsi: { on: false, period: 14 }, own: true };

export const studies = new Setting<Studies>("studies", FIRST, (kept) => {
  const read = (kept ?? {}) as Partial<Record<string, Partial<Study> | boolean>>;
  const of = (name: Name): Study => {
    const { on, period } = (read[name] ?? {}) as Partial<Study>;
    return { on: on === true, period: isPeriod(period) ? period : FIRST[name].period };
  };
  return { average: of("average"), exponential: of("exponential"), vwap: of("vwap"), rsi: of("rsi"), own: read["own"] !== false };
});

function isPeriod(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= PERIOD_MAX;
}

/** The menu of what is drawn. */
export function studiesMenu(): HTMLElement {
  const words = t.chart;
  const titles: Record<Name, string> = { average: words.averageTitle, exponential: words.exponentialTitle, vwap: words.vwapTitle, rsi: words.rsiTitle };
  const rows = NAMES.map((name) => {
    const { on, period } = studies.value[name];
    const box = h("input", { type: "checkbox", id: `study-${name}`, checked: on, onchange: () => change(name, { on: box.checked }) });
    const input = name === "vwap" ? null : h("input", {
      type: "number", min: 2, max: PERIOD_MAX, value: period, id: `study-${name}-period`, "aria-label": words.period(words[name]), onchange: (event) => {
        const wanted = Number((event.target as HTMLInputElement).value);
        if (isPeriod(wanted) && wanted >= 2) change(name, { period: wanted });
        else (event.target as HTMLInputElement).value = String(studies.value[name].period);
      },
    });
    return h("div.study", { title: titles[name] }, h("label", {}, box, h("i", { class: `key ${name}`, "aria-hidden": "true" }), words[name]), input);
  });
  const own = h("input", { type: "checkbox", id: "study-own", checked: studies.value.own, onchange: () => {
    studies.value = { ...studies.value, own: own.checked };
  } });
  const menu = h("details.menu", { id: "studies" }, h("summary", {}, words.studies),
    h("div.sheet", {}, ...rows, h("div.study", { title: words.ownTitle }, h("label", {}, own, words.own))));
  addEventListener("pointerdown", (event) => {
    if (!menu.contains(event.target as Node)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary")?.focus();
    event.stopPropagation();
  });
  return menu;
}

function change(name: Name, part: Partial<Study>): void {
  studies.value = { ...studies.value, [name]: { ...studies.value[name], ...part } };
}

export interface DrawnStudies {
  /** Oldest first. */
  draw(candles: Candle[], units: Units): void;
  /** What the lines say at a candle, in words. */
  readout(timeS: number | null): string[];
}

export function drawStudies(chart: IChartApi): DrawnStudies {
  const lines = new Map<Name, { series: ISeriesApi<"Line">; last: Map<number, string>; newest: string }>();
  const style: Record<Name, (colours: Palette) => { color: string; lineStyle: LineStyle }> = {
    average: (colours) => ({ color: colours.ink, lineStyle: LineStyle.Solid }),
    exponential: (colours) => ({ color: colours.ink, lineStyle: LineStyle.Dashed }),
    vwap: (colours) => ({ color: colours.muted, lineStyle: LineStyle.Dotted }),
    rsi: (colours) => ({ color: colours.ink, lineStyle: LineStyle.Solid }),
  };
  const dress = (): void => {
    for (const [name, { series }] of lines) series.applyOptions(style[name](palette.value));
  };
  palette.watch(dress);
  const seriesOf = (name: Name): { series: ISeriesApi<"Line">; last: Map<number, string>; newest: string } => {
    const known = lines.get(name);
    if (known) return known;
    const series = chart.addSeries(LineSeries, {
      lineWidth: name === "vwap" ? 2 : 1, priceLineVisible: false, lastValueVisible: name === "rsi", crosshairMarkerVisible: false, ...style[name](palette.value),
      ...(name === "rsi" ? { priceFormat: { type: "price" as const, precision: 1, minMove: 0.1 }, autoscaleInfoProvider: () => ({ priceRange: { minValue: 0, maxValue: 100 } }) } : {}),
    }, name === "rsi" ? 1 : 0);
    if (name === "rsi") {
      for (const level of [30, 70]) series.createPriceLine({ price: level, color: palette.value.edge, lineWidth: 1, lineStyle: LineStyle.Dotted, axisLabelVisible: false, title: "" });
      chart.panes()[1]?.setStretchFactor(0.35);
      chart.panes()[0]?.setStretchFactor(1);
    }
    const made = { series, last: new Map<number, string>(), newest: "" };
    lines.set(name, made);
    return made;
  };
  const show = (name: Name, line: Line, candles: Candle[], toText: (value: bigint) => string, perUnit: number): void => {
    const drawn = seriesOf(name);
    drawn.last.clear();
    drawn.series.setData(line.map((value, at) => {
      const time = Number(candles[at]?.time_s ?? 0);
      if (value === null) return { time: time as UTCTimestamp };
      drawn.last.set(time, toText(value));
      return { time: time as UTCTimestamp, value: Number(value) / perUnit };
    }));
    drawn.newest = [...drawn.last.values()].at(-1) ?? "";
  };
  return {
    draw(candles, { priceDecimals, sizeDecimals }) {
      const chosen = studies.value;
      for (const [name, { series }] of lines) {
        if (chosen[name].on) continue;
        chart.removeSeries(series);
        lines.delete(name);
      }
      if (candles.length === 0 || !NAMES.some((name) => chosen[name].on)) return;
      const of = (text: string): bigint => parseUnits(text, priceDecimals);
      const closes = candles.map(({ close }) => of(close));
      const priced = (value: bigint): string => group(cut(value, priceDecimals + GUARD, priceDecimals));
      const perUnit = 10 ** (priceDecimals + GUARD);
      if (chosen.average.on) show("average", simpleAverage(closes, chosen.average.period), candles, priced, perUnit);
      if (chosen.exponential.on) show("exponential", exponentialAverage(closes, chosen.exponential.period), candles, priced, perUnit);
      if (chosen.vwap.on) {
        const traded = candles.map(({ time_s, high, low, close, volume }) => ({ timeS: Number(time_s), high: of(high), low: of(low), close: of(close), volume: parseUnits(volume, sizeDecimals) }));
        show("vwap", volumeWeighted(traded), candles, priced, perUnit);
      }
      if (chosen.rsi.on)
        show("rsi", relativeStrength(closes, chosen.rsi.period), candles, (value) => signed(cut(value, GUARD, 1)), 10 ** GUARD);
    },
    readout(timeS) {
      return NAMES.flatMap((name) => {
        const drawn = lines.get(name);
        const text = drawn && (timeS === null ? drawn.newest : drawn.last.get(timeS));
        const { period } = studies.value[name];
        return text ? [`${t.chart[name]}${name === "vwap" ? "" : ` ${period}`} ${text}`] : [];
      });
    },
  };
}

/** A value with `from` decimals as text with `to`, rounded half up. */
function cut(value: bigint, from: number, to: number): string {
  const step = 10n ** BigInt(from - to);
  const rounded = (value + step / 2n) / step;
  const digits = rounded.toString().padStart(to + 1, "0");
  return to === 0 ? digits : `${digits.slice(0, -to)}.${digits.slice(-to)}`;
}
