// Charts in a host whose size and colours may change: of what is wanted and what is offered at each price, and of a measure over time.

import uPlot from "uplot";
import { type Palette, palette } from "./theme.ts";

/** What uPlot takes, but for the size, which is the host's. */
export type PlotOptions = Omit<uPlot.Options, "width" | "height">;

/** A plot that fills its host: it is made once there is room, and again when the colours change. */
export class HostedPlot {
  readonly #host: HTMLElement;
  readonly #make: (colours: Palette) => { options: PlotOptions; data: uPlot.AlignedData };
  #plot: uPlot | null = null;
  #size = "";

  constructor(host: HTMLElement, make: (colours: Palette) => { options: PlotOptions; data: uPlot.AlignedData }) {
    this.#host = host;
    this.#make = make;
    host.setAttribute("role", "img");
    new ResizeObserver(() => this.#fit()).observe(host);
    palette.watch(() => {
      this.#plot?.destroy();
      this.#plot = null;
      this.#build();
    });
  }

  show(data: uPlot.AlignedData): void {
    if (this.#plot) this.#plot.setData(data);
    else this.#build();
  }

  /** Whether nobody points at it. */
  get isIdle(): boolean {
    return this.#plot?.cursor.idx == null;
  }

  #build(): void {
    const { clientWidth: width, clientHeight: height } = this.#host;
    if (width === 0) return;
    const { options, data } = this.#make(palette.value);
    this.#plot = new uPlot({ width, height, ...options }, data, this.#host);
  }

  #fit(): void {
    const { clientWidth: width, clientHeight: height } = this.#host;
    const size = `${width} ${height}`;
    if (size === this.#size || width === 0) return;
    this.#size = size;
    if (this.#plot) this.#plot.setSize({ width, height });
    else this.#build();
  }
}

export interface CurveStyle {
  padding: uPlot.Padding;
  /** By how much the amounts' axis reaches beyond the largest. */
  room: number;
  /** In pixels, of the amounts at the right. */
  amountsWidth: number;
  lineWidth: number;
  /** From 0 to 1: of the areas under the curves. */
  fillStrength: number;
  wanted: uPlot.Series.PathBuilder;
  offered: uPlot.Series.PathBuilder;
  price(tick: number): string;
  amount(tick: number): string;
}

/** Nearer to the left edge a label would be cut off. */
const LABEL_HALF_PX = 24;

/** Labels along the foot, but for those that would be cut. */
function alongFoot(label: (tick: number) => string): (plot: uPlot, ticks: number[]) => string[] {
  return (plot, ticks) => ticks.map((tick) => (plot.valToPos(tick, "x") < LABEL_HALF_PX ? "" : label(tick)));
}

/** Figures in the colour of what stands next to them, no lines but the grid's. */
function axisOf(colours: Palette): uPlot.Axis {
  return { stroke: colours.muted, font: `11px ${colours.face}`, ticks: { show: false }, border: { show: false }, gap: 4 };
}

/** Prices along the foot, amounts at the right, one curve for what is wanted and one for what is offered. */
export function curveOptions(colours: Palette, style: CurveStyle): PlotOptions {
  const axis = axisOf(colours);
  const curve = (colour: string, paths: uPlot.Series.PathBuilder): uPlot.Series =>
    ({ stroke: colour, width: style.lineWidth, fill: faded(colour, style.fillStrength), paths, points: { show: false } });
  return {
    legend: { show: false },
    padding: style.padding,
    scales: { x: { time: false }, y: { range: (_, _low, high) => [0, (Number.isFinite(high) && high > 0 ? high : 1) * style.room] } },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    axes: [
      { ...axis, size: 22, space: 70, grid: { show: false }, values: alongFoot(style.price) },
      {
        ...axis, size: style.amountsWidth, side: 1, grid: { stroke: colours.hair, width: 1 },
        values: (_, ticks) => ticks.map(style.amount),
      },
    ],
    series: [{}, curve(colours.bid, style.wanted), curve(colours.ask, style.offered)],
  };
}

export interface Marks {
  /** An upright line at a price, with gaps where `dash` says. */
  rule(price: number, colour: string, dash: number[]): void;
  /** A label at a price, above the plot or, `low`, within it. */
  flag(price: number, text: string, back: string, front: string, low: boolean): void;
  dot(price: number, amount: number, colour: string): void;
}

/** What is drawn onto a plot of curves: call it from the plot's `draw` hook. */
export function marksOn(plot: uPlot, colours: Palette): Marks {
  const { ctx, bbox } = plot;
  const scale = devicePixelRatio;
  const xOf = (price: number): number => Math.round(plot.valToPos(price, "x", true));
  return {
    rule(price, colour, dash) {
      ctx.strokeStyle = colour;
      ctx.lineWidth = 1.5 * scale;
      ctx.setLineDash(dash.map((each) => each * scale));
      ctx.beginPath();
      ctx.moveTo(xOf(price), bbox.top - 6 * scale);
      ctx.lineTo(xOf(price), bbox.top + bbox.height);
      ctx.stroke();
      ctx.setLineDash([]);
    },
    flag(price, text, back, front, low) {
      ctx.font = `700 ${11 * scale}px ${colours.face}`;
      ctx.textBaseline = "middle";
      ctx.textAlign = "left";
      const width = ctx.measureText(text).width + 12 * scale;
      const left = Math.max(bbox.left, Math.min(bbox.left + bbox.width - width, xOf(price) - width / 2));
      const y = bbox.top - (low ? 0 : 24 * scale);
      ctx.fillStyle = back;
      ctx.fillRect(left, y, width, 18 * scale);
      ctx.fillStyle = front;
      ctx.fillText(text, left + 6 * scale, y + 9.5 * scale);
    },
    dot(price, amount, colour) {
      ctx.fillStyle = colour;
      ctx.beginPath();
      ctx.arc(xOf(price), plot.valToPos(amount, "y", true), 5 * scale, 0, 2 * Math.PI);
      ctx.fill();
    },
  };
}

export interface LineStyle {
  /** How far up the axis goes, for the highest value. */
  reach(high: number): number;
  value(tick: number): string;
  time(seconds: number): string;
}

/** Time along the foot, a measure from zero at the right: as it was, and dashed what it is steered to. */
export function lineOptions(colours: Palette, style: LineStyle): PlotOptions {
  const axis = axisOf(colours);
  return {
    legend: { show: false },
    padding: [8, 6, 0, 0],
    scales: { x: { time: false }, y: { range: (_, _low, high) => [0, style.reach(Number.isFinite(high) ? high : 0)] } },
    cursor: { show: false },
    axes: [
      { ...axis, size: 20, space: 80, incrs: [10, 30, 60, 120, 300], grid: { show: false }, values: alongFoot(style.time) },
      { ...axis, size: 58, side: 1, space: 26, grid: { stroke: colours.hair, width: 1 }, values: (_, ticks) => ticks.map(style.value) },
    ],
    series: [
      {},
      { stroke: colours.ink, width: 2, fill: faded(colours.ink, 0.07), points: { show: false } },
      { stroke: colours.ink, width: 1.5, dash: [3, 4], points: { show: false } },
    ],
  };
}

/** `rgb(1, 2, 3)` so much see-through. */
function faded(colour: string, strength: number): string {
  return colour.replace(/^rgb\((.*)\)$/, `rgba($1, ${strength})`);
}
