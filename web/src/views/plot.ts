// A chart of what is wanted and what is offered at each price, in a host whose size and colours may change.

import uPlot from "uplot";
import { type Palette, palette } from "./theme.ts";

/** What uPlot takes, but for the size, which is the host's. */
export type PlotOptions = Omit<uPlot.Options, "width" | "height">;

/** A plot that fills its host: it is made once there is room, and made anew when the colours change. */
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

/** Prices along the foot, amounts at the right, one curve for what is wanted and one for what is offered. */
export function curveOptions(colours: Palette, style: CurveStyle): PlotOptions {
  const axis = { stroke: colours.muted, font: `11px ${colours.face}`, ticks: { show: false }, border: { show: false }, gap: 4 };
  const curve = (colour: string, paths: uPlot.Series.PathBuilder): uPlot.Series =>
    ({ stroke: colour, width: style.lineWidth, fill: faded(colour, style.fillStrength), paths, points: { show: false } });
  return {
    legend: { show: false },
    padding: style.padding,
    scales: { x: { time: false }, y: { range: (_, _low, high) => [0, (Number.isFinite(high) && high > 0 ? high : 1) * style.room] } },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    axes: [
      { ...axis, size: 22, space: 70, grid: { show: false }, values: (_, ticks) => ticks.map(style.price) },
      { ...axis, size: style.amountsWidth, side: 1, grid: { stroke: colours.hair, width: 1 }, values: (_, ticks) => ticks.map(style.amount) },
    ],
    series: [{}, curve(colours.bid, style.wanted), curve(colours.ask, style.offered)],
  };
}

/** `rgb(1, 2, 3)` so much see-through. */
function faded(colour: string, strength: number): string {
  return colour.replace(/^rgb\((.*)\)$/, `rgba($1, ${strength})`);
}
