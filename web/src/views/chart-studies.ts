// Indicators of the chart: averages, bands and VWAP over the candles; RSI, MACD and ATR in panes below. Computed in whole numbers
// (indicators/), floats for pixels only.

import { type IChartApi, type ISeriesApi, LineSeries, LineStyle, type UTCTimestamp } from "lightweight-charts";
import { type Candle, divide, formatUnits, parseUnits } from "walras";
import { h } from "../base/dom.ts";
import { group, signed } from "../base/format.ts";
import { Setting } from "../base/settings.ts";
import {
  bollingerBands, convergence, exponentialAverage, GUARD, type Line, relativeStrength, simpleAverage, trueRange, volumeWeighted,
} from "../indicators/indicators.ts";
import type { Units } from "../state/market.ts";
import { t } from "../texts/index.ts";
import { type Palette, palette } from "./theme.ts";

type Name = "average" | "exponential" | "bollinger" | "vwap" | "rsi" | "macd" | "atr";

interface Study {
  on: boolean;
  /** In candles; VWAP has none, and MACD's three are its own. */
  period: number;
}

type Studies = Record<Name, Study> & { own: boolean };

const NAMES: Name[] = ["average", "exponential", "bollinger", "vwap", "rsi", "macd", "atr"];
/** Each of these has a pane of its own, with this part of the height of the candles' pane. */
const LOWER: ReadonlySet<Name> = new Set<Name>(["rsi", "macd", "atr"]);
const LOWER_STRETCH = 0.35;
const WITHOUT_PERIOD: ReadonlySet<Name> = new Set<Name>(["vwap", "macd"]);
const PERIOD_MAX = 400;
const FIRST: Studies = {
  average: { on: false, period: 20 }, exponential: { on: false, period: 50 }, bollinger: { on: false, period: 20 },
  vwap: { on: false, period: 0 }, rsi: { on: false, period: 14 }, macd: { on: false, period: 0 }, atr: { on: false, period: 14 }, own: true,
};

export const studies = new Setting<Studies>("studies", FIRST, (kept) => {
  const read = (kept ?? {}) as Partial<Record<string, Partial<Study> | boolean>>;
  const of = (name: Name): Study => {
    const { on, period } = (read[name] ?? {}) as Partial<Study>;
    return { on: on === true, period: isPeriod(period) ? period : FIRST[name].period };
  };
  return { ...(Object.fromEntries(NAMES.map((name) => [name, of(name)])) as Record<Name, Study>), own: read["own"] !== false };
});

export function isAnyStudyOn(): boolean {
  return NAMES.some((name) => studies.value[name].on);
}

function isPeriod(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= PERIOD_MAX;
}

/** The menu of what is drawn. */
export function studiesMenu(): HTMLElement {
  const words = t.chart;
  const titles: Record<Name, string> = {
    average: words.averageTitle, exponential: words.exponentialTitle, bollinger: words.bollingerTitle, vwap: words.vwapTitle,
    rsi: words.rsiTitle, macd: words.macdTitle, atr: words.atrTitle,
  };
  const rows = NAMES.map((name) => {
    const { on, period } = studies.value[name];
    const box = h("input", { type: "checkbox", id: `study-${name}`, checked: on, onchange: () => change(name, { on: box.checked }) });
    const input = WITHOUT_PERIOD.has(name) ? null : h("input", {
      type: "number", min: 2, max: PERIOD_MAX, value: period, id: `study-${name}-period`, "aria-label": words.period(words[name]),
      onchange: (event) => {
        const wanted = Number((event.target as HTMLInputElement).value);
        if (isPeriod(wanted) && wanted >= 2) change(name, { period: wanted });
        else (event.target as HTMLInputElement).value = String(studies.value[name].period);
      },
    });
    const key = h("i", { class: `key ${name}`, "aria-hidden": "true" });
    return h("div.study", { title: titles[name] }, h("label", {}, box, key, words[name]), input);
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

/** How a line is drawn. A study has one or several. */
type Look = (colours: Palette) => { color: string; lineStyle: LineStyle; lineWidth?: 1 | 2 };
const solid: Look = ({ ink }) => ({ color: ink, lineStyle: LineStyle.Solid });
const faint: Look = ({ muted }) => ({ color: muted, lineStyle: LineStyle.Solid });
const dashed: Look = ({ ink }) => ({ color: ink, lineStyle: LineStyle.Dashed });
const LOOKS: Record<Name, Look[]> = {
  average: [solid], exponential: [dashed], bollinger: [faint, ({ muted }) => ({ color: muted, lineStyle: LineStyle.Dotted }), faint],
  vwap: [({ muted }) => ({ color: muted, lineStyle: LineStyle.Dotted, lineWidth: 2 })], rsi: [solid], macd: [solid, dashed], atr: [solid],
};

interface Drawn {
  series: ISeriesApi<"Line">[];
  /** The values in words, by the candle's time. */
  words: Map<number, string>;
}

export function drawStudies(chart: IChartApi): DrawnStudies {
  const drawn = new Map<Name, Drawn>();
  palette.watch((colours) => {
    for (const [name, { series }] of drawn) series.forEach((each, at) => each.applyOptions(LOOKS[name][at]?.(colours) ?? {}));
  });
  const drawnOf = (name: Name, decimals: number): Drawn => {
    const known = drawn.get(name);
    if (known) return known;
    const isLower = LOWER.has(name);
    const pane = isLower ? chart.panes().length : 0;
    const series = LOOKS[name].map((look) => chart.addSeries(LineSeries, {
      lineWidth: 1, priceLineVisible: false, lastValueVisible: isLower, crosshairMarkerVisible: false, ...look(palette.value),
      ...(isLower ? { priceFormat: { type: "price" as const, precision: decimals, minMove: 10 ** -decimals } } : {}),
      ...(name === "rsi" ? { autoscaleInfoProvider: () => ({ priceRange: { minValue: 0, maxValue: 100 } }) } : {}),
    }, pane));
    const [first] = series;
    const level = (price: number): unknown => first?.createPriceLine({
      price, color: palette.value.edge, lineWidth: 1, lineStyle: LineStyle.Dotted, axisLabelVisible: false, title: "",
    });
    if (name === "rsi") [30, 70].forEach(level);
    if (name === "macd") level(0);
    if (isLower) {
      first?.getPane().setStretchFactor(LOWER_STRETCH);
      chart.panes()[0]?.setStretchFactor(1);
    }
    const made = { series, words: new Map<number, string>() };
    drawn.set(name, made);
    return made;
  };
  /** `decimals` is how many the lines' values have, `shown` how many the readout has. */
  const show = (name: Name, lines: Line[], candles: Candle[], decimals: number, shown: number): void => {
    const { series, words } = drawnOf(name, shown);
    const perUnit = 10 ** decimals;
    words.clear();
    series.forEach((each, part) => each.setData(candles.map(({ time_s }, at) => {
      const [time, value] = [Number(time_s), lines[part]?.[at] ?? null];
      if (value === null) return { time: time as UTCTimestamp };
      const text = (name === "rsi" ? signed : group)(cut(value, decimals, shown));
      words.set(time, words.has(time) ? `${words.get(time)} / ${text}` : text);
      return { time: time as UTCTimestamp, value: Number(value) / perUnit };
    })));
  };
  return {
    draw(candles, { priceDecimals, sizeDecimals }) {
      const chosen = studies.value;
      for (const [name, { series }] of drawn) {
        if (chosen[name].on) continue;
        series.forEach((each) => chart.removeSeries(each));
        drawn.delete(name);
      }
      if (candles.length === 0 || !isAnyStudyOn()) return;
      const of = (text: string): bigint => parseUnits(text, priceDecimals);
      const closes = candles.map(({ close }) => of(close));
      const traded = candles.map(({ time_s, high, low, close, volume }) => (
        { timeS: Number(time_s), high: of(high), low: of(low), close: of(close), volume: parseUnits(volume, sizeDecimals) }));
      const linesOf: Record<Name, (period: number) => Line[]> = {
        average: (period) => [simpleAverage(closes, period)],
        exponential: (period) => [exponentialAverage(closes, period)],
        bollinger: (period) => {
          const { upper, middle, lower } = bollingerBands(closes, period);
          return [upper, middle, lower];
        },
        vwap: () => [volumeWeighted(traded)],
        rsi: (period) => [relativeStrength(closes, period)],
        macd: () => {
          const { macd, signal } = convergence(closes);
          return [macd, signal];
        },
        atr: (period) => [trueRange(traded, period)],
      };
      for (const name of NAMES) {
        const { on, period } = chosen[name];
        const [decimals, shown] = name === "rsi" ? [GUARD, 1] : [priceDecimals + GUARD, priceDecimals];
        if (on) show(name, linesOf[name](period), candles, decimals, shown);
      }
    },
    readout(timeS) {
      return NAMES.flatMap((name) => {
        const words = drawn.get(name)?.words;
        const text = words && (timeS === null ? [...words.values()].at(-1) : words.get(timeS));
        return text ? [`${t.chart[name]}${WITHOUT_PERIOD.has(name) ? "" : ` ${studies.value[name].period}`} ${text}`] : [];
      });
    },
  };
}

/** A value with `from` decimals as text with `to`, rounded half up. */
function cut(value: bigint, from: number, to: number): string {
  const step = 10n ** BigInt(from - to);
  return formatUnits(divide(value + step / 2n, step, "down"), to);
}
