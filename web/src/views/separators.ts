// Moves the borders between the panels of the order book's view, by pointer and by keyboard. Separators lie in the gaps of the grid, so
// they take no room, and the grid itself keeps them in place.

import { h } from "../base/dom.ts";
import { type Columns, layout, panelSizes, type SizeName } from "../base/settings.ts";
import { oncePerFrame } from "../base/signal.ts";
import { type Border, type Limits, limitsOf, sizeKey, within } from "../state/panel-sizes.ts";
import { t } from "../texts/index.ts";

const STEP_PX = 16;
/** As in layout.css, widest first. */
const WINDOWS: [columns: Columns, query: string][] = [
  ["wide", "(min-width: 1360px)"], ["three", "(min-width: 1060px)"], ["two", "(min-width: 760px)"],
];
const KEYS: Record<Border["axis"], Record<string, number>> = {
  x: { ArrowLeft: -STEP_PX, ArrowRight: STEP_PX },
  y: { ArrowUp: -STEP_PX, ArrowDown: STEP_PX },
};

interface Separator {
  element: HTMLElement;
  border: Border;
}

interface Drag {
  border: Border;
  limits: Limits;
  startPx: number;
  /** The size that it has come to. */
  px: number;
  /** What was chosen before it, which a drag that breaks off leaves as it was. */
  before: number | undefined;
}

export class Separators {
  readonly #host: HTMLElement;
  readonly #windows = WINDOWS.map(([columns, query]) => ({ columns, media: matchMedia(query) }));
  readonly #borders = new Map<Columns, Border[]>();
  readonly #shown = new Map<SizeName, Separator>();
  readonly #measureSoon = oncePerFrame(() => this.#measure());
  #drag: Drag | null = null;

  constructor(host: HTMLElement) {
    this.#host = host;
    for (const { media } of this.#windows) media.addEventListener("change", () => this.#draw());
    new ResizeObserver(this.#measureSoon).observe(host);
  }

  /** The borders of the view while the window has room for so many columns. */
  show(columns: Columns, borders: Border[]): void {
    this.#borders.set(columns, borders);
    if (columns === this.#columns()) this.#draw();
  }

  /** On a phone there is one column, and no separator. */
  #columns(): Columns | null {
    return this.#windows.find(({ media }) => media.matches)?.columns ?? null;
  }

  /** A separator that is still there stays the same element: it may have the focus, or be dragged. */
  #draw(): void {
    const columns = this.#columns();
    const borders = columns === null ? [] : this.#borders.get(columns) ?? [];
    for (const [size, { element }] of this.#shown) {
      if (borders.some((border) => border.size === size)) continue;
      element.remove();
      this.#shown.delete(size);
    }
    for (const border of borders) {
      const { size, panel, axis, line, from, to } = border;
      const there = this.#shown.get(size);
      const element = there?.element ?? this.#make(size);
      if (there) there.border = border;
      else this.#shown.set(size, { element, border });
      const heading = t.headings[`${panel}-title`];
      const label = axis === "x" ? t.separators.width(heading) : t.separators.height(heading);
      element.className = `separator ${axis}`;
      element.setAttribute("aria-orientation", axis === "x" ? "vertical" : "horizontal");
      element.setAttribute("aria-controls", panel);
      element.setAttribute("aria-label", label);
      element.title = `${label}. ${t.separators.hint}`;
      const [along, across] = [`${line} / auto`, `${from} / ${to}`];
      element.style.gridColumn = axis === "x" ? along : across;
      element.style.gridRow = axis === "x" ? across : along;
    }
    this.#measureSoon();
  }

  #make(size: SizeName): HTMLElement {
    const element = h("div.separator", {
      id: `separator-${size}`, role: "separator", tabindex: 0,
      onpointerdown: (event) => this.#start(size, event),
      onpointermove: (event) => this.#move(event),
      onpointerup: () => {
        this.#drag = null;
      },
      onpointercancel: () => this.#breakOff(),
      ondblclick: () => this.#choose(size, undefined),
      onkeydown: (event) => this.#press(size, event),
    });
    this.#host.append(element);
    return element;
  }

  #start(size: SizeName, event: PointerEvent): void {
    const separator = this.#shown.get(size);
    const limits = separator && this.#limits(separator.border);
    if (!separator || !limits || event.button !== 0) return;
    separator.element.setPointerCapture(event.pointerId);
    const { border } = separator;
    const startPx = border.axis === "x" ? event.clientX : event.clientY;
    this.#drag = { border, limits, startPx, px: limits.now, before: this.#chosen(size) };
  }

  #move(event: PointerEvent): void {
    if (event.buttons === 0) this.#drag = null;
    if (!this.#drag) return;
    const { border, limits, startPx } = this.#drag;
    const by = (border.axis === "x" ? event.clientX : event.clientY) - startPx;
    const px = within(limits, limits.now + border.grows * by);
    // A press that does not move chooses nothing: a double click has two of them.
    if (px === this.#drag.px) return;
    this.#drag.px = px;
    this.#choose(border.size, px);
  }

  #breakOff(): void {
    if (this.#drag) this.#choose(this.#drag.border.size, this.#drag.before);
    this.#drag = null;
  }

  #press(size: SizeName, event: KeyboardEvent): void {
    const border = this.#shown.get(size)?.border;
    if (!border || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = KEYS[border.axis][event.key];
    if (by === undefined && event.key !== "Home") return;
    event.preventDefault();
    const limits = this.#limits(border);
    if (by === undefined) this.#choose(size, undefined);
    else if (limits) this.#choose(size, within(limits, limits.now + border.grows * by));
  }

  #chosen(size: SizeName): number | undefined {
    const columns = this.#columns();
    return columns === null ? undefined : panelSizes.value[sizeKey(layout.value, columns, size)];
  }

  /** Without `px` it has the size of the style sheet again. */
  #choose(size: SizeName, px: number | undefined): void {
    const columns = this.#columns();
    if (columns === null) return;
    const { [sizeKey(layout.value, columns, size)]: _, ...others } = panelSizes.value;
    panelSizes.value = px === undefined ? others : { ...others, [sizeKey(layout.value, columns, size)]: px };
  }

  /** As the grid is laid out; `null` while the view is not shown. */
  #limits(border: Border): Limits | null {
    const { gridTemplateColumns, gridTemplateRows, columnGap } = getComputedStyle(this.#host);
    const px = (border.axis === "x" ? gridTemplateColumns : gridTemplateRows).split(" ").map(Number.parseFloat);
    const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
    if (px.some(Number.isNaN) || px.length <= Math.max(...border.tracks)) return null;
    return limitsOf(border, px, Number.parseFloat(columnGap), rem);
  }

  #measure(): void {
    for (const { element, border } of this.#shown.values()) {
      const limits = this.#limits(border);
      if (!limits) continue;
      element.setAttribute("aria-valuenow", String(limits.now));
      element.setAttribute("aria-valuemin", String(limits.least));
      element.setAttribute("aria-valuemax", String(limits.most));
      element.setAttribute("aria-valuetext", `${limits.now} px`);
    }
  }
}
