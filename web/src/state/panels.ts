// Where the panels of the order book's view lie: for each width of window the areas of a grid, by the arrangement and the panels that are
// shown. Pure. Every panel that is shown has one rectangle, and no room is kept for those that are not.

import type { Arrangement, Panel } from "../base/settings.ts";

/** Names of areas, row by row. `side` is the ticket with what one has below it. */
export type Areas = string[][];

export interface Grids {
  /** Of two columns and of three. A single one has the order of the document. */
  two: Areas;
  three: Areas;
  /** Of five columns, in a window that holds all of it, with the height of each row. */
  wide: Areas;
  wideRows: string[];
}

/** Of the row that the watch list shares with the chart. */
const WATCH_HEIGHT = "clamp(9rem, 20vh, 18rem)";
/** Of the row that takes what the others leave; where the watch list has a row the chart has that too. */
const [LARGE_HEIGHT, REST_HEIGHT] = ["minmax(10rem, 1fr)", "minmax(2rem, 1fr)"];
const SMALL_HEIGHTS: Record<Arrangement, string> = { standard: "11rem", chart: "minmax(7rem, 9rem)", book: "minmax(6rem, 7.5rem)" };

/** `collects` is during an auction: its curves then have the room of the chart, where the window is wide. */
export function gridsOf(arrangement: Arrangement, shown: ReadonlySet<Panel>, collects: boolean): Grids {
  const is = (panel: Panel): Panel | null => (shown.has(panel) ? panel : null);
  return { two: twoColumns(is), three: threeColumns(arrangement, is), ...wide(arrangement, is, collects) };
}

type Shown = (panel: Panel) => Panel | null;

/** One row: of two panels the first has so many of the cells; one alone has all. */
function across(cells: number, first: number, one: string | null, other: string | null = null): Areas {
  const [left, right] = [one ?? other, other ?? one];
  return left === null || right === null ? [] : [Array.from({ length: cells }, (_, at) => (at < first ? left : right))];
}

function listed(panels: (Panel | null)[]): Panel[] {
  return panels.filter((panel) => panel !== null);
}

function twoColumns(is: Shown): Areas {
  return [
    ...across(2, 2, is("watch")),
    ...across(2, 2, is("chart")),
    ["book", "ticket"],
    ...(is("holdings") ? [["book", "holdings"]] : []),
    ...across(2, 1, is("depth"), is("tape")),
    ...across(2, 2, is("orders")),
    ...across(2, 2, is("fills")),
  ];
}

function threeColumns(arrangement: Arrangement, is: Shown): Areas {
  const isOver = arrangement === "chart";
  const left = ["book", ...listed([is("tape")])];
  const middle = listed([isOver ? null : is("chart"), is("depth"), is("orders"), is("fills")]);
  const beside = middle.length > 0 ? middle : left;
  const count = Math.max(left.length, beside.length);
  /** Of a column of fewer panels than rows the first ones have more of them. */
  const at = (column: string[], row: number): string => column[Math.floor((row * column.length) / count)] ?? "";
  return [
    ...across(3, 3, is("watch")),
    ...(isOver ? across(2, 2, is("chart")).map((row) => [...row, "side"]) : []),
    ...Array.from({ length: count }, (_, row) => [at(left, row), at(beside, row), "side"]),
  ];
}

function wide(arrangement: Arrangement, is: Shown, collects: boolean): Pick<Grids, "wide" | "wideRows"> {
  const [large, small = null] = listed(collects ? [is("depth"), is("chart")] : [is("chart"), is("depth")]);
  const own = across(3, 1, is("orders"), is("fills"));
  /** The row of the watch list, and those below it: the book at the left of them, the side at the right. */
  let top: Areas = [];
  let rows: Areas;
  if (arrangement === "chart") {
    rows = [...across(3, 3, large ?? null), ...across(3, 2, small, is("tape")), ...own];
    if (is("watch")) top = [["watch", ...(rows[0] ?? ["watch", "watch", "watch"])]];
  } else {
    const column = [...listed([large ?? null, small]), ...(arrangement === "book" ? listed([is("orders"), is("fills")]) : [])];
    const beside = is("tape") ?? is("watch");
    rows = column.length > 0 ? column.flatMap((panel) => across(3, 2, panel, beside)) : across(3, 2, null, beside);
    if (is("tape") && is("watch")) top = across(3, 2, column[0] ?? null, "watch").map((row) => ["book", ...row]);
    if (arrangement === "standard") rows = [...rows, ...own];
  }
  if (rows.length === 0) rows = across(3, 3, "book");
  const hasTop = top.length > 0;
  return {
    wide: [...top, ...rows.map((row) => ["book", ...row])].map((row) => [...row, "side"]),
    wideRows: [
      ...(hasTop ? [WATCH_HEIGHT] : []), hasTop ? REST_HEIGHT : LARGE_HEIGHT, ...rows.slice(1).map(() => SMALL_HEIGHTS[arrangement]),
    ],
  };
}
