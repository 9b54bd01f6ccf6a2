import assert from "node:assert/strict";
import test from "node:test";
import {
  type Arrangement, ARRANGEMENTS, type Columns, COLUMNS, type Panel, PANELS, type PanelSizes, SIZE_NAMES, type SizeName, sizes,
} from "../src/base/settings.ts";
import { type Border, bordersOf, limitsOf, sizeKey, tracksOf, within } from "../src/state/panel-sizes.ts";
import { type Areas, gridsOf } from "../src/state/panels.ts";

const ALL = new Set<Panel>(PANELS);
const [GAP, REM] = [20, 16];

interface View {
  said: string;
  arrangement: Arrangement;
  columns: Columns;
  areas: Areas;
  borders: Border[];
  tracks(chosen: PanelSizes): { columns: string | null; rows: string | null };
}

function viewOf(arrangement: Arrangement, columns: Columns, shown: ReadonlySet<Panel> = ALL, collects = false): View {
  const grids = gridsOf(arrangement, shown, collects);
  const borders = bordersOf(columns, grids, collects);
  return {
    said: `${arrangement}, ${columns}: ${[...shown].join(" ")}`, arrangement, columns, areas: grids[columns], borders,
    tracks: (chosen) => tracksOf(arrangement, columns, grids, borders, chosen),
  };
}

function* views(): Generator<View> {
  for (const arrangement of ARRANGEMENTS) {
    for (const columns of COLUMNS) {
      for (let bits = 0; bits < 2 ** PANELS.length; bits += 1) {
        const shown = new Set(PANELS.filter((_, at) => ((bits >> at) & 1) === 1));
        yield viewOf(arrangement, columns, shown);
        if (shown.has("depth")) yield viewOf(arrangement, columns, shown, true);
      }
    }
  }
}

const all = (arrangement: Arrangement, columns: Columns, px: number): PanelSizes =>
  Object.fromEntries(SIZE_NAMES.map((name) => [sizeKey(arrangement, columns, name), px]));

/** The tracks of a template: what stands between brackets is one. */
function split(tracks: string): string[] {
  let depth = 0;
  return [...tracks].reduce((list, sign) => {
    depth += sign === "(" ? 1 : sign === ")" ? -1 : 0;
    return sign === " " && depth === 0 ? [...list, ""] : [...list.slice(0, -1), (list.at(-1) ?? "") + sign];
  }, [""]);
}

const named = ({ borders }: View, size: SizeName): Border => {
  const border = borders.find((each) => each.size === size);
  assert.ok(border, `${size} can be changed`);
  return border;
};

test("whatever is shown, a border lies where two panels meet, all along it, and each size has one border", () => {
  for (const { said, areas, borders } of views()) {
    assert.equal(new Set(borders.map(({ size }) => size)).size, borders.length, said);
    for (const { axis, size, panel, line, from, to, tracks } of borders) {
      assert.ok(from < to, `${said}: ${size} from ${from} to ${to}`);
      for (let at = from - 1; at < to - 1; at += 1) {
        const [one, other] = axis === "x"
          ? [areas[at]?.[line - 2], areas[at]?.[line - 1]]
          : [areas[line - 2]?.[at], areas[line - 1]?.[at]];
        assert.ok(one !== undefined && other !== undefined && one !== other, `${said}: ${size} between ${one} and ${other}`);
      }
      const isOwn = (name: string): boolean => name === panel || (panel === "ticket" && name === "side");
      const cells = areas.flatMap((row, y) => row.flatMap((name, x) => (isOwn(name) ? [{ x, y }] : [])));
      assert.ok(cells.some(({ x, y }) => tracks.includes(axis === "x" ? x : y)), `${said}: ${panel} lies in the tracks of ${size}`);
    }
  }
});

test("without a choice the style sheet has all sizes, and a choice leaves as many tracks as there were", () => {
  for (const { said, arrangement, columns, areas, borders, tracks } of views()) {
    assert.deepEqual(tracks({}), { columns: null, rows: null }, said);
    const others = all(arrangement, columns === "wide" ? "two" : "wide", 300);
    assert.deepEqual(tracks(others), { columns: null, rows: null }, `${said}: sizes of another window`);
    const { columns: widths, rows: heights } = tracks(all(arrangement, columns, 300));
    assert.ok(widths !== null, said);
    assert.equal(split(widths).length, areas[0]?.length, `${said}: ${widths}`);
    assert.equal(split(widths).filter((width) => width.endsWith("1fr)")).length, 1, `${said}: ${widths}`);
    assert.equal(heights !== null, borders.some(({ axis }) => axis === "y"), said);
    if (heights === null) continue;
    assert.equal(split(heights).length, areas.length, `${said}: ${heights}`);
    // One row at least grows with what is in it, or takes what is left.
    assert.ok(split(heights).some((height) => height === "auto" || height.includes("1fr")), `${said}: ${heights}`);
  }
});

test("the tracks of the standard arrangement", () => {
  const { borders, tracks } = viewOf("standard", "wide");
  assert.deepEqual(borders.map(({ size }) => size), ["book", "fills", "tape", "side", "watch-row", "depth-row", "orders-row"]);
  assert.deepEqual(tracks({ "standard.wide.book": 400, "standard.wide.depth-row": 250, "chart.wide.side": 500 }), {
    columns:
      "minmax(16.5rem, 400px) minmax(min(23.75rem, 27%), 1fr) minmax(5.25rem, calc(var(--fills) - var(--tape) - var(--gap))) " +
      "minmax(15rem, var(--tape)) minmax(17.5rem, var(--side))",
    rows: "clamp(9rem, 20vh, 18rem) minmax(2rem, 1fr) minmax(7rem, 250px) 11rem",
  });
  const three = viewOf("standard", "three");
  assert.deepEqual(three.borders.map(({ size }) => size), ["book", "side", "chart-row", "depth-row"]);
  assert.deepEqual(three.tracks({ "standard.three.side": 320, "standard.three.chart-row": 500 }), {
    columns: "minmax(16.5rem, var(--book)) minmax(23.75rem, 1fr) minmax(17.5rem, 320px)",
    rows: "auto max(14rem, 500px) auto auto auto",
  });
  const two = viewOf("standard", "two");
  assert.deepEqual(two.borders.map(({ size, from, to }) => [size, from, to]), [["book", 3, 6], ["chart-row", 1, 3]]);
  assert.equal(two.tracks({ "standard.two.book": 360 }).columns, "minmax(17rem, 360px) minmax(17.5rem, 1fr)");
});

test("a panel grows until its neighbours have their minima, and shrinks to its own", () => {
  // 1440 px: the chart and the orders share the middle.
  const px = [296, 404, 84, 240, 296];
  const standard = viewOf("standard", "wide");
  assert.deepEqual(limitsOf(named(standard, "book"), px, GAP, REM), { now: 296, least: 264, most: 320 });
  assert.deepEqual(limitsOf(named(standard, "fills"), px, GAP, REM), { now: 344, least: 344, most: 368 });
  assert.deepEqual(limitsOf(named(standard, "tape"), px, GAP, REM), { now: 240, least: 240, most: 264 });
  assert.deepEqual(limitsOf(named(standard, "tape"), [296, 404, 184, 240, 296], GAP, REM), { now: 240, least: 240, most: 364 });
  assert.deepEqual(limitsOf(named(viewOf("book", "wide"), "book"), px, GAP, REM).most, 340, "there the orders have a row of their own");
  const rows = [180, 95, 176, 176];
  assert.deepEqual(limitsOf(named(standard, "depth-row"), rows, GAP, REM), { now: 176, least: 112, most: 239 });
  assert.deepEqual(limitsOf(named(standard, "watch-row"), rows, GAP, REM), { now: 180, least: 112, most: 243 });
  const alone = viewOf("standard", "wide", new Set(PANELS.filter((panel) => panel !== "depth")));
  assert.deepEqual(
    limitsOf(named(alone, "watch-row"), [180, 95, 176], GAP, REM), { now: 180, least: 112, most: 180 }, "the trades have that row alone",
  );
  assert.deepEqual(limitsOf(named(viewOf("standard", "three"), "chart-row"), [60, 400, 240, 200, 200], GAP, REM), {
    now: 400, least: 224, most: 768,
  });
});

test("a size outside the limits becomes the nearest one within", () => {
  const limits = { now: 300, least: 264, most: 320 };
  assert.deepEqual([100, 290.4, 999].map((px) => within(limits, px)), [264, 290, 320]);
});

test("a window that is too narrow for what was chosen leaves each column its minimum", () => {
  const minima = (tracks: string | null): number =>
    [...(tracks ?? "").matchAll(/minmax\(([\d.]+)rem/g)].reduce((sum, [, rem]) => sum + Number(rem), 0);
  for (const { said, arrangement, columns, areas, tracks } of views()) {
    // The narrowest window of each, without its margins and a scroll bar; in the wide one the middle has 27 % of it.
    const px = { two: 760, three: 1060, wide: 1360 }[columns] - 40 - 15;
    const gaps = ((areas[0]?.length ?? 1) - 1) * GAP;
    const sum = minima(tracks(all(arrangement, columns, 2_000)).columns) * REM + (columns === "wide" ? px * 0.27 : 0);
    assert.ok(sum + gaps <= px, `${said}: ${sum + gaps} of ${px} px`);
  }
});

test("while orders collect for an auction their panel has the height that it needs, where the page can get longer", () => {
  const chosen: PanelSizes = { "standard.three.chart-row": 300, "standard.three.depth-row": 300 };
  assert.equal(viewOf("standard", "three").tracks(chosen).rows, "auto max(14rem, 300px) max(10rem, 300px) auto auto");
  assert.equal(viewOf("standard", "three", ALL, true).tracks(chosen).rows, "auto max(14rem, 300px) auto auto auto");
});

test("of kept sizes only those that can be chosen are taken", () => {
  assert.equal(sizes("large"), null);
  assert.equal(sizes(null), null);
  assert.deepEqual(sizes([300]), {});
  assert.deepEqual(
    sizes({
      "standard.wide.book": 400, "chart.three.chart-row": 350, "standard.wide.side": "300", "book.two.book": -5, "book.wide.book": 1e9,
      "book.wide.tape": 300.5, "sideways.wide.book": 300, "standard.wide.ticket": 300, ["__proto__"]: 300,
    }),
    { "standard.wide.book": 400, "chart.three.chart-row": 350 },
  );
});
