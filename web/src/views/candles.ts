// Prices over time. Rising candles are hollow, falling ones solid, so that they differ without colour; volume stands below.

import {
  CandlestickSeries, ColorType, CrosshairMode, HistogramSeries, type IChartApi, type ISeriesApi, TickMarkType, type UTCTimestamp,
  createChart,
} from "lightweight-charts";
import type { Candle, Interval } from "walras";
import { byId, h } from "../base/dom.ts";
import { group, showDay, showDayTime, showShort, showTime, zoneName } from "../base/format.ts";
import { keptInterval } from "../state/market.ts";
import { atMostEvery } from "../base/signal.ts";
import type { Market } from "../state/market.ts";
import type { Venue } from "../state/venue.ts";
import { t } from "../texts/index.ts";
import { drawOwn, SCROLL } from "./chart-own.ts";
import { drawStudies, isAnyStudyOn, studies, studiesMenu } from "./chart-studies.ts";
import { type Palette, palette } from "./theme.ts";

const INTERVALS: Interval[] = ["1s", "10s", "1m", "5m", "1h"];
const SECONDS: Record<Interval, number> = { "1s": 1, "10s": 10, "1m": 60, "5m": 300, "1h": 3_600 };
const STUDY_EVERY_MS = 250;

export function candlesView(venue: Venue): void {
  const host = byId("chart-plot");
  const readout = h("div.readout", { id: "candle-readout", "aria-hidden": "true" });
  const picker = h("div.choice.light", { role: "radiogroup", "aria-label": t.chart.interval });
  byId("chart-tools").append(studiesMenu(), picker);
  host.before(readout);
  for (const interval of INTERVALS) {
    const input = h("input", { type: "radio", name: "interval", value: interval, onchange: () => {
      keptInterval.value = interval;
      venue.chooseInterval(interval);
    } });
    picker.append(h("label", {}, input, h("span", {}, interval)));
  }

  // The logo would inject a style element, which `default-src 'self'` refuses: it must be off from the first moment. The page's foot
  // carries the attribution instead.
  const chart = createChart(host, { autoSize: true, layout: { attributionLogo: false }, handleScroll: { ...SCROLL } });
  const series = chart.addSeries(CandlestickSeries);
  const volume = chart.addSeries(HistogramSeries, {
    priceScaleId: "volume", priceFormat: { type: "volume" }, priceLineVisible: false, lastValueVisible: false,
  });
  chart.priceScale("volume").applyOptions({ scaleMargins: { top: 0.84, bottom: 0 } });
  series.priceScale().applyOptions({ scaleMargins: { top: 0.12, bottom: 0.2 } });
  const known = new Map<number, Candle>();
  let newest = 0;
  const lines = drawStudies(chart);
  const study = (): void => {
    const market = venue.market.value;
    if (!market) return;
    lines.draw([...known.values()].sort((a, b) => Number(a.time_s) - Number(b.time_s)), market.units);
    describe(null);
  };
  const studySoon = atMostEvery(STUDY_EVERY_MS, study);
  studies.watch(study);
  const drawOwnSoon = drawOwn(venue, host, chart, series, () => ({
    interval: SECONDS[venue.market.value?.interval ?? "10s"], known: new Set(known.keys()),
  }));

  const dress = (): void => dressChart(chart, series, palette.value);
  const show = (market: Market): void => {
    const change = market.candles.value;
    if (change === null || change.kind === "snapshot") {
      known.clear();
      newest = 0;
      for (const candle of change?.candles ?? []) known.set(Number(candle.time_s), candle);
      const candles = [...known.values()].sort((a, b) => Number(a.time_s) - Number(b.time_s));
      series.setData(candles.map(bar));
      volume.setData(candles.map((candle) => volumeBar(candle, palette.value)));
      newest = Number(candles.at(-1)?.time_s ?? 0);
      const spacing = Math.max(4, Math.min(14, (host.clientWidth - 80) / Math.max(30, candles.length)));
      chart.timeScale().applyOptions({ barSpacing: spacing });
      chart.timeScale().scrollToRealTime();
    } else {
      for (const candle of change.candles) {
        const time = Number(candle.time_s);
        const historical = time < newest;
        series.update(bar(candle), historical);
        volume.update(volumeBar(candle, palette.value), historical);
        known.set(time, candle);
        newest = Math.max(newest, time);
      }
    }
    describe(null);
    studySoon();
    drawOwnSoon();
  };
  const describe = (time: number | null): void => {
    const candle = known.get(time ?? newest);
    const market = venue.market.value;
    if (!candle || !market) return readout.replaceChildren();
    const { base } = market.units.instrument;
    readout.classList.toggle("long", isAnyStudyOn());
    const [open, high, low, close] = [group(candle.open), group(candle.high), group(candle.low), group(candle.close)];
    const parts = [
      `${showTime(`${candle.time_s}000000000`)} ${zoneName()}`,
      t.chart.open(open),
      t.chart.high(high),
      t.chart.low(low),
      t.chart.close(close),
      `${showShort(candle.volume, 3)} ${base}`,
      ...lines.readout(time),
    ];
    readout.replaceChildren(...parts.map((part) => h("span", {}, part)));
    host.setAttribute("role", "img");
    host.setAttribute("aria-label", t.chart.spoken(market.interval, t.chart.candle(open, high, low, close)));
  };
  chart.subscribeCrosshairMove((at) => describe(typeof at.time === "number" ? at.time : null));

  palette.watch(() => {
    dress();
    const candles = [...known.values()].sort((a, b) => Number(a.time_s) - Number(b.time_s));
    volume.setData(candles.map((candle) => volumeBar(candle, palette.value)));
  });
  dress();
  venue.market.watch((market) => {
    if (!market) return;
    const { priceDecimals, instrument } = market.units;
    series.applyOptions({ priceFormat: { type: "price", precision: priceDecimals, minMove: Number(instrument.tick_size) } });
    for (const input of picker.querySelectorAll("input")) input.checked = input.value === market.interval;
    market.candles.watch(() => show(market));
    show(market);
  });
}

function dressChart(chart: IChartApi, series: ISeriesApi<"Candlestick">, colours: Palette): void {
  const precision = (): number => {
    const { priceFormat } = series.options();
    return priceFormat.type === "custom" ? 2 : (priceFormat as { precision: number }).precision;
  };
  chart.applyOptions({
    layout: {
      background: { type: ColorType.Solid, color: colours.paper },
      textColor: colours.muted,
      fontFamily: colours.face,
      fontSize: 11,
    },
    localization: {
      timeFormatter: (time: UTCTimestamp) => `${showDayTime(`${time}000000000`)} ${zoneName()}`,
      priceFormatter: (price: number) => group(price.toFixed(precision())),
    },
    grid: { vertLines: { visible: false }, horzLines: { color: colours.hair } },
    rightPriceScale: { borderVisible: false },
    timeScale: {
      borderColor: colours.hair, timeVisible: true, secondsVisible: true, rightOffset: 3,
      tickMarkFormatter: (time: UTCTimestamp, kind: TickMarkType) => tickText(time, kind),
    },
    crosshair: {
      mode: CrosshairMode.Normal,
      vertLine: { color: colours.edge, labelBackgroundColor: colours.ink },
      horzLine: { color: colours.edge, labelBackgroundColor: colours.ink },
    },
  });
  series.applyOptions({
    upColor: colours.paper,
    borderUpColor: colours.bid,
    wickUpColor: colours.bid,
    downColor: colours.ask,
    borderDownColor: colours.ask,
    wickDownColor: colours.ask,
    priceLineColor: colours.ink,
  });
}

/** The day where it changes, else the time in the chosen zone. */
function tickText(time: UTCTimestamp, kind: TickMarkType): string {
  const timeNs = `${time}000000000`;
  if (kind <= TickMarkType.DayOfMonth) return showDay(timeNs);
  return kind === TickMarkType.TimeWithSeconds ? showTime(timeNs) : showTime(timeNs).slice(0, 5);
}

function bar(candle: Candle): { time: UTCTimestamp; open: number; high: number; low: number; close: number } {
  return {
    time: Number(candle.time_s) as UTCTimestamp,
    open: Number(candle.open),
    high: Number(candle.high),
    low: Number(candle.low),
    close: Number(candle.close),
  };
}

function volumeBar(candle: Candle, colours: Palette): { time: UTCTimestamp; value: number; color: string } {
  const up = Number(candle.close) >= Number(candle.open);
  return { time: Number(candle.time_s) as UTCTimestamp, value: Number(candle.volume), color: up ? tint(colours.bid) : tint(colours.ask) };
}

function tint(colour: string): string {
  return colour.replace(/^rgb\((.*)\)$/, "rgba($1, 0.4)");
}
