// How large the panels of the order book's view are: the borders between them that can be moved, how far each can be moved, and the
// tracks of the grid by the sizes that the user chose. Pure. What was not chosen keeps the size that the style sheet gives.

import type { Arrangement, Columns, Panel, PanelSizes, SizeKey, SizeName } from "../base/settings.ts";
import type { Areas, Grids } from "./panels.ts";

/** A track of the grid, counted from 0, and what it keeps when others take from it. */
interface Kept {
  track: number;
  leastRem: number;
}

/** A border that can be moved, and the size that changes with it. */
export interface Border {
  size: SizeName;
  /** The panel that its label names. */
  panel: Panel | "book" | "ticket";
  /** `x`: between columns, moved sideways. `y`: between rows. */
  axis: "x" | "y";
  /** The grid's line on which it lies, and the lines between which it extends. Lines count from 1. */
  line: number;
  from: number;
  to: number;
  /** 1 where the panel lies before the border and grows as that moves on, -1 where it lies after it. */
  grows: 1 | -1;
  /** The tracks that the panel spans. */
  tracks: number[];
  /** Of those tracks the ones that shrink. */
  shrinks: Kept[];
  /** The tracks that give way as the panel grows. If there are none the page gets longer. */
  gives: Kept[];
}

export interface Limits {
  now: number;
  least: number;
  most: number;
}

/** Widths at which nothing that these columns show is cut, in any of the languages. */
const BOOK_REM = 16.5;
const BOOK_REM_OF_TWO = 17;
const SIDE_REM = 17.5;
const TAPE_REM = 15;
/** By how much the fills are wider than the trades above them, without the gap. */
const BEYOND_TAPE_REM = 5.25;
/** Of the open orders, whose table is the widest. */
const ORDERS_REM = 23.75;
/** Where the orders share their row with no other panel, they have one more gap. */
const MIDDLE_REM = 22.5;
/** In a window of 1,360 px the other columns' minima leave the middle no more than this. */
const MIDDLE_MOST = "27%";
/** Of the row that takes what the others leave, and of that row where the watch list has one above it. */
const LARGE_REM = 10;
const REST_REM = 2;
const REST_REM_ALONE = 6;
const ROW_REM: Partial<Record<SizeName, number>> = {
  "watch-row": 7, "depth-row": 7, "tape-row": 7, "orders-row": 6, "fills-row": 6,
};
/** Where the page scrolls: a chart has all of its row. */
const ROW_REM_OF_PAGE: Partial<Record<SizeName, number>> = { "chart-row": 14, "depth-row": 10 };
const ROW_REM_MAX = 48;

const [BEFORE, AFTER] = [1, -1] as const;

/** `collects` is during an auction. Its panel then needs the height that its figures take, so that height is nobody's choice. */
export function bordersOf(columns: Columns, grids: Grids, collects: boolean): Border[] {
  const areas = grids[columns];
  if (columns === "wide") return [...wideColumns(areas), ...wideRows(areas, grids.wideRows)];
  return [...columns === "two" ? twoColumns(areas) : threeColumns(areas), ...rowsOfPage(columns, areas, collects)];
}

/** The tracks for the sizes that were chosen; `null` where none was. */
export function tracksOf(
  arrangement: Arrangement, columns: Columns, grids: Grids, borders: Border[], chosen: PanelSizes,
): { columns: string | null; rows: string | null } {
  const px = (name: SizeName): string | null => {
    const size = chosen[sizeKey(arrangement, columns, name)];
    return size === undefined ? null : `${size}px`;
  };
  const rows = columns === "wide" ? [...grids.wideRows] : grids[columns].map(() => "auto");
  let hasRow = false;
  for (const { axis, size, shrinks } of borders) {
    const height = px(size);
    const [row] = shrinks;
    if (axis === "x" || height === null || !row) continue;
    hasRow = true;
    rows[row.track] = columns === "wide" ? minmax(row.leastRem, height) : `max(${row.leastRem}rem, ${height})`;
  }
  return { columns: columnTracks(columns, borders, px), rows: hasRow ? rows.join(" ") : null };
}

/** How far a border can be moved, where the grid has these tracks now. All are in pixels. */
export function limitsOf({ tracks, shrinks, gives }: Border, px: number[], gap: number, rem: number): Limits {
  const room = (kept: Kept[]): number =>
    kept.reduce((sum, { track, leastRem }) => sum + Math.max(0, Math.floor((px[track] ?? 0) - leastRem * rem)), 0);
  const now = Math.round(tracks.reduce((sum, track) => sum + (px[track] ?? 0), gap * (tracks.length - 1)));
  return { now, least: now - room(shrinks), most: gives.length === 0 ? Math.max(now, ROW_REM_MAX * rem) : now + room(gives) };
}

/** The size that is nearest to `px` within the limits. */
export function within({ least, most }: Limits, px: number): number {
  return Math.round(Math.min(most, Math.max(least, px)));
}

export function sizeKey(arrangement: Arrangement, columns: Columns, name: SizeName): SizeKey {
  return `${arrangement}.${columns}.${name}`;
}

function minmax(leastRem: number, most: string): string {
  return `minmax(${leastRem}rem, ${most})`;
}

/** As tracks grow to their maximum before one in `fr` does, a window that is too narrow takes from the chosen sizes, down to the minima. */
function columnTracks(columns: Columns, borders: Border[], px: (name: SizeName) => string | null): string | null {
  const [book, side, tape, fills] = (["book", "side", "tape", "fills"] as const).map(px);
  if (columns === "two") return book == null ? null : `${minmax(BOOK_REM_OF_TWO, book)} ${minmax(SIDE_REM, "1fr")}`;
  const first = minmax(BOOK_REM, book ?? "var(--book)");
  const last = minmax(SIDE_REM, side ?? "var(--side)");
  const isNoneOf = (sizes: (string | null | undefined)[]): boolean => sizes.every((size) => size == null);
  if (columns === "three") return isNoneOf([book, side]) ? null : `${first} ${minmax(ORDERS_REM, "1fr")} ${last}`;
  if (isNoneOf([book, side, tape, fills])) return null;
  const width = tape ?? "var(--tape)";
  const middle = (rem: number): string => `minmax(min(${rem}rem, ${MIDDLE_MOST}), 1fr)`;
  const between = borders.some(({ size }) => size === "fills")
    ? [middle(ORDERS_REM), minmax(BEYOND_TAPE_REM, `calc(${fills ?? "var(--fills)"} - ${width} - var(--gap))`)]
    : [middle(MIDDLE_REM), "0px"];
  return [first, ...between, minmax(TAPE_REM, width), last].join(" ");
}

function twoColumns(areas: Areas): Border[] {
  const gives = [{ track: 1, leastRem: SIDE_REM }];
  return upright(areas, 1, { size: "book", panel: "book", grows: BEFORE, tracks: [0] }, BOOK_REM_OF_TWO, gives);
}

function threeColumns(areas: Areas): Border[] {
  const gives = [{ track: 1, leastRem: ORDERS_REM }];
  return [
    ...upright(areas, 1, { size: "book", panel: "book", grows: BEFORE, tracks: [0] }, BOOK_REM, gives),
    ...upright(areas, 2, { size: "side", panel: "ticket", grows: AFTER, tracks: [2] }, SIDE_REM, gives),
  ];
}

function wideColumns(areas: Areas): Border[] {
  const hasFills = areas.some((row) => row[1] !== row[2]);
  const gives = [{ track: 1, leastRem: hasFills ? ORDERS_REM : MIDDLE_REM }];
  const beyond = { track: 2, leastRem: BEYOND_TAPE_REM };
  const beside = areas.findLast((row) => row[2] !== row[3])?.[3];
  return [
    ...upright(areas, 1, { size: "book", panel: "book", grows: BEFORE, tracks: [0] }, BOOK_REM, gives),
    ...upright(areas, 2, { size: "fills", panel: "fills", grows: AFTER, tracks: [2, 3] }, BEYOND_TAPE_REM, gives),
    ...upright(
      areas, 3, { size: "tape", panel: beside === "watch" ? "watch" : "tape", grows: AFTER, tracks: [3] }, TAPE_REM,
      hasFills ? [beyond, ...gives] : gives,
    ),
    ...upright(areas, 4, { size: "side", panel: "ticket", grows: AFTER, tracks: [4] }, SIDE_REM, gives),
  ];
}

type Subject = Pick<Border, "size" | "panel" | "grows" | "tracks">;

/** The border before the column `at`, along the rows in which two panels meet there, if there are any. The first track shrinks. */
function upright(areas: Areas, at: number, subject: Subject, leastRem: number, gives: Kept[]): Border[] {
  const meets = areas.map((row) => row[at - 1] !== row[at]);
  const first = meets.indexOf(true);
  if (first < 0) return [];
  const [from, to] = [first + 1, meets.lastIndexOf(true) + 2];
  return [{ ...subject, axis: "x", line: at + 1, from, to, shrinks: [{ track: subject.tracks[0] ?? 0, leastRem }], gives }];
}

/** Of the rows that have a height of their own; one row takes what they leave. */
function wideRows(areas: Areas, heights: string[]): Border[] {
  const rest = heights.findIndex((height) => height.includes("1fr"));
  const isAlone = areas[rest]?.some((name, at) => name !== areas[rest - 1]?.[at] && name !== areas[rest + 1]?.[at]) ?? false;
  const gives = [{ track: rest, leastRem: rest === 0 ? LARGE_REM : isAlone ? REST_REM_ALONE : REST_REM }];
  const watch: Subject = { size: "watch-row", panel: "watch", grows: BEFORE, tracks: [0] };
  const borders = rest === 0 ? [] : level(areas, 1, "watch", watch, gives, ROW_REM);
  for (let row = rest + 1; row < areas.length; row += 1) {
    const panel = areas[row]?.[1] as Exclude<Panel, "holdings">;
    // During an auction the chart has the row of the curves, and they have the chart's.
    const size: SizeName = `${panel === "chart" ? "depth" : panel}-row`;
    borders.push(...level(areas, row, panel, { size, panel, grows: AFTER, tracks: [row] }, gives, ROW_REM));
  }
  return borders;
}

/** Where the page scrolls: of a chart that has a row, if there is another below it. */
function rowsOfPage(columns: "two" | "three", areas: Areas, collects: boolean): Border[] {
  const charts = columns === "two" || collects ? (["chart"] as const) : (["chart", "depth"] as const);
  return charts.flatMap((panel) => {
    const rows = areas.flatMap((row, at) => (row.includes(panel) ? [at] : []));
    const [row = areas.length, ...further] = rows;
    if (further.length > 0 || row + 1 >= areas.length) return [];
    return level(areas, row + 1, panel, { size: `${panel}-row`, panel, grows: BEFORE, tracks: [row] }, [], ROW_REM_OF_PAGE);
  });
}

/** The border before the row `at`, along the columns around the panel in which two panels meet there. */
function level(
  areas: Areas, at: number, panel: Panel, subject: Subject, gives: Kept[], leastRem: Partial<Record<SizeName, number>>,
): Border[] {
  const [above = [], below = []] = [areas[at - 1], areas[at]];
  const meets = above.map((name, column) => name !== below[column]);
  let from = meets.findIndex((_, column) => above[column] === panel || below[column] === panel);
  let to = from;
  while (meets[from - 1]) from -= 1;
  while (meets[to + 1]) to += 1;
  const shrinks = [{ track: subject.tracks[0] ?? 0, leastRem: leastRem[subject.size] ?? 0 }];
  return [{ ...subject, axis: "y", line: at + 1, from: from + 1, to: to + 2, shrinks, gives }];
}
